#!/usr/bin/env python3
"""The tests on real runtimes: for each, a C# target is built and run, and every record of its jitdump is asked of the
running process, of cores of every kind, of a snapshot, and of cores whose files were moved away.

    run.py [RUNTIME...]    words of lab.runtimes(), or
                           "hot-cold" or "composite": images of that kind, on the installed runtime and .NET 11;
                           "single-file": a program with its runtime, the installed one's and .NET 11;
                           "other-times": files that are not of the time of the core, or given up

Exit 77 (skipped) where dotnet or gdb is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure.
"""

import functools
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

import dac
import debug_info
import judge
import lab
import perf_files
import precodes
import random_ips
import tamper
from core_memory import CoreMemory
from jitdump import live_records, read_loads, read_released
from runtime_names import arguments_fault
from r2r_image import gc_code_length

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
LIBRARY = os.environ.get("CDACQ_LIBRARY") or os.path.join(os.path.dirname(os.path.abspath(TOOL)), "libcdacq.so")
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(lab.HERE)), "python")
AGREEMENT = os.environ.get("CDACQ_AGREEMENT", "test_agreement")
ENTRY_POINTS = os.environ.get("CDACQ_ENTRY_POINTS", "entry_points")
KINDS = ["hot-cold", "composite", "single-file", "other-times"]
GC_VERSIONS = {8: 2, 9: 3, 10: 4, 11: 5}  # of GC info, by the runtime's major version
MISSING_RANGE = re.compile(r"RangeSection\w*: no memory at 0x([0-9a-f]+)$")
MOST_LACKING = 4  # frames of a small core: seen were two in two cores of hundreds
LEAST_METHODS = 1000  # of the target, JIT and ReadyToRun together: fewer means that the jitdump is not whole


def major_of(services):
    """The runtime's major version, by the folder of its files."""
    return int(os.path.basename(os.path.dirname(services)).split(".")[0])


class Run:
    """One runtime's target, and what became of the tests on it."""

    def __init__(self, work, loads, live):
        self.work, self.loads, self.live = work, loads, live
        self.results = []

    def note(self, label, passed, text=""):
        print(f"  {'ok  ' if passed else 'FAIL'} {label}{': ' if text else ''}{text}", flush=True)
        self.results.append(passed)

    def judge(self, label, target):
        """A target against all records."""
        tally = judge.Tally()
        judge.judge_inside(TOOL, target, judge.as_expected(self.live), tally)
        judge.judge_outside(TOOL, target, self.loads, self.live, tally)
        if tally.has_failed:
            tally.report()
        self.note(label, not tally.has_failed, f"{3 * len(self.live)} addresses in {len(self.live)} methods")

    def judge_names(self, core, services):
        """--names il is the text of the runtime's own files, --names sos that of its debugger services."""
        tally = judge.Tally()
        expected = judge.as_expected(self.live)
        names = judge.runtime_names(expected)
        judge.judge_spelling(TOOL, core, "il", names, tally)
        listed = judge.read_perf_map(os.path.join(self.work, "perf.map"), expected)
        judge.judge_spelling(TOOL, core, "il", listed, tally)
        asked = dict(zip(names, dac.names(services, core, names)))
        judge.judge_spelling(TOOL, core, "sos", {ip: name for ip, name in asked.items() if name}, tally)
        if tally.has_failed:
            tally.report()
        counts = tally.counts["il: equal"], tally.counts["sos: equal"]
        enough = len(listed) > LEAST_METHODS // 2 and counts[1] > LEAST_METHODS
        self.note("names as the runtime spells them", enough and not tally.has_failed,
                  f"{counts[0]} il ({len(listed)} of a perf map), {counts[1]} sos")

    def judge_arguments(self, label, core, least):
        """
        What methods are instantiated over, in C#, against the names that equal the debugger services'. Where these can
        be told, a name in C# lacks nothing.
        """
        ips = [one.address for one in judge.as_expected(self.live)]
        pairs = zip(judge.ask(TOOL, [core, "--names", "sos"], ips), judge.ask(TOOL, core, ips))
        pairs = [(sos, csharp) for sos, csharp in pairs if sos["method"] and csharp["method"]]
        faults = [(sos["method"], csharp["method"], arguments_fault(sos["method"], csharp["method"]))
                  for sos, csharp in pairs]
        lacking = [(csharp["method"], csharp["error"]) for _, csharp in pairs
                   if csharp["error"] and "has prepared the method" not in csharp["error"]]  # that is not of the name
        generic = [fault for fault in faults if fault[2] is not None]
        wrong = [fault for fault in generic if fault[2]] + lacking
        self.note(f"{label}: arguments of methods", len(generic) > least and not wrong,
                  f"{len(generic)} methods; {wrong[:3]}")

    def judge_tiers(self, core):
        """Of code that replaced other code the tier is told. (judge() has seen to it that no tier is wrong.)"""
        later = [one for one in judge.as_expected(self.live) if one.tier not in (None, "Tier0", "Optimized")]
        missing = [answer for answer in judge.ask(TOOL, core, [one.address for one in later]) if not answer["tier"]]
        self.note("tiers of recompiled methods", later and not missing, f"{len(missing)} of {len(later)} not told")

    def answers(self, target):
        """The raw lines for the middle of each method."""
        text = "".join(f"{load.address + load.size // 2:x}\n" for load in self.live)
        done = subprocess.run([TOOL, "ip2method", "--json", *target], input=text, capture_output=True, encoding="utf-8",
                              check=False)
        return done.stdout.splitlines()

    def judge_snapshot(self, core):
        """A snapshot of all methods must give the same answers as the core, to every question about them."""
        path = os.path.join(self.work, "snapshot.core")
        subprocess.run([TOOL, "snapshot", core, "-o", path], check=True, stdout=subprocess.DEVNULL)
        sizes = f"{os.path.getsize(path) >> 10} KiB of {os.path.getsize(core) >> 10}"
        self.note("snapshot", self.answers([core]) == self.answers([path]), sizes)

    def judge_listing(self, core):
        """`methods` lists every live JIT method once, with the record's start and size."""
        listing = subprocess.run([TOOL, "methods", "--json", core], capture_output=True, encoding="utf-8", check=True).stdout
        listed = {}
        for line in listing.splitlines():
            method = json.loads(line)
            listed.setdefault(int(method["code_start"], 16), []).append(method["code_size"])
        missing = [load for load in self.live if load.kind == "jit" and listed.get(load.address) != [load.size]]
        self.note("methods", not missing, f"{len(listed)} listed, {len(missing)} of the jitdump's missing or different")

    def judge_perf_files(self, label, target, pid):
        """What `perfmap` and `jitdump` write has all that the runtime's own files have."""
        tally = judge.Tally()
        try:
            with tempfile.TemporaryDirectory(dir=self.work) as folder:
                perf_files.judge_perf_map(TOOL, target, os.path.join(self.work, "perf.map"), self.live, folder, tally)
                perf_files.judge_jitdump(TOOL, target, pid, self.live, folder, tally)
        except perf_files.NotWritten as reason:
            tally.failed("all is written", reason)
        if tally.has_failed:
            tally.report()
        lines = tally.counts["perf map line"]
        codes = sum(tally.counts[f"jitdump, {kind}: code"] for kind in ("jit", "r2r", "r2r-cold"))
        tiers = tally.counts["jitdump, jit: with its tier"]
        self.note(f"perf map and jitdump of {label}", not tally.has_failed and lines > LEAST_METHODS // 2 and codes == len(self.live),
                  f"{lines} of the runtime's lines, {codes} of its records, {tiers} tiers")

    def judge_entry_points(self, core):
        """Precodes and stubs by the runtime's own structures and its jitdump."""
        counts = precodes.judge(TOOL, ENTRY_POINTS, core, os.path.join(self.work, "jitdump"))
        wrong = [f"{count} {label}" for label, count in counts.items() if label.startswith("FAILED")]
        back = counts["temporary entry point leads back"]
        self.note("entry points", not wrong and back >= LEAST_METHODS, f"{back} methods; {', '.join(wrong)}".rstrip("; "))

    def judge_agreement(self, cores):
        """Every way to ask gives one answer, from cores of every kind."""
        for label, core in cores.items():
            environment = {**os.environ, "CK_RUN_CASE": "given", "CDACQ_AGREEMENT_CORES": core,
                           "CDACQ_AGREEMENT_COUNT": os.environ.get("CDACQ_AGREEMENT_COUNT", "20000")}
            done = subprocess.run([AGREEMENT], env=environment, capture_output=True, encoding="utf-8", errors="replace",
                                  check=False)
            self.note(f"one answer from {label}", done.returncode == 0, (done.stderr or done.stdout)[:400])

    def judge_records(self, path):
        """`records` reads what the other reader reads."""
        done = subprocess.run([TOOL, "records", "--json", path], capture_output=True, encoding="utf-8", check=True)
        found = [(record["timestamp"], int(record["code_addr"], 16), record["code_size"], record["name"])
                 for record in map(json.loads, done.stdout.splitlines()) if record["type"] == "load"]
        expected = [(load.timestamp, load.address, load.size, load.name.replace("\\", "\\\\")) for load in self.loads]
        self.note("records", found == expected, f"{len(found)} of {len(expected)}")

    def judge_verify(self, label, target, tampered=False):
        """The process's own files contradict nothing, and what is tampered with is found."""
        files = os.path.join(self.work, "jitdump"), os.path.join(self.work, "perf.map")
        for what, fault, text in tamper.judge(TOOL, target, *files, self.live, tampered):
            self.note(f"{label}: {what}", not fault, f"{text}{': ' if fault else ''}{fault or ''}")

    def judge_inspect(self, core, gc_version):
        """The sizes that `inspect` tells are the record's, nothing is left out, and its GC info begins with the length of
        the method's code: hot and cold, which the jitdump records apart."""
        memory, wrong, versions = CoreMemory(core), [], set()
        inspected = self.inspect(core, [load.address + load.size // 2 for load in self.live])
        for load, found in zip(self.live, inspected, strict=True):
            cold = load.kind == "r2r-cold"
            size = found["hot_size"] + (found["cold_size"] or 0)
            head = memory.at(int(found["gc_info"] or "0", 16), 10)
            versions.add(found["gc_version"])
            if (found["errors"] or found["cold_size" if cold else "hot_size"] != load.size or not head or
                    gc_code_length(head, "x64", found["gc_version"]) != size):
                wrong.append(found["ip"])
        self.note("inspect", not wrong and versions == {gc_version},
                  f"{len(self.live)} methods, GC info version {versions} {' '.join(wrong[:5])}")

    def judge_code(self, core, services):
        """Starts, sizes, GC info and exception clauses are what the runtime's debugger services say; every handler and
        every filter is a funclet; a method's debug info is a blob whose parts fill it."""
        ips = [load.address + load.size // 2 for load in self.live]
        inspected, told = self.inspect(core, ips), dac.code(services, core, ips)
        keys = {"method_desc": "method_desc", "code_start": "code_start", "hot_size": "hot_size", "cold_start": "cold_start",
                "cold_size": "cold_size", "gc_info": "gc_info", "jit_type": "jit_type"}
        wrong, clauses, funclets = [], 0, {}
        for ip, found, code in zip(ips, inspected, told, strict=True):
            mine = {key: int(found[key] or 0, 16) if isinstance(found[key], str) else found[key] or 0 for key in keys}
            mine["clauses"] = [{key: value for key, value in clause.items() if key not in ("flags", "is_catch_all")} for clause in found["exception_clauses"]]
            if code is None or mine != {**{key: code[value] for key, value in keys.items()}, "clauses": code["clauses"]}:
                wrong.append(f"{ip:x}")
            clauses += len(mine["clauses"])
            for clause in mine["clauses"]:
                for key in ("handler_start", "filter_offset"):
                    if not clause["duplicated"] and clause[key] is not None and clause[key] < mine["hot_size"]:  # in a cold part: elsewhere
                        funclets[mine["code_start"] + clause[key]] = key == "filter_offset"
        for found in self.inspect(core, funclets):
            if not (found["is_funclet"] and found["funclet_start"] == found["ip"] and
                    found["is_filter_funclet"] == funclets[int(found["ip"], 16)]):
                wrong.append(found["ip"])
        self.note("code as the debugger services know it", not wrong and clauses > 0,
                  f"{len(ips)} methods, {clauses} clauses, {len(funclets)} funclets {' '.join(wrong[:5])}")
        self.judge_debug_info(core, inspected, major_of(services))

    def judge_random_ips(self, core, services):
        counts = random_ips.judge(TOOL, services, core, self.loads, read_released(os.path.join(self.work, "released.txt")))
        failed = any(kind.startswith("FAILED") for kind in counts)
        self.note("random addresses", not failed, ", ".join(f"{number} {kind}" for kind, number in counts.most_common()))

    def judge_debug_info(self, core, inspected, major):
        memory, wrong, filled = CoreMemory(core), [], 0
        for found in inspected:
            address = int(found["debug_info"] or "0", 16)
            data = address and memory.up_to(address, 4 << 20)
            if data:
                fills = debug_info.bounds_fill_their_place(data, found["has_flag_byte"], major)
                filled += bool(fills)
                if fills is False:
                    wrong.append(found["ip"])
        self.note("debug info", not wrong and filled > LEAST_METHODS, f"{filled} blobs {' '.join(wrong[:5])}")

    def inspect(self, core, ips):
        done = subprocess.run([TOOL, "inspect", "--json", core], input="".join(f"{ip:x}\n" for ip in ips),
                              capture_output=True, encoding="utf-8", check=False)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def judge_stop(self, pid):
        """--stop answers the same, and leaves the process running."""
        ip = f"{self.live[0].address:x}"
        stopped, running = (subprocess.run([TOOL, "ip2method", *options, str(pid), ip], capture_output=True,
                                           encoding="utf-8", check=False) for options in (["--stop"], []))
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            state = next(line.split()[1] for line in status if line.startswith("State:"))
        good = stopped.returncode == 0 and stopped.stdout == running.stdout and state in "SR"
        self.note("stop", good, f"then state {state}")

    def judge_ps(self, target):
        """The process is in the list, with the runtime that the folder of its libcoreclr.so names."""
        threads = f"/proc/{target.pid}/task"
        for _ in range(20):  # they come and go
            before = len(os.listdir(threads))
            done = subprocess.run([TOOL, "ps", "--json"], capture_output=True, encoding="utf-8", check=False)
            if before == len(os.listdir(threads)):
                break
        row = {row["pid"]: row for row in map(json.loads, done.stdout.splitlines())}.get(target.pid, {})
        folder = target.runtime_directory()
        good = (row.get("readable") and row["runtime_path"] == os.path.join(folder, "libcoreclr.so") and
                row["threads"] == before and row["runtime"] == os.path.basename(os.path.realpath(folder)).split("-")[0])
        self.note("ps", good, f"{row.get('runtime')}, {row.get('threads')} threads")

    def judge_stacks(self, label, target):
        """Every frame is native or named, and parked threads are found in the target's own methods. A small core may
        rightly lack what a name rests on: the string in the runtime's heap that names a dynamic method or,
        seldom, of one or two frames, part of the map of code ranges. Then the answer says so."""
        done = subprocess.run([TOOL, "stack", "--json", target], capture_output=True, encoding="utf-8", check=False)
        frames = [json.loads(line) for line in done.stdout.splitlines()]
        nameless = [frame for frame in frames if frame["status"] == "error" or
                    (frame["status"] == "managed" and not frame["method"] and "string: no memory" not in frame["error"])]
        lacking = []
        if label in ("mini", "triage"):
            core = CoreMemory(target)
            lacking = [frame for frame in nameless if (missing := MISSING_RANGE.match(frame["error"] or "")) and
                       core.at(int(missing[1], 16), 8) is None]
        own = [frame for frame in frames if (frame["method"] or "").startswith("Demo.Parked")]
        self.note(f"stacks of {label}", len(nameless) == len(lacking) <= MOST_LACKING and len(own) >= 5,
                  f"{len(frames)} frames, {len(own)} of the target's, {len(nameless)} managed without a name"
                  + "".join(f"; TID {frame['tid']} #{frame['frame']} {frame['ip']} {frame['error']}" for frame in nameless[:4]))

    def frames(self, target):
        """The frames as dictionaries, apart from their source: a PDB is in no core."""
        done = subprocess.run([TOOL, "stack", "--json", target], capture_output=True, encoding="utf-8", check=False)
        return [{key: value for key, value in json.loads(line).items() if key not in ("file", "line", "column", "source_url")}
                for line in done.stdout.splitlines()]

    def judge_stack_snapshot(self, core):
        """A snapshot with stacks must show the same frames as the core, and in judge_moved without the process's
        files."""
        self.snapshot = os.path.join(self.work, "stacks.core")
        subprocess.run([TOOL, "snapshot", "--stacks", core, "-o", self.snapshot], check=True, stdout=subprocess.DEVNULL)
        self.stacks = self.frames(core)
        self.note("stacks of a snapshot", len(self.stacks) > 100 and self.frames(self.snapshot) == self.stacks,
                  f"{len(self.stacks)} frames, {os.path.getsize(self.snapshot) >> 10} KiB of {os.path.getsize(core) >> 10}")

    def judge_other_build(self, core):
        """Where the program's assembly was is another one of its length: no name comes from it."""
        listed = [method["module"] for method in random_ips.answers(TOOL, "methods", core, ())]
        program = next(module for module in listed if module and module.endswith("/Demo.dll"))
        library = next(module for module in listed if module and module.endswith("/System.Private.CoreLib.dll"))
        length = os.path.getsize(program)
        donors = [entry for entry in os.scandir(os.path.dirname(library)) if entry.name.startswith("System.") and
                  entry.name.endswith(".dll") and entry.stat().st_size <= length]
        with open(max(donors, key=lambda entry: entry.stat().st_size).path, "rb") as file:
            other = file.read()
        root = os.path.join(self.work, "other-build")
        os.makedirs(root + os.path.dirname(program))
        with open(root + program, "wb") as file:
            file.write(other + bytes(length - len(other)))
        of_program = [method for method in random_ips.answers(TOOL, "methods", core, (), "--sysroot", root)
                      if method["module"] == program]
        named = [method["method"] for method in of_program if method["method"]]
        told = sum("it is another build" in (method["error"] or "") for method in of_program)
        self.note("another build of the program", not named and told == len(of_program) > 100,
                  f"{told} of {len(of_program)} methods say so, {len(named)} named: {named[:3]}")

    def judge_moved(self, cores):
        """The files are somewhere else: below another root, or in one heap."""
        root = os.path.join(self.work, "elsewhere")
        moved = root + self.work
        os.makedirs(moved)
        for name in os.listdir(self.work):
            if name.startswith(("dotnet-", "app-")) and not name.endswith("-obj"):
                shutil.move(os.path.join(self.work, name), os.path.join(moved, name))
        def without_symbols(frames):
            return [{**frame, "native": frame["native"] and frame["native"]["module"]} for frame in frames]
        self.note("stacks of a snapshot without files",
                  without_symbols(self.frames(self.snapshot)) == without_symbols(self.stacks))
        for label, core in cores.items():
            self.judge(f"{label}, files below --sysroot", [core, "--sysroot", root])
            self.judge(f"{label}, files somewhere below --module-path", [core, "--module-path", moved])


    def judge_fetching(self, core, assemblies):
        """The Python package reports the fetch of each file, with bytes, and its end."""
        code = ("import cdacq, sys; seen = []; note = lambda *event: seen.append(event); "
                "cdacq.open(sys.argv[1], debuginfod=True, module_paths=sys.argv[2], fetching=note).close(); "
                "ends = [i for i, event in enumerate(seen) if event[0] is None]; "
                "named = {need.path for need, *_ in seen if need}; "
                "ok = all(done <= total for _, done, total in seen) and seen[-1][0] is None; "
                "print(any(path.endswith('libcoreclr.so') for path in named) and len(ends) >= len(named) and ok)")
        environment = {"PYTHONPATH": PACKAGE, "CDACQ_LIBRARY": LIBRARY,
                       "DEBUGINFOD_CACHE_PATH": os.path.join(self.work, "debuginfod-other-cache")}
        told = subprocess.run([sys.executable, "-c", code, core, assemblies], capture_output=True, text=True,
                              env={**os.environ, **environment}, check=False)
        self.note(f"the fetches are reported {told.stderr}", told.stdout.strip() == "True")

    def judge_debuginfod(self, core):
        """ELF files from a debuginfod server on loopback alone, assemblies from a folder. After judge_moved."""
        if not shutil.which("debuginfod"):
            raise lab.Skip("debuginfod is not installed")
        moved = os.path.join(self.work, "elsewhere")
        assemblies = os.path.join(self.work, "assemblies")
        os.makedirs(assemblies)
        for folder, _, names in os.walk(moved):
            for name in names:
                if name.endswith(".dll"):
                    shutil.copy(os.path.join(folder, name), assemblies)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = {key: value for key, value in os.environ.items() if key != "DEBUGINFOD_URLS"}
        server = subprocess.Popen(["debuginfod", "-d", os.path.join(self.work, "debuginfod.sqlite"), "-p", str(port), "-F", moved],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        try:
            for line in server.stdout:
                if "groomed" in line or "scanned=" in line and "scanned=0" not in line:
                    break
            threading.Thread(target=server.stdout.read, daemon=True).start()
            os.environ["DEBUGINFOD_URLS"] = f"http://127.0.0.1:{port}"
            os.environ["DEBUGINFOD_CACHE_PATH"] = os.path.join(self.work, "debuginfod-cache")
            options = [core, "--module-path", assemblies]
            silent = subprocess.run([TOOL, "info", *options], capture_output=True, check=False)
            self.note("nothing is asked of a server without --debuginfod", silent.returncode == 2)
            self.judge("kernel, ELF files from debuginfod", [*options, "--debuginfod"])
            self.judge_fetching(core, assemblies)
        finally:
            server.kill()
            server.wait()

    def judge_symbol_server(self, core):
        """Files from a server of the folder that `bundle` makes, and of nothing else. After judge_moved. The kernel's core
        has no headers of an assembly without compiled code, such as the program's, and so no key of it."""
        store, cache = (os.path.join(self.work, name) for name in ("store", "symbol-cache"))
        subprocess.run([TOOL, "bundle", core, store, "--sysroot", os.path.join(self.work, "elsewhere")], check=False,
                       stdout=subprocess.DEVNULL)
        asked = []

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                asked.append(self.path)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=store))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            options = ["--symbol-server", f"http://127.0.0.1:{server.server_port}", "--symbol-cache", cache]
            done = subprocess.run([TOOL, "stack", "--json", core, *options], capture_output=True, check=False)
        finally:
            server.shutdown()
            server.server_close()
        frames = [json.loads(line) for line in done.stdout.splitlines()]
        kept = [name for _, _, names in os.walk(cache) for name in names]
        self.note("modules from a symbol server", len(kept) > 1 and any(frame["method"] for frame in frames),
                  f"{len(kept)} files, {sum(frame['method'] is not None for frame in frames)} of {len(frames)} frames")
        self.note("symbols are asked for", any(path.startswith("/_.debug/elf-buildid-sym-") for path in asked))
        first = len(asked)
        again = subprocess.run([TOOL, "stack", "--json", core, *options], capture_output=True, check=False)
        self.note("files are fetched once", again.stdout == done.stdout and len(asked) == first, f"{len(kept)} files")


def test_runtime(work, runtime):
    """All tests on one runtime; fewer kinds of cores of lines before the newest. Returns the list of their results."""
    every = bool(sys.argv[1:]) or lab.is_newest(runtime)
    with lab.running_target(work, runtime=runtime) as target:
        target.save_records()
        loads = read_loads(os.path.join(work, "jitdump"))
        live = live_records(loads, read_released(os.path.join(work, "released.txt")))
        if len(live) < LEAST_METHODS:
            raise lab.LabError(f"the jitdump has {len(live)} methods: was it cut?")
        run = Run(work, loads, live)
        run.judge_records(os.path.join(work, "jitdump"))
        services = os.path.join(target.runtime_directory(), "libmscordaccore.so")
        run.judge("process", str(target.pid))
        run.judge_perf_files("the process", str(target.pid), target.pid)
        run.judge_verify("process", str(target.pid))
        run.judge_stop(target.pid)
        run.judge_ps(target)
        run.judge_stacks("the process", str(target.pid))
        cores = {"createdump full": target.createdump("full")}
        if every:
            cores |= {"createdump heap": target.createdump("heap"), "gcore": target.gcore()}
        minis = {kind: target.createdump(kind) for kind in (["mini", "triage"] if every else ["mini"])}
        try:
            cores["kernel"] = target.kernel_core()
        except lab.Skip as reason:
            print(f"  no kernel core: {reason}")
    for label, core in cores.items():
        run.judge(label, core)
    for label, core in {**cores, **minis}.items():
        run.judge_stacks(label, core)
    run.judge_agreement({**cores, **minis})
    run.judge_snapshot(cores["createdump full"])
    run.judge_stack_snapshot(cores["createdump full"])
    run.judge_listing(cores["createdump full"])
    for label in cores.keys() & {"createdump full", "createdump heap"}:
        run.judge_perf_files(label, cores[label], target.pid)
    run.judge_entry_points(cores["createdump full"])
    for label, core in cores.items():
        run.judge_verify(label, core, tampered=label == "createdump full")
    run.judge_names(cores["createdump full"], services)
    run.judge_code(cores["createdump full"], services)
    run.judge_random_ips(cores["createdump full"], services)
    run.judge_inspect(cores["createdump full"], GC_VERSIONS[major_of(services)])
    if not runtime.startswith("8."):
        run.judge_tiers(cores["createdump full"])
    run.judge_arguments("createdump full", cores["createdump full"], 100)
    for label, core in minis.items():
        run.judge_arguments(label, core, 20)
    if every:
        run.judge_other_build(cores["gcore"])
    if runtime != "installed":  # the files of that one stay where they are
        run.judge_moved({label: core for label, core in cores.items() if label != "createdump full"})
        if runtime.startswith("10.") and "kernel" in cores:
            run.judge_debuginfod(cores["kernel"])
            run.judge_symbol_server(cores["kernel"])
    return run.results


def test_images(work, runtime, kind):
    """A runtime with images of another kind than it ships. On .NET 11, the runtime suspends the async methods in them."""
    def prepare(app):
        lab.compile_ahead(work, app, runtime, composite=kind == "composite")
    with lab.running_target(work, runtime=runtime, prepare=prepare) as target:
        target.save_records()
        loads = read_loads(os.path.join(work, "jitdump"))
        run = Run(work, loads, live_records(loads, read_released(os.path.join(work, "released.txt"))))
        services = os.path.join(target.runtime_directory(), "libmscordaccore.so")
        core = target.createdump("full")
        gcore = target.gcore()
    cold = sum(load.kind == "r2r-cold" for load in run.live)
    if kind == "hot-cold":
        run.note("there is cold code", cold > 0, f"{cold} records")
    run.judge("createdump full", core)
    run.judge("gcore", gcore)
    run.judge_perf_files("createdump full", core, target.pid)
    run.judge_names(core, services)
    run.judge_code(core, services)
    run.judge_inspect(core, GC_VERSIONS[major_of(services)])
    run.judge_verify("createdump full", core, tampered=True)
    return run.results


def version_of_single_file(target, expected):
    """What `info` says of a process or a core, and `ps` of a process, if it is wrong. Up to .NET 10, only the release
    is known."""
    asked = subprocess.run([TOOL, "info", "--json", target], capture_output=True, text=True, check=False).stdout
    info = json.loads(asked or "{}")
    said = [info.get("runtime_version"), *(one["version"] for one in info.get("runtimes", []))]
    if target.isdigit():
        listed = subprocess.run([TOOL, "ps", "--json"], capture_output=True, encoding="utf-8", check=False).stdout
        said += [row["runtime"] for row in map(json.loads, listed.splitlines()) if row["pid"] == int(target)]
    return None if set(said) == {expected} and info["operating_system"] == "unix" else f"{said} {info.get('operating_system')}"


def test_single_file(work, runtime):
    """The runtime in the executable itself, from the core that Linux makes and in the process."""
    expected = runtime if lab.line_of(runtime) >= 11 else f"{lab.line_of(runtime)}.0"
    with lab.running_target(work, runtime=runtime, single_file=True) as target:
        target.save_records()
        loads = read_loads(os.path.join(work, "jitdump"))
        run = Run(work, loads, live_records(loads, read_released(os.path.join(work, "released.txt"))))
        run.judge("process", str(target.pid))
        wrong = version_of_single_file(str(target.pid), expected)
        run.note("version of the process", not wrong, wrong or expected)
        cores = {"gcore": target.gcore()}
        try:
            cores["kernel"] = target.kernel_core()
        except lab.Skip as reason:
            print(f"  no kernel core: {reason}")
    run.note("there are methods", len(run.live) > LEAST_METHODS, f"{len(run.live)}")
    for label, core in cores.items():
        wrong = version_of_single_file(core, expected)
        run.note(f"{label}: version", not wrong, wrong or expected)
        run.judge(label, core)
        run.judge_stacks(label, core)
        modules = {method["module"] for method in random_ips.answers(TOOL, "methods", core, ())} - {None}
        run.note(f"{label}: modules are assemblies",
                 {"Demo.dll", "System.Private.CoreLib.dll"} <= modules and "Demo" not in map(os.path.basename, modules))
        run.judge_verify(label, core, tampered=label == "gcore")
    return run.results


def test_other_times(work):
    """A core from before most of its files was written, a jitdump of another process, and one that the runtime gave
    up."""
    def take_core(target):
        target.createdump("full")
    run = Run(work, [], [])
    core = os.path.join(work, "createdump-full.core")
    with lab.running_target(work, meanwhile=take_core) as target:
        target.save_records()
    for name in ("jitdump", "perf.map"):
        code, differences, totals, _ = tamper.verify(TOOL, core, os.path.join(work, name))
        fault = tamper.fault_of_result(code, differences, totals)
        told = f"{totals['match']} match, {totals['later']} later"
        run.note(f"core while compiling, {name}", not fault and code == 0 and min(totals["match"], totals["later"]) > 100,
                 f"{told} {fault or ''}")
    other = os.path.join(work, "given-up")
    os.makedirs(other)
    with lab.running_target(other, granularity="0") as target:
        done = subprocess.run([TOOL, "verify", "--json", str(target.pid)], capture_output=True, text=True, check=False)
        totals = json.loads(done.stdout.splitlines()[-1])
        run.note("the perf map of a process whose jitdump was given up", done.returncode == 0 and totals["match"] > 100 and
                 totals["file"] == "perf map" and "holds no methods" in done.stderr, f"{totals['match']} match {done.stderr.strip()}")
        target.save_records()
    code, _, totals, said = tamper.verify(TOOL, core, os.path.join(other, "jitdump"))
    run.note("jitdump that was given up", code == 2 and totals["match"] == 0 and "DOTNET_PerfMapStubGranularity=2" in said,
             said.strip())
    code, differences, totals, _ = tamper.verify(TOOL, core, os.path.join(other, "perf.map"))
    fault = tamper.fault_of_result(code, differences, totals)
    # Unknown to the target where the process lies elsewhere, in another range where its methods are found by name.
    wrong = sum(totals[name] for name in tamper.CONTRADICTIONS)
    run.note("perf map of another process", not fault and code == 1 and totals["match"] == 0 and wrong > 100,
             f"{wrong} contradictions {fault or ''}")
    return run.results


def with_images():
    """The runtimes that are tested with images of other kinds: the newest, and, if words are given, the installed one."""
    return ["installed", lab.NEWEST[11]] if sys.argv[1:] else [lab.NEWEST[11]]


def tests_of(word):
    """For a word of the command line: the name of each test, its function, and the arguments of that."""
    if word == "single-file":
        return [(f"{runtime}, {word}", test_single_file, runtime) for runtime in with_images()]
    if word == "other-times":
        return [(word, test_other_times)]
    if word in KINDS:
        return [(f"{runtime}, {word}", test_images, runtime, word) for runtime in with_images()]
    return [(word, test_runtime, word)]


def main():
    required = os.environ.get("CDACQ_REQUIRE_DOTNET") == "1"
    results = []
    try:
        for runtime in lab.runtimes(sys.argv[1:], KINDS):
            for name, test, *arguments in tests_of(runtime):
                print(f".NET {name}", flush=True)
                with tempfile.TemporaryDirectory(prefix="cdacq-dotnet-") as work:
                    results += test(work, *arguments)
    except lab.Skip as reason:
        print(f"{'FAILED' if required else 'skipped'}: {reason}")
        return 1 if required else lab.SKIPPED
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
