/*
 * r2r_method_info.h: what a ReadyToRun image holds for a method besides its code.
 * Source: dotnet/runtime docs/design/coreclr/botr/readytorun-format.md; ExecutionManager.md, "GetDebugInfo".
 */
#ifndef CDACQ_CONTRACTS_READY_TO_RUN_R2R_METHOD_INFO_H
#define CDACQ_CONTRACTS_READY_TO_RUN_R2R_METHOD_INFO_H

#include "contracts/ready_to_run/r2r_image.h"

/*
 * The address of the GC info of the method that starts at a function; it follows that function's unwind data. False if
 * their size is not known, without failing, or if the reader fails.
 */
bool r2r_method_gc_info(const struct r2r_image *image, struct reader *reader, uint32_t function, uint64_t *ret);

/*
 * The address of the method's debug info, 0 if it has none. Section 105 is a NativeArray by the method's first
 * function; an element may refer back to an earlier, equal one. False, and the reader fails, when it cannot be read.
 */
bool r2r_method_debug_info(const struct r2r_image *image, struct reader *reader, uint32_t function, uint64_t *ret);

/*
 * The address and number of the clauses of the method that starts at `rva`. Section 104 is one table, sorted by method;
 * a method's clauses end where the next entry's begin. False, and the reader fails, when they cannot be read.
 */
bool r2r_method_clauses(const struct r2r_image *image, struct reader *reader, uint32_t rva, uint64_t *ret_address,
                        uint32_t *ret_count);

#endif
