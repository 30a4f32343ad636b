namespace Stacks;

/// <summary>
/// Stacks storm SEED: eight threads that run code of every kind until the input ends.
/// Stacks park FILE: threads that stand still, each with its stack as the runtime tells it, in FILE.
/// Stacks crowd COUNT: that many threads, all waiting.
/// Stacks collect FILE: threads that are stopped for collections all the time, each with its stack in FILE.
/// "READY pid" on stdout says that all threads are where they shall be.
/// </summary>
internal static class Program
{
    private static int Main(string[] arguments)
    {
        switch (arguments[0])
        {
            case "storm":
                Storm.Start(int.Parse(arguments[1]));
                break;
            case "park":
                Parking.Start(arguments[1]);
                break;
            case "crowd":
                Parking.Crowd(int.Parse(arguments[1]));
                break;
            case "collect":
                Collected.Start(arguments[1]);
                break;
            default:
                return 64;
        }
        Console.WriteLine($"READY {Environment.ProcessId}");
        if (arguments[0] == "collect")
            Collected.StartCollector();
        while (Console.OpenStandardInput().ReadByte() >= 0)
        {
        }
        Environment.Exit(0);
        return 0;
    }
}
