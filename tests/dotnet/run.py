#!/usr/bin/env python3
"""The tests on real runtimes: a C# target is built and run, and every record of its jitdump is asked of the running
process, of a full core by createdump, of a core by gdb's gcore, and of a snapshot of the full core.

Exit 77 (skipped) where dotnet or gdb is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure.
"""

import json
import os
import subprocess
import sys
import tempfile

import judge
import lab
from jitdump import live_records, read_loads, read_released

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
LEAST_METHODS = 1000  # of the target, JIT and ReadyToRun together: fewer means that the jitdump is not whole


def judge_target(label, target, loads, live):
    """One target against all records. Returns whether it passed."""
    tally = judge.Tally()
    judge.judge_inside(TOOL, target, judge.as_expected(live), tally)
    judge.judge_outside(TOOL, target, loads, live, tally)
    print(f"--- {label}", flush=True)
    tally.report()
    return not tally.has_failed


def answers(target, ips):
    """The raw lines for a list of addresses."""
    text = "".join(f"{ip:x}\n" for ip in ips)
    done = subprocess.run([TOOL, "ip2method", "--json", target], input=text, capture_output=True, encoding="utf-8", check=False)
    return done.stdout.splitlines()


def judge_snapshot(work, core, live):
    """A snapshot of all methods must give the same answers as the core, to every question about them."""
    path = os.path.join(work, "snapshot.core")
    subprocess.run([TOOL, "snapshot", core, "-o", path], check=True, stdout=subprocess.DEVNULL)
    ips = [load.address + load.size // 2 for load in live]
    same = answers(core, ips) == answers(path, ips)
    print(f"--- snapshot: {os.path.getsize(path) >> 10} KiB of {os.path.getsize(core) >> 10}, {'same answers' if same else 'OTHER ANSWERS'}")
    return same


def judge_listing(core, live):
    """`methods` lists every live JIT method once, with the record's start and size."""
    listing = subprocess.run([TOOL, "methods", "--json", core], capture_output=True, encoding="utf-8", check=True).stdout
    listed = {}
    for line in listing.splitlines():
        method = json.loads(line)
        listed.setdefault(int(method["code_start"], 16), []).append(method["code_size"])
    missing = [load for load in live if load.kind == "jit" and listed.get(load.address) != [load.size]]
    print(f"--- methods: {len(listed)} listed, {len(missing)} of the jitdump's missing or different")
    return not missing


def judge_stop(pid, live):
    """--stop answers the same, and leaves the process running."""
    ips = [f"{live[0].address:x}"]
    stopped = subprocess.run([TOOL, "ip2method", "--stop", str(pid), *ips], capture_output=True, encoding="utf-8", check=False)
    running = subprocess.run([TOOL, "ip2method", str(pid), *ips], capture_output=True, encoding="utf-8", check=False)
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
        state = next(line.split()[1] for line in status if line.startswith("State:"))
    good = stopped.returncode == 0 and stopped.stdout == running.stdout and state in "SR"
    print(f"--- stop: {'same answer' if good else stopped.stderr + stopped.stdout}, then state {state}")
    return good


def run_all(work):
    with lab.running_target(work) as target:
        target.save_records()
        loads = read_loads(os.path.join(work, "jitdump"))
        live = live_records(loads, read_released(os.path.join(work, "released.txt")))
        if len(live) < LEAST_METHODS:
            raise lab.LabError(f"the jitdump has {len(live)} methods: was it cut?")
        pid = target.process.pid
        full, gcore = target.createdump("full"), target.gcore()
        passed = [judge_target("process", str(pid), loads, live), judge_stop(pid, live)]
    passed += [judge_target("createdump full", full, loads, live), judge_target("gcore", gcore, loads, live),
               judge_snapshot(work, full, live), judge_listing(full, live)]
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed")
    return all(passed)


def main():
    required = os.environ.get("CDACQ_REQUIRE_DOTNET") == "1"
    try:
        with tempfile.TemporaryDirectory(prefix="cdacq-dotnet-") as work:
            return 0 if run_all(work) else 1
    except lab.Skip as reason:
        print(f"{'FAILED' if required else 'skipped'}: {reason}")
        return 1 if required else lab.SKIPPED


if __name__ == "__main__":
    sys.exit(main())
