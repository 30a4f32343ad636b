/*
 * range_section_map.h: RangeSectionMap: the code ranges of a process. It is a radix tree over the address: five levels
 * of 256 pointers on 64-bit targets (bits 17 to 56; higher ones are ignored), two on 32-bit ones (bits 16 to 31). A
 * slot of level 1 is a list of fragments; each names a RangeSection. Bit 0 of every pointer, in slots and in
 * RangeSectionFragment.Next, is a tag ("collectible"). A section that is being deleted is skipped, as in the runtime.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "RangeSectionMap"; src/coreclr/vm/codeman.h.
 */
#ifndef CDACQ_CONTRACTS_CODE_LOOKUP_RANGE_SECTION_MAP_H
#define CDACQ_CONTRACTS_CODE_LOOKUP_RANGE_SECTION_MAP_H

#include "util/base.h"

struct reader;

enum range_section_flags {
    RANGE_SECTION_COLLECTIBLE = 1,
    RANGE_SECTION_CODE_HEAP = 2,
    RANGE_SECTION_RANGE_LIST = 4,
    RANGE_SECTION_INTERPRETER = 8,
    RANGE_SECTION_NATIVE_AOT = 1 << 30, /* ours: the managed code of a NativeAOT program */
};

struct range_section {
    uint64_t begin, end; /* first, for sort_u64() */
    uint64_t address;    /* of the RangeSection */
    uint64_t jit_manager, heap_list, r2r_module, range_list;
    uint32_t flags;    /* enum range_section_flags */
    uint8_t stub_kind; /* enum cdacq_code_kind of a range of stubs outside of the map, which they fill; otherwise 0 */
    bool whole;        /* set by range_section_map_list: look-ups of all its addresses find it, or cannot read a slot */
};

/* The live section that holds `address`. False if none does or the reader fails. */
bool range_section_map_find(struct reader *reader, uint64_t map, uint64_t address, struct range_section *ret);

/*
 * Whether the map has tables for the 8 GiB around `address`, because some section was or is near it. (Tables of
 * collectible sections are freed with the last of them.) True on 32-bit targets. False if the reader fails.
 */
bool range_section_map_reaches(struct reader *reader, uint64_t map, uint64_t address);

/* All live sections, sorted by begin, each once, disjoint, not empty. */
struct range_section_list {
    struct range_section *items;
    size_t count;
    size_t left_out; /* tables, fragments and sections that could not be read, or are impossible: the list has holes */
};

enum {
    RANGE_TABLE_MAX = 8192,           /* tables of one map: a real one has a few dozen */
    RANGE_REPEATED_MAX = 64,          /* slots that lead to a table once more: in a real map none does */
    RANGE_FRAGMENT_MAX = 1024 * 1024, /* one for each 64 or 128 KiB of code */
};

/*
 * Lists the whole map. What cannot be read, or what no runtime writes (a table in two places, a cycle of fragments, a
 * section that is empty or overlaps another one), is left out and counted; look-ups may find more. False, and the
 * reader fails, if the map exceeds the bounds. The caller frees ret->items.
 */
bool range_section_map_list(struct reader *reader, uint64_t map, struct range_section_list *ret);

#endif
