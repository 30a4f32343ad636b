// Ends that are no unhandled exceptions.
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Dying;

static unsafe class Ends
{
    public static void FailFast() => Environment.FailFast("the message");

    public static void FailFastException()
    {
        try
        {
            Deaths.Nested();
        }
        catch (Exception exception)
        {
            Environment.FailFast("the message", exception);
        }
    }

    public static void StackOverflow() => Console.WriteLine(Overflow(1));

    /// <summary>The stack that the runtime handles an overflow on is older than the thread's: it is further up.</summary>
    public static void OverflowOnThread()
    {
        Thread thread = new(StackOverflow);
        thread.Start();
        thread.Join();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Overflow(int depth) => depth == 0 ? 0 : Overflow(depth + 1) + 1;

    public static void AccessViolation() => Console.WriteLine(*(int*)(nint)0x12345678);

    public static void NativeFault() => memset(0x1000, 0, 16);

    public static void NativeAbort() => abort();

    public static void Killed() => kill(getpid(), 31);

    [DllImport("libc")]
    static extern nint memset(nint where, int value, nint count);

    [DllImport("libc")]
    static extern void abort();

    [DllImport("libc")]
    static extern int kill(int process, int signal);

    [DllImport("libc")]
    static extern int getpid();
}
