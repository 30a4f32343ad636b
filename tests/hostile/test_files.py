"""
Files that somebody else made: links, FIFOs, devices and files of root at the paths that a target names, in namespaces
of an unprivileged process or in a container's root, and where outputs are written. Nothing is opened but regular files
that the target's user may read, what was compared is what is copied, and no output has more readers than its source.
"""
import ctypes
import fcntl
import json
import os
import pathlib
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

from core_edit import Core  # noqa: E402
from generators import NT_FILE, mapped_images, nt_file  # noqa: E402
from test_surfaces import CRASH, FIXTURES, PLAIN, TOOL, run  # noqa: E402

NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}
AS_ROOT = os.getuid() == 0 and "CDACQ_RUN" not in os.environ
BASE, PAGE, MAPPED = 0x610000000000, 4096, 0x10000
IN_OPEN, IN_NONBLOCK = 0x20, os.O_NONBLOCK
METHOD = "7f91e58aed0f"
# In namespaces of its own: maps libcoreclr.so of a file system that it mounts, and puts a link in place of that file.
MAPPER = """
import mmap, os, subprocess, sys, time
folder, library, to = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "x", folder], check=True)
path = folder + "/libcoreclr.so"
with open(path, "wb") as file:
    file.write(open(library, "rb").read())
file = open(path, "rb")
kept = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
subprocess.run(["mount", "-t", "tmpfs", "y", folder], check=True)
os.symlink(to, path)
print("ready", flush=True)
time.sleep(1000)
"""


def python_of_nobody():
    """An interpreter that nobody can start, or None."""
    for path in (sys.executable, "/usr/bin/python3"):
        try:
            subprocess.run([path, "-c", ""], check=True, stderr=subprocess.DEVNULL, **NOBODY)
            return path
        except (OSError, subprocess.CalledProcessError):
            pass
    return None


def mode_of(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def make_library(path, size=MAPPED):
    """An ELF image with a build-id: enough to compare, and to have a key."""
    note = struct.pack("<III", 4, 20, 3) + b"GNU\0" + bytes(range(20))
    header = (b"\x7fELF\x02\x01\x01".ljust(16, b"\0") +
              struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0))
    segments = (struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, size, size, PAGE) +
                struct.pack("<IIQQQQQQ", 4, 4, 0x200, 0x200, 0x200, len(note), len(note), 4))
    data = ((header + segments).ljust(0x200, b"\0") + note).ljust(size, b"\x90")
    pathlib.Path(path).write_bytes(data)
    return data


def core_that_maps(path, contents, to, count=1, size=MAPPED):
    """A core in which files are mapped, whose first page it has, if any. The path has the number of each."""
    core = Core(CRASH)
    table = next(note for note in core.notes() if note[0] == NT_FILE)[2]
    known, = struct.unpack_from("<Q", table)
    names = table[16 + known * 24:].split(b"\0")
    maps = [(*struct.unpack_from("<QQQ", table, 16 + i * 24), names[i]) for i in range(known)]
    page = core.append(contents[:PAGE])
    for i in range(count):
        begin = BASE + i * 0x100000
        maps.append((begin, begin + size, 0, os.fsencode(str(path).replace("%d", str(i)))))
        if contents:
            core.segment(begin, page, PAGE, flags=5)
    core.set_notes([note for note in core.notes() if note[0] != NT_FILE] + [(NT_FILE, b"CORE\0", nt_file(maps))])
    return core.save(to)


class Opens:
    """Counts how often files are opened for reading or writing; what only finds them (O_PATH) does not count."""

    def __init__(self, *paths):
        self.calls = ctypes.CDLL(None, use_errno=True)
        self.descriptor = self.calls.inotify_init1(IN_NONBLOCK)
        for path in paths:
            if self.calls.inotify_add_watch(self.descriptor, os.fsencode(path), IN_OPEN) < 0:
                raise OSError(ctypes.get_errno(), "inotify_add_watch")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.descriptor)

    def count(self):
        try:
            return len(os.read(self.descriptor, 1 << 16)) // 16
        except BlockingIOError:
            return 0


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.folder.chmod(0o755)
        before = os.umask(0o022)
        self.addCleanup(os.umask, before)

    def secret(self):
        path = self.folder / "secret"
        path.write_bytes(b"only its owner may read this")
        path.chmod(0o600)
        return path

    # ---- What a target names ----

    def mapper(self, to):
        """A process of nobody that maps a file which is a link in its namespace. None: that is not permitted here."""
        mount, library = self.folder / "m", self.folder / "lib.so"
        mount.mkdir(exist_ok=True)
        make_library(library)
        python = python_of_nobody()
        if not python:
            return None
        process = subprocess.Popen(["unshare", "-Urm", python, "-c", MAPPER, str(mount), str(library), str(to)],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **NOBODY)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process if process.stdout.readline() == b"ready\n" else None

    @unittest.skipUnless(AS_ROOT, "only root reads the processes of others")
    def test_links_count_as_work(self):
        """symfs makes no more links to files that a core names than the bound on work allows, and says so."""
        count = 200
        for i in range(count):
            contents = make_library(self.folder / f"links-{i}.so")
        core = core_that_maps(self.folder / "links-%d.so", contents, self.folder / "core", count)
        for name, bound, most in (("all", "60M", count), ("some", "1M", count - 1)):
            done = run("symfs", core, self.folder / name, "--work-max", bound, statuses=(1, 2))
            links = list((self.folder / name).rglob("links-*.so"))
            self.assertLessEqual(len(links), most)
            self.assertEqual(b"bound on work" in done.stderr, name == "some", done.stderr)
        self.assertEqual(len(list((self.folder / "all").rglob("links-*.so"))), count)

    def test_links_in_other_namespaces(self):
        """For a process of nobody, root opens no FIFO, device or file of root, but a file that all may read."""
        fifo, device, readable = (self.folder / name for name in ("fifo", "device", "readable"))
        os.mkfifo(fifo)
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        make_library(readable)
        hidden = self.folder / "hidden"
        hidden.mkdir(mode=0o700)
        make_library(hidden / "lib.so")
        for to, opened in ((fifo, False), (device, False), (self.secret(), False), (hidden / "lib.so", False),
                           (readable, True)):
            process = self.mapper(to)
            if not process:
                self.skipTest("no user namespaces here")
            with Opens(to) as opens:
                for command in (["info", process.pid], ["report", process.pid], ["ps"]):
                    opens.count()
                    run(*command)
                    self.assertEqual(opens.count() > 0, opened, (to, command))
            process.kill()

    def test_absolute_link_below_a_sysroot(self):
        """It leads to a file below the sysroot, not to one of this machine."""
        root, outside = self.folder / "root", self.folder / "real"
        real = pathlib.Path(str(root) + str(outside))
        for path in (root / "app", real, outside):
            path.mkdir(parents=True)
        contents = make_library(real / "libx.so")
        (root / "app/libx.so").symlink_to(outside / "libx.so")
        core = core_that_maps("/app/libx.so", contents, str(self.folder / "core"))
        for has_other in (False, True):
            if has_other:
                (outside / "libx.so").write_bytes(contents[:0x210] + b"another build" + contents[0x21d:])
            rows = json.loads(run("info", core, "--json", "--sysroot", root).stdout)["modules"]
            row = next(row for row in rows if row["path"] == "/app/libx.so")
            self.assertEqual((row["local_path"], row["verified"]), (str(root / "app/libx.so"), True), row)
        out = self.folder / "out"
        run("bundle", core, out, "--sysroot", root)
        copy, = out.glob("libx.so/*/libx.so")
        self.assertEqual(copy.read_bytes(), contents)
        links = self.folder / "symfs"
        run("symfs", core, links, "--sysroot", root)
        self.assertEqual(os.readlink(str(links) + "/app/libx.so"), str(real / "libx.so"))

    # ---- What is compared ----

    def versions(self, names, contents, change_at):
        """Files with the contents, each with another byte at a place."""
        paths = [self.folder / name for name in names]
        for i, path in enumerate(paths):
            path.parent.mkdir(parents=True)
            path.write_bytes(contents[:change_at] + bytes([contents[change_at] ^ (i % 255 + 1)]) + contents[change_at + 1:])
        return paths

    def test_candidates_are_opened_once(self):
        """A core names a file again and again that --module-path has in several other versions."""
        contents = make_library(self.folder / "libx.so")
        files = self.versions((f"m/{i}/libx.so" for i in range(5)), contents, 0x214)
        core = core_that_maps("/x/%d/libx.so", contents, str(self.folder / "core"), count=30)
        with Opens(*files) as opens:
            rows = json.loads(run("info", core, "--json", "--module-path", self.folder / "m").stdout)["modules"]
            self.assertEqual(opens.count(), len(files))
        problems = [row["problem"] for row in rows if row["path"].endswith("/libx.so")]
        self.assertEqual(len(problems), 30)
        for problem in problems:
            self.assertIn("is not the file that was mapped: it has another build-id; wanted: build-id", problem)

    def test_unheld_files(self):
        """Of a file of which the core holds nothing, no version can be confirmed: the first one is taken."""
        contents = make_library(self.folder / "libx.so")
        files = self.versions((f"m/{i}/libx.so" for i in range(5)), contents, 0x214)
        core = core_that_maps("/x/%d/libx.so", b"", str(self.folder / "core"), count=4)
        with Opens(*files[1:]) as opens:
            rows = json.loads(run("info", core, "--json", "--module-path", self.folder / "m").stdout)["modules"]
            self.assertEqual(opens.count(), 0)
        found = [(row["local_path"], row["verified"]) for row in rows if row["path"].endswith("/libx.so")]
        self.assertEqual(found, [(str(files[0]), False)] * 4)

    def test_pdbs_are_opened_once(self):
        pdb = FIXTURES / "pdb"
        contents = (pdb / "Lines.pdb").read_bytes()
        stream, = struct.unpack_from("<I", contents, contents.index(b"#Pdb") - 8)
        files = self.versions((f"m/Lines.pdb/{i:032x}ffffffff/Lines.pdb" for i in range(5)), contents, stream)
        core = Core(CRASH)
        core.set_notes(mapped_images(core, core.notes(), (pdb / "Lines.dll").read_bytes(), 30))
        path = core.save(str(self.folder / "core"))
        for command in (["info"], ["bundle", self.folder / "out"]):
            with Opens(*files) as opens:
                done = run(command[0], path, *command[1:], "--module-path", self.folder / "m")
                self.assertEqual(opens.count(), len(files), command)
            if command[0] == "info":
                self.assertEqual(done.stdout.count(b"is not the PDB of Lines.dll: it has another id"), 20)
                self.assertIn(b" and 10 more that do not match; --json lists all\n", done.stdout)

    def test_files_are_work(self):
        """Files of this machine that a core names count as work. At the bound, no more are opened."""
        contents = make_library(self.folder / "libx.so", PAGE)
        files = self.versions((f"x/{i}/libx.so" for i in range(300)), contents, 0x800)
        core = core_that_maps(f"{self.folder}/x/%d/libx.so", b"", str(self.folder / "core"), count=300, size=PAGE)
        for bound, enough in (("100K", False), ("0", True)):
            with Opens(*files) as opens:
                done = run("info", core, f"--work-max={bound}", bounded=False)
                self.assertEqual(b"stopped at the bound on work" in done.stderr, not enough)
                if enough:
                    self.assertEqual(opens.count(), 300)
                else:
                    self.assertLess(opens.count(), 100)

    # ---- What is copied ----

    def test_copies_have_no_more_readers(self):
        for mode, wanted in ((0o600, 0o600), (0o640, 0o600), (0o644, 0o644), (0o755, 0o644), (0o444, 0o444)):
            library = self.folder / "libx.so"
            contents = make_library(library)
            library.chmod(mode)
            core, out = core_that_maps(str(library), contents, str(self.folder / "core")), self.folder / "out"
            run("bundle", core, out)
            copy, = out.glob("libx.so/*/libx.so")
            self.assertEqual((mode_of(copy), copy.read_bytes() == contents), (wanted, True), oct(mode))
            copy.chmod(0o666)  # a copy that others may write to is no copy
            rows = [json.loads(line) for line in run("bundle", core, out, "--json").stdout.splitlines()]
            self.assertEqual([row["result"] for row in rows if row["path"] == str(library)], ["copied"])
            self.assertEqual(mode_of(copy), wanted)
            library.unlink()
            shutil.rmtree(out)

    def test_what_was_compared_is_copied(self):
        """Another file takes its place as soon as it was opened."""
        secret, outcomes = self.secret(), set()
        for _ in range(6):
            library, link = self.folder / "libx.so", self.folder / "link"
            contents = make_library(library)
            link.symlink_to(secret)
            core, out = core_that_maps(str(library), contents, str(self.folder / "core")), self.folder / "out"
            with Opens(library) as opens:
                swapped = threading.Event()

                def swap():
                    end = time.monotonic() + 60
                    while not opens.count() and time.monotonic() < end:
                        pass
                    os.rename(link, library)
                    swapped.set()

                thread = threading.Thread(target=swap)
                thread.start()
                rows = [json.loads(line) for line in run("bundle", core, out, "--json").stdout.splitlines()]
                thread.join()
            self.assertTrue(swapped.is_set())
            outcomes.add(next(row["result"] for row in rows if row["path"] == str(library)))
            for copy in out.glob("libx.so/*/libx.so"):
                self.assertEqual(copy.read_bytes(), contents)
            library.unlink()
            shutil.rmtree(out)
        self.assertLessEqual(outcomes, {"missing", "copied"})

    # ---- Where results are written ----

    def test_memory_has_one_reader(self):
        out = self.folder / "out"
        for command in (["snapshot", PLAIN, METHOD], ["jitdump", PLAIN], ["elf", PLAIN, "--code"], ["report", CRASH],
                        ["stack", "--variables", CRASH], ["complete", CRASH]):
            run(*command, "-o", out, statuses=(0, 1))
            self.assertEqual(mode_of(out), 0o600, command)
            out.unlink()
        run("symfs", FIXTURES / "hello-net10-x64" / "core", out, "--r2r=prepared", statuses=(0, 1))  # has its own files
        files = [path for path in out.rglob("*")
                 if path.is_file() and not path.is_symlink() and path.name != ".cdacq-symfs"]
        self.assertTrue(files)
        self.assertEqual({mode_of(path) for path in files}, {0o600})
        run("perfmap", PLAIN, "-o", self.folder / "map")
        self.assertEqual(mode_of(self.folder / "map"), 0o644)

    @unittest.skipUnless(AS_ROOT, "files of another user need root")
    def test_outputs_of_another_user(self):
        """A file is replaced, and a link or a FIFO is not followed or opened."""
        theirs = self.folder / "theirs"
        theirs.mkdir()
        for path in (theirs, self.folder):
            os.chown(path, 65534, 65534)
        self.folder.chmod(0o1777)
        old, link, dangling, fifo = (self.folder / name for name in ("old", "link", "dangling", "fifo"))
        old.write_bytes(b"theirs")
        old.chmod(0o666)
        victim = self.secret()
        link.symlink_to(victim)
        dangling.symlink_to(theirs / "new")
        os.mkfifo(fifo)
        for path in (old, link, dangling, fifo):
            os.chown(path, 65534, 65534, follow_symlinks=False)
        with open(old, "rb") as kept:
            run("perfmap", PLAIN, "-o", old, statuses=(0, 1))
            self.assertEqual(kept.read(), b"theirs")
        self.assertEqual((mode_of(old), old.stat().st_uid), (0o644, 0))
        for path in (link, dangling, fifo):
            done = run("perfmap", PLAIN, "-o", path, statuses=(2,))
            self.assertIn(b"of another user", done.stderr)
        self.assertEqual(victim.read_bytes(), b"only its owner may read this")
        self.assertEqual(list(theirs.iterdir()), [])

    @unittest.skipUnless(AS_ROOT, "root writes to every folder, and begins as nobody")
    def test_no_memory_for_readers(self):
        """Where no file can be replaced, none that others may read gets memory."""
        out = self.folder / "out"
        out.touch()
        os.chown(out, 65534, 0)
        tool = self.folder / "cdacq"
        shutil.copy(TOOL, tool)
        for mode, written in ((0o644, False), (0o602, False), (0o600, True)):
            out.chmod(mode)
            done = subprocess.run([tool, "snapshot", PLAIN, METHOD, "-o", out], stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=60, check=False, cwd=self.folder, **NOBODY)
            self.assertEqual((done.returncode, out.stat().st_size > 0, mode_of(out)),
                             (0 if written else 2, written, mode), done.stderr)

    # ---- What a killed run leaves ----

    def test_killed(self):
        """The next run removes it; not what another run writes, or another user has made."""
        for command in ("bundle", "symfs"):
            out, left = self.folder / command, []
            for _ in range(100):
                with subprocess.Popen([TOOL, command, CRASH, out], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL) as tool:
                    while tool.poll() is None and not (left := list(out.rglob(".cdacq-part-*"))):
                        pass
                    tool.kill()
                left = list(out.rglob(".cdacq-part-*"))
                if left:
                    break
            if not left and command == "bundle":
                continue  # this machine has none of the core's files
            self.assertTrue(left, command)
            place = left[0].parent
            held, others = (place / f".cdacq-part-{os.geteuid()}-{i}" for i in (1, 2))
            held.write_bytes(b"held")
            others.write_bytes(b"left")
            with open(held, "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                run(command, CRASH, out)
                self.assertEqual(list(place.glob(".cdacq-part-*")), [held])
            run(command, CRASH, out)
            self.assertEqual(list(out.rglob(".cdacq-part-*")), [])

    @unittest.skipUnless(AS_ROOT, "files of another user need root")
    def test_parts_of_others(self):
        (self.folder / "target").write_bytes(b"kept")
        names = [self.folder / f".cdacq-part-0-{i}" for i in range(3)]
        names[0].write_bytes(b"theirs")
        os.chown(names[0], 65534, 65534)
        names[1].symlink_to("target")
        os.mkfifo(names[2])
        run("perfmap", PLAIN, "-o", self.folder / "map", statuses=(0, 1))
        self.assertEqual(sorted(self.folder.glob(".cdacq-part-*")), names)
        self.assertEqual((self.folder / "target").read_bytes(), b"kept")


if __name__ == "__main__":
    if not TOOL:
        sys.exit(77)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    unittest.main()
