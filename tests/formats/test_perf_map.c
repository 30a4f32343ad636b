/* The perf map reader: what runtimes write, and malformed files. */
#include "formats/perf_map.h"

#include "tests/support/check_main.h"

/* Bytes in an allocation of their own size, so that a sanitizer sees a read beyond them. */
static char *bytes;
static struct perf_map map;
static struct perf_map_symbol symbol;
static const char *problem;

static void open_text(const char *text, size_t length)
{
    free(bytes);
    bytes = malloc(length ? length : 1);
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, text, length);
    perf_map_open(bytes, length, &map);
}

#define OPEN(text) open_text(text, sizeof(text) - 1)

static void teardown(void)
{
    free(bytes);
    bytes = NULL;
}

static void assert_symbol(uint64_t address, uint64_t size, const char *name)
{
    ck_assert_int_eq(perf_map_next(&map, &symbol, &problem), PERF_MAP_SYMBOL);
    ck_assert_uint_eq(symbol.address, address);
    ck_assert_uint_eq(symbol.size, size);
    ck_assert_uint_eq(symbol.name_length, strlen(name));
    ck_assert_mem_eq(symbol.name, name, symbol.name_length);
}

static void assert_bad(uint64_t line, const char *word)
{
    ck_assert_int_eq(perf_map_next(&map, &symbol, &problem), PERF_MAP_BAD);
    ck_assert_uint_eq(map.line, line);
    ck_assert_ptr_nonnull(strstr(problem, word));
}

static void assert_end(uint64_t bad_lines)
{
    ck_assert_int_eq(perf_map_next(&map, &symbol, &problem), PERF_MAP_END);
    ck_assert_int_eq(perf_map_next(&map, &symbol, &problem), PERF_MAP_END);
    ck_assert_uint_eq(map.bad_lines, bad_lines);
}

START_TEST(as_runtimes_write_it)
{
    OPEN("0x7f1fe5960000 d8 stub<1> AllocateTemporaryEntryPoints<PRECODE_STUB>\n"
         "00007F8C42E46000 a3 instance bool [Lib] List`1[System.__Canon]::MoveNext()[Tier1]\n"
         "7f59ef2b6b00 0x1e2 f\n");
    assert_symbol(0x7f1fe5960000, 0xd8, "stub<1> AllocateTemporaryEntryPoints<PRECODE_STUB>");
    assert_symbol(0x7f8c42e46000, 0xa3, "instance bool [Lib] List`1[System.__Canon]::MoveNext()[Tier1]");
    ck_assert_uint_eq(map.line, 2);
    assert_symbol(0x7f59ef2b6b00, 0x1e2, "f");
    assert_end(0);
}
END_TEST

START_TEST(odd_but_clear_lines)
{
    OPEN("1 0 empty\r\n\n  \t\r\n\t2  3\t  two  blanks \r\n4 5\n6 7 ");
    assert_symbol(1, 0, "empty");
    assert_symbol(2, 3, "two  blanks ");
    ck_assert_uint_eq(map.line, 4);
    assert_symbol(4, 5, "");
    assert_symbol(6, 7, "");
    assert_end(0);
}
END_TEST

START_TEST(no_last_newline)
{
    OPEN("a b");
    assert_symbol(0xa, 0xb, "");
    assert_end(0);
    OPEN("a b c");
    assert_symbol(0xa, 0xb, "c");
    assert_end(0);
    OPEN("");
    assert_end(0);
    OPEN("\n");
    assert_end(0);
    OPEN("\r");
    assert_end(0);
}
END_TEST

START_TEST(any_bytes_in_names)
{
    static const char text[] = "1 2 a\0b\xff\x1b\r c\r\n3 4 d";
    open_text(text, sizeof text - 1);
    ck_assert_int_eq(perf_map_next(&map, &symbol, &problem), PERF_MAP_SYMBOL);
    ck_assert_uint_eq(symbol.name_length, 8);
    ck_assert_mem_eq(symbol.name, "a\0b\xff\x1b\r c", 8);
    assert_symbol(3, 4, "d");
    assert_end(0);
}
END_TEST

START_TEST(broken_lines_are_counted)
{
    OPEN("1 1 a\nxyz\n0x 1 b\n1\n1 \n1 g h\n1g 1 i\n12345678901234567 1 j\n1 12345678901234567 k\n-1 1 l\n2 2 z");
    assert_symbol(1, 1, "a");
    assert_bad(2, "start");
    assert_bad(3, "start");
    assert_bad(4, "size");
    assert_bad(5, "size");
    assert_bad(6, "size");
    assert_bad(7, "start");
    assert_bad(8, "start");
    assert_bad(9, "size");
    assert_bad(10, "start");
    assert_symbol(2, 2, "z");
    assert_end(9);
}
END_TEST

/* As .NET writes a name that is not ASCII. */
START_TEST(an_overwritten_start)
{
    static const char text[] = "h}\x8a"
                               "d\x05\0\0\0\xd7\x1b\xf7\xc7!\xef\x90\x1c int32 [Demo] n\xc3\xa4me\n7f0 10 f\n";
    open_text(text, sizeof text - 1);
    assert_bad(1, "start");
    assert_symbol(0x7f0, 0x10, "f");
    assert_end(1);
}
END_TEST

START_TEST(the_last_address)
{
    OPEN("ffffffffffffffff 0 a\nfffffffffffffff0 10 b\nfffffffffffffff0 11 c\n0 ffffffffffffffff d\n"
         "00000000000000000001 1 zeros");
    assert_symbol(UINT64_MAX, 0, "a");
    assert_symbol(UINT64_MAX - 15, 16, "b");
    assert_bad(3, "last address");
    assert_symbol(0, UINT64_MAX, "d");
    assert_symbol(1, 1, "zeros");
    assert_end(1);
}
END_TEST

START_TEST(a_very_long_line)
{
    enum { LENGTH = 3 * 1024 * 1024 };
    char *text = malloc(LENGTH + 8);
    ck_assert_ptr_nonnull(text);
    memcpy(text, "1 2 ", 4);
    memset(text + 4, 'n', LENGTH);
    memcpy(text + 4 + LENGTH, "\n3 4", 4);
    open_text(text, LENGTH + 8);
    free(text);
    ck_assert_int_eq(perf_map_next(&map, &symbol, &problem), PERF_MAP_SYMBOL);
    ck_assert_uint_eq(symbol.name_length, LENGTH);
    assert_symbol(3, 4, "");
    assert_end(0);
}
END_TEST

static Suite *suite(void)
{
    const TTest *const tests[] = {
        as_runtimes_write_it,     odd_but_clear_lines,  no_last_newline,  any_bytes_in_names,
        broken_lines_are_counted, an_overwritten_start, the_last_address, a_very_long_line,
    };
    Suite *s = suite_create("perf_map");
    TCase *tc = tcase_create("perf_map");
    tcase_add_checked_fixture(tc, NULL, teardown);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
