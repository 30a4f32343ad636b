// Assemblies in memory, each of which has a type whose base type is that of the next.
using System.Reflection;
using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Reflection.PortableExecutable;

namespace Dying;

static class Referring
{
    /// <summary>Makes the assemblies that follow the missing one, and returns the last.</summary>
    internal static Assembly Load(string missing, params string[] names)
    {
        Dictionary<string, Assembly> loaded = [];
        AppDomain.CurrentDomain.AssemblyResolve += (_, arguments) => loaded.GetValueOrDefault(new AssemblyName(arguments.Name).Name!);
        string reference = missing;
        foreach (string name in names)
        {
            loaded[name] = Assembly.Load(Make(name, reference));
            reference = name;
        }
        return loaded[reference];
    }

    /// <summary>A PDB that says of each of so many methods that it is in line 5 of another file.</summary>
    internal static byte[] MakePdb(int methods)
    {
        var metadata = new MetadataBuilder();
        DocumentHandle document = metadata.AddDocument(metadata.GetOrAddDocumentName("/foreign/Other.cs"), default, default, default);
        BlobHandle points = metadata.GetOrAddBlob((byte[])[0, 0, 0, 1, 5, 1]);
        for (int i = 0; i < methods; i++)
        {
            metadata.AddMethodDebugInformation(document, points);
        }

        var image = new BlobBuilder();
        new PortablePdbBuilder(metadata, [.. new int[MetadataTokens.TableCount]], default, _ => new BlobContentId(Guid.NewGuid(), 1)).Serialize(image);
        return image.ToArray();
    }

    static byte[] Make(string name, string reference)
    {
        var metadata = new MetadataBuilder();
        metadata.AddModule(0, metadata.GetOrAddString(name), metadata.GetOrAddGuid(Guid.NewGuid()), default, default);
        metadata.AddAssembly(metadata.GetOrAddString(name), new Version(1, 0, 0, 0), default, default, default, default);
        AssemblyReferenceHandle assembly = metadata.AddAssemblyReference(metadata.GetOrAddString(reference), new Version(1, 0, 0, 0), default, default, default, default);
        TypeReferenceHandle parent = metadata.AddTypeReference(assembly, default, metadata.GetOrAddString("Type"));
        FieldDefinitionHandle field = MetadataTokens.FieldDefinitionHandle(1);
        MethodDefinitionHandle method = MetadataTokens.MethodDefinitionHandle(1);
        metadata.AddTypeDefinition(default, default, metadata.GetOrAddString("<Module>"), default, field, method);
        metadata.AddTypeDefinition(TypeAttributes.Public, default, metadata.GetOrAddString("Type"), parent, field, method);
        var image = new BlobBuilder();
        new ManagedPEBuilder(PEHeaderBuilder.CreateLibraryHeader(), new MetadataRootBuilder(metadata), new BlobBuilder()).Serialize(image);
        return image.ToArray();
    }
}
