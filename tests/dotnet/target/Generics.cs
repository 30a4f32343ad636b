using System.Numerics;
using System.Runtime.CompilerServices;

namespace Demo;

/// <summary>Generic types nested in generic types: the inner one repeats the outer one's parameters in metadata.</summary>
internal class Outer<T>
{
    public class Inner<U>
    {
        public U Echo(T first, U second) => first is null ? second : second;
        public static string Name<V>(T t, U u, V v, Tuple<T, List<U[]>>? map) => typeof(Inner<U>).Name + typeof(V).Name + map;

        public struct Deep
        {
            public T Value;
            public readonly (T, U) Pair(U other) => (Value, other);
        }
    }

    public class Plain
    {
        public static T? Default(T[] values) => values.Length == 0 ? default : values[0];
    }

    public static int Count { get; } = typeof(T).Name.Length;
    public virtual V Convert<V>(T value, V other) => other;
}

internal sealed class Derived<T> : Outer<T>
{
    public override V Convert<V>(T value, V other) => base.Convert(value, other);
}

internal interface IVisitor
{
    int Visit<T>(T value);
}

internal sealed class SizeVisitor : IVisitor
{
    public int Visit<T>(T value) => Unsafe.SizeOf<T>();
}

internal interface IFactory<TSelf> where TSelf : IFactory<TSelf>
{
    static abstract TSelf Create(int seed);
    static virtual int Weight => 1;
}

internal readonly struct Grain : IFactory<Grain>
{
    private readonly int seed;
    private Grain(int seed) => this.seed = seed;
    public static Grain Create(int seed) => new(seed);
    public int Seed => seed;
}

internal static class Generics
{
    public static int Run()
    {
        int sum = Use("a", 1) + Use(1, "a") + Use(2L, 3.0) + Use("a", "b") + Use(DateTime.UnixEpoch, new Grain());
        sum += Sum(new[] { 1, 2, 3 }) + (int)Sum(new[] { 1.5, 2.5 });
        sum += Make<Grain>(4).Seed + Swap<string>("x", "y").Length + Swap(1, 2);
        IVisitor visitor = new SizeVisitor();
        return sum + visitor.Visit(1) + visitor.Visit("text") + visitor.Visit((1, 2L)) + visitor.Visit<int?>(null)
            + Bits((byte)3) + Compare(1, 2) + Compare("a", "b");
    }

    private static int Use<A, B>(A a, B b) where A : notnull
    {
        var inner = new Outer<A>.Inner<B>();
        inner.Echo(a, b);
        string name = Outer<A>.Inner<B>.Name(a, b, new[] { b }, null);
        var deep = new Outer<A>.Inner<B>.Deep { Value = a };
        deep.Pair(b);
        Outer<A>.Plain.Default(new[] { a });
        Outer<A> convert = new Derived<A>();
        convert.Convert(a, b);
        Func<A, B, int> f = (x, y) => x.GetHashCode() % 2 + (y is null ? 0 : 1);
        return name.Length + f(a, b) + Outer<A>.Count;
    }

    private static T Sum<T>(T[] values) where T : INumber<T>
    {
        T sum = T.Zero;
        foreach (T value in values)
            sum += value;
        return sum;
    }

    private static T Make<T>(int seed) where T : IFactory<T> => T.Weight > 0 ? T.Create(seed) : default!;

    private static T Swap<T>(T a, T b)
    {
        (a, b) = (b, a);
        return a;
    }

    /// <summary>The unmanaged constraint is a modreq in the signature.</summary>
    private static unsafe int Bits<T>(T value) where T : unmanaged => sizeof(T) + *(byte*)&value;

    private static int Compare<T>(in T a, in T b) where T : IComparable<T> => a.CompareTo(b);
}
