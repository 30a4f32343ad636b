using System.Diagnostics;
using System.IO.Pipes;
using System.Net;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using static Hangs.Program;

namespace Hangs;

/// Threads that wait in the kernel: for other processes, files, sockets and pipes.
static class Kernel
{
    [DllImport("libc")]
    static extern int open(string path, int flags);

    [DllImport("libc")]
    static extern int flock(int file, int operation);

    [DllImport("libc")]
    static extern int usleep(uint microseconds);

    public static void Child()
    {
        using Process child = Process.Start(new ProcessStartInfo("sleep", "1000000"))!;
        Console.WriteLine($"child {child.Id}");
        Ready();
        child.WaitForExit(); // @Child
    }

    public static void ChildOutput()
    {
        using Process child = Process.Start(new ProcessStartInfo("sleep", "1000000") { RedirectStandardOutput = true })!;
        Console.WriteLine($"child {child.Id}");
        Ready();
        child.StandardOutput.ReadToEnd(); // @ChildOutput
    }

    public static void Receive()
    {
        using var listener = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen();
        using var client = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        client.Connect(listener.LocalEndPoint!);
        using Socket server = listener.Accept();
        Console.WriteLine($"peer {client.RemoteEndPoint}");
        Ready();
        client.Receive(new byte[1]); // @Receive
    }

    public static void Accept()
    {
        using var listener = new Socket(AddressFamily.InterNetworkV6, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.IPv6Loopback, 0));
        listener.Listen();
        Console.WriteLine($"local {listener.LocalEndPoint}");
        Ready();
        listener.Accept(); // @Accept
    }

    public static void Pipe()
    {
        using var server = new AnonymousPipeServerStream(PipeDirection.In);
        using var client = new AnonymousPipeClientStream(PipeDirection.Out, server.ClientSafePipeHandle);
        Ready();
        server.ReadByte(); // @Pipe
    }

    public static void NamedPipe()
    {
        using var server = new NamedPipeServerStream("cdacq-hangs-" + Environment.ProcessId);
        Ready();
        server.WaitForConnection(); // @NamedPipe
    }

    public static void FileLock()
    {
        string path = Path.GetTempFileName();
        int first = open(path, 2), second = open(path, 2);
        File.Delete(path);
        Console.WriteLine($"file {path}");
        flock(first, 2);
        Ready();
        flock(second, 2); // @FileLock
    }

    public static void ConsoleRead()
    {
        Ready();
        Console.ReadLine(); // @ConsoleRead
    }

    /// As a native library does that tries again and again until a file is free.
    public static void NativeSleep()
    {
        Ready();
        while (true)
            usleep(900_000); // @NativeSleep
    }
}
