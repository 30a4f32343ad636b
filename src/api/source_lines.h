/*
 * source_lines.h: the sequence points of a session's methods, and the files that they name. Source: dotnet/runtime
 * src/libraries/System.Diagnostics.StackTrace/src/System/Diagnostics/StackTraceSymbols.cs (which point counts).
 */
#ifndef CDACQ_API_SOURCE_LINES_H
#define CDACQ_API_SOURCE_LINES_H

#include "src/api/handles.h"

/* A document of a PDB, as answers show it. */
struct source_document {
    const char *file, *url;
};

/* A sequence point that is not hidden. */
struct source_point {
    uint32_t il_offset, line, end_line;
    uint16_t column, end_column;
    const struct source_document *document;
};

/* The PDB of a module, usable or not. NULL if the module has no image, or when out of memory. */
const struct module_pdb *session_module_pdb(struct cdacq_session *session, const struct module *module);

/* The last point at or before an IL offset that is not hidden. NULL if there is none, or its file is not known. */
const struct source_point *record_source_point(const struct method_record *record, int32_t il_offset);

/* Decodes the sequence points of a record's method, after its IL offsets. */
void record_read_source(struct cdacq_session *session, struct method_record *record);

/* Adds the file and line to what record_answer_il() has filled, where they are known. */
void record_answer_source(const struct method_record *record, struct cdacq_method *ret);

void session_sources_deinit(struct cdacq_session *session);

#endif
