#!/usr/bin/env python3
"""Several runtimes in one process: every answer is about all of them, and says whose it is.

    hosts.py [RUNTIME RUNTIME]    words of lab.runtimes()

Runs the native program `hosts`, which loads two runtimes and calls the library `hosted` in both: on one stack, in one
thread after the other. Judges: the program knows who calls whom, and the kernel where the runtimes are; the words with
which a runtime ends the process. Exit 77 (skipped) if dotnet is missing; with CDACQ_REQUIRE_DOTNET=1, that is a failure.
"""

import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import lab

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
HOSTS = os.environ.get("CDACQ_HOSTS", "hosts")
TIMEOUT = 120
PAIRS = 2  # of the newest lines, unless runtimes are given


def ask(*arguments):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=TIMEOUT)
    return done.returncode, done.stdout, done.stderr


def rows(*arguments):
    return [json.loads(line) for line in ask(*arguments)[1].splitlines()]


def say(text, wrong):
    print(f"  {'FAIL' if wrong else 'ok  '} {text}{': ' if wrong else ''}{'; '.join(wrong)[:2000]}", flush=True)
    return not wrong


def differ(what, found, expected):
    return [] if found == expected else [f"{what}: {found}, not {expected}"]


def command(work, pair, words):
    folders = [lab.framework_of(work, runtime)[0] for runtime in pair]
    library = lab.build(work, "hosted", min(pair, key=lab.line_of))  # a later runtime runs it, too
    return [HOSTS, library, *folders, "--", *words]


@contextlib.contextmanager
def running(work, pair, *words):
    process = subprocess.Popen(command(work, pair, words), cwd=work, stdout=subprocess.PIPE, text=True,
                               preexec_fn=lab.allow_cores)
    try:
        if not any(line.startswith("READY ") for line in process.stdout):
            raise lab.LabError(f"{pair}: the program ended")
        yield lab.Target(work, process, None)
    finally:
        process.kill()
        process.wait()


def dead(work, pair, *words):
    """The core of a process that a runtime ends, and what it wrote to standard error."""
    folder = tempfile.mkdtemp(dir=work)
    done = subprocess.run(command(work, pair, words), cwd=folder, capture_output=True, text=True, check=False,
                          timeout=TIMEOUT, preexec_fn=lab.allow_cores)
    core, = glob.glob(os.path.join(folder, "core*"))
    return core, done.stderr


def numbers_of(pid):
    """The version of each runtime, in the order of their addresses, as the kernel has them."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return list(dict.fromkeys(re.findall(r"/([^/\n]+)/libcoreclr\.so$", maps.read(), re.MULTILINE)))


@contextlib.contextmanager
def snapshot_of(core):
    path = core + ".snapshot"
    lab.run([TOOL, "snapshot", core, "--stacks", "-o", path])
    yield path
    os.remove(path)


# ---- Stacks and addresses ----

def own_frames(frames, versions):
    """The methods of the library on a stack, and the version of the runtime that has each."""
    return [(frame["method"].partition("(")[0].rpartition(".")[2], versions[frame["runtime"]])
            for frame in frames if (frame["method"] or "").startswith("Hosted.")]


def check_stacks(target, versions, pair, main):
    frames = rows("stack", "--json", target)
    threads = {}
    for frame in frames:
        threads.setdefault(frame["tid"], []).append(frame)
    outer, inner = pair
    calls = {version: [("Pass", version), ("CallBack", version)] for version in pair}
    found = {tid: own for tid, thread in threads.items() if (own := own_frames(thread, versions))}
    wrong = differ("threads", len(found), 2) + differ("first thread", found.get(main), calls[inner] + calls[outer])
    for tid, own in found.items():
        wrong += [] if tid == main else differ("second thread", own, calls[outer] + calls[inner])
        wrong += differ("innermost", threads[tid][1]["native"]["symbol"], "wait_for_good")
        outermost = threads[tid][-1]["native"]["symbol"]
        wrong += [] if outermost.strip("_").startswith(("start", "clone")) else [f"outermost: {outermost}"]
        wrong += [f"guess: {frame}" for frame in threads[tid] if frame["by"] == "guess" or frame["after_gap"]]
    wrong += [f"{frame['method']}: no runtime" for frame in frames if frame["method"] and frame["runtime"] is None]
    text = ask("stack", target)[1]
    wrong += [] if "[runtime 0]\n" in text and "[runtime 1]\n" in text else ["the text does not name the runtimes"]
    for number, version in enumerate(versions):
        alone = [frame for frame in rows("stack", "--json", "--runtime", number, target)]
        named = {frame["ip"] for frame in alone if (frame["method"] or "").startswith("Hosted.")}
        expected = {frame["ip"] for frame in frames
                    if (frame["method"] or "").startswith("Hosted.") and frame["runtime"] == number}
        wrong += differ(f"--runtime {number}", named <= expected and bool(named), True)
        wrong += ["--runtime: a frame names its runtime"] if any("runtime" in frame for frame in alone) else []
    return wrong + check_addresses(target, frames)


def check_addresses(target, frames):
    """Every frame again by its address, the other runtime's answer, and the lists."""
    managed = [frame for frame in frames if frame["status"] == "managed" and (frame["method"] or "").startswith("Hosted.")]
    ips = [hex(int(frame["ip"], 16) - 1) for frame in managed]
    wrong = differ("addresses", [(row["method"], row["runtime"]) for row in rows("ip2method", "--json", target, *ips, "0x10")],
                   [*((frame["method"], frame["runtime"]) for frame in managed), (None, None)])
    many = [ip for ip in ips for _ in range(300)]  # so many are shared by two processes of the tool
    done = subprocess.run([TOOL, "ip2method", "--json", str(target)], input="\n".join(many), capture_output=True, text=True,
                          check=False, timeout=TIMEOUT)
    wrong += differ("many", [json.loads(line)["runtime"] for line in done.stdout.splitlines()],
                    [frame["runtime"] for frame in managed for _ in range(300)])
    wrong += differ("inspected", [(row["method"], row["runtime"]) for row in rows("inspect", "--json", target, *ips)],
                    [(frame["method"], frame["runtime"]) for frame in managed])
    for number in (0, 1):
        alone = rows("ip2method", "--json", "--runtime", number, target, *ips)
        wrong += differ(f"ip2method --runtime {number}", [row["status"] for row in alone],
                        ["managed" if frame["runtime"] == number else "none" for frame in managed])
    listed = [row["runtime"] for row in rows("methods", "--json", target, "Hosted.Entry.CallBack")]
    wrong += differ("listed", sorted(set(listed)), [0, 1])  # a runtime may have compiled it twice
    wrong += differ("perf map", ask("perfmap", target)[1].count("Hosted.Entry::CallBack("), len(listed))
    return wrong


def check_the_rest(target, versions):
    """Commands that are about one runtime say about which one, and info lists all."""
    facts, = rows("info", "--json", target)
    wrong = differ("info", [runtime["version"] for runtime in facts["runtimes"]], versions)
    for arguments in (("jitdump", "-o", "/dev/null"), ("elf", "-o", "/dev/null"), ("descriptor",)):
        code, _, message = ask(arguments[0], target, *arguments[1:])
        wrong += differ(arguments[0], (code, f"{arguments[0]} answers for runtime 0 (" in message),
                        (0 if arguments[0] == "descriptor" else 1, True))
        code, _, message = ask(arguments[0], target, *arguments[1:], "--runtime", "1")
        wrong += differ(f"{arguments[0]} --runtime 1", (code, " answers for " in message), (0, False))
    return wrong


def test_stacks(work, pair):
    outer, inner = pair
    with running(work, pair, "0:CallBack", "1:CallBack", "+", "1:CallBack", "0:CallBack") as target:
        versions = numbers_of(target.pid)
        wrong = check_stacks(target.pid, versions, pair, target.pid) + check_the_rest(target.pid, versions)
        good = say(f"{outer} calls {inner}, live", wrong)
        listed = [row for row in rows("ps", "--json") if row["pid"] == target.pid]
        wrong = differ("processes", [row["runtimes"] for row in listed], [versions])
        good &= say("ps", wrong + differ("text", f" {','.join(versions)} " in ask("ps")[1], True))
        core = target.kernel_core()
        wrong = check_stacks(core, versions, pair, target.pid) + check_the_rest(core, versions)
    good &= say(f"{outer} calls {inner}, core", wrong)
    with snapshot_of(core) as small:
        wrong = check_stacks(small, versions, pair, target.pid)
    os.remove(core)
    return good & say(f"{outer} calls {inner}, snapshot", wrong)


# ---- Deaths ----

def check_death(core, written, pair, cause, signature):
    outer, inner = pair
    report, = rows("report", "--json", core)
    numbers = {runtime["version"]: runtime["number"] for runtime in report["runtimes"]}
    wrong = differ("cause", (report["cause"], report["runtime"]), (cause, inner))
    wrong += differ("words", (report["last_words"] or {}).get("text", "").rstrip("\n"), written.rstrip("\n"))
    wrong += differ("whose words", (report["last_words"] or {}).get("runtime"), numbers[inner])
    wrong += differ("ended", [runtime["version"] for runtime in report["runtimes"] if runtime["ended_process"]], [inner])
    handled = [(item["runtime"], item["text"].splitlines()[0]) for item in report["nested_exceptions"]
               if "outer" in (item["text"] or "")]
    if line_is_nested(outer):
        wrong += differ("handled", handled,
                        [(numbers[outer], f"System.InvalidOperationException: of the outer runtime {outer}")])
    wrong += differ("signature", ask("report", "--signature", core)[1], signature + "\n")
    text = ask("report", "--brief", core)[1]
    wrong += [] if f"runtime {numbers[inner]}, .NET {inner}\n" in text else ["the text does not say who ended it"]
    return wrong


def line_is_nested(runtime):
    """Whether this runtime keeps an exception that is being handled, as those of the newest lines do."""
    return lab.line_of(runtime) >= 9


def test_deaths(work, pair):
    good = True
    for way, cause, signature in [
            ("Throw", "unhandled", "unhandled System.InvalidOperationException: Hosted.Entry.Fail < Hosted.Entry.Throw"),
            ("FailFast", "fatal", "fatal: Hosted.Entry.FailFast < Hosted.Entry.CallBackInCatch")]:
        core, written = dead(work, pair, "0:CallBackInCatch", f"1:{way}")
        wrong = check_death(core, written, pair, cause, signature)
        with snapshot_of(core) as small:
            wrong += [f"snapshot: {what}" for what in check_death(small, written, pair, cause, signature)]
        os.remove(core)
        good &= say(f"{way} in {pair[1]}, called by {pair[0]}", wrong)
    return good


# ---- Locks ----

def test_locks(work, pair):
    with running(work, pair, "0:CallBack", "+", "1:Deadlock") as target:
        number = numbers_of(target.pid).index(pair[1])
        report, = rows("report", "--json", target.pid)
        wrong = differ("deadlocks", [(len(item["waits"]), item["runtime"]) for item in report["deadlocks"]], [(2, number)])
        wrong += differ("locks", {lock["runtime"] for lock in report["locks"] if lock["waiters"]}, {number})
        text = ask("report", target.pid)[1]
        wrong += [] if f"\nDeadlock of 2 threads in runtime {number}:\n" in text else ["the text has no deadlock"]
        wrong += ["the waits of the deadlock are there twice"] if "\nWaits of runtime" in text else []
        wrong += differ("signature", ask("report", "--signature", target.pid)[1],
                        "deadlock: Hosted.Entry.Enter <> Hosted.Entry.Enter\n")
        wrong += differ("brief", ask("report", "--brief", target.pid)[1].count(f" in runtime {number}"), 1)
        other = ask("report", "--signature", "--runtime", 1 - number, target.pid)[1]
        wrong += differ("of the other", other, "alive\n")
    return say(f"deadlock in {pair[1]}", wrong)


def pairs_of(words):
    runtimes = lab.runtimes(words)
    if len(runtimes) < 2:
        return []
    if words:
        return [tuple(runtimes[:2])]
    return [*zip(runtimes, runtimes[1:])][:PAIRS - 1] + [(runtimes[-1], runtimes[0])]


def test_pair(pair):
    work = tempfile.mkdtemp(prefix="cdacq-hosts-")
    try:
        return test_stacks(work, pair) & test_deaths(work, pair) & test_locks(work, pair)
    finally:
        shutil.rmtree(work)


def main():
    try:
        lab.refuse_piped_cores()
        pairs = pairs_of(sys.argv[1:])
        if not pairs:
            raise lab.Skip("it takes two runtimes")
        return 0 if all([test_pair(pair) for pair in pairs]) else 1
    except lab.Skip as reason:
        print(f"skipped: {reason}")
        return 1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED


if __name__ == "__main__":
    sys.exit(main())
