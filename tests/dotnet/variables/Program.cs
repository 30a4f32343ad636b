using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using static Truth;

enum Colour : byte
{
    Red = 1,
    Green = 2,
}

[Flags]
enum Options : ulong
{
    None = 0,
    First = 1,
    Last = 1UL << 40,
}

struct Point
{
    public int X, Y;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public int StructThis(int add)
    {
        int sum = Make(X + Y + add);
        Log("StructThis", R("this", ref this), V("add", add), V("sum", sum));
        Stop();
        Use(sum);
        return sum + X;
    }
}

struct Two
{
    public long First, Second;
}

struct Big
{
    public long A;
    public string Name;
    public Point At;
    public double Number;
    public Colour Colour;
}

struct One
{
    public long Value;
}

struct Holder<T>
{
    public T Value;
    public int Count;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public T StructOfGeneric(T other)
    {
        T mine = Make(Value);
        Log("StructOfGeneric", R("this", ref this), V("other", other), V("mine", mine));
        Stop();
        Use(mine);
        return other;
    }
}

class Tagged(int id)
{
    public int Id = id;
}

class Generic<T>
{
    public T? Held;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public void InstanceOfGeneric<U>(T one, U two, List<T> list, KeyValuePair<T, U> pair)
        where U : notnull
    {
        T first = Make(one);
        U[] array = Make(new[] { two });
        Dictionary<U, T>? none = null;
        Log("InstanceOfGeneric", V("this", this), V("one", one), V("two", two), V("list", list), V("pair", pair),
            V("first", first), V("array", array), V("none", none));
        Stop();
        Use(first);
        Use(array);
        Use(none);
        Use(typeof(U));
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public void PlainInGeneric(T one)
    {
        T first = Make(one);
        Log("PlainInGeneric", V("this", this), V("one", one), V("first", first));
        Stop();
        Use(first);
        Use(Held);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void StaticInGeneric(T one, Generic<T> other)
    {
        T[] array = Make(new T[3]);
        Log("StaticInGeneric", V("one", one), V("other", other), V("array", array));
        Stop();
        Use(array);
        Use(typeof(T));
    }
}

class Derived : Generic<string>
{
}

static class Scenarios
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Parameters(bool yes, char letter, sbyte i1, byte u1, short i2, ushort u2, int i4, uint u4, long i8, ulong u8,
                                  float r4, double r8, nint native, decimal money, string text, object boxed, int? some, int? none,
                                  Colour colour, Options options, DateTime time, Guid guid, TimeSpan span, string? nothing)
    {
        Log("Parameters", V("yes", yes), V("letter", letter), V("i1", i1), V("u1", u1), V("i2", i2), V("u2", u2), V("i4", i4),
            V("u4", u4), V("i8", i8), V("u8", u8), V("r4", r4), V("r8", r8), V("native", native), V("money", money), V("text", text),
            V("boxed", boxed), V("some", some), V("none", none), V("colour", colour), V("options", options), V("time", time),
            V("guid", guid), V("span", span), V("nothing", nothing));
        Stop();
        Use(text);
        Use(i8);
        Use(u1);
        Use(r8);
        Use(boxed);
        Use(time);
        Use(options);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Locals(int seed)
    {
        bool yes = Make(seed > 0);
        char letter = Make((char)('a' + seed));
        sbyte i1 = Make((sbyte)-seed);
        ushort u2 = Make((ushort)(60000 + seed));
        int i4 = Make(-100000 * seed);
        long i8 = Make(-1234567890123L * seed);
        ulong u8 = Make(ulong.MaxValue - (ulong)seed);
        float r4 = Make(1.5f * seed);
        double r8 = Make(-0.1 * seed);
        string text = Make("text " + seed);
        Colour colour = Make(Colour.Green);
        DateTime time = Make(new DateTime(2026, 11, seed, 1, 2, 3, DateTimeKind.Utc));
        int? some = Make<int?>(seed);
        int[] array = Make(new[] { seed, 2, 3 });
        string[,] table = Make(new string[2, 2]);
        Log("Locals", V("seed", seed), V("yes", yes), V("letter", letter), V("i1", i1), V("u2", u2), V("i4", i4), V("i8", i8), V("u8", u8),
            V("r4", r4), V("r8", r8), V("text", text), V("colour", colour), V("time", time), V("some", some), V("array", array),
            V("table", table));
        Stop();
        Use(yes);
        Use(letter);
        Use(i1);
        Use(u2);
        Use(i4);
        Use(i8);
        Use(u8);
        Use(r4);
        Use(r8);
        Use(text);
        Use(colour);
        Use(time);
        Use(some);
        Use(array);
        Use(table);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Scopes(int count)
    {
        if (count > 0)
        {
            string same = Make("first");
            Use(same);
        }
        for (int i = 0; i < count; i++)
        {
            int same = Make(i * 10);
            if (i == 2)
            {
                long inner = Make(77L + i);
                Log("Scopes", V("count", count), V("i", i), V("same", same), V("inner", inner));
                Stop();
                Use(inner);
            }
            Use(same);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Structs(Point point, Two two, Big big, One one, Holder<string> holder)
    {
        Point mine = Make(point);
        Two other = Make(new Two { First = two.Second, Second = two.First });
        One single = Make(one);
        (int Left, string Right) tuple = Make((5, "five"));
        Log("Structs", V("point", point), V("two", two), V("big", big), V("one", one), V("holder", holder), V("mine", mine),
            V("other", other), V("single", single), V("tuple", tuple));
        Stop();
        Use(mine);
        Use(other);
        Use(single);
        Use(tuple);
        Use(big);
        Use(point);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void ByRefs(ref int number, ref string text, in Point point, out long result, ref Tagged tagged)
    {
        result = Make(99L);
        int[] array = Make(new[] { 1, 2, 33 });
        ref int element = ref array[2];
        Log("ByRefs", R("number", ref number), R("text", ref text), R("point", ref Unsafe.AsRef(in point)), R("result", ref result),
            R("tagged", ref tagged), V("array", array), R("element", ref element));
        Stop();
        number += element;
        Use(text);
        Use(tagged);
        Use(result);
        Use(array);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Spans(Span<int> span, ReadOnlySpan<char> text)
    {
        Span<int> part = span.Slice(1, 2);
        Log("Spans", F("span", "System.Span`1[System.Int32]", ("_length", span.Length)),
            new Variable("text", "System.ReadOnlySpan`1[System.Char]", text.ToString()),
            F("part", "System.Span`1[System.Int32]", ("_length", part.Length)));
        Stop();
        part[0] = text.Length;
        span[0] = 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void GenericMethod<T, U>(T one, U two, Holder<T> holder)
    {
        U copy = Make(two);
        List<KeyValuePair<T, U>> list = Make(new List<KeyValuePair<T, U>>());
        T[] array = Make(new[] { one });
        Log("GenericMethod", V("one", one), V("two", two), V("holder", holder), V("copy", copy), V("list", list), V("array", array));
        Stop();
        Use(copy);
        Use(list);
        Use(array);
        Use(typeof(U));
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Closures(int captured, string alone)
    {
        string text = Make("captured " + captured);
        Tagged tagged = Make(new Tagged(4));
        Action action = () =>
        {
            int own = Make(captured + 1);
            if (own > 0)
            {
                long deeper = Make(own * 2L);
                Action inner = () =>
                {
                    byte last = Make((byte)deeper);
                    Log("b__1", V("captured", captured), V("text", text), V("deeper", deeper), V("last", last));
                    Stop();
                    Use(last);
                    Use(text);
                    Use(captured);
                };
                Log("b__0", V("captured", captured), V("text", text), V("tagged", tagged), V("own", own), V("deeper", deeper), V("inner", inner));
                inner();
                Use(deeper);
            }
            Use(tagged);
            Use(own);
        };
        Log("Closures", V("captured", captured), V("alone", alone), V("text", text), V("tagged", tagged), V("action", action));
        action();
        Use(alone);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static async Task Async(int number, string text)
    {
        long before = Make(number * 5L);
        Point point = Make(new Point { X = number, Y = 2 });
        await Task.Yield();
        string after = Make(text + "!");
        Log("Async", V("number", number), V("text", text), V("before", before), V("point", point), V("after", after));
        Stop();
        await Task.Yield();
        Use(before);
        Use(after);
        Use(point);
        Use(text);
        Use(number);
    }

    /// <summary>Has no frame while it waits.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static async Task Waiting(int number, string text, Task never)
    {
        long before = Make(number * 6L);
        Two two = Make(new Two { First = number, Second = 2 });
        Log("Waiting", V("number", number), V("text", text), V("before", before), V("two", two));
        Signal();
        await never;
        Use(before);
        Use(two);
        Use(text);
        Use(number);
    }

    public static IEnumerable<int> Iterate(int first, string text)
    {
        int second = Make(first + 1);
        yield return first;
        Log("Iterate", V("first", first), V("text", text), V("second", second));
        Stop();
        yield return second;
        Use(text);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void InCatch(int number)
    {
        string text = Make("before");
        try
        {
            Use(number);
            throw new InvalidOperationException(text);
        }
        catch (InvalidOperationException problem)
        {
            int inside = Make(number + 1);
            Log("InCatch", V("number", number), V("text", text), V("problem", problem), V("inside", inside));
            Stop();
            Use(inside);
            Use(problem);
        }
        Use(text);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void InFinally(long number)
    {
        Tagged tagged = Make(new Tagged((int)number));
        try
        {
            Use(number);
            if (number > 0)
                throw new InvalidOperationException();
        }
        finally
        {
            string inside = Make("inside " + number);
            Log("InFinally", V("number", number), V("tagged", tagged), V("inside", inside));
            Stop();
            Use(inside);
            Use(tagged);
            Use(number);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Recursion(int depth, string text)
    {
        int mine = Make(depth * 100);
        string next = Make(text + depth);
        Log("Recursion", V("depth", depth), V("text", text), V("mine", mine), V("next", next));
        int result = depth == 0 ? Stop(mine) : Recursion(depth - 1, next);
        Use(mine);
        Use(next);
        return result + depth;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long ManyArguments(int a, long b, int c, long d, int e, long f, int g, long h, string i, short j, byte k, string l)
    {
        Log("ManyArguments", V("a", a), V("b", b), V("c", c), V("d", d), V("e", e), V("f", f), V("g", g), V("h", h), V("i", i), V("j", j),
            V("k", k), V("l", l));
        Stop();
        Use(i);
        Use(l);
        return a + b + c + d + e + f + g + h + j + k;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Pressure(long seed)
    {
        long a = Make(seed + 1), b = Make(seed + 2), c = Make(seed + 3), d = Make(seed + 4), e = Make(seed + 5), f = Make(seed + 6),
             g = Make(seed + 7), h = Make(seed + 8), i = Make(seed + 9), j = Make(seed + 10);
        string text = Make("pressure" + seed);
        Log("Pressure", V("seed", seed), V("a", a), V("b", b), V("c", c), V("d", d), V("e", e), V("f", f), V("g", g), V("h", h), V("i", i),
            V("j", j), V("text", text));
        Stop();
        Use(text);
        return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ j;
    }

    /// <summary>The call assigns a variable: what it returns is not there yet.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Assigned(int number, string text)
    {
        long value = Make(number * 3L);
        string name = Make(text + "?");
        Use(value);
        Use(name);
        Log("Assigned", V("number", number), V("text", text), V("value", value), V("name", name));
        value = Stop(value + 1);
        name = Stop("other");
        Use(value);
        Use(name);
    }

    /// <summary>Optimized code enters the loop by on-stack replacement where that is on.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Replaced(int rounds, string text)
    {
        int sum = 0;
        string mine = Make(text + text);
        for (int i = 0; i < rounds; i++)
        {
            sum += Make(i) & 3;
            if (i == rounds - 1)
            {
                Log("Replaced", V("rounds", rounds), V("text", text), V("sum", sum), V("mine", mine), V("i", i));
                Stop();
            }
        }
        Use(mine);
        Use(text);
        return sum;
    }

    /// <summary>Computes for ever: optimized code keeps what the loop uses in registers, the real numbers in xmm ones.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static double Computing(double factor, float part, long rounds)
    {
        double offset = Make(factor + 0.5);
        float half = Make(part / 2);
        long step = Make(rounds + 2);
        double sum = 0;
        Log("Computing", V("factor", factor), V("part", part), V("rounds", rounds), V("offset", offset), V("half", half),
            V("step", step));
        Signal();
        for (long i = 1; i != 0; i += step) // which is even
            sum = sum * factor + offset * part - half;
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static unsafe void Pinned(byte[] bytes, string text)
    {
        fixed (byte* at = bytes)
        {
            int first = Make((int)at[0]);
            Log("Pinned", V("bytes", bytes), V("text", text), V("first", first));
            Stop();
            Use(first + at[1]);
        }
        Use(text);
    }
}

static class Program
{
    static void Main(string[] arguments)
    {
        var work = new List<Action>
        {
            () => Scenarios.Parameters(true, 'Z', -3, 200, -3000, 60000, -70000, 4000000000, -5000000000, ulong.MaxValue, 0.25f, -1e100, -9,
                                       12.50m, "a text", new Tagged(1), 7, null, Colour.Red, Options.First | Options.Last,
                                       new DateTime(2026, 11, 28, 1, 2, 3, DateTimeKind.Utc), new Guid("00112233-4455-6677-8899-aabbccddeeff"),
                                       TimeSpan.FromSeconds(90), null),
            () => Scenarios.Locals(3),
            () => Scenarios.Scopes(5),
            () => Scenarios.Structs(new Point { X = 1, Y = -2 }, new Two { First = 3, Second = -4 },
                                    new Big { A = 5, Name = "big", At = new Point { X = 6, Y = 7 }, Number = 8.5, Colour = Colour.Green },
                                    new One { Value = 9 }, new Holder<string> { Value = "held", Count = 10 }),
            () =>
            {
                int number = 11;
                string text = "twelve";
                var tagged = new Tagged(13);
                Scenarios.ByRefs(ref number, ref text, new Point { X = 14, Y = 15 }, out long _, ref tagged);
            },
            () => Scenarios.Spans(new[] { 1, 2, 3, 4 }, "span"),
            () => Scenarios.GenericMethod("one", 2, new Holder<string> { Value = "three", Count = 4 }),
            () => Scenarios.GenericMethod(1, new Tagged(2), new Holder<int> { Value = 3, Count = 4 }),
            () => Scenarios.GenericMethod(new Tagged(1), new Point { X = 2 }, new Holder<Tagged> { Value = new Tagged(3), Count = 4 }),
            () => new Generic<string> { Held = "h" }.InstanceOfGeneric("one", 2, ["three"], new("four", 5)),
            () => new Generic<Tagged>().InstanceOfGeneric(new Tagged(1), "two", [], new(new Tagged(3), "four")),
            () => new Generic<int>().InstanceOfGeneric(1, 2.5, [3], new(4, 5.5)),
            () => new Derived { Held = "d" }.PlainInGeneric("one"),
            () => new Generic<Point>().PlainInGeneric(new Point { X = 1, Y = 2 }),
            () => Generic<string>.StaticInGeneric("one", new Derived()),
            () => new Holder<string> { Value = "v", Count = 2 }.StructOfGeneric("other"),
            () => new Holder<long> { Value = 5, Count = 2 }.StructOfGeneric(6),
            () => new Point { X = 20, Y = 21 }.StructThis(22),
            () => Scenarios.Closures(30, "alone"),
            () => Scenarios.Async(40, "async").Wait(),
            () => Scenarios.Waiting(45, "waiting", new TaskCompletionSource().Task).Wait(),
            () =>
            {
                foreach (int _ in Scenarios.Iterate(50, "iterate"))
                    Use(_);
            },
            () => Scenarios.InCatch(60),
            () => Scenarios.InFinally(70),
            () => Scenarios.Recursion(4, "r"),
            () => Scenarios.ManyArguments(1, -2, 3, -4, 5, -6, 7, -8, "nine", -10, 11, "twelve"),
            () => Scenarios.Pressure(1000),
            () => Scenarios.Assigned(80, "assigned"),
            () => Scenarios.Replaced(200000, "osr"),
            () => Scenarios.Pinned([90, 91], "pinned"),
            () => Scenarios.Computing(0.75, 1.25f, 1000),
        };
        int threads = int.Parse(arguments[1]), depth = int.Parse(arguments[2]);
        for (int i = 0; i < threads; i++)
        {
            uint seed = (uint)(i * 7919 + 12345);
            work.Add(() => Deep.Run(depth, seed));
        }
        Open(arguments[0], work.Count);
        foreach (Action action in work)
            new Thread(() =>
            {
                try
                {
                    action();
                }
                catch (InvalidOperationException)
                {
                }
            }, 16 << 20) { IsBackground = true }.Start();
        if (!Wait(TimeSpan.FromSeconds(120)))
            Environment.FailFast("not all threads stop");
        Thread.Sleep(500); // they sleep
        Console.WriteLine($"READY {Environment.ProcessId}");
        Console.ReadLine();
    }
}
