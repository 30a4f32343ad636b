using System.Diagnostics;
using System.IO.Pipes;
using System.Net;
using System.Net.Http;
using System.Net.Sockets;
using System.Threading.Channels;
using System.Threading.Tasks.Dataflow;
using static Hangs.Program;

namespace Hangs;

/// Services that no longer answer while none of their threads waits for what is wrong. The line whose method a report must
/// name has the mark.
static class Stalls
{
    static readonly List<object> kept = [];
    static readonly ManualResetEventSlim shutdown = new();

    /// As a service does: the main thread waits until somebody ends the process.
    static void Serve(params IEnumerable<Task> work)
    {
        kept.AddRange(work);
        Thread.Sleep(300);
        Ready();
        shutdown.Wait();
    }

    static IEnumerable<Task> Many(int count, Func<int, Task> start) => Enumerable.Range(0, count).Select(start).ToArray();

    static string Silent()
    {
        var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        kept.Add(listener);
        return $"http://127.0.0.1:{((IPEndPoint)listener.LocalEndpoint).Port}/orders/12";
    }

    /// A slot is not given back where a request fails.
    public static void LeakedSlots()
    {
        var slots = new SemaphoreSlim(4);
        Serve(Many(40, Request));

        async Task Request(int number)
        {
            await slots.WaitAsync(); // @LeakedSlots
            await Task.Yield();
            if (number >= 4)
                slots.Release();
        }
    }

    /// A lock that the same flow of calls enters again.
    public static void LockTwice()
    {
        var gate = new SemaphoreSlim(1, 1);
        Serve(Update());

        async Task Update()
        {
            await gate.WaitAsync();
            await Save();
            gate.Release();
        }

        async Task Save()
        {
            await gate.WaitAsync(); // @LockTwice
            gate.Release();
        }
    }

    /// The signal comes before anybody awaits it, and is not kept.
    public static void LostWakeup()
    {
        TaskCompletionSource? signal = null;
        signal?.SetResult();
        Serve(Many(3, _ => Await()));

        async Task Await()
        {
            signal ??= new TaskCompletionSource();
            await signal.Task; // @LostWakeup
        }
    }

    /// A message is lost, so that its answer never comes.
    public static void LostAnswers()
    {
        var answers = new Dictionary<int, TaskCompletionSource<string>>();
        kept.Add(answers);
        Serve(Many(25, Call));

        async Task<string> Call(int number)
        {
            answers[number] = new(TaskCreationOptions.RunContinuationsAsynchronously);
            return await answers[number].Task; // @LostAnswers
        }
    }

    /// A queue without a bound, whose only consumer is stuck.
    public static void StuckConsumer()
    {
        var queue = Channel.CreateUnbounded<byte[]>();
        var never = new TaskCompletionSource();
        Task consumer = Consume();
        for (int i = 0; i < 100_000; i++)
            queue.Writer.TryWrite(new byte[16]);
        Serve(consumer);

        async Task Consume()
        {
            await foreach (byte[] item in queue.Reader.ReadAllAsync())
                await Store(item);
        }

        async Task Store(byte[] item)
        {
            await never.Task; // @StuckConsumer
            kept.Add(item);
        }
    }

    /// Nobody takes from a queue that is full.
    public static void FullQueue()
    {
        var queue = Channel.CreateBounded<int>(8);
        Serve(Many(30, Produce));

        async Task Produce(int number)
        {
            await queue.Writer.WriteAsync(number); // @FullQueue
        }
    }

    /// Nobody gives to a queue.
    public static void SilentProducer()
    {
        var queue = Channel.CreateUnbounded<int>();
        Serve(Many(6, _ => Consume()));

        async Task Consume()
        {
            while (await queue.Reader.WaitToReadAsync()) // @SilentProducer
                queue.Reader.TryRead(out _);
        }
    }

    public static void RequestsWithoutTimeout()
    {
        var client = new HttpClient { Timeout = Timeout.InfiniteTimeSpan };
        string address = Silent();
        Serve(Many(20, _ => Fetch()));

        async Task<string> Fetch()
        {
            return await client.GetStringAsync(address); // @RequestsWithoutTimeout
        }
    }

    /// Two connections for twenty requests, and a server that answers none.
    public static void ExhaustedConnections()
    {
        var client = new HttpClient(new SocketsHttpHandler { MaxConnectionsPerServer = 2 });
        string address = Silent();
        Serve(Many(20, _ => Load()));

        async Task<int> Load()
        {
            using HttpResponseMessage answer = await client.GetAsync(address); // @ExhaustedConnections
            return (int)answer.StatusCode;
        }
    }

    /// A pool of the program, whose connections nobody gives back.
    public static void ExhaustedPool()
    {
        var pool = Channel.CreateBounded<object>(2);
        pool.Writer.TryWrite(new object());
        pool.Writer.TryWrite(new object());
        Serve(Many(12, _ => Query()));

        async Task Query()
        {
            object connection = await Rent();
            kept.Add(connection);
        }

        async Task<object> Rent()
        {
            return await pool.Reader.ReadAsync(); // @ExhaustedPool
        }
    }

    static Task? left, right;

    public static void TasksInCircle()
    {
        left = AwaitOther(() => right);
        right = AwaitOther(() => left);
        Serve();
    }

    static async Task AwaitOther(Func<Task?> other)
    {
        await Task.Yield();
        while (other() == null)
            await Task.Delay(1);
        await other()!; // @TasksInCircle
    }

    static async Task AwaitInTime(Func<Task?> other)
    {
        await Task.Yield();
        while (other() == null)
            await Task.Delay(1);
        await other()!.WaitAsync(TimeSpan.FromHours(1));
    }

    /// No deadlock: a time-out ends it.
    public static void CircleWithTimeout()
    {
        left = AwaitOther(() => right);
        right = AwaitInTime(() => left);
        Serve();
    }

    /// One of many never completes.
    public static void OneOfAll()
    {
        var never = new TaskCompletionSource();
        Serve(Batch());

        async Task Batch()
        {
            await Task.WhenAll(Many(30, Part)); // @OneOfAll
        }

        async Task Part(int number)
        {
            await Task.Yield();
            if (number == 17)
                await never.Task; // @OneOfAll
        }
    }

    public static void NeverCancelled()
    {
        using var cancellation = new CancellationTokenSource();
        Serve(Many(5, _ => Watch()));

        async Task Watch()
        {
            await Task.Delay(Timeout.Infinite, cancellation.Token); // @NeverCancelled
        }
    }

    public static void SilentPeer()
    {
        var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        Serve(Many(10, _ => Read()));

        async Task Read()
        {
            var socket = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
            kept.Add(socket);
            socket.Connect(listener.LocalEndpoint);
            await socket.ReceiveAsync(new byte[64]); // @SilentPeer
        }
    }

    /// What fills a block of a data flow waits for a target that nobody has linked.
    public static void FullBlock()
    {
        var block = new BufferBlock<int>(new DataflowBlockOptions { BoundedCapacity = 8 });
        Serve(Fill());

        async Task Fill()
        {
            for (int i = 0; ; i++)
                await block.SendAsync(i); // @FullBlock
        }
    }

    public static void NeverStarted()
    {
        var job = new Task(() => kept.Clear());
        Serve(Await());

        async Task Await()
        {
            await job; // @NeverStarted
        }
    }

    /// What should complete a task fails first, and nobody looks at that.
    public static void LostFailure()
    {
        var done = new TaskCompletionSource();
        Serve(Await(), Work());

        async Task Work()
        {
            await Task.Yield();
            if (kept != null)
                throw new InvalidOperationException("lost");
            done.SetResult();
        }

        async Task Await()
        {
            await done.Task; // @LostFailure
        }
    }

    public static void ChildThatStays()
    {
        Process child = Process.Start("sleep", "1000000");
        Console.WriteLine($"child {child.Id}");
        Serve(Run());

        async Task Run()
        {
            await child.WaitForExitAsync(); // @ChildThatStays
        }
    }

    public static void NoClient()
    {
        string name = $"cdacq-stall-{Environment.ProcessId}";
        Serve(Accept());

        async Task Accept()
        {
            using var server = new NamedPipeServerStream(name, PipeDirection.InOut, 1, PipeTransmissionMode.Byte, PipeOptions.Asynchronous);
            await server.WaitForConnectionAsync(); // @NoClient
        }
    }

    /// A lock is held over a call that does not return, and all others queue for it.
    public static void LockOverCall()
    {
        var gate = new SemaphoreSlim(1, 1);
        var client = new HttpClient { Timeout = Timeout.InfiniteTimeSpan };
        string address = Silent();
        Serve(Many(15, _ => Refresh()));

        async Task Refresh()
        {
            await gate.WaitAsync(); // @LockOverCall
            await client.GetStringAsync(address); // @LockOverCall
            gate.Release();
        }
    }
}
