/*
 * elf.h: the records of an ELF file, decoded from the bytes of a core, a file or a target's memory. A decoder reads
 * as many bytes as the size function of its record returns. Offsets and sizes in a record are what the input claims:
 * whoever uses one checks it first.
 * Source: ELF gABI; Linux include/uapi/linux/elfcore.h and fs/binfmt_elf.c for the notes of cores.
 */
#ifndef CDACQ_FORMATS_ELF_H
#define CDACQ_FORMATS_ELF_H

#include <elf.h>

#include "formats/bytes.h"

enum { ELF_RECORD_MAX = sizeof(Elf64_Ehdr) }; /* of headers, segments, sections */

/* The width and byte order of a file, from its e_ident. */
struct elf_class {
    bool wide, big;
};

/* False if these are not the first bytes of an ELF file of a known class, order and version. */
bool elf_class_of(const uint8_t ident[EI_NIDENT], struct elf_class *ret);

struct elf_header {
    uint16_t type, machine;
    uint64_t entry;              /* vaddr of the first instruction; 0: there is none */
    uint64_t segments, sections; /* file offsets of the tables */
    uint16_t segment_size;       /* as the header claims; the format defines elf_segment_size() */
    uint16_t segment_count, section_count, section_names; /* the last: index of the section with the others' names */
};

/* A program header. */
struct elf_segment {
    uint32_t type, flags;
    uint64_t offset, vaddr, file_size, memory_size, align;
};

/* A section header, as far as it is used. */
struct elf_section {
    uint32_t name, type, link, info;
    uint64_t flags, address, offset, size;
};

struct elf_dynamic {
    uint64_t tag, value;
};

struct elf_symbol {
    uint32_t name;
    uint8_t info; /* ELF32_ST_TYPE() and ELF32_ST_BIND() */
    uint16_t section;
    uint64_t value, size;
};

static inline unsigned elf_word_size(struct elf_class elf)
{
    return elf.wide ? 8 : 4;
}

/* Bytes of a number in DT_HASH. */
static inline size_t elf_hash_word_size(struct elf_class elf, uint16_t machine)
{
    return elf.wide && machine == EM_S390 ? 8 : 4;
}

static inline uint64_t elf_word(struct elf_class elf, const uint8_t *bytes)
{
    return elf.wide ? load_u64(bytes, elf.big) : load_u32(bytes, elf.big);
}

static inline size_t elf_header_size(struct elf_class elf)
{
    return elf.wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
}

static inline size_t elf_segment_size(struct elf_class elf)
{
    return elf.wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
}

static inline size_t elf_section_size(struct elf_class elf)
{
    return elf.wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
}

static inline size_t elf_dynamic_size(struct elf_class elf)
{
    return elf.wide ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
}

static inline size_t elf_symbol_size(struct elf_class elf)
{
    return elf.wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

struct elf_header elf_header_at(struct elf_class elf, const uint8_t *bytes);
struct elf_segment elf_segment_at(struct elf_class elf, const uint8_t *bytes);
struct elf_section elf_section_at(struct elf_class elf, const uint8_t *bytes);
struct elf_dynamic elf_dynamic_at(struct elf_class elf, const uint8_t *bytes);
struct elf_symbol elf_symbol_at(struct elf_class elf, const uint8_t *bytes);

/* The hashes of a symbol's name, for DT_GNU_HASH and DT_HASH. */
uint32_t elf_hash_gnu(const char *name);
uint32_t elf_hash_sysv(const char *name);

/* ---- Whole files ---- */

struct elf_file {
    struct bytes bytes;
    struct elf_class class;
    struct elf_header header;
};

/* False if this is not an ELF file. */
bool elf_file_open(const struct bytes *bytes, struct elf_file *ret);

/* Program header or section header `index`; false if there is none, or its bytes are missing. */
bool elf_file_segment(const struct elf_file *file, unsigned index, struct elf_segment *ret);
bool elf_file_section(const struct elf_file *file, unsigned index, struct elf_section *ret);

/* The first section of that name. False if there is none. */
bool elf_file_section_named(const struct elf_file *file, const char *name, struct elf_section *ret);

/* The contents of a section. NULL if it has none, or its bytes are missing. */
const uint8_t *elf_file_contents(const struct elf_file *file, const struct elf_section *section);

/* ---- Notes ---- */

enum { ELF_NOTE_HEADER_SIZE = 12 };

/* Offsets are from the first byte of the note. The name, NUL included, follows the header. */
struct elf_note {
    uint32_t type, name_size, desc_size;
    uint64_t desc, next;
};

/* The note with this header; `align` is 4, or the segment's alignment if that is 8. */
struct elf_note elf_note_at(struct elf_class elf, const uint8_t header[ELF_NOTE_HEADER_SIZE], unsigned align);

/* Whether a note of that name, which is `note->name_size` bytes long, is the build-id. */
bool elf_note_is_build_id(const struct elf_note *note, const void *name);

/* The next of the notes in [*offset, size) of a buffer; *offset advances. False at the end. */
struct elf_note_bytes {
    struct elf_note note;
    const uint8_t *name, *desc; /* note.name_size bytes, and note.desc_size */
};

bool elf_note_next(struct elf_class elf, const uint8_t *bytes, uint64_t size, unsigned align, uint64_t *offset,
                   struct elf_note_bytes *ret);

/* NT_FILE: mappings of files. */
struct elf_nt_file {
    struct elf_class class;
    const uint8_t *desc;
    size_t size;
    uint64_t count, page_size, index;
    const char *path; /* of mapping number `index` */
};

struct elf_mapped_file {
    uint64_t begin, end, page_offset;
    const char *path;
};

/* False if the note is too short for its own header; `count` may still be more than fits the note. */
bool elf_nt_file_open(struct elf_class elf, const uint8_t *desc, size_t size, struct elf_nt_file *ret);
bool elf_nt_file_count_fits(const struct elf_nt_file *list);
bool elf_nt_file_next(struct elf_nt_file *list,
                      struct elf_mapped_file *ret); /* false at the end, also if that is cut off */

#endif
