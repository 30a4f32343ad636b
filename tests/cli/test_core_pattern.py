"""contrib/cdacq-report, started as the kernel starts the program of a core_pattern pipe: the core on standard input, no
other streams, an empty environment. CDACQ_KERNEL_CORE names a core that the kernel wrote; otherwise it is a bundled
one. With CDACQ_SET_CORE_PATTERN=1, one test sets core_pattern for as long as a process needs to die."""
import contextlib
import ctypes
import fcntl
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SOURCE = pathlib.Path(os.environ.get("CDACQ_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
HANDLER = SOURCE / "contrib" / "cdacq-report"
TOOL = os.environ.get("CDACQ_TOOL")
CORE = pathlib.Path(os.environ.get("CDACQ_KERNEL_CORE") or SOURCE / "tests/fixtures/hello-net10-x64/core")
USER = 4242  # of the process that died
SANITIZED = TOOL and b"__asan_init" in pathlib.Path(TOOL).read_bytes()  # its shadow memory is above any bound
READERS = 2100000000  # and the process id of the script: the user id of a reader
PATTERN = "/proc/sys/kernel/core_pattern"
PLAIN = re.compile(r"core[%.\w]*")  # what the pattern is if nobody waits for cores

LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE, PIDFD_OPEN, PIDFD_GETFD = 0x4206, 434, 438

class Handler(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        os.chmod(self.folder, 0o755)
        # The tool, where another user can run it.
        self.tool = self.folder / "cdacq"
        shutil.copy(TOOL, self.tool)
        os.chmod(self.tool, 0o755)

    def handle(self, core, *arguments, script=HANDLER, **environment):
        """Runs the handler; returns its status and the files that it wrote."""
        logs = self.folder / "logs"

        def close():
            os.close(1)
            os.close(2)
        environment = {"CDACQ": str(self.tool), "CDACQ_LOG_DIR": str(logs), "CDACQ_SETTINGS": "",
                       "CDACQ_COMMAND": "info", **({"CDACQ_MEMORY_MAX": "unlimited"} if SANITIZED else {}),
                       **environment}
        if not environment["CDACQ_COMMAND"]:
            del environment["CDACQ_COMMAND"]  # the script's own
        handler = subprocess.Popen([script, *map(str, arguments)], stdin=subprocess.PIPE, env=environment, cwd="/",
                                   preexec_fn=close)
        self.pid = handler.pid
        try:
            with open(core, "rb") if core else open(os.devnull, "rb") as stream:
                while data := stream.read(1 << 16):
                    handler.stdin.write(data)
        except BrokenPipeError:
            pass
        with contextlib.suppress(BrokenPipeError):
            handler.stdin.close()
        status = handler.wait(120)
        return status, {path.name: path.read_text() for path in logs.glob("*")} if logs.exists() else {}

    def expected(self, *arguments):
        done = subprocess.run([TOOL, *arguments], stdout=subprocess.PIPE, check=False)
        return done.stdout.decode().replace(str(CORE), "standard input"), done.returncode

    def test_report(self):
        status, logs = self.handle(CORE, os.getpid(), USER, USER, 6, 1700000000, "dotnet app")
        self.assertEqual(status, 0)
        self.assertEqual(list(logs), [f"1700000000-{os.getpid()}.txt"])
        first, *lines, last = logs.popitem()[1].splitlines()
        self.assertEqual(first, f"process {os.getpid()} (dotnet app) of user {USER}, signal 6, time 1700000000")
        self.assertIn("runtime     .NET 10.0", "\n".join(lines))
        self.assertRegex(lines[0], r"^target      core standard input, of process \d+")
        self.assertEqual(last, "cdacq ended with status 0")
        self.assertEqual(os.stat(self.folder / "logs").st_mode & 0o777, 0o700)
        self.assertEqual([path.stat().st_mode & 0o777 for path in (self.folder / "logs").iterdir()], [0o600])

    def test_other_command_and_settings(self):
        settings = self.folder / "settings"
        settings.write_text("CDACQ_COMMAND=methods\nCDACQ_OPTIONS='--names sos --store-max 1G'\n")
        _, logs = self.handle(CORE, 1, USER, USER, 11, 5, CDACQ_SETTINGS=str(settings))
        text, status = self.expected("methods", "--names", "sos", str(CORE))
        self.assertIn("\n" + text, logs["5-1.txt"])
        self.assertTrue(logs["5-1.txt"].endswith(f"\ncdacq ended with status {status}\n"))

    def test_runs_without_rights(self):
        if os.getuid():
            self.skipTest("not root")
        spy = self.folder / "spy"
        spy.write_text('#!/bin/sh\ncat /proc/self/status\ncat >/dev/null\necho "$@"\n')
        os.chmod(spy, 0o755)
        for uid in (USER, 0):
            _, logs = self.handle(CORE, os.getpid(), uid, uid, 6, uid, CDACQ=str(spy), CDACQ_COMMAND="")
            text = logs[f"{uid}-{os.getpid()}.txt"]
            for line, expected in (("Uid", READERS + self.pid), ("Gid", uid or READERS + self.pid)):
                self.assertEqual(re.search(rf"^{line}:\s+(.*)$", text, re.M)[1].split(), [str(expected)] * 4)
            self.assertEqual(re.search(r"^Groups:(.*)$", text, re.M)[1].strip(), "")
            for kind in ("Inh", "Prm", "Eff", "Bnd"):
                self.assertRegex(text, rf"(?m)^Cap{kind}:\s+0+$")
            self.assertRegex(text, r"(?m)^NoNewPrivs:\s+1$")
            self.assertIn("--sysroot /proc/self/fd/3 report -\n", text)

    def test_files_of_the_process(self):
        """The reader finds those below the root directory of the process, which it has no right to open itself."""
        if os.getuid():
            self.skipTest("not root")
        spy = self.folder / "spy"
        spy.write_text('#!/bin/sh\ncat >/dev/null\nls "$4/"\nls "/proc/$PID/root/"\n')
        os.chmod(spy, 0o755)
        root = self.folder / "root"
        (root / "mark").mkdir(parents=True)
        program = "import os, sys; os.chroot(sys.argv[1]); print(flush=True); sys.stdin.read()"
        process = subprocess.Popen([sys.executable, "-c", program, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.communicate)
        process.stdout.readline()
        _, logs = self.handle(CORE, process.pid, USER, USER, 6, 1, CDACQ=str(spy), CDACQ_OPTIONS="--store-max 8G",
                              PID=str(process.pid))
        text = logs[f"1-{process.pid}.txt"]
        self.assertIn("\nmark\n", text)
        self.assertIn(f"/proc/{process.pid}/root/': Permission denied\n", text)

    def test_limits(self):
        """A reader that takes too long ends, and so does what it has started; no more of its words are kept."""
        spy = self.folder / "spy"
        spy.write_text("#!/bin/sh\ntrap '' TERM\nsetsid sleep 1000 &\necho $!\nyes 0123456789\n")
        os.chmod(spy, 0o755)
        _, logs = self.handle(CORE, os.getpid(), USER, USER, 6, 1, CDACQ=str(spy), CDACQ_LOG_MAX="1000")
        text = logs[f"1-{os.getpid()}.txt"]
        self.assertEqual(len(text), 1000)
        if not os.getuid():
            status, end = pathlib.Path(f"/proc/{int(text.splitlines()[1])}/status"), time.monotonic() + 60
            with contextlib.suppress(FileNotFoundError):  # it takes a moment to end, and may wait for its parent then
                while "State:\tZ" not in status.read_text():
                    self.assertLess(time.monotonic(), end, "it goes on")
                    time.sleep(0.01)
        spy.write_text("#!/bin/sh\nexec sleep 1000\n")
        begin = time.monotonic()
        _, logs = self.handle(CORE, os.getpid(), USER, USER, 6, 2, CDACQ=str(spy), CDACQ_TIME_MAX="1")
        self.assertTrue(logs[f"2-{os.getpid()}.txt"].endswith("\ncdacq ended with status 124\n"))
        self.assertLess(time.monotonic() - begin, 60)

    def test_folder_of_somebody_else(self):
        """No result is written where another user can put a file of the same name."""
        logs = self.folder / "logs"
        logs.mkdir()
        for mode in (0o777, 0o1777, 0o770):
            os.chmod(logs, mode)
            self.assertEqual(self.handle(CORE, os.getpid(), USER, USER, 6, 1), (73, {}))
        os.chmod(logs, 0o700)
        if not os.getuid():
            os.chown(logs, USER, USER)
            self.assertEqual(self.handle(CORE, os.getpid(), USER, USER, 6, 1), (73, {}))
        (self.folder / "own").mkdir()
        (self.folder / "link").symlink_to("own")
        self.assertEqual(self.handle(CORE, os.getpid(), USER, USER, 6, 1, CDACQ_LOG_DIR=str(self.folder / "link"))[0], 73)

    def test_hostile_arguments(self):
        _, logs = self.handle(CORE, 1, USER, USER, 6, 1, "$(touch x)\n\x1b[31m'\"/../%s")
        self.assertEqual(logs["1-1.txt"].splitlines()[0],
                         f"process 1 (??touch x????31m???..??s) of user {USER}, signal 6, time 1")
        for wrong in (("../../x", USER, USER, 6, 1), (1, "0; id", USER, 6, 1), (1, USER, "", 6, 1), (1, USER, USER, 6)):
            self.assertEqual(self.handle(None, *wrong)[0], 64, wrong)
        self.assertEqual(len(list((self.folder / "logs").iterdir())), 1)

    def test_cores_that_cannot_be_read(self):
        self.handle(None, 1, USER, USER, 6, 1)
        empty = (self.folder / "logs" / "1-1.txt").read_text()
        self.assertIn("cdacq: standard input: empty\ncdacq ended with status 2\n", empty)
        cut = self.folder / "cut"
        cut.write_bytes(CORE.read_bytes()[:1 << 20])
        _, logs = self.handle(cut, 1, USER, USER, 6, 2)
        self.assertIn("only its first 1048576 bytes were read", logs["2-1.txt"])
        _, logs = self.handle(CORE, 1, USER, USER, 6, 3, CDACQ_OPTIONS="--store-max 512K")
        self.assertIn("no more than 512 KiB of a core are stored", logs["3-1.txt"])

    def test_socket(self):
        """As the service has it: the core comes from a socket."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            tool = subprocess.Popen([TOOL, "info", "-"], stdin=theirs, stdout=subprocess.PIPE)

            def send():
                ours.sendall(CORE.read_bytes())
                ours.shutdown(socket.SHUT_WR)
            sender = threading.Thread(target=send)
            sender.start()
            text = tool.communicate()[0].decode()
            sender.join()
        self.assertEqual(text, self.expected("info", str(CORE))[0])
        self.assertEqual(tool.returncode, 0)


# ---- What a process may try on another one ----

def system_call(name, *arguments):
    result = getattr(LIBC, name)(*map(ctypes.c_long, arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    os.kill(pid, signal.SIGCONT)


def read_memory(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        begin = maps.readline().split("-")[0]
    if not begin:
        raise ProcessLookupError("it has ended")
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        os.pread(file.fileno(), 1, int(begin, 16))


def open_files(pid):
    for name in os.listdir(f"/proc/{pid}/fd"):
        os.close(os.open(f"/proc/{pid}/fd/{name}", os.O_RDONLY | os.O_NONBLOCK))


def take_file(pid):
    system_call("syscall", PIDFD_GETFD, system_call("syscall", PIDFD_OPEN, pid, 0), 0, 0)


def set_limit(pid):
    resource.prlimit(pid, resource.RLIMIT_NOFILE, resource.prlimit(pid, resource.RLIMIT_NOFILE))


def open_root(pid):
    os.listdir(f"/proc/{pid}/root/")


def read_environment(pid):
    pathlib.Path(f"/proc/{pid}/environ").read_bytes()


def trace(pid):
    system_call("ptrace", PTRACE_SEIZE, pid, 0, 0)


def append(path):
    with open(path, "ab"):
        pass


ON_PROCESSES = [stop, set_limit, read_memory, open_files, take_file, open_root, read_environment, trace]
ON_FILES = [os.listdir, append, os.remove]


def attack(uid, *targets):
    """What a user can do to processes and files: pairs of a target and what worked."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            for target in targets:
                for way in ON_PROCESSES if isinstance(target, int) else ON_FILES:
                    with contextlib.suppress(OSError):
                        way(target)
                        os.write(writing, f"{target} {way.__name__}\n".encode())
            os.write(writing, b"done\n")
        except Exception as error:
            os.write(writing, f"{error!r}\n".encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as lines:
        *worked, last = lines.read().splitlines()
    os.waitpid(child, 0)
    assert last == "done", worked
    return worked


@unittest.skipIf(os.getuid(), "not root")
@unittest.skipIf("CDACQ_RUN" in os.environ, "the tool runs in an emulator")
class Attackers(unittest.TestCase):
    """While a core is read, another process of its user, or of nobody, tries to read it, and to stop and rule the reader."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="cp-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        os.chmod(self.folder, 0o755)
        self.logs = self.folder / "logs"
        shutil.copy(HANDLER, self.folder / "h")
        shutil.copy(TOOL, self.folder / "cdacq")
        # The tool has the whole core and waits for its end.
        (self.folder / "held").write_text(
            f'#!/bin/sh\n{{ cat; while [ ! -e {self.folder}/go ]; do sleep 0.05; done; }} | {self.folder}/cdacq "$@"\n')
        for name in ("cdacq", "h", "held"):
            os.chmod(self.folder / name, 0o755)
        self.settings = self.folder / "s"
        self.settings.write_text(f"CDACQ={self.folder}/held\nCDACQ_LOG_DIR={self.logs}\nCDACQ_MEMORY_MAX=unlimited\n")

    def processes(self):
        """The processes of the script, and others of its readers' user ids: pid -> user id and name."""
        found, readers = {}, set()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
                uid = int(re.search(r"^Uid:\s+(\d+)", status, re.M)[1])
                is_own = str(self.folder).encode() in command
                if is_own or uid >= READERS:
                    found[int(pid)] = uid, re.search(r"^Name:\s+(.*)$", status, re.M)[1]
                if is_own and uid >= READERS:
                    readers.add(uid)
        return {pid: (uid, name) for pid, (uid, name) in found.items() if uid < READERS or uid in readers}

    def held(self, size):
        """Waits until the tool holds so many bytes of a core; returns the processes."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            processes = self.processes()
            for pid in [pid for pid, (uid, name) in processes.items() if name == "cdacq" and uid >= READERS]:
                with contextlib.suppress(OSError):
                    for file in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                        if "(deleted)" in os.readlink(file) and os.stat(file).st_size >= size:
                            return processes
            time.sleep(0.05)
        return self.fail(f"no tool holds a core: {self.processes()}")

    def check(self, uid, size):
        """Attacks what is held, as a user, and lets it end."""
        processes = self.held(size)
        log, = self.logs.iterdir()
        self.assertEqual(attack(uid, *processes, self.logs, log), [])
        readers = {user for user, _ in processes.values() if user >= READERS}
        self.assertEqual(len(readers), 1)
        self.assertLessEqual({user for user, _ in processes.values()}, {0, *readers})
        (self.folder / "go").touch()
        end = time.monotonic() + 60
        while self.processes() and time.monotonic() < end:
            time.sleep(0.05)
        text = log.read_text()
        self.assertRegex(text, r"cdacq ended with status \d\n\Z")
        self.assertEqual({}, self.processes())
        return text

    def test_attack_can_work(self):
        """On a process of the same user, most ways work: what fails elsewhere fails for lack of rights."""
        for uid in (USER, 65534):
            process = subprocess.Popen(["sleep", "1000"], user=uid, group=uid, extra_groups=[], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            worked = attack(uid, process.pid)
            for way in (stop, set_limit, open_files, open_root, read_environment):
                self.assertIn(f"{process.pid} {way.__name__}", worked)

    def start(self, uid, attacker):
        handler = subprocess.Popen([self.folder / "h", str(os.getpid()), str(uid), str(uid), "6", "1", "x"], cwd="/",
                                   stdin=subprocess.PIPE, env={"CDACQ_SETTINGS": str(self.settings)})
        self.addCleanup(handler.wait)
        self.addCleanup((self.folder / "go").touch)
        with handler.stdin:
            handler.stdin.write(CORE.read_bytes())
        self.assertIn("runtime     .NET 10.0", self.check(attacker, CORE.stat().st_size // 2))

    def test_core_of_the_user(self):
        self.start(USER, USER)

    def test_core_of_root(self):
        self.start(0, 65534)

    def let_kernel_start(self, uid, attacker):
        """
        The kernel starts the script for each process of the machine that dies meanwhile, and gives it no bytes of one
        that is killed before its core is written. The script ends for all of them but the victim.
        """
        pattern = f"|/usr/bin/env CDACQ_SETTINGS={self.settings} {self.folder}/h %P %u %g %s %t %e"
        self.assertLess(len(pattern), 128)
        self.addCleanup((self.folder / "go").touch)
        victim = subprocess.Popen(["sleep", "1000"], user=uid, group=uid, extra_groups=[])
        self.addCleanup(victim.wait)
        self.addCleanup(victim.kill)
        with open(self.settings, "a", encoding="utf-8") as settings:
            settings.write(f'[ "$1" = {victim.pid} ] || exit 0\n')
        with core_pattern(pattern):
            victim.send_signal(6)
            end = time.monotonic() + 30
            while not list(self.logs.glob(f"*-{victim.pid}.txt")) and time.monotonic() < end:
                time.sleep(0.002)
        text = self.check(attacker, 4096)
        self.assertTrue(text.startswith(f"process {victim.pid} (sleep) of user {uid}, signal 6, time "), text)
        self.assertIn("no .NET runtime", text)

    @unittest.skipUnless("CDACQ_SET_CORE_PATTERN" in os.environ, "CDACQ_SET_CORE_PATTERN is not set")
    def test_core_of_the_user_by_the_kernel(self):
        self.let_kernel_start(USER, USER)

    @unittest.skipUnless("CDACQ_SET_CORE_PATTERN" in os.environ, "CDACQ_SET_CORE_PATTERN is not set")
    def test_core_of_root_by_the_kernel(self):
        self.let_kernel_start(0, 65534)


@contextlib.contextmanager
def core_pattern(pattern):
    """Sets core_pattern. A process of its own puts the former one back, even if this one is killed."""
    with open(PATTERN, encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = file.read()
        if not PLAIN.fullmatch(before.strip()):
            raise unittest.SkipTest(f"kernel.core_pattern is '{before.strip()}': somebody waits for cores")
        if os.statvfs(PATTERN).f_flag & os.ST_RDONLY:
            raise unittest.SkipTest("/proc/sys can only be read")
        program = "import sys; sys.stdin.read(); open(sys.argv[1], 'w').write(sys.argv[2])"
        keeper = subprocess.Popen([sys.executable, "-c", program, PATTERN, before], stdin=subprocess.PIPE,
                                  start_new_session=True)
        try:
            with open(PATTERN, "w", encoding="utf-8") as setting:
                setting.write(pattern)
            yield
        finally:
            keeper.communicate()
        if keeper.returncode:
            raise AssertionError(f"kernel.core_pattern is to be {before!r} again, and is not")


class Units(unittest.TestCase):
    def test_files_agree(self):
        """The paths and arguments that the files and the page name are the same."""
        conf = (SOURCE / "contrib/cdacq-report.conf").read_text()
        script = HANDLER.read_text()
        page = (SOURCE / "docs/core_pattern.md").read_text()
        pattern = re.search(r"^kernel.core_pattern = (.*)$", conf, re.M)[1]
        self.assertLess(len(pattern), 128)  # the kernel's bound
        self.assertIn(f"kernel.core_pattern = {pattern}\n", script)
        self.assertIn(pattern[1:].split()[0], page)
        path = re.search(r"^ListenStream=(.*)$", (SOURCE / "contrib/cdacq-report.socket").read_text(), re.M)[1]
        self.assertIn(f"kernel.core_pattern=@{path}\n", page)

    def test_systemd_accepts_them(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze")
        with tempfile.TemporaryDirectory() as folder:
            for name in ("cdacq-report.socket", "cdacq-report@.service"):
                shutil.copy(SOURCE / "contrib" / name, folder)
            os.rename(os.path.join(folder, "cdacq-report@.service"), os.path.join(folder, "cdacq-report@1.service"))
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no",
                                   os.path.join(folder, "cdacq-report@1.service")], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False)
        complaints = [line for line in done.stdout.decode().splitlines() if "cdacq-report" in line]
        self.assertEqual(complaints, [])


if __name__ == "__main__":
    unittest.main()
