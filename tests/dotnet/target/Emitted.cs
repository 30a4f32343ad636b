using System.Globalization;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.Loader;

namespace Demo;

/// <summary>Types that run only inside a collectible load context, so that their names tell which one is gone.</summary>
public static class PluginKept
{
    public static int Work(int n) => Inner<string>.Twice(n);

    private static class Inner<T>
    {
        public static int Twice(int n) => new[] { n, n }.Sum(x => x) + typeof(T).Name.Length;
    }
}

/// <summary>Like <see cref="PluginKept"/>, but its context is unloaded.</summary>
public static class PluginReleased
{
    public static int Work(int n) => n < 2 ? n : Work(n - 1) + Work(n - 2);
}

/// <summary>Code without an assembly on disk: DynamicMethod, AssemblyBuilder, collectible load contexts.</summary>
internal static class Emitted
{
    private const int Pairs = 20;
    private const int TinyMethods = 300;
    // Unoptimized code of one step takes some 10 bytes: together well beyond 64 KiB.
    private const int HugeSteps = 10_000;

    private static readonly List<object> Kept = new();

    /// <summary>"Type::Method" of everything that was compiled, released and collected.</summary>
    public static List<string> Released { get; } = new();

    public static int Run()
    {
        int sum = AlternatingDynamicMethods() + RunAssembly() + KeptCollectible() + KeptPlugin();
        WeakReference[] gone = { ReleasedCollectible(), ReleasedPlugin() };
        Collect(gone);
        return sum;
    }

    /// <summary>Kept and released ones take turns: the freed code leaves holes between living methods.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int AlternatingDynamicMethods()
    {
        int sum = 0;
        for (int i = 0; i < Pairs; i++)
        {
            Func<int, int> kept = DynamicAdd(Numbered("KeptDynamic", i), 3 + i % 4);
            Kept.Add(kept);
            string name = Numbered("ReleasedDynamic", i);
            sum += kept(i) + DynamicAdd(name, 3 + i % 4)(i);
            Released.Add($"dynamicClass::{name}");
        }
        return sum + KeptOwnedDynamic()("text");
    }

    private static Func<int, int> DynamicAdd(string name, int steps)
    {
        var method = new DynamicMethod(name, typeof(int), new[] { typeof(int) });
        EmitSteps(method.GetILGenerator(), steps);
        return method.CreateDelegate<Func<int, int>>();
    }

    /// <summary>A dynamic method that belongs to a type, with a name that no compiler would choose.</summary>
    private static Func<string, int> KeptOwnedDynamic()
    {
        var method = new DynamicMethod("Owned (odd) näme \U0001F600", typeof(int), new[] { typeof(string) }, typeof(Emitted), true);
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Call, typeof(string).GetProperty(nameof(string.Length))!.GetMethod!);
        il.Emit(OpCodes.Ret);
        var result = method.CreateDelegate<Func<string, int>>();
        Kept.Add(result);
        return result;
    }

    private static int RunAssembly()
    {
        ModuleBuilder module = DefineModule("EmittedRun", AssemblyBuilderAccess.Run);
        Type type = DefineTinyAndHuge(module.DefineType("Emitted.Müll\U0001F600.Tiny", TypeAttributes.Public));
        Type box = DefineGeneric(module.DefineType("Emitted.Box`1", TypeAttributes.Public));
        return Call(type, "All") + Call(type, "Huge")
            + Call(box.MakeGenericType(typeof(int)), "Depth") + Call(box.MakeGenericType(typeof(string)), "Depth");
    }

    private static int KeptCollectible()
    {
        Type type = DefineOne("EmittedKept", "Emitted.KeptCollectible");
        Kept.Add(type);
        return Call(type, "Work");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static WeakReference ReleasedCollectible()
    {
        Type type = DefineOne("EmittedReleased", "Emitted.ReleasedCollectible");
        Call(type, "Work");
        Released.Add("Emitted.ReleasedCollectible::Work");
        return new WeakReference(type);
    }

    private static int KeptPlugin()
    {
        AssemblyLoadContext context = LoadMyself("kept");
        Kept.Add(context);
        return Call(context.Assemblies.First().GetType("Demo.PluginKept")!, "Work");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static WeakReference ReleasedPlugin()
    {
        AssemblyLoadContext context = LoadMyself("released");
        Call(context.Assemblies.First().GetType("Demo.PluginReleased")!, "Work");
        Released.Add("Demo.PluginReleased::Work");
        context.Unload();
        return new WeakReference(context);
    }

    /// <summary>A second copy of this very assembly: same path, same names, another module.</summary>
    private static AssemblyLoadContext LoadMyself(string name)
    {
        var context = new AssemblyLoadContext(name, isCollectible: true);
        context.LoadFromAssemblyPath(Path.Combine(AppContext.BaseDirectory, "Demo.dll"));
        return context;
    }

    /// <summary>
    /// Code of a collected object is freed by finalizers, some of which only
    /// arrange for the next collection to do it: hence rounds beyond the last death.
    /// </summary>
    private static void Collect(WeakReference[] gone)
    {
        for (int spare = 5, limit = 100; spare > 0 && limit > 0; limit--)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
            if (!gone.Any(g => g.IsAlive))
                spare--;
        }
        if (gone.Any(g => g.IsAlive))
            throw new InvalidOperationException("a collectible context was not collected");
    }

    private static ModuleBuilder DefineModule(string name, AssemblyBuilderAccess access) =>
        AssemblyBuilder.DefineDynamicAssembly(new AssemblyName(name), access).DefineDynamicModule(name);

    private static Type DefineOne(string assembly, string typeName)
    {
        TypeBuilder type = DefineModule(assembly, AssemblyBuilderAccess.RunAndCollect).DefineType(typeName, TypeAttributes.Public);
        EmitSteps(DefineStatic(type, "Work").GetILGenerator(), 4);
        return type.CreateType()!;
    }

    private static Type DefineTinyAndHuge(TypeBuilder type)
    {
        MethodBuilder all = DefineStatic(type, "All");
        ILGenerator il = all.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        for (int i = 0; i < TinyMethods; i++)
        {
            MethodBuilder tiny = DefineStatic(type, Numbered("Tiny", i));
            EmitSteps(tiny.GetILGenerator(), i % 3);
            il.Emit(OpCodes.Call, tiny);
        }
        il.Emit(OpCodes.Ret);
        EmitSteps(DefineStatic(type, "Huge").GetILGenerator(), HugeSteps);
        return type.CreateType()!;
    }

    private static Type DefineGeneric(TypeBuilder type)
    {
        type.DefineGenericParameters("TItem");
        EmitSteps(DefineStatic(type, "Depth").GetILGenerator(), 2);
        return type.CreateType()!;
    }

    private static MethodBuilder DefineStatic(TypeBuilder type, string name) =>
        type.DefineMethod(name, MethodAttributes.Public | MethodAttributes.Static, typeof(int), new[] { typeof(int) });

    private static void EmitSteps(ILGenerator il, int steps)
    {
        il.Emit(OpCodes.Ldarg_0);
        for (int i = 0; i < steps; i++)
        {
            il.Emit(OpCodes.Ldc_I4, 1_000_003 + i);
            il.Emit(i % 2 == 0 ? OpCodes.Mul : OpCodes.Add);
            il.Emit(OpCodes.Starg_S, (byte)0);
            il.Emit(OpCodes.Ldarg_0);
        }
        il.Emit(OpCodes.Ret);
    }

    private static int Call(Type type, string method) => (int)type.GetMethod(method)!.Invoke(null, new object[] { 5 })!;

    private static string Numbered(string name, int i) => name + i.ToString("D3", CultureInfo.InvariantCulture);
}
