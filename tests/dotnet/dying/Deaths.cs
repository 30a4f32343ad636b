// Unhandled exceptions from every kind of code.
using System.Collections;
using System.Diagnostics;
using System.Linq.Expressions;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.ExceptionServices;

namespace Dying;

class Box<T>
{
    internal string? Text;

    internal class Inner<U>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        internal int Length<V>(Box<T>? box, U[] items, ref V value, out int count, Dictionary<string, List<V>> map) where V : notnull
        {
            count = items.Length;
            return box!.Text!.Length + map.Count;
        }
    }
}

struct Pair
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    internal void Fail(in int number, int[,] matrix, int[][] jagged, Pair? other) => throw new InvalidOperationException($"pair {number}");
}

class Initialized
{
    internal static readonly int Number = Fail();

    static int Fail() => throw new NotSupportedException("in a static constructor");
}

class Indexed
{
    internal int this[int index, string name] => throw new KeyNotFoundException($"{index} {name}");

    public static Indexed operator +(Indexed left, int right) => throw new ArithmeticException("operator");
}

class Accessed
{
    internal Indexed Value { get => throw new InvalidOperationException("getter"); set => throw new InvalidOperationException("setter"); }

    internal event Action Happened { add => throw new InvalidOperationException("add"); remove { } }

    internal Accessed(int depth) { if (depth > 0) throw new InvalidOperationException("constructor"); }
}

class Finalized
{
    ~Finalized() => throw new InvalidOperationException("finalizer");
}

interface IGreeter
{
    void Greet() => throw new InvalidOperationException("default interface method");
}

class Greeter : IGreeter, IDisposable
{
    void IDisposable.Dispose() => throw new InvalidOperationException("explicit");
}

static class Deaths
{
    public static void NullReference()
    {
        long value = 1;
        new Box<int>.Inner<string>().Length<long>(null, ["a"], ref value, out _, []);
    }

    public static void NullReferenceOfReferences()
    {
        string value = "";
        new Box<string>.Inner<object>().Length<string>(null, [], ref value, out _, []);
    }

    public static void Structs() => new Pair().Fail(5, new int[1, 1], [], null);

    public static void DivideByZero() => Console.WriteLine(1 / int.Parse("0"));

    public static void Bounds() => Console.WriteLine((new int[2])[(int)DateTime.UnixEpoch.Ticks & 7 | 2]);

    public static void Cast() => Console.WriteLine(((Indexed)(object)"text")[1, ""]);

    public static void Nested()
    {
        try
        {
            try
            {
                int.Parse("x1");
            }
            catch (Exception exception)
            {
                throw new ArgumentException("in the middle", "number", exception);
            }
        }
        catch (Exception exception)
        {
            throw new ApplicationException("outermost", exception);
        }
    }

    public static void Framework() => new List<int> { 1, 2, 3 }.Sort((_, _) => throw new InvalidOperationException("in a comparison"));

    public static void Linq() => Console.WriteLine(Enumerable.Range(0, 5).Select(number => 10 / (number - 2)).ToList().Count);

    public static void Async() => First(3).GetAwaiter().GetResult();

    static async Task<int> First(int depth)
    {
        await Task.Yield();
        return depth == 0 ? await Second<string>("end") : await First(depth - 1);
    }

    static async Task<int> Second<T>(T value)
    {
        await Task.Delay(1);
        throw new InvalidOperationException($"async {value}");
    }

    public static void AsyncVoid()
    {
        Run();
        Thread.Sleep(60000);

        static async void Run()
        {
            await Task.Yield();
            throw new InvalidOperationException("async void");
        }
    }

    public static void AsyncStream() => Consume().Wait();

    static async Task Consume()
    {
        await foreach (int number in Produce<int>(7))
            Console.WriteLine(number);
    }

    static async IAsyncEnumerable<int> Produce<T>(int number)
    {
        await Task.Yield();
        if (number == 7)
            throw new InvalidOperationException("async stream");
        yield return number;
    }

    public static void ValueTasks() => Value(1).AsTask().Wait();

    static async ValueTask Value(int depth)
    {
        if (depth > 0)
            await Value(depth - 1);
        throw new TimeoutException();
    }

    public static void Iterator()
    {
        foreach (int number in Numbers<string>(3))
            GC.KeepAlive(number);
    }

    static IEnumerable<int> Numbers<T>(int count)
    {
        for (int i = 0; i < count; i++)
            yield return i;
        throw new InvalidOperationException("iterator");
    }

    public static void Enumerator()
    {
        IEnumerator enumerator = new Items().GetEnumerator();
        while (enumerator.MoveNext()) { }
    }

    class Items : IEnumerable
    {
        public IEnumerator GetEnumerator()
        {
            yield return 1;
            throw new InvalidOperationException("enumerator");
        }
    }

    public static void Rethrown()
    {
        try
        {
            Thrower(1);
        }
        catch
        {
            throw;
        }
    }

    public static void ThrownAgain()
    {
        try
        {
            Thrower(2);
        }
        catch (Exception exception)
        {
            throw exception;
        }
    }

    public static void Dispatched()
    {
        ExceptionDispatchInfo? information = null;
        var thread = new Thread(() =>
        {
            try
            {
                Thrower(3);
            }
            catch (Exception exception)
            {
                information = ExceptionDispatchInfo.Capture(exception);
            }
        });
        thread.Start();
        thread.Join();
        information!.Throw();
    }

    public static void Remote() => throw ExceptionDispatchInfo.SetRemoteStackTrace(new InvalidOperationException("remote"), "   at Far.Away()");

    public static void CurrentStack() => throw ExceptionDispatchInfo.SetCurrentStackTrace(new InvalidOperationException("current"));

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Thrower(int depth)
    {
        if (depth > 0)
            Thrower(depth - 1);
        throw new InvalidOperationException("thrown");
    }

    public static void OnThread()
    {
        var thread = new Thread(() => Thrower(2)) { Name = "worker" };
        thread.Start();
        thread.Join();
    }

    public static void OnPool()
    {
        ThreadPool.QueueUserWorkItem(_ => Thrower(1));
        Thread.Sleep(60000);
    }

    public static void OnTimer()
    {
        using var timer = new Timer(_ => Thrower(1), null, 1, -1);
        Thread.Sleep(60000);
    }

    public static void StaticConstructor() => Console.WriteLine(Initialized.Number);

    public static void Aggregate() => throw new AggregateException("several", new InvalidOperationException("one"), new ArgumentNullException("two"),
                                                                   new AggregateException(new TimeoutException("three")));

    public static void Tasks() => Task.WaitAll(Task.Run(() => Thrower(1)), Task.Run(() => Thrower(0)), First(1));

    public static void ParallelLoop() => Parallel.For(0, 1, number => Thrower(number));

    /// <summary>The runtime has the assembly and its PDB in memory only.</summary>
    public static void FromMemory()
    {
        string path = typeof(Deaths).Assembly.Location;
        var copy = Assembly.Load(File.ReadAllBytes(path), File.ReadAllBytes(Path.ChangeExtension(path, ".pdb")));
        copy.GetType("Dying.Deaths")!.GetMethod(nameof(Thrower), BindingFlags.Static | BindingFlags.NonPublic)!.CreateDelegate<Action<int>>()(2);
    }

    /// <summary>The PDB is that of another program, which the runtime does not see.</summary>
    public static void FromForeign() => ForeignThrower(0);

    /// <summary>It lacks the method. The runtime fails as it reads it, and looks for no further line.</summary>
    public static void FromForeignShort() => ForeignThrower(1);

    static void ForeignThrower(int missing)
    {
        MethodInfo method = typeof(Deaths).GetMethod(nameof(Thrower), BindingFlags.Static | BindingFlags.NonPublic)!;
        byte[] pdb = Referring.MakePdb((method.MetadataToken & 0xffffff) - missing);
        var copy = Assembly.Load(File.ReadAllBytes(typeof(Deaths).Assembly.Location), pdb);
        copy.GetType("Dying.Deaths")!.GetMethod(nameof(Thrower), BindingFlags.Static | BindingFlags.NonPublic)!.CreateDelegate<Action<int>>()(2);
    }

    public static void Reflection() => typeof(Deaths).GetMethod(nameof(Invoked), BindingFlags.Static | BindingFlags.NonPublic)!.Invoke(null, [1, "x"]);

    static int Invoked(int number, string text) => throw new InvalidOperationException($"invoked {number} {text}");

    public static void Activated() => Activator.CreateInstance(typeof(Accessed), BindingFlags.Instance | BindingFlags.NonPublic, null, [1], null);

    public static void DynamicMethods()
    {
        var method = new DynamicMethod("Emitted", typeof(int), [typeof(int), typeof(string[]), typeof(List<int>)]);
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Ldc_I4_0);
        il.Emit(OpCodes.Div);
        il.Emit(OpCodes.Ret);
        method.CreateDelegate<Func<int, string[], List<int>, int>>()(1, [], []);
    }

    public static void Expressions()
    {
        ParameterExpression number = Expression.Parameter(typeof(int), "number");
        Expression.Lambda<Func<int, int>>(Expression.Divide(Expression.Constant(1), number), number).Compile()(0);
    }

    public static void EmittedAssembly()
    {
        AssemblyBuilder assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Made"), AssemblyBuilderAccess.RunAndCollect);
        TypeBuilder type = assembly.DefineDynamicModule("Made").DefineType("Made.Thing", TypeAttributes.Public);
        MethodBuilder method = type.DefineMethod("Do", MethodAttributes.Public | MethodAttributes.Static, typeof(int), [typeof(int), typeof(string)]);
        method.DefineParameter(1, ParameterAttributes.None, "divisor");
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Ldc_I4_1);
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Div);
        il.Emit(OpCodes.Ret);
        type.CreateType().GetMethod("Do")!.CreateDelegate<Func<int, string, int>>()(0, "");
    }

    public static void Closures()
    {
        int captured = 5;
        Action<string> action = text => Local<int>(text.Length);
        action("abc");

        void Local<T>(int number) => throw new InvalidOperationException($"local {number} {captured}");
    }

    public static void Members() => Console.WriteLine(new Indexed()[1, "name"]);

    public static void Operators() => Console.WriteLine(new Indexed() + 1);

    public static void Getter() => Console.WriteLine(new Accessed(0).Value);

    public static void EventAdd() => new Accessed(0).Happened += () => { };

    public static void Constructor() => Console.WriteLine(new Accessed(1));

    public static void DefaultInterface() => ((IGreeter)new Greeter()).Greet();

    public static void Explicit() => ((IDisposable)new Greeter()).Dispose();

    public static unsafe void Pointers() => Pointed(null, default, (nint)1, 2, 'c', true, 1.0, 1.0f, 1, 1, 1, 1, 1, 1, 1, 1m, DayOfWeek.Monday, null!, new object());

    static unsafe void Pointed(int* pointer, void** twice, nint native, nuint unsigned, char character, bool flag, double real, float single, byte b, sbyte sb,
                               short s, ushort us, uint u, long l, ulong ul, decimal money, DayOfWeek day, Func<int, string> function, object? thing) =>
        Console.WriteLine(*pointer);

    public static unsafe void FunctionPointers() => Called(null, null);

    static unsafe int Called(delegate*<int, string> function, delegate* unmanaged[Cdecl]<void> other) => throw new InvalidOperationException("function pointers");

    public static void Spans() => Spanned<int>([1], [], DateTime.UnixEpoch, null, (1, "b"));

    static void Spanned<T>(ReadOnlySpan<T> span, scoped Span<byte> bytes, DateTime? when, T[]?[]? rows, (int, string) tuple, params string[] rest) =>
        throw new InvalidOperationException("spans");

    public static void Hidden() => HiddenMiddle(() => Thrower(0));

    [StackTraceHidden]
    static void HiddenMiddle(Action action)
    {
        action();
        GC.KeepAlive(action);
    }

    [StackTraceHidden]
    public static void HiddenThrow() => throw new InvalidOperationException("hidden");

    public static void Inlined() => Aggressive(1);

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static void Aggressive(int number)
    {
        if (number > 0)
            Aggressive(number - 1);
        Thrower(0);
    }

    /// The code of a line begins with the instruction that faults.
    public static void FaultAtLine() => Fault("two");

    static int LengthOf(string? text) => text!.Length;

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static int Fault(string way)
    {
        int length = way.Length;
        switch (way)
        {
            case "one": Console.WriteLine("one"); break;
            case "two": Console.WriteLine(LengthOf(null)); break;
            case "three": Console.WriteLine("three"); break;
        }
        return length;
    }

    public static void Filtered()
    {
        try
        {
            Thrower(1);
        }
        catch (Exception exception) when (exception.Message == "never")
        {
        }
    }

    public static void Finally()
    {
        try
        {
            Thrower(1);
        }
        finally
        {
            Console.Out.Flush();
        }
    }

    /// <summary>Writes the text of an exception that is being handled to a file, the one that was thrown last first.</summary>
    internal static bool Note(Exception exception)
    {
        const string File = "nested.txt";
        string text = exception + "\0";
        System.IO.File.WriteAllText(File, System.IO.File.Exists(File) ? text + System.IO.File.ReadAllText(File) : text);
        return true;
    }

    public static void FromCatch()
    {
        try
        {
            Thrower(1);
        }
        catch (Exception exception)
        {
            Note(exception);
            Thrower(2);
        }
    }

    /// <summary>The first exception has a handler, which it does not reach.</summary>
    public static void FromFinally()
    {
        int count = 0;
        try
        {
            try
            {
                Thrower(1);
            }
            finally
            {
                Thrower(0);
            }
        }
        catch (Exception exception) when (count++ == 0 && Note(exception))
        {
        }
    }

    /// <summary>Three exceptions, and some that have been handled between.</summary>
    public static void FromCatches()
    {
        try
        {
            Thrower(1);
        }
        catch (Exception first)
        {
            Note(first);
            Handled();
            try
            {
                int.Parse("x2");
            }
            catch (Exception second)
            {
                Note(second);
                Handled();
                throw new ApplicationException("outermost", second);
            }
        }

        static void Handled()
        {
            try
            {
                Thrower(1);
            }
            catch (InvalidOperationException)
            {
            }
        }
    }

    public static void Finalizer()
    {
        Make();
        GC.Collect();
        GC.WaitForPendingFinalizers();
        Thread.Sleep(60000);

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Make() => new Finalized().ToString();
    }

    public static void Deep() => Recurse(300);

    static int Recurse(int depth) => depth == 0 ? throw new InvalidOperationException("deep") : Recurse(depth - 1) + 1;

    public static void MissingLibrary() => Native.Missing();

    public static void MissingFunction() => Native.Absent();

    public static void MissingAssembly() => Assembly.Load("Not.There, Version=1.2.3.4");

    /// <summary>An assembly that another one refers to.</summary>
    public static void MissingReference() => Referring.Load("Gone", "Third", "Second").GetType("Type", throwOnError: true);

    public static void MissingFile() => File.ReadAllText("/not/there/at/all.txt");

    public static void BadImage() => Assembly.LoadFile(typeof(object).Assembly.Location.Replace("System.Private.CoreLib.dll", "libcoreclr.so"));

    public static void MissingType() => Type.GetType("Not.There, Dying", throwOnError: true);

    public static void Resources() => new System.Resources.ResourceManager("None", typeof(Deaths).Assembly).GetString("x");

    public static void Disposed()
    {
        var stream = new MemoryStream();
        stream.Dispose();
        stream.ReadByte();
    }

    public static void Cancelled() => Task.Delay(1000, new CancellationToken(true)).GetAwaiter().GetResult();

    public static void Sockets() => new System.Net.Sockets.TcpClient().Connect("127.0.0.1", 1);

    public static void Http() => new HttpClient().GetStringAsync("http://127.0.0.1:1/").GetAwaiter().GetResult();

    public static void Json() => System.Text.Json.JsonSerializer.Deserialize<Dictionary<string, int>>("{\"a\": \"b\"}");

    public static void Xml() => System.Xml.Linq.XElement.Parse("<a><b></a>");

    public static void Regex() => System.Text.RegularExpressions.Regex.IsMatch("a", "(");

    public static void Memory() => GC.KeepAlive(new byte[int.MaxValue / 2 - 1 + (GC.MaxGeneration - 2)].Select(_ => new long[1 << 30]).ToList());

    public static void Synchronization() => Monitor.Exit(new object());
}

static class Native
{
    [System.Runtime.InteropServices.DllImport("not-there")]
    internal static extern void Missing();

    [System.Runtime.InteropServices.DllImport("libc")]
    internal static extern void Absent();
}
