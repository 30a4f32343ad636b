#!/usr/bin/env python3
"""
`cdacq record` of a program that spends 7 parts of its time in one method and 3 in another: these shares are what the
recording has to show, in every form that it can write; perf, where it can run, is the second judge. Threads that wait
are where they wait in each round of `--wall`. The program goes on after each recording, and its end and an interrupt end
one.

    record.py [RUNTIME...]             words of lab.runtimes()
    record.py --cost [RUNTIME...]      measures instead what a recording costs a process with 50 threads

Exit 77 (skipped) where dotnet is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure.
"""

import collections
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import lab

sys.path.insert(0, os.path.join(os.path.dirname(lab.HERE), "support"))
import pprof_reader  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
PERF = shutil.which("perf")
THREADS = 12
SHARE = 0.7
LEAST = 150  # samples of the two methods, from which their shares are judged
ROUNDS = int(os.environ.get("ROUNDS", "9"))
SEVENTY, THIRTY, WAITING = "Recorded.Program.Seventy(uint, int)", "Recorded.Program.Thirty(uint, int)", "Recorded.Program.WaitForSignal()"


class Program:
    def __init__(self, command, threads, busy):
        self.process = subprocess.Popen([*command, str(threads), str(busy)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env={**os.environ, "DOTNET_PerfMapEnabled": "1",
                                                                "DOTNET_EnableWriteXorExecute": "0"})
        self.pid = int(re.fullmatch(r"READY (\d+)\n", self.process.stdout.readline())[1])

    def count(self):
        """The units of work, and the seconds, since its start."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        _, units, milliseconds = self.process.stdout.readline().split()
        return int(units), int(milliseconds) / 1000

    def rate(self, seconds):
        units, then = self.count()
        time.sleep(seconds)
        more, now = self.count()
        return (more - units) / (now - then)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def record(program, *options):
    return subprocess.run([TOOL, "record", *options, str(program.pid)], capture_output=True, check=False, timeout=120)


# ---- What was recorded, as {(frames from the outermost): samples} ----

def folded(data):
    lines = [line.rpartition(" ") for line in data.decode().splitlines()]
    return {tuple(stack.split(";")): int(count) for stack, _, count in lines}


def speedscope(data):
    document = json.loads(data)
    frames, (profile,) = document["shared"]["frames"], document["profiles"]
    found = collections.Counter()
    for sample, weight in zip(profile["samples"], profile["weights"], strict=True):
        found[tuple(frames[i]["name"] for i in sample)] += weight
    return found if sum(found.values()) == profile["endValue"] else {}


def pprof_of(data):
    kind, found, _ = pprof_reader.read(data)
    return found if kind == ("samples", "count") else {}


def samples_in(found, name):
    return sum(count for stack, count in found.items() if name in stack)


def judge_shares(note, label, found):
    seventy, thirty = samples_in(found, SEVENTY), samples_in(found, THIRTY)
    total = seventy + thirty
    # Four standard deviations of a share of so many samples.
    room = 4 * (SHARE * (1 - SHARE) / max(total, 1)) ** 0.5
    share = seventy / max(total, 1)
    note(label, total >= LEAST and abs(share - SHARE) <= room, f"{share:.3f} of {total} samples, within {room:.3f} of {SHARE}")


def perf_samples(program, work):
    """The samples of perf by method, which reads the runtime's perf map; None where it may not run."""
    data = os.path.join(work, "perf.data")
    done = subprocess.run([PERF, "record", "-q", "-e", "cpu-clock", "-F", "199", "-p", str(program.pid), "-o", data, "--", "sleep", "3"],
                          capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        return None
    text = subprocess.run([PERF, "script", "-i", data, "-F", "ip,sym"], capture_output=True, text=True, check=False, timeout=60).stdout
    return {(SEVENTY,): text.count("Program::Seventy"), (THIRTY,): text.count("Program::Thirty")}


def held_while_suspended(program):
    """How often a thread was stopped or traced when the tool had been suspended (Ctrl+Z) at some moment."""
    held = 0
    for i in range(20):
        with subprocess.Popen([TOOL, "record", "--rate", "1000", "--duration", "100", str(program.pid)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, preexec_fn=os.setpgrp) as tool:
            time.sleep(0.3 + i / 100)
            tool.send_signal(signal.SIGTSTP)
            os.waitid(os.P_PID, tool.pid, os.WSTOPPED)
            tasks = pathlib.Path(f"/proc/{program.pid}/task").glob("*/status")
            held += any("\nTracerPid:\t0\n" not in task.read_text() for task in tasks) or bool(lab.states_of(program.pid) & {"T", "t"})
            tool.send_signal(signal.SIGCONT)
            tool.send_signal(signal.SIGINT)
    return held


def run(version, work, note):
    command = lab.program_command(work, "recorded", version)
    with Program(command, THREADS, 2) as program:
        program.count()
        output = {name: os.path.join(work, f"recording{name}") for name in (".json", ".pb.gz", ".svg")}
        done = record(program, "--duration", "4")
        judge_shares(note, f"{version}: --cpu, folded", folded(done.stdout))
        note(f"{version}: what it says of its cost", re.search(
            rb"samples in [\d.]+ s, [\d.]+ rounds a second; threads were stopped \d+ times, for \d+ us each, \d+ us at most",
            done.stderr), done.stderr.decode())
        note(f"{version}: --cpu leaves out what waits", not samples_in(folded(done.stdout), WAITING))
        for ending, read in ((".json", speedscope), (".pb.gz", pprof_of)):
            record(program, "--duration", "4", "-o", output[ending])
            with open(output[ending], "rb") as file:
                judge_shares(note, f"{version}: by its ending, {ending}", read(file.read()))
        record(program, "--duration", "2", "-o", output[".svg"])
        with open(output[".svg"], encoding="utf-8") as file:
            note(f"{version}: a flame graph", f"<title>{SEVENTY} (" in file.read())
        found = perf_samples(program, work) if PERF else None
        if found:
            judge_shares(note, f"{version}: perf", found)

        found = folded(record(program, "--wall", "--duration", "3").stdout)
        waiting, chain = samples_in(found, WAITING), samples_in(found, "Recorded.Program.WaitForTask()")
        note(f"{version}: --wall has each waiting thread in each round", chain and 0.9 < waiting / ((THREADS - 3) * chain) < 1.1,
             f"{waiting} samples of {THREADS - 3} threads, {chain} of one")
        waits = next((stack for stack in found if "Recorded.Program.WaitForTask()" in stack), ())
        names = [frame for frame in waits if frame.startswith("[async]")]
        note(f"{version}: async methods that a thread waits for",
             [re.search(r"\.(\w+)\(", name)[1] for name in names] == ["OuterAsync", "InnerAsync"], str(names))
        units, _ = program.count()
        time.sleep(0.5)
        note(f"{version}: the program goes on", program.count()[0] > units and not lab.states_of(program.pid) & {"T", "t"})

        tool = subprocess.Popen([TOOL, "record", "--duration", "100", str(program.pid)], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL)
        time.sleep(3)
        tool.send_signal(signal.SIGINT)
        found = folded(tool.communicate(timeout=60)[0])
        note(f"{version}: an interrupt", samples_in(found, SEVENTY) and not lab.states_of(program.pid) & {"T", "t"})
        note(f"{version}: a suspended tool holds no thread", not held_while_suspended(program))
        tool = subprocess.Popen([TOOL, "record", "--wall", "--duration", "100", str(program.pid)], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL)
        time.sleep(2)
        tool.kill()
        tool.communicate()
        units, _ = program.count()
        time.sleep(0.5)
        note(f"{version}: the tool is killed", program.count()[0] > units and not lab.states_of(program.pid) & {"T", "t"})
        tool = subprocess.Popen([TOOL, "record", "--duration", "100", str(program.pid)], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL)
        time.sleep(3)
        program.process.kill()
        note(f"{version}: the end of the process", samples_in(folded(tool.communicate(timeout=60)[0]), SEVENTY))


def measure(version, work):
    """In turn with and without a recording, so that what else the machine does counts for both."""
    command = lab.program_command(work, "recorded", version)
    for busy in (2, 50):
        for mode in ("--cpu", "--wall"):
            costs, rates, said = [], [], ""
            with Program(command, 50, busy) as program:
                for _ in range(ROUNDS):
                    alone = program.rate(3)
                    tool = subprocess.Popen([TOOL, "record", mode, "--duration", "5", "-o", os.devnull, str(program.pid)],
                                            stderr=subprocess.PIPE, text=True)
                    time.sleep(1)
                    recorded = program.rate(3)
                    said = tool.communicate()[1]
                    costs.append(1 - recorded / alone)
                    rates.append(alone)
            print(f"{version}: 50 threads, {busy} compute, {mode}: {100 * statistics.median(costs):.1f} % of {statistics.median(rates):.0f} "
                  f"units a second [{100 * min(costs):.1f}..{100 * max(costs):.1f}]\n  {said.strip()}", flush=True)


def main():
    results = lab.Results()
    arguments = [word for word in sys.argv[1:] if word != "--cost"]
    with tempfile.TemporaryDirectory(prefix="cdacq-record-") as work:
        for version in lab.runtimes(arguments, of_all_lines=False):
            if "--cost" in sys.argv:
                measure(version, work)
            else:
                run(version, work, results.note)
    return results.exit_code()


if __name__ == "__main__":
    lab.exit_with(main)
