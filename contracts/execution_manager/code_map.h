/*
 * code_map.h: all code of a process, sorted, for many look-ups: the ranges of the range section map, visited once, and
 * for each range a table of its blocks' parts, built on first use. A look-up is two binary searches. Listings visit the
 * same tables, so they cannot disagree with look-ups.
 *
 * The map agrees with execution_manager_find(). It marks what could not be read, and the caller walks for such an
 * address. A built map is immutable; tables are published atomically.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_CODE_MAP_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_CODE_MAP_H

#include "contracts/code_lookup/range_section_map.h"
#include "util/vector.h"

struct code_block;
struct execution_manager;
struct jit_manager_ops;
struct reader;

/* Addresses [begin, end), relative to the range, of a part of one block; sorted, disjoint. */
struct block_part {
    uint32_t begin, end;
    uint32_t number : 30; /* the manager's own, below PART_NO_NUMBER */
    uint32_t kind : 2;    /* enum block_part_kind */
};

DEFINE_VECTOR(code_table, struct block_part);

struct code_range {
    struct range_section section;
    const struct jit_manager_ops *manager;
    _Atomic(struct code_table *) table;
};

struct code_map {
    struct code_range *ranges; /* sorted by begin, disjoint */
    size_t count;
    size_t left_out; /* parts of the range section map: if there are any, gaps prove nothing */
};

/* NULL, and the reader fails, if the map cannot be listed. Free with code_map_free. */
struct code_map *code_map_build(struct execution_manager *manager, struct reader *reader);
void code_map_free(struct code_map *map);

/* The range that holds `address`, or NULL. */
struct code_range *code_map_range(const struct code_map *map, uint64_t address);

/* The range's table, built on first use. NULL, and the reader fails, if that cannot be done. */
const struct code_table *code_range_table(struct execution_manager *manager, struct reader *reader,
                                          struct code_range *range);

/* How many parts a table of the range would have, about, if it had many; otherwise 0. As a task of its own. */
size_t code_range_part_count(struct execution_manager *manager, struct reader *reader, const struct code_range *range);

/* The part that holds `relative`, or NULL. */
const struct block_part *code_table_find(const struct code_table *table, uint32_t relative);

/* A search in a table, which may be empty. */
struct code_search {
    const struct block_part *parts; /* `count` of them are left; at the end, the one that was found, or NULL */
    size_t count;
    uint32_t relative;
};

/* Does several searches, in any tables. It is faster than one after the other. */
void code_search_all(struct code_search *searches, size_t count);

/* The block of a part, as execution_manager_find() returns it for the part's first address. */
bool code_map_block(struct execution_manager *manager, struct reader *reader, const struct code_range *range,
                    const struct block_part *part, struct code_block *ret);

#endif
