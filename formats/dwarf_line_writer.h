/*
 * dwarf_line_writer.h: writes .debug_line: for each compilation unit a table of files, and the lines of its code.
 * Source: DWARF 4 section 6.2. Pure functions.
 */
#ifndef CDACQ_FORMATS_DWARF_LINE_WRITER_H
#define CDACQ_FORMATS_DWARF_LINE_WRITER_H

#include "formats/byte_writer.h"

struct dwarf_line_writer {
    struct byte_writer *to;
    struct byte_writer program; /* of the unit at hand; freed by dwarf_line_deinit */
    unsigned word_size, code_factor;
    uint64_t address; /* the state of the program: DWARF's registers */
    uint32_t file, line, column;
};

/* From `address` on, until the next row, the code is that of a line; line 0: of none. */
struct dwarf_line_row {
    uint64_t address;
    uint32_t file; /* index in the unit's table, from 1 */
    uint32_t line, column;
};

void dwarf_line_deinit(struct dwarf_line_writer *writer);

/* Begins a range of code of the unit at hand; the first row begins it. */
void dwarf_line_begin_sequence(struct dwarf_line_writer *writer, uint64_t address);

/* Rows ascend by address within a sequence. */
void dwarf_line_add(struct dwarf_line_writer *writer, const struct dwarf_line_row *row);

/* Ends the range before `end`. */
void dwarf_line_end_sequence(struct dwarf_line_writer *writer, uint64_t end);

/*
 * Writes the unit: its files, by their paths, and the sequences since the last call. Returns its offset in the section,
 * which DW_AT_stmt_list has.
 */
uint32_t dwarf_line_end_unit(struct dwarf_line_writer *writer, const char *const *files, size_t count);

#endif
