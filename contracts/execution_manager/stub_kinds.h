/*
 * stub_kinds.h: StubCodeBlockKind: the numbers of the kinds of stubs. .NET 11 renumbered them without a new contract
 * version; the descriptor's schema shows which numbering is used.
 * Source: dotnet/runtime src/coreclr/vm/codeman.h.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_STUB_KINDS_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_STUB_KINDS_H

#include "cdacq/code_kind.h"
#include "util/base.h"

struct stub_kinds {
    const uint8_t *kinds; /* enum cdacq_code_kind, by number */
    size_t count;
};

extern const struct stub_kinds stub_kinds_10, stub_kinds_11;

/* The kind that a number means; CDACQ_CODE_UNKNOWN if the numbering lacks it. */
static inline enum cdacq_code_kind stub_kind_of(const struct stub_kinds *kinds, uint64_t number)
{
    return number < kinds->count ? kinds->kinds[number] : CDACQ_CODE_UNKNOWN;
}

#endif
