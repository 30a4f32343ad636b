using System.Runtime.CompilerServices;

// The same tables of the same size, but the methods are other ones, in another order and on other lines.

namespace Copied;

public static class Entry
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Bravo(Func<long> back)
    {
        long sum = new Of<string>().Below(back);

        return sum + 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Run(Func<long> back)
    {
        // not the same line
        long sum = Bravo(back);
        return sum + 1;
    }
}

public class Of<T>
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public long Below(Func<long> back)
    {

        long sum = back(); // Inside()
        return sum + typeof(T).Name.Length;
    }
}
