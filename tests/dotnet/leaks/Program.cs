using System.Runtime;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Runtime.Loader;

namespace Leaks;

internal sealed class OfStatic;

internal sealed class OfGeneric;

internal sealed class OfStruct;

internal sealed class OfThread;

internal sealed class OfLocal;

internal sealed class OfSpan
{
    public long Number;
}

internal sealed class OfStrong;

internal sealed class OfWeak;

[StructLayout(LayoutKind.Sequential)]
internal struct OfPinned
{
    public long Number;
}

internal sealed class OfDependent;

internal sealed class OfTable;

internal sealed class OfTimer
{
    public void Tick() => GC.KeepAlive(this);
}

internal sealed class OfEvent
{
    public void Changed(object? sender, EventArgs arguments) => GC.KeepAlive(this);
}

internal sealed class OfAsync;

internal sealed class OfList;

internal sealed class OfDictionary;

internal sealed class OfQueue
{
    private readonly object held = new OfQueueField();

    ~OfQueue() => GC.KeepAlive(held);
}

internal sealed class Blocker
{
    ~Blocker() => Program.Block();
}

internal sealed class OfQueueField;

internal sealed class OfGrowth
{
    public readonly long[] Numbers = new long[4];
}

/// <summary>Of an assembly that is loaded once more, into a context that can be unloaded.</summary>
public sealed class Plugin
{
    private static readonly byte[] Buffer = new byte[100_000];

    public int Length => Buffer.Length;
}

public sealed class OfContext;

internal sealed class Node(Node? next, object? value)
{
    public readonly Node? Next = next;
    public readonly object? Value = value;
}

internal struct Pair
{
    public long Number;
    public object? First, Second;
}

internal static class Cache
{
    public static readonly List<object> Orders = [];
    public static Pair Both;
    public static Node? Head;
    public static readonly ConditionalWeakTable<object, object> Table = [];
    public static readonly object Key = new();
    public static readonly object Other = new();
    public static readonly Dictionary<string, Pair> Named = [];
    public static readonly TaskCompletionSource<int> Never = new();
    public static Task? Pending;
    public static object? Plugged;
    public static Type? PluggedType;
    public static readonly Dictionary<string, List<object>> Growing = [];

    [ThreadStatic]
    public static object? Own;
}

internal static class Holder<T>
{
    public static T? Held;
}

internal static class Bus
{
    public static event EventHandler? Changed;

    public static bool IsUsed => Changed is not null;
}

/// <summary>
/// Keeps an object of a type of its own in each way, and says in which: "KEPT KIND TAB TYPE TAB TEXT TAB HOP": the kind of root, the type,
/// what the text of the root has, and a reference that the path has, or "-". "FREE TYPE": nothing keeps it. Then "READY PID". Ends when its
/// input does.
/// </summary>
internal static class Program
{
    private const int Long = 50_000;
    private static readonly ManualResetEventSlim Blocked = new(), Waiting = new(), End = new();
    private static readonly List<Timer> Timers = [];
    private static DependentHandle dependent;

    public static void Block()
    {
        Blocked.Set();
        End.Wait();
    }

    private static void Say(string kind, Type type, string text, string hop) => Console.WriteLine($"KEPT {kind}\t{type}\t{text}\t{hop}");

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void PlantStatics()
    {
        Cache.Orders.Add("one");
        Cache.Orders.Add(new OfStatic());
        Say("static", typeof(OfStatic), "Leaks.Cache.Orders", "[1]");
        Holder<OfGeneric>.Held = new OfGeneric();
        Say("static", typeof(OfGeneric), "Leaks.Holder`1[Leaks.OfGeneric].Held", "-");
        Cache.Both.Second = new OfStruct();
        Say("static", typeof(OfStruct), "Leaks.Cache.Both", "Second");
        Cache.Head = new Node(null, new OfList());
        for (int i = 0; i < Long; i++)
            Cache.Head = new Node(Cache.Head, null);
        Say("static", typeof(OfList), "Leaks.Cache.Head", "Next");
        Cache.Named["name"] = new Pair { Number = 1, First = "first", Second = new OfDictionary() };
        Say("static", typeof(OfDictionary), "Leaks.Cache.Named", "[0].value.Second");
        Bus.Changed += new OfEvent().Changed;
        GC.KeepAlive(Bus.IsUsed);
        Say("static", typeof(OfEvent), "Leaks.Bus.Changed", "_target");
        Cache.Table.Add(Cache.Key, new OfTable());
        Say("static", typeof(OfTable), "Leaks.Cache.Key", "dependent handle");
        Cache.Pending = Wait(new OfAsync());
        Say("static", typeof(OfAsync), "Leaks.Cache.", "*held*");
    }

    private static async Task Wait(OfAsync held)
    {
        await Cache.Never.Task;
        GC.KeepAlive(held);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void PlantHandles()
    {
        GCHandle.Alloc(new OfStrong());
        Say("handle", typeof(OfStrong), "strong handle", "-");
        GCHandle.Alloc(new OfPinned[10], GCHandleType.Pinned);
        Say("handle", typeof(OfPinned[]), "pinned handle", "-");
        GCHandle.Alloc(Cache.Other, GCHandleType.Weak);
        dependent = new DependentHandle(Cache.Other, new OfDependent());
        Say("static", typeof(OfDependent), "Leaks.Cache.Other", "dependent handle");
        object timer = new OfTimer();
        Timers.Add(new Timer(((OfTimer)timer).Tick, 1_000_000));
        Say("static", typeof(OfTimer), "", "_target");
    }

    /// <summary>Contexts that were unloaded, and stay: one by an object of a type, one by the type itself. And one that goes.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void PlantContexts()
    {
        Cache.Plugged = Activator.CreateInstance(Load("Held by an object").GetType("Leaks.Plugin")!);
        Cache.Plugged!.GetType().GetProperty("Length")!.GetValue(Cache.Plugged);
        Console.WriteLine("CONTEXT Held by an object\tLeaks.Cache.Plugged");
        Cache.PluggedType = Load("Held by a type").GetType("Leaks.OfContext");
        Console.WriteLine("CONTEXT Held by a type\tLeaks.Cache.PluggedType");
        Activator.CreateInstance(Load("Held by nothing").GetType("Leaks.OfContext")!);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static System.Reflection.Assembly Load(string name)
    {
        AssemblyLoadContext context = new(name, isCollectible: true);
        System.Reflection.Assembly assembly = context.LoadFromAssemblyPath(typeof(Program).Assembly.Location);
        context.Unload();
        return assembly;
    }

    private sealed class Timer(Action tick, int milliseconds)
    {
        private readonly System.Threading.Timer inner = new(_ => tick(), null, milliseconds, milliseconds);

        public override string ToString() => $"{inner}";
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void PlantUnkept()
    {
        GCHandle.Alloc(new OfWeak(), GCHandleType.Weak);
        Cache.Other.GetHashCode();
        Console.WriteLine($"FREE {typeof(OfWeak)}");
        Console.Out.Flush();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void PlantBlocker() => GC.KeepAlive(new Blocker());

    /// <summary>While the finalizer of another object blocks, this one waits in the queue.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void PlantFinalizable()
    {
        GC.KeepAlive(new OfQueue());
        Say("finalizer", typeof(OfQueueField), "finalizer queue", "held");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Hold()
    {
        object local = new OfLocal();
        OfSpan spanned = new();
        Span<long> span = new(ref spanned.Number);
        Cache.Own = new OfThread();
        Waiting.Set();
        End.Wait();
        span[0]++;
        GC.KeepAlive(local);
        GC.KeepAlive(Cache.Own);
    }

    private static void Main()
    {
        PlantStatics();
        PlantHandles();
        PlantContexts();
        for (int i = 0; i < 10; i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
        PlantBlocker();
        GC.Collect();
        Blocked.Wait();
        PlantFinalizable();
        Thread thread = new(Hold) { IsBackground = true };
        thread.Start();
        Waiting.Wait();
        Say("local", typeof(OfLocal), "Leaks.Program.Hold", "-");
        Say("local", typeof(OfSpan), "Leaks.Program.Hold", "-");
        Say("thread-static", typeof(OfThread), "Leaks.Cache.Own", "-");
        GC.Collect();
        GC.Collect();
        PlantUnkept();
        Console.WriteLine($"READY {Environment.ProcessId}");
        Console.Out.Flush();
        while (Console.ReadLine() is not null)
        {
            List<object> added = Cache.Growing["orders"] = new(20_000); // no smaller arrays are left behind
            for (int i = 0; i < 20_000; i++)
                added.Add(new OfGrowth());
            Console.WriteLine("GROWN");
            Console.Out.Flush();
        }
        GC.KeepAlive(Timers);
        GC.KeepAlive(dependent.IsAllocated);
    }
}
