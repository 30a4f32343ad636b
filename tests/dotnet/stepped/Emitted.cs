using System.Reflection;
using System.Reflection.Emit;

namespace Stepped;

/// <summary>What C# does not write: dynamic methods, explicit tail calls, fault handlers.</summary>
internal static class Emitted
{
    private static readonly Func<int, int> Dynamic = Add("Dynamic");
    private static readonly Func<int, int> Tail = TailCall();
    private static readonly Func<int, int> TailWithMore = TailCallWithMoreArguments();
    private static readonly Func<int, int> Fault = WithFault();

    public static int Run()
    {
        int sum = Dynamic(3) + Tail(4) + TailWithMore(5) + Fault(0);
        try
        {
            return sum + Fault(1);
        }
        catch (InvalidOperationException)
        {
            return sum;
        }
    }

    private static Func<int, int> Add(string name)
    {
        var method = new DynamicMethod(name, typeof(int), new[] { typeof(int) }, typeof(Emitted), true);
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Ldc_I4, 1000);
        il.Emit(OpCodes.Add);
        il.Emit(OpCodes.Call, Method(nameof(End)));
        il.Emit(OpCodes.Ret);
        return method.CreateDelegate<Func<int, int>>();
    }

    private static Func<int, int> TailCall()
    {
        var method = new DynamicMethod("Tail", typeof(int), new[] { typeof(int) }, typeof(Emitted), true);
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Call, Method(nameof(End)));
        il.Emit(OpCodes.Tailcall);
        il.Emit(OpCodes.Call, Method(nameof(End)));
        il.Emit(OpCodes.Ret);
        return method.CreateDelegate<Func<int, int>>();
    }

    /// <summary>The callee's arguments do not fit into the caller's: the runtime calls through a dispatcher.</summary>
    private static Func<int, int> TailCallWithMoreArguments()
    {
        var method = new DynamicMethod("TailWithMore", typeof(int), new[] { typeof(int) }, typeof(Emitted), true);
        ILGenerator il = method.GetILGenerator();
        for (int i = 0; i < 12; i++)
            il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Tailcall);
        il.Emit(OpCodes.Call, Method(nameof(Many)));
        il.Emit(OpCodes.Ret);
        return method.CreateDelegate<Func<int, int>>();
    }

    private static Func<int, int> WithFault()
    {
        ModuleBuilder module = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Faults"), AssemblyBuilderAccess.Run).DefineDynamicModule("Faults");
        TypeBuilder type = module.DefineType("Faults", TypeAttributes.Public);
        MethodBuilder method = type.DefineMethod("Fault", MethodAttributes.Public | MethodAttributes.Static, typeof(int), new[] { typeof(int) });
        ILGenerator il = method.GetILGenerator();
        Label fine = il.DefineLabel();
        il.BeginExceptionBlock();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Brfalse, fine);
        il.Emit(OpCodes.Newobj, typeof(InvalidOperationException).GetConstructor(Type.EmptyTypes)!);
        il.Emit(OpCodes.Throw);
        il.MarkLabel(fine);
        il.BeginFaultBlock();
        il.Emit(OpCodes.Ldstr, "fault");
        il.Emit(OpCodes.Call, typeof(string).GetProperty(nameof(string.Length))!.GetMethod!);
        il.Emit(OpCodes.Starg_S, (byte)0);
        il.EndExceptionBlock();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Ret);
        return type.CreateType()!.GetMethod("Fault")!.CreateDelegate<Func<int, int>>();
    }

    private static MethodInfo Method(string name) => typeof(Emitted).GetMethod(name, BindingFlags.NonPublic | BindingFlags.Static)!;

    private static int End(int n) => n + 1;

    private static int Many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j, int k, int l) =>
        a + b + c + d + e + f + g + h + i + j + k + l;
}
