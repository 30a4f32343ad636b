// Locks.dll WAY: makes threads that hold locks and wait, writes what they do to standard output, and parks.
//
//   thread NAME TID MANAGED_ID
//   object NAME ADDRESS            an address is valid from READY on: no garbage is collected any more
//   held OBJECT NAME RECURSION     by that thread; entered 1 + RECURSION times
//   waiters OBJECT COUNT           threads that wait to enter it
//   readers OBJECT COUNT           threads that hold it to read
//   wait NAME KIND OBJECT          what that thread waits for; "-": nothing that has an address; "?": one of several,
//                                of which "?OBJECT" may be known
//   blocker NAME NAME              the thread that has to go on before it; "-": not known
//   pending NAME                   what the last task of its chain awaited has completed, but that has not gone on
//   timed NAME                     its wait has a timeout
//   endless NAME                   it has none
//   ends NAME                      its wait has a timeout, shown or not, or a token that can be cancelled
//   pool WORKERS BUSY WAITING MIN MAX QUEUED STARVES
//   deadlock NAME...               the threads of a cycle, in the order of the waits
//   READY PID
using System.Runtime;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Locks;

static class Program
{
    static readonly Dictionary<string, object> objects = new();
    static readonly Dictionary<string, (int Tid, int ManagedId)> threads = new();
    static readonly List<string> facts = new();
    static int unparked;

    [DllImport("libc")]
    static extern int gettid();

    public static T Known<T>(string name, T value) where T : class
    {
        lock (objects)
            objects[name] = value;
        return value;
    }

    public static void Say(string fact)
    {
        lock (facts)
            facts.Add(fact);
    }

    /// Registers the calling thread.
    public static void Here(string name)
    {
        lock (threads)
            threads[name] = (gettid(), Environment.CurrentManagedThreadId);
    }

    public static Thread Start(string name, Action body)
    {
        Interlocked.Increment(ref unparked);
        var thread = new Thread(() =>
        {
            Here(name);
            Interlocked.Decrement(ref unparked);
            body();
        }) { IsBackground = true, Name = name };
        thread.Start();
        return thread;
    }

    /// Until the thread has slept for long: whatever it waits for, it does not spin any more.
    public static void AwaitBlocked(Thread thread)
    {
        for (int calm = 0; calm < 20;)
        {
            Thread.Sleep(10);
            calm = (thread.ThreadState & ThreadState.WaitSleepJoin) != 0 ? calm + 1 : 0;
        }
    }

    static void SettleHeap()
    {
        GC.Collect();
        GC.WaitForPendingFinalizers();
        GC.TryStartNoGCRegion(1 << 22);
    }

    static unsafe nint AddressOf(object o) => *(nint*)Unsafe.AsPointer(ref o);

    static void Main(string[] arguments)
    {
        Here("Main");
        switch (arguments[0])
        {
            case "deadlocks":
                Stuck.All();
                Ending.All();
                break;
            case "waits":
                Waits.All();
                break;
            case "starved":
                Starved.All();
                break;
            case "healthy":
                Healthy.All();
                break;
            case "busy":
                Busy.All();
                break;
            case "suspended":
                Suspended.All();
                break;
            case "returned":
                Returned.All();
                break;
            case "many":
                Many.All(int.Parse(arguments[1]));
                break;
        }
        Thread.Sleep(1000);
        if (arguments[0] != "suspended")
            SettleHeap();
        foreach (var (name, (tid, id)) in threads)
            Console.WriteLine($"thread {name} {tid} {id}");
        foreach (var (name, value) in objects)
            Console.WriteLine($"object {name} {AddressOf(value):x}");
        foreach (string fact in facts)
            Console.WriteLine(fact);
        Console.WriteLine($"READY {Environment.ProcessId}");
        Console.Out.Flush();
        if (arguments[0] != "returned")
            Parked();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Parked()
    {
        while (true)
            Thread.Sleep(Timeout.Infinite);
    }
}
