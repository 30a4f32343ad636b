#!/usr/bin/env python3
"""Reads a jitdump as CoreCLR writes it and finds the methods that are still there.

The tests compare cdacq with it: it shares no code with cdacq, so that a
misreading on one side can't hide on the other.
"""

import struct
import sys
from bisect import bisect_right
from dataclasses import dataclass

from runtime_names import Name

MAGIC_BY_ORDER = {b"DTiJ": "<", b"JiTD": ">"}
CODE_LOAD = 0


class FormatError(Exception):
    """The file is not a jitdump at all (a cut one is fine)."""


@dataclass(frozen=True)
class Load:
    """One JIT_CODE_LOAD record."""
    timestamp: int
    address: int
    size: int
    name: str
    code: bytes

    @property
    def end(self):
        return self.address + self.size

    @property
    def method(self):
        """The name taken apart; None for a stub."""
        return Name.parse(self.name)

    @property
    def kind(self):
        """jit, r2r or r2r-cold; "stub" for what is no method."""
        if self.method is None:
            return "stub"
        tier = self.method.tier
        return "r2r" if tier == "PreJIT" else "r2r-cold" if tier == "PreJit-cold" else "jit"


def read_loads(path):
    """All whole LOAD records in file order.

    The runtime never closes the file and may be writing it right now, so a
    record that is not all there ends the list instead of failing.
    """
    with open(path, "rb") as file:
        data = file.read()
    order = MAGIC_BY_ORDER.get(data[:4])
    if order is None or len(data) < 40:
        raise FormatError(f"{path}: no jitdump header")
    offset = struct.unpack_from(order + "I", data, 8)[0]
    loads = []
    while offset + 16 <= len(data):
        kind, size, timestamp = struct.unpack_from(order + "IIQ", data, offset)
        if size < 16 or offset + size > len(data):
            break
        if kind == CODE_LOAD:
            loads.append(_load(data, order, offset, size, timestamp))
        offset += size
    return loads


def _load(data, order, offset, size, timestamp):
    _pid, _tid, _vma, address, code_size, _index = struct.unpack_from(order + "IIQQQQ", data, offset + 16)
    name_end = data.index(b"\0", offset + 56, offset + size)
    name = data[offset + 56:name_end].decode("utf-8", "replace")
    return Load(timestamp, address, code_size, name, data[name_end + 1:name_end + 1 + code_size])


class Spans:
    """Which record owned an address last: a later record replaces all that it touches."""

    def __init__(self, loads):
        self.latest = []
        self.replaced = []
        starts = []
        for load in loads:
            if load.size == 0:
                continue
            low = bisect_right(starts, load.address)
            if low and self.latest[low - 1].end > load.address:
                low -= 1
            high = low
            while high < len(starts) and starts[high] < load.end:
                high += 1
            self.replaced += self.latest[low:high]
            self.latest[low:high] = [load]
            starts[low:high] = [load.address]
        self._starts = starts

    def at(self, address):
        """The record that covers address, or None."""
        i = bisect_right(self._starts, address) - 1
        return self.latest[i] if i >= 0 and address < self.latest[i].end else None

    def overlaps(self, start, end):
        """Whether any record touches [start, end)."""
        i = bisect_right(self._starts, end - 1) - 1
        return i >= 0 and self.latest[i].end > start


def read_released(path):
    """The target's own list of what it released, as "Type::Method"."""
    if path is None:
        return set()
    with open(path, encoding="utf-8") as file:
        return {line.strip() for line in file if line.strip()}


def live_records(loads, released=frozenset()):
    """Method records that no later method record overlaps and that were not released.

    Stub records may not push methods aside: some carry the address of a
    temporary mapping, where a method was before or is now.
    """
    methods = Spans([load for load in loads if load.method])
    return [load for load in methods.latest if load.method.qualified not in released]


if __name__ == "__main__":
    for record in read_loads(sys.argv[1]):
        print(f"{record.timestamp} {record.address:#x} {record.size} {record.kind} {record.name}")
