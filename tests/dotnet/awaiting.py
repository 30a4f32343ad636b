#!/usr/bin/env python3
"""
Async methods that wait: a program starts chains of 2 to 41 of them, of every shape, and says itself where each awaits.
All have to be under the thread that waits for the chain or runs its innermost method, in order, with their lines, none
twice; and so in the report. A program reads alike whether its methods have state machines or the runtime suspends them.

    awaiting.py [RUNTIME...]    words of lab.runtimes()

Exit 77 (skipped) where dotnet is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure.
"""

import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import lab

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
# The steps of awaiting/Chain.cs; the last letter is what the innermost method waits for (awaiting/Ends.cs).
CHAINS = ["Ts", "VTd", "tRGs", "ETs", "SLFs", "CDUs", "YWs", "PTs", "VPCs", "EEs", "TTTTc", "RVm", "Th", "x", "Tx", "VRGEx",
          "WYUx", "EPTx", "LFSx", "TVRGSLFECDUYtTVRGSLFECDUYtTVRGSLFECDUYts", "TVRGSLFECDUYWtTVRGSLFECDUYtTVRGSLFECDUYx"]
READY_SECONDS = 60


def read_truth(path):
    """Of each chain: its methods and where they await, from the innermost."""
    truth = {number: [] for number in range(len(CHAINS))}
    with open(path, encoding="utf-8") as file:
        for line in file:
            number, method, place = line.rstrip("\n").split("\t")
            truth[int(number)].insert(0, (method, place))
    return truth


def place_of(item):
    return f"{item['file']}:{item['line']}"


def is_own(item):
    return (item["method"] or "").startswith("Awaiting.") and item["file"] is not None


def fault(found, expected):
    """What is wrong with the methods that were found, or None."""
    for i, (method, place) in enumerate(expected):
        if i >= len(found) or found[i][1] != place or not fnmatch.fnmatchcase(found[i][0].replace("[", "("), method.replace("[", "(")):
            return f"{i}: {found[i] if i < len(found) else None} is not {(method, place)}"
    return f"too many: {found[len(expected)]}" if len(found) > len(expected) else None


def read_stacks(target):
    done = subprocess.run([TOOL, "stack", "--json", target], capture_output=True, encoding="utf-8", check=False)
    stacks = {}
    for line in done.stdout.splitlines():
        frame = json.loads(line)
        stacks.setdefault(frame["tid"], []).append(frame)
    return stacks


def folded_methods(target):
    """The async methods in folded stacks, each as often as threads have it."""
    done = subprocess.run([TOOL, "stack", "--folded", target], capture_output=True, encoding="utf-8", check=False)
    lines = [line.rpartition(" ") for line in done.stdout.splitlines()]
    return sum(stack.count("[async] ") * int(count) for stack, _, count in lines)


def thread_names(report):
    return {thread["tid"]: thread["name"] for stack in report["stacks"] for thread in stack["threads"]}


def judge(note, label, target, truth):
    done = subprocess.run([TOOL, "report", "--json", target], capture_output=True, encoding="utf-8", check=False)
    report = json.loads(done.stdout)
    names, stacks = thread_names(report), read_stacks(target)
    by_name = {names.get(tid): frames for tid, frames in stacks.items()}
    wrong, frames = [], 0
    for number, expected in truth.items():
        runs = CHAINS[number].endswith("x")
        for name in [f"waits {number}"] + [f"runs {number}"] * runs:
            found = [(frame["method"], place_of(frame)) for frame in by_name.get(name, []) if frame["status"] == "async" and is_own(frame)]
            frames += len(found)
            problem = fault(found, expected)
            if problem:
                wrong.append(f"{name} ({CHAINS[number]}) {problem}")
    note(f"{label}: chains in stacks", not wrong, f"{frames} methods; {'; '.join(wrong[:4])}")
    awaiting = sum(frame["status"] == "async" for items in stacks.values() for frame in items)
    note(f"{label}: folded chains", folded_methods(target) == awaiting, f"{awaiting} methods")
    waits, wrong = {names.get(wait["tid"]): wait for wait in report["waits"]}, []
    for number, expected in truth.items():
        tasks = waits.get(f"waits {number}", {}).get("tasks", [])
        found = [(task["method"], place_of(task)) for task in tasks if task["file"] is not None and "/source/" in task["file"]]
        places = [place for _, place in found]
        if places != [place for _, place in reversed(expected)]:
            wrong.append(f"{number} ({CHAINS[number]}) {places[:6]}")
    note(f"{label}: chains in the report", not wrong, "; ".join(wrong[:4]))


def compiled_ahead(work, version, command):
    """The command of a copy of the program that is compiled ahead of time."""
    program = os.path.join(work, "ahead", os.path.basename(command[-1]))
    shutil.copytree(os.path.dirname(command[-1]), os.path.dirname(program))
    lab.crossgen2(work, version)(command[-1], "-o", program)
    return [*command[:-1], program]


def run(version, work, note):
    has_runtime_async = lab.line_of(version) >= 11
    for kind in ["", ", runtime-async", ", runtime-async, ReadyToRun"] if has_runtime_async else [""]:
        label = version + kind
        folder = tempfile.mkdtemp(dir=work)
        options = {"RuntimeAsync": "on"} if "runtime-async" in kind else {}
        command = lab.program_command(work, "awaiting", version, **options)
        if "ReadyToRun" in kind:
            command = compiled_ahead(folder, version, command)
        truth_file = os.path.join(folder, "truth.txt")
        with lab.running_program([*command, truth_file, *CHAINS], folder, seconds=READY_SECONDS) as target:
            truth = read_truth(truth_file)
            judge(note, f"{label}, process", str(target.pid), truth)
            for kind in ["full", "heap", "gcore", "kernel"] if has_runtime_async else ["heap"]:
                core = target.core(kind)
                judge(note, f"{label}, {kind} core", core, truth)
                os.unlink(core)


def main():
    results = lab.Results()
    with tempfile.TemporaryDirectory(prefix="cdacq-awaiting-") as work:
        for version in lab.runtimes(sys.argv[1:]):
            run(version, work, results.note)
    return results.exit_code()


if __name__ == "__main__":
    lab.exit_with(main)
