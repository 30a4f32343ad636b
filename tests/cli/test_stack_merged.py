"""All stacks at once: `stack --tree`, `--folded` and `--speedscope` of bundled cores, compared with the frames that
`stack --json` has."""
import collections
import glob
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TESTS, "support"))
import pprof_reader  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
FIXTURES = sorted(glob.glob(os.path.join(TESTS, "fixtures", "crash-*", "core")))
MEMORY_ONLY = os.path.join(TESTS, "fixtures", "hello-net10-x64", "core")


def run(*arguments, text=None):
    return subprocess.run([TOOL, *arguments], input=text, capture_output=True, encoding="utf-8", check=False, timeout=120)


def name_of(frame):
    """What a folded stack calls a frame of JSON. No name of these cores needs to be escaped."""
    native, funclet = frame["native"], f"[{frame['funclet']}] " if frame["funclet"] else ""
    if frame["status"] == "managed":
        return funclet + frame["method"] + (" [async thunk]" if frame["async_thunk"] else "")
    if frame["status"] == "stub":
        return f"[stub {frame['kind']}]"
    name = native["symbol"] or f"[{os.path.basename(native['module'])}]" if native else "[unknown]"
    return name.replace(";", ":")


def stacks_of(core, *options):
    """{tid: its frames, the outermost first}"""
    stacks = collections.defaultdict(list)
    for line in run("stack", "--json", *options, core).stdout.splitlines():
        frame = json.loads(line)
        stacks[frame["tid"]].insert(0, frame)
    return stacks


class Merged(unittest.TestCase):
    """Of each core a copy in which the files of the process have names that no machine has."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.cores = []
        for number, fixture in enumerate(FIXTURES):
            path = pathlib.Path(cls.folder.name, str(number))
            path.write_bytes(pathlib.Path(fixture).read_bytes().replace(b"/usr/", b"/gon/").replace(b"/crash/", b"/gone./"))
            cls.cores.append(str(path))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_there_are_five(self):
        self.assertEqual(len(FIXTURES), 5)

    def test_folded(self):
        for core in self.cores:
            expected = collections.Counter(";".join(map(name_of, frames)) for frames in stacks_of(core).values())
            done = run("stack", "--folded", core)
            self.assertEqual((done.returncode, done.stderr), (0, run("stack", core).stderr))
            lines = [line.rpartition(" ") for line in done.stdout.splitlines()]
            self.assertEqual({stack: int(count) for stack, _, count in lines}, dict(expected))
            self.assertEqual(len(lines), len(expected))
            image = run("flame", "-", text=done.stdout)
            self.assertEqual((image.returncode, image.stderr), (0, ""))
            self.assertIn(f">{sum(expected.values())} samples</text>", image.stdout)
            self.assertIn("<title>Dying.Program.Main(string[]) (1 samples", image.stdout)

    def test_folded_stacks_of_several_targets(self):
        one, both = run("stack", "--folded", self.cores[0]), run("stack", "--folded", self.cores[0], self.cores[1])
        self.assertEqual((both.returncode, both.stderr), (0, ""))
        lines = both.stdout.splitlines()
        self.assertEqual([line for line in lines if line.startswith(self.cores[0])],
                         [f"{self.cores[0]};{line}" for line in one.stdout.splitlines()])
        self.assertTrue(all(line.startswith((self.cores[0] + ";", self.cores[1] + ";")) for line in lines))

    def test_speedscope(self):
        for core in self.cores:
            done = run("stack", "--speedscope", core)
            self.assertEqual((done.returncode, done.stderr), (0, run("stack", core).stderr))
            document, stacks = json.loads(done.stdout), stacks_of(core)
            self.assertEqual(document["$schema"], "https://www.speedscope.app/file-format-schema.json")
            frames, (profile,) = document["shared"]["frames"], document["profiles"]
            self.assertEqual((profile["type"], profile["unit"], profile["startValue"]), ("sampled", "none", 0))
            self.assertEqual(profile["endValue"], len(stacks))
            self.assertEqual(sum(profile["weights"]), len(stacks))
            for sample in profile["samples"]:
                self.assertTrue(all(0 <= index < len(frames) for index in sample))
            found = collections.Counter()
            for sample, weight in zip(profile["samples"], profile["weights"], strict=True):
                found[tuple(frames[index]["name"] for index in sample)] += weight
            self.assertEqual(found, collections.Counter(tuple(map(name_of, stack)) for stack in stacks.values()))
            lines = {(name_of(frame), frame["file"], frame["line"]) for stack in stacks.values() for frame in stack
                     if frame["line"]}
            self.assertLessEqual({(frame["name"], frame["file"], frame["line"]) for frame in frames if "line" in frame}, lines)
            for frame in frames:
                self.assertLessEqual({"name"}, frame.keys())
                self.assertLessEqual(frame.keys(), {"name", "file", "line"})

    def test_pprof(self):
        for core in self.cores:
            with tempfile.NamedTemporaryFile() as file:
                done = run("stack", "--pprof", "-o", file.name, core)
                self.assertEqual((done.returncode, done.stderr), (0, run("stack", core).stderr))
                kind, found, places = pprof_reader.read(pathlib.Path(file.name).read_bytes())
            stacks = stacks_of(core)
            self.assertEqual(kind, ("threads", "count"))
            self.assertEqual(found, collections.Counter(tuple(map(name_of, stack)) for stack in stacks.values()))
            lines = {(name_of(frame), frame["line"]) for stack in stacks.values() for frame in stack if frame["line"]}
            self.assertEqual({(name, line) for name, _, line in places if line}, lines)

    def test_tree(self):
        """Each path from the root to threads has their frames; a count is the sum of those of its branches."""
        for core in self.cores:
            stacks = stacks_of(core)
            done = run("stack", "--tree", "--native", core)
            self.assertEqual((done.returncode, done.stderr), (0, run("stack", core).stderr))
            heading, *lines = done.stdout.splitlines()
            self.assertEqual(heading, f"{len(stacks)} threads")
            path, found, counts = [], {}, []  # path: (level, text)
            for line in lines:
                blanks, count, text = re.fullmatch(r"( *)(?:(\d+)  )?(\S.*)", line).groups()
                if count:  # a branch begins
                    level = len(blanks) // 2
                    path = [node for node in path if node[0] < level]
                    counts.append((level, int(count)))
                if text.startswith("TID "):
                    for tid in re.findall(r"(?:TID |, )(\d+)", text):
                        found[int(tid)] = [node[1] for node in path]
                else:
                    path.append((level, text))
            self.assertEqual(found.keys(), stacks.keys())
            for tid, stack in stacks.items():
                self.assertEqual(len(found[tid]), len(stack))
                for text, frame in zip(found[tid], stack):
                    native = frame["native"]
                    name = name_of(frame) if not native or native["symbol"] else \
                        f"{os.path.basename(native['module'])}+{native['offset']:#x}"
                    self.assertEqual(text.partition(" (lib")[0][:len(name)], name)
            self.assertEqual(sum(count for level, count in counts if level == 0), len(stacks))
            for i, (level, count) in enumerate(counts):
                below = []
                for deeper, number in counts[i + 1:]:
                    if deeper <= level:
                        break
                    below += [number] if deeper == level + 1 else []
                self.assertIn(sum(below), (0, count))
            folded = run("stack", "--tree", core).stdout
            self.assertRegex(folded, r"(?m)^ *(\d+  )?\.\.\. \d+ native frames \(")
            self.assertLess(folded.count("\n"), done.stdout.count("\n"))

    def test_threads_and_managed_frames(self):
        tid = str(next(iter(stacks_of(self.cores[0]))))
        self.assertEqual(run("stack", "--tree", "--thread", tid, self.cores[0]).stdout.splitlines()[0], "1 thread")
        line = run("stack", "--folded", "--managed", "--thread", tid, self.cores[0]).stdout
        self.assertRegex(line, r"^(System\.Environment\.CallEntryPoint[^;]*;)?Dying\.Program\.Main\(string\[\]\);.* 1\n$")
        self.assertNotIn("libcoreclr", line)

    def test_options_that_exclude_each_other(self):
        for options in (["--tree", "--folded"], ["--tree", "--json"], ["--folded", "--speedscope"], ["--tree", "--each"], ["--pprof", "--json"],
                        ["--speedscope", "--variables"], ["--folded", "--native"], ["--speedscope", MEMORY_ONLY]):
            done = run("stack", *options, self.cores[0])
            self.assertEqual((done.returncode, done.stdout), (64, ""), options)
            self.assertRegex(done.stderr, r"^cdacq: stack: [^\n]*\bgive [^\n]+\n$")
        done = run("async", "--folded", "--json", self.cores[0])
        self.assertEqual((done.returncode, done.stdout), (64, ""))
        self.assertRegex(done.stderr, r"^cdacq: async: [^\n]*\bgive [^\n]+\n$")

    def test_no_threads(self):
        for option in ("--tree", "--folded", "--speedscope", "--pprof"):
            done = run("stack", option, MEMORY_ONLY)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("no threads", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=0)
