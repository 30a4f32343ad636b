#include "util/error.h"
#include "tests/support/check_main.h"

#define CASE_NAME(name, value, text) {name, value, text},
static const struct {
    enum cdacq_status status;
    int value;
    const char *text;
} statuses[] = {CDACQ_STATUSES(CASE_NAME)};

START_TEST(every_status_has_its_text)
{
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        ck_assert_int_eq((int)statuses[i].status, statuses[i].value);
        ck_assert_str_eq(cdacq_status_text(statuses[i].status), statuses[i].text);
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(statuses[i].text, statuses[j].text);
    }
    ck_assert_int_eq(CDACQ_OK, 0);
    ck_assert_int_gt(CDACQ_NOT_MANAGED, 0); /* an answer */
    ck_assert_int_lt(CDACQ_ERR_NOMEM, 0);   /* a failure */
}
END_TEST

START_TEST(a_number_that_is_no_status)
{
    ck_assert_str_eq(cdacq_status_text((enum cdacq_status)99), "unknown status");
    ck_assert_str_eq(cdacq_status_text((enum cdacq_status) - 99), "unknown status");
}
END_TEST

START_TEST(sets_all_and_returns_the_status)
{
    struct cdacq_error error;
    memset(&error, 0xff, sizeof error);
    int status = error_set(&error, CDACQ_ERR_MEMORY, 0x7f00, "%s: no memory at %#x", "RangeSection.Flags", 0x7f00);
    ck_assert_int_eq(status, CDACQ_ERR_MEMORY);
    ck_assert_int_eq(error.status, CDACQ_ERR_MEMORY);
    ck_assert_uint_eq(error.address, 0x7f00);
    ck_assert_str_eq(error.message, "RangeSection.Flags: no memory at 0x7f00");
}
END_TEST

START_TEST(nobody_listens)
{
    ck_assert_int_eq(error_set(NULL, CDACQ_ERR_IO, 0, "%s", "lost"), CDACQ_ERR_IO);
}
END_TEST

START_TEST(a_message_is_one_printable_line)
{
    struct cdacq_error error;
    error_set(&error, CDACQ_ERR_IO, 0, "%s: cannot open", "/tmp/a\nb\x1b[31m\x7f\t");
    ck_assert_str_eq(error.message, "/tmp/a\\x0ab\\x1b[31m\\x7f\\x09: cannot open");
    error_set(&error, CDACQ_ERR_IO, 0, "%s",
              "\xc2\x9b"
              "31m \xe2\x80\xae \xff");
    ck_assert_str_eq(error.message, "\\xc2\\x9b31m \\u{202e} \\xff");
    error_set(&error, CDACQ_ERR_IO, 0, "%s", "/tmp/caf\xc3\xa9");
    ck_assert_str_eq(error.message, "/tmp/caf\xc3\xa9");
}
END_TEST

START_TEST(a_long_message_is_cut)
{
    struct {
        struct cdacq_error error;
        char behind[8];
    } guarded;
    char name[2 * CDACQ_ERROR_MESSAGE_SIZE];
    memset(guarded.behind, 'G', sizeof guarded.behind);
    memset(name, 'x', sizeof name);
    for (size_t length = CDACQ_ERROR_MESSAGE_SIZE - 2; length <= CDACQ_ERROR_MESSAGE_SIZE + 1; length++) {
        error_set(&guarded.error, CDACQ_ERR_IO, 0, "%.*s", (int)length, name);
        ck_assert_uint_eq(strlen(guarded.error.message), MIN(length, (size_t)CDACQ_ERROR_MESSAGE_SIZE - 1));
    }
    ck_assert_mem_eq(guarded.behind, "GGGGGGGG", 8);
}
END_TEST

START_TEST(an_error_may_quote_itself)
{
    /* A layer that adds to a message passes the old one as an argument. */
    struct cdacq_error error;
    error_set(&error, CDACQ_ERR_FIELD, 8, "no field Next");
    error_set(&error, CDACQ_ERR_FIELD, 8, "RangeSection: %s", error.message);
    ck_assert_str_eq(error.message, "RangeSection: no field Next");
}
END_TEST

START_TEST(printable_copies_into_what_there_is)
{
    char buffer[8];
    ck_assert_ptr_eq(error_printable(buffer, sizeof buffer, "abc"), buffer);
    ck_assert_str_eq(buffer, "abc");
    ck_assert_str_eq(error_printable(buffer, sizeof buffer, "0123456789"), "0123456");
    ck_assert_str_eq(error_printable(buffer, 1, "abc"), "");
    ck_assert_str_eq(error_printable(buffer, sizeof buffer, ""), "");
    ck_assert_str_eq(error_printable(buffer, sizeof buffer, "a\nb"), "a\\x0ab");
    ck_assert_str_eq(error_printable(buffer, sizeof buffer, "a\r\nb"), "a\\x0d"); /* never half an escape */
    ck_assert_str_eq(error_printable(buffer, sizeof buffer, "\\"), "\\\\");
    struct cdacq_error error;
    error_set(&error, CDACQ_ERR_IO, 0, "%s", buffer);
    ck_assert_str_eq(error.message, "\\\\"); /* escaped once, wherever it goes */
}
END_TEST

static Suite *suite(void)
{
    const TTest *const tests[] = {
        every_status_has_its_text,       a_number_that_is_no_status,
        sets_all_and_returns_the_status, nobody_listens,
        a_message_is_one_printable_line, a_long_message_is_cut,
        an_error_may_quote_itself,       printable_copies_into_what_there_is,
    };
    Suite *s = suite_create("error");
    TCase *tc = tcase_create("error");
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
