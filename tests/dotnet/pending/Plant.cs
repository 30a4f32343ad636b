using System.Runtime.CompilerServices;

namespace Pending;

/// <summary>A chain of pending async methods. Each method that will await notes where, from the outermost.</summary>
public sealed class Plant(string reason)
{
    private readonly List<string> said = [];

    /// <summary>What the innermost method waits for: a regular expression.</summary>
    public string Reason => reason;

    public string Said
    {
        get
        {
            lock (said)
                return string.Join('|', Enumerable.Reverse(said));
        }
    }

    /// <summary>An async method calls this in the line in which it awaits.</summary>
    public void Note([CallerMemberName] string method = "", [CallerLineNumber] int line = 0)
    {
        lock (said)
            said.Add($"{method}:{line}");
    }
}
