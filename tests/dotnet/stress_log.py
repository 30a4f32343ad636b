#!/usr/bin/env python3
"""The stress log of real processes: `cdacq info --stress-log` shows the messages that SOS shows (dumplog of dotnet-dump),
word for word, in the running process and in its cores.

    stress_log.py [RUNTIME...]    words of lab.runtimes()

Runs the program `busy` with all facilities logged, once with a log that holds all messages and once with one whose
threads have little room, so that they write over old messages. The process is stopped by a signal, so that all cores
have the same log. The judges beside SOS: the names of methods are those of their return addresses, format strings are
in the file of the runtime, garbage collections are counted from 1 on, and the first message came after the process
started. .NET 8 and 9 do not publish their log, and one line says so.
Exit 77 (skipped) where dotnet is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure.
"""

import collections
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import lab

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
PUBLISHED_SINCE = 10
START_TIME_SINCE = 11
LEAST = {"whole": 2000, "small": 700}  # messages
ROOM = {"whole": "400000", "small": "8000"}  # bytes a thread, in hex
RUNNING = 3  # seconds, at least
COLLECTS_WITHIN = 60  # seconds, on a loaded machine
LEAST_FORMATS = {"whole": 20, "small": 10}
WITHOUT_LOG = {"mini", "triage"}  # cores that may lack it
START_SECONDS = 5  # at most, from the start of a process to that of its log
SOS_LINE = re.compile(r"^\s*([0-9a-f]+)\s+(\d+)\.(\d{9}) : `(\S*)`\s(.*)$")
NAMES = re.compile(r" \((?!BAD )[^()]*(?:\([^()]*\)[^()]*)*\)")
FRAMELESS = re.compile(r"Scanning Frameless method 0x[0-9a-f]+ \((.*)\) ControlPC = (0x[0-9a-f]+)$")


class Busy:
    """The program, stopped after some seconds."""

    def __init__(self, work, runtime, size):
        environment = dict(os.environ, DOTNET_StressLog="1", DOTNET_LogFacility="0xffffffff", DOTNET_LogLevel="10",
                           DOTNET_StressLogSize=ROOM[size], DOTNET_TotalStressLogSize="8000000")
        command = lab.program_command(work, "busy", runtime)
        self.started = time.time()
        process = subprocess.Popen(command, cwd=work, env=environment, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, preexec_fn=lab.allow_cores)
        self.target = lab.Target(work, process, None)
        if not process.stdout.readline().startswith(b"READY"):
            raise lab.LabError("busy did not get ready")
        time.sleep(RUNNING)
        self.await_collection()
        process.send_signal(signal.SIGSTOP)
        while lab.states_of(process.pid) != {"T"}:
            time.sleep(0.01)
        self.threads = {int(tid) for tid in os.listdir(f"/proc/{process.pid}/task")}

    def await_collection(self):
        """Until the log tells of a garbage collection, if it can be read."""
        end = time.monotonic() + COLLECTS_WITHIN
        while time.monotonic() < end:
            code, text, _ = ask(self.target.pid)
            if code == 2 or "ENDGC" in text:
                return
            time.sleep(1)

    def kernel_core(self):
        self.target.process.send_signal(signal.SIGSYS)
        self.target.process.send_signal(signal.SIGCONT)
        return self.target.kernel_core()


@contextlib.contextmanager
def running(work, runtime, size):
    busy = Busy(work, runtime, size)
    try:
        yield busy
    finally:
        busy.target.process.kill()
        busy.target.process.communicate()


def ask(target, *options):
    """The exit code, what standard output had, and what standard error had."""
    done = subprocess.run([TOOL, "info", "--stress-log", str(target), *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False, timeout=120)
    return done.returncode, done.stdout, done.stderr


def read(target, *options):
    """The log and its messages."""
    code, text, problem = ask(target, "--json", *options)
    if code != 0:
        raise lab.LabError(f"exit {code}: {problem}{text[-400:]}")
    log, *messages = (json.loads(line) for line in text.splitlines())
    return log, messages


# ---- SOS ----

def sos_messages(work, core):
    """(thread, nanoseconds, facilities, text): what SOS shows, the newest first."""
    path = os.path.join(work, "sos.txt")
    lab.run([os.path.join(lab.dotnet_tool(work, "dotnet-dump"), "dotnet-dump"), "analyze", core, "-c", f"dumplog {path}", "-c", "exit"], timeout=300)
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            found = SOS_LINE.match(line.rstrip("\n"))
            if found:
                yield int(found[1], 16), int(found[2]) * 10 ** 9 + int(found[3]), found[4].replace("`", "|"), found[5]
    os.remove(path)


def words(text):
    """A text as both spell it: SOS loses the names that it puts in parentheses, and turns around the braces of formats."""
    text = text.split("\\x0a")[0].replace("\\x09", " ").replace("(nil)", "0x0").replace("(BAD MethodTable)", "")
    text = NAMES.sub("", text).replace("{", "}")
    return " ".join(text.replace(" ( ", " ").removesuffix(" (").split())


def ours(messages):
    return [(message["tid"], message["time"], "|".join(message["facilities"]) if len(message["facilities"]) < 32 else "ALL", message["text"])
            for message in messages]


def compare(judged, found, note, label, wraps):
    """All that SOS shows, in its order. SOS leaves out up to 520 bytes of a log that was written over."""
    judged = [(*key, words(text)) for *key, text in judged]
    found = [(*key, words(text)) for *key, text in found]
    more = collections.Counter(found) - collections.Counter(judged)
    missing = collections.Counter(judged) - collections.Counter(found)
    oldest = {}
    for thread, moment, *_ in judged:
        oldest[thread] = moment
    younger = [key for key in more if not wraps or key[1] > oldest.get(key[0], 1 << 64)]
    per_thread = collections.Counter(key[0] for key in more.elements())
    wrong = [f"missing {key}" for key in list(missing)[:5]] + [f"only here {key}" for key in younger[:5]]
    note(f"{label}: SOS has the same {len(judged)} messages, and we {sum(more.values())} older ones", judged and not wrong,
         "\n".join(wrong))
    note(f"{label}: no thread has more than 33 of the older ones", all(count <= 33 for count in per_thread.values()))


# ---- Other judges ----

def check_names(core, messages, note, label):
    """The method of a frame is that of its program counter."""
    frames = {(found[2], found[1]) for message in messages if (found := FRAMELESS.match(message["text"]))}
    addresses = sorted({address for address, _ in frames})
    done = subprocess.run([TOOL, "ip2method", "--json", str(core), *addresses], stdout=subprocess.PIPE, text=True, check=False)
    names = {}
    for line in done.stdout.splitlines():
        answer = json.loads(line)
        names[answer["ip"]] = answer.get("name") or answer.get("method")
    wrong = [f"{name} at {address}: {names.get(address)}" for address, name in frames if names.get(address) != name]
    note(f"{label}: {len(frames)} frames have the methods of their addresses", len(frames) > 5 and not wrong, "\n".join(wrong[:5]))


def check_facts(busy, log, messages, note, label):
    with open(os.path.join(busy.target.runtime_directory(), "libcoreclr.so"), "rb") as file:
        image = file.read()
    formats = {text for message in messages if "\\x" not in (text := message["format"].removesuffix("\\x0a"))}
    strange = [text for text in formats if text.encode() + b"\0" not in image and text.encode() + b"\n\0" not in image]
    note(f"{label}: {len(formats)} format strings are in the runtime's file", len(formats) > LEAST_FORMATS[label.split()[-1]] and not strange, "\n".join(strange[:5]))
    times = [message["time"] for message in messages]
    note(f"{label}: the newest message is first", times == sorted(times, reverse=True))
    threads = {message["tid"] for message in messages}
    note(f"{label}: the threads are those of the process", busy.target.pid in threads and len(threads & busy.threads) > 3)
    started = log["start_time"] and log["start_time"] / 10 ** 9 - busy.started
    passed = 0 < started < START_SECONDS if started else log["start_time"] is None
    note(f"{label}: the log started with the process", passed, "" if passed else str(started))
    return started is not None


def check_collections(messages, note, label):
    begun = [message["arguments"][0] for message in reversed(messages) if "BEGINGC" in message["text"]]
    ended = [message["arguments"][0] for message in reversed(messages) if "ENDGC" in message["text"]]
    expected = [hex(i + 1) for i in range(len(begun))]
    note(f"{label}: {len(begun)} garbage collections are counted from 1 on", begun and begun == ended == expected)


def check_cores(busy, live, note, label):
    """What the process shows, each core shows. Those without a heap show it or say what they lack."""
    cores = {}
    for kind in lab.CREATEDUMP_KINDS:
        cores[kind] = lambda kind=kind: busy.target.createdump(kind)
    cores["gcore"] = busy.target.gcore
    for kind, take in cores.items():
        try:
            core = take()
        except lab.Skip as reason:
            print(f"  skipped {kind}: {reason}")
            continue
        code, text, problem = ask(core, "--json")
        lines = [json.loads(line) for line in text.splitlines()]
        same = [line for line in lines if line["type"] == "message"] == live
        says = code in (1, 2) and any(line["type"] == "problem" and "no memory" in line["problem"] for line in lines)
        note(f"{label}: {kind}: {len(lines) and len(lines) - 1} lines", code == 0 and same or kind in WITHOUT_LOG and says,
             "" if same else f"exit {code} {problem}{text[-300:] if kind not in WITHOUT_LOG else ''}")
        if kind != "full":
            os.remove(core)
    return os.path.join(busy.target.work, "createdump-full.core")


def check_kernel(busy, live, note, label):
    try:
        core = busy.kernel_core()
    except lab.Skip as reason:
        print(f"  skipped kernel: {reason}")
        return
    _, messages = read(core)
    note(f"{label}: kernel: {len(messages)} messages, the last of them those of the process",
         messages[len(messages) - len(live):] == live)
    os.remove(core)


def check_package(core, messages, note, label):
    """The Python package has the same messages. A library with sanitizers cannot be loaded."""
    if "CDACQ_LIBRARY" not in os.environ:
        return
    sys.path.insert(0, os.path.join(lab.HERE, "..", "..", "python"))
    try:
        import cdacq
        with cdacq.open(core) as target:
            log, listed = target.stress_log(), list(target.stress_messages())
            facilities = [cdacq.stress_facilities(message.facilities) for message in listed]
    except OSError as reason:
        print(f"  skipped the Python package: {reason}")
        return
    expected = [(message["tid"], message["time"], message["facilities"], message["text"], [int(word, 16) for word in message["arguments"]])
                for message in messages]
    found = [(message.tid, message.time_ns, names, message.text, list(message.arguments)) for message, names in zip(listed, facilities)]
    note(f"{label}: the Python package has the same", log.is_on and found == expected)


def run(version, work, size, note):
    label = f"{version} {size}"
    with running(work, version, size) as busy:
        if lab.line_of(version) < PUBLISHED_SINCE:
            code, text, problem = ask(busy.target.pid)
            note(f"{label}: not published", (code, text) == (2, "") and problem.count("\n") == 1 and "does not publish" in problem, problem.strip())
            return
        log, live = read(busy.target.pid)
        note(f"{label}: {len(live)} messages", len(live) >= LEAST[size] and log["on"])
        note(f"{label}: none is incomplete", not any(message["incomplete"] or message["problem"] for message in live))
        published = check_facts(busy, log, live, note, label)
        note(f"{label}: the start time is published since .NET {START_TIME_SINCE}", published == (lab.line_of(version) >= START_TIME_SINCE))
        _, stopped = read(busy.target.pid, "--stop")
        note(f"{label}: the same with --stop", stopped == live)
        code, text, _ = ask(busy.target.pid)
        note(f"{label}: as text", code == 0 and len(text.splitlines()) >= len(live) and not re.search(r"[^\n\x20-\x7e]", text))
        core = check_cores(busy, live, note, label)
        compare(sos_messages(work, core), ours(live), note, label, size == "small")
        if size == "whole":
            check_names(core, live, note, label)
            check_collections(live, note, label)
            check_package(core, live, note, label)
            check_kernel(busy, live, note, label)
        os.remove(core)


def check_off(version, work, note):
    """A process without a log."""
    if lab.line_of(version) < PUBLISHED_SINCE:
        return
    process = subprocess.Popen(lab.program_command(work, "busy", version), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        code, text, problem = ask(process.pid)
        note(f"{version}: a log that is off", code == 0 and "off; it is on" in text and not problem)
        log, messages = read(process.pid)
        note(f"{version}: the same as JSON", log["on"] is False and not messages)
    finally:
        process.kill()
        process.communicate()


def main():
    results = lab.Results()
    with tempfile.TemporaryDirectory(prefix="cdacq-stress-log-") as work:
        for version in lab.runtimes(sys.argv[1:]):
            for size in ROOM if lab.line_of(version) >= PUBLISHED_SINCE else ["whole"]:
                run(version, work, size, results.note)
            check_off(version, work, results.note)
    return results.exit_code()


if __name__ == "__main__":
    lab.exit_with(main)
