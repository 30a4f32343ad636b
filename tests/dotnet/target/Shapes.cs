using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;

namespace Demo;

internal interface IShape
{
    double Area();
    string Describe() => $"area {Area()}";
}

internal interface IBox<T>
{
    T Get();
}

/// <summary>Explicit implementations carry the interface, dots and all, in their metadata name.</summary>
internal sealed class Circle : IShape, IBox<int>, IBox<List<string>>
{
    private readonly double radius;

    public Circle(double radius) => this.radius = radius;

    double IShape.Area() => Math.PI * radius * radius;
    int IBox<int>.Get() => (int)radius;
    List<string> IBox<List<string>>.Get() => new() { radius.ToString("F1") };
}

internal readonly record struct Money(decimal Amount, string Currency)
{
    public static Money operator +(Money a, Money b) => new(a.Amount + b.Amount, a.Currency);
    public static bool operator <(Money a, Money b) => a.Amount < b.Amount;
    public static bool operator >(Money a, Money b) => a.Amount > b.Amount;
    public static implicit operator decimal(Money m) => m.Amount;
    public static explicit operator Money(int whole) => new(whole, "EUR");
}

/// <summary>Has a static constructor, properties, an init setter (modreq), indexers, an event, a finalizer.</summary>
internal class Ledger
{
    private static readonly Dictionary<string, int> Rates;
    private readonly Money[] entries = new Money[8];

    static Ledger() => Rates = new Dictionary<string, int> { ["EUR"] = 1, ["USD"] = 2 };

    ~Ledger() => Finalized++;

    public static int Finalized { get; private set; }
    public required string Owner { get; init; }
    public int Rate => Rates[entries[0].Currency];
    public event Action<Money>? Changed;

    public Money this[int index]
    {
        get => entries[index];
        set
        {
            entries[index] = value;
            Changed?.Invoke(value);
        }
    }

    public Money this[string currency, int index] => entries[index] with { Currency = currency };

    public ref readonly Money First() => ref entries[0];
    public virtual object Copy() => MemberwiseClone();
}

internal sealed class SavingsLedger : Ledger
{
    public override SavingsLedger Copy() => (SavingsLedger)base.Copy();
}

/// <summary>Identifiers beyond ASCII; one outside the basic plane is not allowed by C#, Reflection.Emit adds it.</summary>
internal static class Größe
{
    public static int Überprüfe(int länge) => länge + 数え上げ("αβγ");
    private static int 数え上げ(string текст) => текст.Length;
}

file sealed class OnlyInThisFile
{
    public int Value() => 7;
}

/// <summary>Every kind of parameter type that a signature can hold.</summary>
internal static unsafe class Parameters
{
    public delegate int Combine(int a, int b);

    public static void Ref(ref int value) => value++;
    public static void Out(out string value) => value = "out";
    public static int In(in DateTime value) => value.Year;
    public static int Pointer(int* one, void** two, char* three) => *one + (two == null ? 0 : 1) + three[0];
    public static int Arrays(int[] one, string[][] jagged, double[,] plane, byte[,,] cube) =>
        one.Length + jagged.Length + plane.Length + cube.Rank;
    public static int RefArray(ref int[] array, ref int[,] plane) => array[0] + plane[0, 0];
    public static int FunctionPointer(delegate*<int, int, int> f, int a) => f(a, 2);
    public static int UnmanagedPointer(delegate* unmanaged[Cdecl]<int> f) => f();
    public static int Nullable(int? a, DayOfWeek? b) => (a ?? 0) + (int)(b ?? DayOfWeek.Friday);
    public static (int Sum, string Text) Tuple((int, long) pair, (int A, (string B, char C) D) nested) =>
        (pair.Item1 + nested.A, nested.D.B);
    public static nint Native(nint a, nuint b, IntPtr c) => a + (nint)b + c;
    public static int Spans(ReadOnlySpan<char> text, Span<int> numbers) => text.Length + numbers.Length;
    public static int Delegates(Combine combine, Func<int, string> f) => combine(1, 2) + f(3).Length;
    public static int Params(params object[] values) => values.Length;
    public static int Optional(int a = 1, string b = "x", decimal c = 1.5m) => a + b.Length + (int)c;
    public static int Every(bool a, sbyte b, byte c, short d, ushort e, int f, uint g, long h, ulong i, float j,
                            double k, char l, string m, object n) =>
        (a ? 1 : 0) + b + c + d + e + f + (int)g + (int)h + (int)i + (int)j + (int)k + l + m.Length + n.GetHashCode() % 2;
    public static int Dynamic(dynamic value) => value.Length;
    public static int VarArgs(__arglist) => new ArgIterator(__arglist).GetRemainingCount();

    public static int Add(int a, int b) => a + b;

    public static int Run()
    {
        int number = 1;
        char letter = 'a';
        int[] line = { 1, 2 };
        int[,] plane = { { 1 } };
        Ref(ref number);
        Out(out string text);
        int sum = In(DateTime.UnixEpoch) + Pointer(&number, null, &letter) + text.Length;
        sum += Arrays(line, new[] { new[] { "a" } }, new double[2, 2], new byte[1, 1, 1]) + RefArray(ref line, ref plane);
        sum += FunctionPointer(&Add, 5) + UnmanagedPointer(&Native7);
        sum += Nullable(null, DayOfWeek.Monday) + Tuple((1, 2L), (3, ("b", 'c'))).Sum + (int)Native(1, 2, 3);
        sum += Spans("text", stackalloc int[3]) + Delegates(Add, i => i.ToString()) + Params(1, "two", 3.0);
        sum += Optional() + Every(true, 1, 2, 3, 4, 5, 6, 7, 8, 9f, 10d, 'x', "m", "n");
        return sum + Dynamic("dynamic");
    }

    [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })]
    private static int Native7() => 7;
}

/// <summary>P/Invokes that need marshalling, so that the runtime writes IL stubs, and a callback from native code.</summary>
internal static class Interop
{
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    private delegate int Compare(in int a, in int b);

    [DllImport("libc", EntryPoint = "strlen")]
    private static extern nint StringLength(string text);

    [DllImport("libc", SetLastError = true)]
    private static extern int chdir([MarshalAs(UnmanagedType.LPUTF8Str)] string path);

    [DllImport("libc", EntryPoint = "qsort")]
    private static extern void Sort([In, Out] int[] numbers, nint count, nint size, Compare compare);

    [DllImport("libc", EntryPoint = "getppid")]
    private static extern int ParentProcess();

    public static int Run()
    {
        int[] numbers = { 3, 1, 2 };
        Sort(numbers, 3, sizeof(int), (in int a, in int b) => a - b);
        chdir("/nonexistent/directory");
        return numbers[0] + (int)StringLength("native") + ParentProcess() % 2 + Marshal.GetLastPInvokeError();
    }
}

/// <summary>Lambdas, closures, local functions, iterators, async methods, funclets.</summary>
internal static class Shapes
{
    private static readonly Func<int, int> Square = x => x * x;

    public static int Run()
    {
        IShape circle = new Circle(2);
        var ledger = new SavingsLedger { Owner = "Ada" };
        ledger.Changed += m => Log.Append(m.Currency);
        ledger[0] = (Money)5 + new Money(1, "EUR");
        decimal first = ledger.First();
        int sum = circle.Describe().Length + ((IBox<int>)circle).Get() + ((IBox<List<string>>)circle).Get().Count;
        sum += (int)first + ledger.Rate + ledger.Copy().Owner.Length + ledger["USD", 0].ToString().Length;
        sum += ledger[0] < ledger["USD", 0] || ledger[0] > default(Money) ? 1 : 0;
        sum += Größe.Überprüfe(3) + new OnlyInThisFile().Value() + Parameters.Run() + Interop.Run();
        sum += Closures(3) + LocalFunctions(5) + Numbers(4).Sum() + Funclets(0) + Funclets(1) + Funclets(2);
        sum += AsyncSum(3).GetAwaiter().GetResult() + AsyncStream().GetAwaiter().GetResult();
        sum += AsyncValue(1).AsTask().GetAwaiter().GetResult();
        return sum + Text();
    }

    public static StringBuilder Log { get; } = new();

    /// <summary>Leaves something behind for the finalizer thread.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Abandon() => _ = new Ledger { Owner = "nobody" };

    private static int Closures(int n)
    {
        int outer = n;
        Func<int, Func<int, int>> add = a =>
        {
            int inner = a + outer;
            return b => inner + b + outer;
        };
        Action touch = delegate { outer++; };
        touch();
        return add(1)(2) + Square(n) + new Func<int, int>(Math.Abs)(-1);
    }

    private static int LocalFunctions(int n)
    {
        static int Static(int x) => x + 1;
        int Capturing(int x) => x <= 0 ? n : Capturing(x - 1) + Static(x);
        T Generic<T>(T value) where T : struct => value;
        return Capturing(n) + Generic(n) + (int)Generic(2L);
    }

    private static IEnumerable<int> Numbers(int n)
    {
        try
        {
            for (int i = 0; i < n; i++)
                yield return i;
        }
        finally
        {
            Log.Append('f');
        }
    }

    private static IEnumerable<(TKey Key, int Index)> Indexed<TKey>(params TKey[] keys)
    {
        int index = 0;
        foreach (TKey key in keys)
            yield return (key, index++);
    }

    /// <summary>Catch, filter, nested finally and fault (the iterator's) in one method.</summary>
    private static int Funclets(int kind)
    {
        int result = 0;
        try
        {
            try
            {
                if (kind == 1)
                    throw new InvalidOperationException("one");
                if (kind == 2)
                    throw new ArgumentException("two");
            }
            finally
            {
                result += Indexed("a", "b").Count() + Indexed(1, 2).Count();
            }
        }
        catch (InvalidOperationException e) when (e.Message.Length == 3)
        {
            result += 10;
        }
        catch (ArgumentException e)
        {
            result += e.Message.Length;
        }
        return result;
    }

    private static async Task<int> AsyncSum(int n)
    {
        int sum = 0;
        for (int i = 0; i < n; i++)
        {
            await Task.Yield();
            sum += await AsyncGeneric(i);
        }
        return sum;
    }

    private static async Task<T> AsyncGeneric<T>(T value)
    {
        await Task.Delay(1).ConfigureAwait(false);
        return value;
    }

    private static async ValueTask<int> AsyncValue(int value)
    {
        try
        {
            await Task.Yield();
            throw new TimeoutException();
        }
        catch (TimeoutException)
        {
            return value;
        }
    }

    private static async IAsyncEnumerable<string> Words()
    {
        foreach (string word in new[] { "alpha", "beta" })
        {
            await Task.Yield();
            yield return word;
        }
    }

    private static async Task<int> AsyncStream()
    {
        int length = 0;
        await foreach (string word in Words())
            length += word.Length;
        return length;
    }

    private static int Text()
    {
        string text = 7 switch { > 5 and < 9 => "seven", _ => "other" };
        return text switch { "one" => 1, "two" => 2, "three" => 3, "four" => 4, "five" => 5, "six" => 6, "seven" => 7, _ => 0 };
    }
}
