using System.Runtime.CompilerServices;

namespace Awaiting;

/// <summary>
/// A chain of async methods: one for each letter of its steps, each of which awaits the next. It knows what its methods
/// have said of themselves, from the outermost to the innermost.
/// </summary>
public sealed class Chain(string name, string steps)
{
    private readonly List<string> said = [];
    private int at;

    public string Name => name;

    /// <summary>Set when the innermost method is about to wait.</summary>
    public ManualResetEventSlim Ready { get; } = new();

    public IEnumerable<string> Said
    {
        get
        {
            lock (said)
                return said.ToArray();
        }
    }

    /// <summary>An async method calls this in the line in which it awaits. A * in a name stands for any text.</summary>
    public void Note(string method, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
    {
        lock (said)
            said.Add($"{method}\t{file}:{line}");
    }

    /// <summary>Calls the next method.</summary>
    public ValueTask NextValue()
    {
        char step = steps[at++];
        return step switch
        {
            'T' => new ValueTask(Steps.OfTask(this)),
            't' => new ValueTask(Steps.OfTaskAlone(this)),
            'V' => Steps.OfValueTask(this),
            'R' => new ValueTask(Steps.OfResult(this)),
            'G' => new ValueTask(Steps.OfGeneric(this, 1)),
            'S' => new ValueTask(new Steps.Shared<string>().OfType(this, "")),
            'L' => new ValueTask(Steps.OfLambda(this)),
            'F' => new ValueTask(Steps.OfLocal(this)),
            'E' => new ValueTask(Steps.OfEnumerable(this)),
            'W' => new ValueTask(Steps.OfAll(this)),
            'P' => Steps.OfPool(this),
            'C' => new ValueTask(Steps.OfConfigured(this)),
            'D' => new ValueTask(Steps.OfFinally(this)),
            'U' => new ValueTask(Steps.OfUsing(this)),
            'Y' => new ValueTask(Steps.OfSeveral(this)),
            _ => new ValueTask(Ends.Wait(this, step)),
        };
    }

    public Task Next() => NextValue().AsTask();
}
