using System.Runtime.CompilerServices;

namespace Copied;

public static class Entry
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Run(Func<long> back)
    {
        long sum = Alpha(back);
        return sum + 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Alpha(Func<long> back)
    {
        long sum = new Of<string>().Under(back);
        return sum + 1;
    }
}

public class Of<T>
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public long Under(Func<long> back)
    {
        long sum = back(); // Inside()
        return sum + typeof(T).Name.Length;
    }
}
