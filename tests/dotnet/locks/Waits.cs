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
        Tasks();
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
        var sleeper = Known("Sleeper", Start("SleeperThread", Sleep));
        Wait("EventSlimWaiter", "event", "EventSlim", () => slim.Wait());
        Wait("SemaphoreWaiter", "semaphore", "SemaphoreSlim", () => semaphore.Wait());
        Wait("CountdownWaiter", "event", "-", () => count.Wait());
        Wait("HandleWaiter", "handle", "AutoReset", () => reset.WaitOne());
        Wait("JoinWaiter", "join", "Sleeper", () => sleeper.Join());
        Say("idle SleeperThread");
        Say("idle Main");
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
}
