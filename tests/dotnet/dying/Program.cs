// Dies by the first argument; without one, lists the ways. Each way is a method of Deaths, Messages or Ends; `all` tries
// them all in one process.
using System.Reflection;

namespace Dying;

static class Program
{
    const BindingFlags Ways = BindingFlags.Static | BindingFlags.Public | BindingFlags.DeclaredOnly;
    static readonly Type[] Groups = [typeof(Deaths), typeof(Messages), typeof(Ends)];

    static void Main(string[] arguments)
    {
        var ways = Groups.SelectMany(type => type.GetMethods(Ways)).ToDictionary(method => method.Name);
        if (arguments.Length == 0)
            foreach (string name in ways.Keys)
                Console.WriteLine($"{ways[name].DeclaringType!.Name} {name}");
        else if (arguments[0] == "all")
            Collected.All(ways.Values);
        else
            ways[arguments[0]].CreateDelegate<Action>()();
    }
}

static class Collected
{
    static readonly List<(string Name, Exception Exception, string Text)> Exceptions = [];

    /// Catches what Deaths and Messages throw, leaves NAME, ADDRESS and text of each in the file exceptions.txt, a full dump in
    /// full.core, and dies.
    internal static unsafe void All(IEnumerable<MethodInfo> ways)
    {
        string[] unusable = ["AsyncVoid", "OnThread", "OnPool", "OnTimer", "Finalizer", "Memory"];
        foreach (MethodInfo way in ways.Where(way => way.DeclaringType != typeof(Ends) && !unusable.Contains(way.Name)))
        {
            try
            {
                way.CreateDelegate<Action>()();
            }
            catch (Exception exception)
            {
                Exceptions.Add((way.Name, exception, exception.ToString()));
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
        Ends.Killed();
        Thread.Sleep(1000);
    }
}
