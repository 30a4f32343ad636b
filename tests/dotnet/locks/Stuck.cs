using static Locks.Program;
#if NET9_0_OR_GREATER
using Gate = System.Threading.Lock;
#else
using Gate = System.Object;
#endif

namespace Locks;

/// Deadlocks of several kinds, each with threads of its own.
static class Stuck
{
    public static void All()
    {
        TwoMonitors("A", "B", inflate: false);
        TwoMonitors("C", "D", inflate: true);
        MonitorAndLock();
        ReaderAndWriter();
        ThreeLocks();
        OverAsync();
        OverTask();
        Joined();
        OverAll();
        OverChild();
        OverQuery();
        OverStream();
#if NET10_0_OR_GREATER
        OverInitializer();
#endif
#if NET11_0_OR_GREATER
        MonitorAndMutex();
#endif
    }

#if NET10_0_OR_GREATER
    static class Initialized
    {
        public static readonly int Value = Make();

        static int Make() => Known("InitializerTask", Task.Run(Needy.Get)).Result;
    }

    static class Needy
    {
        public static int Get()
        {
            Here("InitializerRunner");
            return Initialized.Value;
        }
    }

    /// A static constructor waits for a task, which needs what it initializes.
    static void OverInitializer()
    {
        AwaitBlocked(Start("InitializerWaiter", () => GC.KeepAlive(Initialized.Value)));
        Thread.Sleep(500);
        Say("wait InitializerWaiter task InitializerTask");
        Say("wait InitializerRunner initializer -");
        Say("blocker InitializerRunner InitializerWaiter");
        Say("deadlock InitializerWaiter InitializerRunner");
    }
#endif

    /// A task that has run waits for its child.
    static void OverChild()
    {
        object gate = Known("ChildGate", new object());
        AwaitBlocked(Start("ChildWaiter", () =>
        {
            lock (gate)
            {
                Known("ChildTask", Task.Factory.StartNew(() =>
                {
                    Task.Factory.StartNew(() => Enter("ChildRunner", gate), TaskCreationOptions.AttachedToParent);
                })).Wait();
            }
        }));
        Cycle("Child", "task", "ChildTask");
    }

    /// A query waits for its parts, each of which is a task; the waiting thread runs one itself.
    static void OverQuery()
    {
        object gate = Known("QueryGate", new object());
        AwaitBlocked(Start("QueryWaiter", () =>
        {
            int waiter = Environment.CurrentManagedThreadId;
            lock (gate)
            {
                Enumerable.Range(0, 100).AsParallel().WithDegreeOfParallelism(2).Select(i =>
                {
                    if (Environment.CurrentManagedThreadId != waiter)
                        Enter("QueryRunner", gate);
                    return i;
                }).ToArray();
            }
        }));
        Cycle("Query", "task", "-");
    }

    static async IAsyncEnumerable<int> Numbers(object gate)
    {
        yield return 1;
        await Task.Delay(10);
        Enter("StreamRunner", gate);
        yield return 2;
    }

    static async Task ReadAll(object gate)
    {
        await foreach (int i in Numbers(gate))
            GC.KeepAlive(gate);
    }

    /// A thread runs an async iterator.
    static void OverStream()
    {
        object gate = Known("StreamGate", new object());
        AwaitBlocked(Start("StreamWaiter", () =>
        {
            lock (gate)
                Known("StreamTask", ReadAll(gate)).Wait();
        }));
        Cycle("Stream", "task", "StreamTask");
    }

    public static void Enter(string name, object gate)
    {
        Here(name);
        lock (gate)
            GC.KeepAlive(gate);
    }

    /// The waiter holds the gate, which the runner waits for.
    static void Cycle(string name, string kind, string target)
    {
        Thread.Sleep(500);
        Ending.Pair(name, kind, target);
        Say($"deadlock {name}Waiter {name}Runner");
    }

    static async IAsyncEnumerable<int> After(Task task)
    {
        await task;
        yield return 1;
    }

    static async Task<int> First(Task task)
    {
        await foreach (int i in After(task))
            return i;
        return 0;
    }

    /// A task waits for several, one of which awaits an iterator that awaits the task itself.
    static void OverAll()
    {
        Task other = new TaskCompletionSource().Task;
        Task<int> number = new TaskCompletionSource<int>().Task;
        Task list = null!, promise = null!;
        list = new Task(() => Task.WaitAll(First(list), other));
        promise = new Task(() => Task.WhenAll(First(promise), number).Wait());
        AwaitBlocked(Start("ListWaiter", () => list.RunSynchronously()));
        AwaitBlocked(Start("PromiseWaiter", () => promise.RunSynchronously()));
        Say("wait ListWaiter tasks -");
        Say("wait PromiseWaiter task -");
        Say("deadlock ListWaiter");
        Say("deadlock PromiseWaiter");
    }

    static void TwoMonitors(string first, string second, bool inflate)
    {
        object a = Known("Monitor" + first, new object()), b = Known("Monitor" + second, new object());
        if (inflate) // one that has a hash code and was entered has a sync block
        {
            a.GetHashCode();
            b.GetHashCode();
        }
        Cross($"Thread{first}", a, $"Monitor{first}", $"Thread{second}", b, $"Monitor{second}");
    }

    static void Cross(string firstName, object first, string firstLock, string secondName, object second, string secondLock)
    {
        var both = new Barrier(2);
        var one = Start(firstName, () =>
        {
            lock (first)
            {
                both.SignalAndWait();
                lock (second)
                    Environment.FailFast("no deadlock");
            }
        });
        var two = Start(secondName, () =>
        {
            lock (second)
            {
                both.SignalAndWait();
                lock (first)
                    Environment.FailFast("no deadlock");
            }
        });
        AwaitBlocked(one);
        AwaitBlocked(two);
        Say($"held {firstLock} {firstName} 0");
        Say($"held {secondLock} {secondName} 0");
        Say($"waiters {firstLock} 1");
        Say($"waiters {secondLock} 1");
        Say($"wait {firstName} enter {secondLock}");
        Say($"wait {secondName} enter {firstLock}");
        Say($"deadlock {firstName} {secondName}");
    }

    static void ReaderAndWriter()
    {
        object monitor = Known("ReaderMonitor", new object());
        var gate = Known("ReaderGate", new ReaderWriterLockSlim());
        var both = new Barrier(2);
        var writer = Start("GateWriter", () =>
        {
            gate.EnterWriteLock();
            both.SignalAndWait();
            lock (monitor)
                Environment.FailFast("no deadlock");
        });
        var reader = Start("GateReader", () =>
        {
            lock (monitor)
            {
                both.SignalAndWait();
                gate.EnterReadLock();
                Environment.FailFast("no deadlock");
            }
        });
        AwaitBlocked(writer);
        AwaitBlocked(reader);
        Say("held ReaderGate GateWriter 0");
        Say("held ReaderMonitor GateReader 0");
        Say("waiters ReaderGate 1");
        Say("waiters ReaderMonitor 1");
        Say("readers ReaderGate 0");
        Say("wait GateWriter enter ReaderMonitor");
        Say("wait GateReader enter ReaderGate");
        Say("deadlock GateReader GateWriter");
    }

    static void MonitorAndLock()
    {
        object monitor = Known("MixedMonitor", new object());
        Gate gate = Known("MixedLock", new Gate());
        var both = new Barrier(2);
        var one = Start("MixedOne", () =>
        {
            lock (monitor)
            {
                both.SignalAndWait();
                lock (gate)
                    Environment.FailFast("no deadlock");
            }
        });
        var two = Start("MixedTwo", () =>
        {
            lock (gate)
            {
                both.SignalAndWait();
                lock (monitor)
                    Environment.FailFast("no deadlock");
            }
        });
        AwaitBlocked(one);
        AwaitBlocked(two);
        Say("held MixedMonitor MixedOne 0");
        Say("held MixedLock MixedTwo 0");
        Say("waiters MixedMonitor 1");
        Say("waiters MixedLock 1");
        Say("wait MixedOne enter MixedLock");
        Say("wait MixedTwo enter MixedMonitor");
        Say("deadlock MixedOne MixedTwo");
    }

#if NET11_0_OR_GREATER
    /// Before .NET 11, nothing says who owns a Mutex.
    static void MonitorAndMutex()
    {
        object monitor = Known("MutexMonitor", new object());
        var mutex = Known("Mutex", new Mutex());
        var both = new Barrier(2);
        var one = Start("MutexOne", () =>
        {
            lock (monitor)
            {
                Mutex own = mutex; // which this frame refers to as it waits
                both.SignalAndWait();
                own.WaitOne();
                GC.KeepAlive(own);
            }
        });
        var two = Start("MutexTwo", () =>
        {
            mutex.WaitOne();
            both.SignalAndWait();
            lock (monitor)
                Environment.FailFast("no deadlock");
        });
        AwaitBlocked(one);
        AwaitBlocked(two);
        Say("held MutexMonitor MutexOne 0");
        Say("waiters MutexMonitor 1");
        Say("wait MutexOne handle Mutex");
        Say("wait MutexTwo enter MutexMonitor");
        Say("blocker MutexOne MutexTwo");
        Say("deadlock MutexOne MutexTwo");
    }
#endif

    /// A cycle of three, and a thread that waits for one of them but is not in the cycle.
    static void ThreeLocks()
    {
        var locks = new object[3];
        var all = new Barrier(3);
        var started = new Thread[3];
        for (int i = 0; i < 3; i++)
            locks[i] = Known($"Ring{i}", new object());
        for (int i = 0; i < 3; i++)
        {
            int mine = i, next = (i + 1) % 3;
            started[i] = Start($"RingThread{i}", () =>
            {
                lock (locks[mine])
                {
                    all.SignalAndWait();
                    lock (locks[next])
                        Environment.FailFast("no deadlock");
                }
            });
        }
        foreach (var thread in started)
            AwaitBlocked(thread);
        AwaitBlocked(Start("RingOutside", () =>
        {
            lock (locks[1])
                Environment.FailFast("no deadlock");
        }));
        for (int i = 0; i < 3; i++)
        {
            Say($"held Ring{i} RingThread{i} 0");
            Say($"waiters Ring{i} {(i == 1 ? 2 : 1)}");
            Say($"wait RingThread{i} enter Ring{(i + 1) % 3}");
        }
        Say("wait RingOutside enter Ring1");
        Say("deadlock RingThread0 RingThread1 RingThread2");
    }

    /// A thread holds a lock and waits for an async method, which needs the lock on a thread of the pool.
    static void OverAsync()
    {
        object gate = Known("AsyncGate", new object());
        var waiting = Start("AsyncWaiter", () =>
        {
            lock (gate)
            {
                Task task = Known("AsyncTask", OuterAsync(gate));
                task.Wait();
            }
        });
        AwaitBlocked(waiting);
        Thread.Sleep(300);
        Say("held AsyncGate AsyncWaiter 0");
        Say("waiters AsyncGate 1");
        Say("wait AsyncWaiter task AsyncTask");
        Say("wait AsyncRunner enter AsyncGate");
        Say("deadlock AsyncWaiter AsyncRunner");
    }

    static async Task OuterAsync(object gate)
    {
        await InnerAsync(gate);
        GC.KeepAlive(gate);
    }

    static async Task<int> InnerAsync(object gate)
    {
        await Task.Delay(50);
        Here("AsyncRunner");
        lock (gate)
            return 1;
    }

    /// The same with Task.Run, whose task is a promise that a task of an async lambda completes, and Result.
    static void OverTask()
    {
        object gate = Known("TaskGate", new object());
        var waiting = Start("TaskWaiter", () =>
        {
            lock (gate)
            {
                Task<int> task = Known("TaskTask", Task.Run(async () =>
                {
                    await Task.Yield();
                    Here("TaskRunner");
                    lock (gate)
                        return 1;
                }));
                _ = task.Result;
            }
        });
        AwaitBlocked(waiting);
        Thread.Sleep(300);
        Say("held TaskGate TaskWaiter 0");
        Say("waiters TaskGate 1");
        Say("wait TaskWaiter task TaskTask");
        Say("wait TaskRunner enter TaskGate");
        Say("deadlock TaskWaiter TaskRunner");
    }

    static void Joined()
    {
        object gate = Known("JoinGate", new object());
        Thread? second = null;
        var held = new ManualResetEventSlim();
        second = new Thread(() =>
        {
            Here("JoinSecond");
            held.Wait();
            lock (gate)
                Environment.FailFast("no deadlock");
        }) { IsBackground = true, Name = "JoinSecond" };
        var first = Start("JoinFirst", () =>
        {
            lock (gate)
            {
                second.Start();
                held.Set();
                second.Join();
            }
        });
        AwaitBlocked(first);
        AwaitBlocked(second);
        Known("JoinThread", second);
        Say("held JoinGate JoinFirst 0");
        Say("waiters JoinGate 1");
        Say("wait JoinFirst join JoinThread");
        Say("wait JoinSecond enter JoinGate");
        Say("deadlock JoinFirst JoinSecond");
    }
}
