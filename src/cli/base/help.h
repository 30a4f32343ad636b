/*
 * help.h: what --help prints.
 */
#ifndef CDACQ_CLI_BASE_HELP_H
#define CDACQ_CLI_BASE_HELP_H

struct command;

/* The text about the TARGET of a command, or of all if it is NULL. Ends in a newline. */
const char *help_target_text(const struct command *command);

/* The meaning of exit status 1 for a command, or for all if it is NULL. */
const char *help_exit_partly(const struct command *command);

/* The heading of an enum command_section. */
const char *help_section_title(unsigned section);

/* Prints the help of a command, or the list of commands if it is NULL. Returns an exit code. */
int help_print(const struct command *command);

/* Prints the version. Returns an exit code. */
int help_print_version(void);

#endif
