/*
 * index.h: the map of a process's code and the tables of its ranges, built when look-ups or listings need them. A
 * running process may change both while they are read.
 */
#ifndef CDACQ_LOOKUP_INDEX_H
#define CDACQ_LOOKUP_INDEX_H

#include "cdacq/error.h"
#include "util/base.h"

struct code_map;
struct index_range;
struct resolver;

/* The map of all code, built on demand. NULL if that fails: look-ups then walk. */
const struct code_map *resolver_map(struct resolver *resolver);

/* Begins an epoch and returns its map. NULL, with *ret_status and *err set, on failure or if the process is gone. */
const struct code_map *resolver_begin_map(struct resolver *resolver, enum cdacq_status *ret_status,
                                          struct cdacq_error *err);

/* The index of the range that contains an address, often that of the last look-up; SIZE_MAX if there is none. */
size_t resolver_find_range(struct resolver *resolver, uint64_t address);

/* The table of a range, with this session's records, built on demand. NULL if that fails. */
struct index_range *resolver_table(struct resolver *resolver, size_t range);

/* Reports why resolver_table returned NULL. NOT_MANAGED: a running process has freed the range. */
enum cdacq_status resolver_table_error(struct resolver *resolver, size_t range, struct cdacq_error *err);

#endif
