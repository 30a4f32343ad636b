/*
 * debug_info.h: what the JIT compiler stores for a method: the map from native offsets to IL offsets, and where
 * arguments and locals are. The blob begins with sizes, followed by chunks; the chunk of bounds has the map, that of
 * variables the places. The encoding of the former changed with .NET 10 and 11, that of the latter with 11; a row of
 * struct debug_info_encoding is one of them. Everything here is pure: bytes in, bounds and variables out. Damaged bytes
 * give false, never an endless loop: each bound takes at least one bit, and each variable two bytes, of a chunk whose
 * size is capped. Source: dotnet/runtime docs/design/datacontracts/DebugInfo.md; src/coreclr/vm/debuginfostore.cpp;
 * src/coreclr/inc/cordebuginfo.h.
 */
#ifndef CDACQ_FORMATS_DEBUG_INFO_H
#define CDACQ_FORMATS_DEBUG_INFO_H

#include "util/vector.h"
#include "formats/bytes.h"

enum { DEBUG_INFO_CHUNK_MAX = 4 * 1024 * 1024 }; /* a method of 1.4 MB of code has some 400 KB of bounds */

/* ICorDebugInfo::MappingTypes: what an il_offset is where it is no offset. */
enum debug_info_mapping {
    DEBUG_INFO_NO_MAPPING = -1,
    DEBUG_INFO_PROLOG = -2,
    DEBUG_INFO_EPILOG = -3,
};

enum debug_info_source {
    DEBUG_INFO_CALL_INSTRUCTION = 1 << 0, /* the native offset is that of a call, not the start of a statement */
    DEBUG_INFO_STACK_EMPTY = 1 << 1,
    DEBUG_INFO_ASYNC = 1 << 2, /* an async call suspends or resumes here */
};

/* From native_offset on, until the next bound, the code is that of il_offset. */
struct debug_info_bound {
    uint32_t native_offset; /* from the start of the method's hot code */
    int32_t il_offset;      /* or enum debug_info_mapping */
    unsigned source;        /* enum debug_info_source */
};

struct debug_info_encoding;
extern const struct debug_info_encoding debug_info_nibbles; /* .NET 8 and 9; ReadyToRun images before version 16 */
extern const struct debug_info_encoding debug_info_packed;  /* .NET 10; ReadyToRun images of version 16 and later */
extern const struct debug_info_encoding debug_info_chunked; /* .NET 11, whose blobs have no flag byte */

/* An opened blob: its bounds are [offset, offset + size) of `bytes`. */
struct debug_info {
    const struct debug_info_encoding *encoding;
    const struct bytes *bytes;
    uint64_t offset, size; /* size is 0 where the blob has no bounds */
    uint64_t variables_offset;
    uint32_t variables_size; /* 0: the blob has none */
};

/*
 * Reads the sizes at the start of a blob. Of instrumented code, which has two sets of bounds, the uninstrumented ones
 * are taken: those are the ones that the runtime uses for stack traces. `bytes` must outlive *ret. False when the bytes
 * end too early or make no sense.
 */
bool debug_info_open(const struct debug_info_encoding *encoding, const struct bytes *bytes, bool has_flag_byte,
                     struct debug_info *ret);

/* Calls `found` for each bound by ascending native offset until it returns false. False when the bounds are damaged. */
bool debug_info_each(const struct debug_info *info, bool (*found)(const struct debug_info_bound *bound, void *context),
                     void *context);

/*
 * ICorDebugInfo::VarLocType. A number of a register is the runtime's, which differ from one to the next for those of
 * floating-point numbers: the one of xmm0 is that of the encoding.
 */
enum debug_info_place {
    DEBUG_INFO_REG,       /* in registers[0] */
    DEBUG_INFO_REG_BYREF, /* registers[0] has its address */
    DEBUG_INFO_REG_FP,    /* in the floating-point register registers[0] */
    DEBUG_INFO_STK,       /* at `offset` from registers[0] */
    DEBUG_INFO_STK_BYREF, /* its address is there */
    DEBUG_INFO_REG_REG,   /* in registers[0] and registers[1] */
    DEBUG_INFO_REG_STK,   /* in registers[0] and at `offset` from registers[1] */
    DEBUG_INFO_STK_REG,   /* at `offset` from registers[0] and in registers[1] */
    DEBUG_INFO_STK2,      /* two words at `offset` from registers[0] */
    DEBUG_INFO_FPSTK,     /* in registers[0] of the x87 stack */
    DEBUG_INFO_FIXED_VA,  /* an argument of a varargs method, at `offset` */
    DEBUG_INFO_PLACE_COUNT,
};

/* ICorDebugInfo::ILNum: what a number is where it is none of the IL. */
enum debug_info_number {
    DEBUG_INFO_VARARGS_HANDLE = -1,
    DEBUG_INFO_RETURN_BUFFER = -2,
    DEBUG_INFO_TYPE_CONTEXT = -3, /* the hidden argument of shared generic code */
};

/* Where an argument or a local is while the native offset is in [begin, end). It may have several places in turn. */
struct debug_info_variable {
    uint32_t begin, end;
    int32_t number; /* arguments from 0, `this` first, then locals; or enum debug_info_number */
    enum debug_info_place place;
    uint32_t registers[2];
    int32_t offset; /* bytes; on x86, words of four */
};

/*
 * Calls `found` for each variable until it returns false, in no particular order. False when the variables are damaged.
 */
bool debug_info_variables(const struct debug_info *info,
                          bool (*found)(const struct debug_info_variable *variable, void *context), void *context);

/* From native_offset on, until the next point, the code is that of il_offset. */
struct il_point {
    uint32_t native_offset, il_offset;
};

DEFINE_VECTOR(il_map, struct il_point); /* sorted by native offset, each once */

enum { IL_MAP_MAX = 1024 * 1024 }; /* points of one method */

/*
 * The IL offset of each native offset, by the rule of the runtime's stack traces: the lowest IL offset of the last
 * bounds at or before the native offset, those of call instructions aside; in an epilog the greatest one of the method;
 * 0 in a prolog and in code without a mapping. A blob without bounds gives an empty map. False when the bounds are
 * damaged, more than IL_MAP_MAX, or memory runs out; *ret, an empty map, is then untouched. The caller frees it.
 * Source: dotnet/runtime src/coreclr/vm/debugdebugger.cpp.
 */
bool debug_info_il_map(const struct debug_info *info, struct il_map *ret);

/* The IL offset at a native offset of a map that is not empty. */
uint32_t il_map_find(const struct il_point *points, size_t count, uint32_t native_offset);

/* The number of xmm0 on x86-64; those of the others follow. */
uint32_t debug_info_xmm0(const struct debug_info_encoding *encoding);

/* Whether a blob of JIT-compiled code may start with a byte of flags: that of .NET 11 has its flags in the header. */
bool debug_info_has_flags(const struct debug_info_encoding *encoding);

#endif
