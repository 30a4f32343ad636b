/*
 * test_core_notes.c: notes of this machine's own structs, and of the other class and byte order, cut at every length.
 */
#include "formats/core_notes.h"

#include <signal.h>
#include <sys/procfs.h>

#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"

static const struct elf_class here = {sizeof(void *) == 8, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__};

START_TEST(structs_of_this_machine)
{
    struct elf_prstatus status = {.pr_cursig = 11, .pr_pid = 4711};
    struct elf_prpsinfo process = {.pr_pid = 42, .pr_fname = "sixteen bytes ok", .pr_psargs = "dotnet app.dll "};
    struct core_prstatus found;
    memset(&status.pr_reg, 0xab, sizeof status.pr_reg);
    ck_assert(core_prstatus_at(here, (const uint8_t *)&status, sizeof status, &found));
    ck_assert_int_eq(found.tid, 4711);
    ck_assert_int_eq(found.signal, 11);
    ck_assert_ptr_eq(found.registers, (const uint8_t *)&status.pr_reg);
    ck_assert_uint_ge(found.registers_size, sizeof status.pr_reg);
    struct core_prpsinfo info = core_prpsinfo_at(here, (const uint8_t *)&process, sizeof process);
    ck_assert_int_eq(info.pid, 42);
    ck_assert_str_eq(info.name, "sixteen bytes ok"); /* no NUL in the note */
    ck_assert_str_eq(info.arguments, "dotnet app.dll ");
}
END_TEST

static struct elf_buffer prstatus(bool wide, bool big)
{
    struct elf_buffer desc = {.wide = wide, .big = big};
    for (int i = 0; i < 3; i++)
        elf_put_int(&desc, 99, 4);
    elf_put_int(&desc, 6, 2);
    elf_put_int(&desc, 0xffff, 2); /* padding */
    elf_put_word(&desc, UINT64_MAX);
    elf_put_word(&desc, UINT64_MAX);
    elf_put_int(&desc, 70001, 4);
    for (int i = 0; i < 3; i++)
        elf_put_int(&desc, UINT32_MAX, 4);
    for (int i = 0; i < 8; i++)
        elf_put_word(&desc, UINT64_MAX);
    return desc;
}

START_TEST(all_classes_and_orders)
{
    struct elf_class elf = {_i & 1, _i & 2};
    struct elf_buffer desc = prstatus(elf.wide, elf.big);
    size_t registers = desc.size;
    struct core_prstatus found;
    elf_put_word(&desc, 0x1234);
    ck_assert(core_prstatus_at(elf, desc.data, desc.size, &found));
    ck_assert_int_eq(found.tid, 70001);
    ck_assert_int_eq(found.signal, 6);
    ck_assert_uint_eq(found.registers_size, elf_word_size(elf));
    ck_assert_uint_eq(elf_word(elf, found.registers), 0x1234);
    for (size_t cut = 0; cut <= registers; cut++) {
        uint8_t *copy = malloc(cut + 1);
        memcpy(copy, desc.data, cut);
        copy = realloc(copy, cut ? cut : 1);
        ck_assert(!core_prstatus_at(elf, copy, cut, &found));
        free(copy);
    }
    free(desc.data);
}
END_TEST

START_TEST(process_with_wide_and_narrow_ids)
{
    for (unsigned i = 0; i < 3; i++) { /* 64 bits; 32 bits with uids of 2 bytes; with uids of 4 bytes */
        struct elf_class elf = {i == 0, i == 2};
        struct elf_buffer desc = {.wide = elf.wide, .big = elf.big};
        elf_put_int(&desc, 0, 4);
        elf_pad(&desc, elf_word_size(elf));
        elf_put_word(&desc, 0);
        elf_put_int(&desc, 1000, i == 1 ? 2 : 4);
        elf_put_int(&desc, 1000, i == 1 ? 2 : 4);
        for (unsigned id = 0; id < 4; id++)
            elf_put_int(&desc, 300 + id, 4);
        elf_put(&desc, "worker\0\0\0\0\0\0\0\0\0\0", 16);
        elf_put(&desc, NULL, 80);
        struct core_prpsinfo info = core_prpsinfo_at(elf, desc.data, desc.size);
        ck_assert_int_eq(info.pid, 300);
        ck_assert_str_eq(info.name, "worker");
        free(desc.data);
    }
    struct core_prpsinfo none = core_prpsinfo_at(here, (const uint8_t *)"", 0);
    ck_assert_int_eq(none.pid, 0);
    ck_assert_str_eq(none.name, "");
}
END_TEST

START_TEST(auxiliary_vector)
{
    struct elf_class elf = {_i & 1, _i & 2};
    struct elf_buffer desc = {.wide = elf.wide, .big = elf.big};
    const uint64_t entries[][2] = {{6, 4096}, {AT_SYSINFO_EHDR, 0x7fff0000}, {0, 0}, {25, 1}};
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        elf_put_word(&desc, entries[i][0]);
        elf_put_word(&desc, entries[i][1]);
    }
    ck_assert_uint_eq(core_auxv_value(elf, desc.data, desc.size, AT_SYSINFO_EHDR), 0x7fff0000);
    ck_assert_uint_eq(core_auxv_value(elf, desc.data, desc.size, 25), 0); /* after the end */
    for (size_t cut = 0; cut < 4 * elf_word_size(elf); cut++)
        ck_assert_uint_eq(core_auxv_value(elf, desc.data, cut, AT_SYSINFO_EHDR), 0);
    free(desc.data);
}
END_TEST

START_TEST(signal_information)
{
    const uint8_t bytes[12] = {0, 0, 0, 11};
    ck_assert_int_eq(core_siginfo_at((struct elf_class){true, true}, bytes, sizeof bytes).signal, 11);
    ck_assert_int_eq(core_siginfo_at((struct elf_class){true, true}, bytes, 11).signal, 0);
    siginfo_t fault = {.si_signo = SIGSEGV, .si_code = SEGV_MAPERR, .si_addr = (void *)0x1234};
    siginfo_t sent = {.si_signo = SIGABRT, .si_code = SI_TKILL, .si_pid = 4711, .si_uid = 1000};
    struct core_siginfo info = core_siginfo_at(here, (const uint8_t *)&fault, sizeof fault);
    ck_assert_int_eq(info.signal, SIGSEGV);
    ck_assert_int_eq(info.code, SEGV_MAPERR);
    ck_assert(info.has_address);
    ck_assert_uint_eq(info.address, 0x1234);
    ck_assert_int_eq(info.pid, 0);
    fault.si_code = SI_KERNEL;
    fault.si_addr = NULL;
    info = core_siginfo_at(here, (const uint8_t *)&fault, sizeof fault);
    ck_assert_int_eq(info.code, SI_KERNEL);
    ck_assert(!info.has_address);
    info = core_siginfo_at(here, (const uint8_t *)&sent, sizeof sent);
    ck_assert_int_eq(info.code, SI_TKILL);
    ck_assert(!info.has_address);
    ck_assert_int_eq(info.pid, 4711);
    ck_assert_uint_eq(info.uid, 1000);
    info = core_siginfo_at(here, (const uint8_t *)&sent, offsetof(siginfo_t, si_uid) + 3); /* cut in the user */
    ck_assert_int_eq(info.pid, 0);
}
END_TEST

START_TEST(bits_of_signed_addresses)
{
    static const struct {
        uint64_t mask, expected;
    } cases[] = {
        {UINT64_C(0x7f000000000000), UINT64_C(0x7f000000000000)},     /* addresses of 48 bits */
        {UINT64_C(0x70000000000000), UINT64_C(0x70000000000000)},     /* 52 bits */
        {UINT64_C(0x7f8000000000), UINT64_C(0x7f8000000000)},         /* 39 bits, a part of them */
        {UINT64_C(0xff7f000000000000), UINT64_C(0xff7f000000000000)}, /* no tag in the first byte */
        {UINT64_C(0xff000000000000), 0},                              /* with the bit of the kernel's addresses */
        {UINT64_C(0x7f000000000001), 0},                              /* bits of an address */
        {0, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct elf_class elf = {true, i & 1};
        struct elf_buffer desc = {.wide = true, .big = elf.big};
        elf_put_word(&desc, UINT64_MAX);
        elf_put_word(&desc, cases[i].mask);
        ck_assert_uint_eq(core_pac_mask_at(elf, desc.data, desc.size), cases[i].expected);
        ck_assert_uint_eq(core_pac_mask_at(elf, desc.data, desc.size - 1), 0);
        ck_assert_uint_eq(core_pac_mask_at((struct elf_class){false, elf.big}, desc.data, desc.size), 0);
        free(desc.data);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("core_notes");
    TCase *tc = tcase_create("core_notes");
    tcase_add_test(tc, structs_of_this_machine);
    tcase_add_loop_test(tc, all_classes_and_orders, 0, 4);
    tcase_add_test(tc, process_with_wide_and_narrow_ids);
    tcase_add_loop_test(tc, auxiliary_vector, 0, 4);
    tcase_add_test(tc, signal_information);
    tcase_add_test(tc, bits_of_signed_addresses);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
