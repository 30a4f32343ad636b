#include "util/escape.h"
#include "tests/support/check_main.h"

static void assert_forms(const char *bytes, size_t length, const char *const expected[ESCAPE_FORMS])
{
    for (enum escape_form form = ESCAPE_DATA; form < ESCAPE_FORMS; form++) {
        char whole[256], by_character[256], *end = escape(whole, bytes, length, form), *to = by_character;
        ck_assert_uint_le((size_t)(end - whole), ESCAPED_SIZE(length));
        *end = '\0';
        ck_assert_str_eq(whole, expected[form]);
        for (size_t i = 0, taken; i < length; i += taken) {
            char *before = to;
            to = escape_character(to, bytes + i, length - i, form, &taken);
            ck_assert_uint_ge(taken, 1);
            ck_assert_uint_le(taken, length - i);
            ck_assert_uint_le((size_t)(to - before), ESCAPED_CHARACTER_SIZE);
        }
        *to = '\0';
        ck_assert_str_eq(by_character, expected[form]);
    }
}

#define assert_all(literal, ...) assert_forms(literal, sizeof(literal) - 1, (const char *const[]){__VA_ARGS__})

/* What text has no other form for. */
#define assert_escapes(literal, data, message, json_data, json_message) \
    assert_all(literal, data, message, json_data, json_message, message, json_message)

START_TEST(plain_text_stays)
{
    assert_escapes("", "", "", "", "");
    assert_escapes("Ns.T<U>.M(int)", "Ns.T<U>.M(int)", "Ns.T<U>.M(int)", "Ns.T<U>.M(int)", "Ns.T<U>.M(int)");
    assert_escapes("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
                   "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
                   "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
}
END_TEST

START_TEST(each_form_has_its_backslashes)
{
    assert_escapes("a\\b", "a\\\\b", "a\\b", "a\\\\\\\\b", "a\\\\b");
    assert_escapes("\"q\"", "\"q\"", "\"q\"", "\\\"q\\\"", "\\\"q\\\"");
    assert_all("a\nb", "a\\x0ab", "a\\x0ab", "a\\\\x0ab", "a\\\\x0ab", "a\nb", "a\\nb");
}
END_TEST

START_TEST(plain_bytes_are_counted)
{
    static const char text[] = "0123456789abcdef\\0123456789abcdef";
    ck_assert_uint_eq(escape_plain_length(text, sizeof text - 1), 16);
    for (size_t n = 0; n <= 16; n++) {
        ck_assert_uint_eq(escape_plain_length(text, n), n);
        ck_assert_uint_eq(escape_plain_length(text + n, 17 - n), 16 - n);
    }
    ck_assert_uint_eq(escape_plain_length("01234567\"", 9), 8);
    ck_assert_uint_eq(escape_plain_length("0123456\x7f", 8), 7);
}
END_TEST

START_TEST(controls_and_bytes_that_are_no_text)
{
    assert_all("\0\x7f", "\\x00\\x7f", "\\x00\\x7f", "\\\\x00\\\\x7f", "\\\\x00\\\\x7f", "\\x00\\x7f",
               "\\u0000\\u007f");
    assert_all("\xc2\x9b", "\\xc2\\x9b", "\\xc2\\x9b", "\\\\xc2\\\\x9b", "\\\\xc2\\\\x9b", "\\xc2\\x9b",
               "\\u009b"); /* a C1 control */
    assert_all("\xe2\x80\xae", "\\u{202e}", "\\u{202e}", "\\\\u{202e}", "\\\\u{202e}", "\\u{202e}", "\\u202e");
    assert_all("\t\r\n\x1b[m", "\\x09\\x0d\\x0a\\x1b[m", "\\x09\\x0d\\x0a\\x1b[m", "\\\\x09\\\\x0d\\\\x0a\\\\x1b[m",
               "\\\\x09\\\\x0d\\\\x0a\\\\x1b[m", "\t\\x0d\n\\x1b[m", "\\t\\u000d\\n\\u001b[m");
    assert_escapes("\xe2\x82", "\\xe2\\x82", "\\xe2\\x82", "\\\\xe2\\\\x82", "\\\\xe2\\\\x82"); /* cut */
    assert_escapes("\xc0\xaf", "\\xc0\\xaf", "\\xc0\\xaf", "\\\\xc0\\\\xaf", "\\\\xc0\\\\xaf"); /* overlong */
    assert_escapes("\xed\xa0\x80", "\\xed\\xa0\\x80", "\\xed\\xa0\\x80", "\\\\xed\\\\xa0\\\\x80",
                   "\\\\xed\\\\xa0\\\\x80"); /* a surrogate */
    assert_escapes("\xff", "\\xff", "\\xff", "\\\\xff", "\\\\xff");
}
END_TEST

START_TEST(names_show_what_is_invisible)
{
    /*
     * In text, as it is: the zero-width non-joiner of Persian, the variation selector of an emoji, the tags of a flag.
     */
    assert_all("a\xe2\x80\x8c"
               "b",
               "a\\u{200c}b", "a\\u{200c}b", "a\\\\u{200c}b", "a\\\\u{200c}b",
               "a\xe2\x80\x8c"
               "b",
               "a\xe2\x80\x8c"
               "b");
    assert_all("\xef\xb8\x8f", "\\u{fe0f}", "\\u{fe0f}", "\\\\u{fe0f}", "\\\\u{fe0f}", "\xef\xb8\x8f", "\xef\xb8\x8f");
    assert_all("\xf3\xa0\x81\xa7", "\\u{e0067}", "\\u{e0067}", "\\\\u{e0067}", "\\\\u{e0067}", "\xf3\xa0\x81\xa7",
               "\xf3\xa0\x81\xa7");
    /* Neither the one nor the other: the byte order mark, and a mark of direction. */
    assert_all("\xef\xbb\xbf", "\\u{feff}", "\\u{feff}", "\\\\u{feff}", "\\\\u{feff}", "\\u{feff}", "\\ufeff");
    /* The first and the last of ranges, and their neighbours. */
    static const struct {
        uint32_t code;
        bool escaped;
    } cases[] = {{0xac, false},   {0xad, true},     {0xae, false},    {0x115e, false},  {0x115f, true},
                 {0x1160, true},  {0x1161, false},  {0x180a, false},  {0x180f, true},   {0x200a, false},
                 {0x200b, true},  {0x2010, false},  {0x205f, false},  {0x2060, true},   {0x206f, true},
                 {0x2070, false}, {0x2800, true},   {0x3164, true},   {0xfe0f, true},   {0xfe10, false},
                 {0xfffb, true},  {0xfffd, false},  {0x1d17a, true},  {0xdffff, false}, {0xe0000, true},
                 {0xe0fff, true}, {0xe1000, false}, {0x10ffff, false}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint32_t code = cases[i].code;
        char utf8[4], to[ESCAPED_CHARACTER_SIZE];
        size_t n = 0, taken;
        if (code < 0x800) {
            utf8[n++] = (char)(0xc0 | code >> 6);
        } else if (code < 0x10000) {
            utf8[n++] = (char)(0xe0 | code >> 12);
            utf8[n++] = (char)(0x80 | (code >> 6 & 0x3f));
        } else {
            utf8[n++] = (char)(0xf0 | code >> 18);
            utf8[n++] = (char)(0x80 | (code >> 12 & 0x3f));
            utf8[n++] = (char)(0x80 | (code >> 6 & 0x3f));
        }
        utf8[n++] = (char)(0x80 | (code & 0x3f));
        char *end = escape_character(to, utf8, n, ESCAPE_DATA, &taken);
        ck_assert_uint_eq(taken, n);
        ck_assert_msg((to[0] == '\\') == cases[i].escaped, "U+%04X", code);
        ck_assert(cases[i].escaped || ((size_t)(end - to) == n && memcmp(to, utf8, n) == 0));
    }
}
END_TEST

START_TEST(every_byte_at_every_position)
{
    /* Eight bytes are looked at together: each alone gives the same. */
    for (unsigned value = 0; value < 256; value++)
        for (size_t position = 0; position < 20; position++)
            for (enum escape_form form = ESCAPE_DATA; form < ESCAPE_FORMS; form++) {
                char bytes[20], whole[ESCAPED_SIZE(20)], one_by_one[ESCAPED_SIZE(20)], *to = one_by_one;
                memset(bytes, 'a', sizeof bytes);
                bytes[position] = (char)value;
                char *end = escape(whole, bytes, sizeof bytes, form);
                for (size_t i = 0, taken; i < sizeof bytes; i += taken)
                    to = escape_character(to, bytes + i, sizeof bytes - i, form, &taken);
                if (end - whole != to - one_by_one || memcmp(whole, one_by_one, (size_t)(end - whole)) != 0)
                    ck_abort_msg("byte %#x at %zu, form %d", value, position, (int)form);
            }
}
END_TEST

static Suite *escape_suite(void)
{
    Suite *suite = suite_create("escape");
    TCase *tcase = tcase_create("escape");
    tcase_add_test(tcase, plain_text_stays);
    tcase_add_test(tcase, plain_bytes_are_counted);
    tcase_add_test(tcase, each_form_has_its_backslashes);
    tcase_add_test(tcase, controls_and_bytes_that_are_no_text);
    tcase_add_test(tcase, names_show_what_is_invisible);
    tcase_add_test(tcase, every_byte_at_every_position);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(escape_suite)
