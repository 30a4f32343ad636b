#!/usr/bin/env python3
"""
Arguments and locals of the frames of a stack: a program stops in methods of each kind and writes what their variables
hold. cdacq stack --variables has to say the same. In unoptimised code, every variable has to be there. In optimised code
none may be wrong, and what is not known has to say so.

    variables.py [RUNTIME...]         words of lab.runtimes()
    variables.py --deep [RUNTIME...]  compares 100,000 optimised frames of one core with the runtime's own services, too

Where both have a word of a variable, the words are equal: in 115,274 frames of .NET 11, all 161,306; in 115,109 of .NET 8,
all 161,233. The services look a variable up for the return address, not for the call, so they have a word of a few that
are not known here.

Exit 77 (skipped) where dotnet is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure.
"""

import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import dac
import lab

sys.path.insert(0, os.path.join(lab.HERE, "..", "..", "python"))
import cdacq  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
READY_SECONDS = 240
SHOWN = 12
THREADS, DEPTH = "10", "300"  # of methods that call each other
DEEP_THREADS, DEEP_DEPTH, DEEP_FRAMES = "50", "1100", 100000
# Name, configuration, environment, and whether the code is unoptimised: then no variable may be missing.
WAYS = [
    ("Debug", "Debug", {}, True),
    ("Release, optimised", "Release", {"DOTNET_TieredCompilation": "0"}, False),
    ("Release, tiered", "Release", {}, False),
    ("ReadyToRun", "Release", {}, False),
]


def text_of(found):
    """The value of a variable or a field, as the program writes it."""
    if "fields" in found:
        return {field["name"]: text_of(field) for field in found["fields"]}
    value = found.get("value")
    if "object_type" in found:
        return f"object:{found['object_type']}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is None or isinstance(value, str) else str(value)


def equal(found, expected):
    if isinstance(expected, dict):
        # A by-ref struct has fields that the program cannot write.
        return isinstance(found, dict) and all(name in found and equal(found[name], value) for name, value in expected.items())
    if found == expected or found is None or expected is None or isinstance(found, dict):
        return found == expected
    try:
        return float(found) == float(expected)
    except ValueError:
        return re.sub(r"\.0+$", "", found) == re.sub(r"\.0+$", "", expected)


def is_frame_of(method, frame):
    return re.search(rf"(\b|<){re.escape(method)}([<(]|>d__)", frame.get("method") or "") is not None


class Judge:
    def __init__(self):
        self.right = self.missing = 0
        self.wrong = []
        self.absent = []
        self.extra = collections.Counter()

    def frame(self, what, frame, expected, strict):
        found = collections.defaultdict(list)
        for variable in frame.get("variables") or []:
            found[variable["name"]].append(variable)
        for right in expected:
            name = f"{what}: {right['Name']}"
            own = found.pop(right["Name"], [])
            if right["Name"] == "this" and len(own) > 1:
                own = own[:1]
            if len(own) != 1 or own[0]["state"] == "optimized out":
                self.missing += 1
                self.absent.append(f"{name}: {len(own)} found, {own and own[0]['state']}")
                continue
            variable = own[0]
            if variable["state"] != "known" or "problem" in variable:
                self.missing += 1
                self.absent.append(f"{name}: {variable.get('problem')}")
                continue
            value = text_of(variable)
            if not equal(value, right["Value"]):
                self.wrong.append(f"{name}: {value!r} is not {right['Value']!r} ({variable})")
            elif variable["type"] != right["Type"] and (strict or not is_parameter_name(variable["type"])):
                self.wrong.append(f"{name}: its type {variable['type']} is not {right['Type']}")
            else:
                self.right += 1
        for name in found:
            self.extra[f"{what}: {name}"] += 1


def is_parameter_name(name):
    """Of a type parameter whose argument shared code does not know."""
    return re.search(r"\b[TU]\b", name or "") is not None


class Places:
    """
    `inspect` says where the variables of the frames of `stack` are: every one that has a value is somewhere; those of
    unoptimised code all are; and the distance of two places on the stack is that of their addresses in the frame.
    """

    def __init__(self, target, frames):
        frames = [frame for frame in frames if frame.get("variables") and frame["ip"]]
        ips = {frame["ip"]: int(frame["ip"], 16) - (frame["frame"] != 0) for frame in frames}
        done = subprocess.run([TOOL, "inspect", "--json", target], input="".join(f"{ip:x}\n" for ip in ips.values()),
                              capture_output=True, encoding="utf-8", check=False, timeout=300)
        places = dict(zip(ips, map(json.loads, done.stdout.splitlines()), strict=True))
        self.wrong, self.count = [], 0
        for frame in frames:
            self.frame(frame, places[frame["ip"]]["variables"] or [])

    def frame(self, frame, places):
        variables = {(one["name"], one["number"]): one for one in frame["variables"] if one["kind"] != "captured"}
        bases = collections.defaultdict(set)
        for place in places:
            variable = variables.get((place["name"], place["number"]))
            if not variable:
                continue  # a closure has it
            self.count += 1
            where = f"{frame['method']}: {place['name']} at {place['location']}, which is {variable['state']}"
            if variable["state"] == "known" and not place["location"]:
                self.wrong.append(where)
            # Without a frame, shared code has no type arguments.
            if variable["type"] != place["type"] != re.sub(r"\[.*\]", "", variable["type"]) and not is_parameter_name(place["type"]):
                self.wrong.append(f"{where}: {variable['type']} is not {place['type']}")
            found = re.fullmatch(r"(r[bs]p)(?:([+-])0x([0-9a-f]+))?", place["location"] or "")
            if found and variable["state"] == "known" and variable.get("address") and not (variable["type"] or "&").endswith("&"):
                offset = int(found[3] or "0", 16) * (-1 if found[2] == "-" else 1)
                bases[found[1]].add(int(variable["address"], 16) - offset)
        self.wrong += [f"{frame['method']}: {base} would be {values}" for base, values in bases.items() if len(values) > 1]


def judge(note, label, target, truth, is_unoptimised):
    done = subprocess.run([TOOL, "stack", "--variables", "--json", target], capture_output=True, encoding="utf-8", check=False,
                          timeout=300)
    by_thread = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        frame = json.loads(line)
        by_thread[frame["tid"]].append(frame)
    places = Places(target, [frame for frames in by_thread.values() for frame in frames])
    note(f"{label}: {places.count} places", places.count > 40 and not places.wrong, "\n      ".join(places.wrong[:SHOWN]))
    judged = Judge()
    entries = collections.defaultdict(list)
    for entry in truth:
        entries[entry["thread"], entry["method"]].append(entry["variables"])
    for (tid, method), expected in entries.items():
        frames = [frame for frame in by_thread[tid] if is_frame_of(method, frame)]
        if method in ("InCatch", "InFinally"):
            frames = frames[:1]
        if len(frames) != len(expected):
            judged.absent.append(f"{method}: {len(frames)} frames: {[frame.get('method') for frame in by_thread[tid]]}")
        for frame, variables in zip(frames, reversed(expected)):
            judged.frame(method, frame, variables, is_unoptimised)
    details = [f"{judged.right} right, {judged.missing} not known, exit {done.returncode} {done.stderr.strip()}"]
    details += [f"wrong: {line}" for line in judged.wrong[:SHOWN]]
    if is_unoptimised:
        details += [f"missing: {line}" for line in judged.absent[:SHOWN]]
    fine = not judged.wrong and judged.right > 40 and not (is_unoptimised and judged.absent)
    note(f"{label}: {judged.right} variables right, {judged.missing} not known", fine, "\n      ".join(details))
    return judged


class Words:
    """The raw words of the variables of a core, compared with those that the runtime's services give."""

    def __init__(self, core, services):
        self.counts = collections.Counter()
        self.wrong = []
        self.memory = dac.Core(core)
        with cdacq.open(core) as target:
            tids = [thread.tid for thread in target.threads() if thread.thread]
            told = dict(zip(tids, dac.ask("frames", services, core, tids), strict=True))
            for thread in target.threads():
                if told.get(thread.tid):
                    self.thread(thread.frames(variables=True, awaiting=False).items, told[thread.tid])

    def thread(self, frames, told):
        theirs = collections.defaultdict(list)
        for frame in told:
            theirs[frame["ip"]].append(frame)
        for frame in frames:
            if not frame.is_managed or frame.variables is None or not theirs[frame.pc]:
                self.counts["frames that are not there"] += frame.is_managed and frame.variables is not None
                continue
            found = theirs[frame.pc].pop(0)
            if found["sp"] != frame.sp:
                self.wrong.append(f"{frame.name}: the stack pointer is {frame.sp:#x}, not {found['sp']:#x}")
                continue
            self.counts["frames"] += 1
            for variable in frame.variables:
                if variable.kind != cdacq.VariableKind.CAPTURED:
                    self.variable(frame, variable, found)

    def variable(self, frame, variable, found):
        has_this = any(one.kind == cdacq.VariableKind.THIS for one in frame.variables)
        index = variable.number + (variable.kind == cdacq.VariableKind.PARAMETER and has_this)
        words = found["local" if variable.kind == cdacq.VariableKind.LOCAL else "argument"]
        word = words[index] if index < len(words) else None
        if not variable.value or not word:
            self.counts["of one alone" if word or variable.value else "of none"] += 1
            return
        here, there = self.bytes_of(variable.value, len(word["bytes"]) // 2), bytes.fromhex(word["bytes"])
        if here and here == there[:len(here)]:
            self.counts["equal"] += 1
        else:
            self.wrong.append(f"{frame.name} at {frame.pc:#x}: {variable.name}: {here.hex()} is not {there.hex()}")

    def bytes_of(self, value, size):
        size = min(size, value.width or size)
        if value.address:
            return self.memory.read(value.address, size)
        return (value.bits & (1 << 64) - 1).to_bytes(8, "little")[:size]


def judge_words(note, label, core, services, frames):
    words = Words(core, services)
    counts = ", ".join(f"{count} {what}" for what, count in sorted(words.counts.items()))
    note(f"{label}, words of the services: {counts}", not words.wrong and words.counts["frames"] >= frames and words.counts["equal"],
         "\n      ".join(words.wrong[:SHOWN]))


def compiled_ahead(work, command, version):
    """The command line of a copy of the program that crossgen2 has compiled."""
    program = command[-1]
    copy = os.path.join(work, "ahead-" + version)
    shutil.copytree(os.path.dirname(program), copy)
    lab.crossgen2(work, version)(program, "-o", os.path.join(copy, os.path.basename(program)))
    return [*command[:-1], os.path.join(copy, os.path.basename(program))]


def run_deep(version, work, note):
    """100,000 frames, by the program's log and by the services."""
    command = lab.program_command(work, "variables", version, "Release")
    truth_file = os.path.join(work, "truth.txt")
    with lab.running_program([*command, truth_file, DEEP_THREADS, DEEP_DEPTH], work, {"DOTNET_TieredCompilation": "0"},
                             READY_SECONDS) as target:
        core = target.createdump("full")
        services = os.path.join(target.runtime_directory(), "libmscordaccore.so")
    judge_words(note, f"{version}, deep", core, services, DEEP_FRAMES)
    judge(note, f"{version}, deep", core, lab.read_json_lines(truth_file), False)
    os.remove(core)


def run(version, work, note, ways):
    for name, configuration, environment, is_unoptimised in ways:
        folder = tempfile.mkdtemp(dir=work)
        command = lab.program_command(work, "variables", version, configuration)
        if name == "ReadyToRun":
            command = compiled_ahead(work, command, version)
        truth_file = os.path.join(folder, "truth.txt")
        with lab.running_program([*command, truth_file, THREADS, DEPTH], folder, environment, READY_SECONDS) as target:
            truth = lab.read_json_lines(truth_file)
            judge(note, f"{version}, {name}, live", str(target.pid), truth, is_unoptimised)
            core = target.createdump("full")
            judge(note, f"{version}, {name}, full core", core, truth, is_unoptimised)
            if environment:  # optimised
                judge_words(note, f"{version}, {name}, full core", core,
                            os.path.join(target.runtime_directory(), "libmscordaccore.so"), 5000)
            os.remove(core)


def main():
    failed = []

    def note(what, right, details=""):
        print(f"  {'ok' if right else 'WRONG'}   {what}{'' if right else ': ' + details}", flush=True)
        if not right:
            failed.append(what)

    with tempfile.TemporaryDirectory(prefix="cdacq-variables-") as work:
        is_deep = sys.argv[1:2] == ["--deep"]
        for version in lab.runtimes(sys.argv[1 + is_deep:]):
            if is_deep:
                run_deep(version, work, note)
            else:
                run(version, work, note, WAYS)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except lab.Skip as reason:
        print(f"variables.py: skipped: {reason}")
        sys.exit(1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED)
