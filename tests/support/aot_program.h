/*
 * aot_program.h: a small NativeAOT program in memory, for tests and fuzzing: code with call-frame information, the
 * tables that ILC puts beside it, MethodTables, and a thread with its statics. Bytes may be overwritten before the
 * tables are read. It is little-endian and of 64 bits, as ILC's programs are.
 */
#ifndef CDACQ_TESTS_SUPPORT_AOT_PROGRAM_H
#define CDACQ_TESTS_SUPPORT_AOT_PROGRAM_H

#include "contracts/native_aot/aot_image.h"
#include "descriptors/descriptor.h"
#include "descriptors/fields.h"
#include "mocktarget/mocktarget.h"
#include "target/image.h"

enum {
    AOT_BASE = 0x100000,
    AOT_SIZE = 0x8000,
    AOT_THREAD = AOT_BASE + 0x300, /* a Thread */
    AOT_THREAD_OBJECT = AOT_BASE + 0x500,
    AOT_STATICS = AOT_BASE + 0x400, /* the object with its thread statics, of 0x38 bytes with its header */
    AOT_TABLES = AOT_BASE + 0x1000, /* MethodTables, of AOT_TABLE_SIZE bytes */
    AOT_TABLE_SIZE = 0x80,
    AOT_CODE = AOT_BASE + 0x2000,
    AOT_CODE_SIZE = 0x200,
    AOT_FRAMES = AOT_BASE + 0x2800, /* .eh_frame_hdr and what it leads to */
    AOT_SECTIONS = AOT_BASE + 0x4000,
};

/* Functions: offsets in the code, in the order of their FDEs. */
enum aot_program_code {
    AOT_OUTER = 0, /* Ns.Outer`1.Method, named for stack traces */
    AOT_OUTER_CATCH = 0x40,
    AOT_OUTER_FILTER = 0x60,
    AOT_PLAIN = 0x80,     /* Ns.Outer`1+Inner.Plain, hidden from stack traces */
    AOT_REFLECTED = 0xa0, /* Ns.Value.Reflected, named for reflection only, by way of a stub: */
    AOT_UNBOXING = 0xc0,
    AOT_INSTANCE = 0xe0, /* the same for a generic type */
    AOT_INSTANTIATING = 0x100,
    AOT_NAMELESS = 0x120,
    AOT_END = 0x140,
};

/* MethodTables, in the order in which they lie. */
enum aot_program_type {
    AOT_OUTER_TYPE, /* Ns.Outer`1 */
    AOT_INT32,
    AOT_VALUE, /* Ns.Value */
    AOT_SYSTEM_THREAD,
    AOT_STATICS_TYPE, /* without metadata, as all below */
    AOT_OUTER_OF_INT32,
    AOT_PAIR,                /* Ns.Pair`2: in the table of types */
    AOT_PAIR_OF_INT32_VALUE, /* an instance of two arguments */
    AOT_VECTOR_OF_INSTANCE,
    AOT_MATRIX_OF_INT32,
    AOT_POINTER_TO_INT32,
    AOT_REFERENCE_TO_VALUE,
    AOT_DYNAMIC,
    AOT_TYPES,
};

struct aot_program {
    uint8_t bytes[AOT_SIZE];
    struct mock_bytes metadata;
    struct descriptor descriptor;
    struct layout layout;
    struct target *target;
    struct reader reader;
    struct image image;
    struct aot_image aot;
};

/* Aborts on failure. The caller deinits it. */
void aot_program_init(struct aot_program *program);
void aot_program_deinit(struct aot_program *program);

/* Where bytes of an address are. */
uint8_t *aot_program_at(struct aot_program *program, uint64_t address);

static inline uint64_t aot_program_type(enum aot_program_type type)
{
    return AOT_TABLES + (uint64_t)type * AOT_TABLE_SIZE;
}

#endif
