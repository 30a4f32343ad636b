/*
 * exception_clauses.h: GetExceptionClauses: what handles the exceptions that a method's code throws. A clause has one
 * of two forms with the same fields: that of an EE_ILEXCEPTION, in code heaps, and that of ReadyToRun images.
 * Source: dotnet/runtime docs/design/coreclr/botr/readytorun-format.md, "READYTORUN_SECTION_EXCEPTION_INFO";
 * src/coreclr/vm/{eexcp.h,codeman.cpp}.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_EXCEPTION_CLAUSES_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_EXCEPTION_CLAUSES_H

#include "cdacq/block.h"
#include "descriptors/fields.h"

struct clause_form {
    enum layout_type type;
    enum layout_field flags, try_start, try_end, handler_start, handler_end;
    enum layout_field last; /* a union: the filter's offset, a class token, or a TypeHandle */
    bool has_type_handles;
};

extern const struct clause_form clause_form_jit, clause_form_r2r;

struct exception_clauses {
    uint64_t address;
    uint32_t count;
    const struct clause_form *form;
};

/*
 * The clauses of the EE_ILEXCEPTION at `info`, which follows their number; 0: there are none. False, and the reader
 * fails, when it cannot be read.
 */
bool exception_clauses_at(struct reader *reader, uint64_t info, struct exception_clauses *ret);

/* Clause `i`, which must be below the count. False, and the reader fails, when it cannot be read. */
bool exception_clause_read(struct reader *reader, const struct exception_clauses *clauses, uint32_t i,
                           struct cdacq_exception_clause *ret);

#endif
