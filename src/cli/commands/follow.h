/*
 * follow.h: commands that go on until what they follow ends, or they are interrupted (SIGINT, SIGTERM).
 */
#ifndef CDACQ_CLI_COMMANDS_FOLLOW_H
#define CDACQ_CLI_COMMANDS_FOLLOW_H

#include "cdacq.h"
#include "src/cli/base/target.h"
#include "src/cli/base/output.h"

/* From now on, SIGINT and SIGTERM do not end the process, but what it follows. */
void follow_begin(void);

bool follow_interrupted(void);

/* False, with a message, if --follow is given for what does not change: a core, or a process that is stopped. */
bool follow_is_possible(const struct common_options *options);

/* Writes the output, then waits. False if the wait was interrupted, or nobody reads the output any more. */
bool follow_wait(struct output *out, int milliseconds);

/* A descriptor that tells when a process ends, until the tool ends; -1 where the kernel has none (before Linux 5.3). */
int follow_open_process(int pid);

/* Whether that process has ended; false for -1. */
bool follow_process_ended(int process);

/* A follower of a process; flags as for cdacq_follower_create. Catches interrupts. NULL, with a message, on failure. */
struct cdacq_follower *follow_open(struct cdacq_target *target, unsigned flags);

/* One call on a follower. CDACQ_DONE: the process has ended. Negative: a message has said why. */
typedef enum cdacq_status follow_round(struct cdacq_follower *follower, void *context);

/*
 * Calls `round` for a process again and again, a few times a second and at most a fifth of the time, until it returns
 * anything but CDACQ_OK, or until an interrupt. Returns what it has returned last.
 */
enum cdacq_status follow_process(struct cdacq_follower *follower, struct output *out, follow_round *round,
                                 void *context);

#endif
