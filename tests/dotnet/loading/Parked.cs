using System.Runtime.CompilerServices;
using System.Runtime.Loader;

namespace Loading;

/// <summary>Three threads that wait in code of three assemblies of one identity: FOLDER/first, second and shared.</summary>
public static class Parked
{
    private static readonly ManualResetEventSlim s_forever = new();

    public static void Start(string folder)
    {
        string[] contents = ["first", "second", "shared"];
        using CountdownEvent waiting = new(contents.Length);
        foreach (string content in contents)
            new Thread(() => Wait(Path.Combine(folder, content, "Copied.dll"), waiting)) { IsBackground = true }.Start();
        waiting.Wait();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Wait(string path, CountdownEvent waiting)
    {
        Type entry = new AssemblyLoadContext(path).LoadFromAssemblyPath(path).GetType("Copied.Entry")!;
        var run = entry.GetMethod("Run")!.CreateDelegate<Func<Func<long>, long>>();
        long sum = 0;
        if (path.Contains("first"))
            sum = InFirst(run, waiting);
        else if (path.Contains("second"))
            sum = InSecond(run, waiting);
        else
            sum = InShared(run, waiting);
        GC.KeepAlive(sum);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long InFirst(Func<Func<long>, long> run, CountdownEvent waiting) => run(() => Park(waiting)) + 1;

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long InSecond(Func<Func<long>, long> run, CountdownEvent waiting) => run(() => Park(waiting)) + 1;

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long InShared(Func<Func<long>, long> run, CountdownEvent waiting) => run(() => Park(waiting)) + 1;

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Park(CountdownEvent waiting)
    {
        waiting.Signal();
        s_forever.Wait();
        return 0;
    }
}
