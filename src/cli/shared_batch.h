/*
 * shared_batch.h: the answers for many addresses of a running process, which two processes of the tool look up. Each
 * takes the next addresses that nobody has taken, in their order: one from the lower end, the other from the upper one.
 */
#ifndef CDACQ_CLI_SHARED_BATCH_H
#define CDACQ_CLI_SHARED_BATCH_H

#include "src/cli/answers.h"
#include "src/cli/second_process.h"

enum { SHARED_BATCH_MIN = 256 }; /* addresses for which a second process pays */

/*
 * Writes the answers in the order of the addresses. `methods` has room for `count`. False, and nothing is written: one
 * of the answers needs a message, such as an error, or there is no second process. To be followed by
 * second_process_end() in any case.
 */
bool shared_batch_answer(struct second_process *second, struct cdacq_target *target, struct cdacq_session *session,
                         const uint64_t *ips, size_t count, struct cdacq_method *methods, struct answers *answers);

#endif
