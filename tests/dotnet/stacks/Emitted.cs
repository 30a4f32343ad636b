using System.Reflection;
using System.Reflection.Emit;

namespace Stacks;

/// <summary>Methods without a file: each calls the action that it gets.</summary>
internal static class Emitted
{
    private static readonly MethodInfo Invoke = typeof(Action).GetMethod("Invoke")!;

    public static Action<Action> DynamicMethod(string name)
    {
        var method = new DynamicMethod(name, typeof(void), new[] { typeof(Action) }, typeof(Emitted).Module);
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Nop);
        Call(il);
        il.Emit(OpCodes.Ret);
        return method.CreateDelegate<Action<Action>>();
    }

    /// <summary>A dynamic method that catches what the action throws, and calls the second action in its handler.</summary>
    public static Action<Action, Action> DynamicCatch(string name)
    {
        var method = new DynamicMethod(name, typeof(void), new[] { typeof(Action), typeof(Action) }, typeof(Emitted).Module);
        ILGenerator il = method.GetILGenerator();
        il.BeginExceptionBlock();
        Call(il);
        il.BeginCatchBlock(typeof(InvalidOperationException));
        il.Emit(OpCodes.Pop);
        il.Emit(OpCodes.Ldarg_1);
        il.Emit(OpCodes.Callvirt, Invoke);
        il.EndExceptionBlock();
        il.Emit(OpCodes.Ret);
        return method.CreateDelegate<Action<Action, Action>>();
    }

    /// <summary>An assembly in memory, whose method calls the second action in a fault block; C# has none.</summary>
    public static Action<Action, Action> Fault(bool collectible)
    {
        AssemblyBuilder assembly = AssemblyBuilder.DefineDynamicAssembly(
            new AssemblyName("EmittedFault"), collectible ? AssemblyBuilderAccess.RunAndCollect : AssemblyBuilderAccess.Run);
        TypeBuilder type = assembly.DefineDynamicModule("EmittedFault").DefineType("Emitted.Faults", TypeAttributes.Public);
        MethodBuilder method = type.DefineMethod("Fault", MethodAttributes.Public | MethodAttributes.Static, typeof(void),
                                                 new[] { typeof(Action), typeof(Action) });
        ILGenerator il = method.GetILGenerator();
        il.BeginExceptionBlock();
        Call(il);
        il.BeginFaultBlock();
        il.Emit(OpCodes.Ldarg_1);
        il.Emit(OpCodes.Callvirt, Invoke);
        il.EndExceptionBlock();
        il.Emit(OpCodes.Ret);
        return type.CreateType().GetMethod("Fault")!.CreateDelegate<Action<Action, Action>>();
    }

    private static void Call(ILGenerator il)
    {
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Callvirt, Invoke);
    }
}
