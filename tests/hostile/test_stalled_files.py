"""
Files and memory of a FUSE file system whose server answers, or no longer does. The tests run in a user and mount
namespace of their own.
"""
import json
import mmap
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import core_edit  # noqa: E402
import generators  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL")
CORE = HERE.parent / "fixtures" / "crash-net10-x64" / "core"
INSIDE = "CDACQ_STALLED_FILES"
NT_FILE = 0x46494C45
MAPPED_AT = 0x610000000000
LONGEST = 6.5  # seconds: five, and what a busy machine takes
MAPPED = """
import mmap, sys
file = open(sys.argv[1], "rb")
mapped = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
print("ready", flush=True)
sys.stdin.read()
"""


class StalledFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.place = self.folder / "mounted"
        self.place.mkdir()

    def start(self, *command):
        process = subprocess.Popen([sys.executable, "-B", *map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)

        def end():
            process.kill()
            process.communicate()
        self.addCleanup(end)
        return process

    def serve(self, path):
        """Mounts a copy of a file. Returns its path there."""
        self.server = self.start(HERE.parent / "support" / "fuse_server.py", self.place, path)
        if self.server.stdout.readline() != "ready\n":
            self.skipTest("FUSE: " + self.server.communicate()[1].strip().rpartition("\n")[2])
        self.addCleanup(subprocess.run, ["umount", "-l", self.place], check=False)
        return self.place / path.name

    def stall(self, what):
        self.server.stdin.write(what + "\n")
        self.server.stdin.flush()
        self.assertEqual(self.server.stdout.readline(), "ready\n")

    def run_tool(self, *arguments):
        """What it writes: the end of a pipe shows that no process has it open any more."""
        began = time.monotonic()
        done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60)
        self.assertLess(time.monotonic() - began, LONGEST, (arguments, done))
        return done

    def library(self, name="libcoreclr.so"):
        """An ELF file."""
        path = self.folder / name
        shutil.copy(pathlib.Path(TOOL), path)
        return path

    def core_with(self, path):
        """A core that lacks most of a file."""
        core = core_edit.Core(CORE)
        table = next(note[2] for note in core.notes() if note[0] == NT_FILE)
        known = int.from_bytes(table[:8], "little")
        numbers = [tuple(int.from_bytes(table[at : at + 8], "little") for at in range(16 + i * 24, 40 + i * 24, 8))
                   for i in range(known)]
        paths = table[16 + known * 24 :].split(b"\0")
        size = -(-(self.folder / path.name).stat().st_size // mmap.PAGESIZE) * mmap.PAGESIZE
        mappings = [(*number, name) for number, name in zip(numbers, paths)]
        mappings.append((MAPPED_AT, MAPPED_AT + size, 0, os.fsencode(path)))
        core.segment(MAPPED_AT, core.append((self.folder / path.name).read_bytes()[:4096]), 4096, flags=5)
        core.set_notes([note for note in core.notes() if note[0] != NT_FILE]
                       + [(NT_FILE, b"CORE\0", generators.nt_file(sorted(mappings)))])
        core.save(self.folder / "core")
        return self.folder / "core"

    def test_a_core(self):
        path = self.serve(self.library("libx.so"))
        core = self.core_with(path)
        usual = {command: self.run_tool(command, core) for command in ("info", "stack")}
        for done in usual.values():
            self.assertIn(done.returncode, (0, 1), done.stderr)
        copies = self.folder / "copies"
        self.assertIn(self.run_tool("bundle", core, copies).returncode, (0, 1))
        copied = [file.read_bytes() for file in copies.rglob(path.name) if file.is_file()]
        self.assertEqual(copied, [(self.folder / path.name).read_bytes()])
        for what in ("lookup", "open", "read"):
            self.stall(what)
            for command, expected in usual.items():
                done = self.run_tool(command, core)
                self.assertIn(done.returncode, (0, 1), (what, command, done))
                if command == "stack":
                    self.assertEqual(done.stdout, expected.stdout, what)
                else:
                    said = f"{path} cannot be read: its file system does not answer"
                    self.assertIn(said, done.stdout, what)
                    self.assertNotIn(said, expected.stdout)
                    others = [line for line in done.stdout.splitlines() if path.name not in line]
                    self.assertLessEqual(set(expected.stdout.splitlines()[:4]), set(others))
            self.stall("nothing")

    def states_of(self, pid):
        states = set()
        for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
            states.add(next(line for line in status.read_text().splitlines() if line.startswith("State:")).split()[1])
        return states

    def test_a_process(self):
        path = self.serve(self.library())
        target, local = self.start("-c", MAPPED, path), self.start("-c", MAPPED, self.folder / "libcoreclr.so")
        for process in (target, local):
            self.assertEqual(process.stdout.readline(), "ready\n")
        answers = [self.run_tool("stack", process.pid).stderr.replace(str(place), "").replace(str(process.pid), "PID")
                   for process, place in ((target, path.parent), (local, self.folder))]
        self.assertEqual(*answers)  # its memory is read like any other
        self.assertRegex(answers[0], "no .NET runtime|no contract descriptor")
        self.stall("read")
        target = self.start("-c", MAPPED, path)  # to open it empties the kernel's cache
        self.assertEqual(target.stdout.readline(), "ready\n")
        for arguments in (["info"], ["info", "--stop"], ["stack"], ["report"]):
            done = self.run_tool(*arguments, target.pid)
            self.assertEqual(done.returncode, 2, done)
            self.assertRegex(done.stderr, r"^cdacq: [^\n]*libcoreclr.so[^\n]*does not answer\n$")
            self.assertFalse(self.states_of(target.pid) & {"T", "t"}, arguments)

    def test_each_process_costs_its_own_line(self):
        path = self.serve(self.library())
        self.stall("read")
        local = self.start("-c", MAPPED, self.folder / "libcoreclr.so")
        silent = [self.start("-c", MAPPED, path) for _ in range(5)]
        for target in [local, *silent]:
            self.assertEqual(target.stdout.readline(), "ready\n")
        done = self.run_tool("ps", "--json")
        rows = {row["pid"]: row for row in map(json.loads, done.stdout.splitlines())}
        self.assertEqual(list(rows), sorted(rows))
        self.assertNotRegex(rows[local.pid]["problem"] or "", "answer|within")
        for target in silent:
            self.assertRegex(rows[target.pid]["problem"], "does not answer|could not be examined within")
            self.assertEqual(rows[target.pid]["runtime_path"], str(path))
        self.assertEqual((done.returncode, done.stderr), (1, ""))


def enter():
    """Runs this file in namespaces of its own. Returns its exit code, or why there are none."""
    unshare = ["unshare", "--user", "--map-root-user", "--mount", "--propagation", "private"]
    try:
        probe = subprocess.run([*unshare, "true"], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        return str(error)
    if probe.returncode:
        return probe.stderr.strip()
    return subprocess.run([*unshare, sys.executable, "-B", __file__, *sys.argv[1:]], env={**os.environ, INSIDE: "1"},
                          check=False).returncode


if __name__ == "__main__":
    if INSIDE in os.environ:
        unittest.main()
    problem = "the tool runs elsewhere" if {"CDACQ_RUN", "CDACQ_EMULATED"} & set(os.environ) else enter()
    if isinstance(problem, int):
        sys.exit(problem)
    print("skipped: no namespaces:", problem)
