using System.Reflection;
using System.Reflection.Metadata;
using System.Runtime.Loader;

// Host FOLDER: loads the assemblies FOLDER/*.dll, and Edited.dll a second time from an array of bytes, as "bytes". Obeys
// the lines of its input:
//     start ASSEMBLY TYPE METHOD [NUMBER]    calls the method on a thread of its own
//     edit ASSEMBLY NUMBER                   applies FOLDER/ASSEMBLY.NUMBER.*
//     answer                                 writes "done": all before it has been done
byte[] Read(string name) => File.ReadAllBytes(Path.Combine(args[0], name));

var assemblies = new Dictionary<string, Assembly>();
foreach (string path in Directory.GetFiles(args[0], "*.dll"))
    assemblies[Path.GetFileNameWithoutExtension(path)] = AssemblyLoadContext.Default.LoadFromAssemblyPath(path);
assemblies["bytes"] = new AssemblyLoadContext("bytes").LoadFromStream(new MemoryStream(Read("Edited.dll")));
var objects = new Dictionary<Type, object>();

void Start(Type type, string name, object[] arguments)
{
    MethodInfo method = type.GetMethod(name)!;
    if (!method.IsStatic && !objects.ContainsKey(type))
        objects[type] = Activator.CreateInstance(type)!;
    object? self = method.IsStatic ? null : objects[type];
    new Thread(() => method.Invoke(self, arguments)) { IsBackground = true }.Start();
}

while (Console.ReadLine() is { } line)
{
    string[] words = line.Split(' ');
    switch (words[0])
    {
        case "start":
            Start(assemblies[words[1]].GetType(words[2])!, words[3], words[4..].Select(word => (object)int.Parse(word)).ToArray());
            break;
        case "edit":
            string edit = $"{words[1]}.{words[2]}";
            MetadataUpdater.ApplyUpdate(assemblies[words[1]], Read(edit + ".metadata"), Read(edit + ".il"), Read(edit + ".lines"));
            break;
        case "answer":
            Console.WriteLine("done");
            break;
    }
}
