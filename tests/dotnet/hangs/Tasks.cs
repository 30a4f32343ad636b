using System.IO.Pipes;
using System.Threading.Channels;
using static Hangs.Program;

namespace Hangs;

/// Tasks that never complete.
static class Tasks
{
    static readonly TaskCompletionSource<int> never = new();
    static readonly SemaphoreSlim gate = new(0);

    static async Task<int> OnSource()
    {
        int value = await never.Task; // @CompletionSource @AllOfSeveral @Unwrapped
        return value + 1;
    }

    public static void CompletionSource()
    {
        Task<int> task = OnSource();
        Ready();
        task.Wait();
    }

    static async Task<int> Finished()
    {
        await Task.Yield();
        return 1;
    }

    public static void AllOfSeveral()
    {
        Task<int[]> all = Task.WhenAll(Finished(), OnSource(), Finished());
        Ready();
        all.GetAwaiter().GetResult();
    }

    /// A console program that awaits tasks without results: which of them are missing, nothing on its stack says.
    public static void AllWithoutResults()
    {
        Task all = Await();
        Ready();
        all.GetAwaiter().GetResult();

        static async Task Await() => await Task.WhenAll((Task)Finished(), OnSource()); // @AllWithoutResults
    }

    public static void Unwrapped()
    {
        Task<int> task = Task.Run(async () => await OnSource());
        Thread.Sleep(100);
        Ready();
        task.Wait(); // @Unwrapped.wait
    }

    static async Task<int> Request(int number)
    {
        await gate.WaitAsync(); // @SemaphoreOfRequests
        return number;
    }

    public static void SemaphoreOfRequests()
    {
        Task<int[]> all = Task.WhenAll(Enumerable.Range(0, 5).Select(Request));
        Ready();
        all.Wait();
    }

    static Task? first, second;

    static async Task AwaitOther(Func<Task?> other)
    {
        await Task.Yield();
        while (other() == null)
            await Task.Delay(1);
        await other()!; // @AsyncCycle
    }

    public static void AsyncCycle()
    {
        first = AwaitOther(() => second);
        second = AwaitOther(() => first);
        Thread.Sleep(200);
        Ready();
        first.Wait();
    }

    static async Task<int> Slow()
    {
        await Task.Yield();
        return 1;
    }

    public static void StarvedPool()
    {
        ThreadPool.SetMinThreads(2, 1);
        ThreadPool.SetMaxThreads(2, 1);
        for (int i = 0; i < 8; i++)
            ThreadPool.QueueUserWorkItem(_ => Slow().Wait()); // @StarvedPool
        Thread.Sleep(500);
        Ready();
        Thread.Sleep(Timeout.Infinite);
    }

    static async Task<int> FromChannel(ChannelReader<int> reader) => await reader.ReadAsync(); // @EmptyChannel

    public static void EmptyChannel()
    {
        Task<int> task = FromChannel(Channel.CreateUnbounded<int>().Reader);
        Ready();
        task.Wait();
    }

    static async Task<int> FromPipe(PipeStream pipe)
    {
        var bytes = new byte[1];
        return await pipe.ReadAsync(bytes); // @NamedPipeTask
    }

    public static void NamedPipeTask()
    {
        string name = "cdacq-hangs-" + Environment.ProcessId;
        using var server = new NamedPipeServerStream(name, PipeDirection.InOut, 1, PipeTransmissionMode.Byte, PipeOptions.Asynchronous);
        using var client = new NamedPipeClientStream(".", name, PipeDirection.InOut, PipeOptions.Asynchronous);
        Task connected = server.WaitForConnectionAsync();
        client.Connect();
        connected.Wait();
        Task<int> task = FromPipe(client);
        Ready();
        task.Wait();
    }

    static async Task<int> AnyOf()
    {
        Task<int> any = await Task.WhenAny(never.Task, OnSource()); // @AnyTask
        return any.Result;
    }

    public static void AnyTask()
    {
        Task<int> task = AnyOf();
        Ready();
        task.Wait();
    }
}
