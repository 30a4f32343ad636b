/*
 * jitdump_writer.h: encodes the records of a jitdump file that tell where code is: the header, JIT_CODE_LOAD and
 * JIT_CODE_CLOSE, in either byte order, as jitdump.h decodes them. Records in, bytes out; nothing is allocated.
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
 * Encodes `record` at `ret`, which has room for JITDUMP_ENCODED_MAX bytes; returns how many there are. Those of a LOAD
 * are what stands before its name: the name, a NUL and the code are to follow, name_length, 1 and code_size bytes. Id
 * and size in the file go by the kind, so the record's own are not looked at; nor is a header's total_size. 0 where a
 * LOAD is larger than its field for the size can tell, or the kind is none of the three.
 */
size_t jitdump_encode(const struct cdacq_jitdump_record *record, bool big_endian, uint8_t *ret);

#endif
