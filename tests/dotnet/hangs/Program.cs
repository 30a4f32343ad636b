// Hangs.dll WAY [ARGUMENT...]: hangs in that way, or works. It writes READY to standard output when it is about to. The
// line that a report must name has the mark "@WAY"; where it may name one of several, all have it.
using System.Reflection;

namespace Hangs;

static class Program
{
    public static string[] Arguments = [];

    public static void Ready() => Console.WriteLine("READY");

    /// A thread that does not keep the process alive.
    public static Thread Start(string name, Action body)
    {
        var thread = new Thread(() => body()) { IsBackground = true, Name = name };
        thread.Start();
        return thread;
    }

    /// Until the thread has waited for long.
    public static void AwaitBlocked(Thread thread)
    {
        for (int calm = 0; calm < 20;)
        {
            Thread.Sleep(10);
            calm = (thread.ThreadState & ThreadState.WaitSleepJoin) != 0 ? calm + 1 : 0;
        }
    }

    static int Main(string[] arguments)
    {
        Arguments = arguments[1..];
        foreach (Type type in new[] { typeof(Locks), typeof(Events), typeof(Tasks), typeof(Kernel), typeof(Busy), typeof(Slow), typeof(Stalls), typeof(Healthy) })
        {
            MethodInfo? way = type.GetMethod(arguments[0], BindingFlags.Public | BindingFlags.Static | BindingFlags.IgnoreCase);
            if (way == null)
                continue;
            way.CreateDelegate<Action>()();
            return 0;
        }
        return 2;
    }
}
