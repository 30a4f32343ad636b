using System.Net;
using System.Net.Http;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Threading.Channels;

namespace Pending;

/// <summary>Chains for each thing that async methods wait for, and of each shape.</summary>
public static class Plants
{
    private static readonly SemaphoreSlim taken = new(0), timed = new(0);
    private static readonly TaskCompletionSource never = new();
    private static readonly TaskCompletionSource<int> value = new(), first = new(), second = new();
    private static readonly Channel<int> unbounded = Channel.CreateUnbounded<int>(), stream = Channel.CreateUnbounded<int>(),
        single = Channel.CreateUnbounded<int>(new UnboundedChannelOptions { SingleReader = true }),
        bounded = Channel.CreateBounded<int>(2);
    private static readonly CancellationTokenSource cancellation = new();
    private static readonly HttpClient client = new() { Timeout = Timeout.InfiniteTimeSpan };
    private static readonly PeriodicTimer periodic = new(TimeSpan.FromHours(1));
    private static readonly List<object> kept = [];
    private static Task shared = null!, ringA = null!, ringB = null!;

    public static async Task Many(int kind)
    {
        await (kind == 0 ? Task.Delay(Timeout.Infinite) : kind == 1 ? taken.WaitAsync() : kind == 2 ? never.Task : ManyInner());
    }

    private static async Task ManyInner() => await Task.Delay(3_600_000);

    private static async Task Outer(Plant plant, Func<Plant, Task> inner)
    {
        await Task.CompletedTask;
        plant.Note(); await Middle(plant, inner);
    }

    private static async Task<int> Middle(Plant plant, Func<Plant, Task> inner)
    {
        plant.Note(); await inner(plant);
        return 1;
    }

    private static async Task Delay(Plant plant)
    {
        plant.Note(); await Task.Delay(3_600_000);
    }

    private static async Task Endless(Plant plant)
    {
        plant.Note(); await Task.Delay(Timeout.Infinite);
    }

    private static async Task Cancel(Plant plant)
    {
        plant.Note(); await Task.Delay(Timeout.Infinite, cancellation.Token);
    }

    private static async Task Semaphore(Plant plant)
    {
        plant.Note(); await taken.WaitAsync();
    }

    private static async Task TimedSemaphore(Plant plant)
    {
        plant.Note(); await timed.WaitAsync(3_600_000);
    }

    private static async Task Source(Plant plant)
    {
        plant.Note(); await never.Task;
    }

    private static async Task<int> SourceOfValue(Plant plant)
    {
        plant.Note(); return await value.Task.ConfigureAwait(false);
    }

    private static async Task Read(Plant plant)
    {
        plant.Note(); await unbounded.Reader.ReadAsync();
    }

    private static async Task ReadSingle(Plant plant)
    {
        plant.Note(); await single.Reader.WaitToReadAsync();
    }

    private static async Task ReadAll(Plant plant)
    {
        plant.Note(); await foreach (int item in stream.Reader.ReadAllAsync()) GC.KeepAlive(item);
    }

    private static async Task Write(Plant plant)
    {
        plant.Note(); await bounded.Writer.WriteAsync(3);
    }

    private static async Task All(Plant plant)
    {
        plant.Note(); await Task.WhenAll(first.Task, Task.FromResult(1), second.Task);
    }

    private static async Task AllPlain(Plant plant)
    {
        plant.Note(); await Task.WhenAll(first.Task, never.Task);
    }

    private static async Task Any(Plant plant)
    {
        plant.Note(); await Task.WhenAny(first.Task, second.Task, value.Task);
    }

    private static async Task Limited(Plant plant)
    {
        plant.Note(); await never.Task.WaitAsync(TimeSpan.FromHours(1));
    }

    private static async Task Run(Plant plant)
    {
        plant.Note(); await Task.Run(async () =>
        {
            plant.Note("<Run>"); await InRun(plant);
        });
    }

    private static async Task InRun(Plant plant)
    {
        plant.Note(); await never.Task;
    }

    private static async Task Receive(Plant plant)
    {
        using var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        var socket = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        socket.Connect(listener.LocalEndpoint);
        kept.Add(listener.AcceptSocket());
        plant.Note(); await socket.ReceiveAsync(new byte[16]);
    }

    private static async Task Request(Plant plant)
    {
        var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        kept.Add(listener);
        plant.Note(); await client.GetStringAsync($"http://127.0.0.1:{((IPEndPoint)listener.LocalEndpoint).Port}/silent/path");
    }

    private static async Task Tick(Plant plant)
    {
        plant.Note(); await periodic.WaitForNextTickAsync();
    }

    private static async Task Work(Plant plant)
    {
        plant.Note(); await Task.Run(Block);
    }

    private static void Block() => Thread.Sleep(Timeout.Infinite);

    private static async Task Running(Plant plant)
    {
        plant.Note(); await Busy();
    }

    private static async Task Busy()
    {
        await Task.Yield();
        Thread.Sleep(Timeout.Infinite);
    }

    private static async Task Load(Plant plant)
    {
        plant.Note(); await never.Task;
    }

    private static async Task UseShared(Plant plant)
    {
        plant.Note(); await shared;
    }

    private static async Task RingA(Plant plant)
    {
        await Task.Yield();
        while (ringB == null)
            await Task.Delay(10);
        plant.Note(); await ringB;
    }

    private static async Task RingB(Plant plant)
    {
        await Task.Yield();
        while (ringA == null)
            await Task.Delay(10);
        plant.Note(); await ringA;
    }

    private static async IAsyncEnumerable<int> Items(Plant plant)
    {
        yield return 1;
        plant.Note(); await Pooled(plant);
        yield return 2;
    }

    private static async Task Enumerate(Plant plant)
    {
        plant.Note(); await foreach (int item in Items(plant)) GC.KeepAlive(item);
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    private static async ValueTask Pooled(Plant plant)
    {
        plant.Note(); await PooledAgain(plant);
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    private static async ValueTask PooledAgain(Plant plant)
    {
        plant.Note(); await OfValue(plant);
    }

    private static async ValueTask OfValue(Plant plant)
    {
        plant.Note(); await never.Task;
    }

    private static async void Void(Plant plant)
    {
        plant.Note(); await never.Task;
    }

    /// Nobody can complete it.
    private static async Task Orphaned(Plant plant)
    {
        plant.Note(); await new TaskCompletionSource().Task;
    }

    public static void StartAll()
    {
        bounded.Writer.TryWrite(1);
        bounded.Writer.TryWrite(2);
        Program.Start(@"^Task\.Delay, due in (3[56]\d\d\.\d( to 3[56]\d\d\.\d)?|at most 3[56]\d\d\.\d) s$", plant => Outer(plant, Delay), 50);
        Program.Start(@"^Task\.Delay without end$", plant => Outer(plant, Endless), 3);
        Program.Start(@"^cancellation: Task\.Delay without end$", Cancel, 2);
        Program.Start(@"^SemaphoreSlim 0x[0-9a-f]+ \(count 0, 7 waiters\)$", Semaphore, 7);
        Program.Start(@"^SemaphoreSlim 0x[0-9a-f]+ \(count 0, 2 waiters\), time-out in ", TimedSemaphore, 2);
        Program.Start(@"^TaskCompletionSource 0x[0-9a-f]+$", plant => Outer(plant, Source), 4);
        Program.Start(@"^TaskCompletionSource 0x[0-9a-f]+$", SourceOfValue);
        Program.Start(@"^Channel 0x[0-9a-f]+ \(to read", Read, 3);
        Program.Start(@"^Channel 0x[0-9a-f]+ \(to read", ReadSingle);
        Program.Start(@"^Channel 0x[0-9a-f]+ \(to read", ReadAll);
        Program.Start(@"^Channel 0x[0-9a-f]+ \(to write, 2 items, capacity 2\)$", Write, 2);
        Program.Start(@"^Task\.WhenAll, 2 of 3 tasks missing: ", All);
        Program.Start(@"^Task\.WhenAll, 2 (of 2 )?tasks missing", AllPlain);
        Program.Start(@"^Task\.WhenAny$", Any);
        Program.Start(@"^TaskCompletionSource 0x[0-9a-f]+, time-out in ", Limited);
        Program.Start(@"^TaskCompletionSource 0x[0-9a-f]+$", Run);
        Program.Start(@"^socket: Receive with 127\.0\.0\.1:\d+$", Receive);
        Program.Start(@"^HTTP request GET http://127\.0\.0\.1:\d+/silent/path, ", Request);
        Program.Start(@"^PeriodicTimer 0x[0-9a-f]+, due in ", Tick);
        Program.Start(@"^the task of Pending\.Plants\.Block\(\) \(Running\)$", Work);
        Program.Start(@"^a method that runs(: Pending\.Plants\.Busy\(\))?$", Running);
        Program.Start(@"^TaskCompletionSource 0x[0-9a-f]+$", plant => shared = Load(plant));
        Program.Start(@"^another task: Pending\.Plants\.Load\(Pending\.Plant\)$", UseShared, 4);
        Program.Start(@"^deadlock: ", plant =>
        {
            ringA = RingA(plant);
            return ringB = RingB(plant);
        });
        Program.Start(@"^TaskCompletionSource 0x[0-9a-f]+$", Enumerate, 2);
        Program.Start(@"^TaskCompletionSource 0x[0-9a-f]+$|, for which the heap has no TaskCompletionSource$", Orphaned);
        Program.Start(@"^TaskCompletionSource 0x[0-9a-f]+$", plant =>
        {
            Void(plant);
            return Task.CompletedTask;
        });
    }
}
