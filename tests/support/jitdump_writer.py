"""Writes jitdump files in either byte order, and what `cdacq records --json` should say of them.

It goes by the published texts (perf's jitdump-specification.txt, samply's "Jitdump record format for debug info with
inlines"; samply's source) and shares nothing with the reader.
"""
import struct

LOAD, MOVE, DEBUG_INFO, CLOSE, UNWINDING_INFO = range(5)
SAMPLY_DEBUG_INFO2, SAMPLY_TIER, SAMPLY_SOURCE = 827346259, 827346260, 827346261
TYPES = {LOAD: "load", MOVE: "move", DEBUG_INFO: "debug_info", CLOSE: "close", UNWINDING_INFO: "unwinding_info",
         SAMPLY_DEBUG_INFO2: "samply_debug_info2", SAMPLY_TIER: "samply_tier", SAMPLY_SOURCE: "samply_source"}


def shown(raw):
    """Bytes of a file as the tool's output shows them."""
    out = []
    i = 0
    while i < len(raw):
        for n in (1, 2, 3, 4):
            try:
                character = raw[i:i + n].decode("utf-8")
                break
            except UnicodeDecodeError:
                character = None
        if character is None:
            out.append(f"\\x{raw[i]:02x}")
            i += 1
            continue
        code = ord(character)
        if character == "\\":
            out.append("\\\\")
        elif code < 0x20 or 0x7F <= code < 0xA0:
            out += [f"\\x{byte:02x}" for byte in raw[i:i + n]]
        elif code in (0x200E, 0x200F, 0x61C, 0xFEFF) or 0x2028 <= code <= 0x202E or 0x2066 <= code <= 0x2069:
            out.append(f"\\u{{{code:04x}}}")
        else:
            out.append(character)
        i += n
    return "".join(out)


class Jitdump:
    """A file that grows: `data`, and what is expected of it, an object a line."""

    def __init__(self, big=False, version=1, total_size=40, elf_mach=62, pid=1, timestamp=1, flags=0, extra=b""):
        self.order = ">" if big else "<"
        header = self.pack("IIIIIIQQ", 0x4A695444, version, total_size, elf_mach, 0, pid, timestamp, flags)
        self.data = bytearray(header[:total_size] + extra[:max(0, total_size - 40)].ljust(max(0, total_size - 40), b"\xee"))
        self.expected = [dict(type="header", version=version, total_size=total_size, elf_mach=elf_mach, pid=pid,
                              timestamp=timestamp, flags=flags, endian="big" if big else "little")]
        self.pending = {}
        self.loads = {}

    def pack(self, form, *values):
        return struct.pack(self.order + form, *values)

    def record(self, kind, timestamp, body, **fields):
        """Appends a record; returns its offset."""
        offset = len(self.data)
        self.data += self.pack("IIQ", kind, 16 + len(body), timestamp) + body
        self.expected.append(dict(type=TYPES.get(kind, "unknown"), id=kind, offset=offset, size=16 + len(body),
                                  timestamp=timestamp, error=None) | fields)
        return offset

    def load(self, timestamp, pid, tid, vma, code, index, name, code_addr=None, slack=b""):
        code_addr = vma if code_addr is None else code_addr
        body = self.pack("IIQQQQ", pid, tid, vma, code_addr, len(code), index) + name + b"\0" + code + slack
        before, self.pending = self.pending, {}
        self.loads[index] = len(self.data)
        return self.record(LOAD, timestamp, body, pid=pid, tid=tid, vma=hex(vma), code_addr=hex(code_addr),
                           code_size=len(code), code_index=index, name=shown(name),
                           debug_info=before.get("debug_info"), unwinding_info=before.get("unwinding_info"),
                           samply_debug_info2=before.get("samply_debug_info2"))

    def move(self, timestamp, pid, tid, vma, old, new, size, index):
        body = self.pack("IIQQQQQ", pid, tid, vma, old, new, size, index)
        return self.record(MOVE, timestamp, body, pid=pid, tid=tid, vma=hex(vma), old_code_addr=hex(old),
                           new_code_addr=hex(new), code_size=size, code_index=index, load=self.loads.get(index))

    def debug_info(self, timestamp, code_addr, entries, slack=b""):
        body = self.pack("QQ", code_addr, len(entries))
        for address, line, discrim, name in entries:
            body += self.pack("QII", address, line, discrim) + name + b"\0"
        offset = self.record(DEBUG_INFO, timestamp, body + slack, code_addr=hex(code_addr), nr_entry=len(entries),
                             entries=[dict(code_addr=hex(address), line=line, discrim=discrim, name=shown(name))
                                      for address, line, discrim, name in entries])
        self.pending["debug_info"] = offset
        return offset

    def eh_frame(self, frame, fdes):
        """Unwinding data: .eh_frame, and its .eh_frame_hdr with a table of (begin, offset of the FDE in the frame)."""
        size = len(frame)
        header = bytes([1, 0x1b, 3, 0x3b]) + self.pack("iI", -size - 4, len(fdes))
        return frame + header + b"".join(self.pack("ii", begin, fde - size) for begin, fde in fdes), 12 + 8 * len(fdes)

    def unwinding_info(self, timestamp, data, header_size, mapped_size, slack=b"", fdes=None):
        body = self.pack("QQQ", len(data), header_size, mapped_size) + data + slack
        offset = self.record(UNWINDING_INFO, timestamp, body, unwind_data_size=len(data),
                             eh_frame_hdr_size=header_size, mapped_size=mapped_size, fde_count=fdes or None)
        self.pending["unwinding_info"] = offset
        return offset

    def close(self, timestamp):
        return self.record(CLOSE, timestamp, b"")

    def samply(self, timestamp, files, names, functions, calls, ranges, lines):
        def strings(values):
            data = b"".join(value + b"\0" for value in values)
            return data + bytes(-len(data) % 4)
        file_list, name_list = strings(files), strings(names)
        body = self.pack("8I", len(files), len(file_list), len(names), len(name_list), len(functions), len(calls),
                         len(ranges), len(lines)) + file_list + name_list
        for values, form in ((functions, "5I"), (calls, "5I"), (ranges, "2I"), (lines, "4I")):
            body += b"".join(self.pack(form, *value) for value in values)

        def objects(values, *keys):
            return [dict(zip(keys, value)) for value in values]
        offset = self.record(
            SAMPLY_DEBUG_INFO2, timestamp, body, file_count=len(files), file_list_size=len(file_list),
            function_names_count=len(names), function_names_list_size=len(name_list), function_count=len(functions),
            inline_call_record_count=len(calls), range_count=len(ranges), line_record_count=len(lines),
            file_list=[shown(file) for file in files], function_names_list=[shown(name) for name in names],
            function_list=objects(functions, "function_name_index", "file_index", "start_line", "start_column", "flags"),
            inline_call_list=objects(calls, "depth", "range_count", "function_index", "call_line_number",
                                     "call_column_number"),
            range_list=objects(ranges, "start_offset", "size"),
            line_record_list=objects(lines, "code_offset", "file_index", "line_number", "column_number"))
        self.pending["samply_debug_info2"] = offset
        return offset

    def samply_positions(self, timestamp, code_addr, offsets, positions, strings):
        """As samply-symbols/src/jitdump.rs of samply reads it: it has the id that the text gives to SAMPLY_TIER."""
        body = self.pack("4Q", code_addr, len(offsets), len(positions), len(strings))
        body += b"".join(self.pack("2I", *offset) for offset in offsets)
        body += b"".join(self.pack("iIi4I", *position) for position in positions)
        offset = self.record(SAMPLY_TIER, timestamp, body + b"".join(string + b"\0" for string in strings),
                             type="samply_positions", code_addr=hex(code_addr), code_offset_count=len(offsets),
                             source_position_count=len(positions), string_count=len(strings))
        self.pending["samply_debug_info2"] = offset
        return offset


def u32(random):
    return random.choice([0, 1, random.getrandbits(32), 0xFFFFFFFF])


def u64(random):
    return random.choice([0, 1, random.getrandbits(64), random.getrandbits(47), (1 << 64) - 1])


PIECES = [b"Demo.Program::Fib(int)[Tier1]", b"a b", "größe".encode(), "日本".encode(), "😀".encode(), b"\"\\/",
          b"\x01\x1b[31m\x7f", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", "\u202e\u2028\ufeff".encode(), b"\xc2\x85"]


def name(random):
    return b"".join(random.choice(PIECES) for _ in range(random.choice([0, 1, 1, 2, 5, 40, 400])))


def samply_lists(random, size):
    files = [name(random) for _ in range(random.randrange(5))]
    names = [name(random) for _ in range(random.randrange(1, 6))]
    functions = [(random.randrange(len(names)), random.randrange(len(files)), u32(random), u32(random), u32(random))
                 for _ in range(random.randrange(6) if files else 0)]
    calls, ranges, depth, parents = [], [], 0, [[(0, size)]]
    for _ in range(random.randrange(8) if functions else 0):
        own = []
        for _ in range(random.randrange(1, 4)):
            start, length = random.choice(parents[depth])
            begin = random.randrange(length + 1)
            own.append((start + begin, random.randrange(length - begin + 1)))
        calls.append((depth, len(own), random.randrange(len(functions)), u32(random), u32(random)))
        ranges += own
        parents[depth + 1:] = [own]
        depth = random.randrange(depth + 2)
    lines = [(random.randrange(size + 1), random.randrange(len(files)), max(1, u32(random)), u32(random))
             for _ in range(random.randrange(9) if files else 0)]
    return files, names, functions, calls, ranges, lines


def address(random, size):
    return min(u64(random), (1 << 64) - 1 - size)


def random_jitdump(random, count):
    """Every kind of record, well formed, with any contents."""
    dump = Jitdump(big=random.random() < 0.5, version=random.choice([1, 2]), total_size=random.choice([40, 40, 48, 77]),
                   elf_mach=u32(random), pid=u32(random), timestamp=u64(random), flags=random.randrange(2),
                   extra=random.randbytes(40))
    at = {}
    for _ in range(count):
        time, what = u64(random), random.randrange(10)
        slack = bytes(random.choice([0, 0, 3, 7]))
        if what < 4:
            code = random.randbytes(random.choice([0, 1, 50, 3000]))
            vma = address(random, len(code))
            if random.random() < 0.4:
                entries = [((vma + random.randrange(1 << 32)) & (1 << 64) - 1, u32(random), u32(random), name(random))
                           for _ in range(random.randrange(5))]
                dump.debug_info(u64(random), vma, entries, slack)
            if random.random() < 0.4:
                frame = random.randbytes(random.randrange(1, 300))
                fdes = [(i, random.randrange(len(frame))) for i in range(random.randrange(4))]
                data, header = dump.eh_frame(frame, fdes) if random.random() < 0.5 else (frame, 0)
                dump.unwinding_info(u64(random), data, header, u64(random), slack, len(fdes) if header else None)
            if random.random() < 0.4:
                dump.samply(u64(random), *samply_lists(random, len(code)))
            index = random.choice([u64(random), random.randrange(100)])
            while index in at:
                index = random.getrandbits(64)
            code_addr = random.choice([vma, u64(random)]) if not dump.pending.get("debug_info") else None
            dump.load(time, u32(random), u32(random), vma, code, index, name(random), code_addr, slack)
            at[index] = (vma if code_addr is None else code_addr, len(code))
        elif what == 4 and at:
            index = random.choice(sorted(at))
            old, size = at[index]
            new = u64(random)
            dump.move(time, u32(random), u32(random), address(random, size), old, new, size, index)
            at[index] = (new, size)
        elif what == 6:
            dump.record(random.choice([SAMPLY_TIER, SAMPLY_SOURCE]), time, random.randbytes(random.randrange(99)))
        else:
            dump.record(random.choice([5, 77, 0xFFFFFFFF]), time, random.randbytes(random.randrange(99)))
    if random.random() < 0.5:
        dump.close(u64(random))
    return dump
