// Dies by the first argument; without one, lists the ways. Each way is a method of one of the groups; `all` tries those
// of which the exception can be caught, all in one process.
using System.Reflection;

namespace Dying;

static class Program
{
    const BindingFlags Ways = BindingFlags.Static | BindingFlags.Public | BindingFlags.DeclaredOnly;
    static readonly Type[] Caught = [typeof(Deaths), typeof(Messages), typeof(Async)];
    static readonly Type[] Groups = [.. Caught, typeof(Ends), typeof(AsyncEnds)];

#if ASYNC_MAIN
    static async Task Main(string[] arguments)
    {
        Delegate? way = Find(arguments);
        if (way is Func<Task> task)
            await task();
        else
            ((Action?)way)?.Invoke();
    }
#else
    static void Main(string[] arguments)
    {
        Delegate? way = Find(arguments);
        if (way is Func<Task> task)
            task().GetAwaiter().GetResult();
        else
            ((Action?)way)?.Invoke();
    }
#endif

    /// <summary>An Action, or a function that returns a Task; null if there is nothing more to do.</summary>
    static Delegate? Find(string[] arguments)
    {
        var ways = Groups.SelectMany(type => type.GetMethods(Ways)).ToDictionary(method => method.Name);
        if (arguments.Length == 0)
            foreach (string name in ways.Keys)
                Console.WriteLine($"{ways[name].DeclaringType!.Name} {name}");
        else if (arguments[0] == "all")
            Collected.All(ways.Values.Where(way => Caught.Contains(way.DeclaringType)).Select(way => (way.Name, Bind(way))));
        else
            return Bind(ways[arguments[0]]);
        return null;
    }

    static Delegate Bind(MethodInfo way) => way.CreateDelegate(way.ReturnType == typeof(Task) ? typeof(Func<Task>) : typeof(Action));
}

static class Collected
{
    static readonly List<(string Name, Exception Exception, string Text)> Exceptions = [];

    /// Catches what the ways throw, leaves NAME, ADDRESS and text of each in the file exceptions.txt and a full dump in
    /// full.core, waits for the end of the input, and dies.
    internal static unsafe void All(IEnumerable<(string Name, Delegate Way)> ways)
    {
        string[] unusable = ["AsyncVoid", "OnThread", "OnPool", "OnTimer", "Finalizer", "Memory"];
        foreach ((string name, Delegate way) in ways.Where(way => !unusable.Contains(way.Name)))
        {
            try
            {
                if (way is Func<Task> task)
                    task().GetAwaiter().GetResult();
                else
                    ((Action)way)();
            }
            catch (Exception exception)
            {
                Exceptions.Add((name, exception, exception.ToString()));
            }
        }
        GC.Collect();
        using (var file = new StreamWriter("exceptions.txt", false, new System.Text.UTF8Encoding(false)))
        {
            var addresses = new nint[Exceptions.Count];
            for (int i = 0; i < addresses.Length; i++)
            {
                Exception exception = Exceptions[i].Exception;
                addresses[i] = *(nint*)&exception;
            }
            for (int i = 0; i < addresses.Length; i++)
                file.Write($"{Exceptions[i].Name} {addresses[i]:x} {System.Text.Encoding.UTF8.GetByteCount(Exceptions[i].Text)}\n{Exceptions[i].Text}\n");
        }
        string tool = Path.Combine(Path.GetDirectoryName(typeof(object).Assembly.Location)!, "createdump");
        System.Diagnostics.Process.Start(tool, $"--full -f full.core {Environment.ProcessId}").WaitForExit();
        Console.WriteLine("ready");
        while (Console.In.Read() >= 0) { }
        Ends.Killed();
        Thread.Sleep(1000);
    }
}
