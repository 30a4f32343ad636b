using System.Collections.Concurrent;
using System.Globalization;
using System.Text;
using System.Text.Json;
using System.Text.RegularExpressions;
using System.Xml.Linq;

namespace Stepped;

internal sealed record Person(string Name, int Age, string[] Tags);

/// <summary>Code of the framework, precompiled or not as the driver's settings say.</summary>
internal static class Framework
{
    private static readonly Regex Words = new(@"(?<word>\w+)\s*=\s*(?<value>\d{1,5})", RegexOptions.Compiled);
    private static readonly Regex Letters = new(@"^(a|b)*c?[^x-z]+$", RegexOptions.IgnoreCase);
    private static readonly JsonSerializerOptions Indented = new() { WriteIndented = true };

    public static int Run() => Linq() + Collections() + TextAndNumbers() + Json() + Expressions();

    private static int Linq()
    {
        Person[] people = Enumerable.Range(0, 6).Select(i => new Person($"P{i}", i, new[] { "a", i.ToString() })).ToArray();
        var groups = from p in people
                     where p.Age > 1
                     group p by p.Age % 2 into g
                     orderby g.Key descending
                     select new { g.Key, Total = g.Sum(p => p.Age), Names = g.Select(p => p.Name).ToList() };
        return groups.Aggregate(0, (a, g) => a + g.Total + g.Names.Count)
            + people.SelectMany(p => p.Tags).Distinct().Zip(people).Count()
            + people.ToLookup(p => p.Age / 2).Count + people.Chunk(4).Max(c => c.Length) + people.OrderBy(p => p.Name).First().Age;
    }

    private static int Collections()
    {
        var dictionary = new ConcurrentDictionary<string, List<int>>();
        for (int i = 0; i < 6; i++)
            dictionary.GetOrAdd((i % 3).ToString(), _ => new List<int>()).Add(i);
        var sorted = new SortedDictionary<(int, string), double> { [(2, "b")] = 1, [(1, "a")] = 2 };
        var queue = new PriorityQueue<string, int>(new[] { ("x", 2), ("y", 1) });
        var set = new HashSet<Guid> { Guid.Empty, new(1, 2, 3, new byte[8]) };
        var list = new LinkedList<int>(new[] { 1, 2, 3 });
        int[] numbers = { 5, 3, 9, 1 };
        Array.Sort(numbers, (a, b) => a - b);
        return dictionary.Count + sorted.Count + queue.Dequeue().Length + set.Count + list.Count + numbers[0] + Array.BinarySearch(numbers, 5);
    }

    private static int TextAndNumbers()
    {
        string text = string.Format(CultureInfo.InvariantCulture, "{0:N2}|{1:X8}|{2:o}|{3,10}", 1234.5, 255, DateTime.UnixEpoch, 'c');
        byte[] utf8 = Encoding.UTF8.GetBytes(text + "äöü€");
        text += Convert.ToBase64String(utf8) + Encoding.UTF8.GetString(utf8);
        decimal price = decimal.Parse("12.5", CultureInfo.InvariantCulture) * 3.3m;
        var big = System.Numerics.BigInteger.Pow(7, 20);
        var builder = new StringBuilder().AppendJoin(',', 1, 2, 3).AppendLine().Insert(0, "<").Replace("2", "two");
        return text.Length + (int)price + big.ToString().Length + builder.ToString().Length + TimeSpan.FromDays(1.5).ToString("c").Length
            + double.Parse("1e3", CultureInfo.InvariantCulture).ToString("R", CultureInfo.InvariantCulture).Length + Uri.EscapeDataString("a b").Length
            + text.Split('|').Length + string.Join(";", text.Take(3)).Length + text.IndexOf("ff", StringComparison.OrdinalIgnoreCase)
            + new Uri("https://example.org/a?b=c").Host.Length + Path.GetFullPath("a/../b").Length + Guid.Empty.ToString().Length;
    }

    private static int Json()
    {
        string json = JsonSerializer.Serialize(new Person("Ada", 36, new[] { "math" }), Indented);
        using JsonDocument document = JsonDocument.Parse(json);
        return JsonSerializer.Deserialize<Person>(json)!.Tags.Length + document.RootElement.GetProperty("Age").GetInt32()
            + XDocument.Parse("<a><b c='1'/></a>").Descendants("b").Count();
    }

    private static int Expressions() =>
        Words.Matches("one = 1; two=22").Sum(m => m.Groups["value"].Length) + (Letters.IsMatch("abcDEF") ? 1 : 0) + Regex.Replace("a1", @"\d", m => m.Value).Length;
}
