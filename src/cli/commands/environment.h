/* environment.h: shows the environment of a process. */
#ifndef CDACQ_CLI_COMMANDS_ENVIRONMENT_H
#define CDACQ_CLI_COMMANDS_ENVIRONMENT_H

#include "src/cli/base/target.h"

/* As target_use.run; `given` begins with struct common_options. */
int environment_show(const void *given, const struct opened_target *opened);

#endif
