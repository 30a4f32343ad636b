/*
 * test_core_libraries.c: the program and the libraries of a core without NT_FILE, of each class and byte order: the
 * dynamic linker's list as the process has it in memory, and lists that are damaged.
 */
#include "target/core.h"

#include <link.h>

#include "target/file_policy.h"
#include "target/target.h"
#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"

enum {
    PROGRAM = 0x10000, /* in memory; its vaddrs begin at VADDR */
    VADDR = 0x400000,
    HEADERS = 64, /* of the program, from its beginning */
    DYNAMIC = 0x400,
    DEBUG = 0x500,
    MAPS = 0x600, /* of 0x40 bytes each */
    TEXTS = 0x800,
    PROGRAM_PATH = 0x980,
    IMAGE_SIZE = 0x1000,
    LIBRARY = 0x200000,
};

static struct elf_core core;
static struct target *target;
static struct file_policy policy;
static uint8_t program[IMAGE_SIZE], *library_file, *library;
static size_t library_size, loaded_size;
static size_t word;

static void put_word(size_t at, uint64_t value)
{
    if (core.wide)
        store_u64(program + at, value, core.big);
    else
        store_u32(program + at, (uint32_t)value, core.big);
}

static void put_segment(size_t index, uint32_t type, uint64_t vaddr, uint64_t offset, uint64_t size)
{
    uint8_t *at = program + HEADERS + index * (core.wide ? 56 : 32);
    struct elf_buffer bytes = {.wide = core.wide, .big = core.big};
    elf_put_int(&bytes, type, 4);
    if (core.wide)
        elf_put_int(&bytes, PF_R, 4);
    elf_put_word(&bytes, offset);
    elf_put_word(&bytes, vaddr);
    elf_put_word(&bytes, 0);
    elf_put_word(&bytes, size);
    elf_put_word(&bytes, size);
    if (!core.wide)
        elf_put_int(&bytes, PF_R, 4);
    elf_put_word(&bytes, 0x1000);
    memcpy(at, bytes.data, bytes.size);
    free(bytes.data);
}

/* A struct link_map. */
static void put_map(size_t index, uint64_t bias, const char *name, bool is_last)
{
    size_t at = MAPS + index * 0x40, text = TEXTS + index * 0x40;
    strcpy((char *)program + text, name);
    put_word(at, bias);
    put_word(at + word, PROGRAM + text);
    put_word(at + 3 * word, is_last ? 0 : PROGRAM + at + 0x40);
}

static void put_program(const char *path)
{
    put_segment(0, PT_PHDR, VADDR + HEADERS, HEADERS, 0x200);
    put_segment(1, PT_LOAD, VADDR, 0, IMAGE_SIZE);
    put_segment(2, PT_LOAD, VADDR + 0x5100, 0x3100, 0x800); /* not dumped */
    put_segment(3, PT_DYNAMIC, VADDR + DYNAMIC, DYNAMIC, 0x100);
    put_word(DYNAMIC, DT_STRSZ);
    put_word(DYNAMIC + 2 * word, DT_DEBUG);
    put_word(DYNAMIC + 3 * word, PROGRAM + DEBUG);
    put_word(DEBUG + word, PROGRAM + MAPS);
    strcpy((char *)program + PROGRAM_PATH, path);
}

static void put_auxv(void)
{
    struct elf_buffer auxv = {.wide = core.wide, .big = core.big};
    const uint64_t entries[][2] = {
        {AT_PHDR, PROGRAM + HEADERS}, {AT_PHNUM, 4}, {AT_EXECFN, PROGRAM + PROGRAM_PATH}, {AT_NULL, 0}};
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        elf_put_word(&auxv, entries[i][0]);
        elf_put_word(&auxv, entries[i][1]);
    }
    elf_note(elf_core_notes(&core), "CORE", NT_AUXV, auxv.data, auxv.size);
    free(auxv.data);
}

static void begin(int i)
{
    struct elf_object object;
    elf_core_init(&core, i & 1, i & 2);
    word = core.wide ? 8 : 4;
    elf_object_init(&object, core.wide, core.big);
    object.build_id_size = 20;
    core.machine = object.machine;
    library_file = elf_object_build(&object, &library_size);
    library = elf_object_load(&object, library_file, library_size, LIBRARY, true, &loaded_size);
    memset(program, 0, sizeof program);
    policy = (struct file_policy){0};
    pthread_mutex_init(&policy.lock, NULL);
}

static void setup(void)
{
    begin(1);
}

static void teardown(void)
{
    target_destroy(target);
    target = NULL;
    elf_core_deinit(&core);
    free(library_file);
    free(library);
    test_dir_remove();
    file_policy_deinit(&policy);
    pthread_mutex_destroy(&policy.lock);
}

static void open_core(void)
{
    struct cdacq_error error;
    size_t size;
    int fd;
    elf_core_load(&core, PROGRAM, program, sizeof program, sizeof program, PF_R);
    elf_core_load(&core, LIBRARY, library, 0x1000, 0x1000, PF_R);
    put_auxv();
    uint8_t *bytes = elf_core_build(&core, &size);
    const char *path = memory_file(bytes, size, &fd);
    ck_assert_msg(core_open(path, &policy, false, &target, &error) == CDACQ_OK, "%s", error.message);
    close(fd);
    free(bytes);
}

static void check_mapping(uint64_t address, uint64_t begin_address, uint64_t end, uint64_t offset, const char *path)
{
    const struct mapping *mapping = target_mapping_at(target, address);
    ck_assert_ptr_nonnull(mapping);
    ck_assert_uint_eq(mapping->begin, begin_address);
    ck_assert_uint_eq(mapping->end, end);
    ck_assert_uint_eq(mapping->offset, offset);
    ck_assert_str_eq(mapping->path, path);
}

START_TEST(the_program_and_its_libraries)
{
    teardown();
    begin(_i);
    put_program("/test/program");
    put_map(0, PROGRAM - VADDR, "", false);
    put_map(1, LIBRARY + 0x100000, "linux-vdso.so.1", false);
    put_map(2, LIBRARY, "/test/library.so", false);
    put_map(3, 0x700000, "/test/lost.so", false); /* its beginning was not dumped */
    put_map(4, PROGRAM, "/test/none.so", true);   /* there is no ELF image */
    open_core();
    ck_assert_uint_eq(target->mapping_count, 4);
    check_mapping(PROGRAM, PROGRAM, PROGRAM + IMAGE_SIZE, 0, "/test/program");
    check_mapping(PROGRAM + 0x5000, PROGRAM + 0x5000, PROGRAM + 0x6000, 0x3000, "/test/program");
    ck_assert_str_eq(target_mapping_at(target, LIBRARY)->path, "/test/library.so");
    check_mapping(LIBRARY + ELF_DATA_VADDR, LIBRARY + ELF_DATA_VADDR,
                  target_mapping_at(target, LIBRARY + ELF_DATA_VADDR)->end, ELF_DATA_OFFSET, "/test/library.so");
    ck_assert_int_eq(target_mapping_at(target, PROGRAM)->access, MAPPING_READ_ONLY);
}
END_TEST

/* The list is changed, cyclic, lost or names nothing; the core has an NT_FILE: then nothing else counts. */
START_TEST(lists_that_do_not_help)
{
    static const size_t expected[] = {0, 2, 0, 2, 0, 2, 1};
    static const struct elf_mapping known = {0x50000, 0x51000, 0, "/test/known.so"};
    put_program(_i == 2 ? "program" : "/test/program"); /* a relative path */
    put_map(0, PROGRAM - VADDR, "", true);
    if (_i == 0)
        put_word(DEBUG + 3 * word, RT_ADD);
    if (_i == 1)
        put_word(MAPS + 3 * word, PROGRAM + MAPS);
    if (_i == 3)
        put_word(MAPS + 3 * word, 0x900000);
    if (_i == 4)
        put_word(DYNAMIC + 2 * word, DT_NULL);
    if (_i == 5)
        put_word(MAPS + word, 0x900000); /* the name of the program is not asked for */
    if (_i == 6)
        elf_core_mappings(&core, 4096, &known, 1);
    open_core();
    ck_assert_uint_eq(target->mapping_count, expected[_i]);
}
END_TEST

/* Program headers of any content: mappings neither wrap around nor are empty. */
START_TEST(damaged_segments)
{
    uint64_t state = 1;
    for (unsigned round = 0; round < 500; round++) {
        put_program("/test/program");
        put_map(0, PROGRAM - VADDR, "", true);
        for (unsigned i = 0; i < 6; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            program[HEADERS + 56 + (state >> 33) % (2 * 56)] = (uint8_t)(state >> 56 & 1 ? 0xff : state >> 40);
        }
        open_core();
        for (size_t i = 0; i < target->mapping_count; i++) {
            ck_assert_uint_lt(target->mappings[i].begin, target->mappings[i].end);
            ck_assert_uint_le(target->mappings[i].offset,
                              UINT64_MAX - (target->mappings[i].end - target->mappings[i].begin));
        }
        target_destroy(target);
        target = NULL;
        elf_core_deinit(&core);
        elf_core_init(&core, true, false);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("core_libraries");
    TCase *tcase = tcase_create("core_libraries");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, the_program_and_its_libraries, 0, 4);
    tcase_add_loop_test(tcase, lists_that_do_not_help, 0, 7);
    tcase_add_test(tcase, damaged_segments);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
