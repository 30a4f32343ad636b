/*
 * gc_mock.h: a small GC heap in a small memory, laid out as .NET 8 for x64 does (GcDacVars) or as .NET 11 publishes it,
 * for tests and fuzzing. Bytes may be overwritten before they are read.
 */
#ifndef CDACQ_TESTS_SUPPORT_GC_MOCK_H
#define CDACQ_TESTS_SUPPORT_GC_MOCK_H

#include "contracts/gc/handle.h"
#include "contracts/gc/walk.h"

enum {
    GC_MOCK_BASE = 0x100000,
    GC_MOCK_SIZE = 0x40000,
    GC_MOCK_HANDLES = GC_MOCK_BASE + 0x30000, /* the last 64 KiB: a segment of handles */
    GC_MOCK_HEAPS = 2,                        /* of server GC */
    GC_MOCK_SEGMENTS = 32,
};

struct gc_mock_options {
    bool is_server, has_segments;
    bool is_published; /* as .NET 11 does; else GcDacVars */
};

struct gc_mock {
    uint8_t bytes[GC_MOCK_SIZE];
    uint64_t end;           /* the next free address */
    uint64_t missing;       /* a page that cannot be read; 0: none */
    uint64_t objects_begin; /* what precedes it are the GC's structures */
    struct gc_mock_options options;
    struct layout layout;
    struct target *target;
    struct reader reader;

    uint64_t vars;                             /* GcDacVars */
    uint64_t generation_size, count, heaps;    /* of server GC: where the number and the pointer are */
    uint64_t invalid_count;                    /* where it is */
    uint64_t generation_tables[GC_MOCK_HEAPS]; /* of workstation GC, only the first */
    uint64_t alloc_allocated[GC_MOCK_HEAPS];   /* where it is */
    uint64_t segments[GC_MOCK_SEGMENTS], firsts[GC_MOCK_SEGMENTS]; /* records, and their first objects */
    size_t segment_count;
    uint64_t free_table, plain_table, array_table, string_table; /* MethodTables */
    uint64_t thread;
    uint64_t handle_map, handle_table; /* the only ones; what they have: gc_mock.c, add_handles */
    unsigned handle_kinds;
    uint64_t finalize_queues[GC_MOCK_HEAPS]; /* each CFinalize has five objects that wait and two that are ready */

    struct {
        uint64_t count, bytes;
    } planted[CDACQ_GENERATION_COUNT]; /* free memory included */
};

void gc_mock_init(struct gc_mock *mock, struct gc_mock_options options);
void gc_mock_deinit(struct gc_mock *mock);

void gc_mock_put(struct gc_mock *mock, uint64_t address, uint64_t value, unsigned width);
/* The heap could not make an allocation, in a collection of that index. */
void gc_mock_refuse(struct gc_mock *mock, unsigned heap, uint32_t reason, uint64_t size, uint64_t index);
uint64_t gc_mock_get(const struct gc_mock *mock, uint64_t address);

#endif
