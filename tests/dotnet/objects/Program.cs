using System.Collections;
using System.Globalization;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Text.Json;
using Objects;

// Objects that no longer move: they are in the oldest generation, and no collection follows.
var made = Made.All();
foreach (var item in made.Values)
    if (item is Delegate called)
    {
        called.DynamicInvoke(1);
        _ = called.Method; // which the delegate keeps
    }
for (int i = 0; i < 3; i++)
    GC.Collect();
GC.TryStartNoGCRegion(32 << 20);
using (var file = new StreamWriter(args[0]))
    foreach (var (name, item) in made)
        file.WriteLine(Truth.Describe(name, item));
Console.WriteLine($"READY {Environment.ProcessId}");
Console.Out.Flush();
Console.In.Read();
GC.KeepAlive(made);

/// <summary>What an object is, by reflection.</summary>
static class Truth
{
    public static unsafe ulong AddressOf(object item) => (ulong)*(nint*)Unsafe.AsPointer(ref item);

    public static string Describe(string name, object item)
    {
        var truth = new Dictionary<string, object?>
        {
            ["name"] = name,
            ["address"] = $"0x{AddressOf(item):x}",
            ["type"] = item.GetType().ToString(),
            ["fields"] = item is string or Array ? new List<object>() : Fields(item.GetType(), item),
        };
        if (item is string text)
            truth["value"] = text;
        else if (item is ValueType)
            truth["boxed"] = Value(item.GetType(), item);
        else if (item is Array array)
            truth["items"] = Items(array, array.GetType().GetElementType()!);
        else if (item is IDictionary dictionary)
            truth["items"] = Pairs(dictionary);
        else if (item is IEnumerable items)
            truth["items"] = Items(items, ItemType(item.GetType()));
        if (item is Delegate called)
            truth["method"] = $"{called.Method.DeclaringType}.{called.Method.Name}";
        return JsonSerializer.Serialize(truth);
    }

    private static Type ItemType(Type? type)
    {
        while (type is { IsGenericType: false })
            type = type.BaseType;
        return type!.GetGenericArguments()[0];
    }

    private static List<object> Items(IEnumerable items, Type type)
    {
        var found = new List<object>();
        foreach (var item in items)
            found.Add(Value(type, item));
        return found;
    }

    private static List<object> Pairs(IDictionary items)
    {
        var types = items.GetType().GetGenericArguments();
        var found = new List<object>();
        foreach (DictionaryEntry item in items)
        {
            var value = Value(types[1], item.Value);
            value["key"] = Value(types[0], item.Key);
            found.Add(value);
        }
        return found;
    }

    private static List<object> Fields(Type type, object item)
    {
        var found = new List<object>();
        for (Type? declares = type; declares is not null; declares = declares.BaseType)
            foreach (var field in declares.GetFields(BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.DeclaredOnly))
            {
                // The type of a pointer's value is no longer known once it is boxed.
                var value = field.FieldType.IsPointer ? Pointer(field.GetValue(item)!) : Value(field.FieldType, field.GetValue(item));
                value["name"] = field.Name;
                value["declared_by"] = declares.ToString();
                value["type"] = field.FieldType.ToString();
                found.Add(value);
            }
        return found;
    }

    private static unsafe Dictionary<string, object?> Pointer(object boxed) =>
        new() { ["value"] = $"0x{(ulong)System.Reflection.Pointer.Unbox(boxed):x}" };

    private static Dictionary<string, object?> Value(Type type, object? value)
    {
        if (value is null)
            return new() { ["value"] = null };
        type = Nullable.GetUnderlyingType(type) ?? type;
        if (value is string text)
            return new() { ["value"] = text };
        if (!type.IsValueType)
            return new() { ["value"] = $"0x{AddressOf(value):x}", ["object_type"] = value.GetType().ToString() };
        return Text(value) is { } simple ? new() { ["value"] = simple } : new() { ["fields"] = Fields(type, value) };
    }

    /// <summary>The value of a type that has a text; null for a struct.</summary>
    private static object? Text(object value) => value switch
    {
        bool or sbyte or byte or short or ushort or int or uint or long or ulong => value,
        nint number => (long)number,
        nuint number => (ulong)number,
        float number when float.IsFinite(number) => number,
        double number when double.IsFinite(number) => number,
        float or double => ((IFormattable)value).ToString(null, CultureInfo.InvariantCulture),
        char letter => letter.ToString(),
        Enum member when Enum.IsDefined(member.GetType(), member) || member.ToString().Contains(',') => member.ToString(),
        Enum member => Convert.ChangeType(member, Enum.GetUnderlyingType(member.GetType()), CultureInfo.InvariantCulture),
        Guid or TimeSpan or decimal or Int128 or UInt128 => ((IFormattable)value).ToString(null, CultureInfo.InvariantCulture),
        DateTime or DateTimeOffset or DateOnly or TimeOnly => ((IFormattable)value).ToString("o", CultureInfo.InvariantCulture),
        _ => null,
    };
}
