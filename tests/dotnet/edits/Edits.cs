using System.Text;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.Emit;
using Microsoft.CodeAnalysis.Text;

// Edits REFERENCES BEFORE AFTER FOLDER: writes FOLDER/Edited.dll and .pdb, and what changes them: .metadata, .il, .lines.
var (references, before, after, folder) = (args[0], args[1], args[2], args[3]);
string PathOf(string suffix) => Path.Combine(folder, "Edited" + suffix);

var libraries = Directory.GetFiles(references, "System.*.dll").Where(IsManaged).Select(path => MetadataReference.CreateFromFile(path));
var options = new CSharpCompilationOptions(OutputKind.DynamicallyLinkedLibrary, optimizationLevel: OptimizationLevel.Debug, deterministic: true);
var first = CSharpCompilation.Create("Edited", [Parse(before)], libraries, options);
using (var dll = File.Create(PathOf(".dll")))
using (var pdb = File.Create(PathOf(".pdb")))
{
    var result = first.Emit(dll, pdb, options: new EmitOptions(debugInformationFormat: DebugInformationFormat.PortablePdb));
    Check(result.Success, result.Diagnostics);
}

var second = first.ReplaceSyntaxTree(first.SyntaxTrees[0], Parse(after));
var old = Members(first);
var edits = new List<SemanticEdit>();
foreach (var (name, symbol) in Members(second))
    if (old.TryGetValue(name, out var previous))
    {
        if (symbol is IMethodSymbol && Text(previous) != Text(symbol))
            edits.Add(new SemanticEdit(SemanticEditKind.Update, previous, symbol));
    }
    else if (symbol.ContainingType is null || old.ContainsKey(symbol.ContainingType.ToDisplayString()))
    {
        edits.Add(new SemanticEdit(SemanticEditKind.Insert, null, symbol));
    }
var inserted = edits.Where(edit => edit.Kind == SemanticEditKind.Insert).Select(edit => edit.NewSymbol!).ToHashSet(SymbolEqualityComparer.Default);
var baseline = EmitBaseline.CreateInitialBaseline(first, ModuleMetadata.CreateFromFile(PathOf(".dll")), _ => default, _ => default, true);
using var metadata = File.Create(PathOf(".metadata"));
using var il = File.Create(PathOf(".il"));
using var lines = File.Create(PathOf(".lines"));
var difference = second.EmitDifference(baseline, edits, symbol => inserted.Contains(symbol), metadata, il, lines);
Check(difference.Success, difference.Diagnostics);

static SyntaxTree Parse(string path) =>
    CSharpSyntaxTree.ParseText(SourceText.From(File.ReadAllText(path), Encoding.UTF8), path: "/source/Edited.cs");

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

static string Text(ISymbol symbol) => symbol.DeclaringSyntaxReferences[0].GetSyntax().ToFullString();

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
