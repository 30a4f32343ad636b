using System.Collections.Concurrent;
using System.Net;
using System.Net.Sockets;
using System.Threading.Channels;
using static Hangs.Program;

namespace Hangs;

/// Programs in which nothing is wrong.
static class Healthy
{
    static readonly object a = new(), b = new();
    static readonly ReaderWriterLockSlim shared = new();
    static readonly SemaphoreSlim gate = new(2);
    static long work;

    static void Compute(int rounds)
    {
        for (int i = 0; i < rounds; i++)
            work = work * 31 + i;
    }

    static void Park()
    {
        Ready();
        Thread.Sleep(Timeout.Infinite); // @Park
    }

    public static void IdleConsole()
    {
        Ready();
        Console.ReadLine(); // @IdleConsole
    }

    public static void IdleLoop()
    {
        Ready();
        while (true)
            Thread.Sleep(50); // @IdleLoop
    }

    public static void IdleServer()
    {
        var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        Task loop = Task.Run(async () =>
        {
            while (true)
                using (await listener.AcceptTcpClientAsync())
                    Compute(1);
        });
        Ready();
        loop.Wait();
    }

    public static void Timers()
    {
        using var fast = new Timer(_ => Compute(1000), null, 0, 5);
        using var slow = new Timer(_ => Compute(1000), null, 0, 50);
        Park();
    }

    public static void PeriodicTimers()
    {
        async Task Tick()
        {
            using var timer = new PeriodicTimer(TimeSpan.FromMilliseconds(20));
            while (await timer.WaitForNextTickAsync())
                Compute(1000);
        }
        Task ticking = Tick();
        Ready();
        ticking.Wait();
    }

    public static void PoolWork()
    {
        void Again(object? state)
        {
            Compute(100_000);
            ThreadPool.QueueUserWorkItem(Again);
        }
        for (int i = 0; i < 8; i++)
            ThreadPool.QueueUserWorkItem(Again);
        Park();
    }

    public static void PoolOfAwaits()
    {
        async Task Again()
        {
            while (true)
            {
                await Task.Delay(1);
                Compute(10_000);
            }
        }
        for (int i = 0; i < 50; i++)
            _ = Again();
        Park();
    }

    static void Contend(object one)
    {
        while (true)
            lock (one)
                Compute(500);
    }

    public static void ContendedLock()
    {
        for (int i = 0; i < 6; i++)
            Start($"Contender{i}", () => Contend(a));
        Park();
    }

    public static void ContendedSleeper()
    {
        for (int i = 0; i < 4; i++)
            Start($"Contender{i}", () =>
            {
                while (true)
                    lock (a)
                        Thread.Sleep(1);
            });
        Park();
    }

    public static void OrderedLocks()
    {
        for (int i = 0; i < 4; i++)
            Start($"Ordered{i}", () =>
            {
                while (true)
                    lock (a)
                    lock (b)
                        Compute(500);
            });
        Park();
    }

    public static void ReadersAndWriters()
    {
        for (int i = 0; i < 4; i++)
        {
            bool writes = i == 0;
            Start($"Shared{i}", () =>
            {
                while (true)
                {
                    if (writes)
                        shared.EnterWriteLock();
                    else
                        shared.EnterReadLock();
                    Compute(500);
                    if (writes)
                        shared.ExitWriteLock();
                    else
                        shared.ExitReadLock();
                }
            });
        }
        Park();
    }

    public static void Throttled()
    {
        async Task Again()
        {
            while (true)
            {
                await gate.WaitAsync();
                await Task.Delay(1);
                gate.Release();
            }
        }
        for (int i = 0; i < 20; i++)
            _ = Again();
        Park();
    }

    public static void Consumers()
    {
        var collection = new BlockingCollection<int>();
        for (int i = 0; i < 3; i++)
            Start($"Consumer{i}", () =>
            {
                foreach (int item in collection.GetConsumingEnumerable())
                    Compute(item);
            });
        Ready();
        for (int i = 0;; i++)
        {
            collection.Add(i % 1000);
            Thread.Sleep(2);
        }
    }

    public static void IdleConsumers()
    {
        var collection = new BlockingCollection<int>();
        for (int i = 0; i < 3; i++)
            Start($"Consumer{i}", () => collection.Take());
        Park();
    }

    public static void Channels()
    {
        var channel = Channel.CreateBounded<int>(10);
        async Task Write()
        {
            for (int i = 0;; i++)
                await channel.Writer.WriteAsync(i);
        }
        async Task Read()
        {
            await foreach (int item in channel.Reader.ReadAllAsync())
                Compute(item % 1000);
        }
        _ = Task.Run(Write);
        Task reading = Task.Run(Read);
        Ready();
        reading.Wait();
    }

    public static void PulsedQueue()
    {
        var queue = new Queue<int>();
        Start("Taker", () =>
        {
            while (true)
                lock (queue)
                {
                    while (queue.Count == 0)
                        Monitor.Wait(queue);
                    queue.Dequeue();
                }
        });
        Ready();
        for (int i = 0;; i++)
        {
            lock (queue)
            {
                queue.Enqueue(i);
                Monitor.Pulse(queue);
            }
            Thread.Sleep(3);
        }
    }

    public static void Collector()
    {
        object?[] kept = new object?[1000];
        Ready();
        for (int i = 0;; i++)
        {
            kept[i % kept.Length] = new byte[10_000];
            if (i % 100 == 0)
                Thread.Sleep(1);
        }
    }

    public static void ParallelWork()
    {
        Ready();
        while (true)
            Parallel.For(0, 100, i => Compute(10_000 + i));
    }

    public static void Echo()
    {
        var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        Start("Server", () =>
        {
            using TcpClient client = listener.AcceptTcpClient();
            NetworkStream stream = client.GetStream();
            for (int value; (value = stream.ReadByte()) >= 0;)
                stream.WriteByte((byte)value);
        });
        using var own = new TcpClient();
        own.Connect((IPEndPoint)listener.LocalEndpoint);
        NetworkStream there = own.GetStream();
        Ready();
        while (true)
        {
            there.WriteByte(1);
            there.ReadByte();
        }
    }

    public static void Finalizers()
    {
        Ready();
        while (true)
        {
            for (int i = 0; i < 1000; i++)
                _ = new Finalized();
            GC.Collect();
            GC.WaitForPendingFinalizers();
            Thread.Sleep(10);
        }
    }

    sealed class Finalized
    {
        ~Finalized() => work++;
    }
}
