/*
 * complete.h: what a shell may complete a command line to. The scripts in contrib/completion call the tool, so that
 * they know nothing of commands and options.
 */
#ifndef CDACQ_CLI_BASE_COMPLETE_H
#define CDACQ_CLI_BASE_COMPLETE_H

#include <stddef.h>

/* The word that makes the tool call complete_write. */
#define COMPLETE_COMMAND "__complete"

/*
 * Prints what the last of these words, which follow the name of the tool, can be: on each line a word and, after a tab,
 * what it means. The last line has no word, and after the tab what the shell is to add: `words` (nothing), `files`, or
 * `folders`. Returns an exit code.
 */
int complete_write(const char *const *words, size_t count);

#endif
