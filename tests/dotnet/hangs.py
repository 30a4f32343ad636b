#!/usr/bin/env python3
"""Processes that hang, and healthy ones: the verdict of `cdacq report` names what was planted, with method and line, and
accuses nothing that works.

    hangs.py [--cores] [RUNTIME...]    words of lab.runtimes(); without any, only the newest line is tested

With --cores, a core of gdb is asked in place of the process, and one that the kernel writes when a signal ends the
process, and no healthy process.

Runs the program `hangs`, a Release build, in each of its ways, several at the same time, and asks the running process. The
lines that a verdict must name have a mark in the sources of the program, "@WAY". A way in KNOWN is one that is not named
yet; it fails the test once it is, so that the list stays true.
Exit 77 (skipped) if dotnet is missing; with CDACQ_REQUIRE_DOTNET=1, that is a failure.
"""

import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import first_screen
import lab

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
AT_ONCE = 8
CORES_AT_ONCE = 2
READY_SECONDS = 120
TRIES = 12  # a thread that is about to wait may still be on its way there
NEEDED = 30

# The kind of each verdict, and what it waits for.
HANGS = {
    "Deadlock2": "deadlock",
    "Deadlock3": "deadlock",
    "JoinInLock": "deadlock",
    "StaticConstructor": "deadlock",
    "Lazies": "deadlock",
    "LockOfSleeper": "lock",
    "LockOfBusy": "lock",
    "LockOfEnded": "abandoned_lock",
    "ReaderWriter": "lock",
    "NamedMutex": "waits handle",
    "SemaphoreTwice": "waits semaphore",
    "Sleep": "waits sleep",
    "NoPulse": "waits pulse",
    "ManualReset": "waits handle",
    "ManualResetSlim": "waits event",
    "WaitAny": "waits handle",
    "BarrierOfTwo": "waits event",
    "Countdown": "waits event",
    "EmptyCollection": "waits semaphore",
    "Join": "waits thread",
    "ParallelFor": "waits event",
    "Finalizer": "finalizer handle",
    "TimerCallback": "waits event",
    "CompletionSource": "waits task",
    "AllOfSeveral": "waits task",
    "AllWithoutResults": "waits tasks",
    "Unwrapped": "waits tasks",
    "SemaphoreOfRequests": "waits semaphore",
    "AsyncCycle": "async_cycle",
    "StarvedPool": "starvation",
    "EmptyChannel": "waits channel",
    "NamedPipeTask": "waits socket",
    "AnyTask": "waits tasks",
    "Child": "waits process",
    "ChildOutput": "waits pipe",
    "Receive": "waits socket",
    "Accept": "waits socket",
    "Pipe": "waits pipe",
    "NamedPipe": "waits socket",
    "FileLock": "waits file_lock",
    "ConsoleRead": "waits console",
    "NativeSleep": "waits sleep",
    "Endless": "busy",
    "Allocate": "busy",
    "Exceptions": "busy",
}

# What the verdict must say beside that: a part of its text, which may come from what the program wrote.
TEXTS = {
    "NamedMutex": "WaitHandle.WaitOne",
    "BarrierOfTwo": "Barrier.SignalAndWait",
    "Countdown": "CountdownEvent.Wait",
    "EmptyCollection": "BlockingCollection",
    "WaitAny": "WaitHandle.Wait",
    "Child": "process {child}",
    "Receive": "{peer}",
    "Accept": "{local}",
    "FileLock": "{file}",
}

# The same, which only a running process tells.
TEXTS_OF_PROCESSES = {
    "Child": "(sleep 1000000: sleeping)",
    "FileLock": "held by this process itself",
}

# Ways in which no thread waits for what is wrong: the first lines of the report name the method, the line and this.
STALLS = {
    "LeakedSlots": "36 in .*SemaphoreSlim 0x[0-9a-f]+ [(]count 0, 36 waiters[)]",
    "LockTwice": "SemaphoreSlim 0x[0-9a-f]+ [(]count 0, 1 waiter[)]",
    "LostWakeup": "3 in .*TaskCompletionSource 0x",
    "LostAnswers": "25 in .*TaskCompletionSource, such as 0x",
    "StuckConsumer": "TaskCompletionSource 0x",
    "FullQueue": "22 in .*Channel 0x[0-9a-f]+ [(]to write, 8 items, capacity 8[)]",
    "SilentProducer": "6 in .*Channel 0x[0-9a-f]+ [(]to read",
    "RequestsWithoutTimeout": "20 in .*HTTP requests, such as GET http://127.0.0.1:[0-9]+/orders/12, socket: Receive",
    "ExhaustedConnections": "18 in .*HTTP requests, such as GET http://127.0.0.1:[0-9]+/orders/12, .*HttpConnectionWaiter",
    "ExhaustedPool": "10 in .*Channel 0x[0-9a-f]+ [(]to read, 0 items, capacity 2[)]",
    "TasksInCircle": "Stalls.AwaitOther",
    "OneOfAll": "TaskCompletionSource 0x",
    "NeverCancelled": "5 in .*cancellation",
    "SilentPeer": "10 in .*socket: Receive",
    "FullBlock": "Dataflow[.]",
    "NeverStarted": "NeverStarted.*[(]Created[)]",
    "LostFailure": "TaskCompletionSource 0x",
    "ChildThatStays": "in a call of System.Diagnostics.Process.WaitForExitAsync",
    "NoClient": "in a call of System.IO.Pipes.NamedPipeServerStream.*WaitForConnectionAsync.*socket: Accept",
    "LockOverCall": "SemaphoreSlim 0x[0-9a-f]+ [(]count 0, 14 waiters[)]",
}
STALLS_IN_CORES = ["LeakedSlots", "RequestsWithoutTimeout", "TasksInCircle", "LostFailure"]
STALL_LINES = 30
STALL_TEXTS = {"TasksInCircle": "deadlock of tasks", "LostFailure": "1 task has failed"}

HEALTHY = ["IdleConsole", "IdleLoop", "IdleServer", "Timers", "PeriodicTimers", "PoolWork", "PoolOfAwaits", "ContendedLock",
           "ContendedSleeper", "OrderedLocks", "ReadersAndWriters", "Throttled", "Consumers", "IdleConsumers", "Channels",
           "PulsedQueue", "Collector", "ParallelWork", "Echo", "Finalizers", "CircleWithTimeout"]
NO_FAULT = {"nothing", "busy", "waits"}

# Ways that are not named yet, up to which line of the runtime, and why.
EVERY = 1000
KNOWN = {
    "StaticConstructor": (9, "no frame shows that native code of the runtime waits for a static constructor"),
}

# The same in cores, which do not have what the descriptors of a process lead to, nor how busy its threads were.
HANGS_IN_CORES = {**HANGS, "ChildOutput": "waits call", "Pipe": "waits call"}
UNKNOWN_IN_CORES = {"Receive", "Accept", "FileLock"}  # of which the part of TEXTS
RUNNING = ["Endless", "Allocate", "Exceptions"]
KNOWN_IN_CORES = {
    "LockOfBusy": "the owner of the lock runs, and one moment does not show whether it holds the lock for long",
    **{way: "the thread was in a system call at that moment" for way in RUNNING},
}


def marks():
    """The lines of each way, as "File.cs:12"."""
    found = {}
    for path in glob.glob(os.path.join(HERE, "hangs", "*.cs")):
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                for way in re.findall(r"@([A-Za-z0-9]+)(?![.\w])", line.partition("//")[2]):
                    found.setdefault(way, set()).add(f"{os.path.basename(path)}:{number}")
    return found


class Hang:
    """A process of the program, and what it wrote before it hung: words by their names."""

    def __init__(self, command, way, folder=None):
        self.process = subprocess.Popen([*command, way], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder,
                                        preexec_fn=lab.allow_cores if folder else None,
                                        env={**os.environ, "DOTNET_PROCESSOR_COUNT": "4"})
        self.words = {}

    def wait(self):
        late = threading.Timer(READY_SECONDS, self.process.kill)
        late.start()
        for line in self.process.stdout:
            if line == "READY\n":
                late.cancel()
                return
            name, _, value = line.strip().partition(" ")
            self.words[name] = value
        raise lab.LabError(f"the program ended: {self.process.wait()}")

    def end(self):
        child = self.words.get("child")
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        if child:
            os.kill(int(child), 9)


def report_of(target):
    done = subprocess.run([TOOL, "report", "--json", str(target)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise lab.LabError(f"exit {done.returncode}: {done.stderr.decode()}") from error


def verdict_of(target):
    return report_of(target)["verdict"]


def name_of(verdict):
    return " ".join(filter(None, [verdict["kind"], verdict["waits_for"]]))


def line_of(verdict):
    return f"{os.path.basename(verdict['file'] or '?')}:{verdict['line']}"


def wrong_of(way, verdict, lines, words, name=None):
    """What a verdict about a process that hangs lacks; with a name, it is about a core."""
    wanted = name or HANGS[way]
    wrong = [] if name_of(verdict) == wanted else [f"it is {name_of(verdict)!r} and not {wanted!r}"]
    if line_of(verdict) not in lines:
        wrong.append(f"the line is {line_of(verdict)} of {verdict['method']} and not {' or '.join(sorted(lines))}")
    parts = ["" if name and way in UNKNOWN_IN_CORES else TEXTS.get(way, "").format(**words)]
    parts += [] if name else [TEXTS_OF_PROCESSES.get(way, "")]
    wrong += [f"no {part!r} in {verdict['what']!r}" for part in parts
              if part not in f"{verdict['what']} {verdict['by']} {verdict['called']}"]
    return wrong


def text_of(target):
    return subprocess.run([TOOL, "report", str(target)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False).stdout


def ask_hang(command, way, lines):
    hang = Hang(command, way)
    try:
        hang.wait()
        for _ in range(TRIES):
            time.sleep(1)
            wrong = wrong_of(way, verdict_of(hang.process.pid), lines, hang.words)
            wrong = wrong or first_screen.problems_of_text(text_of(hang.process.pid))
            if not wrong:
                break
        return wrong
    except lab.LabError as error:
        return [str(error)]
    finally:
        hang.end()


def wrong_of_stall(way, text, lines):
    """What the first lines of a report lack."""
    shown = text.splitlines()[:STALL_LINES]
    places = "|".join(re.escape(line) for line in lines)
    wrong = [] if any(re.search(f"({places})(?!\\d)", line) and re.search(STALLS[way], line) for line in shown) else ["no line of it"]
    return wrong + [f"no {part!r}" for part in [STALL_TEXTS.get(way, "")] if not any(part in line for line in shown)]


def ask_stall(command, way, lines):
    hang = Hang(command, way)
    try:
        hang.wait()
        for _ in range(TRIES):
            time.sleep(1)
            done = subprocess.run([TOOL, "report", str(hang.process.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
            wrong = wrong_of_stall(way, done.stdout, lines) or first_screen.problems_of_text(done.stdout)
            if not wrong:
                break
        return wrong and [*wrong, f"exit {done.returncode}: {done.stderr}", *done.stdout.splitlines()[:STALL_LINES]]
    except lab.LabError as error:
        return [str(error)]
    finally:
        hang.end()


def name_in_core(way, is_signal):
    """If a signal ended the process, that is the kind, unless something is known to be wrong."""
    kind, _, waits_for = HANGS_IN_CORES[way].partition(" ")
    if not is_signal or kind not in ["waits", "busy"]:
        return HANGS_IN_CORES[way]
    return " ".join(filter(None, ["signal", waits_for]))


def ask_cores(command, way, lines):
    """What the verdicts about two cores lack, by the name of the kind of core."""
    wrong = {}
    with tempfile.TemporaryDirectory(prefix="cdacq-hang-") as folder:
        hang = Hang(command, way, folder)
        target = lab.Target(folder, hang.process, None)
        try:
            hang.wait()
            if way not in RUNNING:
                for _ in range(TRIES):  # until it waits
                    time.sleep(1)
                    if not wrong_of(way, verdict_of(hang.process.pid), lines, hang.words):
                        break
            for kind, take in [("gcore", target.gcore), ("kernel", target.kernel_core)]:
                core = take()
                report = report_of(core)
                wrong[kind] = wrong_of(way, report["verdict"], lines, hang.words, name_in_core(way, kind == "kernel"))
                wrong[kind] += first_screen.problems_of(text_of(core), report)
                os.unlink(core)
        except (lab.LabError, subprocess.TimeoutExpired) as error:
            wrong["error"] = [str(error)]
        finally:
            hang.end()
    return wrong


def ask_healthy(command, way, lines):
    """Asks several times: one moment of a process that works may look like a fault."""
    hang, wrong = Hang(command, way), []
    try:
        hang.wait()
        for _ in range(4):
            time.sleep(0.3)
            verdict = verdict_of(hang.process.pid)
            if verdict["kind"] not in NO_FAULT:
                wrong.append(f"{name_of(verdict)}: {verdict['what']} {verdict['by']}")
            elif way in lines and verdict["kind"] == "waits" and line_of(verdict) not in lines[way]:
                wrong.append(f"{line_of(verdict)}: {verdict['what']}")
        return wrong
    except lab.LabError as error:
        return [str(error)]
    finally:
        hang.end()


def ask_stalled_core(command, way, lines):
    """The same of a core, where a signal ended the process."""
    with tempfile.TemporaryDirectory(prefix="cdacq-hang-") as folder:
        hang = Hang(command, way, folder)
        target = lab.Target(folder, hang.process, None)
        try:
            hang.wait()
            time.sleep(2)
            done = subprocess.run([TOOL, "report", target.kernel_core()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
            wrong = wrong_of_stall(way, done.stdout, lines)
            return wrong and [*wrong, f"exit {done.returncode}: {done.stderr}", *done.stdout.splitlines()[:STALL_LINES]]
        except (lab.LabError, subprocess.TimeoutExpired) as error:
            return [str(error)]
        finally:
            hang.end()


def test_cores(work, runtime):
    lab.refuse_piped_cores()
    if shutil.which("gcore") is None:
        raise lab.Skip("gcore is not installed")
    command = lab.program_command(work, "hangs", runtime)
    lines = marks()
    with concurrent.futures.ThreadPoolExecutor(CORES_AT_ONCE) as pool:
        found = {way: pool.submit(ask_cores, command, way, lines.get(way, set())) for way in HANGS}
        stalls = {way: pool.submit(ask_stalled_core, command, way, lines[way]) for way in STALLS_IN_CORES}
        found = {way: one.result() for way, one in found.items()}
        stalls = {way: one.result() for way, one in stalls.items()}
    good = True
    for way, wrong in stalls.items():
        good &= not wrong
        if wrong:
            print(f"! {runtime} {way}, kernel: " + "\n    ".join(wrong), flush=True)
    for way, kinds in found.items():
        last, why = KNOWN.get(way, (EVERY if way in KNOWN_IN_CORES else 0, KNOWN_IN_CORES.get(way)))
        known = lab.line_of(runtime) <= last
        for kind, wrong in kinds.items():
            if wrong and known:
                print(f"  {runtime} {way}, {kind}: not named, as is known: {why}", flush=True)
            elif wrong:
                good = False
                print(f"! {runtime} {way}, {kind}: " + "; ".join(wrong), flush=True)
    for kind in ["gcore", "kernel"]:
        named = sum(kinds.get(kind) == [] for kinds in found.values())
        good &= named >= NEEDED
        print(f"  {runtime}: {named} of {len(HANGS)} hangs named in cores of {kind}", flush=True)
    return good


def test_runtime(work, runtime):
    command = lab.program_command(work, "hangs", runtime)
    lines = marks()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        hangs = {way: pool.submit(ask_hang, command, way, lines.get(way, set())) for way in HANGS}
        stalls = {way: pool.submit(ask_stall, command, way, lines[way]) for way in STALLS}
        healthy = {way: pool.submit(ask_healthy, command, way, lines) for way in HEALTHY}
        hangs = {way: one.result() for way, one in hangs.items()}
        stalls = {way: one.result() for way, one in stalls.items()}
        healthy = {way: one.result() for way, one in healthy.items()}
    good = True
    for way, wrong in stalls.items():
        good &= not wrong
        if wrong:
            print(f"! {runtime} {way}: " + "\n    ".join(wrong), flush=True)
    print(f"  {runtime}: {sum(not wrong for wrong in stalls.values())} of {len(STALLS)} stalls named in {STALL_LINES} lines", flush=True)
    for way, wrong in hangs.items():
        last, why = KNOWN.get(way, (0, None))
        known = lab.line_of(runtime) <= last
        if wrong and known:
            print(f"  {runtime} {way}: not named, as is known: {why}", flush=True)
        elif wrong or known:
            good = False
            print(f"! {runtime} {way}: " + ("; ".join(wrong) or "it is named now: take it out of the list"), flush=True)
    for way, wrong in healthy.items():
        good &= not wrong
        if wrong:
            print(f"! {runtime} {way} is healthy: " + "; ".join(wrong), flush=True)
    named, quiet = sum(not wrong for wrong in hangs.values()), sum(not wrong for wrong in healthy.values())
    print(f"  {runtime}: {named} of {len(HANGS)} hangs named, {len(HEALTHY) - quiet} of {len(HEALTHY)} healthy processes accused", flush=True)
    return good and named >= NEEDED


def main():
    work = tempfile.mkdtemp(prefix="cdacq-hangs-")
    try:
        words = [word for word in sys.argv[1:] if word != "--cores"]
        test = test_cores if "--cores" in sys.argv[1:] else test_runtime
        asked = words or os.environ.get("CDACQ_RUNTIMES", "").split()
        runtimes = lab.runtimes(words) if asked else [next(iter(lab.NEWEST.values()))]
        return 0 if all([test(work, runtime) for runtime in runtimes]) else 1
    except lab.Skip as reason:
        print(f"skipped: {reason}")
        return 1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    sys.exit(main())
