#!/usr/bin/env python3
"""Measures `cdacq stack` beside eu-stack on the same core, and one address with and without its PDB, in one run.

    stacks.py CDACQ MEASURE CORE [--pdb FILE --ip HEX] [--runs N]

MEASURE is the program that `--target bench` builds. With --pdb, FILE is a PDB that CDACQ finds and HEX an address in a
method of its assembly; the file is renamed for a moment. Ratios are to the first row of a table. Nothing is asserted.
"""

import argparse
import os
import sys
import tempfile

sys.dont_write_bytecode = True

from run import BenchError, Row, Runner, print_machine, print_table, warm  # noqa: E402


def add(rows, name, sample):
    rows.setdefault(name, Row(name)).add(sample.wall_ms, sample)


def show(title, rows):
    rows = list(rows.values())
    lines = [(row.name, f"{row.median:.1f}", f"{min(row.values):.1f}..{max(row.values):.1f}", f"{row.median / rows[0].median:.2f}",
              f"{row.median_of('cpu_ms'):.1f}", f"{row.median_of('cpu_ms') / rows[0].median_of('cpu_ms'):.2f}",
              f"{row.median_of('peak_mb'):.1f}") for row in rows]
    print_table(title, ("", "process ms", "min..max", "ratio", "cpu ms", "ratio", "peak MB"), lines)


def all_stacks(runner, cdacq, core, runs):
    """All threads, all frames. eu-stack stops at 256 frames unless -n 0 says otherwise."""
    rows = {}
    for i in range(-1, runs):  # the first round only warms up
        samples = {
            "eu-stack": runner.run(["eu-stack", "-n", "0", "--core", core], accepted=(0, 1)),
            "cdacq stack": runner.run([cdacq, "stack", core], accepted=(0, 1)),
            "cdacq stack --json": runner.run([cdacq, "stack", "--json", core], accepted=(0, 1)),
        }
        for name, sample in samples.items() if i >= 0 else ():
            add(rows, name, sample)
    show(f"all stacks, core of {os.path.getsize(core) / 1e6:.0f} MB", rows)


def one_address(runner, cdacq, core, pdb, ip, runs):
    rows = {}
    for i in range(-1, runs):
        with_pdb = runner.run([cdacq, "ip2method", core, ip])
        os.rename(pdb, pdb + ".away")
        try:
            without = runner.run([cdacq, "ip2method", core, ip])
        finally:
            os.rename(pdb + ".away", pdb)
        if i >= 0:
            add(rows, "without its PDB", without)
            add(rows, "with its PDB", with_pdb)
    show("one address", rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cdacq")
    parser.add_argument("measure")
    parser.add_argument("core")
    parser.add_argument("--pdb", metavar="FILE")
    parser.add_argument("--ip", metavar="HEX")
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    cdacq = os.path.abspath(arguments.cdacq)
    print_machine()
    warm(arguments.core)
    with tempfile.TemporaryDirectory(prefix="cdacq-bench-") as work:
        runner = Runner(os.path.abspath(arguments.measure), work)
        all_stacks(runner, cdacq, arguments.core, arguments.runs)
        if arguments.pdb:
            one_address(runner, cdacq, arguments.core, arguments.pdb, arguments.ip, arguments.runs)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"stacks.py: {error}")
