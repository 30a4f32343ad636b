#!/usr/bin/env python3
"""Processes that are slow: what `cdacq report` says of garbage collection, exceptions, a control group that holds the
process back, and of an overloaded machine, judged by what the program counts itself and by the kernel.

    slow.py [RUNTIME...]    words of lab.runtimes(); without any, only the newest line is tested

Nothing here depends on how fast the machine is: numbers are compared with what happened meanwhile.
Exit 77 (skipped) if dotnet is missing; with CDACQ_REQUIRE_DOTNET=1, that is a failure.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

import hangs
import lab

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
REPORTS = 5  # of each process
SHARE_ERROR = 30  # per cent of the time, of the means of these
PERIOD, QUOTA = 100000, 20000  # microseconds
GROUPS = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"]


class Slow(hangs.Hang):
    """A process of the program that counts."""

    def counts(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("counts "):
                return [int(word) for word in line.split()[1:]]
        raise lab.LabError("the program ended")

    def report(self):
        done = subprocess.run([TOOL, "report", "--json", str(self.process.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False)
        try:
            return json.loads(done.stdout)
        except ValueError as error:
            raise lab.LabError(f"exit {done.returncode}: {done.stderr.decode()}") from error


@contextlib.contextmanager
def running(command, way):
    slow = Slow(command, way)
    try:
        slow.wait()
        yield slow
    finally:
        slow.end()


def threads_of(report):
    return [thread for stack in report["stacks"] for thread in stack["threads"]]


def check_collections(command):
    """The share of the looks at which threads were suspended, and that of the pauses that the program knows."""
    wrong, shares, truths, words = [], [], [], set()
    with running(command, "Collections") as slow:
        for _ in range(REPORTS):
            _, paused, clock = slow.counts()
            report = slow.report()
            _, paused_after, clock_after = slow.counts()
            shares.append(report["activity"]["suspended_percent"])
            truths.append(100 * (paused_after - paused) / max(clock_after - clock, 1))
            words.add(report["verdict"]["slowed_by"])
            least = report["activity"]["suspended_at_least"]
    share, truth = sum(shares) / REPORTS, sum(truths) / REPORTS
    if share > truth + SHARE_ERROR or (share < truth - SHARE_ERROR and not least):
        wrong.append(f"suspended for {share:.0f} % of the time, and not {truth:.0f} %")
    if not words & {"garbage_collection", "overload", "throttling"}:
        wrong.append(f"slowed by {words}")
    return wrong, f"suspended for {'at least ' if least else ''}{share:.0f} % ({truth:.0f} % by the program)"


def check_exceptions(command, way):
    """No more than were thrown meanwhile; of a program that throws all the time, many."""
    wrong, found, truths = [], 0, 0
    with running(command, way) as slow:
        for _ in range(REPORTS):
            before = slow.counts()[0]
            activity = slow.report()["activity"]
            thrown = slow.counts()[0] - before
            if activity["exceptions_at_least"] > thrown:
                wrong.append(f"{activity['exceptions_at_least']} exceptions of {thrown}")
            found += activity["exceptions_at_least"]
            truths += thrown
            if activity["slowed_by"] == "exceptions" and way != "Throwing":
                wrong.append("slowed by exceptions")
    if way == "Throwing" and truths > 100 * REPORTS and not found:
        wrong.append(f"none of {truths} exceptions was seen")
    return wrong, f"at least {found} of {truths} exceptions" if way == "Throwing" else "none"


def check_samples(command):
    """The method that never returns is the one of all samples."""
    wrong = []
    with running(command, "Spinning") as slow:
        verdict = {}
        for _ in range(REPORTS):
            report = slow.report()
            verdict = report["verdict"]
            busiest = max(threads_of(report), key=lambda thread: thread["processor_percent"] + (thread["delayed_percent"] or 0))
            if busiest["samples"]:
                break
        else:
            return ["no report has samples"], ""
        if busiest["samples"] != 3 or busiest["samples_in_method"] != 3:
            wrong.append(f"{busiest['samples_in_method']} of {busiest['samples']} samples")
        if verdict["method"] != "Hangs.Slow.Spin()":
            wrong.append(f"the method is {verdict['method']}")
    return wrong, "3 of 3 samples"


def stat_of(group):
    with open(os.path.join(group, "cpu.stat"), encoding="ascii") as file:
        return {name: int(value) for name, value in map(str.split, file)}


@contextlib.contextmanager
def limited_group():
    """A control group with a quota; None where that is not permitted."""
    group = None
    for above in GROUPS:
        path = os.path.join(above, f"cdacq-slow-{os.getpid()}")
        try:
            os.mkdir(path)
            version_1 = os.path.exists(os.path.join(path, "cpu.cfs_quota_us"))
            for name, text in [("cpu.cfs_period_us", PERIOD), ("cpu.cfs_quota_us", QUOTA)] if version_1 else [("cpu.max", f"{QUOTA} {PERIOD}")]:
                with open(os.path.join(path, name), "w", encoding="ascii") as file:
                    file.write(str(text))
            group = path
            break
        except OSError:
            with contextlib.suppress(OSError):
                os.rmdir(path)
    try:
        yield group
    finally:
        if group:
            os.rmdir(group)


def check_throttled(command):
    wrong = []
    with limited_group() as group:
        if not group:
            return [], "no control group can be made: not tested"
        with running(command, "Spinning") as slow:
            with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write(str(slow.process.pid))
            kinds = []
            for _ in range(REPORTS):
                before = stat_of(group)
                report = slow.report()
                after = stat_of(group)
                limit = report["activity"]["processor_limit"]
                kinds.append(report["verdict"]["kind"])
                if not limit or (limit["quota_us"], limit["period_us"]) != (QUOTA, PERIOD):
                    wrong.append(f"the limit is {limit}")
                elif not (limit["throttled_periods"] <= after["nr_throttled"] - before["nr_throttled"] and
                          limit["periods"] <= after["nr_periods"] - before["nr_periods"]):
                    wrong.append(f"{limit} of {before} to {after}")
            if after["nr_throttled"] > before["nr_throttled"] and "throttled" not in kinds:
                wrong.append(f"the verdicts are {kinds}")
    return wrong, f"throttled in {kinds.count('throttled')} of {REPORTS} reports"


def times_of(pid):
    """The nanoseconds for which the first thread ran, and waited for a processor."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return [int(word) for word in file.read().split()[:2]]


def check_overload(command):
    """Of the time in which the first thread was ready to run, it had no processor for as much as the kernel says."""
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
    try:
        with running(command, "Spinning") as slow:
            used, delayed = 0, 0
            before = times_of(slow.process.pid)
            for _ in range(REPORTS):
                thread = next(thread for thread in threads_of(slow.report()) if thread["tid"] == slow.process.pid)
                used += thread["processor_percent"]
                delayed += thread["delayed_percent"]
            ran, waited = (after - earlier for after, earlier in zip(times_of(slow.process.pid), before))
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
    share, truth = 100 * delayed / max(used + delayed, 1), 100 * waited / max(ran + waited, 1)
    wrong = [] if abs(share - truth) <= SHARE_ERROR else ["that is another share"]
    return wrong, f"delayed for {share:.0f} % ({truth:.0f} % by the kernel)"


CHECKS = {
    "collections": check_collections,
    "exceptions": lambda command: check_exceptions(command, "Throwing"),
    "an exception that is handled for long": lambda command: check_exceptions(command, "Handling"),
    "samples": check_samples,
    "throttling": check_throttled,
    "overload": check_overload,
}


def test_runtime(work, runtime):
    command = lab.program_command(work, "hangs", runtime)
    good = True
    for name, check in CHECKS.items():
        try:
            wrong, told = check(command)
        except lab.LabError as error:
            wrong, told = [str(error)], ""
        good &= not wrong
        print(f"{'!' if wrong else ' '} {runtime} {name}: " + "; ".join(filter(None, [told, *wrong])), flush=True)
    return good


def main():
    work = tempfile.mkdtemp(prefix="cdacq-slow-")
    try:
        asked = sys.argv[1:] or os.environ.get("CDACQ_RUNTIMES", "").split()
        runtimes = lab.runtimes(sys.argv[1:]) if asked else [next(iter(lab.NEWEST.values()))]
        return 0 if all([test_runtime(work, runtime) for runtime in runtimes]) else 1
    except lab.Skip as reason:
        print(f"skipped: {reason}")
        return 1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    sys.exit(main())
