/*
 * heap_export.h: cdacq heap --export: the heap in the file formats of other tools. Those that return an
 * exit code read the heap themselves.
 */
#ifndef CDACQ_CLI_COMMANDS_HEAP_EXPORT_H
#define CDACQ_CLI_COMMANDS_HEAP_EXPORT_H

#include "src/cli/base/output.h"
#include "src/cli/commands/heap_why.h"

/* A V8 heap snapshot, for Chrome and VS Code. */
int heap_export_snapshot(const struct heap_question *question);

/* A .gcdump, for dotnet-gcdump, PerfView and Visual Studio. */
int heap_export_gcdump(const struct heap_question *question);

struct treemap_type {
    const char *name; /* NULL: not known */
    uint64_t count, bytes;
};

/* An SVG image of the types by namespace, with an area for the bytes of each. Changes the order of `types`. */
void heap_export_treemap(struct output *out, struct treemap_type *types, size_t count);

#endif
