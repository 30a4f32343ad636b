#!/usr/bin/env python3
"""Tests the choice of runtimes, and the folder that tests share, of lab.py. Needs no .NET."""

import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

import lab

NEWEST = {11: "11.0.3", 10: "10.0.20", 9: "9.0.30", 8: "8.0.40"}


class Runtimes(unittest.TestCase):
    def setUp(self):
        self.enterContext(mock.patch.object(lab, "NEWEST", NEWEST))
        self.enterContext(mock.patch.object(lab, "OLDER", ["9.0.1", "8.0.2"]))
        self.enterContext(mock.patch.dict(os.environ))
        os.environ.pop("CDACQ_RUNTIMES", None)

    def test_by_default_the_newest_of_each_line(self):
        self.assertEqual(lab.runtimes(), ["11.0.3", "10.0.20", "9.0.30", "8.0.40"])
        self.assertEqual(lab.runtimes((), ["other-times"]), [*NEWEST.values(), "other-times"])
        self.assertEqual(lab.runtimes(of_all_lines=False), ["11.0.3", "10.0.20"])

    def test_words(self):
        self.assertEqual(lab.runtimes(["installed", "8", "10.0", "8.0.0", "older", "images"], ["images"]),
                         ["installed", "8.0.40", "10.0.20", "8.0.0", "9.0.1", "8.0.2", "images"])
        for word in ("7", "newest", "images", "", "10.0.x"):
            with self.assertRaisesRegex(lab.LabError, f"there is no runtime '{word}'"):
                lab.runtimes([word])

    def test_the_environment_chooses_a_subset(self):
        os.environ["CDACQ_RUNTIMES"] = "9 images installed"  # images: of another test
        self.assertEqual(lab.runtimes(), ["9.0.30", "installed"])
        self.assertEqual(lab.runtimes(of_all_lines=False), ["9.0.30", "installed"])
        self.assertEqual(lab.runtimes((), ["images"]), ["9.0.30", "images", "installed"])
        self.assertEqual(lab.runtimes(["8.0.0"]), ["8.0.0"])
        os.environ["CDACQ_RUNTIMES"] = "images"
        self.assertEqual(lab.runtimes(of_all_lines=False), ["11.0.3", "10.0.20"])

    def test_lines(self):
        self.assertEqual([lab.framework_for(version) for version in ("8.0.0", "11.0.0")], ["net8.0", "net11.0"])
        self.assertEqual([version for version in NEWEST.values() if lab.is_recent(version)], ["11.0.3", "10.0.20"])
        self.assertEqual([version for version in NEWEST.values() if lab.is_newest(version)], ["11.0.3"])


class File(unittest.TestCase):
    def test_the_list_has_every_line(self):
        self.assertEqual(list(lab.NEWEST), sorted(lab.NEWEST, reverse=True))
        self.assertEqual(min(lab.NEWEST), 8)
        for line, version in lab.NEWEST.items():
            self.assertRegex(version, rf"^{line}\.0\.\d+$")
        for version in lab.OLDER:
            self.assertLess([int(part) for part in version.split(".")], [int(part) for part in lab.NEWEST[lab.line_of(version)].split(".")])

    def test_no_script_has_a_version_of_its_own(self):
        servicing = re.compile(r"\b(?:8|9|1\d)\.0\.[1-9]\d*\b")
        for name in os.listdir(lab.HERE):
            if name.endswith(".py") and name != os.path.basename(__file__):
                with open(os.path.join(lab.HERE, name), encoding="utf-8") as file:
                    self.assertEqual(servicing.findall(file.read()), [], name)


class Shared(unittest.TestCase):
    def setUp(self):
        self.work = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(mock.patch.dict(os.environ, {"CDACQ_DOTNET_CACHE": os.path.join(self.work, "cache")}))
        self.enterContext(mock.patch.object(lab.shutil, "which", lambda name: name))

    def test_made_once_by_threads_and_processes(self):
        def make(folder):
            os.mkdir(os.path.join(folder, "made"))  # fails if it is made twice in one place
            with open(os.path.join(self.work, "count"), "a", encoding="ascii") as file:
                file.write("x")
        paths = []
        threads = [threading.Thread(target=lambda: paths.append(lab.shared(self.work, "one", make))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with open(os.path.join(self.work, "count"), encoding="ascii") as file:
            self.assertEqual(file.read(), "x")
        self.assertEqual(set(paths), {os.path.join(self.work, "cache", "one")})
        code = "import lab, sys; lab.shutil.which = lambda name: name; lab.shared(sys.argv[1], 'one', lambda folder: sys.exit(3))"
        subprocess.run([sys.executable, "-B", "-c", code, self.work], cwd=lab.HERE, check=True)

    def test_what_failed_is_made_again(self):
        def fail(folder):
            with open(os.path.join(folder, "half"), "w", encoding="ascii"):
                raise lab.LabError("no")
        with self.assertRaises(lab.LabError):
            lab.shared(self.work, "two", fail)
        self.assertEqual(os.listdir(lab.shared(self.work, "two", lambda folder: None)), [])
        self.assertEqual([name for name in os.listdir(os.path.join(self.work, "cache")) if name.startswith(".new")], [])

    def test_a_copy_of_its_own(self):
        path = lab.shared(self.work, "three", lambda folder: open(os.path.join(folder, "file"), "w", encoding="ascii").close())
        own = lab.own_copy(self.work, os.path.join(path, "file"))
        self.assertEqual(own, os.path.join(self.work, "three", "file"))
        self.assertEqual(lab.own_copy(self.work, own), own)
        self.assertTrue(os.path.samefile(lab.shared(self.work, "three", None), path))

    def test_another_source_is_another_program(self):
        with mock.patch.object(lab, "run", lambda command: None):
            source = os.path.join(self.work, "source")
            os.mkdir(source)
            paths = set()
            for text in ("one", "two"):
                with open(os.path.join(source, "Program.cs"), "w", encoding="ascii") as file:
                    file.write(text)
                for options in ({"runtime": "8.0.0"}, {"runtime": "9.0.0"}, {"runtime": "9.0.0", "DebugType": "embedded"}):
                    paths.add(lab.build(self.work, source, **options))
                    self.assertIn(lab.build(self.work, source, **options), paths)
            self.assertEqual(len(paths), 6)


if __name__ == "__main__":
    unittest.main()
