#include "descriptors/json.h"

#include <stdio.h>

#include "tests/support/check_main.h"

static struct cdacq_error error;
static struct json *root;

static void teardown(void)
{
    json_free(root);
    root = NULL;
}

/* From an allocation of exactly its size, so that AddressSanitizer finds a read beyond it. */
static enum cdacq_status parse_n(const void *text, size_t size)
{
    json_free(root);
    root = NULL;
    char *exact = malloc(size ? size : 1);
    memcpy(exact, text, size);
    enum cdacq_status status = json_parse(exact, size, "the runtime", &root, &error);
    free(exact);
    return status;
}

static void parse(const char *text)
{
    enum cdacq_status status = parse_n(text, strlen(text));
    ck_assert_msg(status == CDACQ_OK, "%s: %s", text, error.message);
}

static const struct json *get(const char *key)
{
    return json_get(root, key);
}

/* ---- Values ---- */

START_TEST(every_kind)
{
    parse("{\"n\":null,\"t\":true,\"f\":false,\"i\":12,\"s\":\"text\",\"a\":[],\"o\":{}}");
    ck_assert_int_eq(json_kind(root), JSON_OBJECT);
    ck_assert_int_eq(json_kind(get("n")), JSON_NULL);
    ck_assert_int_eq(json_kind(get("t")), JSON_BOOL);
    ck_assert_int_eq(json_kind(get("f")), JSON_BOOL);
    ck_assert_int_eq(json_kind(get("i")), JSON_NUMBER);
    ck_assert_int_eq(json_kind(get("s")), JSON_STRING);
    ck_assert_int_eq(json_kind(get("a")), JSON_ARRAY);
    ck_assert_int_eq(json_kind(get("o")), JSON_OBJECT);
    ck_assert_str_eq(json_text(get("s")), "text");
    ck_assert_str_eq(json_text(get("i")), "12");
    static const char *const without_text[] = {"n", "t", "f", "a", "o"};
    uint64_t number = 7;
    for (size_t i = 0; i < ARRAY_SIZE(without_text); i++) {
        ck_assert_ptr_null(json_text(get(without_text[i])));
        ck_assert(!json_integer(get(without_text[i]), &number));
        ck_assert_ptr_null(json_first(get(without_text[i])));
        ck_assert_uint_eq(json_count(get(without_text[i])), 0);
        ck_assert_ptr_null(json_get(get(without_text[i]), "x"));
    }
    ck_assert_uint_eq(number, 7);
}
END_TEST

START_TEST(order_and_keys)
{
    parse("{\"b\":1,\"a\":[10,20,30],\"c\":{\"d\":2}}");
    const struct json *value = json_first(root);
    ck_assert_str_eq(json_key(value), "b");
    value = json_next(value);
    ck_assert_str_eq(json_key(value), "a");
    ck_assert_uint_eq(json_count(value), 3);
    const struct json *element = json_first(value);
    ck_assert_str_eq(json_key(element), "");
    ck_assert_str_eq(json_text(json_next(json_next(element))), "30");
    ck_assert_ptr_null(json_next(json_next(json_next(element))));
    value = json_next(value);
    ck_assert_str_eq(json_key(json_first(value)), "d");
    ck_assert_ptr_null(json_next(value));
}
END_TEST

START_TEST(any_value_may_be_the_root)
{
    static const char *const texts[] = {"1", "\"x\"", "[]", "true", "null", " \t\r\n1 "};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        parse(texts[i]);
}
END_TEST

/* ---- cJSON's traps ---- */

START_TEST(keys_compare_exactly)
{
    parse("{\"types\":1,\"Types\":2,\"TYPES\":3}");
    ck_assert_str_eq(json_text(get("types")), "1");
    ck_assert_str_eq(json_text(get("Types")), "2");
    ck_assert_str_eq(json_text(get("TYPES")), "3");
    ck_assert_ptr_null(get("tYPES"));
    ck_assert_ptr_null(get(""));
}
END_TEST

START_TEST(the_last_of_duplicate_keys_counts)
{
    parse("{\"a\":1,\"b\":2,\"a\":3}");
    ck_assert_str_eq(json_text(get("a")), "3");
    ck_assert_uint_eq(json_count(root), 3); /* all of them are there to be walked */
}
END_TEST

static const struct integer {
    const char *text;
    bool fits;
    uint64_t value;
} integers[] = {
    {"0", true, 0},
    {"-0", true, 0},
    {"1", true, 1},
    {"-1", true, UINT64_MAX},
    {"4294967296", true, UINT64_C(4294967296)},
    {"9007199254740992", true, UINT64_C(9007199254740992)},
    {"9007199254740993", true, UINT64_C(9007199254740993)}, /* 2^53 + 1: a double cannot hold it */
    {"9223372036854775807", true, INT64_MAX},
    {"9223372036854775808", true, UINT64_C(9223372036854775808)},
    {"18446744073709551615", true, UINT64_MAX},
    {"18446744073709551616", false, 0},
    {"99999999999999999999999999999999999999", false, 0},
    {"-9223372036854775808", true, UINT64_C(9223372036854775808)},
    {"-9223372036854775809", false, 0},
    {"-18446744073709551615", false, 0},
    {"1.0", false, 0},
    {"1e3", false, 0},
    {"0.5", false, 0},
    {"1E+2", false, 0},
    {"\"17\"", true, 17},
    {"\"-17\"", true, (uint64_t)-17},
    {"\"0x11\"", true, 17},
    {"\"0X1f\"", true, 31},
    {"\"0xfffffffffffffffe\"", true, UINT64_MAX - 1},
    {"\"0xFFFFFFFFFFFFFFFF\"", true, UINT64_MAX},
    {"\"0x10000000000000000\"", false, 0},
    {"\"-0x1\"", true, UINT64_MAX},
    {"\"-0x8000000000000000\"", true, UINT64_C(1) << 63},
    {"\"-0x8000000000000001\"", false, 0},
    {"\"0x7fffffffffffffff\"", true, INT64_MAX},
    {"\"007\"", true, 7}, /* a string that holds a number has no spelling of its own */
    {"\"\"", false, 0},
    {"\"-\"", false, 0},
    {"\"0x\"", false, 0},
    {"\"-0x\"", false, 0},
    {"\"x1\"", false, 0},
    {"\"1x\"", false, 0},
    {"\"12 \"", false, 0},
    {"\" 12\"", false, 0},
    {"\"+1\"", false, 0},
    {"\"--1\"", false, 0},
    {"\"f\"", false, 0},
    {"\"0xg\"", false, 0},
    {"\"1_000\"", false, 0},
    {"\"unknown\"", false, 0},
    {"\"x64\"", false, 0},
    {"\"1-x64\"", false, 0},
};

START_TEST(integers_are_exact)
{
    const struct integer *c = &integers[_i];
    char text[128];
    snprintf(text, sizeof text, "[%s]", c->text);
    parse(text);
    uint64_t value = 0x7777;
    ck_assert_msg(json_integer(json_first(root), &value) == c->fits, "%s", c->text);
    ck_assert_msg(value == (c->fits ? c->value : 0x7777), "%s: %lx", c->text, (unsigned long)value);
}
END_TEST

START_TEST(numbers_stay_as_written)
{
    parse("[1.50, -0, 1e5, 9007199254740993, 123456789012345678901234567890]");
    static const char *const texts[] = {"1.50", "-0", "1e5", "9007199254740993", "123456789012345678901234567890"};
    const struct json *value = json_first(root);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++, value = json_next(value)) {
        ck_assert_int_eq(json_kind(value), JSON_NUMBER);
        ck_assert_str_eq(json_text(value), texts[i]);
    }
}
END_TEST

START_TEST(strings_are_unescaped)
{
    parse("[\"a\\\"b\\\\c\\/d\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\ud83d\\ude00\", \"\\\\\", \"//\", \"/* no */\", "
          "\",]\"]");
    static const char *const texts[] = {"a\"b\\c/d\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\\", "//",
                                        "/* no */", ",]"};
    const struct json *value = json_first(root);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++, value = json_next(value))
        ck_assert_str_eq(json_text(value), texts[i]);
}
END_TEST

START_TEST(comments_and_trailing_commas)
{
    parse("// first\n"
          "{ /* a */ \"a\" /**/ : // b\r\n"
          "  1 , \"b\":[1,2,/*x*/],\"c\":{\"d\":3,},/* \" */ } // last, without an end");
    ck_assert_str_eq(json_text(get("a")), "1");
    ck_assert_uint_eq(json_count(get("b")), 2);
    ck_assert_uint_eq(json_count(get("c")), 1);
    ck_assert_uint_eq(json_count(root), 3);
    parse("{\"a\":1,}//");
    parse("/***/{}/*/ */");
    parse("[/*,*/]");
    ck_assert_uint_eq(json_count(root), 0);
}
END_TEST

START_TEST(padding_after_the_text)
{
    ck_assert_int_eq(parse_n("{\"a\":1}\0", 8), CDACQ_OK);
    ck_assert_int_eq(parse_n("{\"a\":1}\0\0\0\0", 11), CDACQ_OK);
    ck_assert_int_eq(parse_n("{\"a\":1}\0x", 9), CDACQ_ERR_DESCRIPTOR);
}
END_TEST

/* ---- What is no JSON ---- */

static const char *const malformed[] = {
    "",
    " ",
    "//",
    "/**/",
    "{",
    "}",
    "[",
    "]",
    "{\"a\"",
    "{\"a\":",
    "{\"a\":1",
    "{\"a\":1,",
    "[1",
    "[1,",
    "\"a",
    "\"a\\",
    "\"a\\\"",
    "\"\\u12\"",
    "\"\\x41\"",
    "\"\\u0000\"",
    "\"a\\u0000b\"",
    "\"\\u0001\"",
    "{\"a\\u0000b\":1}",
    "\"\\ud83d\"",
    "\"\\ude00\\ud83d\"",
    "\"tab\there\"",
    "\"line\nhere\"",
    "\"\x01\"",
    "/*",
    "/* */ /*",
    "{} /",
    "{} x",
    "{}{}",
    "{},",
    "1 2",
    "[1 2]",
    "[1\"a\"]",
    "[,]",
    "[,1]",
    "[1,,2]",
    "[1,,]",
    "{,}",
    "{\"a\":1,,}",
    "{\"a\":,}",
    "{\"a\":1 \"b\":2}",
    "{\"a\" 1}",
    "{a:1}",
    "{1:2}",
    "{1 /* x */ :2}",
    "{null:1}",
    "{'a':1}",
    "['a']",
    "[:]",
    "{\"a\"::1}",
    "[1:2]",
    "tru",
    "True",
    "TRUE",
    "nul",
    "n ull",
    "n/**/ull",
    "truefalse",
    "true false",
    "NaN",
    "Infinity",
    "-Infinity",
    "undefined",
    "0x10",
    "+1",
    "-",
    "[-]",
    "--1",
    "1-2",
    "01",
    "-01",
    "1.",
    ".5",
    "1e",
    "1e+",
    "1.e1",
    "1..2",
    "1e5e5",
    "\xef\xbb\xbf{}",
    "\x80",
    "\x7f",
    "{}\x01",
    "\v{}",
    "\f{}",
    "\xc2\xa0{}",
    "@",
    "#x\n{}",
};

START_TEST(malformed_text_is_refused)
{
    struct json *untouched = (struct json *)&error;
    struct json *ret = untouched;
    char *exact = malloc(strlen(malformed[_i]) + 1);
    memcpy(exact, malformed[_i], strlen(malformed[_i]));
    ck_assert_msg(json_parse(exact, strlen(malformed[_i]), "the runtime", &ret, &error) == CDACQ_ERR_DESCRIPTOR, "%s",
                  malformed[_i]);
    ck_assert_ptr_eq(ret, untouched);
    ck_assert_int_eq(error.status, CDACQ_ERR_DESCRIPTOR);
    ck_assert_msg(strncmp(error.message, "the runtime: malformed JSON", 27) == 0, "%s", error.message);
    ck_assert_int_eq(json_parse(exact, strlen(malformed[_i]), "the runtime", &ret, NULL), CDACQ_ERR_DESCRIPTOR);
    free(exact);
}
END_TEST

START_TEST(messages_say_where)
{
    ck_assert_int_eq(parse_n("{\"a\":1, @}", 10), CDACQ_ERR_DESCRIPTOR);
    ck_assert_str_eq(error.message, "the runtime: malformed JSON at byte 8: a byte that is no JSON");
    ck_assert_int_eq(parse_n("[\"a\0b\"]", 7), CDACQ_ERR_DESCRIPTOR);
    ck_assert_str_eq(error.message, "the runtime: malformed JSON at byte 3: a control character in a string");
    ck_assert_int_eq(parse_n("{\"a\":1", 6), CDACQ_ERR_DESCRIPTOR);
    ck_assert_str_ne(error.message, "");
    for (const char *p = error.message; *p; p++)
        ck_assert_int_ge(*p, ' ');
}
END_TEST

/* Every prefix of a good text is refused, or is a good text of its own. */
START_TEST(cut_anywhere)
{
    static const char text[] =
        "{\"version\":0,\"types\":{\"A\":{\"!\":8,\"x\":[4,\"int32\"]}}, // c\n\"globals\":{\"g\":[[1],"
        "\"pointer\"],\"h\":\"0x1f\",\"i\":-12.5e3,\"s\":\"\\u20acu\\n\"},\"contracts\":null /*\x7e*/ }";
    ck_assert_int_eq(parse_n(text, sizeof text - 1), CDACQ_OK);
    for (size_t size = 0; size < sizeof text - 1; size++)
        if (parse_n(text, size) != CDACQ_ERR_DESCRIPTOR)
            ck_abort_msg("cut to %zu bytes", size);
}
END_TEST

/* ---- Bounds ---- */

static char *repeat(const char *prefix, const char *unit, size_t count, const char *suffix)
{
    size_t unit_size = strlen(unit), at = strlen(prefix);
    char *text = malloc(at + unit_size * count + strlen(suffix) + 1);
    ck_assert_ptr_nonnull(text);
    memcpy(text, prefix, at);
    for (size_t i = 0; i < count; i++, at += unit_size)
        memcpy(text + at, unit, unit_size);
    strcpy(text + at, suffix);
    return text;
}

START_TEST(size_cap)
{
    char *text = repeat("[", " ", JSON_TEXT_MAX - 2, "]");
    ck_assert_uint_eq(strlen(text), JSON_TEXT_MAX);
    ck_assert_int_eq(parse_n(text, JSON_TEXT_MAX), CDACQ_OK);
    free(text);
    text = repeat("[", " ", JSON_TEXT_MAX - 1, "]");
    ck_assert_int_eq(parse_n(text, JSON_TEXT_MAX + 1), CDACQ_ERR_DESCRIPTOR);
    ck_assert_str_eq(error.message, "the runtime: 1048577 bytes of JSON are more than the 1048576 that are read");
    free(text);
    ck_assert_int_eq(json_parse("", SIZE_MAX, "x", &root, &error), CDACQ_ERR_DESCRIPTOR); /* before it is looked at */
}
END_TEST

START_TEST(nesting)
{
    for (size_t depth = 1; depth <= 256; depth *= 4) {
        char *open = repeat("", "[", depth, ""), *text = repeat(open, "]", depth, "");
        parse(text);
        free(open);
        free(text);
    }
    static const char *const units[] = {"[", "{\"a\":"};
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        char *text = repeat("", units[i], JSON_TEXT_MAX / strlen(units[i]), "");
        ck_assert_int_eq(parse_n(text, strlen(text)), CDACQ_ERR_DESCRIPTOR);
        free(text);
    }
}
END_TEST

/* Texts of a megabyte in the shapes that cost most. */
START_TEST(hostile_texts_end_soon)
{
    static const struct {
        const char *prefix, *unit, *suffix;
        enum cdacq_status expected;
    } cases[] = {
        {"[", "1,", "1]", CDACQ_OK},           {"[", "1,", "]", CDACQ_OK},
        {"[", "\"\",", "\"\"]", CDACQ_OK},     {"[", "[],", "[]]", CDACQ_OK},
        {"{", "\"\":1,", "\"\":1}", CDACQ_OK}, {"[", "/**/", "]", CDACQ_OK},
        {"[", "/*/ ", "]", CDACQ_OK},          {"[", "//\n", "]", CDACQ_OK},
        {"[\"", "\\u20ac", "\"]", CDACQ_OK},   {"[", "9", "]", CDACQ_OK},
        {"[1e", "9", "]", CDACQ_OK},           {"[", ",", "]", CDACQ_ERR_DESCRIPTOR},
        {"[", "-", "]", CDACQ_ERR_DESCRIPTOR}, {"[\"", "\\\\", "\"]", CDACQ_OK},
        {"", "\"", "", CDACQ_ERR_DESCRIPTOR},  {"", "true", "", CDACQ_ERR_DESCRIPTOR},
    };
    size_t count = (JSON_TEXT_MAX - 16) / strlen(cases[_i].unit);
    char *text = repeat(cases[_i].prefix, cases[_i].unit, count, cases[_i].suffix);
    double start = cpu_seconds();
    enum cdacq_status status = parse_n(text, strlen(text));
    double took = cpu_seconds() - start;
    ck_assert_msg(status == cases[_i].expected, "%d: %s", status, error.message);
    ck_assert_msg(took < time_bound(10), "%g s", took);
    free(text);
}
END_TEST

START_TEST(null_is_freed_quietly)
{
    json_free(NULL);
}
END_TEST

static Suite *suite(void)
{
    const TTest *const tests[] = {
        every_kind,
        order_and_keys,
        any_value_may_be_the_root,
        keys_compare_exactly,
        the_last_of_duplicate_keys_counts,
        numbers_stay_as_written,
        strings_are_unescaped,
        comments_and_trailing_commas,
        padding_after_the_text,
        messages_say_where,
        cut_anywhere,
        size_cap,
        nesting,
        null_is_freed_quietly,
    };
    Suite *s = suite_create("json");
    TCase *tc = tcase_create("json");
    tcase_add_checked_fixture(tc, NULL, teardown);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, integers_are_exact, 0, ARRAY_SIZE(integers));
    tcase_add_loop_test(tc, malformed_text_is_refused, 0, ARRAY_SIZE(malformed));
    tcase_add_loop_test(tc, hostile_texts_end_soon, 0, 16);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
