/*
 * test_expression.c: each operation of a DWARF expression, in words of 64 and 32 bits, and every way to end one early.
 */
#include "target/native/expression.h"

#include <elf.h>

#include "target/memory.h"
#include "tests/support/check_main.h"

enum { BASE = 0x10000 };

static uint8_t bytes[8192];
static struct target *target;
static struct reader reader;
static struct registers registers;

static bool span_at(uint64_t address, uint64_t *begin, uint64_t *end, const void **ret, void *context)
{
    (void)context;
    *begin = BASE;
    *end = BASE + sizeof bytes;
    *ret = bytes;
    return address >= *begin && address < *end;
}

static void setup(void)
{
    struct cdacq_memory memory = {.size = sizeof memory, .span_at = span_at};
    ck_assert_int_eq(memory_open(&memory, NULL, false, &target, NULL), CDACQ_OK);
    registers = (struct registers){0};
    register_set(&registers, 7, BASE);
    register_set(&registers, 3, 1000);
    store_u64(bytes + 4096, UINT64_C(0x8877665544332211), false);
}

static void teardown(void)
{
    target_destroy(target);
    target = NULL;
}

static uint64_t evaluate(unsigned machine, const uint8_t *program, size_t size, const uint64_t *first)
{
    memcpy(bytes, program, size);
    reader_init(&reader, target, 8, false);
    reader_begin(&reader, 1000);
    return expression_evaluate(&reader, register_machine_find(machine), &registers, BASE, size, first);
}

static const struct {
    uint8_t size, program[16];
    uint64_t wide, narrow; /* results; UINT64_MAX - 1: it fails */
} rows[] = {
#define FAILS (UINT64_MAX - 1)
    {1, {0x35}, 5, 5},                                                       /* lit5 */
    {2, {0x09, 0xff}, UINT64_MAX, UINT32_MAX},                               /* const1s */
    {3, {0x0a, 0x34, 0x12}, 0x1234, 0x1234},                                 /* const2u */
    {5, {0x0d, 0xfe, 0xff, 0xff, 0xff}, UINT64_MAX - 1, UINT32_MAX - 1},     /* const4s; FAILS is told apart below */
    {3, {0x10, 0x80, 0x01}, 128, 128},                                       /* constu */
    {2, {0x11, 0x7f}, UINT64_MAX, UINT32_MAX},                               /* consts */
    {3, {0x73, 0xe8, 0x07}, 2000, 2000},                                     /* breg3 + 1000 */
    {3, {0x92, 0x03, 0x01}, 1001, 1001},                                     /* bregx */
    {4, {0x77, 0x80, 0x20, 0x06}, UINT64_C(0x8877665544332211), 0x44332211}, /* deref */
    {5, {0x77, 0x80, 0x20, 0x94, 0x02}, 0x2211, 0x2211},                     /* deref_size */
    {3, {0x33, 0x34, 0x1c}, UINT64_MAX, UINT32_MAX},                         /* minus */
    {4, {0x38, 0x1f, 0x32, 0x1b}, (uint64_t)-4, (uint32_t)-4},               /* neg, div */
    {3, {0x38, 0x33, 0x1d}, 2, 2},                                           /* mod */
    {3, {0x38, 0x30, 0x1b}, FAILS, FAILS},                                   /* div by 0 */
    {4, {0x38, 0x1f, 0x31, 0x26}, (uint64_t)-4, (uint32_t)-4},               /* shra */
    {4, {0x31, 0x08, 40, 0x24}, UINT64_C(1) << 40, 0},                       /* shl */
    {4, {0x38, 0x1f, 0x31, 0x2d}, 1, 1},                                     /* lt, signed */
    {4, {0x31, 0x32, 0x33, 0x17}, 2, 2},                                     /* rot */
    {5, {0x31, 0x32, 0x33, 0x15, 0x02}, 1, 1},                               /* pick */
    {6, {0x31, 0x28, 1, 0, 0x35, 0x36}, 6, 6},                               /* bra over lit5 */
    {6, {0x30, 0x28, 1, 0, 0x35, 0x96}, 5, 5},                               /* not taken; nop */
    {3, {0x2f, 0xfd, 0xff}, FAILS, FAILS},                                   /* skip to itself: fuel */
    {3, {0x2f, 0x01, 0x00}, FAILS, FAILS},                                   /* beyond the end */
    {3, {0x2f, 0xfc, 0xff}, FAILS, FAILS},                                   /* before the begin */
    {1, {0x22}, FAILS, FAILS},                                               /* plus of one item */
    {1, {0x13}, FAILS, FAILS},                                               /* nothing left */
    {4, {0x12, 0x2f, 0xfc, 0xff}, FAILS, FAILS},                             /* dup without end: the stack */
    {1, {0xf0}, FAILS, FAILS},                                               /* unknown */
    {2, {0x75, 0x00}, FAILS, FAILS},                                         /* a register that is not known */
    {3, {0x30, 0x06, 0x96}, FAILS, FAILS},                                   /* memory that is missing */
    {2, {0x10, 0x80}, FAILS, FAILS},                                         /* a number that is cut */
};

START_TEST(operations)
{
    uint64_t first = 77;
    for (int narrow = 0; narrow < 2; narrow++) {
        uint64_t expected = narrow ? rows[_i].narrow : rows[_i].wide;
        bool fails = expected == FAILS && rows[_i].program[0] != 0x0d;
        uint64_t found = evaluate(narrow ? EM_386 : EM_X86_64, rows[_i].program, rows[_i].size,
                                  rows[_i].program[0] == 0x22 || rows[_i].program[0] == 0x12 ? NULL : &first);
        /* An empty stack: nothing to drop. */
        if (rows[_i].program[0] == 0x13 || rows[_i].program[0] == 0x12 || rows[_i].program[0] == 0x22)
            ck_assert(reader_failed(&reader));
        else
            ck_assert_int_eq(reader_failed(&reader), fails);
        ck_assert_uint_eq(found, fails ? 0 : expected);
    }
}
END_TEST

START_TEST(the_first_item)
{
    uint64_t cfa = 0x1234;
    const uint8_t add[] = {0x23, 0x06};
    ck_assert_uint_eq(evaluate(EM_X86_64, add, sizeof add, &cfa), 0x123a);
    ck_assert_uint_eq(evaluate(EM_X86_64, add, 0, &cfa), 0x1234);
    ck_assert_uint_eq(evaluate(EM_X86_64, add, 0, NULL), 0);
    ck_assert(reader_failed(&reader));
    ck_assert_uint_eq(evaluate(EM_X86_64, bytes, EXPRESSION_MAX + 1, &cfa), 0);
    ck_assert(reader_failed(&reader));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("expression");
    TCase *tc = tcase_create("expression");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, operations, 0, ARRAY_SIZE(rows));
    tcase_add_test(tc, the_first_item);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
