"""test_first_screen.py: the first screen of the report about every bundled core, and that JSON says the same; and that the
check of that, which tests of real processes use, too, finds what is missing."""
import glob
import json
import os
import subprocess
import sys
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TESTS, "dotnet"))

import first_screen  # noqa: E402

TOOL = os.environ["CDACQ_TOOL"]
CORES = sorted(glob.glob(os.path.join(os.environ["CDACQ_FIXTURES"], "*", "core")))
DIED = [core for core in CORES if os.sep + "crash-" in core]


def report(*arguments):
    return subprocess.run([TOOL, "report", *arguments], capture_output=True, encoding="utf-8", check=False).stdout


class FirstScreen(unittest.TestCase):
    def test_bundled_cores(self):
        self.assertGreater(len(CORES), len(DIED))
        for core in CORES:
            with self.subTest(core=core):
                self.assertEqual(first_screen.problems_of(report(core), json.loads(report("--json", core))), [])

    def test_what_is_missing_is_found(self):
        core = DIED[0]
        text, fields = report(core), json.loads(report("--json", core))
        tid, method = str(fields["verdict"]["tid"]), fields["verdict"]["method"].partition("(")[0].rpartition(".")[2]
        lines = text.splitlines(keepends=True)
        stack = next(i for i, line in enumerate(lines) if line.startswith(f"TID {tid}"))
        for changed in ["", "\n" + text, text.replace("certainty", "sure", 1), text.replace("next", "then", 1),
                        text.replace(f"(TID {tid}", "(TID 1", 1), text.replace("where", "place", 1),
                        text.replace(method, "Other"), "verdict     \n" * 2 + text,
                        "".join(line for line in lines[:stack] if "   at " not in line) + "\n" * 40 + "".join(lines[stack:])]:
            self.assertTrue(first_screen.problems_of(changed, fields), changed)
        for key in ["what", "reason", "next", "method", "tid", "line", "stack", "by"]:
            verdict = {**fields["verdict"], key: 1 if key in ["tid", "line", "stack"] else "other"}
            self.assertTrue(first_screen.problems_of(text, {**fields, "verdict": verdict}), key)


if __name__ == "__main__":
    unittest.main()
