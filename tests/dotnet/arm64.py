#!/usr/bin/env python3
"""Processes of .NET for arm64, which qemu-user runs on this machine (emulated.py): their cores against their own words.

    arm64.py [--brief | --all] [RUNTIME...]    words of lab.runtimes()

The program `stacks`: the stacks of its waiting threads are those that they wrote, with lines, and every record of the
runtime's jitdump is asked at its first, middle and last byte, and what is outside of all. The program `locks` (not with
--brief): locks, waits and deadlocks are those that it told of. The program `stacks` again: so are the stacks of threads
that collect garbage (not with --brief). The program `dying`: the report has what the process wrote
to standard error, word for word. By default it dies in eleven ways, with --brief in four, with --all in every way for
which the emulator does. Without an argument, the runtimes are the newest of .NET 9, 10 and 11.
Exit 77 (skipped) where the emulator or the packages cannot be had, unless CDACQ_REQUIRE_ARM64=1: then that is a failure.
"""

import argparse
import collections
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import deaths
import emulated
import judge
import lab
import locks
import stack_judge
import stack_run
from jitdump import live_records, read_loads

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
LINES = [9, 10, 11]
READY_SECONDS = 100  # the emulator takes some ten times as long
SIGNALS = 10
COLLECTED_CORES = 3
NOT_BRIEF = {"locks", "collected"}
TESTS = ["parked", "locks", "collected", "deaths"]
BRIEF = ["Rethrown", "Async", "OnThread", "FailFast"]
ELEVEN = ["Rethrown", "NullReference", "Generic", "Nested", "Async", "OnThread", "DynamicMethods", "StaticConstructor", "Aggregate",
          "FailFast", "NativeFault"]
# The emulator ends with the guest where these break its own memory or its time, or leaves the words of the C library out.
NOT_EMULATED = {*deaths.HARD_LIMIT, *deaths.KILLED, *deaths.OF_LIBC}
LEAST_METHODS, LEAST_LINES = 1000, 3000


def add_timeouts(facts, report):
    """
    Cores of the emulator lack the ELF header of the C library. So nothing confirms the file, and the names of its functions
    do not count, which would say whether a wait has a timeout. What is not known becomes what the program told, and cycles
    that end are no deadlocks. Returns the number of waits.
    """
    names, count = {tid: name for name, tid in facts.threads.items()}, 0
    for wait in [*report["waits"], *(wait for deadlock in report["deadlocks"] for wait in deadlock["waits"])]:
        if wait["endless"] is None:
            name = names.get(wait["tid"])
            wait["endless"] = name not in facts.ends
            wait["timeout"] = 1 if wait["timeout"] is None and facts.timed.get(name) else wait["timeout"]
            count += 1
    report["deadlocks"] = [one for one in report["deadlocks"] if all(wait["endless"] for wait in one["waits"])]
    return count


class Run:
    """The tests of one runtime."""

    def __init__(self, work, runtime):
        self.work, self.runtime = work, runtime
        self.machine = emulated.Machine(work, runtime)
        self.results = []

    def note(self, label, passed, text):
        print(f"  {'ok  ' if passed else 'FAIL'} {self.runtime} {label}: {text}", flush=True)
        self.results.append(passed)

    def parked_core(self, command, work, **environment):
        """The core of a program that says that it is ready, its pid, and what it said before."""
        process = self.machine.start(command, work, **environment)
        timer = threading.Timer(READY_SECONDS, process.kill)
        timer.start()
        try:
            said = []
            for line in process.stdout:
                said.append(line.decode())
                if line.startswith(b"READY"):
                    break
            else:
                raise lab.LabError(f"the program did not get ready: {process.stderr.read().decode(errors='replace')[:500]}")
            for _ in range(SIGNALS):  # the runtime takes the first for its own
                os.kill(process.pid, signal.SIGABRT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=2)
                    break
            process.communicate()
        finally:
            timer.cancel()
            process.kill()
        core = emulated.take_core(work)
        if core is None:
            raise lab.LabError(f"the emulator left no core in {work}")
        return core, process.pid, said

    def parked(self):
        """What waiting threads wrote of their own stacks, and every record of the jitdump."""
        with tempfile.TemporaryDirectory(dir=self.work) as work:
            path = os.path.join(work, "parked.jsonl")
            core, pid, _ = self.parked_core([*self.machine.command("stacks"), "park", path], work, DOTNET_PerfMapEnabled="1",
                                         DOTNET_PerfMapStubGranularity="2", DOTNET_PerfMapJitDumpPath=work)
            self.judge_stacks(core, path)
            self.judge_records(core, os.path.join(work, f"jit-{pid}.dump"))

    def judge_records(self, core, jitdump, kind="guest"):
        loads = read_loads(jitdump)
        live = live_records(loads, [])
        expected, tally = judge.as_expected(live), judge.Tally()
        judge.judge_inside(TOOL, core, expected, tally)
        judge.judge_outside(TOOL, core, loads, live, tally)
        judge.judge_spelling(TOOL, core, "il", judge.runtime_names(expected), tally)
        if tally.has_failed:
            tally.report()
        self.note(f"jitdump, {kind}", len(live) >= LEAST_METHODS and not tally.has_failed, f"{3 * len(live)} addresses in {len(live)} methods")

    def judge_stacks(self, core, path, kind="guest"):
        self.judge_frames(*stack_run.walk(core), path, kind)

    def judge_frames(self, frames, said, path, kind):
        told = lab.read_json_lines(path)
        threads, tally = stack_judge.by_thread(frames), stack_judge.Tally()
        for thread in told:
            tally.add("threads")
            stack_judge.compare_told(thread["frames"], threads.get(thread["tid"], []), tally, thread["place"])
        guessed = sum(frame["by"] == "guess" for frame in frames)
        failed = stack_judge.failures(tally)
        if failed:
            tally.report(failed)
        self.note(f"stacks, {kind}", not failed and not guessed and tally.counts["line equal"] >= LEAST_LINES,
                  f"{', '.join(f'{number} {key}' for key, number in tally.counts.most_common(6))}; {guessed} guesses{said.strip()[:200]}")

    def locks(self):
        """What the program said of its locks and waits."""
        for way in ["deadlocks", "waits"]:
            with tempfile.TemporaryDirectory(dir=self.work) as work:
                core, _, said = self.parked_core([*self.machine.command("locks"), way], work)
                facts = locks.Facts(said[:-1])
                report = locks.ask(core)
                untold = add_timeouts(facts, report)
                wrong = locks.compare(facts, report, True)
                enough = len(facts.waits) >= locks.LEAST[way]
                self.note(f"locks, {way}", enough and not wrong, f"{len(facts.held)} locks, {len(facts.waits)} waits, "
                          f"{len(facts.deadlocks)} deadlocks, {untold} waits of which it is not known if they end{''.join('; ' + text for text in wrong)[:2000]}")

    def collected(self):
        """Threads that the runtime stops for collections, at any moment."""
        tally = stack_judge.Tally()
        for _ in range(COLLECTED_CORES):
            with tempfile.TemporaryDirectory(dir=self.work) as work:
                path = os.path.join(work, "collected.jsonl")
                core, _, _ = self.parked_core([*self.machine.command("stacks"), "collect", path], work)
                told = lab.read_json_lines(path)
                threads = stack_judge.by_thread(stack_run.walk(core)[0])
                for thread in told:
                    stack_judge.compare_running(thread["frames"], threads.get(thread["tid"], []), stack_run.INNER, tally, f"thread {thread['tid']}")
        failed = stack_judge.failures(tally)
        if failed:
            tally.report(failed)
        self.note("collections", not failed and tally.counts["threads whole"] >= COLLECTED_CORES,
                  ", ".join(f"{number} {key}" for key, number in tally.counts.most_common(6)))

    def deaths(self, ways):
        """What the processes wrote as they died."""
        counts, wrong, signatures = collections.Counter(), [], {}
        for way in ways:
            with tempfile.TemporaryDirectory(dir=self.work) as work:
                process = self.machine.start([*self.machine.command("dying"), way], work)
                try:
                    _, words = process.communicate(timeout=READY_SECONDS)
                finally:
                    process.kill()
                core = emulated.take_core(work)
                problem = "left no core" if core is None else deaths.problem_of(
                    way, "guest", core, emulated.words_of(words), self.runtime, signatures)
                counts["ok" if problem is None else "wrong"] += 1
                if problem:
                    wrong.append(f"{way} {problem}")
        self.note("deaths", not wrong, f"{counts['ok']} of {len(ways)} word for word{''.join('; ' + text for text in wrong)}")


def ways_of(arguments):
    if arguments.all:
        return [way for way in deaths.WAYS if way not in NOT_EMULATED]
    return BRIEF if arguments.brief else ELEVEN


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--ways", nargs="+", metavar="WAY")
    parser.add_argument("--only", choices=TESTS)
    parser.add_argument("runtimes", nargs="*", metavar="RUNTIME")
    arguments = parser.parse_args()
    results, begin = [], time.monotonic()
    try:
        lab.refuse_piped_cores()
        with tempfile.TemporaryDirectory(prefix="cdacq-arm64-") as work:
            for runtime in lab.runtimes(arguments.runtimes or [str(line) for line in LINES]):
                run = Run(work, runtime)
                for name in [arguments.only] if arguments.only else TESTS:
                    if name not in NOT_BRIEF or not arguments.brief:
                        getattr(run, name)(*([arguments.ways or ways_of(arguments)] if name == "deaths" else []))
                results += run.results
    except lab.Skip as reason:
        required = os.environ.get("CDACQ_REQUIRE_ARM64") == "1"
        print(f"{'FAILED' if required else 'skipped'}: {reason}")
        return 1 if required else lab.SKIPPED
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed, in {time.monotonic() - begin:.0f} s")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
