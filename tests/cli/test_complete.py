"""test_complete.py: `cdacq complete` fills in what a core lacks of its files, from files that it confirms alone."""
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

TOOL = os.environ["CDACQ_TOOL"]
PAGE = 4096
READ, WRITE, EXECUTE = 4, 2, 1
UNCONFIRMED = 0x00100000
BASE, DATA, STACK, OTHER = 0x10000000, 0x20000000, 0x30000000, 0x40000000
NT_PRSTATUS, NT_SIGINFO, NT_FILE, NT_GNU_BUILD_ID = 1, 0x53494749, 0x46494c45, 3
EM_X86_64 = 62


def note(name, kind, content):
    name += b"\0"
    padded = name + bytes(-len(name) % 4), content + bytes(-len(content) % 4)
    return struct.pack("<III", len(name), len(content), kind) + padded[0] + padded[1]


def header(kind, offset, address, in_file, in_memory, flags):
    return struct.pack("<IIQQQQQQ", kind, flags, offset, address, 0, in_file, in_memory, PAGE)


def elf(kind, headers):
    ident = b"\x7fELF\2\1\1".ljust(16, b"\0")
    return ident + struct.pack("<HHIQQQIHHHHHH", kind, EM_X86_64, 1, 0, 64, 0, 0, 64, 56, len(headers), 0, 0, 0) + b"".join(headers)


def library(build_id, size, writable_from):
    """An ELF file with a build-id in its first page, read-only up to an offset and then writable."""
    identity = note(b"GNU", NT_GNU_BUILD_ID, build_id)
    headers = [header(1, 0, 0, writable_from, writable_from, READ | EXECUTE),
               header(1, writable_from, writable_from, size - writable_from, size - writable_from, READ | WRITE),
               header(4, 512, 512, len(identity), len(identity), READ)]
    start = elf(3, headers).ljust(512, b"\0") + identity
    return start + bytes((at * 7 + at // 256) % 251 + 1 for at in range(size - len(start)))


def write_core(path, segments, mappings, by_kernel=True):
    """`segments`: (address, bytes, size in memory, flags); `mappings`: (begin, end, file offset, path)."""
    notes = note(b"CORE", NT_PRSTATUS, bytes(336))
    notes += note(b"CORE", NT_SIGINFO, struct.pack("<III", 6, 0, 0).ljust(128, b"\0")) if by_kernel else b""
    files = struct.pack("<QQ", len(mappings), PAGE)
    files += b"".join(struct.pack("<QQQ", begin, end, offset // PAGE) for begin, end, offset, _ in mappings)
    notes += note(b"CORE", NT_FILE, files + b"".join(os.fsencode(name) + b"\0" for *_, name in mappings))
    at = 64 + 56 * (1 + len(segments))
    headers, contents = [header(4, at, 0, len(notes), 0, 0)], [notes]
    at += len(notes)
    for address, data, size, flags in segments:
        headers.append(header(1, at, address, len(data), size, flags))
        contents.append(data)
        at += len(data)
    pathlib.Path(path).write_bytes(elf(4, headers) + b"".join(contents))


class Core:
    """The notes and segments of a core."""

    def __init__(self, path):
        data = pathlib.Path(path).read_bytes()
        self.segments = []
        for i in range(struct.unpack_from("<H", data, 56)[0]):
            kind, flags, offset, address, _, in_file, in_memory, _ = struct.unpack_from("<IIQQQQQQ", data, 64 + 56 * i)
            content = data[offset:offset + in_file]
            if kind == 4:
                self.notes = content
            else:
                self.segments.append((address, content, in_memory, flags))

    def read(self, address, size):
        for begin, content, _, _ in self.segments:
            if begin <= address < begin + len(content):
                return content[address - begin:address - begin + size]
        return b""

    def flags(self, address):
        return next(flags for begin, _, size, flags in self.segments if begin <= address < begin + size)


class Complete(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.core, self.output = self.path("core"), self.path("full")
        self.library = library(b"0123456789abcdefghij", 5 * PAGE + 100, 3 * PAGE)
        self.text = b"nobody knows this file\n" * 100

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, content):
        pathlib.Path(self.path(name)).write_bytes(content)
        return self.path(name)

    def write_usual(self, by_kernel=True):
        """The first page of a library, none of a file without identity, and a stack that is there."""
        file, text = self.put("libmock.so", self.library), self.put("text", self.text)
        write_core(self.core,
                   [(BASE, self.library[:PAGE], 3 * PAGE, READ | EXECUTE), (BASE + 3 * PAGE, b"", 3 * PAGE, READ | WRITE),
                    (DATA, b"", PAGE, READ), (STACK, b"s" * 32 * PAGE, 32 * PAGE, READ | WRITE)],
                   [(BASE, BASE + 3 * PAGE, 0, file), (BASE + 3 * PAGE, BASE + 6 * PAGE, 3 * PAGE, file), (DATA, DATA + PAGE, 0, text)],
                   by_kernel)

    def complete(self, *options, expected=0):
        run = subprocess.run([TOOL, "complete", self.core, "-o", self.output, "--json", *options], capture_output=True, check=False)
        self.assertEqual(run.returncode, expected, run.stderr)
        return json.loads(run.stdout) if run.stdout else run.stderr.decode()

    def test_confirmed_file(self):
        self.write_usual()
        said = self.complete(expected=1)
        core = Core(self.output)
        self.assertEqual(core.read(BASE, 3 * PAGE), self.library[:3 * PAGE])
        self.assertEqual(core.read(BASE + 3 * PAGE, 3 * PAGE), self.library[3 * PAGE:] + bytes(PAGE - 100))
        self.assertEqual(core.read(STACK, PAGE), b"s" * PAGE)
        self.assertEqual(core.notes, Core(self.core).notes)
        self.assertEqual(said["filled"], 5 * PAGE)
        self.assertEqual([(file["path"], file["missing"]) for file in said["files"]], [(self.path("text"), PAGE)])
        self.assertEqual(said["missing"], PAGE)
        self.assertEqual(core.read(DATA, PAGE), b"")
        self.assertEqual([core.flags(at) for at in (BASE, BASE + 3 * PAGE, STACK)], [READ | EXECUTE, READ | WRITE, READ | WRITE])
        self.assertEqual(os.stat(self.output).st_mode & 0o777, 0o600)
        self.assertEqual(os.stat(self.output).st_size, said["size"])

    def test_unconfirmed_file(self):
        self.write_usual()
        said = self.complete("--unconfirmed", expected=1)
        core = Core(self.output)
        self.assertEqual(core.read(DATA, PAGE), self.text.ljust(PAGE, b"\0"))
        self.assertEqual(core.flags(DATA), READ | UNCONFIRMED)
        self.assertEqual((said["unconfirmed"], said["missing"]), (PAGE, 0))
        self.assertEqual([(file["path"], file["unconfirmed"]) for file in said["files"]], [(self.path("text"), True)])

    def test_another_build(self):
        """A file with another build-id supplies nothing, whatever is asked for."""
        self.write_usual()
        self.put("libmock.so", library(b"0123456789abcdefghiJ", 5 * PAGE + 100, 3 * PAGE))
        for options in (), ("--unconfirmed",):
            said = self.complete(*options, expected=1)
            self.assertIn("build-id", next(file["problem"] for file in said["files"] if file["path"].endswith("libmock.so")))
            self.assertEqual(Core(self.output).read(BASE, 3 * PAGE), self.library[:PAGE])
            self.assertEqual(Core(self.output).read(BASE + 3 * PAGE, PAGE), b"")

    def test_core_that_lacks_changed_memory(self):
        """A writer that leaves out what the process has changed: the writable part of a file may not stand in."""
        self.write_usual(by_kernel=False)
        said = self.complete(expected=1)
        core = Core(self.output)
        self.assertEqual(core.read(BASE, 3 * PAGE), self.library[:3 * PAGE])
        self.assertEqual(core.read(BASE + 3 * PAGE, PAGE), b"")
        self.assertEqual(sorted(file["missing"] for file in said["files"]), [PAGE, 3 * PAGE])

    def test_cut_core(self):
        """What a core was to hold beyond its end may have been changed."""
        self.write_usual()
        write_core(self.core, [(BASE, self.library[:PAGE], 3 * PAGE, READ), (STACK, b"s" * 32 * PAGE, 32 * PAGE, READ | WRITE),
                               (BASE + 3 * PAGE, b"w" * 3 * PAGE, 3 * PAGE, READ | WRITE)],
                   [(BASE, BASE + 3 * PAGE, 0, self.path("libmock.so")), (BASE + 3 * PAGE, BASE + 6 * PAGE, 3 * PAGE, self.path("libmock.so"))])
        with open(self.core, "r+b") as file:
            file.truncate(os.stat(self.core).st_size - 2 * PAGE)
        self.complete(expected=1)
        self.assertEqual(Core(self.output).read(BASE, 3 * PAGE), self.library[:3 * PAGE])
        self.assertEqual(Core(self.output).read(BASE + 3 * PAGE, 3 * PAGE), b"w" * PAGE)

    def test_mapping_without_a_segment(self):
        """gdb lists mappings that it leaves out in NT_FILE alone."""
        file = self.put("libmock.so", self.library)
        write_core(self.core, [(BASE, self.library[:PAGE], PAGE, READ), (STACK, b"s" * 32 * PAGE, 32 * PAGE, READ | WRITE)],
                   [(BASE, BASE + PAGE, 0, file), (BASE + PAGE, BASE + 3 * PAGE, PAGE, file)])
        self.complete()
        core = Core(self.output)
        self.assertEqual(core.read(BASE, PAGE) + core.read(BASE + PAGE, 2 * PAGE), self.library[:3 * PAGE])
        self.assertEqual(core.flags(BASE + PAGE), READ | EXECUTE)

    def test_mappings_within_a_segment(self):
        """createdump joins mappings in one segment."""
        file = self.put("libmock.so", self.library)
        write_core(self.core, [(BASE, self.library[:2 * PAGE], 2 * PAGE, READ)],
                   [(BASE, BASE + PAGE, 0, file), (BASE + PAGE, BASE + 3 * PAGE, PAGE, file)], by_kernel=False)
        self.complete()
        core = Core(self.output)
        self.assertEqual(core.read(BASE, 2 * PAGE) + core.read(BASE + 2 * PAGE, PAGE), self.library[:3 * PAGE])

    def test_few_headers(self):
        """Adjacent segments are joined: those of equal access always, others where there are too many."""
        parts = [(OTHER + i * 16, b"%016d" % i, 16, READ) for i in range(20000)]
        write_core(self.core, parts, [])
        self.complete()
        core = Core(self.output)
        self.assertEqual([(address, size) for address, _, size, _ in core.segments], [(OTHER, 320000)])
        self.assertEqual(core.segments[0][1], b"".join(data for _, data, _, _ in parts))
        for count, expected in (9000, 9000), (12000, 1):
            parts = [(OTHER + i * 16, b"%016d" % i, 16, READ | (i & 1) * WRITE) for i in range(count)]
            write_core(self.core, parts, [])
            self.complete()
            self.assertEqual(len(Core(self.output).segments), expected)
            self.assertEqual(b"".join(data for _, data, _, _ in Core(self.output).segments), b"".join(data for _, data, _, _ in parts))

    def test_refusals(self):
        self.write_usual()
        self.assertIn("give -o FILE", subprocess.run([TOOL, "complete", self.core], capture_output=True, check=False, text=True).stderr)
        done = subprocess.run([TOOL, "complete", str(os.getpid()), "-o", self.output], capture_output=True, check=False, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn("core", done.stderr)
        self.output = self.path("nowhere/full")
        self.assertIn("nowhere", self.complete(expected=2))
        self.assertEqual(sorted(os.listdir(self.folder)), ["core", "libmock.so", "text"])


if __name__ == "__main__":
    unittest.main()
