// Ends that are no unhandled exceptions.
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Dying;

static unsafe class Ends
{
    public static void FailFast() => Environment.FailFast("the message");

    public static void FailFastException()
    {
        try
        {
            Deaths.Nested();
        }
        catch (Exception exception)
        {
            Environment.FailFast("the message", exception);
        }
    }

    public static void FailFastNothing() => Environment.FailFast(null);

    public static void FailFastEmpty() => Environment.FailFast("");

    public static void FailFastUnicode() => Environment.FailFast("Grüße \u4f60\u597d \ud83d\ude00 end");

    public static void FailFastHuge() => Environment.FailFast(new string('x', 5 << 20) + new string('é', 5 << 20));

    public static void FailFastOnThread() => OnNewThread(() => Environment.FailFast($"on thread {Environment.CurrentManagedThreadId}"));

    public static void FailFastGeneric() => new Generic<string>.Inner<int>().Fail(["a"], new Dictionary<int, List<string>>(), out _, null);

    public static void FailFastAsync() => Later.Fail(1).Wait();

    public static void FailFastInCallback() => qsort([1, 2], 2, 4, &Compare);

    public static void ThrownInCallback() => qsort([1, 2], 2, 4, &Throw);

    public static void FailFastFromDelegate() => qsort(new int[2], 2, 4, (left, right) => { Environment.FailFast("from a delegate"); return 0; });

    public static void FailFastInCatch()
    {
        try
        {
            Deaths.Rethrown();
        }
        catch (Exception exception)
        {
            Environment.FailFast(exception.Message);
        }
    }

    /// <summary>An exception, thrown while another is handled, is handled while the program ends.</summary>
    public static void FailFastNested()
    {
        try
        {
            Deaths.FromCatch();
        }
        catch (Exception exception)
        {
            Deaths.Note(exception);
            Environment.FailFast("nested");
        }
    }

    public static void FailFastInFilter()
    {
        try
        {
            Deaths.Rethrown();
        }
        catch (Exception exception) when (Deaths.Note(exception) && Fail())
        {
        }

        static bool Fail()
        {
            Environment.FailFast("in a filter");
            return true;
        }
    }

    public static void NativeFaultInFinally()
    {
        try
        {
            try
            {
                Deaths.Rethrown();
            }
            finally
            {
                memset(0x1000, 0, 16);
            }
        }
        catch (Exception exception) when (Deaths.Note(exception))
        {
        }
    }

    public static void FailFastReflection() => typeof(Environment).GetMethod("FailFast", [typeof(string)])!.Invoke(null, ["reflected"]);

    public static void FailFastDynamic()
    {
        var method = new System.Reflection.Emit.DynamicMethod("Emitted", typeof(int), [typeof(int), typeof(string[])]);
        var il = method.GetILGenerator();
        il.Emit(System.Reflection.Emit.OpCodes.Ldstr, "emitted");
        il.Emit(System.Reflection.Emit.OpCodes.Call, typeof(Environment).GetMethod("FailFast", [typeof(string)])!);
        il.Emit(System.Reflection.Emit.OpCodes.Ldarg_0);
        il.Emit(System.Reflection.Emit.OpCodes.Ret);
        method.CreateDelegate<Func<int, string[], int>>()(1, []);
    }

    public static void Assertion() => System.Diagnostics.Trace.Fail("the message", "the details");

    public static void AssertionCondition() => System.Diagnostics.Trace.Assert(Environment.ProcessId == 0, "not zero");

    public static void MutualOverflow() => Console.WriteLine(Even(1));

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Even(int number) => Odd(number + 1) + 1;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Odd(int number) => Third(number, "") + 1;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Third<T>(int number, T value) => number == 0 ? 0 : Even(number + 1) + 1;

    /// <summary>The recursion is not at the top of the stack.</summary>
    public static void OverflowBelow() => Console.WriteLine(Below(1));

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Below(int depth)
    {
        if (RuntimeHelpers.TryEnsureSufficientExecutionStack())
            return Below(depth + 1) + 1;
        return Large(depth);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Large(int depth)
    {
        byte* bytes = stackalloc byte[60000];
        bytes[depth & 7] = 1;
        return depth == 0 ? bytes[3] : Larger(depth) + bytes[1];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Larger(int depth) => Large(depth) + 1;

    /// <summary>A method at the top of the stack that does not recur.</summary>
    public static void OverflowInLeaf() => Console.WriteLine(CallingLeaf(1));

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int CallingLeaf(int depth) => Leaf(depth) + CallingLeaf(depth + 1) + 1;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Leaf(int depth)
    {
        byte* bytes = stackalloc byte[4096];
        bytes[0] = (byte)depth;
        return bytes[depth & 7] + depth;
    }

    /// <summary>So few frames that only some runtimes fold them.</summary>
    public static void OverflowOfThree() => Console.WriteLine(Huge(1));

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Huge(int depth)
    {
        byte* bytes = stackalloc byte[3 << 20];
        bytes[0] = 1;
        return Huge(depth + 1) + bytes[depth & 3];
    }

    /// <summary>Optimized code with the smallest frames: half a million fit on the main thread's stack.</summary>
    public static void OverflowOfDynamic()
    {
        var method = new DynamicMethod("Recurse", typeof(int), [typeof(int)], typeof(Deaths).Module);
        ILGenerator code = method.GetILGenerator();
        code.Emit(OpCodes.Ldarg_0);
        code.Emit(OpCodes.Call, method);
        code.Emit(OpCodes.Ldc_I4_1);
        code.Emit(OpCodes.Add);
        code.Emit(OpCodes.Ret);
        Console.WriteLine(method.CreateDelegate<Func<int, int>>()(1));
    }

    public static void OutOfMemory()
    {
        var list = new List<byte[]>();
        while (true)
            list.Add(new byte[1 << 20]);
    }

    /// <summary>There is no memory for the text of the exception either.</summary>
    public static void OutOfMemoryTwice()
    {
        var list = new List<byte[]>();
        for (int size = 100000; size > 10; size /= 10)
        {
            try
            {
                while (true)
                    list.Add(new byte[size]);
            }
            catch (OutOfMemoryException) when (size > 100)
            {
            }
        }
    }

    public static void OutOfMemoryThrown() => throw new OutOfMemoryException();

    public static void OutOfMemoryThrownText() => throw new OutOfMemoryException("text");

    public static void OverflowThrown() => throw new StackOverflowException();

    public static void ExecutionEngineThrown() => throw (Exception)Activator.CreateInstance(Type.GetType("System.ExecutionEngineException")!)!;

    public static void AccessViolationThrown() => throw new AccessViolationException();

    public static void AccessViolationInRuntime() => Console.WriteLine(Marshal.ReadInt32(0x12345678));

    public static void AccessViolationCopy() => new Span<byte>((void*)0x12345678, 1 << 12).Fill(1);

    public static void AccessViolationOnThread() => OnNewThread(AccessViolation);

    public static void Exit() => Environment.Exit(3);

    /// <summary>A few kinds of stacks in 5,000 threads.</summary>
    public static void ManyThreads()
    {
        const int Count = 5000;
        using CountdownEvent started = new(Count);
        using ManualResetEventSlim never = new();
        for (int i = 0; i < Count; i++)
        {
            int depth = i % 7;
            new Thread(() => Wait(depth), 128 * 1024) { IsBackground = true, Name = $"waits {depth}" }.Start();
        }
        started.Wait();
        Console.WriteLine("waiting");
        if (Environment.GetEnvironmentVariable("DYING_STAYS") != null)
            Thread.Sleep(600000);
        throw new InvalidOperationException("many threads");

        int Wait(int depth)
        {
            if (depth > 0)
                return Wait(depth - 1) + 1;
            started.Signal();
            never.Wait();
            return 0;
        }
    }

    public static void Waiting()
    {
        Console.WriteLine("waiting");
        Thread.Sleep(60000);
    }

    public static void WaitingInCatch()
    {
        try
        {
            Deaths.Rethrown();
        }
        catch (Exception exception)
        {
            Deaths.Note(exception);
            Waiting();
        }
    }

    /// <summary>The signal interrupts managed code, not a call of the runtime.</summary>
    public static void LoopingInCatch()
    {
        try
        {
            Deaths.Rethrown();
        }
        catch (Exception exception)
        {
            Deaths.Note(exception);
            Console.WriteLine("looping");
            while (exception.HResult != 0)
                s_count++;
        }
    }

    static long s_count;

    /// <summary>.NET ends the process with an internal error.</summary>
    public static void ThrownAtFirstChance()
    {
        AppDomain.CurrentDomain.FirstChanceException += (_, _) =>
        {
            if (s_count++ == 0)
                throw new InvalidOperationException("at the first chance");
        };
        Deaths.Rethrown();
    }

    public static void OverflowInCatch()
    {
        try
        {
            Deaths.Rethrown();
        }
        catch (Exception)
        {
            StackOverflow();
        }
    }

    static void OnNewThread(ThreadStart start)
    {
        Thread thread = new(start);
        thread.Start();
        thread.Join();
    }

    class Generic<T>
    {
        internal class Inner<U> where U : notnull
        {
            [MethodImpl(MethodImplOptions.NoInlining)]
            internal void Fail<V>(T[] items, Dictionary<U, List<V>> map, out int count, int[,]? matrix) where V : class
            {
                count = 5;
                Environment.FailFast($"generic {items.Length}{map.Count}");
            }
        }
    }

    [UnmanagedCallersOnly]
    static int Throw(int* left, int* right) => throw new InvalidOperationException("thrown in a callback");

    [UnmanagedCallersOnly]
    static int Compare(int* left, int* right)
    {
        Environment.FailFast("in a callback");
        return *left - *right;
    }

    [DllImport("libc")]
    static extern void qsort(int[] items, nint count, nint size, delegate* unmanaged<int*, int*, int> compare);

    delegate int Comparer(nint left, nint right);

    [DllImport("libc")]
    static extern void qsort(int[] items, nint count, nint size, Comparer compare);

    public static void StackOverflow() => Console.WriteLine(Overflow(1));

    /// <summary>The stack that the runtime handles an overflow on is older than the thread's: it is further up.</summary>
    public static void OverflowOnThread()
    {
        Thread thread = new(StackOverflow);
        thread.Start();
        thread.Join();
    }

    /// <summary>The C library recurses once for each parenthesis.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void OverflowInNative() => regcomp((byte*)NativeMemory.AllocZeroed(4096), Parentheses(), 1);

    public static void OverflowInNativeOnThread()
    {
        Thread thread = new(OverflowInNative);
        thread.Start();
        thread.Join();
    }

    public static void OverflowInDelegate()
    {
        nint function = NativeLibrary.GetExport(NativeLibrary.Load("libc.so.6"), "regcomp");
        var compile = Marshal.GetDelegateForFunctionPointer<PatternCompiler>(function);
        compile((byte*)NativeMemory.AllocZeroed(4096), Parentheses(), 1);
    }

    /// <summary>On the second of two stacks that are made by hand, each of which code of the one before has switched to.</summary>
    public static void OverflowOnOtherStack() => OnOtherStack(&SwitchAndOverflow);

    public static void FailFastOnOtherStack() => OnOtherStack(&SwitchAndFail);

    [UnmanagedCallersOnly]
    static void SwitchAndOverflow() => OnOtherStack(&OverflowThere);

    [UnmanagedCallersOnly]
    static void SwitchAndFail() => OnOtherStack(&FailThere);

    [UnmanagedCallersOnly]
    static void OverflowThere() => StackOverflow();

    [UnmanagedCallersOnly]
    static void FailThere() => Environment.FailFast("on another stack");

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void OnOtherStack(delegate* unmanaged<void> function)
    {
        const int Size = 1 << 18, Guard = 1 << 16, ContextSize = 1 << 13;
        byte* stack = mmap(null, Size, 3, 0x22, -1, 0); // below those that were made before
        mprotect(stack, Guard, 0);
        byte* contexts = (byte*)NativeMemory.AllocZeroed(2 * ContextSize);
        getcontext(contexts);
        ((byte**)contexts)[1] = contexts + ContextSize; // uc_link
        ((byte**)contexts)[2] = stack; // uc_stack
        ((nint*)contexts)[4] = Size;
        makecontext(contexts, function, 0);
        swapcontext(contexts + ContextSize, contexts);
    }

    [DllImport("libc")]
    static extern byte* mmap(void* address, nint size, int protection, int flags, int file, nint offset);

    [DllImport("libc")]
    static extern int mprotect(void* address, nint size, int protection);

    [DllImport("libc")]
    static extern int getcontext(byte* context);

    [DllImport("libc")]
    static extern void makecontext(byte* context, delegate* unmanaged<void> function, int count);

    [DllImport("libc")]
    static extern int swapcontext(byte* old, byte* context);

    static byte* Parentheses()
    {
        const int Count = 20_000_000;
        byte* pattern = (byte*)NativeMemory.AllocZeroed(Count + 1);
        new Span<byte>(pattern, Count).Fill((byte)'(');
        return pattern;
    }

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    delegate int PatternCompiler(byte* buffer, byte* pattern, int flags);

    [DllImport("libc")]
    static extern int regcomp(byte* buffer, byte* pattern, int flags);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Overflow(int depth) => depth == 0 ? 0 : Overflow(depth + 1) + 1;

    public static void AccessViolation() => Console.WriteLine(*(int*)(nint)0x12345678);

    public static void NativeFault() => memset(0x1000, 0, 16);

    public static void NativeAbort() => abort();

    [DllImport("libc")]
    static extern void __assert_fail(string assertion, string file, uint line, string function);

    [DllImport("libc")]
    static extern nint malloc(nint size);

    [DllImport("libc")]
    static extern void free(nint memory);

    public static void NativeAssertion() => __assert_fail("count > 0", "native.c", 12, "work");

    public static void NativeDoubleFree()
    {
        nint memory = malloc(24);
        free(memory);
        free(memory);
    }

    public static void NativeAbortInCatch()
    {
        try
        {
            Deaths.Rethrown();
        }
        catch (Exception exception)
        {
            Deaths.Note(exception);
            abort();
        }
    }

    public static void NativeAbortUnhandled()
    {
        AppDomain.CurrentDomain.UnhandledException += (_, arguments) =>
        {
            Deaths.Note((Exception)arguments.ExceptionObject);
            abort();
        };
        Deaths.Rethrown();
    }

    public static void Killed() => kill(getpid(), 31);

    [DllImport("libc")]
    static extern nint memset(nint where, int value, nint count);

    [DllImport("libc")]
    static extern void abort();

    [DllImport("libc")]
    static extern int kill(int process, int signal);

    [DllImport("libc")]
    static extern int getpid();
}

static class Later
{
    internal static async Task Fail(int depth)
    {
        await Task.Yield();
        if (depth > 0)
            await Fail(depth - 1);
        Environment.FailFast("async", new InvalidOperationException("never thrown"));
    }
}
