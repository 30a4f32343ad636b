#include "src/files/file_match.h"

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

static int count_module(const struct cdacq_mapped_file *module, void *context)
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
        ck_assert_int_eq(cdacq_target_visit_mapped_files(target, count_module, &count, NULL), CDACQ_OK);
    ck_assert_uint_eq(count, _i ? 3 : 3 * FILES);
    ck_assert_msg(cpu_seconds() - start < time_bound(5), "%g s", cpu_seconds() - start);
    cdacq_target_close(target);
}
END_TEST

static int compare_build_id(const struct cdacq_mapped_file *module, void *context)
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
        ck_assert_int_eq(cdacq_target_visit_mapped_files(target, compare_build_id, known, NULL), CDACQ_OK);
    cdacq_target_close(target);
}
END_TEST

static int note_symbol_key(const struct cdacq_mapped_file *module, void *context)
{
    snprintf(context, 1024, "%s", module->symbol_key ? module->symbol_key : "none");
    return 0;
}

/* Symbol servers know a file by its whole name, as it is. A file system has none longer than 255 bytes. */
START_TEST(a_key_has_the_whole_name)
{
    enum { LONGEST = 255 };
    struct elf_object object;
    elf_object_init(&object, true, false);
    object.build_id_size = sizeof object.build_id;
    memset(object.build_id, 0xa5, sizeof object.build_id);
    size_t size;
    uint8_t *bytes = elf_object_build(&object, &size);
    char path[LONGEST + 10] = "/nowhere/odd\\", hex[2 * sizeof object.build_id + 1] = "", wanted[1024], key[1024] = "";
    memset(path + strlen(path), 'n', sizeof path - 1 - strlen(path));
    elf_core_load(&core, 0x100000, bytes, 0x1000, 0x1000, PF_R);
    elf_core_mappings(&core, 4096, &(struct elf_mapping){0x100000, 0x101000, 0, path}, 1);
    struct cdacq_target *target = open_core();
    free(bytes);
    ck_assert_int_eq(cdacq_target_visit_mapped_files(target, note_symbol_key, key, NULL), CDACQ_OK);
    for (int i = 0; i < (int)sizeof object.build_id; i++)
        strcat(hex, "a5");
    snprintf(wanted, sizeof wanted, "%s/elf-buildid-%s/%s", path + 9, hex, path + 9);
    ck_assert_str_eq(key, wanted);
    cdacq_target_close(target);
}
END_TEST

static int note_problem(const struct cdacq_mapped_file *module, void *context)
{
    snprintf(context, 512, "%s", module->local_path ? "accepted" : module->problem ? module->problem : "none");
    return 0;
}

/* The target holds the beginning of an image. What is at its path on this machine has no headers to compare. */
START_TEST(a_file_of_another_kind_is_refused)
{
    static const uint8_t pe_head[PIECE] = "MZ", unlike[PIECE] = "junk";
    static const struct {
        const uint8_t *mapped, *found;
        const char *problem;
    } cases[] = {
        {pe_head, unlike, ": it is no PE image"}, {pe_head, pe_head, ": it is no PE image"},
        {pe_head, head, ": it is no PE image"},   {head, unlike, ": it is no ELF file"},
        {head, head, ": it is no ELF file"},      {unlike, pe_head, "accepted"},
    };
    char problem[512] = "";
    const char *path = test_file("image.dll", cases[_i].found, PIECE / 2); /* too short for the headers */
    struct elf_mapping mapping = {0x100000, 0x101000, 0, path};
    elf_core_load(&core, mapping.begin, cases[_i].mapped, PIECE, 0x1000, PF_R);
    elf_core_mappings(&core, 4096, &mapping, 1);
    struct cdacq_target *target = open_core();
    ck_assert_int_eq(cdacq_target_visit_mapped_files(target, note_problem, problem, NULL), CDACQ_OK);
    ck_assert_msg(strstr(problem, cases[_i].problem) != NULL, "%s", problem);
    cdacq_target_close(target);
}
END_TEST

/* ---- Files that are made to take long ---- */

static void put_header(FILE *file, uint16_t segments)
{
    Elf64_Ehdr header = {
        .e_type = ET_DYN,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof header,
        .e_ehsize = sizeof header,
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = segments,
    };
    memcpy(header.e_ident, head, EI_VERSION + 1);
    ck_assert_uint_eq(fwrite(&header, sizeof header, 1, file), 1);
}

/* Makes an empty file with a path that lives as long as the test. */
static FILE *make_file(const char **ret_path)
{
    *ret_path = test_file("library.so", "", 0);
    FILE *file = fopen(*ret_path, "wb");
    ck_assert_ptr_nonnull(file);
    return file;
}

/* Looks for the files that the core names. Fails if that takes seconds. */
static void resolve_files(void)
{
    double start = cpu_seconds();
    struct cdacq_target *target = open_core();
    size_t count = 0;
    ck_assert_int_eq(cdacq_target_visit_mapped_files(target, count_module, &count, NULL), CDACQ_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_msg(cpu_seconds() - start < time_bound(2), "%g s", cpu_seconds() - start);
    cdacq_target_close(target);
}

/* Loop index 0: the notes have no build-id. 1: each is one, and the core maps the file very often. */
START_TEST(notes_are_read_within_a_budget)
{
    enum { SEGMENTS = 60 * 1000, NOTES = 200 * 1000, MAPPINGS = 40 * 1000 };
    const uint32_t note[] = {4, 4, _i ? NT_GNU_BUILD_ID : 99, 0x554e47, 0};
    const char *path;
    FILE *file = make_file(&path);
    put_header(file, SEGMENTS);
    const Elf64_Phdr segment = {
        .p_type = PT_NOTE,
        .p_offset = sizeof(Elf64_Ehdr) + (uint64_t)SEGMENTS * sizeof segment,
        .p_filesz = NOTES * sizeof note,
    };
    for (size_t i = 0; i < SEGMENTS; i++)
        ck_assert_uint_eq(fwrite(&segment, sizeof segment, 1, file), 1);
    for (size_t i = 0; i < NOTES; i++)
        ck_assert_uint_eq(fwrite(note, sizeof note, 1, file), 1);
    ck_assert_int_eq(fclose(file), 0);
    struct elf_mapping *mapped = calloc(MAPPINGS, sizeof *mapped);
    for (uint64_t i = 0; i < MAPPINGS; i++)
        mapped[i] = (struct elf_mapping){0x10000000 + i * 0x1000000, 0x10400000 + i * 0x1000000, 0, path};
    elf_core_load(&core, mapped[0].begin, NULL, 0, 0x400000, PF_R);
    elf_core_mappings(&core, 4096, mapped, _i ? MAPPINGS : 1);
    resolve_files();
    free(mapped);
}
END_TEST

enum { PE = 0x40, IMAGE_SIZE = 512 };

/* The headers of a PE image without sections. */
static void make_image(uint8_t image[IMAGE_SIZE])
{
    static const uint8_t magic[] = {'P', 'E', 0, 0, 0x64, 0x86};
    memset(image, 0, IMAGE_SIZE);
    memcpy(image, "MZ", 2);
    image[0x3c] = PE;
    memcpy(image + PE, magic, sizeof magic);
    image[PE + 20] = 240;      /* size of the optional header */
    image[PE + 24] = 0x0b;     /* PE32+ */
    image[PE + 25] = 0x02;     /* the same */
    image[PE + 24 + 33] = 16;  /* section alignment: 4096 */
    image[PE + 24 + 37] = 2;   /* file alignment: 512 */
    image[PE + 24 + 57] = 16;  /* SizeOfImage: 4096 */
    image[PE + 24 + 61] = 2;   /* SizeOfHeaders: 512 */
    image[PE + 24 + 108] = 16; /* directories */
}

/* A file with a PE image in each page, which the core maps page by page and thousands of times as a whole. */
START_TEST(images_in_a_file_share_a_budget)
{
    enum { PAGES = 31 * 1000, WHOLE = 16 * 1000, MAPPINGS = PAGES + WHOLE };
    uint8_t image[IMAGE_SIZE];
    make_image(image);
    const char *path;
    FILE *file = make_file(&path);
    put_header(file, 0);
    for (long i = 1; i <= PAGES; i++)
        ck_assert(fseek(file, i * PAGE_SIZE, SEEK_SET) == 0 && fwrite(image, sizeof image, 1, file) == 1);
    ck_assert_int_eq(fseek(file, PAGE_SIZE - (long)sizeof image - 1, SEEK_CUR), 0);
    ck_assert(fputc(0, file) == 0 && fclose(file) == 0);
    struct elf_mapping *mapped = calloc(MAPPINGS, sizeof *mapped);
    const uint64_t size = (PAGES + 1) * UINT64_C(0x1000);
    for (uint64_t i = 0; i < PAGES; i++)
        mapped[i] = (struct elf_mapping){0x10000000 + i * 0x1000, 0x10001000 + i * 0x1000, i, path};
    for (uint64_t i = 0; i < WHOLE; i++)
        mapped[PAGES + i] = (struct elf_mapping){0x100000000000 + i * size, 0x100000000000 + (i + 1) * size, 0, path};
    elf_core_load(&core, mapped[0].begin, NULL, 0, PAGES * 0x1000, PF_R);
    elf_core_mappings(&core, 4096, mapped, MAPPINGS);
    resolve_files();
    free(mapped);
}
END_TEST

/*
 * An assembly that fits into a page, of the time stamp and size of the one in the target. Loop index 0: a copy of it.
 * 1: its last byte differs, which no field of its headers shows. 2: the same, and the target does not hold that byte.
 */
START_TEST(a_small_file_is_compared_to_its_last_byte)
{
    enum { SECTION = 0x400 };
    uint8_t file[SECTION + 0x200] = {0}, other[sizeof file];
    make_image(file);
    uint8_t *section = file + PE + 24 + 240;
    file[PE + 6] = 1;
    section[8 + 1] = 2;     /* its size: 512 */
    section[12 + 1] = 0x20; /* its address: 0x2000 */
    section[16 + 1] = 2;    /* its size in the file */
    section[20 + 1] = SECTION >> 8;
    memset(file + SECTION, 0x33, 0x200);
    memcpy(other, file, sizeof file);
    other[sizeof other - 1] ^= _i != 0;
    struct elf_mapping mapping = {0x100000, 0x101000, 0, test_file("small.dll", other, sizeof other)};
    elf_core_load(&core, mapping.begin, file, _i == 2 ? SECTION : sizeof file, 0x1000, PF_R);
    elf_core_mappings(&core, 4096, &mapping, 1);
    struct cdacq_target *target = open_core();
    char problem[512] = "";
    ck_assert_int_eq(cdacq_target_visit_mapped_files(target, note_problem, problem, NULL), CDACQ_OK);
    ck_assert_msg(strstr(problem, _i == 1 ? ": its bytes are not those that the target holds" : "accepted") != NULL,
                  "%s", problem);
    cdacq_target_close(target);
}
END_TEST

/*
 * An assembly whose code has an address in it, which the loader has relocated. Loop index 0: nothing else differs. 1:
 * the byte behind the address does, too. 2: the assembly does not say that it is relocated. 3: what says so is damaged,
 * so that nothing is known of that page.
 */
START_TEST(a_relocated_word_is_no_difference)
{
    enum { SECTION = 0x400, RVA = 0x2000, WORD = 0x20, RELOCATIONS = 0x100, DIRECTORY = PE + 24 + 112 + 8 * 5 };
    uint8_t file[SECTION + 0x200] = {0}, loaded[sizeof file];
    make_image(file);
    uint8_t *section = file + PE + 24 + 240, *block = file + SECTION + RELOCATIONS;
    file[PE + 6] = 1;
    store_u32(section + 8, 0x200, false);
    store_u32(section + 12, RVA, false);
    store_u32(section + 16, 0x200, false);
    store_u32(section + 20, SECTION, false);
    memset(file + SECTION, 0x33, 0x80);
    store_u32(file + DIRECTORY, RVA + RELOCATIONS, false);
    store_u32(file + DIRECTORY + 4, _i == 2 ? 0 : 12, false);
    store_u32(block, RVA, false);
    store_u32(block + 4, _i == 3 ? 7 : 12, false);
    store_u16(block + 8, 10 << 12 | WORD, false);
    memcpy(loaded, file, sizeof file);
    memset(loaded + SECTION + WORD, 0x77, 8);
    loaded[SECTION + WORD + 8] ^= _i == 1;
    struct elf_mapping mapping = {0x100000, 0x101000, 0, test_file("small.dll", file, sizeof file)};
    elf_core_load(&core, mapping.begin, loaded, sizeof loaded, 0x1000, PF_R);
    elf_core_mappings(&core, 4096, &mapping, 1);
    struct cdacq_target *target = open_core();
    char problem[512] = "";
    ck_assert_int_eq(cdacq_target_visit_mapped_files(target, note_problem, problem, NULL), CDACQ_OK);
    ck_assert_msg(strstr(problem, _i % 3 ? ": its bytes are not those that the target holds" : "accepted") != NULL,
                  "%s", problem);
    cdacq_target_close(target);
}
END_TEST

/*
 * A single-file app: the first assembly begins in the last page of the executable's data, where the process has
 * variables. The page is mapped a second time for the assembly. Loop index 0: that mapping was not dumped. 1: it was.
 * 2: it was, and it is of another assembly.
 */
START_TEST(an_assembly_in_the_last_page_of_the_data)
{
    enum { DATA_SIZE = 0x800, TIME_STAMP = PE + 8 };
    uint8_t file[2 * PAGE_SIZE] = {0}, variables[PAGE_SIZE], assembly[PAGE_SIZE];
    uint8_t *image = file + PAGE_SIZE + DATA_SIZE;
    const Elf64_Phdr segments[] = {
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = PAGE_SIZE, .p_memsz = PAGE_SIZE},
        {.p_type = PT_LOAD,
         .p_flags = PF_R | PF_W,
         .p_offset = PAGE_SIZE,
         .p_vaddr = PAGE_SIZE,
         .p_filesz = DATA_SIZE,
         .p_memsz = PAGE_SIZE},
    };
    Elf64_Ehdr header = {.e_type = ET_DYN,
                         .e_machine = EM_X86_64,
                         .e_version = EV_CURRENT,
                         .e_phoff = sizeof header,
                         .e_ehsize = sizeof header,
                         .e_phentsize = sizeof segments[0],
                         .e_phnum = 2};
    memcpy(header.e_ident, head, EI_VERSION + 1);
    memcpy(file, &header, sizeof header);
    memcpy(file + sizeof header, segments, sizeof segments);
    make_image(image);
    image[TIME_STAMP] = 0x11;
    memcpy(variables, file + PAGE_SIZE, DATA_SIZE);
    memset(variables + DATA_SIZE, 0x77, sizeof variables - DATA_SIZE);
    memcpy(assembly, file + PAGE_SIZE, sizeof assembly);
    if (_i == 2)
        assembly[DATA_SIZE + TIME_STAMP] = 0x22;
    const char *path = test_file("app", file, sizeof file);
    const struct elf_mapping of_file[] = {
        {0x100000, 0x101000, 0, path}, {0x101000, 0x102000, 1, path}, {0x200000, 0x201000, 1, path}};
    elf_core_load(&core, 0x100000, file, 0x400, 0x1000, PF_R);
    elf_core_load(&core, 0x101000, variables, 0x1000, 0x1000, PF_R | PF_W);
    elf_core_load(&core, 0x200000, assembly, _i ? 0x1000 : 0, 0x1000, PF_R);
    elf_core_mappings(&core, 4096, of_file, ARRAY_SIZE(of_file));
    struct cdacq_target *target = open_core();
    char problem[512] = "";
    ck_assert_int_eq(cdacq_target_visit_mapped_files(target, note_problem, problem, NULL), CDACQ_OK);
    ck_assert_msg(strstr(problem, _i == 2 ? ": its time stamp is 00000011, the target's 00000022" : "accepted") != NULL,
                  "%s", problem);
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
    tcase_add_test(tc, a_key_has_the_whole_name);
    tcase_add_loop_test(tc, a_file_of_another_kind_is_refused, 0, 6);
    tcase_add_loop_test(tc, a_small_file_is_compared_to_its_last_byte, 0, 3);
    tcase_add_loop_test(tc, a_relocated_word_is_no_difference, 0, 4);
    tcase_add_loop_test(tc, notes_are_read_within_a_budget, 0, 2);
    tcase_add_test(tc, images_in_a_file_share_a_budget);
    tcase_add_loop_test(tc, an_assembly_in_the_last_page_of_the_data, 0, 3);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
