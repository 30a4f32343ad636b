/*
 * stub_ranges.h: stubs that the runtime generates outside of its range section map. The StubLinkStubManager lists the
 * ranges of the stubs that its assembler made: instantiating and unboxing stubs, shuffle thunks. The
 * CallCountingManager of the LoaderAllocator that lasts as long as the process lists those of its stubs. The table of
 * JIT helpers, or since .NET 11 AuxiliarySymbols, leads to the runtime's copies of the write barriers, which have
 * memory of their own. No other contract describes them; supplements do, for .NET 8 to 10 on x86-64.
 * Source: dotnet/runtime src/coreclr/vm/stubmgr.h, src/coreclr/vm/callcounting.h, src/coreclr/inc/utilcode.h
 * (RangeList), src/coreclr/inc/dacvars.h, src/coreclr/vm/threads.cpp (InitThreadManager).
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_STUB_RANGES_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_STUB_RANGES_H

#include "util/base.h"

struct range_section;
struct range_section_list;
struct reader;

/* The addresses of the runtime's image: its own helpers are in it and are no copies. Both 0 if it is not known. */
struct image_bounds {
    uint64_t begin, end;
};

/*
 * The range whose stubs hold `address`, with their kind. False if there is none, if the target
 * does not describe the ranges or lacks them, or if the reader fails.
 */
bool stub_ranges_find(struct reader *reader, const struct image_bounds *image, uint64_t address,
                      struct range_section *ret);

/*
 * Adds all ranges to a list of sections and sorts it. What overlaps a section, or another range, is cut off. False, and
 * the reader fails, when out of memory or fuel.
 */
bool stub_ranges_add(struct reader *reader, const struct image_bounds *image, struct range_section_list *list);

#endif
