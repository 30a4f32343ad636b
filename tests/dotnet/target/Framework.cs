using System.Collections.Concurrent;
using System.Collections.Immutable;
using System.Globalization;
using System.IO.Compression;
using System.Linq.Expressions;
using System.Security.Cryptography;
using System.Text;
using System.Text.Json;
using System.Text.RegularExpressions;
using System.Xml.Linq;

namespace Demo;

internal sealed record Person(string Name, int Age, string[] Tags);

/// <summary>Walks through the framework, most of which runs precompiled (ReadyToRun) code.</summary>
internal static class Framework
{
    /// <summary>Delegates over code that the framework generates; held so that it stays alive.</summary>
    private static readonly List<object> Alive = new();

    public static int Run() =>
        Linq() + Regexes() + Json() + Collections() + TextAndNumbers() + Streams() + Expressions() + Tasks() + Xml();

    private static int Linq()
    {
        var people = Enumerable.Range(0, 50).Select(i => new Person($"P{i}", i, new[] { "a", i.ToString() }));
        var groups = from p in people
                     where p.Age > 3
                     group p by p.Age % 5 into g
                     orderby g.Key descending
                     select new { g.Key, Total = g.Sum(p => p.Age), Names = g.Select(p => p.Name).ToList() };
        return groups.Aggregate(0, (a, g) => a + g.Total + g.Names.Count)
            + people.SelectMany(p => p.Tags).Distinct().Zip(people).Count()
            + people.ToLookup(p => p.Age / 10).Count + people.Chunk(7).Max(c => c.Length);
    }

    private static int Regexes()
    {
        var compiled = new Regex(@"(?<word>\w+)\s*=\s*(?<value>\d{1,5})", RegexOptions.Compiled);
        var interpreted = new Regex(@"^(a|b)*c?[^x-z]+$", RegexOptions.IgnoreCase);
        Alive.Add(compiled);
        return compiled.Matches("one = 1; two=22;three =333").Sum(m => m.Groups["value"].Length)
            + (interpreted.IsMatch("ababcDEF") ? 1 : 0) + Regex.Replace("a1b2", @"\d", m => m.Value + m.Value).Length;
    }

    private static int Json()
    {
        var person = new Person("Ada", 36, new[] { "math", "\u00fc" });
        string json = JsonSerializer.Serialize(person, new JsonSerializerOptions { WriteIndented = true });
        using JsonDocument document = JsonDocument.Parse(json);
        return JsonSerializer.Deserialize<Person>(json)!.Tags.Length + document.RootElement.GetProperty("Age").GetInt32();
    }

    private static int Collections()
    {
        var dictionary = new ConcurrentDictionary<string, List<int>>();
        for (int i = 0; i < 20; i++)
            dictionary.GetOrAdd((i % 3).ToString(), _ => new List<int>()).Add(i);
        var sorted = new SortedDictionary<(int, string), double> { [(2, "b")] = 1, [(1, "a")] = 2 };
        var queue = new PriorityQueue<string, int>(new[] { ("x", 2), ("y", 1) });
        ImmutableArray<int> immutable = ImmutableArray.Create(3, 1, 2).Sort();
        var set = new SortedSet<Guid> { Guid.Empty, new(1, 2, 3, new byte[8]) };
        var map = ImmutableDictionary<string, int>.Empty.Add("k", 1).SetItem("l", 2);
        return dictionary.Count + sorted.Count + queue.Dequeue().Length + immutable[0] + set.Count + map.Count;
    }

    private static int TextAndNumbers()
    {
        string text = string.Format(CultureInfo.InvariantCulture, "{0:N2}|{1:X8}|{2:o}|{3,10}", 1234.5, 255, DateTime.UnixEpoch, 'c');
        byte[] utf8 = Encoding.UTF8.GetBytes(text + "äöü€");
        text += Convert.ToBase64String(utf8) + Encoding.Unicode.GetString(Encoding.Unicode.GetBytes("x"));
        decimal price = decimal.Parse("12.5", CultureInfo.InvariantCulture) * 3.3m;
        var big = System.Numerics.BigInteger.Pow(7, 200);
        var builder = new StringBuilder().AppendJoin(',', 1, 2, 3).AppendLine().Insert(0, "<").Replace("2", "two");
        return text.Length + (int)price + big.ToString().Length + builder.Length + TimeSpan.FromDays(1.5).ToString("c").Length
            + SHA256.HashData(utf8)[0] % 2 + double.Parse("1e3", CultureInfo.InvariantCulture).ToString("R").Length
            + Uri.EscapeDataString("a b").Length + new Uri("urn:example:x").Scheme.Length;
    }

    private static int Streams()
    {
        using var memory = new MemoryStream();
        using (var zip = new GZipStream(memory, CompressionLevel.Fastest, leaveOpen: true))
        using (var writer = new StreamWriter(zip))
            writer.WriteLine("line");
        memory.Position = 0;
        using var reader = new StreamReader(new GZipStream(memory, CompressionMode.Decompress));
        string path = Path.GetTempFileName();
        File.WriteAllText(path, "text");
        int length = File.ReadAllBytes(path).Length;
        File.Delete(path);
        return reader.ReadToEnd().Length + length + Path.GetExtension("a.b").Length;
    }

    private static int Expressions()
    {
        Expression<Func<int, int, int>> sum = (a, b) => a * 2 + b;
        Func<int, int, int> compiled = sum.Compile();
        ParameterExpression p = Expression.Parameter(typeof(string));
        Func<string, int> length = Expression.Lambda<Func<string, int>>(Expression.Property(p, "Length"), p).Compile();
        Alive.Add(compiled);
        Alive.Add(length);
        return compiled(1, 2) + length("four");
    }

    private static int Tasks()
    {
        int[] results = Task.WhenAll(Enumerable.Range(0, 8).Select(i => Task.Run(() => i * i))).GetAwaiter().GetResult();
        int total = 0;
        Parallel.For(0, 16, i => Interlocked.Add(ref total, i));
        using var cancel = new CancellationTokenSource();
        cancel.Cancel();
        var lazy = new Lazy<int>(() => results.Length);
        return total + lazy.Value + (cancel.Token.IsCancellationRequested ? 1 : 0) + results.AsParallel().Where(r => r > 3).Count();
    }

    private static int Xml() =>
        XDocument.Parse("<a><b c='1'/><b c='2'/></a>").Descendants("b").Sum(b => (int)b.Attribute("c")!);
}
