#!/usr/bin/env python3
"""Compares `cdacq perfmap` and `cdacq jitdump` with the files that the runtime wrote of the same process.

Every living method line of the runtime's perf map must be in ours, and every living method record of its jitdump, with
the same start, size and name, and the same bytes of code; a tier at the end may be missing, but not be another. What we
write besides (methods from
before the runtime's file was opened) must not overlap a live method of the runtime's files.
"""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile

import judge
from jitdump import Spans, live_records, read_loads, read_released
from runtime_names import split_tiers


class NotWritten(Exception):
    """The tool did not write all of a file."""


def write(cdacq, command, target, path, *options):
    """Has one of the two files written; nothing may be left out."""
    words = [target] if isinstance(target, str) else target
    done = subprocess.run([cdacq, command, *words, *options, "-o", path], capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0 or done.stderr:
        raise NotWritten(f"{command}: exit {done.returncode}\n{done.stderr}")
    return path


def read_lines(path):
    """(start, size, name) of each line of a perf map as we write it. Any other line is an error."""
    with open(path, encoding="utf-8", newline="\n") as file:
        lines = file.read().split("\n")
    if lines.pop() != "":
        raise ValueError("the last line has no end")
    found = [judge.PERF_MAP_LINE.fullmatch(line) for line in lines]
    return [(int(one[1], 16), int(one[2], 16), one[3]) for one in found]


def written_names(load):
    """What we may call a record of the runtime's. A cold part's name, which the runtime writes twice, is there once; a
    backslash is doubled. Of JIT code the tier may be unknown: then it is not there."""
    name, tier = split_tiers(load.name)
    name = name.replace("\\", "\\\\")
    return (f"{name}[{tier}]",) if load.kind != "jit" else (f"{name}[{tier}]", name)


def judge_perf_map(cdacq, target, runtimes_map, live, folder, tally):
    """JIT code alone by default, as the runtime's map has no other; then all that the jitdump knows."""
    mine = read_lines(write(cdacq, "perfmap", target, os.path.join(folder, "mine.map")))
    found = {(start, size, split_tiers(name)[0]) for start, size, name in mine}
    sizes = {load.address: load.size for load in live}
    for address, name in judge.read_perf_map(runtimes_map, judge.as_expected(live)).items():
        _count(tally, "perf map line", (address, sizes[address], name.replace("\\", "\\\\")) in found, f"{address:#x} {name}")
    _none_twice(tally, "perf map", mine)
    everything = set(read_lines(write(cdacq, "perfmap", target, os.path.join(folder, "all.map"), "--r2r", "prepared")))
    for load in live:
        fits = any((load.address, load.size, name) in everything for name in written_names(load))
        _count(tally, f"perf map, {load.kind}", fits, _show(load))
    _count(tally, "perf map without --r2r is a part of that with it", set(mine) < everything, "")


def judge_jitdump(cdacq, target, pid, live, folder, tally):
    """All records, R2R too; then that the default has those of JIT code alone."""
    path = write(cdacq, "jitdump", target, os.path.join(folder, "mine.dump"), "--r2r", "prepared")
    mine = {(load.address, load.size): load for load in read_loads(path)}
    for load in live:
        one = mine.get((load.address, load.size))
        if one is None:
            tally.failed("jitdump: no such record", _show(load))
        elif one.name not in written_names(load):
            tally.failed("jitdump: name", f"{_show(load)} => {one.name}")
        else:
            if load.kind == "jit" and split_tiers(one.name)[1]:
                tally.passed("jitdump, jit: with its tier")
            _count(tally, f"jitdump, {load.kind}: code", one.code == load.code, _show(load))
    jit = read_loads(write(cdacq, "jitdump", target, os.path.join(folder, "jit.dump")))
    _none_twice(tally, "jitdump", [(load.address, load.size, load.name) for load in jit])
    _count(tally, "jitdump without --r2r: JIT code alone",
           {(load.address, load.name) for load in jit} == {(load.address, load.name) for load in mine.values() if load.kind == "jit"}, "")
    spans, known = Spans(live), {(one.address, one.size) for one in live}
    overlaps = [load for load in jit if (load.address, load.size) not in known and spans.overlaps(load.address, load.end)]
    _count(tally, "jitdump: nothing else lies over a living method", not overlaps, "; ".join(map(_show, overlaps[:3])))
    _judge_records(cdacq, path, pid, tally)
    _judge_samply(cdacq, write(cdacq, "jitdump", target, os.path.join(folder, "samply.dump"), "--samply"), tally)


def _read_samply(data, offset):
    """{offset in the code: (function, file, line)} of a record, as samply-symbols/src/jitdump.rs of samply reads it."""
    size, = struct.unpack_from("<I", data, offset + 4)
    _, offset_count, position_count, string_count = struct.unpack_from("<4Q", data, offset + 16)
    at = offset + 48 + 8 * offset_count
    positions = list(struct.iter_unpack("<iIi4I", data[at:at + 28 * position_count]))
    strings = data[at + 28 * position_count:offset + size].split(b"\0")[:string_count]
    found = {}
    for code_offset, index in struct.iter_unpack("<2I", data[offset + 48:at]):
        caller, name, file, first_line, _, line, column = positions[index]
        assert caller == -1 and first_line and column
        found[code_offset] = strings[name].decode(), strings[file].decode(), line
    return found


def _judge_samply(cdacq, path, tally):
    """samply's records have the lines of the records that perf reads, and the names without tiers."""
    done = subprocess.run([cdacq, "records", "--json", path], capture_output=True, encoding="utf-8", check=False)
    records = {one["offset"]: one for one in map(json.loads, done.stdout.splitlines()[1:])}
    with open(path, "rb") as file:
        data = file.read()
    _count(tally, "samply: our reader takes it", done.returncode == 0 and not done.stderr, done.stderr)
    for load in (one for one in records.values() if one["type"] == "load" and one["debug_info"]):
        found = _read_samply(data, load["samply_debug_info2"]) if load["samply_debug_info2"] else {}
        begin, lines = int(load["code_addr"], 16), []
        for _, (name, file, line) in sorted(found.items()):
            if not lines or lines[-1] != (file, line):
                lines.append((file, line))
        entries = [(entry["name"], entry["line"]) for entry in records[load["debug_info"]]["entries"]]
        starts = {int(entry["code_addr"], 16) - begin for entry in records[load["debug_info"]]["entries"]}
        _count(tally, "samply: the lines of the other record", lines == entries and starts <= set(found), str(load))
        _count(tally, "samply: the name", {name for name, *_ in found.values()} == {split_tiers(load["name"])[0].replace(
            "\\\\", "\\")}, str(load))


def _judge_records(cdacq, path, pid, tally):
    """Our own reader takes the file whole, and its header and order are as the specification wants."""
    done = subprocess.run([cdacq, "records", "--json", path], capture_output=True, encoding="utf-8", check=False)
    header, *records, close = [json.loads(line) for line in done.stdout.splitlines()]
    loads = [one for one in records if one["type"] == "load"]
    times = [one["timestamp"] for one in (header, *loads, close)]
    of_all = [one["timestamp"] for one in (header, *records, close)]
    with open(path, "rb") as file:
        magic = struct.unpack("<I", file.read(4))[0]
    _count(tally, "jitdump: its own reader takes it", done.returncode == 0 and not done.stderr and close["type"] == "close" and
           {one["type"] for one in records} == {"load", "debug_info", "unwinding_info"}, done.stderr)
    _count(tally, "jitdump: its header", magic == 0x4A695444 and header["version"] == 1 and header["elf_mach"] == 62 and
           header["pid"] == pid and header["flags"] == 0, str(header))
    _count(tally, "jitdump: times and indexes rise", times == sorted(set(times)) and of_all == sorted(of_all) and
           [one["code_index"] for one in loads] == list(range(1, len(loads) + 1)), "")


def _none_twice(tally, what, pieces):
    spans = sorted(pieces)
    twice = [(one, two) for one, two in zip(spans, spans[1:]) if one[0] + one[1] > two[0]]
    _count(tally, f"{what}: no two lie over each other", not twice, str(twice[:3]))


def _show(load):
    return f"{load.address:#x}+{load.size} {load.name}"


def _count(tally, label, good, example):
    if good:
        tally.passed(label)
    else:
        tally.failed(label, example)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("cdacq", "target", "jitdump", "perfmap"):
        parser.add_argument(name)
    parser.add_argument("--released", metavar="FILE")
    arguments = parser.parse_args()
    live = live_records(read_loads(arguments.jitdump), read_released(arguments.released))
    with open(arguments.jitdump, "rb") as file:
        pid = struct.unpack_from("<I", file.read(24), 20)[0]
    tally = judge.Tally()
    with tempfile.TemporaryDirectory(prefix="cdacq-perf-") as folder:
        judge_perf_map(arguments.cdacq, arguments.target, arguments.perfmap, live, folder, tally)
        judge_jitdump(arguments.cdacq, arguments.target, pid, live, folder, tally)
    tally.report()
    return 1 if tally.has_failed else 0


if __name__ == "__main__":
    sys.exit(main())
