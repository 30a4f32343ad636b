/*
 * range_list_manager.h: where the stubs in a range of memory end.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_RANGE_LIST_MANAGER_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_RANGE_LIST_MANAGER_H

#include "target/reader.h"

/*
 * The end of the used part of [begin, end). It is `end` unless zeros follow the last byte that is not zero: memory that
 * is missing may hold stubs.
 */
uint64_t stubs_used_end(struct reader *reader, uint64_t begin, uint64_t end);

/* Whether `ip`, in [begin, end), is before that. Code is seldom followed by many zeros, so little is read. */
bool stubs_use(struct reader *reader, uint64_t begin, uint64_t end, uint64_t ip);

#endif
