"""Compares what gdb shows of the stacks of a core or process with what `cdacq stack` finds. Used by tests."""
import json
import os
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Within gdb: the program counters of all frames with code of their own, as gdb itself walks the stack.
WALK = '''
import json, gdb
for thread in sorted(gdb.selected_inferior().threads(), key=lambda t: t.num):
    thread.switch()
    frame, pcs = gdb.newest_frame(), []
    while frame is not None:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME) and frame.pc():
            pcs.append(frame.pc())
        frame = frame.older()
    print("PCS", json.dumps([thread.ptid[1], pcs]))
'''
LINE = re.compile(r"#(\d+)\s+(?:(0x[0-9a-f]+) in )?(.*?) \(\)(?: at (.*):(\d+)| from .*)?$")


def gdb_works():
    """Whether there is a gdb that has Python."""
    if shutil.which("gdb") is None:
        return False
    done = subprocess.run(["gdb", "-nx", "-batch", "-ex", "python print('ye' + 's')"], capture_output=True, text=True)
    return "yes" in done.stdout


def run_gdb(arguments, commands, package=True):
    """gdb's output for commands, and the processor time that it took."""
    before = os.times()
    options = []
    if package:
        path = os.environ.get("CDACQ_INSTALLED_PACKAGES", str(ROOT / "python"))
        options = ["-ex", f"python import sys; sys.path.insert(0, {path!r})", "-ex", "python import cdacq.gdb"]
    command = ["gdb", "-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "set width 0", "-ex",
               "set print inferior-events off"]
    for each in commands:
        options += ["-ex", each]
    done = subprocess.run([*command, *options[:4 if package else 0], *arguments, *options[4 if package else 0:]],
                          capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=120)
    after = os.times()
    if "Error while executing Python code" in done.stderr:  # gdb goes on after it
        raise AssertionError(done.stderr)
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return done.stdout + done.stderr, used


def expected_stacks(tool, target, *options):
    """By thread: the frames of `cdacq stack`, and whether all of them are certain."""
    stacks = {}
    out = subprocess.run([tool, "stack", "--json", "--each", *options, target], capture_output=True, text=True, timeout=120).stdout
    for line in out.splitlines():
        frame = json.loads(line)
        stacks.setdefault(frame["tid"], []).append(frame)
    return stacks


def shown_stacks(output):
    """By thread: the frames that `thread apply all bt` printed, as (pc, name, file, line)."""
    stacks, frames = {}, None
    for line in output.splitlines():
        if thread := re.match(r"Thread .*\(LWP (\d+)(?: \".*\")?\)|Thread \d+ \(Thread \d+\.(\d+)|Thread \d+ \(.*?(\d+)\)", line):
            frames = stacks.setdefault(int(thread[1] or thread[2] or thread[3]), [])
        elif frames is not None and (shown := LINE.match(line)):
            frames.append((int(shown[2], 16) if shown[2] else None, shown[3], shown[4], int(shown[5] or 0)))
    return stacks


def walked_stacks(output):
    """By thread: the program counters of gdb's own walk."""
    return dict(json.loads(line[4:]) for line in output.splitlines() if line.startswith("PCS "))


def compare(tool, target, arguments, stacks=None, with_lines=True):
    """Problems, the number of managed frames, and of frames with a line."""
    stacks = stacks or expected_stacks(tool, target)
    script = pathlib.Path(os.environ.get("TMPDIR", "/tmp"), f"cdacq-walk-{os.getpid()}.py")
    script.write_text(WALK)
    try:
        output, _ = run_gdb(arguments, ["thread apply all bt", f"source {script}"])
    finally:
        script.unlink()
    shown, walked, problems = shown_stacks(output), walked_stacks(output), []
    managed = lines = 0
    if "Python Exception" in output or "Error occurred" in output:
        problems.append("an exception in gdb: " + re.search(r".*(?:Python Exception|Error occurred).*", output)[0])
    for tid, frames in stacks.items():
        pcs = [int(frame["ip"], 16) for frame in frames]
        if walked.get(tid) != pcs:
            problems.append(f"thread {tid}: gdb walks {list(map(hex, walked.get(tid, [])))}, not {list(map(hex, pcs))}")
        found = [frame for frame in shown.get(tid, []) if frame[0] is not None or "/" in (frame[2] or "")]
        names = {(frame[0], frame[1], frame[2], frame[3]) for frame in found}
        for frame in frames:
            if frame["status"] != "managed":
                continue
            managed += 1
            lines += frame["line"] is not None
            name = (f"[{frame['funclet']}] " if frame["funclet"] else "") + (frame["method"] or "??")
            line = frame["line"] if with_lines else None
            want = (int(frame["ip"], 16), name, frame["file"] if line else None, line or 0)
            if want not in names and (None, *want[1:]) not in names and not any(
                    w[1:] == want[1:] for w in names if w[0] is None):
                problems.append(f"thread {tid}: {want} is not shown: {sorted(map(str, names))[:40]}")
    return problems, managed, lines, output
