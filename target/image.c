#include "target/image.h"

#include <inttypes.h>

#include "formats/elf_machine.h"
#include "target/mapped_file.h"
#include "target/reader.h"
#include "util/error.h"

enum {
    RELOCATION_TABLE_MAX = 64 * 1024 * 1024, /* bytes; libcoreclr's has 452,088 */
    SYMBOL_NAME_MAX = 256,
    HASH_CHAIN_MAX = 64 * 1024,
    FUEL_IMAGE =
        20 * 1000, /* to read the headers or find a symbol; some 300 suffice, and a core may name many images */
};

/* A reader in the ELF image's class and byte order; the runtime's data may have others. */
static struct reader image_reader(const struct image *image, uint32_t fuel)
{
    struct reader reader;
    reader_init(&reader, image->target, elf_word_size(image->elf), image->elf.big);
    reader_begin(&reader, fuel);
    return reader;
}

static const struct image_segment *segment_of(const struct image *image, uint64_t vaddr, uint64_t size)
{
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct image_segment *segment = &image->segments[i];
        if (vaddr >= segment->vaddr && range_fits(vaddr - segment->vaddr, size, segment->memory_size))
            return segment;
    }
    return NULL;
}

/* The file's bytes at an address in a segment: what the loader maps there before it relocates anything. */
static const uint8_t *link_time_bytes(const struct image *image, uint64_t address, uint64_t size)
{
    const struct image_segment *segment = segment_of(image, address - image->base, size);
    if (!segment || !image->file || !mapped_file_resolve(image->file))
        return NULL;
    uint64_t in_segment = address - image->base - segment->vaddr;
    uint64_t offset = add_saturated(segment->file_offset, in_segment);
    if (!range_fits(in_segment, size, segment->file_size) || !range_fits(offset, size, image->file->content.size))
        return NULL; /* .bss is in no file */
    return image->file->content.bytes + offset;
}

static void read_build_id(struct image *image, struct reader *reader, uint64_t address, uint64_t size)
{
    uint64_t end = add_saturated(address, size);
    while (!image->build_id_size && address < end && end - address >= ELF_NOTE_HEADER_SIZE &&
           reader_step(reader, "PT_NOTE")) {
        uint8_t header[ELF_NOTE_HEADER_SIZE];
        char name[4] = "";
        if (!reader_copy(reader, address, header, sizeof header))
            return;
        struct elf_note note = elf_note_at(image->elf, header, 4);
        if (note.type == NT_GNU_BUILD_ID && note.desc_size <= BUILD_ID_MAX &&
            reader_copy(reader, address + sizeof header, name, sizeof name) && elf_note_is_build_id(&note, name) &&
            reader_copy(reader, address + note.desc, image->build_id, note.desc_size))
            image->build_id_size = note.desc_size;
        address = add_saturated(address, note.next);
    }
}

/* An address in a dynamic section: glibc relocates it in memory; musl does not, nor does the file. */
static uint64_t dynamic_address(const struct image *image, uint64_t value)
{
    return value >= image->begin && value < image->end ? value : image->base + value;
}

static void set_dynamic(struct image *image, uint64_t tag, uint64_t value)
{
    enum { RELRSZ = 35, RELR = 36 }; /* DT_*; older elf.h lack them */
    struct image_dynamic *dynamic = &image->dynamic;
    const struct {
        uint64_t tag, *address, *size;
    } rows[] = {
        {DT_SYMTAB, &dynamic->symtab, NULL}, {DT_STRTAB, &dynamic->strtab, NULL},
        {DT_STRSZ, NULL, &dynamic->strsz},   {DT_GNU_HASH, &dynamic->gnu_hash, NULL},
        {DT_HASH, &dynamic->hash, NULL},     {DT_RELA, &dynamic->rela, NULL},
        {DT_RELASZ, NULL, &dynamic->relasz}, {DT_REL, &dynamic->rel, NULL},
        {DT_RELSZ, NULL, &dynamic->relsz},   {RELR, &dynamic->relr, NULL},
        {RELRSZ, NULL, &dynamic->relrsz},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (tag == rows[i].tag && rows[i].address)
            *rows[i].address = dynamic_address(image, value);
        else if (tag == rows[i].tag)
            *rows[i].size = value;
}

/* Reads from memory or, where that was not dumped, the link-time values from the file. */
static void read_dynamic(struct image *image, struct reader *reader)
{
    size_t size = elf_dynamic_size(image->elf);
    uint64_t address = image->base + image->dynamic_vaddr, count = image->dynamic_size / size;
    image->dynamic_complete = !count;
    for (uint64_t i = 0; i < count && reader_step(reader, "PT_DYNAMIC"); i++) {
        uint8_t bytes[sizeof(Elf64_Dyn)];
        uint64_t at = address + i * size;
        if (!reader_try_copy(reader, at, bytes, size)) {
            const uint8_t *linked = link_time_bytes(image, at, size);
            if (!linked)
                return;
            memcpy(bytes, linked, size);
        }
        struct elf_dynamic entry = elf_dynamic_at(image->elf, bytes);
        if (entry.tag != DT_NULL)
            set_dynamic(image, entry.tag, entry.value);
        image->dynamic_complete = entry.tag == DT_NULL || i + 1 == count;
        if (entry.tag == DT_NULL)
            return;
    }
}

static bool read_segment(const struct image *image, struct reader *reader, uint64_t address, struct elf_segment *ret)
{
    uint8_t bytes[ELF_RECORD_MAX];
    if (!reader_copy(reader, address, bytes, elf_segment_size(image->elf)))
        return false;
    *ret = elf_segment_at(image->elf, bytes);
    return true;
}

static void add_segment(struct image *image, const struct elf_segment *segment)
{
    if (segment->type == PT_LOAD && image->segment_count < IMAGE_SEGMENT_MAX &&
        add_saturated(segment->vaddr, segment->memory_size) != UINT64_MAX)
        image->segments[image->segment_count++] = (struct image_segment){
            .vaddr = segment->vaddr,
            .memory_size = segment->memory_size,
            .file_size = MIN(segment->file_size, segment->memory_size),
            .file_offset = segment->offset,
            .writable = (segment->flags & PF_W) != 0,
            .executable = (segment->flags & PF_X) != 0,
        };
    if (segment->type == PT_GNU_EH_FRAME) {
        image->eh_frame_hdr_vaddr = segment->vaddr;
        image->eh_frame_hdr_size = segment->memory_size;
    }
    if (segment->type == PT_DYNAMIC) {
        image->dynamic_vaddr = segment->vaddr;
        image->dynamic_size = MIN(segment->memory_size, (uint64_t)64 * 1024);
    }
}

/* The first segment at file offset 0 is mapped at `first_byte`, which gives the base. */
static void set_range(struct image *image, uint64_t first_byte)
{
    uint64_t low = UINT64_MAX, high = 0;
    for (size_t i = image->segment_count; i-- > 0;) {
        const struct image_segment *segment = &image->segments[i];
        if (segment->file_offset == 0 && segment->file_size)
            image->base = first_byte - segment->vaddr;
        low = MIN(low, segment->vaddr);
        high = MAX(high, segment->vaddr + segment->memory_size);
    }
    image->begin = image->base + low;
    image->end = image->base + high;
}

enum cdacq_status image_open(struct target *target, const struct mapping *first, struct image *ret,
                             struct cdacq_error *err)
{
    struct image image = {.target = target, .file = first->file, .path = first->path, .base = first->begin};
    CLEANUP_READER struct reader reader = image_reader(&image, FUEL_IMAGE);
    char path[160];
    uint8_t ident[EI_NIDENT];
    error_printable(path, sizeof path, first->path);
    if (!reader_try_copy(&reader, first->begin, ident, sizeof ident)) {
        bool is_silent = target->ops->is_silent_at && target->ops->is_silent_at(target, first->begin);
        return error_set(err, CDACQ_ERR_MEMORY, first->begin, "%s: its ELF header at 0x%" PRIx64 " is missing%s", path,
                         first->begin, is_silent ? "; its file system does not answer" : "");
    }
    if (!elf_class_of(ident, &image.elf))
        return error_set(err, CDACQ_ERR_FORMAT, first->begin, "%s: not an ELF image at 0x%" PRIx64, path, first->begin);
    reader_end(&reader);
    reader = image_reader(&image, FUEL_IMAGE);
    uint8_t bytes[ELF_RECORD_MAX];
    if (!reader_copy(&reader, first->begin, bytes, elf_header_size(image.elf)))
        return reader_status(&reader, err);
    struct elf_header header = elf_header_at(image.elf, bytes);
    struct elf_segment segment;
    image.machine = header.machine;
    image.entry_vaddr = header.entry;
    for (unsigned i = 0; i < header.segment_count && reader_step(&reader, "ELF program headers"); i++)
        if (read_segment(&image, &reader, first->begin + header.segments + (uint64_t)i * header.segment_size, &segment))
            add_segment(&image, &segment);
    if (reader_failed(&reader))
        return reader_status(&reader, err);
    set_range(&image, first->begin);

    for (unsigned i = 0; i < header.segment_count && !image.build_id_size; i++) {
        uint64_t address = first->begin + header.segments + (uint64_t)i * header.segment_size;
        if (read_segment(&image, &reader, address, &segment) && segment.type == PT_NOTE)
            read_build_id(&image, &reader, image.base + segment.vaddr, MIN(segment.memory_size, (uint64_t)64 * 1024));
        reader_recover(&reader, ~FAILURE(CDACQ_ERR_FUEL)); /* a note that cannot be read is skipped */
    }
    read_dynamic(&image, &reader);
    *ret = image;
    return CDACQ_OK;
}

/* ---- Symbols ---- */

static struct elf_symbol read_symbol(const struct image *image, struct reader *reader, uint64_t index)
{
    uint8_t bytes[sizeof(Elf64_Sym)] = {0};
    size_t size = elf_symbol_size(image->elf);
    reader_copy(reader, image->dynamic.symtab + index * size, bytes, size);
    return elf_symbol_at(image->elf, bytes);
}

static bool symbol_matches(const struct image *image, struct reader *reader, const struct elf_symbol *symbol,
                           const char *name)
{
    char found[SYMBOL_NAME_MAX];
    size_t size = strlen(name) + 1;
    return symbol->section != SHN_UNDEF && size <= sizeof found &&
           range_fits(symbol->name, size, image->dynamic.strsz) &&
           reader_copy(reader, image->dynamic.strtab + symbol->name, found, size) && memcmp(found, name, size) == 0;
}

/* The index of the symbol in DT_GNU_HASH, 0 where it has none. The Bloom filter, which only saves time, is ignored. */
static uint64_t find_by_gnu_hash(const struct image *image, struct reader *reader, const char *name,
                                 struct elf_symbol *ret)
{
    uint32_t hash = elf_hash_gnu(name);
    uint64_t table = image->dynamic.gnu_hash;
    uint32_t bucket_count = read_u32(reader, table), first = read_u32(reader, table + 4);
    uint64_t bloom_size = (uint64_t)read_u32(reader, table + 8) * elf_word_size(image->elf);
    if (reader_failed(reader) || !bucket_count)
        return 0;
    uint64_t buckets = table + 16 + bloom_size, chains = buckets + (uint64_t)bucket_count * 4;
    uint64_t index = read_u32(reader, buckets + (uint64_t)(hash % bucket_count) * 4);
    if (index < first)
        return 0;
    for (int i = 0; i < HASH_CHAIN_MAX && reader_step(reader, "DT_GNU_HASH chain"); i++, index++) {
        uint32_t entry = read_u32(reader, chains + (index - first) * 4);
        if ((entry | 1) == (hash | 1)) {
            *ret = read_symbol(image, reader, index);
            if (symbol_matches(image, reader, ret, name))
                return index;
        }
        if (reader_failed(reader) || (entry & 1))
            return 0;
    }
    return 0;
}

/* A number of DT_HASH. */
static uint64_t hash_word(const struct image *image, struct reader *reader, uint64_t index)
{
    size_t size = elf_hash_word_size(image->elf, image->machine);
    uint64_t address = image->dynamic.hash + index * size;
    return size == 8 ? read_u64(reader, address) : read_u32(reader, address);
}

static uint64_t find_by_hash(const struct image *image, struct reader *reader, const char *name, struct elf_symbol *ret)
{
    enum { FIRST_BUCKET = 2 }; /* after the numbers of buckets and of symbols */
    uint32_t hash = elf_hash_sysv(name);
    uint64_t buckets = hash_word(image, reader, 0), symbols = hash_word(image, reader, 1);
    if (reader_failed(reader) || !buckets)
        return 0;
    uint64_t index = hash_word(image, reader, FIRST_BUCKET + hash % buckets);
    for (int i = 0; i < HASH_CHAIN_MAX && index && index < symbols && reader_step(reader, "DT_HASH chain"); i++) {
        *ret = read_symbol(image, reader, index);
        if (symbol_matches(image, reader, ret, name))
            return index;
        index = hash_word(image, reader, FIRST_BUCKET + buckets + index);
    }
    return 0;
}

bool image_find_symbol(const struct image *image, const char *name, uint64_t *ret_address, uint64_t *ret_size)
{
    CLEANUP_READER struct reader reader = image_reader(image, FUEL_IMAGE);
    struct elf_symbol symbol;
    uint64_t index = 0;
    if (!image->dynamic.symtab || !image->dynamic.strtab)
        return false;
    if (image->dynamic.gnu_hash)
        index = find_by_gnu_hash(image, &reader, name, &symbol);
    if (!index && image->dynamic.hash) {
        reader_end(&reader);
        reader = image_reader(image, FUEL_IMAGE);
        index = find_by_hash(image, &reader, name, &symbol);
    }
    if (!index || reader_failed(&reader))
        return false;
    *ret_address = image->base + symbol.value;
    *ret_size = symbol.size;
    return true;
}

/* ---- Relative relocations ---- */

/* An extent of the file that is being relocated. */
struct relocation {
    const struct image *image;
    struct reader *reader;
    uint64_t vaddr; /* of the first byte */
    uint8_t *bytes;
    size_t size;
};

/*
 * Stores base + addend into a pointer in the extent; where `addend` is NULL, the addend is the stored value. Fails for
 * a pointer that is bound by name (not `relative`) or lies only partly in the extent.
 */
static void relocate(const struct relocation *relocation, uint64_t vaddr, bool relative, const uint64_t *addend)
{
    const struct image *image = relocation->image;
    size_t word = elf_word_size(image->elf);
    uint64_t offset = vaddr - relocation->vaddr, before = relocation->vaddr - vaddr;
    if (offset >= relocation->size && before >= word)
        return;
    if (!relative || !range_fits(offset, word, relocation->size)) {
        reader_fail(relocation->reader, CDACQ_ERR_MEMORY, image->base + vaddr,
                    "a pointer that the loader binds by name");
        return;
    }
    uint8_t *at = relocation->bytes + offset;
    uint64_t value = image->base + (addend ? *addend : elf_word(image->elf, at));
    if (image->elf.wide)
        store_u64(at, value, image->elf.big);
    else
        store_u32(at, (uint32_t)value, image->elf.big);
}

/* A whole table of the dynamic section. False, and the reader fails, where it cannot be read. */
static bool open_table(const struct relocation *relocation, uint64_t address, uint64_t size, const char *what,
                       struct window *ret)
{
    if (size <= RELOCATION_TABLE_MAX)
        return reader_window(relocation->reader, address, size, what, ret);
    reader_fail(relocation->reader, CDACQ_ERR_CORRUPT, address, what);
    return false;
}

/* Entries are address, info and, in DT_RELA (`addends`), addend. In DT_REL the relocated word holds the addend. */
static void apply_table(const struct relocation *relocation, uint64_t address, uint64_t size, bool addends)
{
    const struct image *image = relocation->image;
    const struct elf_machine *machine = elf_machine_find(image->machine);
    size_t word = elf_word_size(image->elf), entry_size = (addends ? 3 : 2) * word;
    struct window table;
    if (!address || !size || !open_table(relocation, address, size, addends ? "DT_RELA" : "DT_REL", &table))
        return;
    for (uint64_t i = 0; i < size / entry_size; i++) {
        const uint8_t *entry = table.bytes + i * entry_size;
        uint64_t info = elf_word(image->elf, entry + word),
                 addend = addends ? elf_word(image->elf, entry + 2 * word) : 0;
        uint32_t type = image->elf.wide ? (uint32_t)info : (uint32_t)info & 0xff;
        if (type) /* 0 is R_*_NONE everywhere */
            relocate(relocation, elf_word(image->elf, entry), machine && type == machine->relative,
                     addends ? &addend : NULL);
    }
    window_deinit(&table);
}

/* An even entry is the address of a pointer; an odd one is a bitmap of the words after it. */
static void apply_relr(const struct relocation *relocation)
{
    const struct image *image = relocation->image;
    size_t word = elf_word_size(image->elf);
    uint64_t where = 0;
    struct window table;
    if (!image->dynamic.relr || !image->dynamic.relrsz ||
        !open_table(relocation, image->dynamic.relr, image->dynamic.relrsz, "DT_RELR", &table))
        return;
    for (uint64_t i = 0; i < image->dynamic.relrsz / word; i++) {
        uint64_t entry = elf_word(image->elf, table.bytes + i * word);
        if (!(entry & 1)) {
            relocate(relocation, entry, true, NULL);
            where = entry + word;
            continue;
        }
        for (size_t bit = 1; bit < word * 8; bit++)
            if (entry >> bit & 1)
                relocate(relocation, where + (bit - 1) * word, true, NULL);
        where += (word * 8 - 1) * word;
    }
    window_deinit(&table);
}

/* Overwrites the bytes that the dump holds. */
static void overlay_dumped(struct target *target, uint64_t address, uint8_t *bytes, size_t size)
{
    struct span span;
    for (size_t done = 0, n; done < size; done += n) {
        n = 1;
        if (!target->ops->dumped_at(target, address + done, &span))
            continue;
        n = (size_t)MIN(span.end - (address + done), (uint64_t)(size - done));
        memcpy(bytes + done, span.bytes + (address + done - span.begin), n);
    }
}

enum cdacq_status image_read_relocated(const struct image *image, uint64_t address, void *buffer, size_t size,
                                       bool *ret_from_file, struct cdacq_error *err)
{
    CLEANUP_READER struct reader reader = image_reader(image, FUEL_OPEN);
    if (reader_try_copy(&reader, address, buffer, size)) {
        *ret_from_file = false;
        return CDACQ_OK;
    }
    const uint8_t *bytes = link_time_bytes(image, address, size);
    if (!bytes || !image->dynamic_complete) { /* else a relocation might be missed */
        reader_fail(&reader, CDACQ_ERR_MEMORY, address, "initialised data of the runtime's image");
        return reader_status(&reader, err);
    }
    CLEANUP_FREE uint8_t *copy = malloc(size + 1);
    if (!copy)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    memcpy(copy, bytes, size);
    struct relocation relocation = {image, &reader, address - image->base, copy, size};
    apply_table(&relocation, image->dynamic.rela, image->dynamic.relasz, true);
    apply_table(&relocation, image->dynamic.rel, image->dynamic.relsz, false);
    apply_relr(&relocation);
    if (reader_failed(&reader))
        return reader_status(&reader, err);
    overlay_dumped(image->target, address, copy, size);
    memcpy(buffer, copy, size);
    if (image->target->recording)
        target_record_patch(image->target, address, copy, size);
    *ret_from_file = true;
    return CDACQ_OK;
}
