"""Compares what lldb shows of the stacks of a core or process with what `cdacq stack` finds. Used by tests."""
import collections
import glob
import json
import os
import shutil
import subprocess
import tempfile

import elf

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.environ.get("CDACQ_INSTALLED_PACKAGES", os.path.join(HERE, "..", "..", "python"))


def environment(**more):
    """lldb of Debian 12 finds its own module by PYTHONPATH only, and the system's Python where PATH names no other."""
    own = glob.glob("/usr/lib/llvm-*/lib/python3*/*-packages/lldb/embedded_interpreter.py")
    paths = [os.path.dirname(os.path.dirname(path)) for path in own[:1]] + [PACKAGE]
    return dict(os.environ, PYTHONPATH=os.pathsep.join(paths), PATH="/usr/sbin:/usr/bin:/sbin:/bin", **more)


def lldb_works():
    """Whether there is an lldb that has Python."""
    if shutil.which("lldb") is None:
        return False
    done = subprocess.run(["lldb", "--batch", "--no-lldbinit", "-o", "script print('ye' + 's')"], capture_output=True,
                          text=True, env=environment(), stdin=subprocess.DEVNULL)
    return "yes\n" in done.stdout


def run_lldb(target, commands, package=True, **more):
    """lldb's output for commands, and the processor time that it took. `target` is the path of a core or a pid."""
    opened = f"process attach --pid {target}" if isinstance(target, int) else f"target create --core {target}"
    imported = ["command script import cdacq.lldb"] if package else []
    options = [part for command in [opened, *imported, *commands] for part in ("-o", command)]
    before = os.times()
    done = subprocess.run(["lldb", "--batch", "--no-lldbinit", *options], capture_output=True, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, timeout=120, env=environment(**more))
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return done.stdout + done.stderr, used


def frames(target, package=True):
    """{tid: [frame]} as lldb has them, the processor time, and the output."""
    threads = collections.defaultdict(list)
    with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
        commands = [f"command script import {HERE}/lldb_frames.py", *(["cdacq symbols"] if package else []),
                    "write-frames", *(["detach"] if isinstance(target, int) else [])]
        output, used = run_lldb(target, commands, package, CDACQ_FRAMES=file.name)
        for line in file:
            frame = json.loads(line)
            threads[frame["tid"]].append(frame)
    return threads, used, output


def compare(target, stacks):
    """Problems, the number of managed frames, the processor time, and the output."""
    shown, used, output = frames(target)
    problems, managed = elf.differences(stacks, shown)
    if "Traceback" in output:
        problems.append(("an exception in lldb", output[-1000:]))
    return [str(problem)[:1500] for problem in problems], managed, used, output
