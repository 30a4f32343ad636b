#!/usr/bin/env python3
"""Judges `cdacq verify`: on a process's own jitdump and perf map it finds no contradiction, and on copies of them that
were tampered with it finds each tampering in its class and nothing else.

    tamper.py CDACQ TARGET JITDUMP PERFMAP [--released FILE]
"""

import argparse
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from collections import Counter

from jitdump import CODE_LOAD, MAGIC_BY_ORDER, live_records, read_loads, read_released
from runtime_names import Name

CLASSES = ["match", "freed", "replaced", "stub", "later", "unknown-to-target", "name-differs", "range-differs", "bytes-differ",
           "missing-from-file"]
CONTRADICTIONS = {"unknown-to-target", "name-differs", "range-differs", "bytes-differ"}
PERF_MAP_LINE = re.compile(rb"0x([0-9a-f]+) ([0-9a-f]+) (.*)$")


def verify(cdacq, target, path):
    """(exit code, differences, totals, what it says beside)."""
    done = subprocess.run([cdacq, "verify", "--json", *([target] if isinstance(target, str) else target), path],
                          capture_output=True, encoding="utf-8", check=False)
    lines = [json.loads(line) for line in done.stdout.split("\n") if line]
    return done.returncode, lines[:-1], lines[-1] if lines else {}, done.stderr


def fault_of_result(code, differences, totals):
    """What is wrong with a result on its own, whatever the file is."""
    if not totals or any(name not in totals for name in CLASSES):
        return f"no totals (exit {code})"
    told = Counter(one["class"] for one in differences)
    if any(told[name] != totals[name] for name in [*CLASSES[1:], "damaged", "not-compared"]):
        return "the differences told are not those counted"
    if code != (1 if any(totals[name] for name in CONTRADICTIONS) else 0):
        return f"exit {code}"
    return None


class Jitdump:
    """A jitdump as a list of records, which can be joined again."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        self.order = MAGIC_BY_ORDER[data[:4]]
        offset = struct.unpack_from(self.order + "I", data, 8)[0]
        self.pieces = [data[:offset]]
        while offset + 16 <= len(data):
            size = struct.unpack_from(self.order + "I", data, offset + 4)[0]
            if size < 16 or offset + size > len(data):
                break
            self.pieces.append(data[offset:offset + size])
            offset += size

    def find(self, records):
        """Indexes of these records."""
        wanted = {(one.address, one.size, one.name) for one in records}
        found = {}
        for i, piece in enumerate(self.pieces[1:], 1):
            if struct.unpack_from(self.order + "I", piece)[0] != CODE_LOAD:
                continue
            address, size = struct.unpack_from(self.order + "QQ", piece, 32)
            key = address, size, piece[56:piece.index(b"\0", 56)].decode("utf-8", "replace")
            if key in wanted:
                found[key] = i  # the last one, where a record was written twice
        return found

    def move(self, i, delta):
        vma, address = struct.unpack_from(self.order + "QQ", self.pieces[i], 24)
        self._put(i, 24, struct.pack(self.order + "QQ", vma + delta, address + delta))

    def move_half(self, i, at):
        value = struct.unpack_from(self.order + "Q", self.pieces[i], at)[0]
        self._put(i, at, struct.pack(self.order + "Q", value + 8))

    def shorten(self, i):
        size = struct.unpack_from(self.order + "Q", self.pieces[i], 40)[0]
        self._put(i, 40, struct.pack(self.order + "Q", size - 1))

    def rename(self, i, name, changed):
        piece, before = self.pieces[i], name.encode("utf-8")
        end = piece.index(b"\0", 56)
        assert piece[56:end] == before
        piece = piece[:56] + changed.encode("utf-8") + piece[end:]
        self.pieces[i] = piece[:4] + struct.pack(self.order + "I", len(piece)) + piece[8:]

    def flip(self, i, where):
        at = len(self.pieces[i]) - where
        self._put(i, at, bytes([self.pieces[i][at] ^ 0x10]))

    def remove(self, i):
        self.pieces[i] = b""

    def _put(self, i, at, data):
        self.pieces[i] = self.pieces[i][:at] + data + self.pieces[i][at + len(data):]

    def write(self, path):
        with open(path, "wb") as file:
            file.write(b"".join(self.pieces))


def changed_name(name):
    """The same with another letter in the method's name."""
    head = name.rindex("::") + 2
    letter = "x" if name[head] != "x" else "y"
    return name[:head] + letter + name[head + 1:]


def tamper_jitdump(path, out, live):
    """Writes a copy with a dozen of each tampering; what is expected of it, by class."""
    jitdump = Jitdump(path)
    found = jitdump.find(live)
    methods = [one for one in live if one.size > 40 and "::" in one.name and (one.address, one.size, one.name) in found]
    jit = [one for one in methods if one.kind == "jit"]
    dynamic = [one for one in jit if Name.parse(one.name).is_dynamic][:6]
    compiled = [one for one in methods if one.kind != "jit"]
    plain = [one for one in jit if one not in dynamic]
    chosen = iter([*dynamic, *plain[::len(plain) // 72 + 1], *compiled[::len(compiled) // 24 + 1], *plain])
    used, expected = set(), Counter()

    def next_one(kinds=("jit", "r2r", "r2r-cold"), stays=False):
        one = next(one for one in chosen if one.address not in used and one.kind in kinds and
                   (not stays or one.name.partition("::")[0].partition("] ")[2].startswith("System.")))
        used.add(one.address)
        return one, found[one.address, one.size, one.name]

    for turn in range(12):
        one, i = next_one()
        jitdump.rename(i, one.name, changed_name(one.name) if turn % 3 else one.name.replace("(", "(int32,", 1))
        expected["name-differs"] += 1
        one, i = next_one()
        jitdump.flip(i, 1 + turn * (one.size - 1) // 11)
        expected["bytes-differ"] += 1
        one, i = next_one()
        jitdump.move(i, [1, 8, one.size // 2, -1, -8, one.size - 1][turn % 6])
        expected["range-differs"] += 1
        one, i = next_one(("jit",), stays=True)  # far away code that can be released may have been loaded again
        jitdump.move(i, [one.size, 0x1000, -0x3000, 0x80000, 1 << 30, -(1 << 40)][turn % 6])
        expected["range-differs"] += 1
        one, i = next_one()
        if turn % 3:
            jitdump.move_half(i, 24 + turn % 2 * 8)
        else:
            jitdump.shorten(i)
        expected["range-differs"] += 1
        one, i = next_one(("jit",))
        jitdump.remove(i)
        expected["missing-from-file"] += 1
    jitdump.write(out)
    return expected


def tamper_perf_map(path, out, live):
    """The same for a perf map: one line is one record."""
    alive = {(one.address, one.size) for one in live if one.kind == "jit" and one.size > 40}
    with open(path, "rb") as file:
        lines = file.read().split(b"\n")
    fit = []
    for i, line in enumerate(lines):
        parts = PERF_MAP_LINE.match(line)
        if parts and line.isascii() and b"::" in line and (int(parts[1], 16), int(parts[2], 16)) in alive:
            fit.append((i, int(parts[1], 16), int(parts[2], 16), parts[3].decode()))
    expected, chosen = Counter(), iter(fit[::max(1, len(fit) // 64)])
    for turn in range(12):
        i, start, size, name = next(chosen)
        lines[i] = f"0x{start:x} {size:x} {changed_name(name)}".encode()
        expected["name-differs"] += 1
        i, start, size, name = next(chosen)
        lines[i] = f"0x{start + [1, 8, -1, -8][turn % 4]:x} {size:x} {name}".encode()
        expected["range-differs"] += 1
        i, start, size, name = next(chosen)
        lines[i] = f"0x{start:x} {size + [1, -1][turn % 2]:x} {name}".encode()
        expected["range-differs"] += 1
        i, _, _, _ = next(chosen)
        lines[i] = b""
        expected["missing-from-file"] += 1
    with open(out, "wb") as file:
        file.write(b"\n".join(lines))
    return expected


def fault_of_tampered(before, result, expected):
    """What a copy must give: as before, but for what was tampered with."""
    code, differences, totals, _ = result
    fault = fault_of_result(code, differences, totals)
    if fault:
        return fault
    wanted = {name: before[name] + expected[name] for name in CLASSES}
    wanted["match"] = before["match"] - sum(expected.values())
    wrong = {name: (totals[name], wanted[name]) for name in CLASSES if totals[name] != wanted[name]}
    return f"(found, expected): {wrong}" if wrong else None


def judge(cdacq, target, jitdump, perf_map, live, tampered=True):
    """(label, fault or None, text) of each question; on copies only where `tampered` asks for it."""
    results = []
    with tempfile.TemporaryDirectory(prefix="cdacq-tamper-") as work:
        for label, path, tamper in (("jitdump", jitdump, tamper_jitdump), ("perf map", perf_map, tamper_perf_map)):
            code, differences, before, _ = verify(cdacq, target, path)
            fault = fault_of_result(code, differences, before) or (None if code == 0 and before["match"] else "contradictions")
            text = ", ".join(f"{before[name]} {name}" for name in [*CLASSES, "damaged"] if before.get(name))
            results.append((f"verify {label}", fault, text))
            if not tampered:
                continue
            copy = os.path.join(work, "tampered")
            expected = tamper(path, copy, live)
            fault = fault_of_tampered(before, verify(cdacq, target, copy), expected)
            results.append((f"verify a tampered {label}", fault, ", ".join(f"{n} {name}" for name, n in expected.items())))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("cdacq", "target", "jitdump", "perfmap"):
        parser.add_argument(name)
    parser.add_argument("--released", metavar="FILE", help="names whose code is gone, written by the test target")
    arguments = parser.parse_args()
    live = live_records(read_loads(arguments.jitdump), read_released(arguments.released))
    results = judge(arguments.cdacq, arguments.target, arguments.jitdump, arguments.perfmap, live)
    for label, fault, text in results:
        print(f"{'FAIL' if fault else 'ok  '} {label}: {text}{': ' if fault else ''}{fault or ''}")
    return 1 if any(fault for _, fault, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())
