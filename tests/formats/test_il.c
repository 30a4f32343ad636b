/*
 * test_il.c: the headers of methods, and their instructions, on code that is written here from ECMA-335.
 */
#include "tests/support/check_main.h"
#include "formats/il.h"

START_TEST(headers)
{
    static const uint8_t tiny[] = {0x2a << 2 | 2}, fat[] = {0x13, 0x30, 8, 0, 0x10, 0x32, 0x54, 0, 0, 0, 0, 0x11};
    uint8_t bytes[sizeof fat];
    struct il_body body = {0};
    ck_assert(il_body_read(tiny, sizeof tiny, &body));
    ck_assert_uint_eq(body.header_size, 1);
    ck_assert_uint_eq(body.code_size, 0x2a);
    ck_assert_uint_eq(body.local_signature, 0);
    ck_assert(il_body_read(fat, sizeof fat, &body));
    ck_assert_uint_eq(body.header_size, 12);
    ck_assert_uint_eq(body.code_size, 0x543210);
    ck_assert_uint_eq(body.local_signature, 0x11000000);
    ck_assert(!il_body_read(fat, sizeof fat - 1, &body));
    ck_assert(!il_body_read(tiny, 0, &body));
    memcpy(bytes, fat, sizeof fat);
    bytes[7] = 1; /* 16 MiB and more of code */
    ck_assert(!il_body_read(bytes, sizeof bytes, &body));
    memcpy(bytes, fat, sizeof fat);
    bytes[1] = 0x40; /* a header of another size */
    ck_assert(!il_body_read(bytes, sizeof bytes, &body));
    bytes[0] = 1; /* another kind */
    ck_assert(!il_body_read(bytes, sizeof bytes, &body));
}
END_TEST

/* The opcodes of ECMA-335 III by the bytes of their operands; the rest is undefined. */
static int size_of(unsigned opcode)
{
    static const uint8_t one[] = {0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x1f, 0xde};
    static const uint8_t four[] = {0x20, 0x22, 0x27, 0x28, 0x29, 0x6f, 0x70, 0x71, 0x72, 0x73,
                                   0x74, 0x75, 0x79, 0x7b, 0x7c, 0x7d, 0x7e, 0x7f, 0x80, 0x81,
                                   0x8c, 0x8d, 0x8f, 0xa3, 0xa4, 0xa5, 0xc2, 0xc6, 0xd0, 0xdd};
    static const uint8_t none[] = {0x24, 0x77, 0x78, 0xc4, 0xc5};
    if (memchr(none, (int)opcode, sizeof none) || (opcode >= 0xa6 && opcode <= 0xb2) ||
        (opcode >= 0xbb && opcode <= 0xc1) || (opcode >= 0xc7 && opcode <= 0xcf) || opcode >= 0xe1)
        return -1;
    if (memchr(one, (int)opcode, sizeof one) || (opcode >= 0x2b && opcode <= 0x37))
        return 1;
    if (memchr(four, (int)opcode, sizeof four) || (opcode >= 0x38 && opcode <= 0x44))
        return 4;
    return opcode == 0x21 || opcode == 0x23 ? 8 : 0;
}

START_TEST(operands)
{
    for (unsigned opcode = 0; opcode < 0xfe; opcode++) {
        const uint8_t bytes[16] = {(uint8_t)opcode, 0x78, 0x56, 0x34, 0x12};
        struct il_code code = {bytes, sizeof bytes, 0};
        struct il_instruction instruction;
        int size = size_of(opcode);
        if (opcode == 0x45)
            continue;
        ck_assert_msg(il_next(&code, &instruction) == (size >= 0), "%02x", opcode);
        if (size < 0)
            continue;
        ck_assert_msg(instruction.size == 1u + (unsigned)size, "%02x", opcode);
        ck_assert_uint_eq(code.at, instruction.size);
        ck_assert_uint_eq(instruction.opcode, opcode);
        ck_assert_uint_eq(instruction.operand, size == 1 ? 0x78 : size == 4 ? 0x12345678 : 0);
        for (unsigned short_by = 1; short_by <= (unsigned)size; short_by++) {
            code = (struct il_code){bytes, 1 + (unsigned)size - short_by, 0};
            ck_assert(!il_next(&code, &instruction));
        }
    }
}
END_TEST

START_TEST(long_opcodes_and_switches)
{
    static const uint8_t bytes[] = {0xfe, 0x16, 1, 2, 3, 4,                      /* constrained. */
                                    0xfe, 0x01,                                  /* ceq */
                                    0xfe, 0x0c, 5, 6,                            /* ldloc */
                                    0x45, 2,    0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, /* switch with two targets */
                                    0x2a};
    static const uint32_t offsets[] = {0, 6, 8, 12, 25}, sizes[] = {6, 2, 4, 13, 1};
    struct il_code code = {bytes, sizeof bytes, 0};
    struct il_instruction instruction;
    for (unsigned i = 0; i < ARRAY_SIZE(offsets); i++) {
        ck_assert(il_next(&code, &instruction));
        ck_assert_uint_eq(instruction.offset, offsets[i]);
        ck_assert_uint_eq(instruction.size, sizes[i]);
    }
    ck_assert(!il_next(&code, &instruction));
    static const uint8_t damaged[][6] = {{0xfe}, {0xfe, 0x08}, {0x45, 0xff, 0xff, 0xff, 0xff, 0}, {0x45, 1, 0, 0}};
    static const uint32_t lengths[] = {1, 6, 6, 4};
    for (unsigned i = 0; i < ARRAY_SIZE(damaged); i++) {
        code = (struct il_code){damaged[i], lengths[i], 0};
        ck_assert(!il_next(&code, &instruction));
    }
}
END_TEST

START_TEST(constants)
{
    static const uint8_t bytes[] = {0x15, 0x16, 0x1e, 0x1f, 0xfe, 0x20, 0, 0, 0, 0x80, 0x14};
    static const int32_t values[] = {-1, 0, 8, -2, INT32_MIN};
    struct il_code code = {bytes, sizeof bytes, 0};
    struct il_instruction instruction;
    int32_t value;
    for (unsigned i = 0; i < ARRAY_SIZE(values); i++) {
        ck_assert(il_next(&code, &instruction));
        ck_assert(il_constant(&instruction, &value));
        ck_assert_int_eq(value, values[i]);
    }
    ck_assert(il_next(&code, &instruction));
    ck_assert(!il_constant(&instruction, &value)); /* ldnull */
}
END_TEST

START_TEST(stores_to_locals)
{
    static const uint8_t bytes[] = {0x09, 0x0a, 0x0d, 0x13, 7, 0xfe, 0x0e, 1, 2, 0x0e, 1, 0xfe, 0x0b, 1, 2};
    static const bool is_stloc[] = {false, true, true, true, true, false, false};
    struct il_code code = {bytes, sizeof bytes, 0};
    struct il_instruction instruction;
    for (unsigned i = 0; i < ARRAY_SIZE(is_stloc); i++) {
        ck_assert(il_next(&code, &instruction));
        ck_assert(il_is_stloc(&instruction) == is_stloc[i]);
    }
    ck_assert(!il_next(&code, &instruction));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("il");
    TCase *tc = tcase_create("il");
    tcase_add_test(tc, headers);
    tcase_add_test(tc, operands);
    tcase_add_test(tc, long_opcodes_and_switches);
    tcase_add_test(tc, constants);
    tcase_add_test(tc, stores_to_locals);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
