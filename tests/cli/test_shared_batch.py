"""
Many addresses of a running process, which two processes of the tool look up: the answers, the messages and the exit
code are those of one process.
"""
import contextlib
import os
import pathlib
import random
import select
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from undumped import undumped  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL")
FAULTS = os.environ.get("CDACQ_FAULTS")
FIXTURES = pathlib.Path(os.environ.get("CDACQ_FIXTURES", "tests/fixtures"))
CORE = FIXTURES / "net10-x64" / "core"
SHARED_MIN = 256  # addresses that two processes share
WAIT_SECONDS = 2  # for a second process that does nothing
SIGKILL, SIGSTOP = 9, 19
PROCESSORS = os.sched_getaffinity(0)


def one_processor():
    os.sched_setaffinity(0, {min(PROCESSORS)})


def children(pid):
    """Also zombies."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text(encoding="ascii", errors="replace")
        except OSError:  # it has ended meanwhile
            continue
        if int(text.rpartition(")")[2].split()[1]) == pid:
            found.append(text)
    return found


def addresses(count):
    """
    In and after JIT-compiled methods, in no order; some of them are there twice. (The process has zeros in place of
    most of its images, and then the answers depend on what is asked before.)
    """
    methods = subprocess.run([TOOL, "methods", str(CORE)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    starts = [int(line.split()[0], 16) for line in methods.splitlines() if b" [jit" in line]
    draw = random.Random(13)
    return [draw.choice(starts) + draw.randrange(40) for _ in range(count)]


@unittest.skipIf("CDACQ_RUN" in os.environ, "the tool cannot read this machine's processes")
class SharedBatch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        cls.process = stack.enter_context(undumped(CORE))
        every = addresses(4 * SHARED_MIN)
        lines = cls.ask(cls, every, alone=True)[1].splitlines()
        cls.ips = [ip for ip, line in zip(every, lines) if b"?" not in line]  # the others have a message
        cls.doubtful = every

    def ask(self, ips, *options, alone=False, **environment):
        """(exit code, answers, messages)"""
        text = "".join(ip if isinstance(ip, str) else f"{ip:x}\n" for ip in ips).encode()
        done = subprocess.run([TOOL, "ip2method", *options, str(self.process.pid)], input=text, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60, check=False, env={**os.environ, **environment},
                              preexec_fn=one_processor if alone else None)
        return done.returncode, done.stdout, done.stderr

    def assert_same(self, ips, *options):
        alone = self.ask(ips, *options, alone=True)
        self.assertEqual(self.ask(ips, *options), alone)
        self.assertEqual(alone[1].count(b"\n"), len(ips))
        return alone

    def test_answers(self):
        for options in ([], ["--json"], ["--color=always"], ["--names=sos"]):
            self.assertIn(b"Demo.Outer", self.assert_same(self.ips, *options)[1])
        self.assertGreater(len(self.ips), SHARED_MIN + 100)
        self.assert_same(self.ips[:SHARED_MIN])
        self.assert_same([self.ips[0]] * SHARED_MIN)
        self.assert_same(self.ips * 8)

    def test_stream(self):
        """When the first addresses have been answered, and others, there is nothing left of the second process."""
        text = "".join(f"{ip:x}\n" for ip in self.ips[:SHARED_MIN]).encode()
        self.assertLess(len(text), select.PIPE_BUF)  # one write() writes all
        tool = subprocess.Popen([TOOL, "ip2method", str(self.process.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            for _ in range(2):
                tool.stdin.write(text)
                tool.stdin.flush()
                for _ in range(SHARED_MIN):
                    tool.stdout.readline()
            self.assertEqual(children(tool.pid), [])
        finally:
            tool.communicate()
        self.assertEqual(tool.returncode, 0)

    def test_messages(self):
        """Of names that could not be read; of text that is no address, before, between and after the others."""
        self.assertIn(b"could not be read", self.assert_same(self.doubtful)[2])
        for bad in ("zz\n", "7f91e58aed0f0f0f0f0f\n"):
            for at in (0, 100, len(self.ips)):
                ips = [*self.ips[:at], bad, *self.ips[at:]]
                self.assertIn(b"?", self.assert_same(ips)[1])

    @unittest.skipIf(not FAULTS or len(PROCESSORS) < 2, "no library that lets calls fail, or one processor")
    def test_failures(self):
        alone = self.ask(self.ips, alone=True)
        for fault in ("fork", "dup2"):
            self.assertEqual(self.ask(self.ips, LD_PRELOAD=FAULTS, CDACQ_FAULT=f"{fault}:1"), alone, fault)
        killed = {"LD_PRELOAD": FAULTS, "CDACQ_FAULT": "dup2:1"}  # a call of the second process only
        self.assertEqual(self.ask(self.ips, **killed, CDACQ_FAULT_SIGNAL=str(SIGKILL)), alone)
        begin = time.monotonic()
        self.assertEqual(self.ask(self.ips, **killed, CDACQ_FAULT_SIGNAL=str(SIGSTOP)), alone)
        self.assertGreater(time.monotonic() - begin, WAIT_SECONDS)

    @unittest.skipUnless(FAULTS, "no library that lets calls fail")
    def test_without_memory(self):
        """No memory for what is read of the process, or for what both processes share."""
        alone = self.ask(self.ips, alone=True)
        self.assertEqual(self.ask(self.ips, LD_PRELOAD=FAULTS, CDACQ_FAULT="mmap:1"),
                         (2, b"", b"cdacq: process %d: Cannot allocate memory\n" % self.process.pid))
        for number in range(2, 8):
            got = self.ask(self.ips, LD_PRELOAD=FAULTS, CDACQ_FAULT=f"mmap:{number}")
            self.assertEqual(len(got[1].splitlines()), len(self.ips), number)
            self.assertTrue(got == alone or got[2], number)

    @unittest.skipUnless(FAULTS, "no library that lets calls fail")
    def test_reads_that_fail(self):
        """In either process or both: what is not as without the fault is an error, with a reason."""
        whole = self.ask(self.ips)[1].splitlines()
        for number in [*range(20, 40), *range(40, 120, 10)]:
            status, answers, messages = self.ask(self.ips, LD_PRELOAD=FAULTS, CDACQ_FAULT=f"process_vm_readv:{number}")
            if status == 2:
                self.assertTrue(messages, number)
                continue
            lines = answers.splitlines()
            self.assertEqual(len(lines), len(whole), number)
            for line, right in zip(lines, whole):
                if line != right:
                    self.assertTrue(b"?" in line or b"(...)" in line or b" IL_" not in line, (number, line, right))
                    self.assertTrue(messages or b"?" not in line, (number, line, right))


if __name__ == "__main__":
    unittest.main()
