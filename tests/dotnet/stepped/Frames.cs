using System.Runtime.CompilerServices;

namespace Stepped;

/// <summary>Frames of every form: none, small, large, with localloc, with many registers, replaced on the stack.</summary>
internal static unsafe class Frames
{
    public static long Run()
    {
        long sum = Leaf(1) + NoFrame(2) + ManyRegisters(1, 2, 3, 4, 5, 6) + ManyArguments(1, 2, 3, 4, 5, 6, 7, 8, 9.5, 10, 11f);
        sum += Localloc(17) + Localloc(300) + LargeFrame(3) + VeryLargeFrame(2) + LargeAndLocalloc(40) + Replaced(150) + ReplacedWithHandler(150);
        return sum + Recursive(12) + (long)Vectors(1.5, 2.5) + Fixed(new byte[20]) + Optimized(6) + OptimizedLarge(2);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Leaf(int a) => a * 3;

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int NoFrame(int a) => Leaf(a) + 1;

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int ManyRegisters(int a, int b, int c, int d, int e, int f)
    {
        int g = Leaf(a), h = Leaf(b), i = Leaf(c), j = Leaf(d), k = Leaf(e);
        return (Leaf(f) + g * h) ^ (i * j + k) ^ (a + b * c - d + e * f) ^ Leaf(g + h + i + j + k);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long ManyArguments(int a, long b, int c, byte d, short e, int f, long g, int h, double i, decimal j, float k) =>
        a + b + c + d + e + f + g + h + (long)i + (long)j + (long)k + Leaf(h);

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Localloc(int n)
    {
        int* numbers = stackalloc int[n];
        for (int i = 0; i < n; i += 7)
            numbers[i] = Leaf(i);
        return numbers[0] + numbers[7];
    }

    private struct Large
    {
        public fixed byte Bytes[6000];
    }

    private struct VeryLarge
    {
        public fixed byte Bytes[70000];
    }

    [SkipLocalsInit]
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int LargeFrame(int n)
    {
        Large large;
        large.Bytes[n] = (byte)n;
        return Touch(large.Bytes) + n;
    }

    [SkipLocalsInit]
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int VeryLargeFrame(int n)
    {
        VeryLarge large;
        large.Bytes[n] = (byte)n;
        return Touch(large.Bytes) + n;
    }

    [SkipLocalsInit]
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int LargeAndLocalloc(int n)
    {
        Large large;
        byte* more = stackalloc byte[n];
        more[3] = 1;
        large.Bytes[n] = (byte)n;
        return Touch(large.Bytes) + Touch(more);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Touch(byte* bytes) => ++bytes[3];

    /// <summary>With the driver's settings a few turns are enough for on-stack replacement.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Replaced(int n)
    {
        int sum = 0, other = 1;
        for (int i = 0; i < n; i++)
        {
            sum += Leaf(i) ^ other;
            other = sum >> 3;
        }
        return sum + other;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int ReplacedWithHandler(int n)
    {
        int sum = 0;
        for (int i = 0; i < n; i++)
        {
            try
            {
                sum += Leaf(i);
            }
            finally
            {
                sum ^= NoFrame(i);
            }
        }
        return sum;
    }

    private static int Recursive(int n) => n <= 0 ? 0 : n + Recursive(n - 1);

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static double Vectors(double a, double b)
    {
        double c = Math.Sqrt(a) * Leaf(3), d = Math.Sin(b) + Leaf(4), e = Math.Pow(c, d), f = Math.Floor(e);
        return c + d * e - f + Leaf((int)f);
    }

    private static int Fixed(byte[] bytes)
    {
        fixed (byte* p = bytes)
            return Touch(p);
    }

    [MethodImpl(MethodImplOptions.AggressiveOptimization | MethodImplOptions.NoInlining)]
    private static int Optimized(int n) => n <= 0 ? 0 : ManyRegisters(n, n, n, n, n, n) + Optimized(n - 1);

    [SkipLocalsInit]
    [MethodImpl(MethodImplOptions.AggressiveOptimization | MethodImplOptions.NoInlining)]
    private static int OptimizedLarge(int n)
    {
        VeryLarge large;
        byte* more = stackalloc byte[n * 100];
        more[3] = large.Bytes[n] = (byte)n;
        return Touch(large.Bytes) + Touch(more);
    }
}
