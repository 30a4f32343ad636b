/*
 * folded.h: turns the text of `perf script` into folded stacks, the input of flame graphs: one line for each different
 * stack, "COMM;outermost;...;innermost COUNT".
 */
#ifndef CDACQ_CLI_COMMANDS_FOLDED_H
#define CDACQ_CLI_COMMANDS_FOLDED_H

#include "src/cli/base/target.h"

/*
 * Reads standard input, writes to a file; NULL is standard output. Without a session, frames keep the names that perf
 * gave them.
 */
int folded_write(const char *output, struct cdacq_session *session);

#endif
