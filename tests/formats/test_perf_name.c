/* test_perf_name.c: names in a runtime's own files, compared with the names of methods. */
#include <stdio.h>

#include "tests/support/check_main.h"
#include "formats/perf_name.h"
#include "util/text.h"

static bool is_of(const char *name, const char *il)
{
    /* In allocations of their length, for the sanitizer. */
    size_t length = strlen(name), il_length = strlen(il);
    char *name_copy = malloc(length + 1), *il_copy = malloc(il_length + 1);
    memmove(name_copy + 1, name, length);
    memmove(il_copy + 1, il, il_length);
    bool result = perf_name_is_of(name_copy + 1, length, il_copy + 1, il_length);
    free(name_copy);
    free(il_copy);
    return result;
}

#define X "void [A] N.T`1[System.__Canon]::M(int32)"

START_TEST(tiers_and_cold_parts)
{
    ck_assert(is_of(X, X));
    ck_assert(is_of(X "[Tier0]", X));
    ck_assert(is_of(X "[OptimizedTier1OSR]", X));
    ck_assert(is_of(X "[PreJIT]" X "[PreJit-cold]", X));
    static const char *const others[] = {
        "",
        "void",
        X "x",
        X "[",
        X "[]",
        X "[Tier1",
        X "[Tier 1]",
        X "[Tier1]x",
        (X X),
        X "[Tier1]" X,
        X "[Tier1][a]",
        X "[PreJIT]" X "[PreJit-cold]x",
        X "[PreJIT]void [A] N.T::M()[PreJit-cold]",
        X "\n",
        (" " X), /* one string: clang warns where a comma may have been forgotten */
        "Void [A] N.T`1[System.__Canon]::M(int32)",
        "void [A] N.T`1[System.__Canon]::M(int3",
    };
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        ck_assert_msg(!is_of(others[i], X), "%s", others[i]);
    ck_assert(is_of("", ""));
    ck_assert(is_of("[Tier1]", ""));
}
END_TEST

/* A perf map has a line for each symbol, so that names with newlines take several. */
START_TEST(lines_of_names)
{
    static const struct {
        const char *line, *il, *rest; /* NULL: it is not the line that the name has first, or the name has no more */
    } cases[] = {
        {"int32 [D] Ty", "int32 [D] Ty\\x0ape::me\\x0athod()", "pe::me\\x0athod()"},
        {"pe::me", "pe::me\\x0athod()", "thod()"},
        {"", "\\x0aM()", "M()"},
        {"a\\", "a\\\\\\x0ab", "b"}, /* a backslash, then a newline */
        {"a", "a\\\\x0ab", NULL},    /* a backslash, then `x0a` */
        {"a\\", "a\\\\x0ab", NULL},
        {"a", "a\\x0a\\x0a \\x09\\x0d\\x0ab\\x0a", "b\\x0a"}, /* empty lines are left out */
        {"a", "a\\x0a", ""},
        {"a", "a\\x0d\\x0ab", "b"},
        {"a \t", "a \\x09\\x0ab", "b"},
        {"a\x02", "a\\x02\\x0ab", "b"},
        {"int32 [D] T", "int32 [D] Ty\\x0ape::M()", NULL},
        {"int32 [D] Type", "int32 [D] Ty\\x0ape::M()", NULL},
        {"int32 [D] Ty[Tier0]", "int32 [D] Ty\\x0ape::M()", NULL},
        {"M()", "M()", NULL},
        {"", "", NULL},
        {"a", "a\\", NULL},
        {"a", "a\\x0", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        size_t length = strlen(cases[i].il);
        const char *end = cases[i].il + length;
        const char *rest = perf_name_take_line(cases[i].line, strlen(cases[i].line), cases[i].il, length);
        ck_assert_msg((rest != NULL) == (cases[i].rest != NULL), "%zu", i);
        if (rest)
            ck_assert_str_eq(rest, cases[i].rest);
        if (rest)
            ck_assert_ptr_eq(rest + strlen(rest), end);
    }
    ck_assert(perf_name_is_whole("M()", 3));
    ck_assert(perf_name_is_whole("M()[Tier1]", 10));
    ck_assert(!perf_name_is_whole("M(", 2));
    ck_assert(!perf_name_is_whole("", 0));
}
END_TEST

/* The file has the characters that CDACQ_NAMES_IL escapes as they are. */
START_TEST(escapes)
{
    static const char *const plain[] = {"a",    "\\",   "\\\\",   "\x01",         "\xc3\xa4",  "\xf0\x9f\x98\x80",
                                        "\xff", "\x7f", "\\\x01", "\xe2\x80\xae", "x\\y\\\\z", "\xc3"};
    for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
        struct text il = {0};
        char name[64];
        snprintf(name, sizeof name, "void [A] T::%s(string)[Tier1]", plain[i]);
        text_puts(&il, "void [A] T::");
        text_escape(&il, plain[i], strlen(plain[i]));
        text_puts(&il, "(string)");
        ck_assert_msg(is_of(name, il.data), "%s", il.data);
        name[12]++;
        ck_assert(!is_of(name, il.data));
        text_deinit(&il);
    }
    /* In type names both have the runtime's backslashes. */
    ck_assert(is_of("void [A] A\\+B\\\\C::M()", "void [A] A\\+B\\\\C::M()"));
    ck_assert(!is_of("void [A] A\\\\\\B::M()", "void [A] A\\B::M()"));
    ck_assert(!is_of("A\\", "A"));
    ck_assert(!is_of("A", "A\\\\"));
}
END_TEST

START_TEST(stubs)
{
    static const struct {
        const char *name;
        bool is_stub;
    } names[] = {{"stub GenerateLookupStub<GenerateLookupStub>", true},
                 {"stub<1> AllocateTemporaryEntryPoints<PRECODE_STUB>", true},
                 {"stub<123456789> x", true},
                 {"stub<> x", true},
                 {"stub ", true},
                 {"stub", false},
                 {"stub<1>", false},
                 {"stub<1", false},
                 {"stub<", false},
                 {"stub<a> x", false},
                 {"stubs x", false},
                 {"Stub x", false},
                 {"", false},
                 {"void [A] stub ::M()", false}};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        size_t length = strlen(names[i].name);
        char *copy = malloc(length + 1);
        memcpy(copy + 1, names[i].name, length);
        ck_assert_msg(perf_name_is_stub(copy + 1, length) == names[i].is_stub, "%s", names[i].name);
        free(copy);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("perf_name");
    TCase *tc = tcase_create("names");
    tcase_add_test(tc, tiers_and_cold_parts);
    tcase_add_test(tc, lines_of_names);
    tcase_add_test(tc, escapes);
    tcase_add_test(tc, stubs);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
