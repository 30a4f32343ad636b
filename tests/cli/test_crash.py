#!/usr/bin/env python3
"""The bundled snapshots of processes that died of an unhandled exception: `report` and `stack` of what they hold alone,
compared with what the runtimes printed."""

import glob
import json
import os
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

    def test_there_are_three(self):
        self.assertEqual(len(FIXTURES), 3)

    def test_the_exception_is_told_in_the_words_of_the_runtime(self):
        for core, words in zip(self.cores, self.words):
            for options in ([], ["--brief"]):
                done = run("report", *options, core)
                self.assertIn("\n" + words, done.stdout)
                self.assertIn("SIGABRT, sent by the process itself", done.stdout)
            report = json.loads(run("report", "--json", core).stdout)
            self.assertEqual("Unhandled exception. " + report["exception"]["text"] + "\n", words)
            self.assertEqual(report["cause"], "unhandled")
            self.assertEqual(report["signal"]["name"], "SIGABRT")
            self.assertEqual(report["died_tid"], report["stacks"][0]["threads"][0]["tid"])
            self.assertTrue(report["stacks"][0]["died"])
            self.assertEqual(report["writer"], "cdacq snapshot")

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
            self.assertEqual(names[-2:], OUTERMOST)
            self.assertIn("catch", [frame["funclet"] for frame in managed])
            self.assertIn("abort", [frame["native"]["symbol"] for frame in first if frame["native"]])

    def test_what_stack_shows(self):
        for core in self.cores:
            text = run("stack", core).stdout
            tid = re.match(r"TID (\d+) \"dotnet\", died of SIGABRT:\n#0   0x", text).group(1)
            one = run("stack", "--thread", tid, "--managed", core).stdout
            self.assertEqual(one.count("TID"), 1)
            self.assertNotIn("libcoreclr", one)
            self.assertRegex(one, r"\n#\d+ +\[catch\] 0x[0-9a-f]+ System\.")
            self.assertEqual(run("stack", "--each", core).stdout.count("TID"), 1 + text.count("TID") - 1 + sum(
                line.count(",") for line in text.splitlines() if line.startswith("TID") and "threads)" in line))
            done = run("stack", "--thread", "1", core)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("no thread 1\n", done.stderr)

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
