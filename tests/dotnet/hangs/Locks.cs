using System.Runtime.CompilerServices;
using static Hangs.Program;

namespace Hangs;

/// Locks that are not left.
static class Locks
{
    static readonly object a = new(), b = new(), c = new();
    static readonly ReaderWriterLockSlim shared = new();

    static void Both(object first, object second, Barrier together)
    {
        lock (first)
        {
            together.SignalAndWait();
            lock (second) // @Deadlock2 @Deadlock3
                Console.WriteLine();
        }
    }

    static void Cycle(params object[] locks)
    {
        var together = new Barrier(locks.Length);
        Thread[] threads = locks.Select((one, i) => Start($"Worker{i}", () => Both(one, locks[(i + 1) % locks.Length], together))).ToArray();
        foreach (Thread thread in threads)
            AwaitBlocked(thread);
        Ready();
        Thread.Sleep(Timeout.Infinite);
    }

    public static void Deadlock2() => Cycle(a, b);

    public static void Deadlock3() => Cycle(a, b, c);

    static void Enter()
    {
        lock (a) // @LockOfSleeper @LockOfEnded @LockOfBusy
            Console.WriteLine();
    }

    static void WaitForLock()
    {
        Thread[] threads = Enumerable.Range(0, 3).Select(i => Start($"Waiter{i}", Enter)).ToArray();
        foreach (Thread thread in threads)
            AwaitBlocked(thread);
        Ready();
        Thread.Sleep(Timeout.Infinite);
    }

    public static void LockOfSleeper()
    {
        var held = new ManualResetEventSlim();
        Start("Holder", () =>
        {
            lock (a)
            {
                held.Set();
                Thread.Sleep(Timeout.Infinite); // @LockOfSleeper.by
            }
        });
        held.Wait();
        WaitForLock();
    }

    public static void LockOfBusy()
    {
        var held = new ManualResetEventSlim();
        Start("Holder", () =>
        {
            lock (a)
            {
                held.Set();
                while (true) ;
            }
        });
        held.Wait();
        WaitForLock();
    }

    public static void LockOfEnded()
    {
        Start("Holder", () => Monitor.Enter(a)).Join();
        WaitForLock();
    }

    public static void ReaderWriter()
    {
        var held = new ManualResetEventSlim();
        Start("Writer", () =>
        {
            shared.EnterWriteLock();
            held.Set();
            new ManualResetEvent(false).WaitOne();
        });
        held.Wait();
        Ready();
        shared.EnterReadLock(); // @ReaderWriter
    }

    /// The thread that is joined needs the lock of the one that joins it.
    public static void JoinInLock()
    {
        lock (a)
        {
            Thread other = Start("Joined", () =>
            {
                lock (a) // @JoinInLock
                    Console.WriteLine();
            });
            AwaitBlocked(other);
            Ready();
            other.Join(); // @JoinInLock
        }
    }

    /// The runtime breaks a cycle of static constructors alone, but not one through another wait.
    static class Settings
    {
        public static readonly int Value;
        static Settings()
        {
            Start("Reader", () => Console.WriteLine(Value)).Join(); // @StaticConstructor
            Value = 1;
        }
    }

    public static void StaticConstructor()
    {
        Ready();
        Console.WriteLine(Settings.Value);
    }

    static Lazy<int> one = null!, two = null!;

    public static void Lazies()
    {
        var both = new Barrier(2);
        one = new Lazy<int>(() => { both.SignalAndWait(); return two.Value; }); // @Lazies
        two = new Lazy<int>(() => { both.SignalAndWait(); return one.Value; }); // @Lazies
        Thread first = Start("One", () => Console.WriteLine(one.Value));
        Thread second = Start("Two", () => Console.WriteLine(two.Value));
        AwaitBlocked(first);
        AwaitBlocked(second);
        Ready();
        Thread.Sleep(Timeout.Infinite);
    }

    public static void NamedMutex()
    {
        var held = new ManualResetEventSlim();
        Start("Owner", () =>
        {
            new Mutex(true, "cdacq-hangs-" + Environment.ProcessId);
            held.Set();
            Thread.Sleep(Timeout.Infinite);
        });
        held.Wait();
        using var mutex = new Mutex(false, "cdacq-hangs-" + Environment.ProcessId);
        Ready();
        mutex.WaitOne(); // @NamedMutex
    }

    /// A semaphore is entered again by the thread that has entered it.
    public static void SemaphoreTwice()
    {
        var semaphore = new SemaphoreSlim(1);
        semaphore.Wait();
        Ready();
        semaphore.Wait(); // @SemaphoreTwice
    }
}
