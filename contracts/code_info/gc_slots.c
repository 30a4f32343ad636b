#include "contracts/code_info/gc_slots.h"

#include "contracts/code_info/gc_header.h"

enum {
    CHUNK = 64, /* offsets whose transitions are encoded together */
    CHUNK_BITS = 6,
    FLAG_INTERIOR = 1,
};

/* Bits of numbers of variable length that all architectures share. */
enum {
    BITS_STACK_SLOT = 6,
    BITS_SLOT_DELTA = 4,
    BITS_POINTER_SIZE = 3,
    BITS_RUN = 2,
    BITS_SKIP = 4,
};

/* Those in which they differ, and their registers, by the processor's numbers. */
struct slot_encoding {
    uint8_t registers, stack_slots, untracked; /* their counts */
    uint8_t number, number_delta;              /* of registers */
    uint8_t word_shift;                        /* offsets count words, as a power of two */
    uint8_t register_count;
    uint8_t frame_flip, frame_first; /* of the frame register, which is (encoded ^ frame_flip) + frame_first */
    uint32_t preserved;              /* a bit for each register that calls preserve */
    const uint8_t *dwarf_numbers;    /* NULL: DWARF counts as the processor does */
};

static const uint8_t dwarf_numbers_x64[] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

static const struct slot_encoding encodings[ARCHITECTURE_COUNT] = {
    [ARCHITECTURE_X64] = {.registers = 2,
                          .stack_slots = 2,
                          .untracked = 1,
                          .number = 3,
                          .number_delta = 2,
                          .word_shift = 3,
                          .register_count = 16,
                          .frame_flip = 5,
                          .preserved = 1 << 3 | 1 << 5 | 0xf000, /* rbx, rbp, r12 to r15 */
                          .dwarf_numbers = dwarf_numbers_x64},
    [ARCHITECTURE_ARM64] = {.registers = 3,
                            .stack_slots = 2,
                            .untracked = 1,
                            .number = 3,
                            .number_delta = 2,
                            .word_shift = 3,
                            .register_count = 32, /* the frame register may be sp */
                            .frame_flip = 29,
                            .preserved = 0x3ff << 19}, /* x19 to x28 */
    [ARCHITECTURE_ARM] = {.registers = 2,
                          .stack_slots = 3,
                          .untracked = 3,
                          .number = 2,
                          .number_delta = 1,
                          .word_shift = 2,
                          .register_count = 15,
                          .frame_flip = 7,
                          .frame_first = 4,
                          .preserved = 0xff << 4}, /* r4 to r11 */
};

struct decoded_slot {
    struct gc_slot slot;
    uint8_t number, flags; /* the processor's number of a register */
};

struct decoder {
    struct gc_bits bits;
    const struct slot_encoding *encoding;
    struct gc_header header;
    struct gc_place place; /* of the instruction */
    bool is_call;
    uint32_t scratch_size;   /* of the outgoing arguments, at the stack pointer */
    uint32_t frame_register; /* register_count: none */
    uint32_t tracked, count; /* of slots; those that are not tracked come last */
    struct decoded_slot *slots;
};

static bool step(struct decoder *d)
{
    return gc_bits_step(&d->bits);
}

static bool corrupt(struct decoder *d)
{
    return gc_bits_corrupt(&d->bits);
}

/* ---- The slot table ---- */

static uint8_t dwarf_number(const struct decoder *d, uint32_t number)
{
    return d->encoding->dwarf_numbers ? d->encoding->dwarf_numbers[number] : (uint8_t)number;
}

static void read_registers(struct decoder *d, uint32_t count)
{
    uint32_t number = 0, flags = 1;
    for (uint32_t i = 0; i < count && step(d); i++) {
        if (flags) {
            number = gc_bits_number(&d->bits, d->encoding->number);
            flags = gc_bits_take(&d->bits, 2);
        } else {
            number += gc_bits_number(&d->bits, d->encoding->number_delta) + 1;
        }
        if (number >= d->encoding->register_count) {
            corrupt(d);
            return;
        }
        d->slots[i] = (struct decoded_slot){.slot = {.base = GC_SLOT_REGISTER, .number = dwarf_number(d, number)},
                                            .number = (uint8_t)number,
                                            .flags = (uint8_t)flags};
    }
}

static void read_stack_slots(struct decoder *d, uint32_t begin, uint32_t end)
{
    uint32_t flags = 1, offset = 0;
    for (uint32_t i = begin; i < end && step(d); i++) {
        uint32_t base = gc_bits_take(&d->bits, 2);
        if (flags) {
            offset = (uint32_t)gc_bits_signed(&d->bits, BITS_STACK_SLOT);
            flags = gc_bits_take(&d->bits, 2);
        } else {
            offset += gc_bits_number(&d->bits, BITS_SLOT_DELTA);
        }
        if (base > GC_SLOT_FRAME || (base == GC_SLOT_FRAME && d->frame_register >= d->encoding->register_count)) {
            corrupt(d);
            return;
        }
        d->slots[i] = (struct decoded_slot){
            .slot = {.base = (uint8_t)base,
                     .number = base == GC_SLOT_FRAME ? dwarf_number(d, d->frame_register) : 0,
                     .offset = (int32_t)(offset << d->encoding->word_shift)},
            .flags = (uint8_t)flags,
        };
    }
}

static bool read_slots(struct decoder *d)
{
    struct gc_bits *bits = &d->bits;
    uint32_t registers = gc_bits_take(bits, 1) ? gc_bits_number(bits, d->encoding->registers) : 0, stack = 0,
             untracked = 0;
    if (gc_bits_take(bits, 1)) {
        stack = gc_bits_number(bits, d->encoding->stack_slots);
        untracked = gc_bits_number(bits, d->encoding->untracked);
    }
    if (reader_failed(bits->reader) || registers > d->encoding->register_count * 4u || stack > GC_SLOTS_MAX ||
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
    bool scratch = slot->slot.base == GC_SLOT_REGISTER ? !(d->encoding->preserved >> slot->number & 1)
                                                       : slot->slot.base == GC_SLOT_SP && slot->slot.offset >= 0 &&
                                                             (uint32_t)slot->slot.offset < d->scratch_size;
    struct gc_slot reported = slot->slot;
    reported.is_interior = slot->flags & FLAG_INTERIOR;
    if (scratch && d->is_call && index < d->tracked)
        return;
    if (!gc_slots_append(ret, reported))
        reader_fail(d->bits.reader, CDACQ_ERR_NOMEM, 0, "GC info");
}

/* Calls `take_slot` for each slot of a set: a bit for each tracked slot, or runs of equal bits. */
static void each_of_set(struct decoder *d, void (*take_slot)(struct decoder *d, uint32_t index, void *context),
                        void *context)
{
    struct gc_bits *bits = &d->bits;
    if (!gc_bits_take(bits, 1)) {
        for (uint32_t i = 0; i < d->tracked && step(d); i++)
            if (gc_bits_take(bits, 1))
                take_slot(d, i, context);
        return;
    }
    /* Runs of slots outside and inside the set alternate, the first outside. The first bit swaps their encodings. */
    bool skip = !gc_bits_take(bits, 1), inside = false;
    for (uint32_t i = 0, n = 0; i < d->tracked && step(d); n++) {
        uint32_t run = gc_bits_number(bits, skip ? BITS_SKIP : BITS_RUN) + (n > 0);
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
    struct gc_bits *bits = &d->bits;
    if (indirect) {
        uint64_t table = bits->position;
        bits->position += (uint64_t)d->place.point * indirect;
        uint32_t offset = gc_bits_take(bits, indirect);
        bits->position = ((table + (uint64_t)d->header.point_count * indirect + 7) & ~UINT64_C(7)) + offset;
        each_of_set(d, report_slot, ret);
        return;
    }
    bits->position += (uint64_t)d->place.point * d->tracked;
    for (uint32_t i = 0; i < d->tracked && step(d); i++)
        if (gc_bits_take(bits, 1))
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
    struct gc_bits *bits = &d->bits;
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
        bool live = gc_bits_take(bits, 1);
        bits->position = next;
        for (unsigned n = 0; exact && gc_bits_take(bits, 1) && n < CHUNK && step(d); n++)
            live ^= gc_bits_take(bits, CHUNK_BITS) > d->place.range_position % CHUNK;
        if (live)
            report(d, slots.indices[i], ret);
    }
    free(slots.indices);
}

static void read_interruptible(struct decoder *d, struct gc_slots *ret)
{
    struct gc_bits *bits = &d->bits;
    bits->position += (uint64_t)d->header.point_count * d->tracked; /* there is no indirect table with ranges in use */
    uint32_t chunks = (d->place.range_total + CHUNK - 1) / CHUNK, at = d->place.range_position / CHUNK, chunk = at;
    unsigned width = gc_bits_number(bits, BITS_POINTER_SIZE);
    uint64_t table = bits->position;
    uint32_t pointer = 0;
    if (width > 32) {
        corrupt(d);
        return;
    }
    for (; width && step(d); chunk--) {
        bits->position = table + (uint64_t)chunk * width;
        pointer = gc_bits_take(bits, width);
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
    struct gc_bits *bits = &d->bits;
    unsigned indirect = 0;
    bool at_point = d->place.point < d->header.point_count, nothing = !at_point && !d->header.range_count && d->is_call;
    if (d->tracked && !at_point && !d->place.in_range && !nothing)
        return false;
    if (d->tracked && d->header.point_count && !nothing && gc_bits_take(bits, 1))
        indirect = gc_bits_number(bits, BITS_POINTER_SIZE) + 1;
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

bool gc_slots_read(struct reader *reader, uint64_t gc_info, unsigned version, uint32_t offset, bool is_call,
                   struct gc_slots *ret)
{
    enum architecture architecture = reader->layout->architecture;
    const struct gc_encoding *encoding = gc_encoding_of(architecture);
    const struct slot_encoding *slots = &encodings[architecture];
    if (!encoding || !slots->register_count || version < GC_VERSION_MIN || version > GC_VERSION_MAX || !gc_info)
        return false;
    struct decoder d = {.bits = {.reader = reader, .base = gc_info}, .encoding = slots, .is_call = is_call};
    size_t before = ret->count;
    if (!gc_header_read(&d.bits, encoding, version, &d.header))
        return false;
    if (offset > d.header.code_length)
        return corrupt(&d);
    bool has_register = d.header.frame_register != UINT32_MAX;
    d.frame_register =
        has_register ? (d.header.frame_register ^ slots->frame_flip) + slots->frame_first : slots->register_count;
    d.scratch_size = d.header.stack_area << slots->word_shift;
    /* Up to version 3, what is live at a call is what is live in the call; since then, it is that at its return. */
    bool known = gc_header_locate(&d.bits, encoding, &d.header, is_call ? offset : GC_NO_POINT,
                                  offset - (is_call && d.header.is_byte_before), &d.place) &&
                 read_slots(&d) && read_live(&d, ret);
    free(d.slots);
    if (!known || reader_failed(reader))
        ret->count = before;
    return known && !reader_failed(reader);
}
