using System.Runtime.CompilerServices;

namespace Busy;

/// <summary>Computes in methods of several kinds until its input ends. "READY pid" says that all of them have run.</summary>
internal static class Program
{
    private static int Main()
    {
        var ended = new Thread(() => Console.OpenStandardInput().ReadByte()) { IsBackground = true };
        ended.Start();
        long sum = Round();
        Console.WriteLine($"READY {Environment.ProcessId}");
        while (ended.IsAlive)
            sum += Round();
        return (int)(sum & 1);
    }

    private static long Round()
    {
        var box = new Box<long> { Value = 1 };
        long sum = Sieve(5000) + Pick<string>.Count(20000) + Sorted(200);
        for (int i = 0; i < 20000; i++)
            sum += box.Mix(i);
        Func<int, int> twist = x => { for (int i = 0; i < 50; i++) x = x * 31 + i; return x; };
        for (int i = 0; i < 500; i++)
            sum += twist(i);
        return sum;
    }

    /// <summary>Spends its time in the framework, which is ReadyToRun code unless it is compiled again.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Sorted(int count)
    {
        var words = new string[count];
        for (int i = 0; i < count; i++)
            words[i] = (i * 7919 % count).ToString();
        Array.Sort(words, StringComparer.Ordinal);
        return words[count / 2].Length;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Sieve(int count)
    {
        var composite = new bool[count];
        int primes = 0;
        for (int i = 2; i < count; i++)
        {
            if (composite[i])
                continue;
            primes++;
            for (int j = 2 * i; j < count; j += i)
                composite[j] = true;
        }
        return primes;
    }
}

internal sealed class Box<T>
{
    public T? Value;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public int Mix(int by) => (Value!.GetHashCode() * 31 + by) ^ (by >> 3);
}

internal static class Pick<T>
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Count(int rounds)
    {
        int count = 0;
        for (int i = 0; i < rounds; i++)
            if (typeof(T) == typeof(string) && (i * 7 & 3) == 1)
                count++;
        return count;
    }
}
