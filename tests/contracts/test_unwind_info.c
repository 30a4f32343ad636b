/*
 * Unwind data of every architecture: their size and the lengths in them over all forms that a header can have, packed
 * entries, chained and fragmented functions. What is expected follows from what the test has written.
 */
#include "tests/support/check_main.h"
#include "contracts/code_info/unwind_info.h"
#include "tests/support/unwind_support.h"

static struct unwind_fixture f;
static struct unwind_table table;

static void setup(int architecture, uint64_t seed)
{
    unwind_fixture_setup(&f, architecture, seed);
    table = unwind_table_at(&f.reader, f.functions, UNWIND_ENTRIES, f.base);
}

static void teardown(void)
{
    unwind_fixture_teardown(&f);
}

static void begin_task(void)
{
    reader_begin(&f.reader, FUEL_INDEX);
}

/* Check records each assertion that passes, which takes longer than the code under test. */
#define expect(condition)                                              \
    do {                                                               \
        if (!(condition))                                              \
            ck_abort_msg("line %d: not so: %s", __LINE__, #condition); \
    } while (0)

static void expect_data(uint32_t i, uint32_t offset, uint32_t size)
{
    uint64_t address = 0;
    uint32_t found = 0;
    begin_task();
    expect(unwind_table_data(&f.reader, &table, i, &address, &found));
    expect(address == f.base + offset);
    if (found != size)
        ck_abort_msg("%u bytes, not %u", found, size);
    expect(!reader_failed(&f.reader));
}

static void expect_no_data(uint32_t i, enum cdacq_status status)
{
    uint64_t address = 1;
    uint32_t size = 2;
    begin_task();
    expect(!unwind_table_data(&f.reader, &table, i, &address, &size));
    expect(address == 1 && size == 2);
    if (reader_failure(&f.reader).status != status)
        ck_abort_msg("status %d, not %d", reader_failure(&f.reader).status, status);
}

static uint32_t length_of(uint32_t i)
{
    begin_task();
    uint32_t length = unwind_table_length(&f.reader, &table, i);
    expect(!reader_failed(&f.reader));
    return length;
}

/* ---- x64 ---- */

START_TEST(x64_codes_and_flags)
{
    setup(ARCHITECTURE_X64, (uint64_t)_i);
    for (uint32_t codes = 0; codes < 256; codes++)
        for (uint32_t flags = 0; flags < 8; flags++) {
            uint32_t unwind = 0x100 + 4 * flags;
            unwind_fixture_word(&f, unwind, 1 | flags << 3 | codes << 16 | (codes * 7 & 0xff) << 24);
            unwind_fixture_entry(&f, 0, 0x1000, 0x20, unwind);
            uint32_t padded = codes % 2 ? codes + 1 : codes;
            /* After the codes: the personality routine, or the entry that this one is chained to. */
            expect_data(0, unwind, 4 + 2 * padded + (flags & 4 ? 3 * 4 : 4));
            expect(unwind_table_is_cold_funclet(&f.reader, &table, 0) == (flags < 4));
            expect(!unwind_table_is_fragment(&f.reader, &table, 0));
            expect(length_of(0) == 0x20);
        }
    teardown();
}
END_TEST

/* A runtime can describe where the number of codes and the codes are. */
START_TEST(x64_described_codes)
{
    setup(ARCHITECTURE_X64, 1);
    f.layout.fields[F_UnwindInfo_CountOfUnwindCodes] = (struct layout_slot){.offset = 5, .width = 1, .present = true};
    for (uint32_t codes = 0; codes < 256; codes++) {
        unwind_fixture_word(&f, 0x100, 1 | 77u << 16);
        unwind_fixture_word(&f, 0x104, codes << 8);
        unwind_fixture_entry(&f, 0, 0x1000, 0x20, 0x100);
        f.layout.fields[F_UnwindInfo_UnwindCodeOffset].present = false;
        expect_data(0, 0x100, 4 + 2 * (codes + codes % 2) + 4);
        f.layout.fields[F_UnwindInfo_UnwindCodeOffset] = (struct layout_slot){.offset = 6, .present = true};
        expect_data(0, 0x100, (6 + 2 * codes + 3) / 4 * 4 + 4);
    }
    teardown();
}
END_TEST

/* Bit 0 of an entry's unwind data means that they are another entry. No runtime writes that into its own tables. */
START_TEST(x64_reference)
{
    setup(ARCHITECTURE_X64, 1);
    unwind_fixture_entry(&f, 0, 0x1000, 0x20, 0x101);
    expect_no_data(0, CDACQ_OK);
    expect(!unwind_table_is_cold_funclet(&f.reader, &table, 0));
    expect(length_of(0) == 0x20);
    teardown();
}
END_TEST

START_TEST(x64_ends)
{
    setup(ARCHITECTURE_X64, 2);
    unwind_fixture_entry(&f, 0, 0x1000, 0, 0x100);
    unwind_fixture_entry(&f, 1, 0x1000, UINT32_MAX, 0x100); /* the end before the begin */
    expect(length_of(0) == 0 && length_of(1) == 0);
    f.layout.fields[F_RuntimeFunction_EndAddress].present = false; /* no other rule may apply */
    begin_task();
    expect(unwind_table_length(&f.reader, &table, 0) == 0);
    expect(reader_failure(&f.reader).status == CDACQ_ERR_FIELD);
    teardown();
}
END_TEST

/* ---- x86 ---- */

START_TEST(x86_function_length)
{
    setup(ARCHITECTURE_X86, (uint64_t)_i);
    uint32_t offset = f.layout.fields[F_UnwindInfo_FunctionLength].offset;
    unwind_fixture_entry(&f, 0, 0x1000, 0, 0x100);
    unwind_fixture_word(&f, 0x100 + offset, 0x12345);
    expect(length_of(0) == 0x12345);
    expect_data(0, 0x100, offset + 4);
    expect(!unwind_table_is_fragment(&f.reader, &table, 0) && !unwind_table_is_cold_funclet(&f.reader, &table, 0));
    /* .NET 10 does not describe the field, which is all that there is. */
    f.layout.fields[F_UnwindInfo_FunctionLength].present = false;
    unwind_fixture_word(&f, 0x100, 0x54321);
    expect(length_of(0) == 0x54321);
    expect_data(0, 0x100, 4);
    teardown();
}
END_TEST

START_TEST(x86_without_funclets)
{
    setup(ARCHITECTURE_X86, 3);
    f.layout.fields[F_UnwindInfo_FunctionLength].present = false;
    f.layout.globals[G_FeatureEHFunclets] = 0;
    unwind_fixture_entry(&f, 0, 0x1000, 0, 0x100);
    unwind_fixture_word(&f, 0x100, 0x0581); /* GC info: 0x81 0x05 is 1 << 7 | 5 */
    expect_data(0, 0x100, 0);
    expect(length_of(0) == 133);
    teardown();
}
END_TEST

/* ---- arm, arm64, riscv64, loongarch64 ---- */

enum { LENGTH_MAX = 0x3ffff, EXTENDED_CODES_MAX = 0xff, EXTENDED_EPILOGS_MAX = 0xffff };

static bool is_arm(void)
{
    return f.layout.architecture == ARCHITECTURE_ARM;
}

static uint32_t unit(void)
{
    return is_arm() ? 2 : 4;
}

/* Writes a header as compilers do; returns the offset after the handler. */
struct form {
    uint32_t units, epilogs, codes;
    bool only_epilog; /* bit E: `epilogs` is then where its codes begin */
    bool extended;
    bool fragment;
};

static uint32_t write_form(uint32_t unwind, const struct form *form)
{
    unsigned arm = is_arm();
    uint32_t at = unwind, first = form->units | 1u << 20 | (uint32_t)form->only_epilog << 21;
    if (arm && form->fragment)
        first |= 1u << 22;
    if (!form->extended)
        first |= form->epilogs << (22 + arm) | form->codes << (27 + arm);
    unwind_fixture_word(&f, at, first);
    at += 4;
    if (form->extended) {
        unwind_fixture_word(&f, at, form->epilogs | form->codes << 16);
        at += 4;
    }
    if (!form->only_epilog)
        at += 4 * form->epilogs;
    if (form->codes)
        unwind_fixture_word(&f, at, !arm && form->fragment ? 0xe5 : 0xe4);
    return at + 4 * form->codes + 4;
}

static void expect_form(const struct form *form)
{
    uint32_t unwind = 0x100;
    uint32_t end = write_form(unwind, form);
    expect_data(0, unwind, end - unwind);
    expect(length_of(0) == form->units * unit());
    expect(unwind_table_is_fragment(&f.reader, &table, 0) == form->fragment);
    expect(!unwind_table_is_cold_funclet(&f.reader, &table, 0));
    expect(!reader_failed(&f.reader));
}

/* Every header of one word. */
START_TEST(one_word)
{
    setup(_i, 4);
    bool arms = is_arm() || f.layout.architecture == ARCHITECTURE_ARM64;
    unwind_fixture_entry(&f, 0, 0x1000, 0, 0x100);
    for (uint32_t codes = 0; codes < (is_arm() ? 16 : 32); codes++)
        for (uint32_t epilogs = 0; epilogs < 32; epilogs++)
            for (unsigned bits = 0; bits < 4; bits++) {
                struct form form = {
                    1 + (codes * 32 + epilogs) * 131 % LENGTH_MAX, epilogs, codes, bits & 1, false, bits & 2};
                /* Without codes the header has two words: on arm and arm64 unless there are epilogs. */
                if (!codes && (!arms || !epilogs))
                    continue;
                form.fragment &= codes || is_arm();
                expect_form(&form);
            }
    teardown();
}
END_TEST

START_TEST(two_words)
{
    setup(_i, 5);
    unwind_fixture_entry(&f, 0, 0x1000, 0, 0x100);
    static const uint32_t some[] = {0, 1, 31, 32, 33, 255, 256, 1000, EXTENDED_EPILOGS_MAX};
    for (uint32_t codes = 1; codes <= EXTENDED_CODES_MAX; codes++)
        for (size_t i = 0; i < ARRAY_SIZE(some); i++)
            for (unsigned bits = 0; bits < 4; bits++)
                expect_form(&(struct form){LENGTH_MAX - codes, some[i], codes, bits & 1, true, bits & 2});
    teardown();
}
END_TEST

/* The runtimes of riscv64 and loongarch64 take a second word whenever the first has no codes, whatever its epilogs. */
START_TEST(no_codes_but_epilogs)
{
    setup(_i, 6);
    unwind_fixture_entry(&f, 0, 0x1000, 0, 0x100);
    unwind_fixture_word(&f, 0x100, 1u << 20 | 7u << 22);
    unwind_fixture_word(&f, 0x104, 2 | 3u << 16);
    expect_data(0, 0x100, 8 + 4 * 2 + 4 * 3 + 4);
    teardown();
}
END_TEST

START_TEST(lengths)
{
    setup(_i, 7);
    unwind_fixture_entry(&f, 0, 0x1000, 0, 0x100);
    for (uint32_t units = 1; units <= LENGTH_MAX; units = units * 2 + (units % 3 == 0)) {
        unwind_fixture_word(&f, 0x100, units | 1u << 20 | 1u << 28);
        expect(length_of(0) == units * unit());
    }
    unwind_fixture_word(&f, 0x100, LENGTH_MAX | 1u << 28);
    expect(length_of(0) == LENGTH_MAX * unit());
    teardown();
}
END_TEST

/* Versions other than 0 do not exist: neither size nor length. */
START_TEST(versions)
{
    setup(_i, 8);
    unwind_fixture_entry(&f, 0, 0x1000, 0, 0x100);
    for (uint32_t version = 1; version < 4; version++) {
        unwind_fixture_word(&f, 0x100, 5 | version << 18 | 1u << 20 | 1u << 28);
        expect_no_data(0, CDACQ_ERR_CORRUPT);
        begin_task();
        expect(!unwind_table_is_fragment(&f.reader, &table, 0));
        expect(reader_failure(&f.reader).status == CDACQ_ERR_CORRUPT);
    }
    teardown();
}
END_TEST

/* The function's length and all else are in the entry. */
START_TEST(packed)
{
    setup(_i, 9);
    for (uint32_t flag = 1; flag < 4; flag++)
        for (uint32_t units = 1; units < 0x800; units = units * 3) {
            unwind_fixture_entry(&f, 0, 0x1000, 0, flag | units << 2 | 0xa5a5u << 13);
            expect(length_of(0) == units * unit());
            expect_no_data(0, CDACQ_OK);
            expect(unwind_table_is_fragment(&f.reader, &table, 0) == (flag == 2));
            expect(!reader_failed(&f.reader));
        }
    teardown();
}
END_TEST

/* A body in four parts, a funclet, and one in two. */
START_TEST(fragments)
{
    static const bool fragment[] = {false, true, true, true, false, false, true};
    static const uint32_t root[] = {0, 0, 0, 0, 4, 5, 5};
    setup(_i, 10);
    for (uint32_t i = 0; i < ARRAY_SIZE(fragment); i++) {
        uint32_t unwind = 0x100 + i * 0x40;
        write_form(unwind, &(struct form){50, i % 3, 1 + i % 2, i % 2, i % 4 == 3, fragment[i]});
        unwind_fixture_entry(&f, i, 0x1000 + 0x100 * i, 0, unwind);
    }
    for (uint32_t i = 0; i < ARRAY_SIZE(fragment); i++) {
        begin_task();
        ck_assert_uint_eq(unwind_table_root(&f.reader, &table, i), root[i]);
    }
    /* A table that begins with a fragment, as that of a cold part does: the walk ends there. */
    struct unwind_table part = unwind_table_at(&f.reader, f.functions + 2 * f.entry_size, 5, f.base);
    ck_assert_uint_eq(unwind_table_root(&f.reader, &part, 1), 0);
    ck_assert(!reader_failed(&f.reader));
    /* Fragments without end. */
    for (uint32_t i = 0; i < UNWIND_ENTRIES; i++)
        unwind_fixture_entry(&f, i, 0x1000 + 0x100 * i, 0, 0x140);
    reader_begin(&f.reader, 20);
    unwind_table_root(&f.reader, &table, UNWIND_ENTRIES - 1);
    ck_assert_int_eq(reader_failure(&f.reader).status, CDACQ_ERR_FUEL);
    teardown();
}
END_TEST

/* ---- All ---- */

/* Only arm has a bit in its begin addresses that does not belong to the address. */
START_TEST(begins)
{
    setup(_i, 11);
    for (uint32_t i = 0; i < UNWIND_ENTRIES; i++)
        unwind_fixture_entry(&f, i, 0x1000 + 0x10 * i + 1, 8, 0x100);
    uint32_t bit = is_arm() ? 0 : 1;
    for (uint32_t i = 0; i < UNWIND_ENTRIES; i++) {
        uint32_t begin = 0x1000 + 0x10 * i + bit;
        expect(unwind_table_begin(&f.reader, &table, i) == begin);
        expect(unwind_table_find(&f.reader, &table, begin) == i);
        expect(unwind_table_find(&f.reader, &table, begin + 15) == i);
        expect(unwind_table_find(&f.reader, &table, begin - 1) == (i ? i - 1 : UINT32_MAX));
    }
    unwind_table_window(&f.reader, &table);
    expect(unwind_table_begin(&f.reader, &table, 3) == 0x1030 + bit);
    teardown();
}
END_TEST

START_TEST(missing_memory)
{
    setup(_i, 12);
    unwind_fixture_entry(&f, 0, 0x1000, 16, UNWIND_ROOM * 2);
    if (f.layout.architecture == ARCHITECTURE_X86)
        expect_data(0, UNWIND_ROOM * 2, f.layout.fields[F_UnwindInfo_FunctionLength].offset + 4); /* nothing to read */
    else
        expect_no_data(0, CDACQ_ERR_MEMORY);
    begin_task();
    expect(!unwind_table_is_fragment(&f.reader, &table, 0));
    begin_task();
    expect(!unwind_table_is_cold_funclet(&f.reader, &table, 0));
    begin_task();
    if (f.layout.architecture != ARCHITECTURE_X64)
        expect(unwind_table_length(&f.reader, &table, 0) == 0 && reader_failure(&f.reader).status == CDACQ_ERR_MEMORY);
    teardown();
}
END_TEST

/* None of the six architectures: lengths by the header, as specified, and nothing else. */
START_TEST(unknown_architecture)
{
    setup(ARCHITECTURE_ARM64, 13);
    f.layout.architecture = ARCHITECTURE_UNKNOWN;
    unwind_fixture_entry(&f, 0, 0x1000, 0, 0x100);
    unwind_fixture_word(&f, 0x100, 21 | 1u << 20 | 1u << 27);
    expect(length_of(0) == 84);
    expect_no_data(0, CDACQ_OK);
    expect(!unwind_table_is_fragment(&f.reader, &table, 0) && !unwind_table_is_cold_funclet(&f.reader, &table, 0));
    teardown();
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("unwind_info");
    TCase *tc = tcase_create("unwind_info");
    tcase_add_loop_test(tc, x64_codes_and_flags, 0, 3);
    tcase_add_test(tc, x64_reference);
    tcase_add_test(tc, x64_described_codes);
    tcase_add_test(tc, x64_ends);
    tcase_add_loop_test(tc, x86_function_length, 0, 3);
    tcase_add_test(tc, x86_without_funclets);
    tcase_add_loop_test(tc, one_word, ARCHITECTURE_ARM, END_ARCHITECTURE);
    tcase_add_loop_test(tc, two_words, ARCHITECTURE_ARM, END_ARCHITECTURE);
    tcase_add_loop_test(tc, no_codes_but_epilogs, ARCHITECTURE_LOONGARCH64, END_ARCHITECTURE);
    tcase_add_loop_test(tc, lengths, ARCHITECTURE_ARM, END_ARCHITECTURE);
    tcase_add_loop_test(tc, versions, ARCHITECTURE_ARM, END_ARCHITECTURE);
    tcase_add_loop_test(tc, packed, ARCHITECTURE_ARM, ARCHITECTURE_LOONGARCH64);
    tcase_add_loop_test(tc, fragments, ARCHITECTURE_ARM, END_ARCHITECTURE);
    tcase_add_loop_test(tc, begins, FIRST_ARCHITECTURE, END_ARCHITECTURE);
    tcase_add_loop_test(tc, missing_memory, FIRST_ARCHITECTURE, END_ARCHITECTURE);
    tcase_add_test(tc, unknown_architecture);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
