using static Locks.Program;

namespace Locks;

/// Two threads use a processor each, if the machine has them; two others sleep.
static class Busy
{
    static long work;

    public static void All()
    {
        Start("sleeper", () => Thread.Sleep(Timeout.Infinite));
        Start("spinner0", Spin);
        Start("spinner1", Spin);
        Start("parked", () => Thread.Sleep(Timeout.Infinite));
    }

    static void Spin()
    {
        while (true)
            Volatile.Write(ref work, Volatile.Read(ref work) + 1);
    }
}
