/*
 * test_answers.c: lines of text and JSON about code that only newer runtimes have.
 */
#include <stdarg.h>
#include <stdio.h>

#include "src/cli/base/answers.c"
#include "src/cli/base/json_writer.c"
#include "src/cli/base/output.c"
#include "src/cli/base/shown_strings.c"
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

void out_of_memory(void)
{
    ck_abort_msg("out of memory");
    abort();
}

void *allocate(size_t size)
{
    void *data = calloc(1, size);
    ck_assert_ptr_nonnull(data);
    return data;
}

void *reallocate(void *data, size_t size)
{
    data = realloc(data, size);
    ck_assert_ptr_nonnull(data);
    return data;
}

/* What `write` writes of a method, in text or JSON. The caller frees it. */
static char *written(void (*write)(struct answers *answers, const struct cdacq_method *method), bool json,
                     const struct cdacq_method *method)
{
    struct output out;
    struct answers answers;
    output_open_memory(&out);
    answers_init(&answers, &out, json);
    write(&answers, method);
    char *text = allocate(out.length + 1);
    memcpy(text, out.data, out.length);
    answers_deinit(&answers);
    output_abandon(&out);
    return text;
}

/* Text and JSON tell a thunk from the method that it stands for. Of code that is not prepared, that is not known. */
START_TEST(async_thunks)
{
    struct cdacq_method method = {.size = sizeof method,
                                  .ip = 0x1010,
                                  .answer = CDACQ_ANSWER_MANAGED,
                                  .kind = CDACQ_CODE_JITTED,
                                  .name = "Ns.C.Run(int)",
                                  .name_length = 13,
                                  .module = "/app/own.dll",
                                  .method_desc = _i == 2 ? 0 : 0x2000,
                                  .token = 0x06000001,
                                  .code_start = 0x1000,
                                  .code_size = 0x40,
                                  .offset = 0x10,
                                  .il_offset = CDACQ_OFFSET_UNKNOWN,
                                  .module_verified = true,
                                  .async_thunk = _i == 1};
    static const char *const brackets[] = {"[jit]", "[jit async thunk]", "[jit]"};
    static const char *const values[] = {"false", "true", "null"};
    char expected[128];
    char *text = written(answers_write, false, &method), *json = written(answers_write, true, &method);
    char *listed = written(answers_write_method, false, &method),
         *member = written(answers_write_method, true, &method);
    snprintf(expected, sizeof expected, "0x1010 Ns.C.Run(int) +0x10 %s (own.dll)\n", brackets[_i]);
    ck_assert_str_eq(text, expected);
    snprintf(expected, sizeof expected, "0x1000 +0x40 Ns.C.Run(int) %s (own.dll)\n", brackets[_i]);
    ck_assert_str_eq(listed, expected);
    snprintf(expected, sizeof expected, ",\"source_url\":null,\"async_thunk\":%s}\n", values[_i]);
    ck_assert_ptr_nonnull(strstr(json, expected));
    snprintf(expected, sizeof expected, ",\"error\":null,\"async_thunk\":%s}\n", values[_i]);
    ck_assert_ptr_nonnull(strstr(member, expected));
    free(text);
    free(json);
    free(listed);
    free(member);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("answers");
    TCase *tcase = tcase_create("answers");
    tcase_add_loop_test(tcase, async_thunks, 0, 3);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
