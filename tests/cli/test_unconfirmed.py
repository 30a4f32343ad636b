"""test_unconfirmed.py: a core lacks all of an assembly, and the file found for it may be another build. Every command
that shows a name from it says so."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "python"))

import python_support  # noqa: E402

TOOL = os.environ["CDACQ_TOOL"]
CORE = os.path.join(os.environ["CDACQ_FIXTURES"], "crash-net10-x64", "core")
ASSEMBLY = "/Dying.dll"
TOLD = b" files that the target cannot confirm: 'cdacq info' names the files\n"


def take_out(core, name, folder):
    """Moves what a core has of a mapped file to a file below `folder`. Returns the rest of the core."""
    segments, mappings, _ = python_support.load_segments(core)
    begin, end = mappings_of(mappings, name)
    for first, last, offset, path in mappings:
        if not path.endswith(name):
            continue
        file = pathlib.Path(folder, path[1:])
        file.parent.mkdir(parents=True, exist_ok=True)
        bytes_of_file = bytearray(file.read_bytes() if file.exists() else b"")
        bytes_of_file.extend(bytes(max(offset + last - first - len(bytes_of_file), 0)))
        for address, data in segments:
            if first <= address < last:
                bytes_of_file[offset + address - first:offset + address - first + len(data)] = data
        file.write_bytes(bytes_of_file)
    left = bytearray(pathlib.Path(core).read_bytes())
    headers, count = struct.unpack_from("<Q", left, 32)[0], struct.unpack_from("<H", left, 56)[0]
    for at in range(headers, headers + 56 * count, 56):
        if struct.unpack_from("<I", left, at)[0] == 1 and begin <= struct.unpack_from("<Q", left, at + 16)[0] < end:
            struct.pack_into("<Q", left, at + 32, 0)
    return bytes(left)


def said_of(element):
    """The message, of one element or several."""
    return rb"[ (](1 %s uses|([02-9]|[1-9][0-9]+) %ss use)" % (element, element) + TOLD


def mappings_of(mappings, name):
    ours = [mapping for mapping in mappings if mapping[3].endswith(name)]
    return min(mapping[0] for mapping in ours), max(mapping[1] for mapping in ours)


class Unconfirmed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.core = os.path.join(cls.folder.name, "core")
        pathlib.Path(cls.core).write_bytes(take_out(CORE, ASSEMBLY, cls.folder.name))
        listing = subprocess.run([TOOL, "stack", "--json", CORE], capture_output=True, check=False).stdout
        frames = [frame for frame in map(json.loads, listing.splitlines()) if (frame["module"] or "").endswith(ASSEMBLY)]
        cls.method, cls.ip = frames[0]["method"], frames[0]["ip"]

    def run_on(self, command, *arguments, core=None, text=b""):
        run = subprocess.run([TOOL, command, core or self.core, *arguments, "--sysroot", self.folder.name], input=text,
                             capture_output=True, check=False)
        self.assertIn(run.returncode, (0, 1), run.stderr)
        return run

    def assert_told(self, element, command, *arguments, text=b""):
        """Says so once, and of the whole core not at all."""
        told, whole = self.run_on(command, *arguments, text=text), self.run_on(command, *arguments, core=CORE, text=text)
        self.assertIn(self.method.encode(), told.stdout + whole.stdout)
        self.assertRegex(told.stderr, said_of(element))
        self.assertEqual(told.stderr.count(TOLD), 1, told.stderr)
        self.assertNotIn(TOLD, whole.stderr)

    def test_text(self):
        self.assert_told(b"answer", "ip2method", self.ip)
        self.assert_told(b"answer", "inspect", self.ip)
        self.assert_told(b"frame", "stack")
        self.assert_told(b"name", "filter", text=self.ip.encode())

    def test_listings(self):
        core = os.path.join(os.environ["CDACQ_FIXTURES"], "hello-net10-x64", "core")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "core")
            path.write_bytes(take_out(core, "/Hello.dll", folder))
            for command in ("methods", "perfmap"):
                told = self.run_on(command, "--sysroot", folder, core=path)
                self.assertRegex(told.stderr, said_of(b"method"))
                self.assertNotIn(TOLD.strip(), self.run_on(command, core=core).stderr)

    def test_folded(self):
        sample = f"dotnet 101/102 [001] 12.5: 1 cycles:u:\n\t{self.ip[2:]} [unknown] (/memfd:doublemapper)\n\n"
        self.assert_told(b"frame", "filter", "--folded", text=sample.encode())

    def test_report(self):
        """In the text itself, which people pass on."""
        self.assertRegex(self.run_on("report").stdout, said_of(b"frame").replace(b"\n", rb"\)\n"))
        self.assertNotIn(TOLD.strip(), self.run_on("report", core=CORE).stdout)

    def test_exceptions(self):
        report, whole = (json.loads(self.run_on("report", "--json", core=core).stdout) for core in (self.core, CORE))
        for key in ("exception", "last_words"):
            self.assertEqual((report[key]["unconfirmed"], whole[key]["unconfirmed"]), (True, False))
            self.assertEqual(report[key]["text"], whole[key]["text"])
        told = b"updated since)\n"  # once, whatever it is true of
        for more in ([], ["--brief"]):
            self.assertEqual(self.run_on("report", *more).stdout.count(told), 1)
            self.assertNotIn(told, self.run_on("report", *more, core=CORE).stdout)

    def test_json(self):
        for command in ("ip2method", "inspect"):
            told = self.run_on(command, "--json", self.ip)
            self.assertEqual((json.loads(told.stdout)["method"], json.loads(told.stdout)["module_verified"]),
                             (self.method, False))
            self.assertEqual(told.stderr, b"")
            whole = self.run_on(command, "--json", self.ip, core=CORE)
            self.assertIs(json.loads(whole.stdout)["module_verified"], True)

    def test_inspect_marks_each(self):
        self.assertIn("  module_verified    no\n", self.run_on("inspect", self.ip).stdout.decode())
        self.assertNotIn("module_verified", self.run_on("inspect", self.ip, core=CORE).stdout.decode())

    def test_snapshot(self):
        """Does not turn doubt into certainty."""
        with tempfile.TemporaryDirectory() as folder:
            for core, verified in ((self.core, False), (CORE, True)):
                path = os.path.join(folder, "snapshot")
                subprocess.run([TOOL, "snapshot", core, "--sysroot", self.folder.name, "-o", path, self.ip], check=True)
                for command in ("ip2method", "inspect"):
                    answer = json.loads(subprocess.run([TOOL, command, "--json", path, self.ip], capture_output=True,
                                                       check=False).stdout)
                    self.assertEqual((answer["method"], answer["module_verified"]), (self.method, verified))

    def test_what_needs_no_file(self):
        for command in ("ip2method", "inspect"):
            answer = json.loads(self.run_on(command, "--json", "0x10").stdout)
            self.assertEqual((answer["status"], answer["module_verified"]), ("none", None))


if __name__ == "__main__":
    unittest.main()
