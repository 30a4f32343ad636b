/*
 * written_core.h: the core that a command has the library write.
 */
#ifndef CDACQ_CLI_COMMANDS_WRITTEN_CORE_H
#define CDACQ_CLI_COMMANDS_WRITTEN_CORE_H

#include <signal.h>
#include <stdbool.h>

/* Whether the file can be written. Says at once, with a message, what the library would find only at the end. */
bool written_core_check(const char *path);

/* Around the call that writes it: a signal that ends the tool comes before or after, so that no part stays behind. */
bool written_core_begin(const char *path, sigset_t *ret);
void written_core_end(bool is_held, const sigset_t *before);

#endif
