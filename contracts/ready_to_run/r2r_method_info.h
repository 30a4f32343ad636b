/*
 * r2r_method_info.h: what a ReadyToRun image holds for a method besides its code: GC info, debug info and exception
 * clauses.
 * Source: dotnet/runtime docs/design/coreclr/botr/readytorun-format.md; ExecutionManager.md, "GetDebugInfo".
 */
#ifndef CDACQ_CONTRACTS_READY_TO_RUN_R2R_METHOD_INFO_H
#define CDACQ_CONTRACTS_READY_TO_RUN_R2R_METHOD_INFO_H

#include "contracts/ready_to_run/r2r_image.h"

/*
 * Where the GC info of the method is that starts at a function: after the unwind data of that. False, without failing,
 * where these have no end that is known.
 */
bool r2r_method_gc_info(const struct r2r_image *image, struct field_reader *reader, uint32_t function, uint64_t *ret);

/*
 * Where the debug info of the method is, 0 where it has none. Section 105 is a NativeArray of it by the method's first
 * function; its elements may refer back to an earlier, equal one. False, and the reader fails, when it cannot be read.
 */
bool r2r_method_debug_info(const struct r2r_image *image, struct field_reader *reader, uint32_t function,
                           uint64_t *ret);

/*
 * The exception clauses of the method that starts at `rva`: their address and number. Section 104 is one table for all
 * methods, sorted by method, in which the next entry says where the clauses end. False, and the reader fails, when they
 * cannot be read.
 */
bool r2r_method_clauses(const struct r2r_image *image, struct field_reader *reader, uint32_t rva, uint64_t *ret_address,
                        uint32_t *ret_count);

#endif
