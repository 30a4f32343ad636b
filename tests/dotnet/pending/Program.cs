using System.Runtime.CompilerServices;

namespace Pending;

/// <summary>
/// Starts async operations that stay pending, and writes of each chain what it waits for and where its methods await,
/// from the innermost. Others complete: nothing may be said of them.
/// </summary>
public static class Program
{
    private static readonly List<Plant> plants = [];
    private static readonly List<object> kept = [];

    public static void Start(string reason, Func<Plant, Task> start, int count = 1)
    {
        for (int i = 0; i < count; i++)
        {
            var plant = new Plant(reason);
            plants.Add(plant);
            kept.Add(start(plant));
        }
    }

    private static async Task Complete(int number)
    {
        await Task.Yield();
        await CompletePooled(number);
        await Task.Delay(1);
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    private static async ValueTask CompletePooled(int number)
    {
        await Task.Yield();
        GC.KeepAlive(number);
    }

    private static async Task Fail(int number)
    {
        await Task.Yield();
        throw new InvalidOperationException($"failure {number}");
    }

    private static void FailUnseen()
    {
        for (int i = 0; i < 5; i++)
            kept.Add(Fail(i));
        for (int i = 0; i < 3; i++)
        {
            Task seen = Fail(i);
            kept.Add(seen);
            seen.ContinueWith(task => GC.KeepAlive(task.Exception)).Wait();
        }
    }

    public static void Main(string[] arguments)
    {
        int many = arguments.Length > 1 ? int.Parse(arguments[1]) : 0;
        if (many == 0)
        {
            Task.WaitAll(Enumerable.Range(0, 1000).Select(Complete).ToArray());
            FailUnseen();
            Plants.StartAll();
        }
        for (int i = 0; i < many; i++)
            kept.Add(Plants.Many(i % 4));
        Thread.Sleep(2000); // until all of them wait
        File.WriteAllLines(arguments[0], plants.Select(plant => $"{plant.Reason}\t{plant.Said}"));
        Console.WriteLine($"READY {Environment.ProcessId}");
        Console.ReadLine();
        GC.KeepAlive(kept);
    }
}
