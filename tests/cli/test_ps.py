"""`cdacq ps` finds processes by what is mapped into them and by the names of their threads."""
import contextlib
import fcntl
import json
import mmap
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

TOOL = os.environ.get("CDACQ_TOOL")
NAMED = """
import ctypes, sys, threading
def named():
    ctypes.CDLL(None).prctl(15, b".NET Finalizer", 0, 0, 0)
    print("ready", flush=True)
    sys.stdin.read()
threading.Thread(target=named).start()
"""
MAPPED = """
import mmap, sys
file = open(sys.argv[1], "rb")
mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ | (mmap.PROT_EXEC if "code" in sys.argv else 0))
print("ready", flush=True)
sys.stdin.read()
"""


class Processes(unittest.TestCase):
    def start(self, script, *arguments):
        process = subprocess.Popen([sys.executable, "-c", script, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        process.stdout.readline()
        return process.pid

    def listed(self, tool=TOOL, **options):
        """What it says of each process, and the messages."""
        done = subprocess.run([tool, "ps", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              timeout=60, **options)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([row["pid"] for row in rows], sorted(row["pid"] for row in rows))
        self.assertEqual(done.returncode, int(any(not row["readable"] for row in rows)))
        return {row["pid"]: row for row in rows}

    @unittest.skipIf("CDACQ_RUN" in os.environ, "the tool cannot read this machine's processes")
    def test_by_threads_and_mappings(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        library = pathlib.Path(folder.name).resolve() / "a folder" / "libcoreclr.so"
        library.parent.mkdir()
        library.write_bytes(b"\0" * mmap.PAGESIZE)
        (library.parent / "libcoreclr.so.dbg").write_bytes(b"\0" * mmap.PAGESIZE)
        named, mapped = self.start(NAMED), self.start(MAPPED, str(library), "code")
        others = [self.start(MAPPED, str(library) + ".dbg", "code"), self.start(MAPPED, str(library))]  # the last reads it
        rows = self.listed()
        self.assertNotIn(os.getpid(), rows)
        self.assertFalse(set(others) & set(rows))
        self.assertEqual((rows[named]["runtime_path"], rows[named]["threads"]), (None, 2))
        self.assertEqual(rows[mapped]["runtime_path"], str(library))
        for pid in (named, mapped):
            row = rows[pid]
            self.assertFalse(row["readable"])
            self.assertRegex(row["problem"], "runtime|not an ELF image")
            self.assertEqual((row["uid"], row["inner_pid"], row["container"]), (os.getuid(), pid, row["container"]))
            self.assertIn(sys.executable, row["arguments"])
        text = subprocess.run([TOOL, "ps"], stdout=subprocess.PIPE, check=False, timeout=60).stdout.decode()
        self.assertRegex(text, rf"\n *{named}  \? +2  ")

    @unittest.skipIf("CDACQ_RUN" in os.environ, "the tool cannot read this machine's processes")
    def test_long_command_lines_on_a_terminal(self):
        """They are cut where the line ends, and never within a character."""
        script = "import sys; exec(sys.argv[2])"
        named = self.start(script, "\u00e9\n" * 100, NAMED)
        reached = 50 + len(f"{sys.executable} -c {script} ")
        for width in (20, *range(reached, reached + 6)):
            leader, terminal = os.openpty()
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
            with subprocess.Popen([TOOL, "ps"], stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.DEVNULL,
                                  env={**os.environ, "NO_COLOR": "1"}):
                os.close(terminal)
                written = b""
                with contextlib.suppress(OSError):  # when the tool has ended
                    while True:
                        written += os.read(leader, 4096)
            os.close(leader)
            line = next(line for line in written.decode().splitlines() if line.split()[:1] == [str(named)])
            self.assertTrue(line.endswith("..."), line)
            self.assertNotIn("\\xc3", line)
            if width > 20:
                self.assertIn("\u00e9", line)
                self.assertIn(len(line), range(width - 3, width + 1))

    @unittest.skipIf(os.getuid(), "needs root to be somebody else")
    def test_a_process_of_another_user(self):
        named = self.start(NAMED)
        folder = tempfile.mkdtemp()  # the build may be where nobody else may look
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        tool = shutil.copy(TOOL, folder)
        row = self.listed(tool, user=65534, group=65534, extra_groups=[])[named]
        self.assertEqual((row["readable"], row["threads"], row["runtime"]), (False, 2, None))
        self.assertIn("permitted", row["problem"])
        for more in ([], ["--follow"]):  # nothing to wait for
            done = subprocess.run([tool, "records", str(named), *more], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                                  timeout=60, user=65534, group=65534, extra_groups=[])
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, rb"^cdacq: process %d: not permitted to see which jitdump it has, [^\n]+ be that user, or root, or have CAP_SYS_PTRACE\)\n$" % named)


if __name__ == "__main__":
    unittest.main()
