using System.Diagnostics;
using System.IO.MemoryMappedFiles;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.InteropServices;

namespace Churn;

/// <summary>
/// Makes and frees methods in four threads, and publishes which method is alive where, in a file that the judge maps:
/// at 0 the number of methods that each thread has made; at Slots, for each slot, a sequence number (even: the method is
/// alive), an address in the method's code and the method's number; at Table, for each thread, the address of every
/// method by its number. `Churn FILE PER_SECOND`; PER_SECOND of 0 is as fast as possible. It ends with its input, of
/// which each line is a command that it answers with a line.
/// </summary>
public static unsafe class Program
{
    private const int Threads = 4, SlotsPerThread = 64, SlotSize = 32, Methods = 1 << 24;
    private const long Slots = 4096, Table = 1 << 20, Size = Table + (long)Threads * Methods * 8;

    private static long* s_file;
    private static long s_whereAmI;
    private static int s_perSecond;
    private static volatile bool s_ended;

    private static int Main(string[] arguments)
    {
        using var file = MemoryMappedFile.CreateFromFile(arguments[0], FileMode.Create, null, Size);
        using MemoryMappedViewAccessor view = file.CreateViewAccessor();
        byte* bytes = null;
        view.SafeMemoryMappedViewHandle.AcquirePointer(ref bytes);
        s_file = (long*)bytes;
        // The runtime's own file, mapped a second time, must not be mistaken for the runtime.
        string runtime = Path.Combine(Path.GetDirectoryName(typeof(object).Assembly.Location)!, "libcoreclr.so");
        using var second = MemoryMappedFile.CreateFromFile(runtime, FileMode.Open, null, 0, MemoryMappedFileAccess.Read);
        using MemoryMappedViewAccessor secondView = second.CreateViewAccessor(0, 0, MemoryMappedFileAccess.Read);
        s_perSecond = int.Parse(arguments[1]);
        s_whereAmI = MakeThunk();
        var threads = new Thread[Threads];
        for (int i = 0; i < Threads; i++)
        {
            int number = i;
            threads[i] = new Thread(() => Work(number));
            threads[i].Start();
        }
        Console.WriteLine($"READY {Environment.ProcessId}");
        while (Console.ReadLine() is { } line)
            Console.WriteLine(Obey(line.Split('|')));
        s_ended = true;
        foreach (Thread thread in threads)
            thread.Join();
        return 0;
    }

    private static string Obey(string[] words)
    {
        try
        {
            return words[0] == "load" ? Load(words[1]) : AskAboutItself(words[1], words[2]);
        }
        catch (Exception exception)
        {
            return exception.ToString().ReplaceLineEndings(" ");
        }
    }

    /// <summary>Loads an assembly of the framework and runs a method of it.</summary>
    private static string Load(string type)
    {
        object table = Activator.CreateInstance(Type.GetType(type, true)!)!;
        return $"{table.GetType().GetMethod("Add", [typeof(string)])!.Invoke(table, ["loaded"])}";
    }

    /// <summary>
    /// Opens a core with the library, which may map this process's libcoreclr.so again, and then this process. Returns
    /// the name of this method.
    /// </summary>
    private static string AskAboutItself(string library, string core)
    {
        const int MethodSize = 256, NameOffset = 32; // of struct cdacq_method
        nint handle = NativeLibrary.Load(library);
        var openCore = (delegate* unmanaged<nint, nint, nint*, byte*, int>)NativeLibrary.GetExport(handle, "cdacq_target_open_core");
        var openPid = (delegate* unmanaged<int, nint, nint*, byte*, int>)NativeLibrary.GetExport(handle, "cdacq_target_open_pid");
        var create = (delegate* unmanaged<nint, nint*, byte*, int>)NativeLibrary.GetExport(handle, "cdacq_session_create");
        var methodAt = (delegate* unmanaged<nint, long, byte*, byte*, int>)NativeLibrary.GetExport(handle, "cdacq_session_method_at");
        byte* error = stackalloc byte[1024], method = stackalloc byte[MethodSize];
        nint dead, target = 0, session = 0;
        *(nint*)method = MethodSize;
        nint path = Marshal.StringToCoTaskMemUTF8(core);
        int status = openCore(path, 0, &dead, error);
        if (status >= 0)
            status = openPid(Environment.ProcessId, 0, &target, error);
        if (status >= 0)
            status = create(target, &session, error);
        long here = ((delegate* managed<long>)s_whereAmI)();
        if (status >= 0)
            status = methodAt(session, here, method, error);
        return status == 0 ? Marshal.PtrToStringUTF8(*(nint*)(method + NameOffset))!
                           : $"{status} {Marshal.PtrToStringUTF8((nint)error + 16)}";
    }

    [DllImport("libc")]
    private static extern byte* mmap(nint address, nint length, int access, int flags, int file, nint offset);

    /// <summary>Code that returns its return address: an address in the method that calls it.</summary>
    private static long MakeThunk()
    {
        byte* code = mmap(0, 4096, 7, 0x22, -1, 0);
        new byte[] { 0x48, 0x8b, 0x04, 0x24, 0xc3 }.CopyTo(new Span<byte>(code, 5)); // mov rax, [rsp]; ret
        return (long)code;
    }

    private static void Work(int thread)
    {
        var held = new object?[SlotsPerThread];
        var random = new Random(thread);
        long start = Stopwatch.GetTimestamp();
        for (int number = 1; number < Methods && !s_ended; number++)
        {
            Delegate method = number % 500 == 0 ? MakeCollectible(thread, number) : MakeDynamic(thread, number);
            long address = ((Func<long>)method)();
            Volatile.Write(ref s_file[Table / 8 + (long)thread * Methods + number], address);
            int index = random.Next(SlotsPerThread);
            long* slot = s_file + (Slots + (long)(thread * SlotsPerThread + index) * SlotSize) / 8;
            Interlocked.Increment(ref slot[0]); // odd: from here on the old method may be freed
            held[index] = method;
            slot[1] = address;
            slot[2] = number;
            Interlocked.Increment(ref slot[0]);
            s_file[thread] = number;
            if (thread == 0 && number % 200 == 0)
                GC.Collect(number % 2000 == 0 ? 2 : 1); // frees methods soon after they died
            if (number % 2000 == 0)
                GC.WaitForPendingFinalizers(); // or what waits for them grows without end if processors are few
            if (s_perSecond > 0)
                while (!s_ended && (Stopwatch.GetTimestamp() - start) * (double)s_perSecond < (double)number * Threads * Stopwatch.Frequency)
                    Thread.Sleep(1);
        }
        GC.KeepAlive(held);
    }

    private static string NameOf(int thread, int number) => $"M_{thread}_{number}_{new string('x', number % 41)}";

    private static void Emit(ILGenerator il, int number)
    {
        for (int i = 0; i < number % 7; i++) // methods of several sizes
        {
            il.Emit(OpCodes.Ldc_I8, (long)number * i);
            il.Emit(OpCodes.Pop);
            il.Emit(OpCodes.Call, typeof(Program).GetMethod(nameof(Nothing))!);
        }
        il.Emit(OpCodes.Ldc_I8, s_whereAmI);
        il.Emit(OpCodes.Conv_I);
        il.EmitCalli(OpCodes.Calli, CallingConventions.Standard, typeof(long), Type.EmptyTypes, null);
        il.Emit(OpCodes.Ldc_I8, 0L); // so that the call is none in tail position
        il.Emit(OpCodes.Add);
        il.Emit(OpCodes.Ret);
    }

    [System.Runtime.CompilerServices.MethodImpl(System.Runtime.CompilerServices.MethodImplOptions.NoInlining)]
    public static void Nothing() { }

    private static Delegate MakeDynamic(int thread, int number)
    {
        var method = new DynamicMethod(NameOf(thread, number), typeof(long), Type.EmptyTypes, typeof(Program).Module, true);
        Emit(method.GetILGenerator(), number);
        return method.CreateDelegate(typeof(Func<long>));
    }

    private static Delegate MakeCollectible(int thread, int number)
    {
        AssemblyBuilder assembly =
            AssemblyBuilder.DefineDynamicAssembly(new AssemblyName($"Collectible{thread}_{number}"), AssemblyBuilderAccess.RunAndCollect);
        TypeBuilder type = assembly.DefineDynamicModule("module").DefineType("T", TypeAttributes.Public);
        MethodBuilder method = type.DefineMethod(NameOf(thread, number), MethodAttributes.Public | MethodAttributes.Static,
                                                 typeof(long), Type.EmptyTypes);
        Emit(method.GetILGenerator(), number);
        return type.CreateType()!.GetMethod(NameOf(thread, number))!.CreateDelegate(typeof(Func<long>));
    }
}
