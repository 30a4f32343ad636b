#!/usr/bin/env python3
"""Code that is changed while its process runs (hot reload), and assemblies that are loaded from an array of bytes. What
was added has the names that the runtime's own perf map gives it, and changed code has no line of its old source.

    edited.py [RUNTIME...]    "installed" or the version of a runtime pack; default: those in CDACQ_RUNTIMES, else all

Compiles an assembly and a change of it with the compiler of the SDK, and runs both. Asks the process, and createdump's
cores. A tool that was started before the change must know what the change added. A profiler (rejit.c) has a method
compiled again from other IL: the new code has no line, the old one has.
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
import stack_run

RUNTIMES = ["installed", "9.0.22", "8.0.33"]
TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
REJIT = os.environ.get("CDACQ_REJIT", "librejit.so")
NO_REJIT = "8."  # versions of code are not described
# The methods and lines of each thread, innermost first. The code of Changed is of two versions.
CHANGED = ("Work.Changed(int)", None)
BEFORE = [[("Work.Untouched()", 7)], [("Work.Changed(int)", 12)]]
THREADS = [
    [("Work.Untouched()", 7)], [CHANGED], [CHANGED],
    [("Work.Added(string, Further<int>)", None), CHANGED],
    [("Further<int>.Inner<U>.Deep(int, U)", None), ("Further<int>.Run<U>(U)", None), CHANGED],
    [("Work.<>c.<Changed>b__2#1_0#1(int)", None), CHANGED],
]
COMPILED_AGAIN = [*BEFORE, [("Work.Untouched()", None)]]
OF_BYTES = [[("Work.Untouched()", None)]]
LEAST = 6  # methods that the perf map has and cdacq names


def build(work, project, framework):
    out = os.path.join(work, f"{project}-{framework}")
    lab.run(["dotnet", "build", os.path.join(lab.HERE, project), "-c", "Release", "-o", out, "--nologo", "-v", "q",
             f"-p:DemoFramework={framework}", f"-p:BaseIntermediateOutputPath={out}-obj/"])
    return out


def compile_edits(work, command, runtime):
    """The assembly, and what changes it, in a folder."""
    if runtime == "installed":
        references, _ = lab.installed_framework()
    else:
        references = os.path.join(os.path.dirname(command[0]), "shared", "Microsoft.NETCore.App", runtime)
    out = tempfile.mkdtemp(dir=work, prefix="edited-")
    source = os.path.join(lab.HERE, "edits")
    lab.run(["dotnet", os.path.join(build(work, "edits", "net10.0"), "Edits.dll"), references,
             os.path.join(source, "Before.txt"), os.path.join(source, "After.txt"), out])
    return out


@contextlib.contextmanager
def running(command, host, folder, **environment):
    environment = dict(os.environ, DOTNET_PerfMapEnabled="1", DOTNET_PerfMapShowOptimizationTiers="0",
                       DOTNET_PerfMapJitDumpPath=folder, **environment)
    process = subprocess.Popen([*command, os.path.join(host, "Host.dll"), folder], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, env=environment, text=True)
    try:
        expect(process, "started")
        yield process
    finally:
        process.kill()
        process.communicate()


def expect(process, word):
    line = process.stdout.readline().strip()
    if line != word:
        raise lab.LabError(f"the program said '{line}', not '{word}'")


def stacks(target):
    """For each thread with code of the program: whether its assembly has a file, and its methods and lines."""
    done = subprocess.run([TOOL, "stack", "--json", str(target)], stdout=subprocess.PIPE, check=False, timeout=120)
    threads = {}
    for frame in map(json.loads, done.stdout.splitlines()):
        if os.path.basename(frame.get("module") or "") == "Edited.dll":
            key = frame["tid"], os.path.isabs(frame["module"])
            threads.setdefault(key, []).append((frame["method"], frame["line"]))
    return ([frames for (_, file), frames in threads.items() if file], [frames for (_, file), frames in threads.items() if not file])


def compare(what, target, expected):
    found, of_bytes = stacks(target)
    wrong = [f"{what}: no thread {frames}" for frames in expected if frames not in found]
    wrong += [f"{what}: a thread {frames}" for frames in found if frames not in expected]
    if len(found) != len(expected) or of_bytes != OF_BYTES:
        wrong.append(f"{what}: {len(found)} threads, and {of_bytes}")
    return wrong


def compare_part(what, core):
    """A core that lacks memory may say less, and nothing else."""
    names = {name for frames in THREADS for name, _ in frames}
    found, _ = stacks(core)
    return [f"{what}: {frame}" for frames in found for frame in frames
            if frame[0] not in names | {None} or frame[1] not in (None, 7)]


def compare_names(pid, perf_map):
    """With the names of the perf map, of which some are of code that has since been replaced."""
    with open(perf_map, encoding="utf-8") as file:
        lines = [line.split(" ", 2) for line in file if "[Edited]" in line]
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


def judge(work, process, folder):
    wrong = compare("before", process.pid, BEFORE)
    asker = Asker(process.pid)
    first = asker.ask(address_of(process.pid, "Work.Changed(int)"))
    process.stdin.write("change\n")
    process.stdin.flush()
    expect(process, "changed")
    wrong += compare("running", process.pid, THREADS)
    if (first["method"], first["line"]) != CHANGED[:1] + (12,):
        wrong.append(f"before: {first}")
    for name in ("Work.Added(string, Further<int>)", "Work.Changed(int)"):
        later = asker.ask(address_of(process.pid, name))
        if (later["method"], later["line"]) != (name, None):
            wrong.append(f"open: {later}")
    asker.close()
    target = lab.Target(work, process, None)
    wrong += compare("full", target.createdump("full", os.path.join(folder, "full.core")), THREADS)
    wrong += compare_part("mini", target.createdump("mini", os.path.join(folder, "mini.core")))
    perf_map, = glob.glob(os.path.join(folder, f"perf-{process.pid}.map"))
    count, differ = compare_names(process.pid, perf_map)
    return count, wrong + differ


def judge_rejit(command, host, folder):
    done = os.path.join(folder, "rejit")
    environment = {"CORECLR_ENABLE_PROFILING": "1", "CORECLR_PROFILER": "{846f5f1c-f9ae-4b07-969e-05c26bc060d8}",
                   "CORECLR_PROFILER_PATH": os.path.abspath(REJIT), "CDACQ_REJIT_DONE": done}
    with running(command, host, folder, **environment) as process:
        end = time.monotonic() + lab.READY_SECONDS
        while not os.path.exists(done):
            if time.monotonic() > end:
                raise lab.LabError("the profiler requested nothing")
            time.sleep(0.1)
        process.stdin.write("again\n")
        process.stdin.flush()
        expect(process, "again")
        wrong = compare("rejit", process.pid, COMPILED_AGAIN)
        core = lab.Target(folder, process, None).createdump("full", os.path.join(folder, "rejit.core"))
        return wrong + compare("rejit, full", core, COMPILED_AGAIN)


def main():
    runtimes = sys.argv[1:] or os.environ.get("CDACQ_RUNTIMES", "").split() or RUNTIMES
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        try:
            if shutil.which("dotnet") is None:
                raise lab.Skip("dotnet is not installed")
            for runtime in runtimes:
                command, framework = stack_run.runtime_command(work, runtime)
                folder = compile_edits(work, command, runtime)
                host = build(work, "edited", framework)
                with running(command, host, folder, DOTNET_MODIFIABLE_ASSEMBLIES="debug") as process:
                    count, wrong = judge(work, process, folder)
                if not runtime.startswith(NO_REJIT):
                    wrong += judge_rejit(command, host, folder)
                print(f"{runtime}: {count} names, {len(wrong)} differences")
                for one in wrong:
                    print("  " + one)
                failed += len(wrong)
        except lab.Skip as skip:
            print(skip)
            return 1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
