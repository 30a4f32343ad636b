using System.Diagnostics;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Text.Json;

namespace Stacks;

/// <summary>Threads that write down their stacks and then stand still in the very frame that wrote it.</summary>
internal static class Parking
{
    private static readonly object Lock = new();
    private static readonly CountdownEvent Arrived = new(1);
    private static readonly ManualResetEvent Never = new(false);
    private static StreamWriter output = StreamWriter.Null;

    public static void Start(string path)
    {
        ThreadPool.SetMinThreads(64, 64);
        (string Name, Action Action)[] places = Places.All().ToArray();
        Open(path, places.Length);
        foreach ((string name, Action action) in places)
            new Thread(() => action(), 16 << 20) { IsBackground = true, Name = name }.Start();
        Close();
        Thread.Sleep(500); // from the last signal to the wait
    }

    /// <summary>The file for the words of so many threads.</summary>
    public static void Open(string path, int threads)
    {
        output = new StreamWriter(path);
        Arrived.AddCount(threads);
    }

    /// <summary>Waits for the words of all threads.</summary>
    public static void Close()
    {
        Arrived.Signal();
        if (!Arrived.Wait(TimeSpan.FromMinutes(5)))
            throw new TimeoutException($"{Arrived.CurrentCount} threads did not arrive");
        output.Dispose();
    }

    public static void Crowd(int count)
    {
        Arrived.AddCount(count);
        for (int i = 0; i < count; i++)
            new Thread(n => Places.Recurse((int)n! % 20, Wait), 256 << 10) { IsBackground = true }.Start(i);
        Arrived.Signal();
        Arrived.Wait();
        Thread.Sleep(500);

        static void Wait()
        {
            Arrived.Signal();
            Never.WaitOne();
        }
    }

    /// <summary>Stands still. All on one line, so that the place that is recorded is the place that is seen.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static bool Park(string place)
    {
        Record(place, new StackTrace(true)); return Never.WaitOne();
    }

    /// <summary>Likewise, but waits in a way of the caller's.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static bool Park(string place, Action way)
    {
        Record(place, new StackTrace(true)); way(); return false;
    }

    /// <summary>Writes down a stack of this thread.</summary>
    public static void Record(string place, StackTrace trace)
    {
        string line = JsonSerializer.Serialize(new
        {
            place,
            tid = Native.ThreadId(),
            frames = trace.GetFrames().Select(Describe),
        });
        lock (Lock)
            output.WriteLine(line);
        Arrived.Signal();
    }

    private static object Describe(StackFrame frame)
    {
        MethodBase? method = frame.GetMethod();
        return new
        {
            type = method?.DeclaringType?.FullName,
            method = method?.Name,
            module = Try(() => method?.Module.FullyQualifiedName),
            token = Try<int?>(() => method?.MetadataToken),
            native_offset = frame.GetNativeOffset(),
            il_offset = frame.GetILOffset(),
            file = frame.GetFileName(),
            line = frame.GetFileLineNumber(),
            column = frame.GetFileColumnNumber(),
            hidden = method?.IsDefined(typeof(StackTraceHiddenAttribute), false) == true ||
                     method?.DeclaringType?.IsDefined(typeof(StackTraceHiddenAttribute), false) == true,
        };
    }

    /// <summary>Dynamic methods have no token.</summary>
    private static T? Try<T>(Func<T> get)
    {
        try
        {
            return get();
        }
        catch (InvalidOperationException)
        {
            return default;
        }
    }
}
