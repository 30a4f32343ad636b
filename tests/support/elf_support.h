/*
 * elf_support.h: ELF cores and shared objects written byte by byte, for tests, in every class and byte order and with
 * every field open to damage. It shares nothing with what the library reads or writes ELF files with. Failures inside
 * fail the running test.
 */
#ifndef CDACQ_TESTS_SUPPORT_ELF_SUPPORT_H
#define CDACQ_TESTS_SUPPORT_ELF_SUPPORT_H

#include <elf.h>

#include "util/base.h"

/* Bytes that grow, in the byte order of the file they will be. */
struct elf_buffer {
    uint8_t *data;
    size_t size, capacity;
    bool wide, big;
};

void elf_put(struct elf_buffer *buffer, const void *data, size_t size); /* NULL data: zeros */
void elf_put_int(struct elf_buffer *buffer, uint64_t value, unsigned width);
void elf_put_word(struct elf_buffer *buffer, uint64_t value); /* of the class's width */
void elf_pad(struct elf_buffer *buffer, size_t alignment);

/* ---- Cores ---- */

struct elf_core_segment {
    uint32_t type, flags;
    uint64_t vaddr, file_size, memory_size, align;
    const void *bytes; /* `size` of them are written; NULL: none */
    size_t size;
    uint64_t offset; /* their offset; set by the writer unless offset_given */
    bool offset_given;
    struct elf_buffer notes; /* of a PT_NOTE */
};

struct elf_core {
    bool wide, big;
    uint16_t type, machine;
    bool extended;     /* PN_XNUM, also where the segments are few */
    bool headers_last; /* the program headers after everything else, as some writers do */
    uint16_t header_size_claimed;
    struct elf_core_segment *segments;
    size_t count, capacity;
    /* Offsets of the parts, for cutting: set by elf_core_build. */
    size_t headers_at, headers_end, notes_end, section_at;
};

void elf_core_init(struct elf_core *core, bool wide, bool big);
void elf_core_deinit(struct elf_core *core);

/* A PT_LOAD with `file_size` bytes of `bytes`. Good until the next segment is added. */
struct elf_core_segment *elf_core_load(struct elf_core *core, uint64_t vaddr, const void *bytes, size_t file_size,
                                       uint64_t memory_size, uint32_t flags);

struct elf_core_segment *elf_core_notes(struct elf_core *core); /* another PT_NOTE */
void elf_note(struct elf_core_segment *notes, const char *name, uint32_t type, const void *desc, size_t size);

struct elf_mapping {
    uint64_t begin, end, page_offset;
    const char *path;
};

/* An NT_FILE note in a PT_NOTE of its own. */
struct elf_core_segment *elf_core_mappings(struct elf_core *core, uint64_t page_size,
                                           const struct elf_mapping *mappings, size_t count);

/* Only the desc of such a note, to be damaged. */
struct elf_buffer elf_mappings_desc(bool wide, bool big, uint64_t page_size, const struct elf_mapping *mappings,
                                    size_t count);

/* The whole file, to be freed. */
uint8_t *elf_core_build(struct elf_core *core, size_t *ret_size);

/* ---- Shared objects ---- */

/*
 * One read-only segment with headers, build-id, symbols, hash tables and relocations at vaddr 0, and one writable one
 * ("data") with the dynamic section and `data_size` bytes of the caller's, whose vaddr is not its file offset.
 */
enum { ELF_DATA_OFFSET = 0x2000, ELF_DATA_VADDR = 0x5000, ELF_OBJECT_SYMBOLS = 64, ELF_OBJECT_RELOCATIONS = 256 };

struct elf_object {
    bool wide, big;
    uint16_t machine;
    bool gnu_hash, sysv_hash;
    enum { ELF_RELA, ELF_REL, ELF_RELR } relocations; /* how pointers are described to the loader */
    uint8_t build_id[20];
    size_t build_id_size;
    struct elf_object_symbol {
        const char *name;
        uint64_t value, size;
        uint16_t section;
    } symbols[ELF_OBJECT_SYMBOLS];
    size_t symbol_count;
    struct elf_object_relocation {
        uint64_t vaddr, addend;
        uint32_t type;                   /* 0: the machine's R_*_RELATIVE */
    } relocated[ELF_OBJECT_RELOCATIONS]; /* RELR: only those without a type, sorted by vaddr */
    size_t relocated_count;
    uint8_t data[4096 * 2];
    size_t data_size;
    uint64_t bss_size;
    /* vaddrs, set by elf_object_build */
    uint64_t note_vaddr, symtab_vaddr, strtab_vaddr, gnu_hash_vaddr, hash_vaddr, relocations_vaddr, dynamic_vaddr,
        data_vaddr;
};

void elf_object_init(struct elf_object *object, bool wide, bool big);
void elf_object_symbol(struct elf_object *object, const char *name, uint64_t value, uint64_t size);

/* A pointer to vaddr `target` at `offset` of the data. */
void elf_object_pointer(struct elf_object *object, size_t offset, uint64_t target);
uint32_t elf_relative_type(uint16_t machine);

/* The file, to be freed. */
uint8_t *elf_object_build(struct elf_object *object, size_t *ret_size);

/*
 * Its segments as a loader maps them at `base`: *ret_size bytes, relocated if asked for, with zeros between and after
 * them. To be freed.
 */
uint8_t *elf_object_load(const struct elf_object *object, const uint8_t *file, size_t size, uint64_t base,
                         bool relocate, size_t *ret_size);

/* ---- Files ---- */

/* A path that stands for an unnamed file with these bytes; lives until close(*ret_fd) or the process's end. */
const char *memory_file(const void *bytes, size_t size, int *ret_fd);

/* A fresh directory; test_dir_remove deletes it with all that is in it. The string is static. */
const char *test_dir(void);
void test_dir_remove(void);

/* Writes a file below it, making directories; its path in a static buffer of a few that take turns. */
const char *test_file(const char *name, const void *bytes, size_t size);
char *test_path(const char *name);

/* A whole file, to be freed. NULL if it cannot be read. */
uint8_t *whole_file(const char *path, size_t *ret_size);

#endif
