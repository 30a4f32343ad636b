#include "target/mapped_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"

static struct target target;
static struct file_policy policy;
static char *sysroots[4], *module_paths[4];

/* ---- The comparison: its result is the file's first byte. ---- */

static int asked;

static enum file_match compare_by_content(struct target *of, const struct mapped_file *file,
                                          struct file_candidate *candidate, char *why, size_t why_size)
{
    ck_assert_ptr_eq(of, &target);
    ck_assert_ptr_eq(file->target, of);
    __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
    file_candidate_add_constant(candidate, 0, candidate->size, FILE_EXTENT_READ_ONLY);
    switch (candidate->bytes[0]) {
    case 'C':
        return FILE_MATCHES;
    case 'U':
        return FILE_UNKNOWN;
    default:
        snprintf(why, why_size, "its first byte is '%c'", candidate->bytes[0]);
        return FILE_DIFFERS;
    }
}

static void setup(void)
{
    target = (struct target){.elf_machine = EM_X86_64};
    policy = (struct file_policy){.compare = compare_by_content};
    memset(sysroots, 0, sizeof sysroots);
    memset(module_paths, 0, sizeof module_paths);
    pthread_mutex_init(&policy.lock, NULL);
    asked = 0;
}

static void teardown(void)
{
    mapped_files_deinit(&target);
    target_deinit(&target);
    file_policy_deinit(&policy);
    pthread_mutex_destroy(&policy.lock);
    test_dir_remove();
}

static struct mapped_file *get(const char *path)
{
    struct mapped_file *file = mapped_files_get(&target, &policy, path);
    ck_assert_ptr_nonnull(file);
    return file;
}

static void use_sysroots(size_t count)
{
    static char paths[3][128];
    for (size_t i = 0; i < count; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/root%zu", test_dir(), i);
        sysroots[i] = paths[i];
    }
    policy.sysroots = sysroots;
}

static void use_module_paths(size_t count)
{
    static char paths[3][128];
    for (size_t i = 0; i < count; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/modules%zu", test_dir(), i);
        module_paths[i] = paths[i];
    }
    policy.module_paths = module_paths;
}

/* ---- The list ---- */

START_TEST(one_record_for_each_path)
{
    struct mapped_file *a = get("/a"), *b = get("/b");
    ck_assert_ptr_ne(a, b);
    ck_assert_ptr_eq(get("/a"), a);
    ck_assert_ptr_eq(get("/b"), b);
    ck_assert_str_eq(a->path, "/a");
    ck_assert_ptr_eq(a->target, &target);
    ck_assert_ptr_null(mapped_file_problem(a)); /* not searched yet */
    size_t count = 0;
    for (const struct mapped_file *file = target.files; file; file = file->next)
        count++;
    ck_assert_uint_eq(count, 2);
}
END_TEST

START_TEST(the_number_of_files_is_capped)
{
    char path[32];
    for (int i = 0; i < FILE_MAX; i++) {
        snprintf(path, sizeof path, "/lib/%d.so", i);
        if (!mapped_files_get(&target, &policy, path))
            ck_abort_msg("file %d", i);
    }
    ck_assert_ptr_null(mapped_files_get(&target, &policy, "/one/more"));
    ck_assert_str_eq(get("/lib/0.so")->path, "/lib/0.so"); /* those that are there are found */
    ck_assert_str_eq(get("/lib/8191.so")->path, "/lib/8191.so");
    /* A mapping of a file, and all others are not mapped any more. */
    ck_assert(mapped_files_index(&target));
    ck_assert_uint_eq(target.unmapped_file_count, FILE_MAX);
    struct mapping mapping = {.begin = 0x1000, .end = 0x2000, .file = get("/lib/5.so")};
    target.mappings = &mapping;
    target.mapping_count = 1;
    ck_assert(mapped_files_index(&target));
    target.mappings = NULL;
    target.mapping_count = 0;
    ck_assert_uint_eq(target.unmapped_file_count, FILE_MAX - 1);
    for (int i = 1; i < FILE_MAX; i++) {
        snprintf(path, sizeof path, "/other/%d.so", i);
        if (!mapped_files_get(&target, &policy, path))
            ck_abort_msg("file %d", i);
    }
    ck_assert_ptr_null(mapped_files_get(&target, &policy, "/one/more"));
    ck_assert_str_eq(get("/lib/0.so")->path, "/lib/0.so");
    ck_assert_ptr_null(mapped_files_replace(&target, &policy, "/lib/0.so"));
}
END_TEST

START_TEST(no_policy_no_file)
{
    const char *path = test_file("lib.so", "C", 1);
    struct mapped_file *file = mapped_files_get(&target, NULL, path);
    ck_assert(!mapped_file_resolve(file));
    ck_assert_ptr_null(mapped_file_problem(file));
}
END_TEST

/* ---- Where files are looked for ---- */

START_TEST(at_the_targets_own_path)
{
    struct mapped_file *file = get(test_file("lib.so", "Cx", 2));
    ck_assert(mapped_file_resolve(file));
    ck_assert(file->verified);
    ck_assert_uint_eq(file->content.size, 2);
    ck_assert_mem_eq(file->content.bytes, "Cx", 2);
    ck_assert_ptr_null(mapped_file_problem(file));
    ck_assert(mapped_file_resolve(file));
    ck_assert_int_eq(asked, 1);
}
END_TEST

START_TEST(sysroots_come_first_then_module_paths_then_the_path)
{
    use_sysroots(2);
    use_module_paths(2);
    char own[200], expected[256];
    snprintf(own, sizeof own, "%s", test_file("app/lib.so", "C5", 2));
    /* Each round removes what was found in the one before. */
    snprintf(expected, sizeof expected, "root0%s", own);
    test_file(expected, "C1", 2);
    snprintf(expected, sizeof expected, "root1%s", own);
    test_file(expected, "C2", 2);
    test_file("modules0/lib.so", "C3", 2);
    test_file("modules1/lib.so", "C4", 2);
    for (char which = '1'; which <= '5'; which++) {
        struct mapped_file *file = get(own);
        ck_assert(mapped_file_resolve(file));
        ck_assert_int_eq(file->content.bytes[1], which);
        ck_assert_int_eq(remove(file->local_path), 0);
        mapped_files_deinit(&target);
        target_deinit(&target);
        target = (struct target){.elf_machine = EM_X86_64};
    }
    ck_assert(!mapped_file_resolve(get(own)));
}
END_TEST

START_TEST(a_confirmed_file_is_better_than_an_earlier_unknown_one)
{
    use_sysroots(2);
    test_file("root0/lib.so", "U1", 2);
    test_file("root1/lib.so", "C2", 2);
    struct mapped_file *file = get("/lib.so");
    ck_assert(mapped_file_resolve(file));
    ck_assert(file->verified);
    ck_assert_str_eq(file->local_path, test_path("root1/lib.so"));
    ck_assert_mem_eq(file->content.bytes, "C2", 2);
    ck_assert_int_eq(asked, 2);
}
END_TEST

START_TEST(the_first_of_equals_is_taken)
{
    use_sysroots(3);
    test_file("root0/lib.so", "X0", 2);
    test_file("root1/lib.so", "U1", 2);
    test_file("root2/lib.so", "U2", 2);
    struct mapped_file *file = get("/lib.so");
    ck_assert(mapped_file_resolve(file));
    ck_assert(!file->verified);
    ck_assert_mem_eq(file->content.bytes, "U1", 2);
    ck_assert_int_eq(asked, 3); /* something better could still have come */
    ck_assert_ptr_null(mapped_file_problem(file));
}
END_TEST

START_TEST(a_contradicted_file_does_not_end_the_search)
{
    use_sysroots(1);
    use_module_paths(1);
    test_file("root0/app/lib.so", "X", 1);
    test_file("modules0/lib.so", "C", 1);
    struct mapped_file *file = get("/app/lib.so");
    ck_assert(mapped_file_resolve(file));
    ck_assert_str_eq(file->local_path, test_path("modules0/lib.so"));
}
END_TEST

START_TEST(anywhere_below_a_module_path)
{
    use_module_paths(2);
    test_file("modules0/a/lib.so", "X", 1);
    test_file("modules0/b/c/lib.so/ABCDEF/lib.so", "X", 1); /* as on a symbol server */
    test_file("modules1/deep/er/lib.so", "U1", 2);
    test_file("modules1/publish/lib.so", "C2", 2);
    struct mapped_file *file = get("/app/lib.so");
    ck_assert(mapped_file_resolve(file));
    ck_assert(file->verified);
    ck_assert_str_eq(file->local_path, test_path("modules1/publish/lib.so"));
    ck_assert_int_eq(asked, 4);
    ck_assert(!mapped_file_resolve(get("/app/li.so")));
}
END_TEST

START_TEST(links_below_a_module_path)
{
    use_module_paths(1);
    test_file("elsewhere/real", "C", 1);
    test_file("modules0/x/y", "X", 1);
    ck_assert_int_eq(symlink(test_path("elsewhere/real"), test_path("modules0/x/linked.so")), 0);
    ck_assert_int_eq(symlink("..", test_path("modules0/x/cycle")), 0);
    ck_assert_int_eq(symlink("/dev/zero", test_path("modules0/x/device.so")), 0);
    ck_assert_int_eq(mkfifo(test_path("modules0/x/fifo.so"), 0644), 0);
    ck_assert(mapped_file_resolve(get("/a/linked.so")));
    ck_assert(!mapped_file_resolve(get("/a/device.so")));
    ck_assert(!mapped_file_resolve(get("/a/fifo.so")));
}
END_TEST

/* ---- By what the target states about a file ---- */

static struct file_identity identity;
static char *fetched_path;
static int fetches;

static void identify(struct target *of, const struct mapped_file *file, struct file_identity *ret)
{
    ck_assert_ptr_eq(of, &target);
    ck_assert_ptr_nonnull(file);
    *ret = identity;
}

static char *fetch(void *context, const char *path, const uint8_t *build_id, size_t build_id_size)
{
    ck_assert_ptr_null(context);
    ck_assert(strncmp(path, "/app/", 5) == 0);
    ck_assert_uint_eq(build_id_size, identity.build_id_size);
    ck_assert_mem_eq(build_id, identity.build_id, build_id_size);
    fetches++;
    return fetched_path ? strdup(fetched_path) : NULL;
}

static void set_build_id(size_t size)
{
    memset(&identity, 0, sizeof identity);
    for (size_t i = 0; i < size; i++)
        identity.build_id[i] = (uint8_t)(0xa1 + i);
    identity.build_id_size = size;
    policy.identify = identify;
    fetched_path = NULL;
    fetches = 0;
}

/*
 * Some mappings of three files, overlapping in their files, which no real process has; and the mappings recorded for
 * each file.
 */
START_TEST(mappings_by_file_and_offset)
{
    struct mapped_file *a = get("/a"), *b = get("/b"), *none = get("/none");
    const struct mapping mappings[] = {
        {.begin = 0x1000, .end = 0x2000, .offset = 0x3000, .file = a},
        {.begin = 0x2000, .end = 0x3000, .offset = 0, .file = b},
        {.begin = 0x4000, .end = 0x9000, .offset = 0x1000, .file = a},
        {.begin = 0xa000, .end = 0xb000, .offset = 0},
        {.begin = 0xb000, .end = 0xc000, .offset = 0x3000, .file = a},
    };
    target.mapping_count = ARRAY_SIZE(mappings);
    target.mappings = malloc(sizeof mappings);
    memcpy(target.mappings, mappings, sizeof mappings);
    ck_assert(mapped_files_index(&target));
    ck_assert_uint_eq(a->mapping_count, 3);
    ck_assert_ptr_eq(a->mappings[0], &target.mappings[2]);
    ck_assert_ptr_eq(a->mappings[1], &target.mappings[4]);
    ck_assert_ptr_eq(a->mappings[2], &target.mappings[0]);
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(a->mappings[i]->reach, 0x6000);
    ck_assert_uint_eq(a->begin, 0x1000);
    ck_assert_uint_eq(a->end, 0xc000);
    ck_assert_uint_eq(mapped_file_mappings_to(a, 0xfff), 0);
    ck_assert_uint_eq(mapped_file_mappings_to(a, 0x1000), 1);
    ck_assert_uint_eq(mapped_file_mappings_to(a, 0x2fff), 1);
    ck_assert_uint_eq(mapped_file_mappings_to(a, 0x3000), 3);
    ck_assert_uint_eq(mapped_file_mappings_to(a, UINT64_MAX), 3);
    ck_assert_uint_eq(b->mapping_count, 1);
    ck_assert_uint_eq(b->begin, 0x2000);
    ck_assert_uint_eq(b->end, 0x3000);
    ck_assert_uint_eq(mapped_file_mappings_to(none, 0), 0);
    ck_assert_uint_eq(none->end, 0);
}
END_TEST

START_TEST(is_identified_once)
{
    set_build_id(4);
    struct mapped_file *file = get("/app/lib.so");
    const struct file_identity *known = mapped_file_identity(file, identify);
    set_build_id(8);
    ck_assert_ptr_eq(mapped_file_identity(file, identify), known);
    ck_assert_uint_eq(known->build_id_size, 4);
    ck_assert_uint_eq(mapped_file_identity(get("/app/other.so"), identify)->build_id_size, 8);
}
END_TEST

START_TEST(by_build_id)
{
    static const char *const names[] = {"modules0/.build-id/a1/a2a3a4", "modules0/.build-id/a1/a2a3a4.debug",
                                        "modules0/store/a1a2a3a4"};
    set_build_id(4);
    use_module_paths(1);
    test_file(names[_i], "C", 1);
    struct mapped_file *file = get("/app/lib.so");
    ck_assert(mapped_file_resolve(file));
    ck_assert_str_eq(file->local_path, test_path(names[_i]));
}
END_TEST

START_TEST(build_ids_of_any_size)
{
    use_module_paths(1);
    test_file("modules0/x", "C", 1);
    static const size_t sizes[] = {0, 1, 2, 20, 63, 64};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        char path[32];
        set_build_id(sizes[i]);
        snprintf(path, sizeof path, "/app/%zu.so", i);
        ck_assert(!mapped_file_resolve(get(path)));
    }
}
END_TEST

START_TEST(over_the_network_last_and_only_if_wanted)
{
    char path[256];
    set_build_id(20);
    snprintf(path, sizeof path, "%s", test_file("cache/executable", "C", 1));
    ck_assert(!mapped_file_resolve(get("/app/a.so"))); /* not wanted */
    ck_assert_int_eq(fetches, 0);
    policy.fetch = fetch;
    ck_assert(!mapped_file_resolve(get("/app/b.so"))); /* wanted, not found */
    ck_assert_int_eq(fetches, 1);
    fetched_path = path;
    struct mapped_file *file = get("/app/c.so");
    ck_assert(mapped_file_resolve(file));
    ck_assert_str_eq(file->local_path, path);
    ck_assert_int_eq(fetches, 2);
    ck_assert(mapped_file_resolve(get(test_file("app/d.so", "C", 1)))); /* it is here */
    ck_assert_int_eq(fetches, 2);
    ck_assert(!mapped_file_resolve(get("/memfd:doublemapper (deleted)"))); /* never was a file */
    ck_assert_int_eq(fetches, 2);
    set_build_id(0);
    ck_assert(!mapped_file_resolve(get("/app/e.so"))); /* nothing to ask for */
    ck_assert_int_eq(fetches, 0);
    /* What comes is compared like any other file. */
    set_build_id(20);
    fetched_path = path;
    test_file("cache/executable", "X", 1);
    file = get("/app/f.so");
    ck_assert(!mapped_file_resolve(file));
    ck_assert_ptr_nonnull(strstr(mapped_file_problem(file), "its first byte is 'X'"));
}
END_TEST

/* The needs that were reported to the opener. */
static struct cdacq_need described;
static char described_build_id[64];

static void describe(const struct cdacq_need *need, char *text, size_t size, void *context)
{
    ++*(unsigned *)context;
    described = *need;
    snprintf(described_build_id, sizeof described_build_id, "%s", need->build_id ? need->build_id : "none");
    snprintf(text, size, ": ask %s", need->symbol_key ? "a symbol server" : "a colleague");
}

START_TEST(a_missing_file_is_reported_with_its_key)
{
    unsigned needs = 0;
    set_build_id(0);
    strcpy(identity.key, "lib.so/elf-buildid-00/lib.so");
    struct mapped_file *file = get("/app/lib.so");
    ck_assert(!mapped_file_resolve(file));
    ck_assert_str_eq(mapped_file_problem(file), "/app/lib.so is needed and was not found (symbol server key "
                                                "lib.so/elf-buildid-00/lib.so)");
    /* The opener says how its user can supply the file. */
    policy.describe = describe;
    policy.describe_context = &needs;
    set_build_id(20);
    strcpy(identity.key, "lib.so/elf-buildid-00/lib.so");
    strcpy(identity.text, "build-id 00");
    ck_assert(!mapped_file_resolve(file = get("/app/lib2.so")));
    ck_assert_str_eq(mapped_file_problem(file),
                     "/app/lib2.so is needed and was not found (build-id 00, symbol server key "
                     "lib.so/elf-buildid-00/lib.so): ask a symbol server");
    ck_assert_uint_eq(needs, 1);
    ck_assert_uint_eq(described.size, sizeof described);
    ck_assert_int_eq(described.kind, CDACQ_NEED_FILE);
    ck_assert_ptr_eq(described.path, file->path);
    ck_assert_uint_eq(strlen(described_build_id), 40);
    ck_assert(!mapped_file_resolve(file)); /* once for each file */
    ck_assert_uint_eq(needs, 1);
    identity.key[0] = '\0';
    set_build_id(0);
    ck_assert(!mapped_file_resolve(file = get("/app/lib3.so")));
    ck_assert_str_eq(mapped_file_problem(file), "/app/lib3.so is needed and was not found: ask a colleague");
    ck_assert_str_eq(described_build_id, "none");
    /* A key is shown escaped, and as a whole or not at all. */
    policy.describe = NULL;
    strcpy(identity.key, "a\\b.dll/1/a\\b.dll");
    strcpy(identity.text, "time stamp 1");
    ck_assert(!mapped_file_resolve(file = get("/app/a\\b.dll")));
    ck_assert_str_eq(mapped_file_problem(file),
                     "/app/a\\\\b.dll is needed and was not found (time stamp 1, symbol server "
                     "key a\\\\b.dll/1/a\\\\b.dll)");
    memset(identity.key, 'k', 300);
    identity.key[300] = '\0';
    ck_assert(!mapped_file_resolve(file = get("/app/lib5.so")));
    ck_assert_str_eq(mapped_file_problem(file), "/app/lib5.so is needed and was not found (time stamp 1)");
    identity.key[0] = identity.text[0] = '\0';
    /* The key of the right file. */
    set_build_id(20);
    strcpy(identity.key, "lib.so/elf-buildid-00/lib.so");
    strcpy(identity.text, "build-id 00");
    use_sysroots(1);
    test_file("root0/app/lib4.so", "X", 1);
    ck_assert(!mapped_file_resolve(file = get("/app/lib4.so")));
    ck_assert_ptr_nonnull(strstr(mapped_file_problem(file), "its first byte is 'X'; wanted: build-id 00, symbol"));
}
END_TEST

START_TEST(problems_are_reported_in_one_line)
{
    struct mapped_file *none = get("/nowhere/lib\n.so");
    ck_assert(!mapped_file_resolve(none));
    ck_assert_str_eq(mapped_file_problem(none), "/nowhere/lib\\x0a.so is needed and was not found");
    struct mapped_file *memory = get("/memfd:doublemapper (deleted)"); /* no option would supply it */
    ck_assert(!mapped_file_resolve(memory));
    ck_assert_str_eq(mapped_file_problem(memory), "no file has the contents of /memfd:doublemapper (deleted)");
    use_sysroots(1);
    test_file("root0/lib.so", "X", 1);
    struct mapped_file *wrong = get("/lib.so");
    ck_assert(!mapped_file_resolve(wrong));
    char expected[256];
    snprintf(expected, sizeof expected, "%s is not the file that was mapped: its first byte is 'X'",
             test_path("root0/lib.so"));
    ck_assert_str_eq(mapped_file_problem(wrong), expected);
    ck_assert(!mapped_file_resolve(wrong));
    ck_assert_int_eq(asked, 1);
}
END_TEST

START_TEST(long_paths)
{
    char path[6000];
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    for (size_t i = 0; i < sizeof path - 1; i += 100)
        path[i] = '/';
    use_sysroots(1);
    use_module_paths(1);
    struct mapped_file *file = get(path);
    ck_assert(!mapped_file_resolve(file));
    ck_assert_uint_lt(strlen(mapped_file_problem(file)), CDACQ_ERROR_MESSAGE_SIZE);
}
END_TEST

/* ---- What is never opened ---- */

/* Each of these would be found if it was tried: below a sysroot there are files of all these names. */
static const char *const no_files[] = {
    "/dev/shm/doublemapper",
    "/dev/zero",
    "/memfd:doublemapper (deleted)",
    "/memfd:x",
    "/SYSV00000000",
    "/proc/self/exe",
    "/sys/kernel/x",
    "//dev/zero",
    "/./dev/zero",
    "/x/../dev/zero",
    "/../modules0/lib.so",
    "/x/..",
    "/x/.",
    "/x/",
    "/x//lib.so",
    "/",
    "",
    "[vdso]",
    "anon_inode:x",
    "lib.so",
    "../modules0/lib.so",
};

START_TEST(what_never_was_a_file_is_not_opened)
{
    const char *path = no_files[_i];
    use_sysroots(1);
    use_module_paths(1);
    test_file("modules0/lib.so", "C", 1);
    test_file("modules0/zero", "C", 1);
    test_file("modules0/exe", "C", 1);
    test_file("root0/dev/shm/doublemapper", "C", 1);
    test_file("root0/dev/zero", "C", 1);
    test_file("root0/memfd:doublemapper (deleted)", "C", 1);
    test_file("root0/memfd:x", "C", 1);
    test_file("root0/SYSV00000000", "C", 1);
    test_file("root0/proc/self/exe", "C", 1);
    test_file("root0/sys/kernel/x", "C", 1);
    test_file("root0/x/lib.so", "C", 1);
    test_file("root0lib.so", "C", 1);
    struct mapped_file *file = get(path);
    ck_assert(!mapped_file_resolve(file));
    ck_assert_int_eq(asked, 0);
    ck_assert_ptr_nonnull(mapped_file_problem(file));
}
END_TEST

START_TEST(the_mark_of_a_deleted_file_is_no_part_of_its_name)
{
    use_sysroots(1);
    use_module_paths(1);
    test_file("root0/app/lib.so", "C", 1);
    test_file("modules0/moved.so", "C", 1);
    test_file("root0/app/other.so", "X", 1);
    struct mapped_file *file = get("/app/lib.so (deleted)"), *renewed = get("/app/lib.so");
    ck_assert_ptr_ne(file, renewed);
    ck_assert_str_eq(file->path, "/app/lib.so");
    ck_assert_str_eq(file->name, "/app/lib.so (deleted)");
    ck_assert(mapped_file_is_deleted(file) && !mapped_file_is_deleted(renewed));
    ck_assert(mapped_file_resolve(file) && file->verified);
    ck_assert_str_eq(file->local_path, test_path("root0/app/lib.so"));
    ck_assert(mapped_file_resolve(get("/app/moved.so (deleted)")));
    struct mapped_file *other = get("/app/other.so (deleted)"), *gone = get("/app/gone.so (deleted)");
    ck_assert(!mapped_file_resolve(other));
    ck_assert_ptr_nonnull(strstr(mapped_file_problem(other), "is not the file that was mapped: its first byte is 'X'"));
    ck_assert(!mapped_file_resolve(gone));
    ck_assert_str_eq(mapped_file_problem(gone), "/app/gone.so is needed and was not found; it was deleted or replaced "
                                                "while the process ran");
}
END_TEST

/* Its contents decide. */
START_TEST(a_name_may_end_like_the_mark)
{
    char name[256];
    snprintf(name, sizeof name, "%s", test_file("lib.so (deleted)", "C", 1));
    ck_assert(mapped_file_resolve(get(name)));
    ck_assert_str_eq(get(name)->local_path, name);
    snprintf(name, sizeof name, "%s", test_file("unknown.so (deleted)", "U", 1));
    ck_assert(!mapped_file_resolve(get(name)));
}
END_TEST

/* Nothing can be compared, but the file that replaced an assembly is larger than what was mapped. */
START_TEST(a_larger_file_did_not_replace_itself)
{
    static uint8_t bytes[4097] = "U";
    char name[256];
    for (unsigned is_deleted = 0; is_deleted < 2; is_deleted++)
        for (unsigned is_larger = 0; is_larger < 2; is_larger++) {
            const char *path = test_file(is_larger ? "larger.dll" : "same.dll", bytes, 4096 + is_larger);
            snprintf(name, sizeof name, "%s%s", path, is_deleted ? " (deleted)" : "");
            struct mapped_file *file = get(name);
            const struct mapping whole = {.begin = 0x1000, .end = 0x2000}, *mapping = &whole;
            file->mapped_size = 0x1000;
            file->mappings = &mapping;
            file->mapping_count = 1;
            ck_assert_int_eq(mapped_file_resolve(file), !(is_deleted && is_larger));
        }
    ck_assert_ptr_nonnull(strstr(mapped_file_problem(get(name)), "it has 4097 bytes and only 4096 were mapped"));
}
END_TEST

/* Programs may be in /dev/shm. Nothing but regular files is opened there: that sets off some devices. */
START_TEST(files_below_dev)
{
    use_sysroots(1);
    test_file("root0/dev/shm/app/lib.so", "C", 1);
    ck_assert_int_eq(mkfifo(test_path("root0/dev/shm/fifo"), 0644), 0);
    ck_assert_int_eq(symlink("/dev/null", test_path("root0/dev/shm/device")), 0);
    int fifo = open(test_path("root0/dev/shm/fifo"), O_RDWR);
    ck_assert(mapped_file_resolve(get("/dev/shm/app/lib.so")));
    ck_assert_int_eq(asked, 1);
    ck_assert(!mapped_file_resolve(get("/dev/shm/fifo")));
    ck_assert(!mapped_file_resolve(get("/dev/shm/device")));
    ck_assert(!mapped_file_resolve(get("/dev/null")));
    ck_assert(!mapped_file_resolve(get("/dev/full (deleted)")));
    ck_assert(!mapped_file_resolve(get("/dev/shm")));
    ck_assert_int_eq(asked, 1);
    close(fifo);
}
END_TEST

START_TEST(names_that_only_look_odd_are_files)
{
    static const char *const paths[] = {"/x/..data/lib.so", "/x/...",    "/x/.hidden", "/x/lib (deleted).so",
                                        "/x/a b\tc.so",     "/device/x", "/x/memfd:1"};
    use_sysroots(1);
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        char below[64];
        snprintf(below, sizeof below, "root0%s", paths[i]);
        test_file(below, "C", 1);
        ck_assert_msg(mapped_file_resolve(get(paths[i])), "%s", paths[i]);
    }
}
END_TEST

START_TEST(what_is_no_regular_file_is_not_used)
{
    use_sysroots(1);
    test_file("root0/x", "C", 1);
    ck_assert_int_eq(mkdir(test_path("root0/directory"), 0755), 0);
    ck_assert_int_eq(mkfifo(test_path("root0/fifo"), 0644), 0); /* opening it would block */
    ck_assert_int_eq(symlink("/dev/zero", test_path("root0/device")), 0);
    ck_assert_int_eq(symlink("loop", test_path("root0/loop")), 0);
    test_file("root0/empty", "", 0);
    static const char *const paths[] = {"/directory", "/fifo", "/device", "/loop", "/empty", "/x/below-a-file"};
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        ck_assert(!mapped_file_resolve(get(paths[i])));
    ck_assert_int_eq(asked, 0);
}
END_TEST

/* ---- Which bytes of a file may be used ---- */

/* "Not found" would send its reader to look for a file that is there. */
START_TEST(what_is_there_but_cannot_be_opened_is_named)
{
    char path[256];
    use_sysroots(1);
    snprintf(path, sizeof path, "%s/loop.so", sysroots[0]);
    test_file("root0/empty.so", "", 0);
    ck_assert_int_eq(symlink("loop.so", path), 0);
    struct mapped_file *loop = get("/loop.so"), *empty = get("/empty.so"), *none = get("/none.so");
    ck_assert(!mapped_file_resolve(loop));
    ck_assert_ptr_nonnull(
        strstr(mapped_file_problem(loop), "root0/loop.so cannot be read: Too many levels of symbolic"));
    ck_assert(!mapped_file_resolve(empty));
    ck_assert_ptr_nonnull(strstr(mapped_file_problem(empty), "cannot be read: it is empty or not a regular file"));
    ck_assert(!mapped_file_resolve(none));
    ck_assert_str_eq(mapped_file_problem(none), "/none.so is needed and was not found");
}
END_TEST

START_TEST(a_file_shorter_than_what_was_mapped)
{
    static uint8_t bytes[3 * 4096];
    memset(bytes, 'C', sizeof bytes);
    static const struct {
        size_t size;
        uint64_t mapped;
        uint16_t machine;
        bool accepted;
    } cases[] = {
        {4096, 4096, EM_X86_64, true},     {4096, 4097, EM_X86_64, false}, {4097, 8192, EM_X86_64, true},
        {1, 4096, EM_X86_64, true},        {1, 8192, EM_X86_64, false},    {8192, UINT64_MAX, EM_X86_64, false},
        {1, 65536, EM_AARCH64, true},      {1, 65537, EM_AARCH64, false},  {8192, UINT64_MAX, EM_AARCH64, false},
        {3 * 4096, 8192, EM_X86_64, true}, {1, 8192, EM_386, false},
    };
    char path[32];
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        snprintf(path, sizeof path, "file%zu", i);
        struct mapped_file *file = get(test_file(path, bytes, cases[i].size));
        file->mapped_size = cases[i].mapped;
        target.elf_machine = cases[i].machine;
        ck_assert_msg(mapped_file_resolve(file) == cases[i].accepted, "case %zu", i);
    }
}
END_TEST

static struct mapped_file with_ranges(bool all)
{
    struct mapped_file file = {.content = {.size = 1000}};
    if (all)
        file_candidate_add_constant(&file.content, 0, 1000, FILE_EXTENT_READ_ONLY);
    file_candidate_add_constant(&file.content, 100, 200, FILE_EXTENT_CONSTANT);
    file_candidate_add_constant(&file.content, 300, 400, FILE_EXTENT_ALWAYS);
    return file;
}

START_TEST(constant_parts_by_access)
{
    static const struct {
        uint64_t offset;
        uint64_t unknown[2], read_only[2], all_read_only[2], writable[2];
    } cases[] = {
        {99, {0}, {0}, {0, 1000}, {0}},
        {100, {100, 200}, {100, 200}, {0, 1000}, {0}},
        {199, {100, 200}, {100, 200}, {0, 1000}, {0}},
        {200, {0}, {0}, {0, 1000}, {0}},
        {300, {300, 400}, {300, 400}, {0, 1000}, {300, 400}},
        {399, {300, 400}, {300, 400}, {0, 1000}, {300, 400}},
        {400, {0}, {0}, {0, 1000}, {0}},
        {999, {0}, {0}, {0, 1000}, {0}},
        {1000, {0}, {0}, {0}, {0}},
        {UINT64_MAX, {0}, {0}, {0}, {0}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (int all = 0; all < 2; all++)
            for (int access = MAPPING_UNKNOWN; access <= MAPPING_WRITABLE; access++) {
                const uint64_t *expected = access == MAPPING_UNKNOWN    ? cases[i].unknown
                                           : access == MAPPING_WRITABLE ? cases[i].writable
                                           : all                        ? cases[i].all_read_only
                                                                        : cases[i].read_only;
                uint64_t begin = 0, end = UINT64_MAX;
                struct mapped_file file = with_ranges(all);
                bool found = mapped_file_constant(&file, access, cases[i].offset, &begin, &end);
                ck_assert_int_eq(found, expected[1] != 0);
                ck_assert_uint_eq(begin, found ? expected[0] : 0);
                ck_assert_uint_eq(end, found ? expected[1] : UINT64_MAX);
                /* Narrowed, never widened. */
                begin = cases[i].offset;
                end = add_saturated(cases[i].offset, 1);
                if (mapped_file_constant(&file, access, cases[i].offset, &begin, &end)) {
                    ck_assert_uint_eq(begin, cases[i].offset);
                    ck_assert_uint_eq(end, cases[i].offset + 1);
                }
                file_extents_deinit(&file.content.constant);
            }
}
END_TEST

START_TEST(constant_parts_stay_within_the_file)
{
    struct file_candidate candidate = {.size = 1000};
    file_candidate_add_constant(&candidate, 900, UINT64_MAX, FILE_EXTENT_CONSTANT);
    file_candidate_add_constant(&candidate, 1000, 1001, FILE_EXTENT_CONSTANT);
    file_candidate_add_constant(&candidate, 5, 5, FILE_EXTENT_CONSTANT);
    file_candidate_add_constant(&candidate, 6, 5, FILE_EXTENT_CONSTANT);
    file_candidate_add_constant(&candidate, UINT64_MAX, UINT64_MAX, FILE_EXTENT_CONSTANT);
    ck_assert_uint_eq(candidate.constant.count, 1);
    ck_assert_uint_eq(candidate.constant.items[0].end, 1000);
    for (uint64_t i = 0; i < 2 * FILE_EXTENT_MAX; i++)
        file_candidate_add_constant(&candidate, i % 1000, i % 1000 + 1, FILE_EXTENT_CONSTANT);
    ck_assert_uint_eq(candidate.constant.count, FILE_EXTENT_MAX);
    file_extents_deinit(&candidate.constant);
    ck_assert_uint_eq(candidate.constant.count, 0);
    file_extents_deinit(&candidate.constant);
}
END_TEST

/* ---- Threads ---- */

enum { THREADS = 8, FILES = 50 };

static void *resolve_all(void *context)
{
    struct mapped_file **files = context;
    intptr_t found = 0;
    for (size_t i = 0; i < FILES; i++)
        found += mapped_file_resolve(files[i]);
    return (void *)found;
}

START_TEST(resolved_once_whoever_asks)
{
    static struct mapped_file *files[FILES];
    char path[32];
    for (size_t i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "file%zu", i);
        files[i] = get(test_file(path, i % 2 ? "C" : "X", 1));
    }
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, resolve_all, files), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *found;
        pthread_join(threads[i], &found);
        ck_assert_int_eq((intptr_t)found, FILES / 2);
    }
    ck_assert_int_eq(asked, FILES);
}
END_TEST

static Suite *suite(void)
{
    const TTest *const tests[] = {
        one_record_for_each_path,
        the_number_of_files_is_capped,
        no_policy_no_file,
        at_the_targets_own_path,
        sysroots_come_first_then_module_paths_then_the_path,
        a_confirmed_file_is_better_than_an_earlier_unknown_one,
        the_first_of_equals_is_taken,
        a_contradicted_file_does_not_end_the_search,
        anywhere_below_a_module_path,
        links_below_a_module_path,
        mappings_by_file_and_offset,
        is_identified_once,
        build_ids_of_any_size,
        over_the_network_last_and_only_if_wanted,
        a_missing_file_is_reported_with_its_key,
        problems_are_reported_in_one_line,
        long_paths,
        the_mark_of_a_deleted_file_is_no_part_of_its_name,
        a_name_may_end_like_the_mark,
        a_larger_file_did_not_replace_itself,
        files_below_dev,
        names_that_only_look_odd_are_files,
        what_is_no_regular_file_is_not_used,
        what_is_there_but_cannot_be_opened_is_named,
        a_file_shorter_than_what_was_mapped,
        constant_parts_by_access,
        constant_parts_stay_within_the_file,
        resolved_once_whoever_asks,
    };
    Suite *s = suite_create("mapped_file");
    TCase *tc = tcase_create("mapped_file");
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, what_never_was_a_file_is_not_opened, 0, ARRAY_SIZE(no_files));
    tcase_add_loop_test(tc, by_build_id, 0, 3);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
