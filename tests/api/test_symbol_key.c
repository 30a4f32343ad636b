/* test_symbol_key.c: keys of symbol servers as parts of URLs and paths, and URLs that keys can be appended to. */
#include "src/files/symbol_key.h"

#include <stdio.h>

#include "tests/support/check_main.h"

static void check_key(const char *text, const char *name, const char *middle, const char *plain_name)
{
    struct symbol_key key;
    ck_assert_msg(symbol_key_read(text, &key), "%s", text);
    ck_assert_str_eq(key.name, name);
    ck_assert_str_eq(key.middle, middle);
    ck_assert_str_eq(key.plain_name, plain_name);
}

/* The examples of the specification. */
START_TEST(keys)
{
    check_key("Foo.exe/542D574232000/Foo.exe", "foo.exe", "542D574232000", "Foo.exe");
    check_key("Foo.pdb/497b72f6390a44fc878e5a2d63b6cc4bFFFFFFFF/Foo.pdb", "foo.pdb",
              "497b72f6390a44fc878e5a2d63b6cc4bFFFFFFFF", "Foo.pdb");
    check_key("_.debug/elf-buildid-sym-180a373d/_.debug", "_.debug", "elf-buildid-sym-180a373d", "_.debug");
    check_key("a~b-c.d/e/a~b-c.d", "a~b-c.d", "e", "a~b-c.d");
}
END_TEST

START_TEST(strange_names)
{
    check_key("A b\n/1/A b\n", "a%20b%0A", "1", "A%20b%0A");
    check_key("%2f..\\/1/%2f..\\", "%252f..%5C", "1", "%252f..%5C");
    check_key("\xc3\x84.dll/1/\xc3\x84.dll", "%C3%84.dll", "1", "%C3%84.dll");
    check_key("?#&/a/?#&", "%3F%23%26", "a", "%3F%23%26");
    check_key("..a/.../..a", "..a", "...", "..a");
    static const char *const wrong[] = {
        "",      "/",      "//",        "a",       "a/",    "a/b",    "a/b/",  "a//a",  "/b/",
        "a/b/c", "a/b/a/", "a/b/a/b/a", "../b/..", "./b/.", "a/../a", "a/./a", "a/b/A",
    };
    struct symbol_key key;
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        ck_assert_msg(!symbol_key_read(wrong[i], &key), "%s", wrong[i]);
}
END_TEST

/* A part becomes a name of a file, of at most 255 bytes. */
START_TEST(long_names)
{
    char name[400], text[1024];
    struct symbol_key key;
    for (size_t length = 250; length < 260; length++) {
        memset(name, 'a', length);
        name[length] = '\0';
        snprintf(text, sizeof text, "%s/1/%s", name, name);
        ck_assert_int_eq(symbol_key_read(text, &key), length <= 253);
        snprintf(text, sizeof text, "a/%s/a", name);
        ck_assert_int_eq(symbol_key_read(text, &key), length <= 253);
    }
    memset(name, ' ', 85);
    name[85] = '\0';
    snprintf(text, sizeof text, "%s/1/%s", name, name);
    ck_assert(symbol_key_read(text, &key));
    ck_assert_uint_eq(strlen(key.name), 255);
    snprintf(text, sizeof text, "%s /1/%s ", name, name);
    ck_assert(!symbol_key_read(text, &key));
}
END_TEST

START_TEST(urls)
{
    static const char *const right[] = {"http://a", "https://a", "https://host:8080/a@b/", "http://[::1]/x",
                                        "https://a/%20"};
    static const char *const wrong[] = {"",
                                        "http://",
                                        "https://",
                                        "a",
                                        "/a",
                                        "ftp://a",
                                        "file:///a",
                                        "HTTP://a",
                                        "http:/a",
                                        "http://a b",
                                        "http://a\n",
                                        "http://a?b",
                                        "http://a#b",
                                        "-K",
                                        "http://\xc3\xa4",
                                        "http://a{b}",
                                        "http://u@a/",
                                        "http://u:w@a",
                                        "http://:w@a",
                                        "http:///u@a"};
    char text[SYMBOL_KEY_URL_MAX + 2];
    for (size_t i = 0; i < ARRAY_SIZE(right); i++)
        ck_assert_msg(symbol_key_is_url(right[i]), "%s", right[i]);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        ck_assert_msg(!symbol_key_is_url(wrong[i]), "%s", wrong[i]);
    memset(text, 'a', sizeof text);
    memcpy(text, "http://", 7);
    text[SYMBOL_KEY_URL_MAX + 1] = '\0';
    ck_assert(!symbol_key_is_url(text));
    text[SYMBOL_KEY_URL_MAX] = '\0';
    ck_assert(symbol_key_is_url(text));
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("symbol_key");
    TCase *tcase = tcase_create("keys");
    tcase_add_test(tcase, keys);
    tcase_add_test(tcase, strange_names);
    tcase_add_test(tcase, long_names);
    tcase_add_test(tcase, urls);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
