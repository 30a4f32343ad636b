#include "contracts/code_info/gc_slots.h"

enum {
    VERSION_MIN = 2,
    VERSION_MAX = 4,
    BUFFER_SIZE = 32,
    CHUNK = 64, /* offsets whose transitions are encoded together */
    CHUNK_BITS = 6,
    CODE_LENGTH_MAX = 1 << 28,
    FLAG_INTERIOR = 1,
    REGISTER_COUNT = 16,
};

/* The header's flags. */
enum {
    HAS_SECURITY_OBJECT = 0x2, /* of no version that is read, except that the bit is there */
    HAS_GS_COOKIE = 0x4,
    HAS_PSP_SYM = 0x8,
    HAS_GENERIC_CONTEXT = 0x30,
    HAS_FRAME_REGISTER = 0x40,
    HAS_EDIT_AND_CONTINUE = 0x100,
    HAS_REVERSE_PINVOKE = 0x200,
    FLAGS_BITS = 10,
};

/* Bits of numbers of variable length, of x64. */
enum {
    BITS_CODE_LENGTH = 8,
    BITS_PROLOG_SIZE = 5,
    BITS_EPILOG_SIZE = 3,
    BITS_STACK_SLOT = 6,
    BITS_FRAME_REGISTER = 3,
    BITS_PRESERVED_AREA = 4,
    BITS_STACK_AREA = 3,
    BITS_SAFE_POINTS = 2,
    BITS_RANGES = 1,
    BITS_RANGE_DELTA = 6,
    BITS_REGISTERS = 2,
    BITS_STACK_SLOTS = 2,
    BITS_UNTRACKED = 1,
    BITS_REGISTER = 3,
    BITS_REGISTER_DELTA = 2,
    BITS_SLOT_DELTA = 4,
    BITS_POINTER_SIZE = 3,
    BITS_RUN = 2,
    BITS_SKIP = 4,
    FRAME_REGISTER_FLIP = 5, /* rbp is encoded as 0 */
};

/* The DWARF numbers of the processor's. */
static const uint8_t dwarf_numbers[REGISTER_COUNT] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

/* rbx, rbp, r12 to r15, by the processor's numbers: calls preserve them. */
enum { PRESERVED_REGISTERS = 1 << 3 | 1 << 5 | 0xf000 };

/* A stream of bits, the lowest of a byte first. */
struct bits {
    struct reader *reader;
    uint64_t base, position; /* the address of the first byte; the next bit */
    uint64_t begin;          /* of the buffer: an address */
    unsigned size;           /* of what it holds */
    uint8_t buffer[BUFFER_SIZE];
};

struct decoded_slot {
    struct gc_slot slot;
    uint8_t number, flags; /* the processor's number of a register */
};

struct decoder {
    struct bits bits;
    bool is_call;
    uint32_t offset;
    uint32_t scratch_size; /* of the outgoing arguments, at the stack pointer */
    uint32_t frame_register;
    uint32_t code_length, point_count, range_count;
    uint32_t point;          /* the safe point at the offset; point_count: none */
    uint32_t range_total;    /* the length of all interruptible ranges */
    uint32_t range_position; /* of the offset, in the ranges one after the other */
    bool in_range;
    uint32_t tracked, count; /* of slots; those that are not tracked come last */
    struct decoded_slot *slots;
};

/* ---- Bits ---- */

static uint8_t byte_at(struct bits *bits, uint64_t address)
{
    if (address - bits->begin >= bits->size) {
        bits->begin = address;
        bits->size = reader_try_copy(bits->reader, address, bits->buffer, BUFFER_SIZE) ? BUFFER_SIZE : 1;
        if (bits->size == 1) /* the end of what can be read is near */
            bits->buffer[0] = (uint8_t)read_uint(bits->reader, address, 1);
    }
    return bits->buffer[address - bits->begin];
}

static uint32_t take(struct bits *bits, unsigned count)
{
    uint64_t value = 0;
    for (unsigned got = 0; got < count;) {
        unsigned at = bits->position & 7, n = MIN(8 - at, count - got);
        uint64_t part = (unsigned)byte_at(bits, bits->base + bits->position / 8) >> at & ((1u << n) - 1);
        value |= part << got;
        got += n;
        bits->position += n;
    }
    return (uint32_t)value;
}

/* Chunks of `base` bits, the lowest first, each with a bit that says whether another follows. */
static uint32_t take_number(struct bits *bits, unsigned base)
{
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 32; shift += base) {
        uint32_t chunk = take(bits, base + 1);
        value |= (chunk & ((1u << base) - 1)) << shift;
        if (!(chunk >> base))
            return value;
    }
    reader_fail(bits->reader, CDACQ_ERR_CORRUPT, bits->base, "a number in the GC info");
    return 0;
}

static int32_t take_signed(struct bits *bits, unsigned base)
{
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 32; shift += base) {
        uint32_t chunk = take(bits, base + 1);
        value |= (chunk & ((1u << base) - 1)) << shift;
        if (chunk >> base)
            continue;
        unsigned unused = shift + base < 32 ? 32 - shift - base : 0;
        return (int32_t)(value << unused) >> unused;
    }
    reader_fail(bits->reader, CDACQ_ERR_CORRUPT, bits->base, "a number in the GC info");
    return 0;
}

static bool step(struct decoder *d)
{
    return reader_step(d->bits.reader, "GC info");
}

static bool corrupt(struct decoder *d)
{
    return reader_fail(d->bits.reader, CDACQ_ERR_CORRUPT, d->bits.base, "GC info");
}

static unsigned bits_for(uint32_t count)
{
    unsigned bits = 0;
    while (UINT64_C(1) << bits < count)
        bits++;
    return bits;
}

/* ---- The header ---- */

static void skip_optional(struct decoder *d, uint32_t flags)
{
    struct bits *bits = &d->bits;
    if (flags & (HAS_GS_COOKIE | HAS_SECURITY_OBJECT | HAS_GENERIC_CONTEXT))
        take_number(bits, BITS_PROLOG_SIZE);
    if (flags & HAS_GS_COOKIE)
        take_number(bits, BITS_EPILOG_SIZE);
    static const uint32_t slots[] = {HAS_SECURITY_OBJECT, HAS_GS_COOKIE, HAS_PSP_SYM, HAS_GENERIC_CONTEXT};
    for (size_t i = 0; i < ARRAY_SIZE(slots); i++)
        if (flags & slots[i])
            take_signed(bits, BITS_STACK_SLOT);
}

static void read_header(struct decoder *d, unsigned version)
{
    enum { RETURN_KIND_SLIM = 2, RETURN_KIND_FAT = 4 };
    struct bits *bits = &d->bits;
    bool fat = take(bits, 1);
    uint32_t flags = fat ? take(bits, FLAGS_BITS) : take(bits, 1) * HAS_FRAME_REGISTER;
    if (version < 4)
        take(bits, fat ? RETURN_KIND_FAT : RETURN_KIND_SLIM);
    d->code_length = take_number(bits, BITS_CODE_LENGTH);
    skip_optional(d, flags);
    d->frame_register = REGISTER_COUNT;
    if (flags & HAS_FRAME_REGISTER)
        d->frame_register = (fat ? take_number(bits, BITS_FRAME_REGISTER) : 0) ^ FRAME_REGISTER_FLIP;
    if (flags & HAS_EDIT_AND_CONTINUE)
        take_number(bits, BITS_PRESERVED_AREA);
    if (flags & HAS_REVERSE_PINVOKE)
        take_signed(bits, BITS_STACK_SLOT);
    if (fat)
        d->scratch_size = take_number(bits, BITS_STACK_AREA) << 3;
    d->point_count = take_number(bits, BITS_SAFE_POINTS);
    d->range_count = fat ? take_number(bits, BITS_RANGES) : 0;
    if (d->code_length > CODE_LENGTH_MAX || d->offset > d->code_length || d->point_count > d->code_length ||
        d->range_count > d->code_length)
        corrupt(d);
}

/*
 * Safe points are where calls return to. Up to version 2 the byte before is stored. No two calls return to neighbouring
 * bytes, so both are compared for every version.
 */
static void find_safe_point(struct decoder *d)
{
    struct bits *bits = &d->bits;
    unsigned width = bits_for(d->code_length);
    uint64_t begin = bits->position;
    uint32_t low = 0, high = d->point_count;
    d->point = d->point_count;
    while (low < high && d->is_call && step(d)) {
        uint32_t middle = low + (high - low) / 2;
        bits->position = begin + (uint64_t)middle * width;
        uint32_t offset = take(bits, width);
        if (offset == d->offset || offset + 1 == d->offset) {
            d->point = middle;
            break;
        }
        if (offset < d->offset)
            low = middle + 1;
        else
            high = middle;
    }
    bits->position = begin + (uint64_t)d->point_count * width;
}

static void read_ranges(struct decoder *d)
{
    uint64_t stop = 0;
    uint64_t offset = d->offset - (d->is_call ? 1 : 0); /* in the call */
    for (uint32_t i = 0; i < d->range_count && step(d); i++) {
        uint64_t start = stop + take_number(&d->bits, BITS_RANGE_DELTA);
        stop = start + take_number(&d->bits, BITS_RANGE_DELTA) + 1;
        if (stop > d->code_length) {
            corrupt(d);
            return;
        }
        if (offset >= start && offset < stop) {
            d->in_range = true;
            d->range_position = d->range_total + (uint32_t)(offset - start);
        }
        d->range_total += (uint32_t)(stop - start);
    }
}

/* ---- The slot table ---- */

static void read_registers(struct decoder *d, uint32_t count)
{
    uint32_t number = 0, flags = 1;
    for (uint32_t i = 0; i < count && step(d); i++) {
        if (flags) {
            number = take_number(&d->bits, BITS_REGISTER);
            flags = take(&d->bits, 2);
        } else {
            number += take_number(&d->bits, BITS_REGISTER_DELTA) + 1;
        }
        if (number >= REGISTER_COUNT) {
            corrupt(d);
            return;
        }
        d->slots[i] = (struct decoded_slot){.slot = {.base = GC_SLOT_REGISTER, .number = dwarf_numbers[number]},
                                            .number = (uint8_t)number,
                                            .flags = (uint8_t)flags};
    }
}

static void read_stack_slots(struct decoder *d, uint32_t begin, uint32_t end)
{
    uint32_t flags = 1, offset = 0;
    for (uint32_t i = begin; i < end && step(d); i++) {
        uint32_t base = take(&d->bits, 2);
        if (flags) {
            offset = (uint32_t)take_signed(&d->bits, BITS_STACK_SLOT);
            flags = take(&d->bits, 2);
        } else {
            offset += take_number(&d->bits, BITS_SLOT_DELTA);
        }
        if (base > GC_SLOT_FRAME || (base == GC_SLOT_FRAME && d->frame_register >= REGISTER_COUNT)) {
            corrupt(d);
            return;
        }
        d->slots[i] = (struct decoded_slot){
            .slot = {.base = (uint8_t)base,
                     .number = base == GC_SLOT_FRAME ? dwarf_numbers[d->frame_register] : 0,
                     .offset = (int32_t)(offset << 3)},
            .flags = (uint8_t)flags,
        };
    }
}

static bool read_slots(struct decoder *d)
{
    struct bits *bits = &d->bits;
    uint32_t registers = take(bits, 1) ? take_number(bits, BITS_REGISTERS) : 0, stack = 0, untracked = 0;
    if (take(bits, 1)) {
        stack = take_number(bits, BITS_STACK_SLOTS);
        untracked = take_number(bits, BITS_UNTRACKED);
    }
    if (reader_failed(bits->reader) || registers > REGISTER_COUNT * 4 || stack > GC_SLOTS_MAX ||
        untracked > GC_SLOTS_MAX)
        return corrupt(d);
    d->tracked = registers + stack;
    d->count = d->tracked + untracked;
    d->slots = calloc(d->count + 1, sizeof *d->slots);
    if (!d->slots)
        return reader_fail(bits->reader, CDACQ_ERR_NOMEM, 0, "GC info");
    read_registers(d, registers);
    read_stack_slots(d, registers, d->tracked);
    read_stack_slots(d, d->tracked, d->count);
    return !reader_failed(bits->reader);
}

/* ---- What is live ---- */

static void report(struct decoder *d, uint32_t index, struct gc_slots *ret)
{
    const struct decoded_slot *slot = &d->slots[index];
    bool scratch = slot->slot.base == GC_SLOT_REGISTER ? !(PRESERVED_REGISTERS >> slot->number & 1)
                                                       : slot->slot.base == GC_SLOT_SP && slot->slot.offset >= 0 &&
                                                             (uint32_t)slot->slot.offset < d->scratch_size;
    if (slot->flags & FLAG_INTERIOR || (scratch && d->is_call && index < d->tracked))
        return;
    if (!gc_slots_append(ret, slot->slot))
        reader_fail(d->bits.reader, CDACQ_ERR_NOMEM, 0, "GC info");
}

/* Calls `take_slot` for each slot of a set: a bit for each tracked slot, or runs of equal bits. */
static void each_of_set(struct decoder *d, void (*take_slot)(struct decoder *d, uint32_t index, void *context),
                        void *context)
{
    struct bits *bits = &d->bits;
    if (!take(bits, 1)) {
        for (uint32_t i = 0; i < d->tracked && step(d); i++)
            if (take(bits, 1))
                take_slot(d, i, context);
        return;
    }
    /* Runs of slots outside and inside the set alternate, the first outside. The first bit swaps their encodings. */
    bool skip = !take(bits, 1), inside = false;
    for (uint32_t i = 0, n = 0; i < d->tracked && step(d); n++) {
        uint32_t run = take_number(bits, skip ? BITS_SKIP : BITS_RUN) + (n > 0);
        if (run > d->tracked - i) {
            corrupt(d);
            return;
        }
        for (uint32_t end = i + run; i < end; i++)
            if (inside && step(d))
                take_slot(d, i, context);
        skip = !skip;
        inside = !inside;
    }
}

static void report_slot(struct decoder *d, uint32_t index, void *context)
{
    report(d, index, context);
}

static void read_safe_point(struct decoder *d, unsigned indirect, struct gc_slots *ret)
{
    struct bits *bits = &d->bits;
    if (indirect) {
        uint64_t table = bits->position;
        bits->position += (uint64_t)d->point * indirect;
        uint32_t offset = take(bits, indirect);
        bits->position = ((table + (uint64_t)d->point_count * indirect + 7) & ~UINT64_C(7)) + offset;
        each_of_set(d, report_slot, ret);
        return;
    }
    bits->position += (uint64_t)d->point * d->tracked;
    for (uint32_t i = 0; i < d->tracked && step(d); i++)
        if (take(bits, 1))
            report(d, i, ret);
}

struct chunk_slots {
    uint32_t *indices, count;
};

static void keep_slot(struct decoder *d, uint32_t index, void *context)
{
    struct chunk_slots *slots = context;
    (void)d;
    slots->indices[slots->count++] = index;
}

/* The state at the end of a chunk, and how often it changes after the offset, if it is that chunk. */
static void read_chunk(struct decoder *d, bool exact, struct gc_slots *ret)
{
    struct bits *bits = &d->bits;
    struct chunk_slots slots = {.indices = calloc(d->tracked + 1, sizeof *slots.indices)};
    if (!slots.indices) {
        reader_fail(bits->reader, CDACQ_ERR_NOMEM, 0, "GC info");
        return;
    }
    each_of_set(d, keep_slot, &slots);
    uint64_t states = bits->position;
    bits->position += slots.count;
    for (uint32_t i = 0; i < slots.count && step(d); i++) {
        uint64_t next = bits->position;
        bits->position = states + i;
        bool live = take(bits, 1);
        bits->position = next;
        for (unsigned n = 0; exact && take(bits, 1) && n < CHUNK && step(d); n++)
            live ^= take(bits, CHUNK_BITS) > d->range_position % CHUNK;
        if (live)
            report(d, slots.indices[i], ret);
    }
    free(slots.indices);
}

static void read_interruptible(struct decoder *d, struct gc_slots *ret)
{
    struct bits *bits = &d->bits;
    bits->position += (uint64_t)d->point_count * d->tracked; /* there is no indirect table with ranges in use */
    uint32_t chunks = (d->range_total + CHUNK - 1) / CHUNK, at = d->range_position / CHUNK, chunk = at;
    unsigned width = take_number(bits, BITS_POINTER_SIZE);
    uint64_t table = bits->position;
    uint32_t pointer = 0;
    if (width > 32) {
        corrupt(d);
        return;
    }
    for (; width && step(d); chunk--) {
        bits->position = table + (uint64_t)chunk * width;
        pointer = take(bits, width);
        if (pointer || !chunk)
            break;
    }
    if (!pointer || reader_failed(bits->reader))
        return; /* nothing was live up to there */
    bits->position = ((table + (uint64_t)chunks * width + 7) & ~UINT64_C(7)) + pointer - 1;
    read_chunk(d, chunk == at, ret);
}

/*
 * False if the GC info does not say. If no code is interruptible, a call that is no safe point has no live slots that
 * are tracked: code without optimizations lists few of its calls.
 */
static bool read_live(struct decoder *d, struct gc_slots *ret)
{
    struct bits *bits = &d->bits;
    unsigned indirect = 0;
    bool at_point = d->point < d->point_count, nothing = !at_point && !d->range_count && d->is_call;
    if (d->tracked && !at_point && !d->in_range && !nothing)
        return false;
    if (d->tracked && d->point_count && !nothing && take(bits, 1))
        indirect = take_number(bits, BITS_POINTER_SIZE) + 1;
    if (indirect > 32)
        return corrupt(d);
    if (d->tracked && at_point)
        read_safe_point(d, indirect, ret);
    else if (d->tracked && !nothing && indirect)
        return false;
    else if (d->tracked && !nothing)
        read_interruptible(d, ret);
    for (uint32_t i = d->tracked; i < d->count && step(d); i++)
        report(d, i, ret);
    return !reader_failed(bits->reader);
}

bool gc_slots_read(struct field_reader *reader, uint64_t gc_info, unsigned version, uint32_t offset, bool is_call,
                   struct gc_slots *ret)
{
    if (reader->layout->architecture != ARCHITECTURE_X64 || version < VERSION_MIN || version > VERSION_MAX || !gc_info)
        return false;
    struct decoder d = {
        .bits = {.reader = &reader->raw, .base = gc_info},
        .is_call = is_call,
        .offset = offset,
    };
    size_t before = ret->count;
    read_header(&d, version);
    if (reader_failed(&reader->raw))
        return false;
    find_safe_point(&d);
    read_ranges(&d);
    bool known = !reader_failed(&reader->raw) && read_slots(&d) && read_live(&d, ret);
    free(d.slots);
    if (!known || reader_failed(&reader->raw))
        ret->count = before;
    return known && !reader_failed(&reader->raw);
}
