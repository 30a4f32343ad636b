/*
 * method_region.h: GetMethodRegionInfo: how long a method's hot and cold code are. The runtime takes the length of all
 * of it from the GC info, and what is cold from the unwind information. The two must agree, so each checks the other.
 * Source: dotnet/runtime src/coreclr/vm/codeman.cpp, JitCodeToMethodRegionInfo; the specification, which sums up the
 * lengths of RUNTIME_FUNCTIONs, gives a split method's hot part too short: that of its first function.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_METHOD_REGION_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_METHOD_REGION_H

#include "contracts/execution_manager/code_block.h"
#include "descriptors/field_reader.h"

/* The length of a method's hot part. False, and the reader fails, when it cannot be read or has two answers. */
bool method_region_hot_size(struct field_reader *reader, const struct code_block *block, uint64_t *ret);

#endif
