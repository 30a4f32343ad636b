/* flame.h: draws folded stacks. */
#ifndef CDACQ_CLI_COMMANDS_FLAME_H
#define CDACQ_CLI_COMMANDS_FLAME_H

/* Draws those that `fd` has, to `output` or, if that is NULL, to standard output. `name` is theirs. An exit code. */
int flame_draw(const char *output, const char *name, int fd);

#endif
