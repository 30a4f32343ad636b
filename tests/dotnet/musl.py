#!/usr/bin/env python3
"""A .NET process on musl, the C library of Alpine: its stacks, judged by its own words, and how it died.

    musl.py [--all] [RUNTIME...]     words of lab.runtimes(); default: the newest of each recent line

Needs the .NET SDK, the runtime pack for linux-musl-x64, and the packages musl and musl-tools.

The runtime for musl runs beside glibc with the libstdc++ and libgcc of this system and musl.c. By hand: CI does not
install musl. --all: every way to die of deaths.py, not only a share; without those that only glibc has.
"""

import os
import shutil
import subprocess
import sys
import tempfile

import deaths
import lab
import stack_judge
import stack_run

LIBRARIES = ["libstdc++.so.6", "libgcc_s.so.1"]
LEAST_FRAMES = 3000
OF_GLIBC = deaths.OF_LIBC | {"OverflowInNative", "OverflowInNativeOnThread", "OverflowInDelegate"}  # musl's regcomp does not recurse


def path_of(library):
    """Where the C compiler of this system has a library."""
    return os.path.realpath(lab.run(["gcc", f"-print-file-name={library}"]).strip())


def make_environment(work):
    """What the programs need to run here."""
    libraries = os.path.join(work, "libraries")
    os.makedirs(libraries)
    for library in LIBRARIES:
        shutil.copy(path_of(library), os.path.join(libraries, library))
    preloaded = os.path.join(libraries, "libmusl-lacks.so")
    lab.run(["musl-gcc", "-O2", "-fPIC", "-shared", "-o", preloaded, os.path.join(lab.HERE, "musl.c")])
    shutil.copy(preloaded, os.path.join(libraries, "ld-linux-x86-64.so.2"))  # libstdc++ names it
    return {"LD_LIBRARY_PATH": libraries, "LD_PRELOAD": preloaded, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}


def publish(work, project, program, runtime):
    """Builds a program of this folder with its runtime. Returns its path."""
    version = {} if runtime == "installed" else {"RuntimeFrameworkVersion": runtime}
    return os.path.join(lab.build(work, project, runtime, command="publish", UseAppHost="true", **version,
                                  arguments=("-r", "linux-musl-x64", "--self-contained")), program)


def judge(target, told):
    """Compares the stacks of a process or a core. Returns whether they agree."""
    tally = stack_judge.Tally()
    frames, said = stack_run.walk(target)
    ends = [line for line in said.splitlines() if "cannot unwind further" in line]
    threads = stack_judge.by_thread(frames)
    for thread in told:
        stack_judge.compare_told(thread["frames"], threads.get(thread["tid"], []), tally, thread["place"])
    guesses = sum(frame["by"] == "guess" for frame in frames)
    managed_guesses = sum(frame["by"] == "guess" and frame["status"] == "managed" for frame in frames)
    print(f"{os.path.basename(target)}: {tally.counts['method equal']} methods equal, {guesses} frames of {len(frames)} guessed, "
          f"{managed_guesses} of them managed, {len(ends)} stacks cut")
    return not stack_judge.failures(tally) and tally.counts["method equal"] >= LEAST_FRAMES and not managed_guesses and not ends


def judge_stacks(work, environment, runtime):
    program = publish(work, "stacks", "Stacks", runtime)
    path, log = os.path.join(work, "parked.jsonl"), os.path.join(work, "target.log")
    with open(log, "w", encoding="utf-8") as output:
        process = subprocess.Popen([program, "park", path], stdin=subprocess.PIPE, stdout=output, stderr=output, env=os.environ | environment)
    try:
        lab.wait_for_ready(lab.Target(work, process, log))
        told = lab.read_json_lines(path)
        agree = judge(str(process.pid), told)
        for kind in ("full", "normal"):
            core = os.path.join(work, f"{kind}.core")
            subprocess.run([os.path.join(os.path.dirname(program), "createdump"), f"--{kind}", "-f", core, str(process.pid)], check=True,
                           stdout=subprocess.DEVNULL, env=os.environ | environment)
            agree &= judge(core, told)
    finally:
        process.kill()
        process.wait()
    return agree


def judge_deaths(work, environment, ways, runtime):
    program = publish(work, "dying", "Dying", runtime)
    starter = os.path.join(work, "start")
    with open(starter, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + "".join(f"export {name}={value}\n" for name, value in environment.items()) + f'exec {program} "$@"\n')
    os.chmod(starter, 0o755)
    wrong = {way: problem for way in ways if (problem := deaths.test_way([starter], way, "kernel", runtime, {})) is not None}
    print(f"{len(ways) - len(wrong)} of {len(ways)} deaths word for word" + "".join(f"; {way} {problem}" for way, problem in wrong.items()))
    return not wrong


def main():
    asked = [word for word in sys.argv[1:] if word != "--all"]
    ways = [way for way in (deaths.WAYS if "--all" in sys.argv else deaths.SHARE) if way not in OF_GLIBC]
    agree = True
    for runtime in lab.runtimes(asked, of_all_lines=False):
        print(f".NET {runtime}", flush=True)
        with tempfile.TemporaryDirectory(prefix="cdacq-musl-") as work:
            environment = make_environment(work)
            agree &= judge_stacks(work, environment, runtime)
            agree &= judge_deaths(work, environment, ways, runtime)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
