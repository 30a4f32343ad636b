using System.Reflection;

namespace Clrmd;

/// <summary>What dotnet-gcdump's own classes read in a .gcdump.</summary>
internal static class Gcdump
{
    /// <summary>The counts leave out the nodes that are no objects. "tool": dotnet-gcdump.dll.</summary>
    public static Dictionary<string, object> Describe(string path, string tool)
    {
        Type type = Assembly.LoadFrom(tool).GetType("GCHeapDump", true)!;
        dynamic dump = Activator.CreateInstance(type, path)!;
        dynamic graph = dump.MemoryGraph, node = graph.AllocNodeStorage(), name = graph.AllocTypeNodeStorage();
        Dictionary<int, (string Name, long Count, long Bytes)> sums = [];
        Dictionary<int, long> generations = [];
        int count = (int)graph.NodeIndexLimit;
        long references = 0, bytes = 0;
        dynamic at = graph.RootIndex;
        bool[] reached = new bool[count];
        Stack<object> left = new();
        reached[(int)at] = true;
        left.Push(at);
        while (left.TryPop(out object? next))
        {
            at = next;
            node = graph.GetNode(at, node);
            ulong address = graph.GetAddress(at);
            if (address != 0)
            {
                int index = (int)node.TypeIndex, size = node.Size, generation = dump.DotNetHeapInfo.GenerationFor(address);
                string text = sums.TryGetValue(index, out (string Name, long Count, long Bytes) sum) ? sum.Name : graph.GetType(node.TypeIndex, name).Name;
                sums[index] = (text, sum.Count + 1, sum.Bytes + size);
                generations[generation] = generations.GetValueOrDefault(generation) + 1;
                bytes += size;
            }
            for (dynamic child = node.GetFirstChildIndex(); (int)child >= 0; child = node.GetNextChildIndex())
            {
                references += address != 0 ? 1 : 0;
                if (reached[(int)child])
                    continue;
                reached[(int)child] = true;
                left.Push(child);
            }
        }
        return new()
        {
            ["types"] = sums.Values.Select(sum => new object[] { sum.Name, sum.Count, sum.Bytes }).ToList(),
            ["generations"] = generations.ToDictionary(item => item.Key.ToString(), item => item.Value),
            ["references"] = references,
            ["bytes"] = bytes,
            ["total"] = (long)graph.TotalSize,
            ["unreached"] = reached.Count(value => !value),
            ["process"] = (int)dump.ProcessID,
        };
    }
}
