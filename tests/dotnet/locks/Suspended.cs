using System.Runtime.InteropServices;
using static Locks.Program;

namespace Locks;

/// A thread waits in a native function of which the runtime does not know, and another one collects garbage.
static unsafe class Suspended
{
    [DllImport("libc"), SuppressGCTransition]
    static extern int pthread_mutex_lock(void* mutex);

    public static void All()
    {
        void* mutex = NativeMemory.AllocZeroed(256);
        Start("delayer", () => Lock(mutex));
        Start("sleeper", () => Thread.Sleep(Timeout.Infinite));
        Start("collector", Collect);
    }

    static void Lock(void* mutex)
    {
        pthread_mutex_lock(mutex);
        pthread_mutex_lock(mutex);
    }

    static void Collect()
    {
        Thread.Sleep(2000); // READY is said before
        GC.Collect();
    }
}
