/*
 * name_pattern.h: which methods a person means by a name with wildcards.
 */
#ifndef CDACQ_CLI_COMMANDS_NAME_PATTERN_H
#define CDACQ_CLI_COMMANDS_NAME_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether a method's name matches the pattern, as a whole or without its parameters. `*` stands for any text and `?`
 * for one byte; all else is itself, brackets too.
 */
bool name_matches(const char *name, const char *pattern);

#endif
