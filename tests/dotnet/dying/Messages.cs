// Exceptions whose text is made from their fields.
using System.ComponentModel;
using System.Globalization;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Security;

namespace Dying;

class PlainException : Exception;

class GenericException<T> : Exception
{
    internal class NestedException : GenericException<T>;
}

class OverridingException(string text) : Exception("stored")
{
    public override string Message => $"computed {text}";
}

class PrintingException() : Exception("stored")
{
    public override string ToString() => "printed";
}

interface IDescribed
{
    string Message { get; }
}

/// <summary>Overrides nothing.</summary>
class ExplicitException() : Exception("stored"), IDescribed
{
    string IDescribed.Message => "of the interface";
}

class DerivedArgumentException(string message) : ArgumentException(message, "derived");

static class Messages
{
    public static void Plain() => throw new PlainException();
    public static void Generic() => throw new GenericException<Dictionary<string, int[]>>.NestedException();
    public static void Empty() => throw new Exception("");
    public static void NullMessage() => throw new Exception(null);
    public static void Argument() => throw new ArgumentException("text", "name");
    public static void ArgumentEmptyName() => throw new ArgumentException("text", "");
    public static void DerivedArgument() => throw new DerivedArgumentException("text");
    public static void ArgumentNull() => ArgumentNullException.ThrowIfNull((object?)null, "name");
    public static void Range() => throw new ArgumentOutOfRangeException("name", 5, "text");
    public static void RangeText() => throw new ArgumentOutOfRangeException("name", "value", "text");
    public static void RangeLong() => throw new ArgumentOutOfRangeException("name", long.MinValue, "text");
    public static void RangeUnsigned() => throw new ArgumentOutOfRangeException("name", ulong.MaxValue, "text");
    public static void RangeDouble() => throw new ArgumentOutOfRangeException("name", 1.5, "text");
    public static void RangeBool() => throw new ArgumentOutOfRangeException("name", true, "text");
    public static void RangeChar() => throw new ArgumentOutOfRangeException("name", 'x', "text");
    public static void RangeEnum() => throw new ArgumentOutOfRangeException("name", DayOfWeek.Friday, "text");
    public static void RangeObject() => throw new ArgumentOutOfRangeException("name", new object(), "text");
    public static void RangeNoMessage() => throw new ArgumentOutOfRangeException("name", -1, null);
    public static void Negative() => ArgumentOutOfRangeException.ThrowIfNegative(-5, "name");
    public static void Disposed2() => throw new ObjectDisposedException("Thing");
    public static void DisposedText() => throw new ObjectDisposedException("Thing", "text");
    public static void DisposedNoName() => throw new ObjectDisposedException("", "text");
    public static void NoFile() => throw new FileNotFoundException("text", "file.txt");
    public static void NoFileInner() => throw new FileNotFoundException("text", "file.txt", new Exception("inner"));
    public static void NoFileNoMessage() => throw new FileNotFoundException(null, "file.txt");
    public static void NoFileNothing() => throw new FileNotFoundException(null, (string?)null);
    public static void NotLoaded() => throw new FileLoadException("text", "file.dll");
    public static void NotLoadedNoMessage() => throw new FileLoadException(null, "file.dll");
    public static void Bad() => throw new BadImageFormatException("text", "file.dll");
    public static void BadInner() => throw new BadImageFormatException("text", "file.dll", new Exception("inner"));
    public static void BadNoMessage() => throw new BadImageFormatException(null, "file.dll");
    public static void NoDirectory() => throw new DirectoryNotFoundException("text");
    public static void NoDirectoryInner() => throw new DirectoryNotFoundException("text", new Exception("inner"));
    public static void NoDirectoryEmpty() => throw new DirectoryNotFoundException("");
    public static void NoDirectoryPath() => throw Create<DirectoryNotFoundException>("text", "some/path", new Exception("inner"));
    public static void NoDirectoryPathAlone() => throw Create<DirectoryNotFoundException>(null, "some/path", null);
    public static void Options() => throw CreateOptions(new List<string> { "first", "", null!, "last" }) ?? new PlainException();
    public static void OptionsNothing() => throw CreateOptions(null) ?? new PlainException();
    public static void OptionsArray() => throw CreateOptions(new[] { "one", "two" }) ?? new PlainException();
    public static void OptionsComputed() => throw CreateOptions(Enumerable.Range(0, 3).Select(number => $"{number}")) ?? new OverridingException("text");
    public static void TypeInitialization() => throw new TypeInitializationException("Some.Type", new Exception("inner"));
    public static void AggregateEmpty() => throw new AggregateException();
    public static void AggregateOne() => throw new AggregateException(new Exception("one"));
    public static void AggregateNested() => throw new AggregateException("text", new AggregateException(new Exception("a"), new Exception("b")), new Exception("c"));
    public static void NoMethod() => throw new MissingMethodException("Some.Type", "Method");
    public static void NoField() => throw new MissingFieldException("Some.Type", "Field");
    public static void NoMember() => throw new MissingMemberException("Some.Type", "Member");
    public static void NoMethodText() => throw new MissingMethodException("text");
    public static void NoType() => throw new TypeLoadException("text");
    public static void NoTypeNoMessage() => throw new TypeLoadException(null);
    public static void Win32() => throw new Win32Exception(2);
    public static void Win32Text() => throw new Win32Exception(0x1234567, "text");
    public static void External() => throw new ExternalException("text", 5);
    public static void ExternalInner() => throw new ExternalException("text", new Exception("inner"));
    public static void Com() => throw new COMException("text", unchecked((int)0x80004005));
    public static void Seh() => throw new SEHException("text");
    public static void Socket() => throw new System.Net.Sockets.SocketException(111);
    public static void Culture() => throw new CultureNotFoundException("name", "zz-zz", "text");
    public static void CultureId() => throw new CultureNotFoundException("name", 1234, "text");
    public static void Loader() => throw new ReflectionTypeLoadException([], [new Exception("x"), null, new Exception("y")], "text");
    public static void Switch() => throw new SwitchExpressionException((object)5);
    public static void SwitchNothing() => throw new SwitchExpressionException();
    public static void Security() => throw new SecurityException("text");
    public static void JsonText() => throw new System.Text.Json.JsonException("text", "$.path", 1, 2);
    public static void JsonNothing() => throw new System.Text.Json.JsonException();
    public static void XmlText() => throw new System.Xml.XmlException("text", null, 3, 4);
    public static void Overriding() => throw new OverridingException("text");
    public static void OverridingInner() => throw new Exception("outer", new OverridingException("text"));
    public static void Printing() => throw new PrintingException();
    public static void PrintingInner() => throw new Exception("outer", new PrintingException());
    public static void Namesake() => throw new System.Xml.XPath.XPathException();
    public static void OverridingByRow() => throw (Exception)Activator.CreateInstance(OverridingType())!;

    /// <summary>What a constructor makes that only some releases have.</summary>
    static Exception Create<T>(string? message, string? path, Exception? inner) where T : Exception =>
        typeof(T).GetConstructor([typeof(string), typeof(string), typeof(Exception)])?.Invoke([message, path, inner]) as Exception ??
        new PlainException();

    /// <summary>The type is part of the runtime since .NET 11.</summary>
    static Exception? CreateOptions(IEnumerable<string>? failures) =>
        Type.GetType("Microsoft.Extensions.Options.OptionsValidationException, Microsoft.Extensions.Options") is { } type
            ? (Exception)Activator.CreateInstance(type, "name", typeof(Messages), failures)!
            : null;

    /// <summary>A type whose method has another name than the one that it overrides.</summary>
    static Type OverridingType()
    {
        var assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Overriding"), AssemblyBuilderAccess.Run);
        var type = assembly.DefineDynamicModule("Overriding").DefineType("OverridingByRow", TypeAttributes.Public, typeof(Exception));
        var method = type.DefineMethod("Weird", MethodAttributes.Public | MethodAttributes.Virtual, typeof(string), []);
        var il = method.GetILGenerator();
        il.Emit(OpCodes.Ldstr, "computed");
        il.Emit(OpCodes.Ret);
        type.DefineMethodOverride(method, typeof(Exception).GetMethod("get_Message")!);
        return type.CreateType();
    }

    public static void ExplicitMessage() => throw new ExplicitException();
    public static void Unicode() => throw new InvalidOperationException("Grüße \u4f60\u597d \ud83d\ude00 \u2028 \u200f end");
    public static void Surrogates() => throw new InvalidOperationException("\ud83d alone, \ude00 too \ud83d");
    public static void Controls() => throw new InvalidOperationException("tab\t bell\a escape\u001b[31m nul\0 line\r\nnext\n");
    public static void Huge() => throw new InvalidOperationException(new string('x', 5 << 20) + new string('é', 5 << 20));
    public static void ManyInner()
    {
        var exception = new Exception("0");
        for (int i = 1; i < 40; i++)
            exception = new Exception($"{i}", exception);
        throw exception;
    }
}
