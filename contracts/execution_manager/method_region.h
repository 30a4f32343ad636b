/*
 * method_region.h: GetMethodRegionInfo: how long a method's hot and cold code are. The runtime takes the length of all
 * of it from the GC info, and what is cold from the unwind information. The two must agree, so each checks the other.
 * Source: dotnet/runtime src/coreclr/vm/codeman.cpp, JitCodeToMethodRegionInfo; the specification, which sums up the
 * lengths of RUNTIME_FUNCTIONs, gives a split method's hot part too short: that of its first function.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_METHOD_REGION_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_METHOD_REGION_H

#include "contracts/execution_manager/execution_manager.h"

/*
 * Where the GC info of a block's method is, and its version, 0 where that is not known. False, and the reader fails,
 * when it cannot be told.
 */
bool gc_info_of(const struct execution_manager *manager, struct field_reader *reader, const struct code_block *block,
                uint64_t *ret, uint32_t *ret_version);

/* The length of a method's hot part. False, and the reader fails, when it cannot be told or has two answers. */
bool method_region_hot_size(const struct execution_manager *manager, struct field_reader *reader,
                            const struct code_block *block, uint64_t *ret);

#endif
