using static Hangs.Program;

namespace Hangs;

/// A program that does not hang but works without end.
static class Busy
{
    static int sum;

    public static void Endless()
    {
        Ready();
        while (true)
            sum = sum * 31 + 1; // @Endless
    }

    static object? kept;

    public static void Allocate()
    {
        Ready(); // @Allocate, as the runtime describes a loop that it replaced on the stack only by the first line
        while (true) // @Allocate
            kept = new byte[1000]; // @Allocate
    }

    static void Throw() => throw new InvalidOperationException("again"); // @Exceptions

    public static void Exceptions()
    {
        Ready();
        while (true)
        {
            try
            {
                Throw(); // @Exceptions
            }
            catch (InvalidOperationException) // @Exceptions
            {
                sum++; // @Exceptions
            }
        }
    }
}
