/*
 * record_index.h: the records of methods by the addresses of their code. A record is found by an address in its part,
 * and replaces one with the same start. Source: none; an ordered set.
 */
#ifndef CDACQ_LOOKUP_RECORD_INDEX_H
#define CDACQ_LOOKUP_RECORD_INDEX_H

#include "util/vector.h"

struct method_record;

struct indexed_record {
    uint64_t start;
    struct method_record *record;
};

DEFINE_VECTOR(indexed_records, struct indexed_record);

/* Two sorted lists: a new record goes into the short one, so that adding one moves little. */
struct record_index {
    struct indexed_records many, few;
};

void record_index_deinit(struct record_index *index);

/* The record with the highest start up to `address`, which may end before it. NULL if there is none. */
struct method_record *record_index_find(const struct record_index *index, uint64_t address);

enum { RECORD_INDEX_BATCH = 32 };

/* The same for up to RECORD_INDEX_BATCH addresses. It is faster than one search after the other. */
void record_index_find_batch(const struct record_index *index, const uint64_t *addresses, size_t count,
                             struct method_record **ret);

/* False when out of memory: the record is then found by other means. */
bool record_index_add(struct record_index *index, uint64_t start, struct method_record *record);

#endif
