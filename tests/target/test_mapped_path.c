#include "target/mapped_path.h"

#include "tests/support/check_main.h"

START_TEST(memory_that_the_kernel_names_is_told_from_files)
{
    static const char *const memory[] = {"/memfd:doublemapper (deleted)",
                                         "/memfd:x",
                                         "/dev/zero (deleted)",
                                         "/dev/zero",
                                         "/SYSV00000000 (deleted)",
                                         "/SYSV0001e240",
                                         "/dev/shm/doublemapper_1234 (deleted)"};
    static const char *const others[] = {"/app/memfd:x",          "/app/lib.so (deleted)",
                                         "/dev/shm/lib.so",       "/dev/zero/x",
                                         "/dev/zeroes (deleted)", "/dev/zero (deleted) (deleted)",
                                         "/SYSV0000/x.so",        "/SYSV0000000g (deleted)",
                                         "/SYSV00000000/x",       ""};
    for (size_t i = 0; i < ARRAY_SIZE(memory); i++)
        ck_assert(mapped_path_is_memory(memory[i]));
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        ck_assert(!mapped_path_is_memory(others[i]));
}
END_TEST

START_TEST(only_the_end_of_a_path_marks_a_deleted_file)
{
    static const char *const deleted[] = {"/app/lib.so (deleted)", "/app/x (deleted) (deleted)",
                                          "/dev/shm/lib.so (deleted)", "/app/ (deleted) (deleted)"};
    static const char *const others[] = {"/app/lib.so",
                                         "/app (deleted)/lib.so",
                                         "/app/lib.so (Deleted)",
                                         "/app/lib.so(deleted)",
                                         " (deleted)",
                                         "",
                                         "/memfd:x (deleted)",
                                         "/SYSV00000000 (deleted)"};
    for (size_t i = 0; i < ARRAY_SIZE(deleted); i++) {
        ck_assert(mapped_path_is_deleted(deleted[i]));
        ck_assert_uint_eq(mapped_path_length(deleted[i]), strlen(deleted[i]) - strlen(" (deleted)"));
    }
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        ck_assert(!mapped_path_is_deleted(others[i]));
        ck_assert_uint_eq(mapped_path_length(others[i]), strlen(others[i]));
    }
}
END_TEST

START_TEST(a_path_stays_that_of_a_file_that_is_deleted)
{
    ck_assert(mapped_path_is_still("/app/lib.so", "/app/lib.so"));
    ck_assert(mapped_path_is_still("/app/lib.so (deleted)", "/app/lib.so"));
    ck_assert(mapped_path_is_still("/app/lib.so (deleted)", "/app/lib.so (deleted)"));
    ck_assert(!mapped_path_is_still("/app/lib.so", "/app/lib.so (deleted)"));
    ck_assert(!mapped_path_is_still("/app/lib.so.1", "/app/lib.so"));
    ck_assert(!mapped_path_is_still("/app/lib", "/app/lib.so"));
}
END_TEST

START_TEST(newlines_are_unescaped)
{
    static const struct {
        const char *text, *path;
    } cases[] = {{"/a\\012b", "/a\nb"},
                 {"\\012\\012", "\n\n"},
                 {"/a\\0123", "/a\n3"},
                 {"/a\\01", "/a\\01"},
                 {"/a\\\\012", "/a\\\n"},
                 {"/a\\040b", "/a\\040b"},
                 {"/a b\\012 (deleted)", "/a b\n (deleted)"},
                 {"", ""}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char path[64];
        strcpy(path, cases[i].text);
        mapped_path_unescape(path);
        ck_assert_str_eq(path, cases[i].path);
    }
}
END_TEST

START_TEST(only_a_whole_path_to_a_place_for_files_is_one)
{
    static const char *const files[] = {"/app/lib.so", "/a",       "/app/.hidden/..so",
                                        "/devices/x",  "/process", "/dev/shm/x"};
    static const char *const others[] = {"/dev/zero", "/proc/1/exe",   "/sys/x", "/memfd:x",
                                         "/app//x",   "/app/../dev/x", "/./x",   "/app/",
                                         "lib.so",    "[vdso]",        "",       "/dev/shm/doublemapper_1"};
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        ck_assert(mapped_path_is_file(files[i]));
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        ck_assert(!mapped_path_is_file(others[i]));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("mapped_path");
    TCase *tc = tcase_create("mapped_path");
    tcase_add_test(tc, memory_that_the_kernel_names_is_told_from_files);
    tcase_add_test(tc, only_the_end_of_a_path_marks_a_deleted_file);
    tcase_add_test(tc, a_path_stays_that_of_a_file_that_is_deleted);
    tcase_add_test(tc, newlines_are_unescaped);
    tcase_add_test(tc, only_a_whole_path_to_a_place_for_files_is_one);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
