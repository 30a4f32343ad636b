using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Stepped;

/// <summary>P/Invokes with and without marshalling, and callbacks.</summary>
internal static unsafe class Native
{
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    private delegate int Compare(in int a, in int b);

    [DllImport("libc", EntryPoint = "strlen")]
    private static extern nint StringLength(string text);

    [DllImport("libc", EntryPoint = "getppid")]
    private static extern int ParentProcess();

    [DllImport("libc", EntryPoint = "getppid"), SuppressGCTransition]
    private static extern int ParentProcessQuickly();

    [DllImport("libc", SetLastError = true)]
    private static extern int chdir([MarshalAs(UnmanagedType.LPUTF8Str)] string path);

    [DllImport("libc", EntryPoint = "qsort")]
    private static extern void Sort([In, Out] int[] numbers, nint count, nint size, Compare compare);

    [DllImport("libc", EntryPoint = "qsort")]
    private static extern void SortRaw(int* numbers, nint count, nint size, delegate* unmanaged[Cdecl]<int*, int*, int> compare);

    private static readonly Compare Descending = (in int a, in int b) => b - a;

    public static int Run()
    {
        int[] numbers = { 3, 1, 2, 5, 4 };
        int* raw = stackalloc int[4] { 4, 2, 3, 1 };
        Sort(numbers, numbers.Length, sizeof(int), Descending);
        SortRaw(raw, 4, sizeof(int), &Ascending);
        chdir("/nonexistent/directory");
        return numbers[0] + raw[0] + (int)StringLength("native") + ParentProcess() % 2 + ParentProcessQuickly() % 2 + Marshal.GetLastPInvokeError();
    }

    [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })]
    private static int Ascending(int* a, int* b) => *a - *b;
}
