using System.Runtime.CompilerServices;

namespace Stepped;

/// <summary>Catch, filter and finally funclets, entered with and without an exception; faults of the processor.</summary>
internal static class Exceptions
{
    public static int Run()
    {
        int sum = 0;
        for (int kind = 0; kind < 6; kind++)
            sum += Nested(kind);
        foreach (string word in Words(3))
            sum += word.Length;
        return sum + Caught(0) + Caught(1) + Deep(4) + Locked(new object());
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Throw(int kind, int[]? array = null) => kind switch
    {
        0 => 1,
        1 => throw new InvalidOperationException("one"),
        2 => throw new ArgumentException("two"),
        3 => array![kind],
        4 => kind / (kind - 4),
        _ => throw new TimeoutException(),
    };

    private static int Nested(int kind)
    {
        int result = 0;
        try
        {
            try
            {
                result += Throw(kind);
            }
            finally
            {
                result += Count("finally");
            }
        }
        catch (InvalidOperationException e) when (Accept(e.Message.Length == 3))
        {
            result += Count("filtered");
        }
        catch (ArgumentException e) when (!Accept(e.Message.Length == 3))
        {
            result += Count("not filtered");
        }
        catch (NullReferenceException)
        {
            result += Count("null");
        }
        catch (DivideByZeroException)
        {
            try
            {
                result += Throw(1);
            }
            catch (InvalidOperationException)
            {
                result += Count("within a handler");
            }
        }
        catch
        {
            result += Count("others");
        }
        return result;
    }

    private static int Deep(int n)
    {
        if (n == 0)
            return Throw(5);
        try
        {
            return Deep(n - 1) + 1;
        }
        catch (TimeoutException) when (n == 4)
        {
            return Count("deep");
        }
        catch (TimeoutException)
        {
            Count("again");
            throw;
        }
        finally
        {
            Count("out");
        }
    }

    private static unsafe int Caught(int kind)
    {
        byte* bytes = stackalloc byte[100 + kind];
        bytes[0] = 1;
        try
        {
            return Throw(kind) + bytes[0];
        }
        catch (Exception e)
        {
            return e.Message.Length + Count("caught") + bytes[0];
        }
    }

    private static IEnumerable<string> Words(int n)
    {
        try
        {
            for (int i = 0; i < n; i++)
                yield return "word";
        }
        finally
        {
            Count("iterator");
        }
    }

    private static int Locked(object gate)
    {
        lock (gate)
            return Count("locked");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static bool Accept(bool value) => value;

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Count(string text) => text.Length;
}
