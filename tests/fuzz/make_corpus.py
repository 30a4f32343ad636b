#!/usr/bin/env python3
"""Writes the seeds of the corpora that are made here. Inputs that once failed are kept beside them by hand."""
import gzip
import lzma
import pathlib
import random
import struct
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parent / "dotnet")]

import jitdump_writer  # noqa: E402
import r2r_image  # noqa: E402

PT_LOAD, PT_DYNAMIC, PT_NOTE, ET_DYN, ET_CORE, NT_FILE, NT_PRPSINFO = 1, 2, 4, 3, 4, 0x46494C45, 3
NT_PRSTATUS, NT_AUXV, NT_ARM_PAC_MASK, NT_SIGINFO = 1, 6, 0x406, 0x53494749


class Elf:
    """Packs in one class and byte order."""

    def __init__(self, wide, big):
        self.wide, self.big = wide, big
        self.order = ">" if big else "<"
        self.word = "Q" if wide else "I"
        self.header_size, self.entry_size = (64, 56) if wide else (52, 32)

    def pack(self, format, *values):
        return struct.pack(self.order + format.replace("W", self.word), *values)

    def header(self, kind, machine, phnum, phoff=None, shoff=0, shnum=0):
        ident = b"\x7fELF" + bytes([2 if self.wide else 1, 2 if self.big else 1, 1]) + bytes(9)
        return ident + self.pack("HHIWWWIHHHHHH", kind, machine, 1, 0, self.header_size if phoff is None else phoff,
                                 shoff, 0, self.header_size, self.entry_size, phnum, 64 if self.wide else 40, shnum, 0)

    def program_header(self, kind, flags, offset, vaddr, filesz, memsz, align=4096):
        if self.wide:
            return self.pack("IIQQQQQQ", kind, flags, offset, vaddr, vaddr, filesz, memsz, align)
        return self.pack("IIIIIIII", kind, offset, vaddr, vaddr, filesz, memsz, flags, align)

    def note(self, name, kind, desc):
        name += b"\0"
        pad = lambda b: b + bytes(-len(b) % 4)
        return self.pack("III", len(name), len(desc), kind) + pad(name) + pad(desc)

    def nt_file(self, page_size, mappings):
        desc = self.pack("WW", len(mappings), page_size)
        for begin, end, offset, _ in mappings:
            desc += self.pack("WWW", begin, end, offset)
        return self.note(b"CORE", NT_FILE, desc + b"".join(path + b"\0" for *_, path in mappings))


def image(elf, names, gnu, relocations):
    """A shared object in one segment, with the tables that a reader of symbols and relocations uses."""
    machine = 62 if elf.wide else 40
    body = bytearray(elf.header_size + 3 * elf.entry_size)

    def put(data):
        while len(body) % 8:
            body.append(0)
        at = len(body)
        body.extend(data)
        return at

    note = elf.note(b"GNU", 3, bytes(range(20)))
    note_at = put(note)
    strings, offsets = b"\0", []
    for name in names:
        offsets.append(len(strings))
        strings += name + b"\0"
    symbols = bytes(24 if elf.wide else 16)
    for i, offset in enumerate(offsets):
        value = 0x400 + 16 * i
        symbols += elf.pack("IBBHQQ", offset, 0x11, 0, 5, value, 40) if elf.wide else elf.pack(
            "IIIBBH", offset, value, 32, 0x11, 0, 5)
    symtab, strtab = put(symbols), put(strings)
    if gnu:
        def hash_of(name):
            h = 5381
            for c in name:
                h = (h * 33 + c) & 0xFFFFFFFF
            return h
        chain = b"".join(elf.pack("I", hash_of(n) & ~1 | (i + 1 == len(names))) for i, n in enumerate(names))
        table = put(elf.pack("IIII", 1, 1, 1, 6) + elf.pack("W", (1 << (64 if elf.wide else 32)) - 1) +
                    elf.pack("I", 1) + chain)
    else:
        table = put(elf.pack("II", 1, len(names) + 1) + elf.pack("I", 1) +
                    b"".join(elf.pack("I", (i + 1) % (len(names) + 1)) for i in range(len(names) + 1)))
    relative = 8 if elf.wide else 23
    if relocations == "rela":
        data, tags = elf.pack("WWW", 0x410, relative, 0x500) + elf.pack("WWW", 0x420, relative, 0x600), (7, 8)
    elif relocations == "rel":
        data, tags = elf.pack("WW", 0x410, relative), (17, 18)
    else:
        data, tags = elf.pack("WW", 0x410, 0x15), (36, 35)
    relocation_at = put(data)
    dynamic_at = put(b"".join(elf.pack("WW", tag, value) for tag, value in [
        (6, symtab), (5, strtab), (10, len(strings)), (0x6FFFFEF5 if gnu else 4, table), (tags[0], relocation_at),
        (tags[1], len(data)), (0, 0)]))
    size = len(body)
    body[:elf.header_size] = elf.header(ET_DYN, machine, 3)
    headers = elf.program_header(PT_LOAD, 4, 0, 0, size, size) + \
        elf.program_header(PT_DYNAMIC, 6, dynamic_at, dynamic_at, size - dynamic_at, size - dynamic_at) + \
        elf.program_header(PT_NOTE, 4, note_at, note_at, len(note), len(note), 4)
    body[elf.header_size:elf.header_size + len(headers)] = headers
    return bytes(body)


def core(elf, segments, notes, extended=False, machine=62):
    """Segments: (vaddr, bytes, memsz, flags); notes: one bytes object a PT_NOTE."""
    count = len(segments) + len(notes)
    offset = elf.header_size + count * elf.entry_size
    headers = contents = b""
    for note in notes:
        headers += elf.program_header(PT_NOTE, 0, offset + len(contents), 0, len(note), 0, 4)
        contents += note
    for vaddr, data, memsz, flags in segments:
        headers += elf.program_header(PT_LOAD, flags, offset + len(contents), vaddr, len(data), memsz)
        contents += data
    if not extended:
        return elf.header(ET_CORE, machine, count) + headers + contents
    section = elf.pack("IIWWWWIIWW", 0, 0, 0, 0, 0, 1, 0, count, 0, 0)
    return elf.header(ET_CORE, machine, 0xFFFF, shoff=offset + len(contents), shnum=1) + headers + contents + section


def core_with_libraries(elf, base, library):
    """Without NT_FILE: a program whose dynamic section leads to the list of the program and a library."""
    word, at = 8 if elf.wide else 4, 0x10000
    headers = elf.program_header(6, 4, 64, 64, 0x100, 0x100) + elf.program_header(PT_LOAD, 4, 0, 0, 0x600, 0x600) + \
        elf.program_header(PT_DYNAMIC, 6, 0x200, 0x200, 0x40, 0x40)
    program = (bytes(64) + headers).ljust(0x200, b"\0") + elf.pack("WWWW", 21, at + 0x300, 0, 0)
    program = program.ljust(0x300, b"\0") + elf.pack("WWWWW", 0, at + 0x400, 0, 0, 0)
    program = program.ljust(0x400, b"\0") + elf.pack("WWWW", at, at + 0x5FF, 0, at + 0x480)
    program = program.ljust(0x480, b"\0") + elf.pack("WWWW", base, at + 0x500, 0, 0)
    program = (program.ljust(0x500, b"\0") + b"/app/libcoreclr.so\0/app/program").ljust(0x600, b"\0")
    auxv = elf.pack("WWWWWWWW", 3, at + 64, 5, 3, 31, at + 0x513, 0, 0)
    return core(elf, [(at, program, 0x600, 4), (base, library, 0x1000, 5)], [elf.note(b"CORE", NT_AUXV, auxv)])


def cores():
    names = [b"DotNetRuntimeContractDescriptor", b"g_dacTable", b"a"]
    for wide in (False, True):
        for big in (False, True):
            elf = Elf(wide, big)
            base = 0x7F0000000000 if wide else 0x40000000
            for gnu, relocations in ((True, "rela"), (False, "rel"), (True, "relr")):
                lib = image(elf, names, gnu, relocations)
                prpsinfo = elf.note(b"CORE", NT_PRPSINFO, bytes(24 if wide else 12) + elf.pack("I", 42) + bytes(100))
                files = elf.nt_file(4096, [(base, base + 0x1000, 0, b"/app/libcoreclr.so"),
                                           (base + 0x2000, base + 0x3000, 1, b"/app/x.dll")])
                yield (f"image-{64 if wide else 32}{'be' if big else 'le'}-{'gnu' if gnu else 'sysv'}-{relocations}",
                       core(elf, [(base, lib, 0x1000, 5), (base + 0x1000, b"data" * 8, 0x1000, 6)], [prpsinfo + files]))
            yield f"plain-{64 if wide else 32}{'be' if big else 'le'}", core(elf, [(0x1000, b"abcd", 16, 4)], [])
            threads = b""
            for tid in (42, 43):
                status = elf.pack("IIIHHWWIIII", 0, 0, 0, 11, 0, 0, 0, tid, 1, 1, 1)
                status += elf.pack("W" * 48, *range(0x1000, 0x1000 + 48))
                threads += elf.note(b"CORE", NT_PRSTATUS, status)
                threads += elf.note(b"CORE", NT_SIGINFO, elf.pack("I", 11) + bytes(124)) if tid == 43 else b""
            threads += elf.note(b"LINUX", NT_ARM_PAC_MASK, elf.pack("QQ", 0x7F << 48, 0x7F << 48)) if wide else b""
            threads += elf.note(b"CORE", NT_AUXV, elf.pack("WWWW", 33, 0x1000, 0, 0))
            yield f"link-map-{64 if wide else 32}{'be' if big else 'le'}", core_with_libraries(elf, base, lib)
            texts = elf.note(b"CDACQ", 0x43444305, b"a thread of many letters")
            for kind, text in ((0x43444301, b""), (0x43444303, b"dotnet a.dll " * 9), (0x43444304, b"/usr/bin/dotnet\0x")):
                texts += elf.note(b"CDACQ", kind, text)
            yield f"snapshot-{64 if wide else 32}{'be' if big else 'le'}", core(elf, [(0x1000, b"abcd", 16, 4)], [threads, texts])
            for machine in (62, 183) if wide else (3, 40):
                yield (f"threads-{machine}-{'be' if big else 'le'}",
                       core(elf, [(0x1000, b"abcd", 16, 4)], [threads], machine=machine))
            yield (f"extended-{64 if wide else 32}{'be' if big else 'le'}",
                   core(elf, [(0x1000, b"abcd", 4, 4), (0x1002, b"efgh", 4, 6)], [elf.note(b"CORE", 1, b"")], True))
    elf = Elf(True, False)
    yield "overlap", core(elf, [(0x1000 + 8 * i, b"x" * 16, 32, 4) for i in range(6)], [])
    yield "page-size-1", core(elf, [(0x1000, b"abcd", 4, 4)], [elf.nt_file(1, [(0x1000, 0x1004, 0x2000, b"/lib/a")])])
    yield "page-size-0", core(elf, [(0x1000, b"abcd", 4, 4)], [elf.nt_file(0, [(0x1000, 0x1004, 0x2000, b"/lib/a")])])
    yield "wide-open", core(elf, [(0, b"abcd", 1 << 64 - 1, 4)], [elf.nt_file(4096, [(0, (1 << 64) - 1, 0, b"/x")])])
    head = (HERE / "corpus/fuzz_metadata/Tiny.dll.image").read_bytes()
    head = head[head.index(b"MZ"):][:1024]
    yield "pe-head", core(elf, [(0x1000, head, 4096, 4)], [elf.nt_file(4096, [(0x1000, 0x2000, 0, b"/app/Tiny.dll")])])
    yield "cut", core(elf, [(0x1000, b"a" * 64, 64, 4)], [elf.nt_file(4096, [(0x1000, 0x2000, 0, b"/x")])])[:-40]


def texts():
    yield "net10", (HERE.parent / "fixtures/descriptors/10.0.json").read_bytes()
    yield "compact", (b'{"version":0,"baseline":"empty","types":{"RangeSection":{"!":72,"Flags":[16,"uint32"],"HeapList":40},'
                      b'"Bucket":{}},"globals":{"StubCodeBlockLast":["0xf","uint8"],"g":[1],"h":[[2],"pointer"],"s":"x64"},'
                      b'"contracts":{"ExecutionManager":2,"Loader":"c1"},"subDescriptors":{"GC":[[3],"pointer"]}}')
    yield "regular", (b'{"version":"0","types":[{"name":"A","size":"indeterminate","fields":[{"name":"x","type":"pointer",'
                      b'"offset":"unknown"},{"name":"y","offset":4}]}],"globals":[{"name":"g","type":"uint8","value":"0x1"},'
                      b'{"name":"h","type":"pointer","value":[1]},{"name":"i","value":"unknown"}]}')
    yield "comments", b'// c\n{ /* c */ "types": { "A": { "x": 1, }, }, "globals": {"g": -1,}, } // end'
    yield "numbers", b'{"globals":{"a":18446744073709551615,"b":"-0x8000000000000000","c":"0X1f","d":-0,"e":"1-x64"}}'
    yield "strings", b'{"globals":{"a\\u20ac\\ud83d\\ude00\\"\\\\":"\\b\\f\\n\\r\\t\\/"}}'
    yield "duplicates", b'{"types":{"A":{"x":1},"A":{"x":2}},"globals":{"g":1,"g":2},"globals":{"G":3}}'
    yield "wrong-types", b'{"types":[{"name":{}}],"globals":null}'
    yield "mismatch", b'{"types":{"RangeSection":{"Flags":[16,"uint64"]}},"globals":{"StubCodeBlockLast":[256,"uint8"]}}'
    yield "nested", b"[" * 100 + b"]" * 100
    yield "escaped-nul", b'{"a\\u0000b":1}'
    yield "padded", b"{}\0\0\0"


ARCHITECTURES = {"x86": 1, "x64": 2, "arm": 3, "arm64": 4, "loongarch64": 5, "riscv64": 6}  # of fuzz_unwind_info.c


def unwinds():
    """Some functions of each bundled image, with their unwind data and GC info; and what no image shows."""
    for path in sorted((HERE.parent / "fixtures" / "r2r").glob("*.dll")):
        image = r2r_image.Image(path.read_bytes())
        functions = r2r_image.Functions(image)
        taken = range(0, len(functions.entries), 5)
        table, data = b"", b""
        for i in taken:
            at = len(taken) * functions.entry_size + len(data)
            entry = [functions.entries[i][0], *functions.entries[i][1:-1], at]
            table += struct.pack("<" + "I" * len(entry), *entry)
            data += image.at(functions.unwind(i), functions.unwind_size(i) + 24 & ~3)
        yield path.stem, bytes([ARCHITECTURES[image.architecture], 4]) + table + data
    header = struct.pack("<IIII", 0x1000, 16, 0x2000, 16)
    for name in ("loongarch64", "riscv64", "arm64", "arm"):
        kind = bytes([ARCHITECTURES[name], 3])
        yield f"{name}-one-word", kind + header + struct.pack("<IIIIQ", 40 | 1 << 20 | 1 << 22 | 2 << 28, 3, 0xE5, 0, 0x1234) + bytes(32)
        yield f"{name}-two-words", kind + header + struct.pack("<IIIIQ", 40 | 3 << 20, 2 << 16, 0xE4, 0, 0x4321) + bytes(32)
        yield f"{name}-packed", kind + struct.pack("<IIII", 0x1000, 1 | 40 << 2, 0x2000, 2 | 9 << 2)
    yield "x64-chained", bytes([2, 4]) + struct.pack("<IIIBBBBIII", 0x1000, 0x1020, 12, 0x21, 0, 0, 0, 0x500, 0x600, 12)
    yield "x86-no-funclets", bytes([1 | 8, 2]) + struct.pack("<II", 0x1000, 8) + b"\x81\x05"


def entries():
    """For fuzz_entry: every width, byte order and version, whole and damaged in many places."""
    for choice in range(0, 24):
        yield f"whole-{choice}", bytes([choice])
        yield f"ones-{choice}", bytes([choice]) + b"".join(struct.pack("<HB", at, 1) for at in range(0, 600, 7))
        yield f"high-{choice}", bytes([choice]) + b"".join(struct.pack("<HB", at, 255) for at in range(3, 900, 11))


def stress_logs():
    """For fuzz_stress_log: every width, byte order and release, whole and damaged; and format strings."""
    for choice in range(0, 16):
        yield f"whole-{choice}", bytes([choice, 0])
        for name, value, step in (("ones", 1, 61), ("high", 255, 89), ("zeros", 0, 17)):
            yield f"{name}-{choice}", bytes([choice, 0]) + b"".join(
                struct.pack("<HB", at, value) for at in range(choice * 40, 8000, step))[:590]
    formats = [b"%d %u %x %X %o %i %c %p", b"%-5d|%05d|%+d|% d|%#x|%.3d|%8.3d", b"%lld %I64x %hd %hhu %zu %jd %Ix %I32d",
               b"%s %S %ls %hs %.2s %-8s", b"%f %g %e %.3f %a %G %10.2f", b"%pT %pM %pV %pK %px", b"%*d %-*d %.*d %",
               b"%99999999d %.99999x %n %y %-0# %%", b"\x1b[31m\n\xff%C\n\n"]
    for number, text in enumerate(formats):
        for choice in (8, 27):
            arguments = bytes([5, 200, 7, 255, 0, 1, 90, 201])
            yield f"format-{number}-{choice}", bytes([choice, len(text)]) + text + arguments


def r2r_images():
    """For fuzz_r2r_image: every width, byte order, architecture and kind of image, whole and damaged in many places."""
    for choice in (0, 1, 2, 3, 33, 65, 97, 129, 161, 5, 46, 203):
        yield f"whole-{choice}", bytes([choice])
        for name, value, step in (("ones", 1, 13), ("high", 255, 29), ("kinds", 0x38, 17)):
            yield f"{name}-{choice}", bytes([choice]) + b"".join(
                struct.pack("<HB", at, value) for at in range(choice, 4096, 4096 // 96 + step))[:297]


def jitdumps():
    """Two bytes of options, then a file."""
    for big in (False, True):
        dump = jitdump_writer.Jitdump(big, version=2)
        dump.debug_info(1, 0x10, [(0x10, 1, 0, b"a.c"), (0x12, 2, 1, b"b.c")])
        dump.unwinding_info(1, b"unwind", 3, 6)
        dump.samply(1, [b"f", b"g"], [b"n", b"m"], [(0, 0, 1, 0, 0), (1, 1, 2, 3, 0)],
                    [(0, 1, 1, 4, 0), (1, 2, 1, 5, 6)], [(0, 1), (2, 1), (4, 1)], [(0, 0, 1, 0), (2, 1, 7, 8)])
        dump.load(2, 3, 4, 0x10, b"code", 5, b"Name")
        dump.move(3, 3, 4, 0x20, 0x10, 0x20, 4, 5)
        dump.samply_positions(1, 0x1000, [(0, 0), (4, 1)], [(-1, 0, 1, 1, 2, 3, 4), (0, 0, -1, 0, 0, 5, 6)], [b"n", b"f"])
        dump.record(jitdump_writer.SAMPLY_TIER, 4, b"tier")
        dump.record(99, 4, b"?")
        dump.close(5)
        order = "be" if big else "le"
        yield f"all-{order}", b"\3\7" + dump.data
        yield f"cut-{order}", b"\0\37" + dump.data[:-9]
        yield f"random-{order}", b"\1\377" + next(
            dump.data for dump in (jitdump_writer.random_jitdump(random.Random(seed), 8) for seed in range(999))
            if (dump.order == ">") == big and 1000 < len(dump.data) < 4000)
        for name, count in (("index", None), ("index-wrapped", 1 << 61)):
            dump = jitdump_writer.Jitdump(big)
            data, size = dump.eh_frame(b"12345678", [(0, 4), (8, 0)])
            if count:
                data = data[:8] + bytes([1, 0x1b, 4, 0x3b]) + dump.pack("iQ", -12, count)
                size = len(data) - 8
            dump.unwinding_info(1, data, size, 0)
            dump.load(1, 1, 1, 0x10, b"code", 1, b"a")
            yield f"{name}-{order}", b"\3\7" + dump.data
    yield "zeros", b"\0\0" + jitdump_writer.Jitdump().data + bytes(64)
    yield "short-header", b"\2\3" + jitdump_writer.Jitdump(total_size=12).data + bytes(64)


def perf_maps():
    yield "runtime", b"0x7f1fe5960000 d8 stub<1> A<B>\n7f8c42e46000 0xa3 instance bool [L] List`1[C]::M()[Tier1]\n"
    yield "odd", b"1 0 empty\r\n\n \t\r\n\t2  3\t two  blanks \r\n4 5\n6 7 \xff\0\x1b"
    yield "broken", b"xyz\n0x 1 b\n1\n1 g h\n12345678901234567 1 j\nffffffffffffffff 1 k\n-1 1 l"


def mounts():
    """For fuzz_mounts: lines of /proc/PID/mountinfo."""
    line = b"27 1 254:3 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
    return [("lines", line + b"22 27 0:21 / /proc rw - proc proc rw\n99 27 0:50 / /a\\040-\\040b rw - fuse.x x rw"),
            ("without_type", b"27 1 254:3 / / rw\n" + line), ("numbers", b"18446744073709551616 1 4294967296:-1 / / - x\n - \n -  ")]


def proc_net():
    """For fuzz_proc_net: lines of /proc/PID/net/tcp and unix."""
    line = b"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1 0 100\n"
    return [("tcp", line), ("tcp6", line.replace(b"0100007F", b"00000000000000000000000001000000").replace(b" 00000000:0000", b" 0000000000000000FFFF00000100007F:C350")),
            ("odd", line.replace(b":1F90", b":")), ("unix", b"00000000deadbeef: 00000002 00000000 00010000 0001 01 99 /run/a b.sock\n"),
            ("abstract", b"00000000deadbeef: 00000002 00000000 00000000 0001 01 18446744073709551615 @" + b"x" * 300)]


def perf_scripts():
    yield "chain", b"# x\n\napp 1 #2 7/8 [001] K 3.5:   1 cycles:u: \n\t  7f00 f(int)+0x1 (/a (deleted))\n  a.c:1\n\t  1 g (inlined)\n\n"
    yield "flat", b"   app 8 3.5:  1 cycles:   0     55fd47f2c1d4 f+0x1a (/a)\n  app 8 [0] 3.5: s:t: a=1 ffffffff82265ec8 g ([k])\n"
    yield "records", b"app 0 0.0: PERF_RECORD_MMAP -1/0: [0xf(0x1) @ 0]: x y\napp 1 PERF_RECORD_LOST lost 1\n"
    yield "fields", b"app e: \n\t 1 f\n\n12 e: \n\t 1 f\n\napp 12\n\t 1\n\n3.5: e: \n\n\n\t 1 ((a)\n"
    yield "odd", b"-1 [ 1/ /1 1/2/3 [] [1 1. .1: : :: - K KK\n\t))) (((\n\t 1 +0x (+0x)\n\t12345678901234567 x\n"


class Nibbles:
    """Numbers of three bits a nibble, the highest first; the low nibble of a byte comes first."""

    def __init__(self, *numbers):
        self.nibbles = []
        for number in numbers:
            digits = max(1, (number.bit_length() + 2) // 3)
            self.nibbles += [number >> 3 * i & 7 | (8 if i else 0) for i in reversed(range(digits))]

    def bytes(self):
        padded = self.nibbles + [0] * (len(self.nibbles) % 2)
        return bytes(low | high << 4 for low, high in zip(padded[::2], padded[1::2]))


def debug_infos():
    """For fuzz_debug_info: a byte that chooses the encoding and the flag byte, then the blob."""
    bounds = [(0, -2, 2), (0, 0, 2), (12, 7, 0), (20, 5, 1), (40, 90, 2), (400, -3, 2), (410, -1, 0)]
    deltas = [(at - last, il + 3, source) for (at, il, source), last in zip(bounds, [0] + [bound[0] for bound in bounds])]
    plain = Nibbles(len(bounds), *(number for bound in deltas for number in bound)).bytes()

    def packed(source_bits):
        value, at = 0, 0
        for native, il, source in deltas:
            value |= (source | native << source_bits | il << source_bits + 9) << at
            at += source_bits + 9 + 7
        return Nibbles(len(bounds), 8, 6).bytes() + value.to_bytes((at + 7) // 8, "little")

    two, three = packed(2), packed(3)
    yield "nibbles", b"\0" + Nibbles(len(plain), 0).bytes() + plain
    yield "nibbles-flags", b"\4\3" + bytes(8) + b"\2" + bytes(31) + b"\1\0\0\0x" + Nibbles(len(plain), 0).bytes() + plain
    yield "packed", b"\1" + Nibbles(len(two), 3).bytes() + two
    yield "packed-two-bounds", b"\1" + Nibbles(0xFFFFFFFF, len(plain), len(two), 3).bytes() + plain + two
    yield "packed-patchpoint", b"\5\1" + bytes(16) + b"\1" + bytes(27) + Nibbles(len(two), 0).bytes() + two
    yield "slim", b"\2" + Nibbles(len(three), 3).bytes() + three
    yield "fat", b"\2" + Nibbles(0, len(two), 1, len(three), 0, 0, 4).bytes() + two + b"v" + three
    # Of each place: begin, length, number (number, begin, length in the third encoding), the kind of place, registers and offsets.
    places = [(0, 7), (1, 7), (2, 15), (3, 5, 33), (4, 17, 16), (5, 7, 6), (6, 7, 5, 17), (7, 16, 5, 7), (8, 5, 48), (9, 2), (10, 40)]
    variables = Nibbles(len(places), *(number for i, place in enumerate(places) for number in (3 * i, 90, i, *place))).bytes()
    yield "variables", b"\0" + Nibbles(len(plain), len(variables)).bytes() + plain + variables
    yield "variables-packed", b"\1" + Nibbles(0xFFFFFFFF, len(two), len(two), len(variables)).bytes() + two + two + variables
    yield "variables-fat", b"\2" + Nibbles(0, len(two), len(variables), len(three), 0, 0, 4).bytes() + two + variables + three


def frames_x86(frame):
    """The GC info takes the place of unwind data: size of the code, a usual head, what differs, tables."""
    code = bytes.fromhex("57 56 51 ff15 00000000 50 90 ff15 00000000 59 5e 5f c20400")  # push edi; push esi; push ecx; call; push eax
    head = bytes([21, 0xA6, 0x94, 0x88, 0x01])  # 2 saved registers, prolog 3, epilog 6, a word of frame
    for pc in (0, 1, 2, 3, 9, 10, 17, 18, 19, 20):
        yield f"x86-{pc}", frame(pc, code, head + bytes([0x0A, 0x47, 0x51, 0xFF]), flags=33)
    yield "x86-after-a-call", frame(17, code, head + bytes([0x0A, 0xD3, 0x48, 0xFF]), flags=32)
    framed = bytes.fromhex("55 8bec 57 56 83ec10 90 8d65f8 5e 5f 5d c3")
    for pc in (1, 3, 4, 8, 9, 12, 13, 15):
        yield f"x86-frame-{pc}", frame(pc, framed, bytes([16, 0xD4, 0x97, 0x88, 0x04, 0xFF]), flags=33)
    yield "x86-aligned", frame(9, bytes.fromhex("55 8bec 83e4f8 57 56 50 90 59 5e 5f 8be5 5d c3"),
                               bytes([17, 0xA6, 0xBE, 0xC1, 0x99, 0xA9, 0x01, 0xFF]), flags=33)
    yield "x86-funclet", frame(5, bytes.fromhex("83ec0c 90 e800000000 83c40c c3"), bytes([13, 0xD4, 0x40, 0xFF]), flags=49)
    yield "x86-interruptible", frame(9, code, bytes([21, 0xA6, 0xC0, 0x94, 0x88, 0x01]) + bytes.fromhex(
        "f0 b2 bc 82 bf 8a c3 f900 f801 fc02 fd01 b801 0d 4d ff"), flags=33)
    yield "x86-every-call", frame(15, code, bytes([21, 0x21, 0x02, 0x20, 3, 0x41, 0x52, 0x80, 0xD1, 8, 0xE0, 1, 1, 0xF0, 5, 0xF5, 0xF8, 0]) +
                                  struct.pack("<IIII", 1, 1, 0, 0) + b"\xFF", flags=33)
    yield "x86-tables", frame(9, code, bytes([21, 0xA6, 0xC7, 0xC6, 0xCA, 0xCB, 0xCE, 0xCF, 0x09, 2, 1, 4, 1, 1, 8, 1, 3, 5, 1, 2, 3]), flags=33)
    yield "x86-epilogs", frame(18, code, bytes([21, 0x22, 15, 2, 0xFF]), flags=33)


def frames():
    """For fuzz_unwind: the registers in small, then code at 0, unwind data at 64 and 128, a stack at 256."""
    def frame(pc, code, info, chained=b"", sp=64, known=0xFF, rest=64, flags=1):
        return (bytes([pc, 0, len(code), 64, sp, known, rest, flags]) + code.ljust(64, b"\x90") + info.ljust(64, b"\0") +
                chained.ljust(128, b"\0") + b"".join(struct.pack("<Q", 0x10000 + 8 * i) for i in range(64)))

    code = bytes.fromhex("53 4883ec20 90 90 4883c420 5b c3")  # push rbx; sub rsp, 32; ...; add rsp, 32; pop rbx; ret
    info = bytes([1, 5, 2, 0, 5, 0x32, 1, 0x30])
    for pc in (0, 1, 5, 6, 7, 11, 12):
        yield f"small-{pc}", frame(pc, code, info)
    yield "after-a-call", frame(7, code, info, flags=0)
    framed = bytes.fromhex("55 4883ec40 488d6c2440 90 488d6500 5d c3")  # push rbp; sub rsp, 64; lea rbp, [rsp + 64]; ...
    yield "frame", frame(10, framed, bytes([1, 10, 3, 0x45, 10, 3, 5, 0x72, 1, 0x50]))
    yield "frame-epilog", frame(11, framed, bytes([1, 10, 3, 0x45, 10, 3, 5, 0x72, 1, 0x50]))
    yield "large", frame(40, b"", bytes([1, 9, 8, 0xF5, 9, 11]) + struct.pack("<I", 17) + bytes([8, 0x11]) +
                         struct.pack("<I", 128) + bytes([8, 0x34, 1, 0]))
    yield "far", frame(30, b"", bytes([1, 9, 6, 0, 9, 0x35]) + struct.pack("<I", 16) + bytes([8, 0x88, 1, 0, 7, 1, 4, 0]))
    yield "chained", frame(3, code, bytes([1 | 4 << 3, 0, 0, 0]) + struct.pack("<III", 0, 13, 128), info)
    yield "chained-to-itself", frame(3, code, bytes([1 | 4 << 3, 0, 0, 0]) + struct.pack("<III", 0, 13, 64))
    yield "machine-frame", frame(3, code, bytes([1, 0, 1, 0, 0, 0x1A]))
    arm64 = struct.pack("<II", 12 | 1 << 21 | 1 << 22 | 2 << 27, 0x8303D0E1) + b"\xe4" * 4
    for pc in (0, 4, 12, 20, 36, 40, 44):
        yield f"arm64-{pc}", frame(pc, bytes(48), arm64, flags=3)
    scopes = struct.pack("<IIII", 12 | 2 << 22 | 2 << 27, 5 | 1 << 22, 9 | 1 << 22, 0x8303D0E1) + b"\xe4" * 4
    yield "arm64-scopes", frame(24, bytes(48), scopes, flags=3)
    every = bytes([0x02, 0x24, 0x41, 0x82, 0xC0, 0x02, 0xC8, 0x02, 0xCC, 0x03, 0xD0, 0x01, 0xD4, 0x21, 0xD6, 0x02, 0xD8, 1, 0xDA, 1, 0xDC, 1,
                   0xDE, 1, 0xE0, 0, 0, 1, 0xE2, 1, 0xE3, 0xE6, 0xE7, 0x40, 1, 0xFC, 0xF8, 0, 0xE4, 0xE4])
    yield "arm64-every-code", frame(44, bytes(48), struct.pack("<I", 12 | 1 << 21 | 10 << 27) + every, flags=3)
    for i, entry in enumerate((1 | 3 << 21 | 2 << 23, 1 | 2 << 16 | 1 << 20 | 3 << 21 | 9 << 23, 1 | 7 << 13 | 10 << 16 | 2 << 21 | 99 << 23,
                               2 | 1 << 16 | 1 << 21 | 4 << 23)):
        yield f"arm64-packed-{i}", frame(16, struct.pack("<I", entry | 12 << 2) + bytes(44), b"", flags=7)
    pushes = struct.pack("<I", 12 | 1 << 21 | 1 << 28) + bytes([2, 0xE1, 0xDC, 0xFF])
    for pc in (0, 4, 8, 10, 14, 18, 22):
        yield f"arm-{pc}", frame(pc, bytes(24), pushes, flags=9)
    yield "arm-scopes", frame(14, bytes(24), struct.pack("<IIII", 12 | 2 << 23 | 1 << 28, 3 | 14 << 20, 6 | 4 << 24, 0xFFDCE102), flags=9)
    yield "arm-conditions", frame(14, bytes(24), struct.pack("<III", 12 | 1 << 23 | 1 << 28, 6 | 10 << 20, 0xFFDCE102), flags=9)
    every = bytes([0x05, 0xA1, 0x10, 0xC7, 0xD6, 0xDF, 0xE3, 0xE9, 4, 0xED, 0x0F, 0xEF, 5, 0xF5, 0x12, 0xF6, 0x23, 0xF7, 0, 1, 0xF8, 0, 0, 1,
                   0xF9, 0, 2, 0xFA, 0, 0, 2, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF])
    yield "arm-every-code", frame(44, bytes(48), struct.pack("<I", 24 | 1 << 21 | 9 << 28) + every, flags=9)
    for i, entry in enumerate((1 | 3 << 16 | 1 << 20 | 2 << 22, 1 | 1 << 13 | 4 << 16, 1 | 1 << 15 | 1 << 20 | 1 << 21 | 0x3FD << 22,
                               2 | 2 << 13 | 7 << 16 | 1 << 19 | 1 << 20 | 200 << 22)):
        yield f"arm-packed-{i}", frame(18, struct.pack("<I", entry | 12 << 2) + bytes(20), b"", flags=13)
    yield "funclet", frame(7, code, info, flags=17)
    yield from frames_x86(frame)
    yield "tail-call", frame(5, bytes.fromhex("4883c408 48ffe0"), info)


def stacks():
    """For fuzz_stack: where the walk begins, unwind data, and words of the stack; a word's high byte says what it
    is."""
    def stack(first, words, unwind=bytes([1, 0, 0, 0])):
        return bytes([first]) + unwind.ljust(16, b"\0") + b"".join(struct.pack("<Q", words.get(at, 0)) for at in range(0, 0x400, 8))

    on_stack, method, native, last = 1 << 56, 3 << 56 | 8, 5 << 56 | 0x40, 6 << 56
    yield "managed", stack(1, {0x20: method, 0x28: method, 0x30: native})
    yield "hijacked", stack(0, {0x20: method, 0x28: method, 0x30: method, 0x38: method, 0x40: native})
    for kind in range(1, 11):  # a Frame at 0x80, each of whose fields leads somewhere
        for value, name in ((on_stack | 0x200, "stack"), (method, "method")):
            words = {at: value for at in range(0x88, 0x300, 16)} | {at: method for at in range(0x90, 0x300, 16)}
            yield f"frame-{kind}-{name}", stack(2 | 4 * (kind & 1), words | {0x80: kind, 0x88: last, 0x90: on_stack | 0x200})
    yield "frames-in-a-cycle", stack(6, {0x80: 1, 0x88: on_stack | 0x90, 0x90: 9, 0x98: on_stack | 0x80})
    yield "guess", stack(3, {0x60: on_stack | 0x100, 0x68: method, 0x100: on_stack | 0x80, 0x108: native})
    yield "push", stack(0x11, {0x20: 7, 0x28: method, 0x30: 7, 0x38: method}, bytes([1, 1, 1, 0, 1, 0x30]))


def verified():
    """For fuzz_verify: a byte that chooses the process, then a file about its methods, their neighbours and nothing."""
    even, odd = b"void [] N.T::Even()", "void [] N.T::O\\d\u00e4\x01(string)".encode()
    for choice in range(4):
        step, rest = (0x60, 0x30) if choice & 1 else (0x50, 0x20)
        lines = []
        for heap in (0x40000000, 0x40100000):
            starts = [heap + 0x10, heap + 0x10 + step, heap + 0x10 + 2 * step]
            starts += [starts[-1] + step + 0x70]
            lines += [(starts[0], 40, even + b"[Tier0]"), (starts[1], 40, odd), (starts[2], 0x5A, even + b"[PreJIT]" + even + b"[PreJit-cold]"),
                      (starts[0], 40, b"void [] Gone::Gone()"), (starts[1] + 4, 40, odd), (starts[2], 50, even),
                      (starts[1], 40, even), (heap + 0x3F00, 40, even), (heap + 0x3000, 40, b"void [] Gone::Gone()")]
        lines += [(0x40200000 + at, 64, even) for at in range(0, 0x2000, 0x400)]
        lines += [(0x40000000 + rest, 64, b"stub GenerateLookupStub<GenerateLookupStub>"), (0x7654321000, 8, b"void [] Nowhere::M()"),
                  (0xFFFFFFFFFFFFFFF0, 15, odd), (0x40000010, 0, even)]
        yield f"map-{choice}", bytes([choice]) + b"".join(b"0x%x %x %s\n" % line for line in lines)
        yield f"half-{choice}", bytes([choice]) + b"".join(b"%x %x %s\r\n\n?\n" % line for line in lines)[:-9]
        dump = jitdump_writer.Jitdump(bool(choice & 2))
        for i, (address, size, name) in enumerate(lines):
            dump.load(100 + i, 1, 1, (address + (i % 7 == 6)) % (1 << 64), bytes(size), i, name, code_addr=address)
        dump.close(999)
        yield f"dump-{choice}", bytes([choice]) + dump.data
        yield f"cut-{choice}", bytes([choice]) + dump.data[:-40]
    yield "given-up", b"\1" + jitdump_writer.Jitdump().data + struct.pack("<IIQ", 0, 65536, 1) + bytes(40) + b"stub ReportStubBlock<Unknown>\0"
    yield "neither", b"\1neither\n"


def pdbs():
    """A PDB and the images that name one, as make.sh of the fixture builds them, and single blobs of points."""
    fixtures = HERE.parent / "fixtures/pdb"
    yield "Lines.pdb", b"\0" + (fixtures / "Lines.pdb").read_bytes()
    yield "Lines.dll", b"\2" + (fixtures / "Lines.dll").read_bytes()
    embedded = (fixtures / "Embedded.dll").read_bytes()
    yield "Embedded.dll", b"\2" + embedded
    yield "Embedded.dll.mapped", b"\3" + embedded[:0x200] + bytes(0x2000 - 0x200) + embedded[0x200:]
    yield "points", b"\1\1" + bytes([0x11, 5, 0, 9, 30, 4, 3, 0, 0, 2, 2, 0x7b, 2, 4])
    yield "points-documents", b"\1\0" + bytes([0, 7, 0, 0, 9, 30, 4, 0, 8, 3, 0, 9, 0x7f, 0, 1, 0, 0])
    yield "points-wide", b"\1\1" + bytes([0, 0x80, 0x90, 0xc0, 1, 0, 0, 0x81, 3, 0x9f, 0xff, 0x88, 7, 1, 0, 1, 0xc0, 0, 1, 0, 2])


CFI_PROGRAMS = {
    "frame": b"\x41\x0e\x10\x86\x02\x43\x0d\x06\x50\x0a\x41\x0c\x07\x08\x42\x0b",
    "factored": b"\x12\x07\x7e\x13\x7d\x11\x03\x02\x15\x0c\x01\x14\x0d\x01\x2f\x05\x01\x2e\x10\x05\x06\x03",
    "register": b"\x09\x10\x03\x07\x01\x08\x02\xc2\x06\x03\x02\x10\x03\x00\x01\x04\x01\x00\x00\x00",
    "expression": b"\x0f\x03\x77\x10\x06\x10\x10\x04\x77\x88\x01\x06\x16\x03\x05\x77\x00\x23\x08\x94\x04",
    "arithmetic": b"\x0f\x20" + b"\x77\x00\x38\x22\x12\x14\x15\x01\x16\x17\x13\x13\x31\x24\x32\x25\x33\x26\x1f\x20"
                  b"\x3f\x1a\x21\x27\x12\x2a\x28\xfc\xff\x0b\x01\x00",
    "undefined": b"\x07\x10\x2d",
}


def native(elf, machine, program, signal, table):
    """An image with .eh_frame and its header, and with symbols in every place; all of it is one segment."""
    base = 0x10000
    section = lambda name, kind, at, size, link=0: elf.pack("IIWWWWIIWW", name, kind, 0, base + at, at, size, link, 0, 8, 0)
    names = b"\0.symtab\0.strtab\0.gnu_debugdata\0.gnu_debuglink\0.shstrtab\0"
    body = bytearray(elf.header_size + 3 * elf.entry_size)

    def put(data):
        body.extend(bytes(-len(body) % 8))
        at = len(body)
        body.extend(data)
        return at

    code = put(bytes(256))
    cie = b"\x01zR" + (b"S" if signal else b"") + b"\0" + b"\x01\x78\x10\x01\x1b" + b"\x0c\x07\x08\x90\x01"
    cie += bytes(-len(cie) % 4)
    frame = put(b"")
    body.extend(elf.pack("II", len(cie) + 4, 0) + cie)
    fde = len(body)
    contents = elf.pack("iI", code - (fde + 8), 256) + b"\0" + program
    contents += bytes(-len(contents) % 4)
    body.extend(elf.pack("II", len(contents) + 4, fde + 4 - frame) + contents + bytes(4))
    header = put(b"")
    body.extend(b"\x01\x1b" + (b"\x03\x3b" if table else b"\xff\xff") + elf.pack("i", frame - (header + 4)))
    if table:
        body.extend(elf.pack("Iii", 1, code - header, fde - header))
    strings = put(b"\0function\0label\0")
    symbol = (lambda name, value, size, info: elf.pack("IBBHQQ", name, info, 0, 1, value, size)) if elf.wide else (
        lambda name, value, size, info: elf.pack("IIIBBH", name, value, size, info, 0, 1))
    symbols = symbol(0, 0, 0, 0) + symbol(1, code, 128, 0x12) + symbol(10, code + 160, 0, 0)
    table_at = put(symbols)
    packed = lzma.compress(b"\x7fELF" + bytes(60))
    packed_at, link_at, names_at = put(packed), put(b"x.debug\0\1\2\3\4"), put(names)
    sections = put(section(0, 0, 0, 0) + section(1, 2, table_at, len(symbols), 2) + section(9, 3, strings, 16) +
                   section(17, 1, packed_at, len(packed)) + section(32, 1, link_at, 12) + section(47, 3, names_at, len(names)))
    size = len(body)
    start = elf.header(ET_DYN, machine, 2, shoff=sections, shnum=6)
    start = start[:-2] + elf.pack("H", 5)
    start += elf.program_header(PT_LOAD, 5, 0, 0, size, size) + elf.program_header(0x6474E550, 4, header, header, size - header, size - header)
    body[:len(start)] = start
    return bytes(body)


def bare_native(elf, caller):
    """An image without .eh_frame: a return at 0x100, whose address is in the middle of the image; calls at 0x180 and 0x1C0."""
    body = bytearray(1024)
    start = bytearray(elf.header(ET_DYN, 62, 1) + elf.program_header(PT_LOAD, 5, 0, 0, len(body), len(body)))
    start[24:32] = struct.pack("<Q", 0x180)  # e_entry
    body[:len(start)] = start
    body[0x100] = 0xC3
    body[0x180:0x185] = b"\xe8" + bytes(4)
    body[0x1C0:0x1CD] = bytes.fromhex("e800000000 89c7 31c0 b03c 0f05")
    body[512:520] = struct.pack("<Q", 0x10000 + caller)
    return bytes(body)


def natives():
    for number, (name, program) in enumerate(CFI_PROGRAMS.items()):
        for choice, (machine, wide) in enumerate(((62, True), (183, True), (3, False))):
            data = native(Elf(wide, False), machine, program, number & 1, choice != 1)
            yield f"{name}-{machine}", bytes([choice, number & 1, 0, 0]) + data
    yield "operations", bytes(4) + CFI_PROGRAMS["arithmetic"][2:]
    for name, caller in (("entry", 0x185), ("thread", 0x1C5)):
        yield f"bare-{name}", bytes(4) + bare_native(Elf(True, False), caller)


def compressed():
    """For fuzz_unpacker: a byte that chooses the reads, then a file. zstd and lz4 are written by hand, as raw
    blocks."""
    text = b"to be, or not to be, " * 40
    zstd_block = struct.pack("<I", 1 | len(b"hello") << 3)[:3] + b"hello"
    zstd = struct.pack("<I", 0xFD2FB528) + bytes([0, 0x58]) + zstd_block
    run = struct.pack("<I", 1 | 1 << 1 | 200 << 3)[:3] + b"r"
    lz4 = struct.pack("<I", 0x184D2204) + bytes([0x60, 0x40, 0x82]) + struct.pack("<I", 5 | 1 << 31) + b"hello" + bytes(4)
    skippable = struct.pack("<II", 0x184D2A53, 4) + b"skip"
    gz = gzip.compress(text, mtime=0)
    xz = lzma.compress(text, preset=0)
    members = {"zstd": zstd, "zstd-run": struct.pack("<I", 0xFD2FB528) + bytes([0, 0x58]) + run, "lz4": lz4, "gzip": gz, "xz": xz}
    for name, member in members.items():
        yield name, b"\7" + member
        yield f"{name}-twice", b"\0" + member * 2
        yield f"{name}-cut", b"\77" + member[:-3]
        yield f"{name}-padded", b"\1" + member + bytes(8) + member
        yield f"{name}-changed", b"\5" + member[:-6] + bytes([member[-6] ^ 1]) + member[-5:]
    yield "skippable-zstd", b"\2" + skippable + zstd + skippable
    yield "skippable-lz4", b"\2" + skippable + lz4 + skippable + lz4
    yield "window", b"\1" + struct.pack("<I", 0xFD2FB528) + bytes([0, 20 << 3]) + zstd_block


def locks():
    """For fuzz_locks: an offset, then words to overwrite, or GC info."""
    def word(place, kind, value):
        return struct.pack("<HBH", place, kind, value)

    yield "nothing", b""
    yield "slim", bytes([20]) + bytes.fromhex("92013f0a05a00040ff00")
    yield "fat", bytes([41]) + bytes.fromhex("81e40203c1470a7f55aa3311990044f0")
    for seed in range(12):
        chance = random.Random(seed)
        yield f"words-{seed}", bytes([chance.randrange(256)]) + b"".join(
            word(chance.randrange(1 << 16), chance.randrange(4), chance.randrange(1 << 13)) for _ in range(1 + 3 * seed))


def objects():
    """For fuzz_object: words to overwrite."""
    yield "nothing", b""
    for seed in range(24):
        chance = random.Random(seed)
        yield f"words-{seed}", b"".join(
            struct.pack("<HBH", chance.randrange(1 << 13), chance.randrange(8), chance.randrange(1 << chance.choice((3, 8, 15))))
            for _ in range(1 + 2 * seed))


def heaps():
    """For fuzz_heap: the kind of GC, then words to overwrite: in its structures, or anywhere."""
    for kind in range(8):
        yield f"nothing-{kind}", bytes([kind])
        for seed in range(6):
            chance = random.Random(seed << 3 | kind)
            places = 1 << (10, 13)[seed % 2]
            yield f"words-{kind}-{seed}", bytes([kind]) + b"".join(
                struct.pack("<HBH", chance.randrange(places), chance.randrange(4), chance.randrange(1 << chance.choice((3, 8, 13, 16))))
                for _ in range(1 + 2 * seed))


def roots():
    """For fuzz_gc_roots: the kind of GC, then words to overwrite: in its structures, in the handles, or anywhere."""
    for kind in range(8):
        yield f"nothing-{kind}", bytes([kind])
        for seed in range(6):
            chance = random.Random(seed << 3 | kind)
            first, count = ((0, 1 << 8), (0x6000, 1 << 9), (0, 1 << 15))[seed % 3]
            yield f"words-{kind}-{seed}", bytes([kind]) + b"".join(
                struct.pack("<HBH", first + chance.randrange(count), chance.randrange(4), chance.randrange(1 << chance.choice((3, 8, 13, 16))))
                for _ in range(1 + 2 * seed))


def graphs():
    """For fuzz_dominators: the number of nodes, then edges."""
    yield "nothing", b""
    for seed in range(24):
        chance = random.Random(seed)
        count = 1 + chance.randrange(60)
        chain = bytes(value for node in range(count) for value in (node, node + 1)) if seed % 3 == 0 else b""
        yield f"edges-{seed}", bytes([count]) + chain + bytes(chance.randrange(count) for _ in range(2 * chance.randrange(3 * count)))


def async_methods():
    """For fuzz_async: words to overwrite, in objects, types or both."""
    yield "nothing", b""
    for seed in range(24):
        chance = random.Random(seed)
        kinds = ((0, 1, 2, 3), (4, 5, 6, 7), tuple(range(16)))[seed % 3]
        yield f"words-{seed}", b"".join(
            struct.pack("<HBH", chance.randrange(1 << 16), chance.choice(kinds), chance.randrange(1 << chance.choice((3, 8, 13, 16))))
            for _ in range(1 + 2 * seed))


def added_code():
    """For fuzz_added_code: the process, then words to overwrite."""
    for process in range(8):
        yield f"nothing-{process}", bytes([process])
    for seed in range(48):
        chance = random.Random(seed)
        yield f"words-{seed}", bytes([seed]) + b"".join(
            struct.pack("<HBH", chance.randrange(1 << 16), chance.randrange(4), chance.randrange(1 << chance.choice((3, 8, 16))))
            for _ in range(1 + seed))


def link_maps():
    """For fuzz_link_map: program headers, a dynamic section, struct r_debug and libraries; ADDRESS marks addresses."""
    def at(offset):
        return 0xADD4E55E << 32 | offset

    def memory(libraries, state=0, tag=21, last=0):
        headers = struct.pack("<IIQQQQQQ", 6, 4, 64, 0, 0, 0, 0, 8) + struct.pack("<IIQQQQQQ", 2, 6, 0, 0x80, 0, 0, 0, 8)
        dynamic = struct.pack("<QQQQQQ", 1, 1, tag, at(0xC0), 0, 0)
        data = (headers.ljust(0x80, b"\0") + dynamic).ljust(0xC0, b"\0")
        data += struct.pack("<QQQQQ", 1, at(0x100), 0, state, 0)
        data = data.ljust(0x100, b"\0")
        for i, (address, name) in enumerate(libraries):
            following = at(0x100 + 64 * (i + 1)) if i + 1 < len(libraries) else last
            data += struct.pack("<QQQQ", address, at(0x100 + 64 * i + 40), 0, following) + bytes(8) + name.ljust(24, b"\0")
        return b"\2" + data

    three = [(0x5000, b"a.so"), (0x1000, b"b.so"), (0x2000, b"another.so")]
    yield "whole", memory(three)
    yield "changing", memory(three, state=1)
    yield "cyclic", memory(three, last=at(0x100))
    yield "lost", memory(three, last=8)
    yield "no-debug", memory(three, tag=22)
    yield "many", memory([(0x1000 * i, b"a") for i in range(9)])
    yield "long-name", memory([(0x1000, b"a" * 24)] * 40)


def line_programs():
    """For fuzz_dwarf_line: units of every version, with what ends them early."""
    program = (b"\0\x09\2" + struct.pack("<Q", 0x1000) + b"\3\x09\1\4\2\5\x07\x46\x08\x09\x10\0\2\2\x0c\0\1\1"
               + b"\0\x05\2" + struct.pack("<I", 0x2000) + b"\1\2\x80\1\0\1\1")

    def unit(version, tables, wide=False):
        head = b"\1" + (b"\1" if version >= 4 else b"") + b"\1\xfd\x0e\x0d" + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]) + tables
        size = "<Q" if wide else "<I"
        body = struct.pack("<H", version) + (b"\x08\0" if version == 5 else b"")
        body += struct.pack(size, len(head)) + head + program
        return (b"\xff\xff\xff\xff" if wide else b"") + struct.pack(size, len(body)) + body

    old = b"/a\0b\0\0x.c\0\1\0\0y.c\0\2\0\0\0"
    new = b"\1\1\x08\2/a\0b\0" + b"\3\1\x1f\2\x0b\5\x1e\2" + bytes(21) + b"\4\0\0\0\1" + bytes(16)
    strings = b"x.c\0y.c\0"
    for version in (2, 3, 4):
        yield f"version-{version}", b"\0\0" + unit(version, old) * 2
    yield "version-5", b"\0" + bytes([len(strings)]) + unit(5, new) * 2 + strings
    yield "wide", b"\0" + bytes([len(strings)]) + unit(5, new, wide=True) + strings
    yield "big", b"\1\0" + unit(4, old)
    yield "version-6", b"\0\0" + unit(6, old) + unit(4, old)
    yield "cut", b"\0\0" + unit(4, old)[:-9]


def native_aot():
    """For fuzz_native_aot: bytes of the program's parts (tests/support/aot_program.h) that are overwritten."""
    yield "whole", b""
    for place, begin, end in (("header", 0x80, 0x100), ("thread", 0x300, 0x540), ("types", 0x1000, 0x1680),
                              ("frames", 0x2800, 0x2D00), ("sections", 0x4000, 0x4600)):
        chance = random.Random(place)
        for count in (1, 4, 16):
            for number in range(4):
                yield f"{place}-{count}-{number}", b"".join(
                    struct.pack("<HB", chance.randrange(begin, end), chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))))
                    for _ in range(count))


def command_lines():
    """For fuzz_command_line: the top of a stack; ADDRESS marks addresses."""
    def at(offset):
        return 0xADD4E55E << 32 | offset

    def memory(arguments, environment=(b"A=B",), vector=((6, 4096), (31, None), (0, 0)), count=None, first=0x20):
        strings, words, place = b"", [len(arguments) if count is None else count], 0x800
        for group in (arguments, environment):
            for string in group:
                words.append(at(place + len(strings)))
                strings += string + b"\0"
            words.append(0)
        program = place + len(strings)
        for kind, value in vector:
            words += [kind, at(program) if value is None else value]
        data = bytes(first) + struct.pack(f"<{len(words)}Q", *words)
        data = data.ljust(place, b"\0") + strings + b"/bin/program\0"
        return bytes([0]) + struct.pack("<H", program) + data

    yield "whole", memory([b"dotnet", b"app.dll", b"", b"a b"])
    yield "no-environment", memory([b"a"], [])
    yield "long", memory([b"a" * 60, b"b" * 60])
    yield "no-arguments", memory([])
    yield "another-count", memory([b"a", b"b"], count=7)
    yield "no-vector", memory([b"a"], vector=((6, 4096), (0, 0)))
    yield "across-pages", memory([b"a", b"b"], first=0x7b8)
    yield "32-bit", bytes([1]) + memory([b"a"])[1:]
    yield "other-order", bytes([2]) + memory([b"a"])[1:]


def symbol_keys():
    """For fuzz_symbol_key: keys, and URLs that can stand before one."""
    yield "file", b"Foo.exe/542D574232000/Foo.exe"
    yield "pdb", b"Foo.pdb/497b72f6390a44fc878e5a2d63b6cc4bFFFFFFFF/Foo.pdb"
    yield "debug", b"_.debug/elf-buildid-sym-180a373d6afbabf0eb1f09be1bc45bd796a71085/_.debug"
    yield "strange", b"\xff a%2f..\\/1/\xff a%2f..\\"
    yield "dots", b"../1/.."
    yield "long", b"x" * 253 + b"/1/" + b"x" * 253
    yield "url", b"https://user:word@[::1]:8080/a/%20/"
    yield "query", b"http://a/?b#c"


def main():
    for name, inputs in (
        ("fuzz_core", cores()),
        ("fuzz_json", texts()),
        ("fuzz_unwind_info", unwinds()),
        ("fuzz_entry", entries()),
        ("fuzz_r2r_image", r2r_images()),
        ("fuzz_link_map", link_maps()),
        ("fuzz_command_line", command_lines()),
        ("fuzz_jitdump", jitdumps()),
        ("fuzz_perf_map", perf_maps()),
        ("fuzz_mounts", mounts()),
        ("fuzz_proc_net", proc_net()),
        ("fuzz_perf_script", perf_scripts()),
        ("fuzz_debug_info", debug_infos()),
        ("fuzz_unwind", frames()),
        ("fuzz_stack", stacks()),
        ("fuzz_native", natives()),
        ("fuzz_verify", verified()),
        ("fuzz_unpacker", compressed()),
        ("fuzz_portable_pdb", pdbs()),
        ("fuzz_locks", locks()),
        ("fuzz_object", objects()),
        ("fuzz_heap", heaps()),
        ("fuzz_gc_roots", roots()),
        ("fuzz_dominators", graphs()),
        ("fuzz_async", async_methods()),
        ("fuzz_added_code", added_code()),
        ("fuzz_stress_log", stress_logs()),
        ("fuzz_dwarf_line", line_programs()),
        ("fuzz_native_aot", native_aot()),
        ("fuzz_symbol_key", symbol_keys()),
    ):
        folder = HERE / "corpus" / name
        folder.mkdir(parents=True, exist_ok=True)
        for seed, data in inputs:
            (folder / seed).write_bytes(data)


if __name__ == "__main__":
    main()
