"""
A list of addresses of a running process: an answer for each, in order; what failures of its system calls leave.
"""
import contextlib
import os
import pathlib
import random
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from undumped import undumped  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL")
FAULTS = os.environ.get("CDACQ_FAULTS")
FIXTURES = pathlib.Path(os.environ.get("CDACQ_FIXTURES", "tests/fixtures"))
CORE = FIXTURES / "net10-x64" / "core"
COUNT = 1000
TIER = re.compile(rb"\[jit \w+\]")


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
class AddressList(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        cls.process = stack.enter_context(undumped(CORE))
        cls.doubtful = addresses(COUNT)
        lines = cls.ask(cls, cls.doubtful)[1].splitlines()
        cls.ips = [ip for ip, line in zip(cls.doubtful, lines) if b"?" not in line]  # the others have a message

    def ask(self, ips, *options, **environment):
        """(exit code, answers, messages)"""
        text = "".join(ip if isinstance(ip, str) else f"{ip:x}\n" for ip in ips).encode()
        done = subprocess.run([TOOL, "ip2method", *options, str(self.process.pid)], input=text, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60, check=False, env={**os.environ, **environment})
        return done.returncode, done.stdout, done.stderr

    def test_order(self):
        """Each address has the answer that it has alone."""
        status, answers, messages = self.ask(self.ips * 2)
        lines = answers.splitlines()
        self.assertEqual((status, len(lines), messages), (0, 2 * len(self.ips), b""))
        self.assertEqual(lines[:len(self.ips)], lines[len(self.ips):])
        for place in range(0, len(self.ips), 97):
            self.assertEqual(self.ask([self.ips[place]])[1].splitlines(), [lines[place]])

    def test_messages(self):
        """Names that could not be read; text that is no address, before, between and after the others."""
        self.assertIn(b"could not be read", self.ask(self.doubtful)[2])
        answers = self.ask(self.ips)[1].splitlines()
        for bad in ("zz\n", "7f91e58aed0f0f0f0f0f\n"):
            for at in (0, 100, len(self.ips)):
                lines = self.ask([*self.ips[:at], bad, *self.ips[at:]])[1].splitlines()
                self.assertIn(b"?", lines.pop(at))
                self.assertEqual(lines, answers)

    @unittest.skipUnless(FAULTS, "no library that lets calls fail")
    def test_without_memory(self):
        """No memory for what is read of the process."""
        whole = self.ask(self.ips)
        self.assertEqual(self.ask(self.ips, LD_PRELOAD=FAULTS, CDACQ_FAULT="mmap:1"),
                         (2, b"", b"cdacq: process %d: Cannot allocate memory\n" % self.process.pid))
        for number in range(2, 8):
            got = self.ask(self.ips, LD_PRELOAD=FAULTS, CDACQ_FAULT=f"mmap:{number}")
            self.assertEqual(len(got[1].splitlines()), len(self.ips), number)
            self.assertTrue(got == whole or got[2], number)

    @unittest.skipUnless(FAULTS, "no library that lets calls fail")
    def test_reads_that_fail(self):
        """What is not as without the fault is an error, with a reason."""
        whole = self.ask(self.ips)[1].splitlines()
        for number in [*range(20, 40), *range(40, 120, 10)]:
            status, answers, messages = self.ask(self.ips, LD_PRELOAD=FAULTS, CDACQ_FAULT=f"process_vm_readv:{number}")
            if status == 2:
                self.assertTrue(messages, number)
                continue
            lines = answers.splitlines()
            self.assertEqual(len(lines), len(whole), number)
            for line, right in zip(lines, whole):
                if line not in (right, TIER.sub(rb"[jit]", right)):  # a tier that cannot be read is not shown
                    self.assertTrue(b"?" in line or b"(...)" in line or b" IL_" not in line, (number, line, right))
                    self.assertTrue(messages or b"?" not in line, (number, line, right))


if __name__ == "__main__":
    unittest.main()
