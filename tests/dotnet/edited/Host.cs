using System.Reflection;
using System.Reflection.Metadata;
using System.Runtime.Loader;

// Host FOLDER: starts threads in FOLDER/Edited.dll. At the first line of its input it starts another one in the same
// method, or, if the line is "change", it changes the assembly and starts threads in what was changed and added.
string PathOf(string suffix) => Path.Combine(args[0], "Edited" + suffix);
byte[] Read(string suffix) => File.ReadAllBytes(PathOf(suffix));

void Start(Assembly assembly, string method, params object[] arguments)
{
    var started = assembly.GetType("Work")!.GetMethod(method)!;
    new Thread(() => started.Invoke(null, arguments)) { IsBackground = true }.Start();
}

var edited = AssemblyLoadContext.Default.LoadFromAssemblyPath(PathOf(".dll"));
var ofBytes = new AssemblyLoadContext("bytes").LoadFromStream(new MemoryStream(Read(".dll")));
Start(ofBytes, "Untouched");
Start(edited, "Untouched");
Start(edited, "Changed", Timeout.Infinite);
Thread.Sleep(1000);
Console.WriteLine("started");
if (Console.ReadLine() != "change")
{
    Start(edited, "Untouched");
    Thread.Sleep(1000);
    Console.WriteLine("again");
    Console.In.ReadToEnd();
    return;
}
MetadataUpdater.ApplyUpdate(edited, Read(".metadata"), Read(".il"), Read(".lines"));
Start(edited, "Changed", Timeout.Infinite);
for (int way = 1; way <= 3; way++)
    Start(edited, "Changed", way);
Thread.Sleep(1000);
Console.WriteLine("changed");
Console.In.ReadToEnd();
