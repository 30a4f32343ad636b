/*
 * heap_export.h: cdacq heap --export: the heap as a V8 heap snapshot.
 */
#ifndef CDACQ_CLI_COMMANDS_HEAP_EXPORT_H
#define CDACQ_CLI_COMMANDS_HEAP_EXPORT_H

#include "src/cli/commands/heap_why.h"

int heap_export_write(const struct heap_question *question);

#endif
