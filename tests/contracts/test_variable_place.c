/*
 * test_variable_place.c: from the place in the debug info and the registers of a frame to where a value is. The numbers
 * of registers are those of ICorDebugInfo::RegNum.
 */
#include "contracts/variables/variable_place.h"
#include "tests/support/check_main.h"

enum { RAX = 0, RBX = 3, RSP = 4, RBP = 5, RDI = 7, R12 = 12, AMBIENT_SP = 17, XMM0 = 16 };

static struct layout layout;
static struct reader reader;
static struct module_cache cache;
static struct registers registers;
static struct block_variables places;
static struct variable_frame frame;

static void setup(void)
{
    layout = (struct layout){.architecture = ARCHITECTURE_X64};
    reader = (struct reader){.layout = &layout, .pointer_size = 8};
    cache = (struct module_cache){.reader = &reader};
    registers = (struct registers){0};
    places = (struct block_variables){0};
    frame = (struct variable_frame){.cache = &cache, .registers = &registers};
    register_set(&registers, 3, 0x3333);  /* rbx */
    register_set(&registers, 6, 0x6000);  /* rbp */
    register_set(&registers, 7, 0x7000);  /* rsp */
    register_set(&registers, 12, 0xcccc); /* r12 */
}

static void teardown(void)
{
    block_variables_deinit(&places);
}

static void put(int32_t number, enum debug_info_place place, uint32_t first, uint32_t second, int32_t offset)
{
    const struct debug_info_variable variable = {
        .number = number, .place = place, .registers = {first, second}, .offset = offset};
    ck_assert(block_variables_append(&places, variable));
}

static struct variable_place find(uint32_t number, bool is_funclet)
{
    struct variable_place place;
    variable_place_find(&frame, &places, is_funclet, number, &place);
    return place;
}

START_TEST(registers_that_are_known)
{
    put(0, DEBUG_INFO_REG, RBX, 0, 0);
    put(1, DEBUG_INFO_REG, R12, 0, 0);
    put(2, DEBUG_INFO_REG_BYREF, RBX, 0, 0);
    ck_assert_int_eq(find(0, false).kind, PLACE_REGISTER);
    ck_assert_uint_eq(find(0, false).bits, 0x3333);
    ck_assert_uint_eq(find(1, false).bits, 0xcccc);
    ck_assert_int_eq(find(2, false).kind, PLACE_MEMORY);
    ck_assert_uint_eq(find(2, false).address, 0x3333);
}
END_TEST

/* A caller's frame does not have what its callee may have changed. */
START_TEST(registers_that_are_lost)
{
    put(0, DEBUG_INFO_REG, RAX, 0, 0);
    put(1, DEBUG_INFO_REG, RDI, 0, 0);
    put(2, DEBUG_INFO_REG_BYREF, RDI, 0, 0);
    put(3, DEBUG_INFO_STK, RAX, 0, 8);
    for (uint32_t i = 0; i < 5; i++) /* the last one has no place */
        ck_assert_int_eq(find(i, false).kind, PLACE_NONE);
}
END_TEST

START_TEST(stack)
{
    put(0, DEBUG_INFO_STK, RBP, 0, -16);
    put(1, DEBUG_INFO_STK, RSP, 0, 32);
    put(2, DEBUG_INFO_STK, AMBIENT_SP, 0, 8);
    put(3, DEBUG_INFO_STK2, RBP, 0, 24);
    ck_assert_uint_eq(find(0, false).address, 0x6000 - 16);
    ck_assert_uint_eq(find(1, false).address, 0x7000 + 32);
    ck_assert_uint_eq(find(2, false).address, 0x7000 + 8);
    ck_assert_uint_eq(find(3, false).address, 0x6000 + 24);
    ck_assert_int_eq(find(0, true).kind, PLACE_MEMORY); /* the frame pointer of a funclet is that of its method */
    ck_assert_int_eq(find(1, true).kind, PLACE_NONE);   /* its stack pointer is not */
    ck_assert_int_eq(find(2, true).kind, PLACE_NONE);
}
END_TEST

START_TEST(what_is_not_read)
{
    put(0, DEBUG_INFO_REG_FP, 0, 0, 0);
    put(1, DEBUG_INFO_REG, XMM0, 0, 0);
    put(2, DEBUG_INFO_REG_REG, RBX, R12, 0);
    put(3, DEBUG_INFO_REG_STK, RBX, RBP, 0);
    put(4, DEBUG_INFO_FPSTK, 1, 0, 0);
    put(5, DEBUG_INFO_FIXED_VA, 0, 0, 8);
    for (uint32_t i = 0; i < 6; i++)
        ck_assert_int_eq(find(i, false).kind, PLACE_UNREAD);
    layout.architecture = ARCHITECTURE_X86;
    ck_assert_int_eq(find(2, false).kind, PLACE_NONE);
}
END_TEST

/* Two places at once that differ are none; numbers below 0 are no variables of the IL. */
START_TEST(ambiguous)
{
    put(0, DEBUG_INFO_REG, RBX, 0, 0);
    put(0, DEBUG_INFO_STK, RBP, 0, -8);
    put(1, DEBUG_INFO_REG, RBX, 0, 0);
    put(1, DEBUG_INFO_REG, RBX, 0, 0);
    put(DEBUG_INFO_TYPE_CONTEXT, DEBUG_INFO_REG, R12, 0, 0);
    ck_assert_int_eq(find(0, false).kind, PLACE_NONE);
    ck_assert_uint_eq(find(1, false).bits, 0x3333);
    ck_assert_int_eq(find((uint32_t)DEBUG_INFO_TYPE_CONTEXT, false).kind, PLACE_NONE);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("variable_place");
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, registers_that_are_known);
    tcase_add_test(tc, registers_that_are_lost);
    tcase_add_test(tc, stack);
    tcase_add_test(tc, what_is_not_read);
    tcase_add_test(tc, ambiguous);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
