/*
 * source_lines.h: the sequence points of methods, and the files that they name. Source: dotnet/runtime
 * src/libraries/System.Diagnostics.StackTrace/src/System/Diagnostics/StackTraceSymbols.cs (which point counts).
 */
#ifndef CDACQ_LOOKUP_SOURCE_LINES_H
#define CDACQ_LOOKUP_SOURCE_LINES_H

#include "src/lookup/resolver.h"

/* The PDB of a module, usable or not. NULL if the module has no image, or when out of memory. */
const struct module_pdb *resolver_module_pdb(struct resolver *resolver, const struct module *module);

/* Decodes the sequence points of a record's method, after its IL offsets. */
void record_read_source(struct resolver *resolver, struct method_record *record);

/*
 * The last point at or before the IL offset of an answer that is not hidden; of NativeAOT, at or before its code. NULL
 * if there is none, or its file is not known.
 */
const struct source_point *record_source_point(const struct method_record *record, const struct cdacq_method *answer);

#endif
