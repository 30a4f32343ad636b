using System.Runtime.CompilerServices;

namespace Demo;

/// <summary>Makes the runtime compile one method several times: tier 0, instrumented, tier 1, on-stack replacement.</summary>
internal static class Tiering
{
    public static int Run()
    {
        int sum = OnStack(400_000) + OnStackGeneric("a", 400_000).Length + Optimized(5);
        // Tier-up happens in the background some 100 ms after the last new tier-0 method.
        for (int round = 0; round < 5; round++)
        {
            for (int i = 0; i < 200; i++)
                sum += Hot(i) + HotGeneric(i) + HotGeneric("s").Length + new Counter().Next() + Guarded(i)
                    + Sequence(i % 3).Sum() + Finished(i).Result;
            Thread.Sleep(250);
        }
        return sum;
    }

    /// <summary>Called once: only on-stack replacement can optimize it.</summary>
    private static int OnStack(int n)
    {
        int sum = 0;
        for (int i = 0; i < n; i++)
        {
            try
            {
                sum += i % 7 == 0 ? Step(i) : 1;
            }
            finally
            {
                sum ^= 1;
            }
        }
        return sum;
    }

    private static T OnStackGeneric<T>(T value, int n)
    {
        for (int i = 0; i < n; i++)
            value = Identity(value);
        return value;
    }

    /// <summary>Funclets in optimized code; throws seldom, because that is slow.</summary>
    private static int Guarded(int i)
    {
        try
        {
            return i == 199 ? throw new ArgumentException("seldom") : i;
        }
        catch (ArgumentException e) when (e.Message.Length > 3)
        {
            return e.Message.Length;
        }
        finally
        {
            Step(i);
        }
    }

    private static IEnumerable<int> Sequence(int n)
    {
        while (n-- > 0)
            yield return n;
    }

    private static async Task<int> Finished(int n)
    {
        await Task.CompletedTask;
        return n;
    }

    private static int Step(int i) => i >> 3;
    private static int Hot(int i) => i * 3 + Step(i);
    private static T HotGeneric<T>(T value) => Identity(value);

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static T Identity<T>(T value) => value;

    [MethodImpl(MethodImplOptions.AggressiveOptimization)]
    private static int Optimized(int n) => n <= 0 ? 0 : n + Optimized(n - 1);

    private struct Counter
    {
        private int value;
        public int Next() => ++value;
    }
}
