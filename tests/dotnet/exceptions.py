#!/usr/bin/env python3
"""Exceptions of real processes: their texts are those that the process itself wrote, word for word.

    exceptions.py [RUNTIME...]    "installed" or the version of a runtime pack; default: those in CDACQ_RUNTIMES, else all

Builds and runs the program `dying`, which catches some 120 exceptions, writes the text of each, leaves a full dump and dies.
Exit 77 (skipped) where dotnet is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure.
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

import lab

OBJECTS = os.environ.get("CDACQ_OBJECTS", "objects")
RUNTIMES = ["installed", "9.0.22", "8.0.33"]
HERE = os.path.dirname(os.path.abspath(__file__))
OVERRIDDEN = 1  # EXCEPTION_TEXT_OVERRIDDEN
# Code of the program makes their texts: stored fields stand in, and the flag says so.
COMPUTED = {"Overriding", "OverridingInner", "Printing", "PrintingInner"}
LEAST = 120


def build(work, framework):
    out = os.path.join(work, "dying-" + framework)
    lab.run(["dotnet", "build", os.path.join(HERE, "dying"), "-c", "Release", "-o", out, "--nologo", "-v", "q",
             f"-p:DemoFramework={framework}", f"-p:BaseIntermediateOutputPath={out}-obj/"])
    return os.path.join(out, "Dying.dll")


def die(work, runtime):
    """Runs the program; returns the paths of its cores."""
    if runtime == "installed":
        command = ["dotnet", build(work, "net10.0")]
    else:
        command = [lab.private_dotnet(work, runtime), "exec", "--fx-version", runtime, build(work, f"net{runtime.partition('.')[0]}.0")]
    lab.refuse_piped_cores()
    with open(os.path.join(work, "log"), "w", encoding="utf-8") as log:
        subprocess.run(command + ["all"], cwd=work, stdout=log, stderr=log, check=False, timeout=300, preexec_fn=lab.allow_cores)
    kernel, = glob.glob(os.path.join(work, "core*"))
    return {"kernel": kernel, "createdump": os.path.join(work, "full.core")}


def blocks(data):
    """(words of the heading, text): each heading's last number but flags is the length of the text that follows."""
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        words = data[at:end].decode().split()
        length = int(words[2] if words[0][0].isupper() else words[1])
        yield words, data[end + 1:end + 1 + length]
        at = end + length + 2


def compare(core, expected):
    """The names of exceptions whose text differs, or whose flags do."""
    questions = "".join(address + "\n" for _, address, _ in expected)
    done = subprocess.run([OBJECTS, core, "text"], input=questions.encode(), stdout=subprocess.PIPE, check=True)
    answers = list(blocks(done.stdout))
    if len(answers) != len(expected):
        return ["the number of answers"]
    wrong = []
    for (name, _, text), ((_, _, flags), answer) in zip(expected, answers):
        if (text != answer) != (name in COMPUTED) or (int(flags) != 0) != (name in COMPUTED):
            wrong.append(name)
            print(f"--- {name}, flags {flags}\n{text.decode(errors='replace')[:2000]}\n--- instead:\n{answer.decode(errors='replace')[:2000]}")
    return wrong


def test_runtime(runtime):
    work = tempfile.mkdtemp(prefix="cdacq-exceptions-")
    try:
        cores = die(work, runtime)
        with open(os.path.join(work, "exceptions.txt"), "rb") as file:
            expected = [(words[0], words[1], text) for words, text in blocks(file.read())]
        good = len(expected) >= LEAST
        for kind, core in cores.items():
            wrong = compare(core, expected)
            print(f"  {'FAIL' if wrong else 'ok  '} {runtime} {kind}: {len(expected)} exceptions{': ' if wrong else ''}{', '.join(wrong)}", flush=True)
            good &= not wrong
        return good
    finally:
        shutil.rmtree(work)


def main():
    runtimes = sys.argv[1:] or [name for name in os.environ.get("CDACQ_RUNTIMES", "").split() if name[0].isdigit() or name == "installed"] or RUNTIMES
    try:
        return 0 if all([test_runtime(runtime) for runtime in runtimes]) else 1
    except lab.Skip as reason:
        print(f"skipped: {reason}")
        return 1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED


if __name__ == "__main__":
    sys.exit(main())
