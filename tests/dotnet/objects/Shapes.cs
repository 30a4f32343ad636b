using System.Collections.Concurrent;
using System.Numerics;

namespace Objects;

public enum Colour { Red, Green = 5, Blue = -7 }

[Flags]
public enum Rights : byte { None = 0, Read = 1, Write = 2, Own = 128 }

public enum Wide : ulong { Most = ulong.MaxValue }

public struct Point
{
    public int X;
    public long Y;
    public string? Label;
}

public struct Outer<T>
{
    public byte Tag;
    public T Inner;
    public Point Place;
}

public struct Pair<TFirst, TSecond>
{
    public TFirst First;
    public TSecond Second;
}

public class Primitives
{
    public bool Yes = true, No = false;
    public sbyte SByte = -128;
    public byte Byte = 255;
    public short Short = -32768;
    public ushort UShort = 65535;
    public int Int = int.MinValue;
    public uint UInt = uint.MaxValue;
    public long Long = long.MinValue;
    public ulong ULong = ulong.MaxValue;
    public float Float = 0.1f;
    public double Double = -1.0 / 3;
    public double NotANumber = double.NaN;
    public double Endless = double.NegativeInfinity;
    public char Letter = '\u00e9';
    public nint Native = -5;
    public nuint UNative = 6;
    public unsafe void* Pointer = (void*)0x1234;
}

public class Base
{
    private readonly int _own = 11;
    protected string Name = "base";
    public int Sum => _own + Name.Length;
}

public class Derived : Base
{
    private readonly int _own = 22;
    public object? Nothing = null;
    public object Something = new Version(1, 2);
    public string Odd = "tab\there \u202e \u4e2d\ud83d\ude00 \\ \"";
    public int Twice => 2 * _own;
}

public class WellKnown
{
    public Colour Colour = Colour.Green, Negative = Colour.Blue, Unnamed = (Colour)77;
    public Rights Rights = Rights.Read | Rights.Own, NoRights = Rights.None, OddRights = (Rights)64;
    public Wide Wide = Wide.Most;
    public DayOfWeek Day = DayOfWeek.Friday;
    public Guid Guid = new("00112233-4455-6677-8899-aabbccddeeff");
    public DateTime Utc = new(2024, 2, 29, 23, 59, 58, DateTimeKind.Utc);
    public DateTime Plain = new(1, 1, 1);
    public DateTime Last = DateTime.MaxValue;
    public DateTimeOffset Offset = new(2026, 11, 28, 1, 2, 3, new TimeSpan(-3, -30, 0));
    public TimeSpan Span = new(-3, -4, -5, -6, -7), Short = TimeSpan.FromMilliseconds(1);
    public DateOnly Date = new(2000, 12, 31);
    public TimeOnly Time = new(13, 14, 15);
    public decimal Decimal = -79228162514264337593543950335m, Small = 0.0010m, Zero = 0m;
    public Int128 Huge = Int128.MinValue;
    public UInt128 UHuge = UInt128.MaxValue;
    public int? HasInt = 3, NoInt = null;
    public Guid? HasGuid = new("ffeeddcc-bbaa-9988-7766-554433221100"), NoGuid = null;
    public Colour? HasColour = Colour.Red;
    public Point? HasPoint = new Point { X = 1, Y = 2, Label = "in" };
    public long? HasLong = long.MaxValue;
}

public class Nested
{
    public Outer<int> OfInt = new() { Tag = 1, Inner = 2, Place = new Point { X = 3, Y = 4, Label = "five" } };
    public Outer<string> OfString = new() { Tag = 6, Inner = "seven", Place = new Point { X = 8 } };
    public Outer<Pair<byte, Guid>> Deep = new() { Inner = new() { First = 9, Second = new("01020304-0506-0708-090a-0b0c0d0e0f10") } };
    public KeyValuePair<string, Colour> KeyValue = new("key", Colour.Green);
    public (int Count, string Name, double) Tuple = (1, "two", 3.5);
    public Pair<List<Point>, Dictionary<int, string>> OfLists = new();
    public CancellationToken Token = new(true);
}

public class Generic<T>
{
    public T? Value;
    public T[]? Values;
    public Pair<T, int> WithInt;
    public KeyValuePair<T, T> Twice;
}

public class GenericDerived<T> : Generic<Pair<T, long>>
{
    public T? Own;
}

public sealed class Numbers : List<int>
{
    public string Title = "numbers";
}

public static class Targets
{
    public static int Twice(int value) => 2 * value;
}

public class Caller
{
    private readonly int _by = 3;
    public int Times(int value) => _by * value;
}

/// <summary>All objects that are compared, by their names.</summary>
public static class Made
{
    public static Dictionary<string, object> All()
    {
        var queue = new Queue<int>();
        for (int i = 0; i < 6; i++)
            queue.Enqueue(i);
        queue.Dequeue();
        queue.Dequeue();
        for (int i = 6; i < 10; i++)
            queue.Enqueue(i);
        var dictionary = new Dictionary<string, Point> { ["a"] = new() { X = 1, Label = "one" }, ["gone"] = new(), ["b"] = new() { Y = 2 } };
        dictionary.Remove("gone");
        var set = new HashSet<Colour> { Colour.Red, Colour.Green, Colour.Blue };
        set.Remove(Colour.Green);
        var deep = new GenericDerived<Colour> { Own = Colour.Blue, Value = new() { First = Colour.Green, Second = 12 } };
        return new()
        {
            ["primitives"] = new Primitives(),
            ["derived"] = new Derived(),
            ["known"] = new WellKnown(),
            ["nested"] = new Nested(),
            ["generic int"] = new Generic<int> { Value = 5, Values = [1, 2], WithInt = new() { First = 6, Second = 7 }, Twice = new(8, 9) },
            ["generic string"] = new Generic<string> { Value = "v", Values = ["x", "y"], WithInt = new() { First = "f", Second = 7 }, Twice = new("k", "l") },
            ["generic point"] = new Generic<Point> { Value = new() { X = 5, Label = "p" }, WithInt = new() { First = new() { Y = 4 }, Second = 3 } },
            ["generic derived"] = deep,
            ["string"] = "plain text",
            ["empty"] = new string('x', 0),
            ["long"] = new string('y', 5000),
            ["boxed int"] = 42,
            ["boxed enum"] = Colour.Blue,
            ["boxed guid"] = Guid.Parse("12345678-9abc-def0-1234-56789abcdef0"),
            ["boxed point"] = new Point { X = -1, Y = -2, Label = "box" },
            ["boxed decimal"] = 12.50m,
            ["ints"] = Enumerable.Range(100, 30).ToArray(),
            ["strings"] = new string?[] { "s", null, "" },
            ["points"] = new Point[] { new() { X = 1 }, new() { X = 2, Label = "second" } },
            ["colours"] = new[] { Colour.Green, (Colour)9 },
            ["moments"] = new DateTime?[] { new DateTime(2020, 1, 2), null },
            ["chars"] = new[] { 'a', '\n' },
            ["matrix"] = new int[,] { { 1, 2, 3 }, { 4, 5, 6 } },
            ["bounds"] = Array.CreateInstance(typeof(int), [2], [-3]),
            ["jagged"] = new int[][] { [1], [2, 3] },
            ["list"] = new List<string> { "l", "m" },
            ["list of points"] = new List<Point> { new() { X = 7 } },
            ["derived list"] = new Numbers { 3, 4 },
            ["queue"] = queue,
            ["stack"] = new Stack<double>([1.5, 2.5]),
            ["set"] = set,
            ["dictionary"] = dictionary,
            ["keys of structs"] = new Dictionary<Guid, long?> { [Guid.Empty] = 1, [new("00112233-4455-6677-8899-aabbccddeeff")] = null },
            ["empty dictionary"] = new Dictionary<int, int>(),
            ["concurrent"] = new ConcurrentDictionary<int, string>(Enumerable.Range(0, 5).ToDictionary(i => i, i => $"c{i}")),
            ["complex"] = new Complex(1, -2),
            ["static delegate"] = (Func<int, int>)Targets.Twice,
            ["closed delegate"] = (Func<int, int>)new Caller().Times,
        };
    }
}
