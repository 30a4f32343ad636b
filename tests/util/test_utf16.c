#include "tests/support/check_main.h"
#include "util/utf16.h"

static const struct {
    uint16_t units[4];
    size_t count;
    const char *utf8;
} cases[] = {
    {{'a', 0x7f, 0x80, 0x7ff}, 4, "a\x7f\xc2\x80\xdf\xbf"},
    {{0x800, 0xd7ff, 0xe000, 0xffff}, 4, "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"},
    {{0xd800, 0xdc00, 0xdbff, 0xdfff}, 4, "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
    {{0xd83d, 'x', 0xde00, 'y'}, 4, "\xef\xbf\xbdx\xef\xbf\xbdy"},
    {{0xde00, 0xd83d, 0xd83d, 0xde00}, 4, "\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80"},
    {{'a', 0xd83d}, 2, "a\xef\xbf\xbd"},
};

START_TEST(units)
{
    char text[3 * 4];
    uint8_t bytes[2 * 4];
    for (unsigned big = 0; big < 2; big++) {
        size_t taken;
        for (size_t i = 0; i < cases[_i].count; i++)
            store_u16(bytes + 2 * i, cases[_i].units[i], big);
        char *end = utf16_to_utf8(text, bytes, cases[_i].count, big, false, &taken);
        ck_assert_uint_eq(taken, cases[_i].count);
        ck_assert_uint_eq((size_t)(end - text), strlen(cases[_i].utf8));
        ck_assert_mem_eq(text, cases[_i].utf8, (size_t)(end - text));
    }
}
END_TEST

/* A pair may be in two pieces: its first half is left for the next call. */
START_TEST(pieces)
{
    static const uint8_t split[] = {'a', 0, 0x3d, 0xd8};
    char text[3 * 2];
    size_t taken;
    char *end = utf16_to_utf8(text, split, 2, false, true, &taken);
    ck_assert_uint_eq(taken, 1);
    ck_assert_int_eq(end - text, 1);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("utf16");
    TCase *tc = tcase_create("utf16");
    tcase_add_loop_test(tc, units, 0, (int)ARRAY_SIZE(cases));
    tcase_add_test(tc, pieces);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
