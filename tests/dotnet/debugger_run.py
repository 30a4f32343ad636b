#!/usr/bin/env python3
"""gdb and lldb with the package, on cores and running processes: every frame as `cdacq stack` finds it.

    debugger_run.py [--all] [RUNTIME...]    words of lab.runtimes()

lldb judges those of the recent lines; with --all, each. The first one is judged in more ways to the same memory, too.

Exit 77 (skipped) where dotnet or gdb is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure. Without lldb,
its part is left out.
"""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import lab

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import gdb_stacks  # noqa: E402
import lldb_stacks  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")


def check(what, arguments, target, failures, stacks=None):
    """Compares, and shows the processor time, which other processes of the machine disturb too much for a bound."""
    problems, managed, lines, output = gdb_stacks.compare(TOOL, target, arguments, stacks)
    if managed < 50 or lines < 20:
        problems.append(f"only {managed} managed frames, {lines} with lines")
    command = ["thread apply all bt"]
    alone = gdb_stacks.run_gdb(arguments, command, package=False)[1]
    with_package = gdb_stacks.run_gdb(arguments, command)[1]
    print(f"{what}: {managed} managed frames, {lines} with lines; gdb {alone:.2f} s, with the package "
          f"{with_package:.2f} s; {len(problems)} problems", flush=True)
    failures += [f"{what}: {problem[:1500]}" for problem in problems]
    return output


def check_symbols(what, core, failures):
    """gdb's own commands, by the ELF file."""
    main = r"Demo\.Program\.Main\(\)"
    output, _ = gdb_stacks.run_gdb([], [f"core-file {core}", "thread find 1", "bt"])
    number = re.search(rf"(?m)^#(\d+) .*{main}", output)
    if not number:
        failures.append(f"{what}: no frame of Main: {output[-1500:]}")
        return
    output, _ = gdb_stacks.run_gdb([], [f"core-file {core}", "cdacq symbols", f"frame {number[1]}", "info symbol $pc",
                                        "x/1i $pc", "list", "up", "cdacq exception", "cdacq report"])
    for expected in (rf"#{number[1]} .*{main}.*Program\.cs:\d+", rf"{main} \+ \d+ in section \.text",
                     rf"<{main}\+\d+>", r"(?m)^\d+\s.*WaitForEnd|^\d+\s.*Join"):
        if not re.search(expected, output):
            failures.append(f"{what}: {expected} is not shown: {output[-2500:]}")


def check_lldb(what, target, failures, stacks=None):
    """The same for lldb, which knows managed frames by the ELF file of `cdacq symbols`."""
    if not lldb_stacks.lldb_works():
        return
    problems, managed, used, output = lldb_stacks.compare(target, stacks or gdb_stacks.expected_stacks(TOOL, target))
    alone = lldb_stacks.frames(target, package=False)[1]
    if managed < 50:
        problems.append(f"only {managed} managed frames: {output[-1500:]}")
    print(f"{what}: {managed} managed frames; lldb {alone:.2f} s, with the package {used:.2f} s; "
          f"{len(problems)} problems", flush=True)
    failures += [f"{what}: {problem}" for problem in problems]


def check_lldb_commands(what, core, failures):
    """The commands, and lldb's own ones by the ELF file."""
    if not lldb_stacks.lldb_works():
        return
    main = r"Demo\.Program\.Main\(\)"
    frames = [frame for frames in gdb_stacks.expected_stacks(TOOL, core).values() for frame in frames]
    ip = next(frame["ip"] for frame in frames if frame["method"] == "Demo.Program.Main()")
    prepared = next(frame["ip"] for frame in frames if frame["kind"] == "r2r")  # its image is not in the core
    output, _ = lldb_stacks.run_lldb(core, [
        "cdacq stack all", f"cdacq ip2method {ip}", f"cdacq inspect {ip}", "cdacq threads", "cdacq report", "cdacq symbols",
        "cdacq symbols", f"image lookup -a {ip}", f"disassemble -c 1 -s {ip}", f"disassemble -c 1 -s {prepared}",
        *(f"cdacq variables {number}" for number in range(64))])
    for expected in (rf"(?m)^#\d+ +{ip} {main} \+0x\w+ \[jit\] IL_\w+ Program\.cs:\d+",
                     rf"(?m)^{ip} {main} \+0x", r"(?m)^  code           \[0x", r"(?m)^[* ] \d+.*, managed \d+, Thread",
                     r"(?m)^\.NET \d+\.\d+", rf"Summary: .*`{main} \+ \d+ at Program\.cs:\d+", rf"(?m)^.*`{main}:$",
                     rf"(?m)^(?:->)? +{prepared} <\+\d+>: \w+", r"(?m)^#\d+ .*\n  \w+: \S.* = ", r"(?m)^There is no frame 63\.$"):
        if not re.search(expected, output):
            failures.append(f"{what}: {expected} is not shown by lldb: {output[-2500:]}")
    output, _ = lldb_stacks.run_lldb(core, ["cdacq symbols", "cdacq stack", *(
        command for number in range(64) for command in (f"frame select {number}", "cdacq ip2method"))])
    managed = re.findall(r"(?m)^#\d+ +(?:\[\w+\] )?(0x[0-9a-f]+ .* \[(?:jit|r2r)\b.*)$", output)
    for frame in [frame for frame in managed if f"\n{frame}\n" not in output] if managed else ["no managed frame"]:
        failures.append(f"{what}: cdacq ip2method of a frame in lldb differs from the stack: {frame}")


def check_targets(what, one, other, failures):
    """Two targets in one lldb: each has its own symbols, once, and one hook."""
    if not lldb_stacks.lldb_works():
        return
    shown = ["image list", "target stop-hook list", "bt 64"]
    output, _ = lldb_stacks.run_lldb(one, [
        "cdacq symbols", f"target create --core {other}", "cdacq symbols", "target select 0", "cdacq symbols",
        "script print('FIRST')", *shown, "target select 1", "script print('SECOND')", *shown])
    for part in output.split("\nFIRST\n", 1)[-1].split("\nSECOND\n"):
        counts = (len(re.findall(r"(?m)^\[ *\d+\] .*/cdacq-\w+\.elf ?$", part)), len(re.findall(r"Hook: \d+", part)),
                  part.count("Demo.Program.Main()"))
        if counts != (1, 1, 1):
            failures.append(f"{what}: two targets in lldb: {counts}: {part[-2500:]}")


def build_plugin(work):
    """The LLDB plug-in of the examples. None without lldb's headers or a C++ compiler."""
    headers = sorted(glob.glob("/usr/lib/llvm-*/include/lldb/API/LLDB.h"))
    if not headers or shutil.which("c++") is None or not lldb_stacks.lldb_works():
        return None
    root, library = os.path.join(lab.HERE, "..", ".."), os.path.dirname(os.path.abspath(TOOL))
    path = os.path.join(work, "libmanaged.so")
    lab.run(["c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"{root}/examples/lldb_plugin.cpp", "-I",
             f"{root}/include", "-isystem", headers[0].removesuffix("/lldb/API/LLDB.h"), "-L", library, f"-Wl,-rpath,{library}", "-lcdacq",
             "-o", path])
    return path


def check_plugin(what, plugin, target, failures, stacks=None):
    """The stack of the thread that lldb selects, and the methods on it."""
    stacks = stacks or gdb_stacks.expected_stacks(TOOL, target)
    frames = stacks[target if isinstance(target, int) else next(iter(stacks))]
    ips = [frame["ip"] for frame in frames if frame["status"] == "managed"]
    output, _ = lldb_stacks.run_lldb(target, [f"plugin load {plugin}", "managed stack", f"managed method {' '.join(ips)} 0x12",
                                              *(["detach"] if isinstance(target, int) else [])], package=False)
    shown = re.findall(r"(?m)^#\d+ +\?? ?(0x[0-9a-f]+) ", output)
    if shown != [frame["ip"] for frame in frames]:
        failures.append(f"{what}: the plug-in walks otherwise: {output[-2500:]}")
    for frame in frames:
        if frame["status"] == "managed" and output.count(f"{frame['ip']} {frame['method']} +0x") < 2:
            failures.append(f"{what}: the plug-in does not name {frame['ip']} {frame['method']}: {output[-2500:]}")
    if "0x12 not managed\n" not in output or not ips:
        failures.append(f"{what}: the plug-in names what is not managed: {output[-500:]}")


def live(what, target, failures, plugin, with_lldb, remotely):
    """A running process. Its threads are stopped, so that two debuggers one after the other see the same stacks."""
    os.killpg(target.pid, 19)  # SIGSTOP
    arguments = ["-p", str(target.pid)]
    try:
        stacks = gdb_stacks.expected_stacks(TOOL, str(target.pid), "--stop")
        output = check(f"{what}, process", arguments, str(target.pid), failures, stacks)
        if "Demo.Program.Main()" not in output:
            failures.append(f"{what}: Main is not shown: {output[-1500:]}")
        if remotely and shutil.which("gdbserver"):
            remote = ["-ex", "set sysroot", "-ex", f"target remote | gdbserver --once - --attach {target.pid}"]
            problems, managed, lines, _ = gdb_stacks.compare(TOOL, str(target.pid), remote, stacks)
            print(f"{what}, gdbserver: {managed} managed frames, {lines} with lines; {len(problems)} problems", flush=True)
            failures += [f"{what}, gdbserver: {problem[:1500]}" for problem in problems]
        code = ["-ex", "set confirm off"]
        gdb_stacks.run_gdb(code + arguments, ["cdacq threads", "stepi", "bt", "detach"])
        if with_lldb:
            check_lldb(f"{what}, process", target.pid, failures, stacks)
        if plugin:
            check_plugin(f"{what}, process", plugin, target.pid, failures, stacks)
    finally:
        os.killpg(target.pid, 18)


def test_runtime(what, work, failures, is_first):
    every = lab.is_newest(what) or "--all" in sys.argv
    with_lldb = every
    plugin = build_plugin(work) if is_first else None
    with lab.running_target(work, runtime=what) as target:
        live(what, target, failures, plugin, with_lldb, is_first)
        cores = [target.createdump(kind) for kind in ("heap", "mini")] if every else []
        cores.append(target.kernel_core())
    for core in cores:
        check(f"{what}, {os.path.basename(core)}", ["-ex", f"core-file {core}"], core, failures)
        if with_lldb:
            check_lldb(f"{what}, {os.path.basename(core)}", core, failures)
    kernel = cores[-1]
    if every:
        check(f"{what}, with the program", [f"{kernel}.exe" if os.path.exists(f"{kernel}.exe") else sys_dotnet(),
                                            "-ex", f"core-file {kernel}"], kernel, failures)
    if plugin:
        check_plugin(what, plugin, cores[0], failures)
    check_symbols(what, kernel, failures)
    if with_lldb:
        check_lldb_commands(what, kernel, failures)
        check_targets(what, cores[1], kernel, failures)
    for core in cores:
        os.remove(core)


def sys_dotnet():
    return os.path.realpath(subprocess.run(["which", "dotnet"], capture_output=True, text=True).stdout.strip())


def main():
    failures = []
    try:
        if not gdb_stacks.gdb_works():
            raise lab.Skip("gdb with Python is not installed")
        for number, runtime in enumerate(lab.runtimes([word for word in sys.argv[1:] if word != "--all"])):
            with tempfile.TemporaryDirectory() as work:
                test_runtime(runtime, work, failures, number == 0)
    except lab.Skip as reason:
        print(f"skipped: {reason}")
        sys.exit(1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else 77)
    print(*failures, sep="\n")
    print(f"{len(failures)} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
