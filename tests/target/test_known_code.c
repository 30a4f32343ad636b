/*
 * test_known_code.c: native code without call-frame information: signal trampolines, returns, what ends a thread or
 * follows an entry point. Real ones are in test_native_modules.c, for the machine of the tests, and in tests/dotnet.
 */
#include "target/native/known_code.h"

#include "target/memory.h"
#include "tests/support/check_main.h"

enum { BASE = 0x10000, SIZE = 0x4000, STACK = BASE + 0x2000, ENTRY = 0x500, A64_LR = 30, A64_SP = 31, A64_PC = 32 };
enum { X64_RSP = 7, X64_RIP = 16 };

static uint8_t bytes[SIZE];
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
    const struct cdacq_memory memory = {.size = sizeof memory, .span_at = span_at};
    ck_assert_int_eq(memory_open(&memory, NULL, false, &target, NULL), CDACQ_OK);
    reader_init(&reader, target, 8, false);
    reader_begin(&reader, FUEL_LOOKUP);
    memset(bytes, 0, sizeof bytes);
    registers = (struct registers){0};
}

static void teardown(void)
{
    ck_assert(!reader_failed(&reader));
    target_destroy(target);
    target = NULL;
}

static void put_code(uint64_t at, const uint32_t *instructions, size_t count)
{
    for (size_t i = 0; i < count; i++)
        store_u32(bytes + at + 4 * i, instructions[i], false);
}

static bool step(uint16_t elf_machine, bool interrupted, uint64_t *ret_cfa, bool *ret_is_signal)
{
    static const struct image image = {.base = BASE};
    return known_code_step(register_machine_find(elf_machine), &reader, &image, interrupted, &registers, ret_cfa,
                           ret_is_signal);
}

static bool is_outermost(uint16_t elf_machine, uint64_t entry, uint64_t offset)
{
    const struct image image = {.base = BASE, .entry_vaddr = entry};
    return known_code_is_outermost(register_machine_find(elf_machine), &reader, &image, BASE + offset);
}

/* x0 to x30, sp and pc follow each other, in the ucontext behind a siginfo_t. */
START_TEST(trampoline_of_arm64)
{
    static const uint32_t code[] = {0xd2801168, 0xd4000001};
    uint64_t cfa;
    bool is_signal;
    put_code(0, code, ARRAY_SIZE(code));
    for (unsigned i = 0; i <= A64_PC; i++)
        store_u64(bytes + (STACK - BASE) + 312 + 8 * i, 0x7000 + 0x10 * i, false);
    register_set(&registers, A64_SP, STACK);
    register_set(&registers, A64_PC, BASE);
    ck_assert(step(EM_AARCH64, false, &cfa, &is_signal));
    ck_assert(is_signal);
    ck_assert_uint_eq(cfa, 0x7000 + 0x10 * A64_SP);
    for (unsigned i = 0; i <= A64_PC; i++)
        ck_assert_uint_eq(registers.values[i], 0x7000 + 0x10 * i);
    register_set(&registers, A64_SP, BASE + SIZE - 0x100); /* the frame is cut off */
    register_set(&registers, A64_PC, BASE);
    ck_assert(!step(EM_AARCH64, false, &cfa, &is_signal));
    register_set(&registers, A64_SP, STACK);
    register_set(&registers, A64_PC, BASE + 4);
    ck_assert(!step(EM_AARCH64, false, &cfa, &is_signal));
}
END_TEST

START_TEST(trampoline_of_x64)
{
    static const uint8_t code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    uint64_t cfa;
    bool is_signal;
    memcpy(bytes, code, sizeof code);
    store_u64(bytes + (STACK - BASE) + 40 + 15 * 8, 0x7100, false);
    store_u64(bytes + (STACK - BASE) + 40 + 16 * 8, 0x7200, false);
    register_set(&registers, X64_RSP, STACK);
    register_set(&registers, X64_RIP, BASE);
    ck_assert(step(EM_X86_64, false, &cfa, &is_signal));
    ck_assert(is_signal);
    ck_assert_uint_eq(cfa, 0x7100);
    ck_assert_uint_eq(registers.values[X64_RIP], 0x7200);
}
END_TEST

START_TEST(returns)
{
    static const uint32_t ret = 0xd65f03c0;
    uint64_t cfa;
    bool is_signal;
    put_code(0, &ret, 1);
    register_set(&registers, A64_SP, STACK);
    register_set(&registers, A64_PC, BASE);
    ck_assert(!step(EM_AARCH64, true, &cfa, &is_signal)); /* x30 is not known */
    register_set(&registers, A64_LR, UINT64_C(0x55) << 48 | 0x7300);
    ck_assert(!step(EM_AARCH64, false, &cfa, &is_signal));
    ck_assert(step(EM_AARCH64, true, &cfa, &is_signal));
    ck_assert(!is_signal);
    ck_assert_uint_eq(cfa, STACK);
    ck_assert_uint_eq(registers.values[A64_PC], 0x7300);
    ck_assert_uint_eq(registers.values[A64_SP], STACK);
    ck_assert(!register_is_known(&registers, A64_LR));
    bytes[0] = 0xc3;
    store_u64(bytes + (STACK - BASE), 0x7400, false);
    registers = (struct registers){0};
    register_set(&registers, X64_RSP, STACK);
    register_set(&registers, X64_RIP, BASE);
    ck_assert(step(EM_X86_64, true, &cfa, &is_signal));
    ck_assert_uint_eq(cfa, STACK + 8);
    ck_assert_uint_eq(registers.values[X64_RIP], 0x7400);
}
END_TEST

START_TEST(ends_of_threads)
{
    static const uint32_t code[] = {0xd2800ba8, 0xd4000001};
    put_code(0x100, code, ARRAY_SIZE(code));
    ck_assert(is_outermost(EM_AARCH64, 0, 0x100));
    ck_assert(!is_outermost(EM_AARCH64, 0, 0x104));
    ck_assert(!is_outermost(EM_X86_64, 0, 0x100));
    ck_assert(!is_outermost(EM_ARM, 0, 0x100));
}
END_TEST

/* The entry point of .NET 10's programs for arm64, up to its calls of __libc_start_main and abort. */
START_TEST(entry_point_of_arm64)
{
    static const uint32_t code[] = {
        0xd280001d, 0xd280001e, 0xaa0003e5, 0xf94003e1, 0x910023e2, 0x910003e6, /* mov x29, #0; ...; mov x6, sp */
        0xd503201f, 0x10019300, 0xd503201f, 0x1005a303, 0xd503201f, 0x10054664, /* nop and adr, three times */
        0x94002b3a, 0x94002b35,                                                 /* bl, bl */
    };
    static const uint32_t leaving[] = {
        0x14000003, 0x54000060, 0xb4000060, 0x35000060, 0x36000060, 0xb7000060, /* b, b.eq, cbz, cbnz, tbz, tbnz */
        0xd61f0200, 0xd65f03c0, 0xd4000001, 0xd4200000, 0,                      /* br, ret, svc, brk, none */
    };
    enum { CALL = 12 };
    put_code(ENTRY, code, ARRAY_SIZE(code));
    ck_assert(is_outermost(EM_AARCH64, ENTRY, ENTRY + 4 * (CALL + 1)));
    ck_assert(is_outermost(EM_AARCH64, ENTRY, ENTRY + 4 * (CALL + 2)));
    ck_assert(!is_outermost(EM_AARCH64, ENTRY, ENTRY));
    ck_assert(!is_outermost(EM_AARCH64, ENTRY, ENTRY + 4 * CALL + 2));
    ck_assert(!is_outermost(EM_AARCH64, ENTRY, ENTRY + 0x200));
    ck_assert(!is_outermost(EM_AARCH64, 0, ENTRY + 4 * (CALL + 1)));
    for (size_t i = 0; i < ARRAY_SIZE(leaving); i++) {
        store_u32(bytes + ENTRY + 20, leaving[i], false);
        ck_assert_msg(!is_outermost(EM_AARCH64, ENTRY, ENTRY + 4 * (CALL + 1)), "%zu", i);
    }
    store_u32(bytes + ENTRY + 20, 0xd63f0200, false); /* blr comes back */
    ck_assert(is_outermost(EM_AARCH64, ENTRY, ENTRY + 4 * (CALL + 1)));
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("known_code");
    TCase *tcase = tcase_create("known_code");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, trampoline_of_arm64);
    tcase_add_test(tcase, trampoline_of_x64);
    tcase_add_test(tcase, returns);
    tcase_add_test(tcase, ends_of_threads);
    tcase_add_test(tcase, entry_point_of_arm64);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
