#!/usr/bin/env python3
"""
Files that another one of the same identity has replaced since a process mapped them: an assembly and its PDB with the
MVID, the time stamps, the size and the id of those before (tests/dotnet/copied). No name or line may come from the
wrong file without a mark, in the process and in cores of every kind.

    replaced.py [RUNTIME...]    words of lab.runtimes(), default: the newest

The program waits in three assemblies of one identity, which are loaded at once. Judge: their sources. Exit 77 (skipped)
if dotnet is missing; with CDACQ_REQUIRE_DOTNET=1, that is a failure.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "dotnet")]

import identity  # noqa: E402
import lab  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
TIMEOUT = 120
CORES = ["mini", "full", "gcore", "kernel"]
# The frames in each assembly, from the innermost on: method and the text of its line.
FRAMES = {"first": [("Of<T>.Under", "= back();"), ("Entry.Alpha", ".Under(back)"), ("Entry.Run", "= Alpha(back)")],
          "second": [("Of<T>.Below", "= back();"), ("Entry.Bravo", ".Below(back)"), ("Entry.Run", "= Bravo(back)")]}
SOURCES = {"first": "First.cs", "second": "Second.cs"}


def line_of(content, text):
    lines = (HERE.parent / "dotnet" / "copied" / SOURCES[content]).read_text(encoding="utf-8").splitlines()
    number, = (number for number, line in enumerate(lines, 1) if text in line)
    return number


def put(work, content, *names):
    """What a deployment does: the new file is written beside the old one, and takes its name."""
    for name in names:
        target = os.path.join(work, "shared", name)
        shutil.copy(os.path.join(work, content, name), target + ".new")
        os.replace(target + ".new", target)


@contextlib.contextmanager
def running(work, runtime):
    process = subprocess.Popen([*lab.program_command(work, "loading", runtime), work, "park"], cwd=work, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, preexec_fn=lab.allow_cores)
    try:
        if not process.stdout.readline().startswith("READY"):
            raise lab.LabError("the program did not get ready")
        yield lab.Target(work, process, None)
    finally:
        process.kill()
        process.wait()


def stacks(target, *options):
    """The frames in Copied.dll of each of the three threads, by the method that calls them."""
    done = subprocess.run([TOOL, "stack", "--json", *options, str(target)], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    threads, found = {}, {}
    for frame in map(json.loads, done.stdout.splitlines()):
        threads.setdefault(frame["tid"], []).append(frame)
    for frames in threads.values():
        for i, frame in enumerate(frames):
            caller = re.match(r"Loading\.Parked\.In(\w+)\(", frame["method"] or "")
            if caller:
                found[caller[1].lower()] = frames[i - 3:i] if i >= 3 else frames[:i]
    return done.returncode, found


def faults(frames, content, is_marked, with_lines):
    """What is wrong with the three frames in an assembly of this content."""
    for frame, (method, text) in zip(frames, FRAMES[content], strict=True):
        place = SOURCES[content], line_of(content, text)
        marked = is_marked or frame["error"] or frame["module_verified"] is False or frame["by"] == "guess"
        name = (frame["method"] or "").partition("(")[0]
        if name != f"Copied.{method}" and not marked:
            yield f"{name}, not {method}"
        if frame["line"] is None and with_lines:
            yield f"{method} has no line"
        if frame["line"] is not None and not marked and (os.path.basename(frame["file"]), frame["line"]) != place:
            yield f"{method}: {frame['file']}:{frame['line']}, not {place}"


def judge(label, target, counts, *options, lines_of=("first", "second")):
    """`lines_of`: the assemblies whose lines must be there."""
    code, found = stacks(target, *options)
    wrong = [f"threads: {sorted(found)}"] if sorted(found) != ["first", "second", "shared"] and code == 0 else []
    for name, frames in found.items():
        content = "first" if name == "shared" else name
        if len(frames) == 3:
            wrong += [f"{name}: {fault}" for fault in faults(frames, content, code != 0, name in lines_of)]
        elif code == 0:
            wrong.append(f"{name}: {len(frames)} frames")
        counts["frames"] += len(frames)
        counts["lines"] += sum(frame["line"] is not None for frame in frames)
        counts["marked"] += sum(bool(frame["error"] or frame["module_verified"] is False) for frame in frames)
    print(f"  {'FAIL' if wrong else 'ok  '} {label}: exit {code}{': ' if wrong else ''}{'; '.join(wrong)[:1500]}", flush=True)
    return not wrong


def take(target, kind):
    if kind in lab.CREATEDUMP_KINDS:
        return target.createdump(kind)
    return target.gcore() if kind == "gcore" else target.kernel_core()


def prepare(work):
    built = [os.path.join(lab.build(work, "copied", "8.0", Content=content), "Copied.dll") for content in ("First", "Second")]
    identity.write_pair(*built, work)
    os.mkdir(os.path.join(work, "shared"))
    put(work, "first", "Copied.dll", "Copied.pdb")


def test_runtime(runtime):
    work = tempfile.mkdtemp(prefix="cdacq-replaced-")
    counts = {"frames": 0, "lines": 0, "marked": 0}
    good = True
    print(f"{runtime}")
    try:
        prepare(work)
        with running(work, runtime) as target:
            everything = ("first", "second", "shared")
            good &= judge("live", target.pid, counts, lines_of=everything)
            cores = {kind: take(target, kind) for kind in CORES if kind != "kernel"}
            put(work, "second", "Copied.pdb")
            good &= judge("live, another PDB", target.pid, counts)
            put(work, "second", "Copied.dll")
            good &= judge("live, another assembly", target.pid, counts)
            put(work, "first", "Copied.pdb")
            good &= judge("live, another assembly, own PDB", target.pid, counts, lines_of=everything)
            put(work, "first", "Copied.dll")
            good &= judge("live, a copy of the assembly", target.pid, counts, lines_of=everything)
            cores["kernel"] = take(target, "kernel")
        for kind, core in cores.items():
            put(work, "first", "Copied.dll", "Copied.pdb")
            held = () if kind == "mini" else ("first", "second")
            good &= judge(kind, core, counts, lines_of=held)
            put(work, "second", "Copied.dll")
            good &= judge(f"{kind}, another assembly", core, counts, lines_of=())
            put(work, "second", "Copied.pdb")
            good &= judge(f"{kind}, another assembly and PDB", core, counts, lines_of=())
            put(work, "first", "Copied.dll")
            good &= judge(f"{kind}, another PDB", core, counts, lines_of=())
    finally:
        shutil.rmtree(work)
    print(f"  {counts}")
    return good


def main():
    try:
        lab.refuse_piped_cores()
        runtimes = lab.runtimes(sys.argv[1:])[:None if sys.argv[1:] else 1]
        return 0 if all([test_runtime(runtime) for runtime in runtimes]) else 1
    except lab.Skip as reason:
        print(f"skipped: {reason}")
        return 1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED


if __name__ == "__main__":
    sys.exit(main())
