/*
 * dwarf_info_writer.h: writes minimal .debug_info: compilation units with functions that have a name, addresses, and a
 * file and line; with .debug_abbrev, .debug_ranges and .debug_aranges.
 * Source: DWARF 4 sections 2, 3, 6.1.2 and 7. Pure functions.
 */
#ifndef CDACQ_FORMATS_DWARF_INFO_WRITER_H
#define CDACQ_FORMATS_DWARF_INFO_WRITER_H

#include "formats/byte_writer.h"

struct dwarf_info_writer {
    struct byte_writer *info, *abbreviations, *ranges, *address_ranges;
    unsigned word_size;
    size_t unit, unit_ranges, unit_addresses; /* of the unit at hand: offsets of it, of a field, of its list */
};

/*
 * A function. Its code is contiguous: lldb 14 takes the first frame description entry within a function for all of it,
 * so what has an entry of its own has to be a function of its own.
 */
struct dwarf_function {
    const char *name, *suffix; /* the name is followed by the suffix */
    size_t name_length;
    uint32_t file, line; /* 0: not known */
    uint64_t begin, end;
};

/* Writes what all units share. */
void dwarf_info_begin(struct dwarf_info_writer *writer);

enum { DWARF_NO_LINES = UINT32_MAX };

/* Begins a unit. `lines` is its offset in .debug_line, or DWARF_NO_LINES. */
void dwarf_info_begin_unit(struct dwarf_info_writer *writer, const char *name, uint32_t lines);

/* Adds a function to the unit. */
void dwarf_info_add(struct dwarf_info_writer *writer, const struct dwarf_function *function);

/* Adds addresses to those of the unit, which are to have all of its functions. */
void dwarf_info_add_range(struct dwarf_info_writer *writer, uint64_t begin, uint64_t end);

/* The order is: begin_unit, add for each function, end_functions, add_range for each range, end_unit. */
void dwarf_info_end_functions(struct dwarf_info_writer *writer);
void dwarf_info_end_unit(struct dwarf_info_writer *writer);

#endif
