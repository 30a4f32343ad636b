#!/usr/bin/env python3
"""The GC heap of real processes: `cdacq heap` against the debugger services (ClrMD), and against what a program planted.

    heap.py [RUNTIME...]    words of lab.runtimes(); the newest line, and those that are named, are tested with every
                            collector, the others with workstation GC

Workstation and server GC, with regions and, by the GC that comes beside the runtime, with segments; of the running
process, of each kind of core. Exit 77 (skipped) where dotnet is missing, unless CDACQ_REQUIRE_DOTNET=1.
"""

import collections
import contextlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import lab
import stack_run

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "hostile"))
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))

import generators  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python")
SEGMENTS = "libclrgc.so"  # the GC with segments
REGIONS = "libclrgcexp.so"  # that with regions, since .NET 9
GENERATIONS = {"2": "2", "3": "loh", "4": "poh"}  # of GC.GetGCMemoryInfo
GAP = 24  # bytes of free memory at the start of a segment, which the GC does not count
STOPS, STOPS_MAX = 20, 500  # of a process that collects all the time; until one is in a collection
COLLECTORS = [("workstation", {}), ("server", {"DOTNET_gcServer": "1", "DOTNET_GCHeapCount": "2"}),
              ("workstation, segments", {"DOTNET_GCName": SEGMENTS}),
              ("workstation, standalone regions", {"DOTNET_GCName": REGIONS}),
              ("server, segments", {"DOTNET_GCName": SEGMENTS, "DOTNET_gcServer": "1", "DOTNET_GCHeapCount": "2"})]
CORES = ["full", "heap", "gcore", "kernel"]
OOM_REASONS = [None, "the allocation budget was exceeded", "memory could not be committed", "address space could not be reserved",
               "there was no memory for large objects", "memory was low during a collection", "a full collection was of no use"]
LEAST_OBJECTS = 14000
MOST_CHANGES = 10  # types of which the runtime allocates by itself between two cores
TRIES = 4
SHOWN = 6
SECONDS = 300
MEMORY_MAX = 512 << 20  # of a command on a core of less than 128 MiB


@contextlib.contextmanager
def planted(work, runtime, settings, *arguments):
    """A process that has planted its objects, and how many of each type."""
    command = [*lab.program_command(work, "heap", runtime), *arguments]
    with tempfile.TemporaryDirectory(dir=work, prefix="run-") as folder, lab.running_program(command, folder, settings) as target:
        said = target.read_log()
        counts = {name: int(count) for count, name in re.findall(r"^PLANTED (\d+) (.*)$", said, re.MULTILINE)}
        counts["REFUSED"] = int(re.search(r"^REFUSED (\d+)$", said, re.MULTILINE)[1])
        yield target, counts


class Heap:
    """What `cdacq heap --json --all` prints."""

    def __init__(self, target, *options):
        done = subprocess.run([TOOL, "heap", "--json", "--all", *options, str(target)], capture_output=True, encoding="utf-8", check=False,
                              timeout=SECONDS)
        self.code, self.said = done.returncode, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.summary = lines.pop() if lines else {}
        self.types = {line["method_table"]: (line["count"], line["bytes"]) for line in lines}
        self.names = {line["method_table"]: line["type"] for line in lines}

    def count_of(self, name):
        return sum(self.types[table][0] for table in self.types if self.names[table] == name)

    def generations(self):
        return {item["generation"]: [item["objects"], item["bytes"]] for item in self.summary["generations"] if item["objects"]}


class Tally:
    """What was compared, and what differs."""

    def __init__(self):
        self.said = collections.Counter()
        self.wrong = []

    def expect(self, good, what):
        if not good:
            self.wrong.append(what)

    def tell(self, label):
        said = ", ".join(f"{count} {what}" for what, count in self.said.items())
        print(f"  {'FAIL' if self.wrong else 'ok  '} {label}: {said}", flush=True)
        for wrong in self.wrong[:SHOWN]:
            print(f"    {wrong}")


def compare_sound(tally, what, heap, counts):
    """The sums agree with each other, nothing was left out, and what was planted is there."""
    tally.expect(heap.code == 0 and not heap.said, f"{what}: exit {heap.code}: {heap.said.strip()[:300]}")
    tally.expect(heap.summary and not heap.summary["problems"], f"{what}: {heap.summary.get('problems')}")
    if not heap.summary:
        return
    for key, place in ("objects", 0), ("bytes", 1):
        of_types = sum(pair[place] for pair in heap.types.values())
        of_generations = sum(item[key] for item in heap.summary["generations"])
        tally.expect(of_types == of_generations == heap.summary[key], f"{what}: {key}: {of_types}, {of_generations}, {heap.summary[key]}")
    tally.expect(heap.summary["objects"] >= LEAST_OBJECTS, f"{what}: only {heap.summary['objects']} objects")
    bytes_more = (heap.summary["oom_bytes"] or 0) - counts["REFUSED"]
    tally.expect(heap.summary["oom_reason"] and 0 <= bytes_more < 4096, f"{what}: refused: {heap.summary['oom_reason']} {heap.summary['oom_bytes']}")
    for name, count in counts.items():
        if name.startswith("Planted."):
            tally.expect(heap.count_of(name) == count, f"{what}: {heap.count_of(name)} of {count} {name}")
    tally.said["objects"] += heap.summary["objects"]


def compare_types(tally, what, found, expected):
    """Two tables of (count, bytes) by MethodTable."""
    differing = [table for table in {*found, *expected} if found.get(table) != expected.get(table)]
    tally.said["types"] += len(expected)
    tally.expect(not differing, f"{what}: {len(differing)} types differ: " +
                 ", ".join(f"{table} {found.get(table)} not {expected.get(table)}" for table in sorted(differing)[:SHOWN]))


def compare_moments(tally, what, found, expected):
    """The process runs on between two of them, and its runtime allocates a little."""
    differing = [table for table in {*found.types, *expected.types} if found.types.get(table) != expected.types.get(table)]
    names = sorted({str(found.names.get(table) or expected.names.get(table)) for table in differing})
    tally.expect(len(differing) <= MOST_CHANGES and not any(name.startswith("Planted.") for name in names), f"{what}: {names[:SHOWN]} differ")


def compare_generations(tally, what, heap, said):
    """What the GC said of the generations after the last full collection: sizes with the padding of objects, and free memory."""
    found = {item["generation"]: item for item in heap.summary["generations"]}
    told = re.findall(r"^GENERATION (\d) (\d+) (\d+)$", said, re.MULTILINE)
    tally.expect(len(told) == len(GENERATIONS), f"{what}: the GC told {told}")
    for number, size, free in told:
        item = found[GENERATIONS[number]]
        padding = int(size) - item["bytes"]
        tally.expect(0 <= padding <= 8 * item["objects"], f"{what}: {item}, the GC has {size} bytes")
        tally.expect(item["free_bytes"] - int(free) in range(0, GAP * heap.summary["heaps"] + 1, GAP), f"{what}: {item}, the GC has {free} bytes free")
        tally.said["generations"] += 1


def judge_segments(tally, what, core, answer):
    """The services list the same segments, those of all generations of a segment as one."""
    if "CDACQ_LIBRARY" not in os.environ:
        return
    sys.path.insert(0, PACKAGE)
    try:
        import cdacq
        with cdacq.open(core) as target:
            segments = target.heap(with_objects=False).segments
    except OSError:  # a library with sanitizers
        return
    found = collections.defaultdict(lambda: [sys.maxsize, 0, 0])
    for segment in segments:
        begin, end, _ = found[segment.address]
        found[segment.address] = [min(begin, segment.begin), max(end, segment.end), segment.heap]
    expected = sorted([int(begin, 16), int(end, 16), heap] for begin, end, heap, _ in answer["segments"])
    tally.said["judged segments"] += len(expected)
    tally.expect(expected == sorted(found.values()), f"{what}: segments {sorted(found.values())[:SHOWN]} not {expected[:SHOWN]}")


def judge(tally, services, what, core, directory, heap):
    """The debugger services count every object of the same core. Returns where its segments begin."""
    answer = services.walk(core, directory, "heap")
    if "error" in answer:
        tally.expect(False, f"{what}: the services: {answer['error']}")
        return []
    compare_types(tally, f"{what}, judged", heap.types, {table: (count, size) for table, count, size, _ in answer["types"]})
    tally.expect(heap.generations() == answer["generations"], f"{what}: generations {heap.generations()} not {answer['generations']}")
    judge_segments(tally, what, core, answer)
    facts = [heap.summary[key] for key in ("server", "regions", "heaps")]
    tally.expect(facts == [answer[key] for key in ("server", "regions", "heaps")], f"{what}: {facts}")
    tally.expect(answer["oom"] and OOM_REASONS[answer["oom"][0]] == heap.summary["oom_reason"] and
                 answer["oom"][1] == heap.summary["oom_bytes"], f"{what}: refused: {heap.summary['oom_reason']} not {answer['oom']}")
    free = [table for table, _, _, name in answer["types"] if name == "Free"]
    tally.expect(all(heap.names.get(table) == "Free" for table in free), f"{what}: free memory has another name")
    tally.said["judged types"] += len(answer["types"])
    return [int(begin, 16) for begin, *_ in answer["segments"]]


def judge_completed(tally, services, core, directory, heap):
    """The services open a core of the kernel once the pages of its files are in it, and find the same objects."""
    completed = core + ".complete"
    done = subprocess.run([TOOL, "complete", "--unconfirmed", "--json", core, "-o", completed], capture_output=True, encoding="utf-8",
                          check=False, timeout=SECONDS)
    said = json.loads(done.stdout or "{}")
    tally.expect(said.get("missing") == 0 and said["segments"] < 9999, f"complete: exit {done.returncode}: {done.stderr}{done.stdout[:300]}")
    if os.path.exists(completed):
        judge(tally, services, "completed kernel", completed, directory, heap)
        os.remove(completed)


def compare_snapshot(tally, services, core, directory, heap):
    """A snapshot with the heap gives the same answers about it, and about the objects of each type. ClrMD finds the runtime
    in it, though not all that the services need: a file that it does not take for a core ends its process."""
    small = core + ".snapshot"
    done = subprocess.run([TOOL, "snapshot", "--heap", core, "-o", small], capture_output=True, encoding="utf-8", check=False, timeout=SECONDS)
    tally.expect(done.returncode == 0, f"snapshot: exit {done.returncode}: {done.stderr[:300]}")
    found = Heap(small)
    tally.expect((found.types, found.names, found.generations()) == (heap.types, heap.names, heap.generations()), "snapshot: another heap")
    strings = [subprocess.run([TOOL, "heap", "--strings", "--json", "--all", path], capture_output=True, check=False, timeout=SECONDS).stdout
               for path in (core, small)]
    tally.expect(strings[0] == strings[1] and strings[0].count(b"\n") > 1, "snapshot: other strings")
    addresses = [json.loads(line)["address"] for line in strings[0].splitlines()[:-1]]
    objects = [subprocess.run([TOOL, "object", "--json", path, *addresses[:100]], capture_output=True, check=False, timeout=SECONDS).stdout
               for path in (core, small)]
    tally.expect(objects[0] == objects[1] and objects[0], "snapshot: another object")
    answer = services.walk(small, directory)
    tally.expect("threads" in answer or "Failed to create ClrRuntime" in answer["error"], f"snapshot: ClrMD: {answer}")
    os.remove(small)


def compare_arrays(tally, core, heap):
    """The arrays of the Python package are of the same objects, and numpy takes them as they are. References lead to objects."""
    if "CDACQ_LIBRARY" not in os.environ:
        return
    sys.path.insert(0, PACKAGE)
    try:
        import cdacq
        with cdacq.open(core) as target:
            found = target.heap(with_references=True)
            names = [target.type_name(table) for table in found.method_tables]
    except OSError as reason:  # a library with sanitizers
        print(f"  skipped the Python package: {reason}")
        return
    sums = [[0, 0] for _ in names]  # the target is closed, but the arrays stay
    for kind, size in zip(found.types, found.byte_sizes):
        sums[kind][0] += 1
        sums[kind][1] += size
    compare_types(tally, "arrays", {f"0x{table:x}": tuple(pair) for table, pair in zip(found.method_tables, sums)}, heap.types)
    tally.expect(names[found.free_type] == "Free" and found.problem_count == 0 and found.addresses.readonly, "arrays: free memory")
    generations = collections.Counter(cdacq.Generation(number).name.lower().removeprefix("generation_") for number in found.generations)
    tally.expect(sorted(generations.values()) == sorted(objects for objects, _ in heap.generations().values()), f"arrays: {generations}")
    every = set(found.addresses)
    outside = sum(target not in every for target in found.targets)
    tally.expect(len(found.targets) > LEAST_OBJECTS and not outside, f"arrays: {outside} of {len(found.targets)} references lead to no object")
    ends = found.first_references
    tally.expect(len(ends) == len(found.addresses) + 1 and ends[0] == 0 and ends[-1] == len(found.targets) and
                 all(begin <= end for begin, end in zip(ends, ends[1:])), "arrays: references of objects")
    tally.said["references in arrays"] += len(found.targets)
    try:
        import numpy
    except ImportError:
        return
    counts = numpy.bincount(numpy.frombuffer(found.types, dtype=numpy.uint32))
    tally.expect([int(count) for count in counts] == [pair[0] for pair in sums], "arrays: numpy counts other objects")
    tally.expect(numpy.frombuffer(found.addresses, dtype=numpy.uint64).__array_interface__["data"][0] ==
                 numpy.asarray(found.addresses).__array_interface__["data"][0], "arrays: numpy has copied one")


def compare_memory(tally, what, heap, pid=None):
    """The kinds of memory: of a running process they are what the kernel says is in RAM."""
    memory = heap.summary.get("memory")
    tally.expect(memory and memory["gc"] and memory["stacks"] and memory["files"] and memory["other"], f"{what}: memory {memory}")
    if memory and pid:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            resident = int(re.search(r"^Rss:\s*(\d+) kB", file.read(), re.MULTILINE)[1]) * 1024
        total = sum(memory[kind] for kind in ("gc", "code", "loader", "stacks", "files", "other"))
        tally.expect(memory["resident"] and abs(total - resident) < resident / 10, f"{what}: {total} bytes in RAM, the kernel has {resident}")
        tally.expect(memory["gc"] <= heap.summary["committed"] * 2 and memory["code"] and memory["loader"], f"{what}: memory {memory}")


def compare_strings(tally, what, target):
    """The equal strings that were planted."""
    done = subprocess.run([TOOL, "heap", "--strings", "--json", "--all", str(target)], capture_output=True, encoding="utf-8", check=False, timeout=SECONDS)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    tally.expect(done.returncode == 0 and lines and lines[-1]["exact"], f"{what}: strings: exit {done.returncode}: {done.stderr[:300]}")
    found = {line["text"]: line for line in lines[:-1]}
    for number in range(7):
        tally.expect(found.get(f"planted text {number}", {}).get("count") == 100, f"{what}: {found.get(f'planted text {number}')}")
    tally.expect(found.get("planted \t\u001b[31m \U0001f600", {}).get("count") == 31, f"{what}: no text with a control character (and its literal)")
    long = [line["count"] for line in lines[:-1] if line["length"] == 20001]
    tally.expect(long == [10, 10, 10], f"{what}: strings of 20,001 units: {long}")
    tally.expect(lines and sum(line["in_copies"] for line in lines[:-1]) == lines[-1]["in_copies"], f"{what}: {lines[-1:]}")
    shown = subprocess.run([TOOL, "heap", "--strings", str(target)], capture_output=True, check=False, timeout=SECONDS).stdout
    tally.expect(b"\x1b" not in shown and b"planted" in shown, f"{what}: {shown[:300]}")


def compare_growth(tally, what, before, after):
    """Two cores of the same program, whose runtime allocates a little by itself."""
    done = subprocess.run([TOOL, "heap", "--json", "--all", str(before), str(after)], capture_output=True, encoding="utf-8", check=False, timeout=SECONDS)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    tally.expect(done.returncode == 0 and lines and len(lines) <= MOST_CHANGES + 1, f"{what}: exit {done.returncode}: {done.stderr[:300]} {lines[:3]}")
    tally.expect(not any(line["type"].startswith("Planted.") for line in lines[:-1]), f"{what}: {lines[:3]}")


def compare_small_core(tally, what, core, pid, segments):
    """A core without the heap: one line says so, and no count or growth is wrong. The bounds of segments are there, but in a triage core."""
    for others in [], [str(pid)]:
        done = subprocess.run([TOOL, "heap", core, *others], capture_output=True, encoding="utf-8", check=False, timeout=SECONDS)
        tally.expect(done.returncode == 2 and "no heap in this core" in done.stderr, f"{what}: exit {done.returncode}: {done.stderr[:300]}")
        if not others and (done.stdout or what != "triage"):  # a triage core may lack all records of the heap
            bounds = set(re.findall(r"^0x([0-9a-f]{16}) 0x[0-9a-f]{16} ", done.stdout, re.MULTILINE))
            tally.expect("objects," not in done.stdout and "\nhandles: " in done.stdout, f"{what}: {done.stdout}")
            tally.expect(what == "triage" or bounds and {f"{segment:016x}" for segment in segments} <= bounds,
                         f"{what}: {segments} not in {bounds}")
    for option in "--retained", "--why=Planted.Small":
        done = subprocess.run([TOOL, "heap", option, core], capture_output=True, encoding="utf-8", check=False, timeout=SECONDS)
        tally.expect(done.returncode == 2 and "no heap in this core" in done.stderr, f"{what}: {option}: exit {done.returncode}: {done.stderr[:300]}")


def compare_truncated(tally, core):
    """Of a core that was cut off, it says what is missing, and not that the runtime lacks a description."""
    cut = core + ".cut"
    for percent in 90, 50, 10:
        shutil.copyfile(core, cut)
        os.truncate(cut, os.path.getsize(core) * percent // 100)
        for options in [], ["--why=Planted.Small"]:
            done = subprocess.run([TOOL, "heap", cut, *options], capture_output=True, encoding="utf-8", check=False, timeout=SECONDS)
            tally.expect(done.returncode in (0, 1, 2) and "not described" not in done.stderr, f"{percent} % of a core, {options}: "
                         f"exit {done.returncode}: {done.stderr[:300]}")
    os.remove(cut)


def take(target, kind):
    """One core. A thread that ends meanwhile makes createdump fail: then it is asked again."""
    if kind not in lab.CREATEDUMP_KINDS:
        return target.core(kind)
    for _ in range(TRIES - 1):
        with contextlib.suppress(lab.LabError):
            return target.createdump(kind)
    return target.createdump(kind)


def run_measured(command):
    """Exit code, messages, and the most memory, in bytes."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as messages, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=messages) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        messages.seek(0)
        return process.returncode, messages.read(), used.ru_maxrss << 10


def compare_bounds(tally, work, core, heap):
    """Small objects, references, and what is kept or written of them, are work: a core can have more of them than bytes."""
    tables = {heap.names[table]: int(table, 16) for table in heap.types}
    text = struct.pack("<QI", tables["System.String"], 9) + "characters"[:9].encode("utf-16-le") + b"\0\0"
    area = generators.AREA
    blocks = {"objects": struct.pack("<3Q", tables["System.Object"], 0, 0), "strings": text.ljust(40, b"\0"),
              "references": struct.pack("<1024Q", tables["System.Object[]"], 1021, *range(area, area + (1021 << 13), 1 << 13), 0)}
    kept = ["--why=System.Object"], ["--retained"], ["--export", os.path.join(work, "export.heapsnapshot")]
    asked = {"objects": ([], *kept), "strings": (["--strings"],), "references": kept}
    for what, block in blocks.items():
        block *= (1 << 20) // len(block) // 8 * 8
        forged = generators.heap_shares_bytes(work, core, TOOL, block, len(block) << 10)
        commands = [["heap", *options] for options in asked[what]]
        for command in [*commands, ["complete", "-o", os.path.join(work, "complete")]] if what != "references" else commands:
            code, said, memory = run_measured([TOOL, command[0], forged, *command[1:], "--work-max=20M"])
            good = code == 2 and re.search("bound on work|--memory-max", said)
            tally.expect(good, f"{what} that share bytes, {command[:2]}: exit {code}, {said[-200:]}")
            tally.said["bounds"] += 1
        for command in commands:
            code, said, memory = run_measured([TOOL, command[0], forged, *command[1:]])
            tally.expect(code == 2 and memory < MEMORY_MAX, f"{what} that share bytes, {command[:2]}: exit {code}, {memory >> 20} MiB")
    forged = generators.heap_of_wide_segments(work, core, TOOL, blocks["objects"] * 100)
    for options in kept:
        code, said, memory = run_measured([TOOL, "heap", forged, *options])
        tally.expect(code in (0, 1) and memory < MEMORY_MAX, f"wide segments, {options}: exit {code}, {memory >> 20} MiB")


def compare_moment(tally, what, heap, counts):
    """Of a process that collects all the time: all is exact, or it says that a collection was under way. Returns whether one was."""
    under_way = heap.summary.get("under_way")
    tally.expect(heap.summary and "no heap" not in heap.said, f"{what}: exit {heap.code}: {heap.said[:300]}")
    for name, count in counts.items():
        if name.startswith("Planted.") and not under_way:
            tally.expect(heap.count_of(name) == count, f"{what}: {heap.count_of(name)} of {count} {name}")
    good = (heap.code == 1 and "a garbage collection was under way" in heap.said) if under_way else heap.code == 0 and not heap.summary.get("problems")
    tally.expect(good, f"{what}: exit {heap.code}: {heap.said[:300]}")
    tally.said["moments of a collection" if under_way else "moments of none"] += 1
    return under_way


def test_under_way(work, runtime, name, settings):
    """What `heap` says while the GC plans, moves objects and updates references."""
    tally = Tally()
    with planted(work, runtime, settings, "collect") as (target, counts):
        stops = seen = 0
        while stops < STOPS or not seen and stops < STOPS_MAX and not tally.wrong:
            seen += bool(compare_moment(tally, f"stop {stops}", Heap(target.pid), counts))
            stops += 1
        tally.expect(seen, f"none of {stops} stops was in a collection")
        with contextlib.suppress(lab.Skip):
            compare_moment(tally, "kernel", Heap(target.kernel_core()), counts)
    tally.tell(f"{runtime}, {name}, collections under way")
    return not tally.wrong


def test_collector(work, runtime, services, name, settings):
    """Whether all is right of one process: running, and in all cores of one moment."""
    tally = Tally()
    with planted(work, runtime, settings) as (target, counts):
        directory = target.runtime_directory()
        live = Heap(target.pid)
        compare_sound(tally, "live", live, counts)
        compare_memory(tally, "live", live, target.pid)
        compare_strings(tally, "live", target.pid)
        compare_generations(tally, "live", live, target.read_log())
        begins = []
        for kind in CORES:
            try:
                core = take(target, kind)
            except lab.Skip as reason:
                print(f"    skipped {kind}: {reason}")
                continue
            heap = Heap(core)
            compare_sound(tally, kind, heap, counts)
            if kind == "heap" and name == "workstation" and lab.is_newest(runtime):
                compare_bounds(tally, target.work, core, heap)
            if kind in ("full", "heap"):
                begins = judge(tally, services, kind, core, directory, heap)
            compare_memory(tally, kind, heap)
            compare_strings(tally, kind, core)
            if kind == "full":
                compare_arrays(tally, core, heap)
                compare_growth(tally, "growth", core, target.pid)
                compare_truncated(tally, core)
            if kind == "kernel":
                judge_completed(tally, services, core, directory, heap)
                compare_snapshot(tally, services, core, directory, heap)
            if heap.summary:
                compare_moments(tally, f"{kind}, to the running process", heap, live)
            os.remove(core)
            if kind == "gcore":
                for small in "mini", "triage":
                    core = take(target, small)
                    compare_small_core(tally, small, core, target.pid, begins)
                    os.remove(core)
    tally.tell(f"{runtime}, {name}")
    return not tally.wrong


def test_runtime(work, runtime, services, every):
    collectors = COLLECTORS if every else COLLECTORS[:1]
    framework, _ = lab.framework_of(work, runtime)
    collectors = [(name, settings) for name, settings in collectors if os.path.exists(os.path.join(framework, settings.get("DOTNET_GCName", "")))]
    return all([test_collector(work, runtime, services, name, settings) and test_under_way(work, runtime, name, settings)
                for name, settings in collectors])


def main():
    try:
        if shutil.which("dotnet") is None:
            raise lab.Skip("dotnet is not installed")
        with tempfile.TemporaryDirectory(prefix="cdacq-heap-") as work:
            services = stack_run.Services(work)
            try:
                every = bool(sys.argv[1:])
                return 0 if all([test_runtime(work, runtime, services, every or lab.is_newest(runtime))
                                 for runtime in lab.runtimes(sys.argv[1:])]) else 1
            finally:
                services.close()
    except lab.Skip as reason:
        print(f"skipped: {reason}")
        return 1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED


if __name__ == "__main__":
    sys.exit(main())
