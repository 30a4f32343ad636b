/* test_source_link.c: the rules of the Source Link specification, and maps that no compiler writes. */
#include "src/files/source_link.h"
#include "tests/support/check_main.h"

static struct text url;

static void teardown(void)
{
    text_deinit(&url);
}

/* The URL of `path` by a map, "" if it has none. */
static const char *url_of(const char *json, const char *path)
{
    struct source_link link;
    source_link_init(&link, json, strlen(json));
    text_clear(&url);
    source_link_url(&link, path, strlen(path), &url);
    source_link_deinit(&link);
    return url.data && !url.broken ? url.data : "";
}

START_TEST(a_path_has_the_url_of_its_longest_key)
{
    static const char map[] =
        "\xef\xbb\xbf{\"documents\": {\"/_/*\": \"https://a/*\", \"/_/Sub/*\": \"https://b/*?x=1\","
        "\"/_/sub/One.cs\": \"https://c/1\", \"C:\\\\s\\\\*\": \"https://d/*\"}}";
    ck_assert_str_eq(url_of(map, "/_/x/y.cs"), "https://a/x/y.cs");
    ck_assert_str_eq(url_of(map, "/_/sub/y.cs"), "https://b/y.cs?x=1");
    ck_assert_str_eq(url_of(map, "/_/Sub/one.cs"), "https://c/1");
    ck_assert_str_eq(url_of(map, "c:\\S\\a b\\\xc3\xa9#.cs"), "https://d/a%20b/%C3%A9%23.cs");
    ck_assert_str_eq(url_of(map, "/other.cs"), "");
    ck_assert_str_eq(url_of(map, "/_/*"), "");
}
END_TEST

START_TEST(a_map_that_makes_no_sense_gives_no_url)
{
    static const char *const maps[] = {
        "",
        "{",
        "[]",
        "{\"documents\": []}",
        "{\"documents\": [\"/a*\"]}",
        "{\"documents\": {\"/a*\": 1}}",
        "{\"documents\": {\"/a*\": null}}",
        "{\"documents\": {\"/a*\": {\"/a*\": \"https://*\"}}}",
        "{\"documents\": {\"/a*b\": \"https://*\"}}",
        "{\"documents\": {\"/a*\": \"https://x\"}}",
        "{\"documents\": {\"/ab.cs\": \"https://*\"}}",
        "{\"documents\": {\"\": \"https://x\"}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
        ck_assert_msg(!*url_of(maps[i], "/ab.cs"), "%s: %s", maps[i], url.data);
}
END_TEST

START_TEST(what_a_comparison_costs)
{
    static const char map[] = "{\"documents\": {\"/0123456789/*\": \"https://a/*\", \"/b/*\": \"https://b/*\"}}";
    struct source_link link;
    source_link_init(&link, map, strlen(map));
    ck_assert_uint_eq(source_link_price(&link, 5), 2 * 5); /* both keys, no further than the path */
    ck_assert_uint_eq(source_link_price(&link, 1000), strlen("/0123456789/*") + strlen("/b/*"));
    source_link_deinit(&link);
    source_link_init(&link, "{}", 2);
    ck_assert_uint_eq(source_link_price(&link, 1000), 0);
    source_link_deinit(&link);
}
END_TEST

START_TEST(entries_beyond_the_bound_are_not_compared)
{
    struct text map = {0};
    text_puts(&map, "{\"documents\": {");
    for (unsigned i = 0; i < 1024; i++)
        text_printf(&map, "\"/%u/*\": \"https://a/*\", ", i);
    text_puts(&map, "\"/late/*\": \"https://b/*\"}}");
    ck_assert_str_eq(url_of(map.data, "/1023/x"), "https://a/x");
    ck_assert_str_eq(url_of(map.data, "/late/x"), "");
    text_deinit(&map);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("source_link");
    TCase *tc = tcase_create("source_link");
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_test(tc, a_path_has_the_url_of_its_longest_key);
    tcase_add_test(tc, a_map_that_makes_no_sense_gives_no_url);
    tcase_add_test(tc, what_a_comparison_costs);
    tcase_add_test(tc, entries_beyond_the_bound_are_not_compared);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
