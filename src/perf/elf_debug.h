/*
 * elf_debug.h: the debug information of an ELF file of managed code: functions, their files and lines. A unit has the
 * methods of one source file or, of those without lines, of one module, so that a debugger reads little at once. Where
 * these are many, they have several units. A unit has as few ranges of addresses as possible, since stock programs go
 * through all of them: in binutils 2.40, addr2line took 20 s for an address if one unit had 50,000 ranges.
 */
#ifndef CDACQ_PERF_ELF_DEBUG_H
#define CDACQ_PERF_ELF_DEBUG_H

#include "formats/dwarf_info_writer.h"
#include "formats/dwarf_line_writer.h"
#include "src/lookup/opened_session.h"

struct debug_function;
struct debug_unit;
struct unit_index;

DEFINE_VECTOR_TYPE(debug_functions, struct debug_function);
DEFINE_VECTOR_TYPE(debug_units, struct debug_unit);
DEFINE_HASH_TABLE_TYPE(unit_indexes, struct unit_index);

struct elf_debug {
    struct debug_functions functions;
    struct debug_units units; /* in the order of their first functions, so that a target always gives the same file */
    struct unit_indexes indexes; /* of units, by what their methods share */
    struct byte_writer info, abbreviations, ranges, address_ranges, lines;
    unsigned word_size, code_factor;
    bool no_memory;
};

void elf_debug_init(struct elf_debug *debug, const struct cdacq_target *target, unsigned code_factor);
void elf_debug_deinit(struct elf_debug *debug);

/* A body, a funclet, or a part of them: code that has a symbol of its own. */
struct debug_piece {
    uint64_t begin, size; /* as in the ELF file */
    uint64_t offset;      /* within the method's code, whose cold part follows its hot part */
    const char *suffix;   /* of the method's name */
};

/*
 * Adds a piece of a method. `record` is that of the method's hot part, with lines if these are known; NULL: it cannot
 * be read.
 */
void elf_debug_add(struct elf_debug *debug, const struct cdacq_method *method, const struct method_record *record,
                   const struct debug_piece *piece);

/* Forms the sections. False if memory or a section's size does not suffice. */
bool elf_debug_form(struct elf_debug *debug);

#endif
