/*
 * jitdump.h: decodes the records of a jitdump file. Every pointer of a record leads into the bytes of the caller;
 * nothing is copied or allocated. What a record claims is compared with the bytes that are present before it is used.
 * The structs, and the functions for the lists in a record, are in cdacq/jitdump.h.
 *
 * Source: tools/perf/Documentation/jitdump-specification.txt of Linux (version 2 names the fields; version 1 has no
 * JIT_CODE_UNWINDING_INFO, but its writers use it). jitdump_samply.h has the records that samply adds.
 *
 * Pure functions; thread-safe.
 */
#ifndef CDACQ_FORMATS_JITDUMP_H
#define CDACQ_FORMATS_JITDUMP_H

#include "cdacq/jitdump.h"
#include "util/error.h"

enum {
    JITDUMP_HEADER_SIZE = 40,     /* what writers write today */
    JITDUMP_HEADER_SIZE_MIN = 12, /* up to the field with the size */
    JITDUMP_PREFIX_SIZE = 16,     /* the header of each record */
    JITDUMP_FLAGS_KNOWN = 1,      /* JITDUMP_FLAGS_ARCH_TIMESTAMP */
    JITDUMP_LOAD_FIXED = 56,      /* a JIT_CODE_LOAD up to its name */
};

/* Whether a file that begins with these four bytes is a jitdump, of either byte order. */
bool jitdump_is_magic(const void *bytes);

/*
 * The file's header from its first bytes; JITDUMP_HEADER_SIZE are enough. CDACQ_DONE: there are too few. FORMAT: this
 * is not a jitdump, or its version is not known.
 */
enum cdacq_status jitdump_decode_header(const void *bytes, size_t size, struct cdacq_jitdump_record *ret,
                                        struct cdacq_error *err);

/* Kind, id, size and timestamp from the JITDUMP_PREFIX_SIZE bytes at `offset` of the file. */
void jitdump_decode_prefix(const void *bytes, bool big_endian, uint64_t offset, struct cdacq_jitdump_record *ret);

/*
 * The fields of a record whose prefix is decoded, from its first `size` bytes: all, or those that the caller has. A
 * FORMAT failure names the first problem; *record then holds what could be decoded.
 */
enum cdacq_status jitdump_decode(const void *bytes, size_t size, bool big_endian, struct cdacq_jitdump_record *record,
                                 struct cdacq_error *err);

#endif
