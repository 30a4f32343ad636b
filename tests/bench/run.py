#!/usr/bin/env python3
"""Measures cdacq beside its peers: the same target, the same addresses, in one run.

    run.py CDACQ CDACQ_BENCH --core CORE --jitdump FILE [--released FILE] \\
           --peer 'dac=dacbench LIBDAC {core} {ips} --mode rtname'

The addresses come from the jitdump's living records and a fixed seed, so two
runs ask the same. Every contestant takes its turn in every round; figures are
medians over the rounds. Ratios are to the first peer: 8.0 is eight times as
fast. Nothing is asserted: times are to be read, not to be passed.

A peer is a command with {core} (or {pid}), {ips} (a file, one hex address a
line) and {count}. If it prints `us_each=` or `per_s=`, that is its rate and
its start does not count against it; else its wall time is divided. `open_ms=`
and `first_ms=` are shown where it prints them.
"""

import argparse
import datetime
import os
import platform
import random
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "dotnet"))

from jitdump import live_records, read_loads, read_released  # noqa: E402

SEED = 20
HOT_METHODS = 500
ROUNDS_OF_ONE = 25
COLD = 1000  # addresses of a process that has only just started, start-up included
LISTS = ("one", "cold", "jit", "r2r", "mix", "sorted", "hot", "files")
WRITERS = {  # what lists all methods of a target, and how; the first is what the others are compared with
    "methods": ["methods", "--names", "il"],
    "perfmap": ["perfmap", "--r2r", "prepared"],
    "jitdump": ["jitdump", "--r2r", "prepared"],
}
KEYS = re.compile(r"\b([a-z]\w*)=(-?[\d.]+)\b")
RATES = {  # figures that a program may print about itself, in nanoseconds for one address
    "us_each": lambda value: value * 1e3,
    "per_s": lambda value: 1e9 / value,
}


class BenchError(Exception):
    """A contestant failed."""


# ---- What is asked ----

class Questions:
    """Deterministic lists of addresses within methods: any method, then any byte of it."""

    def __init__(self, records, count):
        self.count = count
        self.kinds = {
            "jit": [one for one in records if one.kind == "jit"],
            "r2r": [one for one in records if one.kind.startswith("r2r")],
        }

    def addresses(self, name):
        """A list by its name. A mix takes each kind half of the time, however many methods it has."""
        if name == "sorted":
            return sorted(self.addresses("mix"))
        draw = random.Random(f"{SEED} {name}")
        pools = [self.kinds[name]] if name in self.kinds else list(self.kinds.values())
        pools = [pool for pool in pools if pool]
        if name == "hot":
            pools = [draw.sample(pool, min(len(pool), HOT_METHODS // len(pools))) for pool in pools]
        if not pools:
            return []
        addresses = []
        for _ in range(self.count):
            pool = pools[int(draw.random() * len(pools))]
            method = pool[int(draw.random() * len(pool))]
            addresses.append(method.address + int(draw.random() * method.size))
        return addresses


def write_addresses(path, addresses):
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"{address:x}\n" for address in addresses)
    return path


# ---- One run of one program ----

@dataclass
class Sample:
    """What one process used, and what it printed about itself."""
    wall_ms: float
    cpu_ms: float
    peak_mb: float
    faults: int
    said: dict

    def own_rate(self):
        """Nanoseconds for one address by the program's own clock, or None."""
        for key, convert in RATES.items():
            if self.said.get(key):
                return convert(self.said[key])
        return None


def parse_keys(text):
    """key=value pairs; the first of a key counts, which is a first pass where a program does several."""
    keys = {}
    for key, value in KEYS.findall(text):
        keys.setdefault(key, float(value))
    return keys


class Runner:
    def __init__(self, measure, work):
        self.measure = measure
        self.output = os.path.join(work, "output")

    def run(self, command, stdin=os.devnull, is_read=True, accepted=(0,)):
        """A command's figures; without is_read its output goes to /dev/null. Its exit must be one of `accepted`."""
        output = self.output if is_read else os.devnull
        done = subprocess.run([self.measure, stdin, output, *command], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        figures = parse_keys(done.stdout)
        if done.returncode != 0 or figures.get("exit") not in accepted:
            raise BenchError(f"{shlex.join(command)}: exit {figures.get('exit', done.returncode):.0f}\n{done.stderr}")
        said = {}
        if is_read:
            with open(output, encoding="utf-8", errors="replace") as file:
                said = parse_keys(file.read())
        return Sample(figures["wall_us"] / 1e3, figures["cpu_us"] / 1e3, figures["peak_rss_kb"] / 1024,
                      int(figures["minor_faults"] + figures["major_faults"]), said)


@dataclass
class Row:
    """One line of a table: its figure of each round, and the processes that gave it."""
    name: str
    values: list = field(default_factory=list)
    samples: list = field(default_factory=list)

    def add(self, value, sample):
        self.values.append(value)
        self.samples.append(sample)

    @property
    def median(self):
        return statistics.median(self.values)

    def median_of(self, attribute):
        return statistics.median(getattr(sample, attribute) for sample in self.samples)

    def median_said(self, key):
        said = [sample.said[key] for sample in self.samples if key in sample.said]
        return statistics.median(said) if said else None


# ---- The contestants ----

class Target:
    """A core or a process, and all contestants that can answer about it."""

    def __init__(self, arguments, runner, placeholder, value):
        self.arguments = arguments
        self.runner = runner
        self.placeholder = placeholder
        self.value = value
        self.peers = {name: command for name, command in arguments.peer if "{" + placeholder + "}" in command}

    def ask_peer(self, name, ips, count):
        values = {self.placeholder: self.value, "ips": ips, "count": str(count)}
        fill = re.compile("|".join("{" + key + "}" for key in values))
        command = [fill.sub(lambda found: values[found[0][1:-1]], word) for word in shlex.split(self.peers[name])]
        return self.runner.run(command)

    def ask_library(self, ips):
        return self.runner.run([self.arguments.bench, self.value, ips])

    def ask_tool(self, *words, stdin=os.devnull):
        return self.runner.run([self.arguments.cdacq, "ip2method", *words], stdin=stdin, is_read=False)

    def many(self, ips, count, rounds):
        """Rows of nanoseconds for one address of a long list."""
        rows = {name: Row(name) for name in (
            *self.peers, "library, first pass", "library, second pass", "library, one by one", "tool, text",
            "tool, --json")}
        for _ in range(rounds):
            for name in self.peers:
                sample = self.ask_peer(name, ips, count)
                rows[name].add(sample.own_rate() or sample.wall_ms * 1e6 / count, sample)
            sample = self.ask_library(ips)
            rows["library, first pass"].add(sample.said["pass1_ns_each"], sample)
            rows["library, second pass"].add(sample.said["pass2_ns_each"], sample)
            rows["library, one by one"].add(sample.said["single_ns"], sample)
            for name, option in (("tool, text", []), ("tool, --json", ["--json"])):
                sample = self.ask_tool(*option, self.value, stdin=ips)
                rows[name].add(sample.wall_ms * 1e6 / count, sample)
        return list(rows.values())

    def all_methods(self, rounds):
        """Rows of nanoseconds for one method of all, whole processes; and how many there are."""
        rows = {name: Row(name) for name in WRITERS}
        self.runner.run([self.arguments.cdacq, "perfmap", "--r2r", "prepared", self.value])
        with open(self.runner.output, "rb") as file:
            count = file.read().count(b"\n")
        for _ in range(rounds):
            for name, words in WRITERS.items():
                sample = self.runner.run([self.arguments.cdacq, *words, self.value], is_read=False)
                rows[name].add(sample.wall_ms * 1e6 / count, sample)
        return list(rows.values()), count

    def one(self, paths, rounds):
        """Rows of milliseconds for one address and a whole process; another address each round."""
        rows = {name: Row(name) for name in (*self.peers, "library", "tool, text")}
        for i in range(-1, rounds):  # the first round only warms up
            path, address = paths[i % len(paths)]
            samples = {name: self.ask_peer(name, path, 1) for name in self.peers}
            samples["library"] = self.ask_library(path)
            samples["tool, text"] = self.ask_tool(self.value, f"{address:x}")
            for name, sample in samples.items() if i >= 0 else ():
                rows[name].add(sample.wall_ms, sample)
        return list(rows.values())

    def cold(self, path, rounds):
        """Rows of milliseconds for a short list and a whole process, which has nothing in its caches."""
        rows = {name: Row(name) for name in (*self.peers, "tool, text")}
        for i in range(-1, rounds):
            samples = {name: self.ask_peer(name, path, COLD) for name in self.peers}
            samples["tool, text"] = self.ask_tool(self.value, stdin=path)
            for name, sample in samples.items() if i >= 0 else ():
                rows[name].add(sample.wall_ms, sample)
        return list(rows.values())


# ---- What is printed ----

def ratio(rows, row, has_peer):
    """How many times as fast as the first row, which is the first peer's."""
    if not has_peer:
        return "-"
    times = rows[0].median / row.median
    return f"{times:.1f}" if times >= 1 else f"{times:.2f}"


def print_table(title, header, lines):
    lines = [header, *lines]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    print(f"\n{title}")
    for line in lines:
        print("  " + "  ".join([line[0].ljust(widths[0]), *(word.rjust(width) for word, width in
                                                           zip(line[1:], widths[1:]))]).rstrip())


def print_many(title, rows, has_peer):
    lines = [(row.name, f"{row.median:.1f}", f"{min(row.values):.1f}..{max(row.values):.1f}",
              ratio(rows, row, has_peer), f"{row.median_of('wall_ms'):.1f}", f"{row.median_of('cpu_ms'):.1f}",
              f"{row.median_of('peak_mb'):.1f}", f"{row.median_of('faults'):.0f}") for row in rows]
    print_table(title, ("", "ns each", "min..max", "ratio", "process ms", "cpu ms", "peak MB", "faults"), lines)
    for row in rows:
        count, named = row.median_said("addresses"), row.median_said("named")
        if row.name == "library, first pass" and count != named:
            print(f"  NOT ALL NAMED: {named:.0f} of {count:.0f}")


def print_one(title, rows, has_peer):
    def said(row, key):
        value = row.median_said(key)
        return "" if value is None else f"{value:.3f}"
    lines = [(row.name, f"{row.median:.2f}", f"{min(row.values):.2f}..{max(row.values):.2f}",
              ratio(rows, row, has_peer), said(row, "open_ms"), said(row, "first_ms"),
              f"{row.median_of('cpu_ms'):.2f}", f"{row.median_of('peak_mb'):.1f}", f"{row.median_of('faults'):.0f}")
             for row in rows]
    print_table(title, ("", "process ms", "min..max", "ratio", "open ms", "first ms", "cpu ms", "peak MB", "faults"),
                lines)


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"^model name\s*: (.*)$", file.read(), re.MULTILINE)
    return found[1] if found else platform.machine()


def print_machine():
    with open("/etc/os-release", encoding="utf-8") as file:
        system = re.search(r'^PRETTY_NAME="(.*)"$', file.read(), re.MULTILINE)
    print(f"{datetime.date.today()}, {os.cpu_count()} x {processor()}, {system[1] if system else platform.system()}, "
          f"kernel {platform.release()}, load {os.getloadavg()[0]:.1f}")


def warm(path):
    """The whole file into the page cache, so that no contestant pays for the disk."""
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 24):
            pass


def measure_one(target, kind, addresses, work):
    """One address and a whole process; every round another address."""
    paths = [(write_addresses(os.path.join(work, f"{kind}-{i}"), [address]), address)
             for i, address in enumerate(addresses[:ROUNDS_OF_ONE])]
    print_one(f"one address ({kind}), whole process", target.one(paths, ROUNDS_OF_ONE), bool(target.peers))


def measure_cold(target, addresses, rounds, work):
    path = write_addresses(os.path.join(work, "cold"), addresses[:COLD])
    print_one(f"{COLD} cold addresses (mix), whole process", target.cold(path, rounds), bool(target.peers))


def measure_many(target, name, addresses, rounds, work):
    path = write_addresses(os.path.join(work, name), addresses)
    rows = target.many(path, len(addresses), rounds)
    print_many(f"{name}: {len(addresses)} addresses", rows, bool(target.peers))


def measure_files(target, rounds):
    rows, count = target.all_methods(rounds)
    print_many(f"files: {count} methods", rows, True)


def measure_target(target, arguments, questions, work):
    for name in arguments.lists:
        if name == "files":
            measure_files(target, arguments.rounds)
            continue
        if name == "cold":
            measure_cold(target, questions.addresses("mix"), arguments.rounds, work)
            continue
        for kind in ("jit", "r2r") if name == "one" else (name,):
            addresses = questions.addresses(kind)
            if not addresses:
                print(f"\n{kind}: no such methods in the jitdump")
            elif name == "one":
                measure_one(target, kind, addresses, work)
            else:
                measure_many(target, name, addresses, arguments.rounds, work)
            sys.stdout.flush()


def parse_peer(text):
    name, equals, command = text.partition("=")
    if not equals or not name or not command:
        raise argparse.ArgumentTypeError("not NAME=COMMAND")
    return name, command


def parse_lists(text):
    names = text.split(",")
    if not set(names) <= set(LISTS):
        raise argparse.ArgumentTypeError(f"lists are {', '.join(LISTS)}")
    return names


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cdacq", help="the tool")
    parser.add_argument("bench", help="cdacq_bench; `measure` lies beside it")
    parser.add_argument("--core", help="a core of the process that wrote the jitdump")
    parser.add_argument("--pid", help="the process itself")
    parser.add_argument("--jitdump", metavar="FILE", required=True)
    parser.add_argument("--released", metavar="FILE", help="names whose code is gone, written by the test target")
    parser.add_argument("--peer", metavar="NAME=COMMAND", type=parse_peer, action="append", default=[])
    parser.add_argument("--lists", metavar="NAME,...", type=parse_lists, default=LISTS,
                        help=f"which of {','.join(LISTS)} (default: all)")
    parser.add_argument("--count", type=int, help="addresses in a list (default: 1000000)")
    parser.add_argument("--runs", type=int, dest="rounds", help="rounds per list (default: 5)")
    parser.add_argument("--quick", action="store_true", help="100000 addresses, 3 rounds")
    arguments = parser.parse_args()
    if not arguments.core and not arguments.pid:
        parser.error("neither --core nor --pid")
    arguments.count = arguments.count or (100_000 if arguments.quick else 1_000_000)
    arguments.rounds = arguments.rounds or (3 if arguments.quick else 5)
    return arguments


def main():
    arguments = parse_arguments()
    arguments.cdacq = os.path.abspath(arguments.cdacq)
    arguments.bench = os.path.abspath(arguments.bench)
    records = live_records(read_loads(arguments.jitdump), read_released(arguments.released))
    questions = Questions(records, arguments.count)
    if not records:
        sys.exit("run.py: no method records: nothing to ask")
    with tempfile.TemporaryDirectory(prefix="cdacq-bench-") as work:
        runner = Runner(os.path.join(os.path.dirname(arguments.bench), "measure"), work)
        print_machine()
        print(f"methods: {', '.join(f'{len(found)} {kind}' for kind, found in questions.kinds.items())}; "
              f"medians of {arguments.rounds} (one address: {ROUNDS_OF_ONE})")
        if arguments.core:
            print(f"\n== core, {os.path.getsize(arguments.core) / 1e6:.0f} MB")
            warm(arguments.core)
            measure_target(Target(arguments, runner, "core", arguments.core), arguments, questions, work)
        if arguments.pid:
            print("\n== live process")
            measure_target(Target(arguments, runner, "pid", arguments.pid), arguments, questions, work)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"run.py: {error}")
