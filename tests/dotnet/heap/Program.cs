using System.Runtime;
using System.Runtime.InteropServices;

namespace Planted;

internal sealed class Small;

internal sealed class Node(Node? next, long value)
{
    public readonly Node? Next = next;
    public readonly long Value = value;
}

internal sealed class Pair<TFirst, TSecond>(TFirst first, TSecond second)
{
    public readonly TFirst First = first;
    public readonly TSecond Second = second;

    internal sealed class Inner;
}

[StructLayout(LayoutKind.Sequential)]
internal struct Point
{
    public int X, Y, Z;
}

[StructLayout(LayoutKind.Sequential, Size = 128)]
internal struct Large
{
    public long Number;
}

internal enum Colour : byte
{
    Red,
}

/// <summary>
/// Keeps objects in every generation and says how many: "PLANTED COUNT TYPE" for each type, then "READY PID". Ends when
/// its input does. "REFUSED BYTES": of an array that there was no memory for. "GENERATION NUMBER BYTES FREE": what
/// the GC says of generations 2 to 4. An argument is how many thousand more objects to keep; "collect": it collects all the time.
/// </summary>
internal static class Program
{
    private const int Many = 5000, Some = 700, Few = 30;
    private static readonly List<object> Kept = [];
    private static readonly SortedDictionary<string, int> Counts = new(StringComparer.Ordinal);

    private static void Plant(int count, Func<int, object> make)
    {
        for (int i = 0; i < count; i++)
        {
            object made = make(i);
            string name = made.GetType().ToString();
            Counts[name] = Counts.GetValueOrDefault(name) + 1;
            Kept.Add(made);
        }
    }

    /// <summary>Objects that die at once: free memory between others.</summary>
    private static void Litter(int count)
    {
        for (int i = 0; i < count; i++)
        {
            Plant(1, n => new Node(null, n));
            GC.KeepAlive(new byte[100 + i % 900]);
        }
    }

    private static void PlantOld()
    {
        Plant(Many, _ => new Small());
        Plant(Many, i => new Node(null, i));
        Plant(Some, i => new Pair<string, int>("text", i));
        Plant(Some, i => new Pair<Point, Pair<string, int>.Inner?>(default, null));
        Plant(Few, i => new Point[i]);
        Plant(Few, i => new Point[2, i]);
        Plant(Few, i => new Point[i][]);
        Plant(Few, i => (object)Colour.Red);
        Plant(Few, i => new Pair<string, int>.Inner());
        Litter(Some);
        Plant(Some, i => $"planted text {i % 7}");
        Plant(Few, i => new string('y', 20_000) + i % 3); /* of equal length */
        Plant(Few, i => new string("planted \t\u001b[31m \U0001f600"));
        Plant(Few, i => new ushort[50_000 + i]); /* large objects */
        Plant(Few, i => new Point?[10_000 + i]);
        Plant(Few, i => GC.AllocateUninitializedArray<sbyte>(100 + i, pinned: true));
    }

    private static void PlantYoung()
    {
        Plant(Some, i => new Pair<int, int>(i, i));
        Plant(Some, i => new Pair<long, byte>(i, 0));
    }

    private static void SayGenerations()
    {
        ReadOnlySpan<GCGenerationInfo> generations = GC.GetGCMemoryInfo(GCKind.FullBlocking).GenerationInfo;
        for (int i = 2; i < generations.Length; i++)
            Console.WriteLine($"GENERATION {i} {generations[i].SizeAfterBytes} {generations[i].FragmentationAfterBytes}");
    }

    private static void Refuse()
    {
        const int Length = 1 << 30;
        try
        {
            GC.KeepAlive(new Large[Length]);
        }
        catch (OutOfMemoryException)
        {
            Console.WriteLine($"REFUSED {128L * Length}");
        }
    }

    private static void Main(string[] arguments)
    {
        Refuse();
        bool collects = arguments is ["collect"];
        int more = arguments.Length > 0 && !collects ? int.Parse(arguments[0]) * 1000 : 0;
        Kept.Capacity = 20_000 + more;
        PlantOld();
        for (int i = 0; i < more; i++)
            Kept.Add(i % 4 == 0 ? new byte[i % 200] : i % 4 == 1 ? new Small() : i % 4 == 2 ? new Node(null, i) : new string('x', i % 90));
        GC.Collect();
        GC.Collect();
        SayGenerations();
        PlantYoung();
        GC.Collect(0);
        Parallel.For(0, 8, _ => GC.KeepAlive(new byte[100]));
        Plant(Few, i => new Pair<short, char>(1, 'a'));
        foreach ((string name, int count) in Counts)
            Console.WriteLine($"PLANTED {count} {name}");
        Console.WriteLine($"READY {Environment.ProcessId}");
        Console.Out.Flush();
        while (collects)
        {
            GCSettings.LargeObjectHeapCompactionMode = GCLargeObjectHeapCompactionMode.CompactOnce;
            GC.KeepAlive(new byte[100]);
            GC.Collect(2, GCCollectionMode.Forced, blocking: true, compacting: true);
        }
        while (Console.ReadLine() is not null)
        {
        }
        GC.KeepAlive(Kept);
    }
}
