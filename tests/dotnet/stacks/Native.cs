using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Stacks;

/// <summary>The C library, called and calling back.</summary>
internal static unsafe class Native
{
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate int Compare(int* a, int* b);

    [ThreadStatic]
    private static Action? onCall;

    [DllImport("libc", EntryPoint = "gettid")]
    public static extern int ThreadId();

    [DllImport("libc", EntryPoint = "usleep")]
    public static extern int Sleep(uint microseconds);

    [DllImport("libc", EntryPoint = "usleep", SetLastError = true)]
    public static extern int SleepWithError(uint microseconds);

    [DllImport("libc", EntryPoint = "usleep"), SuppressGCTransition]
    private static extern int SleepWithoutTransition(uint microseconds);

    [DllImport("libc", EntryPoint = "strlen", CharSet = CharSet.Ansi)]
    public static extern nint Length(string text);

    [DllImport("libc", EntryPoint = "qsort")]
    private static extern void SortByDelegate(int* items, nint count, nint size, Compare compare);

    [DllImport("libc", EntryPoint = "qsort")]
    private static extern void SortByPointer(int* items, nint count, nint size, delegate* unmanaged[Cdecl]<int*, int*, int> compare);

    [DllImport("libc", EntryPoint = "pthread_create")]
    private static extern int CreateThread(nint* thread, nint attributes, delegate* unmanaged[Cdecl]<nint, nint> start, nint argument);

    public static int SleepInside(uint microseconds) => SleepWithoutTransition(microseconds);

    /// <summary>`action` runs once, below qsort, which calls a delegate.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void CallDelegate(Action action)
    {
        int* items = stackalloc int[3] { 3, 1, 2 };
        bool called = false;
        Compare compare = (a, b) =>
        {
            if (!called)
            {
                called = true;
                action();
            }
            return a->CompareTo(*b);
        };
        SortByDelegate(items, 3, sizeof(int), compare);
        GC.KeepAlive(compare);
    }

    /// <summary>`action` runs once, below qsort, which calls a static method.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void CallPointer(Action action)
    {
        int* items = stackalloc int[3] { 3, 1, 2 };
        onCall = action;
        SortByPointer(items, 3, sizeof(int), &Called);
    }

    /// <summary>`action` runs on a thread that the C library made.</summary>
    public static void CallOnNewThread(Action action)
    {
        nint thread;
        if (CreateThread(&thread, 0, &Started, GCHandle.ToIntPtr(GCHandle.Alloc(action))) != 0)
            throw new InvalidOperationException("pthread_create failed");
    }

    [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })]
    private static int Called(int* a, int* b)
    {
        Action? action = onCall;
        onCall = null;
        action?.Invoke();
        return a->CompareTo(*b);
    }

    [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })]
    private static nint Started(nint argument)
    {
        ((Action)GCHandle.FromIntPtr(argument).Target!)();
        return 0;
    }
}
