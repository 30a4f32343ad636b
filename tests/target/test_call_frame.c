/* test_call_frame.c: the row at an address by a forged .eh_frame: what its program costs is paid with fuel. */
#include "formats/cfi.h"
#include "target/image.h"
#include "target/native/call_frame.h"

#include "target/memory.h"
#include "tests/support/check_main.h"

enum {
    BASE = 0x10000,
    INDEX_SIZE = 8,
    CIE_SIZE = 4 + 4 + 1 + 1 + 1 + 1 + 1 + 3 + 2, /* the last three: def_cfa r7, 8; padding */
    FDE_HEAD = 4 + 4 + 8 + 8,
    PROGRAM_MAX = 200 * 1000,
    CODE = 0x5000,
};

static uint8_t bytes[INDEX_SIZE + CIE_SIZE + FDE_HEAD + PROGRAM_MAX + 4];
static struct target *target;

static bool span_at(uint64_t address, uint64_t *begin, uint64_t *end, const void **ret, void *context)
{
    (void)context;
    *begin = BASE;
    *end = BASE + sizeof bytes;
    *ret = bytes;
    return address >= *begin && address < *end;
}

/* .eh_frame_hdr without a table, then a CIE, and an FDE that remembers and restores states all the time. */
static void put_records(size_t program)
{
    static const uint8_t index[INDEX_SIZE] = {1, 0x1b, 0xff, 0xff, 4};
    static const uint8_t cie[CIE_SIZE] = {CIE_SIZE - 4, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8};
    uint8_t *fde = bytes + INDEX_SIZE + CIE_SIZE;
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, index, sizeof index);
    memcpy(bytes + INDEX_SIZE, cie, sizeof cie);
    store_u32(fde, (uint32_t)(FDE_HEAD - 4 + program), false);
    store_u32(fde + 4, CIE_SIZE + 4, false);
    store_u64(fde + 8, CODE, false);
    store_u64(fde + 16, 0x100, false);
    for (size_t i = 0; i < program; i++)
        fde[FDE_HEAD + i] = i % 2 ? 0x0b : 0x0a;
}

static enum call_frame_result find(size_t program, struct reader *reader)
{
    struct image image = {
        .begin = BASE,
        .end = BASE + sizeof bytes,
        .base = BASE,
        .elf = {.wide = true},
        .eh_frame_hdr_size = INDEX_SIZE,
    };
    struct cfi_row row;
    put_records(program);
    reader_init(reader, target, 8, false);
    return call_frame_find(reader, &image, CODE + 1, &row);
}

static void setup(void)
{
    const struct cdacq_memory memory = {.size = sizeof memory, .span_at = span_at};
    ck_assert_int_eq(memory_open(&memory, NULL, false, &target, NULL), CDACQ_OK);
}

static void teardown(void)
{
    target_destroy(target);
    target = NULL;
}

START_TEST(programs_take_fuel)
{
    struct reader reader;
    ck_assert_int_eq(find(20 * 1000, &reader), CALL_FRAME_FOUND);
    ck_assert_uint_lt(reader_fuel(&reader), FUEL_LOOKUP - 20 * 1000);
    ck_assert_int_eq(find(PROGRAM_MAX, &reader), CALL_FRAME_FAILED);
    ck_assert_int_eq(reader_status(&reader, NULL), CDACQ_ERR_FUEL);
}
END_TEST

/* A leaf function of arm64: its return address is in x30, and the row need not say that it is signed. */
START_TEST(signed_return_addresses)
{
    enum { SP = 31, LR = 30, PC = 32 };
    const struct register_machine *machine = register_machine_find(EM_AARCH64);
    struct cfi_row row = {.cfa = {.kind = CFI_VALUE_OFFSET}, .cfa_register = SP, .return_address = LR};
    struct registers registers = {0};
    struct calling_frame caller;
    struct reader reader;
    reader_init(&reader, target, 8, false);
    register_set(&registers, SP, 0x7000);
    register_set(&registers, PC, CODE);
    register_set(&registers, LR, UINT64_C(0x3f) << 48 | 0x123456);
    target->pac_mask = _i ? UINT64_C(0x7f) << 48 : 0;
    ck_assert(call_frame_apply(&reader, machine, &row, &registers, &caller));
    ck_assert_uint_eq(caller.registers.values[PC], 0x123456);
    ck_assert_uint_eq(caller.cfa, 0x7000);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("call_frame");
    TCase *tcase = tcase_create("call_frame");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, programs_take_fuel);
    tcase_add_loop_test(tcase, signed_return_addresses, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
