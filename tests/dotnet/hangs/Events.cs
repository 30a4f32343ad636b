using System.Collections.Concurrent;
using static Hangs.Program;

namespace Hangs;

/// Threads that wait for what never comes.
static class Events
{
    static readonly object pulsed = new();

    public static void Sleep()
    {
        Ready();
        Thread.Sleep(Timeout.Infinite); // @Sleep
    }

    public static void NoPulse()
    {
        lock (pulsed)
        {
            Ready();
            Monitor.Wait(pulsed); // @NoPulse
        }
    }

    public static void ManualReset()
    {
        var set = new ManualResetEvent(false);
        Ready();
        set.WaitOne(); // @ManualReset
    }

    public static void ManualResetSlim()
    {
        var set = new ManualResetEventSlim();
        Ready();
        set.Wait(); // @ManualResetSlim
    }

    public static void WaitAny()
    {
        WaitHandle[] handles = [new AutoResetEvent(false), new ManualResetEvent(false)];
        Ready();
        WaitHandle.WaitAny(handles); // @WaitAny
    }

    public static void BarrierOfTwo()
    {
        var barrier = new Barrier(2);
        Ready();
        barrier.SignalAndWait(); // @BarrierOfTwo
    }

    public static void Countdown()
    {
        var countdown = new CountdownEvent(2);
        countdown.Signal();
        Ready();
        countdown.Wait(); // @Countdown
    }

    public static void EmptyCollection()
    {
        var collection = new BlockingCollection<int>();
        Ready();
        collection.Take(); // @EmptyCollection
    }

    public static void Join()
    {
        Thread other = Start("Joined", () => new AutoResetEvent(false).WaitOne());
        AwaitBlocked(other);
        Ready();
        other.Join(); // @Join
    }

    public static void ParallelFor()
    {
        var never = new ManualResetEventSlim();
        Ready();
        Parallel.For(0, 4, _ => never.Wait()); // @ParallelFor
    }

    sealed class Stuck
    {
        ~Stuck() => new ManualResetEvent(false).WaitOne(); // @Finalizer
    }

    static void MakeStuck() => GC.KeepAlive(new Stuck());

    public static void Finalizer()
    {
        Start("Maker", MakeStuck).Join();
        GC.Collect();
        Ready();
        GC.WaitForPendingFinalizers(); // @Finalizer.by
    }

    static Timer? timer;

    public static void TimerCallback()
    {
        var never = new ManualResetEventSlim();
        var called = new ManualResetEventSlim();
        timer = new Timer(_ => { called.Set(); never.Wait(); }, null, 0, Timeout.Infinite); // @TimerCallback
        called.Wait();
        Ready();
        Thread.Sleep(Timeout.Infinite);
    }
}
