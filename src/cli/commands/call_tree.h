/* call_tree.h: writes stacks as one tree, from the outermost frames on. */
#ifndef CDACQ_CLI_COMMANDS_CALL_TREE_H
#define CDACQ_CLI_COMMANDS_CALL_TREE_H

#include "src/cli/commands/call_paths.h"

/* Sorts the paths, which are those of stacks. With `native`, each native frame has a line, also of several in a row. */
void call_tree_write(struct output *out, struct call_paths *paths, bool native);

#endif
