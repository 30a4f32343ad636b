"""The cdacq tool as people and scripts use it: usage, messages, exit codes, streams. What it says of real targets is
tested elsewhere. Tests that need a bundled core are skipped where it is missing."""
import json
import os
import pathlib
import re
import resource
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from jitdump_writer import Jitdump  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL")
FIXTURES = pathlib.Path(os.environ.get("CDACQ_FIXTURES", "tests/fixtures"))
CORE = FIXTURES / "hello-net10-x64" / "core"  # all methods of a small process
# The bundled cores have no code of images, and net10-x64 not all of their tables: that is in the files that they name.
needs_images = unittest.skipUnless(
    os.path.exists("/usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.12/System.Private.CoreLib.dll"),
    "the runtime of the bundled cores is not installed")
COMMANDS = ["ip2method", "info", "methods", "perfmap", "jitdump", "descriptor", "snapshot", "inspect"]
ANSWERED, PARTLY, FAILED, USAGE = 0, 1, 2, 64
MESSAGE = re.compile(rb"(cdacq: [^\x00-\x1f\x7f]+\n)*")
KEYS = ["ip", "status", "kind", "method", "method_desc", "token", "module", "code_start", "code_size", "offset", "cold",
        "funclet_start", "il_offset", "tier", "file", "line", "module_verified", "error", "column", "source_url", "async_thunk"]
METHOD_KEYS = ["status", "kind", "method", "method_desc", "token", "module", "code_start", "code_size", "cold",
               "funclet_start", "tier", "cold_start", "cold_size", "module_verified", "error", "async_thunk"]
INSPECT_KEYS = ["ip", "status", "kind", "method_desc", "code_start", "funclet_start", "is_funclet", "is_filter_funclet",
                "offset", "jit_type", "hot_size", "cold_start", "cold_size", "unwind_info", "unwind_info_base", "debug_info",
                "has_flag_byte", "gc_info", "gc_version", "gc_safe", "stack_parameter_size", "entry_method_desc", "exception_clauses", "method", "module",
                "module_verified", "error", "errors", "il_offset", "file", "line", "column", "end_line", "end_column", "source_url", "pdb",
                "pdb_embedded", "source_problem", "async_thunk", "variables", "variables_problem"]
CLAUSE_KEYS = ["kind", "flags", "try_start", "try_end", "handler_start", "handler_end", "filter_offset", "class_token",
               "type_handle", "duplicated", "module", "is_catch_all"]


def run(*arguments, stdin=b"", **options):
    """Runs the tool; its output is bytes."""
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([TOOL, *map(os.fsencode, arguments)], input=stdin, stderr=subprocess.PIPE, timeout=600,
                          check=False, **options)


class Case(unittest.TestCase):
    def assert_run(self, status, *arguments, lines=None, **options):
        """Runs the tool, checks exit code and that stderr holds whole printable messages, `lines` of them."""
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, status, (arguments, done.stderr))
        self.assertTrue(MESSAGE.fullmatch(done.stderr), done.stderr)
        done.stderr.decode("utf-8")
        if lines is not None:
            self.assertEqual(done.stderr.count(b"\n"), lines, done.stderr)
        return done

    def assert_usage_error(self, *arguments):
        done = self.assert_run(USAGE, *arguments, lines=1)
        self.assertEqual(done.stdout, b"")
        return done.stderr.decode()


class Usage(Case):
    def test_several_pids(self):
        """As `ip2method $(pidof dotnet)` gives them: not an address in the first one."""
        own = str(os.getpid())
        for command in ("ip2method", "inspect"):
            self.assertIn(f"'{own}' is also a pid, and only one process can be read", self.assert_usage_error(command, own, own))
        self.assert_run(ANSWERED, "ip2method", CORE, own)

    def test_needs_a_command(self):
        self.assertIn("command", self.assert_usage_error())
        self.assertIn("'frobnicate'", self.assert_usage_error("frobnicate", "core"))
        self.assertIn("'frobnicate'", self.assert_usage_error("frobnicate", "--help"))

    def test_needs_a_target(self):
        for command in COMMANDS:
            self.assertIn(command, self.assert_usage_error(command))
            self.assert_usage_error(command, "")

        self.assertIn("give a TARGET, or --folded", self.assert_usage_error("filter"))

    def test_messages_name_the_target(self):
        own = str(os.getpid())
        self.assertIn(f"no .NET runtime in process {own}:".encode(), self.assert_run(FAILED, "stack", own, lines=1).stderr)
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe")
            os.mkfifo(pipe)
            for path, advice in ((pipe, "; give a pipe as '-'"), (folder, "")):
                self.assertEqual(self.assert_run(FAILED, "stack", path).stderr.decode(),
                                 f"cdacq: {path}: not a regular file{advice}\n")

    def test_pipe_without_a_writer(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe")
            os.mkfifo(pipe)
            self.assertEqual(self.assert_run(FAILED, "flame", pipe).stderr.decode(),
                             f"cdacq: cannot read '{pipe}': it is a pipe that no program writes to\n")
            with subprocess.Popen(["sh", "-c", 'sleep 0.2; echo "a;b 1" > "$0"', pipe]):
                self.assertIn(b"</svg>", self.assert_run(ANSWERED, "flame", pipe).stdout)

    def test_messages_name_the_bound(self):
        for bound, shown in (("1", "1 byte"), ("1500", "1500 bytes"), ("3K", "3 KiB"), ("1025K", "1025 KiB")):
            done = run("methods", CORE, f"--memory-max={bound}")
            self.assertIn(f"stopped at the bound on memory, {shown}: ".encode(), done.stderr)
        self.assertIn(b"stopped at the bound on work, 1 step: ", run("methods", CORE, "--work-max=1").stderr)
        crash = FIXTURES / "crash-net10-x64" / "core"
        for options in ((), ("--brief",), ("--signature",), ("--json",)):  # each part of a report reaches the bound
            done = run("report", crash, "--work-max=10000", *options)
            self.assertEqual(done.stderr.count(b"stopped at the bound on work, 10000 steps: "), 1)
        for steps in (1, 30, 100, 300, 1000, 3000):  # reached while the runtime is looked for: nothing else is wrong
            for command in (("info",), ("info", "--json"), ("report",), ("stack", "--json")):
                done = run(*command, crash, f"--work-max={steps}")
                self.assertRegex(done.stderr, b"stopped at the bound on work, %d steps?: " % steps)
                if done.returncode == FAILED:
                    self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)

    def test_needs_a_folder(self):
        for command in ("symfs", "bundle"):
            self.assertIn("TARGET DIR", self.assert_usage_error(command, "core"))
            self.assertIn("TARGET DIR", self.assert_usage_error(command, str(os.getpid())))

    def test_too_many_arguments(self):
        self.assertIn("'b'", self.assert_usage_error("perfmap", "a", "b"))
        self.assertIn("--output", self.assert_usage_error("info", "a", "b", "-o", "c"))
        self.assertIn("'c'", self.assert_usage_error("descriptor", "a", "b", "c"))

    def test_unknown_options(self):
        self.assertIn("--frobnicate", self.assert_usage_error("--frobnicate", "info", "core"))
        self.assertIn("-x", self.assert_usage_error("info", "-x", "core"))
        self.assertIn("--json=1", self.assert_usage_error("info", "--json=1", "core"))

    def test_missing_arguments_of_options(self):
        for option in ["--sysroot", "--module-path", "--descriptor", "--descriptor-address", "--runtime", "--names",
                       "--output", "-o", "--r2r"]:
            self.assertIn(option, self.assert_usage_error("methods", "core", option))

    def test_values_of_options(self):
        self.assertIn("csharp", self.assert_usage_error("ip2method", "core", "--names", "IL"))
        for value in ["", "-1", "x", "1x", "4294967296", "99999999999999999999"]:
            self.assertIn("--runtime", self.assert_usage_error("info", "core", "--runtime", value))
        for value in ["", "0", "0x", "g", "-1", "12345678901234567"]:
            self.assertIn("--descriptor-address", self.assert_usage_error("info", "core", "--descriptor-address", value))
        self.assertIn("prepared", self.assert_usage_error("methods", "core", "--r2r", "some"))
        self.assertIn("--output", self.assert_usage_error("info", "core", "-o", ""))

    def test_options_of_other_commands(self):
        self.assertIn("--stubs", self.assert_usage_error("ip2method", "core", "--stubs"))
        self.assertIn("--r2r", self.assert_usage_error("info", "--r2r", "all", "core"))
        self.assertIn("--names", self.assert_usage_error("descriptor", "--names", "csharp", "core"))
        for command in ["perfmap", "jitdump"]:
            self.assertIn("--json", self.assert_usage_error(command, "core", "--json"))
            self.assertIn("prepared", self.assert_usage_error(command, "core", "--r2r", "none"))

    def test_jitdump_is_not_for_terminals(self):
        leader, terminal = os.openpty()
        self.addCleanup(os.close, leader)
        done = self.assert_run(USAGE, "jitdump", "core", stdout=terminal, lines=1)
        os.close(terminal)
        self.assertIn(b"-o FILE", done.stderr)

    def test_snapshot_needs_a_file(self):
        for output in [[], ["-o", "-"]]:
            self.assertIn("-o", self.assert_usage_error("snapshot", "core", *output))

    def test_options_stand_anywhere(self):
        for arguments in [["--json", "info", "/nowhere"], ["info", "--json", "/nowhere"], ["info", "/nowhere", "--json"],
                          ["info", "--json", "--", "/nowhere"]]:
            for environment in [{}, {"POSIXLY_CORRECT": "1"}]:
                done = self.assert_run(FAILED, *arguments, lines=1, env=dict(os.environ, **environment))
                self.assertIn(b"/nowhere", done.stderr)

    def test_message_is_one_printable_line(self):
        for bad in [b"a\nb", b"\x1b[31m", b"\xff\xfe", "\u202eabc".encode(), "\x85".encode(), b"%s%n"]:
            self.assert_usage_error(bad)
            self.assert_usage_error("info", "core", b"--" + bad)
            self.assert_run(FAILED, "info", b"/nowhere/" + bad, lines=1)


class Help(Case):
    def test_list_fits_a_screen(self):
        text = self.assert_run(ANSWERED, "--help", lines=0).stdout.decode()
        for command in [*COMMANDS, "records", "verify"]:
            self.assertRegex(text, rf"\n  {command} +[a-z]")
        for code in ["0", "1", "2", "64"]:
            self.assertRegex(text, rf"\n +{code}  ")
        self.assertLessEqual(text.count("\n"), 55)
        self.assertLess(max(map(len, text.splitlines())), 100)
        self.assertEqual(text, self.assert_run(ANSWERED, "help", lines=0).stdout.decode())

    def test_help_of_commands(self):
        for command in COMMANDS:
            text = self.assert_run(ANSWERED, command, "--help", lines=0).stdout.decode()
            self.assertEqual(text, self.assert_run(ANSWERED, "-h", command).stdout.decode())
            self.assertEqual(text, self.assert_run(ANSWERED, "help", command).stdout.decode())
            self.assertIn(f" {command} TARGET", text)
            self.assertEqual("--stubs" in text, command in ("methods", "perfmap", "jitdump"))
            self.assertEqual("--json" in text, command not in ("perfmap", "jitdump"))
            self.assertRegex(text, r"\n +64  ")

    def test_did_you_mean(self):
        for wrong, right in [("reprot", "report"), ("meth", "methods"), ("ip2metod", "ip2method"), ("symf", "symfs")]:
            self.assertIn(f"did you mean '{right}'?", self.assert_usage_error(wrong, "core"))
            self.assertIn(f"did you mean '{right}'?", self.assert_usage_error("help", wrong))
        for wrong, right in [("--jsno", "--json"), ("--modul-path=x", "--module-path"), ("--s", None), ("--quux", None)]:
            said = self.assert_usage_error("info", wrong, "core")
            self.assertIn(f"did you mean '{right}'?" if right else "cdacq --help", said)

    def test_pid_option(self):
        for words in (["-p", "1"], ["-p1"], ["--pid", "1"], ["--pid=1"], ["report", "-p", "1"]):
            self.assertIn("the pid is an argument, as in 'cdacq report 4242'", self.assert_usage_error(*words))

    def test_version(self):
        done = self.assert_run(ANSWERED, "--version", lines=0)
        self.assertRegex(done.stdout.decode(), r"^cdacq \d+\.\d+\.\d+\n$")
        self.assertEqual(self.assert_run(ANSWERED, "info", "-V").stdout, done.stdout)
        self.assertEqual(self.assert_run(ANSWERED, "version").stdout, done.stdout)


@unittest.skipUnless(CORE.exists(), "needs the bundled core")
class Habits(Case):
    @classmethod
    def setUpClass(cls):
        rows = [json.loads(line) for line in run("methods", "--json", CORE).stdout.splitlines()]
        cls.rows = [row for row in rows if row["method"]]
        cls.names = [row["method"].split("(")[0] for row in cls.rows]
        cls.row = next(row for row, name in zip(cls.rows, cls.names) if cls.names.count(name) == 1)

    def test_target_alone(self):
        """A target in place of a command is reported. A folder is none."""
        for target in (os.path.relpath(CORE), str(os.getpid()), "99999999"):
            for options in ([], ["--signature"], ["--brief"]):
                alone, report = (run(*words, *options, target) for words in ([], ["report"]))
                self.assertEqual(alone.returncode, report.returncode)
                self.assertEqual(alone.stderr, report.stderr)
                if not target.isdecimal():
                    self.assertEqual(alone.stdout, report.stdout)
                    self.assertTrue(alone.stdout or options == ["--brief"])
        self.assertIn("'report' does not take --stubs", self.assert_usage_error("--stubs", CORE))
        self.assertIn("unknown command", self.assert_usage_error(os.path.dirname(CORE)))

    def test_symbols_as_ips(self):
        start, bare = int(self.row["code_start"], 16), self.row["method"].split("(")[0]
        for text in (f"{self.row['method']}+0x3", f"{bare}+0x3", f" {bare} +0X3 "):
            done = self.assert_run(ANSWERED, "ip2method", "--json", CORE, text, lines=0)
            self.assertEqual(json.loads(done.stdout)["ip"], f"0x{start + 3:x}")
            self.assertEqual(done.stdout, run("ip2method", "--json", CORE, stdin=text.encode() + b"\n").stdout)
        several = next(name for name in self.names if self.names.count(name) > 1)
        for text, problem in [(f"{several}+0x1", "pieces of code"), ("Nobody.Knows+0x1", "no method or module"),
                              ("nothing.so!0x1", "no such module"), (bare, "hexadecimal"), ("+0x1", "hexadecimal"),
                              (f"{bare}+0x{self.row['code_size']:x}", "beyond the method"),
                              (f"{bare}+0xfffffffffffffff0", f"has 0x{self.row['code_size']:x} bytes"),
                              ("libcoreclr.so!0xffffffffffffffff", "beyond the end of the mapped file")]:
            self.assertIn(problem, self.assert_run(PARTLY, "ip2method", CORE, text, lines=1).stderr.decode())
        module = next(one for one in json.loads(run("info", "--json", CORE).stdout)["modules"] if "coreclr.so" in one["path"])
        for text in (f"{os.path.basename(module['path'])}!0x10", f"{module['path']}+0x10"):
            done = self.assert_run(ANSWERED, "inspect", "--json", CORE, text)
            self.assertEqual(json.loads(done.stdout)["ip"], f"0x{int(module['begin'], 16) + 16:x}")

    def test_decimal_ips(self):
        """An address that was written in decimal is not taken for a hexadecimal one."""
        for stdin in (False, True):
            arguments = [] if stdin else ["139637976727552"]
            done = self.assert_run(PARTLY, "ip2method", CORE, *arguments, stdin=b"139637976727552\n" * stdin, lines=1)
            self.assertIn(b"0x7f0000000000", done.stderr)
            self.assertIn(b"[error]", done.stdout)
        self.assert_run(ANSWERED, "ip2method", CORE, "0x139637976727552", "13963797672755", "149637976727552", lines=0)

    def test_asks_on_a_terminal(self):
        for command, expected in [("ip2method", b"0x10 - [none]\n"), ("filter", b"10\n")]:
            leader, terminal = os.openpty()
            tool = subprocess.Popen([TOOL, command, CORE], stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            os.close(terminal)
            os.write(leader, b"10\n\x04")
            out, err = tool.communicate(timeout=600)
            os.close(leader)
            self.assertEqual(out, expected)
            self.assertRegex(err, rb"^cdacq: reading [^\n]*address[^\n]* from the terminal; [^\n]*\n$")

    def test_names_with_wildcards(self):
        every = self.assert_run(ANSWERED, "methods", CORE).stdout
        self.assertEqual(self.assert_run(ANSWERED, "methods", CORE, "*").stdout, every)
        bare = self.row["method"].split("(")[0]
        for pattern, expected in [(bare, [self.row]), (self.row["method"], [self.row]),
                                  ("*.ctor", [row for row, name in zip(self.rows, self.names) if name.endswith(".ctor")])]:
            done = self.assert_run(ANSWERED, "methods", "--json", CORE, pattern, lines=0)
            self.assertEqual([json.loads(line) for line in done.stdout.splitlines()], expected)
        done = self.assert_run(PARTLY, "methods", CORE, bare, "Nobody.*", lines=1)
        self.assertEqual((done.stdout.count(b"\n"), b"'Nobody.*'" in done.stderr), (1, True))
        self.assertIn(b"is named 'Nobody'; a '*' in it stands for any text\n", run("methods", CORE, "Nobody").stderr)

    @needs_images
    def test_names_where_most_methods_are_missing(self):
        small = FIXTURES / "net10-x64" / "core"
        done = self.assert_run(PARTLY, "methods", small, "Demo.Outer*", "Nobody.*", lines=3)
        self.assertRegex(done.stderr, rb"^cdacq: some names cannot be read, at 0x\w+ first: .*\n"
                                      rb"cdacq: there may be more prepared methods: images .* cannot be read: \d+\n"
                                      rb"cdacq: no method that can be read is named 'Nobody\.\*'\n$")
        self.assertNotIn(b"[error]", done.stdout)

    @needs_images
    def test_methods_that_may_be_prepared(self):
        """The core lacks maps of prepared methods: no listing of these is taken for a complete one, but names stand."""
        small = FIXTURES / "net10-x64" / "core"
        prepared = ["--r2r", "prepared"]
        with tempfile.TemporaryDirectory() as folder:
            output = ["-o", os.path.join(folder, "out")]
            for command in [["methods"], ["perfmap", *prepared], ["jitdump", *prepared, *output], ["elf", *output],
                            ["symfs", os.path.join(folder, "symfs"), *prepared], ["snapshot", *output]]:
                with self.subTest(command=command):
                    command.insert(1, small)
                    done = self.assert_run(PARTLY, *command)
                    self.assertEqual(done.stderr.count(b"there may be more prepared methods: images"), 1)
        rows = map(json.loads, self.assert_run(PARTLY, "methods", small, "--r2r", "all", "--json").stdout.splitlines())
        row = next(row for row in rows if "has prepared the method is not known" in (row["error"] or ""))
        self.assertEqual((row["status"], row["method_desc"]), ("managed", None))
        answer = self.assert_run(ANSWERED, "ip2method", "--json", small, row["code_start"], lines=0).stdout
        self.assertEqual([json.loads(answer)[key] for key in ("status", "method", "error")],
                         ["managed", row["method"], row["error"]])
        answer = self.assert_run(ANSWERED, "ip2method", small, row["code_start"], lines=0).stdout.decode()
        self.assertIn(f" {row['method']} +0x0 [r2r", answer)
        self.assertIn(row["error"], self.assert_run(ANSWERED, "inspect", small, row["code_start"]).stdout.decode())

    def test_heap_export(self):
        """The file is that of the whole heap, never the target, and there is none without a heap."""
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "a.heapsnapshot")
            for options in [["--json"], ["--all"], ["-o", "-", "--type=*"], ["--generation=2"], ["--why=0x10"], ["--retained"],
                            ["--strings"], ["-o", name], [CORE]]:
                self.assertIn("--export writes the whole heap", self.assert_usage_error("heap", f"--export={name}", *options, CORE))
            for name in (name, os.path.join(folder, "a.gcdump"), os.path.join(folder, "a.svg")):
                self.assert_run(FAILED, "heap", "--export", name, CORE, lines=1)
            self.assertEqual(os.listdir(folder), [])
            core = shutil.copy(CORE, folder)
            self.assertIn(b"is the target", self.assert_run(FAILED, "heap", "--export", core, core, lines=1).stderr)
            self.assertEqual(pathlib.Path(core).read_bytes(), CORE.read_bytes())

    def test_few_messages(self):
        """A core may lack any number of things: commands tell the first 20, what has no address, and how many more."""
        small = FIXTURES / "net10-x64" / "core"
        with tempfile.TemporaryDirectory() as folder:
            for command in [["methods", small], ["snapshot", small, "-o", os.path.join(folder, "core")]]:
                told = self.assert_run(PARTLY, *command).stderr.splitlines()
                self.assertEqual(sum(line.startswith(b"cdacq: 0x") for line in told), 20)
                self.assertLess(len(told), 25)
                self.assertRegex(b"\n".join(told), rb"\ncdacq: \d+ more (elements|addresses) cannot be read\b")

    def test_debuginfod_without_a_server(self):
        environment = {key: value for key, value in os.environ.items() if key != "DEBUGINFOD_URLS"}
        done = subprocess.run([TOOL, "ip2method", "--debuginfod", CORE, "1"], env=environment, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (ANSWERED, b"0x1 - [none]\n"))
        self.assertRegex(done.stderr, rb"^cdacq: --debuginfod: no server [^\n]*DEBUGINFOD_URLS is not set\n$")

    def test_several_targets(self):
        alone = self.assert_run(ANSWERED, "info", CORE).stdout
        done = self.assert_run(ANSWERED, "info", CORE, CORE)
        heading = f"==> {CORE} <==\n".encode()
        self.assertEqual(done.stdout, heading + alone + b"\n" + heading + alone)
        rows = [json.loads(line) for line in self.assert_run(ANSWERED, "info", "--json", CORE, CORE).stdout.splitlines()]
        self.assertEqual([row["target"] for row in rows], [str(CORE)] * 2)
        done = self.assert_run(FAILED, "info", CORE, "/nowhere", CORE)
        self.assertEqual(done.stdout.count(alone), 2)
        self.assertRegex(done.stderr, rb"(?m)^cdacq: /nowhere: No such file")


def on_terminal(*arguments, **environment):
    """What the tool writes to a terminal that is both its standard output and its standard error, without progress, which
    shows where the machine is slow."""
    leader, terminal = os.openpty()
    tool = subprocess.Popen([TOOL, *map(os.fsencode, arguments)], stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal,
                            env={**{name: value for name, value in os.environ.items() if name != "NO_COLOR"},
                                 "TERM": "xterm", **environment})
    os.close(terminal)
    written = b""
    while True:
        try:
            written += os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
    os.close(leader)
    tool.wait(60)
    return re.sub(rb"\r\x1b\[K[^\r\n]*(?=\r\x1b\[K)|\r\x1b\[K", b"", written).replace(b"\r\n", b"\n")


class Terminal(Case):
    STYLE = re.compile(rb"\x1b\[[0-9;]*m")

    def test_colour(self):
        crash, plain = FIXTURES / "crash-net10-x64" / "core", FIXTURES / "net10-x64" / "core"
        for arguments in [("ip2method", CORE, "1", "zz"), ("methods", CORE), ("info", CORE), ("stack", crash),
                          ("report", crash), ("methods", plain), ("info", CORE, CORE)]:
            piped = run(*arguments)
            coloured = run("--color=always", *arguments)
            self.assertNotIn(b"\x1b", piped.stdout + piped.stderr)
            self.assertEqual(run("--color", "auto", *arguments).stdout, piped.stdout)
            self.assertEqual(self.STYLE.sub(b"", coloured.stdout), piped.stdout)
            shown = on_terminal(*arguments)
            if arguments[:2] != ("methods", CORE):
                self.assertIn(b"\x1b[", shown)
            for off in (on_terminal(*arguments, NO_COLOR="1"), on_terminal(*arguments, TERM="dumb"),
                        on_terminal("--color=never", *arguments)):
                self.assertEqual(self.STYLE.sub(b"", shown), off)
                self.assertNotIn(b"\x1b", off)
            self.assertEqual(on_terminal(*arguments, NO_COLOR=""), shown)  # https://no-color.org
        json_arguments = ["--color=always", "report", "--json", crash]
        self.assertEqual(run(*json_arguments).stdout, run(*json_arguments[1:]).stdout)

    def test_every_style_ends_on_its_line(self):
        text = run("--color=always", "report", FIXTURES / "crash-net10-x64" / "core").stdout
        for line in text.splitlines():
            styles = self.STYLE.findall(line)
            self.assertEqual([style == b"\x1b[0m" for style in styles], [False, True] * (len(styles) // 2), line)
        for part in (b"\x1b[31mSIGABRT\x1b[0m", b"\x1b[1mTID ", b"\x1b[1mprogram "):
            self.assertIn(part, text)

    def test_columns(self):
        shown = on_terminal("ip2method", CORE, "1", "7f0000000000", TERM="dumb").splitlines()
        self.assertEqual(shown, [b"0x1            - [none]", b"0x7f0000000000 - [none]"])
        columns = {re.match(rb"0x\w+ +\+0x\w+ +", line).end() for line in on_terminal("methods", CORE, TERM="dumb").splitlines()}
        self.assertEqual(len(columns), 1)
        self.assertEqual(self.assert_run(ANSWERED, "ip2method", CORE, "1").stdout, b"0x1 - [none]\n")


class Stack(Case):
    def limited(self, limit, *arguments):
        return subprocess.run(["/bin/sh", "-c", limit + ' && exec "$@"', "sh", TOOL, *arguments], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    @unittest.skipIf("CDACQ_RUN" in os.environ, "an emulator has the stack")
    def test_small_limit(self):
        """The limit is raised. If it may not be, one line says how much is needed."""
        if b"__asan_init" in pathlib.Path(TOOL).read_bytes():
            self.skipTest("the sanitizer has more on its stack before main()")
        for arguments in (["report", CORE], ["elf", CORE], ["methods", CORE]):
            expected = self.limited("true", *arguments)
            done = self.limited("ulimit -S -s 64", *arguments)
            self.assertEqual((done.returncode, done.stdout), (expected.returncode, expected.stdout))
            done = self.limited("ulimit -s 64", *arguments)
            if done.stderr.startswith(b"cdacq: the stack is limited to 64 KiB"):
                self.assertEqual((done.returncode, done.stdout, done.stderr.count(b"\n")), (2, b"", 1))
            else:  # root may raise it
                self.assertEqual((done.returncode, done.stdout), (expected.returncode, expected.stdout))


class BadTargets(Case):
    """Each with its own line, whichever the command."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def assert_refused(self, target, known=None):
        """Nothing can be answered; `known` is what `info` prints of the target even so."""
        for command in COMMANDS:
            output = os.path.join(self.folder.name, "out")
            arguments = [command, target] + (["-o", output] if command == "snapshot" else [])
            done = self.assert_run(FAILED, *arguments, lines=1)
            if known and command == "info":
                self.assertRegex(done.stdout.decode(), rf"(?m)^{known}$")
            else:
                self.assertEqual(done.stdout, b"")
            self.assertFalse(os.path.exists(output))
        return done.stderr.decode()

    def file(self, data):
        path = os.path.join(self.folder.name, "file")
        pathlib.Path(path).write_bytes(data)
        return path

    def test_missing(self):
        self.assertIn("No such file", self.assert_refused("/nowhere/core"))

    def test_directory(self):
        self.assertIn(self.folder.name, self.assert_refused(self.folder.name))

    def test_not_an_elf(self):
        self.assertIn("ELF", self.assert_refused(self.file(b"#!/bin/sh\n" * 100)))
        self.assertIn(": empty", self.assert_refused(self.file(b"")))
        self.assert_refused(self.file(b"\x7fELF"))

    def test_not_a_core(self):
        """An image is a target too, for what a runtime says of itself; this one is no runtime."""
        image = os.environ.get("CDACQ_LIBRARY", TOOL)
        self.assert_refused(image, "target      image .*")
        self.assertIn("not a core", self.assert_run(FAILED, "ip2method", image, "1", lines=1).stderr.decode())

    def test_image_of_a_runtime(self):
        """It has no code ranges, and lacks none."""
        images = sorted(pathlib.Path("/usr/share/dotnet/shared/Microsoft.NETCore.App").glob("10.*/libcoreclr.so"))
        if not images:
            self.skipTest("no runtime is installed")
        self.assert_run(ANSWERED, "info", images[-1], lines=0)

    def test_closed_input(self):
        for arguments in (["info", "-"], ["ip2method", CORE]):
            done = subprocess.run([TOOL, *arguments], stderr=subprocess.PIPE, check=False, preexec_fn=lambda: os.close(0))
            self.assertEqual(done.returncode, FAILED)
            self.assertIn(b"standard input: Bad file descriptor\n", done.stderr)

    def test_no_runtime(self):
        header = b"\x7fELF\x02\x01\x01" + bytes(9) + (4).to_bytes(2, "little") + (62).to_bytes(2, "little")
        header += (1).to_bytes(4, "little") + bytes(8) + (64).to_bytes(8, "little") + bytes(12)
        header += (64).to_bytes(2, "little") + (56).to_bytes(2, "little") + (1).to_bytes(2, "little") + bytes(6)
        self.assertEqual(len(header), 64)
        load = (1).to_bytes(4, "little") + (6).to_bytes(4, "little") + (4096).to_bytes(8, "little") + bytes(48 - 8)
        self.assertIn("runtime", self.assert_refused(self.file(header + load), "runtime     none"))

    def test_pids(self):
        self.assert_refused("0")
        self.assert_refused("4194999")  # beyond the kernel's limit
        self.assertIn("99999999999999999999", self.assert_refused("99999999999999999999"))

    @unittest.skipIf("CDACQ_RUN" in os.environ, "the tool cannot read this machine's processes")
    def test_process_without_runtime(self):
        self.assertIn("runtime", self.assert_refused(str(os.getpid()), "runtime     none"))

    def test_second_target(self):
        done = self.assert_run(FAILED, "descriptor", "/nowhere/1", "/nowhere/2", lines=1)
        self.assertIn(b"/nowhere/1", done.stderr)

    def test_output_on_the_target(self):
        path = self.file(b"precious")
        for command in COMMANDS:
            self.assertIn(b"is the target", self.assert_run(FAILED, command, path, "-o", path, lines=1).stderr)
        self.assertEqual(pathlib.Path(path).read_bytes(), b"precious")


@unittest.skipUnless(CORE.exists(), f"{CORE} is not there")
class Streams(Case):
    """ip2method's own promises; some IPs of the core come from `methods`."""

    @classmethod
    def setUpClass(cls):
        listing = run("methods", "--json", CORE)
        cls.methods = [json.loads(line) for line in listing.stdout.splitlines()]
        assert cls.methods, listing.stderr
        cls.ip = cls.methods[0]["code_start"]

    def ask(self, status, text, *arguments, **options):
        done = self.assert_run(status, "ip2method", "--json", CORE, *arguments, stdin=text, **options)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_styles_of_names(self):
        ip = next(method["code_start"] for method in self.methods if "Interop.CheckIo<" in (method["method"] or ""))
        for style, name in [("csharp", b"Interop.CheckIo<TSafeHandle>(TSafeHandle, string, bool)"),
                            ("sos", b"Interop.CheckIo[[System.__Canon, System.Private.CoreLib]]"
                                    b"(System.__Canon, System.String, Boolean)"),
                            ("il", b"!!0 [System.Console] Interop::CheckIo(!!0,string,bool)")]:
            done = self.assert_run(ANSWERED, "ip2method", "--names", style, CORE, ip)
            self.assertIn(b" " + name + b" +0x", done.stdout)
            listing = self.assert_run(ANSWERED, "methods", "--names", style, CORE, lines=None)
            self.assertIn(b" " + name + b" [r2r]", listing.stdout)
        self.assertEqual(run("ip2method", CORE, ip).stdout, run("ip2method", "--names=csharp", CORE, ip).stdout)

    def test_forms_of_an_ip(self):
        digits = self.ip[2:]
        forms = [digits, "0x" + digits, "0X" + digits.upper(), digits.rjust(16, "0"), f"  {digits}\t", digits + "\r"]
        answers = self.ask(ANSWERED, "\n".join(forms).encode(), lines=0)
        self.assertEqual(len(answers), len(forms))
        for answer in answers:
            self.assertEqual(answer, answers[0])
        self.assertEqual(self.ask(ANSWERED, b"", *forms), answers)
        self.assertEqual(answers[0]["status"], "managed")
        self.assertEqual(answers[0]["offset"], 0)

    def test_keys(self):
        for answer in self.ask(PARTLY, f"{self.ip}\n1\nzap\n".encode()):
            self.assertEqual(list(answer), KEYS)
        for method in self.methods:
            self.assertEqual(list(method), METHOD_KEYS)

    def test_nothing_asked(self):
        self.assertEqual(self.ask(ANSWERED, b"", lines=0), [])

    def test_bad_lines(self):
        bad = [b"", b" ", b"0x", b"xyz", b"12 34", b"-1", b"12345678901234567", b"7f\x00", b"\x1b[2J", b"\xff\"\\",
               "\u202e".encode(), b"a" * 4096, b"a" * 4097, b"0" * 1000000]
        text = b"\n".join(line + b"\n" + self.ip.encode() for line in bad)
        answers = self.ask(PARTLY, text, lines=len(bad))
        self.assertEqual(len(answers), 2 * len(bad))
        for line, wrong, good in zip(bad, answers[::2], answers[1::2]):
            self.assertEqual((wrong["status"], good["status"]), ("error", "managed"), line[:80])
            self.assertTrue(wrong["error"])
        self.assertEqual([answer["ip"] for answer in answers[6:14:2]], ["xyz", "12 34", "-1", "12345678901234567"])
        self.assertEqual([answer["ip"] for answer in answers[14:22:2]], ["7f\\x00", "\\x1b[2J", "\\xff\"\\\\", "\\u{202e}"])

    def test_bad_lines_as_text(self):
        done = self.assert_run(PARTLY, "ip2method", CORE, "x\x1b", self.ip, "", lines=2)
        first, second, third = done.stdout.decode().splitlines()
        self.assertEqual(first, "x\\x1b ? [error] not a hexadecimal address")
        self.assertRegex(second, rf"^{self.ip} \S.* \+0x0 \[(jit|r2r)[^]]*\]")
        self.assertRegex(third, r"^ \? \[error\] ")

    def test_few_complaints(self):
        done = self.assert_run(PARTLY, "ip2method", CORE, stdin=b"zap\n" * 1000, lines=21)
        self.assertIn(b"980 more", done.stderr.splitlines()[-1])
        self.assertEqual(done.stdout.count(b"\n"), 1000)

    def test_order(self):
        ips = [method["code_start"] for method in self.methods][:3000] * 3
        answers = self.ask(ANSWERED, "\n".join(ips).encode(), lines=0)
        self.assertEqual([answer["ip"] for answer in answers], ips)

    def test_text_and_json_agree(self):
        ips = [method["code_start"] for method in self.methods][:200] + ["0x1"]
        lines = self.assert_run(ANSWERED, "ip2method", CORE, *ips).stdout.decode().splitlines()
        for answer, line in zip(self.ask(ANSWERED, b"", *ips), lines, strict=True):
            if answer["status"] == "none":
                self.assertEqual(line, f"{answer['ip']} - [none]")
                continue
            tier = f" {answer['tier']}" if answer["tier"] else ""
            head = f"{answer['ip']} {answer['method'] or '?'} +{answer['offset']:#x} [{answer['kind']}{tier}]"
            self.assertTrue(line.startswith(head), (line, head))
            if answer["module"]:
                self.assertTrue(line.endswith(f"({os.path.basename(answer['module'])})"), line)

    def test_interactive(self):
        """An answer comes before the next question is asked."""
        with subprocess.Popen([TOOL, "ip2method", CORE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as tool:
            for _ in range(3):
                tool.stdin.write(self.ip[:5].encode())
                tool.stdin.write(self.ip[5:].encode() + b"\n")
                self.assertTrue(select.select([tool.stdout], [], [], 60)[0], "no answer")
                self.assertTrue(os.read(tool.stdout.fileno(), 65536).startswith(self.ip.encode() + b" "))
            tool.stdin.close()
            self.assertEqual(tool.stdout.read(), b"")
        self.assertEqual(tool.returncode, ANSWERED)

    def test_nonblocking_input(self):
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        with subprocess.Popen([TOOL, "ip2method", CORE], stdin=reader, stdout=subprocess.PIPE) as tool:
            os.close(reader)
            self.assertFalse(select.select([tool.stdout], [], [], 0.3)[0])
            os.write(writer, self.ip.encode())
            os.close(writer)
            self.assertTrue(tool.stdout.read().startswith(self.ip.encode()))
        self.assertEqual(tool.returncode, ANSWERED)

    def test_unreadable_input(self):
        with tempfile.TemporaryDirectory() as folder:
            stdin = os.open(folder, os.O_RDONLY)
            done = subprocess.run([TOOL, "ip2method", CORE], stdin=stdin, capture_output=True, check=False)
            os.close(stdin)
        self.assertEqual(done.returncode, FAILED)
        self.assertIn(b"standard input", done.stderr)

    def test_verify_without_a_comparison(self):
        """No contradiction means nothing if nothing could be compared."""
        pid = json.loads(self.assert_run(ANSWERED, "info", "--json", CORE).stdout)["pid"]
        empty, moved = Jitdump(pid=pid), Jitdump(pid=pid)
        moved.move(1, pid, pid, 0x2000, 0x1000, 0x2000, 16, 1)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "jit.dump"
            for dump, damaged in [(empty, 0), (moved, 1)]:
                path.write_bytes(dump.data)
                done = self.assert_run(FAILED, "verify", "--json", CORE, path, lines=1)
                self.assertIn(b"no record that could be compared", done.stderr)
                sums = json.loads(done.stdout.splitlines()[-1])
                self.assertEqual((sums["damaged"], sums["records"], sums["cut"]), (damaged, damaged, None))

    def test_output_dash(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.assert_run(ANSWERED, "ip2method", CORE, "-o", "-", stdin=self.ip.encode(), cwd=folder)
            self.assertIn(b"0x", done.stdout)
            self.assertEqual(os.listdir(folder), [])

    def test_full_disk(self):
        for command in ["ip2method", "info", "methods", "perfmap", "descriptor"]:
            names = ["--names=csharp"] if command == "perfmap" else []
            with open("/dev/full", "wb") as full:
                done = self.assert_run(FAILED, command, CORE, *names, stdin=self.ip.encode(), stdout=full, lines=1)
            self.assertIn(b"No space", done.stderr)
            done = self.assert_run(FAILED, command, CORE, *names, "-o", "/dev/full", stdin=self.ip.encode(), lines=1)
            self.assertIn(b"/dev/full", done.stderr)
        self.assert_run(FAILED, "info", CORE, "-o", "/nowhere/file", lines=1)

    def test_reader_that_leaves(self):
        for ignored in [False, True]:
            reader, writer = os.pipe()
            os.close(reader)
            done = self.assert_run(FAILED if ignored else -13, "methods", CORE, stdout=writer, lines=0,
                                   restore_signals=not ignored)
            os.close(writer)
            self.assertEqual(done.stderr, b"")

    def test_output_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out")
            for command in ["ip2method", "info", "methods", "perfmap", "descriptor"]:
                names = ["--names=csharp"] if command == "perfmap" else []
                printed = self.assert_run(ANSWERED, command, CORE, *names, stdin=self.ip.encode(), lines=0)
                written = self.assert_run(ANSWERED, command, CORE, *names, "-o", path, stdin=self.ip.encode(), lines=0)
                self.assertEqual(written.stdout, b"")
                self.assertEqual(pathlib.Path(path).read_bytes(), printed.stdout)

    def test_output_file_is_standard_output(self):
        """What others write to the file is not lost."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "out")
            expected = self.assert_run(ANSWERED, "info", CORE).stdout
            for name in ("/dev/stdout", str(path)):
                with open(path, "wb", buffering=0) as out:
                    out.write(b"before\n")
                    self.assert_run(ANSWERED, "info", CORE, "-o", name, stdout=out)
                    out.write(b"after\n")
                self.assertEqual(path.read_bytes(), b"before\n" + expected + b"after\n")

    def test_output_file_that_cannot_be(self):
        """Nothing is read for it, and nothing else is said."""
        with tempfile.TemporaryDirectory() as folder:
            loop = os.path.join(folder, "loop")
            os.symlink("loop", loop)
            small = FIXTURES / "net10-x64" / "core"
            for command in ("methods", "snapshot", "elf", "jitdump"):
                for path in (folder, loop, os.path.join(folder, "none", "out"), os.path.join(folder, "x" * 300)):
                    done = self.assert_run(FAILED, command, small, "-o", path, lines=1)
                    self.assertIn(b"cannot write", done.stderr)
            self.assertEqual(os.listdir(folder), ["loop"])
            link = os.path.join(folder, "link")
            os.symlink("file", link)
            self.assert_run(ANSWERED, "snapshot", CORE, "-o", link)
            self.assertEqual(sorted(os.listdir(folder)), ["file", "link", "loop"])

    def test_folders_that_are_none(self):
        with tempfile.TemporaryDirectory() as folder:
            loop = os.path.join(folder, "loop")
            os.symlink("loop", loop)
            for option in ("--sysroot", "--module-path"):
                for path in (loop, "x" * 300, os.path.join(folder, "none"), TOOL):
                    done = self.assert_run(ANSWERED, "info", CORE, option, path, lines=1)
                    self.assertIn(b"no file is looked for there", done.stderr)

    def test_output_file_with_a_long_name(self):
        """The file has another name until it is complete, which is not longer."""
        with tempfile.TemporaryDirectory() as folder:
            for command, status in (("info", ANSWERED), ("snapshot", ANSWERED)):
                path = os.path.join(folder, command.ljust(255, "x"))
                for _ in range(2):
                    self.assert_run(status, command, CORE, "-o", path)
                self.assertGreater(os.path.getsize(path), 100)
            self.assertEqual(len(os.listdir(folder)), 2)

    def test_output_file_without_proc(self):
        """A file without a name gets one through /proc."""
        if b"__asan_init" in pathlib.Path(TOOL).read_bytes():
            self.skipTest("sanitizers need /proc, also for their options")
        unshare = ["unshare", "--user", "--map-root-user", "--mount", "--"]
        if subprocess.run([*unshare, "mount", "-t", "tmpfs", "tmpfs", "/proc"], stderr=subprocess.DEVNULL,
                          check=False).returncode:
            self.skipTest("nothing can be mounted")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out")
            script = 'mount -t tmpfs tmpfs /proc && exec "$0" info "$1" -o "$2"'
            done = subprocess.run([*unshare, "sh", "-c", script, TOOL, CORE, path], stderr=subprocess.PIPE, check=False)
            self.assertEqual((done.returncode, done.stderr), (ANSWERED, b""))
            self.assertEqual(os.listdir(folder), ["out"])


@unittest.skipUnless(CORE.exists(), f"{CORE} is not there")
class OtherCommands(Case):
    def test_info(self):
        text = self.assert_run(ANSWERED, "info", CORE, lines=0).stdout.decode()
        for word in ["target", "machine", "memory", "runtime", "descriptor", "contracts", "code", "modules"]:
            self.assertRegex(text, rf"(?m)^{word} ")
        info = json.loads(self.assert_run(ANSWERED, "info", "--json", CORE, lines=0).stdout)
        self.assertEqual((info["kind"], info["elf_machine"], info["pointer_size"]), ("core", "x86-64", 8))
        self.assertIn(("ExecutionManager", "2", True),
                      [(one["name"], one["version"], one["supported"]) for one in info["contracts"]])
        self.assertTrue(info["modules"])
        self.assertTrue(info["code_ranges"])

    def test_info_of_what_is_missing(self):
        """The files have other names here, so that none is found: each is asked for."""
        with tempfile.TemporaryDirectory() as folder:
            moved = os.path.join(folder, "core")
            pathlib.Path(moved).write_bytes(CORE.read_bytes().replace(b"/usr/share/dotnet/", b"/usr/gone/dotnet_/"))
            info = json.loads(self.assert_run(ANSWERED, "info", "--json", moved).stdout)
            text = self.assert_run(ANSWERED, "info", moved).stdout.decode()
        self.assertRegex(text, r"(?m)^next        give a folder with the same build of the runtime ")
        self.assertIn("files", [step["need"] for step in info["next_steps"]])
        self.assertIsNone(info["problem"])
        self.assertEqual([one["in_use"] for one in info["runtimes"]], [True])
        self.assertEqual(info["runtimes"][0]["path"], info["runtime_path"])
        self.assertEqual(info["runtimes"][0]["build_id"], info["runtime_build_id"])
        files = {step["path"]: step for step in info["next_steps"] if step["need"] == "file"}
        self.assertGreater(len(files), 5)
        self.assertIn(info["runtime_path"], files)
        self.assertTrue(any(step["symbol_key"] and not step["build_id"] for step in files.values()))  # a PE image
        self.assertEqual(files[info["runtime_path"]]["build_id"], info["runtime_build_id"])
        for module in info["modules"]:
            self.assertEqual(module["path"] in files, module["problem"] is not None)
            self.assertEqual(module["build_id"] is None, "elf-buildid" not in (module["symbol_key"] or ""))
        for path, step in files.items():
            self.assertIn(path, step["text"])
            self.assertIn(path, text)
            self.assertEqual(step["options"][:2], ["--sysroot", "--module-path"])
            self.assertEqual("--debuginfod" in step["options"], step["build_id"] is not None)
            self.assertEqual("--symbol-server" in step["options"], step["symbol_key"] is not None)
            if "was not found" in step["text"]:
                given = [*step["options"][:-1], f"{step['options'][-2]} or {step['options'][-1]}"]
                del given[-2]
                self.assertTrue(step["text"].endswith(": give " + ", ".join(given)), step["text"])
            if step["symbol_key"]:
                self.assertIn(step["symbol_key"], step["text"])

    def test_methods(self):
        methods = [json.loads(line) for line in self.assert_run(ANSWERED, "methods", "--json", CORE).stdout.splitlines()]
        starts = [int(method["code_start"], 16) for method in methods]
        self.assertEqual(starts, sorted(starts))
        lines = self.assert_run(ANSWERED, "methods", CORE).stdout.decode().splitlines()
        self.assertEqual(len(lines), len(methods))
        for method, line in zip(methods, lines):
            self.assertTrue(line.startswith(f"{method['code_start']} +{method['code_size']:#x} {method['method'] or '?'} ["))
        stubs = self.assert_run(ANSWERED, "methods", "--stubs", CORE).stdout.decode().splitlines()
        self.assertTrue(set(lines) < set(stubs))
        self.assertTrue(all(" - [stub " in line for line in set(stubs) - set(lines)))

    def test_perfmap(self):
        """The lines are what `methods` says, in the runtime's form."""
        def check(style, options=(), kinds=("jit",), more=()):
            listing = self.assert_run(ANSWERED, "methods", "--json", CORE, "--names", style, *more, lines=0).stdout
            methods = [one for one in map(json.loads, listing.splitlines()) if one["kind"] in kinds]
            named = [one for one in methods if one["method"]]
            self.assertGreater(len(named), 3)
            missing = len(methods) - len(named)  # what a name needs beyond --names csharp the core does not hold for all
            done = self.assert_run(PARTLY if missing else ANSWERED, "perfmap", CORE, *options, *more, lines=missing)
            self.assertEqual(done.stdout.decode().splitlines(),
                             [f"{one['code_start']} {one['code_size']:x} {one['method']}{'[PreJIT]' if one['kind'] == 'r2r' else ''}"
                              for one in named])
            return len(named)

        jit = check("il")
        self.assertEqual(check("il", ["--names", "il"]), jit)
        self.assertGreaterEqual(check("csharp", ["--names", "csharp"]), jit)
        prepared = check("il", ["--r2r", "prepared"], ["jit", "r2r"])
        everything = check("csharp", ["--names=csharp"], ["jit", "r2r"], ["--r2r=all"])
        self.assertTrue(jit < prepared < everything)
        plain = self.assert_run(ANSWERED, "perfmap", CORE, "--names=csharp").stdout.splitlines()
        stubs = self.assert_run(ANSWERED, "perfmap", CORE, "--names=csharp", "--stubs").stdout.splitlines()
        self.assertEqual([line for line in stubs if b" stub <" not in line], plain)
        self.assertGreater(len(stubs), len(plain))
        for line in set(stubs) - set(plain):
            self.assertRegex(line, rb"^0x[0-9a-f]+ [0-9a-f]+ stub <\w+>$")

    def test_jitdump_of_a_core_without_code(self):
        """A snapshot has little code: what lacks a byte is left out, with few messages; the rest is there."""
        options = ["--names=csharp", "--r2r=prepared"]
        with tempfile.TemporaryDirectory() as folder:
            path, core = os.path.join(folder, "dump"), os.path.join(folder, "core")
            pathlib.Path(core).write_bytes(CORE.read_bytes().replace(b"/usr/share/dotnet/", b"/usr/gone/dotnet_/"))
            done = self.assert_run(PARTLY, "jitdump", core, *options, lines=21)
            self.assert_run(PARTLY, "jitdump", core, *options, "-o", path, lines=21)
            self.assertEqual(pathlib.Path(path).read_bytes(), done.stdout)
            printed = self.assert_run(ANSWERED, "records", "--json", path, lines=0).stdout.splitlines()
            lines = self.assert_run(ANSWERED, "perfmap", core, *options).stdout.decode().splitlines()
        self.assertIn(b": left out: code: no memory at 0x", done.stderr)
        header, *records, close = map(json.loads, printed)
        loads = [record for record in records if record["type"] == "load"]
        self.assertTrue({"load", "unwinding_info"} <= {record["type"] for record in records})
        self.assertEqual((header["type"], header["elf_mach"], close["type"]), ("header", 62, "close"))
        self.assertTrue(0 < len(loads) < len(lines))
        self.assertIn(b"%d more" % (len(lines) - len(loads) - 20), done.stderr.splitlines()[-1])
        for load in loads:
            self.assertIn(f"{load['code_addr']} {load['code_size']:x} {load['name']}", lines)

    @staticmethod
    def core_alone():
        """A core whose files are not on this machine."""
        return CORE.read_bytes().replace(b"/usr/share/dotnet/", b"/usr/gone/dotnet_/")

    def test_elf(self):
        """Every method has a symbol at its start; the file replaces another one, and --code adds the bytes."""
        with tempfile.TemporaryDirectory() as folder:
            core, path = os.path.join(folder, "core"), os.path.join(folder, "code.elf")
            pathlib.Path(core).write_bytes(self.core_alone())
            pathlib.Path(path).write_bytes(b"old")
            done = self.assert_run(PARTLY, "elf", core, "-o", path, lines=None)
            elf = pathlib.Path(path).read_bytes()
            self.assertEqual(sorted(os.listdir(folder)), ["code.elf", "core"])
            self.assert_run(PARTLY, "elf", core, "-o", path, "--code", lines=None)
            self.assertGreater(os.path.getsize(path), len(elf))
            listed = self.assert_run(ANSWERED, "methods", "--json", core).stdout.splitlines()
            self.assertEqual(self.assert_run(PARTLY, "elf", core, lines=None).stdout, elf)
        self.assertTrue(elf.startswith(b"\x7fELF"))
        self.assertIn(b".debug_frame\0", elf)
        names = {json.loads(line)["method"] for line in listed}
        for name in names - {None}:
            self.assertIn(name.encode() + b"\0", elf)
        self.assertGreater(len(names), 100)
        self.assertNotIn(b"usage", done.stderr)

    @needs_images
    def test_elf_that_is_cut(self):
        """At the bound on work, the code that was found until then is written as it is, not as zeros."""
        def code(path):
            """The bytes of the functions, by address."""
            elf = pathlib.Path(path).read_bytes()
            sections, = struct.unpack_from("<Q", elf, 40)
            count, = struct.unpack_from("<H", elf, 60)
            headers = [struct.unpack_from("<IIQQQQIIQQ", elf, sections + i * 64) for i in range(count)]
            found = {}
            _, _, _, _, offset, size, *_ = next(h for h in headers if h[1] == 2)  # SHT_SYMTAB
            for at in range(offset + 24, offset + size, 24):
                _, _, _, section, address, length = struct.unpack_from("<IBBHQQ", elf, at)
                begin = headers[section][4] + address - headers[section][3]
                found[address] = elf[begin:begin + length]
            return found

        with tempfile.TemporaryDirectory() as folder:
            whole, cut = os.path.join(folder, "whole"), os.path.join(folder, "cut")
            core = FIXTURES / "hello-net10-x64" / "core"
            self.assert_run(PARTLY, "elf", "--code", core, "-o", whole, lines=None)
            done = self.assert_run(PARTLY, "elf", "--code", core, "-o", cut, "--work-max=600K", lines=None)
            self.assertIn(b"stopped at the bound on work", done.stderr)
            whole, cut = code(whole), code(cut)
            self.assertLess(len(cut), len(whole))
            self.assertGreater(len([bytes for bytes in cut.values() if any(bytes)]), len(cut) / 2)
            for address, bytes in cut.items():
                self.assertTrue(whole[address].startswith(bytes) or bytes.startswith(whole[address]), hex(address))

    def test_symfs(self):
        """Files by the paths of the target, never outside of the folder, even where a link leads there."""
        with tempfile.TemporaryDirectory() as work:
            core, folder, outside = (os.path.join(work, name) for name in ("core", "names", "outside"))
            pathlib.Path(core).write_bytes(self.core_alone())
            os.makedirs(outside)
            done = self.assert_run(PARTLY, "symfs", core, folder, "--r2r=prepared", lines=5)
            # Of the libraries of the system, this one may have some.
            self.assertRegex(done.stderr, rb"files that may have code and were not found, so that it has no names: [1-9]; the first: '/usr/gone/")
            self.assertRegex(done.stderr, rb"functions without call-frame information, because their unwind data cannot be read: \d+")
            self.assertRegex(done.stderr, rb"functions without call-frame information in epilogs, because their code is missing or too long: \d+")
            self.assertIn(b"cdacq perfmap", done.stderr)  # it ran with DOTNET_EnableWriteXorExecute=0
            files = [os.path.join(where, name) for where, _, found in os.walk(folder) for name in found]
            elves = [path for path in files if not os.path.islink(path) and not path.endswith("/.cdacq-symfs")]
            self.assertGreater(len(elves), 1)
            for path in elves:
                self.assertTrue(pathlib.Path(path).read_bytes().startswith(b"\x7fELF"), path)
            library, = [path for path in elves if path.endswith("/System.Private.CoreLib.dll")]
            first = pathlib.Path(library).read_bytes()
            link = next(path for path in files if os.path.islink(path))
            os.remove(link)
            pathlib.Path(link).write_bytes(b"another")
            done = self.assert_run(PARTLY, "symfs", core, folder, "--r2r=prepared", lines=None)  # again, over what is there
            self.assertEqual(pathlib.Path(library).read_bytes(), first)
            self.assertIn(b"File exists", done.stderr)
            self.assertEqual(pathlib.Path(link).read_bytes(), b"another")
            done = run("symfs", str(FIXTURES / "net9-x64" / "core"), folder)
            self.assertEqual((done.returncode, done.stderr), (FAILED, b"cdacq: '%s': it has the files of another process; name "
                                                              b"another folder, or remove this one\n" % os.fsencode(folder)))
            self.assertEqual(pathlib.Path(library).read_bytes(), first)
            other = os.path.join(work, "other")
            os.makedirs(other)
            os.symlink(outside, os.path.join(other, "usr"))
            self.assert_run(FAILED, "symfs", core, other, "--r2r=prepared", lines=None)
            self.assertEqual(os.listdir(outside), [])
            root = os.path.join(work, "root")
            os.symlink("/", root)
            done = self.assert_run(FAILED, "symfs", core, root, "--r2r=prepared", lines=None)
            self.assertIn(b"is the root directory", done.stderr)

    def test_symfs_says_what_it_leaves_out(self):
        """The same as `elf` of all code, each thing once."""
        with tempfile.TemporaryDirectory() as work:
            core, folder, path = (os.path.join(work, name) for name in ("core", "names", "code.elf"))
            crash = (FIXTURES / "crash-net10-x64" / "core").read_bytes()
            pathlib.Path(core).write_bytes(crash.replace(b"/usr/share/dotnet/", b"/usr/gone/dotnet_/"))
            complaints = [self.assert_run(PARTLY, *words, "--r2r=prepared").stderr.decode() for words in (
                ["symfs", core, folder], ["elf", "--stubs", core, "-o", path])]
        found, expected = (text.count(": left out: ") + sum(map(int, re.findall(r"(\d+) more method", text)))
                           for text in complaints)
        self.assertGreater(found, 1)
        self.assertEqual(found, expected)

    def test_bundle(self):
        """Files under their own keys, each once; nothing is written through a link."""
        def bundle(folder, *options):
            done = run("bundle", CORE, folder, *options)
            self.assertIn(done.returncode, (ANSWERED, PARTLY), done.stderr)
            return done.stdout.decode().splitlines()

        with tempfile.TemporaryDirectory() as work:
            folder = os.path.join(work, "files")
            first = bundle(folder)
            copied = [line.split()[1] for line in first if line.startswith("copied ")]
            self.assertTrue(any(key.startswith("libc.so.6/elf-buildid-") for key in copied), first)  # of this machine
            found = [os.path.relpath(os.path.join(where, name), folder)
                     for where, _, names in os.walk(folder) for name in names]
            self.assertEqual(sorted(found), sorted(copied))
            again = [json.loads(line) for line in bundle(folder, "--json")]
            self.assertEqual(sorted(row["key"] for row in again if row["result"] == "present"), sorted(copied))
            self.assertNotIn("copied", {row["result"] for row in again})
            other, outside = os.path.join(work, "other"), os.path.join(work, "outside")
            os.makedirs(other)
            os.makedirs(outside)
            os.symlink(outside, os.path.join(other, "libc.so.6"))
            listing = pathlib.Path(work, "listing")
            listing.write_bytes(b"before")
            done = run("bundle", CORE, other, "-o", listing)
            self.assertEqual(done.returncode, FAILED)
            self.assertIn(b"cannot write", done.stderr)
            self.assertEqual(os.listdir(outside), [])
            self.assertEqual(listing.read_bytes(), b"before")

    def test_bundle_of_much(self):
        """A target may name a file of any size, which may be sparse: together, the copies have a bound."""
        with tempfile.TemporaryDirectory() as work:
            whole, part = os.path.join(work, "whole"), os.path.join(work, "part")
            rows = [json.loads(line) for line in run("bundle", CORE, whole, "--json").stdout.splitlines()]
            sizes = {row["key"]: os.path.getsize(os.path.join(whole, row["key"])) for row in rows if row["result"] == "copied"}
            room = max(sizes.values()) - 1
            done = self.assert_run(PARTLY, "bundle", CORE, part, "--json", "--store-max", str(room))
            rows = [json.loads(line) for line in done.stdout.splitlines()]
            copied = [row["key"] for row in rows if row["result"] == "copied"]
            refused = [row["key"] for row in rows if row["problem"] and "--store-max" in row["problem"]]
            self.assertEqual(sorted(copied + refused), sorted(sizes))
            self.assertLessEqual(sum(map(sizes.get, copied)), room)
            self.assertTrue(refused)

    def test_folders_that_cannot_be_written(self):
        """What holds for all files is said once, and nothing is left under the name of a file."""
        unshare = ["unshare", "--user", "--map-root-user", "--mount", "--"]
        for options, why in (("size=64k", b"No space left on device"), ("ro", b"Read-only file system")):
            for command in ("bundle", "symfs"):
                with tempfile.TemporaryDirectory() as work:
                    script = ('mount -t tmpfs tmpfs "$3" && mkdir "$3/files" && mount -o "remount,$4" "$3" || exit 77; '
                              '"$0" "$1" "$2" "$3/files" > /dev/null; status=$?; find "$3" -name "*part*"; exit $status')
                    done = subprocess.run([*unshare, "sh", "-c", script, TOOL, command, CORE, work, options],
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
                    if done.returncode in (1, 77) and b"cdacq" not in done.stderr:
                        self.skipTest("no tmpfs can be mounted")
                    what = (command, options, done.returncode, done.stderr)
                    self.assertEqual((done.returncode, done.stdout), (FAILED, b""), what)
                    self.assertEqual(done.stderr.count(b"cannot write"), 1, what)
                    self.assertIn(why, done.stderr, what)

    def test_bundle_of_little(self):
        """What a core needs is not all known if it is cut off, or no .NET code is found in it: that is no success."""
        with tempfile.TemporaryDirectory() as work:
            cut, folder = pathlib.Path(work, "cut"), os.path.join(work, "files")
            data = CORE.read_bytes()
            cut.write_bytes(data[:len(data) * 2 // 3])
            done = self.assert_run(PARTLY, "bundle", cut, folder)
            self.assertIn(b"ends before its last segment", done.stderr)
            self.assertTrue(os.listdir(folder))
            cut.write_bytes(data[:4000])
            none = os.path.join(work, "none")
            for target, why in ((cut, b"the core is cut off"), (TOOL, b"only 'info' and 'descriptor' can read it"),
                                (str(os.getpid()), b"process %d" % os.getpid())):
                done = self.assert_run(FAILED, "bundle", target, none)
                self.assertIn(why, done.stderr)
                self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
                self.assertFalse(os.path.exists(none), target)

    def test_cut_off(self):
        """The first reason that is told is that the core is cut off, however it is given."""
        with tempfile.TemporaryDirectory() as work:
            cut = pathlib.Path(work, "cut")
            cut.write_bytes(CORE.read_bytes()[:4000])
            for done in (self.assert_run(FAILED, "report", cut), self.assert_run(FAILED, "report", "-", stdin=cut.read_bytes())):
                self.assertIn(b"the core is cut off (", done.stderr.splitlines()[0])
                self.assertNotIn(b"--descriptor-address", done.stderr)

    def test_no_half_files(self):
        """A file that does not fit its disk does not appear, and what was there before stays, with its mode."""
        for command in (["perfmap", "--names=csharp", "--r2r=all"], ["snapshot"], ["methods", "--r2r=all"]):
            for before in (None, b"before"):
                with self.subTest(command=command, before=before), tempfile.TemporaryDirectory() as folder:
                    path = os.path.join(folder, "map")
                    if before:
                        pathlib.Path(path).write_bytes(before)
                        os.chmod(path, 0o640)
                    done = self.assert_run(FAILED, *command, CORE, "-o", path, lines=1,
                                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000)))
                    self.assertIn(path.encode(), done.stderr)
                    self.assertEqual(os.listdir(folder), ["map"] if before else [])
                    if before:
                        self.assertEqual(pathlib.Path(path).read_bytes(), before)
                        self.assertEqual(os.stat(path).st_mode & 0o777, 0o640)

    def test_a_failure_leaves_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "file")
            path.write_bytes(b"before")
            for command in (["stack", "--json", CORE], ["stack", CORE], ["filter", "--folded"]):  # no threads; no samples
                self.assert_run(FAILED, *command, "-o", path, stdin=b"no output of perf\n", lines=1)
                self.assertEqual(path.read_bytes(), b"before", command)
            self.assertEqual(os.listdir(folder), ["file"])

    def test_files_are_replaced(self):
        """A file keeps its mode, a snapshot is for its owner only; a link to a file stays, and a pipe is written to."""
        with tempfile.TemporaryDirectory() as folder:
            path, link = os.path.join(folder, "file"), os.path.join(folder, "link")
            pathlib.Path(path).write_bytes(b"before")
            os.chmod(path, 0o664)
            os.symlink(path, link)
            self.assert_run(ANSWERED, "methods", CORE, "-o", link, lines=0)
            self.assertTrue(os.path.islink(link))
            self.assertGreater(os.path.getsize(path), 100)
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o664)
            self.assert_run(ANSWERED, "snapshot", CORE, "-o", link)
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            self.assertEqual(sorted(os.listdir(folder)), ["file", "link"])
            self.assert_run(ANSWERED, "methods", CORE, "-o", "/dev/null", lines=0)
            missing = os.path.join(folder, "none", "file")
            self.assert_run(FAILED, "methods", CORE, "-o", missing, lines=1)
            os.chmod(path, 0o644)

    def test_descriptor(self):
        pretty = json.loads(self.assert_run(ANSWERED, "descriptor", CORE, lines=0).stdout)
        compact = self.assert_run(ANSWERED, "descriptor", "--json", CORE, lines=0).stdout
        self.assertEqual(compact.count(b"\n"), 1)
        self.assertEqual(json.loads(compact), pretty)
        self.assertEqual(list(pretty), ["version", "types", "globals", "contracts"])
        self.assertEqual(list(pretty["contracts"]["ExecutionManager"]), ["version", "origin", "overrides"])
        self.assertEqual(list(pretty["types"]["RangeSectionFragment"]["Next"]), ["offset", "type", "origin", "overrides"])

    def test_descriptor_differences(self):
        self.assertEqual(self.assert_run(ANSWERED, "descriptor", CORE, CORE, lines=0).stdout, b"")
        with tempfile.TemporaryDirectory() as folder:
            other = os.path.join(folder, "core")
            data = CORE.read_bytes()
            changed = data.replace(b'"StressLog":2', b'"StressLog":3').replace(b'"ReJIT":', b'"ReXXX":')
            pathlib.Path(other).write_bytes(changed)
            lines = self.assert_run(PARTLY, "descriptor", CORE, other, lines=0).stdout.decode().splitlines()
            self.assertEqual(lines, ["- contract ReJIT: 1", "+ contract ReXXX: 1", "~ contract StressLog: 2 -> 3"])
            lines = self.assert_run(PARTLY, "descriptor", "--json", CORE, other, lines=0).stdout.splitlines()
            self.assertEqual([(one["difference"], one["kind"], one["name"]) for one in map(json.loads, lines)],
                             [("removed", "contract", "ReJIT"), ("added", "contract", "ReXXX"),
                              ("changed", "contract", "StressLog")])

    def test_descriptor_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "more.json")
            pathlib.Path(path).write_text('{"version":0,"types":{"Extra":{"!":8,"Ptr":[0,"pointer"]}},"globals":{},'
                                          '"contracts":{"StressLog":9}}')
            merged = json.loads(self.assert_run(ANSWERED, "descriptor", CORE, "--descriptor", path).stdout)
            self.assertEqual(merged["types"]["Extra"]["!"]["size"], 8)
            self.assertEqual(merged["types"]["Extra"]["Ptr"]["type"], "pointer")
            self.assertEqual(merged["contracts"]["StressLog"]["version"], "9")
            self.assertEqual(merged["contracts"]["StressLog"]["origin"], path)
            self.assertTrue(merged["contracts"]["StressLog"]["overrides"])
            self.assert_run(FAILED, "descriptor", CORE, "--descriptor", "/nowhere/file", lines=1)

    def test_snapshot(self):
        methods = self.assert_run(ANSWERED, "methods", "--stubs", CORE).stdout
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "snapshot")
            done = self.assert_run(ANSWERED, "snapshot", CORE, "-o", path, lines=0)
            self.assertIn(path.encode(), done.stdout)
            self.assertEqual(self.assert_run(ANSWERED, "methods", "--stubs", path).stdout, methods)

            ip = methods.split(b" ")[0].decode()
            done = self.assert_run(PARTLY, "snapshot", CORE, "--json", "-o", path, ip, "zap", lines=1)
            report = json.loads(done.stdout)
            self.assertEqual((report["file"], report["ips"], report["errors"]), (path, 1, 1))
            self.assertEqual(report["size"], os.path.getsize(path))
            self.assertEqual(self.assert_run(ANSWERED, "ip2method", path, ip).stdout,
                             self.assert_run(ANSWERED, "ip2method", CORE, ip).stdout)
            self.assert_run(FAILED, "snapshot", CORE, "-o", folder, ip, lines=1)

    def test_snapshot_of_a_snapshot(self):
        """It has all that the first one has, also the PDBs."""
        with tempfile.TemporaryDirectory() as folder:
            first, second = os.path.join(folder, "1", "core"), os.path.join(folder, "2", "core")
            os.mkdir(os.path.dirname(first)), os.mkdir(os.path.dirname(second))
            shutil.copy(FIXTURES / "crash-net10-x64" / "core", first)
            self.assert_run(ANSWERED, "snapshot", "--stacks", "--arguments", first, "-o", second, "1000", lines=0)
            reports = [json.loads(run("report", "--json", path).stdout.replace(path.encode(), b"core"))
                       for path in (first, second)]
            for report in reports:
                del report["time"]
            self.assertEqual(*reports)
            self.assertTrue('"line": 278' in json.dumps(reports[1]))


@unittest.skipUnless(CORE.exists(), f"{CORE} is not there")
class Inspect(Case):
    """Everything that the contract says about an IP: values agree with `methods`, and each missing one has a reason."""

    @classmethod
    def setUpClass(cls):
        cls.methods = [json.loads(line) for line in run("methods", "--json", CORE).stdout.splitlines()]
        cls.listing = run("methods", "--stubs", "--json", CORE).stdout.splitlines()
        cls.jit = next(method for method in cls.methods if method["kind"] == "jit")
        cls.stub = next(one for one in map(json.loads, cls.listing) if one["status"] == "stub")

    def ask(self, core, *ips, arguments=(), lines=0, **options):
        """The answers; checks what holds for any of them, and the exit code by them."""
        done = run("inspect", "--json", core, *arguments, "--", *ips, **options)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        partly = any(answer["errors"] or answer["status"] == "error" for answer in answers)
        self.assertEqual((done.returncode, done.stderr.count(b"\n")), (PARTLY if partly else ANSWERED, lines), done.stderr)
        for answer in answers:
            self.assertEqual(list(answer), INSPECT_KEYS)
            self.assertEqual(answer["status"] == "error", answer["error"] is not None and answer["kind"] is None, answer)
            for key, reason in answer["errors"].items():
                self.assertTrue(reason)
                self.assertIsNone(answer[key], key)
            for clause in answer["exception_clauses"] or []:
                self.assertEqual(list(clause), CLAUSE_KEYS)
            for variable in answer["variables"] or []:
                keys = ["name", "kind", "number", "type", "location", "problem"]
                self.assertEqual(list(variable), keys if "problem" in variable else keys[:-1])
                self.assertIn(variable["kind"], ("argument", "local"))
                self.assertFalse(variable["location"] and "problem" in variable)
        return answers

    def test_variables(self):
        """Each is in its place in the body of a method, and in none that is known at its start."""
        core = FIXTURES / "crash-net10-x64" / "core"
        frames = [json.loads(line) for line in run("stack", "--json", "--variables", core).stdout.splitlines()]
        frame = next(one for one in frames if (one.get("method") or "").startswith("Dying.Program.Main("))
        at, start = self.ask(core, f"{int(frame['ip'], 16) - 1:x}", frame["code_start"])
        self.assertEqual([(one["name"], one["number"], one["type"]) for one in at["variables"]],
                         [(one["name"], one["number"], one["type"]) for one in frame["variables"]])
        self.assertEqual(at["variables"][0], {"name": "arguments", "kind": "argument", "number": 0, "type": "System.String[]",
                                              "location": "rbp-0x30"})
        self.assertEqual({one["problem"] for one in start["variables"]},
                         {"the debug info does not say it for a prolog or an epilog"})
        lines = run("inspect", core, at["ip"], frame["code_start"]).stdout.decode()
        self.assertIn("  variable           argument arguments: System.String[] at rbp-0x30\n", lines)
        self.assertIn("  variable           argument arguments: System.String[] ? the debug info does not say it for a prolog or "
                      "an epilog\n", lines)

    def test_all_methods(self):
        ips = [method["code_start"] for method in self.methods]
        answers = self.ask(CORE, stdin="\n".join(ips).encode())
        self.assertEqual([answer["ip"] for answer in answers], ips)
        kinds, clauses = {"jit": 1, "r2r": 2}, 0
        for method, answer in zip(self.methods, answers, strict=True):
            for key in ("status", "kind", "method", "method_desc", "module", "code_start", "funclet_start"):
                self.assertEqual(answer[key], method[key], key)
            self.assertEqual(answer["offset"], 0)
            self.assertEqual(answer["jit_type"], kinds[answer["kind"]])
            if "hot_size" not in answer["errors"]:
                self.assertEqual((answer["hot_size"], answer["cold_start"], answer["cold_size"]),
                                 (method["code_size"], method["cold_start"], method["cold_size"] or None))
            if "is_funclet" not in answer["errors"]:
                self.assertIs(answer["is_funclet"], False)
                self.assertIs(answer["is_filter_funclet"], False)
            self.assertEqual(answer["entry_method_desc"], method["method_desc"])
            self.assertLess(int(answer["unwind_info_base"], 16), int(answer["code_start"], 16))
            if answer["gc_info"]:
                self.assertEqual(answer["gc_version"], 4)
            if answer["debug_info"]:
                self.assertEqual(answer["has_flag_byte"], answer["kind"] == "jit")
            clauses += len(answer["exception_clauses"] or [])
            for clause in answer["exception_clauses"] or []:
                self.assertIn(clause["kind"], ["typed", "filter", "finally", "fault"])
                self.assertLess(clause["try_start"], clause["try_end"])
                self.assertLess(clause["handler_start"], clause["handler_end"])
                self.assertEqual(clause["class_token"] is not None or clause["type_handle"] is not None,
                                 clause["kind"] == "typed")
                self.assertEqual(clause["filter_offset"] is not None, clause["kind"] == "filter")
        self.assertGreater(clauses, 10)

    def test_handlers_are_funclets(self):
        """A funclet of the method begins where a clause says that its handler begins."""
        with_clauses = [(answer, clause) for answer in self.ask(CORE, *[one["code_start"] for one in self.methods])
                        for clause in answer["exception_clauses"] or []]
        handlers = [int(answer["code_start"], 16) + clause["handler_start"] for answer, clause in with_clauses]
        for (method, _), handler in zip(with_clauses, self.ask(CORE, *[f"{ip:x}" for ip in handlers]), strict=True):
            self.assertEqual((handler["status"], handler["code_start"], handler["method_desc"]),
                             ("managed", method["code_start"], method["method_desc"]))
            self.assertIs(handler["is_funclet"], True)
            self.assertEqual(handler["funclet_start"], handler["ip"])
            self.assertNotEqual(handler["unwind_info"], method["unwind_info"])

    def test_what_is_no_method(self):
        bad = ["zap", "", "12345678901234567", "\u202e"]
        none, stub, *wrong = self.ask(CORE, "1", self.stub["code_start"], *bad, lines=len(bad))
        for answer, status, kind in [(none, "none", None), (stub, "stub", self.stub["kind"])]:
            self.assertEqual((answer["status"], answer["kind"]), (status, kind))
            self.assertEqual(set(answer["errors"]) - {"entry_method_desc"}, set())  # whether it is a precode's
        known = {"ip", "status", "kind", "code_start", "offset", "entry_method_desc", "errors"}
        for answer in (none, stub):
            self.assertEqual({key for key, value in answer.items() if value is not None} - known, set())
        self.assertEqual([answer["ip"] for answer in wrong], ["zap", "", "12345678901234567", "\\u{202e}"])
        for answer in wrong:
            self.assertEqual({key for key, value in answer.items() if value is not None},
                             {"ip", "status", "error", "errors"})
            self.assertEqual(answer["errors"], {})

    def test_one_question_that_cannot_be_answered(self):
        """The others are. Here a descriptor puts a field where no memory is."""
        ip = self.jit["code_start"]
        whole = self.ask(CORE, ip)[0]
        for field, keys in [("DebugInfo", ["debug_info"]), ("EHInfo", ["exception_clauses"])]:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "wrong.json")
                pathlib.Path(path).write_text('{"version":0,"types":{"RealCodeHeader":{"%s":[1073741824,"pointer"]}},'
                                              '"globals":{},"contracts":{}}' % field)
                part = self.ask(CORE, ip, arguments=["--descriptor", path])[0]
                text = self.assert_run(PARTLY, "inspect", CORE, ip, "--descriptor", path, lines=0).stdout.decode()
            if field == "DebugInfo":
                self.assertIn("the IL offset is not known, so the line is not known: RealCodeHeader.DebugInfo: no memory at",
                              part["source_problem"])
            for key in keys:
                self.assertIn(f"RealCodeHeader.{field}: no memory at", part["errors"][key])
                self.assertRegex(text, rf"(?m)^  {key} +\? RealCodeHeader\.{field}: no memory at 0x[0-9a-f]+$")
            left_out = {"errors", "has_flag_byte", "il_offset", "source_problem", "variables", "variables_problem", *keys}
            self.assertEqual({key: value for key, value in part.items() if key not in left_out},
                             {key: value for key, value in whole.items() if key not in left_out})
            self.assertEqual({key for key in part["errors"] if key not in keys},
                             {key for key in whole["errors"] if key not in keys})

    def test_debug_info_that_was_not_dumped(self):
        """As in a small core: the answer says which memory is missing."""
        core = bytearray((FIXTURES / "net10-x64" / "core").read_bytes())
        ips = (FIXTURES / "net10-x64" / "first-light.ips").read_text(encoding="ascii").split()
        answers = [json.loads(line) for line in run("inspect", "--json", FIXTURES / "net10-x64" / "core", *ips).stdout.splitlines()]
        for one in answers:  # which lack the memory of types
            self.assertRegex(one["variables_problem"], "^variables of a method: no memory at 0x[0-9a-f]+$")
        answer = next(one for one in answers if one["kind"] == "jit" and one["il_offset"] is not None)
        place = int(answer["debug_info"], 16)
        headers, count = struct.unpack_from("<Q", core, 32)[0], struct.unpack_from("<H", core, 56)[0]
        for at in range(headers, headers + 56 * count, 56):
            begin, size = struct.unpack_from("<Q", core, at + 16)[0], struct.unpack_from("<Q", core, at + 32)[0]
            if begin <= place < begin + size:
                struct.pack_into("<Q", core, at + 32, place - begin)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "core")
            path.write_bytes(core)
            lost = self.ask(path, answer["ip"])[0]
        self.assertEqual((lost["method"], lost["il_offset"]), (answer["method"], None))
        self.assertEqual(lost["source_problem"], "the IL offset is not known, so the line is not known: "
                         f"debug info: no memory at {answer['debug_info']}")

    def test_a_method_without_a_name(self):
        ip = self.jit["code_start"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "wrong.json")
            pathlib.Path(path).write_text('{"version":0,"types":{"MethodDescChunk":{"MethodTable":[1073741824,"pointer"]}},'
                                          '"globals":{},"contracts":{}}')
            answer = self.ask(CORE, ip, arguments=["--descriptor", path])[0]
            lines = run("inspect", CORE, ip, "--descriptor", path).stdout.decode().splitlines()
        self.assertIsNone(answer["method"])
        self.assertIn("MethodDescChunk.MethodTable: no memory at", answer["error"])
        self.assertEqual(lines[0], f"{ip} ? +0x0 [jit]")
        self.assertIn(["method", "? " + answer["error"]], [line.split(maxsplit=1) for line in lines])

    def test_a_name_with_formal_parameters_for_what_is_missing(self):
        """Text marks it, JSON says why."""
        wrong = ('{"version":0,"types":{"GenericsDictInfo":{"NumTypeArgs":[1073741824,"uint16"]}},"globals":{},'
                 '"contracts":{}}')
        core = FIXTURES / "net10-x64" / "core"
        listing = run("methods", "--json", core, "Demo.Derived<long>..ctor*")
        ip = json.loads(listing.stdout)["code_start"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "wrong.json")
            pathlib.Path(path).write_text(wrong, encoding="ascii")
            answer = self.ask(core, ip, arguments=["--descriptor", path])[0]
            line = run("ip2method", core, ip, "--descriptor", path).stdout.decode()
            lines = run("inspect", core, ip, "--descriptor", path).stdout.decode().splitlines()
            noted = run("filter", core, "--descriptor", path, stdin=f"at {ip}".encode()).stdout.decode()
            pasted = run("ip2method", core, "Demo.Derived<T>..ctor()? +0x1", "--descriptor", path).stdout.decode()
        self.assertEqual((answer["status"], answer["method"]), ("managed", "Demo.Derived<T>..ctor()"))
        self.assertIn("type arguments are not known: GenericsDictInfo.NumTypeArgs: no memory at", answer["error"])
        self.assertTrue(line.startswith(f"{ip} Demo.Derived<T>..ctor()? +0x0 [jit]"), line)
        self.assertEqual(lines[0], f"{ip} Demo.Derived<T>..ctor()? +0x0 [jit]")
        self.assertIn(["method", "? " + answer["error"]], [line.split(maxsplit=1) for line in lines])
        self.assertEqual(noted, f"at {ip} <Demo.Derived<T>..ctor()?+0x0>")
        self.assertTrue(pasted.startswith(f"{int(ip, 16) + 1:#x} "), pasted)

    @needs_images
    def test_a_method_without_parameters_is_not_in_doubt(self):
        """Nothing is known of its type's arguments, but it has none."""
        wrong = '{"version":0,"types":{"MethodTable":{"MTFlags":[1073741824,"uint32"]}},"globals":{},"contracts":{}}'
        core = FIXTURES / "net10-x64" / "core"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "wrong.json")
            pathlib.Path(path).write_text(wrong, encoding="ascii")
            names, known = ({method["method"]: method["error"] for method in map(json.loads, listing.splitlines())
                             if method["kind"] == "jit"}
                            for listing in (run("methods", "--json", *options, core).stdout
                                            for options in (("--descriptor", path), ())))
        self.assertIsNone(names["Demo.Tiering.OnStack(int)"])
        self.assertIn("type arguments are not known", names["Demo.Derived<T>..ctor()"])
        self.assertEqual([name for name, error in names.items()
                          if name and error and not known.get(name) and "<" not in name], [])

    def test_backslashes_of_a_module_path(self):
        """Every command shows them escaped once."""
        plain, odd = b"/System.Private.CoreLib.dll", b"\\System.Private.CoreLib.dll"
        data = CORE.read_bytes()
        self.assertIn(plain, data)
        methods = [json.loads(line) for line in run("methods", "--json", CORE).stdout.splitlines()]
        one = next(method for method in methods if (method["module"] or "").endswith("System.Private.CoreLib.dll"))
        wanted = one["module"].replace("/System.Private", "\\\\System.Private")
        with tempfile.TemporaryDirectory() as folder:
            core = pathlib.Path(folder, "core")
            core.write_bytes(data.replace(plain, odd))
            listed = [json.loads(line) for line in run("methods", "--json", core).stdout.splitlines()]
            self.assertIn(wanted, {method["module"] for method in listed if method["code_start"] == one["code_start"]})
            for command in ("ip2method", "inspect"):
                answer = json.loads(run(command, "--json", core, one["code_start"]).stdout)
                self.assertEqual(answer["module"], wanted, command)

    def test_backslashes_of_a_method(self):
        """Every command shows them escaped once."""
        methods = run("methods", "--json", CORE).stdout.splitlines()
        method = next(json.loads(line) for line in methods if b".Twice<" in line)
        wanted = method["method"].replace("Twice", "Tw\\\\ce")
        with tempfile.TemporaryDirectory() as folder:
            core = pathlib.Path(folder, "core")
            core.write_bytes(CORE.read_bytes().replace(b"\0Twice\0", b"\0Tw\\ce\0"))
            for command in ("ip2method", "inspect"):
                self.assertIn(f" {wanted} +0x0 ", run(command, core, method["code_start"]).stdout.decode())
                answer = json.loads(run(command, "--json", core, method["code_start"]).stdout)
                self.assertEqual(answer["method"], wanted, command)

    def test_text(self):
        ips = [self.jit["code_start"], self.stub["code_start"], "1"]
        done = run("inspect", CORE, *ips, "zap")
        self.assertEqual(done.returncode, PARTLY)
        blocks = re.findall(r"(?m)^\S.*\n(?: .*\n)*", done.stdout.decode())
        self.assertEqual("".join(blocks), done.stdout.decode())
        self.assertEqual(len(blocks), 4)
        self.assertTrue(blocks[0].startswith(f"{ips[0]} {self.jit['method']} +0x0 [jit]\n"), blocks[0])
        self.assertEqual(blocks[1].splitlines()[0], f"{ips[1]} - [stub {self.stub['kind']}]")
        self.assertEqual(blocks[2:], ["0x1 - [none]\n", "zap ? [error] not a hexadecimal address\n"])
        answer = self.ask(CORE, ips[0])[0]
        lines = dict(line.split(maxsplit=1) for line in blocks[0].splitlines()[1:])
        for key in ("method_desc", "entry_method_desc", "code_start", "funclet_start", "unwind_info", "unwind_info_base"):
            self.assertEqual(lines[key], answer[key])
        self.assertEqual(lines["hot_size"], str(answer["hot_size"]))
        for key, reason in answer["errors"].items():
            self.assertEqual(lines[key], "? " + reason)

    def test_streams(self):
        ip = self.jit["code_start"]
        asked = run("inspect", CORE, ip).stdout
        self.assertEqual(run("inspect", CORE, stdin=f"{ip[2:]}\r\n".encode()).stdout, asked)
        self.assertEqual(self.assert_run(ANSWERED, "inspect", CORE, lines=0).stdout, b"")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out")
            run("inspect", CORE, ip, "-o", path)
            self.assertEqual(pathlib.Path(path).read_bytes(), asked)
        with open("/dev/full", "wb") as full:
            self.assertIn(b"No space", self.assert_run(FAILED, "inspect", CORE, ip, stdout=full, lines=1).stderr)
        self.assertIn(b" +0x", self.assert_run(run("inspect", CORE, ip).returncode, "inspect", CORE, ip, "--names", "sos",
                                               lines=0).stdout)


VERDICTS = ["match", "freed", "replaced", "stub", "later", "unknown-to-target", "name-differs", "range-differs", "bytes-differ",
            "missing-from-file", "damaged", "not-compared"]
COMPARISON_KEYS = ["class", "offset", "line", "timestamp", "address", "size", "name", "kind", "method", "code_start", "code_size",
                   "detail"]


class Verify(Case):
    """On a bundled snapshot, with a perf map of what the runtime's jitdump said of its methods. It is of some methods
    alone, so that one line says that it lacks what others would take."""

    def setUp(self):
        self.core = FIXTURES / "net10-x64" / "core"
        expected = FIXTURES / "net10-x64" / "expected.txt"
        if not expected.exists():
            self.skipTest("no bundled snapshot")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = pathlib.Path(self.folder.name) / "perf-1.map"
        self.records = [line.split(" ", 3) for line in expected.read_text("utf-8").splitlines() if line[0] != "#"]
        self.jit = next(i for i, record in enumerate(self.records) if record[2] == "jit" and int(record[1]) > 40)

    def write(self, *more):
        lines = [f"0x{address} {int(size):x} {name}\n" for address, size, _, name in self.records]
        self.file.write_text("".join([*more, *lines]), "utf-8")
        return self.file

    def json(self, status, **options):
        done = self.assert_run(status, "verify", "--json", self.core, self.file, **options)
        *differences, totals = map(json.loads, done.stdout.splitlines())
        for one in differences:
            self.assertEqual(list(one), COMPARISON_KEYS)
        self.assertEqual(list(totals)[:len(VERDICTS) + 1], ["class", *VERDICTS])
        return differences, totals

    def test_all_agree(self):
        self.write()
        differences, totals = self.json(ANSWERED, lines=1)
        self.assertEqual(totals["match"], len(self.records))
        self.assertEqual({one["class"] for one in differences}, {"missing-from-file"})
        self.assertEqual(len(differences), totals["missing-from-file"])
        self.assertEqual(sum(totals[name] for name in VERDICTS), len(self.records) + len(differences))
        done = self.assert_run(ANSWERED, "verify", self.core, self.file, lines=1)
        text = done.stdout.decode()
        self.assertRegex(text, rf"(?m)^ +{len(self.records)}  match ")
        self.assertEqual(text.splitlines()[-1], f"perf map, records: {len(self.records)}; no contradiction")
        self.assertLess(len(text.splitlines()), 16)

    def test_contradictions(self):
        self.records[self.jit][1] = str(int(self.records[self.jit][1]) - 1)
        self.write("0x12345600000000 10 Nowhere\\\x1b::M()\n", "0x1 2\n", "not a line\n")
        differences, totals = self.json(PARTLY)
        found = {name: count for name, count in totals.items() if name in VERDICTS[1:] and count}
        self.assertEqual({**found, "missing-from-file": 0},
                         {"unknown-to-target": 2, "range-differs": 1, "missing-from-file": 0, "damaged": 1})
        nowhere, nameless, damaged, changed = differences[:4]
        self.assertEqual((nowhere["class"], nowhere["line"], nowhere["offset"], nowhere["address"], nowhere["size"]),
                         ("unknown-to-target", 1, 0, "0x12345600000000", 16))
        self.assertEqual(nowhere["name"], "Nowhere\\\\\\x1b::M()")
        self.assertEqual((nameless["name"], damaged["class"], damaged["line"], damaged["name"]), ("", "damaged", 3, None))
        address = f"0x{self.records[self.jit][0]}"
        self.assertEqual((changed["class"], changed["address"], changed["code_start"]), ("range-differs", address, address))
        self.assertEqual(changed["code_size"], changed["size"] + 1)
        text = self.assert_run(PARTLY, "verify", self.core, self.file).stdout.decode()
        self.assertTrue(text.startswith("unknown-to-target 0x12345600000000 +0x10 Nowhere\\\\\\x1b::M() [line 1]: "), text[:90])
        self.assertEqual(text.splitlines()[-1], f"perf map, records: {len(self.records) + 3}; contradictions: 3")

    def test_many_contradictions(self):
        self.write(*(f"{i + 1:x} 1 Nowhere\n" for i in range(30)))
        text = self.assert_run(PARTLY, "verify", self.core, self.file).stdout.decode()
        self.assertEqual(text.count("Nowhere"), 20)
        self.assertIn("... and 10 more", text)

    def test_a_perf_map_of_another_process(self):
        """Whatever becomes of its symbols, one line says what it means that none matches."""
        foreign = "".join(f"{start:x} 40 int32 [A] B::C{i}()[Optimized]\n" for i, start in
                          enumerate([*(int(self.records[self.jit][0], 16) + at for at in (1, 2)), 0x12345600000000]))
        for text in (foreign, foreign.splitlines(True)[-1]):
            self.file.write_text(text)
            done = self.assert_run(PARTLY, "verify", self.core, self.file, lines=2)
            self.assertIn(b"no record matches the target: it is of another process", done.stderr)
            self.assertIn("         0  match", done.stdout.decode())

    def test_jitdump(self):
        dump = Jitdump(timestamp=5)
        self.file.write_bytes(dump.data)
        _, totals = self.json(FAILED, lines=2)
        self.assertEqual((totals["records"], totals["file"], totals["advice"]), (0, "jitdump", None))
        dump.load(6, 1, 1, 0x1000, bytes(0x110), 1, b"stub InitThreadManagerPerfMapData<JIT_CopiedWriteBarriers>")
        dump.load(7, 1, 1, 0x2000, bytes(0x9000), 2, b"stub ReportStubBlock<Unknown>")
        self.file.write_bytes(dump.data[:-0x1000])
        done = self.assert_run(FAILED, "verify", self.core, self.file, lines=2)
        self.assertIn(b"DOTNET_PerfMapStubGranularity=2", done.stderr)
        self.assertIn("no record matches", done.stdout.decode().splitlines()[-1])

    def test_refuses(self):
        self.write()
        self.assert_usage_error("verify")
        self.assertIn("TARGET [FILE]", self.assert_usage_error("verify", self.core))
        self.assert_usage_error("verify", self.core, self.file, "more")
        self.assert_usage_error("verify", "--names", "sos", self.core, self.file)
        done = self.assert_run(FAILED, "verify", self.core, "/nowhere/at/all", lines=1)
        self.assertEqual(done.stderr.count(b"/nowhere/at/all"), 1, done.stderr)
        self.assert_run(FAILED, "verify", self.core, self.core, lines=1)
        self.assert_run(FAILED, "verify", self.file, self.file, lines=1)
        before = self.file.read_bytes()
        self.assert_run(FAILED, "verify", "-o", self.file, self.core, self.file, lines=1)
        self.assertEqual(self.file.read_bytes(), before)

    def test_output(self):
        self.write()
        out = pathlib.Path(self.folder.name) / "out"
        self.assert_run(ANSWERED, "verify", "-o", out, self.core, self.file, lines=1)
        self.assertIn("no contradiction", out.read_text())
        with open("/dev/full", "wb") as full:
            self.assert_run(FAILED, "verify", self.core, self.file, stdout=full, lines=2)


if __name__ == "__main__":
    if not TOOL:
        print("CDACQ_TOOL names no tool to test")
        sys.exit(77)
    unittest.main()
