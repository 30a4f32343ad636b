"""contrib/cdacq-report, started as the kernel starts the program of a core_pattern pipe: the core on standard input, no
other streams, an empty environment. CDACQ_KERNEL_CORE names a core that the kernel wrote; otherwise it is a bundled
one. core_pattern itself is not changed."""
import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest

SOURCE = pathlib.Path(os.environ.get("CDACQ_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
HANDLER = SOURCE / "contrib" / "cdacq-report"
TOOL = os.environ.get("CDACQ_TOOL")
CORE = pathlib.Path(os.environ.get("CDACQ_KERNEL_CORE") or SOURCE / "tests/fixtures/hello-net10-x64/core")
USER = 4242  # of the process that died
SANITIZED = TOOL and b"__asan_init" in pathlib.Path(TOOL).read_bytes()  # its shadow memory is above any bound


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
        for uid, expected in ((USER, USER), (0, 65534)):
            _, logs = self.handle(CORE, 77, uid, uid, 6, uid, CDACQ=str(spy), CDACQ_COMMAND="")
            text = logs[f"{uid}-77.txt"]
            for line in ("Uid", "Gid"):
                self.assertEqual(re.search(rf"^{line}:\s+(.*)$", text, re.M)[1].split(), [str(expected)] * 4)
            self.assertEqual(re.search(r"^Groups:(.*)$", text, re.M)[1].strip(), "")
            for kind in ("Inh", "Prm", "Eff", "Bnd"):
                self.assertRegex(text, rf"(?m)^Cap{kind}:\s+0+$")
            self.assertRegex(text, r"(?m)^NoNewPrivs:\s+1$")
            self.assertIn("--sysroot /proc/77/root report -\n", text)

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
