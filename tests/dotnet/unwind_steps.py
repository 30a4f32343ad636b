#!/usr/bin/env python3
"""Judges the x64 unwinder at every instruction that a live process executes in managed code.

    unwind_steps.py [RUNTIME...]        words of lab.runtimes(); default: the newest of each recent line

unwind_steps.c steps and judges; this starts the program of stepped/ in the ways that give different code, and checks
that enough of each kind was met. CDACQ_STEPS is the number of instructions in managed code for each runtime (default:
60,000, for a test; 1,500,000 takes some five minutes a runtime on a quiet machine).
"""

import os
import subprocess
import sys
import tempfile
from collections import Counter

import lab

TOOL = os.environ.get("CDACQ_UNWIND_STEPS", "unwind_steps")
STEPS = int(os.environ.get("CDACQ_STEPS", "60000"))
SECONDS = int(os.environ.get("CDACQ_STEP_SECONDS", "80"))  # for one way
TRIES = 2
# On-stack replacement after a few turns of a loop; no instrumentation, which only adds tiers.
COMMON = {"DOTNET_TieredPGO": "0", "DOTNET_OSR_HitLimit": "1", "DOTNET_TC_OnStackReplacement_InitialCounter": "10"}
# The settings of each way, and how many methods of the JIT are met at least: a loop can take all the steps otherwise.
WAYS = {
    "tiered": ({}, 40),
    "first tier": ({"DOTNET_TC_CallCounting": "0"}, 0),  # precompiled code of the framework, tier 0 of the program
    "optimized": ({"DOTNET_TieredCompilation": "0", "DOTNET_ReadyToRun": "0"}, 40),
    "unoptimized": ({"DOTNET_TC_CallCounting": "0", "DOTNET_ReadyToRun": "0"}, 40),
}


def step_through(command, settings, steps, methods):
    """Runs the program with these settings and steps through it; what the judge says."""
    environment = dict(os.environ, **COMMON, **settings)
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            ready = process.stdout.readline()
            if not ready.startswith("READY"):
                raise lab.LabError(f"the program said '{ready}'")
            done = subprocess.run([TOOL, str(process.pid), str(steps), str(methods), str(SECONDS)],
                                  stdout=subprocess.PIPE, text=True, check=False, timeout=SECONDS + 60)
        finally:
            process.kill()
    if done.returncode not in (0, 1):
        raise lab.LabError(f"unwind_steps: exit {done.returncode}")
    return done.stdout.splitlines()


def judge(work, runtime):
    """All ways of one runtime; whether there was no fault."""
    command = lab.program_command(work, "stepped", runtime)
    totals = Counter()
    for name, (settings, methods) in WAYS.items():
        for _ in range(TRIES):  # on a slow machine, the runtime may interrupt a thread that is stepped all the time
            lines = step_through(command, settings, STEPS // len(WAYS), methods)
            counts = Counter({line.split()[0]: int(line.split()[1]) for line in lines if not line.startswith("MISMATCH")})
            if counts["managed"] or counts["mismatches"]:
                break
        for line in lines:
            if line.startswith("MISMATCH"):
                print("   ", line)
        print(f"  {name}: " + ", ".join(f"{counts[key]} {key}" for key in (
            "managed", "jit_methods", "r2r_methods", "funclets", "mismatches")), flush=True)
        totals += counts
    for key, number in totals.items():
        print(f"    {key} {number}")
    # A registers' move by a collection is rare; much of it would hide a fault.
    return (totals["mismatches"] == 0 and totals["jit_methods"] >= 100 and totals["prolog"] >= 1000 and totals["epilog"] >= 1000
            and totals["return_addresses"] >= 500 and totals["moved_by_collections"] * 20 <= totals["managed"])


def main():
    required = os.environ.get("CDACQ_REQUIRE_DOTNET") == "1"
    good = []
    try:
        for runtime in lab.runtimes(sys.argv[1:], of_all_lines=False):
            print(f".NET {runtime}", flush=True)
            with tempfile.TemporaryDirectory(prefix="cdacq-steps-") as work:
                good.append(judge(work, runtime))
    except lab.Skip as reason:
        print(f"{'FAILED' if required else 'skipped'}: {reason}")
        return 1 if required else lab.SKIPPED
    print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
