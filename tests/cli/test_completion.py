"""Completion in real shells: bash, and zsh and fish where they are installed."""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest

from test_manual import COMMANDS, options_of

TOOL = os.environ.get("CDACQ_TOOL")
SCRIPTS = pathlib.Path(os.environ.get("CDACQ_SOURCE_DIR", ".")).resolve() / "contrib/completion"
ENVIRONMENT = {**os.environ, "PATH": f"{os.path.dirname(TOOL or '')}:{os.environ['PATH']}", "TERM": "dumb", "LC_ALL": "C.UTF-8",
               "INPUTRC": "/dev/null"}
BASH = """
source "$1/cdacq.bash"
while IFS= read -r line; do
    COMP_WORDS=($line); [[ $line == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _cdacq
    printf '%s\\t' "${COMPREPLY[@]}"; echo
done
"""


def in_bash(*lines, **options):
    """What each of these lines can be completed to."""
    done = subprocess.run(["bash", "--norc", "-c", BASH, "bash", SCRIPTS], input="".join(f"cdacq {line}\n" for line in lines),
                          stdout=subprocess.PIPE, env=ENVIRONMENT, check=True, timeout=120, encoding="utf-8", **options)
    return [[word for word in line.split("\t") if word] for line in done.stdout.splitlines()]


def in_fish(line, **options):
    done = subprocess.run(["fish", "--no-config", "-c", f"source {SCRIPTS}/cdacq.fish; complete -C 'cdacq {line}'"],
                          stdout=subprocess.PIPE, env=ENVIRONMENT, check=True, timeout=60, encoding="utf-8", **options)
    return [row.split("\t")[0] for row in done.stdout.splitlines()]


def as_shown(text):
    """Without colours, and with backspaces applied."""
    text = re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", text)
    while "\b" in text:
        text = re.sub(r"[^\b]?\x08", "", text, count=1)
    return text


def type_in(shell, setup, typed, expected, cwd):
    """Types on a terminal, as a person does; returns what the terminal shows, until `expected` is there."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(cwd)
        os.execvpe(shell[0], shell, ENVIRONMENT)
    shown = ""
    try:
        for text, until in [(f"PS1='ready''> '; {setup}\n", "ready> "), (typed, expected)]:
            os.write(terminal, text.encode())
            start, end = len(shown), time.monotonic() + 30
            while not re.search(until, as_shown(shown[start:])) and time.monotonic() < end:
                if select.select([terminal], [], [], 1)[0]:
                    shown += os.read(terminal, 65536).decode(errors="replace")
    finally:
        os.write(terminal, b"\x03\x04")
        os.close(terminal)
        os.waitpid(child, 0)
    return as_shown(shown)


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        root = pathlib.Path(cls.folder.name)
        (root / "my cores").mkdir()
        for name in ("a.core", "my cores/b"):
            (root / name).write_bytes(b"\x7fELF\2\1\1" + bytes(9) + b"\4\0" + bytes(46))
        (root / "d:e").mkdir()
        shutil.copy(root / "a.core", root / "d:e" / "f:1:2")
        (root / "c.core.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(60))
        (root / "notes.txt").write_bytes(b"text" * 16)
        (root / "program").write_bytes(b"\x7fELF\2\1\1" + bytes(9) + b"\2\0" + bytes(46))

    def test_every_option_of_every_command(self):
        for command, words in zip(COMMANDS, in_bash(*[f"{command} --" for command in COMMANDS])):
            self.assertEqual(set(words), {f"--{option}" for option in options_of(command)}, command)
            self.assertEqual(len(words), len(set(words)), command)

    def test_bash(self):
        lines = ["", "re", "--json rec", "help st", "stack --names=s", "stack --names = s", "stack --names il -", "nonsense ",
                 "methods --r2r ", "info ", "info a", "symfs a.core ", "verify a.core n", "info -o n", "ip2method a.core ",
                 "info my"]
        words = dict(zip(lines, in_bash(*lines, cwd=self.folder.name)))
        pids = {word for word in words["info "] if word.isdigit()}
        self.assertEqual(set(words[""]), set(COMMANDS))
        self.assertEqual(sorted(words["re"]), ["record", "records", "report"])
        self.assertEqual(sorted(words["--json rec"]), ["record", "records"])
        self.assertEqual(words["help st"], ["stack"])
        self.assertEqual(words["stack --names=s"], ["--names=sos", "--names=source"])  # bash would split it before
        self.assertEqual(words["stack --names = s"], ["sos", "source"])
        self.assertIn("-o", words["stack --names il -"])
        self.assertEqual(words["methods --r2r "], ["prepared", "all"])
        self.assertEqual(set(words["info "]) - pids, {"a.core", "c.core.zst", "d:e", "my cores"})
        self.assertEqual(words["info a"], ["a.core"])
        self.assertEqual(set(words["symfs a.core "]), {"d:e", "my cores"})
        self.assertEqual(words["verify a.core n"], ["notes.txt"])
        self.assertEqual(words["info -o n"], ["notes.txt"])
        self.assertEqual(words["ip2method a.core "], [])

    def test_bash_on_a_terminal(self):
        shown = type_in(["bash", "--norc", "--noprofile", "-i"], f"source {SCRIPTS}/cdacq.bash",
                        "cdacq repo\t--bri\tmy\t\t && echo", r"my\\ cores/b", self.folder.name)
        self.assertRegex(shown, r"cdacq report --brief my\\ cores/b")
        for typed, expected in [("d", "d\\\\:e/"), ("d:", "d:e/"), ("d:e/", "d:e/f\\\\:1\\\\:2 "), ("d:e/f:1", "d:e/f:1\\\\:2 "),
                                ("a.core d:e/f:", "a.core d:e/f:1\\\\:2 "), ("-o d:e/f:", "-o d:e/f:1\\\\:2 ")]:
            shown = type_in(["bash", "--norc", "--noprofile", "-i"], f"source {SCRIPTS}/cdacq.bash",
                            f"cdacq info {typed}\tEND", "END", self.folder.name)
            self.assertRegex(shown, f"cdacq info {expected}END")

    @unittest.skipUnless(shutil.which("fish"), "there is no fish")
    def test_fish(self):
        self.assertEqual(in_fish("rec"), ["records"])
        self.assertEqual(in_fish("stack --names=s"), ["--names=sos", "--names=source"])
        self.assertEqual(in_fish("stack --names s"), ["sos", "source"])
        self.assertEqual(in_fish("info a", cwd=self.folder.name), ["a.core"])
        self.assertEqual(in_fish("info -o n", cwd=self.folder.name), ["notes.txt"])
        self.assertEqual(in_fish("info --output=n", cwd=self.folder.name)[-1].rsplit("=")[-1], "notes.txt")
        self.assertEqual(in_fish("symfs a.core ", cwd=self.folder.name), ["d:e/", "my cores/"])
        self.assertEqual([word for word in in_fish("stack --") if word[2:] not in options_of("stack")], [])

    @unittest.skipUnless(shutil.which("zsh"), "there is no zsh")
    def test_zsh(self):
        setup = f"PROMPT='ready''> '; fpath=({SCRIPTS} $fpath); autoload -U compinit; compinit -D -u"
        for typed, expected in [("cdacq repo\t--bri\ta\t", r"report --brief a\.core"),
                                ("cdacq --names=so\t\t", "--names=source"), ("cdacq info -o no\t", r"-o notes\.txt"),
                                ("cdacq info my\tb\t", r"my\\ cores/b")]:
            shown = type_in(["zsh", "-f", "-i"], setup, typed, expected, self.folder.name)
            self.assertRegex(shown, expected)


if __name__ == "__main__":
    unittest.main()
