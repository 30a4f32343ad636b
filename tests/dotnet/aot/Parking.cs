// Threads that park in nested calls of every kind. Each first keeps its own stack trace, which the program prints.
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Aot;

interface IParks
{
    void Park(string name);

    void ByDefault(string name) => Park(name);
}

struct Spot<T> : IParks
{
    internal T Value;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public void Park(string name) => Parking.Park(name);
}

class Lot<T> : IParks where T : class
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public virtual void Park(string name) =>
        Inner<int>.Call<T[], Dictionary<string, T>>(name, null, (1, "x"), new int[1][,]);

    internal static class Inner<U>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        internal static void Call<V, W>(string name, W? map, (U, string) pair, U[][,] items) where W : class =>
            Parking.Park(name);
    }
}

static class Parking
{
    static readonly Dictionary<string, string> words = [];
    static readonly CountdownEvent parked = new(9);

    [DllImport("libc")]
    static extern int gettid();

    /// <summary>Keeps the stack of the thread, and waits.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static void Park(string name)
    {
        lock (words)
            words[name] = $"{gettid()} {Environment.CurrentManagedThreadId}\n{new StackTrace()}";
        parked.Signal();
        Thread.Sleep(Timeout.Infinite);
    }

    static void Start(string name, Action<string> action) =>
        new Thread(() => action(name)) { Name = name, IsBackground = true }.Start();

    static IEnumerable<int> Numbers(string name)
    {
        yield return 1;
        Park(name);
        yield return 2;
    }

    static async Task Suspended(string name)
    {
        await Task.Yield();
        Park(name);
        await Task.Delay(1);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void InHandler(string name)
    {
        try
        {
            Deaths.Throw(2);
        }
        catch (InvalidOperationException)
        {
            Park(name);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static unsafe void ByPointer(string name, ref int number, int* pointer, in string text, out nint result, int? maybe,
                                 params string[] more)
    {
        result = number + *pointer + text.Length + maybe ?? more.Length;
        Park(name);
    }

    [UnmanagedCallersOnly]
    static int Compare(nint left, nint right)
    {
        Park("a callback");
        return left < right ? -1 : 1;
    }

    [DllImport("libc")]
    static extern unsafe void qsort(int* items, nint count, nint size, delegate* unmanaged<nint, nint, int> compare);

    static unsafe void CallBack()
    {
        int* items = stackalloc int[2];
        qsort(items, 2, sizeof(int), &Compare);
    }

    static unsafe void Pointers(string name)
    {
        int number = 1;
        ByPointer(name, ref number, &number, "x", out _, null);
    }

    internal static void Run()
    {
        Start("generic", name => new Lot<string>().Park(name));
        Start("interface", name => ((IParks)new Lot<object>()).ByDefault(name));
        Start("boxed", name => ((IParks)new Spot<string>()).Park(name));
        Start("iterator", name => Numbers(name).Last());
        Start("in a handler", InHandler);
        Start("a name that is longer than fifteen", name =>
        {
            void Local(int depth)
            {
                if (depth == 0)
                    Park(name);
                else
                    Local(depth - 1);
            }
            Local(3);
        });
        Start("pointers", Pointers);
        new Thread(CallBack) { Name = "a callback", IsBackground = true }.Start();
        _ = Suspended("async");
        parked.Wait();
        lock (words)
            foreach (var (name, text) in words)
                Console.WriteLine($"THREAD {name}\n{text}");
        Console.WriteLine("READY");
        Console.Out.Flush();
        Thread.Sleep(Timeout.Infinite);
    }
}
