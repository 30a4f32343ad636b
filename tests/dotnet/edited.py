#!/usr/bin/env python3
"""Code that is changed while its process runs (hot reload), and assemblies that are loaded from an array of bytes. What
was added has the names that the runtime's own perf map gives it, and changed code has no line of its old source.

    edited.py [RUNTIME...]    words of lab.runtimes(); default: the newest of each recent line

Compiles two assemblies and several edits of them, and runs them. Asks the process after each edit, and at the end cores
of each kind. A tool that was started before the first edit must know what it added. On .NET 11, the same is done once
more with async methods that the runtime suspends. A profiler (rejit.c) gives a method other IL before it is compiled, or
has it compiled again: code of other IL has no line, the old code has.
Exit 77 (skipped) where dotnet is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure.
"""

import contextlib
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import lab

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
REJIT = os.environ.get("CDACQ_REJIT", "librejit.so")
NO_REJIT = "8."  # versions of code are not described
RUNTIME_ASYNC_SINCE = 11
SOURCES = [["Edited.0.txt", "Edited.1.txt", "Edited.2.txt", "Edited.3.txt"], ["Second.0.txt", "Second.1.txt"]]
WHOLE = ["full", "gcore", "kernel_core"]  # cores that hold all that the process does
PARTIAL = ["heap", "mini", "triage"]
LOOKS, LOOK_SECONDS = 10, 0.02  # that find all threads of the program asleep, one after the other
LEAST = 12  # methods that the perf map has and cdacq names; the runtime writes it in blocks, so the last ones may be missing

# The methods and lines of each thread, innermost first. Changed and Edited run in several versions.
CHANGED, GROWN, OTHER = ("Work.Changed(int)", None), ("Grown.Edited()", None), ("Other.Changed()", None)
ADDED = ("Work.Added(string, Further<int>)", None)
UNTOUCHED = [("Work.Untouched()", 7)]
OF_BYTES = [[("Work.Untouched()", None)]]
ASYNC = {"compiler": ("Work.<Waits>d__3#2.MoveNext()", None), "runtime": ("Work.Waits(int)", None)}


def steps(async_kind):
    """What the program does, and the threads that it then has, those of the steps before included."""
    first = ["start bytes Work Untouched", "start Edited Work Untouched", "start Edited Work Changed -1", "start Edited Grown Edited",
             "start Second Other Untouched", "start Second Other Changed"]
    threads = [UNTOUCHED, [("Work.Changed(int)", 12)], [("Grown.Edited()", 22)], [("Other.Untouched()", 7)], [("Other.Changed()", 12)]]
    yield first, threads
    threads = [[CHANGED] if frames == [("Work.Changed(int)", 12)] else frames for frames in threads]
    threads += [
        [CHANGED],
        [ADDED, CHANGED],
        [("Further<int>.Inner<U>.Deep(int, U)", None), ("Further<int>.Run<U>(U)", None), CHANGED],
        [("Work.<>c.<Changed>b__2#1_0#1(int)", None), CHANGED],
    ]
    yield ["edit Edited 1"] + [f"start Edited Work Changed {way}" for way in (-1, 1, 2, 3)], threads
    threads = [[GROWN] if frames == [("Grown.Edited()", 22)] else [OTHER] if frames == [("Other.Changed()", 12)] else frames
               for frames in threads]
    threads += [
        [("Work.<>c.<Changed>b__5#2_0#2(int)", None), CHANGED],
        [ADDED, CHANGED],
        [("Work.Generic<T>(T)", None), CHANGED],
        [CHANGED], [ASYNC[async_kind]],  # which waits for the other
        [GROWN],
        [("Helper<T>.Run()", None), OTHER],
    ]
    yield (["edit Edited 2", "edit Second 1"] + [f"start Edited Work Changed {way}" for way in (0, 1, 2, 3)] +
           ["start Edited Grown Edited", "start Second Other Changed"]), threads
    yield ["edit Edited 3", "start Edited Work Changed -1"], threads + [[("Third.Stay(int)", None), CHANGED]]


def compile_edits(work, runtime, async_kind):
    """The assemblies, and what changes them, in a folder."""
    references, _ = lab.framework_of(work, runtime)
    out = tempfile.mkdtemp(dir=work, prefix="edited-")
    compiler = lab.build(work, "edits", DemoFramework="net10.0" if async_kind == "compiler" else "net11.0")
    for sources in SOURCES:
        lab.run(["dotnet", os.path.join(compiler, "Edits.dll"), references, out, async_kind,
                 *[os.path.join(lab.HERE, "edits", source) for source in sources]])
    return out


@contextlib.contextmanager
def running(command, folder, **environment):
    environment = dict(os.environ, DOTNET_PerfMapEnabled="1", DOTNET_PerfMapShowOptimizationTiers="0",
                       DOTNET_PerfMapJitDumpPath=folder, **environment)
    process = subprocess.Popen([*command, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               cwd=folder, env=environment, text=True, preexec_fn=lab.allow_cores)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def tell(process, commands):
    """Commands for the program. Returns when it has obeyed, and its threads are where they stay: all of them sleep."""
    process.stdin.write("".join(command + "\n" for command in [*commands, "answer"]))
    process.stdin.flush()
    line = process.stdout.readline().strip()
    if line != "done":
        raise lab.LabError(f"the program said '{line}'")
    asleep, end = 0, time.monotonic() + lab.READY_SECONDS
    while asleep < LOOKS:
        if time.monotonic() > end:
            raise lab.LabError("a thread of the program does not come to rest")
        time.sleep(LOOK_SECONDS)
        asleep = asleep + 1 if lab.states_of(process.pid) == {"S"} else 0


def stacks(target):
    """The methods and lines of each thread with code of the assemblies, and those of the assembly without a file."""
    done = subprocess.run([TOOL, "stack", "--json", str(target)], stdout=subprocess.PIPE, check=False, timeout=120)
    threads = {}
    for frame in map(json.loads, done.stdout.splitlines()):
        if os.path.basename(frame.get("module") or "") in ("Edited.dll", "Second.dll"):
            key = frame["tid"], os.path.isabs(frame["module"])
            threads.setdefault(key, []).append((frame["method"], frame["line"]))
    return ([frames for (_, file), frames in threads.items() if file], [frames for (_, file), frames in threads.items() if not file])


def compare(what, target, expected):
    found, of_bytes = stacks(target)
    wrong = [f"{what}: no thread {frames}" for frames in expected if found.count(frames) < expected.count(frames)]
    wrong += [f"{what}: a thread {frames}" for frames in found if found.count(frames) > expected.count(frames)]
    return wrong + ([f"{what}: of bytes {of_bytes}"] if of_bytes != OF_BYTES else [])


def compare_part(what, core, expected):
    """A core that lacks memory may say less, and nothing else."""
    frames = {frame for thread in expected for frame in thread}
    names = {name for name, _ in frames}
    found, _ = stacks(core)
    return [f"{what}: {frame}" for thread in found for frame in thread
            if frame not in frames and frame != (None, None) and (frame[1] is not None or frame[0] not in names)]


def compare_names(pid, perf_map):
    """With the names of the perf map, of which some are of code that has since been replaced."""
    with open(perf_map, encoding="utf-8") as file:
        lines = [line.split(" ", 2) for line in file if ("[Edited]" in line or "[Second]" in line) and line.endswith("\n")]
    done = subprocess.run([TOOL, "ip2method", "--names", "il", "--json", str(pid)], stdout=subprocess.PIPE, check=False, timeout=120,
                          input="\n".join(start for start, _, _ in lines), text=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = [f"{name.strip()}: {answer['method']}" for (_, _, name), answer in zip(lines, answers)
             if not answer["method"] or answer["method"] not in name]
    return len(answers), wrong + ([] if len(answers) == len(lines) >= LEAST else [f"{len(answers)} of {len(lines)} names"])


class Asker:
    """A tool that stays open."""

    def __init__(self, pid):
        self.process = subprocess.Popen([TOOL, "ip2method", "--json", str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, address):
        self.process.stdin.write(address + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.communicate()


def address_of(pid, name):
    done = subprocess.run([TOOL, "stack", "--json", str(pid)], stdout=subprocess.PIPE, check=False, timeout=120)
    return next((frame["ip"] for frame in map(json.loads, done.stdout.splitlines()) if frame["method"] == name), "0")


def judge(process, folder, async_kind):
    wrong, asker, expected = [], None, []
    for number, (commands, expected) in enumerate(steps(async_kind)):
        tell(process, commands)
        wrong += compare(f"step {number}", process.pid, expected)
        if not asker:
            asker = Asker(process.pid)
            first = asker.ask(address_of(process.pid, CHANGED[0]))
            if (first["method"], first["line"]) != (CHANGED[0], 12):
                wrong.append(f"before: {first}")
    for name, _ in (ADDED, CHANGED, GROWN):
        later = asker.ask(address_of(process.pid, name))
        if (later["method"], later["line"]) != (name, None):
            wrong.append(f"open: {later}")
    asker.close()
    perf_map, = glob.glob(os.path.join(folder, f"perf-{process.pid}.map"))
    count, differ = compare_names(process.pid, perf_map)
    target = lab.Target(folder, process, None)
    for kind in [*PARTIAL, *WHOLE]:
        try:
            core = getattr(target, kind)() if kind in ("gcore", "kernel_core") else target.createdump(kind)
        except lab.Skip as reason:
            print(f"  no {kind}: {reason}")
            continue
        wrong += (compare if kind in WHOLE else compare_part)(kind, core, expected)
        os.remove(core)
    return count, wrong + differ


def profiled(command, folder, **environment):
    """The program with the profiler."""
    return running(command, folder, CORECLR_ENABLE_PROFILING="1", CORECLR_PROFILER="{846f5f1c-f9ae-4b07-969e-05c26bc060d8}",
                   CORECLR_PROFILER_PATH=os.path.abspath(REJIT), **environment)


def compare_with_core(what, process, folder, expected):
    core = lab.Target(folder, process, None).createdump("full", os.path.join(folder, "profiled.core"))
    return compare(what, process.pid, expected) + compare(what + ", full", core, expected)


def judge_other_il(command, folder):
    """The profiler gives a method other IL before its first compilation."""
    with profiled(command, folder) as process:
        commands, expected = next(steps("compiler"))
        tell(process, commands)
        expected = [[("Work.Untouched()", None)] if frames == UNTOUCHED else frames for frames in expected]
        return compare_with_core("other IL", process, folder, expected)


def judge_rejit(command, folder):
    """The profiler has a method compiled again while a thread is in its old code."""
    go, done = os.path.join(folder, "go"), os.path.join(folder, "rejit")
    with profiled(command, folder, CDACQ_REJIT_GO=go, CDACQ_REJIT_DONE=done) as process:
        commands, expected = next(steps("compiler"))
        tell(process, commands)
        with open(go, "w", encoding="utf-8"):
            pass
        end = time.monotonic() + lab.READY_SECONDS
        while not os.path.exists(done):
            if time.monotonic() > end:
                raise lab.LabError("the profiler requested nothing")
            time.sleep(0.1)
        tell(process, ["start Edited Work Untouched"])
        return compare_with_core("rejit", process, folder, [*expected, [("Work.Untouched()", None)]])


def judge_runtime(work, runtime):
    command = lab.program_command(work, "edited", runtime)
    failed = 0
    for async_kind in ["compiler", "runtime"][:1 + (lab.line_of(runtime) >= RUNTIME_ASYNC_SINCE)]:
        folder = compile_edits(work, runtime, async_kind)
        with running(command, folder, DOTNET_MODIFIABLE_ASSEMBLIES="debug") as process:
            count, wrong = judge(process, folder, async_kind)
        if async_kind == "compiler":
            wrong += judge_other_il(command, folder)
        if async_kind == "compiler" and not runtime.startswith(NO_REJIT):
            wrong += judge_rejit(command, folder)
        print(f"{runtime}, async methods by the {async_kind}: {count} names, {len(wrong)} differences", flush=True)
        for one in wrong:
            print("  " + one)
        failed += len(wrong)
    return failed


def main():
    with tempfile.TemporaryDirectory() as work:
        try:
            if shutil.which("dotnet") is None:
                raise lab.Skip("dotnet is not installed")
            failed = sum(judge_runtime(work, runtime) for runtime in lab.runtimes(sys.argv[1:], of_all_lines=False))
        except lab.Skip as skip:
            print(skip)
            return 1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
