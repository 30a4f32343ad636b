using static Locks.Program;

namespace Locks;

/// Threads by the thousand that wait: for one lock, each for another, and for tasks.
static class Many
{
    public static void All(int count)
    {
        object one = Known("One", new object());
        Monitor.Enter(one);
        var never = new TaskCompletionSource();
        for (int i = 0; i < count; i++)
        {
            object own = new();
            var thread = new Thread(i % 3 == 0 ? () => { lock (one) { } }
                                    : i % 3 == 1 ? () => { lock (own) Monitor.Wait(own); }
                                    : () => never.Task.Wait(), 128 * 1024) { IsBackground = true };
            thread.Start();
        }
        Thread.Sleep(3000);
        Say("held One Main 0");
        Say($"waiters One {(count + 2) / 3}");
    }
}
