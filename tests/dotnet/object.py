#!/usr/bin/env python3
"""
Objects of every kind by their addresses: a program makes them and writes by reflection what they are. cdacq object has
to say the same of the process, of a kernel core and of a core by createdump: types, every field with its value, what
arrays and collections contain.

    object.py [RUNTIME...]    words of lab.runtimes()

Exit 77 (skipped) where dotnet is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure.
"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile

import lab

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
SHOWN = 6


class Comparison:
    """What was compared, and what differs."""

    def __init__(self):
        self.values = 0
        self.wrong = []

    def expect(self, what, found, expected):
        self.values += 1
        if isinstance(found, float) and isinstance(expected, (int, float)) and not isinstance(expected, bool):
            equal = math.isclose(found, expected, rel_tol=1e-15) or found == expected
        else:
            equal = type(found) is type(expected) and found == expected
        if not equal:
            self.wrong.append(f"{what}: {found!r} is not {expected!r}")

    def value(self, what, found, expected):
        if "fields" in expected:
            self.fields(what, found.get("fields"), expected["fields"])
            return
        self.expect(what, normal(found.get("value")), normal(expected["value"]))
        if "object_type" in expected:
            self.expect(f"{what}, its type", found.get("object_type"), expected["object_type"])
        if "problem" in found:
            self.wrong.append(f"{what}: {found['problem']}")

    def fields(self, what, found, expected):
        if found is None or len(found) != len(expected):
            self.wrong.append(f"{what}: {found and [field['name'] for field in found]}, not {[field['name'] for field in expected]}")
            return
        by_name = {(field["declared_by"], field["name"]): field for field in found}
        for field in expected:
            name = f"{what}.{field['name']}"
            if (field["declared_by"], field["name"]) not in by_name:
                self.wrong.append(f"{name} of {field['declared_by']}: missing among {list(by_name)}")
                continue
            own = by_name[field["declared_by"], field["name"]]
            self.expect(f"{name}, its type", own["type"], field["type"])
            self.value(name, own, field)

    def items(self, what, found, expected):
        own = found.get("elements", found.get("items"))
        if own is None or found["count"] != len(expected) or len(own) != len(expected):
            self.wrong.append(f"{what}: {own}, not {expected}")
            return
        if "concurrent" in what:
            own, expected = (sorted(items, key=lambda item: item["key"]["value"]) for items in (own, expected))
        for number, (item, right) in enumerate(zip(own, expected)):
            if "key" in right:
                self.value(f"{what}[{number}], its key", item["key"], right["key"])
            self.value(f"{what}[{number}]", item, right)

    def object(self, found, expected):
        what = expected["name"]
        self.expect(f"{what}, its address", found.get("address"), expected["address"])
        if "error" in found:
            self.wrong.append(f"{what}: {found['error']}")
            return
        self.expect(f"{what}, its type", found["type"], expected["type"])
        self.fields(what, found["fields"], expected["fields"])
        if "value" in expected:
            self.expect(what, found.get("value"), expected["value"])
        if "boxed" in expected:
            self.value(what, found["boxed"], expected["boxed"])
        if "items" in expected:
            self.items(what, found, expected["items"])
        if "method" in expected:
            self.expect(f"{what}, its method", found.get("method", "").split("(")[0], expected["method"])


def normal(value):
    """A TimeSpan with the zeros that its text leaves out."""
    if isinstance(value, str) and re.fullmatch(r"-?(\d+\.)?\d\d:\d\d:\d\d", value):
        return value + ".0000000"
    return value


def ask(target, truth, *options):
    addresses = [item["address"] for item in truth]
    done = subprocess.run([TOOL, "object", *options, target, *addresses], capture_output=True, encoding="utf-8", check=False, timeout=300)
    return done


def judge(note, label, target, truth):
    done = ask(target, truth, "--json", "--all")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    comparison = Comparison()
    if len(found) != len(truth):
        comparison.wrong.append(f"{len(found)} answers: {done.stderr}")
    for item, expected in zip(found, truth):
        comparison.object(item, expected)
    comparison.expect("the exit code", done.returncode, 0)
    note(f"{label}: {comparison.values} values of {len(found)} objects", not comparison.wrong,
         "\n      ".join([f"{len(comparison.wrong)} differ", *comparison.wrong[:SHOWN]]) if comparison.wrong else "")


def judge_text(note, label, target, truth):
    """One bad address never takes the answers about the others."""
    first = truth[0]["address"]
    done = subprocess.run([TOOL, "object", target, first, "0x10", f"{int(first, 16) + 8:x}", "zebra", first], capture_output=True,
                          encoding="utf-8", check=False, timeout=300)
    lines = done.stdout.splitlines()
    heads = [line for line in lines if not line.startswith(" ")]
    errors = [line for line in heads if " ? [error] " in line]
    note(f"{label}: bad addresses", done.returncode == 1 and len(heads) == 5 and len(errors) == 3 and heads[0] == heads[4],
         f"exit {done.returncode}: {heads}")
    done = ask(target, truth)
    note(f"{label}: text", done.returncode == 0 and sum(not line.startswith(" ") for line in done.stdout.splitlines()) == len(truth)
         and '= "' not in done.stdout and "\u202e" not in done.stdout, f"exit {done.returncode} {done.stderr}")


def run(version, work, note):
    folder = tempfile.mkdtemp(dir=work)
    truth_file = os.path.join(folder, "truth.txt")
    with lab.running_program([*lab.program_command(work, "objects", version), truth_file], folder) as target:
        truth = lab.read_json_lines(truth_file)
        judge(note, f"{version}, live", str(target.pid), truth)
        judge_text(note, f"{version}, live", str(target.pid), truth)
        for kind in ("full", "heap"):
            core = target.createdump(kind)
            judge(note, f"{version}, {kind} core", core, truth)
            os.remove(core)
        try:
            core = target.kernel_core()
        except lab.Skip as reason:
            print(f"  {version}, kernel core: skipped: {reason}")
            return
        judge(note, f"{version}, kernel core", core, truth)
        judge_text(note, f"{version}, kernel core", core, truth)
        os.remove(core)


def main():
    failed = []

    def note(what, right, details=""):
        print(f"  {'ok' if right else 'WRONG'}   {what}{'' if right else ': ' + details}", flush=True)
        if not right:
            failed.append(what)

    with tempfile.TemporaryDirectory(prefix="cdacq-object-") as work:
        for version in lab.runtimes(sys.argv[1:]):
            run(version, work, note)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except lab.Skip as reason:
        print(f"object.py: skipped: {reason}")
        sys.exit(1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED)
