#!/usr/bin/env python3
"""Compares how much a process gets done with and without questions about it, in pairs of intervals.

    throughput.py [--cdacq CDACQ] [--pairs N] [--seconds S] [--runtime VERSION] [--work DIR]

The process (tests/dotnet/churn) makes and frees methods as fast as it can, and counts them itself. It has the first
processor, this script and the tool have the others, so that the tool's own work does not count. One run of
`cdacq ip2method PID` answers questions about living methods in every other interval; which interval of a pair comes
first alternates. A ratio of 1 means that the process did as much with questions as without. That is printed for
methods a second, which other programs on the machine disturb, and for methods in a second of the process's own
processor time.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "dotnet"))

import churn as judge  # noqa: E402
import lab  # noqa: E402

WARM_UP = 5  # seconds, until the first methods have been compiled and the generations of the heap are in balance


def processor_seconds(pid):
    """What all threads of a process have used, to the nanosecond: the clock that clock_getcpuclockid(3) names."""
    return time.clock_gettime((~pid << 3) | 2)


class Interval:
    """What the process did in a number of seconds, while `ask`, if there is one, was called at a rate."""

    def __init__(self, churn, seconds, rate, ask):
        asked = 0
        start, used, made = time.monotonic(), processor_seconds(churn.pid), churn.made()
        while (now := time.monotonic()) < start + seconds:
            if ask and asked <= (now - start) * rate:
                ask()
                asked += 1
            else:
                time.sleep(0.5 / rate)
        made = churn.made() - made
        self.per_second = made / (time.monotonic() - start)
        self.per_processor_second = made / (processor_seconds(churn.pid) - used)


def measure(churn, arguments):
    """The ratios of all pairs, by name, and the methods made a second without questions."""
    asker = judge.Asker(churn.pid)

    def ask():
        asker.ask([address for _, address, _ in churn.slots()[:arguments.addresses]])

    ratios, plain = {"wall": [], "processor": []}, []
    for pair in range(arguments.pairs):
        found = {}
        for asks in ([True, False] if pair % 2 else [False, True]):
            found[asks] = Interval(churn, arguments.seconds, arguments.rate, ask if asks else None)
        plain.append(found[False].per_second)
        ratios["wall"].append(found[True].per_second / found[False].per_second)
        ratios["processor"].append(found[True].per_processor_second / found[False].per_processor_second)
    asker.close()
    return ratios, statistics.median(plain)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cdacq", default=judge.TOOL)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=2, help="of an interval")
    parser.add_argument("--rate", type=float, default=10, help="questions a second")
    parser.add_argument("--addresses", type=int, default=100, help="of a question")
    parser.add_argument("--runtime", default="installed")
    parser.add_argument("--work", help="where the program is built (default: a temporary directory)")
    arguments = parser.parse_args()
    judge.TOOL = arguments.cdacq
    processors = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="cdacq-throughput-") as scratch:
        try:
            churn = judge.Churn(arguments.work or scratch, arguments.runtime, 0)
        except lab.Skip as skip:
            print(f"skipped: {skip}")
            return lab.SKIPPED
        try:
            for thread in os.listdir(f"/proc/{churn.pid}/task"):
                os.sched_setaffinity(int(thread), processors[:1])
            os.sched_setaffinity(0, processors[1:] or processors)
            time.sleep(WARM_UP)
            ratios, plain = measure(churn, arguments)
        finally:
            churn.close()
    print(f"{plain:.0f} methods a second; {arguments.rate:g} questions a second with {arguments.addresses} addresses "
          f"each, {arguments.pairs} pairs of {arguments.seconds:g} s; with questions / without:")
    for name, values in ratios.items():
        low, median, high = statistics.quantiles(values, n=4)
        error = 1.253 * statistics.stdev(values) / len(values) ** 0.5
        print(f"  {name:9} {median:.4f} +- {error:.4f} [{low:.4f}..{high:.4f}]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
