/*
 * dwarf_line.h: line programs, as .debug_line holds them: which address belongs to which line of which file. Bytes in,
 * rows out. An index of the sequences of rows is built once; a row is decoded when it is needed.
 *
 * Every size and count in the input is checked. A unit that is damaged or of an unknown version gives no rows; the
 * other units do. Pure functions.
 * Source: DWARF 5 section 6.2; DWARF 4 section 6.2 for versions 2 to 4.
 */
#ifndef CDACQ_FORMATS_DWARF_LINE_H
#define CDACQ_FORMATS_DWARF_LINE_H

#include "util/text.h"
#include "util/vector.h"

enum { DWARF_SEQUENCE_MAX = 4 * 1024 * 1024 };

struct dwarf_section {
    const uint8_t *bytes;
    size_t size;
};

/* The sections that line programs refer to. Absent ones are zero. */
struct dwarf_line_sections {
    struct dwarf_section line, line_strings, strings;
    bool big;
};

/* Rows of consecutive addresses. */
struct dwarf_sequence {
    uint64_t begin, end; /* addresses */
    uint32_t unit;       /* offset of its unit in the section */
    uint32_t program;    /* offset of its first instruction */
};

DEFINE_VECTOR(dwarf_sequences, struct dwarf_sequence);

/* Finds the sequences, sorted by `begin`. False when out of memory. */
bool dwarf_sequences_find(const struct dwarf_line_sections *sections, struct dwarf_sequences *ret);

struct dwarf_row {
    uint64_t address; /* of its first instruction; the row goes to the next one */
    uint32_t file;    /* its number in the unit */
    uint32_t line;    /* 0: none */
    uint32_t column;  /* likewise */
};

/*
 * Calls `visit` for the rows of a sequence, ascending, until it returns false. Returns how many bytes of the section
 * were read for that.
 */
size_t dwarf_rows_each(const struct dwarf_line_sections *sections, const struct dwarf_sequence *sequence,
                       bool (*visit)(const struct dwarf_row *row, void *context), void *context);

/* Appends the path of a file of a unit. False, and nothing is appended, if it is not known. */
bool dwarf_file_path(const struct dwarf_line_sections *sections, uint32_t unit, uint32_t file, struct text *ret);

#endif
