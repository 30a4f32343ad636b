"""
Running processes made to hurt (hostile_process.c): they change, hide, cut or never provide what is read, have much of
everything, or are in states in which they are hard to read or stop. Every command gives the right answer or one clear
line, ends within its limits, and leaves the process as it was.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import test_surfaces as surfaces  # noqa: E402
from test_surfaces import CONTROLS, MESSAGE, PLAIN, SANITIZED, TOOL, run  # noqa: E402

PROGRAM = os.path.join(os.environ.get("CDACQ_BUILD_DIR", "build/dev"), "tests", "hostile_process")
PLACE = "7f91e58aed0f"
ANSWER = re.compile(rb"0x7f91e58aed0f Demo\.Outer<T>\.Inner<int>\.\.ctor\(\) \+0xf \[jit\] IL_0000 "
                    rb"\((memfd:)?Demo\.dll( \(deleted\))?\)\n")
# The type parameter stands for an argument that cannot be read, which is marked, and its number for its name.
PARTLY = re.compile(ANSWER.pattern.replace(b"<T>", b"<(T|!0)>").replace(
    rb"<int>\.\.ctor\(\)", rb"<(int>\.\.ctor\(\)\??|(U|!1)>\.\.ctor\(\)\?)"))
NO_ANSWER = re.compile(b"(0x7f91e58aed0f \\? .*\n)?")
DYNAMIC_METHOD = "7f91e5ad0040"
NAME_POINTER = "7f91e5ac3798"  # DynamicMethodDesc.MethodName of it
PAGE_OF_LISTING = "7f91e4834000"  # is not read before symfs has begun its first file
TAKEN, NOT_PERMITTED = 3, 77
LINES = 200000  # of a perf map
ALL = "CDACQ_HOSTILE_ALL" in os.environ
COMMANDS = ["info", "stack", "report", "methods", "perfmap", "ip2method", "jitdump", "snapshot", "symfs", "inspect"]


def own_user():
    """Not root, for whom every process is readable, if another user can run the tool."""
    if os.getuid():
        return {}
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    try:
        for program in (TOOL, PROGRAM):
            subprocess.run([program, "--help"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, **nobody)
        return nobody
    except OSError:
        return {}


@unittest.skipIf("CDACQ_RUN" in os.environ, "the tool cannot read this machine's processes")
class Processes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, how, core=PLAIN, directory=None, more=(), **options):
        """The process, and the pid to read."""
        folder = self.folder / "files" if directory is None else directory
        arguments = [PROGRAM, how, str(core)]
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
            arguments.append(str(folder))
        if "user" in options:
            os.chmod(self.folder, 0o755)
            os.chown(folder, options["user"], options["group"])
        for _ in range(8):
            process = subprocess.Popen([*arguments, *more], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **options)
            self.addCleanup(process.stdout.close)
            line = process.stdout.readline()
            if line:
                self.addCleanup(process.wait)
                self.addCleanup(process.kill)
                return process, int(line)
            status = process.wait()
            if status == NOT_PERMITTED:
                self.skipTest(f"{how} is not permitted here")
            self.assertEqual(status, TAKEN, how)
        return self.skipTest("an address is taken")

    def command(self, name, pid, **options):
        """Runs a command on the process."""
        arguments = {
            "ip2method": [PLACE], "inspect": [PLACE], "snapshot": ["-o", str(self.folder / f"snapshot-{pid}")],
            "symfs": [str(self.folder / f"symfs-{pid}")], "jitdump": ["-o", "/dev/null"],
        }.get(name, [])
        done = run(name, pid, *arguments, **options)
        self.assertIsNone(CONTROLS.search(done.stdout), name)
        most = 4 if name in ("ip2method", "inspect", "info", "stack", "report") else 210  # others have lines for methods
        self.assertLessEqual(done.stderr.count(b"\n"), most, (name, done.stderr[-1000:]))
        if name == "symfs":
            self.assertEqual([p.name for p in pathlib.Path(arguments[0]).rglob("*cdacq-part*")], [])
        return done

    def duration(self, name, pid):
        begin = time.monotonic()
        self.command(name, pid)
        return time.monotonic() - begin

    def reaches(self, pid, state):
        """Whether the process is in a state within some seconds: one that was stopped stops again after us."""
        end = time.monotonic() + 20
        while surfaces.Processes.state(self, pid) != state and time.monotonic() < end:
            time.sleep(0.01)
        return surfaces.Processes.state(self, pid) == state

    def check(self, process, pid, *names, right=True, stopped=False, options=None):
        """Runs the commands. The process goes on, and one that does not change has the right answer."""
        for name in ("ip2method", *(COMMANDS if ALL else names[:1] if SANITIZED else names)):
            with self.subTest(how=process.args[1], command=name):
                done = self.command(name, pid, **(options or {}))
                if name == "ip2method" and right:
                    self.assertEqual((done.returncode, done.stderr), (0, b""))
                    self.assertRegex(done.stdout, ANSWER)
                elif name == "ip2method" and right is None:
                    self.assertTrue(PARTLY.fullmatch(done.stdout) or NO_ANSWER.fullmatch(done.stdout), done.stdout)
                elif right and name in ("info", "methods", "perfmap"):
                    self.assertTrue(done.stdout)
                self.assertIsNone(process.poll())
                self.assertTrue(self.reaches(pid, "T") if stopped else surfaces.Processes.state(self, pid) not in "Tt")

    # ---- Memory and files that change ----

    def test_rewrites(self):
        """Lists become cycles, names other names; the text of the descriptor is broken; pages cannot be read."""
        for how, right in (("pointers", False), ("descriptor", False), ("hides", None)):
            process, pid = self.start(how)
            for _ in range(8 if ALL else 1 if SANITIZED else 2):
                self.check(process, pid, "info", "methods", "stack", "perfmap", "report", right=right)

    def test_remaps(self):
        """A name in a mapped file is another one when the process has other memory there, in the same second, too."""
        process, pid = self.start("remaps", more=[NAME_POINTER])
        tool = subprocess.Popen([TOOL, "ip2method", str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.addCleanup(tool.wait)
        self.addCleanup(tool.stdout.close)
        self.addCleanup(tool.stdin.close)
        for expected in (b"NameInFile", b"NameInMemory", b"NameInMemory"):
            tool.stdin.write(DYNAMIC_METHOD.encode() + b"\n")
            self.assertRegex(tool.stdout.readline(), rb"0x\w+ dynamicClass\." + expected + rb"\(int\) \+0x0 \[jit\]\n")
            if expected == b"NameInFile":
                process.send_signal(signal.SIGUSR1)
                self.assertEqual(int(process.stdout.readline()), pid)

    def test_ends_while_it_is_asked(self):
        """Each address still gets its line."""
        process, pid = self.start("waits")
        tool = subprocess.Popen([TOOL, "ip2method", str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, bufsize=0)
        for stream in (tool.wait, tool.stdout.close, tool.stdin.close, tool.stderr.close):
            self.addCleanup(stream)
        tool.stdin.write(PLACE.encode() + b"\n")
        self.assertRegex(tool.stdout.readline(), ANSWER)
        process.kill()
        process.wait()
        stdout, stderr = tool.communicate(f"{PLACE}\n1\nzzz\n{PLACE}\n".encode(), timeout=20)
        self.assertEqual(re.sub(rb"(?m)^\S+ ", b"", stdout), 2 * b"? [error] the process has ended\n" +
                         b"? [error] not a hexadecimal address\n? [error] the process has ended\n")
        self.assertEqual((tool.returncode, stderr.count(b"the process has ended"), stderr.count(b"\n")), (1, 1, 2))

    def test_executes(self):
        process, pid = self.start("executes")
        for _ in range(4):
            self.check(process, pid, "stack", "info", right=None)

    def test_replaced_files(self):
        """All mapped files have others in their places: FIFOs, folders, other contents, cycles of links."""
        process, pid = self.start("waits")
        for i, path in enumerate(sorted(p for p in (self.folder / "files").rglob("*") if p.is_file())):
            path.unlink()
            if i % 5 == 0 or path.name == "libcoreclr.so":
                os.mkfifo(path)
            elif i % 5 == 1:
                path.mkdir()
            elif i % 5 == 2:
                path.write_bytes(b"\x7fELF" + bytes(range(256)) * 64)
            elif i % 5 == 3:
                path.symlink_to(path)
        self.check(process, pid, "info", "stack", "symfs")

    def test_cut_files(self):
        """The image of the runtime is cut off, and whole again, while it is read."""
        image = self.folder / "libcoreclr.so"
        real = sorted(pathlib.Path("/usr/share/dotnet").glob("shared/Microsoft.NETCore.App/*/libcoreclr.so"))
        image.write_bytes(real[-1].read_bytes()[: 1 << 20] if real else b"")
        for name in (["real"] if real else []) + ["made"]:
            if name == "made":
                image.unlink()
                image.write_bytes(surfaces.image_of_nothing())
            process, pid = self.start("cut", core=image)
            for _ in range(4):
                for command in ("info", "stack", "report"):
                    with self.subTest(image=name, command=command):
                        done = self.command(command, pid)
                        # Where it is taken for a runtime that cannot be read, the threads are shown.
                        self.assertIn(done.returncode, (2,) if command == "info" else (1, 2))
            process.kill()

    def test_suspended(self):
        """A tool that is suspended (Ctrl+Z) does not keep the process stopped. It goes on where it was."""
        process, pid = self.start("waits")
        seconds = min(self.duration("stack", pid) for _ in range(3))
        suspended = 0
        for i in range(60):
            # In a group of its own: the kernel drops SIGTSTP for a group whose parents are all outside of the session.
            with subprocess.Popen([TOOL, "stack", str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  preexec_fn=os.setpgrp) as tool:
                time.sleep(seconds * i / 60)
                tool.send_signal(signal.SIGTSTP)
                while (state := surfaces.Processes.state(self, tool.pid)) not in "TZX":
                    time.sleep(0.001)
                status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
                suspended += state == "T"
                tool.send_signal(signal.SIGCONT)
                if state == "T":
                    self.assertIn("\nTracerPid:\t0\n", status, i)
                self.assertEqual(tool.stderr.read().count(b"\n"), tool.wait() and 1, i)
        self.assertGreater(suspended, 20)
        process.kill()

    def test_unusual_files(self):
        """Paths with what /proc/PID/maps escapes, and does not; files without a path."""
        for name in ("new\nline", "a (deleted)", "b\\012c", "\x1b[31m\xff"):
            process, pid = self.start("waits", directory=self.folder / name / "x (deleted)")
            self.check(process, pid, "info")
            process.kill()
        process, pid = self.start("waits", directory=False)
        self.check(process, pid, "info", "symfs")

    def test_another_file_of_the_name(self):
        """A libcoreclr.so that is mapped, but not loaded, does not hide the one that is."""
        process, pid = self.start("other")
        self.check(process, pid, "info", "methods")

    # ---- Much ----

    def test_many(self):
        process, pid = self.start("threads")
        self.check(process, pid, "stack")
        process.kill()
        if SANITIZED:
            return  # its checks of strings take 60,000 times the length of /proc/PID/maps
        process, pid = self.start("mappings")
        self.check(process, pid, "info")

    def test_texts(self):
        """A command line and an environment of megabytes, with control bytes."""
        text = bytes(b for b in range(1, 256)) * 450
        environment = {**os.environ, "DOTNET_PerfMapJitDumpPath": "/" + "x" * 100_000, "TMPDIR": "/\x1b[31m\n"}
        process, pid = self.start("waits", more=[text] * 9, env=environment)
        self.check(process, pid, "report", "stack")
        done = run("records", pid, statuses=(2,))
        self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
        if ALL:
            run("ps")

    # ---- States ----

    def test_states(self):
        for how in ("stopped", "seccomp", "vforked", "namespaces", "comes"):
            with self.subTest(how=how):
                process, pid = self.start(how)
                if how == "stopped":
                    self.assertTrue(self.reaches(pid, "T"))
                self.check(process, pid, "stack", "report", stopped=how == "stopped")
                process.kill()

    def test_no_memory(self):
        for how in ("zombie", "leader"):
            process, pid = self.start(how)
            for name in COMMANDS:
                with self.subTest(how=how, command=name):
                    done = self.command(name, pid, statuses=(2,))
                    self.assertEqual(done.stderr.count(b"\n"), 1)
                    self.assertEqual(list(self.folder.glob("snapshot*")), [])
            process.kill()

    def test_traced(self):
        process, pid = self.start("traced")
        self.check(process, pid, "info")
        for name in ("stack", "report"):
            self.assertIn(b"traced by another process", self.command(name, pid, statuses=(1, 2)).stderr)

    @unittest.skipIf(SANITIZED, "the bounds are those of a release build")
    def test_bound(self):
        """Its work is bounded as that on a core of its size."""
        class Context:
            plain, tool = PLAIN, TOOL
        _, pid = self.start("waits", core=surfaces.generators.heaps_share_nibbles(str(self.folder), Context))
        done = run("info", pid, statuses=(1,), bounded=False)
        self.assertRegex(done.stderr, rb"stopped at the bound on work, \d+ steps: ")

    def test_undumpable(self):
        user = own_user()
        process, pid = self.start("undumpable", **user)
        for _ in range(6):
            self.check(process, pid, "stack", "info", right=None, options=user)

    def test_reused_pid(self):
        """What has the pid is another process every 2 ms, of which half have other memory, or are still writing it."""
        script = '''
            "$1" reused "$2" "$3" >"$3/pid" & started=$!
            for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ -s "$3/pid" ] && break; sleep 0.1; done
            [ -s "$3/pid" ] || exit 77
            for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
                "$0" ip2method "$(cat "$3/pid")" %s; "$0" stack "$(cat "$3/pid")" >"$3/stack"
                status=$?; [ $status -le 2 ] || exit $status
            done
            kill $started
            exit 0''' % PLACE
        done = subprocess.run(["unshare", "-r", "-p", "-f", "--mount-proc", "sh", "-c", script, TOOL, PROGRAM, PLAIN, self.folder],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=surfaces.HANG, check=False)
        if done.returncode in (1, NOT_PERMITTED) and not re.search(rb"^cdacq:", done.stderr, re.MULTILINE):
            self.skipTest(f"pids cannot be chosen here: {done.stderr}")
        self.assertEqual(done.returncode, 0, done)
        messages = re.sub(rb"^0x\w+: cannot be mapped\n", b"", done.stderr)
        self.assertTrue(MESSAGE.fullmatch(messages), messages)
        for line in done.stdout.splitlines(True):
            self.assertTrue(PARTLY.fullmatch(line) or NO_ANSWER.fullmatch(line), line)

    # ---- What it writes ----

    def test_jitdump_of_a_kind(self):
        """Where its environment says that the jitdump is, there is something else."""
        for make in (os.mkfifo, os.mkdir, lambda path: path.symlink_to(path), lambda path: path.symlink_to("/dev/zero")):
            folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            process, pid = self.start("waits", env={**os.environ, "DOTNET_PerfMapJitDumpPath": str(folder)})
            make(folder / f"jit-{pid}.dump")
            for command in ("records", "verify"):
                with self.subTest(command=command):
                    self.assertEqual(run(command, pid, statuses=(2,)).stderr.count(b"\n"), 1)
            process.kill()

    def test_jitdump_that_changes(self):
        """It grows for ever, or is written again and again while it is read."""
        process, pid = self.start("waits")
        path, ended = self.folder / f"jit-{pid}.dump", threading.Event()
        run("jitdump", pid, "-o", path, statuses=(0, 1))
        whole = path.read_bytes()
        header, records = whole[:40], whole[40:]

        def grow():
            with open(path, "ab", buffering=0) as file:
                while not ended.is_set() and file.tell() < 8 << 20:
                    file.write(records * 64)
                    time.sleep(0.001)

        def rewrite():
            while not ended.is_set():
                with open(path, "wb", buffering=0) as file:
                    file.write(header)
                    file.write(records[: os.urandom(1)[0] * len(records) // 256])
                time.sleep(0.0005)

        for change in (grow, rewrite):
            writer = threading.Thread(target=change)
            ended.clear()
            writer.start()
            try:
                for arguments in (["records", path], ["verify", pid, path], ["records", path, f"--at={PLACE}"]):
                    with self.subTest(change=change.__name__, command=arguments[0]):
                        run(*arguments, bounded=change is rewrite)
            finally:
                ended.set()
                writer.join()

    def test_verify(self):
        """A difference where code can be released may be due to time, unless the process is stopped; what is kept does not
        grow with the file."""
        process, pid = self.start("waits")
        path = self.folder / "perf.map"
        path.write_text("7f91e5ad0040 12 dynamicClass::AnotherName(int32)\n7f91e58aed00 12 Demo.Demo::AnotherName()\n")
        running, stopped = (json.loads(run("verify", *stop, "--json", pid, path, statuses=(1,)).stdout.splitlines()[-1])
                            for stop in ([], ["--stop"]))
        self.assertEqual((running["freed"], running["name-differs"]), (0, 1))  # nothing matches, so nothing is said to be freed
        self.assertEqual((stopped["freed"], stopped["name-differs"]), (0, 2))
        self.assertEqual(running["missing-from-file"], 0)
        self.assertLess(running["missing-from-file"], stopped["missing-from-file"])
        path.write_text("7f91e5ad0041 5 Another::Name()\n" * LINES)
        with surfaces.Measured([TOOL, "verify", str(pid), str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as tool:
            tool.wait(surfaces.HANG)
        self.assertTrue(SANITIZED or tool.used.ru_maxrss < 100 << 10, tool.used)
        self.assertIsNone(process.poll())

    # ---- What takes the seconds after which the tool gives up ----

    def test_waits(self):
        """A thread that cannot be stopped, and a page that never comes: no part of a file is left."""
        vfork, parent = self.start("vfork")
        self.check(vfork, parent, "info")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waiting = [pool.submit(self.command, "stack", parent, statuses=(2,))]
            try:
                _, pid = self.start("never", directory=self.folder / "never", more=[PAGE_OF_LISTING])
                waiting += [pool.submit(self.command, name, pid, statuses=(2,)) for name in ("perfmap", "symfs")]
            except unittest.SkipTest:
                print("left out: userfaultfd is not permitted")
            for done in waiting:
                self.assertRegex(done.result().stderr, rb"^cdacq: process \d+: .* 5 s[^\n]*\n$")


if __name__ == "__main__":
    if not TOOL or not os.path.exists(PROGRAM):
        sys.exit(77)
    unittest.main()
