using System.Runtime.CompilerServices;

namespace Awaiting;

/// <summary>Async methods of every shape. Each says in the line in which it awaits that it does.</summary>
public static class Steps
{
    public static async Task OfTask(Chain chain)
    {
        chain.Note("Awaiting.Steps.OfTask(Awaiting.Chain)"); await chain.NextValue();
    }

    public static async Task OfTaskAlone(Chain chain)
    {
        chain.Note("Awaiting.Steps.OfTaskAlone(Awaiting.Chain)"); await chain.Next();
    }

    public static async ValueTask OfValueTask(Chain chain)
    {
        await Task.CompletedTask;
        chain.Note("Awaiting.Steps.OfValueTask(Awaiting.Chain)"); await chain.NextValue();
        await Task.CompletedTask;
    }

    public static async Task<int> OfResult(Chain chain)
    {
        int before = await Task.FromResult(2);
        chain.Note("Awaiting.Steps.OfResult(Awaiting.Chain)"); await chain.NextValue();
        return before + await Task.FromResult(3);
    }

    public static async Task OfGeneric<T>(Chain chain, T value)
    {
        chain.Note("Awaiting.Steps.OfGeneric<int>(Awaiting.Chain, int)"); await chain.NextValue();
        GC.KeepAlive(value);
    }

    public sealed class Shared<T>
    {
        public async Task OfType(Chain chain, T value)
        {
            chain.Note("Awaiting.Steps.Shared<*>.OfType(Awaiting.Chain, *)"); await chain.NextValue();
            GC.KeepAlive(value);
        }
    }

    public static Task OfLambda(Chain chain)
    {
        Func<int, Task> lambda = async number =>
        {
            chain.Note("Awaiting.Steps.<>c__DisplayClass*.<OfLambda>b__*(int)"); await chain.NextValue();
            GC.KeepAlive(number);
        };
        return lambda(1);
    }

    public static Task OfLocal(Chain chain)
    {
        return Local(1);

        async Task Local(int number)
        {
            chain.Note("Awaiting.Steps.*<OfLocal>g__Local|*(int*)"); await chain.NextValue();
            GC.KeepAlive(number);
        }
    }

    private static async IAsyncEnumerable<int> Items(Chain chain)
    {
        yield return 1;
        chain.Note("Awaiting.Steps.Items(Awaiting.Chain)"); await chain.NextValue();
        yield return 2;
    }

    public static async Task OfEnumerable(Chain chain)
    {
        int sum = 0;
        bool noted = false;
        await foreach (int item in Items(NoteOnce())) sum += item;

        Chain NoteOnce([CallerLineNumber] int line = 0)
        {
            if (!noted)
                chain.Note("Awaiting.Steps.OfEnumerable(Awaiting.Chain)", line: line);
            noted = true;
            return chain;
        }
    }

    public static async Task OfAll(Chain chain)
    {
        chain.Note("Awaiting.Steps.OfAll(Awaiting.Chain)"); await Task.WhenAll(OfResult(chain), Task.FromResult(1));
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    public static async ValueTask OfPool(Chain chain)
    {
        chain.Note("Awaiting.Steps.OfPool(Awaiting.Chain)"); await chain.NextValue();
    }

    public static async Task OfConfigured(Chain chain)
    {
        chain.Note("Awaiting.Steps.OfConfigured(Awaiting.Chain)"); await chain.NextValue().ConfigureAwait(false);
    }

    public static async Task OfFinally(Chain chain)
    {
        try
        {
            await Task.CompletedTask;
        }
        finally
        {
            chain.Note("Awaiting.Steps.OfFinally(Awaiting.Chain)"); await chain.NextValue();
        }
    }

    private sealed class Disposed(Chain chain) : IAsyncDisposable
    {
        public async ValueTask DisposeAsync()
        {
            chain.Note("Awaiting.Steps.Disposed.DisposeAsync()"); await chain.NextValue();
        }
    }

    public static async Task OfUsing(Chain chain)
    {
        chain.Note("Awaiting.Steps.OfUsing(Awaiting.Chain)"); await using (new Disposed(chain)) { }
    }

    /// <summary>The state of each await differs, and so does its line.</summary>
    public static async Task OfSeveral(Chain chain)
    {
        await Task.Yield();
        for (int i = 0; i < 2; i++)
            await Task.Yield();
        chain.Note("Awaiting.Steps.OfSeveral(Awaiting.Chain)"); await chain.NextValue();
        await Task.Yield();
        await Task.Yield();
    }
}
