#include "src/api/file_match.h"

#include <elf.h>
#include <stdio.h>

#include "cdacq.h"
#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"

enum { FILES = 8000, PIECE = 64 }; /* only the bytes that identify an ELF file are dumped */

static struct elf_core core;
static struct elf_mapping *mappings;
static char (*paths)[24];
static const uint8_t head[PIECE] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT};

static void setup(void)
{
    elf_core_init(&core, true, false);
    mappings = calloc(FILES, sizeof *mappings);
    paths = calloc(FILES, sizeof *paths);
}

static void teardown(void)
{
    elf_core_deinit(&core);
    free(mappings);
    free(paths);
    test_dir_remove();
}

static struct cdacq_target *open_core(void)
{
    struct cdacq_options options = {.size = sizeof options, .flags = CDACQ_OPEN_PARTIAL};
    struct cdacq_error error = {0};
    struct cdacq_target *target = NULL;
    size_t size;
    uint8_t *bytes = elf_core_build(&core, &size);
    const char *file = test_file("core", bytes, size);
    free(bytes);
    ck_assert_msg(cdacq_target_open_core(file, &options, &target, &error) == CDACQ_OK, "%s", error.message);
    return target;
}

static int count_module(const struct cdacq_module_info *module, void *context)
{
    ck_assert_uint_gt(module->end, module->begin);
    ++*(size_t *)context;
    return 0;
}

/* Loop index 0: the largest number of files. 1: one file mapped that many times. */
START_TEST(modules_take_no_quadratic_time)
{
    for (uint64_t i = 0; i < FILES; i++) {
        uint64_t begin = 0x10000000 + i * 0x2000;
        snprintf(paths[i], sizeof paths[i], "/nowhere/%lx.so", _i ? 0 : (unsigned long)i);
        mappings[i] = (struct elf_mapping){begin, begin + 0x1000, 0, paths[i]};
        elf_core_load(&core, begin, head, sizeof head, 0x1000, PF_R);
    }
    elf_core_mappings(&core, 4096, mappings, FILES);
    struct cdacq_target *target = open_core();
    double start = cpu_seconds();
    size_t count = 0;
    for (unsigned times = 0; times < 3; times++)
        ck_assert_int_eq(cdacq_target_visit_modules(target, count_module, &count, NULL), CDACQ_OK);
    ck_assert_uint_eq(count, _i ? 3 : 3 * FILES);
    ck_assert_msg(cpu_seconds() - start < time_bound(5), "%g s", cpu_seconds() - start);
    cdacq_target_close(target);
}
END_TEST

static int compare_build_id(const struct cdacq_module_info *module, void *context)
{
    const char *const *known = context; /* path, then build-id */
    if (strcmp(module->path, known[0]) != 0)
        ck_assert_ptr_null(module->build_id);
    else
        ck_assert_pstr_eq(module->build_id, known[1]);
    return 0;
}

/* The loop index selects the mapping that was dumped. Three of the six map the beginning of the file. */
START_TEST(any_mapping_of_the_beginning_gives_the_build_id)
{
    struct elf_object object;
    elf_object_init(&object, true, false);
    object.build_id_size = 20;
    memset(object.build_id, 0xa5, sizeof object.build_id);
    size_t size;
    uint8_t *bytes = elf_object_build(&object, &size);
    const struct elf_mapping of_file[] = {
        {0x100000, 0x101000, 0, "/nowhere/a.so"}, {0x200000, 0x203000, 0, "/nowhere/a.so"},
        {0x300000, 0x301000, 0, "/nowhere/a.so"}, {0x400000, 0x401000, 1, "/nowhere/a.so"},
        {0x050000, 0x051000, 2, "/nowhere/a.so"}, {0x500000, 0x501000, 0, "/nowhere/b.so"},
    };
    for (int i = 0; i < (int)ARRAY_SIZE(of_file); i++)
        elf_core_load(&core, of_file[i].begin, bytes, i == _i ? 0x1000 : 0, of_file[i].end - of_file[i].begin, PF_R);
    elf_core_mappings(&core, 4096, of_file, ARRAY_SIZE(of_file));
    struct cdacq_target *target = open_core();
    free(bytes);
    const char *known[] = {_i == 5 ? "/nowhere/b.so" : "/nowhere/a.so",
                           _i == 3 || _i == 4 ? NULL : "a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5"};
    for (int times = 0; times < 2; times++)
        ck_assert_int_eq(cdacq_target_visit_modules(target, compare_build_id, known, NULL), CDACQ_OK);
    cdacq_target_close(target);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("file_match");
    TCase *tc = tcase_create("file_match");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, modules_take_no_quadratic_time, 0, 2);
    tcase_add_loop_test(tc, any_mapping_of_the_beginning_gives_the_build_id, 0, 6);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
