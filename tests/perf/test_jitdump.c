/*
 * The jitdump reader through cdacq.h: what embedders get beyond what `cdacq records` prints
 * (tests/cli/test_records.py), and files that change under the reader.
 */
#include <stdio.h>
#include <unistd.h>

#include "formats/jitdump.h"
#include "formats/jitdump_places.h"

#include "tests/support/check_main.h"

static char path[64];
static FILE *file;
static bool big;
static struct cdacq_jitdump *jitdump;
static struct cdacq_jitdump_record record = {.size = sizeof record};
static struct cdacq_error error;

static void setup(void)
{
    strcpy(path, "/tmp/test_jitdump.XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    file = fdopen(fd, "r+");
    ck_assert_ptr_nonnull(file);
    big = false;
}

static void teardown(void)
{
    cdacq_jitdump_close(jitdump);
    jitdump = NULL;
    fclose(file);
    unlink(path);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static void put32(uint32_t value)
{
    store_u32(&value, value, big);
    ck_assert_uint_eq(fwrite(&value, sizeof value, 1, file), 1);
}

static void put64(uint64_t value)
{
    store_u64(&value, value, big);
    ck_assert_uint_eq(fwrite(&value, sizeof value, 1, file), 1);
}

static void put_bytes(const void *bytes, size_t size)
{
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
}

static void put_header(uint32_t pid)
{
    const uint32_t fields[] = {0x4A695444, 1, 40, 62, 0, pid};
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        put32(fields[i]);
    put64(5);
    put64(0);
    fflush(file);
}

static void put_prefix(uint32_t id, uint32_t size)
{
    put32(id);
    put32(size);
    put64(7);
}

static void put_load(uint64_t address, uint64_t index, const char *name, const void *code, uint32_t code_size)
{
    put_prefix(0, 56 + (uint32_t)strlen(name) + 1 + code_size);
    put64(0);
    put64(address);
    put64(address);
    put64(code_size);
    put64(index);
    put_bytes(name, strlen(name) + 1);
    put_bytes(code, code_size);
    fflush(file);
}

static void put_move(uint64_t from, uint64_t to, uint64_t size, uint64_t index)
{
    put_prefix(1, 64);
    put64(0);
    put64(to);
    put64(from);
    put64(to);
    put64(size);
    put64(index);
    fflush(file);
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static void open_file(unsigned flags)
{
    ck_assert_int_eq(cdacq_jitdump_open(path, flags, &jitdump, &error), CDACQ_OK);
}

static void assert_next(enum cdacq_jitdump_kind kind)
{
    ck_assert_int_eq(cdacq_jitdump_next(jitdump, &record, &error), CDACQ_OK);
    ck_assert_int_eq(record.kind, kind);
}

static void assert_status(enum cdacq_status status)
{
    for (int i = 0; i < 2; i++) /* and it stays */
        ck_assert_int_eq(cdacq_jitdump_next(jitdump, &record, &error), status);
}

START_TEST(code_is_handed_out_where_it_is_wanted)
{
    for (unsigned flags = 0; flags <= CDACQ_JITDUMP_CODE; flags += CDACQ_JITDUMP_CODE) {
        put_header(1);
        put_load(0x10, 1, "f", "code", 4);
        put_prefix(4, 16 + 24 + 6);
        put64(6);
        put64(2);
        put64(0);
        put_bytes("unwind", 6);
        put_load(0x20, 2, "", "", 0);
        fflush(file);
        open_file(flags);
        assert_next(CDACQ_JITDUMP_HEADER);
        assert_next(CDACQ_JITDUMP_LOAD);
        ck_assert_str_eq(record.as.load.name, "f");
        ck_assert_uint_eq(record.as.load.code_offset, 40 + 58);
        if (flags)
            ck_assert_mem_eq(record.as.load.code, "code", 4);
        assert_next(CDACQ_JITDUMP_UNWINDING_INFO);
        ck_assert_uint_eq(record.as.unwinding_info.unwinding_data_offset, record.offset + 40);
        if (flags)
            ck_assert_mem_eq(record.as.unwinding_info.unwinding_data, "unwind", 6);
        assert_next(CDACQ_JITDUMP_LOAD);
        ck_assert_uint_eq(record.as.load.unwinding_info, 102);
        ck_assert_uint_eq(record.as.load.name_length, 0);
        ck_assert_ptr_null(record.error);
        assert_status(CDACQ_DONE);
        teardown();
        setup();
    }
}
END_TEST

START_TEST(code_larger_than_what_is_read_at_once)
{
    const uint32_t size = 65 * 1024 * 1024;
    put_header(1);
    put_prefix(0, 58 + size);
    put64(0);
    put64(0x10);
    put64(0x10);
    put64(size);
    put64(1);
    put_bytes("f", 2);
    fseek(file, (long)size, SEEK_CUR);
    put_load(0x20, 2, "g", "c", 1);
    open_file(CDACQ_JITDUMP_CODE);
    assert_next(CDACQ_JITDUMP_HEADER);
    assert_next(CDACQ_JITDUMP_LOAD);
    ck_assert_ptr_null(record.error);
    ck_assert_ptr_null(record.as.load.code);
    ck_assert_uint_eq(record.as.load.code_offset, 98);
    assert_next(CDACQ_JITDUMP_LOAD);
    ck_assert_mem_eq(record.as.load.code, "c", 1);
    assert_status(CDACQ_DONE);
}
END_TEST

START_TEST(lists_larger_than_what_is_read_at_once)
{
    const uint32_t size = 65 * 1024 * 1024;
    put_header(1);
    put_prefix(2, size);
    put64(0x10);
    put64((size - 32) / 17);
    fseek(file, (long)size - 32, SEEK_CUR);
    put_load(0x10, 2, "g", "c", 1);
    open_file(0);
    assert_next(CDACQ_JITDUMP_HEADER);
    assert_next(CDACQ_JITDUMP_DEBUG_INFO);
    ck_assert_ptr_nonnull(strstr(record.error, "nr_entry"));
    struct cdacq_jitdump_entry entry = {.size = sizeof entry};
    uint64_t cursor = 0;
    ck_assert(cdacq_jitdump_record_next_entry(&record, &cursor, &entry, NULL) == CDACQ_OK);
    assert_next(CDACQ_JITDUMP_LOAD);
    assert_status(CDACQ_DONE);
}
END_TEST

struct places {
    struct cdacq_jitdump_place found[8];
    size_t count, stop_at;
};

static int collect(const struct cdacq_jitdump_place *place, void *context)
{
    struct places *places = context;
    ck_assert_uint_lt(place->code_index, ARRAY_SIZE(places->found));
    places->found[place->code_index] = *place;
    return ++places->count == places->stop_at;
}

START_TEST(places_are_where_functions_were_moved)
{
    struct places places = {.count = 0};
    big = true;
    put_header(1);
    put_load(0x10, 1, "f", "12", 2);
    put_load(0x20, 2, "g", "123", 3);
    put_move(0x10, 0x30, 2, 1);
    put_load(0x10, 3, "h", "1", 1);
    put_move(0x30, 0x40, 2, 1);
    open_file(0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(cdacq_jitdump_next(jitdump, &record, &error), CDACQ_OK);
    /* At this time, without what follows. */
    ck_assert_int_eq(cdacq_jitdump_visit_places(jitdump, collect, &places, &error), CDACQ_OK);
    ck_assert_uint_eq(places.count, 2);
    ck_assert_uint_eq(places.found[1].vma, 0x10);
    assert_next(CDACQ_JITDUMP_MOVE);
    ck_assert_uint_eq(record.as.move.load, 40);
    assert_next(CDACQ_JITDUMP_LOAD);
    assert_next(CDACQ_JITDUMP_MOVE);
    ck_assert_ptr_null(record.error);
    assert_status(CDACQ_DONE);
    places.count = 0;
    ck_assert_int_eq(cdacq_jitdump_visit_places(jitdump, collect, &places, &error), CDACQ_OK);
    ck_assert_uint_eq(places.count, 3);
    ck_assert_uint_eq(places.found[1].vma, 0x40);
    ck_assert_uint_eq(places.found[1].code_addr, 0x40);
    ck_assert_uint_eq(places.found[1].code_size, 2);
    ck_assert_uint_eq(places.found[2].vma, 0x20);
    ck_assert_uint_eq(places.found[3].code_size, 1);
    places = (struct places){.stop_at = 2};
    ck_assert_int_eq(cdacq_jitdump_visit_places(jitdump, collect, &places, &error), CDACQ_STOPPED);
    ck_assert_uint_eq(places.count, 2);
}
END_TEST

/* The table grows and finds each function again, whatever their indexes have in common. */
START_TEST(many_places)
{
    enum { COUNT = 20000 };
    static const uint64_t steps[] = {1, 1 << 16, UINT64_C(1) << 48};
    for (size_t k = 0; k < ARRAY_SIZE(steps); k++) {
        struct jitdump_places places = {.count = 0};
        struct cdacq_jitdump_record load = {.kind = CDACQ_JITDUMP_LOAD, .has_fields = true};
        for (uint64_t i = 0; i < 2 * COUNT; i++) {
            load.offset = 40 + i;
            load.as.load = (struct cdacq_jitdump_load){.code_index = i % COUNT * steps[k], .vma = i};
            ck_assert_int_eq(jitdump_places_load(&places, &load, &error), CDACQ_OK);
        }
        ck_assert_uint_eq(places.count, COUNT);
        for (uint64_t i = 0; i < COUNT; i++)
            ck_assert_uint_eq(jitdump_places_find(&places, i * steps[k])->vma, COUNT + i);
        ck_assert_ptr_null(jitdump_places_find(&places, COUNT * steps[k] + 1));
        jitdump_places_deinit(&places);
    }
}
END_TEST

/* What is found is the record as it is when all of the file is read in order, and the handle reads on as before. */
START_TEST(a_found_record_knows_what_is_about_it)
{
    struct cdacq_jitdump_place place = {.size = sizeof place};
    struct cdacq_jitdump_record found = {.size = sizeof found};
    put_header(1);
    put_load(0x20, 1, "f", "code", 4);
    put_prefix(2, 32); /* JIT_CODE_DEBUG_INFO without entries */
    put64(0x10);
    put64(0);
    put_load(0x10, 1, "g", "1234", 4);
    put_move(0x20, 0x40, 4, 2); /* of no function */
    open_file(CDACQ_JITDUMP_CODE);
    assert_next(CDACQ_JITDUMP_HEADER);
    put_load(0x30, 3, "late", "", 0);
    ck_assert_int_eq(cdacq_jitdump_find(jitdump, 0x12, CDACQ_JITDUMP_LAST, &found, &place, &error), CDACQ_OK);
    ck_assert_str_eq(found.as.load.name, "g");
    ck_assert_mem_eq(found.as.load.code, "1234", 4);
    ck_assert_uint_eq(found.as.load.debug_info, 40 + 62);
    ck_assert_ptr_nonnull(strstr(found.error, "same code_index"));
    ck_assert_uint_eq(place.damaged, 2);
    ck_assert_ptr_nonnull(strstr(place.problem, "same code_index"));
    ck_assert_int_eq(cdacq_jitdump_find(jitdump, 0x50, CDACQ_JITDUMP_LAST, &found, &place, &error), CDACQ_NOT_MANAGED);
    ck_assert_uint_eq(place.damaged, 2);
    ck_assert_uint_eq(place.code_size, 0);
    assert_next(CDACQ_JITDUMP_LOAD);
    assert_next(CDACQ_JITDUMP_DEBUG_INFO);
    assert_next(CDACQ_JITDUMP_LOAD);
    assert_next(CDACQ_JITDUMP_MOVE);
    assert_status(CDACQ_DONE); /* the file was shorter when it was opened */
}
END_TEST

START_TEST(a_file_that_shrinks_is_no_signal)
{
    static const char code[200000];
    put_header(1);
    put_load(0x10, 1, "f", code, sizeof code);
    put_load(0x20, 2, "g", code, sizeof code);
    open_file(CDACQ_JITDUMP_CODE);
    assert_next(CDACQ_JITDUMP_HEADER);
    assert_next(CDACQ_JITDUMP_LOAD);
    ck_assert_int_eq(ftruncate(fileno(file), 1000), 0);
    assert_status(CDACQ_ERR_FORMAT);
    ck_assert_uint_eq(error.address, 40 + 58 + sizeof code);
}
END_TEST

START_TEST(a_file_that_grows_is_read_as_it_was)
{
    put_header(1);
    put_load(0x10, 1, "f", "", 0);
    open_file(0);
    put_load(0x20, 2, "g", "", 0);
    assert_next(CDACQ_JITDUMP_HEADER);
    assert_next(CDACQ_JITDUMP_LOAD);
    assert_status(CDACQ_DONE);
}
END_TEST

START_TEST(a_followed_file_begins_again)
{
    open_file(CDACQ_JITDUMP_FOLLOW);
    assert_status(CDACQ_DONE);
    put_header(1);
    assert_next(CDACQ_JITDUMP_HEADER);
    ck_assert_ptr_null(record.as.header.restart);
    assert_status(CDACQ_DONE);
    put_load(0x10, 1, "f", "12", 2);
    assert_next(CDACQ_JITDUMP_LOAD);
    put_move(0x10, 0x20, 2, 1);
    assert_next(CDACQ_JITDUMP_MOVE);
    ck_assert_uint_eq(record.as.move.load, 40);
    ck_assert_int_eq(cdacq_jitdump_check_end(jitdump, &error), CDACQ_OK);

    rewind(file);
    ck_assert_int_eq(ftruncate(fileno(file), 0), 0);
    assert_status(CDACQ_DONE);
    put_header(1);
    assert_next(CDACQ_JITDUMP_HEADER);
    ck_assert_ptr_nonnull(strstr(record.as.header.restart, "truncated"));
    put_move(0x20, 0x30, 2, 1); /* of a function that this file does not have */
    assert_next(CDACQ_JITDUMP_MOVE);
    ck_assert_ptr_nonnull(strstr(record.error, "code_index"));
    assert_status(CDACQ_DONE);
    ck_assert_int_eq(cdacq_jitdump_check_end(jitdump, &error), CDACQ_OK);
    fputs("a part", file);
    fflush(file);
    assert_status(CDACQ_DONE);
    ck_assert_int_eq(cdacq_jitdump_check_end(jitdump, &error), CDACQ_ERR_FORMAT);
}
END_TEST

/* Of a file that was rewritten, the bytes in memory are still read; nothing of the new file is mixed with them. */
START_TEST(a_followed_file_is_rewritten_in_the_middle)
{
    static const char code[100000];
    put_header(1);
    put_load(0x10, 1, "f", code, sizeof code);
    put_load(0x20, 2, "g", code, sizeof code);
    open_file(CDACQ_JITDUMP_FOLLOW);
    assert_next(CDACQ_JITDUMP_HEADER);
    assert_next(CDACQ_JITDUMP_LOAD);
    rewind(file);
    put_header(2);
    put_load(0x30, 3, "h", code, 40);
    assert_next(CDACQ_JITDUMP_HEADER);
    ck_assert_uint_eq(record.as.header.pid, 2);
    assert_next(CDACQ_JITDUMP_LOAD);
    ck_assert_uint_eq(record.as.load.code_index, 3);
}
END_TEST

START_TEST(refuses_what_is_no_file)
{
    struct cdacq_jitdump *untouched = NULL;
    ck_assert_int_eq(cdacq_jitdump_open("/nowhere", 0, &untouched, &error), CDACQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "/nowhere"));
    ck_assert_int_eq(cdacq_jitdump_open("/tmp", 0, &untouched, &error), CDACQ_ERR_IO);
    ck_assert_int_eq(cdacq_jitdump_open("/dev/zero", 0, &untouched, NULL), CDACQ_ERR_IO);
    ck_assert_ptr_null(untouched);
}
END_TEST

START_TEST(kinds_have_texts)
{
    ck_assert_str_eq(cdacq_jitdump_kind_text(CDACQ_JITDUMP_HEADER), "header");
    ck_assert_str_eq(cdacq_jitdump_kind_text(CDACQ_JITDUMP_SAMPLY_SOURCE), "samply_source");
    ck_assert_str_eq(cdacq_jitdump_kind_text((enum cdacq_jitdump_kind)99), "unknown");
}
END_TEST

/* Functions for one kind give nothing of another, whatever its bytes. */
START_TEST(lists_of_other_kinds_are_empty)
{
    struct cdacq_jitdump_entry entry = {.size = sizeof entry};
    struct cdacq_jitdump_function function = {.size = sizeof function};
    struct cdacq_jitdump_inline_call call = {.size = sizeof call};
    struct cdacq_jitdump_range range = {.size = sizeof range};
    struct cdacq_jitdump_line_record line = {.size = sizeof line};
    const char *string;
    size_t length;
    uint64_t cursor = 0;
    put_header(1);
    put_load(0x10, 1, "f", "12", 2);
    open_file(CDACQ_JITDUMP_CODE);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(cdacq_jitdump_next(jitdump, &record, &error), CDACQ_OK);
        ck_assert(cdacq_jitdump_record_next_entry(&record, &cursor, &entry, NULL) == CDACQ_DONE);
        ck_assert(cdacq_jitdump_record_next_string(&record, CDACQ_JITDUMP_FILES, &cursor, &string, &length, NULL) ==
                  CDACQ_DONE);
        ck_assert(cdacq_jitdump_record_get_function(&record, 0, &function, NULL) == CDACQ_DONE);
        ck_assert(cdacq_jitdump_record_get_inline_call(&record, 0, &call, NULL) == CDACQ_DONE);
        ck_assert(cdacq_jitdump_record_get_range(&record, 0, &range, NULL) == CDACQ_DONE);
        ck_assert(cdacq_jitdump_record_get_line_record(&record, 0, &line, NULL) == CDACQ_DONE);
    }
}
END_TEST

static Suite *suite(void)
{
    const TTest *const tests[] = {
        code_is_handed_out_where_it_is_wanted,
        code_larger_than_what_is_read_at_once,
        lists_larger_than_what_is_read_at_once,
        places_are_where_functions_were_moved,
        many_places,
        a_found_record_knows_what_is_about_it,
        a_file_that_shrinks_is_no_signal,
        a_file_that_grows_is_read_as_it_was,
        a_followed_file_begins_again,
        a_followed_file_is_rewritten_in_the_middle,
        refuses_what_is_no_file,
        kinds_have_texts,
        lists_of_other_kinds_are_empty,
    };
    Suite *s = suite_create("jitdump");
    TCase *tc = tcase_create("jitdump");
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
