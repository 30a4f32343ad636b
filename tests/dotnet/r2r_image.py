#!/usr/bin/env python3
"""What a ReadyToRun image says of its functions and their exception clauses, read without any code of cdacq's: by the
ECMA-335 and Microsoft PE formats, dotnet/runtime's readytorun-format.md, and the map that crossgen2 wrote beside the
image, which is the judge of where each method starts and how long it is.

    r2r_image.py IMAGE MAP.csv > EXPECTED

A line for each runtime function, in the table's order, and then one for each exception clause, by its method:

    BEGIN LENGTH METHOD HOT COLD_BEGIN COLD RID FUNCLET_BEGIN IS_FUNCLET IS_FILTER
          UNWIND UNWIND_SIZE GC GC_VERSION DEBUG              (on the same line)
    METHOD FLAGS TRY_BEGIN TRY_END HANDLER_BEGIN HANDLER_END TOKEN_OR_FILTER

Addresses are relative to the image, those in clauses to the method; numbers are hexadecimal. RID is 0 of an instance,
and all ones of a stub that continues an async method (.NET 11), which the map alone tells here.
GC and DEBUG are where the method's GC and debug info are. A filter is told by its personality routine, as the runtime
does it, on x86, which has none, by the clauses. What contradicts itself or the map (GC info with another code length
than the method has) is an error here.
"""

import csv
import struct
import sys

SYSTEMS = {0xFD1D: "linux", 0x7B79: "linux", 0: "windows", 0x4644: "apple"}
MACHINES = {0x8664: "x64", 0x14C: "x86", 0x1C4: "arm", 0xAA64: "arm64"}
SECTION_RUNTIME_FUNCTIONS, SECTION_METHODDEFS, SECTION_EXCEPTIONS, SECTION_DEBUG = 102, 103, 104, 105
SENTINEL = 0xFFFFFFFF
RID_OF_STUB = 0xFFFFFFFF


class Image:
    """A PE file, addressed by RVA."""

    def __init__(self, data):
        self.data = data
        pe = struct.unpack_from("<I", data, 0x3C)[0]
        machine, section_count = struct.unpack_from("<HH", data, pe + 4)
        self.architecture = next(MACHINES[machine ^ tag] for tag in SYSTEMS if machine ^ tag in MACHINES)
        optional_size = struct.unpack_from("<H", data, pe + 20)[0]
        optional = pe + 24
        directories = optional + (112 if struct.unpack_from("<H", data, optional)[0] == 0x20B else 96)
        self.sections = []
        for i in range(section_count):
            size, rva, raw_size, raw = struct.unpack_from("<IIII", data, optional + optional_size + 40 * i + 8)
            self.sections.append((rva, min(size, raw_size), raw))
        clr = struct.unpack_from("<I", data, directories + 14 * 8)[0]
        self.header = self.u32(clr + 64)
        signature, self.major, self.minor, _, count = struct.unpack("<IHHII", self.at(self.header, 16))
        assert signature == 0x00525452, hex(signature)
        self.tables = {}
        for i in range(count):
            kind, rva, size = struct.unpack("<III", self.at(self.header + 16 + 12 * i, 12))
            self.tables[kind] = (rva, size)

    def at(self, rva, size):
        for begin, length, raw in self.sections:
            if begin <= rva and rva + size <= begin + length:
                return self.data[raw + rva - begin: raw + rva - begin + size]
        raise ValueError(f"{rva:#x} is in no section")

    def u32(self, rva):
        return struct.unpack("<I", self.at(rva, 4))[0]

    def u8(self, rva):
        return self.at(rva, 1)[0]


def unsigned(image, rva):
    """A NativeFormat integer: its value, and where what follows it is."""
    first = image.u8(rva)
    for size in range(1, 5):
        if not first >> (size - 1) & 1:
            return int.from_bytes(image.at(rva, size), "little") >> size, rva + size
    return image.u32(rva + 1), rva + 5


def native_array(image, rva):
    """The (index, where it is) of each element of a NativeArray."""
    head, base = unsigned(image, rva)
    count, width = head >> 2, 1 << (head & 3)

    def leaves(at, bit, index):
        """The (index, element) of a block's tree below `at`."""
        if not bit:
            yield index, at
            return
        value, behind = unsigned(image, at)
        if not value & 3:  # one leaf alone; an index above 15 says that there is none
            if value >> 2 < 16:
                yield index & ~15 | value >> 2, behind
            return
        if value & 1:
            yield from leaves(behind, bit >> 1, index)
        if value & 2:
            yield from leaves(at + (value >> 2), bit >> 1, index | bit)

    for block in range((count + 15) // 16):
        offset = int.from_bytes(image.at(base + block * width, width), "little")
        for index, element in leaves(base + offset, 8, block * 16):
            if index < count:
                yield index, element


def methoddefs(image):
    """{runtime function: rid}."""
    found = {}
    for index, element in native_array(image, image.tables[SECTION_METHODDEFS][0]):
        id_, _ = unsigned(image, element)
        found[id_ >> 2 if id_ & 1 else id_ >> 1] = index + 1
    return found


def debug_infos(image):
    """{runtime function: where its debug info is}: each element says how far behind it a like one lies, if one does."""
    found = {}
    for index, element in native_array(image, image.tables[SECTION_DEBUG][0]):
        back, behind = unsigned(image, element)
        found[index] = element - back if back else behind
    return found


def exception_clauses(image):
    """{method's RVA: its clauses of six numbers each}. The table's last entry ends the last method's clauses."""
    if SECTION_EXCEPTIONS not in image.tables:
        return {}
    rva, size = image.tables[SECTION_EXCEPTIONS]
    table = [struct.unpack("<II", image.at(rva + 8 * i, 8)) for i in range(size // 8)]
    assert table[-1][0] == SENTINEL and table == sorted(table)
    return {method: [struct.unpack("<6I", image.at(at, 24)) for at in range(begin, end, 24)]
            for (method, begin), (_, end) in zip(table, table[1:])}


class Functions:
    """The RUNTIME_FUNCTION table and the unwind data behind it."""

    def __init__(self, image):
        self.image = image
        rva, size = image.tables[SECTION_RUNTIME_FUNCTIONS]
        self.entry_size = 12 if image.architecture == "x64" else 8
        count = size // self.entry_size
        entries = [struct.unpack("<" + "I" * (self.entry_size // 4), image.at(rva + i * self.entry_size, self.entry_size))
                   for i in range(count)]
        if entries[-1][0] == SENTINEL:
            entries.pop()
        self.entries = entries

    def begin(self, i):
        return self.entries[i][0] & (~1 if self.image.architecture == "arm" else ~0)

    def unwind(self, i):
        return self.entries[i][-1]

    def length(self, i):
        if self.image.architecture == "x64":
            return self.entries[i][1] - self.entries[i][0]
        first = self.image.u32(self.unwind(i))
        return first if self.image.architecture == "x86" else (first & 0x3FFFF) * (2 if self.image.architecture == "arm" else 4)

    def header(self, i):
        """Of arm and arm64: where the epilog scopes begin, the number of those, and of words of codes."""
        arm = self.image.architecture == "arm"
        first = self.image.u32(self.unwind(i))
        assert first >> 18 & 3 == 0 and first >> 20 & 1, "version 0, and a personality routine"
        epilogs, words = (first >> 23 & 31, first >> 28) if arm else (first >> 22 & 31, first >> 27)
        size = 4
        if not epilogs and not words:
            second = self.image.u32(self.unwind(i) + 4)
            epilogs, words, size = second & 0xFFFF, second >> 16 & 0xFF, 8
        return size, 0 if first >> 21 & 1 else epilogs, words

    def unwind_size(self, i):
        architecture = self.image.architecture
        if architecture == "x86":
            return 4
        if architecture == "x64":
            codes = self.image.u8(self.unwind(i) + 2)
            return 4 + (codes + 1) // 2 * 4 + (12 if self.is_chained(i) else 4)
        size, epilogs, words = self.header(i)
        return size + 4 * (epilogs + words + 1)

    def is_chained(self, i):
        return self.image.architecture == "x64" and bool(self.image.u8(self.unwind(i)) >> 3 & 4)

    def personality(self, i):
        return self.image.u32(self.unwind(i) + self.unwind_size(i) - 4)

    def is_fragment(self, i):
        if self.image.architecture == "arm":
            return bool(self.image.u32(self.unwind(i)) >> 22 & 1)
        if self.image.architecture == "arm64":
            size, epilogs, _ = self.header(i)
            return self.image.u8(self.unwind(i) + size + 4 * epilogs) == 0xE5
        return False


def gc_version(image):
    """src/coreclr/inc/gcinfo.h of .NET 8 to 11."""
    return 2 if (image.major, image.minor) < (9, 2) else 3 if image.major < 11 else 4 if image.major < 21 else 5


def gc_code_length(data, architecture, version):
    """From the first ten bytes: src/coreclr/vm/gcinfodecoder.cpp; of x86 src/coreclr/vm/gcdecode.cpp."""
    if architecture == "x86":
        value = 0
        for byte in data:
            value = value << 7 | byte & 0x7F
            if not byte & 0x80:
                return value
    bits = int.from_bytes(data, "little")

    def take(count):
        nonlocal bits
        value = bits & (1 << count) - 1
        bits >>= count
        return value

    base, unit, fat_return = {"x64": (8, 1, 4), "arm": (7, 2, 2), "arm64": (8, 4, 4)}[architecture]
    fat = take(1)
    take(10 if fat else 1)
    if version < 4:
        take(fat_return if fat else 2)
    length, shift = 0, 0
    while True:
        length, shift = length | take(base) << shift, shift + base
        if not take(1):
            return length * unit


class Method:
    def __init__(self, begin, size, is_stub=False):
        self.begin, self.size, self.is_stub = begin, size, is_stub
        self.cold_begin = self.cold_size = 0


def read_map(path):
    """Methods by the RVA of their hot code, and of their cold code."""
    hot, cold, named = {}, {}, {}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.reader(file):
            symbol = ",".join(row[4:-1])  # names of generic instances have commas of their own
            if row[-1] == "MethodWithGCInfo":
                named[symbol] = hot[int(row[0], 16)] = Method(int(row[0], 16), int(row[1]), "__<Resume>" in symbol)
            elif row[-1] == "MethodColdCodeNode":
                cold[int(row[0], 16)] = (symbol.removeprefix("__coldcode_"), int(row[1]))
    for begin, (symbol, size) in cold.items():
        named[symbol].cold_begin, named[symbol].cold_size = begin, size
        cold[begin] = named[symbol]
    return hot, cold


def methods_of(functions, hot, cold):
    """The method of each function; funclets lie in their method's code."""
    result, method, end = [], None, 0
    for i in range(len(functions.entries)):
        begin = functions.begin(i)
        if begin in hot:
            method = hot[begin]
            end = begin + method.size
        elif begin in cold:
            method = cold[begin]
            end = begin + method.cold_size
        assert method and begin + functions.length(i) <= end, f"function {i} at {begin:#x} is in no method of the map"
        result.append(method)
    assert len(set(result)) == len(hot), "a method of the map has no function"
    return result


def cut_read_only_data(functions, methods):
    """On arm64 a method's jump tables and constants lie behind its code, and the map counts them with it."""
    code = {}
    for i, method in enumerate(methods):
        if functions.begin(i) < method.begin + method.size and functions.begin(i) >= method.begin:
            code[method] = code.get(method, 0) + functions.length(i)
    for method, size in code.items():
        if functions.image.architecture == "arm64" and size < method.size:
            method.size = size
        assert size == method.size, f"{method.begin:#x}: functions of {size} bytes, and the map has {method.size}"


def expected(image, map_path):
    functions = Functions(image)
    hot, cold = read_map(map_path)
    methods = methods_of(functions, hot, cold)
    cut_read_only_data(functions, methods)
    rids, debug, clauses = methoddefs(image), debug_infos(image), exception_clauses(image)
    first = {}
    for i, method in enumerate(methods):
        first.setdefault(method.begin, i)
    funclet = 0
    lines = []
    for i, method in enumerate(methods):
        begin, start = functions.begin(i), first[method.begin]
        is_cold = method.cold_begin and begin >= method.cold_begin
        part = method.cold_begin if is_cold else method.begin
        if not functions.is_fragment(i) or begin == part:
            funclet = begin
        is_funclet = image.architecture == "x64" and not functions.is_chained(i) if is_cold else funclet != method.begin
        offset = method.size + funclet - method.cold_begin if is_cold else funclet - method.begin
        is_filter = is_funclet and any(clause[0] & 7 == 1 and clause[5] == offset for clause in clauses.get(method.begin, []))
        if is_funclet and image.architecture != "x86":
            assert is_filter == (functions.personality(i) != functions.personality(0)), f"{begin:#x}: a filter, or not?"
        gc_info = functions.unwind(start) + functions.unwind_size(start)
        length = gc_code_length(image.at(gc_info, 10), image.architecture, gc_version(image))
        if length != method.size + method.cold_size:
            raise ValueError(f"GC info at {gc_info:#x}: {length} bytes of code, and the map has "
                             f"{method.size} and {method.cold_size}")
        assert not method.is_stub or start not in rids, f"{begin:#x}: a stub in the table of MethodDefs"
        lines.append([begin, functions.length(i), method.begin, method.size, method.cold_begin, method.cold_size,
                      RID_OF_STUB if method.is_stub else rids.get(start, 0), funclet, is_funclet, is_filter, functions.unwind(i), functions.unwind_size(i), gc_info,
                      gc_version(image), debug.get(start, 0)])
    return lines, [[method, *clause] for method in sorted(clauses) for clause in clauses[method]]


def write_expected(image_path, map_path, out):
    with open(image_path, "rb") as file:
        image = Image(file.read())
    lines, clauses = expected(image, map_path)
    out.write(f"# {image.architecture}, ReadyToRun {image.major}.{image.minor}, {len(lines)} functions, {len(clauses)} clauses\n")
    for line in lines + clauses:
        out.write(" ".join(f"{int(value):x}" for value in line) + "\n")


if __name__ == "__main__":
    write_expected(sys.argv[1], sys.argv[2], sys.stdout)
