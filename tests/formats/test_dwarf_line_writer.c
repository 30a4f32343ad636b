/* The tables of files that .debug_line begins with, and the addresses of its rows. */
#include "formats/dwarf_line_writer.h"
#include "tests/support/check_main.h"

static const uint8_t *skip_uleb(const uint8_t *at)
{
    while (*at++ & 0x80)
        ;
    return at;
}

START_TEST(no_path_ends_a_table)
{
    static const char *const files[] = {"/a/b.cs", "/a/b/", "", "/", "c.cs", "/a/d.cs"};
    static const char *const names[] = {"b.cs", "/a/b/", "?", "/", "c.cs", "d.cs"};
    struct byte_writer lines = {0};
    struct dwarf_line_writer writer = {.to = &lines, .word_size = 8, .code_factor = 1};
    ck_assert_uint_eq(dwarf_line_end_unit(&writer, files, ARRAY_SIZE(files)), 0);
    ck_assert(!lines.broken);
    const uint8_t *at = (const uint8_t *)lines.data + 4 + 2 + 4 + 6 + 12;
    const char *folder = (const char *)at;
    ck_assert_str_eq(folder, "/a"); /* once for both files that are in it */
    at += strlen(folder) + 1;
    ck_assert_uint_eq(*at++, 0);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        ck_assert_str_eq((const char *)at, names[i]);
        at += strlen(names[i]) + 1;
        ck_assert_uint_eq(*at, files[i][0] == '/' && names[i][0] != '/');
        at = skip_uleb(skip_uleb(skip_uleb(at)));
    }
    ck_assert_uint_eq(*at++, 0);
    ck_assert_ptr_eq(at, (const uint8_t *)lines.data + lines.length);
    dwarf_line_deinit(&writer);
    byte_writer_deinit(&lines);
}
END_TEST

/* Addresses that are no multiples of an instruction's size are rounded down, each by itself. */
START_TEST(rounding_does_not_add_up)
{
    struct byte_writer lines = {0};
    struct dwarf_line_writer writer = {.to = &lines, .word_size = 8, .code_factor = 4};
    dwarf_line_begin_sequence(&writer, 0x1000);
    for (unsigned i = 0; i < 8; i++) {
        dwarf_line_add(&writer, &(struct dwarf_line_row){.address = 0x1000 + 6 * i, .file = 1, .line = i + 1});
        ck_assert_uint_eq(writer.address, (0x1000 + 6 * i) / 4 * 4);
    }
    dwarf_line_deinit(&writer);
    byte_writer_deinit(&lines);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("dwarf_line_writer");
    TCase *tc = tcase_create("dwarf_line_writer");
    tcase_add_test(tc, no_path_ends_a_table);
    tcase_add_test(tc, rounding_does_not_add_up);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
