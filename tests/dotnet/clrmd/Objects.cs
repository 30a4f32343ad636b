using Microsoft.Diagnostics.Runtime;

namespace Clrmd;

/// <summary>A sample of a heap: a few objects of each type.</summary>
internal static class Objects
{
    private const int MostOfType = 3, MostStrings = 300, Most = 4000, MostElements = 8, MostUnits = 1000;

    public static List<Dictionary<string, object?>> Describe(ClrRuntime runtime)
    {
        Dictionary<ulong, int> counts = [];
        List<Dictionary<string, object?>> described = [];
        foreach (ClrObject value in runtime.Heap.EnumerateObjects())
        {
            if (value.Type is not { } type || value.IsFree)
                continue;
            counts[type.MethodTable] = counts.GetValueOrDefault(type.MethodTable) + 1;
            if (counts[type.MethodTable] <= (type.IsString ? MostStrings : MostOfType))
                described.Add(Describe(value, type));
            if (described.Count == Most)
                break;
        }
        return described;
    }

    private static Dictionary<string, object?> Describe(ClrObject value, ClrType type) => new()
    {
        ["address"] = $"{value.Address:x}",
        ["table"] = $"{type.MethodTable:x}",
        ["size"] = value.Size,
        ["string"] = type.IsString ? Cut(value.AsString(int.MaxValue) ?? "") : null,
        ["array"] = type.IsArray ? DescribeArray(value, type) : null,
        ["fields"] = type.IsArray || type.IsString ? [] : DescribeFields(value, type),
    };

    private static string Cut(string text) => text.Length > MostUnits ? text[..MostUnits] : text;

    private static Dictionary<string, object> DescribeArray(ClrObject value, ClrType type)
    {
        ClrArray array = value.AsArray();
        return new()
        {
            ["rank"] = array.Rank,
            ["length"] = array.Length,
            ["element_size"] = type.ComponentSize,
            ["elements"] = Enumerable.Range(0, Math.Min(array.Length, MostElements)).Select(i => $"{type.GetArrayElementAddress(value.Address, i):x}").ToList(),
        };
    }

    /// <summary>Of fields with one name, that of the type or of its nearest base type.</summary>
    private static List<object> DescribeFields(ClrObject value, ClrType type)
    {
        Dictionary<string, object> fields = [];
        for (ClrType? declaring = type; declaring is not null; declaring = declaring.BaseType)
            foreach (ClrInstanceField field in declaring.Fields.Where(field => field.ContainingType.MethodTable == declaring.MethodTable))
                if (field.Name is { } name)
                    fields.TryAdd(name, new object[] { name, $"{field.GetAddress(value.Address):x}", field.IsObjectReference, field.IsPrimitive ? field.Size : 0 });
        return [.. fields.Values];
    }
}
