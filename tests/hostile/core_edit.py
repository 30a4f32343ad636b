"""A core file as segments that can be read by address, patched and extended. 64-bit, little-endian."""
import bisect
import json
import struct
import subprocess

PT_LOAD, PT_NOTE = 1, 4
PAGE = 4096


class Core:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = bytearray(file.read())
        table, = struct.unpack_from("<Q", self.bytes, 32)
        count, = struct.unpack_from("<H", self.bytes, 56)
        if count == 0xFFFF:
            section, = struct.unpack_from("<Q", self.bytes, 40)
            count, = struct.unpack_from("<I", self.bytes, section + 44)
        self.headers = [list(struct.unpack_from("<IIQQQQQQ", self.bytes, table + i * 56)) for i in range(count)]
        self.segments = sorted((h[3], h[5], h[2]) for h in self.headers if h[0] == PT_LOAD and h[5])
        self.starts = [segment[0] for segment in self.segments]

    def offset(self, address, size):
        """The file offset of [address, address + size), or None."""
        i = bisect.bisect_right(self.starts, address) - 1
        if i < 0:
            return None
        begin, file_size, offset = self.segments[i]
        return offset + address - begin if address + size <= begin + file_size else None

    def read(self, address, size):
        offset = self.offset(address, size)
        return None if offset is None else bytes(self.bytes[offset : offset + size])

    def u64(self, address):
        data = self.read(address, 8)
        return None if data is None else struct.unpack("<Q", data)[0]

    def u32(self, address):
        data = self.read(address, 4)
        return None if data is None else struct.unpack("<I", data)[0]

    def poke(self, address, data):
        """Replaces bytes. Where the core lacks them, a new segment has them; the last segment of an address counts."""
        offset = self.offset(address, len(data))
        if offset is None:
            self.map(address, data)
        else:
            self.bytes[offset : offset + len(data)] = data

    def append(self, data):
        """Adds bytes to the file. Returns their offset."""
        self.bytes += bytes(-len(self.bytes) % PAGE)
        offset = len(self.bytes)
        self.bytes += data
        return offset

    def segment(self, address, offset, size, memory_size=None, flags=6):
        self.headers.append([PT_LOAD, flags, offset, address, 0, size, size if memory_size is None else memory_size, 1])

    def map(self, address, data):
        self.segment(address, self.append(data), len(data))

    def alias(self, address, size, data):
        """Maps `data` again and again, so that a few bytes of the file stand for a large area."""
        offset = self.append(data)
        for done in range(0, size, len(data)):
            self.segment(address + done, offset, min(len(data), size - done))

    def notes(self):
        """The contents of the first PT_NOTE, as (type, name, contents)."""
        header = next(h for h in self.headers if h[0] == PT_NOTE)
        data, at, found = bytes(self.bytes[header[2] : header[2] + header[5]]), 0, []
        while at + 12 <= len(data):
            name_size, size, kind = struct.unpack_from("<III", data, at)
            name_at = at + 12
            data_at = name_at + (name_size + 3 & ~3)
            found.append((kind, data[name_at : name_at + name_size], data[data_at : data_at + size]))
            at = data_at + (size + 3 & ~3)
        return found

    def set_notes(self, notes):
        data = b"".join(
            struct.pack("<III", len(name), len(contents), kind)
            + name + bytes(-len(name) % 4)
            + contents + bytes(-len(contents) % 4)
            for kind, name, contents in notes
        )
        header = next(h for h in self.headers if h[0] == PT_NOTE)
        header[2], header[5] = self.append(data), len(data)

    def save(self, path):
        data = bytearray(self.bytes)
        data += bytes(-len(data) % 8)
        count = len(self.headers)
        struct.pack_into("<Q", data, 32, len(data))
        data += b"".join(struct.pack("<IIQQQQQQ", *header) for header in self.headers)
        if count < 0xFFFF:
            struct.pack_into("<H", data, 56, count)
        else:  # PN_XNUM: the first section header has the number
            struct.pack_into("<Q", data, 40, len(data))
            struct.pack_into("<HHHH", data, 56, 0xFFFF, 64, 1, 0)
            data += struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 1, 0, count, 0, 0)
        with open(path, "wb") as file:
            file.write(data)
        return path


class Runtime(Core):
    """A core of a runtime whose structures can be found by their names in the descriptor."""

    def __init__(self, path, tool):
        super().__init__(path)
        text = subprocess.run([tool, "descriptor", path], capture_output=True, text=True, check=True).stdout
        self.descriptor = json.loads(text)
        self.fragments, self.sections = [], {}
        self._list_table(int(self.descriptor["globals"]["ExecutionManagerCodeRangeMapAddress"]["value"], 16), 5)

    def field(self, type_name, name):
        return self.descriptor["types"][type_name][name]["offset"]

    def at(self, address, type_name, name):
        """The pointer in a field, or None."""
        return self.u64(address + self.field(type_name, name))

    def _list_table(self, table, level):
        for slot in range(256):
            entry = (self.u64(table + 8 * slot) or 0) & ~1
            if entry and level > 1:
                self._list_table(entry, level - 1)
            while entry and level == 1 and len(self.fragments) < 4096:
                self.fragments.append(entry)
                section = self.at(entry, "RangeSectionFragment", "RangeSection")
                if section and self.u64(section) is not None:
                    self.sections.setdefault(section)
                entry = (self.at(entry, "RangeSectionFragment", "Next") or 0) & ~1

    def jit_section(self):
        """A section with a list of heaps all of whose fields are in the core."""
        for section in self.sections:
            heap = self.at(section, "RangeSection", "HeapList")
            if heap and self.read(heap, 48) and self.at(heap, "CodeHeapListNode", "HeaderMap"):
                return section
        raise LookupError("no JIT heap")

    def infos(self):
        """The ReadyToRunInfo of every image that the core has it of."""
        modules = [self.at(section, "RangeSection", "R2RModule") for section in self.sections]
        infos = [self.at(module, "Module", "ReadyToRunInfo") for module in modules if module]
        return [info for info in infos if info and self.read(info, 8)]

    def chain_sections(self, sections):
        """
        Puts RangeSections into the map, in a list behind a fragment that ends one. Each is (begin, end, fields): what
        differs from a copy of jit_section(), by field.
        """
        model = self.jit_section()
        size = 8 + max(f["offset"] for name, f in self.descriptor["types"]["RangeSection"].items() if name != "!")
        last = next(f for f in self.fragments if not self.at(f, "RangeSectionFragment", "Next"))
        area, step, data = 0x300000000000, 64 + size + -size % 8, bytearray()
        for i, (begin, end, fields) in enumerate(sections):
            at, fragment, section = area + i * step, bytearray(64), bytearray(self.read(model, size))
            following = at + step if i + 1 < len(sections) else 0
            for name, value in dict(Next=following, RangeBegin=begin, RangeEndOpen=end, RangeSection=at + 64).items():
                struct.pack_into("<Q", fragment, self.field("RangeSectionFragment", name), value)
            for name, value in dict(RangeBegin=begin, RangeEndOpen=end, **fields).items():
                struct.pack_into("<Q", section, self.field("RangeSection", name), value)
            data += (fragment + section).ljust(step, b"\0")
        self.map(area, bytes(data))
        self.poke(last + self.field("RangeSectionFragment", "Next"), struct.pack("<Q", area))

    def put_sections(self, area, begin, step, count, fields):
        """
        Puts RangeSections of `step` bytes, a multiple of 128 KiB, one after the other into an area of which the map has
        nothing yet, in all of the slots for their addresses. `fields`: what they have besides their bounds, by section.
        """
        entries, size = [], 256
        model = self.read(self.jit_section(), max(f["offset"] for n, f in self.descriptor["types"]["RangeSection"].items() if n != "!") + 8)
        data = bytearray()
        for i in range(count):
            first, at = begin + i * step, area + i * 2 * size
            fragment, section = bytearray(size), bytearray(model.ljust(size, b"\0"))
            for name, value in dict(RangeBegin=first, RangeEndOpen=first + step, RangeSection=at + size).items():
                struct.pack_into("<Q", fragment, self.field("RangeSectionFragment", name), value)
            for name, value in dict(RangeBegin=first, RangeEndOpen=first + step, **fields(i)).items():
                struct.pack_into("<Q", section, self.field("RangeSection", name), value)
            data += fragment + section
            entries += [at] * (step >> 17)
        self.map(area, bytes(data))
        for level in range(1, 4):  # tables of 256 slots, whose addresses are the entries of the next level
            area += 1 << 32
            entries += [0] * (-len(entries) % 256)
            self.map(area, struct.pack(f"<{len(entries)}Q", *entries))
            entries = [area + i * 2048 for i in range(len(entries) // 256)]
        top = self.u64(int(self.descriptor["globals"]["ExecutionManagerCodeRangeMapAddress"]["value"], 16)) & ~1
        self.poke(top + 8 * (begin >> 41 & 255), struct.pack("<Q", *entries))

    def code_heap(self, begin, end, nibbles):
        """A CodeHeapListNode, as bytes, with no successor."""
        node = bytearray(8 + max(f["offset"] for n, f in self.descriptor["types"]["CodeHeapListNode"].items() if n != "!"))
        values = dict(StartAddress=begin, EndAddress=end, MapBase=begin, HeaderMap=nibbles)
        for name, value in values.items():
            struct.pack_into("<Q", node, self.field("CodeHeapListNode", name), value)
        return bytes(node)
