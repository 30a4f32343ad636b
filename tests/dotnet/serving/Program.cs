using System.Net;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace Serving;

/// <summary>Serves requests of its own: it answers those for /ok, and none for /orders. Writes what is in flight.</summary>
public static class Program
{
    public static async Task Main(string[] arguments)
    {
        WebApplicationBuilder builder = WebApplication.CreateBuilder();
        builder.WebHost.ConfigureKestrel(options =>
        {
            options.Listen(IPAddress.Loopback, 0);
            options.Listen(IPAddress.Loopback, 0, listen => listen.Protocols = HttpProtocols.Http2);
        });
        builder.Logging.ClearProviders();
        if (arguments.Contains("log")) // as by default: then requests have a time
            builder.Logging.AddProvider(new Quiet());
        WebApplication app = builder.Build();
        var never = new TaskCompletionSource();
        app.MapGet("/ok", () => "ok");
        app.MapGet("/orders/{id}", async (int id) => await Answer(never.Task));
        app.MapGet("/broken", async (HttpContext context) =>
        {
            await context.Response.WriteAsync("begin");
            await context.Response.Body.FlushAsync();
            await Task.Delay(Timeout.Infinite, context.RequestAborted);
        });
        app.MapPost("/orders", async () => await Answer(never.Task));
        await app.StartAsync();
        string[] addresses = app.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>()!.Addresses.ToArray();
        string address = addresses[0];
        var client = new HttpClient { Timeout = TimeSpan.FromMinutes(10) };
        for (int i = 0; i < 5; i++)
            await client.GetStringAsync(address + "/ok");
        var requests = new List<Task>();
        var truth = new List<string>();
        for (int i = 0; i < 3; i++)
        {
            requests.Add(client.GetStringAsync($"{address}/orders/{i}?full=1"));
            truth.Add($"served\tGET /orders/{i}?full=1\t1");
            truth.Add($"sent\tGET {address}/orders/{i}?full=1\t1");
        }
        requests.Add(client.PostAsync(address + "/orders", new StringContent("text")));
        truth.Add("served\tPOST /orders\t1");
        truth.Add($"sent\tPOST {address}/orders\t1");
        using var second = new HttpClient { Timeout = TimeSpan.FromMinutes(10), DefaultRequestVersion = HttpVersion.Version20, DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact };
        for (int i = 0; i < 3; i++)
            await second.GetStringAsync(addresses[1] + "/ok");
        requests.Add(second.GetStringAsync(addresses[1] + "/orders/20"));
        truth.Add("served\tGET /orders/20\t1");
        truth.Add($"sent\tGET {addresses[1]}/orders/20\t1");
        await Break(second, addresses[1] + "/broken");
        await Task.Delay(1000);
        await File.WriteAllLinesAsync(arguments[0], truth);
        Console.WriteLine($"READY {Environment.ProcessId}");
        await Task.WhenAll(requests);
    }

    /// <summary>Ends a request whose answer has begun.</summary>
    private static async Task Break(HttpClient client, string address)
    {
        using var end = new CancellationTokenSource();
        using HttpResponseMessage answer = await client.GetAsync(address, HttpCompletionOption.ResponseHeadersRead, end.Token);
        Stream body = await answer.Content.ReadAsStreamAsync();
        await body.ReadExactlyAsync(new byte[5]);
        await end.CancelAsync();
        answer.Dispose();
    }

    private static async Task<string> Answer(Task task)
    {
        await task;
        return "done";
    }

    private sealed class Quiet : ILoggerProvider, ILogger
    {
        public ILogger CreateLogger(string category) => this;

        public void Dispose()
        {
        }

        public IDisposable? BeginScope<TState>(TState state) where TState : notnull => null;

        public bool IsEnabled(LogLevel level) => level >= LogLevel.Information;

        public void Log<TState>(LogLevel level, EventId id, TState state, Exception? exception, Func<TState, Exception?, string> formatter)
        {
        }
    }
}
