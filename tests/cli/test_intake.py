"""Cores that the tool reads before it opens them: compressed ones, by the real compressors, and those on standard
input. They answer as the core itself does; cut, damaged and too large ones in part, and a message says so."""
import bz2
import gzip
import lzma
import os
import pathlib
import pty
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from emulation import time_bound  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL")
FIXTURES = pathlib.Path(os.environ.get("CDACQ_FIXTURES", "tests/fixtures"))
CORE = FIXTURES / "net10-x64" / "core"
LARGE_CORE = FIXTURES / "hello-net10-x64" / "core"
ANSWERED, PARTLY, FAILED, USAGE = 0, 1, 2, 64
MESSAGE = re.compile(rb"(cdacq: [^\x00-\x1f\x7f]+\n)*")
PARTIAL = re.compile(rb"cdacq: [^\n]*: only its first (\d+) bytes were read: ([^\n]+)\n")
COMMANDS = [["info"], ["info", "--json"], ["methods"], ["descriptor"], ["perfmap"], ["jitdump"]]
# Each gives a file that its program unpacks again.
COMPRESSORS = {
    "zstd": ["-q"], "zstd -19 -T2": ["-q", "-19", "-T2"], "zstd --long": ["-q", "--long=27"],
    "zstd --no-check": ["-q", "--no-check"],
    "gzip": [], "gzip -1": ["-1"],
    "xz": [], "xz -T2": ["-T2", "--block-size=100KiB"], "xz -9e": ["-9e"],
    "lz4": ["-q"], "lz4 -B4": ["-q", "-B4", "-BD", "--content-size"], "lz4 -9": ["-q", "-9"],
}


def compress(variant, data):
    """None without the program."""
    program = variant.split()[0]
    if program == "gzip":
        return gzip.compress(data, 1 if "-1" in variant else 9)
    if not shutil.which(program):
        return lzma.compress(data) if program == "xz" else None
    return subprocess.run([program, *COMPRESSORS[variant], "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def run(*arguments, stdin=b"", **options):
    options.setdefault("stdout", subprocess.PIPE)
    stream = {"stdin": stdin} if not isinstance(stdin, bytes) else {"input": stdin}
    return subprocess.run([TOOL, *map(os.fsencode, arguments)], stderr=subprocess.PIPE, timeout=time_bound(120), check=False,
                          **stream, **options)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, data, name="file"):
        path = os.path.join(self.folder.name, name)
        pathlib.Path(path).write_bytes(data)
        return path

    def assert_run(self, status, *arguments, lines=None, **options):
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, status, (arguments, done.stderr))
        self.assertTrue(MESSAGE.fullmatch(done.stderr), done.stderr)
        if lines is not None:
            self.assertEqual(done.stderr.count(b"\n"), lines, done.stderr)
        return done

    def assert_refused(self, text, *arguments, **options):
        done = self.assert_run(FAILED, *arguments, lines=1, **options)
        self.assertEqual(done.stdout, b"")
        self.assertIn(text, done.stderr.decode())

    def assert_partial(self, why, *arguments, **options):
        """What was read is used. Returns the number of bytes."""
        done = run(*arguments, **options)
        self.assertIn(done.returncode, (ANSWERED, PARTLY, FAILED), done.stderr)
        self.assertTrue(MESSAGE.fullmatch(done.stderr), done.stderr)
        match = PARTIAL.match(done.stderr)
        self.assertTrue(match, done.stderr)
        self.assertRegex(match[2].decode(), why)
        if arguments[0] == "info":
            self.assertIn(b"TRUNCATED: only its first " + match[1] + b" bytes", done.stdout)
        return int(match[1])


class Compressed(Case):
    def test_every_command_answers_as_for_the_core(self):
        plain = {tuple(command): run(*command, CORE) for command in COMMANDS}
        for variant in COMPRESSORS:
            packed = compress(variant, CORE.read_bytes())
            if packed is None:
                continue
            self.assertLess(len(packed), CORE.stat().st_size / 2)
            path = self.file(packed, "core")  # the name says nothing
            for command, expected in plain.items():
                if command != ("info", "--json") and variant != "gzip":
                    continue
                done = run(*command, path)
                self.assertEqual(done.returncode, expected.returncode, (variant, command, done.stderr))
                self.assertEqual(done.stdout.replace(os.fsencode(path), os.fsencode(CORE)), expected.stdout, (variant, command))
                self.assertEqual(done.stderr, expected.stderr)

    def test_snapshot_and_addresses(self):
        path = self.file(gzip.compress(LARGE_CORE.read_bytes(), 1))
        ips = [line.split()[0] for line in run("methods", LARGE_CORE).stdout.decode().splitlines()[:20]]
        for command in ("ip2method", "inspect"):
            self.assertEqual(run(command, path, *ips).stdout, run(command, LARGE_CORE, *ips).stdout)
        written = os.path.join(self.folder.name, "small")
        plain = run("snapshot", LARGE_CORE, "-o", os.path.join(self.folder.name, "plain"), *ips)
        self.assertIn(plain.returncode, (ANSWERED, PARTLY))  # some names are in files of the framework
        self.assertEqual(run("snapshot", path, "-o", written, *ips).returncode, plain.returncode)
        self.assertEqual(run("ip2method", written, *ips).stdout, run("ip2method", LARGE_CORE, *ips).stdout)

    def test_target_and_other(self):
        packed = self.file(gzip.compress(CORE.read_bytes()))
        self.assertEqual(self.assert_run(ANSWERED, "descriptor", packed, CORE, lines=0).stdout, b"")

    def test_concatenated_members(self):
        data = CORE.read_bytes()
        for variant in ("zstd", "gzip", "xz", "lz4"):
            parts = [compress(variant, data[i:i + 100000]) for i in range(0, len(data), 100000)]
            if None not in parts:
                path = self.file(b"".join(parts))
                self.assertEqual(run("methods", path).stdout, run("methods", CORE).stdout, variant)

    def test_other_data(self):
        for variant in ("zstd", "gzip", "xz", "lz4"):
            for data in (b"", b"x", b"\x7fELF", b"hello\n" * 100000, pathlib.Path(TOOL).read_bytes()):
                packed = compress(variant, data)
                if packed is not None:
                    self.assert_refused("not an ELF core", "info", self.file(packed))
                    self.assert_refused("not an ELF core", "methods", "-", stdin=packed)
        self.assert_refused("not an ELF", "info", self.file(bz2.compress(CORE.read_bytes())))
        self.assert_refused("not an ELF core", "info", self.file(gzip.compress(gzip.compress(CORE.read_bytes()))))


class Damaged(Case):
    """Of the larger core, for data of several blocks."""

    def test_cut_at_many_points(self):
        for variant in ("zstd --no-check", "gzip", "xz -T2", "lz4"):
            packed = compress(variant, LARGE_CORE.read_bytes())
            if packed is None:
                continue
            sizes = [*range(6, 40, 6), *range(40, len(packed), len(packed) // 7), *range(len(packed) - 20, len(packed), 4)]
            last = 0
            for size in sizes:
                done = self.assert_run_of_any_status("info", self.file(packed[:size]))
                match = PARTIAL.match(done.stderr)
                if match:
                    self.assertIn(b"data end early", match[2])
                    self.assertGreaterEqual(int(match[1]), last)
                    last = int(match[1])
                else:
                    self.assertEqual(done.returncode, FAILED)
                    self.assertEqual(last, 0, (variant, size, done.stderr))
                    self.assertRegex(done.stderr, rb"no core: the \w+ data end early|no usable core: .*end early")
            self.assertGreater(last, LARGE_CORE.stat().st_size * 9 // 10)

    def test_says_why_nothing_is_found(self):
        packed = gzip.compress(CORE.read_bytes())
        done = self.assert_run_of_any_status("stack", self.file(packed[:len(packed) // 12]))
        self.assertEqual(done.returncode, FAILED)
        self.assertRegex(done.stderr, rb"^cdacq: the core is cut off \(only its first \d+ bytes were read: the gzip data end "
                                      rb"early\): no \.NET runtime ")

    def assert_run_of_any_status(self, *arguments):
        done = run(*arguments)
        self.assertIn(done.returncode, (ANSWERED, PARTLY, FAILED), (arguments, done.stderr))
        self.assertTrue(MESSAGE.fullmatch(done.stderr), done.stderr)
        return done

    def test_changed_bytes(self):
        for variant in ("zstd", "gzip", "xz -T2", "lz4"):
            packed = compress(variant, LARGE_CORE.read_bytes())
            if packed is None:
                continue
            noticed = 0
            for at in range(6, len(packed), len(packed) // 9):
                changed = packed[:at] + bytes([packed[at] ^ 0x55]) + packed[at + 1:]
                done = self.assert_run_of_any_status("info", self.file(changed))
                noticed += b"damaged" in done.stderr or b"end early" in done.stderr
            self.assertGreater(noticed, 5, variant)


class Bounds(Case):
    def bomb(self, size):
        """A core of one segment of zeros; many members, so that it is quickly made."""
        core = bytearray(CORE.read_bytes()[:64])
        core[32:40] = (64).to_bytes(8, "little")
        core[56:58] = (1).to_bytes(2, "little")
        core += b"".join([(1).to_bytes(4, "little"), (6).to_bytes(4, "little"), (4096).to_bytes(8, "little"),
                          (0x10000).to_bytes(8, "little"), bytes(8), (1 << 40).to_bytes(8, "little") * 2, bytes(8)])
        member = 64 << 20
        zeros = compress("zstd", bytes(member))
        return zeros and compress("zstd", bytes(core)) + zeros * (size // member)

    def test_bomb(self):
        packed = self.bomb(2 << 30)
        if packed is None:
            self.skipTest("no zstd")
        self.assertLess(len(packed), 300000)
        start = time.monotonic()
        size = self.assert_partial("expand to more than 1 GiB and 1,000 times", "info", self.file(packed))
        self.assertGreater(size, 1 << 30)
        self.assertLess(size, (1 << 30) + 1001 * len(packed) + (1 << 20))
        self.assertLess(time.monotonic() - start, time_bound(60))

    def test_zeros_take_no_room(self):
        packed = self.bomb(512 << 20)
        if packed is None:
            self.skipTest("no zstd")
        done = run("info", "--store-max", "1M", self.file(packed))
        self.assertIn(b"ends before its last segment", done.stderr)  # and not for --store-max
        self.assertIn(b"512.0 MiB dumped", done.stdout)

    def test_store_max(self):
        packed = self.file(gzip.compress(LARGE_CORE.read_bytes()))
        for bound, text in ((1 << 20, "1 MiB"), (600 * 1024, "600 KiB"), (1000001, "1000001 bytes")):
            size = self.assert_partial(f"no more than {text} of a core are stored", "info", packed, "--store-max", str(bound))
            self.assertGreaterEqual(size, bound - 4096)
        self.assert_run(ANSWERED, "info", packed, "--store-max", "1G", lines=0)
        for value in ("", "0", "x", "1x", "1GB", "-1", "99999999999999999999", "99999999999G"):
            self.assert_run(USAGE, "info", packed, "--store-max", value, lines=1)
        self.assert_run(FAILED, "info", packed, "--store-max", "4K", lines=2)  # and no runtime

    def test_limit_on_the_size_of_files(self):
        packed = self.file(gzip.compress(LARGE_CORE.read_bytes()))
        size = self.assert_partial("ulimit -f", "info", packed,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
        self.assertEqual(size, 1 << 20)

    def test_no_room_for_temporary_files(self):
        packed = self.file(gzip.compress(CORE.read_bytes()))
        self.assert_refused("TMPDIR", "info", packed, env=dict(os.environ, TMPDIR="/nowhere"))
        self.assert_refused("TMPDIR", "info", packed, env=dict(os.environ, TMPDIR="/proc"))
        self.assert_run(ANSWERED, "info", packed, env=dict(os.environ, TMPDIR=""))
        self.assert_run(ANSWERED, "info", packed, env=dict(os.environ, TMPDIR=self.folder.name))
        self.assertEqual(os.listdir(self.folder.name), ["file"])

    def test_full_disk(self):
        unshare = ["unshare", "--user", "--map-root-user", "--mount", "--"]
        if subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("no user namespaces")
        packed = self.file(gzip.compress(LARGE_CORE.read_bytes()))
        mounted = os.path.join(self.folder.name, "full")
        os.mkdir(mounted)
        script = 'mount -t tmpfs -o size=1m tmpfs "$1" && TMPDIR=$1 exec "$2" info "$3"'
        done = subprocess.run([*unshare, "sh", "-c", script, "sh", mounted, TOOL, packed], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        if b"mount:" in done.stderr:
            self.skipTest("no tmpfs can be mounted")
        match = PARTIAL.match(done.stderr)
        self.assertTrue(match, done.stderr)
        self.assertIn(b"No space left on device", match[2])
        self.assertIn(b"TRUNCATED", done.stdout)

    def test_missing_library(self):
        """An empty file in the library's place. Nothing else loads liblzma."""
        path = self.file(lzma.compress(CORE.read_bytes()))
        self.file(b"", "liblzma.so.5")
        self.assert_refused("compressed with xz, but liblzma.so.5 (Debian package liblzma5) cannot be loaded", "info", path,
                            env=dict(os.environ, LD_LIBRARY_PATH=self.folder.name))


class StandardInput(Case):
    def pipe(self, data, *arguments, **options):
        return self.assert_run(*arguments, stdin=data, **options)

    def test_every_command(self):
        data = CORE.read_bytes()
        packed = gzip.compress(data)
        for command in COMMANDS:
            expected = run(*command, CORE).stdout.replace(os.fsencode(CORE), b"standard input")
            self.assertEqual(run(*command, "-", stdin=data).stdout, expected, command)
            self.assertEqual(run(*command, "-", stdin=packed).stdout, expected, command)

    def test_file(self):
        expected = run("methods", CORE).stdout
        packed = self.file(lzma.compress(CORE.read_bytes()))
        for path in (CORE, packed):
            with open(path, "rb") as stream:
                self.assertEqual(run("methods", "-", stdin=stream).stdout, expected)
        shifted = self.file(b"header" + CORE.read_bytes(), "shifted")
        with open(shifted, "rb", buffering=0) as stream:
            stream.seek(6)
            self.assertEqual(run("methods", "-", stdin=stream).stdout, expected)

    def test_ips_are_arguments(self):
        ips = [line.split()[0] for line in run("methods", CORE).stdout.decode().splitlines()[:3]]
        self.assertEqual(run("ip2method", "-", *ips, stdin=CORE.read_bytes()).stdout, run("ip2method", CORE, *ips).stdout)
        for command in ("ip2method", "inspect"):
            self.assertIn(b"standard input", self.pipe(b"", USAGE, command, "-", lines=1).stderr)
        self.assertIn(b"standard input", self.pipe(b"", USAGE, "descriptor", "-", "-", lines=1).stderr)
        self.assertEqual(self.pipe(CORE.read_bytes(), ANSWERED, "descriptor", CORE, "-", lines=0).stdout, b"")

    def test_not_a_core(self):
        self.assert_refused("standard input: empty", "info", "-")
        self.assert_refused("standard input: not an ELF core", "info", "-", stdin=b"#!/bin/sh\n")
        with open("/dev/zero", "rb") as zeros:
            self.assert_refused("standard input: not an ELF core", "methods", "-", stdin=zeros)
        folder = os.open(self.folder.name, os.O_RDONLY)
        self.addCleanup(os.close, folder)
        self.assert_refused("standard input: ", "info", "-", stdin=folder)
        leader, terminal = pty.openpty()
        self.addCleanup(os.close, leader)
        self.addCleanup(os.close, terminal)
        self.assert_refused("terminal", "info", "-", stdin=terminal)

    def test_output_is_not_the_input(self):
        path = self.file(CORE.read_bytes())
        with open(path, "rb") as stream:
            self.assert_refused("is the target", "methods", "-", "-o", path, stdin=stream)
        self.assertEqual(pathlib.Path(path).read_bytes(), CORE.read_bytes())

    def test_ends_early(self):
        data = LARGE_CORE.read_bytes()
        for size in (100, 10000):
            done = run("info", "-", stdin=data[:size])
            self.assertEqual(done.returncode, FAILED)
            self.assertTrue(MESSAGE.fullmatch(done.stderr) and done.stderr, done.stderr)
        for size in (len(data) // 3, len(data) - 1):
            self.assertEqual(self.assert_partial("ends before its last segment", "info", "-", stdin=data[:size]), size)
        self.assertEqual(self.assert_partial("no more than 1 MiB", "info", "-", "--store-max", "1M", stdin=data) % 4096, 0)

    def test_slow_writer_and_progress(self):
        """The counter is for a terminal; nothing of it is left when results are printed."""
        leader, terminal = pty.openpty()
        self.addCleanup(os.close, leader)
        data = CORE.read_bytes()
        tool = subprocess.Popen([TOOL, "info", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=terminal)
        os.close(terminal)
        shown = []

        def read_terminal():
            try:
                while piece := os.read(leader, 1000):
                    shown.append(piece)
            except OSError:
                pass
        reader = threading.Thread(target=read_terminal)
        reader.start()
        for i in range(0, len(data), len(data) // 8):
            tool.stdin.write(data[i:i + len(data) // 8])
            tool.stdin.flush()
            time.sleep(0.15)
        tool.stdin.close()
        self.assertIn(b"core standard input, of process", tool.stdout.read())
        tool.stdout.close()
        self.assertEqual(tool.wait(), ANSWERED)
        reader.join()
        self.assertRegex(b"".join(shown), rb"^(\r\x1b\[K(reading standard input, \d s|\d+ MiB of standard input read, \d+/s)?)+$")
        self.assertTrue(shown[-1].endswith(b"\r\x1b[K"))

    def test_standard_streams_are_closed(self):
        """As the kernel starts the program of a core_pattern pipe: its files must not become standard output."""
        written = os.path.join(self.folder.name, "out")
        for closed in ((1,), (2,), (1, 2)):
            def close(closed=closed):
                for fd in closed:
                    os.close(fd)
            subprocess.run([TOOL, "info", "-", "-o", written], input=CORE.read_bytes(), preexec_fn=close, env={},
                           cwd="/", check=True)
            self.assertEqual(pathlib.Path(written).read_bytes(), run("info", "-", stdin=CORE.read_bytes()).stdout)
        done = subprocess.run([TOOL, "info", CORE], preexec_fn=lambda: os.close(1), stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, FAILED)
        self.assertIn(b"cannot write to standard output", done.stderr)


if __name__ == "__main__":
    unittest.main()
