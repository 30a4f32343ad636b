"""The help, the man pages and the completion name the same commands and options, and groff reads the pages."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

TOOL = os.environ.get("CDACQ_TOOL")
SOURCE = pathlib.Path(os.environ.get("CDACQ_SOURCE_DIR", "."))
PAGES = pathlib.Path(os.environ.get("CDACQ_BUILD_DIR", "build")) / "man1"


def output_of(*arguments):
    return subprocess.run([TOOL, *arguments], stdout=subprocess.PIPE, check=True, timeout=60).stdout.decode()


COMMANDS = re.findall(r"^  (\w+) +[a-z]", output_of("help").split("\nExit status", 1)[0], re.MULTILINE) if TOOL else []


def options_of(command):
    """{option: whether it has an argument} as the help has them."""
    rows = re.findall(r"^  (?:-\w,|   ) --([\w-]+)( [A-Z]+)?", output_of("help", command), re.MULTILINE)
    return {name: bool(argument) for name, argument in rows}


def keys_of(value):
    """The keys of an object, and of all objects in it."""
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    return set(value).union(*map(keys_of, value.values())) if isinstance(value, dict) else set()


class Manual(unittest.TestCase):
    def test_commands(self):
        self.assertGreater(len(COMMANDS), 17)
        main = (PAGES / "cdacq.1").read_text()
        for command in COMMANDS:
            self.assertIn(f".BR cdacq\\-{command} (1)\n", main)
            self.assertTrue((PAGES / f"cdacq-{command}.1").exists(), command)
            for line in output_of("help", command).partition("\nExit status:\n")[2].splitlines():
                self.assertRegex(line, r"^ {2,3}\d+  .{1,95}$", command)
        texts = {text.stem for text in (SOURCE / "docs/man").glob("*.man")}
        self.assertEqual(texts - set(COMMANDS), {"cdacq", "options"})

    def test_every_option_has_its_place(self):
        every = set()
        for command in COMMANDS:
            options = options_of(command)
            every |= options.keys()
            self.assertTrue({"help", "version"} <= options.keys(), command)
            page = (PAGES / f"cdacq-{command}.1").read_text().replace("\\-", "-")
            self.assertEqual(re.findall(r"^\.TP\n\\fB(?:-\w\\fR, \\fB)?--([\w-]+)\\fR", page, re.MULTILINE), list(options))
        texts = re.findall(r"^@ ([\w-]+)$", (SOURCE / "docs/man/options.man").read_text(), re.MULTILINE)
        self.assertEqual(set(texts) - every, set())

    def test_commands_take_what_their_help_has(self):
        """All at once, but those that print a text and exit."""
        values = {"names": "il", "r2r": "all", "color": "auto"}
        folder = tempfile.TemporaryDirectory()  # `filter --folded` and `ps` write the file of --output
        self.addCleanup(folder.cleanup)
        for command in COMMANDS:
            given = [word for option, argument in options_of(command).items() if option not in ("help", "version")
                     for word in [f"--{option}", values.get(option, "1")][:1 + argument]]
            done = subprocess.run([TOOL, command, *given], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                  stdin=subprocess.DEVNULL, check=False, timeout=60, cwd=folder.name)
            self.assertNotRegex(done.stderr, rb"does not take|unknown|expected|not a ", (command, given))

    def test_keys_of_json_have_their_place(self):
        """On the page of the command, or on that of another which it refers to."""
        core, crash = SOURCE / "tests/fixtures/net10-x64/core", SOURCE / "tests/fixtures/crash-net10-x64/core"
        ip, folder = "7f91e58aed0f", tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        jitdump = f"{folder.name}/dump"
        subprocess.run([TOOL, "jitdump", core, "-o", jitdump], stderr=subprocess.DEVNULL, check=False, timeout=60)
        for command, others, *lines in (
                ("ip2method", (), [core, ip, "0"]), ("inspect", ("ip2method",), [core, ip, "0"]), ("info", (), [core], [crash]),
                ("methods", ("ip2method",), [core, "*Outer*"]), ("stack", ("ip2method",), [crash]),
                ("report", ("stack", "ip2method"), [crash], ["--signature", crash]), ("ps", (), []),
                ("snapshot", (), ["--stacks", crash, "-o", f"{folder.name}/core"]), ("bundle", (), [core, folder.name]),
                ("records", (), [jitdump, "--at", "10"])):
            page = " ".join((PAGES / f"cdacq-{name}.1").read_text() for name in (command, *others))
            words = set(re.findall(r"\w+", page.replace("\\-", "-").replace("\\fB", " ").replace("\\fR", " ")))
            for line in lines:
                done = subprocess.run([TOOL, command, "--json", *map(str, line)], stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=False, timeout=60)
                objects = [json.loads(text) for text in done.stdout.splitlines()]
                self.assertTrue(objects or command == "ps", (command, line))
                self.assertEqual(keys_of(objects) - words, set(), (command, line))

    @unittest.skipUnless(shutil.which("groff"), "there is no groff")
    def test_pages_have_no_faults(self):
        for page in PAGES.glob("*.1"):
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z", page], stderr=subprocess.PIPE, check=True)
            self.assertEqual(done.stderr, b"", page.name)


if __name__ == "__main__":
    unittest.main()
