#!/usr/bin/env python3
"""Compares how much a process gets done with and without questions about it, in turns.

    throughput.py [--cdacq CDACQ] [--rounds N] [--seconds S] [--runtime VERSION] [--work DIR]

The process (tests/dotnet/churn) makes and frees methods as fast as it can, and counts them itself. It has the first
processor; this script and the tool have the others. Each round has three intervals, every other round in reverse order:
one in which a run of `cdacq ip2method PID` answers questions about living methods, one in which as much processor time
is spent without touching the process, and one without either. A ratio of 1 means that the process did as much. It is
printed for methods a second, which the other two intervals tell apart from the effect of a busy machine, and for
methods in a second of the process's own processor time.
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
        if churn.process.poll() is not None:
            raise lab.LabError(f"the process ended with {churn.process.returncode}")
        self.per_second = made / (time.monotonic() - start)
        self.per_processor_second = made / (processor_seconds(churn.pid) - used)


def spend(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def measure(churn, arguments):
    """The intervals of each kind, in order."""
    asker = judge.Asker(churn.pid)
    costs = []  # of questions, in seconds of processor time: the tool's and this script's

    def used():
        return processor_seconds(asker.process.pid) + time.thread_time()

    def ask():
        before = used()
        asker.ask([address for _, address, _ in churn.slots()[:arguments.addresses]])
        costs.append(used() - before)

    ask()
    kinds = {"questions": ask, "elsewhere": lambda: spend(statistics.mean(costs[1:] or costs)), "nothing": None}
    intervals = {kind: [] for kind in kinds}
    for number in range(arguments.rounds):
        for kind in list(kinds) if number % 2 else reversed(list(kinds)):
            intervals[kind].append(Interval(churn, arguments.seconds, arguments.rate, kinds[kind]))
    asker.close()
    print(f"a question of {arguments.addresses} addresses takes {statistics.mean(costs) * 1000:.1f} ms of processor time")
    return intervals


def compare(intervals, kind, other):
    for figure in ("per_second", "per_processor_second"):
        ratios = [getattr(a, figure) / getattr(b, figure) for a, b in zip(intervals[kind], intervals[other])]
        low, median, high = statistics.quantiles(ratios, n=4)
        error = 1.253 * statistics.stdev(ratios) / len(ratios) ** 0.5
        print(f"{kind} / {other}, methods {figure}: {median:.4f} +- {error:.4f} [{low:.3f}..{high:.3f}]")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cdacq", default=judge.TOOL)
    parser.add_argument("--rounds", type=int, default=30)
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
            intervals = measure(churn, arguments)
        finally:
            churn.close()
    made = statistics.median(interval.per_second for interval in intervals["nothing"])
    print(f"{made:.0f} methods a second, {arguments.rate:g} questions a second, {arguments.rounds} rounds of "
          f"3 x {arguments.seconds:g} s")
    compare(intervals, "questions", "elsewhere")
    compare(intervals, "questions", "nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
