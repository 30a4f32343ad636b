/*
 * symbols.h: the function symbols of one ELF image, from any number of tables, sorted for look-ups. All addresses are
 * vaddrs of the image. A zeroed struct is empty. One thread at a time while it is filled; immutable once sealed.
 * Source: ELF gABI, "Symbol Table"; GNU hash section.
 */
#ifndef CDACQ_TARGET_NATIVE_SYMBOLS_H
#define CDACQ_TARGET_NATIVE_SYMBOLS_H

#include "target/image.h"
#include "util/vector.h"

enum { SYMBOL_MAX = 2 * 1024 * 1024, SYMBOL_TABLE_MAX = 8 };

struct symbol {
    uint64_t begin, end; /* end == begin: the size is not known */
    uint64_t limit;      /* if so, the end of its section, which it cannot go beyond */
    uint64_t reach;      /* once sealed: the highest end up to this one */
    uint32_t name;       /* offset in the table's strings */
    uint32_t index;      /* in the table */
    uint8_t table, rank; /* of the symbols at one address, the first of the highest rank is reported */
};

DEFINE_VECTOR_TYPE(symbol_list, struct symbol);

struct symbol_strings {
    const char *bytes;
    size_t size;
};

/* A table and the names of its symbols. */
struct symbol_table {
    const uint8_t *entries;
    size_t size; /* bytes of the entries */
    struct symbol_strings strings;
};

struct symbols {
    struct symbol_list list;
    struct symbol_strings strings[SYMBOL_TABLE_MAX];
    unsigned table_count;
    bool complete;
};

void symbols_deinit(struct symbols *symbols);

/*
 * Adds the code symbols of a table, whose bytes must stay valid. `image` gives the class and the executable segments,
 * `file` the sections; NULL: they are not known. Ignores what does not fit the limits.
 */
void symbols_add(struct symbols *symbols, const struct image *image, const struct elf_file *file,
                 const struct symbol_table *table);

/* Adds the tables of that type (SHT_SYMTAB, SHT_DYNSYM) of a file, whose bytes must stay valid. */
void symbols_add_file(struct symbols *symbols, const struct image *image, const struct elf_file *file, uint32_t type);

/* `complete`: the tables have all functions, not only those that the image exports. */
void symbols_seal(struct symbols *symbols, bool complete);

/*
 * The symbol that contains a vaddr: the one that begins last. Without one, the last symbol of unknown size before it
 * in the same section, if no other symbol lies between; in tables that are not complete only where it begins, because
 * the functions that follow it may have no symbol. NULL where there is none; *ret_offset is from its begin. Only after
 * sealing.
 */
const char *symbols_find(const struct symbols *symbols, uint64_t vaddr, uint64_t *ret_offset);

#endif
