using System.Runtime.CompilerServices;
using static Locks.Program;

namespace Locks;

/// Locks that are held and waits of every kind, without a deadlock.
static class Waits
{
    const int Many = 5;
    static readonly object never = new();

    public static void All()
    {
        Thin();
        Inflated();
        ManyWaiters();
#if NET9_0_OR_GREATER
        NewLock();
#endif
        MonitorWait();
        Primitives();
        Readers();
        Tasks();
        Chains();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Sleep() => Thread.Sleep(Timeout.Infinite);

    static void Thin()
    {
        object thin = Known("Thin", new object());
        Start("ThinOwner", () =>
        {
            lock (thin)
            lock (thin)
            lock (thin)
                Sleep();
        });
        Say("held Thin ThinOwner 2");
        Say("waiters Thin 0");
        Say("idle ThinOwner");
    }

    static void Inflated()
    {
        object inflated = Known("Inflated", new object());
        inflated.GetHashCode();
        Start("InflatedOwner", () =>
        {
            lock (inflated)
            lock (inflated)
                Sleep();
        });
        Say("held Inflated InflatedOwner 1");
        Say("waiters Inflated 0");
        Say("idle InflatedOwner");
    }

    static void ManyWaiters()
    {
        object many = Known("Many", new object());
        var owned = new ManualResetEventSlim();
        Start("ManyOwner", () =>
        {
            lock (many)
            lock (many)
            lock (many)
            lock (many)
            {
                owned.Set();
                Sleep();
            }
        });
        owned.Wait();
        for (int i = 0; i < Many; i++)
        {
            AwaitBlocked(Start($"ManyWaiter{i}", () =>
            {
                lock (many)
                    Sleep();
            }));
            Say($"wait ManyWaiter{i} enter Many");
        }
        Say("held Many ManyOwner 3");
        Say($"waiters Many {Many}");
        Say("idle ManyOwner");
    }

#if NET9_0_OR_GREATER
    static void NewLock()
    {
        Lock gate = Known("Lock", new Lock()), alone = Known("LockAlone", new Lock());
        var owned = new ManualResetEventSlim();
        Start("LockOwner", () =>
        {
            lock (gate)
            lock (gate)
            {
                owned.Set();
                lock (alone)
                    Sleep();
            }
        });
        owned.Wait();
        for (int i = 0; i < 3; i++)
        {
            AwaitBlocked(Start($"LockWaiter{i}", () =>
            {
                if (gate.TryEnter(TimeSpan.FromDays(1)))
                    Sleep();
            }));
            Say($"wait LockWaiter{i} enter Lock");
        }
        Say("held Lock LockOwner 1");
        Say("waiters Lock 3");
        Say("held LockAlone LockOwner 0");
        Say("waiters LockAlone 0");
        Say("idle LockOwner");
    }
#endif

    static void MonitorWait()
    {
        object condition = Known("Condition", new object());
        AwaitBlocked(Start("ConditionWaiter", () =>
        {
            lock (condition)
                Monitor.Wait(condition);
        }));
        Say("wait ConditionWaiter pulse Condition");
    }

    static void Wait(string name, string kind, string target, Action body)
    {
        AwaitBlocked(Start(name, body));
        Say($"wait {name} {kind} {target}");
    }

    static void Primitives()
    {
        var slim = Known("EventSlim", new ManualResetEventSlim());
        var semaphore = Known("SemaphoreSlim", new SemaphoreSlim(0));
        var count = new CountdownEvent(1);
        var reset = Known("AutoReset", new AutoResetEvent(false));
        var sleeper = Known("Sleeper", Start("SleeperThreadOfTheProgram", Sleep));
        Wait("EventSlimWaiter", "event", "EventSlim", () => slim.Wait());
        Wait("SemaphoreWaiter", "semaphore", "SemaphoreSlim", () => semaphore.Wait());
        Wait("CountdownWaiter", "event", "-", () => count.Wait());
        Wait("HandleWaiter", "handle", "AutoReset", () => reset.WaitOne());
        var signalled = new ManualResetEvent(false);
        var awaited = new AutoResetEvent(false);
#if NET11_0_OR_GREATER
        Known("Awaited", awaited);
        Wait("SignalAndWaiter", "handle", "?Awaited", () => WaitHandle.SignalAndWait(signalled, awaited));
#else
        Wait("SignalAndWaiter", "handle", "?", () => WaitHandle.SignalAndWait(signalled, awaited));
#endif
        var barrier = new Barrier(2);
        AwaitBlocked(Start("BarrierWaiter", barrier.SignalAndWait)); // in pieces, each with a timeout; it is awake between
        Wait("TimedWaiter", "event", "EventSlim", () => slim.Wait(TimeSpan.FromDays(1)));
        Say("endless BarrierWaiter");
        Say("endless EventSlimWaiter");
        Say("timed TimedWaiter");
        Wait("JoinWaiter", "join", "Sleeper", () => sleeper.Join());
        Say("idle SleeperThreadOfTheProgram");
        Say("idle Main");
    }

    /// Two threads read, one of which may upgrade; who waits for that one is known, and who waits for the other is not.
    static void Readers()
    {
        var gate = Known("Readers", new ReaderWriterLockSlim());
        AwaitBlocked(Start("Reader", () =>
        {
            gate.EnterReadLock();
            Sleep();
        }));
        Wait("Upgrader", "enter", "Readers", () =>
        {
            gate.EnterUpgradeableReadLock();
            gate.EnterWriteLock();
        });
        Wait("SecondUpgrader", "enter", "Readers", gate.EnterUpgradeableReadLock);
        Wait("Writer", "enter", "Readers", gate.EnterWriteLock);
        Wait("TimedWriter", "enter", "Readers", () => gate.TryEnterWriteLock(TimeSpan.FromDays(1)));
        Wait("LateReader", "enter", "Readers", gate.EnterReadLock);
        Say("held Readers Upgrader 0");
        Say("waiters Readers 5");
        Say("readers Readers 2");
        foreach (string name in new[] { "SecondUpgrader", "Writer", "TimedWriter" })
            Say($"blocker {name} Upgrader");
        Say("blocker Upgrader -");
        Say("blocker LateReader -");
        Say("ends TimedWriter");
        Say("idle Reader");
    }

    static void Tasks()
    {
        var source = new TaskCompletionSource<int>();
        Task<int> promise = Known("Promise", source.Task);
        Task chain = Known("Chain", Outer(promise));
        Task run = Known("RunTask", new Task(Sleep, TaskCreationOptions.LongRunning));
        run.Start();
        Wait("PromiseWaiter", "task", "Promise", () => promise.GetAwaiter().GetResult());
        Wait("ChainWaiter", "task", "Chain", () => chain.Wait());
        Wait("RunWaiter", "task", "RunTask", () => run.Wait());
        Task[] all = { chain, promise };
        Wait("AllWaiter", "tasks", "-", () => Task.WaitAll(all));
    }

    static async Task Outer(Task<int> promise)
    {
        await Task.Yield();
        await promise;
        GC.KeepAlive(never);
    }

    const string DelayPromise = "System.Threading.Tasks.Task+DelayPromise",
        AnyOfTwo = "System.Threading.Tasks.Task+TwoTaskWhenAnyPromise`1[System.Threading.Tasks.Task]",
        AnyOfMany = "System.Threading.Tasks.TaskFactory+CompleteOnInvokePromise`1[System.Threading.Tasks.Task]",
        Timer = "System.Threading.PeriodicTimer+State", Here = "Locks.Waits.";

    /// A thread that waits for an async method, and what that awaits, from one to the next.
    static void Chain(string name, Task task, params string[] awaited)
    {
        Known(name + "Task", task);
        Wait(name, "task", name + "Task", () => task.Wait());
        Say($"chain {name} {string.Join(' ', awaited)}");
    }

    static void Chains()
    {
        Chain("OfMethods", OfMethods(), Here + "OfMethods()", Here + "Leaf()", DelayPromise);
        Chain("OfValueTasks", OfValueTasks(), Here + "OfValueTasks()", Here + "Value()", Here + "Leaf()", DelayPromise);
        Chain("OfIterators", OfIterators(), Here + "OfIterators()", Here + "OuterIterator()", Here + "Iterator()", Here + "Leaf()", DelayPromise);
        Chain("InBody", InBody(), Here + "InBody()", Here + "Process(int)", Here + "Leaf()", DelayPromise);
        Chain("OfSecond", OfSecond(), Here + "OfSecond()", Here + "Iterator()", Here + "Leaf()", DelayPromise);
        Chain("OfPooled", OfPooled(), Here + "OfPooled()", Here + "Pooled()", Here + "Leaf()", DelayPromise);
        Chain("OfSource", OfSource(), Here + "OfSource()", Timer);
        Chain("OfTwo", OfTwo(), Here + "OfTwo()", AnyOfTwo);
        var source = new TaskCompletionSource();
        SynchronizationContext.SetSynchronizationContext(new Deaf());
        Task posted = OfPosted(source.Task);
        SynchronizationContext.SetSynchronizationContext(null);
        source.SetResult();
        Chain("OfPosted", posted, Here + "OfPosted(System.Threading.Tasks.Task)");
        Say("pending OfPosted");
        Task[] several = new Task[3];
        var started = new ManualResetEventSlim();
        several[0] = new Task(() => { started.Wait(); Sleep(); }, TaskCreationOptions.LongRunning);
        several[1] = several[2] = new TaskCompletionSource().Task;
        Task any = OfMany(several); // one of them runs, but another may end the wait
        several[0].Start();
        started.Set();
        Chain("OfMany", any, Here + "OfMany(System.Threading.Tasks.Task[])", AnyOfMany);
        Task self = null!;
        self = new Task(() => Task.WhenAny(self, several[1], several[2]).Wait());
        Wait("AnyOfItself", "task", "-", () => self.RunSynchronously()); // no deadlock: the others may end it
        Task timed = null!;
        timed = new Task(() => timed.WaitAsync(TimeSpan.FromDays(1)).Wait());
        Wait("TimedItself", "task", "-", () => timed.RunSynchronously()); // no deadlock: the timeout ends it
        TimedCycle();
    }

    /// Two threads of which each has what the other waits for, but one gives up in time.
    static void TimedCycle()
    {
        object first = Known("TimedFirst", new object()), second = Known("TimedSecond", new object());
        var both = new Barrier(2);
        var one = Start("TimedOne", () =>
        {
            lock (first)
            {
                both.SignalAndWait();
                if (Monitor.TryEnter(second, TimeSpan.FromDays(1)))
                    Sleep();
            }
        });
        var two = Start("TimedTwo", () =>
        {
            lock (second)
            {
                both.SignalAndWait();
                lock (first)
                    Sleep();
            }
        });
        AwaitBlocked(one);
        AwaitBlocked(two);
        Say("held TimedFirst TimedOne 0");
        Say("held TimedSecond TimedTwo 0");
        Say("waiters TimedFirst 1");
        Say("waiters TimedSecond 1");
        Say("wait TimedOne enter TimedSecond");
        Say("wait TimedTwo enter TimedFirst");
        Say("timed TimedOne");
        Say("endless TimedTwo");
    }

    static async Task Leaf() => await Task.Delay(Timeout.Infinite);

    /// What is posted to it is never run, like to that of a thread that waits for it.
    sealed class Deaf : SynchronizationContext
    {
        public override void Post(SendOrPostCallback callback, object? state) { }
    }

    static async Task OfPosted(Task first)
    {
        await first;
        await Leaf();
    }

    static async Task OfMethods()
    {
        await using var nothing = new Nothing();
        await Leaf().ConfigureAwait(false);
    }

    static async ValueTask<int> Value()
    {
        await Leaf();
        return 1;
    }

    static async Task OfValueTasks() => await Value();

    static async IAsyncEnumerable<int> Iterator()
    {
        await Leaf();
        yield return 1;
    }

    static async IAsyncEnumerable<int> OuterIterator()
    {
        await foreach (int i in Iterator())
            yield return i;
    }

    static async Task OfIterators()
    {
        await foreach (int i in OuterIterator())
            GC.KeepAlive(i);
    }

    static async IAsyncEnumerable<int> Numbers()
    {
        for (int i = 0;; i++)
        {
            await Task.Delay(20);
            yield return i;
        }
    }

    static async Task Process(int number)
    {
        if (number == 2)
            await Leaf();
    }

    /// The iterator has given its value, and still knows who awaited it.
    static async Task InBody()
    {
        await foreach (int i in Numbers())
            await Process(i);
    }

    static async Task OfSecond()
    {
        await using var first = Numbers().GetAsyncEnumerator();
        await using var second = Iterator().GetAsyncEnumerator();
        while (await first.MoveNextAsync() && await second.MoveNextAsync())
            GC.KeepAlive(first.Current);
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    static async ValueTask Pooled() => await Leaf();

    static async Task OfPooled() => await Pooled();

    static async Task OfSource() => await new PeriodicTimer(TimeSpan.FromDays(1)).WaitForNextTickAsync();

    static async Task OfTwo() => await Task.WhenAny(Leaf(), Leaf());

    static async Task OfMany(Task[] tasks) => await Task.WhenAny(tasks);

    class Nothing : IAsyncDisposable
    {
        public ValueTask DisposeAsync() => default;
    }
}
