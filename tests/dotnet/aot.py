#!/usr/bin/env python3
"""Programs compiled by NativeAOT 11: names, lines, thread names, and the words with which they die.

Builds the program `aot`. A process of it that parks its threads is examined live, by cores of gdb, of createdump and
of the kernel, and without its debug file. Judges: its own stack traces, thread names and standard error; addr2line;
gdb for the offsets that the supplement has. Exit 77 (skipped) where dotnet or its packages are missing, unless
CDACQ_REQUIRE_DOTNET=1: then that is a failure.
"""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import lab

HERE = os.path.dirname(os.path.abspath(__file__))
SUPPLEMENT = os.path.join(HERE, "../../descriptors/nativeaot-11.0-linux-x64.json")
DEATHS = """Nested OnThread NullReference Generic Aggregate Async Rethrown Messages NoMessage StaticConstructor FailFast
FailFastInCatch FailFastLong FailFastNothing""".split()
SILENT = ["StackOverflow", "NativeAbort", "NativeAbortInCatch", "NativeFault"]  # the runtime writes nothing
COMPUTED = ["Overriding"]  # code of the program makes the text: the report has to say that its own may differ
REFUSED = [("perfmap",), ("jitdump", "-o", "/dev/null"), ("elf", "-o", "/dev/null"), ("verify", "/dev/null")]
CDACQ = os.environ.get("CDACQ_TOOL", "cdacq")
PARKED = "Aot.Parking.Park(String)"


def build(work):
    command = ["dotnet", "build", os.path.join(HERE, "aot"), "-c", "Release", "-t:Compile;LinkNative", "--nologo", "-v",
               "q", f"-p:NativeOutputPath={work}/out/", f"-p:BaseIntermediateOutputPath={work}/obj/"]
    try:
        built = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise lab.Skip("no dotnet") from None
    if built.returncode:
        raise lab.Skip("cannot build: " + built.stdout[-1000:])
    return os.path.join(work, "out", "Aot")


def run(*arguments):
    """The exit code and both outputs of the tool."""
    done = subprocess.run([CDACQ, *arguments], capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout, done.stderr


def tool(*arguments):
    return run(*arguments)[1]


# ---- Deaths ----

def texts(value):
    """All strings called `text` or `last_words` in a report."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name in ("text", "last_words") and isinstance(item, str):
                yield item
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def death(program, way, work):
    for old in glob.glob(os.path.join(work, "core*")):
        os.remove(old)
    process = subprocess.run([program, way], cwd=work, capture_output=True, preexec_fn=lab.allow_cores, check=False)
    cores = glob.glob(os.path.join(work, "core*"))
    if not cores:
        raise lab.Skip("no cores of the kernel")
    report = json.loads(tool("report", "--json", cores[0]))
    words = process.stderr.decode().rstrip("\n")
    said = [text.rstrip("\n") for text in texts(report)]
    different = f"{way}: wrote {words!r}, got {said!r}"
    if way in DEATHS and words not in said:
        return different
    if way in SILENT and (words or any(text.startswith(("Unhandled", "Process terminated")) for text in said)):
        return different
    if way in COMPUTED and (words in said or "overrid" not in json.dumps(report).lower()):
        return different
    return None


# ---- Parked threads ----

class Parked:
    """A process of the program whose threads wait, with what it says of them."""

    def __init__(self, program, work):
        self.program, self.work = program, work
        self.process = subprocess.Popen([program, "park"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=work,
                                        text=True, preexec_fn=lab.allow_cores)
        self.threads = {}  # by their kernel ids: name, managed id, methods of the stack trace
        for line in self.process.stdout:
            words = line.split()
            if line.startswith("THREAD "):
                name = line[len("THREAD "):].rstrip("\n")
            elif line.startswith("   at "):
                self.threads[tid][2].append(line[len("   at "):].rstrip("\n"))
            elif line == "READY\n":
                break
            elif words:
                tid = int(words[0])
                self.threads[tid] = (name, int(words[1]), [])
        self.pid = str(self.process.pid)
        with open(f"/proc/{self.pid}/maps", encoding="utf-8") as maps:
            self.base = next(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith("/Aot"))
        self.names = self.kernel_names()

    def kernel_names(self):
        names = {}
        for tid in map(int, os.listdir(f"/proc/{self.pid}/task")):
            with open(f"/proc/{self.pid}/task/{tid}/comm", encoding="utf-8") as comm:
                names[tid] = comm.read().rstrip("\n")
        return names

    def close(self):
        self.process.kill()
        self.process.wait()

    def gcore(self):
        prefix = os.path.join(self.work, "gdb")
        lab.run(["gcore", "-o", prefix, self.pid])
        return f"{prefix}.{self.pid}"

    def createdump(self):
        """By that of CoreCLR: NativeAOT has none of its own, and calls the one that lies beside the program."""
        path = os.path.join(self.work, "createdump.core")
        framework, _ = lab.framework_of(self.work, lab.NEWEST[11])
        lab.run([os.path.join(framework, "createdump"), "--full", "-f", path, self.pid])
        return path

    def kernel_core(self):
        """Ends the process."""
        os.kill(self.process.pid, signal.SIGSYS)
        self.process.wait()
        return next(iter(glob.glob(os.path.join(self.work, "core*"))), None)


def frames_of(target, *options):
    """The frames of each thread, by its kernel id."""
    threads = {}
    for line in tool("stack", "--json", "--names", "il", *options, target).splitlines():
        frame = json.loads(line)
        threads.setdefault(frame["tid"], []).append(frame)
    return threads


def compare_traces(parked, threads):
    """The methods of each stack, from where its thread keeps its own trace, which goes on from a handler to its method."""
    for tid, (name, _, words) in parked.threads.items():
        methods = [frame["method"] for frame in threads.get(tid, []) if frame.get("kind") == "aot"]
        ours = methods[methods.index(PARKED):] if PARKED in methods else methods
        if name == "in a handler":
            ours = ours[:2] + ours[-2:]
        if ours != words:
            yield f"{name}: its trace is {words}, ours {ours}"


def compare_names(parked, text, is_live):
    """The whole name that the program gave a thread; otherwise the kernel's, of a process. A thread that has just started
    may still have the name of its creator, and get its own meanwhile."""
    later = parked.kernel_names() if is_live else {}
    for tid, comm in parked.names.items():
        name = parked.threads[tid][0] if tid in parked.threads else comm
        if name == "async":  # a thread of the pool
            name = comm
        shown = re.search(rf'\b{tid}(?: "(.*?)")?[,: ]', text)
        must_be_named = is_live or tid in parked.threads
        if not shown and tid in parked.threads:  # others of the pool may have ended
            yield f"thread {tid}, {name}, is missing"
        elif shown and shown[1] not in (name, later.get(tid, name)) and (shown[1] or must_be_named):
            yield f"thread {tid} is called {shown[1]}, not {name}"
    parked.names |= later


def compare_lines(parked, threads):
    """Returns problems, and how many frames have lines."""
    managed = [frame for frames in threads.values() for frame in frames if frame.get("kind") == "aot" and frame["line"]]
    by_address = {hex(int(frame["ip"], 16) - 1 - parked.base): frame for frame in managed}
    said = lab.run(["addr2line", "-e", parked.program + ".dbg", *by_address]).splitlines()
    pairs = [(f"{frame['file']}:{frame['line']}", line) for frame, line in zip(by_address.values(), said)]
    return [f"{ours}, addr2line says {line}" for ours, line in pairs if line.split(" ")[0] != ours], len(managed)


def examine(parked, target, kind):
    """Everything about the parked threads in a target."""
    code, info, _ = run("info", target)
    threads = frames_of(target)
    wrong, lines = compare_lines(parked, threads)
    problems = [] if code == 0 and ".NET NativeAOT 11.0." in info else [f"info: exit {code}, {info}"]
    problems += [*compare_traces(parked, threads), *wrong]
    problems += compare_names(parked, tool("stack", target), target == parked.pid)
    if lines < 50:
        problems.append(f"{lines} managed frames have lines")
    guesses = sum(frame["by"] == "guess" for frames in threads.values() for frame in frames)
    if guesses:
        problems.append(f"{guesses} frames are guesses")
    code, report, _ = run("report", "--json", target)
    waits = json.loads(report)["waits_problem"] if code in (0, 1) else None
    if waits != "locks and waits of NativeAOT programs are not read":
        problems.append(f"report: exit {code}, {report[:300]}")
    print(f"{kind}: {len(parked.threads)} traces, {lines} lines, {len(problems)} problems")
    return [f"{kind}: {problem}" for problem in problems]


def refused(target):
    """Commands that have no answer: one line, and exit 2."""
    for command, *arguments in REFUSED:
        code, _, errors = run(command, target, *arguments)
        if code != 2 or not re.fullmatch(r"cdacq: a NativeAOT program compiles no code at run time: [^\n]*\n", errors):
            yield f"{command}: exit {code}, {errors!r}"
    with tempfile.TemporaryDirectory() as folder:
        code, _, errors = run("symfs", target, os.path.join(folder, "new"))
        if code != 2 or errors.count("\n") != 1:
            yield f"symfs: exit {code}, {errors!r}"


def without_debug_file(program, work):
    """Methods keep the names that are in the program itself, and have no lines."""
    stripped = os.path.join(work, "stripped")
    os.mkdir(stripped)
    parked = Parked(shutil.copy(program, stripped), stripped)
    try:
        threads = frames_of(parked.pid)
        problems = list(compare_traces(parked, threads))
        if any(frame.get("line") for frames in threads.values() for frame in frames):
            problems.append("there are lines")
        ip = next(frame["ip"] for frames in threads.values() for frame in frames if frame.get("method") == PARKED)
        code, _, errors = run("ip2method", parked.pid, ip)
        if code or errors:
            problems.append(f"ip2method: exit {code}, {errors}")
    finally:
        parked.close()
    print(f"without a debug file: {len(parked.threads)} traces, {len(problems)} problems")
    return [f"without a debug file: {problem}" for problem in problems]


def park(program, work):
    folder = os.path.join(work, "parked")
    os.mkdir(folder)
    parked = Parked(program, folder)
    try:
        problems = examine(parked, parked.pid, "process") + list(refused(parked.pid))
        problems += examine(parked, parked.gcore(), "gcore")
        problems += examine(parked, parked.createdump(), "createdump")
        core = parked.kernel_core()
        problems += examine(parked, core, "kernel") + list(refused(core)) if core else []
    finally:
        parked.close()
    shutil.rmtree(folder)
    return problems


# ---- The supplement ----

def offsets(program):
    """The offsets of managed types in the supplement, against the debug information of a program that ILC compiled."""
    with open(SUPPLEMENT, encoding="utf-8") as file:
        types = json.load(file)["types"]
    found, problems = 0, []
    for type_name, fields in types.items():
        full = type_name if "." in type_name else {"Exception": "System.Exception"}.get(type_name)
        if not full:
            continue
        print_type = "ptype /o S_P_CoreLib_" + full.replace(".", "_")
        done = subprocess.run(["gdb", "-batch", "-ex", print_type, program + ".dbg"], capture_output=True, text=True,
                              check=False)
        real, outer = {}, []  # a field of a value type follows its own fields
        for line in done.stdout.splitlines():
            at, name = re.match(r"/\*\s+(\d+)\s+\|", line), re.search(r"([\w<>]+);$", line)
            if line.endswith("{"):
                outer.append(at and int(at[1]))
            elif name and (at or line.lstrip().startswith("}")):
                real[name[1]] = int(at[1]) if at else outer.pop()
        for field, value in fields.items() if real else ():
            found += 1
            if real.get(field) != (value[0] if isinstance(value, list) else value):
                problems.append(f"{type_name}.{field}: the supplement says {value}, gdb {real.get(field)}")
    print(f"offsets: {found} compared, {len(problems)} problems")
    return problems if found > 15 else [*problems, f"{found} offsets are described"]


def main():
    lab.refuse_piped_cores()
    with tempfile.TemporaryDirectory(prefix="cdacq-aot-") as work:
        program = build(work)
        problems = park(program, work) + without_debug_file(program, work) + offsets(program)
        ways = DEATHS + SILENT + COMPUTED
        problems += [problem for way in ways if (problem := death(program, way, work))]
    for problem in problems:
        print(problem)
    print(f"{len(ways)} deaths, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except lab.Skip as skip:
        print(f"skipped: {skip}")
        sys.exit(1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else 77)
