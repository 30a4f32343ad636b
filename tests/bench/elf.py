#!/usr/bin/env python3
"""Measures the ELF file of a target's managed code, and the listing of its methods in Python.

    elf.py CDACQ LIBRARY TARGET [ROUNDS]

CDACQ is the tool, LIBRARY is libcdacq.so, TARGET is a core or a pid with about 50,000 ReadyToRun methods, as a plain
console program has. Prints the median of the processor time of each, and what 25,000 and 100,000 methods take at that
rate.
"""

import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

PYTHON = """
import sys, time
sys.path.insert(0, sys.argv[1])
import cdacq
target = int(sys.argv[2]) if sys.argv[2].isdigit() else sys.argv[2]
with cdacq.open(target) as opened:
    for name in "first", "again":
        begin = time.process_time()
        count = sum(1 for method in opened.methods(r2r="all"))
        print(name, count, time.process_time() - begin)
"""


def used(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    status = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    if status not in (0, 1):  # 1: something is left out, or eu-addr2line found no debug information
        raise RuntimeError(f"{command}: {status}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def functions_of(elf):
    lines = subprocess.run(["readelf", "-sW", elf], stdout=subprocess.PIPE, text=True, errors="replace", check=True).stdout
    return sum("FUNC" in line and "[funclet]" not in line and "[cold]" not in line for line in lines.splitlines())


def address_times(elf, work):
    """What one address takes each program, as a ratio to the same file without debug information."""
    plain = os.path.join(work, "plain.elf")
    subprocess.run(["objcopy", "--strip-debug", elf, plain], check=True)
    symbols = subprocess.run(["readelf", "-sW", elf], stdout=subprocess.PIPE, text=True, errors="replace", check=True).stdout
    address = next("0x" + line.split()[1] for line in symbols.splitlines() if " FUNC " in line)
    for name, command in (("addr2line", ["addr2line", "-i", "-f", "-e", "FILE", address]),
                          ("eu-addr2line", ["eu-addr2line", "-i", "-f", "-e", "FILE", address]),
                          ("gdb", ["gdb", "-nx", "-batch", "FILE", "-ex", f"info line *{address}"]),
                          ("lldb", ["lldb", "--batch", "--no-lldbinit", "FILE", "-o", f"image lookup -a {address}"])):
        if shutil.which(command[0]):
            with_lines, without = (statistics.median(used([word.replace("FILE", path) for word in command])
                                                     for _ in range(5)) for path in (elf, plain))
            print(f"{name}: an address takes {with_lines * 1e3:.0f} ms, {with_lines / max(without, 1e-3):.2f} times as long as "
                  "without debug information")


def main(arguments):
    tool, library, target = arguments[:3]
    rounds = int(arguments[3]) if len(arguments) > 3 else 5
    with tempfile.TemporaryDirectory() as work:
        elf = os.path.join(work, "all.elf")
        seconds = statistics.median(used([tool, "elf", target, "--r2r", "all", "-o", elf]) for _ in range(rounds))
        count, size = functions_of(elf), os.path.getsize(elf)
        address_times(elf, work)
    print(f"ELF file: {count} methods, {size / 1e6:.1f} MB, {seconds * 1e3:.0f} ms; "
          f"of 25,000 methods {seconds * 25e6 / count:.0f} ms")
    package = str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")
    times = {"first": [], "again": []}
    for _ in range(rounds):
        said = subprocess.run([sys.executable, "-c", PYTHON, package, target], stdout=subprocess.PIPE, text=True, check=True,
                              env=dict(os.environ, CDACQ_LIBRARY=os.path.abspath(library))).stdout
        for line in said.splitlines():
            name, count, seconds = line.split()
            times[name].append((float(seconds), int(count)))
    for name, found in times.items():
        seconds, count = statistics.median(found)
        print(f"Python, every method, {name}: {count} methods, {seconds * 1e3:.0f} ms; "
              f"of 100,000 methods {seconds * 1e8 / count:.0f} ms")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
