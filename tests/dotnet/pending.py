#!/usr/bin/env python3
"""
Every pending async operation: a program starts chains of async methods that no thread waits for, and says itself where
each method awaits and what the innermost waits for. `cdacq async` has to list exactly these: none is missing, none is
invented, none is there twice; live and in cores, for state machines and for methods that the runtime suspends.

    pending.py [RUNTIME...]     words of lab.runtimes()

Exit 77 (skipped) where dotnet is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure.
"""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile

import lab

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
OWN = re.compile(r"Pending\.")
HOLDERS = {"Semaphore": "taken", "TimedSemaphore": "timed", "Source": "never", "SourceOfValue": "value", "Load": "never",
           "Read": "unbounded", "ReadSingle": "single", "Write": "bounded", "Void": "never"}  # static fields
NO_THREAD_STATICS = "cdacq: thread-static fields were not searched: the runtime does not describe them\n"  # .NET 8
FAILED = {"type": "System.InvalidOperationException", "count": 5}
FAILING = "Pending.Program.Fail(int)"  # no object says it of a method that the runtime suspends


def read_truth(path):
    """How often each chain is there, and what it waits for: by its methods and lines, from the innermost."""
    truth = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            reason, chain = line.rstrip("\n").split("\t")
            if reason.startswith("^deadlock"):
                chain = "|".join(from_the_least(chain.split("|")))
            reasons, count = truth.get(chain, (set(), 0))
            truth[chain] = (reasons | {reason}, count + 1)
    return truth


def name_of(method):
    """What the program calls itself: a lambda is called after the method that it is in."""
    spelled = re.search(r"<(\w+)>b__", method)
    return f"<{spelled[1]}>" if spelled else re.search(r"([\w<>|]+)\(", method)[1]


def from_the_least(names):
    """A ring of methods may begin with any of them."""
    return min(names[i:] + names[:i] for i in range(len(names)))


def chain_of(item):
    frames = [frame for frame in item["frames"] if OWN.match(frame["method"] or "")]
    names = [f"{name_of(frame['method'])}:{frame['line']}" for frame in frames]
    return "|".join(from_the_least(names) if item["deadlock"] and names else names)


def ask(target, *options):
    done = subprocess.run([TOOL, "async", "--json", *options, target], capture_output=True, encoding="utf-8", check=False)
    if done.returncode and not (done.returncode == 1 and done.stderr == NO_THREAD_STATICS):
        raise lab.LabError(f"cdacq async: {done.returncode}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def folded(target):
    done = subprocess.run([TOOL, "async", "--folded", target], capture_output=True, encoding="utf-8", check=False)
    lines = [line.rpartition(" ") for line in done.stdout.splitlines()]
    return [done.returncode, len(lines), {chain: int(count) for chain, _, count in lines}]


def folded_of(items):
    """What `--folded` has to print of these chains; one without a name is '?'."""
    counts = collections.Counter()
    for item in items:
        names = [(frame["method"] or "") + "?" * (frame["method"] is None or "error" in frame) for frame in item["frames"]]
        counts[";".join(reversed(names))] += item["count"]
    return [0, len(counts), dict(counts)]


def judge(note, label, target, truth):
    items = ask(target)
    found, reasons, operations = collections.Counter(), {}, collections.Counter()
    for item in items:
        found[chain_of(item)] += item["count"]
        operations[item["operation"]] += 1
        reasons.setdefault(chain_of(item), []).append(item["waits_for"])
    found.pop("", None)  # the framework's own
    wrong = [f"{chain}: {found[chain]} for {count}" for chain, (_, count) in truth.items() if found[chain] != count]
    wrong += [f"{chain}: {count} for none" for chain, count in found.items() if chain not in truth]
    wrong += [f"{operation}: {count} times" for operation, count in operations.items() if count != 1]
    note(f"{label}: chains", not wrong, f"{sum(found.values())} pending; {'; '.join(wrong[:8])}")
    note(f"{label}: folded chains", folded(target) == folded_of(items), f"as --json has them, {len(items)} groups")
    wrong = [f"{chain}: {text!r} is not {expected}" for chain, (expected, _) in truth.items() for text in reasons.get(chain, [])
             if not any(re.search(pattern, text) for pattern in expected)]
    note(f"{label}: what they wait for", not wrong, "; ".join(wrong[:30]))
    wrong, held = [], 0
    for item in ask(target, "--holders"):
        method = chain_of(item).partition(":")[0]
        orphaned = "? (no root was found, but not all were searched)" if label.startswith("8.") else "nothing: no root keeps it"
        expected = orphaned if method == "Orphaned" else f"static field Pending.Plants.{HOLDERS.get(method)}"
        if method in HOLDERS or (method == "Orphaned" and item["held_by"]):
            held += 1
            wrong += [f"{method}: {item['held_by']!r}"] * (item["held_by"] != expected)
    note(f"{label}: what holds these", not wrong and held >= len(HOLDERS), f"{held}; {'; '.join(wrong)}")
    failed = ask(target, "--failed")
    known = [{key: item[key] for key in FAILED} for item in failed] == [FAILED]
    note(f"{label}: failed tasks", known and failed[0]["method"] == (None if "runtime-async" in label else FAILING), str(failed))


def run(version, work, note):
    has_runtime_async = lab.line_of(version) >= 11
    for kind in ["", ", Debug", ", runtime-async"] if has_runtime_async else ["", ", Debug"]:
        label = version + kind
        folder = tempfile.mkdtemp(dir=work)
        options = {"RuntimeAsync": "on"} if "runtime-async" in kind else {}
        if "Debug" in kind:
            options["configuration"] = "Debug"
        command = lab.program_command(work, "pending", version, **options)
        truth_file = os.path.join(folder, "truth.txt")
        with lab.running_program([*command, truth_file], folder) as target:
            truth = read_truth(truth_file)
            judge(note, f"{label}, process", str(target.pid), truth)
            for core_kind in ["full", "heap", "gcore", "kernel"] if "Debug" not in kind else ["heap"]:
                core = target.core(core_kind)
                judge(note, f"{label}, {core_kind} core", core, truth)
                os.unlink(core)


def main():
    results = lab.Results()
    with tempfile.TemporaryDirectory(prefix="cdacq-pending-") as work:
        for version in lab.runtimes(sys.argv[1:]):
            run(version, work, results.note)
    return results.exit_code()


if __name__ == "__main__":
    lab.exit_with(main)
