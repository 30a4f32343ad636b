"""gdb on a snapshot of a real process that died: frames, names, lines and commands. Skipped where gdb is missing."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest

import gdb_stacks
import python_support

python_support.use_package()
import cdacq  # noqa: E402
from cdacq import _debugger  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL")
NAMES = ("crash-net8-x64", "crash-net9-x64", "crash-net10-x64")
MAIN = r"Dying\.Program\.Main\(string\[\]\)"


def skip_reason():
    if "CDACQ_PRELOADED" in os.environ:
        return "gdb does not load the runtime of a sanitizer"
    if not TOOL:
        return "no command line"
    return None if gdb_stacks.gdb_works() else "gdb with Python is not installed"


class Texts(unittest.TestCase):
    def test_what_the_texts_say_of_doubt(self):
        method = cdacq.Method._make([0] * len(cdacq.Method._fields))._replace(
            answer=cdacq.Answer.MANAGED, kind=cdacq.CodeKind.JITTED, name="A.B()", tier=None, il_offset=None)
        self.assertEqual(_debugger.method_text(method), "A.B() +0x0 [jit] [unconfirmed file]")
        self.assertEqual(_debugger.method_text(method._replace(module_verified=True)), "A.B() +0x0 [jit]")
        flaws = cdacq.ExceptionFlaw.CUT | cdacq.ExceptionFlaw.INFERRED
        self.assertEqual(list(_debugger.flaws_text(flaws)), ["(cut, inferred)"])
        self.assertEqual(list(_debugger.flaws_text(flaws | cdacq.ExceptionFlaw.UNVERIFIED)), ["(cut, inferred, unconfirmed files)"])
        self.assertEqual(list(_debugger.flaws_text(cdacq.ExceptionFlaw(0))), [])

    @unittest.skipUnless(TOOL, "no command line")
    def test_text_is_escaped_as_on_the_command_line(self):
        """A message of the tool quotes the path of a file that does not exist, which can have any bytes but NUL."""
        name = "".join(map(chr, range(1, 256))) + "\udcff\u061c\u200e\u2028\u202e\u2069\ufeff\u200d\ufe0f\U000e0067\U0001f600\\"
        for start in range(0, len(name), 40):  # a message is short
            part = name[start:start + 40].replace("/", "")
            done = subprocess.run([TOOL, "info", "/nonexistent-" + part], capture_output=True)
            self.assertIn(f"/nonexistent-{_debugger.note(part)}:", done.stderr.decode())
        self.assertEqual(_debugger.data("a\\\t\x1b[2J\u200b"), r"a\\\x09\x1b[2J\u{200b}")
        self.assertEqual(_debugger.printable("a\u200cb\u202e"), "a\u200cb\\u{202e}")  # as texts of exceptions have it

    def test_names_of_the_target_are_escaped(self):
        class Fake(_debugger.Debugger):
            def selected_thread_id(self):
                return 1

            def threads(self):
                return {1: types.SimpleNamespace(tid=1, thread=16, managed_id=2, exception_address=0,
                                                 name="a\tb\nc\\x1b\x1b]0;d\u202e")}

        self.assertEqual(list(Fake().list_threads([])),
                         [r'* 1 "a\x09b\x0ac\\x1b\x1b]0;d\u{202e}", managed 2, Thread 0x10'])
        frame = types.SimpleNamespace(index=0, by=cdacq.FrameSource.CFI, kind=cdacq.FrameKind.NATIVE, pc=16,
                                      funclet=cdacq.FuncletKind.NONE, method=None, symbol="f\\\r", symbol_offset=1,
                                      module="/lib\t/a\tb", module_offset=2)
        self.assertEqual(_debugger.frame_text(frame), r"#0   0x10 f\\\x0d +0x1 (a\x09b)")
        frame.symbol = None
        self.assertEqual(_debugger.frame_text(frame), r"#0   0x10 a\x09b+0x2")
        self.assertEqual(_debugger.lines_of("a\r\x0b\u2028b\n\nc\n"), ["a\r\x0b\u2028b", "", "c"])


@unittest.skipIf(skip_reason(), skip_reason() or "")
class Gdb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        os.environ["TMPDIR"] = cls.folder.name  # of gdb
        cls.cores = {}
        for name in NAMES:  # snapshots as this version writes them
            path = os.path.join(cls.folder.name, name)
            with cdacq.open(python_support.fixture(name), record=True) as target:
                for thread in target.threads():
                    list(thread.frames().items)
                    for found in (thread.exception, thread.last_thrown):
                        if found:
                            found.text()
                target.last_words()
                target.write_snapshot(path)
            cls.cores[name] = path

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_gdb(self, *commands, core="crash-net10-x64"):
        return gdb_stacks.run_gdb([], [f"core-file {self.cores[core]}", *commands])[0]

    def test_frames(self):
        for name, core in self.cores.items():
            # gdb does not pass on the PDBs that a snapshot holds.
            problems, managed, _, output = gdb_stacks.compare(TOOL, core, ["-ex", f"core-file {core}"], with_lines=False)
            self.assertEqual(problems, [], name + output)
            self.assertGreater(managed, 3)

    def test_commands(self):
        output = self.run_gdb("cdacq threads", "cdacq exception", "cdacq report", "cdacq stack", "cdacq ip2method 1",
                              "cdacq stack all")
        with cdacq.open(python_support.fixture("crash-net10-x64")) as target:
            threads = target.threads().items
            text = (target.exception(threads[0].exception_address or threads[0].last_thrown_address)).text()
        self.assertRegex(output, rf"(?m)^\* {threads[0].tid}, .*System.Reflection.TargetInvocationException$")
        for line in text.splitlines():
            self.assertIn(line.split(" in /")[0], output)  # without the file, which only the PDB has
        self.assertRegex(output, r"(?m)^\.NET 10\.0\.\d+ ")
        self.assertIn("The runtime ended the process and wrote:\nUnhandled exception. System.Reflection", output)
        self.assertRegex(output, rf"(?m)^#\d+ +0x[0-9a-f]+ {MAIN} \+0x[0-9a-f]+ \[jit\] IL_\w+ \(Dying\.dll\)")
        self.assertEqual(len(re.findall(r"(?m)^TID \d+:$", output)) >= 1 + len(threads), True)
        self.assertNotIn("Python Exception", output)

    def test_what_ended_the_process(self):
        """gdb says so, and the report has the runtime's text, which the signal leads to."""
        output = self.run_gdb("cdacq report")
        self.assertIn("Program terminated with signal SIGABRT", output)
        with cdacq.open(self.cores["crash-net10-x64"]) as target:
            self.assertIn(target.last_words().splitlines()[0], output)

    def test_lines_of_mappings(self):
        """gdb 13 ends a line with the path, gdb 16 with a blank after it. A path can end with a blank, too."""
        rows = [("0x7f0000000000", "0x7f0000001000", "0x1000             0x0                ", path)
                for path in ("/a/System.Private.CoreLib.dll", "/a b/c ", "")]
        for row, expected in ((("{} {} {}{}"), ["/a/System.Private.CoreLib.dll", "/a b/c ", None]),
                              (("{} {} {}{} "), ["/a/System.Private.CoreLib.dll", "/a b/c ", None]),
                              (("      {}     {}     {}r-xp  {}"), ["/a/System.Private.CoreLib.dll", "/a b/c ", None]),
                              (("{} {} {}r-xp  {} "), ["/a/System.Private.CoreLib.dll", "/a b/c ", None])):
            text = "process 1\nMapped address spaces:\n\n          Start Addr           End Addr       Size     Offset  " \
                "objfile\n" + "".join(row.format(*each) + "\n" for each in rows)
            output = self.run_gdb(f"python print([m.path for m in cdacq.gdb.parse_mappings({text!r})])")
            self.assertIn(f"\n{expected}\n", output)

    def main_frame(self):
        return re.search(rf"(?m)^#(\d+) .*{MAIN}", self.run_gdb("bt"))[1]

    def test_a_frame(self):
        output = self.run_gdb(f"frame {self.main_frame()}", "cdacq ip2method",
                              "cdacq inspect $pc-1")
        self.assertRegex(output, rf"(?m)^0x[0-9a-f]+ {MAIN} \+0x[0-9a-f]+ \[jit\]")
        self.assertRegex(output, r"(?m)^  code           \[0x[0-9a-f]+, 0x[0-9a-f]+\)$")
        self.assertRegex(output, r"(?m)^  source         Dying\.pdb is needed")
        self.assertRegex(output, r"(?m)^  argument       arguments: System\.String\[\] at rbp-0x30$")

    def test_every_frame(self):
        """Without an address, the commands are about the call of the selected frame, as stacks are."""
        last = max(int(number) for number in re.findall(r"(?m)^#(\d+) ", self.run_gdb("bt")))
        output = self.run_gdb("cdacq stack", *(command for number in range(last + 1)
                                               for command in (f"frame {number}", "cdacq ip2method")))
        self.assert_frames_as_in_stack(output)

    def test_variables(self):
        """Of each frame, those that the package finds, with their values."""
        core = python_support.fixture("crash-net10-x64")
        with cdacq.open(core) as target:
            thread = next(thread for thread in target.threads() if thread.died)
            frames = [frame for frame in thread.frames(variables=True).items if frame.variables]
            self.assertGreater(len(frames), 2)
            numbers = {int(pc, 16): number for number, pc in re.findall(r"(?m)^#(\d+) +(0x[0-9a-f]+) in ", self.run_gdb("bt"))}
            shown = self.run_gdb(*(command for frame in frames
                                   for command in (f"frame {numbers[frame.pc]}", "cdacq variables")))
            known = 0
            for frame in frames:
                for variable in frame.variables:
                    begin = f"  {variable.name or '?'}: {variable.type}"
                    if variable.state == cdacq.VariableState.OPTIMIZED_OUT:
                        self.assertIn(f"{begin} = <optimized out>\n", shown)
                    elif variable.state == cdacq.VariableState.KNOWN and variable.name:
                        text = target.value_text(variable.target or variable.value)
                        self.assertIn(f"{begin} = {text}\n" if text is not None else begin, shown)
                        known += 1
            self.assertGreater(known, 2)
        self.assertNotIn("Python Exception", shown)

    def assert_frames_as_in_stack(self, output):
        managed = re.findall(r"(?m)^#\d+ +(?:\[\w+\] )?(0x[0-9a-f]+ .* \[(?:jit|r2r)\b.*)$", output)
        self.assertGreater(len(managed), 3)
        self.assertEqual([frame for frame in managed if f"\n{frame}\n" not in output], [])

    def test_symbols(self):
        """gdb's own commands have the names, too."""
        with cdacq.open(python_support.fixture("hello-net10-x64")) as target:
            method = next(m for m in target.methods() if m.is_managed and "SafeFileHandle..ctor()" in m.name)
        alone, _ = gdb_stacks.run_gdb([], [f"core-file {python_support.fixture('hello-net10-x64')}"], package=False)
        if "Fatal signal" in alone:  # 16.3 of Debian
            self.skipTest("this gdb cannot open the core by itself")
        output, _ = gdb_stacks.run_gdb([], [f"core-file {python_support.fixture('hello-net10-x64')}", "cdacq symbols",
                                            f"info symbol {method.code_start + 1:#x}", "cdacq symbols",
                                            f"info line *{method.code_start:#x}"])
        name = re.escape(method.name)
        self.assertRegex(output, rf"{name} \+ 1 in section \.text")
        self.assertRegex(output, rf"<{name}>")
        self.assertNotIn("Python Exception", output)
        self.assertFalse(list(pathlib.Path(self.folder.name).glob("cdacq-*.elf")))

    def test_help_and_completion(self):
        output = self.run_gdb("complete cdacq ", "complete cdacq stack a", "help cdacq ip2method", "cdacq nonsense")
        for command in ("ip2method", "inspect", "exception", "threads", "report", "stack", "symbols", "variables"):
            self.assertIn(f"cdacq {command}\n", output)
        self.assertIn("cdacq stack all\n", output)
        self.assertIn("the methods that own addresses", output)

    def test_wrong_arguments(self):
        """Are told, as anywhere: a mistyped word must not be taken for the usual answer."""
        for command, usage in (("stack al", "stack [all]"), ("stack all all", "stack [all]"), ("report x", "report"),
                               ("threads 1", "threads"), ("exception 1 2", "exception [EXPRESSION]"), ("symbols x", "symbols"),
                               ("variables 1 2", "variables [NUMBER]")):
            self.assertIn(f"usage: cdacq {usage}\n", self.run_gdb(f"cdacq {command}"), command)

    def test_other_programs(self):
        """A program without a runtime is left alone, and the commands say why there is nothing."""
        output, _ = gdb_stacks.run_gdb([TOOL], ["break main", "run --version", "bt", "cdacq report"])
        self.assertRegex(output, r"(?m)^#0 .*main")
        self.assertIn("no .NET runtime", output)
        self.assertNotIn("Python Exception", output)

    def test_names_that_are_not_utf8(self):
        """The kernel cuts a thread's name after 15 bytes, and a file's name has any bytes. gdb decodes neither."""
        folder = pathlib.Path(self.folder.name)
        mapped = os.fsencode(folder / "mapped-") + b"\xff"
        program = folder / "odd_names.py"
        program.write_text(f"""import ctypes, mmap, os, signal
with open({mapped!r}, "w+b") as file:
    file.write(bytes(4096))
    file.flush()
    kept = mmap.mmap(file.fileno(), 4096)
ctypes.CDLL(None).prctl(15, "fourteen bytes\u00e9".encode())
os.kill(os.getpid(), signal.SIGTRAP)
""", encoding="utf-8")
        output, _ = gdb_stacks.run_gdb([sys.executable], ["unset environment PYTHONHOME", f"run {program}", "info proc mappings", "bt 1",
                                                          "cdacq report"])
        self.assertIn("SIGTRAP", output)
        self.assertIn("mapped-", output)
        self.assertRegex(output, r"(?m)^#0 ")
        self.assertIn("no .NET runtime", output)
        self.assertNotIn("codec can't decode", output)

    def test_a_library_whose_name_is_not_utf8(self):
        """gdb does not say in which file such a frame is; the others are shown as ever."""
        folder = pathlib.Path(self.folder.name)
        program = folder / "odd_library.py"
        program.write_text(f"""import ctypes, shutil
ctypes.CDLL("libm.so.6")
with open("/proc/self/maps", encoding="utf-8") as maps:
    libm = next(line.split()[-1] for line in maps if "/libm" in line)
shutil.copy(libm, {os.fsencode(folder / "libm-")!r} + b"\\xff.so")
ctypes.CDLL({str(folder / "libm-")!r} + "\\udcff.so").cbrt(0)
""", encoding="utf-8")
        output, _ = gdb_stacks.run_gdb([sys.executable], ["set debug-file-directory /", "set breakpoint pending on",
                                                          "break cbrt", "unset environment PYTHONHOME",
                                                          f"run {program}", "bt 3"])
        self.assertRegex(output, r"(?m)^#0 .*cbrt")
        self.assertRegex(output, r"(?m)^#1 ")
        self.assertNotIn("codec can't decode", output)


if __name__ == "__main__":
    if skip_reason():
        print("skipped:", skip_reason())
        sys.exit(python_support.SKIPPED)
    sys.exit(unittest.main())
