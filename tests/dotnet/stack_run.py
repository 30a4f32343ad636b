#!/usr/bin/env python3
"""Stacks of real processes, judged by the debugger services (ClrMD) and by the processes' own words.

    stack_run.py [RUNTIME...]                 the tests; RUNTIME is a word of lab.runtimes()
    stack_run.py --stops N [RUNTIME...]       of these, only the stops during collections, N of them
    stack_run.py --collect DIR --dumps N [RUNTIME...]   takes dumps of the storm and asks the services about them
    stack_run.py --judge DIR [--examples]     compares kept dumps, again and again while the walk changes

Exit 77 (skipped) where dotnet is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure.
"""

import argparse
import contextlib
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import hijacked
import lab
import stack_judge
from core_memory import CoreMemory

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
DUMPS = 8  # of the storm, for each runtime
DUMPS_OF_A_PROCESS = 50  # then a new process, with another seed
STOPS = 20  # of a process that collects, each with a thread whose return address is replaced
STOP_SECONDS = 60
INNER = "Divisions.Long(long, long)"  # what the threads of that process call
KINDS = ["full", "heap", "mini", "gcore", "kernel_core"]
BUILDS = [("Release", "portable"), ("Debug", "portable"), ("Release", "embedded")]
LEAST_PLACES = 60
SIZE_OF_A_MAP = 64  # bytes of debug info, at least, in a method of some lines


# ---- The programs ----

@contextlib.contextmanager
def running(work, runtime, arguments, configuration="Release", debug_type="portable", nice=0):
    """A process of the stacks program that is where it shall be."""
    command = lab.program_command(work, "stacks", runtime, configuration, DebugType=debug_type)
    folder = tempfile.mkdtemp(dir=work, prefix="run-")
    log = os.path.join(folder, "target.log")
    with open(log, "w", encoding="utf-8") as output:
        process = subprocess.Popen([*command, *arguments], cwd=folder, stdin=subprocess.PIPE, stdout=output, stderr=output,
                                   start_new_session=True, preexec_fn=lambda: (os.nice(nice), lab.allow_cores()))
    target = lab.Target(folder, process, log)
    try:
        lab.wait_for_ready(target)
        yield target
    finally:
        target.stop()
        for name in glob.glob(os.path.join(folder, "*.core")):
            os.remove(name)


class Services:
    """ClrMD in one process that answers core after core."""

    def __init__(self, work):
        self.process = subprocess.Popen(lab.program_command(work, "clrmd"), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def walk(self, core, runtime_directory, *question):
        return self.ask(core, os.path.join(runtime_directory, "libmscordaccore.so"), *question)

    def ask(self, *words):
        self.process.stdin.write("\t".join(words) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def walk(target, *options):
    """The frames of `cdacq stack`; what it wrote to stderr."""
    done = subprocess.run([TOOL, "stack", "--json", "--each", *options, str(target)], capture_output=True, encoding="utf-8", check=False)
    if done.returncode == 64:  # a version without --each
        done = subprocess.run([TOOL, "stack", "--json", *options, str(target)], capture_output=True, encoding="utf-8", check=False)
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def mark_lost_maps(core, frames):
    """
    Marks frames whose code replaced other code on the stack if the core lacks the map to IL of that code. For a small
    core of .NET 8 to 10, the debugger services visit the map of the code that the MethodDesc refers to, which is other
    code; this one is there only if it shares a page with something else.
    """
    for frame in frames:
        if stack_judge.is_managed(frame) and frame["il_offset"] is None and "Places.OnStackReplacement(" in (frame["method"] or ""):
            done = subprocess.run([TOOL, "inspect", "--json", core, frame["ip"]], capture_output=True, encoding="utf-8", check=False)
            place = int(json.loads(done.stdout)["debug_info"], 16)
            frame["map_is_lost"] = len(CoreMemory(core).up_to(place, SIZE_OF_A_MAP)) < SIZE_OF_A_MAP


# ---- Dumps of the storm ----

def collect(work, runtime, dumps, folder):
    """Takes dumps and keeps each with the answer of the services in FOLDER/NUMBER.core and .json. Returns how many."""
    os.makedirs(folder, exist_ok=True)
    services, kept = Services(work), len(glob.glob(os.path.join(folder, "*.json")))
    try:
        while kept < dumps:
            with running(work, runtime, ["storm", str(kept)], nice=10) as target:
                directory = target.runtime_directory()
                for _ in range(min(DUMPS_OF_A_PROCESS, dumps - kept)):
                    core = target.createdump("mini", os.path.join(folder, f"{kept:04}.core"))
                    answer = services.walk(core, directory)
                    with open(core.replace(".core", ".json"), "w", encoding="utf-8") as file:
                        json.dump(answer, file)
                    kept += 1
    finally:
        services.close()
    return kept


def judge_core(core, tally):
    """One kept core against the answer of the services that is beside it."""
    with open(core.replace(".core", ".json"), encoding="utf-8") as file:
        answer = json.load(file)
    if "error" in answer:
        tally.add("cores that the services do not open", f"{core}: {answer['error'][:200]}")
        return
    frames, said = walk(core)
    if not frames:
        tally.add("MISSING, all of a core", f"{core}: {said.strip()[:200]}")
    for line in set(said.splitlines()):
        tally.add("lines on stderr", line[:200])
    tally.add("cores")
    stack_judge.compare_core(answer, frames, CoreMemory(core), tally, os.path.basename(core))


def judge_folder(folder, examples):
    tally = stack_judge.Tally()
    for answer in sorted(glob.glob(os.path.join(folder, "*.json"))):
        judge_core(answer.replace(".json", ".core"), tally)
    tally.report(None if examples else stack_judge.failures(tally))
    return tally


# ---- Collections ----

def stop_and_compare(pid, threads, told, tally):
    """Stops the process for a moment, and compares the stacks if a return address is replaced."""
    os.kill(pid, signal.SIGSTOP)
    try:
        while lab.states_of(pid) != {"T"}:
            time.sleep(0.001)
        replaced = dict(threads.hijacked())
        frames, said = walk(pid) if replaced else ([], "")
    finally:
        os.kill(pid, signal.SIGCONT)
    if replaced:
        tally.add("stops")
        for line in set(said.splitlines()):
            tally.add("lines on stderr", line[:200])
        stacks = stack_judge.by_thread(frames)
        for tid, is_there in replaced.items():
            tally.add(stack_judge.class_of_hijack(is_there, stacks.get(tid, [])), f"thread {tid}")
        for tid, chain in told.items():
            stack_judge.compare_running(chain, stacks.get(tid, []), INNER, tally, f"thread {tid}", replaced.get(tid, True))


def judge_completed(work, core, directory, tally):
    """A core of the kernel, after `cdacq complete` has filled in the pages of its files, which the services need."""
    completed = core + ".complete"
    done = subprocess.run([TOOL, "complete", "--unconfirmed", core, "-o", completed], capture_output=True, encoding="utf-8", check=False)
    if not os.path.exists(completed):
        tally.add("MISSING, all of a core", f"{core}: {done.stderr[:200]}")
        return
    services = Services(work)
    try:
        answer = services.walk(completed, directory)
    finally:
        services.close()
    if "error" in answer:
        tally.add("cores that the services do not open", answer["error"][:200])
    else:
        tally.add("cores")
        stack_judge.compare_core(answer, walk(core)[0], CoreMemory(completed), tally, "completed")
    os.remove(completed)


# ---- The tests ----

class Run:
    def __init__(self):
        self.results = []

    def note(self, label, tally, least):
        """`least`: (label, number) that must be reached, lest nothing was compared."""
        failed = stack_judge.failures(tally)
        enough = all(tally.counts[key] >= number for key, number in least)
        passed = not failed and enough
        counts = ", ".join(f"{number} {key}" for key, number in tally.counts.most_common(6))
        print(f"  {'ok  ' if passed else 'FAIL'} {label}: {counts}", flush=True)
        if not passed:
            tally.report(None if not failed else failed)
        self.results.append(passed)

    def storm(self, work, runtime):
        """The walk of the debugger services on small dumps of a process that never rests."""
        folder = os.path.join(work, f"storm-{runtime}")
        collect(work, runtime, DUMPS, folder)
        tally = stack_judge.Tally()
        for answer in sorted(glob.glob(os.path.join(folder, "*.json"))):
            judge_core(answer.replace(".json", ".core"), tally)
            os.remove(answer.replace(".json", ".core"))
        self.note("storm", tally, [("cores", DUMPS), ("equal", 30 * DUMPS)])

    def parked(self, work, runtime, configuration, debug_type, kinds):
        """The process's own words, live and from cores."""
        with tempfile.TemporaryDirectory(dir=work) as folder:
            path = os.path.join(folder, "parked.jsonl")
            with running(work, runtime, ["park", path], configuration, debug_type) as target:
                told = lab.read_json_lines(path)
                label, directory = f"{configuration}, {debug_type} PDB", target.runtime_directory()
                first_of_all = (configuration, debug_type) == BUILDS[0]
                self.told(f"{label}, live", told, str(target.pid))
                for kind in kinds:
                    try:
                        core = getattr(target, kind)() if kind in ("gcore", "kernel_core") else target.createdump(kind)
                    except lab.Skip as reason:
                        print(f"  no {kind}: {reason}")
                        continue
                    self.told(f"{label}, {kind}", told, core)
                    if kind == "kernel_core" and first_of_all:
                        tally = stack_judge.Tally()
                        judge_completed(work, core, directory, tally)
                        self.note(f"{label}, {kind}, completed", tally, [("cores", 1), ("equal", 10)])
                    os.remove(core)

    def collected(self, work, runtime, stops):
        """The process's own words, while it stops its threads for collections: at moments when it has replaced a return
        address."""
        tally = stack_judge.Tally()
        with tempfile.TemporaryDirectory(dir=work) as folder:
            path = os.path.join(folder, "collected.jsonl")
            with running(work, runtime, ["collect", path]) as target:
                with open(path, encoding="utf-8") as file:
                    told = {thread["tid"]: thread["frames"] for thread in map(json.loads, file)}
                threads, end = hijacked.Threads(TOOL, target.pid), time.monotonic() + max(STOP_SECONDS, stops)
                while tally.counts["stops"] < stops and time.monotonic() < end:
                    stop_and_compare(target.pid, threads, told, tally)
                threads.close()
        self.note(f"collections: {tally.counts['hijacked threads']} hijacked threads in {tally.counts['stops']} stops", tally, [("stops", stops), ("threads whole", stops * len(told))])

    def told(self, label, told, target):
        tally = stack_judge.Tally()
        frames, said = walk(target, *(["--stop"] if target.isdigit() else []))
        if label.endswith("mini"):
            mark_lost_maps(target, frames)
        threads = stack_judge.by_thread(frames)
        for line in set(said.splitlines()):
            tally.add("lines on stderr", line[:200])
        for thread in told:
            tally.add("threads")
            stack_judge.compare_told(thread["frames"], threads.get(thread["tid"], []), tally, thread["place"])
        self.note(label, tally, [("threads", LEAST_PLACES), ("method equal", 3000), ("line equal", 3000)])


def test(runtimes, every):
    run = Run()
    for runtime in runtimes:
        print(f".NET {runtime}", flush=True)
        with tempfile.TemporaryDirectory(prefix="cdacq-stacks-") as work:
            for configuration, debug_type in BUILDS if every or lab.is_recent(runtime) else BUILDS[:1]:
                first = (configuration, debug_type) == BUILDS[0]
                kinds = KINDS if first and (every or lab.is_newest(runtime)) else ["mini", "kernel_core"] if first else ["mini"]
                run.parked(work, runtime, configuration, debug_type, kinds)
            run.storm(work, runtime)
            run.collected(work, runtime, STOPS)
    return run.results


def test_collections(runtimes, stops):
    run = Run()
    for runtime in runtimes:
        print(f".NET {runtime}", flush=True)
        with tempfile.TemporaryDirectory(prefix="cdacq-stacks-") as work:
            run.collected(work, runtime, stops)
    return run.results


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runtimes", nargs="*", metavar="RUNTIME")
    parser.add_argument("--collect", metavar="DIR")
    parser.add_argument("--judge", metavar="DIR")
    parser.add_argument("--stops", type=int, metavar="N")
    parser.add_argument("--dumps", type=int, default=DUMPS, metavar="N")
    parser.add_argument("--examples", action="store_true", help="of each class, not only of failures")
    arguments = parser.parse_args()
    arguments.every = bool(arguments.runtimes)
    arguments.runtimes = lab.runtimes(arguments.runtimes)
    return arguments


def main():
    arguments = parse_arguments()
    try:
        if arguments.judge:
            begun = time.monotonic()
            failed = stack_judge.failures(judge_folder(arguments.judge, arguments.examples))
            print(f"{time.monotonic() - begun:.0f} s, {sum(failed.values())} failures")
            return 1 if failed else 0
        if arguments.collect:
            for runtime in arguments.runtimes:
                kept = collect(arguments.collect, runtime, arguments.dumps, os.path.join(arguments.collect, runtime))
                print(f"{runtime}: {kept} dumps", flush=True)
            return 0
        results = test_collections(arguments.runtimes, arguments.stops) if arguments.stops else test(arguments.runtimes, arguments.every)
    except lab.Skip as reason:
        required = os.environ.get("CDACQ_REQUIRE_DOTNET") == "1"
        print(f"{'FAILED' if required else 'skipped'}: {reason}")
        return 1 if required else lab.SKIPPED
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
