#!/usr/bin/env python3
"""The bundled snapshots of real processes, compared with what the runtime itself recorded about its code: every chosen
method at its first, middle and last byte; addresses directly after methods and in released code; and that the ways to
ask agree."""

import contextlib
import glob
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TESTS, "dotnet"))

import judge  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
HOT_COLD = os.path.join(TESTS, "fixtures", "net10-hot-cold-x64")
FIXTURES = sorted(os.path.dirname(path) for path in glob.glob(os.path.join(TESTS, "fixtures", "*", "outside.txt")))


def lines_of(path):
    with open(path, encoding="ascii") as file:
        return file.read().split()


def run(*arguments, text=None):
    return subprocess.run([TOOL, *arguments], input=text, capture_output=True, encoding="utf-8", check=False)


@contextlib.contextmanager
def without_files(core):
    """A copy in which mapped files have other names, so that nothing but the snapshot itself can answer."""
    with open(core, "rb") as file:
        data = file.read()
    with tempfile.NamedTemporaryFile() as copy:
        copy.write(data.replace(b"/usr/share/dotnet/", b"/usr/gone/dotnet_/").replace(b"/demo-", b"/gone-"))
        copy.flush()
        yield copy.name


class Fixtures(unittest.TestCase):
    def test_there_are_some(self):
        self.assertTrue(FIXTURES)

    def test_methods_are_named_as_the_runtime_recorded_them(self):
        for fixture in FIXTURES:
            with self.subTest(fixture=fixture):
                tally = judge.Tally()
                expected = judge.read_expected(os.path.join(fixture, "expected.txt"))
                self.assertGreater(len(expected), 50)
                judge.judge_inside(TOOL, os.path.join(fixture, "core"), expected, tally)
                if tally.has_failed:
                    tally.report()
                self.assertFalse(tally.has_failed)

    def test_names_are_the_runtime_s_own_text(self):
        """--names il: a snapshot answers in every style."""
        for fixture in FIXTURES:
            with self.subTest(fixture=fixture), without_files(os.path.join(fixture, "core")) as core:
                names = judge.runtime_names(judge.read_expected(os.path.join(fixture, "expected.txt")))
                self.assertGreater(len(names), 50)
                answers = judge.ask(TOOL, [core, "--names", "il"], names)
                self.assertEqual([answer["method"] for answer in answers], list(names.values()))

    def test_everything_that_the_contract_says_is_in_the_snapshot(self):
        """Sizes are those of the record, which separates hot and cold code; GC info has the version of the release. These
        snapshots are older than `gc_safe`, so they have only the beginning of the GC info."""
        versions = {"net8": {2}, "net9": {3}, "net10": {4}}
        for fixture in FIXTURES:
            with self.subTest(fixture=fixture), without_files(os.path.join(fixture, "core")) as core:
                expected = judge.read_expected(os.path.join(fixture, "expected.txt"))
                done = run("inspect", "--json", core, text="".join(f"{ip:x}\n" for one in expected for ip in one.probes()))
                self.assertEqual((done.returncode, done.stderr), (1, ""))
                answers = map(json.loads, done.stdout.splitlines())
                kinds, found = {"jit": 1, "r2r": 2, "r2r-cold": 2}, set()
                for one in expected:
                    for _, answer in zip(one.probes(), answers):
                        self.assertLessEqual(set(answer["errors"]), {"gc_safe"})
                        self.assertEqual(answer["jit_type"], kinds[one.kind])
                        size = "cold_size" if one.kind == "r2r-cold" else "hot_size"
                        self.assertEqual(answer[size], one.size, answer)
                        self.assertEqual(answer["code_start" if size == "hot_size" else "cold_start"], f"0x{one.address:x}")
                        self.assertIsNotNone(answer["gc_info"])
                        self.assertIsNotNone(answer["unwind_info"])
                        found.add(answer["gc_version"] if answer["kind"] == "r2r" else None)
                self.assertEqual(next(answers, None), None)
                self.assertEqual(found - {None}, versions[os.path.basename(fixture).split("-")[0]])

    def test_nothing_is_named_after_a_method_or_in_released_code(self):
        for fixture in FIXTURES:
            ips = lines_of(os.path.join(fixture, "outside.txt"))
            done = run("ip2method", "--json", os.path.join(fixture, "core"), text="\n".join(ips) + "\n")
            answers = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual(len(answers), len(ips), done.stderr)
            self.assertEqual({answer["status"] for answer in answers} - {"none", "stub"}, set())
            self.assertEqual(done.returncode, 0)

    def test_cold_code_belongs_to_its_method(self):
        """What the runtime records of a split method: two pieces of code, under names that differ in the tier alone."""
        core = os.path.join(HOT_COLD, "core")
        expected = judge.read_expected(os.path.join(HOT_COLD, "expected.txt"))
        hot = {one.identity: one for one in expected if one.kind == "r2r"}
        cold = [one for one in expected if one.kind == "r2r-cold"]
        self.assertGreaterEqual(len(cold), 8)
        for one in cold:
            hot_start = hot[one.identity].address
            start, *answers = map(json.loads, run("ip2method", "--json", core, *[
                f"{ip:x}" for ip in [hot_start, *one.probes()]]).stdout.splitlines())
            self.assertEqual((start["cold"], start["offset"], int(start["code_start"], 16)), (False, 0, hot_start))
            self.assertGreaterEqual(start["code_size"], hot[one.identity].size)
            for answer in answers:
                self.assertEqual((answer["status"], answer["cold"]), ("managed", True), answer)
                for key in ("code_start", "code_size", "method", "token", "module"):
                    self.assertEqual(answer[key], start[key], key)
                self.assertEqual(answer["offset"], start["code_size"] + int(answer["ip"], 16) - one.address)

    def test_one_by_one_and_all_at_once_agree(self):
        for fixture in FIXTURES:
            core = os.path.join(fixture, "core")
            expected = judge.read_expected(os.path.join(fixture, "expected.txt"))
            ips = [f"{one.address + one.size // 2:x}" for one in expected][::20]
            single = "".join(run("ip2method", "--json", core, ip).stdout for ip in ips)
            together = run("ip2method", "--json", core, text="\n".join(ips * 10) + "\n").stdout
            self.assertEqual(single * 10, together)

    def test_a_mapping_of_the_whole_address_space_takes_no_time(self):
        for fixture in FIXTURES:
            with open(os.path.join(fixture, "core"), "rb") as file:
                data = bytearray(file.read())
            note = data.index(b"CORE\0\0\0\0", data.index(struct.pack("<I", 0x46494C45)))  # after NT_FILE's type
            count = struct.unpack_from("<Q", data, note + 8)[0]
            struct.pack_into("<Q", data, note + 24 + 24 * (count - 1) + 8, 0xFFFFFFFFFFFFF000)
            with tempfile.NamedTemporaryFile() as patched:
                patched.write(data)
                patched.flush()
                done = subprocess.run([TOOL, "info", patched.name], capture_output=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_snapshot_of_a_snapshot_answers_the_same(self):
        for fixture in FIXTURES:
            core, ips = os.path.join(fixture, "core"), lines_of(os.path.join(fixture, "first-light.ips"))
            copy = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"cdacq-test-{os.getpid()}.core")
            try:
                done = run("snapshot", core, "-o", copy, *ips)
                lost = "name could not be read" in run("ip2method", core, *ips).stderr  # what the fixture itself lacks
                self.assertEqual(done.returncode, int(lost), done.stderr)
                self.assertLess(os.path.getsize(copy), os.path.getsize(core))
                self.assertEqual(run("ip2method", copy, *ips).stdout, run("ip2method", core, *ips).stdout)
            finally:
                if os.path.exists(copy):
                    os.unlink(copy)

    def test_the_front_page_shows_what_the_tool_prints(self):
        """Each line of its examples, in order; "..." is for what it leaves out, also at the end of a line. Without the
        runtime's own files, the IL offsets of its code are not known."""
        with open(os.path.join(os.path.dirname(TESTS), "docs/site/index.md"), encoding="utf-8") as file:
            examples = re.findall(r"```console\n\$ cdacq ([^\n]*)\n(.*?)```", file.read(), re.S)
        self.assertEqual(len(examples), 2)
        for command, shown in examples:
            name, core, *ips = command.split()
            self.assertTrue(core.startswith("core."))
            fixture = "net10-x64" if ips else "crash-net10-x64"
            printed = iter(run(name, os.path.join(TESTS, "fixtures", fixture, "core"), *ips).stdout.splitlines())
            for line in shown.splitlines():
                if line.strip() != "...":
                    begin, bare = line.removesuffix("..."), re.sub(r"(?<=\[r2r\]) IL_[0-9a-f]+", "", line)
                    self.assertTrue(any(one in (line, bare) or line != begin and one.startswith(begin) for one in printed), line)


if __name__ == "__main__":
    unittest.main()
