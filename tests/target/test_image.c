#include "target/file_candidate.h"
#include "target/image.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <sys/stat.h>

#include "target/core.h"
#include "target/live.h"
#include "target/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"

static struct target *target;
static struct file_policy policy;
static struct cdacq_error error;
static struct image image;

static struct elf_object object;
static uint8_t *file, *loaded;
static size_t file_size, loaded_size;
static uint64_t base;

/* ---- A comparison for shared objects: what is not writable is constant. ---- */

static enum file_match compare_result;

static enum file_match compare_elf(struct target *of, const struct mapped_file *mapped,
                                   struct file_candidate *candidate, char *why, size_t why_size)
{
    (void)of;
    (void)mapped;
    (void)why;
    (void)why_size;
    bool wide = candidate->bytes[EI_CLASS] == ELFCLASS64, big = candidate->bytes[EI_DATA] == ELFDATA2MSB;
    uint64_t table = wide ? load_u64(candidate->bytes + 32, big) : load_u32(candidate->bytes + 28, big);
    unsigned count = load_u16(candidate->bytes + (wide ? 56 : 44), big);
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *header = candidate->bytes + table + i * (wide ? 56 : 32);
        uint32_t flags = load_u32(header + (wide ? 4 : 24), big);
        uint64_t offset = wide ? load_u64(header + 8, big) : load_u32(header + 4, big);
        uint64_t size = wide ? load_u64(header + 32, big) : load_u32(header + 16, big);
        if (load_u32(header, big) == PT_LOAD && !(flags & PF_W))
            file_candidate_add_constant(candidate, offset, offset + size, FILE_EXTENT_CONSTANT);
    }
    return compare_result;
}

static void setup(void)
{
    policy = (struct file_policy){.compare = compare_elf};
    compare_result = FILE_MATCHES;
    pthread_mutex_init(&policy.lock, NULL);
    memset(&error, 0, sizeof error);
    memset(&image, 0, sizeof image);
    elf_object_init(&object, true, false);
    base = 0x7f0000000000;
}

static void close_target(void)
{
    target_destroy(target);
    target = NULL;
}

static void teardown(void)
{
    close_target();
    free(file);
    free(loaded);
    file = loaded = NULL;
    test_dir_remove();
}

/* ---- Synthetic images, in memory ---- */

static bool span_at(uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes, void *context)
{
    (void)context;
    if (address < base || address - base >= loaded_size)
        return false;
    *ret_begin = base;
    *ret_end = base + loaded_size;
    *ret_bytes = loaded;
    return true;
}

static void build(bool relocate)
{
    free(file);
    free(loaded);
    file = elf_object_build(&object, &file_size);
    loaded = elf_object_load(&object, file, file_size, base, relocate, &loaded_size);
}

static enum cdacq_status try_open_in_memory(void)
{
    close_target();
    static struct cdacq_mapping mapping;
    mapping = (struct cdacq_mapping){sizeof mapping, base, base + loaded_size, 0, "/app/libcoreclr.so"};
    struct cdacq_memory memory = {.size = sizeof memory, .span_at = span_at, .mappings = &mapping, .mapping_count = 1};
    ck_assert_int_eq(memory_open(&memory, NULL, false, &target, &error), CDACQ_OK);
    return image_open(target, &target->mappings[0], &image, &error);
}

static void open_in_memory(void)
{
    enum cdacq_status status = try_open_in_memory();
    ck_assert_msg(status == CDACQ_OK, "%s", error.message);
}

static void assert_symbol(const char *name, uint64_t value, uint64_t size)
{
    uint64_t address = 1, found_size = 1;
    ck_assert_msg(image_find_symbol(&image, name, &address, &found_size), "%s", name);
    ck_assert_uint_eq(address, base + value);
    ck_assert_uint_eq(found_size, size);
}

static void assert_no_symbol(const char *name)
{
    uint64_t address = 77, size = 78;
    ck_assert_msg(!image_find_symbol(&image, name, &address, &size), "%s", name);
    ck_assert_uint_eq(address, 77);
    ck_assert_uint_eq(size, 78);
}

static const char *const names[] = {
    "DotNetRuntimeContractDescriptor",
    "g_dacTable",
    "a",
    "b",
    "DotNetRuntimeContractDescripto",
    "memcpy",
    "_ZN1A1BEv",
    "coreclr_initialize",
    "x_y_z",
    "DotNetRuntimeInfo",
};

static void put_symbols(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        elf_object_symbol(&object, names[i], 0x5100 + i * 16, i + 1);
    elf_object_symbol(&object, "undefined", 0, 0);
    object.symbols[object.symbol_count - 1].section = SHN_UNDEF;
    object.data_size = 0x200;
}

START_TEST(symbols_in_every_class_order_and_table)
{
    bool wide = _i & 1, big = _i & 2;
    for (int tables = 1; tables < 4; tables++) {
        elf_object_init(&object, wide, big);
        base = wide ? 0x7f0000000000 : 0x40000000;
        if (_i & 4)
            object.machine = EM_PPC64; /* s390x has a DT_HASH of its own */
        object.gnu_hash = tables & 1;
        object.sysv_hash = tables & 2;
        put_symbols();
        build(true);
        open_in_memory();
        ck_assert_uint_eq(image.base, base);
        ck_assert_uint_eq(image.machine, object.machine);
        ck_assert_int_eq(image.elf.wide, wide);
        ck_assert_int_eq(image.elf.big, big);
        ck_assert_uint_eq(image.begin, base);
        ck_assert_uint_eq(image.end, base + ELF_DATA_VADDR + 16 * 16 + object.data_size);
        ck_assert_uint_eq(image.build_id_size, 20);
        ck_assert_mem_eq(image.build_id, object.build_id, 20);
        ck_assert(image.dynamic_complete);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
            assert_symbol(names[i], 0x5100 + i * 16, i + 1);
        assert_no_symbol("undefined");
        assert_no_symbol("");
        assert_no_symbol("DotNetRuntimeContractDescriptor_");
        assert_no_symbol("dotNetRuntimeContractDescriptor");
    }
}
END_TEST

START_TEST(tables_as_glibc_and_as_musl_leave_them)
{
    /* glibc makes the addresses in the dynamic section absolute. */
    put_symbols();
    build(true);
    for (size_t i = 0; i < 8; i++) {
        uint8_t *entry = loaded + object.dynamic_vaddr + i * 16;
        uint64_t tag = load_u64(entry, false);
        if (tag == DT_SYMTAB || tag == DT_STRTAB || tag == DT_GNU_HASH || tag == DT_RELA)
            store_u64(entry + 8, load_u64(entry + 8, false) + base, false);
    }
    open_in_memory();
    assert_symbol("g_dacTable", 0x5110, 2);
    ck_assert_uint_eq(image.dynamic.symtab, base + object.symtab_vaddr);
}
END_TEST

START_TEST(an_image_that_is_not_linked_at_zero)
{
    put_symbols();
    build(true);
    /* A program of a fixed address: every vaddr is absolute, and the base is 0. */
    uint64_t fixed = 0x400000;
    for (size_t i = 0; i < 4; i++) {
        uint8_t *header = loaded + 64 + i * 56;
        store_u64(header + 16, load_u64(header + 16, false) + fixed, false);
    }
    base = fixed;
    for (size_t i = 0; i < 5; i++) {
        uint8_t *entry = loaded + object.dynamic_vaddr + i * 16;
        uint64_t tag = load_u64(entry, false);
        if (tag == DT_SYMTAB || tag == DT_STRTAB || tag == DT_GNU_HASH)
            store_u64(entry + 8, load_u64(entry + 8, false) + fixed, false);
    }
    open_in_memory();
    ck_assert_uint_eq(image.base, 0);
    ck_assert_uint_eq(image.begin, fixed);
    uint64_t address, size;
    ck_assert(image_find_symbol(&image, "g_dacTable", &address, &size));
    ck_assert_uint_eq(address, 0x5110);
}
END_TEST

START_TEST(no_tables_no_symbols)
{
    object.gnu_hash = false;
    put_symbols();
    build(true);
    open_in_memory();
    assert_no_symbol("g_dacTable");
    /* no PT_DYNAMIC at all */
    object.gnu_hash = true;
    object.symbol_count = 0;
    put_symbols();
    build(true);
    store_u32(loaded + 64 + 2 * 56, PT_NULL, false);
    open_in_memory();
    ck_assert_uint_eq(image.dynamic.symtab, 0);
    assert_no_symbol("g_dacTable");
}
END_TEST

/* ---- Hostile tables ---- */

static void prepare_hash(bool gnu)
{
    object.gnu_hash = gnu;
    object.sysv_hash = !gnu;
    put_symbols();
    build(true);
    open_in_memory();
}

static uint8_t *gnu_word(size_t index)
{
    return loaded + object.gnu_hash_vaddr + index * 4;
}

static uint8_t *sysv_word(size_t index)
{
    return loaded + object.hash_vaddr + index * 4;
}

static void assert_quick(void (*look)(void))
{
    double start = cpu_seconds();
    look();
    double took = cpu_seconds() - start;
    ck_assert_msg(took < time_bound(10), "%g s", took);
}

static void look_up_all(void)
{
    uint64_t address, size;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        image_find_symbol(&image, names[i], &address, &size);
    ck_assert(!image_find_symbol(&image, "none", &address, &size));
}

START_TEST(zero_buckets)
{
    prepare_hash(_i);
    store_u32(_i ? gnu_word(0) : sysv_word(0), 0, false);
    assert_no_symbol("g_dacTable");
}
END_TEST

START_TEST(numbers_of_the_gnu_hash_that_lie)
{
    static const uint32_t values[] = {0, 1, 2, 0x7fffffff, 0x80000000, UINT32_MAX};
    for (size_t word = 0; word < 4; word++)
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
            elf_object_init(&object, true, false);
            prepare_hash(true);
            store_u32(gnu_word(word), values[i], false);
            assert_quick(look_up_all);
        }
    /* buckets: 4 words, 2 words of 8 bytes of filter, then they */
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        elf_object_init(&object, true, false);
        prepare_hash(true);
        for (size_t bucket = 0; bucket < 3; bucket++)
            store_u32(gnu_word(8 + bucket), values[i], false);
        assert_quick(look_up_all);
    }
}
END_TEST

START_TEST(a_gnu_chain_without_an_end)
{
    prepare_hash(true);
    /* Every entry has the hash that is searched for and no end mark; the image is long. */
    uint32_t hash = 5381;
    for (const char *p = "none"; *p; p++)
        hash = hash * 33 + (uint8_t)*p;
    size_t chains = 4 + 4 + 3, old_size = loaded_size;
    loaded_size = 1 << 20;
    loaded = realloc(loaded, loaded_size);
    ck_assert_ptr_nonnull(loaded);
    memset(loaded + old_size, 0, loaded_size - old_size);
    store_u32(gnu_word(8 + hash % 3), 1, false);
    uint64_t far = old_size;
    memcpy(loaded + far, gnu_word(0), chains * 4);
    for (uint64_t at = far + chains * 4; at + 4 <= loaded_size; at += 4)
        store_u32(loaded + at, hash & ~1u, false);
    image.dynamic.gnu_hash = base + far;
    assert_quick(look_up_all);
}
END_TEST

START_TEST(a_cyclic_chain)
{
    prepare_hash(false);
    uint32_t count = load_u32(sysv_word(1), false);
    for (uint32_t i = 0; i < count; i++)
        store_u32(sysv_word(2 + 3 + i), i % 2 ? i + 1 : i - 1, false);
    assert_quick(look_up_all);
    /* each its own next */
    for (uint32_t i = 0; i < count; i++)
        store_u32(sysv_word(2 + 3 + i), i, false);
    assert_quick(look_up_all);
    /* beyond the chains that the table says it has */
    for (uint32_t i = 0; i < count; i++)
        store_u32(sysv_word(2 + 3 + i), UINT32_MAX - i, false);
    assert_quick(look_up_all);
    store_u32(sysv_word(1), UINT32_MAX, false);
    assert_quick(look_up_all);
}
END_TEST

START_TEST(names_beyond_the_string_table)
{
    static const uint32_t offsets[] = {UINT32_MAX, 0x7fffffff, 0x1000, 0};
    for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
        elf_object_init(&object, true, false);
        prepare_hash(true);
        for (size_t s = 1; s <= object.symbol_count; s++)
            store_u32(loaded + object.symtab_vaddr + s * 24, offsets[i], false);
        assert_no_symbol("g_dacTable");
    }
    /* The last name has lost its NUL: the table ends one byte before it. */
    elf_object_init(&object, true, false);
    elf_object_symbol(&object, "only", 0x5100, 8);
    build(true);
    open_in_memory();
    assert_symbol("only", 0x5100, 8);
    image.dynamic.strsz = 1 + strlen("only");
    assert_no_symbol("only");
    image.dynamic.strsz++;
    assert_symbol("only", 0x5100, 8);
}
END_TEST

START_TEST(long_names_are_not_looked_for)
{
    static char name[1000];
    memset(name, 'n', sizeof name - 1);
    elf_object_symbol(&object, name, 0x5100, 8);
    build(true);
    open_in_memory();
    assert_no_symbol(name);
}
END_TEST

/* ---- Hostile headers ---- */

START_TEST(what_is_no_image)
{
    put_symbols();
    build(true);
    open_in_memory();
    static const struct {
        size_t at;
        uint8_t value;
    } damages[] = {{0, 'x'}, {3, 0}, {EI_CLASS, 0}, {EI_CLASS, 3}, {EI_DATA, 0}, {EI_DATA, 3}};
    for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
        uint8_t old = loaded[damages[i].at];
        loaded[damages[i].at] = damages[i].value;
        struct image untouched = image;
        ck_assert_int_eq(try_open_in_memory(), CDACQ_ERR_FORMAT);
        ck_assert_mem_eq(&untouched, &image, sizeof image);
        ck_assert_str_eq(error.message, "/app/libcoreclr.so: not an ELF image at 0x7f0000000000");
        loaded[damages[i].at] = old;
    }
    loaded_size = 3;
    ck_assert_int_eq(try_open_in_memory(), CDACQ_ERR_MEMORY);
    ck_assert_str_eq(error.message, "/app/libcoreclr.so: its ELF header at 0x7f0000000000 is missing");
}
END_TEST

START_TEST(headers_that_are_missing)
{
    put_symbols();
    build(true);
    size_t whole = loaded_size;
    for (size_t size = 16; size < 64 + 4 * 56 - 8; size++) { /* the last number, p_align, is not read */
        loaded_size = size;
        ck_assert_int_eq(try_open_in_memory(), CDACQ_ERR_MEMORY);
        ck_assert_uint_ge(error.address, base + size);
    }
    /* Whatever else is cut: no symbol, no crash. */
    for (size_t size = 64 + 4 * 56; size < whole; size += 61) {
        loaded_size = size;
        ck_assert_int_eq(try_open_in_memory(), CDACQ_OK);
        uint64_t address, symbol_size;
        if (image_find_symbol(&image, "g_dacTable", &address, &symbol_size))
            ck_assert_uint_eq(address, base + 0x5110);
    }
    loaded_size = whole;
}
END_TEST

START_TEST(header_fields_that_lie)
{
    static const uint64_t values[] = {0, 1, 0x7fff, 0xffff, 0xffffffff, UINT64_C(1) << 63, UINT64_MAX};
    put_symbols();
    build(true);
    uint8_t *good = malloc(loaded_size);
    memcpy(good, loaded, loaded_size);
    static const struct {
        size_t at, width;
    } fields[] = {
        {32, 8},  {54, 2},  {56, 2},                                          /* of the ELF header */
        {64, 4},  {68, 4},  {72, 8},  {80, 8},       {96, 8},       {104, 8}, /* the first segment */
        {120, 4}, {128, 8}, {136, 8}, {152, 8},      {160, 8},                /* the second */
        {176, 4}, {184, 8}, {192, 8}, {208, 8},      {216, 8},                /* PT_DYNAMIC */
        {232, 4}, {240, 8}, {248, 8}, {264, 8},      {272, 8},                /* PT_NOTE */
        {288, 4}, {292, 4}, {296, 4}, {304 + 16, 4}, {308 + 16, 4},           /* notes */
    };
    for (size_t f = 0; f < ARRAY_SIZE(fields); f++)
        for (size_t v = 0; v < ARRAY_SIZE(values); v++) {
            memcpy(loaded, good, loaded_size);
            memcpy(loaded + fields[f].at, &values[v], fields[f].width);
            if (try_open_in_memory() < 0)
                continue;
            ck_assert_uint_le(image.build_id_size, BUILD_ID_MAX);
            ck_assert_uint_le(image.segment_count, IMAGE_SEGMENT_MAX);
            assert_quick(look_up_all);
            uint8_t buffer[64];
            bool from_file;
            image_read_relocated(&image, base + 0x5100, buffer, sizeof buffer, &from_file, &error);
        }
    free(good);
}
END_TEST

START_TEST(dynamic_entries_that_lie)
{
    static const uint64_t values[] = {0, 1, 0x5000, UINT64_C(1) << 63, UINT64_MAX};
    object.sysv_hash = true;
    put_symbols();
    build(true);
    uint8_t *good = malloc(loaded_size);
    memcpy(good, loaded, loaded_size);
    for (size_t i = 0; i < 8; i++)
        for (size_t v = 0; v < ARRAY_SIZE(values); v++) {
            memcpy(loaded, good, loaded_size);
            store_u64(loaded + object.dynamic_vaddr + i * 16 + 8, values[v], false);
            open_in_memory();
            uint64_t address, size;
            if (image_find_symbol(&image, "g_dacTable", &address, &size))
                ck_assert_uint_eq(address, base + 0x5110);
        }
    free(good);
}
END_TEST

/* A core may name a hundred thousand mappings of one image that was made to be slow. */
static void open_many(void)
{
    for (int i = 0; i < 500; i++) {
        uint64_t address, size;
        if (image_open(target, &target->mappings[0], &image, &error) == CDACQ_OK)
            image_find_symbol(&image, "g_dacTable", &address, &size);
    }
}

START_TEST(an_image_made_to_be_slow)
{
    object.sysv_hash = true;
    put_symbols();
    build(true);
    open_in_memory();
    /* 65,535 headers of nothing but zeros, which are PT_NULL, then as many PT_NOTE with notes of no size. */
    enum { HEADERS = 65535 };
    size_t old_size = loaded_size;
    loaded_size += (size_t)HEADERS * 56 + 65536;
    loaded = realloc(loaded, loaded_size);
    ck_assert_ptr_nonnull(loaded);
    memset(loaded + old_size, 0, loaded_size - old_size);
    store_u64(loaded + 32, old_size, false);
    store_u16(loaded + 56, HEADERS, false);
    assert_quick(open_many);
    for (size_t i = 0; i < HEADERS; i++) {
        uint8_t *header = loaded + old_size + i * 56;
        store_u32(header, PT_NOTE, false);
        store_u64(header + 16, loaded_size - 65536, false);
        store_u64(header + 40, 65536, false);
    }
    assert_quick(open_many);
    store_u16(loaded + 56, 400, false); /* few enough to be read */
    assert_quick(open_many);
}
END_TEST

START_TEST(an_empty_segment_does_not_place_the_image)
{
    put_symbols();
    build(true);
    /* A segment of nothing but .bss may say offset 0. */
    store_u64(loaded + 120 + 8, 0, false);
    store_u64(loaded + 120 + 32, 0, false);
    open_in_memory();
    ck_assert_uint_eq(image.base, base);
    assert_symbol("g_dacTable", 0x5110, 2);
}
END_TEST

/* ---- Cores ---- */

/* Makes the core the target, and frees it. */
static void open_core(struct elf_core *core, bool record)
{
    size_t size;
    int fd;
    uint8_t *bytes = elf_core_build(core, &size);
    enum cdacq_status status = core_open(memory_file(bytes, size, &fd), &policy, record, &target, &error);
    ck_assert_msg(status == CDACQ_OK, "%s", error.message);
    close(fd);
    free(bytes);
    elf_core_deinit(core);
}

/* ---- Relocation ---- */

enum { POINTERS = 200, OTHER_DATA = POINTERS * 8, DATA_SIZE = OTHER_DATA + 64 };

/* A core of a process that had the image, without any of its pages; with its data if `dumped`. */
static void open_core_of_image(const char *path, bool dumped)
{
    struct elf_core core;
    elf_core_init(&core, object.wide, object.big);
    core.machine = object.machine;
    const struct elf_mapping mappings[] = {{base, base + ELF_DATA_OFFSET, 0, path},
                                           {base + ELF_DATA_VADDR, base + loaded_size, 2, path}};
    elf_core_mappings(&core, 4096, mappings, 2);
    elf_core_load(&core, base, NULL, 0, ELF_DATA_OFFSET, PF_R);
    elf_core_load(&core, base + ELF_DATA_VADDR, dumped ? loaded + ELF_DATA_VADDR : NULL,
                  dumped ? loaded_size - ELF_DATA_VADDR : 0, loaded_size - ELF_DATA_VADDR, PF_R | PF_W);
    open_core(&core, false);
    enum cdacq_status status = image_open(target, &target->mappings[0], &image, &error);
    ck_assert_msg(status == CDACQ_OK, "%s", error.message);
}

static void put_pointers(void)
{
    unsigned word = object.wide ? 8 : 4;
    for (size_t i = 0; i < sizeof object.data; i++)
        object.data[i] = 0;
    for (size_t i = 0; i < 64; i++)
        object.data[OTHER_DATA + i] = (uint8_t)(i + 1);
    for (size_t i = 0; i < POINTERS; i++)
        if (i % 5 != 3 && (i < 60 || i > 130)) /* gaps, one wider than a bitmap */
            elf_object_pointer(&object, i * word, 0x5100 + i * 3);
    object.data_size = DATA_SIZE;
    object.bss_size = 0x100;
    elf_object_symbol(&object, "table", ELF_DATA_VADDR + 16 * 16, POINTERS * word);
}

static const struct {
    bool wide, big;
    uint16_t machine;
    int relocations;
} machines[] = {
    {true, false, EM_X86_64, ELF_RELA},  {true, false, EM_X86_64, ELF_RELR}, {true, false, EM_AARCH64, ELF_RELA},
    {true, false, EM_AARCH64, ELF_RELR}, {true, false, EM_RISCV, ELF_RELA},  {true, false, 258, ELF_RELA},
    {true, true, EM_S390, ELF_RELA},     {true, true, EM_S390, ELF_RELR},    {true, false, EM_PPC64, ELF_RELA},
    {false, false, EM_ARM, ELF_REL},     {false, false, EM_ARM, ELF_RELR},   {false, false, EM_386, ELF_REL},
    {false, false, EM_386, ELF_RELA},    {false, true, EM_ARM, ELF_REL},     {false, true, EM_ARM, ELF_RELA},
};

START_TEST(relocated_as_the_loader_does)
{
    elf_object_init(&object, machines[_i].wide, machines[_i].big);
    object.machine = machines[_i].machine;
    object.relocations = machines[_i].relocations;
    base = object.wide ? 0x7f1234560000 : 0x40000000;
    put_pointers();
    build(true);
    const char *path = test_file("libcoreclr.so", file, file_size);
    open_core_of_image(path, false);
    assert_symbol("table", ELF_DATA_VADDR + 16 * 16, POINTERS * (object.wide ? 8 : 4));
    uint64_t data = base + object.data_vaddr;
    uint8_t buffer[DATA_SIZE];
    bool from_file = false;
    enum cdacq_status status = image_read_relocated(&image, data, buffer, DATA_SIZE, &from_file, &error);
    ck_assert_msg(status == CDACQ_OK, "%s", error.message);
    ck_assert(from_file);
    ck_assert_mem_eq(buffer, loaded + object.data_vaddr, DATA_SIZE);
    /* Any part that cuts no pointer. */
    unsigned word = object.wide ? 8 : 4;
    for (size_t at = 0; at < POINTERS * word; at += 7 * word) {
        ck_assert_int_eq(image_read_relocated(&image, data + at, buffer, word * 5, &from_file, &error), CDACQ_OK);
        ck_assert_mem_eq(buffer, loaded + object.data_vaddr + at, word * 5);
    }
    ck_assert_int_eq(image_read_relocated(&image, data + OTHER_DATA + 1, buffer, 13, &from_file, &error), CDACQ_OK);
    ck_assert_mem_eq(buffer, loaded + object.data_vaddr + OTHER_DATA + 1, 13);
    /* Half a pointer is not read. */
    memset(buffer, 0xee, sizeof buffer);
    ck_assert_int_eq(image_read_relocated(&image, data + 1, buffer, word, &from_file, &error), CDACQ_ERR_MEMORY);
    ck_assert_int_eq(image_read_relocated(&image, data, buffer, word - 1, &from_file, &error), CDACQ_ERR_MEMORY);
    ck_assert_uint_eq(buffer[0], 0xee);
}
END_TEST

START_TEST(bss_is_in_no_file)
{
    put_pointers();
    build(true);
    open_core_of_image(test_file("libcoreclr.so", file, file_size), false);
    uint8_t buffer[16];
    bool from_file = true;
    uint64_t end = base + object.data_vaddr + DATA_SIZE;
    ck_assert_int_eq(image_read_relocated(&image, end - 16, buffer, 16, &from_file, &error), CDACQ_OK);
    ck_assert_int_eq(image_read_relocated(&image, end - 15, buffer, 16, &from_file, &error), CDACQ_ERR_MEMORY);
    ck_assert_uint_eq(error.address, end - 15);
    ck_assert_int_eq(image_read_relocated(&image, end, buffer, 16, &from_file, &error), CDACQ_ERR_MEMORY);
    ck_assert_int_eq(image_read_relocated(&image, base - 16, buffer, 16, &from_file, &error), CDACQ_ERR_MEMORY);
    ck_assert_int_eq(image_read_relocated(&image, UINT64_MAX - 3, buffer, 16, &from_file, &error), CDACQ_ERR_MEMORY);
    ck_assert_msg(strstr(error.message, "initialised data"), "%s", error.message);
}
END_TEST

START_TEST(what_the_process_holds_wins)
{
    put_pointers();
    build(true);
    const char *path = test_file("libcoreclr.so", file, file_size);
    memset(loaded + object.data_vaddr, 'P', 100); /* written to since */
    open_core_of_image(path, true);
    uint8_t buffer[DATA_SIZE];
    bool from_file = true;
    ck_assert_int_eq(image_read_relocated(&image, base + object.data_vaddr, buffer, DATA_SIZE, &from_file, &error),
                     CDACQ_OK);
    ck_assert(!from_file);
    ck_assert_mem_eq(buffer, loaded + object.data_vaddr, DATA_SIZE);
}
END_TEST

START_TEST(the_file_fills_only_what_is_missing)
{
    put_pointers();
    build(true);
    const char *path = test_file("libcoreclr.so", file, file_size);
    struct elf_core core;
    elf_core_init(&core, true, false);
    const struct elf_mapping mappings[] = {{base, base + ELF_DATA_OFFSET, 0, path},
                                           {base + ELF_DATA_VADDR, base + loaded_size, 2, path}};
    uint64_t data = base + object.data_vaddr;
    elf_core_mappings(&core, 4096, mappings, 2);
    elf_core_load(&core, base, NULL, 0, ELF_DATA_OFFSET, PF_R);
    elf_core_load(&core, base + ELF_DATA_VADDR, NULL, 0, loaded_size - ELF_DATA_VADDR, PF_R | PF_W);
    elf_core_load(&core, data + 16, "DUMPEDDUMPEDDUMP", 16, 16, PF_R | PF_W);
    elf_core_load(&core, data + 40, "x", 1, 1, PF_R | PF_W);
    open_core(&core, true);
    ck_assert_int_eq(image_open(target, &target->mappings[0], &image, &error), CDACQ_OK);
    uint8_t buffer[64];
    bool from_file = false;
    ck_assert_int_eq(image_read_relocated(&image, data, buffer, sizeof buffer, &from_file, &error), CDACQ_OK);
    ck_assert(from_file);
    memcpy(loaded + object.data_vaddr + 16, "DUMPEDDUMPEDDUMP", 16);
    loaded[object.data_vaddr + 40] = 'x';
    ck_assert_mem_eq(buffer, loaded + object.data_vaddr, sizeof buffer);
    /* A recording target also keeps bytes that no page holds. */
    ck_assert_ptr_nonnull(target->recording->patches);
    ck_assert_uint_eq(target->recording->patches->address, data);
    ck_assert_mem_eq(target->recording->patches->bytes, buffer, sizeof buffer);
}
END_TEST

START_TEST(pointers_bound_by_name_are_not_relocated)
{
    put_pointers();
    object.relocated[3].type = R_X86_64_64;
    object.relocated[4].type = R_X86_64_GLOB_DAT;
    build(true);
    open_core_of_image(test_file("libcoreclr.so", file, file_size), false);
    uint8_t buffer[64];
    bool from_file;
    for (size_t i = 0; i < 12; i++) {
        uint64_t vaddr = object.data_vaddr + i * 8;
        bool by_name = vaddr == object.relocated[3].vaddr || vaddr == object.relocated[4].vaddr;
        ck_assert_int_eq(image_read_relocated(&image, base + vaddr, buffer, 8, &from_file, &error),
                         by_name ? CDACQ_ERR_MEMORY : CDACQ_OK);
        if (by_name)
            ck_assert_ptr_nonnull(strstr(error.message, "binds by name"));
        else
            ck_assert_mem_eq(buffer, loaded + vaddr, 8);
    }
}
END_TEST

START_TEST(machines_whose_relocations_are_not_known)
{
    put_pointers();
    object.machine = EM_MIPS;
    build(true);
    open_core_of_image(test_file("libcoreclr.so", file, file_size), false);
    uint8_t buffer[16];
    bool from_file;
    ck_assert_int_eq(image_read_relocated(&image, base + object.data_vaddr, buffer, 8, &from_file, &error),
                     CDACQ_ERR_MEMORY);
}
END_TEST

START_TEST(relocation_tables_that_cannot_be_read)
{
    put_pointers();
    build(true);
    open_core_of_image(test_file("libcoreclr.so", file, file_size), false);
    uint8_t buffer[16];
    bool from_file;
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_C(1) << 40, 1 << 30, 0x10000000, 0x100000};
    struct image good = image;
    for (int table = 0; table < 3; table++)
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
            image = good;
            *(table == 0   ? &image.dynamic.relasz
              : table == 1 ? &image.dynamic.relsz
                           : &image.dynamic.relrsz) = sizes[i];
            if (table)
                *(table == 1 ? &image.dynamic.rel : &image.dynamic.relr) = good.dynamic.rela;
            /* Never the bytes as they are in the file. */
            ck_assert_int_lt(image_read_relocated(&image, base + object.data_vaddr, buffer, 8, &from_file, &error), 0);
        }
    image = good;
    image.dynamic.rela = base + 0x4000; /* between the segments */
    ck_assert_int_eq(image_read_relocated(&image, base + object.data_vaddr, buffer, 8, &from_file, &error),
                     CDACQ_ERR_MEMORY);
    ck_assert_ptr_nonnull(strstr(error.message, "DT_RELA"));
    image = good;
    image.dynamic_complete = false;
    ck_assert_int_eq(image_read_relocated(&image, base + object.data_vaddr, buffer, 8, &from_file, &error),
                     CDACQ_ERR_MEMORY);
}
END_TEST

START_TEST(without_the_file_nothing_is_relocated)
{
    put_pointers();
    build(true);
    struct elf_core core;
    const char *path = "/nowhere/libcoreclr.so";
    elf_core_init(&core, true, false);
    const struct elf_mapping mappings[] = {{base, base + ELF_DATA_OFFSET, 0, path},
                                           {base + ELF_DATA_VADDR, base + loaded_size, 2, path}};
    elf_core_mappings(&core, 4096, mappings, 2);
    elf_core_load(&core, base, loaded, ELF_DATA_OFFSET, ELF_DATA_OFFSET, PF_R);
    open_core(&core, false);
    ck_assert_int_eq(image_open(target, &target->mappings[0], &image, &error), CDACQ_OK);
    ck_assert(!image.dynamic_complete);
    ck_assert_mem_eq(image.build_id, object.build_id, 20);
    uint8_t buffer[16];
    bool from_file;
    ck_assert_int_eq(image_read_relocated(&image, base + object.data_vaddr, buffer, 8, &from_file, &error),
                     CDACQ_ERR_MEMORY);
    ck_assert_msg(strstr(error.message, "/nowhere/libcoreclr.so is needed and was not found"), "%s", error.message);
}
END_TEST

/* ---- Real shared objects ---- */

static const struct mapping *mapping_of(const char *name)
{
    for (size_t i = 0; i < target->mapping_count; i++)
        if (target->mappings[i].offset == 0 && strcmp(path_basename(target->mappings[i].path), name) == 0)
            return &target->mappings[i];
    return NULL;
}

/* What this process has mapped of files, as a core: where no process can be read, not even this one. */
static void open_own_core(void)
{
    enum { MAX = 128 };
    static char paths[MAX][512];
    struct elf_mapping mappings[MAX];
    struct elf_core core;
    size_t count = 0;
    char line[600], access[5];
    elf_core_init(&core, sizeof(void *) == 8, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    FILE *maps = fopen("/proc/self/maps", "r");
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long begin, end, offset;
        if (count == MAX ||
            sscanf(line, "%lx-%lx %4s %lx %*s %*s %511s", &begin, &end, access, &offset, paths[count]) != 5 ||
            paths[count][0] != '/' || access[0] != 'r')
            continue;
        if (offset == 0 && memcmp((const void *)begin, ELFMAG, SELFMAG) == 0)
            core.machine = ((const ElfW(Ehdr) *)begin)->e_machine;
        mappings[count] = (struct elf_mapping){begin, end, offset, paths[count]};
        elf_core_load(&core, begin, (const void *)begin, end - begin, end - begin, PF_R);
        count++;
    }
    fclose(maps);
    elf_core_mappings(&core, 1, mappings, count);
    open_core(&core, false);
}

static void open_self(void)
{
    if (left_out_emulated("image: libraries in this process", "no process_vm_readv; read from a core of it")) {
        open_own_core();
        return;
    }
    enum cdacq_status status = live_open(getpid(), &policy, false, false, &target, &error);
    ck_assert_msg(status == CDACQ_OK, "%s", error.message);
}

/* Symbols of one version each, so that there is but one answer. */
static const struct library {
    const char *name;
    const char *symbols[8];
} libraries[] = {
    {"libc.so.6", {"abort", "getpid", "environ", "program_invocation_name", "mkdtemp", "putchar", "free"}},
    {"libz.so.1", {"inflate", "inflateEnd", "deflate", "crc32", "adler32", "zlibVersion"}},
    {"libcjson.so.1", {"cJSON_Parse", "cJSON_Delete", "cJSON_GetErrorPtr", "cJSON_Version"}},
};

START_TEST(symbols_of_real_libraries)
{
    const struct library *library = &libraries[_i];
    void *handle = dlopen(library->name, RTLD_NOW);
    ck_assert_msg(handle != NULL, "%s", dlerror());
    open_self();
    struct link_map *map;
    ck_assert_int_eq(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
    const struct mapping *mapping = target_mapping_at(target, map->l_addr);
    ck_assert_ptr_nonnull(mapping);
    enum cdacq_status status = image_open(target, mapping, &image, &error);
    ck_assert_msg(status == CDACQ_OK, "%s", error.message);
    ck_assert_uint_eq(image.base, mapping->begin);
    for (size_t i = 0; i < ARRAY_SIZE(library->symbols) && library->symbols[i]; i++) {
        uint64_t address = 0, size = 0;
        ck_assert_msg(image_find_symbol(&image, library->symbols[i], &address, &size), "%s", library->symbols[i]);
        ck_assert_ptr_eq((void *)(uintptr_t)address, dlsym(handle, library->symbols[i]));
        ck_assert_uint_gt(size, 0);
    }
    assert_no_symbol("cdacq_is_not_here");
    assert_no_symbol("no_such_symbol_1");
    dlclose(handle);
}
END_TEST

static void read_build_id_by_readelf(const char *path, char *ret, size_t size)
{
    char command[600], line[512];
    ret[0] = '\0';
    snprintf(command, sizeof command, "LC_ALL=C readelf -n '%s' 2>/dev/null", path);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    while (fgets(line, sizeof line, pipe)) {
        const char *id = strstr(line, "Build ID: ");
        if (id)
            snprintf(ret, size, "%.*s", (int)strcspn(id + 10, "\n"), id + 10);
    }
    pclose(pipe);
}

START_TEST(build_ids_of_real_libraries)
{
    open_self();
    ck_assert_int_eq(target_list_mappings(target, &error), CDACQ_OK);
    size_t compared = 0;
    for (size_t i = 0; i < target->mapping_count; i++) {
        const struct mapping *mapping = &target->mappings[i];
        if (mapping->offset != 0 || image_open(target, mapping, &image, &error) < 0)
            continue;
        char expected[128], found[2 * BUILD_ID_MAX + 1] = "";
        read_build_id_by_readelf(mapping->path, expected, sizeof expected);
        for (size_t n = 0; n < image.build_id_size; n++)
            snprintf(found + 2 * n, 3, "%02x", image.build_id[n]);
        ck_assert_str_eq(found, expected);
        compared += found[0] != '\0';
    }
    ck_assert_uint_ge(compared, 2);
}
END_TEST

/* Compiles a library of pointers. False, and the test is left out, where the compiler cannot. */
static const char source[] = "static int target[64];\n"
                             "static int *const constants[] = {&target[0], &target[1], 0, &target[63], &target[7]};\n"
                             "int *variables[64] = {&target[5], 0, 0, &target[6], [40] = &target[8]};\n"
                             "extern int elsewhere;\n"
                             "int *by_name = &elsewhere;\n"
                             "int elsewhere = 5;\n"
                             "int *const *get(void) { return constants; }\n";

static bool compile(const char *options, char *ret_path, size_t size)
{
    char command[1400];
    const char *cc = getenv("CDACQ_CC");
    const char *c = test_file("pointers.c", source, sizeof source - 1);
    snprintf(ret_path, size, "%s/libpointers.so", test_dir());
    snprintf(command, sizeof command, "%s -shared -fPIC -O0 -nostdlib %s -o %s %s 2>/dev/null", cc ? cc : "cc", options,
             ret_path, c);
    return system(command) == 0;
}

/*
 * A core of this process without the bytes of a library: image_read_relocated() must give the bytes that the loader
 * made.
 */
START_TEST(relocated_as_the_real_loader_does)
{
    static const char *const options[] = {
        "-Wl,--hash-style=gnu",
        "-Wl,--hash-style=sysv",
        "-Wl,--hash-style=both -Wl,-z,relro,-z,now",
        "-Wl,-z,pack-relative-relocs",
        "-Wl,-z,max-page-size=0x200000 -Wl,-z,noseparate-code",
        "-Wl,-z,max-page-size=0x10000 -Wl,-z,separate-code",
    };
    char path[256];
    if (!compile(options[_i], path, sizeof path)) {
        printf("left out: %s cannot link with %s\n", getenv("CDACQ_CC"), options[_i]);
        return;
    }
    void *handle = dlopen(path, RTLD_NOW);
    ck_assert_msg(handle != NULL, "%s", dlerror());
    const void *(*get)(void) = (const void *(*)(void))dlsym(handle, "get");
    const uint8_t *constants = get(), *variables = dlsym(handle, "variables");
    const void *by_name = dlsym(handle, "by_name");
    struct elf_core core;
    elf_core_init(&core, sizeof(void *) == 8, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    struct link_map *map;
    ck_assert_int_eq(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
    core.machine = ((const ElfW(Ehdr) *)map->l_addr)->e_machine;
    struct elf_mapping mappings[32];
    size_t count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[600];
    while (fgets(line, sizeof line, maps)) {
        unsigned long begin, end, offset;
        char access[5];
        if (!strstr(line, path) || sscanf(line, "%lx-%lx %4s %lx", &begin, &end, access, &offset) != 4)
            continue;
        mappings[count++] = (struct elf_mapping){begin, end, offset, path};
        elf_core_load(&core, begin, NULL, 0, end - begin,
                      (access[0] == 'r' ? PF_R : 0u) | (access[1] == 'w' ? PF_W : 0u) | (access[2] == 'x' ? PF_X : 0u));
    }
    fclose(maps);
    ck_assert_uint_ge(count, 2);
    elf_core_mappings(&core, 1, mappings, count);
    open_core(&core, false);
    enum cdacq_status status = image_open(target, mapping_of("libpointers.so"), &image, &error);
    ck_assert_msg(status == CDACQ_OK, "%s", error.message);
    uint64_t address, symbol_size;
    ck_assert(image_find_symbol(&image, "variables", &address, &symbol_size));
    ck_assert_uint_eq(address, (uintptr_t)variables);
    ck_assert_uint_eq(symbol_size, 64 * sizeof(void *));
    uint8_t buffer[64 * sizeof(void *)];
    bool from_file = false;
    status = image_read_relocated(&image, address, buffer, sizeof buffer, &from_file, &error);
    ck_assert_msg(status == CDACQ_OK, "%s", error.message);
    ck_assert(from_file);
    ck_assert_mem_eq(buffer, variables, sizeof buffer);
    ck_assert_int_eq(image_read_relocated(&image, (uintptr_t)constants, buffer, 5 * sizeof(void *), &from_file, &error),
                     CDACQ_OK);
    ck_assert_mem_eq(buffer, constants, 5 * sizeof(void *));
    ck_assert_int_eq(image_read_relocated(&image, (uintptr_t)by_name, buffer, sizeof(void *), &from_file, &error),
                     CDACQ_ERR_MEMORY);
    dlclose(handle);
}
END_TEST

static Suite *suite(void)
{
    const TTest *const tests[] = {
        tables_as_glibc_and_as_musl_leave_them,
        an_image_that_is_not_linked_at_zero,
        no_tables_no_symbols,
        numbers_of_the_gnu_hash_that_lie,
        a_gnu_chain_without_an_end,
        a_cyclic_chain,
        names_beyond_the_string_table,
        long_names_are_not_looked_for,
        what_is_no_image,
        headers_that_are_missing,
        header_fields_that_lie,
        dynamic_entries_that_lie,
        an_image_made_to_be_slow,
        an_empty_segment_does_not_place_the_image,
    };
    const TTest *const relocation_tests[] = {
        bss_is_in_no_file,
        what_the_process_holds_wins,
        the_file_fills_only_what_is_missing,
        pointers_bound_by_name_are_not_relocated,
        machines_whose_relocations_are_not_known,
        relocation_tables_that_cannot_be_read,
        without_the_file_nothing_is_relocated,
    };
    Suite *s = suite_create("image");
    TCase *tc = tcase_create("tables");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, symbols_in_every_class_order_and_table, 0, 8);
    tcase_add_loop_test(tc, zero_buckets, 0, 2);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(s, tc);
    tc = tcase_create("relocation");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, relocated_as_the_loader_does, 0, ARRAY_SIZE(machines));
    for (size_t i = 0; i < ARRAY_SIZE(relocation_tests); i++)
        tcase_add_test(tc, relocation_tests[i]);
    suite_add_tcase(s, tc);
    tc = tcase_create("real");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, symbols_of_real_libraries, 0, ARRAY_SIZE(libraries));
    tcase_add_test(tc, build_ids_of_real_libraries);
    tcase_add_loop_test(tc, relocated_as_the_real_loader_does, 0, 6);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
