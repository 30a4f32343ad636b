#!/usr/bin/env python3
"""Judges entry points and kinds of stubs of a full core, by what the runtime itself keeps and says.

    precodes.py TOOL ENTRY_POINTS CORE JITDUMP

A method's temporary entry point is a precode that must lead back to its MethodDesc. Its address is read from the
core here, by offsets of this file and with no help from the library: MethodDesc.CodeData, or, on .NET 8, in front of
the MethodDescChunk. The jitdump (DOTNET_PerfMapStubGranularity=2) names every stub that was made: each must be of that
kind, and each precode among them must lead to a MethodDesc. It does not name stubs that count calls; these are found by
their code.
"""

import bisect
import json
import mmap
import re
import struct
import subprocess
import sys
from collections import Counter

from jitdump import read_loads

CODE_DATA = 8  # of MethodDesc, since .NET 9
TEMPORARY_ENTRY_POINT, TEMPORARY_ENTRY_POINT_11 = 8, 16  # of MethodDescCodeData, .NET 9 and 10, and 11
CHUNK, CHUNK_COUNT, CHUNK_INDEX, ALIGNMENT, PRECODE_SIZE = 24, 17, 2, 8, 24  # .NET 8
PRECODES = {"FixupPrecode": ["FixupPrecode"], "StubPrecode": ["StubPrecode"], "PInvokeImportPrecode": ["StubPrecode"],
            "PRECODE_STUB": ["FixupPrecode", "StubPrecode"]}  # .NET 8 gives all of a chunk's this name
STUBS = {"GenerateDispatchStub": ["VSD_DispatchStub"], "GenerateResolveStub": ["VSD_ResolveStub"],
         "GenerateLookupStub": ["VSD_LookupStub"], "GenerateVTableCallStub": ["VSD_VTableStub"],
         "InstantiatingStub": ["StubLinkStub"], "UnboxingStub": ["StubLinkStub"], "DelegateShuffleThunk": ["StubLinkStub"],
         "JIT_CopiedWriteBarriers": ["JIT_CopiedWriteBarriers"]}
STUBS_11 = {**STUBS, "InstantiatingStub": ["WrapperStub"], "UnboxingStub": ["WrapperStub"], "DelegateShuffleThunk": ["ShuffleThunk"]}


PAGE = 1 << 14  # of stubs with their data in the next page
COUNTING = bytes.fromhex("488b05f93f000066ff08")  # mov rax, [rip + 0x3ff9]; dec word [rax]


class Core:
    """The memory of a little-endian 64-bit core."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        table, size, count = *struct.unpack_from("<Q", self.data, 32), *struct.unpack_from("<HH", self.data, 54)
        headers = (struct.unpack_from("<IIQQQQQQ", self.data, table + i * size) for i in range(count))
        self.segments = sorted((address, length, offset) for kind, _, offset, address, _, length, *_ in headers
                               if kind == 1 and length)
        self.begins = [segment[0] for segment in self.segments]

    def read(self, address, size):
        """A number; None where it is missing. (None of what is asked for straddles segments.)"""
        address_of, length, offset = self.segments[max(bisect.bisect_right(self.begins, address) - 1, 0)]
        at = address - address_of
        return int.from_bytes(self.data[offset + at:offset + at + size], "little") if 0 <= at <= length - size else None

    def pointer(self, address):
        return self.read(address, 8) if address else None


def temporary_entry_points(core, release, method_desc):
    """The precodes of which one is the method's: its own, or, on .NET 8, those of its chunk."""
    if release != "8.0":
        offset = TEMPORARY_ENTRY_POINT if release in ("9.0", "10.0") else TEMPORARY_ENTRY_POINT_11
        entry = core.pointer((core.pointer(method_desc + CODE_DATA) or 0) + offset)
        return [entry] if entry else []
    chunk = method_desc - core.read(method_desc + CHUNK_INDEX, 1) * ALIGNMENT - CHUNK
    first = core.pointer(chunk - 8)
    return [first + i * PRECODE_SIZE for i in range(core.read(chunk + CHUNK_COUNT, 1) + 1)] if first else []


def lines_of(command, questions):
    done = subprocess.run(command, input="".join(f"{question:x}\n" for question in questions), stdout=subprocess.PIPE,
                          encoding="utf-8", check=False)
    lines = done.stdout.splitlines()
    if len(lines) != len(questions):
        sys.exit(f"precodes.py: {len(questions)} questions, {len(lines)} answers, exit {done.returncode}")
    return lines


def judge_methods(tool, entry_points, path, release, counts):
    """Every method's temporary entry point leads back to it, and so does its code."""
    core = Core(path)
    listed = subprocess.run([tool, "methods", "--json", path], stdout=subprocess.PIPE, encoding="utf-8", check=False).stdout
    methods = [json.loads(line) for line in listed.splitlines()]
    methods = [(int(one["method_desc"], 16), int(one["code_start"], 16)) for one in methods if one["method_desc"]]
    entries = {method_desc: temporary_entry_points(core, release, method_desc) for method_desc, _ in methods}
    questions = [entry for group in entries.values() for entry in group]
    answers = dict(zip(questions, lines_of([entry_points, path], questions)))
    for method_desc, group in entries.items():
        hits = [answers[entry] for entry in group].count(f"{method_desc:#x}")
        counts["temporary entry point leads back" if hits == 1 else
               "no temporary entry point" if not group else "FAILED: temporary entry point"] += 1
    starts = lines_of([entry_points, path], [start for _, start in methods])
    for (method_desc, _), answer in zip(methods, starts):
        counts["code leads back" if answer == f"{method_desc:#x}" else "FAILED: code"] += 1


def judge_stubs(tool, entry_points, path, release, jitdump, counts):
    """Every stub of the jitdump is of its kind, unless its memory holds something else by now."""
    core = Core(path)
    stub_kinds = STUBS if release in ("8.0", "9.0", "10.0") else STUBS_11
    latest = {}  # addresses are used again
    for load in read_loads(jitdump):
        name = re.search(r"^stub(?:<\d+>)? \w+<(\w+)>$", load.name)
        latest[load.address] = (name.group(1) if name else None, int.from_bytes(load.code[:4], "little"))
    stubs = [(address, name) for address, (name, code) in latest.items()
             if (name in PRECODES or name in STUBS) and core.read(address, 4) == code]
    asked = [address for address, _ in stubs]
    kinds = [json.loads(line) for line in lines_of([tool, "ip2method", "--json", path], asked)]
    method_descs = lines_of([entry_points, path], asked)
    for (_, name), kind, method_desc in zip(stubs, kinds, method_descs):
        good = kind["status"] == "stub" and kind["kind"] in (PRECODES.get(name) or stub_kinds[name])
        counts[f"{name} is {kind['kind']}" if good else f"FAILED: {name} is {kind['status']} {kind['kind']}"] += 1
        if (method_desc == "none") == (name in PRECODES) or method_desc.startswith("error"):
            counts[f"FAILED: {name} leads to {method_desc}"] += 1
        elif name in PRECODES:
            counts[f"{name} leads to a MethodDesc"] += 1


def judge_call_counting(tool, path, counts):
    """Pages that begin with a stub that counts calls are of that kind."""
    core = Core(path)
    pages = ((address + at, offset + at) for address, length, offset in core.segments
             for at in range(-address % PAGE, length, PAGE))
    found = [address for address, at in pages if core.data[at:at + len(COUNTING)] == COUNTING]
    for line in lines_of([tool, "ip2method", "--json", path], found):
        answer = json.loads(line)
        good = answer["kind"] == "CallCountingStub"
        counts["call-counting stub" if good else f"FAILED: call-counting stub is {answer['status']} {answer['kind']}"] += 1
    if not found:
        counts["FAILED: no call-counting stubs"] += 1


def judge(tool, entry_points, path, jitdump):
    """Counts per class; what begins with FAILED should not be there."""
    counts = Counter()
    info = subprocess.run([tool, "info", path], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    release = re.search(r"\.NET (\d+\.\d+)", info).group(1)
    judge_methods(tool, entry_points, path, release, counts)
    judge_stubs(tool, entry_points, path, release, jitdump, counts)
    judge_call_counting(tool, path, counts)
    return counts


def main():
    counts = judge(*sys.argv[1:5])
    for label in sorted(counts):
        print(f"{counts[label]:8} {label}")
    return any(label.startswith("FAILED") for label in counts)


if __name__ == "__main__":
    sys.exit(main())
