using System.Diagnostics;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;

namespace Stacks;

/// <summary>
/// Threads that are stopped for collections all the time. Each calls the same chain of methods again and again, and has
/// written it down once. The code of the innermost is long and has neither loops nor calls: it cannot be stopped there,
/// so that the runtime has to replace its return address.
/// </summary>
internal static class Collected
{
    private const int Threads = 4, Divisions = 40_000;

    private static readonly Func<long, long, long> Long = Emit();

    [ThreadStatic]
    private static bool told;

    [ThreadStatic]
    private static long sink;

    public static void Start(string path)
    {
        Parking.Open(path, Threads);
        for (int i = 0; i < Threads; i++)
            new Thread(() => Run(), 16 << 20) { IsBackground = true, Name = $"collected {i}" }.Start();
        Parking.Close();
    }

    /// <summary>The last thing to start: nothing else may get on while threads are stopped all the time.</summary>
    public static void StartCollector() => new Thread(Collect) { IsBackground = true, Name = "collector" }.Start();

    private static Func<long, long, long> Emit()
    {
        AssemblyBuilder assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Divisions"), AssemblyBuilderAccess.Run);
        TypeBuilder type = assembly.DefineDynamicModule("Divisions").DefineType("Divisions", TypeAttributes.Public);
        MethodBuilder method = type.DefineMethod("Long", MethodAttributes.Public | MethodAttributes.Static, typeof(long),
                                                 new[] { typeof(long), typeof(long) });
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        for (int i = 0; i < Divisions; i++)
        {
            il.Emit(OpCodes.Ldarg_1);
            il.Emit(OpCodes.Div);
            il.Emit(OpCodes.Ldc_I4, i + 1_000_000);
            il.Emit(OpCodes.Conv_I8);
            il.Emit(OpCodes.Add);
        }
        il.Emit(OpCodes.Ret);
        return type.CreateType()!.GetMethod("Long")!.CreateDelegate<Func<long, long, long>>();
    }

    private static void Collect()
    {
        while (true)
            GC.Collect(0);
    }

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    private static void Run()
    {
        while (true)
            sink += First(sink);
    }

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    private static long First(long x) => Second(x + 1) + 1;

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    private static long Second(long x) => Third(x * 3) ^ 5;

    /// <summary>All on one line, so that the place that is recorded is the place that is seen.</summary>
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    private static long Third(long x)
    {
        if (!told) Tell(new StackTrace(true)); return Long(x, 3) - 1;
    }

    private static void Tell(StackTrace trace)
    {
        told = true;
        Long(1, 3); // it is compiled before the first collection
        Parking.Record("collected", trace);
    }
}
