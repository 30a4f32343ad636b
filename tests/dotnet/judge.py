#!/usr/bin/env python3
"""Compares `cdacq ip2method` with the runtime's own jitdump of the same process.

Three questions, and a fourth on demand: is every method that must be there named rightly at its first,
middle and last byte; is nothing outside of methods named as one; does each
answer's range agree with the records; does --names il give the records' own
text. Every wrong answer is counted under the
first thing that is wrong with it.
"""

import argparse
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass

from jitdump import Spans, live_records, read_loads, read_released
from runtime_names import Name, split_tiers

EXAMPLES = 20
EXPECTED_HEADER = "# address size kind name, from the runtime's jitdump"
PERF_MAP_LINE = re.compile(r"0x([0-9a-f]+) ([0-9a-f]+) (.*)$")
# What the runtime's perf map calls the tiers of its own enumeration.
TIERS = {"QuickJitted": "Tier0", "OptimizedTier1": "Tier1", "OptimizedTier1OSR": "Tier1OSR", "Optimized": "Optimized",
         "InstrumentedTier": "Tier0Instrumented", "InstrumentedTierOptimized": "Tier1Instrumented"}
# Their records carry the address of a temporary mapping, which says nothing.
GHOST_STUBS = "<DynamicHelper>"


@dataclass(frozen=True)
class Expected:
    """One method's code as the runtime reported it."""
    address: int
    size: int
    kind: str  # jit, r2r, r2r-cold
    name: str

    @property
    def end(self):
        return self.address + self.size

    @property
    def identity(self):
        """The name without tiers: a cold part and its hot part have the same."""
        return split_tiers(self.name)[0]

    @property
    def tier(self):
        """As cdacq calls it; None for precompiled code."""
        return TIERS.get(split_tiers(self.name)[1])

    def probes(self):
        """First, middle and last byte."""
        return sorted({self.address, self.address + self.size // 2, self.end - 1})


class Tally:
    """Counts per class and keeps the first examples of each failing one."""

    def __init__(self):
        self.counts = Counter()
        self.examples = defaultdict(list)

    def passed(self, label):
        self.counts[label] += 1

    def failed(self, label, example):
        self.counts[label] += 1
        if len(self.examples[label]) < EXAMPLES:
            self.examples[label].append(example)

    def report(self):
        for label in sorted(self.counts):
            print(f"{self.counts[label]:8} {label}{'  FAILED' if label in self.examples else ''}")
        for label, examples in sorted(self.examples.items()):
            print(f"\n{label}:")
            for example in examples:
                print(f"  {example}")

    @property
    def has_failed(self):
        return bool(self.examples)


def write_expected(path, expected):
    """A compact text with which a bundled snapshot can be checked without .NET."""
    with open(path, "w", encoding="utf-8") as file:
        print(EXPECTED_HEADER, file=file)
        for one in expected:
            print(f"{one.address:x} {one.size} {one.kind} {one.name}", file=file)


def read_expected(path):
    """The inverse of write_expected()."""
    expected = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.startswith("#"):
                address, size, kind, name = line.rstrip("\n").split(" ", 3)
                expected.append(Expected(int(address, 16), int(size), kind, name))
    return expected


def as_expected(loads):
    return [Expected(load.address, load.size, load.kind, load.name) for load in loads]


def ask(cdacq, target, ips):
    """One answer for each ip, in order. `target` may be a list: the target and options."""
    words = [target] if isinstance(target, str) else target
    done = subprocess.run([cdacq, "ip2method", "--json", *words], input="".join(f"{ip:x}\n" for ip in ips),
                          stdout=subprocess.PIPE, text=True, encoding="utf-8", check=False)
    answers = [json.loads(line) for line in done.stdout.split("\n") if line]
    if done.returncode not in (0, 1) or len(answers) != len(ips):
        sys.exit(f"judge.py: {len(ips)} questions, {len(answers)} answers, exit {done.returncode}")
    for ip, answer in zip(ips, answers):
        if int(answer["ip"], 16) != ip:
            sys.exit(f"judge.py: asked for {ip:#x}, answered for {answer['ip']}")
    return answers


def address_of(answer, key):
    """An address of an answer; null is None."""
    return None if answer[key] is None else int(answer[key], 16)


def fault_of(one, answer, starts):
    """The first thing that is wrong with an answer inside a method, or None."""
    if answer["status"] != "managed":
        return f"not-managed ({answer['status']})"
    cold = one.kind == "r2r-cold"
    if answer["cold"] != cold:
        return "wrong-cold"
    if answer["kind"] != one.kind.partition("-")[0]:
        return "wrong-kind"
    if address_of(answer, "code_start") not in (starts[one.identity] if cold else {one.address}):
        return "wrong-start"
    if not cold and answer["code_size"] != one.size:
        return "wrong-size"
    if answer.get("tier") not in (None, one.tier):
        return "wrong-tier"
    fault = Name.parse(one.name).fault(answer["method"])
    return f"wrong-{fault}" if fault else None


def judge_inside(cdacq, target, expected, tally):
    """Every address asked here belongs to a live method."""
    starts = defaultdict(set)
    for one in expected:
        if one.kind == "r2r":
            starts[one.identity].add(one.address)
    questions = [(ip, one) for one in expected for ip in one.probes()]
    answers = ask(cdacq, target, [ip for ip, _ in questions])
    for (ip, one), answer in zip(questions, answers):
        fault = fault_of(one, answer, starts)
        if fault:
            tally.failed(f"{one.kind}: {fault}", f"{ip:#x} {one.address:#x}+{one.size} {one.name} => {json.dumps(answer, ensure_ascii=False)}")
        else:
            tally.passed(f"{one.kind}: ok")


def outside_questions(loads, live):
    """(ip, what) that no living method record covers: freed code, stubs, what follows a record."""
    methods = Spans(live)
    dead = [load for load in loads if load.method and methods.at(load.address) is not load]
    stubs = [load for load in loads if load.method is None and GHOST_STUBS not in load.name]
    questions = {}
    for load in dead:
        for ip in Expected(load.address, load.size, load.kind, load.name).probes():
            questions[ip] = "freed"
    for stub in stubs:
        questions.setdefault(stub.address, "stub")
    for before, after in zip(methods.latest, methods.latest[1:] + [None]):
        questions.setdefault(before.end, "gap")
        if after and after.address > before.end:
            questions.setdefault((before.end + after.address) // 2, "gap")
            questions.setdefault(after.address - 1, "gap")
    return [(ip, what) for ip, what in sorted(questions.items()) if methods.at(ip) is None]


def outside_fault(ip, answer, live, dead_or_stub):
    """What contradicts the jitdump in an answer outside of all living methods, or None.

    A managed answer is no contradiction by itself: precompiled methods that the
    runtime has not prepared yet, and code from before the file was opened, are
    in no record. Then the range that it claims must be free.
    """
    if answer["status"] == "error":
        return "error"
    if answer["status"] != "managed" or answer["cold"]:
        return None
    start, size = address_of(answer, "code_start"), answer["code_size"]
    if start is None or size is None:
        return "claims no range"
    end = start + size
    if not start <= ip < end:
        return "ip outside of the claimed range"
    if live.overlaps(start, end):
        return "claims a range of another method"
    if dead_or_stub.overlaps(start, end):
        return "names what is freed or a stub"
    return None


def judge_outside(cdacq, target, loads, live, tally):
    """No byte asked here belongs to a method that the jitdump knows."""
    questions = outside_questions(loads, live)
    methods = Spans(live)
    others = Spans([load for load in loads if GHOST_STUBS not in load.name])
    for (ip, what), answer in zip(questions, ask(cdacq, target, [ip for ip, _ in questions])):
        fault = outside_fault(ip, answer, methods, others)
        if fault:
            record = others.at(ip)
            tally.failed(f"{what}: {fault}", f"{ip:#x} {record.name if record else ''} => {json.dumps(answer, ensure_ascii=False)}")
        elif answer["status"] == "managed":
            tally.passed(f"{what}: managed, in no record ({answer['kind']})")
        else:
            tally.passed(f"{what}: {answer['status']}")


def judge_spelling(cdacq, target, style, wanted, tally):
    """`wanted` maps addresses to texts that --names STYLE has to equal to the last byte."""
    words = [target] if isinstance(target, str) else target
    for (ip, name), answer in zip(wanted.items(), ask(cdacq, [*words, "--names", style], wanted)):
        if answer["method"] == name:
            tally.passed(f"{style}: equal")
        else:
            tally.failed(f"{style}: differs", f"{ip:#x} {name} => {json.dumps(answer, ensure_ascii=False)}")


def runtime_names(expected):
    """The runtime's own names by the address of the code, without tiers."""
    return {one.address: one.identity for one in expected}


def read_perf_map(path, expected):
    """The names in a perf map of the code that `expected` says is alive. JIT code only, since the map has no other.

    A line that is not all ASCII is not used: the runtime writes such lines damaged, cut at their end and with
    other bytes at their head.
    """
    alive = {(one.address, one.size): one for one in expected if one.kind == "jit"}
    names = {}
    with open(path, encoding="latin-1") as file:
        for line in file.read().split("\n")[:-1]:  # .NET 11 writes blocks, so the last line can be a part
            found = PERF_MAP_LINE.match(line)
            one = alive.get((int(found[1], 16), int(found[2], 16))) if found else None
            if one and line.isascii() and not found[3].startswith("stub"):
                names[one.address] = split_tiers(found[3])[0]
    return names


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cdacq", nargs="?", help="the program to judge; without it nothing is asked")
    parser.add_argument("target", nargs="?", help="a core, or a pid")
    parser.add_argument("--jitdump", metavar="FILE")
    parser.add_argument("--released", metavar="FILE", help="names whose code is gone, written by the test target")
    parser.add_argument("--expected", metavar="OUT", help="write the expected answers")
    parser.add_argument("--from-expected", metavar="FILE", help="take the expected answers from there, not from a jitdump")
    parser.add_argument("--spelling", action="store_true", help="--names il, too: equal to the jitdump's text")
    arguments = parser.parse_args()
    if (arguments.jitdump is None) == (arguments.from_expected is None):
        parser.error("either --jitdump or --from-expected")
    if arguments.cdacq and not arguments.target:
        parser.error("no target")
    return arguments


def main():
    arguments = parse_arguments()
    loads = read_loads(arguments.jitdump) if arguments.jitdump else []
    live = live_records(loads, read_released(arguments.released))
    expected = read_expected(arguments.from_expected) if arguments.from_expected else as_expected(live)
    if arguments.expected:
        write_expected(arguments.expected, expected)
    if not expected:
        sys.exit("judge.py: no method records: nothing to judge by")
    print(", ".join(f"{count} {kind}" for kind, count in sorted(Counter(one.kind for one in expected).items())), "methods")
    if not arguments.cdacq:
        return 0
    tally = Tally()
    judge_inside(arguments.cdacq, arguments.target, expected, tally)
    if loads:
        judge_outside(arguments.cdacq, arguments.target, loads, live, tally)
    if arguments.spelling:
        judge_spelling(arguments.cdacq, arguments.target, "il", runtime_names(expected), tally)
    tally.report()
    return 1 if tally.has_failed else 0


if __name__ == "__main__":
    sys.exit(main())
