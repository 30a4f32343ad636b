#include "tests/support/elf_support.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "util/file.h"
#include "util/vector.h"

void elf_put(struct elf_buffer *buffer, const void *data, size_t size)
{
    if (buffer->size + size > buffer->capacity) {
        buffer->data = vector_grow(buffer->data, &buffer->capacity, buffer->size + size, 1);
        ck_assert_ptr_nonnull(buffer->data);
    }
    if (data)
        memcpy(buffer->data + buffer->size, data, size);
    else
        memset(buffer->data + buffer->size, 0, size);
    buffer->size += size;
}

static void put_at(const struct elf_buffer *buffer, size_t at, uint64_t value, unsigned width)
{
    for (unsigned i = 0; i < width; i++)
        buffer->data[at + (buffer->big ? width - 1 - i : i)] = (uint8_t)(value >> 8 * i);
}

static uint64_t get_at(const uint8_t *data, unsigned width, bool big)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < width; i++)
        value = value << 8 | data[big ? i : width - 1 - i];
    return value;
}

void elf_put_int(struct elf_buffer *buffer, uint64_t value, unsigned width)
{
    elf_put(buffer, NULL, width);
    put_at(buffer, buffer->size - width, value, width);
}

void elf_put_word(struct elf_buffer *buffer, uint64_t value)
{
    elf_put_int(buffer, value, buffer->wide ? 8 : 4);
}

void elf_pad(struct elf_buffer *buffer, size_t alignment)
{
    while (buffer->size % alignment)
        elf_put_int(buffer, 0, 1);
}

/* ---- Headers ---- */

static void put_elf_header(struct elf_buffer *out, uint16_t type, uint16_t machine, uint64_t phoff, uint64_t shoff,
                           size_t phnum, size_t shnum)
{
    const uint8_t ident[EI_NIDENT] = {
        0x7f, 'E', 'L', 'F', out->wide ? ELFCLASS64 : ELFCLASS32, out->big ? ELFDATA2MSB : ELFDATA2LSB, EV_CURRENT};
    elf_put(out, ident, sizeof ident);
    elf_put_int(out, type, 2);
    elf_put_int(out, machine, 2);
    elf_put_int(out, EV_CURRENT, 4);
    elf_put_word(out, 0);
    elf_put_word(out, phoff);
    elf_put_word(out, shoff);
    elf_put_int(out, 0, 4);
    elf_put_int(out, out->wide ? 64 : 52, 2);
    elf_put_int(out, out->wide ? 56 : 32, 2);
    elf_put_int(out, phnum, 2);
    elf_put_int(out, out->wide ? 64 : 40, 2);
    elf_put_int(out, shnum, 2);
    elf_put_int(out, 0, 2);
}

static void put_program_header(struct elf_buffer *out, const struct elf_core_segment *segment)
{
    elf_put_int(out, segment->type, 4);
    if (out->wide)
        elf_put_int(out, segment->flags, 4);
    elf_put_word(out, segment->offset);
    elf_put_word(out, segment->vaddr);
    elf_put_word(out, segment->vaddr);
    elf_put_word(out, segment->file_size);
    elf_put_word(out, segment->memory_size);
    if (!out->wide)
        elf_put_int(out, segment->flags, 4);
    elf_put_word(out, segment->align);
}

/* ---- Cores ---- */

void elf_core_init(struct elf_core *core, bool wide, bool big)
{
    *core = (struct elf_core){
        .wide = wide,
        .big = big,
        .type = ET_CORE,
        .machine = wide ? (big ? EM_S390 : EM_X86_64) : (big ? EM_PPC : EM_386),
    };
}

void elf_core_deinit(struct elf_core *core)
{
    for (size_t i = 0; i < core->count; i++)
        free(core->segments[i].notes.data);
    free(core->segments);
    *core = (struct elf_core){0};
}

static struct elf_core_segment *add_segment(struct elf_core *core, struct elf_core_segment segment)
{
    if (core->count == core->capacity) {
        core->segments = vector_grow(core->segments, &core->capacity, core->count + 1, sizeof *core->segments);
        ck_assert_ptr_nonnull(core->segments);
    }
    core->segments[core->count] = segment;
    return &core->segments[core->count++];
}

struct elf_core_segment *elf_core_load(struct elf_core *core, uint64_t vaddr, const void *bytes, size_t file_size,
                                       uint64_t memory_size, uint32_t flags)
{
    return add_segment(core, (struct elf_core_segment){.type = PT_LOAD,
                                                       .flags = flags,
                                                       .vaddr = vaddr,
                                                       .file_size = file_size,
                                                       .memory_size = memory_size,
                                                       .align = 4096,
                                                       .bytes = bytes,
                                                       .size = bytes ? file_size : 0});
}

struct elf_core_segment *elf_core_notes(struct elf_core *core)
{
    struct elf_core_segment *notes = add_segment(core, (struct elf_core_segment){.type = PT_NOTE, .align = 4});
    notes->notes = (struct elf_buffer){.wide = core->wide, .big = core->big};
    return notes;
}

void elf_note(struct elf_core_segment *notes, const char *name, uint32_t type, const void *desc, size_t size)
{
    struct elf_buffer *out = &notes->notes;
    elf_put_int(out, strlen(name) + 1, 4);
    elf_put_int(out, size, 4);
    elf_put_int(out, type, 4);
    elf_put(out, name, strlen(name) + 1);
    elf_pad(out, notes->align == 8 ? 8 : 4);
    elf_put(out, desc, size);
    elf_pad(out, notes->align == 8 ? 8 : 4);
}

struct elf_buffer elf_mappings_desc(bool wide, bool big, uint64_t page_size, const struct elf_mapping *mappings,
                                    size_t count)
{
    struct elf_buffer desc = {.wide = wide, .big = big};
    elf_put_word(&desc, count);
    elf_put_word(&desc, page_size);
    for (size_t i = 0; i < count; i++) {
        elf_put_word(&desc, mappings[i].begin);
        elf_put_word(&desc, mappings[i].end);
        elf_put_word(&desc, mappings[i].page_offset);
    }
    for (size_t i = 0; i < count; i++)
        elf_put(&desc, mappings[i].path, strlen(mappings[i].path) + 1);
    return desc;
}

struct elf_core_segment *elf_core_mappings(struct elf_core *core, uint64_t page_size,
                                           const struct elf_mapping *mappings, size_t count)
{
    struct elf_buffer desc = elf_mappings_desc(core->wide, core->big, page_size, mappings, count);
    struct elf_core_segment *notes = elf_core_notes(core);
    elf_note(notes, "CORE", NT_FILE, desc.data, desc.size);
    free(desc.data);
    return notes;
}

static void put_contents(struct elf_core *core, struct elf_buffer *out, uint32_t type)
{
    for (size_t i = 0; i < core->count; i++) {
        struct elf_core_segment *segment = &core->segments[i];
        if (segment->type != type)
            continue;
        if (segment->type == PT_NOTE && !segment->file_size)
            segment->file_size = segment->notes.size;
        elf_pad(out, 8);
        if (!segment->offset_given)
            segment->offset = out->size;
        if (segment->type == PT_NOTE && segment->notes.size)
            elf_put(out, segment->notes.data, segment->notes.size);
        else if (segment->bytes)
            elf_put(out, segment->bytes, segment->size);
    }
}

uint8_t *elf_core_build(struct elf_core *core, size_t *ret_size)
{
    struct elf_buffer out = {.wide = core->wide, .big = core->big};
    bool extended = core->extended || core->count >= PN_XNUM;
    size_t header = core->wide ? 64 : 52, entry = core->wide ? 56 : 32;
    put_elf_header(&out, core->type, core->machine, header, 0, extended ? PN_XNUM : core->count, 0);
    core->headers_at = header;
    core->headers_end = header + core->count * entry;
    if (!core->headers_last)
        elf_put(&out, NULL, core->count * entry);
    put_contents(core, &out, PT_NOTE);
    core->notes_end = out.size;
    put_contents(core, &out, PT_LOAD);
    elf_pad(&out, 8);
    if (extended) { /* as Linux does it: one section header at the end, whose sh_info is the count */
        core->section_at = out.size;
        put_at(&out, core->wide ? 40 : 32, out.size, core->wide ? 8 : 4);
        put_at(&out, core->wide ? 60 : 48, 1, 2);
        elf_put_int(&out, 0, 4);
        elf_put_int(&out, SHT_NULL, 4);
        for (int i = 0; i < 3; i++)
            elf_put_word(&out, 0);
        elf_put_word(&out, 1);
        elf_put_int(&out, 0, 4);
        elf_put_int(&out, core->count, 4);
        elf_put_word(&out, 0);
        elf_put_word(&out, 0);
    }
    if (core->headers_last) {
        core->headers_at = out.size;
        core->headers_end = out.size + core->count * entry;
        elf_put(&out, NULL, core->count * entry);
        put_at(&out, core->wide ? 32 : 28, core->headers_at, core->wide ? 8 : 4);
    }
    struct elf_buffer headers = {.wide = core->wide, .big = core->big};
    for (size_t i = 0; i < core->count; i++)
        put_program_header(&headers, &core->segments[i]);
    if (headers.size)
        memcpy(out.data + core->headers_at, headers.data, headers.size);
    free(headers.data);
    *ret_size = out.size;
    return out.data;
}

/* ---- Shared objects ---- */

void elf_object_init(struct elf_object *object, bool wide, bool big)
{
    *object = (struct elf_object){
        .wide = wide,
        .big = big,
        .machine = wide ? (big ? EM_S390 : EM_X86_64) : EM_ARM,
        .gnu_hash = true,
        .build_id_size = 20,
    };
    for (size_t i = 0; i < object->build_id_size; i++)
        object->build_id[i] = (uint8_t)(0xa0 + i);
}

void elf_object_symbol(struct elf_object *object, const char *name, uint64_t value, uint64_t size)
{
    ck_assert_uint_lt(object->symbol_count, ELF_OBJECT_SYMBOLS);
    object->symbols[object->symbol_count++] = (struct elf_object_symbol){name, value, size, 7};
}

/* The caller's data start after the dynamic section, at a fixed offset. */
enum { DYNAMIC_SIZE = 16 * 16 };

void elf_object_pointer(struct elf_object *object, size_t offset, uint64_t target)
{
    ck_assert_uint_lt(object->relocated_count, ELF_OBJECT_RELOCATIONS);
    object->relocated[object->relocated_count++] =
        (struct elf_object_relocation){ELF_DATA_VADDR + DYNAMIC_SIZE + offset, target, 0};
    object->data_size = MAX(object->data_size, offset + 8);
}

uint32_t elf_relative_type(uint16_t machine)
{
    switch (machine) {
    case EM_AARCH64:
        return 1027;
    case EM_ARM:
        return 23;
    case EM_S390:
        return 12;
    case EM_RISCV:
    case 258: /* EM_LOONGARCH */
        return 3;
    case EM_PPC64:
        return 22;
    default:
        return 8;
    }
}

static uint32_t gnu_hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static uint32_t sysv_hash_of(const char *name)
{
    uint32_t hash = 0;
    for (; *name; name++) {
        hash = (hash << 4) + (unsigned char)*name;
        uint32_t high = hash & 0xf0000000;
        hash ^= high >> 24;
        hash &= ~high;
    }
    return hash;
}

enum { BUCKETS = 3 };

static int compare_buckets(const void *a, const void *b)
{
    const struct elf_object_symbol *x = a, *y = b;
    return (int)(gnu_hash_of(x->name) % BUCKETS) - (int)(gnu_hash_of(y->name) % BUCKETS);
}

static void put_symbols(struct elf_object *object, struct elf_buffer *out)
{
    struct elf_buffer names = {0};
    elf_put_int(&names, 0, 1);
    qsort(object->symbols, object->symbol_count, sizeof object->symbols[0], compare_buckets);
    elf_pad(out, 8);
    object->symtab_vaddr = out->size;
    elf_put(out, NULL, out->wide ? 24 : 16);
    for (size_t i = 0; i < object->symbol_count; i++) {
        const struct elf_object_symbol *symbol = &object->symbols[i];
        elf_put_int(out, names.size, 4);
        if (out->wide) {
            elf_put_int(out, STB_GLOBAL << 4 | STT_OBJECT, 1);
            elf_put_int(out, 0, 1);
            elf_put_int(out, symbol->section, 2);
            elf_put_int(out, symbol->value, 8);
            elf_put_int(out, symbol->size, 8);
        } else {
            elf_put_int(out, symbol->value, 4);
            elf_put_int(out, symbol->size, 4);
            elf_put_int(out, STB_GLOBAL << 4 | STT_OBJECT, 1);
            elf_put_int(out, 0, 1);
            elf_put_int(out, symbol->section, 2);
        }
        elf_put(&names, symbol->name, strlen(symbol->name) + 1);
    }
    object->strtab_vaddr = out->size;
    elf_put(out, names.data, names.size);
    free(names.data);
    elf_pad(out, 8);
}

static void put_gnu_hash(struct elf_object *object, struct elf_buffer *out)
{
    size_t n = object->symbol_count;
    object->gnu_hash_vaddr = out->size;
    elf_put_int(out, BUCKETS, 4);
    elf_put_int(out, 1, 4);
    elf_put_int(out, 2, 4);
    elf_put_int(out, 6, 4);
    elf_put_word(out, UINT64_MAX); /* a filter that passes everything */
    elf_put_word(out, UINT64_MAX);
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        size_t i = 0;
        while (i < n && gnu_hash_of(object->symbols[i].name) % BUCKETS != bucket)
            i++;
        elf_put_int(out, i < n ? i + 1 : 0, 4);
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t hash = gnu_hash_of(object->symbols[i].name);
        bool last = i + 1 == n || gnu_hash_of(object->symbols[i + 1].name) % BUCKETS != hash % BUCKETS;
        elf_put_int(out, (hash & ~1u) | last, 4);
    }
}

static void put_sysv_hash(struct elf_object *object, struct elf_buffer *out)
{
    uint32_t buckets[BUCKETS] = {0}, chains[ELF_OBJECT_SYMBOLS + 1] = {0};
    object->hash_vaddr = out->size;
    for (uint32_t i = 1; i <= object->symbol_count; i++) {
        uint32_t bucket = sysv_hash_of(object->symbols[i - 1].name) % BUCKETS;
        chains[i] = buckets[bucket];
        buckets[bucket] = i;
    }
    unsigned size = object->wide && object->machine == EM_S390 ? 8 : 4;
    elf_put_int(out, BUCKETS, size);
    elf_put_int(out, object->symbol_count + 1, size);
    for (size_t i = 0; i < BUCKETS; i++)
        elf_put_int(out, buckets[i], size);
    for (size_t i = 0; i <= object->symbol_count; i++)
        elf_put_int(out, chains[i], size);
}

static void put_relr(const struct elf_object *object, struct elf_buffer *out)
{
    uint64_t word = out->wide ? 8 : 4, bits = word * 8 - 1, where = UINT64_MAX, bitmap = 0;
    for (size_t i = 0; i < object->relocated_count; i++) {
        uint64_t vaddr = object->relocated[i].vaddr;
        if (object->relocated[i].type)
            continue;
        while (where != UINT64_MAX && vaddr >= where && vaddr - where >= bits * word && bitmap) {
            elf_put_word(out, bitmap << 1 | 1);
            bitmap = 0;
            where += bits * word;
        }
        if (where != UINT64_MAX && vaddr >= where && vaddr - where < bits * word) {
            bitmap |= UINT64_C(1) << (vaddr - where) / word;
            continue;
        }
        elf_put_word(out, vaddr);
        where = vaddr + word;
    }
    if (bitmap)
        elf_put_word(out, bitmap << 1 | 1);
}

static void put_relocations(struct elf_object *object, struct elf_buffer *out)
{
    elf_pad(out, 8);
    object->relocations_vaddr = out->size;
    if (object->relocations == ELF_RELR) {
        put_relr(object, out);
        return;
    }
    for (size_t i = 0; i < object->relocated_count; i++) {
        const struct elf_object_relocation *relocation = &object->relocated[i];
        elf_put_word(out, relocation->vaddr);
        elf_put_word(out, relocation->type ? relocation->type : elf_relative_type(object->machine));
        if (object->relocations == ELF_RELA)
            elf_put_word(out, relocation->addend);
    }
}

static void put_dynamic(struct elf_object *object, struct elf_buffer *out, uint64_t strings_end,
                        uint64_t relocations_end)
{
    static const uint32_t table[] = {[ELF_RELA] = DT_RELA, [ELF_REL] = DT_REL, [ELF_RELR] = 36};
    static const uint32_t table_size[] = {[ELF_RELA] = DT_RELASZ, [ELF_REL] = DT_RELSZ, [ELF_RELR] = 35};
    const uint64_t entries[][2] = {
        {DT_SYMTAB, object->symtab_vaddr},
        {DT_STRTAB, object->strtab_vaddr},
        {DT_STRSZ, strings_end - object->strtab_vaddr},
        {object->gnu_hash ? DT_GNU_HASH : DT_DEBUG, object->gnu_hash ? object->gnu_hash_vaddr : 0},
        {object->sysv_hash ? DT_HASH : DT_DEBUG, object->sysv_hash ? object->hash_vaddr : 0},
        {table[object->relocations], object->relocations_vaddr},
        {table_size[object->relocations], relocations_end - object->relocations_vaddr},
        {DT_NULL, 0},
        {DT_STRTAB, 0x666}, /* after the end: not trusted */
    };
    size_t begin = out->size;
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        elf_put_word(out, entries[i][0]);
        elf_put_word(out, entries[i][1]);
    }
    elf_put(out, NULL, begin + DYNAMIC_SIZE - out->size);
}

uint8_t *elf_object_build(struct elf_object *object, size_t *ret_size)
{
    struct elf_buffer out = {.wide = object->wide, .big = object->big};
    size_t header = object->wide ? 64 : 52, entry = object->wide ? 56 : 32;
    put_elf_header(&out, ET_DYN, object->machine, header, 0, 4, 0);
    elf_put(&out, NULL, 4 * entry);
    elf_pad(&out, 8);
    object->note_vaddr = out.size;
    struct elf_core_segment note = {.notes = {.wide = object->wide, .big = object->big}, .align = 4};
    elf_note(&note, "GNU", NT_GNU_ABI_TAG, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    if (object->build_id_size)
        elf_note(&note, "GNU", NT_GNU_BUILD_ID, object->build_id, object->build_id_size);
    size_t note_size = note.notes.size;
    elf_put(&out, note.notes.data, note_size);
    free(note.notes.data);
    put_symbols(object, &out);
    uint64_t strings_end = out.size;
    if (object->gnu_hash)
        put_gnu_hash(object, &out);
    if (object->sysv_hash)
        put_sysv_hash(object, &out);
    put_relocations(object, &out);
    uint64_t relocations_end = out.size;
    ck_assert_uint_le(out.size, ELF_DATA_OFFSET);
    elf_put(&out, NULL, ELF_DATA_OFFSET - out.size);

    object->dynamic_vaddr = ELF_DATA_VADDR;
    object->data_vaddr = ELF_DATA_VADDR + DYNAMIC_SIZE;
    put_dynamic(object, &out, strings_end, relocations_end);
    size_t data_at = out.size;
    elf_put(&out, object->data, object->data_size);
    if (object->relocations != ELF_RELA) /* the addend is in place */
        for (size_t i = 0; i < object->relocated_count; i++)
            put_at(&out, data_at + (size_t)(object->relocated[i].vaddr - object->data_vaddr),
                   object->relocated[i].addend, object->wide ? 8 : 4);

    const struct elf_core_segment segments[4] = {
        {.type = PT_LOAD, .flags = PF_R, .file_size = relocations_end, .memory_size = relocations_end, .align = 4096},
        {.type = PT_LOAD,
         .flags = PF_R | PF_W,
         .offset = ELF_DATA_OFFSET,
         .vaddr = ELF_DATA_VADDR,
         .file_size = out.size - ELF_DATA_OFFSET,
         .memory_size = out.size - ELF_DATA_OFFSET + object->bss_size,
         .align = 4096},
        {.type = PT_DYNAMIC,
         .flags = PF_R | PF_W,
         .offset = ELF_DATA_OFFSET,
         .vaddr = ELF_DATA_VADDR,
         .file_size = DYNAMIC_SIZE,
         .memory_size = DYNAMIC_SIZE,
         .align = 8},
        {.type = PT_NOTE,
         .flags = PF_R,
         .offset = object->note_vaddr,
         .vaddr = object->note_vaddr,
         .file_size = note_size,
         .memory_size = note_size,
         .align = 4},
    };
    struct elf_buffer headers = {.wide = object->wide, .big = object->big};
    for (size_t i = 0; i < ARRAY_SIZE(segments); i++)
        put_program_header(&headers, &segments[i]);
    memcpy(out.data + header, headers.data, headers.size);
    free(headers.data);
    *ret_size = out.size;
    return out.data;
}

uint8_t *elf_object_load(const struct elf_object *object, const uint8_t *file, size_t size, uint64_t base,
                         bool relocate, size_t *ret_size)
{
    size_t data_size = size - ELF_DATA_OFFSET, total = ELF_DATA_VADDR + data_size + object->bss_size;
    total = (total + 4095) & ~(size_t)4095;
    uint8_t *memory = calloc(1, total);
    ck_assert_ptr_nonnull(memory);
    memcpy(memory, file, ELF_DATA_OFFSET);
    memcpy(memory + ELF_DATA_VADDR, file + ELF_DATA_OFFSET, data_size);
    struct elf_buffer at = {.data = memory, .wide = object->wide, .big = object->big};
    unsigned word = object->wide ? 8 : 4;
    for (size_t i = 0; relocate && i < object->relocated_count; i++)
        if (!object->relocated[i].type) {
            uint64_t addend = object->relocations == ELF_RELA
                                  ? object->relocated[i].addend
                                  : get_at(memory + object->relocated[i].vaddr, word, object->big);
            put_at(&at, (size_t)object->relocated[i].vaddr, base + addend, word);
        }
    *ret_size = total;
    return memory;
}

/* ---- Files ---- */

const char *memory_file(const void *bytes, size_t size, int *ret_fd)
{
    static char paths[8][64];
    static unsigned turn;
    char *path = paths[turn++ % ARRAY_SIZE(paths)];
    int fd = memfd_create("test", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, (const uint8_t *)bytes + done, size - done);
        ck_assert_int_gt(n, 0);
        done += (size_t)n;
    }
    snprintf(path, sizeof paths[0], "/proc/self/fd/%d", fd);
    *ret_fd = fd;
    return path;
}

static char dir[64];

const char *test_dir(void)
{
    if (!dir[0]) {
        strcpy(dir, "/tmp/cdacq-test-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(dir));
    }
    return dir;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void test_dir_remove(void)
{
    if (dir[0])
        nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    dir[0] = '\0';
}

char *test_path(const char *name)
{
    static char paths[8][512];
    static unsigned turn;
    char *path = paths[turn++ % ARRAY_SIZE(paths)];
    ck_assert_int_lt(snprintf(path, sizeof paths[0], "%s/%s", test_dir(), name), sizeof paths[0]);
    return path;
}

const char *test_file(const char *name, const void *bytes, size_t size)
{
    char *path = test_path(name);
    for (char *slash = strchr(path + strlen(test_dir()) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        ck_assert(mkdir(path, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(path, "wb");
    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

uint8_t *whole_file(const char *path, size_t *ret_size)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    return (uint8_t *)file_read_all(fd, SIZE_MAX, ret_size);
}
