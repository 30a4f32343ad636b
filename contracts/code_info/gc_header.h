/*
 * gc_header.h: the header of GC info, and the offsets at which a collection can begin: safe points, which calls return
 * to, and ranges in which every instruction is safe. All architectures but x86, and byte code of the interpreter, share
 * this encoding. They differ in the widths of numbers.
 * Source: dotnet/runtime docs/design/datacontracts/GCInfo.md; src/coreclr/vm/gcinfodecoder.cpp;
 * src/coreclr/inc/gcinfotypes.h.
 */
#ifndef CDACQ_CONTRACTS_CODE_INFO_GC_HEADER_H
#define CDACQ_CONTRACTS_CODE_INFO_GC_HEADER_H

#include "contracts/code_info/gc_bits.h"
#include "descriptors/runtime_info.h"

enum { GC_VERSION_MIN = 2, GC_VERSION_MAX = 5 }; /* 5, of .NET 11, differs from 4 on x86 only */

/* The widths of an architecture's numbers: the first group has so many bits. */
struct gc_encoding {
    uint8_t length;       /* of the code */
    uint8_t length_shift; /* the length counts units of that many bytes, as a power of two */
    uint8_t return_kind;  /* in a fat header, up to version 3 */
    uint8_t slot;         /* offsets of stack slots */
    uint8_t frame_register;
    uint8_t preserved_area;   /* of Edit and Continue */
    uint8_t fixed_frame;      /* likewise; 0: not stored */
    uint8_t stack_area;       /* of outgoing arguments; 0: not stored */
    uint8_t points, ranges;   /* their numbers */
    uint8_t to_start, to_end; /* of a range: from the end of the one before, and from its start */
};

/* NULL: this architecture (x86) has another encoding, or is not known. */
const struct gc_encoding *gc_encoding_of(enum architecture architecture);

/* That of the interpreter's byte code, on every architecture. */
extern const struct gc_encoding gc_encoding_interpreter;

/* What tells the exact type arguments of shared generic code. */
enum gc_generic_context {
    GC_CONTEXT_NONE,
    GC_CONTEXT_METHOD_TABLE,
    GC_CONTEXT_METHOD_DESC,
    GC_CONTEXT_THIS, /* an object */
};

struct gc_header {
    uint32_t code_length;
    uint32_t frame_register; /* as encoded; UINT32_MAX: none */
    enum gc_generic_context generic_context;
    int64_t generic_context_slot; /* bytes from the frame pointer; before version 4 from the caller's SP */
    uint32_t stack_area;          /* words of outgoing arguments, at the stack pointer */
    uint32_t point_count, range_count;
    uint8_t shift;       /* offsets count units of that many bytes, as a power of two */
    bool is_byte_before; /* a call is described by its last byte, not by the address that it returns to */
};

/* Reads the header, up to the safe points. False, and the reader fails, if it is corrupt or cannot be read. */
bool gc_header_read(struct gc_bits *bits, const struct gc_encoding *encoding, unsigned version, struct gc_header *ret);

/* Where an offset is among the points and ranges. */
struct gc_place {
    uint32_t point; /* the number of the safe point at the offset; point_count: none */
    bool in_range;
    uint32_t range_position; /* of the offset, in the ranges one after the other; units */
    uint32_t range_total;    /* the length of all ranges */
};

enum { GC_NO_POINT = UINT32_MAX };

/*
 * Reads the points and ranges, which follow the header. `offset` is compared with the points (GC_NO_POINT: with none),
 * `range_offset` with the ranges. False if the reader fails.
 */
bool gc_header_locate(struct gc_bits *bits, const struct gc_encoding *encoding, const struct gc_header *header,
                      uint32_t offset, uint32_t range_offset, struct gc_place *ret);

#endif
