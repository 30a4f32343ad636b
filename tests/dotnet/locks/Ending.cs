using static Locks.Program;

namespace Locks;

/// Cycles of waits that end by themselves: no deadlocks.
static class Ending
{
    static readonly TimeSpan hour = TimeSpan.FromHours(1);
    static readonly CancellationTokenSource source = new();

    public static void All()
    {
        Cancelled("TokenOne", "task", (gate, task) => task.Wait(source.Token));
        Cancelled("TokenAll", "tasks", (gate, task) => Task.WaitAll(new[] { task }, source.Token));
        Cancelled("TokenNext", "task", (gate, task) => task.ContinueWith(_ => { }, source.Token).Wait(), ends: false);
        TimedJoin();
#if NET9_0_OR_GREATER
        TimedLock();
#endif
    }

    public static void Pair(string name, string kind, string target)
    {
        Say($"held {name}Gate {name}Waiter 0");
        Say($"waiters {name}Gate 1");
        Say($"wait {name}Waiter {kind} {target}");
        Say($"wait {name}Runner enter {name}Gate");
    }

    static void Cancelled(string name, string kind, Action<object, Task> wait, bool ends = true)
    {
        object gate = Known($"{name}Gate", new object());
        AwaitBlocked(Start($"{name}Waiter", () =>
        {
            lock (gate)
                wait(gate, Task.Run(() => Stuck.Enter($"{name}Runner", gate)));
        }));
        Thread.Sleep(300);
        Pair(name, kind, "-");
        if (ends)
            Say($"ends {name}Waiter");
    }

    /// Before .NET 10, nothing says that the wait of a thread is this one if the framework's call is inlined.
    static void TimedJoin()
    {
        object gate = Known("HourGate", new object());
        var second = new Thread(() => Stuck.Enter("HourRunner", gate)) { IsBackground = true };
        AwaitBlocked(Start("HourWaiter", () =>
        {
            lock (gate)
            {
                second.Start();
                second.Join(hour);
            }
        }));
        AwaitBlocked(second);
        Say("held HourGate HourWaiter 0");
        Say("waiters HourGate 1");
        Say("wait HourRunner enter HourGate");
#if NET10_0_OR_GREATER
        Known("HourThread", second);
        Say("wait HourWaiter join HourThread");
        Say("ends HourWaiter");
#endif
    }

#if NET9_0_OR_GREATER
    static void TimedLock()
    {
        object monitor = Known("HourMonitor", new object());
        Lock gate = Known("HourLock", new Lock());
        var both = new Barrier(2);
        var one = Start("HourOne", () =>
        {
            lock (monitor)
            {
                both.SignalAndWait();
                gate.TryEnter(hour); // after this call, nothing refers to the lock in this method
            }
        });
        var two = Start("HourTwo", () =>
        {
            lock (gate)
            {
                both.SignalAndWait();
                lock (monitor)
                    Environment.FailFast("no cycle");
            }
        });
        AwaitBlocked(one);
        AwaitBlocked(two);
        Say("held HourMonitor HourOne 0");
        Say("held HourLock HourTwo 0");
        Say("waiters HourMonitor 1");
        Say("waiters HourLock 1");
        Say("wait HourOne enter HourLock");
        Say("wait HourTwo enter HourMonitor");
        Say("ends HourOne");
    }
#endif
}
