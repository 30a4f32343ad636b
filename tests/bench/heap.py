#!/usr/bin/env python3
"""Measures `cdacq heap` beside ClrMD and beside the reading of the same cache lines, on one full core, in one run.

    heap.py CDACQ MEASURE HEAP_LINES [--runtime VERSION] [--thousands N] [--runs N]

MEASURE and HEAP_LINES are programs that `--target bench` builds. The core is that of a .NET process with N thousand
small objects of four types. Figures are processor time; ratios are to ClrMD. Nothing is asserted.
"""

import argparse
import os
import sys
import tempfile

sys.dont_write_bytecode = True

from run import BenchError, Row, Runner, Sample, print_machine, print_table, warm  # noqa: E402

import lab  # noqa: E402
import stack_run  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")


def processor_ms(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        words = file.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) * 1e3 / TICKS


def peak_mb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:")) / 1024


def ask_services(services, core, directory):
    """Every object of the core with its type, size and generation."""
    before = processor_ms(services.process.pid)
    answer = services.walk(core, directory, "heap")
    if "error" in answer:
        raise BenchError(f"the debugger services: {answer['error']}")
    return Sample(0, processor_ms(services.process.pid) - before, peak_mb(services.process.pid), 0, {})


def ask_new_services(work, core, directory):
    """The same in a process of its own, from its start."""
    services = stack_run.Services(work)
    try:
        ask_services(services, core, directory)
        return Sample(0, processor_ms(services.process.pid), peak_mb(services.process.pid), 0, {})
    finally:
        services.close()


def measure(runner, work, cdacq, lines, services, core, directory, runs):
    rows = {}
    for i in range(-1, runs):  # the first round only warms up
        samples = {"ClrMD": ask_new_services(work, core, directory),
                   "ClrMD, compiled before": ask_services(services, core, directory)}
        for name, options in {"cdacq heap": (), "--why TYPE": ("--why=Planted.Node",), "--retained": ("--retained",)}.items():
            samples[name] = runner.run([cdacq, "heap", *options, core], accepted=(0, 1))
        plain = runner.run([lines, core])
        samples["cache lines"] = Sample(0, plain.said["cpu_us"] / 1e3, 0, 0, plain.said)
        for name, sample in samples.items() if i >= 0 else ():
            rows.setdefault(name, Row(name)).add(sample.cpu_ms, sample)
    said = rows["cache lines"].samples[0].said
    base, rows = rows["ClrMD"].median, list(rows.values())
    print_table(f"{said['objects'] / 1e6:.1f} million objects in {said['lines'] / 1e6:.1f} million cache lines, core of {os.path.getsize(core) / 1e6:.0f} MB",
                ("", "cpu ms", "min..max", "ClrMD is x", "peak MB"),
                [(row.name, f"{row.median:.0f}", f"{min(row.values):.0f}..{max(row.values):.0f}", f"{base / row.median:.1f}",
                  f"{row.median_of('peak_mb'):.0f}" if row.median_of("peak_mb") else "") for row in rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cdacq")
    parser.add_argument("measure")
    parser.add_argument("heap_lines")
    parser.add_argument("--runtime", default="11")
    parser.add_argument("--thousands", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    print_machine()
    with tempfile.TemporaryDirectory(prefix="cdacq-bench-") as work:
        runtime = lab.runtimes([arguments.runtime])[0]
        command = lab.program_command(work, "heap", runtime)
        with lab.running_program([*command, str(arguments.thousands)], work) as target:
            directory = target.runtime_directory()
            core = target.createdump("full")
        warm(core)
        services = stack_run.Services(work)
        try:
            print(f".NET {runtime}")
            measure(Runner(os.path.abspath(arguments.measure), work), work, os.path.abspath(arguments.cdacq), os.path.abspath(arguments.heap_lines),
                    services, core, directory, arguments.runs)
        finally:
            services.close()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (BenchError, lab.LabError, lab.Skip) as error:
        sys.exit(f"heap.py: {error}")
