namespace Awaiting;

/// <summary>
/// Starts the chains that the command line names, each on a thread of its own that waits for it, and writes what their
/// methods said: lines of the number of the chain, a method, and its file and line, from the outermost.
/// </summary>
public static class Program
{
    public static void Main(string[] arguments)
    {
        var chains = arguments.Skip(1).Select((steps, number) => new Chain($"{number}", steps)).ToList();
        foreach (Chain chain in chains)
            new Thread(() => chain.Next().Wait()) { Name = "waits " + chain.Name, IsBackground = true }.Start();
        foreach (Chain chain in chains)
            chain.Ready.Wait();
        Thread.Sleep(1000); // until the innermost methods wait, too
        File.WriteAllLines(arguments[0], chains.SelectMany(chain => chain.Said.Select(said => $"{chain.Name}\t{said}")));
        Console.WriteLine($"READY {Environment.ProcessId}");
        Console.ReadLine();
    }
}
