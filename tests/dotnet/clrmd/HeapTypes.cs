using Microsoft.Diagnostics.Runtime;

namespace Clrmd;

/// <summary>How many objects of each type a heap has, and their bytes.</summary>
internal static class HeapTypes
{
    private sealed class Sum(string name)
    {
        public readonly string Name = name;
        public ulong Count, Bytes;
    }

    public static Dictionary<string, object> Describe(ClrRuntime runtime)
    {
        Dictionary<ulong, Sum> sums = [];
        Dictionary<string, ulong[]> generations = [];
        ulong invalid = 0;
        foreach (ClrSegment segment in runtime.Heap.Segments)
            foreach (ClrObject value in segment.EnumerateObjects())
            {
                if (value.Type is not { } type)
                {
                    invalid++;
                    continue;
                }
                if (!sums.TryGetValue(type.MethodTable, out Sum? sum))
                    sums[type.MethodTable] = sum = new Sum(type.IsFree ? "Free" : type.Name ?? "");
                sum.Count++;
                sum.Bytes += value.Size;
                string generation = NameOf(segment.GetGeneration(value.Address));
                if (!generations.TryGetValue(generation, out ulong[]? numbers))
                    generations[generation] = numbers = [0, 0];
                numbers[0]++;
                numbers[1] += value.Size;
            }
        ClrOutOfMemoryInfo? refused = runtime.Heap.SubHeaps.Select(heap => heap.OomInfo).Where(info => info is not null).MaxBy(info => info!.GCIndex);
        return new()
        {
            ["types"] = sums.Select(item => new object[] { $"0x{item.Key:x}", item.Value.Count, item.Value.Bytes, item.Value.Name }).ToList(),
            ["generations"] = generations,
            ["invalid"] = invalid,
            ["segments"] = runtime.Heap.Segments.Select(segment => new object[] { $"0x{segment.Start:x}", $"0x{segment.End:x}", segment.SubHeap.Index, segment.Kind.ToString() }).ToList(),
            ["server"] = runtime.Heap.IsServer,
            ["regions"] = runtime.Heap.SubHeaps[0].HasRegions,
            ["heaps"] = runtime.Heap.SubHeaps.Length,
            ["oom"] = refused is null ? [] : new object[] { (int)refused.Reason, refused.AllocSize },
        };
    }

    private static string NameOf(Generation generation) => generation switch
    {
        Generation.Generation0 => "0",
        Generation.Generation1 => "1",
        Generation.Generation2 => "2",
        Generation.Large => "loh",
        Generation.Pinned => "poh",
        Generation.Frozen => "frozen",
        _ => "?",
    };
}
