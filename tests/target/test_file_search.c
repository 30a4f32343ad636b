/* test_file_search.c: the steps of a search: paths are formed and bounded, and each file is considered once. */
#include "target/file_search.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

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
static struct work work;
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
    work = (struct work){0};
    search = (struct search){.files = {.policy = &policy, .work = &work, .consider = consider}};
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
    ck_assert(!file_search_at(&search.files, &file_root_machine, "%s/%c/%s", test_dir(), 'a', "none"));
    ck_assert(!file_search_at(&search.files, &file_root_machine, "%s/%c", test_dir(), 'a'));
    ck_assert_uint_eq(search.considered, 0);
    ck_assert(!file_search_at(&search.files, &file_root_machine, "%s/%c/%s", test_dir(), 'a', "no"));
    ck_assert_uint_eq(search.considered, 1);
    ck_assert(file_search_at(&search.files, &file_root_machine, "%s/%c/%s", test_dir(), 'a', "yes"));
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
    ck_assert(file_search_at(&search.files, &file_root_machine, "%s/%s", test_dir(), name));
    file_candidate_close(&search.kept);
    ck_assert(!file_search_at(&search.files, &file_root_machine, "%s/%s%s", test_dir(), name, "x"));
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

/* A file whose first letter is the wanted one is the right one; what is known of a file is its second letter. */
static bool excludes(struct file_search *files, const char *path, const struct file_tag *tag)
{
    (void)files;
    (void)path;
    return file_tag_differs(tag, FILE_TAG_PDB, "y", 1);
}

static bool consider_and_tag(struct file_search *files, const char *path, struct file_candidate *candidate)
{
    ck_assert_uint_eq(candidate->tag.size, candidate->size);
    file_tag_set(&candidate->tag, FILE_TAG_PDB, candidate->bytes + 1, (size_t)candidate->size - 1);
    return consider(files, path, candidate);
}

START_TEST(what_is_known_to_be_another_file_is_not_opened_again)
{
    test_file("modules/a/name", "Nx", 2);
    test_file("modules/b/name", "Ny", 2);
    test_file("modules/c/name", "N", 1); /* nothing is known of it */
    test_file("modules/d/name", "Yz", 2);
    search.files.consider = consider_and_tag;
    ck_assert(file_search_named(&search.files, 0, "name"));
    ck_assert_uint_eq(search.considered, 4);
    file_candidate_close(&search.kept);
    search.files.excludes = excludes;
    ck_assert(!file_search_named(&search.files, 0, "name"));
    ck_assert_uint_eq(search.considered, 4 + 2);
}
END_TEST

START_TEST(files_are_work)
{
    test_file("modules/a/name", "N", 1);
    test_file("modules/b/name", "N", 1);
    work_set(&work, 2 * WORK_OF_AN_ENTRY + WORK_OF_A_PATH + WORK_OF_A_FILE, 0, 0);
    ck_assert(!file_search_named(&search.files, 0, "name"));
    ck_assert_uint_eq(search.considered, 1);
    ck_assert_uint_eq(work_left(&work), 0);
    ck_assert(!file_search_at(&search.files, &file_root_machine, "%s/modules/b/name", test_dir()));
    ck_assert_uint_eq(search.considered, 1);
    work_set(&work, WORK_OF_A_PATH, 0, 0);
    work_begin_anew(&work);
    ck_assert(!file_search_at(&search.files, &file_root_machine, "%s/none", test_dir()));
    ck_assert_uint_eq(work_left(&work), 0);
}
END_TEST

static const char *answer;

static bool find(const struct cdacq_need *need, char *path, size_t size, void *context)
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
    struct file_root root = {.fd = -1, .outside = (char *)(uintptr_t) "/jail"};
    const struct target process = {.kind = CDACQ_TARGET_PROCESS, .pid = INT32_MAX, .own_root = &root},
                        core = {.kind = CDACQ_TARGET_CORE, .pid = 5}, refused = {.kind = CDACQ_TARGET_PROCESS};
    ck_assert_ptr_eq(file_search_own_root(&process), &root);
    ck_assert_str_eq(file_search_own_path(&process, "/jail/x"), "/x");
    ck_assert_str_eq(file_search_own_path(&process, "/jailx"), "/jailx");
    ck_assert_ptr_eq(file_search_own_root(&core), &file_root_machine);
    ck_assert_str_eq(file_search_own_path(&core, "/jail/x"), "/jail/x");
    ck_assert_ptr_null(file_search_own_root(&refused));
    ck_assert(!file_search_at(&search.files, file_search_own_root(&refused), "%s", test_dir()));
}
END_TEST

/* An absolute link below a sysroot leads to a file below it; one in a module directory, to where the user made it. */
START_TEST(links_below_roots)
{
    static char sysroot[256], *sysroots[] = {sysroot, NULL};
    snprintf(sysroot, sizeof sysroot, "%s/sysroot", test_dir());
    policy.sysroots = sysroots;
    test_file("sysroot/real", "Y", 1);
    test_file("outside", "N", 1);
    test_file("modules/x", "N", 1);
    ck_assert_int_eq(symlink("/real", test_path("sysroot/absolute")), 0);
    ck_assert_int_eq(symlink("../../../../../../real", test_path("sysroot/up")), 0);
    ck_assert_int_eq(symlink(test_path("outside"), test_path("sysroot/out")), 0);
    ck_assert_int_eq(symlink("../outside", test_path("modules/out")), 0);
    const struct file_root *root = file_policy_sysroot(&policy, 0);
    ck_assert(!file_search_at(&search.files, root, "/out"));
    ck_assert_uint_eq(search.considered, 0);
    ck_assert(file_search_at(&search.files, root, "/absolute"));
    ck_assert_str_eq(search.path, test_path("sysroot/absolute"));
    file_candidate_close(&search.kept);
    ck_assert(file_search_at(&search.files, root, "/up"));
    ck_assert(!file_search_named(&search.files, 0, "out"));
    ck_assert_uint_eq(search.considered, 3);
    ck_assert_str_eq(search.path, test_path("modules/out"));
}
END_TEST

/* What was compared is what is opened again. */
START_TEST(a_candidate_that_was_replaced)
{
    struct stat st;
    char path[256];
    snprintf(path, sizeof path, "%s", test_file("y", "Y", 1));
    ck_assert(file_search_at(&search.files, &file_root_machine, "%s", path));
    int fd = file_candidate_reopen(&search.kept, path, &st);
    ck_assert_int_ge(fd, 0);
    ck_assert_uint_eq(st.st_ino, search.kept.inode);
    close(fd);
    test_file("other", "Y", 1);
    ck_assert_int_eq(rename(path, test_path("kept")), 0);
    ck_assert_int_eq(file_candidate_reopen(&search.kept, path, &st), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(symlink("other", path), 0);
    ck_assert_int_eq(file_candidate_reopen(&search.kept, path, &st), -1);
    ck_assert_int_eq(errno, ESTALE);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(file_candidate_reopen(&search.kept, path, &st), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(rename(test_path("kept"), path), 0);
    usleep(20000); /* the clock of files has steps */
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert_int_eq(file_candidate_reopen(&search.kept, path, &st), -1);
    ck_assert_int_eq(errno, ESTALE);
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
    tcase_add_test(tcase, what_is_known_to_be_another_file_is_not_opened_again);
    tcase_add_test(tcase, files_are_work);
    tcase_add_test(tcase, the_opener_is_asked);
    tcase_add_test(tcase, a_process_has_a_root_of_its_own);
    tcase_add_test(tcase, links_below_roots);
    tcase_add_test(tcase, a_candidate_that_was_replaced);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
