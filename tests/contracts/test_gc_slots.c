/* test_gc_slots.c: the slots of GC info that is written here, bit by bit; tests/dotnet/locks.py rests on real ones. */
#include "contracts/code_info/gc_slots.h"
#include "src/lookup/opened_target.h"
#include "tests/support/check_main.h"
#include "tests/support/lock_heap.h"
#include "util/text.h"

enum { WHERE = LOCK_HEAP_BASE + LOCK_HEAP_SIZE - 1024 };

static struct lock_heap heap;
static struct gc_slots slots;
static unsigned position; /* in bits */
static int word;          /* bytes */

static void setup(void)
{
    lock_heap_init(&heap);
    position = 0;
    word = 8;
}

static void teardown(void)
{
    gc_slots_deinit(&slots);
    lock_heap_deinit(&heap);
}

/* ---- Writing ---- */

static void put(uint64_t value, unsigned count)
{
    for (unsigned i = 0; i < count; i++, position++) {
        uint8_t *byte = &heap.bytes[WHERE - LOCK_HEAP_BASE + position / 8];
        *byte = (uint8_t)((*byte & ~(1 << position % 8)) | (value >> i & 1) << position % 8);
    }
}

static void put_number(uint64_t value, unsigned base)
{
    do {
        uint64_t rest = value >> base;
        put((value & ((1u << base) - 1)) | (rest ? 1u << base : 0), base + 1);
        value = rest;
    } while (value);
}

static void put_signed(int64_t value, unsigned base)
{
    for (;;) {
        int64_t rest = value >> (base - 1);
        bool last = rest == 0 || rest == -1;
        put(((uint64_t)value & ((1u << base) - 1)) | (last ? 0 : 1u << base), base + 1);
        if (last)
            return;
        value >>= base;
    }
}

static void put_slot(unsigned base, int offset, unsigned flags)
{
    put(base, 2);
    put_signed(offset / word, 6);
    put(flags, 2);
}

/* A slim header with a frame register, code of 100 bytes, and these safe points. */
static void put_slim(unsigned version, const uint8_t *points, unsigned count)
{
    put(0, 1);
    put(1, 1);
    if (version < 4)
        put(0, 2);
    put_number(100, 8);
    put_number(count, 2);
    for (unsigned i = 0; i < count; i++)
        put(points[i] - (version < 4), 7);
}

static bool read_at(unsigned version, uint32_t offset, bool is_call)
{
    slots.count = 0;
    reader_begin(&heap.session.resolver.reader, FUEL_LOOKUP);
    return gc_slots_read(&heap.session.resolver.reader, WHERE, version, offset, is_call, &slots);
}

static void check(size_t i, enum gc_slot_base base, unsigned number, int offset)
{
    ck_assert_uint_lt(i, slots.count);
    ck_assert_int_eq(slots.items[i].base, base);
    ck_assert_uint_eq(slots.items[i].number, number);
    ck_assert_int_eq(slots.items[i].offset, offset);
}

/* ---- Tests ---- */

/* Two registers, two words of the stack and one that is not tracked; what is live differs between two calls. */
static void put_table(void)
{
    put(1, 1);
    put_number(2, 2); /* registers */
    put(1, 1);
    put_number(2, 2); /* words */
    put_number(1, 1); /* not tracked */
    put_number(3, 3); /* rbx */
    put(0, 2);
    put_number(8, 2); /* 3 + 1 + 8: r12 */
    put_slot(GC_SLOT_FRAME, -16, 0);
    put(GC_SLOT_SP, 2);
    put_number(3, 4); /* three words above the one before */
    put_slot(GC_SLOT_CALLER_SP, -8, 0);
}

START_TEST(safe_points)
{
    static const uint8_t points[] = {20, 40};
    for (unsigned version = 2; version <= 4; version++) {
        position = 0;
        put_slim(version, points, 2);
        put_table();
        put(0, 1); /* no table of offsets */
        put(0x5, 4);
        put(0xa, 4);
        ck_assert(read_at(version, 20, true));
        ck_assert_uint_eq(slots.count, 3);
        check(0, GC_SLOT_REGISTER, 3, 0);
        check(1, GC_SLOT_FRAME, 6, -16);
        check(2, GC_SLOT_CALLER_SP, 0, -8);
        ck_assert(read_at(version, 40, true));
        ck_assert_uint_eq(slots.count, 3);
        check(0, GC_SLOT_REGISTER, 12, 0);
        check(1, GC_SLOT_SP, 0, 8);
        ck_assert(read_at(version, 60, true)); /* a call at which nothing that is tracked lives */
        ck_assert_uint_eq(slots.count, 1);
        ck_assert(!read_at(version, 60, false)); /* not known there */
        ck_assert(!reader_failed(&heap.session.resolver.reader));
    }
}
END_TEST

/* Sets of live slots as runs, shared through a table of offsets. */
START_TEST(runs)
{
    static const uint8_t points[] = {20, 40};
    put_slim(4, points, 2);
    put_table();
    put(1, 1);
    put_number(7, 3); /* offsets of 8 bits */
    put(0, 8);
    put(0, 8);
    position = (position + 7) & ~7u;
    put(1, 1); /* runs */
    put(1, 1); /* the first, outside, is encoded as if it were inside */
    put_number(1, 2);
    put_number(1, 4); /* two inside */
    put_number(0, 2); /* one outside */
    for (uint32_t offset = 20; offset <= 40; offset += 20) {
        ck_assert(read_at(4, offset, true));
        ck_assert_uint_eq(slots.count, 3);
        check(0, GC_SLOT_REGISTER, 12, 0);
        check(1, GC_SLOT_FRAME, 6, -16);
    }
}
END_TEST

/* Code that can be interrupted anywhere: a chunk, the final states, and where they change. */
static void put_interruptible(unsigned version)
{
    position = 0;
    put(1, 1);
    put(0x40, 10); /* a frame register */
    if (version < 4)
        put(0, 4); /* what the method returns */
    put_number(100, 8);
    put_number(0, 3); /* rbp */
    put_number(0, 3); /* no outgoing arguments */
    put_number(0, 2); /* safe points */
    put_number(1, 1); /* ranges */
    put_number(10, 6);
    put_number(79, 6); /* [10, 90) */
    put_table();
    put_number(8, 3); /* pointers of 8 bits, of two chunks */
    put(1, 8);
    put(0, 8); /* the second has nothing new */
    position = (position + 7) & ~7u;
    put(0, 1);
    put(0x5, 4); /* rbx, [rbp - 16] */
    put(0x2, 2); /* rbx is dead at the end, the word is not */
    put(1, 1);
    put(30, 6); /* rbx changes at 30 */
    put(0, 1);
    put(0, 1);
}

START_TEST(interruptible)
{
    put_interruptible(4);
    ck_assert(read_at(4, 20, false)); /* at 10 of the chunk */
    ck_assert_uint_eq(slots.count, 3);
    check(0, GC_SLOT_REGISTER, 3, 0);
    ck_assert(read_at(4, 50, false));
    ck_assert_uint_eq(slots.count, 2);
    check(0, GC_SLOT_FRAME, 6, -16);
    ck_assert(read_at(4, 85, false)); /* in the second chunk */
    ck_assert_uint_eq(slots.count, 2);
    ck_assert(!read_at(4, 5, false)); /* the prolog */
}
END_TEST

/* rbx dies at the end of a call. */
START_TEST(interruptible_call)
{
    for (unsigned version = 2; version <= 4; version++) {
        put_interruptible(version);
        for (uint32_t offset = 39; offset <= 41; offset++) {
            ck_assert(read_at(version, offset, true));
            ck_assert_uint_eq(slots.count, offset - (version < 4) < 40 ? 3 : 2);
        }
    }
}
END_TEST

START_TEST(nothing_known)
{
    put_slim(4, NULL, 0);
    put(0, 2);
    ck_assert(read_at(4, 20, true));
    ck_assert_uint_eq(slots.count, 0);
    ck_assert(!read_at(1, 20, true));
    ck_assert(!read_at(6, 20, true));
    ck_assert(!gc_slots_read(&heap.session.resolver.reader, 0, 4, 20, true, &slots));
    heap.target.layout.architecture = ARCHITECTURE_X86;
    ck_assert(!read_at(4, 20, true));
    ck_assert(!reader_failed(&heap.session.resolver.reader));
}
END_TEST

/* ---- Other architectures ---- */

static const struct other_machine {
    enum architecture architecture;
    int word;
    unsigned unit;                          /* bytes of an instruction, which offsets count since version 4 */
    unsigned length, points;                /* widths of numbers */
    unsigned registers, slots, untracked;   /* likewise */
    unsigned number, delta;                 /* likewise */
    unsigned first, second, scratch, frame; /* registers, by their numbers */
} other_machines[] = {
    {ARCHITECTURE_ARM64, 8, 4, 8, 3, 3, 2, 1, 3, 2, 19, 28, 30, 29},
    {ARCHITECTURE_ARM, 4, 2, 7, 3, 2, 3, 3, 2, 1, 4, 11, 12, 11},
};

/* Code of 400 bytes with calls that return to 80 and 160; as put_table(), and a register that calls do not preserve. */
static void put_other(const struct other_machine *m, unsigned version)
{
    unsigned unit = version < 4 ? 1 : m->unit;
    position = 0;
    word = m->word;
    put(0, 1);
    put(1, 1);
    if (version < 4)
        put(0, 2);
    put_number(400 / m->unit, m->length);
    put_number(2, m->points);
    for (unsigned i = 1; i <= 2; i++)
        put((80 * i - (version < 4)) / unit, version < 4 ? 9 : m->unit == 4 ? 7 : 8);
    put(1, 1);
    put_number(3, m->registers);
    put(1, 1);
    put_number(2, m->slots);
    put_number(1, m->untracked);
    put_number(m->first, m->number);
    put(0, 2);
    put_number(m->second - m->first - 1, m->delta);
    put_number(m->scratch - m->second - 1, m->delta);
    put_slot(GC_SLOT_FRAME, -2 * word, 0);
    put(GC_SLOT_SP, 2);
    put_number(3, 4);
    put_slot(GC_SLOT_CALLER_SP, -word, 0);
    put(0, 1);
    put(0xd, 5);  /* the first and third registers, the first word */
    put(0x12, 5); /* the second register, the second word */
}

START_TEST(other_architectures)
{
    const struct other_machine *m = &other_machines[_i];
    heap.target.layout.architecture = m->architecture;
    for (unsigned version = 2; version <= 4; version++) {
        put_other(m, version);
        ck_assert(read_at(version, 80, true));
        ck_assert_uint_eq(slots.count, 3);
        check(0, GC_SLOT_REGISTER, m->first, 0);
        check(1, GC_SLOT_FRAME, m->frame, -2 * word);
        check(2, GC_SLOT_CALLER_SP, 0, -word);
        ck_assert(read_at(version, 160, true));
        ck_assert_uint_eq(slots.count, 3);
        check(0, GC_SLOT_REGISTER, m->second, 0);
        check(1, GC_SLOT_SP, 0, word);
        ck_assert(!reader_failed(&heap.session.resolver.reader));
    }
}
END_TEST

/* Bits of all kinds: every read ends, and says why it fails. */
START_TEST(corrupt)
{
    uint32_t state = 1;
    for (unsigned n = 0; n < 20000; n++) {
        position = 0;
        for (unsigned i = 0; i < 32; i++) {
            state = state * 1664525 + 1013904223;
            put(n & 1 ? state >> 16 | state >> 20 : state >> 16 & state >> 19, 16);
        }
        static const enum architecture architectures[] = {ARCHITECTURE_X64, ARCHITECTURE_ARM64, ARCHITECTURE_ARM};
        heap.target.layout.architecture = architectures[n / 2 % 3];
        bool known = read_at(2 + n % 3, n % 70, n & 2);
        ck_assert(!known || !reader_failed(&heap.session.resolver.reader));
        ck_assert(known || !slots.count);
        ck_assert_uint_le(slots.count, 3 * GC_SLOTS_MAX);
    }
    reader_begin(&heap.session.resolver.reader, FUEL_LOOKUP);
    ck_assert(!gc_slots_read(&heap.session.resolver.reader, 0x10, 4, 20, true, &slots));
    ck_assert(reader_failed(&heap.session.resolver.reader));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("gc_slots");
    TCase *tc = tcase_create("slots");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, safe_points);
    tcase_add_test(tc, runs);
    tcase_add_test(tc, interruptible);
    tcase_add_test(tc, interruptible_call);
    tcase_add_test(tc, nothing_known);
    tcase_add_loop_test(tc, other_architectures, 0, ARRAY_SIZE(other_machines));
    tcase_add_test(tc, corrupt);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
