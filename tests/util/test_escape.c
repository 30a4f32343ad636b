#include "util/escape.h"
#include "tests/support/check_main.h"

static void assert_forms(const char *bytes, size_t length, const char *const expected[4])
{
    for (enum escape_form form = ESCAPE_DATA; form <= ESCAPE_JSON_MESSAGE; form++) {
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

#define assert_escapes(literal, data, message, json_data, json_message) \
    assert_forms(literal, sizeof(literal) - 1, (const char *const[]){data, message, json_data, json_message})

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
    assert_escapes("a\nb", "a\\x0ab", "a\\x0ab", "a\\\\x0ab", "a\\\\x0ab");
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
    assert_escapes("\0\x7f", "\\x00\\x7f", "\\x00\\x7f", "\\\\x00\\\\x7f", "\\\\x00\\\\x7f");
    assert_escapes("\xc2\x9b", "\\xc2\\x9b", "\\xc2\\x9b", "\\\\xc2\\\\x9b", "\\\\xc2\\\\x9b"); /* a C1 control */
    assert_escapes("\xe2\x80\xae", "\\u{202e}", "\\u{202e}", "\\\\u{202e}", "\\\\u{202e}");
    assert_escapes("\xe2\x82", "\\xe2\\x82", "\\xe2\\x82", "\\\\xe2\\\\x82", "\\\\xe2\\\\x82"); /* cut */
    assert_escapes("\xc0\xaf", "\\xc0\\xaf", "\\xc0\\xaf", "\\\\xc0\\\\xaf", "\\\\xc0\\\\xaf"); /* overlong */
    assert_escapes("\xed\xa0\x80", "\\xed\\xa0\\x80", "\\xed\\xa0\\x80", "\\\\xed\\\\xa0\\\\x80",
                   "\\\\xed\\\\xa0\\\\x80"); /* a surrogate */
    assert_escapes("\xff", "\\xff", "\\xff", "\\\\xff", "\\\\xff");
}
END_TEST

START_TEST(every_byte_at_every_position)
{
    /* Eight bytes are looked at together: each alone gives the same. */
    for (unsigned value = 0; value < 256; value++)
        for (size_t position = 0; position < 20; position++)
            for (enum escape_form form = ESCAPE_DATA; form <= ESCAPE_JSON_MESSAGE; form++) {
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
    tcase_add_test(tcase, every_byte_at_every_position);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(escape_suite)
