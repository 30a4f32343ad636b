"""scripts/check-subjects: what it accepts and refuses, and what it does where the history is missing."""
import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("CDACQ_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[1]))
SCRIPT = SOURCE / "scripts/check-subjects"
GOOD = """
target/core: refuse a segment that wraps
target/live_mappings: close files read with pread
docs, src/api: reply to what Python asks
src/cli/main: raise a small limit of the stack, or say so
ci: focus on the newest runtime
util: process, then address the rest
util: need no second pass
formats/elf: embed the build-id
formats: document each record
target: string parts together
docs: implement what limits.md promises
target/live: have a helper read the file
descriptors: supply an offset
src/api: dispose of what a session owned
README: say which processes are read
python/cdacq/_abi: do not read past the end
tests: pre-build the mocks
src/api: re-read what a process has changed
Merge branch 'topic' into main, with a subject that is far longer than seventy-two characters
""".strip().splitlines()
BAD = """
refuse a segment that wraps
target/core refuse a segment
target/core:refuse a segment
target/core: Refuse a segment
target/core: refuse
target/core: refuse a segment that wraps around the end of the address space
docs: plainer words
util/part_file: a file that is complete
formats/pe: the RVA of a file offset
src/cli: one way to name a version
docs: what is known of files
src/api/foreign_lines: lines of foreign PDBs
target/core: refuses a segment
target/core: refused a segment
target/core: refusing a segment
src/cli: size of the buffer
src/cli: memory is bounded
src/cli: selection of a runtime
src/api: native stacks of a process
tests: 300 kills
WIP tests/hostile: stop a process
WIP
""".strip().splitlines()


def load():
    loader = importlib.machinery.SourceFileLoader("check_subjects", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Rule(unittest.TestCase):
    def test_good_subjects(self):
        for subject in GOOD:
            self.assertIsNone(load().problem(subject), subject)

    def test_bad_subjects(self):
        for subject in BAD:
            self.assertIsNotNone(load().problem(subject), subject)


@unittest.skipUnless(shutil.which("git"), "needs git")
class History(unittest.TestCase):
    """A copy of the script in a repository of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "scripts").mkdir()
        shutil.copy(SCRIPT, self.root / "scripts")

    def git(self, *arguments):
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CEILING_DIRECTORIES": str(self.root.parent)}
        command = ["git", "-C", self.root, "-c", "user.name=n", "-c", "user.email=e", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()

    def commit(self, subject):
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def check(self, *arguments):
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(self.root.parent)}
        done = subprocess.run([self.root / "scripts/check-subjects", *arguments], capture_output=True, text=True,
                              env=environment)
        return done.returncode, done.stdout

    def test_only_what_came_later_counts(self):
        self.git("init", "-q")
        self.commit("WIP")
        since = self.commit("old words")
        self.assertEqual(self.check(since), (0, "0 subjects\n"))
        self.commit("util: add a file")
        self.assertEqual(self.check(since), (0, "1 subjects\n"))
        bad = self.commit("util: a file")
        status, text = self.check(since)
        self.assertEqual(status, 1)
        self.assertRegex(text, rf"^{bad[:4]}\w* util: a file: no imperative verb: a\n$")

    def test_no_repository(self):
        self.assertEqual(self.check(), (0, "no history: nothing checked\n"))

    def test_the_first_commit_is_not_there(self):
        self.git("init", "-q")
        self.commit("WIP")
        self.assertEqual(self.check(), (0, "no history: nothing checked\n"))


if __name__ == "__main__":
    unittest.main()
