using System.Diagnostics;
using System.Runtime.CompilerServices;

namespace Recorded;

/// <summary>
/// Recorded THREADS BUSY: of THREADS threads, BUSY compute, 7 parts of the time in one method and 3 in another; one waits
/// for an async method, and the others for a signal that never comes. Each line of input is answered by the units of work
/// that were done and the milliseconds that have passed; the program ends with its input.
/// </summary>
internal static class Program
{
    private const int Part = 100_000; // rounds of a loop: some 0.1 ms

    private static readonly SemaphoreSlim Never = new(0);
    private static long units;

    private static void Main(string[] arguments)
    {
        int threads = int.Parse(arguments[0]), busy = int.Parse(arguments[1]);
        for (int i = 0; i < threads; i++)
        {
            ThreadStart body = i < busy ? Compute : i == busy ? WaitForTask : WaitForSignal;
            new Thread(body) { IsBackground = true, Name = $"T{i}" }.Start();
        }
        Thread.Sleep(500); // until all of them are where they stay
        var clock = Stopwatch.StartNew();
        Console.WriteLine($"READY {Environment.ProcessId}");
        while (Console.ReadLine() != null)
            Console.WriteLine($"UNITS {Volatile.Read(ref units)} {clock.ElapsedMilliseconds}");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Compute()
    {
        for (uint state = 1; ;)
        {
            state = Seventy(state, 7 * Part);
            state = Thirty(state, 3 * Part);
            Interlocked.Increment(ref units);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    private static uint Seventy(uint state, int rounds)
    {
        for (int i = 0; i < rounds; i++)
            state = state * 1664525 + 1013904223;
        return state;
    }

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    private static uint Thirty(uint state, int rounds)
    {
        for (int i = 0; i < rounds; i++)
            state = state * 1664525 + 1013904223;
        return state;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void WaitForSignal() => Never.Wait();

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void WaitForTask() => OuterAsync().Wait();

    private static async Task OuterAsync() => await InnerAsync();

    private static async Task InnerAsync() => await Never.WaitAsync();
}
