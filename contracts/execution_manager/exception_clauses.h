/*
 * exception_clauses.h: GetExceptionClauses: which parts of a method's code are protected, and what handles what is
 * thrown there. JIT-compiled code has an EE_ILEXCEPTION, with the number of clauses in front of it; a ReadyToRun image
 * has one table for all methods (section 104), sorted by method, in which the next entry tells where the clauses end.
 * Source: dotnet/runtime docs/design/coreclr/botr/readytorun-format.md, "READYTORUN_SECTION_EXCEPTION_INFO";
 * src/coreclr/vm/{eexcp.h,codeman.cpp}.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_EXCEPTION_CLAUSES_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_EXCEPTION_CLAUSES_H

#include "cdacq/block.h"
#include "contracts/execution_manager/execution_manager.h"

enum { EXCEPTION_CLAUSE_MAX = 64 * 1024 }; /* of one method */

/* Where a method's clauses are. */
struct exception_clauses {
    uint64_t address;
    uint32_t count;
    bool r2r; /* which of the two forms they have */
};

/* The clauses of the method of a block; none is a count of 0. False, and the reader fails, when it cannot be told. */
bool exception_clauses_of(const struct execution_manager *manager, struct field_reader *reader,
                          const struct code_block *block, struct exception_clauses *ret);

/* Clause `i`, which is below the count. False, and the reader fails, when it cannot be read. */
bool exception_clause_read(struct field_reader *reader, const struct exception_clauses *clauses, uint32_t i,
                           struct cdacq_exception_clause *ret);

#endif
