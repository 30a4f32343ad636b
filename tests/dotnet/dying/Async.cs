// Exceptions that leave async methods, and ends within them. The compiler makes state machines of the methods or, with
// RuntimeAsync=on, leaves it to the runtime to suspend them.
using System.Collections;
using System.Diagnostics;
using System.IO.Compression;
using System.Runtime.CompilerServices;
using System.Runtime.ExceptionServices;
using System.Text;

namespace Dying;

class Repository<T>
{
    internal class Query<U> where U : notnull
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        internal async Task<V> Run<V>(T[] items, Dictionary<U, List<V>> map, int[,]? matrix) where V : class
        {
            await Task.Yield();
            throw new InvalidOperationException($"query {items.Length}{map.Count}");
        }
    }
}

interface IWork
{
    Task<int> Do(string name);

    async Task Default()
    {
        await Task.Yield();
        throw new InvalidOperationException("default interface method");
    }
}

abstract class Worker
{
    internal virtual async ValueTask<int> Step(int number)
    {
        await Task.Yield();
        return number < 0 ? throw new ArgumentOutOfRangeException(nameof(number), number, "negative") : number;
    }
}

class Derived : Worker, IWork, IAsyncDisposable
{
    async Task<int> IWork.Do(string name) => await Step(name.Length - 10) + 1;

    internal override async ValueTask<int> Step(int number)
    {
        int doubled = await base.Step(number * 2);
        return doubled + 1;
    }

    public async ValueTask DisposeAsync()
    {
        await Task.Yield();
        throw new ObjectDisposedException(nameof(Derived));
    }
}

struct Amount(int number)
{
    internal async Task<int> Half()
    {
        int copy = number;
        await Task.Yield();
        return 10 / (copy / 2);
    }
}

readonly struct Refusal(string text) : INotifyCompletion
{
    public Refusal GetAwaiter() => this;
    public bool IsCompleted => false;
    public void OnCompleted(Action continuation) => ThreadPool.QueueUserWorkItem(_ => continuation());
    public int GetResult() => throw new NotSupportedException(text);
}

static class Async
{
    public static async Task AsyncNested() => Console.WriteLine(await Outer(3, "text"));

    static async Task<int> Outer(int depth, string text)
    {
        int sum = 0;
        for (int i = 0; i < depth; i++)
            sum += await Middle(i,
                                text);
        return sum;
    }

    static async Task<int> Middle(int number, string text)
    {
        await Task.Delay(1);
        int length = await
            Inner(number) +
            text.Length;
        return length;
    }

    static async Task<int> Inner(int number)
    {
        await Task.Yield();
        if (number == 2)
            throw new InvalidOperationException("inner");
        return number;
    }

    /// <summary>Nothing has been suspended.</summary>
    public static async Task AsyncAtOnce() => await AtOnce(2);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static async Task AtOnce(int depth)
    {
        if (depth == 0)
            throw new InvalidOperationException("at once");
        await AtOnce(depth - 1);
        await Task.Yield();
    }

    public static async Task AsyncValueTasks()
    {
        ValueTask<int> task = Value(4);
        GC.KeepAlive(task);
        Console.WriteLine(await task);
    }

    static async ValueTask<int> Value(int depth)
    {
        if (depth == 0)
            await Task.Yield();
        return depth > 0 ? await Value(depth - 1).ConfigureAwait(false) + 1 : int.Parse("x");
    }

    public static async Task AsyncGenerics() => await new Repository<string>.Query<int>().Run<string>(["a"], [], null);

    public static async Task AsyncRethrown()
    {
        try
        {
            await Inner(2);
        }
        catch (InvalidOperationException)
        {
            throw;
        }
    }

    public static async Task AsyncRethrownLater()
    {
        try
        {
            await Middle(2, "");
        }
        catch (InvalidOperationException)
        {
            await Task.Yield();
            throw;
        }
    }

    public static async Task AsyncThrownAgain()
    {
        try
        {
            await Middle(2, "");
        }
        catch (InvalidOperationException exception)
        {
            throw exception;
        }
    }

    public static async Task AsyncWrapped()
    {
        try
        {
            await Middle(2, "");
        }
        catch (Exception exception)
        {
            await Task.Yield();
            throw new ApplicationException("outer", exception);
        }
    }

    public static async Task AsyncDispatched()
    {
        ExceptionDispatchInfo? information = null;
        try
        {
            await Middle(2, "");
        }
        catch (Exception exception)
        {
            information = ExceptionDispatchInfo.Capture(exception);
        }
        await Task.Yield();
        await Dispatch(information!);
    }

    static async Task Dispatch(ExceptionDispatchInfo information)
    {
        await Task.Yield();
        information.Throw();
    }

    public static async Task AsyncAll() => await Task.WhenAll(Inner(1), Inner(2), Middle(2, ""), Task.Run(() => Inner(2)));

    public static async Task AsyncAllAwaited()
    {
        Task all = Task.WhenAll(Inner(2), Middle(2, ""));
        await ((Task)all).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        throw all.Exception!;
    }

    public static async Task AsyncWaited()
    {
        await Task.Yield();
        Middle(2, "").Wait();
    }

    public static async Task AsyncItems()
    {
        await foreach (int number in Numbers<string>(3))
            GC.KeepAlive(number);
    }

    static async IAsyncEnumerable<int> Numbers<T>(int count)
    {
        for (int i = 0; i < count; i++)
        {
            await Task.Yield();
            yield return await Inner(i);
        }
    }

    public static async Task AsyncIterator()
    {
        await Task.Yield();
        foreach (object number in (IEnumerable)Iterate(2))
            await Inner((int)number);

        static IEnumerable<int> Iterate(int count)
        {
            for (int i = 0; i < count; i++)
                yield return i;
            throw new InvalidOperationException("iterator");
        }
    }

    public static async Task AsyncDisposed()
    {
        await using var derived = new Derived();
        await Task.Yield();
    }

    public static async Task AsyncFinally()
    {
        try
        {
            await Middle(2, "");
        }
        finally
        {
            await Task.Delay(1);
            Console.Out.Flush();
        }
    }

    public static async Task AsyncFromFinally()
    {
        try
        {
            await Inner(2);
        }
        finally
        {
            await Value(1);
        }
    }

    public static async Task AsyncFiltered()
    {
        try
        {
            await Filter("never");
        }
        catch (InvalidOperationException exception) when (exception.Message == "not that")
        {
        }

        static async Task Filter(string text)
        {
            try
            {
                await Middle(2, "");
            }
            catch (Exception exception) when (exception.Message == text)
            {
                await Task.Yield();
            }
        }
    }

    public static async Task AsyncLocal()
    {
        int captured = 2;
        await Local<string>("a");
        captured++;

        async Task<int> Local<T>(T value)
        {
            await Task.Yield();
            return await Inner(captured) + value!.GetHashCode();
        }
    }

    public static async Task AsyncLambda()
    {
        int captured = 2;
        Func<string, Task<int>> lambda = async text =>
        {
            await Task.Yield();
            return await Inner(captured) + text.Length;
        };
        await Task.Run(async () => await lambda("a"));
    }

    public static async Task AsyncStruct() => await new Amount(1).Half();

    public static async Task AsyncVirtual() => await ((IWork)new Derived()).Do("name");

    public static async Task AsyncDefault() => await ((IWork)new Derived()).Default();

    public static async Task AsyncSource()
    {
        var source = new TaskCompletionSource<int>();
        _ = Task.Run(() => source.SetException(new InvalidOperationException("never thrown")));
        await Task.Yield();
        await source.Task;
    }

    public static async Task AsyncFailed() => await Task.FromException<int>(new TimeoutException("failed"));

    public static async Task AsyncCancelled()
    {
        using var source = new CancellationTokenSource(10);
        await Task.Delay(60000, source.Token);
    }

    public static async Task AsyncCustom()
    {
        int number = await new Refusal("refused");
        Console.WriteLine(number);
    }

    public static async Task AsyncParallel() => await Parallel.ForEachAsync(new[] { 1, 2 }, async (number, _) => await Middle(2, ""));

    public static async Task AsyncDeep() => await Recurse(60);

    static async Task<int> Recurse(int depth)
    {
        if (depth == 0)
        {
            await Task.Yield();
            throw new InvalidOperationException("deep");
        }
        return await Recurse(depth - 1) + 1;
    }

    /// <summary>The code is compiled again while the loop runs.</summary>
    public static async Task AsyncLoop()
    {
        int sum = 0;
        for (int i = 0; i < 200000; i++)
            sum += await Counted(i);
        Console.WriteLine(sum);

        static async Task<int> Counted(int number)
        {
            if (number % 1000 == 999)
                await Task.Yield();
            return 1000 / (199999 - number);
        }
    }

    public static async Task AsyncHidden() => await Hide();

    [StackTraceHidden]
    static async Task Hide()
    {
        await Task.Yield();
        await Aggressive();
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static async Task Aggressive()
    {
        await Task.Yield();
        await Inner(2);
    }

    public static async Task AsyncHiddenLast() => await HideThrow();

    [StackTraceHidden]
    static async Task HideThrow()
    {
        await Task.Yield();
        throw new InvalidOperationException("hidden");
    }

    /// <summary>Task-returning methods that are not async.</summary>
    public static async Task AsyncForwarded() => await Forward(1);

    static Task<int> Forward(int depth) => depth > 0 ? Forward(depth - 1) : Middle(2, "");

    public static async Task AsyncOnContext()
    {
        SynchronizationContext.SetSynchronizationContext(new SynchronizationContext());
        await Middle(2, "");
    }

    public static async Task AsyncTyped()
    {
        try
        {
            await Task.WhenAll(Outer(3, ""), Value(0).AsTask());
        }
        catch (InvalidOperationException exception)
        {
            try
            {
                await Value(2);
            }
            catch (FormatException second)
            {
                throw new AggregateException("two", exception, second);
            }
        }
    }

    public static async Task AsyncHttp()
    {
        using var client = new HttpClient();
        await client.GetStringAsync("http://127.0.0.1:1/");
    }

    public static async Task AsyncXml()
    {
        using var stream = new MemoryStream(Encoding.UTF8.GetBytes("<a>\n<b></a>"));
        using var reader = System.Xml.XmlReader.Create(stream, new System.Xml.XmlReaderSettings { Async = true });
        while (await reader.ReadAsync()) { }
    }

    public static async Task AsyncElement()
    {
        using var stream = new MemoryStream(Encoding.UTF8.GetBytes("<a><b>text</a>"));
        await System.Xml.Linq.XDocument.LoadAsync(stream, System.Xml.Linq.LoadOptions.None, CancellationToken.None);
    }

    public static async Task AsyncDeflated()
    {
        using var stream = new DeflateStream(new MemoryStream([0x07, 0xff, 0xff, 0xff]), CompressionMode.Decompress);
        await stream.CopyToAsync(Stream.Null);
    }

    public static async Task AsyncPipe()
    {
        using var pipe = new System.IO.Pipes.NamedPipeClientStream(".", "not-there/at-all");
        await pipe.ConnectAsync(1);
    }

    public static async Task AsyncJson()
    {
        using var stream = new MemoryStream("{\"a\": \"b\"}"u8.ToArray());
        await System.Text.Json.JsonSerializer.DeserializeAsync<Dictionary<string, int>>(stream);
    }

    public static async Task AsyncFile() => await File.ReadAllTextAsync("/not/there/at/all.txt");
}

/// <summary>No exceptions that could be caught.</summary>
static class AsyncEnds
{
    public static async Task AsyncFailFast()
    {
        await Task.Yield();
        await Fail(2);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static async Task<int> Fail(int depth)
    {
        if (depth == 0)
            Environment.FailFast("async", new InvalidOperationException("never thrown"));
        return await Fail(depth - 1) + 1;
    }

    /// <summary>Each call returns a Task, which is awaited later.</summary>
    public static async Task AsyncFailFastAtOnce()
    {
        Task<int> task = FailLater(2);
        await Task.Yield();
        Console.WriteLine(await task);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static async Task<int> FailLater(int depth)
    {
        if (depth == 0)
            Environment.FailFast("at once");
        Task<int> task = FailLater(depth - 1);
        await Task.Yield();
        return await task + 1;
    }

    public static async Task AsyncFailFastInCatch()
    {
        try
        {
            await Task.Yield();
            await Fail("x");
        }
        catch (FormatException exception)
        {
            Environment.FailFast("caught", exception);
        }

        static async Task<int> Fail(string text)
        {
            await Task.Yield();
            return int.Parse(text);
        }
    }

    public static async Task AsyncOverflow()
    {
        await Task.Yield();
        Console.WriteLine(await Overflow(1));
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static async Task<int> Overflow(int depth) => depth == 0 ? 0 : await Overflow(depth + 1) + 1;

    public static async Task AsyncOverflowAtOnce() => Console.WriteLine(await OverflowLater(1));

    [MethodImpl(MethodImplOptions.NoInlining)]
    static async ValueTask<int> OverflowLater(int depth)
    {
        if (depth == 0)
            return 0;
        Task<int> task = OverflowLater(depth + 1).AsTask();
        return await task + 1;
    }

    public static async Task AsyncViolation()
    {
        await Task.Yield();
        Console.WriteLine(Read());

        static unsafe int Read() => *(int*)(nint)0x12345678;
    }

    public static async Task AsyncVoidLambda()
    {
        Action action = async () =>
        {
            await Task.Yield();
            throw new InvalidOperationException("async void lambda");
        };
        action();
        await Task.Delay(60000);
    }
}
