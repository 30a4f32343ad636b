using System.Text;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.Emit;
using Microsoft.CodeAnalysis.Text;

// Edits REFERENCES FOLDER ASYNC SOURCE...: the sources are the first version of an assembly, NAME.0.txt, and its edits in
// their order, NAME.1.txt, ... Writes FOLDER/NAME.dll and .pdb, and what edit 1 changes: NAME.1.metadata, .il and .lines.
// ASYNC is "runtime", for async methods that the runtime suspends, or "compiler".
var (references, folder, sources) = (args[0], args[1], args[3..]);
string name = Path.GetFileName(sources[0]).Split('.')[0];
string PathOf(string suffix) => Path.Combine(folder, name + suffix);

var parsing = new CSharpParseOptions(LanguageVersion.Preview);
if (args[2] == "runtime")
    parsing = parsing.WithFeatures([new("runtime-async", "on")]);
var libraries = Directory.GetFiles(references, "System.*.dll").Where(IsManaged).Select(path => MetadataReference.CreateFromFile(path));
var options = new CSharpCompilationOptions(OutputKind.DynamicallyLinkedLibrary, optimizationLevel: OptimizationLevel.Debug, deterministic: true);
var compilation = CSharpCompilation.Create(name, [Parse(sources[0])], libraries, options);
using (var dll = File.Create(PathOf(".dll")))
using (var pdb = File.Create(PathOf(".pdb")))
{
    var result = compilation.Emit(dll, pdb, options: new EmitOptions(debugInformationFormat: DebugInformationFormat.PortablePdb));
    Check(result.Success, result.Diagnostics);
}
var baseline = EmitBaseline.CreateInitialBaseline(compilation, ModuleMetadata.CreateFromFile(PathOf(".dll")), _ => default, _ => default, true);
for (int i = 1; i < sources.Length; i++)
    (compilation, baseline) = Edit(compilation, baseline, Parse(sources[i]), i);

(CSharpCompilation, EmitBaseline) Edit(CSharpCompilation first, EmitBaseline from, SyntaxTree tree, int number)
{
    var second = first.ReplaceSyntaxTree(first.SyntaxTrees[0], tree);
    var old = Members(first);
    var edits = new List<SemanticEdit>();
    foreach (var (key, symbol) in Members(second))
        if (old.TryGetValue(key, out var previous))
        {
            if (symbol is IMethodSymbol && Text(previous) != Text(symbol))
                edits.Add(new SemanticEdit(SemanticEditKind.Update, previous, symbol));
        }
        else if (symbol.ContainingType is null || old.ContainsKey(symbol.ContainingType.ToDisplayString()))
        {
            edits.Add(new SemanticEdit(SemanticEditKind.Insert, null, symbol));
        }
    var inserted = edits.Where(edit => edit.Kind == SemanticEditKind.Insert).Select(edit => edit.NewSymbol!).ToHashSet(SymbolEqualityComparer.Default);
    using var metadata = File.Create(PathOf($".{number}.metadata"));
    using var il = File.Create(PathOf($".{number}.il"));
    using var lines = File.Create(PathOf($".{number}.lines"));
    var difference = second.EmitDifference(from, edits, symbol => inserted.Contains(symbol), metadata, il, lines);
    Check(difference.Success, difference.Diagnostics);
    return (second, difference.Baseline!);
}

SyntaxTree Parse(string path) =>
    CSharpSyntaxTree.ParseText(SourceText.From(File.ReadAllText(path), Encoding.UTF8), parsing, $"/source/{name}.cs");

static Dictionary<string, ISymbol> Members(Compilation compilation)
{
    var found = new Dictionary<string, ISymbol>();
    void Add(INamedTypeSymbol type)
    {
        found[type.ToDisplayString()] = type;
        foreach (var member in type.GetMembers())
            if (member is INamedTypeSymbol nested)
                Add(nested);
            else if (!member.IsImplicitlyDeclared)
                found[member.ToDisplayString()] = member;
    }
    foreach (var type in compilation.Assembly.GlobalNamespace.GetTypeMembers())
        Add(type);
    return found;
}

static string Text(ISymbol symbol) => symbol.DeclaringSyntaxReferences[0].GetSyntax().ToString();

static void Check(bool success, IEnumerable<Diagnostic> diagnostics)
{
    if (!success)
        throw new Exception(string.Join("\n", diagnostics));
}

static bool IsManaged(string path)
{
    try
    {
        return System.Reflection.AssemblyName.GetAssemblyName(path) is not null;
    }
    catch (BadImageFormatException)
    {
        return false;
    }
}
