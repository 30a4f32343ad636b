/*
 * test_object_view.c: what cdacq object writes of values whose texts are hostile, and of those that cannot be read. The
 * calls of the library are replaced.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cdacq.h"

static const char *given_text; /* of the value or the string */
static bool is_missing;        /* reading fails after it */

static enum cdacq_status give_text(int (*write)(const char *bytes, size_t length, void *context), void *context,
                                   struct cdacq_error *err)
{
    (void)write(given_text, strlen(given_text), context);
    if (!is_missing)
        return CDACQ_OK;
    *err = (struct cdacq_error){.status = CDACQ_ERR_MEMORY};
    strcpy(err->message, "no memory at 0x10");
    return CDACQ_ERR_MEMORY;
}

static enum cdacq_status give_value(struct cdacq_session *session, const struct cdacq_value *value,
                                    int (*write)(const char *bytes, size_t length, void *context), void *context,
                                    struct cdacq_error *err)
{
    (void)session, (void)value;
    return give_text(write, context, err);
}

static enum cdacq_status give_string(struct cdacq_session *session, uint64_t string, uint32_t max,
                                     int (*write)(const char *bytes, size_t length, void *context), void *context,
                                     struct cdacq_error *err)
{
    (void)session, (void)string, (void)max;
    return give_text(write, context, err);
}

#define cdacq_session_write_value  give_value
#define cdacq_session_write_string give_string

#include "src/cli/base/json_writer.c"
#include "src/cli/base/output.c"
#include "src/cli/commands/object_heap.c"
#include "src/cli/commands/object_json.c"
#include "src/cli/commands/object_view.c"
#define put_field     text_put_field
#define put_item      text_put_item
#define put_items     text_put_items
#define put_value     text_put_value
#define put_referrers text_put_referrers
#include "src/cli/commands/object_text.c"
#undef put_value
#include "tests/support/check_main.h"

_Noreturn void out_of_memory(void)
{
    ck_abort();
}

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
    (void)folder, (void)name;
}

void watchdog_block_ends(sigset_t *ret_before)
{
    sigemptyset(ret_before);
}

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

static void expect_value(enum cdacq_value_kind kind, uint64_t bits, const char *text, const char *expected)
{
    struct output out;
    output_open_memory(&out);
    const struct cdacq_value value = {.size = sizeof value, .kind = kind, .width = 8, .bits = bits};
    struct object_view view = {.out = &out};
    struct json_writer json = json_begin_line(&out);
    struct json_view writer = {.view = &view, .json = &json};
    given_text = text;
    put_value(&writer, &value, NULL);
    json_end_object(&json);
    ck_assert_msg(out.length == strlen(expected) && !memcmp(out.data, expected, out.length), "'%.*s' is not '%s'",
                  (int)out.length, out.data, expected);
    output_abandon(&out);
}

/* The name of an enum's member is a string, whatever it begins with. */
START_TEST(names_of_enums)
{
    is_missing = false;
    expect_value(CDACQ_VALUE_SIGNED, 5, "5", "{\"value\":5}");
    expect_value(CDACQ_VALUE_SIGNED, UINT64_MAX, "-1", "{\"value\":-1}");
    expect_value(CDACQ_VALUE_UNSIGNED, UINT64_MAX, "18446744073709551615", "{\"value\":18446744073709551615}");
    expect_value(CDACQ_VALUE_SIGNED, 5, "Red", "{\"value\":\"Red\",\"number\":5}");
    expect_value(CDACQ_VALUE_SIGNED, 5, "7", "{\"value\":\"7\",\"number\":5}");
    expect_value(CDACQ_VALUE_SIGNED, UINT64_MAX, "-", "{\"value\":\"-\",\"number\":-1}");
    expect_value(CDACQ_VALUE_UNSIGNED, 5, "5,\"a\":1", "{\"value\":\"5,\\\"a\\\":1\",\"number\":5}");
    expect_value(CDACQ_VALUE_UNSIGNED, 5, "05", "{\"value\":\"05\",\"number\":5}");
}
END_TEST

START_TEST(real_numbers)
{
    is_missing = false;
    expect_value(CDACQ_VALUE_REAL, 0, "-1.5e+20", "{\"value\":-1.5e+20}");
    expect_value(CDACQ_VALUE_REAL, 0, "NaN", "{\"value\":\"NaN\"}");
    expect_value(CDACQ_VALUE_REAL, 0, "-Infinity", "{\"value\":\"-Infinity\"}");
}
END_TEST

/* A reason is not the content of a string. */
START_TEST(a_string_that_cannot_be_read)
{
    struct output out;
    output_open_memory(&out);
    struct object_view view = {
        .out = &out,
        .object = {.size = sizeof view.object, .address = 16, .is_string = true, .length = 2000},
    };
    given_text = "the beginning";
    is_missing = true;
    object_view_write_json(&view);
    object_view_write_text(&view);
    ck_assert_uint_eq(view.problems, 2);
    char *text = reallocate(NULL, out.length + 1);
    memcpy(text, out.data, out.length);
    text[out.length] = '\0';
    ck_assert_msg(strstr(text, "\"value\":null,\"problem\":\"no memory at 0x10\""), "%s", text);
    ck_assert_msg(strstr(text, "\n  ? no memory at 0x10\n"), "%s", text);
    ck_assert_msg(!strstr(text, "\"no memory at 0x10\" and") && !strstr(text, "left_out"), "%s", text);
    free(text);
    output_abandon(&out);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("object_view");
    TCase *tc = tcase_create("object_view");
    tcase_add_test(tc, names_of_enums);
    tcase_add_test(tc, real_numbers);
    tcase_add_test(tc, a_string_that_cannot_be_read);
    suite_add_tcase(suite, tc);
    return suite;
}

CHECK_MAIN(suite)
