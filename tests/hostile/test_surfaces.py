"""
Inputs made to hurt, beside cores: what is written into folders, standard input, text of other tools, folded stacks,
compressed files, perf maps and jitdumps, running processes. Every command ends within its limits, with an exit code and
messages of whole lines, and writes nothing where it was not told to.
"""
import ctypes
import gzip
import lzma
import mmap
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

import generators  # noqa: E402
from core_edit import Core  # noqa: E402
from emulation import time_bound  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL")
FIXTURES = pathlib.Path(os.environ.get("CDACQ_FIXTURES", "tests/fixtures")).resolve()
PLAIN, CRASH = str(FIXTURES / "net10-x64" / "core"), str(FIXTURES / "crash-net10-x64" / "core")
METHOD = 0x7F91E58AED00  # in PLAIN
MESSAGE = re.compile(rb"(cdacq: [^\x00-\x1f\x7f]+\n)*")
CONTROLS = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
CPU = time_bound(2)  # seconds of a command
MEMORY = 512  # MiB
HANG = time_bound(120)
SANITIZED = bool(TOOL) and b"__asan_init" in pathlib.Path(TOOL).read_bytes()


class Measured(subprocess.Popen):
    """Keeps what the process used."""

    used = None

    def _try_wait(self, wait_flags):
        pid, status, used = os.wait4(self.pid, wait_flags)
        if pid == self.pid:
            self.used = used
        return pid, status


def run_once(arguments, given, options):
    with Measured([TOOL, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        try:
            output, messages = process.communicate(given, HANG)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, output, messages), process.used


def run(*arguments, statuses=(0, 1, 2), bounded=True, **options):
    """The result of a command that ended as it may. The least of three times counts: others use the processor, too."""
    given = options.pop("input", None)
    options.setdefault("stdin", subprocess.DEVNULL if given is None else subprocess.PIPE)
    for _ in range(3):
        done, used = run_once(arguments, given, options)
        in_time = used.ru_utime + used.ru_stime < CPU
        if in_time or not bounded or SANITIZED:
            break
    what = (arguments, done.returncode, done.stderr[-1000:])
    assert done.returncode in statuses, what
    assert MESSAGE.fullmatch(done.stderr), what
    assert done.returncode != 2 or done.stderr, what
    if bounded and not SANITIZED:
        assert in_time, (what, used)
        assert used.ru_maxrss < MEMORY << 10, (what, used)
    return done


def core_of_paths(path, names):
    """CRASH, with its mapped files renamed in turn, and all files that it names known to be missing."""
    core = Core(CRASH)
    note = next(n for n in core.notes() if n[0] == generators.NT_FILE)[2]
    count, = struct.unpack_from("<Q", note)
    places = [struct.unpack_from("<QQQ", note, 16 + i * 24) for i in range(count)]
    paths = note[16 + count * 24 :].split(b"\0")
    renamed = {p: names[i % len(names)] for i, p in enumerate(dict.fromkeys(paths[:count]))}
    mappings = [(*place, renamed[p]) for place, p in zip(places, paths)]
    core.set_notes([n for n in core.notes() if n[0] != generators.NT_FILE]
                   + [(generators.NT_FILE, b"CORE\0", generators.nt_file(mappings))])
    return core.save(path)


class Folders(unittest.TestCase):
    """Paths come from the target; folders are written below the one that is given, and links are not followed."""

    NAMES = [b"/../../escaped", b"/a/../../../escaped.so", b"../escaped", b"escaped", b"/./x", b"/a", b"/a/b", b"/a/b/c.so", b"//a//b",
             b"/" + b"n" * 300, b"/" + b"/".join([b"d"] * 600), b"/.cdacq-part", b"/link/escaped", b"/new\nline", b"/esc\x1b[31m",
             b"/\xff\xfe", b"/trailing/", b"/", b"", b"/ (deleted)", b"/memfd:x (deleted)", b"/proc/self/fd/1", b"[heap]"]

    def check(self, command, path, folder):
        outside = pathlib.Path(folder, "outside")
        outside.mkdir()
        below = pathlib.Path(folder, "below")
        below.mkdir()
        (below / "link").symlink_to(outside)
        (below / "a").symlink_to(outside)
        (below / "libcoreclr.so").symlink_to(outside)
        before = sorted(p.name for p in pathlib.Path(folder).iterdir())
        run(command, path, below)
        self.assertEqual(list(outside.iterdir()), [])
        self.assertEqual(sorted(p.name for p in pathlib.Path(folder).iterdir()), before)
        self.assertEqual([str(p) for p in below.rglob("*.cdacq-part")], [])

    def test_symfs_and_bundle(self):
        for command in ("symfs", "bundle"):
            if command.encode() not in subprocess.run([TOOL, "--help"], stdout=subprocess.PIPE, check=False).stdout:
                continue
            with tempfile.TemporaryDirectory() as folder:
                os.mkdir(os.path.join(folder, "cores"))
                for count in (len(self.NAMES), 5):
                    path = core_of_paths(os.path.join(folder, "cores", "core"), self.NAMES[:count])
                    with self.subTest(command=command, count=count):
                        self.check(command, path, folder)
                    subprocess.run(["rm", "-r", os.path.join(folder, "outside"), os.path.join(folder, "below")], check=True)

    def test_symfs_into_a_link(self):
        with tempfile.TemporaryDirectory() as folder:
            target = pathlib.Path(folder, "file")
            target.write_text("kept", encoding="ascii")
            pathlib.Path(folder, "to-file").symlink_to(target)
            run("symfs", PLAIN, os.path.join(folder, "to-file"), statuses=(2,))
            self.assertEqual(target.read_text(encoding="ascii"), "kept")

    def test_symfs_at_a_bound(self):
        """One line names the bound, however many files there would be; links are there."""
        class Context:
            plain, tool = PLAIN, TOOL
        with tempfile.TemporaryDirectory() as folder:
            path = generators.heaps_share_nibbles(folder, Context, count=2)
            for bound in ("--memory-max=8M", "--work-max=200K"):
                done = run("symfs", path, os.path.join(folder, "out"), bound, statuses=(1, 2))
                self.assertEqual(done.stderr.count(b"stopped at the bound"), 1, done.stderr)
                self.assertLessEqual(done.stderr.count(b"\n"), 4, done.stderr)

    @unittest.skipIf(SANITIZED, "the bounds are those of a release build")
    def test_holes_raise_no_bound(self):
        """A core that claims a terabyte, all of it holes, is bounded as one of its size on the disk."""
        class Context:
            plain, tool = PLAIN, TOOL
        with tempfile.TemporaryDirectory() as folder:
            path = generators.heaps_share_nibbles(folder, Context)
            os.truncate(path, 1 << 40)
            for command in ("info", "methods"):
                done = run(command, path, statuses=(1, 2))
                self.assertRegex(done.stderr, rb"stopped at the bound on (memory, 256 MiB|work, 60000000 steps)")

    def test_names_of_pdbs(self):
        """An image may name its PDB as it likes; what is searched is below the folders that were given."""
        names = [b"../x.pdb", b"/etc/passwd", b"..\\..\\y.pdb", b"\x1b[31m.pdb", b"a/b/c.pdb", b"", b"." * 200]
        data = pathlib.Path(CRASH).read_bytes()
        found = [m.start() for m in re.finditer(rb"RSDS.{20}", data, re.DOTALL)]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "core")
            for name in names:
                changed = bytearray(data)
                for at in found:
                    end = data.index(b"\0", at + 24)
                    changed[at + 24 : end] = name[: end - at - 24].ljust(end - at - 24, b"\0")
                pathlib.Path(path).write_bytes(changed)
                for command in ("info", "stack"):
                    done = run(command, path, "--module-path", folder)
                    self.assertIsNone(CONTROLS.search(done.stdout), name)


class Bounds(unittest.TestCase):
    """The bounds on time and memory as they are without options, which test_hostile.py lowers for slow builds."""

    class Context:
        plain, crash, tool = PLAIN, CRASH, TOOL

    @unittest.skipIf(SANITIZED, "the bounds are those of a release build")
    def test_pdbs_of_a_snapshot(self):
        with tempfile.TemporaryDirectory() as folder:
            path = generators.pdbs_of_others(folder, self.Context)
            for command in (["info"], ["bundle", os.path.join(folder, "out")]):
                run(command[0], path, *command[1:])


class Texts(unittest.TestCase):
    """Text of other tools, which people paste and attackers choose."""

    TEXTS = {
        "a line without end": b"x" * (16 << 20),
        "one line of addresses": b"7f91e58aed00 " * 20_000,
        "addresses everywhere": b"0x7f91e58aed00\n" * 20_000,
        "nothing but line ends": b"\n" * 500_000,
        "zeros": bytes(1 << 20),
        "digits without end": b"f" * (1 << 20),
        "cut in a number": b"0x7f91e58aed0",
        "every byte": bytes(range(256)) * 512,
        "escapes": b"\x1b]0;title\x07 7f91e58aed00 \x1b[31m\n" * 1000,
        "a stack without end": b"app 1 1.0: 1 cycles:\n" + b"\t7f91e58aed00 [unknown] ([unknown])\n" * 50_000,
        "stacks of nothing": b"app 1 1.0: 1 cycles:\n\n" * 20_000,
        "names with separators": b"a;b c 12 1/2 1.0: 1 cycles:\n\t7f91e58aed00 x;y z+0x1 (/a b;c)\n\n" * 500,
        "frames without a header": b"\t7f91e58aed00 x (y)\n\n" * 10_000,
        "numbers that are too large": b"app 99999999999999999999/-1 1e999: 18446744073709551616 cycles:\n\tffffffffffffffffff x (y)\n\n",
        "inlined": b"app 1 1.0: 1 cycles:\n\t7f91e58aed00 a (inlined)\n\t (inlined)\n\n" * 1000,
        "different stacks": b"".join(b"app 1 1.0: 1 cycles:\n\t%x a%d (b)\n\n" % (METHOD + i % 30, i) for i in range(20_000)),
    }

    def test_filter(self):
        for name, text in self.TEXTS.items():
            with self.subTest(text=name):
                run("filter", PLAIN, input=text)
                run("filter", "--folded", input=text)
                if len(text) < 2 << 20:
                    run("filter", PLAIN, "--folded", input=text)

    def test_a_name_of_nothing(self):
        """The first sample's thread has a name that begins with a NUL."""
        done = run("filter", "--folded", input=b"\0x 1/1 1.0: 1 cycles:\n\t7f58aed00000 a (b)\n\n", statuses=(0,))
        self.assertEqual(done.stdout, b";a 1\n")

    FOLDED = {
        "deep": b";".join([b"f"] * 100_000) + b" 1\n",
        "wide": b"".join(b"a;f%d 1\n" % i for i in range(50_000)),
        "sums": b"a 18446744073709551615\na;b 18446744073709551615\na;c 1\n" * 10,
        "markup": b"<script>alert(1)</script>;a&b;\"';]]>;<!--;%s;\xff\xfe\x01 3\n",
        "no counts": b"a;b;c\n;;; 1\n 1\n1\n\n;\n",
        "negative": b"a -1\nb 0\nc 1.5\nd 1e3\ne 0x10\n",
        "long": b"n" * (1 << 20) + b" 1\n",
        "many lines": b"a;b;c;d;e;f 1\n" * 100_000,
        "zeros": bytes(4096) + b" 1\n",
    }

    def test_flame(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in self.FOLDED.items():
                path = os.path.join(folder, "x.folded")
                pathlib.Path(path).write_bytes(text)
                with self.subTest(text=name):
                    done = run("flame", path)
                    if done.returncode == 0:
                        tree = xml.etree.ElementTree.fromstring(done.stdout)
                        scripts = [e for e in tree.iter() if e.tag.endswith("script")]
                        self.assertFalse(any("alert(1)" in (e.text or "") for e in scripts))

    MAPS = {
        "end of the address space": b"ffffffffffffffff ffffffffffffffff a\n" * 10_000,
        "no end": b"%x 10 a" % METHOD,
        "carriage returns": b"%x 10 a\r\n" % METHOD * 10_000,
        "controls": b"%x 10 \x1b[31m\x07\x9b\xe2\x80\xae\n" % METHOD * 100,
        "numbers only": b"1 2\n3\n\n4 5 \n" * 10_000,
        "sizes of nothing": b"".join(b"%x 0 a\n" % (METHOD + i) for i in range(50_000)),
        "nested": b"".join(b"%x %x a\n" % (METHOD + i, 100_000 - 2 * i) for i in range(40_000)),
    }

    def test_perf_maps(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in self.MAPS.items():
                path = os.path.join(folder, "perf-1.map")
                pathlib.Path(path).write_bytes(text)
                with self.subTest(map=name):
                    done = run("verify", PLAIN, path)
                    self.assertIsNone(CONTROLS.search(done.stdout))


def record(kind, body, size=None, time=1):
    return struct.pack("<IIQ", kind, 16 + len(body) if size is None else size, time) + body


def load(index, address=METHOD, size=16, name=b"f\0", code=None):
    return struct.pack("<IIQQQQ", 1, 1, address, address, size, index) + name + (bytes(size) if code is None else code)


JITDUMPS = {
    "unwinding that claims all": [record(4, struct.pack("<QQQ", 2**64 - 1, 2**64 - 1, 2**64 - 1) + bytes(64))],
    "unwinding of nothing": [record(4, bytes(24)), record(0, load(1))],
    "unwinding of rubbish": [record(4, struct.pack("<QQQ", 64, 20, 64) + b"\x01\x1b\x03\x3b" + b"\xff" * 60), record(0, load(1))] * 500,
    "a table without end": [record(4, struct.pack("<QQQ", 64, 12, 64) + b"\x01\x1b\x03\x3b" + struct.pack("<iI", 0, 2**32 - 1) + bytes(52)),
                            record(0, load(1))],
    "names without end": [record(0, load(1, name=b"x" * 4096, code=b""))] * 50,
    "code of all": [record(0, struct.pack("<IIQQQQ", 1, 1, METHOD, METHOD, 2**64 - 1, 1) + b"f\0")],
    "one index": [record(0, load(7))] * 2000,
    "closed again and again": [record(3, b"")] * 2000 + [record(0, load(1))],
    "debug info of nobody": [record(2, struct.pack("<QQ", i, 0)) for i in range(5000)],
    "debug info without names": [record(2, struct.pack("<QQ", METHOD, 3) + struct.pack("<QII", METHOD, 2**32 - 1, 2**32 - 1) * 3),
                                 record(0, load(1))],
    "moves of everything": [record(0, load(1)), *[record(1, struct.pack("<IIQQQQQ", 1, 1, 0, METHOD, METHOD, 2**64 - 1, 1))] * 500],
    "sizes that wrap": [record(0, load(1), size=8), record(0, load(2), size=2**32 - 1)],
    "kinds of nothing": [record(k, bytes(32)) for k in range(4, 2000)],
    "times that run back": [record(0, load(i), time=2**64 - 1 - i) for i in range(2000)],
}


class Jitdumps(unittest.TestCase):
    def test_jitdumps(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, records in JITDUMPS.items():
                path = generators.jitdump(os.path.join(folder, "jit-1.dump"), records)
                with self.subTest(jitdump=name):
                    for done in (run("records", path), run("records", path, "--json"), run("verify", PLAIN, path),
                                 run("records", path, "--at", f"{METHOD:x}")):
                        self.assertIsNone(CONTROLS.search(done.stdout))


    def test_holes(self):
        """A file of any size that takes no room on the disk takes no time."""
        size = 2**32 - 16
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "jit-1.dump")
            with open(generators.jitdump(str(path), []), "r+b") as file:
                for i in range(64):
                    file.seek(40 + i * size)
                    file.write(record(0, load(i, size=2**31, code=b""), size=size))
                file.truncate(40 + 64 * size)
            for arguments in (("records", path), ("verify", PLAIN, path), ("records", path, "--at", f"{METHOD:x}")):
                run(*arguments)
            path = pathlib.Path(folder, "perf-1.map")
            path.write_bytes(b"1000 10 a\n")
            with open(path, "r+b") as file:
                file.truncate(1 << 40)
                file.seek(1 << 40)
                file.write(b"\n%x 10 b\n" % METHOD)
            done = run("verify", PLAIN, path)
            self.assertRegex(done.stdout, rb"records: 3\b")


def xz_of_dictionary(data):
    """An xz file that claims the largest dictionary: nearly 4 GiB."""
    packed = bytearray(lzma.compress(data, preset=0))
    size = (packed[12] + 1) * 4  # of the block's header
    packed[packed.index(b"\x21\x01", 12) + 2] = 40
    struct.pack_into("<I", packed, 12 + size - 4, zlib.crc32(packed[12 : 12 + size - 4]))
    return bytes(packed)


class Streams(unittest.TestCase):
    """Standard input, and what is packed."""

    def test_standard_input(self):
        for text in (b"", b"\x7fELF", b"not a core", bytes(1 << 20), pathlib.Path(CRASH).read_bytes()[:5000]):
            for command in ("report", "stack", "info"):
                run(command, "-", input=text)
        for closed in ("<&-", "< /", "</dev/null", "< /proc/self/mem"):
            done = subprocess.run(f"'{TOOL}' report - {closed}", shell=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG,
                                  check=False)
            self.assertEqual(done.returncode, 2, closed)
            self.assertTrue(MESSAGE.fullmatch(done.stderr) and done.stderr, (closed, done.stderr))

    def test_a_core_that_never_ends(self):
        zeros = subprocess.Popen(["cat", "/dev/zero"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            done = run("report", "-", "--store-max=1M", stdin=zeros.stdout, statuses=(2,), bounded=False)
            self.assertTrue(done.stderr)
        finally:
            zeros.stdout.close()
            zeros.kill()
            zeros.wait()

    def test_packed(self):
        core = pathlib.Path(CRASH).read_bytes()
        packed = {
            "bomb.gz": gzip.compress(core[:64] + bytes(64 << 20), 9),
            "twice.gz": gzip.compress(gzip.compress(core)),
            "many.gz": gzip.compress(b"") * 20_000,
            "rubbish.gz": gzip.compress(core) + os.urandom(4096),
            "name.gz": b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * (1 << 20),
            "dictionary.xz": xz_of_dictionary(core[:5000]),
            "window.zst": b"\x28\xb5\x2f\xfd\x00\xf8" + bytes(64),
            "huge.zst": b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 8 + bytes(64),
            "skipped.zst": (b"\x50\x2a\x4d\x18" + struct.pack("<I", 4) + b"skip") * 20_000,
            "skips.lz4": (b"\x50\x2a\x4d\x18" + struct.pack("<I", 2**32 - 1)) * 1000,
            "frame.lz4": b"\x04\x22\x4d\x18\x40\x70\xdf" + b"\xff\xff\xff\x7f" + bytes(4096),
        }
        with tempfile.TemporaryDirectory() as folder:
            for name, data in packed.items():
                path = os.path.join(folder, name)
                pathlib.Path(path).write_bytes(data)
                with self.subTest(file=name):
                    run("info", path, "--store-max=32M")


FAKE = r"""
import mmap, os, sys, time, threading
path, how = sys.argv[1:]
size = 1 << 20
fd = os.open(path, os.O_RDWR)
area = mmap.mmap(fd, size, mmap.MAP_PRIVATE if how != "shared" else mmap.MAP_SHARED)
area[:4]
if how == "cut":
    os.truncate(path, 0)
if how == "gone":
    os.unlink(path)
print("ready", flush=True)
if how == "exec":
    sys.stdin.readline()
    for i in range(10**9):
        pid = os.getpid()
        if i == 50:
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(20)"])
        time.sleep(0.002)
if how == "exit":
    time.sleep(0.05)
    os._exit(0)
time.sleep(60)
"""


def image_of_nothing():
    """An image of 1 MiB that exports nothing."""
    image = generators.elf_header(3, 62, 64, 2) + struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 1 << 20, 1 << 20, 4096)
    image += struct.pack("<IIQQQQQQ", 2, 5, 0x400, 0x400, 0, 512, 512, 8)
    return image.ljust(1 << 20, b"\0")


@unittest.skipIf("CDACQ_RUN" in os.environ, "the tool cannot read this machine's processes")
class Processes(unittest.TestCase):
    """Processes that change while they are read. They map an image that looks like a runtime."""

    def start(self, folder, how):
        path = os.path.join(folder, "libcoreclr.so")
        pathlib.Path(path).write_bytes(image_of_nothing())
        process = subprocess.Popen([sys.executable, "-c", FAKE, path, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def state(self, pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return "X"

    def test_files_that_shrink_or_go(self):
        with tempfile.TemporaryDirectory() as folder:
            for how in ("cut", "gone", "shared"):
                process = self.start(folder, how)
                for command in (["info"], ["stack"], ["report"], ["methods"], ["info", "--stop"]):
                    with self.subTest(how=how, command=command):
                        run(command[0], process.pid, *command[1:])
                        self.assertNotIn(self.state(process.pid), ("T", "t"))
                process.kill()

    def test_ends_meanwhile(self):
        with tempfile.TemporaryDirectory() as folder:
            for command in ("info", "stack", "report"):
                process = self.start(folder, "exit")
                for _ in range(8):
                    run(command, process.pid)
                    if process.poll() is not None:
                        break

    def test_executes_meanwhile(self):
        with tempfile.TemporaryDirectory() as folder:
            process = self.start(folder, "exec")
            process.stdin.write(b"\n")
            process.stdin.flush()
            for _ in range(12):
                run("stack", process.pid)
                self.assertNotIn(self.state(process.pid), ("T", "t"))

    def test_pages_that_never_come(self):
        """Reading waits for them, as docs/limits.md says, and can be interrupted."""
        libc = ctypes.CDLL(None, use_errno=True)
        handle = libc.syscall(323, os.O_CLOEXEC) if os.uname().machine == "x86_64" else -1
        if handle < 0:
            self.skipTest("userfaultfd is not permitted")
        import fcntl
        fcntl.ioctl(handle, 0xC018AA3F, bytearray(struct.pack("<QQQ", 0xAA, 0, 0)))
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            path = os.path.join(folder, "libcoreclr.so")
            with open(path, "w+b") as file:
                file.truncate(1 << 20)
                area = mmap.mmap(file.fileno(), 1 << 20, mmap.MAP_SHARED)
            begin = ctypes.addressof(ctypes.c_char.from_buffer(area))
            fcntl.ioctl(handle, 0xC020AA00, bytearray(struct.pack("<QQQQ", begin, 1 << 20, 1, 0)))
            with subprocess.Popen([TOOL, "info", str(os.getpid())], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as reader:
                time.sleep(0.3)
                reader.send_signal(signal.SIGTERM)
                try:
                    reader.wait(20)
                finally:
                    os.close(handle)  # lets it go on


if __name__ == "__main__":
    if not TOOL:
        sys.exit(77)
    unittest.main()
