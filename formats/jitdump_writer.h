/*
 * jitdump_writer.h: encodes the header, JIT_CODE_LOAD and JIT_CODE_CLOSE of a jitdump file in either byte order, as
 * jitdump.h decodes them. Nothing is allocated.
 *
 * Source: tools/perf/Documentation/jitdump-specification.txt of Linux.
 *
 * Pure functions; thread-safe.
 */
#ifndef CDACQ_FORMATS_JITDUMP_WRITER_H
#define CDACQ_FORMATS_JITDUMP_WRITER_H

#include "cdacq/jitdump.h"
#include "formats/jitdump.h"

enum { JITDUMP_ENCODED_MAX = JITDUMP_LOAD_FIXED };

/*
 * Encodes `record` at `ret`, which has room for JITDUMP_ENCODED_MAX bytes, and returns the number of bytes. A LOAD is
 * encoded up to its name: the name, a NUL and the code must follow, name_length, 1 and code_size bytes. The id and the
 * size in the file follow from the kind; those of the record, and a header's total_size, are ignored. 0 if a LOAD is
 * too large for its size field, or the kind is none of the three.
 */
size_t jitdump_encode(const struct cdacq_jitdump_record *record, bool big_endian, uint8_t *ret);

#endif
