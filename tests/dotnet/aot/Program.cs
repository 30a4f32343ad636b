// aot park | aot WAY: parks threads, or dies. Nothing is called by reflection, which would keep other metadata.
namespace Aot;

static class Program
{
    static int Main(string[] arguments)
    {
        switch (arguments.Length == 1 ? arguments[0] : "")
        {
            case "park": Parking.Run(); break;
            case "Nested": Deaths.Nested(); break;
            case "OnThread": Deaths.OnThread(); break;
            case "NullReference": Deaths.NullReference(); break;
            case "Generic": Deaths.Generic(); break;
            case "Aggregate": Deaths.Aggregate(); break;
            case "Async": Deaths.Async().Wait(); break;
            case "Rethrown": Deaths.Rethrown(); break;
            case "Messages": Deaths.Messages(); break;
            case "NoMessage": Deaths.NoMessage(); break;
            case "StaticConstructor": Deaths.StaticConstructor(); break;
            case "Overriding": throw new Computed();
            case "FailFast": Environment.FailFast("the message"); break;
            case "FailFastInCatch": Deaths.FailFastInCatch(); break;
            case "FailFastLong": Environment.FailFast(new string('x', 5000) + "\U0001f600"); break;
            case "FailFastNothing": Environment.FailFast(null); break;
            case "AccessViolation": Deaths.AccessViolation(); break;
            case "StackOverflow": Deaths.Overflow(0); break;
            case "NativeAbort": Deaths.abort(); break;
            case "NativeAbortInCatch": Deaths.NativeAbortInCatch(); break;
            case "NativeFault": Deaths.strlen(1); break;
            default: return 2;
        }
        return 0;
    }
}
