namespace Stepped;

/// <summary>
/// Calls the same methods again and again until its input ends. "READY pid" says that a round compiles nothing any more:
/// the compiler is native code, and stepping through it takes minutes. Collections in another thread suspend this one.
/// </summary>
internal static class Program
{
    private static int Main()
    {
        var ended = new Thread(() => Console.OpenStandardInput().ReadByte()) { IsBackground = true };
        ended.Start();
        long sum = 0;
        long last = -1;
        for (int rest = 0, round = 0; rest < 3 && round < 100; round++)
        {
            sum += Round();
            Thread.Sleep(100); // the background compiler waits for so long without new methods
            long now = System.Runtime.JitInfo.GetCompiledMethodCount();
            rest = now == last ? rest + 1 : 0;
            last = now;
        }
        var collector = new Thread(Collect) { IsBackground = true };
        collector.Start();
        Console.WriteLine($"READY {Environment.ProcessId}");
        while (ended.IsAlive)
            sum += Round();
        return (int)(sum & 1);
    }

    private static int rounds;

    /// <summary>.NET 8 throws in native code, half a million instructions each time.</summary>
    private static long Round() =>
        Frames.Run() + Native.Run() + Calls.Run() + Framework.Run()
        + (Environment.Version.Major > 8 || rounds++ % 16 == 0 ? Exceptions.Run() + Emitted.Run() : 0);

    private static void Collect()
    {
        while (true)
        {
            GC.Collect(0);
            Thread.Sleep(2000); // a suspension costs the stepped thread thousands of instructions
        }
    }
}
