/*
 * range_sections.h: the range section of an address, also where the core lacks a part of the RangeSectionMap. A section
 * of several megabytes has a slot for each 64 or 128 KiB. If the slot for one address, or its fragments, were not
 * dumped, another slot often lists the section: then the list of all sections has the answer. Every question goes
 * through here, so none has another answer.
 */
#ifndef CDACQ_CONTRACTS_CODE_LOOKUP_RANGE_SECTIONS_H
#define CDACQ_CONTRACTS_CODE_LOOKUP_RANGE_SECTIONS_H

#include <stdatomic.h>

#include "util/base.h"

struct range_section;
struct range_section_list;
struct reader;

struct range_sections {
    bool changes;                              /* the target runs: a list would be of another moment */
    _Atomic(struct range_section_list *) list; /* NULL until first needed */
};

void range_sections_deinit(struct range_sections *sections);

/* The live section of `map`, always the same one, that holds `address`. False if none does or the reader fails. */
bool range_sections_find(struct range_sections *sections, struct reader *reader, uint64_t map, uint64_t address,
                         struct range_section *ret);

#endif
