#!/usr/bin/env python3
"""Has gdb, binutils, elfutils and LLVM judge what `cdacq elf` writes of real processes.

    elf.py [RUNTIME...]      words of lab.runtimes(); default: the newest of each recent line
    elf.py --core CORE PROGRAM       judges one core

gdb must show every thread's stack as `cdacq stack` has it: the same frames at the same addresses, and the managed ones
with the same names, files and lines. The tools that check ELF and DWARF must find nothing wrong.

Exit 77 (skipped) where dotnet or gdb is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure.
"""

import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import lab

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
HERE = os.path.dirname(os.path.abspath(__file__))
LEAST_MANAGED = 20


def note(results, label, passed, text=""):
    print(f"  {'ok  ' if passed else 'FAIL'} {label}{': ' if text else ''}{text}", flush=True)
    results.append(passed)


def write_elf(target, path, *options):
    done = subprocess.run([TOOL, "elf", str(target), "-o", path, *options], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise lab.LabError(f"cdacq elf {target}: {done.stderr}")
    return done


def gdb_frames(work, where, elf, *commands):
    """{tid: [frame]} as gdb has them; `where` are the arguments that open the core or process."""
    path = os.path.join(work, "frames.json")
    added = ["-ex", f"add-symbol-file {elf}"] if elf else []
    lab.run(["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off", *where, *added,
             "-ex", f"source {HERE}/gdb_frames.py", *commands], env=dict(os.environ, CDACQ_FRAMES=path))
    threads = collections.defaultdict(list)
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            frame = json.loads(line)
            threads[frame["tid"]].append(frame)
    return threads


def our_frames(core):
    done = subprocess.run([TOOL, "stack", "--json", core], stdout=subprocess.PIPE, text=True, check=False)
    threads = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        frame = json.loads(line)
        if "ip" in frame:
            threads[frame["tid"]].append(frame)
    return threads


def name_of(symbol):
    """The method of a symbol, as `cdacq stack` has it."""
    name = (symbol or "").removesuffix(" [cold]").removesuffix(" [funclet]")
    return None if name == "[unnamed method]" else name


def differences(ours, theirs):
    """What gdb shows otherwise than `cdacq stack`, and how many managed frames there are."""
    wrong, managed = [], 0
    for tid, frames in ours.items():
        found = theirs.get(tid, [])
        if [int(frame["ip"], 16) for frame in frames] != [frame["ip"] for frame in found]:
            wrong.append((tid, "frames", [frame["ip"] for frame in frames], [hex(frame["ip"]) for frame in found]))
            continue
        for frame, other in zip(frames, found):
            if frame["status"] != "managed":
                continue
            managed += 1
            if frame["method"] != name_of(other["name"]):
                wrong.append((tid, frame["ip"], frame["method"], other["name"]))
            if (frame["file"], frame["line"]) != (other["file"], other["line"] if other["file"] else None):
                wrong.append((tid, frame["ip"], f"{frame['file']}:{frame['line']}", f"{other['file']}:{other['line']}"))
    return wrong, managed


def judge_frames(results, label, ours, theirs):
    wrong, managed = differences(ours, theirs)
    lines = sum(frame["line"] is not None for frames in ours.values() for frame in frames if frame["status"] == "managed")
    note(results, label, not wrong and managed >= LEAST_MANAGED and lines > 0,
         f"{len(ours)} threads, {managed} managed frames, {lines} with lines, {len(wrong)} otherwise {wrong[:2] or ''}")


def judge_core(results, work, label, core, program):
    elf = os.path.join(work, "judged.elf")
    write_elf(core, elf)
    begin = time.monotonic()
    theirs = gdb_frames(work, [program, "-c", core], elf)
    took = time.monotonic() - begin
    judge_frames(results, f"gdb on {label}", our_frames(core), theirs)
    return elf, took


def judge_live(results, work, target):
    elf, core = os.path.join(work, "live.elf"), os.path.join(work, "live.core")
    write_elf(target.pid, elf)
    theirs = gdb_frames(work, ["-p", str(target.pid)], elf, "-ex", f"generate-core-file {core}", "-ex", "detach")
    judge_frames(results, "gdb on the process", our_frames(core), theirs)
    os.remove(core)


def checkers(elf):
    """The commands that judge a file, and what they print when all is well."""
    return [(["eu-elflint", "--gnu-ld", "-d", elf], "No errors"),
            (["llvm-dwarfdump", "--verify", elf], "No errors."),
            (["readelf", "-aw", "-W", elf], None),
            (["eu-readelf", "-aw", elf], None),
            (["gdb", "-nx", "-batch", "-ex", f"file {elf}", "-ex", "maint expand-symtabs", "-ex", "maint check-symtabs",
              "-ex", "maint check-psymtabs"], "")]


def judge_file(results, elf, label):
    for command, expected in checkers(elf):
        if shutil.which(command[0]) is None:
            continue
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
        said = done.stdout.strip()
        passed = done.returncode == 0 and not done.stderr.strip()
        if expected is not None:
            passed = passed and said.endswith(expected) and (expected or not said)
        note(results, f"{command[0]} of {label}", bool(passed), "" if passed else (done.stderr + said)[-300:])


def judge_addresses(results, core, elf):
    """addr2line of binutils and of elfutils say what ip2method says."""
    listed = subprocess.run([TOOL, "methods", "--json", core], stdout=subprocess.PIPE, text=True, check=False)
    ips = [int(method["code_start"], 16) + method["code_size"] // 2
           for method in map(json.loads, listed.stdout.splitlines()) if method.get("code_start") and method.get("method")]
    asked = "".join(f"0x{ip:x}\n" for ip in ips)
    ours = [json.loads(line) for line in
            subprocess.run([TOOL, "ip2method", "--json", core], input=asked, stdout=subprocess.PIPE, text=True, check=False).stdout.splitlines()]
    for command in (["addr2line", "-f", "-e", elf], ["eu-addr2line", "-f", "-e", elf]):
        if shutil.which(command[0]) is None:
            continue
        said = subprocess.run(command, input=asked, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
        wrong = []
        for one, name, place in zip(ours, said[0::2], said[1::2]):
            line = f"{one['file']}:{one['line']}" if one["file"] else None
            shown = place.split(" ")[0]
            if one["method"] != name_of(name) or (line is not None and shown.rsplit(":", 1)[0].endswith(".cs") and
                                                  shown != line and shown != f"{line}:{one['column']}"):
                wrong.append((one["ip"], one["method"], name, line, place))
        note(results, command[0], len(said) == 2 * len(ours) and len(ours) > 100 and not wrong,
             f"{len(ours)} addresses, {len(wrong)} otherwise {wrong[:2] or ''}")


def judge_code(results, work, core):
    """The bytes of the code: objdump reads as many instructions as the addresses of its functions say."""
    elf = os.path.join(work, "code.elf")
    write_elf(core, elf, "--code")
    shown = subprocess.run(["objdump", "-d", "-j", ".text.jit", "--no-show-raw-insn", elf], stdout=subprocess.PIPE, text=True, check=True).stdout
    note(results, "objdump reads the code", shown.count("\tret") > 1000, f"{shown.count(chr(10))} lines")
    judge_file(results, elf, "a file with code")


def test_runtime(results, work, runtime):
    with lab.running_target(work, runtime=runtime) as target:
        program = os.readlink(f"/proc/{target.pid}/exe")
        judge_live(results, work, target)
        core = target.createdump("full")
        elf, _ = judge_core(results, work, "a core of createdump", core, program)
        judge_file(results, elf, "the file")
        judge_addresses(results, core, elf)
        if lab.is_recent(runtime):
            judge_code(results, work, core)
        os.remove(core)
        try:
            core = target.kernel_core()
        except lab.Skip as reason:
            print(f"  skipped: {reason}")
            return
        judge_core(results, work, "a core of the kernel", core, program)
        os.remove(core)


def main(arguments):
    results = []
    try:
        for name in ("dotnet", "gdb"):
            if shutil.which(name) is None:
                raise lab.Skip(f"{name} is not installed")
        with tempfile.TemporaryDirectory(prefix="cdacq-elf-") as work:
            if arguments[:1] == ["--core"]:
                elf, took = judge_core(results, work, arguments[1], *arguments[1:3])
                print(f"  gdb took {took:.2f} s")
                judge_file(results, elf, "the file")
                judge_addresses(results, arguments[1], elf)
            for runtime in lab.runtimes(arguments, of_all_lines=False) if arguments[:1] != ["--core"] else []:
                print(runtime, flush=True)
                folder = os.path.join(work, runtime)
                os.makedirs(folder)
                test_runtime(results, folder, runtime)
    except lab.Skip as reason:
        required = os.environ.get("CDACQ_REQUIRE_DOTNET") == "1"
        print(f"{'FAILED' if required else 'skipped'}: {reason}")
        return 1 if required else lab.SKIPPED
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
