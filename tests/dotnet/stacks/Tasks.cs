namespace Stacks;

/// <summary>Places on the thread pool and in state machines.</summary>
internal static partial class Places
{
    [Place]
    private static void AsyncBeforeAwait()
    {
        Deeper(3).GetAwaiter().GetResult();

        static async Task<int> Deeper(int depth)
        {
            if (depth == 0)
                Park(nameof(AsyncBeforeAwait));
            else
                await Deeper(depth - 1);
            return depth;
        }
    }

    [Place]
    private static void AsyncAfterAwait() => AfterAwait(2).Wait();

    private static async Task AfterAwait(int depth)
    {
        await Task.Yield();
        if (depth > 0)
            await AfterAwait(depth - 1);
        else
            Park(nameof(AsyncAfterAwait));
    }

    [Place]
    private static void AsyncContinuation() => Continuation(2).AsTask().Wait();

    private static async ValueTask<int> Continuation(int depth)
    {
        await Task.Delay(1).ConfigureAwait(false);
        if (depth > 0)
        {
            int result = await Continuation(depth - 1);
            if (depth == 2)
                Park(nameof(AsyncContinuation));
            return result + 1;
        }
        return 0;
    }

    [Place]
    private static void AsyncCatch() => CatchAfterAwait().Wait();

    private static async Task CatchAfterAwait()
    {
        try
        {
            await Task.Yield();
            Fail(1);
        }
        catch (InvalidOperationException)
        {
            await Task.Yield();
            Park(nameof(AsyncCatch));
        }
        finally
        {
            await Task.Yield();
        }
    }

    [Place]
    private static void AsyncFilter() => FilterAfterAwait().Wait();

    private static async Task FilterAfterAwait()
    {
        try
        {
            await Task.Yield();
            Fail(1);
        }
        catch (InvalidOperationException) when (Park(nameof(AsyncFilter)))
        {
        }
    }

    [Place]
    private static void AsyncIterator()
    {
        Sum().Wait();

        static async Task Sum()
        {
            await foreach (int item in Items())
                GC.KeepAlive(item);
        }

        static async IAsyncEnumerable<int> Items()
        {
            yield return 1;
            await Task.Yield();
            Park(nameof(AsyncIterator));
            yield return 2;
        }
    }

    [Place]
    private static void AsyncLambda()
    {
        Func<int, Task> lambda = async x =>
        {
            await Task.Yield();
            Park(nameof(AsyncLambda));
            GC.KeepAlive(x);
        };
        lambda(1).Wait();
    }

    [Place]
    private static void InTask() => Task.Run(() => Recurse(2, () => Park(nameof(InTask)))).Wait();

    [Place]
    private static void InContinuation() => Task.Run(() => 1).ContinueWith(task => Park(nameof(InContinuation)) ? task.Result : 0).Wait();

    [Place]
    private static void InPool() => ThreadPool.QueueUserWorkItem(_ => Park(nameof(InPool)));

    [Place]
    private static void InTimer()
    {
        // Started only after it is assigned: on a busy machine a timer of 1 ms fires before its constructor returns.
        Timer? timer = null;
        timer = new Timer(_ => { timer!.Dispose(); Park(nameof(InTimer)); });
        timer.Change(1, Timeout.Infinite);
    }

    [Place]
    private static void InParallel() => Parallel.For(0, 4, i => GC.KeepAlive(i == 0 && Park(nameof(InParallel))));

    [Place]
    private static void InLazy() => GC.KeepAlive(new Lazy<bool>(() => Park(nameof(InLazy))).Value);
}
