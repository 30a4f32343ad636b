using Microsoft.Diagnostics.Runtime;

namespace Clrmd;

/// <summary>Handles by kind, objects with finalizers, and of a sample of objects whether roots keep them.</summary>
internal static class Roots
{
    private const int Kept = 60, Unkept = 60;

    public static Dictionary<string, object> Describe(ClrRuntime runtime)
    {
        Dictionary<string, int> handles = [];
        foreach (ClrHandle handle in runtime.EnumerateHandles())
            if (handle.Object.Address != 0)
                handles[NameOf(handle.HandleKind)] = handles.GetValueOrDefault(NameOf(handle.HandleKind)) + 1;
        HashSet<ulong> reached = Reach(runtime);
        return new()
        {
            ["handles"] = handles,
            ["finalizable"] = new int[] { runtime.Heap.EnumerateFinalizableObjects().Count(), runtime.Heap.EnumerateFinalizerRoots().Count() },
            ["reachable"] = Sample(runtime, reached, true, Kept).Concat(Sample(runtime, reached, false, Unkept)).ToDictionary(address => $"0x{address:x}", reached.Contains),
        };
    }

    private static HashSet<ulong> Reach(ClrRuntime runtime)
    {
        HashSet<ulong> reached = [];
        Queue<ClrObject> queue = [];
        foreach (ClrRoot root in runtime.Heap.EnumerateRoots())
            if (root.Object.IsValid && reached.Add(root.Object.Address))
                queue.Enqueue(root.Object);
        while (queue.TryDequeue(out ClrObject value))
            foreach (ClrObject other in value.EnumerateReferences(carefully: false, considerDependantHandles: true))
                if (other.IsValid && reached.Add(other.Address))
                    queue.Enqueue(other);
        return reached;
    }

    private static IEnumerable<ulong> Sample(ClrRuntime runtime, HashSet<ulong> reached, bool isKept, int count)
    {
        List<ulong> all = [.. runtime.Heap.EnumerateObjects().Where(value => !value.IsFree && reached.Contains(value.Address) == isKept
            && value.Type?.Name != "Leaks.Node").Select(value => value.Address)];
        return all.Where((_, index) => index % Math.Max(1, all.Count / count) == 0);
    }

    private static string NameOf(ClrHandleKind kind) => kind switch
    {
        ClrHandleKind.WeakShort => "weak short",
        ClrHandleKind.WeakLong => "weak long",
        ClrHandleKind.Strong => "strong",
        ClrHandleKind.Pinned => "pinned",
        ClrHandleKind.RefCounted => "refcounted",
        ClrHandleKind.Dependent => "dependent",
        ClrHandleKind.AsyncPinned => "async pinned",
        ClrHandleKind.SizedRef => "sized ref",
        (ClrHandleKind)10 => "weak interior pointer", // of collectible types
        _ => $"{kind}",
    };
}
