/*
 * test_debug_file.c: the compressed symbols (.gnu_debugdata) of an ELF file: whole, cut at every length, damaged; and
 * the places of separate debug files, each with a file that is found once those in the places before it are gone.
 */
#include "formats/elf.h"
#include "target/file_candidate.h"
#include "target/file_policy.h"
#include "target/image.h"
#include "target/mapped_file.h"
#include "target/native/debug_file.h"

#include <elf.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/target.h"
#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"
#include "util/file_root.h"

/* "symbols ", 100 times, by xz --check=crc32. */
static const uint8_t packed[] = {
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00, 0x21, 0x01,
    0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0xe0, 0x03, 0x1f, 0x00, 0x12, 0x5d, 0x00, 0x39,
    0x9e, 0x49, 0xdd, 0x94, 0x71, 0x47, 0x96, 0x5a, 0x60, 0x6e, 0x33, 0xca, 0x86, 0x62, 0x79, 0x10,
    0x00, 0x00, 0x00, 0x00, 0x65, 0xba, 0x40, 0x51, 0x00, 0x01, 0x2a, 0xa0, 0x06, 0x00, 0x00, 0x00,
    0xc7, 0x32, 0x2e, 0x30, 0x3e, 0x30, 0x0d, 0x8b, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x59, 0x5a,
};

/* The structs below are in the byte order of this machine. */
enum { HERE = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? ELFDATA2MSB : ELFDATA2LSB };

static const char names[] = "\0.gnu_debugdata";

enum { COUNT = 3, NAMES_AT = sizeof(Elf64_Ehdr) + COUNT * sizeof(Elf64_Shdr), DATA_AT = NAMES_AT + sizeof names };

static struct {
    Elf64_Ehdr header;
    Elf64_Shdr sections[COUNT];
    uint8_t rest[sizeof names + sizeof packed];
} image;

_Static_assert(sizeof image >= DATA_AT + sizeof packed, "all of it");

static struct work work;

static void make_header(Elf64_Ehdr *ret)
{
    *ret = (Elf64_Ehdr){
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, HERE, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = EM_X86_64,
        .e_ehsize = sizeof *ret,
        .e_shoff = sizeof *ret,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = COUNT,
        .e_shstrndx = 1,
    };
}

/* The data of a file whose section has the first `size` bytes. */
static uint8_t *unpack(size_t size, size_t *ret_size)
{
    struct elf_file file;
    make_header(&image.header);
    image.sections[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = sizeof names};
    image.sections[2] = (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = DATA_AT, .sh_size = size};
    struct bytes bytes = bytes_of_buffer((const uint8_t *)&image, sizeof image);
    ck_assert(elf_file_open(&bytes, &file));
    *ret_size = 0;
    return debug_data_open(&file, &work, ret_size);
}

static void setup(void)
{
    work_set(&work, 0, 0, 0);
    memcpy(image.rest, names, sizeof names);
    memcpy(image.rest + sizeof names, packed, sizeof packed);
}

START_TEST(whole)
{
    size_t size;
    uint8_t *data = unpack(sizeof packed, &size);
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq(size, 800);
    for (size_t i = 0; i < size; i++)
        ck_assert_uint_eq(data[i], (uint8_t) "symbols "[i % 8]);
    free(data);
}
END_TEST

START_TEST(cut)
{
    size_t size;
    for (size_t i = 0; i < sizeof packed; i++)
        ck_assert_ptr_null(unpack(i, &size));
}
END_TEST

/* All bytes are covered by a checksum. */
START_TEST(damaged)
{
    size_t size;
    for (size_t i = 0; i < sizeof packed; i++) {
        image.rest[sizeof names + i] ^= 0x10;
        ck_assert_ptr_null(unpack(sizeof packed, &size));
        image.rest[sizeof names + i] ^= 0x10;
    }
}
END_TEST

/* What is unpacked counts, also if nothing comes of it. */
START_TEST(bounded)
{
    size_t size;
    char text[128];
    work_set(&work, 0, 799, 0);
    ck_assert_ptr_null(unpack(sizeof packed, &size));
    ck_assert(work_is_spent(&work, text, sizeof text));
    work_set(&work, 1000, 0, 0);
    ck_assert_ptr_null(unpack(sizeof packed - 1, &size));
    ck_assert(work_is_spent(&work, text, sizeof text));
    ck_assert_ptr_null(unpack(sizeof packed, &size));
}
END_TEST

/* ---- Separate files ---- */

#define BUILD_ID "\xab\xcd\x01\x02\x03\x04\x05\x06"

/* A debug file: a table of symbols, and a build-id. */
static struct {
    Elf64_Ehdr header;
    Elf64_Shdr sections[COUNT];
    Elf64_Nhdr note;
    char note_name[4];
    char build_id[sizeof BUILD_ID - 1];
} debug;

enum { DEBUG_NOTE_AT = sizeof(Elf64_Ehdr) + COUNT * sizeof(Elf64_Shdr) };

/* The file that names it. The checksum is stored after the name, at a multiple of 4. */
static const char link_names[] = "\0.gnu_debuglink";

enum { LINK_AT = sizeof(Elf64_Ehdr) + COUNT * sizeof(Elf64_Shdr) + sizeof link_names };

static struct {
    Elf64_Ehdr header;
    Elf64_Shdr sections[COUNT];
    char names[sizeof link_names];
    uint8_t link[16]; /* "lib.debug", 2 zeros, the checksum */
} linking;

static struct target target;
static struct file_policy policy;
static struct mapped_file mapped;
static struct image searched;
static char root[256], modules[256], local[256], *sysroots[2], *module_paths[2];
static int fetches;

/* Bit by bit, where the library has a table. */
static uint32_t crc_of(const void *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= ((const uint8_t *)bytes)[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static void setup_separate(void)
{
    memset(&debug, 0, sizeof debug);
    make_header(&debug.header);
    debug.sections[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB};
    debug.sections[2] =
        (Elf64_Shdr){.sh_type = SHT_NOTE, .sh_offset = DEBUG_NOTE_AT, .sh_size = sizeof debug - DEBUG_NOTE_AT};
    debug.note = (Elf64_Nhdr){.n_namesz = 4, .n_descsz = sizeof debug.build_id, .n_type = NT_GNU_BUILD_ID};
    memcpy(debug.note_name, "GNU", 4);
    memcpy(debug.build_id, BUILD_ID, sizeof debug.build_id);

    memset(&linking, 0, sizeof linking);
    make_header(&linking.header);
    linking.sections[1] =
        (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = LINK_AT - sizeof link_names, .sh_size = sizeof link_names};
    linking.sections[2] =
        (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = LINK_AT, .sh_size = sizeof linking.link};
    memcpy(linking.names, link_names, sizeof link_names);
    uint32_t crc = crc_of(&debug, sizeof debug);
    memcpy(linking.link, "lib.debug", sizeof "lib.debug");
    memcpy(linking.link + 12, &crc, sizeof crc);

    target = (struct target){.elf_machine = EM_X86_64};
    policy = (struct file_policy){.sysroots = sysroots, .module_paths = module_paths, .no_own_paths = true};
    snprintf(root, sizeof root, "%s/root", test_dir());
    snprintf(modules, sizeof modules, "%s/modules", test_dir());
    snprintf(local, sizeof local, "%s/local/lib.so", test_dir());
    sysroots[0] = root;
    module_paths[0] = modules;
    pthread_mutex_init(&policy.lock, NULL);
    mapped = (struct mapped_file){.path = (char *)(uintptr_t) "/opt/app/lib.so", .target = &target, .policy = &policy};
    mapped.local_path = local;
    searched = (struct image){.target = &target, .file = &mapped};
    fetches = 0;
}

static void teardown_separate(void)
{
    pthread_mutex_destroy(&policy.lock);
    target_deinit(&target);
    test_dir_remove();
}

static void set_build_id(void)
{
    memcpy(searched.build_id, BUILD_ID, sizeof BUILD_ID - 1);
    searched.build_id_size = sizeof BUILD_ID - 1;
}

static bool find(struct file_candidate *ret)
{
    struct elf_file file;
    struct bytes bytes = bytes_of_buffer((const uint8_t *)&linking, sizeof linking);
    ck_assert(elf_file_open(&bytes, &file));
    *ret = (struct file_candidate){0};
    bool found = debug_file_open(&searched, &file, ret);
    file_policy_deinit(&policy); /* the next search lists the files again */
    return found;
}

static void check_none(void)
{
    struct file_candidate found;
    ck_assert(!find(&found));
    ck_assert_ptr_null(found.bytes);
}

/* Finds the file in each of the places, one after the other. */
static void check_places(const char *const *places, size_t count)
{
    for (size_t i = 0; i < count; i++)
        test_file(places[i], &debug, sizeof debug);
    for (size_t i = 0; i < count; i++) {
        struct file_candidate found;
        struct stat st;
        ck_assert_int_eq(stat(test_path(places[i]), &st), 0);
        ck_assert_msg(find(&found), "%s", places[i]);
        ck_assert_msg(found.inode == st.st_ino, "%s", places[i]);
        ck_assert_uint_eq(found.size, sizeof debug);
        file_candidate_close(&found);
        ck_assert_int_eq(remove(test_path(places[i])), 0);
    }
    check_none();
}

static char *fetch(void *context, const char *path, const uint8_t *build_id, size_t build_id_size)
{
    ck_assert_ptr_null(context);
    ck_assert_str_eq(path, mapped.path);
    ck_assert_uint_eq(build_id_size, searched.build_id_size);
    ck_assert_mem_eq(build_id, BUILD_ID, build_id_size);
    fetches++;
    return strdup(test_path("fetched"));
}

START_TEST(found_by_build_id)
{
    static const char *const places[] = {
        "root/usr/lib/debug/.build-id/ab/cd010203040506.debug",
        "modules/anywhere/ab/cd010203040506.debug",
        "fetched",
    };
    set_build_id();
    policy.fetch_debug_file = fetch;
    check_places(places, ARRAY_SIZE(places));
    ck_assert_int_eq(fetches, 2);
}
END_TEST

/* ---- A symbol server ---- */

static struct {
    char key[200];
    int asked, refused, left; /* left: servers to ask after the one that is refused */
    bool cached;
} server;

static char *serve(void *context, const struct cdacq_need *need, bool cached)
{
    ck_assert_ptr_null(context);
    ck_assert_str_eq(need->path, mapped.path);
    snprintf(server.key, sizeof server.key, "%s", need->symbol_key);
    server.cached = cached;
    server.asked++;
    return strdup(test_path("served"));
}

static bool refuse(void *context, const struct cdacq_need *need, const char *path, const char *why)
{
    ck_assert_ptr_null(context);
    ck_assert_str_eq(need->symbol_key, server.key);
    ck_assert_str_eq(path, test_path("served"));
    ck_assert_str_eq(why, "it has another build-id, or no symbols");
    server.refused++;
    return server.left-- > 0;
}

/* Its keys have 20 bytes. A file that is not accepted is refused, and one that is not there, too. */
START_TEST(found_on_a_symbol_server)
{
    static const char *const places[] = {"modules/cd010203040506.debug", "served"};
    memset(&server, 0, sizeof server);
    set_build_id();
    policy.server = (struct file_server){.fetch = serve, .refuse = refuse};
    check_places(places, ARRAY_SIZE(places));
    ck_assert_str_eq(server.key, "_.debug/elf-buildid-sym-abcd010203040506000000000000000000000000/_.debug");
    ck_assert_int_eq(server.asked, 2);
    ck_assert_int_eq(server.refused, 1);
    ck_assert(!server.cached);
    target.is_held = true;
    debug.build_id[7] ^= 1;
    test_file("served", &debug, sizeof debug);
    check_none();
    ck_assert_int_eq(server.refused, 2);
    ck_assert(server.cached);
    server.asked = 2;
    server.left = 5; /* all of them have the wrong file */
    check_none();
    ck_assert_int_eq(server.asked, 8);
    ck_assert_int_eq(server.refused, 8);
    server.asked = 3;
    searched.build_id_size = 0;
    check_none();
    ck_assert_int_eq(server.asked, 3);
    memset(searched.build_id, 0xef, sizeof searched.build_id);
    searched.build_id_size = sizeof searched.build_id;
    check_none();
    ck_assert_str_eq(
        server.key, "_.debug/elf-buildid-sym-efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef/_.debug");
}
END_TEST

START_TEST(found_by_name_and_checksum)
{
    static const char *const places[] = {
        "root/opt/app/lib.debug",
        "root/opt/app/.debug/lib.debug",
        "root/usr/lib/debug/opt/app/lib.debug",
        "modules/a/b/lib.debug",
        "local/lib.debug",
        "local/.debug/lib.debug",
    };
    policy.fetch_debug_file = fetch; /* by build-id only */
    check_places(places, ARRAY_SIZE(places));
    ck_assert_int_eq(fetches, 0);
}
END_TEST

/* Starts a process whose root directory is that of the test. False if that is not permitted. */
static bool start_elsewhere(pid_t *ret)
{
    int ends[2];
    char byte;
    ck_assert_int_eq(pipe(ends), 0);
    *ret = fork();
    ck_assert_int_ge(*ret, 0);
    if (!*ret) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if ((chroot(test_dir()) < 0 && (unshare(CLONE_NEWUSER) < 0 || chroot(test_dir()) < 0)) ||
            write(ends[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    bool started = read(ends[0], &byte, 1) == 1;
    close(ends[0]);
    return started;
}

/* A container has debug files of its own. */
START_TEST(found_in_the_root_of_a_process)
{
    static const char *const by_id[] = {"usr/lib/debug/.build-id/ab/cd010203040506.debug"};
    static const char *const by_name[] = {
        "opt/app/lib.debug",
        "opt/app/.debug/lib.debug",
        "usr/lib/debug/opt/app/lib.debug",
    };
    pid_t pid;
    bool started = start_elsewhere(&pid);
    target.kind = CDACQ_TARGET_PROCESS;
    target.pid = pid;
    policy.no_own_paths = false;
    policy.sysroots = policy.module_paths = NULL;
    snprintf(local, sizeof local, "/proc/%d/root%s", (int)pid, mapped.path);
    struct file_root process_root;
    target.own_root = &process_root;
    if (started) {
        ck_assert(file_root_open_process(&process_root, pid));
        mapped.content.root = &process_root;
        check_places(by_name, ARRAY_SIZE(by_name));
        set_build_id();
        check_places(by_id, ARRAY_SIZE(by_id));
        file_root_close(&process_root);
    }
    target.own_root = NULL;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
END_TEST

/* A path of a mapping can be any text of a hostile core. */
START_TEST(no_path_leads_out_of_a_sysroot)
{
    mapped.path = (char *)(uintptr_t) "/opt/../../app/lib.so";
    mapped.local_path = NULL;
    test_file("root/opt/x", "", 0);
    test_file("app/lib.debug", &debug, sizeof debug);
    check_none();
    memcpy(linking.link, "a/b.debug", sizeof "a/b.debug");
    mapped.path = (char *)(uintptr_t) "/lib.so";
    test_file("root/a/b.debug", &debug, sizeof debug);
    check_none();
}
END_TEST

START_TEST(another_file_is_refused)
{
    set_build_id();
    debug.build_id[7] ^= 1;
    test_file("modules/cd010203040506.debug", &debug, sizeof debug);
    check_none();
    searched.build_id_size = 0;
    test_file("modules/lib.debug", &debug, sizeof debug); /* its checksum is another one, too */
    check_none();
    debug.build_id[7] ^= 1;
    test_file("modules/lib.debug", &debug, sizeof debug);
    struct file_candidate found;
    ck_assert(find(&found));
    file_candidate_close(&found);
    work_set(&target.work, 1, 0, 0); /* no checksum is formed once the bound is reached */
    work_add_steps(&target.work, 1);
    check_none();
}
END_TEST

START_TEST(a_file_without_symbols_is_refused)
{
    set_build_id();
    debug.sections[1].sh_type = SHT_NULL;
    test_file("modules/cd010203040506.debug", &debug, sizeof debug);
    check_none();
}
END_TEST

START_TEST(nothing_is_looked_for_without_a_policy)
{
    set_build_id();
    test_file("modules/cd010203040506.debug", &debug, sizeof debug);
    mapped.policy = NULL;
    check_none();
    searched.file = NULL;
    check_none();
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("debug_file");
    TCase *tcase = tcase_create("debug_data");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, whole);
    tcase_add_test(tcase, cut);
    tcase_add_test(tcase, damaged);
    tcase_add_test(tcase, bounded);
    suite_add_tcase(suite, tcase);
    TCase *separate = tcase_create("separate");
    tcase_add_checked_fixture(separate, setup_separate, teardown_separate);
    tcase_add_test(separate, found_by_build_id);
    tcase_add_test(separate, found_on_a_symbol_server);
    tcase_add_test(separate, found_by_name_and_checksum);
    tcase_add_test(separate, found_in_the_root_of_a_process);
    tcase_add_test(separate, no_path_leads_out_of_a_sysroot);
    tcase_add_test(separate, another_file_is_refused);
    tcase_add_test(separate, a_file_without_symbols_is_refused);
    tcase_add_test(separate, nothing_is_looked_for_without_a_policy);
    suite_add_tcase(suite, separate);
    return suite;
}

CHECK_MAIN(suite)
