using System.Diagnostics;
using static Hangs.Program;

namespace Hangs;

/// Programs that are slow, and count why. A line of input asks for "counts EXCEPTIONS PAUSES MILLISECONDS", of which
/// the pauses of the garbage collector are milliseconds, too.
static class Slow
{
    static long thrown;

    static void Answer()
    {
        var clock = Stopwatch.StartNew();
        Start("Counts", () =>
        {
            while (Console.ReadLine() != null)
                Console.WriteLine($"counts {Volatile.Read(ref thrown)} {(long)GC.GetTotalPauseDuration().TotalMilliseconds} {clock.ElapsedMilliseconds}");
        });
        Ready();
    }

    sealed class Node
    {
        public Node? Next;
    }

    /// Collects garbage for about half of the time, and computes for as long.
    public static void Collections()
    {
        var nodes = new Node[400_000];
        for (int i = 0; i < nodes.Length; i++)
            nodes[i] = new Node { Next = i > 0 ? nodes[i * 31L % i] : null };
        Answer();
        while (true)
        {
            TimeSpan before = GC.GetTotalPauseDuration();
            GC.Collect();
            TimeSpan paused = GC.GetTotalPauseDuration() - before;
            for (var clock = Stopwatch.StartNew(); clock.Elapsed < paused;)
                ;
            GC.KeepAlive(nodes);
        }
    }

    static void Throw() => throw new InvalidOperationException("again");

    public static void Throwing()
    {
        Answer();
        while (true)
        {
            try
            {
                Throw();
            }
            catch (InvalidOperationException)
            {
                Volatile.Write(ref thrown, thrown + 1);
            }
        }
    }

    /// One exception is handled for ever, which is none a second.
    public static void Handling()
    {
        try
        {
            Throw();
        }
        catch (InvalidOperationException)
        {
            Answer();
            Spin();
        }
    }

    static int sum;

    static void Spin()
    {
        while (true)
            sum = sum * 31 + 1;
    }

    public static void Spinning()
    {
        Answer();
        Spin();
    }
}
