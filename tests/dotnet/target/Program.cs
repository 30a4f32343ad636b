using System.Runtime;

namespace Demo;

/// <summary>
/// Runs every kind of managed code once, then parks so that the process can be
/// dumped. "READY pid" on stdout is the promise that nothing is compiled any more.
/// </summary>
internal static class Program
{
    private static int collections;

    private static int Main()
    {
        Shapes.Abandon();
        Emitted.Run();
        ForbidCollections();
        Shapes.Run();
        Generics.Run();
        Tiering.Run();
        Framework.Run();
        Parked.Start();
        WriteReleased(Emitted.Released);

        // Whatever runs after READY runs once before it as well: its code must
        // be in the files by then.
        var input = new Thread(WaitForEndOfInput) { IsBackground = true };
        input.Start();
        input.Join(1);
        Console.WriteLine($"PARKED {Parked.Count}");
        WaitUntilNothingCompiles();
        if (GC.CollectionCount(0) != collections)
            throw new InvalidOperationException("a garbage collection may have freed code that is not on the list");
        Console.WriteLine($"READY {Environment.ProcessId}");
        input.Join();
        return 0;
    }

    /// <summary>
    /// The framework generates dynamic methods and holds some of them weakly. No
    /// collection after this point: then the list of released names is complete.
    /// </summary>
    private static void ForbidCollections()
    {
        const long MoreThanWeAllocate = 16 << 20;
        if (!GC.TryStartNoGCRegion(MoreThanWeAllocate))
            throw new InvalidOperationException("no memory for a region without collections");
        collections = GC.CollectionCount(0);
    }

    /// <summary>Names whose code is gone, so that a test can tell dead records from live ones.</summary>
    private static void WriteReleased(IEnumerable<string> names)
    {
        if (Environment.GetEnvironmentVariable("CDACQ_TARGET_RELEASED") is { Length: > 0 } path)
            File.WriteAllLines(path, names);
    }

    /// <summary>Tiering works in the background; its queue is empty when the count rests for a second.</summary>
    private static void WaitUntilNothingCompiles()
    {
        long last = -1;
        for (int rest = 0; rest < 5; )
        {
            Thread.Sleep(200);
            long now = JitInfo.GetCompiledMethodCount();
            rest = now == last ? rest + 1 : 0;
            last = now;
        }
    }

    private static void WaitForEndOfInput()
    {
        using Stream input = Console.OpenStandardInput();
        while (input.ReadByte() >= 0)
        {
        }
    }
}
