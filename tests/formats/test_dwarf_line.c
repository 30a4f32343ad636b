/*
 * test_dwarf_line.c: line programs of DWARF 2 to 5 that are written here, byte by byte or by dwarf_line_writer.h. Those
 * of compilers are in test_debug_sections.c.
 */
#include "formats/dwarf_line.h"

#include "formats/dwarf_line_writer.h"
#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"

/* The section that a test writes. */
static struct elf_buffer line, line_strings;
static struct dwarf_sequences sequences;

static void setup(void)
{
    line = line_strings = (struct elf_buffer){0};
    sequences = (struct dwarf_sequences){0};
}

static void teardown(void)
{
    free(line.data);
    free(line_strings.data);
    dwarf_sequences_deinit(&sequences);
}

static struct dwarf_line_sections sections(void)
{
    return (struct dwarf_line_sections){
        .line = {line.data, line.size}, .line_strings = {line_strings.data, line_strings.size}, .big = line.big};
}

static void put_text(const char *string)
{
    elf_put(&line, string, strlen(string) + 1);
}

/* A head of version 2 to 5 up to the tables: lengths are set by end_head() and end_unit(). */
static size_t begin_unit(unsigned version)
{
    static const uint8_t counts[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
    size_t begin = line.size;
    elf_put_int(&line, 0, 4);
    elf_put_int(&line, version, 2);
    if (version == 5)
        elf_put(&line, "\x08", 2); /* bytes of an address, of a segment selector */
    elf_put_int(&line, 0, 4);
    elf_put_int(&line, 1, 1); /* minimum_instruction_length */
    if (version >= 4)
        elf_put_int(&line, 1, 1);
    elf_put(&line, "\x01\xfd\x0e\x0d", 4); /* default_is_stmt, line_base -3, line_range 14, opcode_base 13 */
    elf_put(&line, counts, sizeof counts);
    return begin;
}

static void store(size_t at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        line.data[at + i] = (uint8_t)(value >> 8 * (line.big ? 3 - i : i));
}

static void end_head(size_t begin)
{
    size_t at = begin + 6 + (line.data[begin + (line.big ? 5 : 4)] == 5 ? 2 : 0);
    store(at, (uint32_t)(line.size - at - 4));
}

static void end_unit(size_t begin)
{
    store(begin, (uint32_t)(line.size - begin - 4));
}

/* Two rows from `address` on, 16 bytes of code: line 10 of the first file, line 8 of file `second`. */
static void put_program(uint64_t address, unsigned second)
{
    elf_put(&line, "\0\x09\x02", 3); /* DW_LNE_set_address */
    elf_put_int(&line, address, 8);
    elf_put(&line, "\x03\x09\x01", 3); /* DW_LNS_advance_line 9, DW_LNS_copy */
    elf_put_int(&line, 4, 1);          /* DW_LNS_set_file */
    elf_put_int(&line, second, 1);
    elf_put(&line, "\x05\x07", 2);          /* DW_LNS_set_column 7 */
    elf_put_int(&line, 13 + 14 * 4 + 1, 1); /* 4 bytes on, 2 lines back */
    elf_put(&line, "\x02\x0c", 2);          /* DW_LNS_advance_pc 12 */
    elf_put(&line, "\0\x01\x01", 3);        /* DW_LNE_end_sequence */
}

struct rows {
    size_t count;
    struct dwarf_row items[8];
};

static bool take_row(const struct dwarf_row *row, void *context)
{
    struct rows *rows = context;
    ck_assert_uint_lt(rows->count, ARRAY_SIZE(rows->items));
    rows->items[rows->count++] = *row;
    return true;
}

static void assert_row(const struct dwarf_row *row, uint64_t address, uint32_t file, uint32_t number, uint32_t column)
{
    ck_assert_uint_eq(row->address, address);
    ck_assert_uint_eq(row->file, file);
    ck_assert_uint_eq(row->line, number);
    ck_assert_uint_eq(row->column, column);
}

static void assert_path(uint32_t unit, uint32_t file, const char *path)
{
    const struct dwarf_line_sections all = sections();
    struct text text = {0};
    ck_assert(dwarf_file_path(&all, unit, file, &text) == (path != NULL));
    ck_assert(path ? text_equals(&text, path) : !text.length);
    text_deinit(&text);
}

/* The sequence `i`, and the rows of put_program(). */
static void assert_program(size_t i, uint64_t address, uint32_t unit, unsigned second)
{
    const struct dwarf_line_sections all = sections();
    struct rows rows = {0};
    ck_assert_uint_lt(i, sequences.count);
    ck_assert_uint_eq(sequences.items[i].begin, address);
    ck_assert_uint_eq(sequences.items[i].end, address + 16);
    ck_assert_uint_eq(sequences.items[i].unit, unit);
    ck_assert_uint_gt(dwarf_rows_each(&all, &sequences.items[i], take_row, &rows), 40);
    ck_assert_uint_eq(rows.count, 2);
    assert_row(&rows.items[0], address, 1, 10, 0);
    assert_row(&rows.items[1], address + 4, second, 8, 7);
}

/* Versions 2 to 4, in both byte orders. A unit of an unknown version is between others. */
START_TEST(old_versions)
{
    unsigned version = 2 + (unsigned)_i / 2;
    size_t begins[3];
    line.big = _i & 1;
    for (unsigned number = 0; number < 3; number++) {
        size_t begin = begins[number] = begin_unit(number == 1 ? 6 : version);
        put_text("/a/");
        put_text("b");
        put_text("");
        put_text("x.c"), elf_put(&line, "\x01\0", 3);
        put_text("/abs.c"), elf_put(&line, "\x01\0", 3);
        put_text("y.c"), elf_put(&line, "\x02\0", 3);
        put_text("z.c"), elf_put(&line, "\0\0", 3);
        put_text("");
        end_head(begin);
        put_program(0x3000 - 0x1000 * number, 3);
        put_program(0x8000 + 0x1000 * number, 2);
        end_unit(begin);
    }
    const struct dwarf_line_sections all = sections();
    uint32_t third = (uint32_t)begins[2];
    ck_assert(dwarf_sequences_find(&all, &sequences));
    ck_assert_uint_eq(sequences.count, 4);
    assert_program(0, 0x1000, third, 3);
    assert_program(1, 0x3000, 0, 3);
    assert_program(2, 0x8000, 0, 2);
    assert_program(3, 0xa000, third, 2);
    assert_path(third, 1, "/a/x.c");
    assert_path(0, 2, "/abs.c");
    assert_path(0, 3, "b/y.c"); /* what that is relative to is not in this section */
    assert_path(0, 4, "z.c");
    assert_path(0, 0, NULL);
    assert_path(0, 5, NULL);
    assert_path((uint32_t)begins[1], 1, NULL);
    assert_path((uint32_t)line.size, 1, NULL);
}
END_TEST

/* Tables of version 5: directories as strings of the program, files by .debug_line_str. */
static size_t put_version_5(void)
{
    size_t begin = begin_unit(5);
    elf_put(&line, "\x01\x01\x08\x03", 4); /* a path, DW_FORM_string; 3 of them */
    put_text("/compiled/in");
    put_text("relative");
    put_text("/absolute");
    elf_put(&line, "\x03\x01\x1f\x02\x0b\x05\x1e\x04", 8); /* DW_FORM_line_strp, data1, an MD5 as data16; 4 of them */
    static const uint8_t directories[] = {0, 1, 2, 1}, strings[] = {0, 0, 4, 8};
    for (unsigned i = 0; i < 4; i++) {
        elf_put_int(&line, strings[i], 4);
        elf_put_int(&line, directories[i], 1);
        elf_put(&line, NULL, 16);
    }
    elf_put(&line_strings, "x.c\0y.c\0/z.c", 13);
    end_head(begin);
    put_program(0x1000, 2);
    end_unit(begin);
    return begin;
}

START_TEST(version_5)
{
    line.big = line_strings.big = _i & 1;
    put_version_5();
    const struct dwarf_line_sections all = sections();
    ck_assert(dwarf_sequences_find(&all, &sequences));
    ck_assert_uint_eq(sequences.count, 1);
    assert_program(0, 0x1000, 0, 2);
    assert_path(0, 0, "/compiled/in/x.c");
    assert_path(0, 1, "/compiled/in/relative/x.c");
    assert_path(0, 2, "/absolute/y.c");
    assert_path(0, 3, "/z.c");
    assert_path(0, 4, NULL);
}
END_TEST

/* What the project writes, it reads: rows that no special opcode holds, too. */
START_TEST(what_the_writer_writes)
{
    static const char *const files[] = {"/a/b.cs", "c.cs"};
    static const struct dwarf_line_row written[] = {
        {0x1000, 1, 1, 0}, {0x1001, 1, 100000, 5}, {0x1001, 2, 3, 700}, {0x1900, 1, 0, 0}, {0x1904, 2, 4, 1}};
    struct byte_writer bytes = {0};
    struct dwarf_line_writer writer = {.to = &bytes, .word_size = 8, .code_factor = 1};
    struct rows rows = {0};
    dwarf_line_begin_sequence(&writer, 0x1000);
    for (size_t i = 0; i < ARRAY_SIZE(written); i++)
        dwarf_line_add(&writer, &written[i]);
    dwarf_line_end_sequence(&writer, 0x2000);
    dwarf_line_end_unit(&writer, files, ARRAY_SIZE(files));
    dwarf_line_deinit(&writer);
    elf_put(&line, bytes.data, bytes.length);
    byte_writer_deinit(&bytes);
    const struct dwarf_line_sections all = sections();
    ck_assert(dwarf_sequences_find(&all, &sequences));
    ck_assert_uint_eq(sequences.count, 1);
    ck_assert_uint_eq(sequences.items[0].end, 0x2000);
    dwarf_rows_each(&all, &sequences.items[0], take_row, &rows);
    ck_assert_uint_eq(rows.count, ARRAY_SIZE(written));
    for (size_t i = 0; i < rows.count; i++)
        assert_row(&rows.items[i], written[i].address, written[i].file, written[i].line, written[i].column);
    assert_path(0, 1, "/a/b.cs");
    assert_path(0, 2, "c.cs");
}
END_TEST

static void find_again(void)
{
    const struct dwarf_line_sections all = sections();
    dwarf_sequences_deinit(&sequences);
    ck_assert(dwarf_sequences_find(&all, &sequences));
}

/* A section that ends early has the sequences of whole units. Bytes of every value at every place do no harm. */
START_TEST(damage)
{
    size_t second = (put_version_5(), put_version_5());
    size_t whole = line.size;
    find_again();
    ck_assert_uint_eq(sequences.count, 2);
    for (line.size = 0; line.size < whole; line.size++) {
        uint8_t *copy = malloc(line.size + 1), *data = line.data; /* nothing is behind it */
        memcpy(copy, data, line.size);
        line.data = copy;
        find_again();
        ck_assert_uint_eq(sequences.count, line.size >= second);
        line.data = data;
        free(copy);
    }
    for (size_t at = 0; at < whole; at++)
        for (unsigned value = 0; value < 256; value += 5) {
            uint8_t before = line.data[at];
            struct text text = {0};
            line.data[at] = (uint8_t)value;
            find_again();
            ck_assert_uint_le(sequences.count, 4);
            const struct dwarf_line_sections all = sections();
            dwarf_file_path(&all, 0, 2, &text);
            text_deinit(&text);
            line.data[at] = before;
        }
}
END_TEST

/* A unit that claims more than a table can hold gives no rows; the next one does. */
START_TEST(impossible_counts)
{
    static const struct {
        size_t at;
        uint8_t value;
    } changes[] = {{4, 1}, {13, 2}, {16, 0}, {17, 0}, {30, 200}, {33, 200}};
    size_t second = (put_version_5(), put_version_5());
    uint8_t before = line.data[changes[_i].at];
    line.data[changes[_i].at] = changes[_i].value;
    find_again();
    ck_assert_msg(sequences.count == 1, "%d: %zu", _i, sequences.count);
    ck_assert_uint_eq(sequences.items[0].unit, second);
    line.data[changes[_i].at] = before;
    find_again();
    ck_assert_uint_eq(sequences.count, 2);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("dwarf_line");
    TCase *tc = tcase_create("dwarf_line");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, old_versions, 0, 6);
    tcase_add_loop_test(tc, version_5, 0, 2);
    tcase_add_test(tc, what_the_writer_writes);
    tcase_add_test(tc, damage);
    tcase_add_loop_test(tc, impossible_counts, 0, 6);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
