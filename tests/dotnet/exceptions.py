#!/usr/bin/env python3
"""Exceptions and objects of real processes: the texts of exceptions are those that the process itself wrote, word for
word, and objects have the fields, texts and elements that the runtime's own debugger services find.

    exceptions.py [RUNTIME...]    words of lab.runtimes()

Builds and runs the program `dying`, which catches some 180 exceptions, writes the text of each, leaves a full dump,
waits and dies. Where the runtime can suspend async methods itself (.NET 11), it is compiled for that, too. It
also runs as applications without resources do, whose texts have keys in place of the framework's texts. Exit 77 (skipped) where dotnet is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure.
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
HERE = os.path.dirname(os.path.abspath(__file__))
OVERRIDDEN, INFERRED = 1, 8  # EXCEPTION_TEXT_OVERRIDDEN, EXCEPTION_TEXT_INFERRED
# Code of the program makes their texts: stored fields stand in, and the flag says so.
COMPUTED = {"Overriding", "OverridingInner", "OverridingByRow", "Namesake", "Printing", "PrintingInner", "OptionsComputed"}
# They have a number that another culture may write otherwise; this program's does not.
OF_CULTURE = {"RangeLong", "RangeDouble", "RangeNoMessage", "Negative", "AsyncVirtual"}
LEAST = 180
RUNTIME_ASYNC = 11  # the first release that suspends async methods without state machines
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
# Of the direction of text, and separators of lines.
REARRANGING = {0x061c, 0x200e, 0x200f, *range(0x2028, 0x202f), *range(0x2066, 0x206a), 0xfeff}
UNHANDLED = ["NullReference", "Async", "AsyncVoid", "OnPool", "StaticConstructor", "Aggregate", "DynamicMethods", "Unicode", "Huge"]


def _shown_character(character):
    code = ord(character)
    if character in "\t\n" or not (code < 0x20 or 0x7f <= code < 0xa0 or 0xdc80 <= code < 0xdd00 or code in REARRANGING):
        return character
    if code in REARRANGING:
        return f"\\u{{{code:04x}}}"
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def shown(words):
    """Text of the runtime as a report has it: tabs and lines stay, but not what would change a terminal."""
    return "".join(map(_shown_character, words.decode("utf-8", "surrogateescape"))).encode()


def release_of(runtime):
    return 10 if runtime == "installed" else int(runtime.partition(".")[0])


def build(work, framework, *options):
    """The options are properties of the project that are set to "on": AsyncMain, RuntimeAsync, ResourceKeys."""
    out = os.path.join(work, "-".join(["dying", framework, *options]))
    lab.run(["dotnet", "build", os.path.join(HERE, "dying"), "-c", "Release", "-o", out, "--nologo", "-v", "q",
             *[f"-p:{option}=on" for option in options],
             f"-p:DemoFramework={framework}", f"-p:BaseIntermediateOutputPath={out}-obj/"])
    return os.path.join(out, "Dying.dll")


def command_of(work, runtime, *options):
    program = build(work, f"net{release_of(runtime)}.0", *options)
    return ["dotnet", program] if runtime == "installed" else [lab.private_dotnet(work, runtime), "exec", "--fx-version", runtime, program]


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
        if b"\nUnhandled exception. " not in report or shown(words) not in report:
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


def compare(target, expected):
    """The names of exceptions whose text differs, or whose flags do."""
    questions = "".join(address + "\n" for _, address, _ in expected)
    done = subprocess.run([OBJECTS, target, "text"], input=questions.encode(), stdout=subprocess.PIPE, check=True)
    answers = list(blocks(done.stdout))
    if len(answers) != len(expected):
        return ["the number of answers"]
    wrong = []
    for (name, _, text), ((_, _, flags), answer) in zip(expected, answers):
        if (text != answer) != (name in COMPUTED) or int(flags) != expected_flags(name):
            wrong.append(name)
            print(f"--- {name}, flags {flags}\n{text.decode(errors='replace')[:2000]}\n--- instead:\n{answer.decode(errors='replace')[:2000]}")
    return wrong


def report(runtime, wrong, what):
    print(f"  {'FAIL' if wrong else 'ok  '} {runtime}{what}{': ' if wrong else ''}{', '.join(wrong)}", flush=True)
    return not wrong


def compare_all(work, command, runtime):
    """Whether all texts are right in the running process, in its full dump and in the kernel's core."""
    lab.refuse_piped_cores()
    process = subprocess.Popen(command + ["all"], cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               preexec_fn=lab.allow_cores)
    try:
        while process.stdout.readline() not in (b"ready\n", b""):
            pass
        with open(os.path.join(work, "exceptions.txt"), "rb") as file:
            expected = [(words[0], words[1], text) for words, text in blocks(file.read())]
        live = compare(str(process.pid), expected)
        process.communicate(timeout=300)
    finally:
        process.kill()
    kernel, = glob.glob(os.path.join(work, "core*"))
    good = len(expected) >= LEAST
    for kind, wrong in ("live", live), ("kernel", compare(kernel, expected)), ("createdump", compare(os.path.join(work, "full.core"), expected)):
        good &= report(runtime, wrong, f" {kind}: {len(expected)} exceptions")
    os.remove(kernel)
    return good


def test_runtime(runtime, every, services):
    work = tempfile.mkdtemp(prefix="cdacq-exceptions-")
    try:
        command = command_of(work, runtime)
        good = compare_all(work, command, runtime)
        said, differing = object_judge.judge(services, os.path.join(work, "full.core"))
        good &= report(runtime, differing, ": " + said)
        good &= report(runtime, die_unhandled(work, command), f": the last words of {len(UNHANDLED)} unhandled exceptions")
        if every:
            keys = command_of(work, runtime, "ResourceKeys")
            good &= compare_all(work, keys, runtime + " with keys of resources")
            good &= report(runtime, die_unhandled(work, keys), f": the last words of {len(UNHANDLED)} unhandled exceptions, with keys of resources")
        if every:  # deaths.py compares those of the runtimes
            good &= report(runtime, die_otherwise(work, command), f": {len(SIGNATURES)} signatures")
        if release_of(runtime) >= RUNTIME_ASYNC:
            good &= compare_all(work, command_of(work, runtime, "RuntimeAsync"), runtime + " without state machines")
        return good
    finally:
        shutil.rmtree(work)


def main():
    try:
        if shutil.which("dotnet") is None:
            raise lab.Skip("dotnet is not installed")
        with tempfile.TemporaryDirectory(prefix="cdacq-clrmd-") as work:
            services = stack_run.Services(work)
            try:
                return 0 if all([test_runtime(runtime, bool(sys.argv[1:]) or lab.is_newest(runtime), services) for runtime in lab.runtimes(sys.argv[1:])]) else 1
            finally:
                services.close()
    except lab.Skip as reason:
        print(f"skipped: {reason}")
        return 1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED


if __name__ == "__main__":
    sys.exit(main())
