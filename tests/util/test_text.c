#include "util/text.h"
#include "tests/support/check_main.h"

static struct text text;

static void teardown(void)
{
    text_deinit(&text);
}

/* ck_assert_str_eq of what was escaped; a macro so that a failure shows the caller's line. */
#define assert_escapes_n(bytes, n, expected)              \
    do {                                                  \
        text_clear(&text);                                \
        text_escape(&text, bytes, n);                     \
        ck_assert(!text.broken);                          \
        ck_assert_str_eq(text.data, expected);            \
        ck_assert_uint_eq(text.length, strlen(expected)); \
    } while (0)
#define assert_escapes(literal, expected) assert_escapes_n(literal, sizeof(literal) - 1, expected)
#define assert_stays(literal)             assert_escapes(literal, literal)

START_TEST(appends)
{
    ck_assert_ptr_null(text.data);
    text_puts(&text, "Ns.");
    text_putc(&text, 'T');
    text_append(&text, "<Uxx", 2);
    text_printf(&text, ">.%s(%d)", "M", -7);
    ck_assert_str_eq(text.data, "Ns.T<U>.M(-7)");
    ck_assert_uint_eq(text.length, 13);
    text_append(&text, NULL, 0);
    text_puts(&text, "");
    ck_assert_uint_eq(text.length, 13);
}
END_TEST

START_TEST(keeps_embedded_nul)
{
    text_append(&text, "a\0b", 3);
    ck_assert_uint_eq(text.length, 3);
    ck_assert_mem_eq(text.data, "a\0b", 4);
}
END_TEST

START_TEST(clear_keeps_the_allocation)
{
    text_clear(&text); /* of one that was never used */
    text_puts(&text, "something");
    char *data = text.data;
    size_t capacity = text.capacity;
    text_clear(&text);
    ck_assert_str_eq(text.data, "");
    ck_assert_uint_eq(text.length, 0);
    text_puts(&text, "else");
    ck_assert_ptr_eq(text.data, data);
    ck_assert_uint_eq(text.capacity, capacity);
}
END_TEST

START_TEST(deinit_twice)
{
    text_puts(&text, "something");
    text_deinit(&text);
    ck_assert_ptr_null(text.data);
    ck_assert_uint_eq(text.capacity, 0);
    text_deinit(&text);
    text_puts(&text, "again");
    ck_assert_str_eq(text.data, "again");
}
END_TEST

START_TEST(grows_byte_by_byte)
{
    size_t moves = 0, capacity = 0;
    for (size_t i = 0; i < TEXT_CAP; i++) {
        text_putc(&text, (char)('a' + i % 26));
        ck_assert_uint_gt(text.capacity, text.length);
        moves += text.capacity != capacity;
        capacity = text.capacity;
    }
    ck_assert(!text.broken);
    ck_assert_uint_eq(strlen(text.data), TEXT_CAP);
    for (size_t i = 0; i < TEXT_CAP; i++)
        ck_assert_int_eq(text.data[i], 'a' + (int)(i % 26));
    ck_assert_uint_lt(moves, 16); /* amortized, not one allocation a byte */
}
END_TEST

START_TEST(grows_at_once)
{
    static const char block[TEXT_CAP];
    text_append(&text, block, 127); /* the NUL takes the first allocation's last byte */
    ck_assert_uint_eq(text.capacity, 128);
    text_append(&text, block, 1);
    ck_assert_uint_gt(text.capacity, 128);
    text_append(&text, block, TEXT_CAP - 128);
    ck_assert(!text.broken);
    ck_assert_uint_eq(text.length, TEXT_CAP);
}
END_TEST

START_TEST(cap_breaks_and_stays_broken)
{
    static char block[TEXT_CAP + 1];
    text_append(&text, block, TEXT_CAP + 1);
    ck_assert(text.broken);
    text_clear(&text);
    ck_assert(!text.broken);
    text_append(&text, block, TEXT_CAP);
    ck_assert(!text.broken);
    text_putc(&text, 'x');
    ck_assert(text.broken);
    ck_assert_uint_eq(text.length, TEXT_CAP);
    text_append(&text, "", 0); /* even what would fit */
    ck_assert(text.broken);
    text_clear(&text);
    text_append(&text, block, SIZE_MAX); /* a size that would wrap */
    ck_assert(text.broken);
    ck_assert_uint_eq(text.length, 0);
    text_clear(&text);
    text_puts(&text, "x");
    text_append(&text, block, SIZE_MAX);
    ck_assert(text.broken);
    ck_assert_str_eq(text.data, "x");
}
END_TEST

START_TEST(escape_obeys_the_cap)
{
    static char zeros[TEXT_CAP];
    text_escape(&text, zeros, sizeof zeros); /* four bytes each */
    ck_assert(text.broken);
    ck_assert_uint_le(text.length, TEXT_CAP);
}
END_TEST

START_TEST(printf_too_long_breaks)
{
    char line[1024];
    memset(line, 'x', sizeof line);
    line[511] = '\0';
    text_printf(&text, "%s", line);
    ck_assert(!text.broken);
    ck_assert_uint_eq(text.length, 511);
    line[511] = 'x';
    line[512] = '\0';
    text_printf(&text, "%s", line);
    ck_assert(text.broken); /* broken, rather than cut silently */
    ck_assert_uint_eq(text.length, 511);
}
END_TEST

START_TEST(plain_text_stays)
{
    assert_stays("Ns.Outer.Inner`1<T>.<M>b__0(int, U) ~!\"#$%&'*+-/:;=?@[]^_{|}");
    assert_stays("h\xc3\xa9llo");                 /* e acute */
    assert_stays("\xc2\xa0");                     /* U+00A0, the first after C1 */
    assert_stays("\xdf\xbf\xe0\xa0\x80");         /* U+07FF, U+0800 */
    assert_stays("\xed\x9f\xbf\xee\x80\x80");     /* U+D7FF, U+E000: around the surrogates */
    assert_stays("\xef\xbf\xbf\xf0\x90\x80\x80"); /* U+FFFF, U+10000 */
    assert_stays("\xf4\x8f\xbf\xbf");             /* U+10FFFF, the last */
    assert_stays("\xe6\x97\xa5\xf0\x9f\x9a\x80 text");
    text_clear(&text);
    text_escape(&text, "", 0);
    ck_assert_uint_eq(text.length, 0);
}
END_TEST

START_TEST(control_characters_are_escaped)
{
    assert_escapes("a\0b", "a\\x00b");
    assert_escapes("\t\n\r\x1b[31m", "\\x09\\x0a\\x0d\\x1b[31m");
    assert_escapes("\x1f \x7e\x7f", "\\x1f ~\\x7f");
    assert_escapes("\xc2\x80\xc2\x9b\xc2\x9f", "\\xc2\\x80\\xc2\\x9b\\xc2\\x9f"); /* C1, CSI among it */
}
END_TEST

START_TEST(backslash_is_doubled)
{
    assert_escapes("C:\\x41", "C:\\\\x41");
    assert_escapes("\\", "\\\\");
    assert_escapes("\\\\", "\\\\\\\\");
}
END_TEST

START_TEST(broken_utf8_is_escaped)
{
    assert_escapes("\x80", "\\x80"); /* a continuation alone */
    assert_escapes("\xff\xfe", "\\xff\\xfe");
    assert_escapes("\xc3", "\\xc3"); /* cut */
    assert_escapes("\xe6\x97", "\\xe6\\x97");
    assert_escapes("\xf0\x9f\x9a", "\\xf0\\x9f\\x9a");
    assert_escapes("\xc3(", "\\xc3("); /* what follows is kept */
    assert_escapes("\xe6\x97\xc3\xa9", "\\xe6\\x97\xc3\xa9");
    assert_escapes("\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80"); /* five bytes: not since RFC 3629 */
    assert_escapes_n("\xc3\xa9", 1, "\\xc3");                            /* never reads beyond the length */
}
END_TEST

START_TEST(overlong_forms_are_escaped)
{
    assert_escapes("\xc0\x80", "\\xc0\\x80"); /* NUL as Java has it */
    assert_escapes("\xc1\xbf", "\\xc1\\xbf");
    assert_escapes("\xe0\x80\xaf", "\\xe0\\x80\\xaf");
    assert_escapes("\xe0\x9f\xbf", "\\xe0\\x9f\\xbf");
    assert_escapes("\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf");
}
END_TEST

START_TEST(surrogates_and_beyond_are_escaped)
{
    assert_escapes("\xed\xa0\x80", "\\xed\\xa0\\x80");          /* U+D800 */
    assert_escapes("\xed\xbf\xbf", "\\xed\\xbf\\xbf");          /* U+DFFF */
    assert_escapes("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* U+110000 */
    assert_escapes("\xf7\xbf\xbf\xbf", "\\xf7\\xbf\\xbf\\xbf");
}
END_TEST

START_TEST(what_rearranges_a_line_is_escaped)
{
    assert_escapes("a\xe2\x80\xae"
                   "b",
                   "a\\u{202e}b"); /* right-to-left override */
    assert_escapes("\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad", "\\u{202a}\\u{202b}\\u{202c}\\u{202d}");
    assert_escapes("\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9", "\\u{2066}\\u{2067}\\u{2068}\\u{2069}");
    assert_escapes("\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "\\u{200e}\\u{200f}\\u{061c}"); /* marks */
    assert_escapes("\xe2\x80\xa8\xe2\x80\xa9", "\\u{2028}\\u{2029}");                  /* line, paragraph */
    assert_escapes("\xef\xbb\xbfT", "\\u{feff}T");
    assert_stays("\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\x9f\xe2\x81\xb0"); /* neighbours */
}
END_TEST

START_TEST(bytes_as_digits)
{
    static const uint8_t bytes[] = {0x00, 0x0f, 0xf0, 0x9a, 0xff};
    char hex[12];
    memset(hex, 'x', sizeof hex);
    text_hex(hex, bytes, sizeof bytes);
    ck_assert_mem_eq(hex, "000ff09aff\0x", 12);
    text_hex(hex, bytes, 0);
    ck_assert_str_eq(hex, "");
}
END_TEST

START_TEST(numbers_of_bytes)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 bytes"},
        {1, "1 byte"},
        {1023, "1023 bytes"},
        {1024, "1 KiB"},
        {1025, "1025 bytes"},
        {UINT64_C(256) << 20, "256 MiB"},
        {UINT64_C(3) << 40, "3 TiB"},
        {UINT64_C(1) << 60, "1048576 TiB"},
        {UINT64_MAX, "18446744073709551615 bytes"},
    };
    char written[40];
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        text_bytes(written, sizeof written, cases[i].bytes);
        ck_assert_str_eq(written, cases[i].text);
    }
}
END_TEST

START_TEST(rounded_numbers_of_bytes)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {{0, "0 B"}, {1023, "1023 B"}, {1024, "1.0 KiB"}, {8700000, "8.3 MiB"}, {UINT64_MAX, "16777216.0 TiB"}};
    char written[32];
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        text_rounded_bytes(written, sizeof written, cases[i].bytes);
        ck_assert_str_eq(written, cases[i].text);
    }
}
END_TEST

START_TEST(equals)
{
    ck_assert(text_equals(&text, ""));
    ck_assert(!text_equals(&text, "a"));
    text_puts(&text, "ab");
    ck_assert(text_equals(&text, "ab"));
    ck_assert(!text_equals(&text, "a") && !text_equals(&text, "abc") && !text_equals(&text, ""));
}
END_TEST

static Suite *suite(void)
{
    const TTest *const tests[] = {
        appends,
        keeps_embedded_nul,
        clear_keeps_the_allocation,
        deinit_twice,
        grows_byte_by_byte,
        grows_at_once,
        cap_breaks_and_stays_broken,
        escape_obeys_the_cap,
        printf_too_long_breaks,
        plain_text_stays,
        control_characters_are_escaped,
        backslash_is_doubled,
        broken_utf8_is_escaped,
        overlong_forms_are_escaped,
        surrogates_and_beyond_are_escaped,
        what_rearranges_a_line_is_escaped,
        bytes_as_digits,
        numbers_of_bytes,
        rounded_numbers_of_bytes,
        equals,
    };
    Suite *s = suite_create("text");
    TCase *tc = tcase_create("text");
    tcase_add_checked_fixture(tc, NULL, teardown);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
