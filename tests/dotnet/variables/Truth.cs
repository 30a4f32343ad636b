using System.Globalization;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Text.Json;

/// <summary>Writes what variables hold, and parks threads.</summary>
static class Truth
{
    public readonly record struct Variable(string Name, string Type, object? Value);

    [System.Runtime.InteropServices.DllImport("libc")]
    static extern int gettid();

    static readonly object Gate = new();
    static StreamWriter? writer;
    static CountdownEvent? ready;

    public static void Open(string path, int threads)
    {
        writer = new StreamWriter(path);
        ready = new CountdownEvent(threads);
    }

    public static bool Wait(TimeSpan time)
    {
        bool all = ready!.Wait(time);
        lock (Gate)
            writer!.Flush();
        return all;
    }

    static object? Text(object? value, Type type)
    {
        if (value is null)
            return null;
        type = value.GetType();
        if (value is string or char)
            return value.ToString();
        if (value is bool b)
            return b ? "true" : "false";
        if (value is DateTime t)
            return t.ToString("o", CultureInfo.InvariantCulture);
        if (value is float f)
            return f.ToString("R", CultureInfo.InvariantCulture);
        if (value is double d)
            return d.ToString("R", CultureInfo.InvariantCulture);
        if (type.IsEnum || value is Guid or TimeSpan or DayOfWeek)
            return value.ToString();
        if (type.IsPrimitive || value is decimal)
            return Convert.ToString(value, CultureInfo.InvariantCulture);
        if (!type.IsValueType)
            return "object:" + type;
        var fields = new Dictionary<string, object?>();
        foreach (FieldInfo field in type.GetFields(BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic))
            fields[field.Name] = Text(field.GetValue(value), field.FieldType);
        return fields;
    }

    public static Variable V<T>(string name, T value) => new(name, typeof(T).ToString(), Text(value, typeof(T)));

    /// <summary>A by-ref.</summary>
    public static Variable R<T>(string name, ref T value) => new(name, typeof(T) + "&", Text(value, typeof(T)));

    /// <summary>A variable of which only some fields are known.</summary>
    public static Variable F(string name, string type, params (string Name, object Value)[] fields) =>
        new(name, type, fields.ToDictionary(field => field.Name, field => Text(field.Value, field.Value.GetType())));

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Log(string method, params Variable[] variables)
    {
        string line = JsonSerializer.Serialize(new { method, thread = gettid(), variables });
        lock (Gate)
            writer!.WriteLine(line);
    }

    public static void Signal() => ready!.Signal();

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Stop()
    {
        Signal();
        Thread.Sleep(Timeout.Infinite);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static T Stop<T>(T value)
    {
        Stop();
        return value;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Use<T>(T value) => GC.KeepAlive(value);

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static T Make<T>(T value) => value;
}
