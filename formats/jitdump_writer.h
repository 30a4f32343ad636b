/*
 * jitdump_writer.h: encodes the header, JIT_CODE_LOAD, JIT_CODE_DEBUG_INFO, JIT_CODE_UNWINDING_INFO, JIT_CODE_CLOSE and
 * samply's source positions of a jitdump file in either byte order, as jitdump.h decodes them. Nothing is allocated.
 *
 * Source: tools/perf/Documentation/jitdump-specification.txt of Linux.
 *
 * Pure functions; thread-safe.
 */
#ifndef CDACQ_FORMATS_JITDUMP_WRITER_H
#define CDACQ_FORMATS_JITDUMP_WRITER_H

#include "cdacq/jitdump.h"
#include "formats/jitdump.h"

enum {
    JITDUMP_ENCODED_MAX = JITDUMP_LOAD_FIXED,
    JITDUMP_DEBUG_INFO_FIXED = JITDUMP_PREFIX_SIZE + 2 * 8,
    JITDUMP_UNWINDING_INFO_FIXED = JITDUMP_PREFIX_SIZE + 3 * 8,
    JITDUMP_POSITIONS_FIXED = JITDUMP_PREFIX_SIZE + 4 * 8,
};

/*
 * Encodes `record` at `ret`, which has room for JITDUMP_ENCODED_MAX bytes, and returns the number of bytes. A LOAD is
 * encoded up to its name: the name, a NUL and the code must follow, name_length, 1 and code_size bytes. A DEBUG_INFO is
 * encoded up to its entries, which take total_size - JITDUMP_DEBUG_INFO_FIXED bytes, and an UNWINDING_INFO up to its
 * data, which take unwind_data_size bytes. A SAMPLY_POSITIONS is encoded up to its lists, which take total_size -
 * JITDUMP_POSITIONS_FIXED bytes. Otherwise the id and the size in the file follow from the kind; those of the
 * record, and a header's total_size, are ignored. 0 if a record is too large for its size field, or of another kind.
 */
size_t jitdump_encode(const struct cdacq_jitdump_record *record, bool big_endian, uint8_t *ret);

#endif
