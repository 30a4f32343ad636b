/* test_cfi.c: records and rows of call-frame information, byte by byte, after the examples of DWARF 5 appendix D.6. */
#include "formats/cfi.h"

#include "tests/support/check_main.h"

enum { CIE_AT = 0x1000, FDE_AT = 0x2000, CODE = 0x400000 };

static uint8_t cie_bytes[256], fde_bytes[256];
static struct cfi_bytes cie_view, fde_view;
static struct cfi_cie cie;
static struct cfi_fde fde;

/* A CIE "zR" (or "zRS") of code factor 4, data factor -8, column 16, absolute addresses; its program sets the CFA. */
static void put_cie(bool signal)
{
    static const uint8_t start[] = {0, 0, 0, 0, 0, 0, 0, 0, 1};
    uint8_t *at = cie_bytes;
    memcpy(at, start, sizeof start);
    at += sizeof start;
    at = (uint8_t *)stpcpy((char *)at, signal ? "zRS" : "zR") + 1;
    static const uint8_t rest[] = {4, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x80 | 16, 1, 0x80 | 3, 2};
    memcpy(at, rest, sizeof rest);
    at += sizeof rest;
    store_u32(cie_bytes, (uint32_t)(at - cie_bytes - 4), false);
    cie_view =
        (struct cfi_bytes){.bytes = cie_bytes, .size = (size_t)(at - cie_bytes), .address = CIE_AT, .word_size = 8};
    ck_assert(cfi_cie_read(&cie_view, &cie));
}

static void put_fde(const uint8_t *program, size_t size)
{
    store_u32(fde_bytes, (uint32_t)(4 + 16 + 1 + size), false);
    store_u32(fde_bytes + 4, FDE_AT + 4 - CIE_AT, false);
    store_u64(fde_bytes + 8, CODE, false);
    store_u64(fde_bytes + 16, 0x100, false);
    fde_bytes[24] = 0;
    memcpy(fde_bytes + 25, program, size);
    fde_view = (struct cfi_bytes){.bytes = fde_bytes, .size = 25 + size, .address = FDE_AT, .word_size = 8};
    ck_assert(cfi_fde_read(&fde_view, &cie, &fde));
}

#define PROGRAM(...) put_fde((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static struct cfi_row row_at(uint64_t offset)
{
    struct cfi_row row;
    ck_assert(cfi_row_at(&cie_view, &cie, &fde_view, &fde, CODE + offset, &row));
    return row;
}

static void expect_cfa(uint64_t offset, unsigned number, int64_t value)
{
    struct cfi_row row = row_at(offset);
    ck_assert_int_eq(row.cfa.kind, CFI_VALUE_OFFSET);
    ck_assert_uint_eq(row.cfa_register, number);
    ck_assert_int_eq(row.cfa.value, value);
}

static void expect_rule(uint64_t offset, unsigned number, enum cfi_rule_kind kind, int64_t value)
{
    struct cfi_row row = row_at(offset);
    ck_assert_int_eq(row.registers[number].kind, kind);
    ck_assert_int_eq(row.registers[number].value, value);
}

START_TEST(records)
{
    struct cfi_head head;
    put_cie(_i);
    PROGRAM(0);
    ck_assert(cfi_head_at(&cie_view, &head) && head.is_cie);
    ck_assert_uint_eq(head.size, cie_view.size);
    ck_assert(cfi_head_at(&fde_view, &head) && !head.is_cie);
    ck_assert_uint_eq(head.cie, CIE_AT);
    ck_assert_uint_eq(cie.code_factor, 4);
    ck_assert_int_eq(cie.data_factor, -8);
    ck_assert_uint_eq(cie.return_address, 16);
    ck_assert_int_eq(cie.is_signal, _i);
    ck_assert_uint_eq(fde.begin, CODE);
    ck_assert_uint_eq(fde.end, CODE + 0x100);
    ck_assert_int_eq(row_at(0).is_signal, _i);
}
END_TEST

/* push, frame pointer, epilog with remembered state: each row holds from its address to the next. */
START_TEST(rows)
{
    put_cie(false);
    PROGRAM(0x41, 0x0e, 16, 0x86, 2, 0x42, 0x0d, 6, 0x44, 0x0a, 0x0c, 7, 8, 0xc6, 0x41, 0x0b);
    expect_cfa(0, 7, 8);
    expect_cfa(3, 7, 8);
    expect_cfa(4, 7, 16);
    expect_cfa(11, 7, 16);
    expect_cfa(12, 6, 16);
    expect_cfa(27, 6, 16);
    expect_cfa(28, 7, 8);
    expect_cfa(31, 7, 8);
    expect_cfa(32, 6, 16); /* restored */
    expect_cfa(0xff, 6, 16);
    expect_rule(0, 6, CFI_UNSPECIFIED, 0);
    expect_rule(4, 6, CFI_OFFSET, -16);
    expect_rule(28, 6, CFI_UNSPECIFIED, 0);
    expect_rule(32, 6, CFI_OFFSET, -16);
    expect_rule(0, 16, CFI_OFFSET, -8);
    expect_rule(0, 3, CFI_OFFSET, -16); /* of the CIE */
}
END_TEST

START_TEST(instructions)
{
    put_cie(false);
    PROGRAM(0x02, 1, 0x05, 12, 3,       /* advance_loc1 (4); offset_extended */
            0x03, 1, 0, 0x07, 12,       /* advance_loc2 (8); undefined */
            0x04, 1, 0, 0, 0, 0x08, 12, /* advance_loc4 (12); same_value */
            0x41, 0x09, 12, 5, 0x41, 0x11, 12, 0x7f, 0x41, 0x14, 12, 2, 0x41, 0x15, 12, 0x7e, /* 16, 20, 24, 28 */
            0x41, 0x10, 12, 2, 0x77, 8, 0x41, 0x16, 12, 1, 0x30, 0x41, 0x0f, 2, 0x77, 16,     /* 32, 36, 40 */
            0x41, 0x12, 7, 0x7e, 0x41, 0x13, 0x7d, 0x41, 0x2f, 12, 4, 0x41, 0x06, 3,          /* 44, 48, 52, 56 */
            0x2e, 8, 0x41, 0x2d, 0x41, 0x01, 0x90, 0, 0x40, 0, 0, 0, 0, 0, 0x0e,
            40); /* args size; 60: signed; set_loc */
    expect_rule(4, 12, CFI_OFFSET, -24);
    expect_rule(8, 12, CFI_UNDEFINED, 0);
    expect_rule(12, 12, CFI_SAME, 0);
    expect_rule(16, 12, CFI_REGISTER, 5);
    expect_rule(20, 12, CFI_OFFSET, 8);
    expect_rule(24, 12, CFI_VALUE_OFFSET, -16);
    expect_rule(28, 12, CFI_VALUE_OFFSET, 16);
    struct cfi_row row = row_at(32);
    ck_assert_int_eq(row.registers[12].kind, CFI_EXPRESSION);
    ck_assert_uint_eq(row.registers[12].size, 2);
    ck_assert_uint_eq(fde_bytes[row.registers[12].value - FDE_AT], 0x77); /* where its first operation is */
    ck_assert_int_eq(row_at(36).registers[12].kind, CFI_VALUE_EXPRESSION);
    row = row_at(40);
    ck_assert_int_eq(row.cfa.kind, CFI_VALUE_EXPRESSION);
    ck_assert_uint_eq(fde_bytes[row.cfa.value - FDE_AT + 1], 16);
    expect_cfa(44, 7, 16);
    expect_cfa(48, 7, 24);
    expect_rule(52, 12, CFI_OFFSET, 32);
    expect_rule(56, 3, CFI_OFFSET, -16); /* restored to the CIE's */
    expect_rule(60, 3, CFI_OFFSET, -16); /* the return address is signed from here on */
    expect_cfa(0x8f, 7, 24);
    expect_cfa(0x90, 7, 40);
}
END_TEST

START_TEST(damaged_programs)
{
    static const uint8_t programs[][8] = {
        {0x0b},                   /* nothing to restore */
        {0x3f},                   /* unknown */
        {0x17},                   /* unknown */
        {0x0f, 0x7f},             /* an expression beyond the end */
        {0x0f, 1, 0x30, 0x0e, 8}, /* an offset where the CFA is an expression */
        {0x0c, 0x80, 0x01, 8},    /* a register that there is not */
    };
    struct cfi_row row;
    put_cie(false);
    for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
        put_fde(programs[i], sizeof programs[i]);
        ck_assert_msg(!cfi_row_at(&cie_view, &cie, &fde_view, &fde, CODE + 0xff, &row), "program %zu", i);
    }
    uint8_t nested[17];
    memset(nested, 0x0a, sizeof nested); /* remembers more states than there are */
    put_fde(nested, sizeof nested);
    ck_assert(!cfi_row_at(&cie_view, &cie, &fde_view, &fde, CODE, &row));
}
END_TEST

/* Every record is cut at every length: no read beyond it, and none is taken for whole. */
START_TEST(records_that_are_cut)
{
    struct cfi_cie other;
    struct cfi_fde cut_fde;
    put_cie(true);
    PROGRAM(0x41, 0x0e, 16);
    for (size_t size = 0; size < fde_view.size; size++) {
        uint8_t *copy = malloc(size + 1);
        memcpy(copy, fde_bytes, size);
        copy = realloc(copy, MAX(size, 1));
        struct cfi_bytes cut = {.bytes = copy, .size = size, .address = FDE_AT, .word_size = 8};
        ck_assert(size >= 25 || !cfi_fde_read(&cut, &cie, &cut_fde));
        memcpy(copy, cie_bytes, MIN(size, cie_view.size));
        cut = (struct cfi_bytes){.bytes = copy, .size = MIN(size, cie_view.size - 6), .word_size = 8};
        cfi_cie_read(&cut, &other);
        ck_assert(size >= 17 || !cfi_cie_read(&cut, &other));
        free(copy);
    }
}
END_TEST

START_TEST(index_header)
{
    uint8_t bytes[32] = {1, 0x1b, 0x03, 0x3b};
    struct cfi_bytes view = {.bytes = bytes, .size = sizeof bytes, .address = 0x5000, .word_size = 8};
    struct cfi_index index;
    store_u32(bytes + 4, 0x100, false);
    store_u32(bytes + 8, 77, false);
    ck_assert(cfi_index_read(&view, &index));
    ck_assert_uint_eq(index.eh_frame, 0x5104); /* relative to its own place */
    ck_assert_uint_eq(index.table, 0x500c);
    bytes[2] = bytes[3] = 0xff;
    ck_assert(cfi_index_read(&view, &index));
    ck_assert_uint_eq(index.count, 0);
    bytes[0] = 2;
    ck_assert(!cfi_index_read(&view, &index));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("cfi");
    TCase *tc = tcase_create("cfi");
    tcase_add_loop_test(tc, records, 0, 2);
    tcase_add_test(tc, rows);
    tcase_add_test(tc, instructions);
    tcase_add_test(tc, damaged_programs);
    tcase_add_test(tc, records_that_are_cut);
    tcase_add_test(tc, index_header);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
