/*
 * test_report_signature.c: the names in a signature, which a core may have made up.
 */
#include "src/cli/report_signature.c"
#include "tests/support/check_main.h"

void out_of_memory(void)
{
    ck_abort_msg("out of memory");
    abort();
}

void output_literal(struct output *out, const char *text)
{
    (void)out, (void)text;
}

void output_note(struct output *out, const char *text)
{
    (void)out, (void)text;
}

void output_escaped(struct output *out, const char *text, size_t length, enum escape_form form)
{
    (void)out, (void)text, (void)length, (void)form;
}

const char *report_cause_text(const struct report *report, char text[SIGNAL_TEXT_SIZE])
{
    (void)report, (void)text;
    return "";
}

static const struct {
    const char *name, *expected;
} symbols[] =
    {
        {"memset", "memset"},
        {"__memset_avx512_unaligned", "memset"},
        {"__memmove_evex_unaligned_erms", "memmove"},
        {"__libc_start_main@@GLIBC_2.34", "__libc_start_main"},
        {"__avx2", "__avx2"},
        {"_sse", "_sse"},
        {"_avx_sse", "_avx_sse"},
        {"@", ""},
        {"", ""},
},
  methods[] = {
      {"Demo.Cart.Add(int)", "Demo.Cart.Add"},
      {"Demo.Box<System.String>.Get()", "Demo.Box.Get"},
      {"Demo.Program.<Run>b__3_0(int)", "Demo.Program.<Run>b__"},
      {"<", "<"},
      {"A<", "A"},
      {"A.<", "A.<"},
      {">]", ">]"},
      {"(", ""},
};

START_TEST(names_of_symbols)
{
    struct text text = {0};
    form_symbol(&text, symbols[_i].name);
    ck_assert(!text.broken);
    ck_assert_str_eq(text.data, symbols[_i].expected);
    text_deinit(&text);
}
END_TEST

START_TEST(names_of_methods)
{
    struct text text = {0};
    form_name(&text, methods[_i].name, strlen(methods[_i].name));
    ck_assert(!text.broken);
    ck_assert_str_eq(text.data ? text.data : "", methods[_i].expected);
    text_deinit(&text);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("report_signature");
    TCase *tcase = tcase_create("names");
    tcase_add_loop_test(tcase, names_of_symbols, 0, ARRAY_SIZE(symbols));
    tcase_add_loop_test(tcase, names_of_methods, 0, ARRAY_SIZE(methods));
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
