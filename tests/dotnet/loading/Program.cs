using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.Loader;

namespace Loading;

/// <summary>
/// Threads that change the runtime's data without a pause, each below Run and Outer and then in a method of its own.
/// `Loading FOLDER`: the folder has first/Copied.dll and second/Copied.dll, which are two assemblies of one identity, and
/// shared/Copied.dll, which is now the one and now the other. With a second word, threads wait in these and do nothing
/// else. It ends with its input.
/// </summary>
public static class Program
{
    private static readonly Random s_random = new();
    private static string s_folder = "";
    private static volatile int s_sink;

    private static int Main(string[] arguments)
    {
        s_folder = arguments[0];
        if (arguments.Length > 1)
            Parked.Start(s_folder);
        else
            StartWork();
        Console.WriteLine($"READY {Environment.ProcessId}");
        Console.In.ReadToEnd();
        return 0;
    }

    private static void StartWork()
    {
        Action<int>[] works = [Generics, Emits, Copies, Copies, Renewed, Types, Throws, Collects];
        using Barrier started = new(works.Length + 1);
        foreach (Action<int> work in works)
            new Thread(() => Run(started, work)) { Name = "working", IsBackground = true }.Start();
        started.SignalAndWait();
        Thread.Sleep(500); // the first methods compile the framework's own
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Run(Barrier started, Action<int> work)
    {
        started.SignalAndWait();
        Outer(work);
        s_sink++;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Outer(Action<int> work)
    {
        for (int number = 1;; number++)
            work(number); // Generics( Emits( Copies( Renewed( Types( Throws( Collects(
    }

    // ---- Compiling ----

    private static readonly Type[] s_structs = [typeof(int), typeof(long), typeof(Guid), typeof(Half), typeof(DateTime), typeof(char)];

    /// <summary>Code over value types, which is compiled for each of them.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Generics(int number)
    {
        Type type = s_structs[number % s_structs.Length];
        for (int rest = number; rest > 0; rest /= s_structs.Length)
            type = typeof(ValueTuple<,>).MakeGenericType(type, s_structs[rest % s_structs.Length]);
        MethodInfo method = typeof(Program).GetMethod(nameof(Over), BindingFlags.NonPublic | BindingFlags.Static)!;
        var over = method.MakeGenericMethod(type).CreateDelegate<Func<int, int>>();
        s_sink += over(number % 5); // Over(
        s_sink++;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Over<T>(int depth)
    {
        int size = Unsafe.SizeOf<T>();
        if (depth > 0)
            size += Over<T>(depth - 1);
        else
            size += new List<T> { default! }.Count;
        return size + 1;
    }

    /// <summary>Dynamic methods, which are freed when they have been collected.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Emits(int number)
    {
        var method = new DynamicMethod($"Emitted_{number}", typeof(long), [typeof(Func<long>)], typeof(Program).Module, true);
        ILGenerator il = method.GetILGenerator();
        for (int i = 0; i < number % 7; i++)
        {
            il.Emit(OpCodes.Ldc_I8, (long)number * i);
            il.Emit(OpCodes.Pop);
            il.Emit(OpCodes.Call, typeof(Program).GetMethod(nameof(Nothing))!);
        }
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Callvirt, typeof(Func<long>).GetMethod("Invoke")!);
        il.Emit(OpCodes.Ldc_I8, 1L);
        il.Emit(OpCodes.Add);
        il.Emit(OpCodes.Ret);
        var emitted = method.CreateDelegate<Func<Func<long>, long>>();
        s_sink += (int)emitted(Inside); // Inside(
        s_sink++;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Nothing() { }

    /// <summary>What code of assemblies that come and go calls back.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Inside()
    {
        int length = new byte[1000].Length;
        for (int i = 0; i < 2000; i++)
            length += s_sink & 1;
        return length;
    }

    // ---- Two assemblies of one identity ----

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Copies(int number)
    {
        bool second = s_random.Next(2) == 1;
        Func<Func<long>, long> run = Load(Path.Combine(s_folder, second ? "second" : "first", "Copied.dll"), number);
        long sum = 0;
        if (second)
            sum = CallSecond(run);
        else
            sum = CallFirst(run);
        s_sink += (int)sum;
    }

    /// <summary>One path, at which the file is replaced while the code of the one before is still there.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Renewed(int number)
    {
        string path = Path.Combine(s_folder, "shared", "Copied.dll");
        Func<Func<long>, long> first = Replace(path, "first", number);
        Func<Func<long>, long> second = Replace(path, "second", number);
        s_sink += (int)CallEither(first);
        s_sink += (int)CallEither(second); // the runtime may take what it has of the path
        s_sink++;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static Func<Func<long>, long> Replace(string path, string content, int number)
    {
        foreach (string file in (string[])["Copied.dll", "Copied.pdb"])
        {
            string target = Path.Combine(Path.GetDirectoryName(path)!, file);
            File.Copy(Path.Combine(s_folder, content, file), target + ".new", true);
            File.Move(target + ".new", target, true);
        }
        return Load(path, number - number % 2);
    }

    /// <summary>By its path or from bytes; and, in each case, without and with some calls before.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static Func<Func<long>, long> Load(string path, int number)
    {
        var context = new AssemblyLoadContext($"context {number}", isCollectible: true);
        Assembly assembly = number % 2 == 0 ? context.LoadFromAssemblyPath(path)
                                            : context.LoadFromStream(new MemoryStream(File.ReadAllBytes(path)));
        var run = assembly.GetType("Copied.Entry")!.GetMethod("Run")!.CreateDelegate<Func<Func<long>, long>>();
        context.Unload(); // once nothing refers to it any more
        return run;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long CallFirst(Func<Func<long>, long> run)
    {
        long sum = 0;
        for (int i = 0; i < 50; i++)
            sum += run(Inside); // Run(
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long CallSecond(Func<Func<long>, long> run)
    {
        long sum = 0;
        for (int i = 0; i < 50; i++)
            sum += run(Inside); // Run(
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long CallEither(Func<Func<long>, long> run)
    {
        long sum = 0;
        for (int i = 0; i < 50; i++)
            sum += run(Inside); // Run(
        return sum;
    }

    // ---- Types, exceptions, collections ----

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Types(int number)
    {
        AssemblyBuilder assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName($"Made{number}"), AssemblyBuilderAccess.RunAndCollect);
        ModuleBuilder module = assembly.DefineDynamicModule("module");
        for (int i = 0; i < 5; i++)
        {
            TypeBuilder type = module.DefineType($"Made{number}.T{i}", TypeAttributes.Public);
            type.DefineDefaultConstructor(MethodAttributes.Public);
            s_sink += Activator.CreateInstance(type.CreateType()!)!.ToString()!.Length;
        }
        s_sink += typeof(Dictionary<,>).MakeGenericType(s_structs[number % 6], s_structs[number / 6 % 6]).GetMethods().Length;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Throws(int number)
    {
        try
        {
            Down(number % 7);
        }
        catch (InvalidOperationException exception) when (IsOurs(exception))
        {
            s_sink += (int)Inside();
        }
        s_sink++;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static bool IsOurs(Exception exception) => exception.Message.Length > 0 && Inside() > 0;

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Down(int depth)
    {
        try
        {
            if (depth == 0)
                throw new InvalidOperationException("at the end");
            Down(depth - 1);
        }
        finally
        {
            s_sink += (int)Inside();
        }
        s_sink++;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Collects(int number)
    {
        var kept = new List<byte[]>();
        for (int i = 0; i < 100; i++)
            kept.Add(new byte[number % 3 == 0 ? 100_000 : 1000]);
        GC.Collect(number % 3, GCCollectionMode.Forced, true, number % 9 == 0);
        if (number % 10 == 0)
            GC.WaitForPendingFinalizers();
        GC.KeepAlive(kept);
    }
}
