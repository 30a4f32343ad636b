#include "target/mapped_path.h"

#include "tests/support/check_main.h"

START_TEST(memory_that_the_kernel_names_is_told_from_files)
{
    static const char *const memory[] = {"/memfd:doublemapper (deleted)", "/dev/zero (deleted)",
                                         "/SYSV00000000 (deleted)"};
    static const char *const others[] = {"/app/memfd:x", "/app/lib.so (deleted)", "/dev/shm/lib.so", ""};
    for (size_t i = 0; i < ARRAY_SIZE(memory); i++)
        ck_assert(mapped_path_is_memory(memory[i]));
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        ck_assert(!mapped_path_is_memory(others[i]));
}
END_TEST

START_TEST(only_the_end_of_a_path_marks_a_deleted_file)
{
    static const char *const deleted[] = {"/app/lib.so (deleted)", "/memfd:x (deleted)", "/app/x (deleted) (deleted)"};
    static const char *const others[] = {
        "/app/lib.so", "/app (deleted)/lib.so", "/app/lib.so (Deleted)", "/app/lib.so(deleted)", " (deleted)", ""};
    for (size_t i = 0; i < ARRAY_SIZE(deleted); i++)
        ck_assert(mapped_path_is_deleted(deleted[i]));
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        ck_assert(!mapped_path_is_deleted(others[i]));
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

START_TEST(only_a_whole_path_to_a_place_for_files_is_one)
{
    static const char *const files[] = {"/app/lib.so", "/a", "/app/.hidden/..so", "/devices/x", "/process"};
    static const char *const others[] = {
        "/dev/shm/x", "/proc/1/exe", "/sys/x", "/memfd:x", "/app/lib.so (deleted)", "/app//x", "/app/../dev/x", "/./x",
        "/app/",      "lib.so",      "[vdso]", ""};
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
    tcase_add_test(tc, only_a_whole_path_to_a_place_for_files_is_one);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
