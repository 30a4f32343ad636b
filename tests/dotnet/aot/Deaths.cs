using System.Diagnostics.CodeAnalysis;
using System.Runtime.CompilerServices;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;

namespace Aot;

class Computed : Exception
{
    public override string Message => "computed " + 1.ToString();

    public override string ToString() => "all of it is " + Message;
}

class Box<T>
{
    internal class Broken : Exception;

    internal class Inner<U>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        internal int Length<V>(Box<T>? box, U[] items, ref V value, Dictionary<string, List<V>> map)
            where V : notnull =>
            box!.GetHashCode() + items.Length + map.Count;
    }
}

class Initialized
{
    internal static readonly int Number = Fail();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Fail() => throw new NotSupportedException("in a static constructor");
}

static class Deaths
{
    [DllImport("libc")]
    internal static extern void abort();

    [DllImport("libc")]
    internal static extern nint strlen(nint text);

    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static void Throw(int depth)
    {
        if (depth == 0)
            throw new InvalidOperationException("thrown");
        Throw(depth - 1);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static void Nested()
    {
        try
        {
            try
            {
                Throw(2);
            }
            catch (Exception inner)
            {
                throw new ArgumentException("in the middle", "number", inner);
            }
        }
        catch (Exception inner)
        {
            throw new ApplicationException("outermost", inner);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static void OnThread()
    {
        var thread = new Thread(() => Throw(1)) { Name = "a thread that dies" };
        thread.Start();
        thread.Join();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static void NullReference()
    {
        long value = 1;
        new Box<int>.Inner<string>().Length<long>(null, ["a"], ref value, []);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static void Generic() => throw new Box<Dictionary<string, int[]>>.Broken();

    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static void Aggregate() =>
        throw new AggregateException("several", new TimeoutException("one"), new ArgumentNullException("two"));

    internal static async Task Async()
    {
        await Task.Yield();
        await Second<string>(3);
    }

    static async Task<int> Second<T>(int depth)
    {
        await Task.Delay(1);
        if (depth > 0)
            return await Second<T>(depth - 1);
        throw new InvalidOperationException("at the end of " + typeof(T));
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static void Rethrown()
    {
        ExceptionDispatchInfo? first = null;
        try
        {
            Throw(1);
        }
        catch (InvalidOperationException exception)
        {
            first = ExceptionDispatchInfo.Capture(exception);
        }
        first!.Throw();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static void Messages()
    {
        Exception[] all =
        [
            new ArgumentOutOfRangeException("index", "too large"), new ObjectDisposedException("thing"),
            new FileNotFoundException("no file", "/a/file"), new InvalidOperationException("Grüße 😀"),
            new MissingMethodException("Type", "Method"), new BadImageFormatException("bad", "an image"),
            new KeyNotFoundException(null),
        ];
        throw new AggregateException(all);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static void NoMessage() => throw new Box<int>.Broken();

    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static void StaticConstructor() => Console.WriteLine(Initialized.Number);

    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static void FailFastInCatch()
    {
        try
        {
            Throw(2);
        }
        catch (InvalidOperationException exception)
        {
            Environment.FailFast("in a handler", exception);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static unsafe void AccessViolation() => *(int*)0x12345678 = 1;

    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static int Overflow(int depth) => depth == int.MaxValue ? 0 : Overflow(depth + 1) + 1;

    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static void NativeAbortInCatch()
    {
        try
        {
            Throw(2);
        }
        catch (InvalidOperationException)
        {
            abort();
        }
    }
}
