using System.Net;
using System.Net.Sockets;
using System.Threading.Channels;

namespace Awaiting;

/// <summary>What the innermost method of a chain waits for.</summary>
public static class Ends
{
    private static readonly TaskCompletionSource never = new();
    private static readonly SemaphoreSlim taken = new(0);
    private static readonly HttpClient client = new();

    public static async Task Wait(Chain chain, char end)
    {
        const string name = "Awaiting.Ends.Wait(Awaiting.Chain, char)";
        await Task.CompletedTask;
        switch (end)
        {
            case 's':
                chain.Note(name); chain.Ready.Set(); await never.Task;
                break;
            case 'd':
                chain.Note(name); chain.Ready.Set(); await Task.Delay(Timeout.Infinite);
                break;
            case 'c':
                var channel = Channel.CreateUnbounded<int>();
                chain.Note(name); chain.Ready.Set(); await channel.Reader.ReadAsync();
                break;
            case 'm':
                chain.Note(name); chain.Ready.Set(); await taken.WaitAsync();
                break;
            case 'h':
                chain.Note(name); chain.Ready.Set(); await client.GetStringAsync(SilentServer());
                break;
            case 'x':
                await Task.Delay(1);
                Thread.CurrentThread.Name = "runs " + chain.Name;
                chain.Ready.Set();
                Thread.Sleep(Timeout.Infinite);
                break;
        }
    }

    private static Uri SilentServer()
    {
        var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        return new Uri($"http://127.0.0.1:{((IPEndPoint)listener.LocalEndpoint).Port}/");
    }
}
