#!/usr/bin/env python3
"""
What a process has yet to do: a program fills the queues of the thread pool, starts timers and sends requests, and says so
itself; another one serves requests with ASP.NET. `cdacq work` has to list exactly that, live and in cores.

    work.py [RUNTIME...]     words of lab.runtimes()

Exit 77 (skipped) where dotnet is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure.
"""

import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import lab

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
TRUTH = "truth.txt"
OWN = re.compile(r"Work\.")
HOUR = 3_600_000
PERIODS = {"Work.Program.Tick(object)": (30_000, HOUR), "Work.Program.Once(object)": (None, 2 * HOUR)}
ASPNET = "Microsoft.AspNetCore.App"


def ask(target):
    done = subprocess.run([TOOL, "work", "--json", str(target)], capture_output=True, encoding="utf-8", check=False)
    if done.returncode or done.stderr:
        raise lab.LabError(f"cdacq work: {done.returncode}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def row_of(item):
    """A row in the words of the programs."""
    if item["kind"] == "work_item":
        return item["item"], item["type"] if item["item"] == "object" else item["method"]
    if item["kind"] == "timer":
        return "timer", item["callback"]
    return ("served" if item["served"] else "sent" if item["elapsed_ms"] is not None else "sent without time"), item["request"]


def read_truth(path):
    with open(path, encoding="utf-8") as file:
        return {(kind, name): int(count) for kind, name, count in (line.rstrip("\n").split("\t") for line in file)}


def judge(note, label, target, truth, age_ms=None, sent=None):
    before = time.clock_gettime(time.CLOCK_MONOTONIC) * 1000
    items = ask(target)
    after = time.clock_gettime(time.CLOCK_MONOTONIC) * 1000
    found = collections.Counter()
    for item in items:
        kind, name = row_of(item)
        if kind == "timer" and not OWN.match(name or ""):
            continue  # the framework's own
        found[kind, name] += item.get("count", 1)
    queued = sum(item["count"] for item in items if item["kind"] == "work_item")
    expected = {key: count for key, count in truth.items() if key[0] != "queued"}
    wrong = [f"{key}: {found[key]} for {count}" for key, count in expected.items() if found[key] != count]
    wrong += [f"{key}: {count} for none" for key, count in found.items() if key not in expected]
    wrong += [f"{queued} items of {count}" for (kind, _), count in truth.items() if kind == "queued" and queued != count]
    note(f"{label}: what is listed", not wrong, f"{len(items)} rows; {'; '.join(wrong[:8])}")
    wrong = []
    for item in items:
        period, due = PERIODS.get(item.get("callback"), (None, None))
        if due and (item["period_ms"] != period or not due - 200_000 < item["first_due_ms"] <= item["last_due_ms"] <= due):
            wrong.append(str(item))
        if item["kind"] == "http_request" and item["elapsed_ms"] is not None and not 0 <= item["elapsed_ms"] < 200_000:
            wrong.append(str(item))
        if item["kind"] == "http_request" and item["served"] and age_ms is not None and (item["elapsed_ms"] is None) == age_ms:
            wrong.append(f"age: {item}")
    for item in items:  # a process is asked for an exact age; a core has an age that it had at least
        if sent and item["kind"] == "http_request" and item["elapsed_ms"] is not None:
            least = before - sent - 500 if item["exact"] else 0
            if not least <= item["elapsed_ms"] <= after - sent + 1000:
                wrong.append(f"not sent at {sent}: {item}")
    note(f"{label}: times", not wrong, "; ".join(wrong))


def running(command, folder, *arguments):
    """A program that writes to its first argument what is pending in it."""
    return lab.running_program([*command, os.path.join(folder, TRUTH), *arguments], folder, {"DOTNET_PROCESSOR_COUNT": "2"})


def judge_all(note, label, target, kinds, **options):
    truth = read_truth(os.path.join(target.work, TRUTH))
    judge(note, f"{label}, process", target.pid, truth, **options)
    for kind in kinds:
        core = target.core(kind)
        judge(note, f"{label}, {kind} core", core, truth, **options)
        os.unlink(core)


def server_command(work, version):
    """The program that serves, on ASP.NET of the same version, from its pack."""
    program = lab.own_copy(work, lab.program_of(lab.build(work, "serving", version, DemoFramework="net8.0" if lab.line_of(version) < 10 else "net10.0")))
    if version == "installed":
        return ["dotnet", program]

    def make(root):
        shutil.copytree(os.path.dirname(lab.private_dotnet(work, version)), root, dirs_exist_ok=True)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(root)) as folder:
            pack = lab.restore_pack(folder, ASPNET + ".Runtime.linux-x64", version)
            library, = [path for path in (os.path.join(pack, "runtimes", "linux-x64", "lib", name)
                                          for name in os.listdir(os.path.join(pack, "runtimes", "linux-x64", "lib")))]
            shutil.copytree(library, os.path.join(root, "shared", ASPNET, version))
    dotnet = os.path.join(lab.shared(work, f"aspnet-{version}", make), "dotnet")
    configuration = program.removesuffix(".dll") + ".runtimeconfig.json"
    with open(configuration, encoding="utf-8") as file:
        options = json.load(file)
    for framework in options["runtimeOptions"]["frameworks"]:
        framework["version"] = version
    options["runtimeOptions"]["rollForward"] = "Disable"
    with open(configuration, "w", encoding="utf-8") as file:
        json.dump(options, file)
    return [dotnet, program]


def main():
    results = lab.Results()
    with tempfile.TemporaryDirectory(prefix="cdacq-work-") as work:
        for version in lab.runtimes(sys.argv[1:]):
            for kind in ["", ", runtime-async"] if lab.line_of(version) >= 11 else [""]:
                folder = tempfile.mkdtemp(dir=work)
                command = lab.program_command(work, "work", version, **({"RuntimeAsync": "on"} if kind else {}))
                with running(command, folder) as target:
                    judge_all(results.note, version + kind, target, ["full", "heap", "gcore", "kernel"] if not kind else ["heap"],
                              sent=int(re.search(r"SENT (\d+)", target.read_log())[1]))
            for words in [[], ["log"]]:
                folder = tempfile.mkdtemp(dir=work)
                with running(server_command(folder, version), folder, *words) as target:
                    judge_all(results.note, f"{version}, ASP.NET {' '.join(words)}", target, ["kernel"] if words else [], age_ms=bool(words))
    return results.exit_code()


if __name__ == "__main__":
    lab.exit_with(main)
