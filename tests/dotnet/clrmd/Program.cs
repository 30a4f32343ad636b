using System.Text.Json;
using Microsoft.Diagnostics.Runtime;

namespace Clrmd;

/// <summary>
/// Reads lines "CORE TAB LIBMSCORDACCORE [TAB locks | TAB objects | TAB heap | TAB roots | TAB gcdump]" and answers each with one line of JSON:
/// {"threads": [{"tid", "alive", "frames": [{"ip", "sp", "method_desc", "frame", "name"}]}]} or {"error": text}.
/// "frame" is the name of an explicit Frame; "method_desc" is null where there is no method.
/// With "objects", instead: {"objects": [{"address", "table", "size", "string", "array", "fields"}], "threads": ["TID MANAGED_ID STATE"]}, see Objects.cs.
/// With "heap", instead: {"types": [[method table, count, bytes, name]], "generations", "segments", ...}, see HeapTypes.cs.
/// With "roots", instead: {"handles": {kind: count}, "finalizable": [waiting, ready], "reachable": {address: bool}}, see Roots.cs.
/// With "gcdump", instead: what a .gcdump has; the second word is then dotnet-gcdump.dll, see Gcdump.cs.
/// With "locks", instead: {"locks": [{"object", "thin", "tid", "recursion", "waiters"}]}, monitors that are held.
/// </summary>
internal static class Program
{
    private const int MostFrames = 100_000;

    private static void Main()
    {
        while (Console.ReadLine() is { } line)
        {
            string[] words = line.Split('\t');
            Console.WriteLine(JsonSerializer.Serialize(Answer(words[0], words[1], words.ElementAtOrDefault(2))));
        }
    }

    private static Dictionary<string, object> Answer(string core, string services, string? question)
    {
        try
        {
            if (question == "gcdump")
                return Gcdump.Describe(core, services);
            using DataTarget target = DataTarget.LoadDump(core);
            using ClrRuntime runtime = target.ClrVersions[0].CreateRuntime(services, true);
            if (question == "objects")
                return new() { ["objects"] = Objects.Describe(runtime), ["threads"] = runtime.Threads.Where(thread => thread.IsAlive).Select(DescribeState).ToList() };
            if (question == "heap")
                return HeapTypes.Describe(runtime);
            if (question == "roots")
                return Roots.Describe(runtime);
            if (question == "locks")
                return new() { ["locks"] = DescribeMonitors(runtime).Concat(DescribeThinLocks(runtime)).ToList() };
            return new() { ["threads"] = runtime.Threads.Select(DescribeThread).ToList() };
        }
        catch (Exception exception) when (exception is ClrDiagnosticsException or IOException or InvalidDataException or InvalidOperationException or ApplicationException)
        {
            return new() { ["error"] = exception.Message };
        }
    }

    private static IEnumerable<Dictionary<string, object?>> DescribeMonitors(ClrRuntime runtime) =>
        from block in runtime.Heap.EnumerateSyncBlocks()
        where block.IsMonitorHeld
        select new Dictionary<string, object?>
        {
            ["object"] = Hex(block.Object),
            ["thin"] = false,
            ["tid"] = runtime.Threads.FirstOrDefault(thread => thread.Address == block.HoldingThreadAddress)?.OSThreadId,
            ["recursion"] = block.RecursionCount,
            ["waiters"] = block.WaitingThreadCount,
        };

    private static IEnumerable<Dictionary<string, object?>> DescribeThinLocks(ClrRuntime runtime) =>
        from value in runtime.Heap.EnumerateObjects()
        let thin = value.GetThinLock()
        where thin is not null
        select new Dictionary<string, object?>
        {
            ["object"] = Hex(value.Address),
            ["thin"] = true,
            ["tid"] = thin.Thread?.OSThreadId,
            ["recursion"] = thin.Recursion,
            ["waiters"] = 0,
        };

    private static string DescribeState(ClrThread thread) => $"{thread.OSThreadId} {thread.ManagedThreadId} {(uint)thread.State:x}";

    private static Dictionary<string, object> DescribeThread(ClrThread thread) => new()
    {
        ["tid"] = thread.OSThreadId,
        ["alive"] = thread.IsAlive,
        ["frames"] = thread.EnumerateStackTrace(false, MostFrames).Select(DescribeFrame).ToList(),
    };

    private static Dictionary<string, object?> DescribeFrame(ClrStackFrame frame) => new()
    {
        ["ip"] = Hex(frame.InstructionPointer),
        ["sp"] = Hex(frame.StackPointer),
        ["method_desc"] = frame.Method is { } method ? Hex(method.MethodDesc) : null,
        ["frame"] = frame.Kind == ClrStackFrameKind.ManagedMethod ? null : frame.FrameName ?? "",
        ["name"] = frame.Method?.Signature,
    };

    private static string Hex(ulong value) => $"0x{value:x}";
}
