/* test_file_search.c: the steps of a search: paths are formed and bounded, and each file is considered once. */
#include "target/file_search.h"

#include <stdio.h>

#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"

/* Ends with a file that begins with 'Y' and keeps it. */
struct search {
    struct file_search files;
    struct file_candidate kept;
    char path[256]; /* of the last candidate */
    unsigned considered;
};

static struct file_policy policy;
static struct search search;
static char modules[256], *module_paths[2];

static bool consider(struct file_search *files, const char *path, struct file_candidate *candidate)
{
    struct search *own = (struct search *)files;
    own->considered++;
    snprintf(own->path, sizeof own->path, "%s", path);
    if (candidate->bytes[0] != 'Y')
        return false;
    own->kept = file_candidate_take(candidate);
    ck_assert_ptr_null(candidate->bytes);
    return true;
}

static void setup(void)
{
    snprintf(modules, sizeof modules, "%s/modules", test_dir());
    module_paths[0] = modules;
    policy = (struct file_policy){.module_paths = module_paths, .pread = true}; /* what is not closed is a leak */
    search = (struct search){.files = {.policy = &policy, .consider = consider}};
}

static void teardown(void)
{
    file_candidate_close(&search.kept);
    file_policy_deinit(&policy);
    test_dir_remove();
}

START_TEST(a_file_that_is_there_is_considered)
{
    test_file("a/no", "N", 1);
    test_file("a/yes", "Y", 1);
    ck_assert(!file_search_at(&search.files, "%s/%c/%s", test_dir(), 'a', "none"));
    ck_assert(!file_search_at(&search.files, "%s/%c", test_dir(), 'a'));
    ck_assert_uint_eq(search.considered, 0);
    ck_assert(!file_search_at(&search.files, "%s/%c/%s", test_dir(), 'a', "no"));
    ck_assert_uint_eq(search.considered, 1);
    ck_assert(file_search_at(&search.files, "%s/%c/%s", test_dir(), 'a', "yes"));
    ck_assert_str_eq(search.path, test_path("a/yes"));
    ck_assert_mem_eq(search.kept.bytes, "Y", 1);
}
END_TEST

/* A path that does not fit is no other path. */
START_TEST(a_path_is_not_cut)
{
    char name[4096];
    test_file("y", "Y", 1);
    int room = 4095 - (int)strlen(test_dir()) - 1;
    memset(name, '/', sizeof name);
    name[room - 1] = 'y';
    name[room] = '\0';
    ck_assert(file_search_at(&search.files, "%s/%s", test_dir(), name));
    file_candidate_close(&search.kept);
    ck_assert(!file_search_at(&search.files, "%s/%s%s", test_dir(), name, "x"));
    ck_assert_uint_eq(search.considered, 1);
}
END_TEST

START_TEST(every_file_of_a_name_is_considered)
{
    test_file("modules/a/name", "N", 1);
    test_file("modules/b/name", "Y", 1);
    test_file("modules/c/name", "N", 1);
    test_file("modules/other", "Y", 1);
    ck_assert(file_search_named(&search.files, 0, "name"));
    ck_assert_str_eq(search.path, test_path("modules/b/name"));
    ck_assert_uint_eq(search.considered, 2);
    ck_assert(!file_search_named(&search.files, 0, "none"));
    ck_assert_uint_eq(search.considered, 2);
}
END_TEST

static const char *answer;

static bool find(void *context, const struct cdacq_need *need, char *path, size_t size)
{
    ck_assert_ptr_eq(context, &answer);
    ck_assert_str_eq(need->path, "wanted");
    if (!answer)
        memset(path, 'x', size); /* a callback that does not end the path */
    else
        snprintf(path, size, "%s", answer);
    return !answer || answer[0];
}

START_TEST(the_opener_is_asked)
{
    const struct cdacq_need need = {.size = sizeof need, .path = "wanted"};
    answer = test_file("y", "Y", 1);
    ck_assert(!file_search_ask(&search.files, &need));
    policy.find = find;
    policy.find_context = &answer;
    ck_assert(file_search_ask(&search.files, &need));
    ck_assert_str_eq(search.path, answer);
    answer = NULL;
    ck_assert(!file_search_ask(&search.files, &need));
    answer = "";
    ck_assert(!file_search_ask(&search.files, &need));
    ck_assert_uint_eq(search.considered, 1);
}
END_TEST

START_TEST(a_process_has_a_root_of_its_own)
{
    char root[32];
    file_search_own_root(&(struct target){.kind = CDACQ_TARGET_PROCESS, .pid = INT32_MAX}, root);
    ck_assert_str_eq(root, "/proc/2147483647/root");
    file_search_own_root(&(struct target){.kind = CDACQ_TARGET_CORE, .pid = 5}, root);
    ck_assert_str_eq(root, "");
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("file_search");
    TCase *tcase = tcase_create("file_search");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_file_that_is_there_is_considered);
    tcase_add_test(tcase, a_path_is_not_cut);
    tcase_add_test(tcase, every_file_of_a_name_is_considered);
    tcase_add_test(tcase, the_opener_is_asked);
    tcase_add_test(tcase, a_process_has_a_root_of_its_own);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
