"""
Inputs made to hurt: each function writes one into a folder and returns its path. What they have in common is that
little of the file claims much: time, memory, a wait. The names say what is wrong with them.
"""
import os
import random
import struct
import subprocess

from core_edit import PAGE, PT_LOAD, PT_NOTE, Core, Runtime
from emulation import EMULATED

NT_PRSTATUS, NT_FILE, NT_PDB = 1, 0x46494C45, 0x43444302
AREA = 0x100000000000
ELF = b"\x7fELF\2\1\1" + bytes(9)


def elf_header(kind, machine, headers, count, sections=0):
    return ELF + struct.pack("<HHIQQQIHHHHHH", kind, machine, 1, 0, headers, sections, 0, 64, 56, count, 64, 1 if sections else 0, 0)


def loads(path, count, place):
    """PT_LOADs of the same bytes; `place` gives (address, size) of each."""
    with open(path, "wb") as file:
        file.write(elf_header(4, 62, 128, 0xFFFF, 64))
        file.write(struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 1, 0, count, 0, 0))
        for i in range(count):
            address, size = place(i)
            file.write(struct.pack("<IIQQQQQQ", PT_LOAD, 4 + 2 * (i & 1), 64, address, 0, size, size, 1))
    return path


def loads_apart(folder, _):
    return loads(f"{folder}/loads_apart.core", 100_000, lambda i: (0x10000000 + i * 64, 16))


def loads_nested(folder, _):
    return loads(f"{folder}/loads_nested.core", 50_000, lambda i: (0x10000000 + i * 16, 2_800_000 - i * 32))


def loads_same(folder, _):
    return loads(f"{folder}/loads_same.core", 100_000, lambda i: (0x10000000, 4096))


def loads_at_the_end(folder, _):
    """Each ends with the address space, or just beyond it."""
    return loads(f"{folder}/loads_at_the_end.core", 1_000, lambda i: (2**64 - 4096 - i, 4096 + i))


def note_core(path, notes):
    data = b"".join(struct.pack("<III", 5, len(d), kind) + b"CORE\0\0\0\0" + d + bytes(-len(d) % 4) for kind, d in notes)
    with open(path, "wb") as file:
        file.write(elf_header(4, 62, 64, 1) + struct.pack("<IIQQQQQQ", PT_NOTE, 0, 120, 0, 0, len(data), 0, 4) + data)
    return path


def nt_file(mappings):
    """The contents of NT_FILE for (begin, end, page offset, path)."""
    return (struct.pack("<QQ", len(mappings), PAGE) + b"".join(struct.pack("<QQQ", *m[:3]) for m in mappings)
            + b"\0".join(m[3] for m in mappings) + b"\0")


def colliding_paths(count):
    """Paths that FNV-1a, a common hash without a key, cannot tell apart: pairs of blocks with one effect."""
    prime, mask, state, blocks, numbers = 16777619, 0xFFFFFFFF, 2166136261, [], random.Random(1)

    def after(state, text):
        for byte in text:
            state = (state ^ byte) * prime & mask
        return state

    state = after(state, b"/")
    while 1 << len(blocks) < count:
        seen = {}
        while True:
            text = bytes(numbers.choice(b"abcdefghijklmnopqrstuvwxyz") for _ in range(6))
            end = after(state, text)
            if seen.setdefault(end, text) != text:
                blocks.append((seen[end], text))
                state = end
                break
    return [b"/" + b"".join(b[i >> n & 1] for n, b in enumerate(blocks)) for i in range(count)]


def paths_collide(folder, _):
    paths = colliding_paths(1024)
    return note_core(f"{folder}/paths_collide.core",
                     [(NT_FILE, nt_file([(2**32 + i * 0x2000, 2**32 + i * 0x2000 + 0x1000, 0, paths[i % 1024])
                                         for i in range(100_000)]))])


def mappings_overlap(folder, _):
    return note_core(f"{folder}/mappings_overlap.core",
                     [(NT_FILE, nt_file([(2**32 + i, 2**33 - i, i, b"/lib/libcoreclr.so") for i in range(50_000)]))])


def mapping_of_everything(folder, _):
    return note_core(f"{folder}/mapping_of_everything.core", [(NT_FILE, nt_file([(0, 2**64 - 1, 0, b"/lib/libcoreclr.so")]))])


def notes_of_nothing(folder, _):
    return note_core(f"{folder}/notes_of_nothing.core", [(i, b"") for i in range(100_000)])


def images_everywhere(folder, context):
    """Mapped ELF images whose every header has to be read: none is a runtime."""
    core = Core(context.crash)
    image = elf_header(3, 62, 64, 60)
    image += struct.pack("<IIQQQQQQ", 2, 5, 0, 0x10000, 0, 1 << 20, 1 << 20, 8) * 60
    mappings = [(AREA + i * 0x100000, AREA + i * 0x100000 + PAGE, 0, b"/a/%d/libcoreclr.so" % i) for i in range(3_000)]
    offset = core.append(image.ljust(PAGE, b"\0"))
    for begin, end, _page, _path in mappings:
        core.segment(begin, offset, end - begin)
    core.set_notes([n for n in core.notes() if n[0] != NT_FILE] + [(NT_FILE, b"CORE\0", nt_file(mappings))])
    return core.save(f"{folder}/images_everywhere.core")


def wrapping_segment(folder, context):
    """An image segment that ends with the address space."""
    core = Core(context.crash)
    base, = (b for b, _, _, p in context.mappings if p.endswith(b"/libcoreclr.so") and core.u32(b) == 0x464C457F)
    table, size = core.u64(base + 32), 16 << 20
    headers = [base + table + i * 56 for i in range(20)]
    second = [h for h in headers if core.u32(h) == PT_LOAD][1]
    core.poke(second + 16, struct.pack("<Q", (2**64 - size - base) % 2**64))
    core.poke(second + 32, struct.pack("<QQ", size - 1, size - 1))
    return core.save(f"{folder}/wrapping_segment.core")


def wrapping_everything(folder, context):
    """The map of ranges, heaps and a nibble map in the last pages of the address space."""
    core = Runtime(context.plain, context.tool)
    core.alias(2**64 - 0x200000, 0x1FFFFF, b"\x88" * PAGE)
    core.chain_sections([(2**64 - 0x200000 + i * 0x1000, 2**64 - 0x200000 + i * 0x1000 + 0xFFF,
                          dict(HeapList=2**64 - 64 - i, R2RModule=0)) for i in range(16)])
    return core.save(f"{folder}/wrapping_everything.core")


def many_types(folder, context):
    """A descriptor of 50,000 types."""
    return descriptor(f"{folder}/many_types.core", context, b",".join(b'"%x":{}' % i for i in range(50_000)))


def many_fields(folder, context):
    """Types of as many fields as are allowed; under qemu-user, fewer types."""
    fields = b",".join(b'"%x":1' % i for i in range(1000))
    types = 10 if EMULATED else 100
    return descriptor(f"{folder}/many_fields.core", context, b",".join(b'"t%d":{%s}' % (i, fields) for i in range(types)))


def deep_json(folder, context):
    return descriptor(f"{folder}/deep_json.core", context, b'"a":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000)


def descriptor(path, context, types):
    core = Core(context.plain)
    header = next(begin + at for begin, size, offset in core.segments
                  if (at := bytes(core.bytes[offset : offset + size]).find(b"DNCCDAC\0")) >= 0)
    text = b'{"version":0,"baseline":"empty","types":{%s},"globals":{},"contracts":{}}' % types
    core.map(AREA, text)
    core.poke(header + 12, struct.pack("<IQ", len(text), AREA))
    return core.save(path)


def heaps_share_nibbles(folder, context, unit=0x88888888, count=10, size=1 << 30):
    """Code heaps of 1 GiB, all with the same nibble map, which is one piece of the file again and again."""
    core = Runtime(context.plain, context.tool)
    core.alias(AREA, size // 64, struct.pack("<I", unit) * (1 << 18))
    step = size + 0x10000
    nodes = [core.code_heap(0x200000000000 + i * step, 0x200000000000 + i * step + size - 1, AREA) for i in range(count)]
    core.map(0x310000000000, b"".join(n.ljust(256, b"\0") for n in nodes))
    core.chain_sections([(0x200000000000 + i * step, 0x200000000000 + i * step + size,
                          dict(HeapList=0x310000000000 + i * 256)) for i in range(count)])
    return core.save(f"{folder}/heaps_{unit:x}_{count}.core")


def empty_nibbles(folder, context):
    return heaps_share_nibbles(folder, context, 0)


def pointing_nibbles(folder, context):
    return heaps_share_nibbles(folder, context, 0xFFFFFFFF)


def many_sections(folder, context):
    """Sections without heaps: as many as the list may have."""
    core = Runtime(context.plain, context.tool)
    core.chain_sections([(0x200000000000 + i * 0x20000, 0x200000000000 + i * 0x20000 + 0x10000, dict(HeapList=0))
                         for i in range(20_000)])
    return core.save(f"{folder}/many_sections.core")


def sections_in_a_cycle(folder, context):
    core = Runtime(context.plain, context.tool)
    for fragment in core.fragments[:50]:
        core.poke(fragment + core.field("RangeSectionFragment", "Next"), struct.pack("<Q", core.fragments[0]))
    return core.save(f"{folder}/sections_in_a_cycle.core")


def heaps_in_a_cycle(folder, context):
    core = Runtime(context.plain, context.tool)
    for section in core.sections:
        heap = core.at(section, "RangeSection", "HeapList")
        if heap and core.read(heap, 8):
            core.poke(heap + core.field("CodeHeapListNode", "Next"), struct.pack("<Q", heap))
    return core.save(f"{folder}/heaps_in_a_cycle.core")


def hot_cold_of_everything(folder, context):
    """Every image's table of cold code is 256 MiB of one MiB of file."""
    core = Runtime(context.plain, context.tool)
    core.alias(AREA, 256 << 20, bytes(1 << 20))
    for info in core.infos():
        core.poke(info + core.field("ReadyToRunInfo", "HotColdMap"), struct.pack("<Q", AREA))
        core.poke(info + core.field("ReadyToRunInfo", "NumHotColdMap"), struct.pack("<I", 64 << 20))
    return core.save(f"{folder}/hot_cold_of_everything.core")


def functions_of_everything(folder, context):
    """Every image has as many runtime functions as are allowed, all the same piece of file."""
    core = Runtime(context.plain, context.tool)
    entry = b"".join(struct.pack("<II", i * 4, 0x100) for i in range(1 << 16))
    core.alias(AREA, 64 << 20, entry)
    for info in core.infos():
        core.poke(info + core.field("ReadyToRunInfo", "RuntimeFunctions"), struct.pack("<Q", AREA))
        core.poke(info + core.field("ReadyToRunInfo", "NumRuntimeFunctions"), struct.pack("<I", 8 << 20))
    return core.save(f"{folder}/functions_of_everything.core")


def long_names(folder, context, every=60_000):
    """Every name in the metadata is as long as it may be."""
    core = Core(context.hello)
    changed = 0
    for begin, size, offset in list(core.segments):
        data, at = bytes(core.bytes[offset : offset + size]), -1
        while (at := data.find(b"#Strings\0\0\0\0", at + 1)) >= 0:
            strings, length = struct.unpack_from("<II", data, at - 8)
            root = data.rfind(b"BSJB", 0, at)
            if root < 0 or length < 1000:
                continue
            blob = bytearray(b"A" * length)
            for i in [0, *range(every, length, every), length - 1]:
                blob[i] = 0
            core.map(begin + root + strings, bytes(blob))
            changed += 1
    return core.save(f"{folder}/long_names.core")


def images_of_segments(folder, context, count=70_000):
    """Segments that each begin with an ELF header, more than the header of the core can count."""
    core = Core(context.crash)
    image = elf_header(3, 62, 64, 2) + struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, PAGE, PAGE, PAGE)
    image += struct.pack("<IIQQQQQQ", 2, 5, 0x400, 0x400, 0, 16, 16, 8)
    offset = core.append(image.ljust(PAGE, b"\0"))
    for i in range(count):
        core.segment(0x10000000 + i * 0x2000, offset, PAGE, flags=5)
    return core.save(f"{folder}/images_of_segments.core")


def gc_info_of_size(size):
    """GC info of x64 that says nothing but how long the code is: two bits, then 8 bits of the length and whether more follow."""
    bits, at = 0, 2
    while True:
        bits |= (size & 0xFF | (0x100 if size > 0xFF else 0)) << at
        at, size = at + 9, size >> 8
        if not size:
            return bits.to_bytes(at // 8 + 8, "little")


def code_shares_bytes(folder, context, size=1 << 20, count=500):
    """Methods of a megabyte, whose code is one piece of the file again and again."""
    core = Runtime(context.net8, context.tool)
    heaps, headers, start = 0x200000000000, 0x310000000000, 0x40
    listed = subprocess.run([context.tool, "methods", context.net8], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    method = next(int(line.split()[0], 16) for line in listed.stdout.splitlines() if b"[jit]" in line)
    header = bytearray(core.read(core.u64(method - 8), core.field("RealCodeHeader", "UnwindInfos") + 12))
    for name, value in dict(GCInfo=headers + 0x100, DebugInfo=0).items():
        struct.pack_into("<Q", header, core.field("RealCodeHeader", name), value)
    struct.pack_into("<I", header, core.field("RealCodeHeader", "NumUnwindInfos"), 1)
    struct.pack_into("<III", header, core.field("RealCodeHeader", "UnwindInfos"), start, size - 64, 0x20)  # no unwind codes
    core.map(headers, header.ljust(0x100, b"\0") + gc_info_of_size(size - 64 - start))
    core.map(AREA, struct.pack("<I", 1 << 20).ljust(size // 64 + PAGE, b"\0"))  # of all heaps: a method begins at `start`
    code = bytes(0x20) + b"\1" + bytes(start - 8 - 0x21) + struct.pack("<Q", headers)
    offset = core.append(code.ljust(size, b"\x90"))
    nodes = []
    for i in range(count):
        begin = heaps + i * size
        core.segment(begin, offset, size)
        nodes.append(core.code_heap(begin, begin + size - 1, AREA).ljust(256, b"\0"))
    core.map(headers + PAGE, b"".join(nodes))
    core.put_sections(0x300000000000, heaps, size, count, lambda i: dict(HeapList=headers + PAGE + i * 256))
    return core.save(f"{folder}/code_shares_bytes.core")


def threads(path, context, count, change=lambda status, i: None, edit=lambda core: None):
    core = Core(context.crash)
    edit(core)
    notes = core.notes()
    model = next(n for n in notes if n[0] == NT_PRSTATUS and n[1] == b"CORE\0")
    for i in range(count):
        status = bytearray(model[2])
        struct.pack_into("<I", status, 32, 100_000 + i)
        change(status, i)
        notes.append((NT_PRSTATUS, model[1], bytes(status)))
    core.set_notes(notes)
    return core.save(path)


def many_threads(folder, context):
    return threads(f"{folder}/many_threads.core", context, 20_000)


def deep_stacks(folder, context):
    """Threads whose stacks are one long list of the same return address."""
    def change(status, i):
        struct.pack_into("<Q", status, 112 + 19 * 8, AREA + i % 64 * 8)
    pc = context.native_pc
    return threads(f"{folder}/deep_stacks.core", context, 300, change,
                   lambda core: core.map(AREA, struct.pack("<Q", pc) * 8192))


def frames_in_a_cycle(folder, context):
    """Stacks whose frame pointers lead round and round."""
    def change(status, i):
        struct.pack_into("<Q", status, 112 + 4 * 8, AREA)  # rbp
        struct.pack_into("<Q", status, 112 + 16 * 8, AREA + 0x100)
        struct.pack_into("<Q", status, 112 + 19 * 8, AREA)
    return threads(f"{folder}/frames_in_a_cycle.core", context, 300, change,
                   lambda core: core.map(AREA, struct.pack("<QQ", AREA, AREA + 0x100) * 4096))


def no_threads(folder, context):
    core = Core(context.crash)
    core.set_notes([n for n in core.notes() if n[0] == NT_FILE])
    return core.save(f"{folder}/no_threads.core")


def names_of_pipes(folder, context):
    """The core names pipes, devices and folders as the files that the process had mapped."""
    os.mkfifo(f"{folder}/libpipe.so")
    core = Core(context.crash)
    names = [f"{folder}/libpipe.so".encode(), b"/dev/zero", b"/dev/tty", b"/dev/stdin", b"/proc/self/mem", folder.encode(),
             b"/proc/self/fd/0", b"/dev/fd/0", b"/proc/kmsg", b"//dev/zero", b"/x/../dev/zero"]
    mappings = [(b, e, o, names[i % len(names)]) for i, (b, e, o, p) in enumerate(context.mappings)]
    core.set_notes([n for n in core.notes() if n[0] != NT_FILE] + [(NT_FILE, b"CORE\0", nt_file(mappings))])
    return core.save(f"{folder}/names_of_pipes.core")


def cut(folder, context):
    path = f"{folder}/cut.core"
    with open(context.crash, "rb") as core, open(path, "wb") as file:
        data = core.read()
        file.write(data[: len(data) * 2 // 3])
    return path


def header_of_everything(folder, _):
    """All fields of the ELF header at their largest."""
    path = f"{folder}/header_of_everything.core"
    with open(path, "wb") as file:
        file.write(ELF + struct.pack("<HHI", 4, 62, 1) + b"\xff" * 40 + bytes(4096))
    return path


def sparse_image(folder, _, size=1 << 30):
    """An ELF file of a few KB and 1 GiB of holes, with as many sections as fit."""
    path = f"{folder}/sparse.so"
    with open(path, "wb") as file:
        file.write(ELF + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 4096, 0, 64, 56, 1, 64, 0, 0))
        file.write(struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, size, size, PAGE))
        file.seek(4096)
        file.write(struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, (size - 4096) // 64, 0, 0, 0, 0))
        file.truncate(size)
    return path


def sparse_core(folder, context):
    """A core that ends with a hole of 1 TiB, all of it a segment."""
    core = Core(context.crash)
    core.segment(AREA, len(core.bytes), 1 << 40)
    path = core.save(f"{folder}/sparse.core")
    try:
        os.truncate(path, 1 << 40)
    except OSError:  # the file system has no room for the size
        pass
    return path


def large_objects(core):
    """The address of the segment of large objects of a core of a real process, with regions and a workstation GC."""
    generations = int(core.descriptor["globals"]["GCHeapGenerationTable"]["value"], 16)
    return core.at(generations + 3 * core.descriptor["types"]["Generation"]["!"]["size"], "Generation", "StartSegment")


def segment_fields(begin, size, following=0):
    return dict(Mem=begin, Allocated=begin + size, Committed=begin + size, Reserved=begin + size, Used=begin + size, Next=following)


def heap_shares_bytes(folder, source, tool, block, size):
    """The large objects are `block`, again and again: more objects than the core has bytes."""
    core = Runtime(source, tool)
    segment = large_objects(core)
    core.alias(AREA, size, block)
    for field, value in segment_fields(AREA, size).items():
        core.poke(segment + core.field("HeapSegment", field), struct.pack("<Q", value))
    return core.save(os.path.join(folder, "heap_shares_bytes"))


def heap_of_wide_segments(folder, source, tool, block, count=40, size=0x3F0000000):
    """Segments of nearly 16 GiB with few objects each, `block`."""
    core = Runtime(source, tool)
    length = 8 + max(f["offset"] for name, f in core.descriptor["types"]["HeapSegment"].items() if name != "!")
    model, data = core.read(large_objects(core), length), bytearray()
    for i in range(count):
        segment = bytearray(model)
        following = AREA + (i + 1) * length if i + 1 < count else 0
        for field, value in segment_fields(2 * AREA + i * size, size, following).items():
            struct.pack_into("<Q", segment, core.field("HeapSegment", field), value)
        core.map(2 * AREA + i * size, block)
        data += segment
    core.map(AREA, bytes(data))
    core.poke(large_objects(core) + core.field("HeapSegment", "Next"), struct.pack("<Q", AREA))
    return core.save(os.path.join(folder, "heap_of_wide_segments"))


def perf_map_collides(folder, _):
    """Addresses that a multiplication by the golden ratio puts into one slot."""
    inverse = pow(0x9E3779B97F4A7C15, -1, 1 << 64)
    path = f"{folder}/collides.map"
    with open(path, "w", encoding="ascii") as file:
        for i in range(50_000):
            file.write(f"{(i * 0x10001 & 0xFFFFFFFF) * inverse % (1 << 64):x} 10 int32 [x] A::B{i}()[OptimizedTier1]\n")
    return path


def perf_map_same(folder, context):
    """One address, again and again."""
    path = f"{folder}/same.map"
    with open(path, "w", encoding="ascii") as file:
        for i in range(50_000):
            file.write(f"{context.method:x} 10 int32 [x] A::B{i}()[OptimizedTier1]\n")
    return path


def perf_map_long(folder, _):
    path = f"{folder}/long.map"
    with open(path, "w", encoding="ascii") as file:
        file.write("1000 10 " + "A" * (3 << 20) + "\n" + "2000 10 B\n" * 1000)
    return path


def jitdump(path, records):
    with open(path, "wb") as file:
        file.write(struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 0, 0) + b"".join(records))
    return path


def jitdump_moves(folder, _):
    """A function that moves round and round."""
    moves = [struct.pack("<IIQ", 1, 64, i) + struct.pack("<IIQQQQQ", 1, 1, 0, 16 * (i % 3), 16 * ((i + 1) % 3), 16, 0)
             for i in range(50_000)]
    return jitdump(f"{folder}/moves.dump", moves)


def jitdump_debug(folder, _):
    """Debug info that claims more entries than there can be."""
    return jitdump(f"{folder}/debug.dump",
                   [struct.pack("<IIQ", 2, 32 + 17, i) + struct.pack("<QQ", 0x1000, 2**64 - 1) + bytes(17) for i in range(5_000)])


def jitdump_sizes(folder, _):
    return jitdump(f"{folder}/sizes.dump", [struct.pack("<IIQ", 0, 0xFFFFFFF0, 0) + bytes(4096)])


def mapped_images(core, notes, data, count):
    """Maps the sections of a managed PE file again and again, each time as another file. Returns the notes with these."""
    table = next(n for n in notes if n[0] == NT_FILE)[2]
    known, = struct.unpack_from("<Q", table)
    mappings = [(*struct.unpack_from("<QQQ", table, 16 + i * 24), p)
                for i, p in enumerate(table[16 + known * 24 :].split(b"\0")[:known])]
    header, = struct.unpack_from("<I", data, 0x3C)
    sections, optional = struct.unpack_from("<H12xH", data, header + 6)
    image = bytearray(data[:0x200].ljust(0x8000, b"\0"))
    for i in range(sections):
        _size, address, size, offset = struct.unpack_from("<IIII", data, header + 32 + optional + 40 * i)
        image[address : address + size] = data[offset : offset + size]
    offset = core.append(bytes(image))
    for i in range(count):
        core.segment(AREA + i * 0x10000, offset, len(image), flags=4)
        mappings.append((AREA + i * 0x10000, AREA + i * 0x10000 + len(image), 0, b"/x/%d/Lines.dll" % i))
    return [n for n in notes if n[0] != NT_FILE] + [(NT_FILE, b"CORE\0", nt_file(mappings))]


def pdbs_of_others(folder, context):
    """Thousands of assemblies whose PDB is none of the thousands that the snapshot holds."""
    core = Core(context.crash)
    fixtures = os.path.join(os.path.dirname(os.path.dirname(context.crash)), "pdb")
    with open(os.path.join(fixtures, "Lines.dll"), "rb") as dll, open(os.path.join(fixtures, "Lines.pdb"), "rb") as file:
        notes, pdb = mapped_images(core, core.notes(), dll.read(), 8000), bytearray(file.read())
    stream, = struct.unpack_from("<I", pdb, pdb.index(b"#Pdb") - 8)
    pdb[stream] ^= 1  # its id
    core.set_notes(notes + [(NT_PDB, b"CDACQ\0", bytes(pdb))] * 4000)
    return core.save(f"{folder}/pdbs_of_others.core")


CORES = [loads_apart, loads_nested, loads_same, loads_at_the_end, paths_collide, mappings_overlap, mapping_of_everything,
         notes_of_nothing, images_everywhere, wrapping_segment, wrapping_everything, many_types, many_fields, deep_json,
         heaps_share_nibbles, empty_nibbles, pointing_nibbles, many_sections, sections_in_a_cycle, heaps_in_a_cycle,
         hot_cold_of_everything, functions_of_everything, long_names, images_of_segments, code_shares_bytes, many_threads,
         deep_stacks, frames_in_a_cycle, no_threads, pdbs_of_others, names_of_pipes, cut, header_of_everything, sparse_core]
PERF_FILES = [perf_map_collides, perf_map_same, perf_map_long, jitdump_moves, jitdump_debug, jitdump_sizes]
