#!/usr/bin/env python3
"""
Stops a process in the middle of what it does, again and again: it compiles, loads and unloads assemblies, makes types,
throws and collects in eight threads (tests/dotnet/loading). No answer may be wrong without a mark, and no frame missing.

    moments.py [--stops N] [RUNTIME...]    words of lab.runtimes(), default: the newest; CDACQ_HOSTILE_STOPS sets N

Judges: the source of the program, which says who calls whom and on which line; the runtime's own jitdump, in the order
of its records; the names of the two assemblies of one identity that the program loads one after the other. A mark is
an error in the answer, module_verified, a guess, or exit status 1. Exit 77 (skipped) if dotnet is missing; with
CDACQ_REQUIRE_DOTNET=1, that is a failure.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "dotnet")]

import identity  # noqa: E402
import lab  # noqa: E402
from runtime_names import Name  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
STOPS = int(os.environ.get("CDACQ_HOSTILE_STOPS", "30"))
STOPS_OF_A_PROCESS = 250  # its jitdump grows
THREADS = 8
ADDRESSES = 80  # asked between two stops
LISTED_AT = 50  # stops
SHOWN = 5
TIMEOUT = 120
LATEST = 3  # seconds until a record is written, at most

# Who calls whom, from the outermost on. A thread that handles an exception has the frames of the search, too.
CALLS = {
    None: {"Run", "Main"}, "Main": set(), "Run": {"Outer"},
    "Outer": {"Generics", "Emits", "Copies", "Renewed", "Types", "Throws", "Collects"},
    "Generics": {"Over"}, "Over": {"Over"}, "Emits": {"Emitted"}, "Emitted": {"Nothing", "Inside"},
    "Copies": {"Load", "CallFirst", "CallSecond"}, "Renewed": {"Replace", "CallEither"}, "Replace": {"Load"},
    "Load": set(), "CallFirst": {"First.Run"}, "CallSecond": {"Second.Run"},
    "CallEither": {"First.Run", "Second.Run", ".Run"}, ".Run": {"First.Alpha", "Second.Bravo"}, "First.Run": {"First.Alpha"},
    "Second.Run": {"Second.Bravo"}, "First.Alpha": {"First.Under"}, "Second.Bravo": {"Second.Below"},
    "First.Under": {"Inside"}, "Second.Below": {"Inside"}, "Inside": set(), "Nothing": set(), "Types": set(),
    "Throws": {"Down", "IsOurs", "Inside", "Throws"}, "Down": {"Down", "Inside", "Throws"}, "IsOurs": {"Inside"},
    "Collects": set(),
}
OF_COPIES = {"Run": "", "Alpha": "First", "Under": "First", "Bravo": "Second", "Below": "Second"}
OWN = re.compile(r"(?:Loading\.Program|Copied\.(?:Entry|Of<.*>))\.(\w+)(?:<.*>)?\(")
EMITTED = re.compile(r"\bEmitted_\d+\(")
OUTERMOST = re.compile(r"_*(start|start_thread|clone3?|libc_start_main.*|libc_start_call_main)$")


class Source:
    """The lines of each method of a C# file, and those that call another one: they name it."""

    def __init__(self, path):
        self.lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
        self.methods = {}
        for i, line in enumerate(self.lines):
            found = re.match(r"    (?:private|public) (?:static )?[^=(]*?(\w+)(?:<T>)?\(", line)
            if found and not (line.endswith(";") and "=>" not in line) and not self.methods.get(found[1]):
                last = i if "=>" in line or "{ }" in line else next(n for n in range(i, len(self.lines)) if self.lines[n] == "    }")
                self.methods[found[1]] = range(i + 1, last + 2)

    def fault(self, caller, callee, line):
        """What is wrong with the line of a frame, or None."""
        if line not in self.methods[caller]:
            return f"is not in {caller}"
        calls = [n for n in self.methods[caller] if re.search(rf"\b{callee}(?:<T>)?\(", self.lines[n - 1])] if callee else []
        return f"does not call {callee}" if calls and line not in calls and caller != callee else None


class Records:
    """The records of a jitdump that grows, by page."""

    def __init__(self, path):
        self.path, self.place, self.count, self.pages, self.all = path, 0, 0, {}, []

    def update(self):
        with open(self.path, "rb") as file:
            file.seek(self.place)
            data = file.read()
        at = 0
        if not self.place:
            at, = struct.unpack_from("<I", data, 8)
        while at + 16 <= len(data):
            kind, size = struct.unpack_from("<II", data, at)
            if size < 16 or at + size > len(data):
                break
            if kind == 0:
                start, length = struct.unpack_from("<QQ", data, at + 32)
                record = (self.count, start, length, data[at + 56:data.index(b"\0", at + 56)].decode("utf-8", "replace"))
                self.all.append(record)
                self.count += 1
                for page in range(start >> 12, (start + max(length, 1) - 1 >> 12) + 1):
                    self.pages.setdefault(page, []).append(record)
            at += size
        self.place += at

    def at(self, address, known):
        """Who may own an address: the last of the records that were known, and the later ones."""
        found = [record for record in self.pages.get(address >> 12, ()) if record[1] <= address < record[1] + record[2]
                 and Name.parse(record[3])]
        before = [record for record in found if record[0] < known]
        return before[-1:] + [record for record in found if record[0] >= known]


class Asker:
    """One run of the tool, which stays open."""

    def __init__(self, pid):
        self.process = subprocess.Popen([TOOL, "ip2method", "--json", str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)

    def ask(self, addresses):
        self.process.stdin.write("".join(f"{address:x}\n" for address in addresses).encode())
        self.process.stdin.flush()
        return [json.loads(self.process.stdout.readline()) for _ in addresses]

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=TIMEOUT)


class Findings:
    def __init__(self):
        self.counts, self.shown = collections.Counter(), collections.defaultdict(list)

    def add(self, kind, *what):
        self.counts[kind] += 1
        if what and len(self.shown[kind]) < SHOWN:
            self.shown[kind].append(" ".join(map(str, what)))

    def report(self):
        for kind in sorted(self.counts):
            count = self.counts[kind]
            print(f"    {count:9} {kind}")
        for kind, examples in self.shown.items():
            for example in examples:
                print(f"    {kind}: {example}")
        sys.stdout.flush()
        return not any(kind.startswith("WRONG") for kind in self.counts)


def own_name(frame):
    """What CALLS has for the method of a frame; None for those of others."""
    method = frame["method"] or ""
    if EMITTED.search(method):
        return "Emitted"
    found = OWN.match(method)
    if not found or found[1] not in CALLS and found[1] not in OF_COPIES:
        return None
    if not method.startswith("Copied."):
        return found[1]
    file = os.path.basename(frame["file"] or "").removesuffix(".cs")
    return f"{OF_COPIES[found[1]] or file}.{found[1]}"


class Process:
    def __init__(self, work, runtime):
        self.work = tempfile.mkdtemp(dir=work, prefix="run-")
        built = [lab.build(work, "copied", "8.0", Content=content) for content in ("First", "Second")]
        identity.write_pair(*(os.path.join(folder, "Copied.dll") for folder in built), self.work)
        os.mkdir(os.path.join(self.work, "shared"))
        self.sources = {name: Source(HERE.parent / "dotnet" / path) for name, path in
                        [("Program.cs", "loading/Program.cs"), ("First.cs", "copied/First.cs"), ("Second.cs", "copied/Second.cs")]}
        variables = {"DOTNET_PerfMapEnabled": "1", "DOTNET_PerfMapStubGranularity": "2", "DOTNET_PerfMapJitDumpPath": self.work,
                     "DOTNET_gcServer": "0"}
        self.process = subprocess.Popen([*lab.program_command(work, "loading", runtime), self.work], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=open(os.path.join(self.work, "stderr"), "wb"), text=True,
                                        env={**os.environ, **variables})
        self.pid = self.process.pid
        if not self.process.stdout.readline().startswith("READY"):
            raise lab.LabError("the process did not get ready: " + pathlib.Path(self.work, "stderr").read_text())
        self.records = Records(os.path.join(self.work, f"jit-{self.pid}.dump"))

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.work, ignore_errors=True)


# ---- Stacks ----

def judge_stack(process, done, known, findings):
    frames = [json.loads(line) for line in done.stdout.splitlines()]
    threads = collections.defaultdict(list)
    for frame in frames:
        threads[frame["tid"]].append(frame)
    marked = done.returncode != 0
    found = [tid for tid, stack in threads.items() if any(own_name(frame) == "Run" for frame in stack)]
    if len(found) != THREADS and not marked:
        findings.add("WRONG: threads lost", len(found), done.stderr[:300])
    findings.add("stops", *())
    findings.add(f"exit {done.returncode}")
    for line in done.stderr.splitlines():
        findings.add("stderr: " + re.sub(r"0x[0-9a-f]+|\d+", "N", line)[:150])
    for tid, stack in threads.items():
        judge_thread(process, tid, stack, marked, found, findings)
    judge_names(process, frames, known, findings)


def judge_thread(process, tid, stack, marked, working, findings):
    """From the outermost frame on, each of the program's methods calls the next one."""
    guess = any(frame["by"] == "guess" or frame["after_gap"] for frame in stack)
    findings.add("threads" + (" with a guess" if guess else ""))
    outermost = (stack[-1]["native"] or {}).get("symbol") or ""

    def wrong(kind, *what):
        text = " < ".join(f"{frame['method'] or (frame['native'] or {}).get('symbol')}:{frame['line']}[{frame['by']}]"
                          for frame in stack[:40])
        findings.add(("marked: " if guess else "WRONG: ") + kind, *what, tid, text)

    if not OUTERMOST.match(outermost) and tid != process.pid:  # the entry point of `dotnet` has no symbol
        wrong("the stack ends early", outermost)
    if guess and not marked:
        wrong("a guess and exit 0")
    caller = None
    own = [(name, frame) for frame in stack if (name := own_name(frame))]
    for i in range(len(own) - 1, -1, -1):
        name, frame = own[i]
        if name == ".Run":  # without a line, who calls it says which it is, and what it calls must agree
            name = {"CallFirst": "First.Run", "CallSecond": "Second.Run"}.get(caller, name)
        if name not in CALLS.get(caller, set()) and not (name == caller and frame["funclet"] is None and name in ("Down", "Over")):
            wrong("order of frames", caller, "->", name)
        caller = name
        judge_line(process, name, frame, own[i - 1][0] if i else None, wrong, findings)
    if own and own[0][0] in ("Run", "Outer") and tid in working:
        inner = [frame for frame in stack[:stack.index(own[0][1])] if frame["method"] and frame["kind"] == "jit"]
        if inner and own[0][0] == "Outer":
            findings.add(f"inside Outer: {inner[-1]['method'][:80]}")


def judge_line(process, name, frame, callee, wrong, findings):
    content, _, method = name.rpartition(".")
    copied = (frame["method"] or "").startswith("Copied.")
    if name in ("Emitted", ".Run"):
        return
    module = frame["module"] or ""
    content = content or ("" if copied else "Program")
    expected = {"First": "/first/", "Second": "/second/", "Program": "/Loading.dll"}[content]
    if "/" in module and expected not in module and "/shared/" not in module:  # else it was loaded from bytes
        wrong("module", name, module)
    if frame["line"] is None:
        findings.add(f"frames without a line: {'copied' if copied else 'Program'}")
        return
    if os.path.basename(frame["file"]) != content + ".cs":
        wrong("file", name, frame["file"], module)
        return
    simple = (callee or "").rpartition(".")[2]
    fault = process.sources[content + ".cs"].fault(method, simple, frame["line"])
    if fault and fault.startswith("does not") and frame["tier"] != "Tier0":
        findings.add("frames on another line of the method, in optimized code")
    elif fault:
        wrong("line", name, frame["line"], fault, frame["ip"], "funclet", frame["funclet"])
    else:
        findings.add(f"frames with the right line: {'copied' if copied else 'Program'}")


def judge_names(process, frames, known, findings):
    """Each frame of compiled code against the record of its address."""
    process.records.update()
    lacking = [frame for frame in frames if frame["kind"] == "jit"]
    deadline = time.monotonic() + LATEST
    while True:
        unknown = []
        for frame in lacking:
            at = int(frame["ip"], 16)
            candidates = process.records.at(at, known) + process.records.at(at - 1, known)
            if any(not Name.parse(record[3]).fault(frame["method"]) and int(frame["code_start"], 16) == record[1] for record in candidates):
                findings.add("frames named as in the jitdump")
            else:
                unknown.append((frame, candidates))
        if not unknown or time.monotonic() > deadline:
            break
        time.sleep(0.1)
        process.records.update()
        lacking = [frame for frame, _ in unknown]
    for frame, candidates in unknown:
        if frame["error"]:
            findings.add("marked: name " + re.sub(r"0x[0-9a-f]+|\d+", "N", frame["error"])[:100])
        elif candidates:
            findings.add("WRONG: name", json.dumps(frame), candidates[:3])
        else:
            findings.add("frames in no record: " + (frame["method"] or "")[:60])


# ---- Addresses ----

def judge_addresses(process, asker, draw, findings):
    """Addresses of records, which may have been freed since: whoever is named has had the address."""
    process.records.update()
    known = process.records.count
    if not known:
        return
    near = process.records.all[-2000:]
    chosen = [draw.choice(near if draw.random() < 0.7 else process.records.all) for _ in range(ADDRESSES)]
    asked = [record[1] + draw.randrange(max(record[2], 1)) for record in chosen]
    answers = asker.ask(asked)
    process.records.update()
    late = []
    for address, answer in zip(asked, answers, strict=True):
        if answer["status"] != "managed":
            findings.add(f"addresses: {answer['status']}")
        elif not is_record(process, address, answer, known):
            late.append((address, answer))
        else:
            findings.add("addresses named as in the jitdump")
    if late:
        time.sleep(0.5)
        process.records.update()
    for address, answer in late:
        if is_record(process, address, answer, known):
            findings.add("addresses named as in a later record")
        elif answer["error"] or answer["module_verified"] is False:
            findings.add("marked: address")
        else:
            findings.add("WRONG: address", json.dumps(answer), process.records.at(address, known)[:3])


def is_record(process, address, answer, known):
    candidates = process.records.at(address, known)
    if not candidates:
        return Name.parse(answer["method"] or "") is None and not answer["code_start"]
    return any(not Name.parse(record[3]).fault(answer["method"]) for record in candidates)


def judge_listing(process, findings):
    """Every method that is listed while the process is stopped is in the last record of its code, or in a later one."""
    process.records.update()
    known = process.records.count
    done = subprocess.run([TOOL, "methods", "--json", "--stop", str(process.pid)], capture_output=True, text=True, timeout=TIMEOUT,
                          check=False)
    listed = [json.loads(line) for line in done.stdout.splitlines()]
    time.sleep(0.5)
    process.records.update()
    findings.add(f"listings, exit {done.returncode}")
    for method in listed:
        start = int(method["code_start"], 16)
        candidates = [record for record in process.records.at(start, known) if record[1] == start]
        if any(not Name.parse(record[3]).fault(method["method"]) for record in candidates):
            findings.add("listed as in the jitdump")
        elif method.get("error"):
            findings.add("marked: listed")
        elif candidates:
            findings.add("WRONG: listed", json.dumps(method), candidates[:3])
        else:
            findings.add(f"listed, in no record ({method['kind']})")


# ---- Runs ----

def run(work, runtime, stops, findings, draw):
    process = Process(work, runtime)
    asker = Asker(process.pid)
    try:
        for number in range(stops):
            time.sleep(draw.random() * 0.03)
            process.records.update()
            known = process.records.count
            done = subprocess.run([TOOL, "stack", "--json", str(process.pid)], capture_output=True, text=True, timeout=TIMEOUT,
                                  check=False)
            if process.process.poll() is not None:
                findings.add("WRONG: the process ended", pathlib.Path(process.work, "stderr").read_text()[-500:])
                return
            judge_stack(process, done, known, findings)
            judge_addresses(process, asker, draw, findings)
            if number % LISTED_AT == 0:
                judge_listing(process, findings)
    finally:
        asker.close()
        process.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runtimes", nargs="*")
    parser.add_argument("--stops", type=int, default=STOPS)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    draw, good = random.Random(arguments.seed), True
    work = tempfile.mkdtemp(prefix="cdacq-moments-")
    try:
        for runtime in lab.runtimes(arguments.runtimes)[:None if arguments.runtimes else 1]:
            findings, start, left = Findings(), time.monotonic(), arguments.stops
            while left > 0:
                run(work, runtime, min(left, STOPS_OF_A_PROCESS), findings, draw)
                left -= STOPS_OF_A_PROCESS
            print(f"{runtime}: {arguments.stops} stops in {time.monotonic() - start:.0f} s")
            good &= findings.report()
    except lab.Skip as skip:
        print(f"skipped: {skip}")
        return 1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
