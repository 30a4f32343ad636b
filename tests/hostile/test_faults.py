"""
One call of the tool fails (faults.c): an allocation, or a call of the system, the first, the second, and so on. Then
there is a result that is the same as without the fault, or is said to be incomplete, or a message of whole lines and
the exit code 2; the file that -o names holds a whole result or what was there before.
"""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from undumped import undumped  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL")
LIBRARY = os.environ.get("CDACQ_FAULTS")
FIXTURES = pathlib.Path(os.environ.get("CDACQ_FIXTURES", "tests/fixtures"))
CORE = FIXTURES / "crash-net10-x64" / "core"
PLAIN = FIXTURES / "net10-x64" / "core"
MESSAGE = re.compile(rb"(cdacq: [^\x00-\x1f\x7f]+\n)*")
CALLS = ["open", "read", "pread", "write", "mmap", "fstat", "stat", "lstat", "lseek", "ftruncate", "rename", "linkat",
         "fchmod", "close", "realpath"]
COMMANDS = [["info", CORE], ["ip2method", PLAIN, "7f91e4850000"], ["methods", PLAIN], ["descriptor", PLAIN],
            ["perfmap", PLAIN], ["jitdump", PLAIN], ["snapshot", CORE, "--stacks"], ["stack", CORE], ["report", CORE],
            ["inspect", PLAIN, "7f91e4850000"]]
FEWER = [["elf", PLAIN, "--code"], ["filter", PLAIN], ["flame", "-"]]  # calls of the system only
INPUTS = {"filter": b"7f91e58aed00 7f91e4850000\n", "flame": b"a;b 1\na;c 2\n"}
FOLDER_CALLS = ["openat", "mkdir", "mkdirat", "renameat", "unlinkat", "symlinkat", "dup", "write", "fstat", "close"]
EVERY_CALL_UP_TO = 40  # the rest is sampled
# The tier, as `methods` and perf maps have it. It is not known if a read fails.
TIER = re.compile(rb"(?<=\[jit) [^]]*(?=\])|(?<=\))\[\w+\]$")
LIVE_SECONDS = 0.5
CLOSE = 16  # bytes of the last record of a jitdump
FOLLOWED = [*range(1, 16), *range(16, 200, 12)]  # the header is the tenth or so, the first records are near 160
SECONDS = 4  # for the allocations of one command; what does not fit is left out


def without_cores():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Faults(unittest.TestCase):
    def run_tool(self, command, folder, fault):
        """(exit code, messages, what -o holds, number of calls)"""
        out, log = os.path.join(folder, "out"), os.path.join(folder, "log")
        pathlib.Path(out).write_bytes(b"before")
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, CDACQ_FAULT=fault, CDACQ_FAULT_LOG=log)
        done = subprocess.run([TOOL, *map(str, command), "-o", out], input=INPUTS.get(command[0], b""), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=600, check=False, env=environment)
        what = (command, fault, done.returncode, done.stderr[-500:])
        self.assertIn(done.returncode, (0, 1, 2), what)
        self.assertTrue(MESSAGE.fullmatch(done.stderr), what)
        result = pathlib.Path(out).read_bytes()
        calls = int(pathlib.Path(log).read_text()) if os.path.exists(log) else 0
        for path in (out, log):
            if os.path.exists(path):
                os.unlink(path)
        self.assertEqual(os.listdir(folder), [], what)
        return done.returncode, done.stderr, result, calls

    def check_fault(self, command, folder, fault, whole):
        status, messages, result, _ = self.run_tool(command, folder, fault)
        what = (command, fault, status, messages[-500:])
        if status == 2:
            self.assertTrue(messages, what)
            if command[0] not in ("ip2method", "inspect", "info"):  # written as they are found; what is known of the target
                self.assertEqual(result, b"before", what)
        elif status == whole[0] and not messages:
            pass
        else:
            self.assertNotEqual(result, b"before", what)

    def all_faults(self, command, calls, seconds):
        with tempfile.TemporaryDirectory() as folder:
            for call in calls:
                whole = self.run_tool(command, folder, f"{call}:0")
                if call in ("malloc", "open", "mmap", "fstat", "close") and command[0] not in ("flame", "records"):
                    self.assertGreater(whole[3], 0, call)
                numbers, end = list(range(1, whole[3] + 1)), time.monotonic() + seconds
                few, rest = numbers[:EVERY_CALL_UP_TO], numbers[EVERY_CALL_UP_TO:]
                step = max(1, len(rest) // 60)
                for number in few + rest[::step]:
                    if time.monotonic() > end:
                        break
                    self.check_fault(command, folder, f"{call}:{number}", whole)


    def test_records(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "dump")
            subprocess.run([TOOL, "jitdump", PLAIN, "-o", path], stderr=subprocess.DEVNULL, check=False)
            for command in (["verify", PLAIN, path], ["records", path]):
                self.all_faults(command, CALLS, SECONDS / 10)

    def files_of_symfs(self, fault):
        """(exit code, messages, files, number of calls)"""
        with tempfile.TemporaryDirectory() as folder:
            log, out = os.path.join(folder, "log"), os.path.join(folder, "out")
            done = subprocess.run([TOOL, "symfs", str(PLAIN), out], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=600,
                                  check=False, env=dict(os.environ, LD_PRELOAD=LIBRARY, CDACQ_FAULT=fault, CDACQ_FAULT_LOG=log))
            self.assertIn(done.returncode, (0, 1, 2), fault)
            self.assertTrue(MESSAGE.fullmatch(done.stderr), (fault, done.stderr[-500:]))
            files = {path: os.readlink(path) if os.path.islink(path) else pathlib.Path(path).read_bytes()
                     for top, _, names in os.walk(out) for path in (os.path.join(top, name) for name in names)}
            calls = int(pathlib.Path(log).read_text()) if os.path.exists(log) else 0
            return done.returncode, done.stderr, {os.path.relpath(p, out): data for p, data in files.items()}, calls

    def test_folders(self):
        """No part of a file is left; a file that is missing is said to be."""
        for call in FOLDER_CALLS:
            status, _, whole, count = self.files_of_symfs(f"{call}:0")
            self.assertGreater(len(whole), 5)
            for number in list(range(1, count + 1))[:4] + [count] * (count > 4):
                got = self.files_of_symfs(f"{call}:{number}")
                what = (call, number, got[:2])
                self.assertGreaterEqual(got[0], status, what)
                more = {path for path in set(got[2]) - set(whole) if call != "unlinkat" or ".cdacq-part-" not in path}
                self.assertEqual(more, set(), what)
                if got[0] == 2 or len(got[2]) < len(whole):
                    self.assertTrue(got[1], what)

    def bundle_of_libc(self, folder, sysroot, **environment):
        """The row of libc.so.6, and the sizes of its copies."""
        copies = os.path.join(folder, "copies")
        done = subprocess.run([TOOL, "bundle", str(CORE), copies, "--json", "--sysroot", sysroot], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, check=False,
                              env=dict(os.environ, LD_PRELOAD=LIBRARY, **environment))
        self.assertIn(done.returncode, (0, 1), done.stderr[-500:])
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        found = [p.stat().st_size for p in pathlib.Path(copies, "libc.so.6").rglob("*") if p.is_file()]
        shutil.rmtree(copies)
        return next((row for row in rows if row["path"].endswith("/libc.so.6") and row["local_path"]), None), found

    def test_cut_while_it_is_copied(self):
        """A part of a file has not its name."""
        with tempfile.TemporaryDirectory() as folder:
            row, sizes = self.bundle_of_libc(folder, "/")
            if not row or not sizes:
                self.skipTest("no libc.so.6 of the core's name")
            copy = pathlib.Path(folder + row["path"])
            copy.parent.mkdir(parents=True)
            log, changed = os.path.join(folder, "log"), False
            before = signal.signal(signal.SIGUSR1, lambda *_: os.truncate(copy, 5000))
            try:
                whole = pathlib.Path(row["local_path"]).read_bytes()
                copy.write_bytes(whole)
                self.bundle_of_libc(folder, folder, CDACQ_FAULT="pread:0", CDACQ_FAULT_LOG=log)
                count = int(pathlib.Path(log).read_text())
                for number in range(1, count, max(1, min(count // 100, len(whole) >> 17))):
                    copy.write_bytes(whole)
                    row, sizes = self.bundle_of_libc(folder, folder, CDACQ_FAULT=f"pread:{number}",
                                                     CDACQ_FAULT_SIGNAL=str(int(signal.SIGUSR1)),
                                                     CDACQ_FAULT_PID=str(os.getpid()))
                    what = (number, row, sizes)
                    if row and row["result"] == "copied":  # it was cut after that, or before
                        self.assertTrue(sizes in ([len(whole)], [5000]), what)
                    changed = row and row["problem"] == "the file changed while it was copied"
                    if changed:
                        self.assertEqual(sizes, [], what)
                        break
            finally:
                signal.signal(signal.SIGUSR1, before)
            self.assertTrue(changed)

    def test_interrupted(self):
        """A signal ends the tool while it writes a file: only whole files are left."""
        for number, fault in ((signal.SIGINT, "renameat:1"), (signal.SIGTERM, "renameat:2"), (signal.SIGHUP, "write:1")):
            with tempfile.TemporaryDirectory() as out:
                environment = dict(os.environ, LD_PRELOAD=LIBRARY, CDACQ_FAULT=fault, CDACQ_FAULT_SIGNAL=str(int(number)))
                done = subprocess.run([TOOL, "symfs", str(PLAIN), out], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                      timeout=600, check=False, env=environment)
                what = (fault, done.stderr[-500:])
                self.assertEqual(done.returncode, -number, what)
                parts = [name for _, _, names in os.walk(out) for name in names if ".cdacq-part-" in name]
                self.assertEqual(parts, [], what)

    def output_after_fault(self, command, fault, folder, **more):
        """The exit code. A file that -o names has a temporary name from the beginning."""
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, CDACQ_FAULT=fault, CDACQ_FAULT_NO_TMPFILE="1", **more)
        return subprocess.run([TOOL, *map(str, command), "-o", "out"], stdin=subprocess.DEVNULL, cwd=folder,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=600, check=False,
                              env=environment, preexec_fn=without_cores).returncode

    def test_interrupted_output(self):
        """From the first moment of the temporary name to its last, none is left."""
        for command in ("perfmap", "snapshot"):
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXCPU):
                for fault in (*(f"open:{i}" for i in range(1, 20)), *(f"openat:{i}" for i in range(1, 6)), "fstat:3",
                              "write:1", "close:4", "renameat:1"):
                    with tempfile.TemporaryDirectory() as folder:
                        out = pathlib.Path(folder, "out")
                        out.write_bytes(b"before")
                        status = self.output_after_fault([command, PLAIN], fault, folder,
                                                         CDACQ_FAULT_SIGNAL=str(int(number)))
                        what = (command, number, fault, status)
                        self.assertIn(status, (0, 1, -number), what)
                        self.assertEqual(os.listdir(folder), ["out"], what)
                        if fault == "renameat:1":
                            self.assertNotEqual(out.read_bytes(), b"before", what)

    def test_no_memory_for_output(self):
        """A file that has a temporary name is removed."""
        with tempfile.TemporaryDirectory() as folder:
            for number in range(50, 150, 3):
                status = self.output_after_fault(["stack", CORE], f"realloc:{number}", folder)
                self.assertEqual([name for name in os.listdir(folder) if name != "out"], [], (number, status))

    def test_nobody_reads_the_messages(self):
        """A message that a disk is full ends the tool: the part of the file is removed all the same."""
        with tempfile.TemporaryDirectory() as out:
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([TOOL, "symfs", str(PLAIN), out], stdin=subprocess.DEVNULL, stderr=writer, timeout=600,
                                  check=False, env=dict(os.environ, LD_PRELOAD=LIBRARY, CDACQ_FAULT="write:1"))
            os.close(writer)
            self.assertEqual(done.returncode, -signal.SIGPIPE)
            parts = [name for _, _, names in os.walk(out) for name in names if ".cdacq-part-" in name]
            self.assertEqual(parts, [])

    def test_reads_of_a_process(self):
        """A read of the process fails: every answer is that without the fault, or missing, with a reason."""
        with undumped(PLAIN) as process, tempfile.TemporaryDirectory() as folder:
            for command in (["ip2method", "--names=sos", "7f91e58aed0f", "7f91e4850000", "7f91e5879020"], ["perfmap"],
                            ["methods", "--names=sos"], ["info"], ["stack"]):
                self.fail_reads([command[0], str(process.pid), *command[1:]], folder)

    def test_registers_of_a_process(self):
        """The registers of its thread cannot be read: the thread is there all the same, and a message says why."""
        why = b"cannot unwind further: a walk needs the program counter and the stack pointer\n"
        with undumped(PLAIN) as process, tempfile.TemporaryDirectory() as folder:
            told = b"cdacq: process %d: the registers of thread %d cannot be read: Input/output error" % (
                process.pid, process.pid)
            heading = re.compile(rb"^TID %d .*:\n     no such frames\n     \.\.\. %s" % (process.pid, why), re.M)
            for command in ("stack", "report"):
                status, messages, result, _ = self.run_tool([command, process.pid], folder, "ptrace:1")
                self.assertEqual(status, 1, command)
                self.assertIn(told, messages, command)
                self.assertRegex(result, heading, command)
            status, messages, _, _ = self.run_tool(["snapshot", process.pid, "--stacks"], folder, "ptrace:1")
            self.assertEqual((status, told in messages), (1, True), messages)

    def test_end_of_the_process(self):
        """An address that is asked for after the process has ended has no answer: both commands give that reason."""
        for command in ("ip2method", "inspect"):
            with self.subTest(command=command), undumped(PLAIN) as process:
                with subprocess.Popen([TOOL, command, str(process.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE) as tool:
                    tool.stdin.write(b"7f91e58aed0f\n")
                    tool.stdin.flush()
                    first = tool.stdout.readline()
                    process.kill()
                    process.wait()
                    rest, messages = tool.communicate(b"7f91e58aed0f\n", timeout=600)
                self.assertEqual((tool.returncode, messages),
                                 (1, b"cdacq: process %d: the process has ended\n" % process.pid))
                self.assertIn(b"Demo.Outer", first)
                self.assertNotIn(b"Demo.Outer", rest)
                self.assertIn(b"the process has ended", rest)

    def test_end_at_any_time(self):
        """The process ends while it is opened, or later: everything is known of it, or that is said."""
        why = re.compile(rb"cdacq: process \d+: (the process has ended|there is no such process|it has no memory|"
                         rb"its mappings cannot be read: it has no memory).*\n")
        for command in ("info", "bundle"):
            whole, number = None, 0
            while number is not None:
                with undumped(PLAIN) as process, tempfile.TemporaryDirectory() as folder:
                    log, out, copies = (os.path.join(folder, name) for name in ("log", "out", "copies"))
                    environment = dict(os.environ, LD_PRELOAD=LIBRARY, CDACQ_FAULT=f"process_vm_readv:{number}",
                                       CDACQ_FAULT_LOG=log, CDACQ_FAULT_SIGNAL="9", CDACQ_FAULT_PID=str(process.pid))
                    arguments = [TOOL, command, str(process.pid), *([copies] if command == "bundle" else [])]
                    done = subprocess.run([*arguments, "-o", out], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                          timeout=600, check=False, env=environment)
                    result = pathlib.Path(out).read_bytes() if os.path.exists(out) else None
                    what = (command, number, done.returncode, done.stderr)
                    if whole is None:
                        whole = result.replace(process.folder.encode(), b"").replace(str(process.pid).encode(), b"")
                        count = int(pathlib.Path(log).read_text())
                        numbers = [*range(1, min(12, count)), *range(12, count, max(1, count // 12))]
                    elif done.returncode == 0:
                        known = result.replace(process.folder.encode(), b"").replace(str(process.pid).encode(), b"")
                        self.assertEqual(known, whole, what)
                    else:
                        self.assertTrue(why.fullmatch(done.stderr), what)
                        self.assertEqual(result is None, done.returncode == 2, what)
                    number = numbers.pop(0) if numbers else None

    def follow(self, pid, folder, fault, least):
        """(exit code, messages, what -o holds), interrupted once `least` bytes are there, or no more come."""
        out = os.path.join(folder, "out")
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, CDACQ_FAULT=fault)
        with subprocess.Popen([TOOL, "jitdump", str(pid), "--follow", "-o", out], stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, env=environment) as tool:
            end = time.monotonic() + LIVE_SECONDS
            while tool.poll() is None and time.monotonic() < end and (not os.path.exists(out) or os.path.getsize(out) < least):
                time.sleep(0.005)
            if tool.poll() is None:
                tool.send_signal(signal.SIGINT)
            messages = tool.communicate(timeout=600)[1]
        what = (fault, tool.returncode, messages[-500:])
        self.assertIn(tool.returncode, (0, 1, 2), what)
        self.assertTrue(MESSAGE.fullmatch(messages), what)
        result = pathlib.Path(out).read_bytes() if os.path.exists(out) else b""
        if os.path.exists(out):
            os.unlink(out)
        return tool.returncode, messages, result

    def test_follow(self):
        """What is written has a header, and what is missing is said to be."""
        with undumped(PLAIN) as process, tempfile.TemporaryDirectory() as folder:
            whole = self.follow(process.pid, folder, "realloc:0", 1 << 30)
            self.assertEqual(whole[2][:4], b"DTiJ")
            least = len(whole[2]) - CLOSE
            for number in FOLLOWED:
                status, messages, result = self.follow(process.pid, folder, f"realloc:{number}", least)
                what = (number, status, messages[-500:], len(result))
                self.assertIn(result[:4], (b"", b"DTiJ"), what)
                self.assertTrue(messages or (status == whole[0] and len(result) == len(whole[2])), what)

    def fail_reads(self, command, folder):
        _, _, whole, count = self.run_tool(command, folder, "process_vm_readv:0")
        self.assertGreater(count, 0, command)
        lines, end = {TIER.sub(b"", line) for line in whole.splitlines()}, time.monotonic() + LIVE_SECONDS
        for number in range(1, count + 1, max(1, count // 100)):
            status, messages, result, _ = self.run_tool(command, folder, f"process_vm_readv:{number}")
            what = (command, number, status, messages[-500:])
            if status == 2:
                self.assertTrue(messages, what)
            elif command[0] in ("ip2method", "perfmap", "methods"):
                found = {TIER.sub(b"", line) for line in result.splitlines()}
                self.assertTrue(all(line in lines or b" ? " in line for line in found), (what, found - lines))
            if time.monotonic() > end:
                break


def add(name, calls, seconds, command):
    setattr(Faults, f"test_{name}_{command[0]}", lambda self: self.all_faults(command, calls, seconds))


for row in FEWER:
    add("system", CALLS, SECONDS / 10, row)
for row in COMMANDS:
    add("memory", ["malloc"], SECONDS, row)
    add("system", CALLS, SECONDS / 10, row)

if __name__ == "__main__":
    if not TOOL or not LIBRARY or not os.path.exists(LIBRARY):
        raise SystemExit(77)  # not with sanitizers, which replace the same functions
    unittest.main()
