using static Locks.Program;

namespace Locks;

/// A program that works: locks change hands, tasks end, and nothing waits for long.
static class Healthy
{
    static readonly object[] locks = { new(), new(), new(), new() };
    static long work;

    public static void All()
    {
        for (int i = 0; i < 4; i++)
        {
            Start($"Spinner{i}", Spin);
            Say($"idle Spinner{i}");
        }
        for (int i = 0; i < 4; i++)
            Start($"Contender{i}", Contend);
        Start("Tasker", RunTasks);
    }

    static void Spin()
    {
        while (true)
            Volatile.Write(ref work, Volatile.Read(ref work) + 1);
    }

    static void Contend()
    {
        for (int i = 0;; i++)
            lock (locks[i % 3])
            lock (locks[3]) // always the last: no cycle
                Interlocked.Increment(ref work);
    }

    static void RunTasks()
    {
        while (true)
        {
            Task[] tasks = Enumerable.Range(0, 8).Select(i => Task.Run(async () =>
            {
                await Task.Yield();
                lock (locks[3])
                    work += i;
            })).ToArray();
            Task.WaitAll(tasks);
        }
    }
}
