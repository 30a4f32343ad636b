using System.Net;
using System.Net.Http;
using System.Net.Sockets;

namespace Work;

/// <summary>
/// Fills the queues of the thread pool while all of its workers wait, starts timers and sends requests that nobody
/// answers; and writes what it did, a line for each row: the kind, the method or request, and how many.
/// </summary>
public static class Program
{
    private static readonly List<object> kept = [];
    private static readonly ManualResetEventSlim never = new();
    private static readonly List<string> truth = [];

    private sealed class Job : IThreadPoolWorkItem
    {
        public void Execute() => Console.WriteLine("never");
    }

    private static void RunTask() => Console.WriteLine("never");

    private static void RunLocal() => Console.WriteLine("never");

    private static void RunCallback(object? state) => Console.WriteLine("never");

    private static void Tick(object? state)
    {
    }

    private static void Once(object? state) => Console.WriteLine("never");

    private static void Stopped(object? state) => Console.WriteLine("never");

    private static async Task Continue(Task task)
    {
        await task.ConfigureAwait(false);
        Console.WriteLine("never");
    }

    private static string Listen()
    {
        var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        kept.Add(listener);
        return $"http://127.0.0.1:{((IPEndPoint)listener.LocalEndpoint).Port}";
    }

    /// <summary>Answers one request, so that an object of one stays that is no longer in flight.</summary>
    private static void SendAnswered(HttpClient client)
    {
        var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        var request = new HttpRequestMessage(HttpMethod.Get, $"http://127.0.0.1:{((IPEndPoint)listener.LocalEndpoint).Port}/answered");
        Task<HttpResponseMessage> answer = client.SendAsync(request);
        using (Socket socket = listener.AcceptSocket())
        {
            socket.Receive(new byte[4096]);
            socket.Send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"u8);
            answer.Wait();
        }
        kept.Add(request);
    }

    private static void Send()
    {
        var client = new HttpClient { Timeout = TimeSpan.FromMinutes(10) };
        var patient = new HttpClient { Timeout = Timeout.InfiniteTimeSpan };
        string address = Listen();
        var job = new CancellationTokenSource(TimeSpan.FromHours(3)); /* older than what is sent with its token */
        Thread.Sleep(1500);
        SendAnswered(client);
        for (int i = 0; i < 3; i++)
            kept.Add(client.GetStringAsync($"{address}/items/{i}?full=1", job.Token));
        Console.WriteLine($"SENT {Environment.TickCount64}");
        kept.Add(patient.PostAsync($"{address}/upload", new StringContent("text"), job.Token));
        for (int i = 0; i < 3; i++)
            truth.Add($"sent\tGET {address}/items/{i}?full=1\t1");
        truth.Add($"sent without time\tPOST {address}/upload\t1");
    }

    private static void StartTimers()
    {
        for (int i = 0; i < 3; i++)
            kept.Add(new Timer(Tick, null, 3_600_000, 30_000));
        for (int i = 0; i < 2; i++)
            kept.Add(new Timer(Once, null, 7_200_000, Timeout.Infinite));
        var stopped = new Timer(Stopped, null, 3_600_000, 1000);
        stopped.Change(Timeout.Infinite, Timeout.Infinite);
        kept.Add(stopped);
        var disposed = new Timer(Stopped, null, 3_600_000, 1000);
        disposed.Dispose();
        kept.Add(disposed);
        truth.Add("timer\tWork.Program.Tick(object)\t3");
        truth.Add("timer\tWork.Program.Once(object)\t2");
    }

    /// <summary>A worker that waits, once all others do. What the first of them starts goes into its own queue.</summary>
    private static void Wait(CountdownEvent waiting, ManualResetEventSlim ready, bool first)
    {
        waiting.Signal();
        waiting.Wait();
        for (int i = 0; i < 4 && first; i++)
            kept.Add(Task.Factory.StartNew(RunLocal));
        if (first)
            ready.Set();
        never.Wait();
    }

    private static void FillPool()
    {
        var sources = Enumerable.Range(0, 2).Select(_ => new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously)).ToArray();
        foreach (TaskCompletionSource one in sources)
            kept.Add(Continue(one.Task));
        ThreadPool.GetMaxThreads(out int workers, out _);
        var waiting = new CountdownEvent(workers); /* never disposed: a worker may yet be about to wait */
        var ready = new ManualResetEventSlim();
        for (int i = 0; i < workers; i++)
        {
            bool first = i == 0;
            ThreadPool.UnsafeQueueUserWorkItem(_ => Wait(waiting, ready, first), null);
        }
        ready.Wait();
        for (int i = 0; i < 100; i++)
            kept.Add(Task.Run(RunTask));
        for (int i = 0; i < 3; i++)
            ThreadPool.QueueUserWorkItem(RunCallback);
        ThreadPool.UnsafeQueueUserWorkItem(new Job(), false);
        foreach (TaskCompletionSource one in sources)
            one.SetResult();
        truth.Add("task\tWork.Program.RunTask()\t100");
        truth.Add("task\tWork.Program.RunLocal()\t4");
        truth.Add("callback\tWork.Program.RunCallback(object)\t3");
        truth.Add("object\tWork.Program+Job\t1");
        truth.Add("async method\tWork.Program.Continue(System.Threading.Tasks.Task)\t2");
        truth.Add($"queued\t\t{ThreadPool.PendingWorkItemCount}");
    }

    public static void Main(string[] arguments)
    {
        ThreadPool.SetMaxThreads(Environment.ProcessorCount, 1000);
        Send();
        StartTimers();
        Thread.Sleep(1000); // until the requests wait
        FillPool();
        File.WriteAllLines(arguments[0], truth);
        Console.WriteLine($"TIME {Environment.TickCount64}");
        Console.WriteLine($"READY {Environment.ProcessId}");
        Console.ReadLine();
        GC.KeepAlive(kept);
    }
}
