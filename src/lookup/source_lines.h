/*
 * source_lines.h: the sequence points of methods, and the files that they name. Source: dotnet/runtime
 * src/libraries/System.Diagnostics.StackTrace/src/System/Diagnostics/StackTraceSymbols.cs (which point counts).
 */
#ifndef CDACQ_LOOKUP_SOURCE_LINES_H
#define CDACQ_LOOKUP_SOURCE_LINES_H

#include "util/base.h"

struct cdacq_method;
struct method_record;
struct module;
struct module_pdb;
struct resolver;
struct source_point;

/* The PDB of a module, usable or not. NULL if the module has no image, or when out of memory. */
const struct module_pdb *resolver_module_pdb(struct resolver *resolver, const struct module *module);

/*
 * Whether a method was compiled from other IL than that of its assembly, or was edited since: the PDB does not describe
 * it. True also if that cannot be read where it can be known.
 */
bool resolver_il_is_replaced(struct resolver *resolver, uint64_t module, uint32_t token, uint64_t method_desc,
                             uint64_t code_start);

/* Decodes the sequence points of a record's method, after its IL offsets. */
void record_read_source(struct resolver *resolver, struct method_record *record);

/*
 * The last point at or before the IL offset of an answer that is not hidden; of NativeAOT, at or before its code. NULL
 * if there is none, or its file is not known.
 */
const struct source_point *record_source_point(const struct method_record *record, const struct cdacq_method *answer);

#endif
