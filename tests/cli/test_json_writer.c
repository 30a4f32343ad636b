/*
 * test_json_writer.c: documents that the tool's JSON writer forms, on one line and indented, and one that is larger
 * than the output's buffer.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

#include "src/cli/base/console.h"
#include "src/cli/base/json_writer.c"
#include "src/cli/base/memory.h"
#include "src/cli/base/output.c"
#include "tests/support/check_main.h"

void message(const char *format, ...)
{
    ck_abort_msg("%s", format);
}

int watchdog_set(int pid)
{
    return pid;
}

void watchdog_remove(int folder, const char *name)
{
    (void)folder;
    (void)name;
}

void watchdog_block_ends(sigset_t *ret_before)
{
    sigemptyset(ret_before);
}

/* The output goes to files. */
bool console_has_colour(int fd)
{
    (void)fd;
    return false;
}

const char *console_style(enum style style)
{
    (void)style;
    return "";
}

void progress_end_all(void)
{
}

void *reallocate(void *data, size_t size)
{
    data = realloc(data, size);
    ck_assert_ptr_nonnull(data);
    return data;
}

/* ---- An output to a file, and what it got ---- */

static char path[32];

static struct output open_output(void)
{
    struct output out;
    strcpy(path, "/tmp/json_writer.XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert(output_open(&out, path));
    return out;
}

/* Allocated. */
static char *close_output(struct output *out)
{
    size_t size = 4 << 20;
    char *text = reallocate(NULL, size);
    ck_assert(output_close(out));
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, text, size - 1);
    close(fd);
    unlink(path);
    ck_assert_int_ge(n, 0);
    text[n] = '\0';
    return text;
}

static void check_output(struct output *out, const char *expected)
{
    char *text = close_output(out);
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(members_and_elements_are_separated)
{
    struct output out = open_output();
    struct json_writer w = json_begin_line(&out);
    json_begin_array(&w, "empty");
    json_end_array(&w);
    json_begin_object(&w, "none");
    json_end_object(&w);
    json_begin_array(&w, "list");
    json_number(&w, NULL, 1);
    json_begin_object(&w, NULL);
    json_null(&w, "a");
    json_bool(&w, "b", true);
    json_end_object(&w);
    json_string(&w, NULL, "x");
    json_end_array(&w);
    json_string_key(&w, "a\tkey");
    json_bool(&w, NULL, false);
    json_number(&w, "last", 2);
    json_end_line(&w);
    check_output(&out, "{\"empty\":[],\"none\":{},\"list\":[1,{\"a\":null,\"b\":true},\"x\"],\"a\\\\x09key\":false,"
                       "\"last\":2}\n");
}
END_TEST

START_TEST(each_value_has_its_form)
{
    struct output out = open_output();
    struct json_writer w = json_begin_line(&out);
    json_begin_array(&w, "all");
    json_number(&w, NULL, UINT64_MAX);
    json_known_number(&w, NULL, false, 1);
    json_known_bool(&w, NULL, false, true);
    json_address(&w, NULL, UINT64_MAX);
    json_address(&w, NULL, 0);
    json_known_address(&w, NULL, true, 0);
    json_token(&w, NULL, 0x06000003);
    json_token(&w, NULL, 0);
    json_note(&w, NULL, "plain");
    json_note(&w, NULL, NULL);
    json_string(&w, NULL, "back\\slash \"quoted\" \x01\xff");
    json_note(&w, NULL, "back\\slash \"quoted\"");
    json_string(&w, NULL, NULL);
    json_string_bytes(&w, NULL, "cut here", 3);
    json_end_array(&w);
    json_end_line(&w);
    check_output(&out, "{\"all\":[18446744073709551615,null,null,\"0xffffffffffffffff\",null,\"0x0\","
                       "\"0x06000003\",null,\"plain\",null,\"back\\\\\\\\slash \\\"quoted\\\" \\\\x01\\\\xff\","
                       "\"back\\\\slash \\\"quoted\\\"\",null,\"cut\"]}\n");
}
END_TEST

START_TEST(a_pretty_document_is_indented)
{
    struct output out = open_output();
    struct json_writer w = json_begin_line(&out);
    w.pretty = w.wrap = true;
    json_number(&w, "version", 1);
    json_begin_object(&w, "types");
    json_string_key(&w, "T");
    json_begin_object(&w, NULL);
    w.wrap = false;
    json_number(&w, "size", 8);
    json_null(&w, "origin");
    json_end_object(&w);
    w.wrap = true;
    json_end_object(&w);
    json_begin_object(&w, "globals");
    json_end_object(&w);
    json_end_line(&w);
    check_output(&out, "{\n  \"version\": 1,\n  \"types\": {\n    \"T\": {\"size\": 8, \"origin\": null}\n  },\n"
                       "  \"globals\": {}\n}\n");
}
END_TEST

START_TEST(a_document_may_be_larger_than_the_buffer)
{
    enum { ELEMENTS = 30000, LENGTH = 600 * 1024 };
    char *text = reallocate(NULL, LENGTH);
    memset(text, 'x', LENGTH);
    struct output out = open_output();
    struct json_writer w = json_begin_line(&out);
    json_begin_array(&w, "all");
    for (int i = 0; i < ELEMENTS; i++) {
        json_begin_object(&w, NULL);
        json_number(&w, "number", (uint64_t)i);
        json_end_object(&w);
    }
    json_string_bytes(&w, NULL, text, LENGTH);
    char *p = json_begin_value(&w, NULL, LENGTH);
    memcpy(p, text, LENGTH);
    output_commit(&out, p + LENGTH);
    json_end_array(&w);
    json_end_line(&w);

    char *written = close_output(&out), element[32];
    ck_assert_int_eq(strncmp(written, "{\"all\":[", 8), 0);
    p = written + 8;
    for (int i = 0; i < ELEMENTS; i++) {
        size_t length = (size_t)snprintf(element, sizeof element, "{\"number\":%d},", i);
        ck_assert_int_eq(strncmp(p, element, length), 0);
        p += length;
    }
    ck_assert_int_eq(*p++, '"');
    ck_assert_int_eq(memcmp(p, text, LENGTH), 0);
    p += LENGTH;
    ck_assert_int_eq(strncmp(p, "\",", 2), 0);
    p += 2;
    ck_assert_int_eq(memcmp(p, text, LENGTH), 0);
    ck_assert_str_eq(p + LENGTH, "]}\n");
    free(written);
    free(text);
}
END_TEST

/* A text of lines is written piece by piece, too: escaped at once, one of 64 MiB would take 384 MiB. */
START_TEST(a_long_text_needs_no_room)
{
    enum { LENGTH = 600 * 1024 };
    static const char lines[] = "\"a\\n\\nb\\n\"";
    char *text = reallocate(NULL, LENGTH);
    memset(text, '\1', LENGTH);
    struct output out = open_output();
    struct json_writer w = json_begin_line(&out);
    json_lines(&w, "a", text, LENGTH);
    ck_assert_uint_lt(out.capacity, 2 * LENGTH);
    json_lines(&w, "b", "a\n\nb\n", 5);
    char *written = close_output(&out);
    ck_assert_uint_gt(strlen(written), (size_t)6 * LENGTH);
    ck_assert_str_eq(written + strlen(written) - strlen(lines), lines);
    free(written);
    free(text);
}
END_TEST

static Suite *json_writer_suite(void)
{
    Suite *suite = suite_create("json_writer");
    TCase *tcase = tcase_create("documents");
    tcase_add_test(tcase, members_and_elements_are_separated);
    tcase_add_test(tcase, each_value_has_its_form);
    tcase_add_test(tcase, a_pretty_document_is_indented);
    tcase_add_test(tcase, a_document_may_be_larger_than_the_buffer);
    tcase_add_test(tcase, a_long_text_needs_no_room);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(json_writer_suite)
