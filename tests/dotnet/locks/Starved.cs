using static Locks.Program;

namespace Locks;

/// All workers of the thread pool sleep or wait for what never happens, and work items are queued: in the pool's queues
/// and in those of the workers.
static class Starved
{
    const int Own = 3, Common = 30;
    const string Sleeper = "Worker0";

    public static void All()
    {
        int workers = Math.Max(4, Environment.ProcessorCount); // the pool refuses less
        ThreadPool.SetMinThreads(workers, workers);
        ThreadPool.SetMaxThreads(workers, workers);
        // A thread of the pool that runs no work items waits for the event.
        ThreadPool.RegisterWaitForSingleObject(new AutoResetEvent(false), (_, _) => { }, null, -1, executeOnlyOnce: true);
        var begun = new CountdownEvent(workers);
        for (int i = 0; i < workers; i++)
        {
            string name = $"Worker{i}";
            Task never = Known($"Never{i}", new TaskCompletionSource().Task);
            ThreadPool.QueueUserWorkItem(_ =>
            {
                Here(name);
                for (int k = 0; k < Own; k++)
                    Task.Run(() => { });
                begun.Signal();
                if (name == Sleeper)
                    Thread.Sleep(Timeout.Infinite);
                never.Wait();
            });
            if (name != Sleeper)
                Say($"wait {name} task Never{i}");
        }
        begun.Wait();
        for (int i = 0; i < Common; i++)
            ThreadPool.QueueUserWorkItem(_ => { });
        Thread.Sleep(500);
        Say($"pool {workers} {workers} {workers} {workers} {workers} {ThreadPool.PendingWorkItemCount} 1");
    }
}
