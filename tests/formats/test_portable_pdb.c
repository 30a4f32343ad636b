/*
 * Compares with tests/fixtures/pdb/expected.txt, in which System.Reflection.Metadata lists a PDB, and with blobs that
 * no compiler writes.
 */
#include "formats/portable_pdb/local_variables.h"
#include "formats/names/state_machine.h"
#include "formats/pe_debug.h"
#include "tests/support/check_main.h"
#include "tests/support/fixture_file.h"
#include "tests/support/paged_bytes.h"
#include "util/sha256.h"

static uint8_t *file;
static size_t file_size;
static struct portable_pdb pdb;

static void setup(void)
{
    file = fixture_file("pdb/Lines.pdb", &file_size);
    ck_assert_int_eq(portable_pdb_open(file, file_size, &pdb), CDACQ_OK);
}

static void teardown(void)
{
    free(file);
    file = NULL;
}

static void list_points(uint32_t method, struct text *text)
{
    struct sequence_points points;
    struct sequence_point point;
    ck_assert_int_eq(portable_pdb_points(&pdb, method, &points), CDACQ_OK);
    while (sequence_points_next(&points, &point)) {
        text_printf(text, "%u\t%u\t%u\t%u\t%u\t", point.il_offset, point.start_line, point.start_column, point.end_line,
                    point.end_column);
        ck_assert_int_eq(portable_pdb_document_name(&pdb, point.document, text), CDACQ_OK);
        text_putc(text, '\n');
    }
    ck_assert(!points.malformed);
}

/* The judge reads the PDB's map from MoveNext methods to what was written. Attributes and names say the same. */
static void list_kickoff(const struct metadata *image, uint32_t rid, struct text *text)
{
    struct metadata_method_def row;
    struct state_machine machine;
    uint32_t token = metadata_token(METADATA_METHOD_DEF, rid);
    bool move_next;
    ck_assert_int_eq(metadata_method_def(image, rid, &row), CDACQ_OK);
    ck_assert_int_eq(metadata_string_equals(image, row.name, "MoveNext", 8, &move_next), CDACQ_OK);
    ck_assert_int_eq(state_machine_resolve(image, token, &machine), CDACQ_OK);
    if (move_next && machine.method != token)
        text_printf(text, "kickoff\t0x%08x\t0x%08x\n", token, machine.method);
}

static void list_pdb(const struct metadata *image, struct text *text)
{
    char hex[2 * PORTABLE_PDB_ID_SIZE + 1];
    const uint8_t *json;
    size_t size;
    text_hex(hex, pdb.id, sizeof pdb.id);
    text_printf(text, "id\t%s\n", hex);
    for (uint32_t rid = 1; rid <= metadata_row_count(&pdb.metadata, METADATA_METHOD_DEBUG_INFORMATION); rid++) {
        text_printf(text, "method\t0x%08x\n", metadata_token(METADATA_METHOD_DEF, rid));
        list_points(rid, text);
        list_kickoff(image, rid, text);
    }
    ck_assert_int_eq(portable_pdb_custom(&pdb, 1, portable_pdb_source_link, &json, &size), CDACQ_OK);
    ck_assert_ptr_nonnull(json);
    text_puts(text, "sourcelink\t");
    for (size_t i = 0; i < size; i++)
        text_putc(text, json[i] == '\n' ? ' ' : (char)json[i]);
    text_putc(text, '\n');
}

START_TEST(reads_what_the_judge_reads)
{
    size_t size;
    CLEANUP_FREE uint8_t *image = fixture_file("pdb/Lines.dll", &size);
    struct bytes bytes = bytes_of_buffer(image, size), blob;
    CLEANUP_FREE uint8_t *expected = fixture_file("pdb/expected.txt", &size);
    struct bytes_extent part;
    struct metadata metadata;
    struct text text = {0};
    struct pe pe;
    ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_OK);
    ck_assert_int_eq(pe_metadata(&pe, &part, &blob), CDACQ_OK);
    ck_assert_int_eq(metadata_open(&blob, &metadata), CDACQ_OK);
    list_pdb(&metadata, &text);
    ck_assert_str_eq(text.data, (const char *)expected);
    text_deinit(&text);
}
END_TEST

/* EditAndContinueLambdaAndClosureMap */
static const uint8_t lambda_map[16] = {0x4c, 0x00, 0x43, 0xa6, 0x40, 0x02, 0x6f, 0x49,
                                       0xa7, 0x83, 0x30, 0xd6, 0x4f, 0x49, 0x79, 0xde};

START_TEST(finds_custom_debug_information_of_methods)
{
    const uint8_t *blob;
    size_t size, count = 0;
    for (uint32_t rid = 1; rid <= metadata_row_count(&pdb.metadata, METADATA_METHOD_DEBUG_INFORMATION); rid++) {
        uint32_t token = metadata_token(METADATA_METHOD_DEF, rid);
        ck_assert_int_eq(portable_pdb_custom(&pdb, token, lambda_map, &blob, &size), CDACQ_OK);
        count += blob != NULL;
    }
    ck_assert_uint_eq(count, 1); /* Written.Fetch has a lambda and a local function */
    ck_assert_int_eq(portable_pdb_custom(&pdb, 0x01000001, portable_pdb_source_link, &blob, &size), CDACQ_OK);
    ck_assert_ptr_null(blob);
    ck_assert_int_eq(portable_pdb_custom(&pdb, 0x31000001, portable_pdb_source_link, &blob, &size), CDACQ_ERR_FORMAT);
}
END_TEST

static bool list_local(const struct local_variable *variable, void *context)
{
    char buffer[METADATA_STRING_CAP];
    const char *name;
    size_t length;
    struct text *text = context;
    ck_assert_int_eq(metadata_string(&pdb.metadata, variable->name, buffer, &name, &length), CDACQ_OK);
    text_printf(text, "%u=%.*s ", variable->slot, (int)length, name);
    ck_assert(!variable->is_hidden);
    return true;
}

/* By the source: Add, Loop, whose first loop has a variable of its own, and Wide. */
START_TEST(finds_locals_in_scope)
{
    static const struct {
        uint32_t method, il_offset;
        const char *locals;
    } expected[] = {{1, 0, "0=sum "},       {2, 0, "0=total "},      {2, 2, "0=total "},
                    {2, 3, "0=total 1=i "}, {2, 36, "0=total 1=i "}, {2, 37, "0=total "},
                    {8, 0, "0=copy "},      {1, 5000, ""},           {0xffffff, 0, ""}};
    struct text text = {0};
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        ck_assert_int_eq(local_variables_each(&pdb, expected[i].method, expected[i].il_offset, list_local, &text),
                         CDACQ_OK);
        ck_assert_str_eq(text.data ? text.data : "", expected[i].locals);
        text_clear(&text);
    }
    ck_assert(local_variables_exist(&pdb, 1) && !local_variables_exist(&pdb, 0xffffff));
    text_deinit(&text);
}
END_TEST

START_TEST(refuses_rows_that_do_not_exist)
{
    struct sequence_points points;
    struct text text = {0};
    ck_assert_int_eq(portable_pdb_points(&pdb, 0, &points), CDACQ_ERR_FORMAT);
    ck_assert_int_eq(portable_pdb_points(&pdb, 0xffffff, &points), CDACQ_ERR_FORMAT);
    ck_assert_int_eq(portable_pdb_document_name(&pdb, 0, &text), CDACQ_ERR_FORMAT);
    ck_assert_int_eq(portable_pdb_document_name(&pdb, 1000, &text), CDACQ_ERR_FORMAT);
    text_deinit(&text);
}
END_TEST

START_TEST(refuses_what_is_no_pdb)
{
    size_t size;
    CLEANUP_FREE uint8_t *image = fixture_file("pdb/Lines.dll", &size);
    struct bytes bytes = bytes_of_buffer(image, size), blob;
    struct bytes_extent part;
    struct pe pe;
    struct portable_pdb other;
    ck_assert_int_eq(portable_pdb_open(image, size, &other), CDACQ_ERR_FORMAT);
    ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_OK);
    ck_assert_int_eq(pe_metadata(&pe, &part, &blob), CDACQ_OK);
    ck_assert_int_eq(portable_pdb_open(image + part.offset, blob.size, &other), CDACQ_ERR_FORMAT);
    for (size_t cut = 0; cut < file_size; cut += 97)
        (void)portable_pdb_open(file, cut, &other);
}
END_TEST

/* ---- The image's side ---- */

static struct pe_debug read_debug(const char *name)
{
    size_t size;
    CLEANUP_FREE uint8_t *image = fixture_file(name, &size);
    struct bytes bytes = bytes_of_buffer(image, size);
    struct pe pe;
    struct pe_debug debug;
    ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_OK);
    ck_assert_int_eq(pe_read_debug(&pe, &debug), CDACQ_OK);
    return debug;
}

START_TEST(the_image_names_its_pdb)
{
    struct pe_debug debug = read_debug("pdb/Lines.dll");
    char key[PE_DEBUG_KEY_SIZE], hex[33];
    ck_assert(debug.has_pdb && debug.portable);
    ck_assert_mem_eq(debug.id, pdb.id, sizeof pdb.id);
    ck_assert_str_eq(pe_debug_pdb_name(&debug), "Lines.pdb");
    ck_assert_uint_eq(debug.age, 1);
    ck_assert_uint_eq(debug.embedded_size, 0);
    pe_debug_symbol_key(&debug, false, key);
    text_hex(hex, debug.id + 8, 8);
    ck_assert_uint_eq(strlen(key), 40);
    ck_assert_mem_eq(key + 16, hex, 16); /* the first half is stored in little-endian words */
    ck_assert_str_eq(key + 32, "FFFFFFFF");
    pe_debug_symbol_key(&debug, true, key);
    ck_assert_str_eq(key + 32, "1");
}
END_TEST

START_TEST(the_image_has_the_checksum_of_its_pdb)
{
    struct pe_debug debug = read_debug("pdb/Lines.dll");
    static const uint8_t zeros[PORTABLE_PDB_ID_SIZE];
    uint8_t digest[SHA256_SIZE];
    struct sha256 hash;
    size_t after = pdb.id_offset + sizeof zeros;
    ck_assert_uint_eq(debug.checksum_count, 1);
    ck_assert_str_eq(debug.checksums[0].algorithm, "SHA256");
    ck_assert_uint_eq(debug.checksums[0].size, SHA256_SIZE);
    sha256_begin(&hash);
    sha256_add(&hash, file, pdb.id_offset);
    sha256_add(&hash, zeros, sizeof zeros);
    sha256_add(&hash, file + after, file_size - after);
    sha256_end(&hash, digest);
    ck_assert_mem_eq(digest, debug.checksums[0].bytes, sizeof digest);
}
END_TEST

START_TEST(an_image_may_hold_its_pdb)
{
    struct pe_debug debug = read_debug("pdb/Embedded.dll");
    ck_assert(debug.has_pdb && debug.portable);
    ck_assert_mem_eq(debug.id, pdb.id, sizeof pdb.id);
    ck_assert_uint_gt(debug.embedded_size, 0);
    ck_assert_uint_eq(debug.embedded_pdb_size, file_size);
}
END_TEST

/* An image laid out by RVA has its debug data where the RVAs say. */
START_TEST(a_mapped_image_says_the_same)
{
    static const char *const names[] = {"pdb/Lines.dll", "pdb/Embedded.dll"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        size_t size;
        struct pe_debug flat = read_debug(names[i]), mapped;
        CLEANUP_FREE uint8_t *image = fixture_file(names[i], &size);
        struct bytes bytes = bytes_of_buffer(image, size);
        struct pe pe;
        ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_OK);
        CLEANUP_FREE uint8_t *laid_out = calloc(1, pe.image_size);
        memcpy(laid_out, image, pe.headers_size);
        for (unsigned s = 0; s < pe.section_count; s++)
            memcpy(laid_out + pe.sections[s].rva, image + pe.sections[s].file_offset,
                   MIN(pe.sections[s].file_size, pe.sections[s].virtual_size));
        bytes = bytes_of_buffer(laid_out, pe.image_size);
        ck_assert_int_eq(pe_open(&bytes, true, &pe), CDACQ_OK);
        ck_assert_int_eq(pe_read_debug(&pe, &mapped), CDACQ_OK);
        ck_assert_mem_eq(mapped.id, flat.id, sizeof flat.id);
        ck_assert_str_eq(mapped.path, flat.path);
        ck_assert_uint_eq(mapped.checksum_count, flat.checksum_count);
        ck_assert_uint_eq(mapped.embedded_size, flat.embedded_size);
        if (flat.embedded_size)
            ck_assert_mem_eq(laid_out + mapped.embedded_offset, image + flat.embedded_offset, flat.embedded_size);
    }
}
END_TEST

/* As in a small core: what is missing is left out, and the rest is read. */
START_TEST(an_entry_that_the_source_lacks_does_not_spoil_the_others)
{
    size_t size;
    CLEANUP_FREE uint8_t *image = fixture_file("pdb/Embedded.dll", &size);
    struct pe_debug whole = read_debug("pdb/Embedded.dll"), debug;
    struct paged_bytes paged;
    struct bytes bytes = paged_bytes_open(&paged, image, size);
    struct pe pe;
    ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_OK);
    const uint8_t *codeview = memmem(image, size, "RSDS", 4);
    paged.missing_begin = (uint64_t)(codeview - image);
    paged.missing_end = paged.missing_begin + 24;
    ck_assert_int_eq(pe_read_debug(&pe, &debug), CDACQ_OK);
    ck_assert(!debug.has_pdb && debug.incomplete && !whole.incomplete);
    ck_assert_uint_eq(debug.embedded_size, whole.embedded_size);
    ck_assert_uint_eq(debug.checksum_count, whole.checksum_count);
    paged.missing_begin = whole.embedded_offset - 8;
    paged.missing_end = whole.embedded_offset;
    ck_assert_int_eq(pe_read_debug(&pe, &debug), CDACQ_OK);
    ck_assert(debug.has_pdb && debug.incomplete && !debug.embedded_size);
    paged_bytes_close(&paged);
}
END_TEST

/* ---- Blobs that no compiler writes ---- */

static unsigned count_points(const void *blob, size_t size, uint32_t document, struct sequence_point *last,
                             bool *ret_malformed)
{
    struct sequence_points points;
    unsigned count = 0;
    sequence_points_begin(&points, blob, size, document);
    while (sequence_points_next(&points, last))
        count++;
    *ret_malformed = points.malformed;
    return count;
}

#define POINTS(document, ...) \
    count_points((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), document, &last, &malformed)

START_TEST(decodes_each_form_of_record)
{
    struct sequence_point last;
    bool malformed;
    ck_assert_uint_eq(count_points("", 0, 0, &last, &malformed), 0);
    ck_assert(!malformed);
    ck_assert_uint_eq(POINTS(1, 0x11, 5, 0, 9, 30, 4), 1); /* one line */
    ck_assert(!malformed && last.il_offset == 5 && last.document == 1 && last.start_line == 30 && last.end_line == 30 &&
              last.start_column == 4 && last.end_column == 13);
    ck_assert_uint_eq(POINTS(1, 0, 0, 2, 0x7b, 30, 4), 1); /* two lines on, three columns back */
    ck_assert(!malformed && last.end_line == 32 && last.start_column == 4 && last.end_column == 1);
    ck_assert_uint_eq(POINTS(0, 0, 7, 0, 0, 9, 30, 4, 0, 8, 3, 0, 9, 0x7f, 0), 2); /* another document, a line back */
    ck_assert(!malformed && last.il_offset == 3 && last.document == 8 && last.start_line == 29);
    ck_assert_uint_eq(POINTS(1, 0, 0, 0, 0, 3, 0, 9, 30, 4), 2); /* the first is hidden: lines are not deltas yet */
    ck_assert(!malformed && last.start_line == 30 && !sequence_point_is_hidden(&last));
    ck_assert_uint_eq(POINTS(1, 0, 2, 0, 9, 30, 4, 3, 0, 0), 2); /* the last is hidden */
    ck_assert(!malformed && last.il_offset == 5 && sequence_point_is_hidden(&last) && last.start_column == 0);
}
END_TEST

START_TEST(ends_at_what_makes_no_sense)
{
    struct sequence_point last;
    bool malformed;
    ck_assert_uint_eq(POINTS(0, 0, 0, 0, 0, 9, 30, 4), 0); /* no document */
    ck_assert(malformed);
    ck_assert_uint_eq(POINTS(1, 0, 5, 0, 9, 30), 0); /* cut off */
    ck_assert(malformed);
    ck_assert_uint_eq(POINTS(1, 0, 5, 0, 9, 30, 4, 0, 0), 1); /* document 0 */
    ck_assert(malformed);
    ck_assert_uint_eq(POINTS(1, 0, 5, 0, 9, 30, 4, 1, 0, 9, 0x41, 0), 1); /* a line below 0 */
    ck_assert(malformed);
    ck_assert_uint_eq(POINTS(1, 0, 5, 0, 9, 30, 4, 1, 0, 9, 0, 0x41), 1); /* a column below 0 */
    ck_assert(malformed);
    ck_assert_uint_eq(POINTS(1, 0, 5, 0, 9, 0xc0, 0xfe, 0xef, 0xee, 4), 0); /* the line of hidden points */
    ck_assert(malformed);
    ck_assert_uint_eq(POINTS(1, 0, 5, 0, 9, 30, 0xc0, 0x01, 0, 0), 0); /* a column of more than 16 bits */
    ck_assert(malformed);
    ck_assert_uint_eq(POINTS(1, 0, 0xdf, 0xff, 0xff, 0xff, 0, 9, 30, 4, 1, 0, 9, 0, 0), 1); /* an IL offset too high */
    ck_assert(malformed);
    ck_assert_uint_eq(POINTS(1, 0xe0), 0); /* no number */
    ck_assert(malformed);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("portable_pdb");
    TCase *tc = tcase_create("portable_pdb");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, reads_what_the_judge_reads);
    tcase_add_test(tc, finds_custom_debug_information_of_methods);
    tcase_add_test(tc, finds_locals_in_scope);
    tcase_add_test(tc, refuses_rows_that_do_not_exist);
    tcase_add_test(tc, refuses_what_is_no_pdb);
    tcase_add_test(tc, the_image_names_its_pdb);
    tcase_add_test(tc, the_image_has_the_checksum_of_its_pdb);
    tcase_add_test(tc, an_image_may_hold_its_pdb);
    tcase_add_test(tc, a_mapped_image_says_the_same);
    tcase_add_test(tc, an_entry_that_the_source_lacks_does_not_spoil_the_others);
    tcase_add_test(tc, decodes_each_form_of_record);
    tcase_add_test(tc, ends_at_what_makes_no_sense);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
