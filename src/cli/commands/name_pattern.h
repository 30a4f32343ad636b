/*
 * name_pattern.h: which methods a person means by a name with wildcards.
 */
#ifndef CDACQ_CLI_COMMANDS_NAME_PATTERN_H
#define CDACQ_CLI_COMMANDS_NAME_PATTERN_H

#include "src/cli/base/common_options.h"

/*
 * Whether a method's name matches the pattern, as a whole or without its parameters. `*` stands for any text and `?`
 * for one byte; all else is itself, brackets too.
 */
bool name_matches(const char *name, const char *pattern);

/* Whether it matches one of the patterns, or there are none. `name` may be NULL. */
bool name_is_wanted(const char *name, const struct word_list *patterns);

#endif
