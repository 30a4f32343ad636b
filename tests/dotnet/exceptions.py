#!/usr/bin/env python3
"""Exceptions and objects of real processes: the texts of exceptions are those that the process itself wrote, word for
word, and objects have the fields, texts and elements that the runtime's own debugger services find.

    exceptions.py [RUNTIME...]    "installed" or the version of a runtime pack;
                                  default: those in CDACQ_RUNTIMES, else all

Builds and runs the program `dying`, which catches some 120 exceptions, writes the text of each, leaves a full dump and
dies. Exit 77 (skipped) where dotnet is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure.
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

import lab
import object_judge
import stack_run

OBJECTS = os.environ.get("CDACQ_OBJECTS", "objects")
RUNTIMES = ["installed", "9.0.22", "8.0.33"]
HERE = os.path.dirname(os.path.abspath(__file__))
OVERRIDDEN, INFERRED = 1, 8  # EXCEPTION_TEXT_OVERRIDDEN, EXCEPTION_TEXT_INFERRED
# Code of the program makes their texts: stored fields stand in, and the flag says so.
COMPUTED = {"Overriding", "OverridingInner", "OverridingByRow", "Namesake", "Printing", "PrintingInner"}
# They have a number that another culture may write otherwise; this program's does not.
OF_CULTURE = {"RangeLong", "RangeDouble", "RangeNoMessage", "Negative"}
LEAST = 120
TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
# The same on every runtime. What a signature shows is in docs/man/report.man.
SIGNATURES = {
    "NullReference": "unhandled System.NullReferenceException: Dying.Box.Inner.Length < Dying.Deaths.NullReference < Dying.Program.Main",
    "OnThread": "unhandled System.InvalidOperationException: Dying.Deaths.Thrower < Dying.Deaths.<>c.<OnThread>b__",
    "Plain": "unhandled Dying.PlainException: Dying.Messages.Plain < Dying.Program.Main",
    "FailFast": "fatal: Dying.Ends.FailFast < Dying.Program.Main",
    "AccessViolation": "fatal: Dying.Ends.AccessViolation < Dying.Program.Main",
    "StackOverflow": "fatal: Dying.Ends.Overflow < Dying.Ends.StackOverflow < Dying.Program.Main",
    "OverflowOnThread": "fatal: Dying.Ends.Overflow < Dying.Ends.StackOverflow",
    "NativeFault": "SIGSEGV: memset < Dying.Ends.NativeFault < Dying.Program.Main",
    "NativeAbort": "SIGABRT: Dying.Ends.NativeAbort < Dying.Program.Main",
}
ESCAPED = {"Unicode"}  # it has characters that a terminal must not get
UNHANDLED = ["NullReference", "Async", "AsyncVoid", "OnPool", "StaticConstructor", "Aggregate", "DynamicMethods", "Unicode", "Huge"]


def build(work, framework):
    out = os.path.join(work, "dying-" + framework)
    lab.run(["dotnet", "build", os.path.join(HERE, "dying"), "-c", "Release", "-o", out, "--nologo", "-v", "q",
             f"-p:DemoFramework={framework}", f"-p:BaseIntermediateOutputPath={out}-obj/"])
    return os.path.join(out, "Dying.dll")


def command_of(work, runtime):
    if runtime == "installed":
        return ["dotnet", build(work, "net10.0")]
    return [lab.private_dotnet(work, runtime), "exec", "--fx-version", runtime, build(work, f"net{runtime.partition('.')[0]}.0")]


def die(work, command, way):
    """Dies in that way; returns the kernel's core and what the program wrote to its standard error."""
    lab.refuse_piped_cores()
    done = subprocess.run(command + [way], cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, timeout=300,
                          preexec_fn=lab.allow_cores)
    core, = glob.glob(os.path.join(work, "core*"))
    return core, done.stderr


def die_unhandled(work, command):
    """The ways whose last words are not those of the core."""
    wrong = []
    for way in UNHANDLED:
        core, words = die(work, command, way)
        done = subprocess.run([OBJECTS, core, "last"], stdout=subprocess.PIPE, check=True)
        if words not in [b"Unhandled exception. " + text + b"\n" for _, text in blocks(done.stdout)]:
            wrong.append(way)
        report = subprocess.run([TOOL, "report", "--brief", core], stdout=subprocess.PIPE, check=False).stdout
        if b"\nUnhandled exception. " not in report or (way not in ESCAPED and words not in report):
            wrong.append(way + " in the report")
        os.remove(core)
    return wrong


def die_otherwise(work, command):
    """The ways whose one line of `report --signature` is another than expected."""
    wrong = []
    for way, expected in SIGNATURES.items():
        core, _ = die(work, command, way)
        done = subprocess.run([TOOL, "report", "--signature", core], stdout=subprocess.PIPE, text=True, check=False)
        if done.stdout != expected + "\n":
            wrong.append(f"{way}: {done.stdout.strip()}")
        os.remove(core)
    return wrong


def blocks(data):
    """(words of the heading, text): each heading's last number but flags is the length of the text that follows."""
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        words = data[at:end].decode().split()
        length = int(words[2] if words[0][0].isupper() else words[1])
        yield words, data[end + 1:end + 1 + length]
        at = end + length + 2


def expected_flags(name):
    return OVERRIDDEN if name in COMPUTED else INFERRED if name in OF_CULTURE else 0


def compare(core, expected):
    """The names of exceptions whose text differs, or whose flags do."""
    questions = "".join(address + "\n" for _, address, _ in expected)
    done = subprocess.run([OBJECTS, core, "text"], input=questions.encode(), stdout=subprocess.PIPE, check=True)
    answers = list(blocks(done.stdout))
    if len(answers) != len(expected):
        return ["the number of answers"]
    wrong = []
    for (name, _, text), ((_, _, flags), answer) in zip(expected, answers):
        if (text != answer) != (name in COMPUTED) or int(flags) != expected_flags(name):
            wrong.append(name)
            print(f"--- {name}, flags {flags}\n{text.decode(errors='replace')[:2000]}\n--- instead:\n{answer.decode(errors='replace')[:2000]}")
    return wrong


def test_runtime(runtime, first, services):
    work = tempfile.mkdtemp(prefix="cdacq-exceptions-")
    try:
        command = command_of(work, runtime)
        cores = {"kernel": die(work, command, "all")[0], "createdump": os.path.join(work, "full.core")}
        with open(os.path.join(work, "exceptions.txt"), "rb") as file:
            expected = [(words[0], words[1], text) for words, text in blocks(file.read())]
        good = len(expected) >= LEAST
        for kind, core in cores.items():
            wrong = compare(core, expected)
            print(f"  {'FAIL' if wrong else 'ok  '} {runtime} {kind}: {len(expected)} exceptions{': ' if wrong else ''}{', '.join(wrong)}", flush=True)
            good &= not wrong
        os.remove(cores["kernel"])
        said, differing = object_judge.judge(services, cores["createdump"])
        print(f"  {'FAIL' if differing else 'ok  '} {runtime}: {said}{': ' if differing else ''}{', '.join(differing)}", flush=True)
        wrong = die_unhandled(work, command)
        print(f"  {'FAIL' if wrong else 'ok  '} {runtime}: the last words of {len(UNHANDLED)} unhandled exceptions{': ' if wrong else ''}{', '.join(wrong)}", flush=True)
        other = die_otherwise(work, command) if first else []  # deaths.py compares those of the runtimes
        if first:
            print(f"  {'FAIL' if other else 'ok  '} {runtime}: {len(SIGNATURES)} signatures{': ' if other else ''}{', '.join(other)}", flush=True)
        return good and not wrong and not other and not differing
    finally:
        shutil.rmtree(work)


def main():
    runtimes = sys.argv[1:] or [name for name in os.environ.get("CDACQ_RUNTIMES", "").split() if name[0].isdigit() or name == "installed"] or RUNTIMES
    try:
        if shutil.which("dotnet") is None:
            raise lab.Skip("dotnet is not installed")
        with tempfile.TemporaryDirectory(prefix="cdacq-clrmd-") as work:
            services = stack_run.Services(work)
            try:
                return 0 if all([test_runtime(runtime, i == 0, services) for i, runtime in enumerate(runtimes)]) else 1
            finally:
                services.close()
    except lab.Skip as reason:
        print(f"skipped: {reason}")
        return 1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED


if __name__ == "__main__":
    sys.exit(main())
