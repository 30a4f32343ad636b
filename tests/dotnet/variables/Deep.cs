using System.Runtime.CompilerServices;
using static Truth;

/// <summary>
/// Methods that call each other to a great depth, in an order that a seed gives: each keeps other variables over its calls,
/// in registers and on the stack.
/// </summary>
static class Deep
{
    sealed class Walk(int depth, uint seed)
    {
        public int Left = depth;
        uint state = seed;

        public uint Next()
        {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            return state;
        }
    }

    public static void Run(int depth, uint seed) => Go(new Walk(depth, seed));

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Go(Walk walk)
    {
        if (walk.Left-- <= 0)
        {
            Stop();
            return;
        }
        uint seed = walk.Next();
        switch (seed % 12)
        {
            case 0:
                DeepIntegers(walk, (int)seed, seed * 3L);
                break;
            case 1:
                DeepStrings(walk, "s" + seed);
                break;
            case 2:
                DeepStructs(walk, new Point { X = (int)seed, Y = 1 }, new Two { First = seed, Second = 2 });
                break;
            case 3:
                DeepReals(walk, seed / 7.0, seed / 3.0f);
                break;
            case 4:
                DeepGeneric(walk, "g" + seed, new List<string> { "one" });
                break;
            case 5:
                DeepGeneric(walk, (long)seed, []);
                break;
            case 6:
                new Frame { Id = seed, Name = "n" + seed }.DeepInstance(walk, (byte)seed);
                break;
            case 7:
                int number = (int)(seed & 0xffff);
                DeepByRef(walk, ref number, out long result);
                Use(result + number);
                break;
            case 8:
                DeepTry(walk, seed);
                break;
            case 9:
                DeepLoop(walk, (int)(seed % 5) + 2, "l" + seed);
                break;
            case 10:
                DeepReassigned(walk, seed, "r" + seed);
                break;
            default:
                DeepMany(walk, (int)seed, 2, 3, 4, 5, "six", 7, 8, (short)seed, (sbyte)seed);
                break;
        }
    }

    sealed class Frame
    {
        public uint Id;
        public string Name = "";

        [MethodImpl(MethodImplOptions.NoInlining)]
        public void DeepInstance(Walk walk, byte small)
        {
            ulong large = Make((ulong)Id << 20 | small);
            string name = Make(Name + small);
            Log("DeepInstance", V("this", this), V("small", small), V("large", large), V("name", name));
            Go(walk);
            Use(large);
            if (small > 100)
                Use(name);
            Use(Id);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long DeepIntegers(Walk walk, int number, long wide)
    {
        int a = Make(number + 1), b = Make(number ^ 0x55), c = a + b;
        long d = wide * 2, e = d - a;
        bool odd = (number & 1) != 0;
        Log("DeepIntegers", V("number", number), V("wide", wide), V("a", a), V("b", b), V("c", c), V("d", d), V("e", e), V("odd", odd));
        Go(walk);
        Use(a);
        return odd ? c + e : d;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int DeepStrings(Walk walk, string text)
    {
        string twice = text + text;
        string part = twice.Substring(1);
        char first = part[0];
        int length = twice.Length;
        Log("DeepStrings", V("text", text), V("twice", twice), V("part", part), V("first", first), V("length", length));
        Go(walk);
        Use(part);
        return length + first;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void DeepStructs(Walk walk, Point point, Two two)
    {
        Point moved = new Point { X = point.X + 1, Y = point.Y + 1 };
        Two swapped = new Two { First = two.Second, Second = two.First };
        One one = new One { Value = two.First + point.X };
        DateTime time = new DateTime(2026, 1, 1).AddSeconds(point.X & 0xffff);
        Log("DeepStructs", V("point", point), V("two", two), V("moved", moved), V("swapped", swapped), V("one", one), V("time", time));
        Go(walk);
        Use(moved);
        Use(swapped);
        Use(one.Value);
        Use(time);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static double DeepReals(Walk walk, double wide, float narrow)
    {
        double product = wide * narrow;
        float half = narrow / 2;
        decimal money = new decimal((int)wide);
        Log("DeepReals", V("wide", wide), V("narrow", narrow), V("product", product), V("half", half), V("money", money));
        Go(walk);
        Use(money);
        return product + half;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void DeepGeneric<T>(Walk walk, T value, List<T> list)
    {
        T copy = Make(value);
        T[] array = [copy];
        int count = list.Count + 5;
        Log("DeepGeneric", V("value", value), V("list", list), V("copy", copy), V("array", array), V("count", count));
        Go(walk);
        Use(copy);
        Use(array);
        Use(count);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void DeepByRef(Walk walk, ref int number, out long result)
    {
        int before = number;
        result = before * 11L;
        ref int same = ref number;
        Log("DeepByRef", R("number", ref number), R("result", ref result), V("before", before), R("same", ref same));
        Go(walk);
        same = before + 1;
        Use(result);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void DeepTry(Walk walk, uint seed)
    {
        string state = Make("state" + seed);
        uint inside = 0;
        try
        {
            inside = Make(seed / 2);
            Log("DeepTry", V("seed", seed), V("state", state), V("inside", inside));
            Go(walk);
            Use(inside);
        }
        finally
        {
            Use(state);
            Use(seed);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int DeepLoop(Walk walk, int count, string text)
    {
        int sum = 0;
        int[] values = new int[count];
        for (int i = 0; i < values.Length; i++)
        {
            values[i] = i * count;
            sum += values[i];
            if (i == count - 1)
            {
                Log("DeepLoop", V("count", count), V("text", text), V("sum", sum), V("values", values), V("i", i));
                Go(walk);
            }
        }
        Use(text);
        return sum;
    }

    /// <summary>Variables that change after the call, or die at it.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long DeepReassigned(Walk walk, long value, string text)
    {
        long kept = value * 7;
        object boxed = text;
        Log("DeepReassigned", V("value", value), V("text", text), V("kept", kept), V("boxed", boxed));
        value = GoWith(walk, value, text);
        text = value.ToString();
        boxed = value;
        kept += text.Length;
        Use(boxed);
        return kept + value;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long GoWith(Walk walk, long value, string text)
    {
        Go(walk);
        return value + text.Length;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long DeepMany(Walk walk, int a, int b, long c, long d, int e, string f, byte g, ushort h, short i, sbyte j)
    {
        long total = a + b + c + d + e + g + h + i + j;
        Log("DeepMany", V("a", a), V("b", b), V("c", c), V("d", d), V("e", e), V("f", f), V("g", g), V("h", h), V("i", i), V("j", j),
            V("total", total));
        Go(walk);
        Use(f);
        return total + i * j;
    }
}
