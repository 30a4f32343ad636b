#include "formats/elf.h"

bool elf_class_of(const uint8_t ident[EI_NIDENT], struct elf_class *ret)
{
    if (memcmp(ident, ELFMAG, SELFMAG) != 0 || (ident[EI_CLASS] != ELFCLASS32 && ident[EI_CLASS] != ELFCLASS64) ||
        (ident[EI_DATA] != ELFDATA2LSB && ident[EI_DATA] != ELFDATA2MSB) || ident[EI_VERSION] != EV_CURRENT)
        return false;
    *ret = (struct elf_class){.wide = ident[EI_CLASS] == ELFCLASS64, .big = ident[EI_DATA] == ELFDATA2MSB};
    return true;
}

/* A field by its offset in each class; a word is as wide as the class. */
static uint64_t word_at(struct elf_class elf, const uint8_t *bytes, size_t wide_offset, size_t narrow_offset)
{
    return elf_word(elf, bytes + (elf.wide ? wide_offset : narrow_offset));
}

static uint32_t u32_at(struct elf_class elf, const uint8_t *bytes, size_t wide_offset, size_t narrow_offset)
{
    return load_u32(bytes + (elf.wide ? wide_offset : narrow_offset), elf.big);
}

static uint16_t u16_at(struct elf_class elf, const uint8_t *bytes, size_t wide_offset, size_t narrow_offset)
{
    return load_u16(bytes + (elf.wide ? wide_offset : narrow_offset), elf.big);
}

#define FIELD(read, record, field) read(elf, bytes, offsetof(Elf64_##record, field), offsetof(Elf32_##record, field))

struct elf_header elf_header_at(struct elf_class elf, const uint8_t *bytes)
{
    return (struct elf_header){
        .type = FIELD(u16_at, Ehdr, e_type),
        .machine = FIELD(u16_at, Ehdr, e_machine),
        .entry = FIELD(word_at, Ehdr, e_entry),
        .segments = FIELD(word_at, Ehdr, e_phoff),
        .sections = FIELD(word_at, Ehdr, e_shoff),
        .segment_size = FIELD(u16_at, Ehdr, e_phentsize),
        .segment_count = FIELD(u16_at, Ehdr, e_phnum),
        .section_count = FIELD(u16_at, Ehdr, e_shnum),
        .section_names = FIELD(u16_at, Ehdr, e_shstrndx),
    };
}

struct elf_segment elf_segment_at(struct elf_class elf, const uint8_t *bytes)
{
    return (struct elf_segment){
        .type = FIELD(u32_at, Phdr, p_type),
        .flags = FIELD(u32_at, Phdr, p_flags),
        .offset = FIELD(word_at, Phdr, p_offset),
        .vaddr = FIELD(word_at, Phdr, p_vaddr),
        .file_size = FIELD(word_at, Phdr, p_filesz),
        .memory_size = FIELD(word_at, Phdr, p_memsz),
        .align = FIELD(word_at, Phdr, p_align),
    };
}

struct elf_section elf_section_at(struct elf_class elf, const uint8_t *bytes)
{
    return (struct elf_section){
        .name = FIELD(u32_at, Shdr, sh_name),
        .type = FIELD(u32_at, Shdr, sh_type),
        .link = FIELD(u32_at, Shdr, sh_link),
        .info = FIELD(u32_at, Shdr, sh_info),
        .flags = FIELD(word_at, Shdr, sh_flags),
        .address = FIELD(word_at, Shdr, sh_addr),
        .offset = FIELD(word_at, Shdr, sh_offset),
        .size = FIELD(word_at, Shdr, sh_size),
    };
}

struct elf_dynamic elf_dynamic_at(struct elf_class elf, const uint8_t *bytes)
{
    return (struct elf_dynamic){.tag = FIELD(word_at, Dyn, d_tag), .value = FIELD(word_at, Dyn, d_un)};
}

struct elf_symbol elf_symbol_at(struct elf_class elf, const uint8_t *bytes)
{
    return (struct elf_symbol){
        .name = FIELD(u32_at, Sym, st_name),
        .info = bytes[elf.wide ? offsetof(Elf64_Sym, st_info) : offsetof(Elf32_Sym, st_info)],
        .section = FIELD(u16_at, Sym, st_shndx),
        .value = FIELD(word_at, Sym, st_value),
        .size = FIELD(word_at, Sym, st_size),
    };
}

uint32_t elf_hash_gnu(const char *name)
{
    uint32_t hash = 5381;
    for (const char *p = name; *p; p++)
        hash = hash * 33 + (uint8_t)*p;
    return hash;
}

uint32_t elf_hash_sysv(const char *name)
{
    uint32_t hash = 0;
    for (const char *p = name; *p; p++) {
        hash = (hash << 4) + (uint8_t)*p;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    return hash;
}

/* ---- Whole files ---- */

bool elf_file_open(const struct bytes *bytes, struct elf_file *ret)
{
    struct elf_file file = {.bytes = *bytes};
    const uint8_t *ident = bytes_window(bytes, 0, EI_NIDENT);
    if (!ident || !elf_class_of(ident, &file.class))
        return false;
    const uint8_t *header = bytes_window(bytes, 0, elf_header_size(file.class));
    if (!header)
        return false;
    file.header = elf_header_at(file.class, header);
    *ret = file;
    return true;
}

bool elf_file_segment(const struct elf_file *file, unsigned index, struct elf_segment *ret)
{
    size_t size = elf_segment_size(file->class);
    const uint8_t *bytes = NULL;
    if (index < file->header.segment_count)
        bytes = bytes_window(&file->bytes, add_saturated(file->header.segments, (uint64_t)index * size), size);
    if (bytes)
        *ret = elf_segment_at(file->class, bytes);
    return bytes;
}

bool elf_file_section(const struct elf_file *file, unsigned index, struct elf_section *ret)
{
    size_t size = elf_section_size(file->class);
    const uint8_t *bytes = NULL;
    if (index < file->header.section_count)
        bytes = bytes_window(&file->bytes, add_saturated(file->header.sections, (uint64_t)index * size), size);
    if (bytes)
        *ret = elf_section_at(file->class, bytes);
    return bytes;
}

bool elf_file_section_named(const struct elf_file *file, const char *name, struct elf_section *ret)
{
    struct elf_section names;
    size_t size = strlen(name) + 1;
    if (!elf_file_section(file, file->header.section_names, &names))
        return false;
    for (unsigned i = 0; elf_file_section(file, i, ret); i++) {
        const char *found = NULL;
        if (range_fits(ret->name, size, names.size))
            found = bytes_window(&file->bytes, add_saturated(names.offset, ret->name), size);
        if (found && memcmp(found, name, size) == 0)
            return true;
    }
    return false;
}

const uint8_t *elf_file_contents(const struct elf_file *file, const struct elf_section *section)
{
    return section->type == SHT_NOBITS || !section->size
               ? NULL
               : bytes_window(&file->bytes, section->offset, (size_t)section->size);
}

/* ---- Notes ---- */

struct elf_note elf_note_at(struct elf_class elf, const uint8_t header[ELF_NOTE_HEADER_SIZE], unsigned align)
{
    struct elf_note note = {
        .type = load_u32(header + 8, elf.big),
        .name_size = load_u32(header, elf.big),
        .desc_size = load_u32(header + 4, elf.big),
    };
    note.desc = align_up(ELF_NOTE_HEADER_SIZE + (uint64_t)note.name_size, align);
    note.next = note.desc + align_up(note.desc_size, align);
    return note;
}

bool elf_note_is_build_id(const struct elf_note *note, const void *name)
{
    return note->type == NT_GNU_BUILD_ID && note->name_size == 4 && memcmp(name, "GNU", 4) == 0;
}

bool elf_note_next(struct elf_class elf, const uint8_t *bytes, uint64_t size, unsigned align, uint64_t *offset,
                   struct elf_note_bytes *ret)
{
    if (!range_fits(*offset, ELF_NOTE_HEADER_SIZE, size))
        return false;
    const uint8_t *header = bytes + *offset;
    struct elf_note note = elf_note_at(elf, header, align);
    if (!range_fits(*offset + note.desc, note.desc_size, size))
        return false;
    *ret = (struct elf_note_bytes){note, header + ELF_NOTE_HEADER_SIZE, header + note.desc};
    *offset += note.next;
    return true;
}

/* Count and page size, then {begin, end, page offset} of each mapping, then their paths, one NUL each. */
bool elf_nt_file_open(struct elf_class elf, const uint8_t *desc, size_t size, struct elf_nt_file *ret)
{
    size_t word = elf_word_size(elf);
    if (size < 2 * word)
        return false;
    *ret = (struct elf_nt_file){
        .class = elf,
        .desc = desc,
        .size = size,
        .count = elf_word(elf, desc),
        .page_size = elf_word(elf, desc + word),
    };
    if (elf_nt_file_count_fits(ret))
        ret->path = (const char *)desc + (2 + 3 * ret->count) * word;
    return true;
}

bool elf_nt_file_count_fits(const struct elf_nt_file *list)
{
    return list->count <= (list->size / elf_word_size(list->class) - 2) / 3;
}

bool elf_nt_file_next(struct elf_nt_file *list, struct elf_mapped_file *ret)
{
    size_t word = elf_word_size(list->class);
    if (list->index == list->count || !list->path)
        return false;
    size_t rest = (size_t)((const char *)list->desc + list->size - list->path), length = strnlen(list->path, rest);
    if (length == rest)
        return false;
    const uint8_t *row = list->desc + (2 + 3 * list->index) * word;
    *ret = (struct elf_mapped_file){
        .begin = elf_word(list->class, row),
        .end = elf_word(list->class, row + word),
        .page_offset = elf_word(list->class, row + 2 * word),
        .path = list->path,
    };
    list->path += length + 1;
    list->index++;
    return true;
}
