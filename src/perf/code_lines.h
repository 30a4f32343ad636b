/*
 * code_lines.h: the lines of a piece of a method's code, in the order of its addresses, for debug information of any
 * format.
 */
#ifndef CDACQ_PERF_CODE_LINES_H
#define CDACQ_PERF_CODE_LINES_H

#include "src/lookup/records.h"
#include "src/lookup/source_lines.h"

struct code_lines {
    const struct method_record *record;
    uint64_t offset, end; /* of the piece, within the method's code */
    uint32_t next;        /* index of an IL point */
};

/* What is true from an address on, until the next line. */
struct code_line {
    uint64_t at;                      /* from the start of the piece */
    const struct source_point *point; /* NULL: no line is known */
};

/* `offset` is within the method's code, whose cold part follows its hot part. */
void code_lines_init(struct code_lines *lines, const struct method_record *record, uint64_t offset, uint64_t size);

/* Equal lines may follow each other. False after the last one. */
bool code_lines_next(struct code_lines *lines, struct code_line *ret);

/* The first line of a method whose file is known. NULL if there is none. */
const struct source_point *first_line_of(const struct method_record *record);

#endif
