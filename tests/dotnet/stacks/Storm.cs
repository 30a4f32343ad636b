using System.Collections.Concurrent;
using System.Runtime.CompilerServices;

namespace Stacks;

/// <summary>Threads that never rest, so that a dump finds them anywhere: in prologues, epilogues, helpers, collections, dispatches.</summary>
internal static class Storm
{
    private const int Threads = 8;

    private static readonly ConcurrentDictionary<int, int> Shared = new();
    private static readonly object Lock = new();
    private static readonly Action<Random>[] Works =
    {
        Generics, Loops, Recursions, Exceptions, HardwareFaults, NestedExceptions, Filters, PlatformCalls, Callbacks, DynamicMethods,
        Collections, Delegates, Interfaces, AsyncMethods, Locks, Iterators, Strings, Structs, Frameless, NewCode,
    };

    [ThreadStatic]
    private static long sink;

    public static void Start(int seed)
    {
        using var warm = new CountdownEvent(Threads);
        for (int i = 0; i < Threads; i++)
        {
            var random = new Random(seed * Threads + i);
            new Thread(() => Run(random, warm)) { IsBackground = true, Name = $"storm {i}" }.Start();
        }
        warm.Wait();
    }

    private static void Run(Random random, CountdownEvent warm)
    {
        foreach (Action<Random> work in Works)
            work(random);
        warm.Signal();
        while (true)
            Works[random.Next(Works.Length)](random);
    }

    // ---- Code that only computes ----

    private static void Generics(Random random)
    {
        for (int i = 0; i < 200; i++)
        {
            sink += Pair<string, int>.Make("x", i).Mix<object>(i) + Pair<int, string>.Make(i, "y").Mix<long>(i);
            sink += Count<List<string>>(i % 5) + Count<(int, string)>(i % 7);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Count<T>(int depth) => depth == 0 ? typeof(T).GetHashCode() & 1 : Count<T[]>(0) + Count<T>(depth - 1) + 1;

    private readonly struct Pair<A, B>
    {
        private readonly A a;
        private readonly B b;

        private Pair(A a, B b) => (this.a, this.b) = (a, b);

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static Pair<A, B> Make(A a, B b) => new(a, b);

        [MethodImpl(MethodImplOptions.NoInlining)]
        public int Mix<T>(int by) => (a!.GetHashCode() * 31 + b!.GetHashCode()) ^ (typeof(T).IsValueType ? by : -by);
    }

    /// <summary>A loop of a method that is called seldom is replaced on the stack.</summary>
    private static void Loops(Random random)
    {
        long sum = random.Next(3);
        for (int i = 0; i < 60_000; i++)
        {
            sum += Step(i);
            if ((i & 0xfff) == 0)
                sum += Step(Step((int)sum & 7));
        }
        sink += sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Step(int i) => i & 3;

    private static void Recursions(Random random)
    {
        sink += Fibonacci(18) + Ackermann(2, 30 + random.Next(30)) + Places.Recurse(random.Next(200), () => sink++);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Fibonacci(int n) => n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2);

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Ackermann(int m, int n) => m == 0 ? n + 1 : n == 0 ? Ackermann(m - 1, 1) : Ackermann(m - 1, Ackermann(m, n - 1));

    /// <summary>Methods so small that they have no frame, or only push and pop.</summary>
    private static void Frameless(Random random)
    {
        for (int i = 0; i < 5000; i++)
            sink += Outer(i);
    }

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    private static int Outer(int i) => Middle(i) + 1;

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    private static int Middle(int i) => Leaf(i) ^ Leaf(i + 1);

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    private static int Leaf(int i) => i * 31 + 7;

    private static void Strings(Random random)
    {
        for (int i = 0; i < 50; i++)
            sink += string.Join(',', Enumerable.Range(0, 20).Select(x => $"{x:x} {x * 1.5:F2}").OrderBy(x => x.Length).ThenBy(x => x)).Length;
    }

    private static void Structs(Random random)
    {
        var large = default(Large);
        Span<long> span = stackalloc long[random.Next(1, 2000)];
        for (int i = 0; i < 300; i++)
        {
            large = Pass(large, i, 1.5, 2.5f, (byte)i, i, i, i, "x");
            span[i % span.Length] += large.A;
        }
        sink += span[0];
    }

    private struct Large
    {
        public long A, B, C, D, E, F, G, H;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static Large Pass(Large large, int a, double b, float c, byte d, long e, long f, long g, string h)
    {
        large.B = large.C = large.D = large.E = large.F = large.G = large.H = a;
        large.A += a + (long)(b * c) + d + e + f + g + h.Length;
        return large;
    }

    // ---- Exceptions ----

    private static void Exceptions(Random random)
    {
        for (int i = 0; i < 5; i++)
        {
            try
            {
                Throw(random.Next(20));
            }
            catch (InvalidOperationException exception)
            {
                sink += exception.Message.Length + Fibonacci(10);
            }
            finally
            {
                sink += Fibonacci(5);
            }
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Throw(int depth)
    {
        if (depth == 0)
            throw new InvalidOperationException("storm");
        try
        {
            Throw(depth - 1);
        }
        finally
        {
            sink += Fibonacci(depth & 7);
        }
    }

    private static void HardwareFaults(Random random)
    {
        for (int i = 0; i < 3; i++)
        {
            try
            {
                sink += Length(i == 1 ? "x" : null) + 10 / (i - 1);
            }
            catch (NullReferenceException)
            {
                sink += Fibonacci(8);
            }
            catch (DivideByZeroException) when (Fibonacci(9) > 3)
            {
                sink++;
            }
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Length(string? text) => text!.Length;

    private static void NestedExceptions(Random random)
    {
        try
        {
            try
            {
                Throw(2);
            }
            catch (InvalidOperationException)
            {
                try
                {
                    Throw(1);
                }
                catch (InvalidOperationException) when (Inner(3))
                {
                    sink += Fibonacci(8);
                    throw;
                }
            }
        }
        catch (InvalidOperationException exception)
        {
            sink += exception.StackTrace!.Length;
            try
            {
                throw new ArgumentException("outer", exception);
            }
            catch (ArgumentException)
            {
                sink += Fibonacci(7);
            }
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static bool Inner(int depth)
    {
        try
        {
            Throw(depth);
        }
        catch (InvalidOperationException)
        {
            sink += Fibonacci(6);
        }
        return true;
    }

    private static void Filters(Random random)
    {
        try
        {
            FilteredDeeper(random.Next(8));
        }
        catch (Exception exception) when (exception is InvalidOperationException && Fibonacci(8) > 0)
        {
            sink += Fibonacci(4);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void FilteredDeeper(int depth)
    {
        try
        {
            if (depth == 0)
                throw new InvalidOperationException("filtered");
            FilteredDeeper(depth - 1);
        }
        catch (InvalidOperationException) when (Fibonacci(7) < 0)
        {
        }
        finally
        {
            sink += Fibonacci(6);
        }
    }

    // ---- Out of managed code and back ----

    private static void PlatformCalls(Random random)
    {
        for (int i = 0; i < 20; i++)
        {
            sink += Native.Length("some text") + Native.SleepInside(1);
            if (i % 8 == 0)
                sink += Native.Sleep(50) + Native.SleepWithError(50);
        }
    }

    private static void Callbacks(Random random)
    {
        Native.CallDelegate(() => sink += Fibonacci(10));
        Native.CallPointer(() => Native.CallDelegate(() => Exceptions(random)));
        Native.CallPointer(() => Native.CallPointer(() => sink += Native.Sleep(20)));
    }

    private static void DynamicMethods(Random random)
    {
        if (random.Next(8) != 0)
            return; // else all threads wait for one lock of the runtime
        Emitted.DynamicMethod("Stormy")(() => sink += Fibonacci(10));
        Emitted.DynamicCatch("StormyCatch")(() => Throw(2), () => sink += Fibonacci(8));
    }

    /// <summary>Methods that are compiled now.</summary>
    private static void NewCode(Random random)
    {
        if (random.Next(16) != 0)
            return;
        System.Linq.Expressions.Expression<Func<int, int>> tree = x => x * 3 + 1;
        sink += tree.Compile()(3);
        if (random.Next(4) == 0)
        {
            try
            {
                Emitted.Fault(true)(() => Throw(1), () => sink += Fibonacci(8));
            }
            catch (InvalidOperationException)
            {
            }
        }
    }

    // ---- The runtime's services ----

    private static void Collections(Random random)
    {
        var kept = new object[64];
        for (int i = 0; i < 3000; i++)
            kept[i % kept.Length] = new byte[random.Next(200)];
        if (random.Next(20) == 0)
            GC.Collect(random.Next(3));
    }

    private static void Delegates(Random random)
    {
        Func<int, int> twist = x => { for (int i = 0; i < 50; i++) x = x * 31 + i; return x; };
        twist += x => x + 1;
        for (int i = 0; i < 100; i++)
            sink += twist(i);
        var items = Enumerable.Range(0, 200).Select(_ => random.Next()).ToList();
        items.Sort((a, b) => a.CompareTo(b));
        sink += (int)typeof(Storm).GetMethod(nameof(Fibonacci), (System.Reflection.BindingFlags)~0)!.Invoke(null, new object[] { 8 })!;
    }

    private static void Interfaces(Random random)
    {
        IShape[] shapes = { new Square(), new Circle(), default(Dot) };
        for (int i = 0; i < 2000; i++)
            sink += shapes[i % shapes.Length].Area(i) + shapes[(i + 1) % shapes.Length].Twice(i) + shapes[i % 2].Generic<string>(i);
    }

    private interface IShape
    {
        int Area(int n);

        int Twice(int n) => Area(n) * 2;

        int Generic<T>(T? value, int n) where T : class => Area(n) + (value is null ? 1 : 0);

        int Generic<T>(int n) where T : class => Generic(default(T), n);
    }

    private sealed class Square : IShape
    {
        public int Area(int n) => n & 7;
    }

    private sealed class Circle : IShape
    {
        public int Area(int n) => n & 15;
    }

    private struct Dot : IShape
    {
        public int Area(int n) => n & 1;
    }

    private static void AsyncMethods(Random random)
    {
        sink += Sum(4).GetAwaiter().GetResult();
        Task<int>[] tasks = Enumerable.Range(0, 3).Select(n => Task.Run(() => Fibonacci(8 + n))).ToArray();
        sink += Task.WhenAll(tasks).GetAwaiter().GetResult().Length;

        static async Task<int> Sum(int depth)
        {
            if (depth == 0)
                return Fibonacci(5);
            if (depth % 2 == 0)
                await Task.Yield();
            return await Sum(depth - 1) + 1;
        }
    }

    private static void Locks(Random random)
    {
        for (int i = 0; i < 100; i++)
        {
            lock (Lock)
                sink += Fibonacci(5);
            sink += Shared.AddOrUpdate(i % 10, 1, (_, old) => old + 1);
        }
        Thread.Sleep(0);
        Thread.SpinWait(20);
    }

    private static void Iterators(Random random)
    {
        foreach (int item in Items(random.Next(100)))
            sink += item;

        static IEnumerable<int> Items(int count)
        {
            try
            {
                for (int i = 0; i < count; i++)
                    yield return Fibonacci(i % 6);
            }
            finally
            {
                sink += Fibonacci(4);
            }
        }
    }
}
