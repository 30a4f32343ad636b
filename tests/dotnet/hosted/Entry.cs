using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Hosted;

/// <summary>What the native host calls. Every runtime of the process has these methods.</summary>
public static unsafe class Entry
{
    /// <summary>Calls the host back, below another method, so that each runtime has two frames of its own.</summary>
    [UnmanagedCallersOnly]
    public static int CallBack(int depth, delegate* unmanaged<int, int> back) => Pass(depth, back);

    /// <summary>Throws an exception that nothing handles.</summary>
    [UnmanagedCallersOnly]
    public static int Throw(int depth, delegate* unmanaged<int, int> back) => Fail("of runtime " + Environment.Version);

    /// <summary>FailFast, called by a method that handles an exception.</summary>
    [UnmanagedCallersOnly]
    public static int FailFast(int depth, delegate* unmanaged<int, int> back)
    {
        try
        {
            return Fail("handled");
        }
        catch (InvalidOperationException)
        {
            Environment.FailFast("given up by runtime " + Environment.Version);
            return 0;
        }
    }

    /// <summary>Calls the host while an exception is handled.</summary>
    [UnmanagedCallersOnly]
    public static int CallBackInCatch(int depth, delegate* unmanaged<int, int> back)
    {
        try
        {
            return Fail("of the outer runtime " + Environment.Version);
        }
        catch (InvalidOperationException)
        {
            return back(depth) + 1;
        }
    }

    /// <summary>Starts two threads that block each other for good.</summary>
    [UnmanagedCallersOnly]
    public static int Deadlock(int depth, delegate* unmanaged<int, int> back)
    {
        object first = new(), second = new();
        using Barrier both = new(2);
        new Thread(() => Enter(first, second, both)) { Name = "one" }.Start();
        new Thread(() => Enter(second, first, both)) { Name = "two" }.Start();
        Thread.Sleep(1000);
        return back(depth) + 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Pass(int depth, delegate* unmanaged<int, int> back) => back(depth) + 1;

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Fail(string message) => throw new InvalidOperationException(message);

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Enter(object own, object other, Barrier both)
    {
        lock (own)
        {
            both.SignalAndWait();
            lock (other)
                Console.WriteLine("not reached");
        }
    }
}
