using System.Runtime.CompilerServices;

namespace Stacks;

/// <summary>Places with funclets between, and exceptions in flight.</summary>
internal static partial class Places
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Fail(int depth)
    {
        if (depth == 0)
            throw new InvalidOperationException("parked");
        Fail(depth - 1);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int ReadNull(string? text) => text!.Length;

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Divide(int by) => 10 / by;

    [Place]
    private static void Catch()
    {
        try
        {
            Fail(3);
        }
        catch (InvalidOperationException exception)
        {
            GC.KeepAlive(exception);
            Park();
        }
    }

    [Place]
    private static void Filter()
    {
        try
        {
            Fail(3);
        }
        catch (InvalidOperationException exception) when (exception.Message.Length > 3 && Park())
        {
            GC.KeepAlive(exception);
        }
    }

    [Place]
    private static void Finally()
    {
        try
        {
            try
            {
                Fail(3);
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

    [Place]
    private static void FinallyWithoutException()
    {
        try
        {
            Recurse(1, () => { });
        }
        finally
        {
            try
            {
                Recurse(1, () => { });
            }
            finally
            {
                Park();
            }
        }
    }

    [Place]
    private static void CatchInFinallyInCatch()
    {
        try
        {
            Fail(1);
        }
        catch (InvalidOperationException)
        {
            try
            {
                Recurse(2, () => { });
            }
            finally
            {
                try
                {
                    Fail(2);
                }
                catch (InvalidOperationException)
                {
                    Park();
                }
            }
        }
    }

    [Place]
    private static void FilterInCatchInFilter()
    {
        try
        {
            Fail(1);
        }
        catch (InvalidOperationException) when (Inner())
        {
        }

        static bool Inner()
        {
            try
            {
                Fail(2);
            }
            catch (InvalidOperationException)
            {
                try
                {
                    throw new ArgumentException("inner");
                }
                catch (ArgumentException) when (Park(nameof(FilterInCatchInFilter)))
                {
                }
            }
            return true;
        }
    }

    [Place]
    private static void Rethrow()
    {
        try
        {
            try
            {
                Fail(1);
            }
            catch (InvalidOperationException)
            {
                Recurse(1, () => { });
                throw;
            }
        }
        catch (InvalidOperationException)
        {
            Park();
        }
    }

    [Place]
    private static void FilterOfRethrown()
    {
        try
        {
            try
            {
                Fail(1);
            }
            catch (InvalidOperationException exception)
            {
                throw new ArgumentException("outer", exception);
            }
        }
        catch (ArgumentException) when (Park())
        {
        }
    }

    [Place]
    private static void CatchOfNull()
    {
        try
        {
            ReadNull(null);
        }
        catch (NullReferenceException)
        {
            Park();
        }
    }

    [Place]
    private static void FilterOfNull()
    {
        try
        {
            ReadNull(null);
        }
        catch (NullReferenceException) when (Park())
        {
        }
    }

    [Place]
    private static void FinallyOfDivision()
    {
        try
        {
            try
            {
                Divide(0);
            }
            finally
            {
                Park();
            }
        }
        catch (DivideByZeroException)
        {
        }
    }

    private static readonly int[] Three = new int[3];

    [Place]
    private static void CatchOfIndex()
    {
        try
        {
            Recurse(Three[3], () => { });
        }
        catch (IndexOutOfRangeException)
        {
            Park();
        }
    }

    [Place]
    private static void CatchOfFramework()
    {
        try
        {
            int.Parse("x");
        }
        catch (FormatException)
        {
            Park();
        }
    }

    [Place]
    private static void GenericCatch() => GenericCatcher<string>.Run<InvalidOperationException, (int, string)>((1, ""));

    private static class GenericCatcher<T>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Run<E, V>(V value) where E : Exception
        {
            try
            {
                Fail(1);
            }
            catch (E)
            {
                GC.KeepAlive(value);
                Park(nameof(GenericCatch));
            }
        }
    }

    [Place]
    private static void IteratorFault()
    {
        try
        {
            foreach (int item in Items())
                GC.KeepAlive(item);
        }
        catch (InvalidOperationException)
        {
        }

        static IEnumerable<int> Items()
        {
            try
            {
                yield return 1;
                Fail(1);
                yield return 2;
            }
            finally
            {
                Park(nameof(IteratorFault));
            }
        }
    }

    [Place]
    private static void EmittedFault()
    {
        try
        {
            Emitted.Fault(false)(() => Fail(1), () => Park(nameof(EmittedFault)));
        }
        catch (InvalidOperationException)
        {
        }
    }

    [Place]
    private static void DynamicCatch() => Emitted.DynamicCatch("CaughtDynamic")(() => Fail(1), () => Park(nameof(DynamicCatch)));

    [Place]
    private static void CatchBelowNative()
    {
        Native.CallDelegate(() =>
        {
            try
            {
                Fail(1);
            }
            catch (InvalidOperationException)
            {
                Native.CallPointer(() => Park(nameof(CatchBelowNative)));
            }
        });
    }

    [Place]
    private static void DisposeInFlight()
    {
        try
        {
            using var parker = new Disposed();
            Fail(1);
        }
        catch (InvalidOperationException)
        {
        }
    }

    private sealed class Disposed : IDisposable
    {
        public void Dispose() => Park(nameof(DisposeInFlight));
    }

    [Place]
    private static void FirstChance()
    {
        int thread = Environment.CurrentManagedThreadId;
        AppDomain.CurrentDomain.FirstChanceException += (_, _) =>
        {
            if (Environment.CurrentManagedThreadId == thread)
                Park(nameof(FirstChance));
        };
        try
        {
            Fail(1);
        }
        catch (InvalidOperationException)
        {
        }
    }

    [Place]
    private static void OptimizedCatch() => Optimized(0);

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    private static int Optimized(int depth)
    {
        try
        {
            Fail(depth);
            return 0;
        }
        catch (InvalidOperationException) when (depth == 0)
        {
            return Optimized(depth + 1) + depth;
        }
        catch (InvalidOperationException)
        {
            return Park(nameof(OptimizedCatch)) ? 1 : 0;
        }
        finally
        {
            GC.KeepAlive(depth);
        }
    }
}
