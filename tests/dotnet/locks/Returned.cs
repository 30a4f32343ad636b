using static Locks.Program;

namespace Locks;

/// Main returns, and the only thread of the foreground waits for the end of Main's thread, which waits for it.
static class Returned
{
    public static void All()
    {
        Thread main = Known("main", Thread.CurrentThread);
        Start("background", () => Thread.Sleep(Timeout.Infinite));
        Start("joiner", main.Join).IsBackground = false;
        Say("wait Main foreground -");
        Say("wait joiner join main");
        Say("blocker Main joiner");
        Say("blocker joiner Main");
        Say("endless Main");
        Say("endless joiner");
        Say("deadlock Main joiner");
    }
}
