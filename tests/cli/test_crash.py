#!/usr/bin/env python3
"""The bundled snapshots of processes that died of an unhandled exception: `report` and `stack` of what they hold alone,
compared with what the runtimes printed. Those of arm64 are of qemu-user, which says nothing about the sender of a signal."""

import glob
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
FIXTURES = sorted(glob.glob(os.path.join(TESTS, "fixtures", "crash-*")))
OUTERMOST = ["Dying.Deaths.Reflection", "Dying.Program.Main"]


def run(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, encoding="utf-8", check=False)


class Crash(unittest.TestCase):
    """Of each snapshot a copy in which the files of the process have names that no machine has."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.cores, cls.words = [], []
        for fixture in FIXTURES:
            with open(os.path.join(fixture, "core"), "rb") as file:
                data = file.read()
            with open(os.path.join(fixture, "stderr.txt"), encoding="utf-8") as file:
                cls.words.append(file.read())
            path = os.path.join(cls.folder.name, os.path.basename(fixture))
            with open(path, "wb") as file:
                file.write(data.replace(b"/usr/", b"/gon/").replace(b"/crash/", b"/gone./"))
            cls.cores.append(path)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_there_are_five(self):
        self.assertEqual(len(FIXTURES), 5)

    def test_the_exception_is_told_in_the_words_of_the_runtime(self):
        for core, words in zip(self.cores, self.words):
            for options in ([], ["--brief"]):
                done = run("report", *options, core)
                self.assertIn("\n" + words, done.stdout)
                self.assertIn("SIGABRT" + ("" if "arm64" in core else ", sent by the process itself"), done.stdout)
            report = json.loads(run("report", "--json", core).stdout)
            self.assertEqual("Unhandled exception. " + report["exception"]["text"] + "\n", words)
            self.assertEqual(report["cause"], "unhandled")
            self.assertEqual(report["signal"]["name"], "SIGABRT")
            self.assertEqual(report["died_tid"], report["stacks"][0]["threads"][0]["tid"])
            self.assertTrue(report["stacks"][0]["died"])
            self.assertEqual(report["writer"], "cdacq snapshot")

    def test_exceptions_of_threads(self):
        """Each once, with its text: that of the process's end is what the runtime printed."""
        for core, words in zip(self.cores, self.words):
            done = run("report", "--exceptions", "--json", core)
            *lines, summary = map(json.loads, done.stdout.splitlines())
            current = [line["exception"] for line in lines if line.get("role") == "current"]
            texts = {line["newest"]: line["text"] for line in lines if "newest" in line}
            self.assertEqual((len(current), summary["exceptions"], summary["heap"]), (1, len(texts), False), core)
            self.assertIn(texts[current[0]], words)
            text = run("report", "--exceptions", core).stdout
            self.assertIn(texts[current[0]], text)

    def test_signatures(self):
        for core in self.cores:
            self.assertRegex(run("report", "--signature", core).stdout,
                             r"^unhandled System\.Reflection\.TargetInvocationException of System\.\w+Exception: "
                             r"Dying\.Deaths\.\w+ < Dying\.Deaths\.Reflection < Dying\.Program\.Main\n$")
            row = json.loads(run("report", "--signature", "--json", core).stdout)
            self.assertEqual(row["signature"] + "\n", run("report", "--signature", core).stdout)
            self.assertEqual(row["signature"], json.loads(run("report", "--json", core).stdout)["signature"])
            self.assertEqual(row["exception_type"], "System.Reflection.TargetInvocationException")
            self.assertEqual((row["cause"], row["complete"]), ("unhandled", True))

    def test_missing_pdb(self):
        """The id of the program's PDB, of which the core has a copy, differs: methods of the program lack their lines."""
        for core in self.cores:
            data, found = bytearray(pathlib.Path(core).read_bytes()), 0
            for record in re.finditer(rb"RSDS.{20}[^\0]*Dying\.pdb\0", data, re.DOTALL):
                data[record.start() + 4] ^= 1
                found += 1
            with tempfile.NamedTemporaryFile() as file:
                pathlib.Path(file.name).write_bytes(data)
                told, json_told = run("report", file.name).stdout, json.loads(run("report", "--json", file.name).stdout)
            self.assertEqual(found, 1)
            self.assertEqual(len(re.findall(r"^(next)? +Dying\.pdb is needed for source lines and was not found .*: give "
                                            r"--module-path or --symbol-server$", told, re.MULTILINE)), 1, told)
            self.assertEqual(sum("Dying.pdb is needed" in step for step in json_told["next_steps"]), 1)
            whole = run("report", core).stdout  # that of .NET 8 has no PDB
            self.assertEqual("Dying.pdb is needed" in whole, "Deaths.cs" not in whole)

    def test_the_verdict_comes_first(self):
        """At most five lines: what, where, and how sure. JSON has the same in fields."""
        for core, words in zip(self.cores, self.words):
            text = run("report", core).stdout
            lines = text.partition("\n\n")[0].splitlines()
            verdict = json.loads(run("report", "--json", core).stdout)["verdict"]
            types = re.findall(r"(?:exception\.|--->) (System\.[\w.]+):", words)
            self.assertEqual(verdict["what"], "an unhandled exception ended the process: " + ", caused by ".join(types))
            inner, line = re.search(r"at (Dying\.Deaths\.\w+)\(.*?\)(?: in .*:line (\d+))?$", words, re.M).groups()
            self.assertEqual(verdict["method"].partition("(")[0], inner)
            self.assertEqual(verdict["line"], line and int(line))
            self.assertEqual((verdict["kind"], verdict["certainty"], verdict["by"]), ("unhandled", "certain", None))
            self.assertEqual([line[:12].rstrip() for line in lines], ["verdict", "where", "certainty", "next"])
            self.assertEqual([lines[0][12:], lines[2][12:], lines[3][12:]], [verdict[key] for key in ("what", "reason", "next")])
            self.assertRegex(lines[1][12:], rf'^{re.escape(inner)}\(.* \(TID {verdict["tid"]}( "[^"]+")?\)$')
            tool, *command = lines[3][12:].split(" ")
            self.assertEqual(tool, "cdacq")
            self.assertIn(f"TID {verdict['tid']}", run(*command).stdout)
            screen = "\n".join(text.splitlines()[:40])
            self.assertIn(f"\nTID {verdict['tid']} ", screen)
            self.assertRegex(screen, r"\n#[^\n]* Dying\.Deaths\.Reflection\(\)")

    def test_nothing_is_a_verdict(self):
        core = os.path.join(TESTS, "fixtures", "net10-x64", "core")
        self.assertTrue(run("report", core).stdout.startswith("verdict     not known: there are no threads to look at\n\n"))
        verdict = json.loads(run("report", "--json", core).stdout)["verdict"]
        self.assertEqual((verdict["kind"], verdict["certainty"], verdict["next"]), ("unknown", "unknown", None))

    def test_what_may_be_missed(self):
        """A core without the memory of the locks: nobody can say that there is no deadlock."""
        core = os.path.join(TESTS, "fixtures", "net10-x64", "core")
        self.assertRegex(run("report", "--brief", core).stderr, r"a deadlock may have been missed \(SyncBlockCache is not")
        signature = run("report", "--signature", "--json", core)
        row = json.loads(signature.stdout)
        self.assertIn("SyncBlockCache", row["waits_problem"])
        self.assertEqual((row["signature"], row["complete"], signature.returncode), ("alive", False, 1))
        self.assertIn("cdacq: a deadlock may have been missed: SyncBlockCache is not", signature.stderr)

    def test_folders_that_are_not_there(self):
        with tempfile.NamedTemporaryFile() as file:
            done = run("report", "--brief", self.cores[0], "--sysroot", "/no/such\n", "--module-path", file.name)
            self.assertEqual((done.returncode, done.stderr),
                             (0, "cdacq: --sysroot /no/such\\x0a: No such file or directory; no file is looked for there\n"
                                 f"cdacq: --module-path {file.name}: Not a directory; no file is looked for there\n"))

    def test_stacks_are_complete(self):
        for core in self.cores:
            done = run("stack", "--json", core)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            frames = [json.loads(line) for line in done.stdout.splitlines()]
            first = [frame for frame in frames if frame["tid"] == frames[0]["tid"]]
            self.assertEqual([frame["frame"] for frame in first], list(range(len(first))))
            self.assertEqual(first[0]["by"], "context")
            self.assertFalse([frame for frame in frames if frame["by"] == "guess" or frame["status"] == "error"])
            cfas = [int(frame["cfa"], 16) for frame in first if frame["cfa"]]
            self.assertEqual(cfas, sorted(cfas))
            self.assertGreater(len(cfas), len(first) - 2)
            managed = [frame for frame in first if frame["status"] == "managed"]
            names = [frame["method"].split("(")[0] for frame in managed]
            if names[-1] == "System.Environment.CallEntryPoint":  # of .NET 11
                del names[-1]
            self.assertEqual(names[-2:], OUTERMOST)
            self.assertIn("catch", [frame["funclet"] for frame in managed])
            self.assertIn("abort", [frame["native"]["symbol"] for frame in first if frame["native"]])

    def test_what_stack_shows(self):
        for core in self.cores:
            text = run("stack", core).stdout
            tid = re.match(r"TID (\d+) \"(?:dotnet|Dying\.arm64-[\d.]+)\", died of SIGABRT:\n#0   0x", text).group(1)
            one = run("stack", "--thread", tid, "--managed", core).stdout
            self.assertEqual(one.count("TID"), 1)
            self.assertNotIn("libcoreclr", one)
            self.assertRegex(one, r"\n#\d+ +\[catch\] 0x[0-9a-f]+ System\.")
            self.assertEqual(run("stack", "--each", core).stdout.count("TID"), 1 + text.count("TID") - 1 + sum(
                line.count(",") for line in text.splitlines() if line.startswith("TID") and "threads)" in line))
            done = run("stack", "--thread", "1", core)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("no thread 1\n", done.stderr)

    def test_native_frames_in_a_row_are_one_line(self):
        """Text has each frame, in a line of its own or counted in one; JSON and --native have a line for each."""
        for core in self.cores:
            frames = [json.loads(line) for line in run("stack", "--json", core).stdout.splitlines()]
            tid = frames[0]["tid"]
            frames = [frame for frame in frames if frame["tid"] == tid]
            each = run("stack", "--native", "--thread", str(tid), core).stdout
            self.assertEqual(re.findall(r"^#(\d+)", each, re.M), [str(frame["frame"]) for frame in frames])
            self.assertNotIn("native frames", each)
            managed = [str(frame["frame"]) for frame in frames if frame["status"] == "managed"]
            text, report = run("stack", "--thread", str(tid), core).stdout, run("report", "--brief", core).stdout
            report = report[report.index("\nTID "):]
            for shown in (text, report):
                numbers = re.findall(r"^#(\d+)", shown, re.M)
                folded = [int(count) for count in re.findall(r"^ +\.\.\. (\d+) native frames \(lib[^)]*\)$", shown, re.M)]
                self.assertEqual(len(numbers) + sum(folded), len(frames))
                self.assertLessEqual(set(managed), set(numbers))
                self.assertTrue(all(count > 1 for count in folded))
            inner = int(managed[0])  # those in which the thread died; the runtime's last words are in the report
            self.assertEqual(re.findall(r"^#(\d+)", text, re.M)[:inner + 1], [str(n) for n in range(inner + 1)])
            self.assertEqual(re.findall(r"^#(\d+)", report, re.M)[:2], ["0", str(inner)])

    def test_a_core_without_threads_says_so(self):
        done = run("stack", os.path.join(TESTS, "fixtures", "net10-x64", "core"))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("no threads", done.stderr)
        done = run("report", "--brief", os.path.join(TESTS, "fixtures", "net10-x64", "core"))
        self.assertEqual(done.stdout, "")
        self.assertIn("nothing says that the process died", done.stderr)


if __name__ == "__main__":
    unittest.main()
