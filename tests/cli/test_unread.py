"""test_unread.py: a core lacks an assembly, and no file of it is found. The names of its methods cannot be read, and
every command whose answers lack them says so."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import test_unconfirmed  # noqa: E402

TOOL = os.environ["CDACQ_TOOL"]
FIXTURES = pathlib.Path(os.environ["CDACQ_FIXTURES"])
CRASHES = [FIXTURES / f"crash-net{version}-x64" / "core" for version in (8, 9, 10)]
REASON = rb" could not be read: Dying\.dll: metadata: [^\n]*/Dying\.dll is needed and was not found[^\n]*\n"


def run(command, *arguments, text=b""):
    return subprocess.run([TOOL, command, *map(str, arguments)], input=text, capture_output=True, check=False)


def cores_without(folder, cores, assembly):
    """Copies of the cores that lack the assembly."""
    lacking = []
    for core in cores:
        path = pathlib.Path(folder, core.parent.name)
        with tempfile.TemporaryDirectory() as taken:
            path.write_bytes(test_unconfirmed.take_out(str(core), assembly, taken))
        lacking.append(path)
    return lacking


class Unread(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.cores = cores_without(cls.folder.name, CRASHES, "/Dying.dll")
        cls.core, cls.whole = cls.cores[-1], CRASHES[-1]
        frames = [json.loads(line) for line in run("stack", "--json", cls.core).stdout.splitlines()]
        cls.ips = [frame["ip"] for frame in frames if (frame["module"] or "").endswith("/Dying.dll")]
        assert len(cls.ips) == 2 and all(frame["method"] is None for frame in frames if frame["ip"] in cls.ips)

    def assert_told(self, count, command, *arguments, text=b""):
        """Says so once, and of the whole core not at all. The exit status does not depend on it."""
        told = run(command, self.core, *arguments, text=text)
        self.assertRegex(told.stderr, rb"(?m)^cdacq: " + count + REASON)
        self.assertEqual(told.stderr.count(b" could not be read: "), 1)
        whole = run(command, self.whole, *arguments, text=text)
        self.assertEqual((whole.returncode, whole.stderr), (told.returncode, b""))

    def test_answers(self):
        self.assert_told(b"1 name", "ip2method", self.ips[0])
        self.assert_told(b"3 names", "ip2method", *self.ips, self.ips[0], "0x10")
        self.assert_told(b"2 names", "inspect", *self.ips, "0x10")
        self.assert_told(b"2 names", "stack")
        for command in ("ip2method", "inspect"):
            self.assertEqual(run(command, self.core, "--json", *self.ips).stderr, b"")  # it has the key `error`

    def test_text_with_addresses(self):
        text = " ".join(["10", *self.ips, "10\n"]).encode()
        self.assert_told(b"2 names", "filter", text=text)
        sample = "dotnet 101/102 [001] 12.5: 1 cycles:u:\n"
        sample += "".join(f"\t{ip[2:]} [unknown] (/memfd:doublemapper)\n" for ip in self.ips)
        self.assert_told(b"2 names", "filter", "--folded", text=sample.encode() + b"\n")

    def test_report(self):
        """Is not complete, and no form of it says that it is."""
        for core, whole in zip(self.cores, CRASHES):
            for options in ([], ["--brief"], ["--json"], ["--signature"], ["--signature", "--json"]):
                told = run("report", core, *options)
                self.assertEqual(told.returncode, 1, options)
                self.assertRegex(told.stderr, rb"^cdacq: parts of the last words [^\n]* cannot be read\n"
                                              rb"cdacq: 2 names" + REASON + rb"$")
                complete = run("report", whole, *options)
                self.assertEqual((complete.returncode, complete.stderr), (0, b""))
            row = json.loads(told.stdout)
            self.assertRegex(row["signature"], r"^unhandled System\.Reflection\.TargetInvocationException of \S+: \?$")
            self.assertIs(row["complete"], False)
            self.assertIs(json.loads(run("report", core, "--json").stdout)["exception"]["missing"], True)

    def test_snapshot(self):
        """Is to need no other file."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "snapshot")
            told = run("snapshot", self.core, "--json", "-o", path, *self.ips, "0x10")
            self.assertRegex(told.stderr, rb"^cdacq: 2 names" + REASON + rb"$")
            self.assertEqual((told.returncode, json.loads(told.stdout)["errors"]), (1, 2))
            whole = run("snapshot", self.whole, "--json", "-o", path, *self.ips, "0x10")
            self.assertEqual((whole.returncode, whole.stderr, json.loads(whole.stdout)["errors"]), (0, b"", 0))
            both = [json.loads(run("snapshot", core, "--json", "--stacks", "-o", path).stdout)["errors"]
                    for core in (self.core, self.whole)]
            self.assertGreaterEqual(both[0], both[1] + len(self.ips))

    def test_listing(self):
        whole = FIXTURES / "hello-net10-x64" / "core"
        core, = cores_without(self.folder.name, [whole], "/Hello.dll")
        told, more = run("methods", core), run("methods", whole)
        self.assertEqual((told.returncode, more.returncode), (0, 0))
        self.assertEqual((told.stdout.count(b" ? "), more.stdout.count(b" ? ")), (5, 0))
        words = re.compile(rb"cdacq: (\d+) names could not be read: [^\n]*: metadata: [^\n]*\n")
        counts = [int(words.fullmatch(done.stderr)[1]) if done.stderr else 0 for done in (told, more)]
        self.assertEqual(counts[0], counts[1] + 5)  # where there is no .NET, parts of more names are missing
        self.assertEqual(run("methods", core, "--json").stderr, b"")
        some = run("methods", core, "System.*")
        self.assertRegex(some.stderr, rb"^cdacq: some names cannot be read, [^\n]*\n(cdacq: no method that [^\n]*\n)?$")


if __name__ == "__main__":
    unittest.main()
