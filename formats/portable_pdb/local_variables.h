/*
 * local_variables.h: the names of the local variables of a method, by scope. A scope is a range of IL offsets; scopes
 * lie within each other. The input is not trusted: what is malformed is FORMAT. Pure.
 * Source: dotnet/runtime docs/design/specs/PortablePdb-Metadata.md, "LocalScope Table", "LocalVariable Table".
 */
#ifndef CDACQ_FORMATS_PORTABLE_PDB_LOCAL_VARIABLES_H
#define CDACQ_FORMATS_PORTABLE_PDB_LOCAL_VARIABLES_H

#include "formats/portable_pdb/portable_pdb.h"

struct local_variable {
    uint32_t slot;  /* the number of the local in the method's signature of locals */
    uint32_t name;  /* index into #Strings of the PDB */
    bool is_hidden; /* made by the compiler */
};

/*
 * Calls `found` for each local of a MethodDef whose scope contains an IL offset until it returns false: those of inner
 * scopes after those of outer ones. FUEL after 64 Ki scopes or locals.
 */
enum cdacq_status local_variables_each(const struct portable_pdb *pdb, uint32_t method_rid, uint32_t il_offset,
                                       bool (*found)(const struct local_variable *variable, void *context),
                                       void *context);

/* Whether the PDB has scopes of a MethodDef. */
bool local_variables_exist(const struct portable_pdb *pdb, uint32_t method_rid);

#endif
