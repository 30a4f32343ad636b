using System.Collections;
using System.Reflection;
using System.Runtime.CompilerServices;

namespace Stacks;

/// <summary>Places where a thread parks, each with a kind of frame between it and its root.</summary>
internal static partial class Places
{
    /// <summary>Every one parks exactly one thread, not always the one that runs it.</summary>
    public static IEnumerable<(string Name, Action Action)> All() =>
        typeof(Places).GetMethods(BindingFlags.Static | BindingFlags.NonPublic)
            .Where(method => method.IsDefined(typeof(PlaceAttribute)))
            .Select(method => (method.Name, method.CreateDelegate<Action>()));

    [AttributeUsage(AttributeTargets.Method)]
    private sealed class PlaceAttribute : Attribute
    {
    }

    private static bool Park([CallerMemberName] string place = "") => Parking.Park(place);

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Recurse(int depth, Action action)
    {
        if (depth > 0)
            return Recurse(depth - 1, action) + 1;
        action();
        return 0;
    }

    // ---- Calls of every kind ----

    [Place]
    private static void Deep() => Recurse(3000, () => Park(nameof(Deep)));

    [Place]
    private static void Lambda()
    {
        int captured = Environment.ProcessId;
        Func<int, bool> lambda = x =>
        {
            Func<bool> inner = () => Park(nameof(Lambda)) && captured == x;
            return inner();
        };
        lambda(captured);
    }

    [Place]
    private static void LocalFunction()
    {
        int captured = Environment.ProcessId;
        Add(1);
        Static(2);

        int Add(int x)
        {
            return Static(x) + captured;
        }

        static int Static(int x)
        {
            Park(nameof(LocalFunction));
            return x;
        }
    }

    [Place]
    private static void Iterator()
    {
        foreach (int _ in Items(3))
            Environment.SetEnvironmentVariable("STACKS", null);

        static IEnumerable<int> Items(int count)
        {
            for (int i = 0; i < count; i++)
            {
                if (i == 1)
                    Park(nameof(Iterator));
                yield return i;
            }
        }
    }

    [Place]
    private static void Query()
    {
        var found = Enumerable.Range(1, 10).Where(x => x > 2).Select(x => x == 5 && Park(nameof(Query)) ? x : -x).OrderBy(x => x).ToList();
        found.Clear();
    }

    [Place]
    private static void Comparer() => new List<int> { 3, 1, 2 }.Sort((a, b) => Park(nameof(Comparer)) ? a : b);

    [Place]
    private static void StaticConstructor() => _ = Initialized.Value;

    private static class Initialized
    {
        public static readonly bool Value;

        static Initialized()
        {
            Value = Park(nameof(StaticConstructor));
        }
    }

    [Place]
    private static void GenericStaticConstructor() => GenericInitialized<string>.Touch();

    private static class GenericInitialized<T>
    {
        private static readonly bool Value = Park(typeof(T) == typeof(int) ? "" : nameof(GenericStaticConstructor));

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static bool Touch() => Value;
    }

    [Place]
    private static void Members()
    {
        Number number = new Number(1) + new Number(2);
        GC.KeepAlive(number);
    }

    /// <summary>An operator, a conversion, an indexer, a property, an event accessor, a constructor: each calls the next.</summary>
    private sealed class Number
    {
        private readonly int value;

        public Number(int value) => this.value = value;

        public event Action Changed
        {
            add
            {
                value.DynamicInvoke();
            }
            remove
            {
            }
        }

        public bool Property
        {
            get
            {
                Changed += () => Park(nameof(Members));
                return value == 0;
            }
        }

        public bool this[int index, string name] => index == value && Property && name.Length == 0;

        public static Number operator +(Number a, Number b) => new Number((int)(a.value == 1 ? (long)b : 0));

        public static explicit operator long(Number number) => number[number.value, ""] ? 1 : 0;
    }

    [Place]
    private static void ExplicitImplementations()
    {
        using IEnumerator<int> items = ((IEnumerable<int>)new Explicit()).GetEnumerator();
        items.MoveNext();
    }

    private struct Explicit : IEnumerable<int>, IComparable<Explicit>
    {
        IEnumerator<int> IEnumerable<int>.GetEnumerator()
        {
            ((IComparable<Explicit>)this).CompareTo(default);
            yield break;
        }

        IEnumerator IEnumerable.GetEnumerator() => ((IEnumerable<int>)this).GetEnumerator();

        readonly int IComparable<Explicit>.CompareTo(Explicit other) => Park(nameof(ExplicitImplementations)) ? 1 : 0;
    }

    [Place]
    private static void Generic() => GenericMethod<string, int>(6, "x", (1, (int?)2));

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int GenericMethod<A, B>(int depth, A a, (B, B?) b) where B : struct
    {
        (int, string) pair = (depth, "");
        return depth == 0 ? new Box<A, List<B[]>>().Store(a, ref pair, b.Item2) : GenericMethod<object, B>(depth - 1, a!, b) + 1;
    }

    private sealed class Box<T, U> : Base<T>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public int Store<V>(T value, ref (int Id, string Name) pair, V? other, params U[] rest) where V : struct
        {
            Base<T> virtually = this;
            return virtually.Virtual(value, other.GetValueOrDefault()) + rest.Length + pair.Id;
        }

        public override int Virtual<V>(T value, V other)
        {
            Parker<V> parker = new StructParker<V>();
            return parker.Default(other);
        }
    }

    private abstract class Base<T>
    {
        public abstract int Virtual<V>(T value, V other);
    }

    private interface Parker<in T>
    {
        int Enter(T value);

        int Default(T value) => Enter(value) + 1;
    }

    private struct StructParker<T> : Parker<T>
    {
        public readonly int Enter(T value) => StaticAbstract<StaticParker>(value is null ? 0 : 1);

        private static int StaticAbstract<P>(int value) where P : IStatic<P> => P.Park(value);
    }

    private interface IStatic<TSelf> where TSelf : IStatic<TSelf>
    {
        static abstract int Park(int value);
    }

    private sealed class StaticParker : IStatic<StaticParker>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Park(int value) => Places.Park(nameof(Generic)) ? value : 0;
    }

    [Place]
    private static void Delegates()
    {
        Action action = () => { };
        action += new Target().Method;
        action += () => Environment.SetEnvironmentVariable("STACKS", null);
        action();
    }

    private sealed class Target
    {
        public void Method()
        {
            var open = typeof(Target).GetMethod(nameof(Open))!.CreateDelegate<Action<Target, string>>();
            open(this, nameof(Delegates));
        }

        public void Open(string place) => Closed(place)();

        private Action Closed(string place) => ((Func<string, bool>)Parking.Park).Method.CreateDelegate<Func<bool>>(place) is { } park ? () => park() : () => { };
    }

    [Place]
    private static void Reflection() => typeof(Places).GetMethod(nameof(Reflected), (BindingFlags)~0)!.Invoke(null, new object[] { 1, "x" });

    private static int Reflected(int number, string text) => Activator.CreateInstance(typeof(Created), text, number) is null ? 0 : 1;

    private sealed class Created
    {
        public Created(string text, int number)
        {
            System.Linq.Expressions.Expression<Func<int, bool>> tree = x => x > 0 && Park(nameof(Reflection));
            tree.Compile()(text.Length + number);
        }
    }

    [Place]
    private static void Dynamic() => Emitted.DynamicMethod("ParkedDynamic")(() => Park(nameof(Dynamic)));

    [Place]
    private static void LargeFrame()
    {
        Span<byte> large = stackalloc byte[40_000];
        Parker<int> parker = new LargeParker();
        large[Environment.ProcessId % large.Length] = (byte)parker.Enter(large.Length);
    }

    private sealed class LargeParker : Parker<int>
    {
        public int Enter(int value)
        {
            Block locals = default;
            Span<byte> dynamic = stackalloc byte[value % 1000 + 1];
            Fill(ref locals, dynamic);
            GC.KeepAlive(locals.ToString());
            return dynamic[0];
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Fill(ref Block block, Span<byte> bytes)
        {
            double a = bytes.Length, b = a * 2, c = b * 3;
            block.First = 1;
            bytes[0] = (byte)(Park(nameof(LargeFrame)) ? a + b * c : c);
        }

        [InlineArray(20_000)]
        private struct Block
        {
            public byte First;
        }
    }

    [Place]
    private static void OnStackReplacement()
    {
        long sum = 0;
        for (int i = 0; i < 300_000; i++)
        {
            sum += Step(i);
            if (i == 200_000)
                Park();
        }
        GC.KeepAlive(sum);

        [MethodImpl(MethodImplOptions.NoInlining)]
        static int Step(int i) => i & 3;
    }

    [Place]
    private static void OtherFile()
    {
#line 500 "Generated.cs"
        Recurse(1, () =>
        {
            Park(nameof(OtherFile));
        });
#line hidden
        Environment.SetEnvironmentVariable("STACKS", null);
#line default
    }

    [Place]
    private static void Hidden()
    {
#line hidden
        Recurse(1, () => Park(nameof(Hidden)));
#line default
    }

    [Place]
    private static void Statements()
    {
        using var reader = new StringReader("x");
        object text = reader.ReadLine()!;
        switch (text)
        {
            case string { Length: > 3 } longer:
                Environment.SetEnvironmentVariable("STACKS", longer);
                break;
            case string shorter when shorter[0] == 'x':
                string made =
                    $"{shorter}" +
                    $"{Park(
                        nameof(Statements))}";
                Environment.SetEnvironmentVariable("STACKS", made);
                break;
        }
    }

    [Place]
    private static void Finalizer()
    {
        MakeGarbage();
        GC.Collect();

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void MakeGarbage() => _ = new Finalized();
    }

    private sealed class Finalized
    {
        ~Finalized() => Park(nameof(Finalizer));
    }

    [Place]
    private static void FromNativeDelegate() => Native.CallDelegate(() => Park(nameof(FromNativeDelegate)));

    [Place]
    private static void FromNativePointer() => Native.CallPointer(() => Native.CallDelegate(() => Park(nameof(FromNativePointer))));

    [Place]
    private static void FromNativeThread() => Native.CallOnNewThread(() => Park(nameof(FromNativeThread)));

    // ---- Ways to wait ----

    [Place]
    private static void WaitInSleep() => Parking.Park(nameof(WaitInSleep), () => Thread.Sleep(Timeout.Infinite));

    [Place]
    private static void WaitInNativeSleep() => Parking.Park(nameof(WaitInNativeSleep), () => { while (Native.Sleep(100_000_000) != 1) { } });

    [Place]
    private static void WaitInNativeSleepWithError() =>
        Parking.Park(nameof(WaitInNativeSleepWithError), () => { while (Native.SleepWithError(100_000_000) != 1) { } });

    [Place]
    private static void WaitInSlimEvent() => Parking.Park(nameof(WaitInSlimEvent), () => new ManualResetEventSlim().Wait());

    [Place]
    private static void WaitInSemaphore() => Parking.Park(nameof(WaitInSemaphore), () => new SemaphoreSlim(0).Wait());

    [Place]
    private static void WaitInTask() => Parking.Park(nameof(WaitInTask), () => new TaskCompletionSource<int>().Task.Result.ToString());

    [Place]
    private static void WaitInMonitor() => Parking.Park(nameof(WaitInMonitor), () => { lock (Held) Monitor.Wait(Held); });

    [Place]
    private static void WaitForLock()
    {
        object contended = new();
        new Thread(() => { lock (contended) Thread.Sleep(Timeout.Infinite); }) { IsBackground = true }.Start();
        while (!Monitor.IsEntered(contended) && Monitor.TryEnter(contended))
            Monitor.Exit(contended);
        Parking.Park(nameof(WaitForLock), () => { lock (contended) GC.KeepAlive(contended); });
    }

    [Place]
    private static void WaitInJoin() => Parking.Park(nameof(WaitInJoin), () => Thread.CurrentThread.Join());

    [Place]
    private static void WaitInFrameless() => Parking.Park(nameof(WaitInFrameless), () => Frameless(3));

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    private static int Frameless(int depth) => depth == 0 ? Native.Sleep(uint.MaxValue) + Frameless(0) : Frameless(depth - 1) + 1;

    private static readonly object Held = new();
}
