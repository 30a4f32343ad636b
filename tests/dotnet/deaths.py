#!/usr/bin/env python3
"""Processes that die: what `cdacq report` says of their cores is what they wrote to standard error, word for word.

    deaths.py [--all] [--runtime VERSION]... [--kind KIND]... [WAY...]

Builds the program `dying` and lets it die in each way. The judge is the standard error of the same process. The cores
are those that the kernel writes by default, and those of the runtime's createdump (mini, heap, triage, full); `jitted`
is one of the kernel, of a process that compiles the framework too, as one that was trimmed does. Async methods have
state machines up to .NET 10, and since .NET 11 only in `machines`, one of the kernel. A core of createdump
that lacks a part of the text must say so. By default, every way is tested with the kernel's core of the
newest line, and a share with the others and with createdump; --all tests everything, which takes an hour. Runtimes are
words of lab.runtimes().
Exit 77 (skipped) where dotnet is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure.
"""

import argparse
import collections
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import exceptions
import first_screen
import lab

DUMP_TYPES = {"mini": "1", "heap": "2", "triage": "3", "full": "4"}
OF_KERNEL = ["kernel", "jitted", "machines"]
KINDS = [*OF_KERNEL, *DUMP_TYPES]
WITHOUT_LIBC = {"mini", "heap", "triage"}  # cores that lack the data of the C library
OVERRIDDEN, CUT, MISSING, INFERRED = 1, 2, 4, 8  # enum cdacq_exception_flaw
TERMINATED = 6  # enum cdacq_end_kind

WAYS = """
NullReference NullReferenceOfReferences Structs DivideByZero Bounds Cast Nested Framework Linq Async AsyncVoid AsyncStream
ValueTasks Iterator Enumerator Rethrown ThrownAgain Dispatched Remote CurrentStack OnThread OnPool OnTimer StaticConstructor
Aggregate Tasks ParallelLoop Reflection Activated DynamicMethods Expressions EmittedAssembly Closures Operators FaultAtLine Filtered
Finally FromCatch FromFinally FromCatches FromMemory FromForeign FromForeignShort Finalizer Deep MissingFunction MissingFile MissingReference NoDirectoryPath Options Sockets Cancelled Json Synchronization
Generic Win32 Com External Culture Loader Unicode Surrogates Controls Huge ManyInner Overriding Printing
FailFast FailFastException FailFastNothing FailFastEmpty FailFastUnicode FailFastHuge FailFastOnThread FailFastGeneric
FailFastAsync FailFastInCallback FailFastFromDelegate FailFastInCatch FailFastNested FailFastInFilter FailFastReflection FailFastDynamic Assertion
AssertionCondition StackOverflow OverflowOnThread MutualOverflow OverflowBelow OverflowInLeaf OverflowOfThree OverflowOfDynamic OverflowInCatch OverflowInNative OverflowInNativeOnThread OverflowInDelegate OverflowOnOtherStack FailFastOnOtherStack OutOfMemory OutOfMemoryTwice OutOfMemoryThrown OutOfMemoryThrownText OverflowThrown
ExecutionEngineThrown AccessViolation AccessViolationInRuntime AccessViolationCopy AccessViolationOnThread
AccessViolationThrown ThrownAtFirstChance ThrownInCallback NativeFault NativeFaultInFinally NativeAbort NativeAbortInCatch NativeAbortUnhandled
NativeAssertion NativeDoubleFree Waiting WaitingInCatch LoopingInCatch
""".split()
# A kind of each, of which the first screen is looked at.
SCREENS = """
NullReference Aggregate Tasks Async Deep StackOverflow MutualOverflow FailFast FailFastHuge AccessViolation NativeFault NativeAbort
OutOfMemory Huge Waiting LoopingInCatch StaticConstructor FromFinally OnPool Json Assertion ManyInner
""".split()
# Of a program whose Main is async.
ASYNC_WAYS = """
AsyncNested AsyncAtOnce AsyncValueTasks AsyncGenerics AsyncRethrown AsyncRethrownLater AsyncThrownAgain AsyncWrapped
AsyncDispatched AsyncAll AsyncAllAwaited AsyncWaited AsyncItems AsyncIterator AsyncDisposed AsyncFinally AsyncFromFinally AsyncFiltered
AsyncLocal AsyncLambda AsyncStruct AsyncVirtual AsyncDefault AsyncSource AsyncFailed AsyncCancelled AsyncCustom AsyncParallel AsyncDeep
AsyncLoop AsyncHidden AsyncHiddenLast AsyncForwarded AsyncOnContext AsyncTyped AsyncHttp AsyncXml AsyncElement AsyncDeflated
AsyncPipe AsyncJson AsyncFile AsyncFailFast AsyncFailFastAtOnce AsyncFailFastInCatch AsyncOverflow AsyncOverflowAtOnce AsyncViolation
AsyncVoidLambda
""".split()
SHARE = ["NullReference", "FaultAtLine", "Async", "Aggregate", "FromCatches", "FromFinally", "FromMemory", "FromForeign", "FromForeignShort", "FailFastNested", "FailFastInFilter", "NativeFaultInFinally", "DynamicMethods", "Huge", "FailFastException", "FailFastInCallback", "Assertion",
         "MutualOverflow", "OverflowInLeaf", "OverflowOfThree", "OverflowOfDynamic", "OverflowInCatch", "OverflowInNative", "OverflowOnOtherStack", "FailFastOnOtherStack", "OutOfMemory", "AccessViolation", "ThrownAtFirstChance", "ThrownInCallback",
         "NativeAbort", "NativeAssertion",
         "WaitingInCatch", "AsyncNested", "AsyncItems", "AsyncXml", "AsyncFailFastAtOnce"]
SHARE_OF_KINDS = ["Nested", "FailFastException", "AccessViolation", "OutOfMemory", "NativeAbortInCatch", "NativeAbortUnhandled", "NativeDoubleFree",
                  "WaitingInCatch", "AsyncNested", "AsyncFailFastAtOnce"]  # createdump needs minutes for a deep stack
SHARE_JITTED = ["FailFast", "FailFastException", "FailFastOnThread", "FailFastNested", "Assertion", "AssertionCondition", "StackOverflow", "AsyncLoop", "AsyncFailFastAtOnce"]

COMPUTED = {"Overriding", "Printing"}  # code of the program makes their texts: the flag says so
NATIVE = {"NativeFault", "NativeFaultInFinally", "NativeAbort", "NativeAbortInCatch", "NativeAbortUnhandled", "Waiting",
          "WaitingInCatch", "LoopingInCatch"}  # the runtime writes nothing
OF_LIBC = {"NativeAssertion", "NativeDoubleFree"}  # the C library writes something, the runtime nothing
OWN_STACKS = {"ThrownAtFirstChance"}  # .NET 8 dies before it has left the handler
# .NET 11 has these exception types, a frame for a P/Invoke's method, another wait, and of a static constructor's exception
# only the text of its stack trace.
OTHER_FRAMES = {"NoDirectoryPath", "Options", "FailFastInCallback", "FailFastFromDelegate", "NativeFaultInFinally", "NativeAbortInCatch",
                "Waiting", "WaitingInCatch", "StaticConstructor"}
KILLED = {"Waiting": signal.SIGSEGV, "WaitingInCatch": signal.SIGABRT, "LoopingInCatch": signal.SIGABRT}  # from outside
TIERED = {"OverflowInLeaf"}  # whose methods are compiled again while they call each other: the end of the stack is met in many places
HARD_LIMIT = {"OutOfMemory": "0x8000000", "OutOfMemoryTwice": "0x4000000"}


def start(command, way, work, kind):
    environment = dict(os.environ)
    if way in HARD_LIMIT:
        environment["DOTNET_GCHeapHardLimit"] = HARD_LIMIT[way]
    if way in TIERED:
        environment["DOTNET_TC_CallCountingDelayMs"] = "1"
    if kind == "jitted":
        environment["DOTNET_ReadyToRun"] = "0"
    if kind not in OF_KERNEL:
        environment.update(DOTNET_DbgEnableMiniDump="1", DOTNET_DbgMiniDumpType=DUMP_TYPES[kind],
                           DOTNET_DbgMiniDumpName=os.path.join(work, "dump"))
    return subprocess.Popen(command + [way], cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, preexec_fn=lab.allow_cores)


def kill_from_outside(process, number, patience):
    """The runtime may take the first signal for its own, and goes on after it has let createdump write a core."""
    process.stdout.readline()
    time.sleep(0.5)  # a thread with a signal of the runtime, which stops threads, leaves this one to another thread
    for _ in range(3):
        process.send_signal(number)
        try:
            process.wait(timeout=patience)
            return
        except subprocess.TimeoutExpired:
            pass


def die(command, way, work, kind):
    """The core and the standard error of a process that dies in that way. The core is None if there is none."""
    process = start(command, way, work, kind)
    try:
        if way in KILLED:
            kill_from_outside(process, KILLED[way], 2 if kind in OF_KERNEL else 15)
        _, words = process.communicate(timeout=300)
    finally:
        process.kill()
    if kind not in OF_KERNEL:
        dump = os.path.join(work, "dump")
        return dump if os.path.exists(dump) else None, words
    cores = glob.glob(os.path.join(work, "core*"))
    return cores[0] if cores else None, words


def nested_problem(way, runtime, work, report):
    """What is wrong with the exceptions in whose handling the process ended; the program noted them in a file."""
    if any(item["type"] == "System.StackOverflowException" for item in report["nested_exceptions"]):
        return "has a handler of a stack overflow"
    path = os.path.join(work, "nested.txt")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        expected = file.read().split("\0")[:-1]
    if way == "FailFastNested" and runtime.startswith("8."):
        del expected[1:]  # .NET 8 forgets an exception when the one that its handler threw is caught
    found = [item["text"] for item in report["nested_exceptions"]]
    return None if found == expected else f"handled {len(expected)} exceptions, the report has {len(found)} or other ones"


def expected_of(text):
    """What the runtime writes of a text: it ends at a NUL."""
    if b"\0" not in text:
        return text
    return text[:text.index(b"\0")] + b"\n"


def signature_problem(way, signature, signatures):
    """The line for sorting crashes is that of the first runtime, but for the function of the C library that met the end
    of the stack: several call each other."""
    if way.startswith(("OverflowInNative", "OverflowInDelegate")):
        signature = re.sub(r"^(\w+: )\w+ < ", r"\1", signature)
    return None if signatures.setdefault(way, signature) == signature else f"has the signature {signature!r} and not {signatures[way]!r}"


def terminated_problem(core, report):
    """.NET 9 leaves it to C++ to end the process, which prints no text of the exception."""
    words = subprocess.run([exceptions.OBJECTS, core, "words"], stdout=subprocess.PIPE, check=True).stdout
    if b"%d 0 0" % TERMINATED not in words.splitlines():
        return f"has another end: {words}"
    texts = [item["text"] for item in report["nested_exceptions"]]
    if report["exception"] is not None or len(texts) != 1:
        return f"has the exceptions {texts}"
    if texts[0].startswith("System.InvalidOperationException: thrown in a callback\n   at "):
        return None
    return "said" if report["nested_exceptions"][0]["missing"] else f"has the exception {texts[0]!r}"


def libc_problem(core, kind, words, report):
    """What the C library wrote, and the runtime did not."""
    text, brief = report["abort_message"], subprocess.run([exceptions.TOOL, "report", "--brief", core], stdout=subprocess.PIPE, check=False).stdout
    if text is None and kind in WITHOUT_LIBC:
        return "said"
    if not text or text.encode() + b"\n" != words or b"abort       " + words not in brief:
        return f"has the text {text!r} and not {words!r}"
    return "has words of the runtime" if report["last_words"] or report["exception"] else None


def bounded_problem(core):
    """Frames that take all the work that is allowed: they are still those of an overflow, and are still folded."""
    for steps in ["26000000", "30000000", "40000000"]:
        brief = subprocess.run([exceptions.TOOL, "report", "--brief", "--work-max", steps, core], capture_output=True, check=False)
        if b"Fatal error" in brief.stdout or brief.stdout.count(b"   at ") > 100:
            return f"has another text after {steps} steps"
    return None


def place_of(way, kind, runtime):
    """The name of a signature. The frames of .NET 11 can be others: state machines are other methods."""
    if way in OWN_STACKS:
        return way + runtime
    is_other = way in OTHER_FRAMES or (way in ASYNC_WAYS and kind != "machines")
    return way + "()" if is_other and exceptions.release_of(runtime) >= exceptions.RUNTIME_ASYNC else way


def heap_problem(way, kind, report):
    """The largest types are shown where memory was what was missing, if the core has the heap, and only there."""
    heap = report["heap"]
    if heap and way in HARD_LIMIT and not (heap["oom_reason"] and heap["oom_bytes"]):
        return f"does not say why the GC had no memory: {heap}"
    heap = heap if heap and heap["objects"] else None
    if not way.startswith("OutOfMemory") or (not heap and kind not in OF_KERNEL):
        return "shows the heap" if heap else None
    if not heap or not 1 <= len(heap["types"]) <= 3:
        return f"shows no heap: {heap}"
    largest = heap["types"][0]
    if way == "OutOfMemory" and (largest["type"] != "System.Byte[]" or largest["count"] < 50 or largest["bytes"] < largest["count"] << 19):
        return f"shows another heap: {largest}"
    holder = heap["holders"][0]["root"]["text"] if heap["holders"] else None
    if way == "OutOfMemory" and not (holder and holder.startswith("local of Dying.Ends.OutOfMemory(")):
        return f"shows another holder: {heap['holders'][:1]}"
    return None


def screen_problem(core, report):
    for _ in range(2):  # the tool gives up a read that takes too long, as on a machine that is overloaded
        done = subprocess.run([exceptions.TOOL, "report", core], capture_output=True, text=True, errors="replace", check=False)
        problems = first_screen.problems_of(done.stdout, report)
        if not problems:
            return None
    return f"{'; '.join(problems)}; exit {done.returncode}: {done.stderr}"


def problem_of(way, kind, core, words, runtime, signatures):
    """None, "said" if the core lacks a part of the text and says so, or what is wrong."""
    whole = json.loads(subprocess.run([exceptions.TOOL, "report", "--json", core], stdout=subprocess.PIPE, check=False).stdout)
    if way == "ThrownInCallback" and runtime.startswith("9."):
        return terminated_problem(core, whole)
    if way == "OverflowOfDynamic" and (problem := bounded_problem(core)):
        return problem
    if problem := heap_problem(way, kind, whole):
        return problem
    if kind == "kernel" and way in SCREENS and (problem := screen_problem(core, whole)):
        return problem
    if way in OF_LIBC:
        return libc_problem(core, kind, words, whole)
    nested = nested_problem(way, runtime, os.path.dirname(core), whole)
    if nested and (kind in OF_KERNEL or not (whole["nested_exceptions_problem"] or any(item["missing"] for item in whole["nested_exceptions"]))):
        return nested
    done = subprocess.run([exceptions.OBJECTS, core, "words"], stdout=subprocess.PIPE, check=True)
    _, length, flags = (int(word) for word in done.stdout.split(b"\n", 1)[0].split())
    names = [thread["name"] for stack in whole["stacks"] for thread in stack["threads"]]
    if kind in OF_KERNEL and names.count(".NET Finalizer") != 1:
        return "does not have one thread that runs finalizers"
    lacks = flags & (MISSING | CUT) or any(stack["problem"] for stack in whole["stacks"] if stack["died"])
    if problem := None if kind not in OF_KERNEL and lacks else signature_problem(place_of(way, kind, runtime), whole["signature"], signatures):
        return problem
    text = expected_of(done.stdout.split(b"\n", 1)[1][:length])
    report = subprocess.run([exceptions.TOOL, "report", "--brief", core], stdout=subprocess.PIPE, check=False).stdout
    said = kind not in OF_KERNEL and (flags & (MISSING | CUT) or b"missing" in report)
    if way in COMPUTED:
        return None if flags & OVERRIDDEN else "does not say that the text is computed"
    if text != words:
        return "said" if said else f"has another text (flags {flags})"
    if flags & (MISSING | CUT) and said:
        return "said"
    if flags & ~INFERRED:
        return f"has flags {flags}"
    if way in NATIVE and (words or b"signal      SIG" not in report):
        return "has words, or no signal"
    if exceptions.shown(words.removesuffix(b"\n")) not in report:  # which goes on after a NUL
        return "has another text in the report"
    if words and expected_of(whole["last_words"]["text"].encode()) != words.decode(errors="replace").encode():
        return "has another text in the report as JSON"
    return None


def test_way(command, way, kind, runtime, signatures):
    work = tempfile.mkdtemp(prefix="cdacq-death-")
    try:
        core, words = die(command, way, work, kind)
        if core is None:
            return "left no core"
        return problem_of(way, kind, core, words, runtime, signatures)
    except subprocess.TimeoutExpired:
        return "did not end in time"
    finally:
        shutil.rmtree(work)


def test_exit(command):
    """A program that ends itself leaves no core."""
    work = tempfile.mkdtemp(prefix="cdacq-death-")
    try:
        core, words = die(command, "Exit", work, "kernel")
        return "Environment.Exit left a core or a text" if core or words else None
    finally:
        shutil.rmtree(work)


def plan_of(arguments, runtime):
    """The ways to test for each kind of core."""
    newest = lab.is_newest(runtime)
    has_machines = exceptions.release_of(runtime) < exceptions.RUNTIME_ASYNC  # in any kind
    everything = WAYS + ASYNC_WAYS
    shares = {"kernel": everything if newest else SHARE, "jitted": SHARE_JITTED if newest else [], "machines": ASYNC_WAYS}
    plan = {kind: arguments.ways or (everything if arguments.all else shares.get(kind, SHARE_OF_KINDS if newest else []))
            for kind in arguments.kind or KINDS if kind != "machines" or not has_machines}
    if "machines" in plan:
        plan["machines"] = [way for way in plan["machines"] if way in ASYNC_WAYS]
    return plan


class Programs:
    """The program `dying` as it is compiled for a kind of core and a way."""

    def __init__(self, work, runtime):
        self.work, self.runtime, self.commands = work, runtime, {}

    def command(self, kind, way):
        options = ("AsyncMain", "RuntimeAsync") if way in ASYNC_WAYS else ()
        if kind == "machines" or exceptions.release_of(self.runtime) < exceptions.RUNTIME_ASYNC:
            options = options[:1]
        if options not in self.commands:
            self.commands[options] = exceptions.command_of(self.work, self.runtime, *options)
        return self.commands[options]


def test_runtime(runtime, plan, signatures):
    work = tempfile.mkdtemp(prefix="cdacq-deaths-")
    good = True
    try:
        programs = Programs(work, runtime)
        for kind, ways in plan.items():
            counts, wrong, begin = collections.Counter(), [], time.monotonic()
            for way in ways:
                problem = test_way(programs.command(kind, way), way, kind, runtime, signatures)
                counts["ok" if problem is None else problem if problem == "said" else "wrong"] += 1
                if problem not in (None, "said"):
                    wrong.append(f"{way} {problem}")
            if kind == "kernel" and (problem := test_exit(programs.command(kind, "Exit"))):
                wrong.append(problem)
            good &= not wrong
            if ways:
                print(f"  {'FAIL' if wrong else 'ok  '} {runtime} {kind}: {counts['ok']} of {len(ways)} deaths word for word, {counts['said']} say "
                      f"what is missing, {time.monotonic() - begin:.0f} s{''.join('; ' + text for text in wrong)}", flush=True)
        return good
    finally:
        shutil.rmtree(work)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--runtime", action="append")
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("ways", nargs="*", metavar="WAY")
    arguments = parser.parse_args()
    try:
        lab.refuse_piped_cores()
        signatures = {}
        return 0 if all([test_runtime(runtime, plan_of(arguments, runtime), signatures) for runtime in lab.runtimes(arguments.runtime)]) else 1
    except lab.Skip as reason:
        print(f"skipped: {reason}")
        return 1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED


if __name__ == "__main__":
    sys.exit(main())
