/*
 * jitdump_records.h: writes the records of a jitdump. Source: tools/perf/Documentation/jitdump-specification.txt of
 * Linux.
 */
#ifndef CDACQ_PERF_JITDUMP_RECORDS_H
#define CDACQ_PERF_JITDUMP_RECORDS_H

#include "src/perf/code_writer.h"
#include "cdacq/jitdump.h"

/* Writes a record, or what of it has a fixed size, with the next timestamp. */
void jitdump_records_put(struct code_writer *writer, struct cdacq_jitdump_record *record);

void jitdump_records_put_header(struct code_writer *writer);

/* The `put` of a writer: a JIT_CODE_LOAD, and the records that precede it. */
bool jitdump_records_put_entry(struct code_writer *writer, const struct code_entry *entry);

#endif
