using System.Reflection.Emit;

namespace Demo;

/// <summary>Threads that stand still at interesting places of the stack until the process ends.</summary>
internal static class Parked
{
    private static readonly ManualResetEvent Never = new(false);
    private static readonly Action[] Places =
    {
        () => InCatch(3), () => InFinally(3), () => InFilter(3), () => InGeneric<string, int>(12, "x", 1), InIterator,
        InAsync, InDynamic, InReflection, InStaticConstructor, () => InVirtual(new SizeParker(), 8), InNestedFunclets,
    };
    private static readonly CountdownEvent Arrived = new(Places.Length);

    public static int Count => Places.Length;

    public static void Start()
    {
        foreach (Action place in Places)
            new Thread(() => place()) { IsBackground = true, Name = place.Method.Name }.Start();
        Arrived.Wait();
    }

    private static bool Park()
    {
        Arrived.Signal();
        return Never.WaitOne();
    }

    private static void InCatch(int depth)
    {
        try
        {
            Fail(depth);
        }
        catch (InvalidOperationException)
        {
            Park();
        }
    }

    private static void InFinally(int depth)
    {
        try
        {
            try
            {
                Fail(depth);
            }
            finally
            {
                Park();
            }
        }
        catch (InvalidOperationException)
        {
        }
    }

    private static void InFilter(int depth)
    {
        try
        {
            Fail(depth);
        }
        catch (InvalidOperationException) when (Park())
        {
        }
    }

    /// <summary>A catch inside a finally inside a catch: one method, three funclets on the stack.</summary>
    private static void InNestedFunclets()
    {
        try
        {
            Fail(1);
        }
        catch (InvalidOperationException)
        {
            try
            {
                Fail(0);
            }
            catch (InvalidOperationException)
            {
                try
                {
                    Shapes.Log.Append('n');
                }
                finally
                {
                    Park();
                }
            }
        }
    }

    private static void Fail(int depth)
    {
        if (depth == 0)
            throw new InvalidOperationException("parked");
        Fail(depth - 1);
    }

    private static int InGeneric<A, B>(int depth, A a, B b) =>
        depth == 0 ? (Park() ? 1 : 0) : InGeneric<B, A>(depth - 1, b, a) + 1;

    private static void InIterator()
    {
        foreach (int _ in Items())
            Park();

        static IEnumerable<int> Items()
        {
            yield return 1;
            Park();
        }
    }

    private static void InAsync()
    {
        Deeper(5).GetAwaiter().GetResult();

        static async Task<int> Deeper(int n)
        {
            if (n == 0)
                Park();
            else
                await Deeper(n - 1);
            return n;
        }
    }

    private static void InDynamic()
    {
        var method = new DynamicMethod("KeptParked", typeof(void), new[] { typeof(Func<bool>) });
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Callvirt, typeof(Func<bool>).GetMethod("Invoke")!);
        il.Emit(OpCodes.Pop);
        il.Emit(OpCodes.Ret);
        method.CreateDelegate<Action<Func<bool>>>()(Park);
    }

    private static void InReflection() => typeof(Parked).GetMethod(nameof(Reflected), (System.Reflection.BindingFlags)~0)!.Invoke(null, null);

    private static void Reflected() => new List<int> { 2, 1 }.Sort((_, _) => Park() ? 1 : 0);

    private static void InStaticConstructor() => _ = Initializer.Value;

    private static void InVirtual(Parker parker, int depth) => parker.Enter(depth);

    private static class Initializer
    {
        public static readonly int Value;

        static Initializer() => Value = Park() ? 1 : 0;
    }

    private abstract class Parker
    {
        public abstract int Enter<T>(T depth) where T : struct;
    }

    private sealed class SizeParker : Parker
    {
        public override int Enter<T>(T depth) => depth is 0 ? (Park() ? 1 : 0) : Enter<int>((int)(object)depth - 1) + 1;
    }
}
