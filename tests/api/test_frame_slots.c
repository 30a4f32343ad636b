/* test_frame_slots.c: the values of slots of a frame; tests/dotnet/roots.py has real ones. */
#include "src/lookup/frame_slots.h"
#include "src/lookup/opened_target.h"
#include "tests/support/check_main.h"
#include "tests/support/lock_heap.h"
#include "util/text.h"

enum { WHERE = LOCK_HEAP_BASE + LOCK_HEAP_SIZE - 64, OBJECT = 0x1234 };

static struct lock_heap heap;
static struct cdacq_registers registers;
static struct cdacq_frame frame;
static uint64_t address, value;

static void setup(void)
{
    lock_heap_init(&heap);
    lock_heap_put(&heap, WHERE, OBJECT, 8);
    registers = (struct cdacq_registers){.size = sizeof registers, .known = 1 << 3 | 1 << 6};
    frame =
        (struct cdacq_frame){.kind = CDACQ_FRAME_MANAGED, .registers = &registers, .sp = WHERE - 8, .cfa = WHERE + 8};
    address = value = 1;
}

static void teardown(void)
{
    lock_heap_deinit(&heap);
}

static bool read_slot(struct gc_slot slot)
{
    struct reader *reader = &heap.session.resolver.reader;
    reader_begin(reader, FUEL_LOOKUP);
    return frame_slot_value(reader, &frame, &slot, &address, &value);
}

START_TEST(in_registers)
{
    const struct gc_slot rbx = {.base = GC_SLOT_REGISTER, .number = 3};
    registers.values[3] = OBJECT;
    ck_assert(read_slot(rbx));
    ck_assert_uint_eq(address, 0);
    ck_assert_uint_eq(value, OBJECT);
    registers.values[3] = 0; /* null is known, too */
    ck_assert(read_slot(rbx));
    ck_assert_uint_eq(value, 0);
    value = 1;
    ck_assert(!read_slot((struct gc_slot){.base = GC_SLOT_REGISTER, .number = 12}));
    frame.registers = NULL;
    ck_assert(!read_slot(rbx));
    ck_assert_uint_eq(value, 1);
}
END_TEST

START_TEST(in_memory)
{
    static const struct gc_slot slots[] = {
        {.base = GC_SLOT_SP, .offset = 8},
        {.base = GC_SLOT_CALLER_SP, .offset = -8},
        {.base = GC_SLOT_FRAME, .number = 6, .offset = -16},
    };
    registers.values[6] = WHERE + 16;
    for (size_t i = 0; i < ARRAY_SIZE(slots); i++) {
        address = value = 0;
        ck_assert(read_slot(slots[i]));
        ck_assert_uint_eq(address, WHERE);
        ck_assert_uint_eq(value, OBJECT);
    }
    frame.kind = CDACQ_FRAME_FUNCLET; /* which has its own stack pointer */
    ck_assert(!read_slot(slots[0]) && !read_slot(slots[1]) && read_slot(slots[2]));
    registers.values[6] = 0; /* no base */
    ck_assert(!read_slot(slots[2]));
    ck_assert(!reader_failed(&heap.session.resolver.reader));
    registers.values[6] = 0x10;
    ck_assert(!read_slot(slots[2]));
    ck_assert(reader_failed(&heap.session.resolver.reader));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("frame_slots");
    TCase *tc = tcase_create("values");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, in_registers);
    tcase_add_test(tc, in_memory);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
