using System.Runtime.CompilerServices;

namespace Stepped;

internal interface IVisitor
{
    int Visit<T>(T value);
    int Default() => Visit(1) + Visit("one");
}

internal sealed class Measure : IVisitor
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public int Visit<T>(T value) => Unsafe.SizeOf<T>() + value!.GetHashCode() % 2;
}

internal class Box<T>
{
    private readonly T item;
    public Box(T item) => this.item = item;
    public virtual T Item => item;
    [MethodImpl(MethodImplOptions.NoInlining)]
    public (T, U) Pair<U>(U other) => (item, other);
    public static int Name() => typeof(T).Name.Length;
}

internal sealed class Loud<T> : Box<T>
{
    public Loud(T item) : base(item) { }
    public override T Item => base.Item;
    public override string ToString() => "loud";
}

/// <summary>Generics, virtual and interface calls, delegates of every kind, iterators, async methods that do not wait.</summary>
internal static class Calls
{
    private static readonly Func<int, int> Static = Twice;
    private static readonly Func<int, int> Both = (Func<int, int>)Delegate.Combine(Static, new Func<int, int>(x => x + 1))!;
    private static readonly IVisitor Visitor = new Measure();

    public static long Run()
    {
        int sum = Use("a") + Use(1) + Use(2.5) + Use(DateTime.UnixEpoch) + Use((1, "b")) + Use(new[] { 1 });
        sum += Visitor.Visit(1) + Visitor.Visit("s") + Visitor.Visit(2L) + Visitor.Default();
        sum += Static(3) + Both(4) + Closure(5)(6) + Numbers(3).Sum() + Sum(3).Result + SumOfValues(2).Result;
        return sum + Local(4) + Text("three") + Compare(1, 2) + Compare("a", "b");
    }

    private static int Use<T>(T value)
    {
        Box<T> box = new Loud<T>(value);
        return box.Pair(1).Item2 + box.Pair("x").Item2.Length + Box<T>.Name() + (box.Item is null ? 0 : 1) + box.ToString()!.Length;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Twice(int x) => 2 * x;

    private static Func<int, int> Closure(int a) => b => a * b + Twice(a);

    private static IEnumerable<int> Numbers(int n)
    {
        for (int i = 0; i < n; i++)
            yield return Twice(i);
    }

    private static async Task<int> Sum(int n)
    {
        int sum = 0;
        for (int i = 0; i < n; i++)
            sum += await Task.FromResult(i);
        return sum;
    }

    private static async ValueTask<int> SumOfValues(int n)
    {
        await Task.CompletedTask;
        return n + Twice(n);
    }

    private static int Local(int n)
    {
        int Down(int x) => x <= 0 ? n : Down(x - 1) + 1;
        return Down(n);
    }

    private static int Text(string text) =>
        text switch { "one" => 1, "two" => 2, "three" => 3, "four" => 4, "five" => 5, "six" => 6, "seven" => 7, _ => 0 };

    private static int Compare<T>(T a, T b) where T : IComparable<T> => a.CompareTo(b);
}
