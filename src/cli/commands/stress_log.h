/* stress_log.h: `info --stress-log`: writes the runtime's stress log. */
#ifndef CDACQ_CLI_COMMANDS_STRESS_LOG_H
#define CDACQ_CLI_COMMANDS_STRESS_LOG_H

#include "src/cli/base/target.h"

/* struct target_use.run */
int stress_log_show(const void *options, const struct opened_target *opened);

#endif
