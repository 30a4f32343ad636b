#include "tests/fuzz/mutant_bases.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/lookup/opened_target.h"
#include "util/file.h"
#include "util/text.h"

struct base bases[BASE_MAX];
size_t base_count;

static _Noreturn void refuse(const char *path)
{
    fprintf(stderr, "mutants: %s cannot be used\n", path);
    exit(2);
}

/* ---- What a base holds ---- */

uint64_t base_word(const struct base *base, uint64_t offset)
{
    const uint8_t *p = base->bytes + offset;
    return base->wide ? load_u64(p, base->big) : load_u32(p, base->big);
}

const struct part *base_part_at(const struct base *base, uint64_t address)
{
    for (size_t low = 0, high = base->parts.count; low < high;) {
        size_t middle = (low + high) / 2;
        const struct part *part = &base->parts.items[middle];
        if (address < part->begin)
            high = middle;
        else if (address - part->begin >= part->size)
            low = middle + 1;
        else
            return part;
    }
    return NULL;
}

uint64_t base_address(const struct base *base, uint64_t offset)
{
    for (size_t i = 0; i < base->parts.count; i++)
        if (offset - base->parts.items[i].offset < base->parts.items[i].size)
            return base->parts.items[i].begin + (offset - base->parts.items[i].offset);
    return 0;
}

uint64_t numbers_any(const struct numbers *numbers, struct random *random)
{
    return numbers->items[random_below(random, numbers->count)];
}

uint64_t base_any_target(const struct base *base, struct random *random)
{
    uint64_t address = base->pointers.count ? base_word(base, numbers_any(&base->pointers, random)) : 0;
    return address + random_below(random, 64);
}

struct base *bases_any(struct random *random, enum base_kind kind)
{
    size_t first = random_below(random, base_count);
    for (size_t i = 0; i < base_count; i++)
        if (bases[(first + i) % base_count].kind == kind)
            return &bases[(first + i) % base_count];
    return NULL;
}

static int compare_parts(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static void list_parts(struct base *base)
{
    base->wide = base->bytes[EI_CLASS] == ELFCLASS64;
    base->big = base->bytes[EI_DATA] == ELFDATA2MSB;
    size_t entry = base->wide ? 56 : 32;
    uint64_t table = base->wide ? load_u64(base->bytes + 32, base->big) : load_u32(base->bytes + 28, base->big);
    unsigned count = load_u16(base->bytes + (base->wide ? 56 : 44), base->big);
    for (unsigned i = 0; i < count && range_fits(table + i * entry, entry, base->size); i++) {
        const uint8_t *p = base->bytes + table + i * entry;
        struct part part =
            base->wide
                ? (struct part){load_u64(p + 16, base->big), load_u64(p + 8, base->big), load_u64(p + 32, base->big)}
                : (struct part){load_u32(p + 8, base->big), load_u32(p + 4, base->big), load_u32(p + 16, base->big)};
        if (load_u32(p, base->big) == PT_LOAD && part.size && range_fits(part.offset, part.size, base->size))
            parts_append(&base->parts, part);
    }
    if (base->parts.count)
        qsort(base->parts.items, base->parts.count, sizeof *base->parts.items, compare_parts);
}

static void list_pointers(struct base *base)
{
    size_t word = base->wide ? 8 : 4;
    for (size_t i = 0; i < base->parts.count; i++)
        for (uint64_t at = base->parts.items[i].offset, end = at + base->parts.items[i].size; at + word <= end;
             at += word)
            if (base_part_at(base, base_word(base, at)))
                numbers_append(&base->pointers, at);
}

/* Where `mark` is, at least `apart` bytes from the one before. */
static void list_marks(const struct base *base, const char *mark, uint64_t apart, struct numbers *ret)
{
    size_t length = strlen(mark);
    for (const uint8_t *at = base->bytes;
         (at = memmem(at, base->size - (size_t)(at - base->bytes), mark, length)) != NULL; at += length) {
        uint64_t offset = (uint64_t)(at - base->bytes);
        if (!ret->count || offset > ret->items[ret->count - 1] + apart)
            numbers_append(ret, offset);
    }
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), n = strlen(end);
    return length >= n && strcmp(text + length - n, end) == 0;
}

static enum base_kind kind_of(const struct base *base)
{
    static const struct {
        const char *magic;
        enum base_kind kind;
    } magics[] = {{"\x28\xb5\x2f\xfd", BASE_PACKED},
                  {"\x1f\x8b", BASE_PACKED},
                  {"\xfd"
                   "7zXZ",
                   BASE_PACKED},
                  {"\x04\x22\x4d\x18", BASE_PACKED},
                  {"DTiJ", BASE_JITDUMP},
                  {"JiTD", BASE_JITDUMP},
                  {"BSJB", BASE_PDB},
                  {"MZ", BASE_IMAGE},
                  {"{", BASE_JSON}};
    if (base->size > EI_NIDENT + 2 && memcmp(base->bytes, ELFMAG, SELFMAG) == 0)
        return load_u16(base->bytes + EI_NIDENT, base->bytes[EI_DATA] == ELFDATA2MSB) == ET_CORE ? BASE_CORE
                                                                                                 : BASE_IMAGE;
    for (size_t i = 0; i < ARRAY_SIZE(magics); i++)
        if (base->size >= strlen(magics[i].magic) && memcmp(base->bytes, magics[i].magic, strlen(magics[i].magic)) == 0)
            return magics[i].kind;
    return ends_with(base->name, ".map") ? BASE_MAP : ends_with(base->name, ".folded") ? BASE_FOLDED : BASE_TEXT;
}

/* ---- Adding ---- */

/* A base of `size` bytes, which the caller fills in before base_complete(). */
static struct base *base_new(const char *name, size_t size)
{
    if (base_count == BASE_MAX || !size)
        refuse(name);
    struct base *base = &bases[base_count++];
    *base = (struct base){.name = strdup(path_basename(name)), .size = size, .fd = memfd_create("mutant", MFD_CLOEXEC)};
    if (!base->name || base->fd < 0 || ftruncate(base->fd, (off_t)size) < 0)
        refuse(name);
    base->bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, base->fd, 0);
    if (base->bytes == MAP_FAILED)
        refuse(name);
    snprintf(base->path, sizeof base->path, "/proc/self/fd/%d", base->fd);
    return base;
}

/* The files that a core names must not be found here. */
static void hide_paths(struct base *base, const char *folder)
{
    for (uint8_t *at = base->bytes;
         (at = memmem(at, base->size - (size_t)(at - base->bytes), folder, strlen(folder))) != NULL;
         at += strlen(folder))
        at[1] = 'x';
}

static void base_complete(struct base *base)
{
    base->kind = kind_of(base);
    list_marks(base, "BSJB", 1024, &base->metadata);
    if (base->kind == BASE_CORE) {
        hide_paths(base, "/usr/");
        hide_paths(base, "/lib/");
        hide_paths(base, "/root/");
        hide_paths(base, "/tmp/");
        list_parts(base);
        list_pointers(base);
        list_marks(base, "{\"", 4096, &base->texts);
    } else if (base->kind == BASE_JSON)
        numbers_append(&base->texts, 0);
}

void bases_add_file(const char *path)
{
    struct stat st;
    CLEANUP_CLOSE int fd = file_open(path, &st);
    if (fd < 0)
        refuse(path);
    if (!st.st_size)
        return;
    struct base *base = base_new(path, (size_t)st.st_size);
    if (file_read_at(fd, 0, base->bytes, base->size) != base->size)
        refuse(path);
    base_complete(base);
}

START_TEST(add_synthetic)
{
    for (int i = 0; i < 12; i++) {
        char path[] = "/tmp/cdacq-mutant-XXXXXX";
        struct cdacq_error error;
        struct sample_process sample = sample_build(i % ARCH_COUNT, (uint64_t)i,
                                                    i % 3 == 0   ? 1
                                                    : i % 3 == 1 ? 2
                                                                 : MOCK_NET_11,
                                                    i % 2 == 0 || i > 7);
        mock_publish(sample.mock, NULL);
        int fd = mkstemp(path);
        if (fd < 0 || !mock_write_core(sample.mock, path, &error))
            exit(2);
        close(fd);
        bases_add_file(path);
        unlink(path);
        sample_destroy(&sample);
    }
}
END_TEST

/* The synthetic processes check themselves, which they can do in a test only. */
void bases_add_synthetic(void)
{
    Suite *suite = suite_create("mutants");
    TCase *tests = tcase_create("bases");
    tcase_add_test(tests, add_synthetic);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_SILENT);
    if (srunner_ntests_failed(runner))
        exit(2);
    srunner_free(runner);
}

static void add_bytes(const char *name, const void *bytes, size_t size)
{
    struct base *base = base_new(name, size);
    memcpy(base->bytes, bytes, size);
    base_complete(base);
}

/* As perf script and gdb write stacks. */
static void write_stack(struct text *text, const struct base *core, struct random *random)
{
    text_printf(text, "dotnet %d/%d 12.3: 1 cycles:u:\n", 1 + (int)random_below(random, 9),
                (int)random_below(random, 99));
    for (int i = 0; i < 12; i++)
        text_printf(text,
                    random_below(random, 2) ? "\t%16llx [unknown] (/tmp/perf-1.map)\n"
                                            : "\t%16llx a::b(c)+0x1 (/x y/z.so)\n",
                    (unsigned long long)base_any_target(core, random));
    text_printf(text, "\n#1  0x%016llx in ?? ()\n\n", (unsigned long long)base_any_target(core, random));
}

void bases_add_texts(void)
{
    struct random random = {7};
    struct text text = {0}, folded = {0};
    for (int i = 0; i < 24; i++) {
        const struct base *core = bases_any(&random, BASE_CORE);
        if (core)
            write_stack(&text, core, &random);
        text_printf(&folded, "main%d;a::b;[unknown];N.T.M(int)_[j];f%d %d\n", i % 3, i % 7, i);
    }
    if (text.broken || folded.broken)
        exit(2);
    add_bytes("stacks.txt", text.data, text.length);
    add_bytes("stacks.folded", folded.data, folded.length);
    free(text.data);
    free(folded.data);
}

/* Compressed files whose blocks are stored, so that changes reach the core in them, too. */

struct packed {
    uint8_t *bytes;
    size_t size;
};

static void pack(struct packed *packed, const void *bytes, size_t size)
{
    memcpy(packed->bytes + packed->size, bytes, size);
    packed->size += size;
}

static void pack_number(struct packed *packed, uint64_t value, size_t size)
{
    uint8_t bytes[8];
    store_u64(bytes, value, false);
    pack(packed, bytes, size);
}

static uint32_t crc_of(const uint8_t *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static void add_packed(const char *name, const struct base *core)
{
    enum { BLOCK = 0x8000 };
    struct packed packed = {malloc(2 * core->size + 64), 0};
    bool gzip = ends_with(name, ".gz"), zstd = ends_with(name, ".zst");
    if (!packed.bytes)
        refuse(name);
    if (gzip)
        pack(&packed, "\x1f\x8b\x08\0\0\0\0\0\0\3", 10);
    else
        pack(&packed, zstd ? "\x28\xb5\x2f\xfd\0\x58" : "\x04\x22\x4d\x18\x60\x40\x82", zstd ? 6 : 7);
    for (size_t at = 0; at < core->size; at += BLOCK) {
        size_t size = MIN(core->size - at, (size_t)BLOCK);
        bool last = at + size == core->size;
        if (gzip)
            pack_number(&packed, last | size << 8 | (~size & 0xffff) << 24, 5);
        else
            pack_number(&packed, zstd ? last | size << 3 : size | 0x80000000, zstd ? 3 : 4);
        pack(&packed, core->bytes + at, size);
    }
    if (gzip)
        pack_number(&packed, crc_of(core->bytes, core->size) | (uint64_t)core->size << 32, 8);
    else if (!zstd)
        pack_number(&packed, 0, 4);
    add_bytes(name, packed.bytes, packed.size);
    free(packed.bytes);
}

void bases_add_packed(void)
{
    const struct base *core = NULL;
    for (size_t i = 0; i < base_count; i++)
        if (bases[i].kind == BASE_CORE && (!core || bases[i].size < core->size))
            core = &bases[i];
    if (!core)
        return;
    add_packed("core.gz", core);
    add_packed("core.zst", core);
    add_packed("core.lz4", core);
}

void bases_list_mappings(void)
{
    const struct cdacq_options options = {.size = sizeof options, .flags = CDACQ_OPEN_PARTIAL};
    for (size_t n = 0; n < base_count; n++) {
        struct base *base = &bases[n];
        struct cdacq_target *target;
        if (base->kind != BASE_CORE || cdacq_target_open_core(base->path, &options, &target, NULL) < 0)
            continue;
        size_t count = target->memory->mapping_count;
        base->mappings = calloc(count + 1, sizeof *base->mappings);
        for (size_t i = 0; base->mappings && i < count; i++) {
            const struct mapping *mapping = &target->memory->mappings[i];
            base->mappings[base->mapping_count++] = (struct cdacq_mapping){
                sizeof *base->mappings, mapping->begin, mapping->end, mapping->offset, strdup(mapping->path)};
        }
        cdacq_target_close(target);
    }
}
