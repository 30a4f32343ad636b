/*
 * workers.h: processes of the tool that do one item after the other. Each may never be done: it needs memory, or a
 * file, that never comes, and no signal ends such a wait. Once an item holds its process up, another process goes on
 * with the rest. After WORKERS_SECONDS, the process is left behind: it keeps no file of the tool open.
 */
#ifndef CDACQ_CLI_COMMANDS_WORKERS_H
#define CDACQ_CLI_COMMANDS_WORKERS_H

#include "src/cli/base/output.h"

enum { WORKERS_SECONDS = 5 };

/* What is known of an item. */
struct workers_result {
    const char *text; /* not NULL */
    size_t length;
    bool is_partly; /* as workers_tell() has it */
    bool is_late;   /* there was no time for more; the text is what came before that, or empty */
};

/* In a process that does items: where it tells results. */
struct workers_self;

/* Sends what `out` holds, in place of what was sent before. At most some 200 KB. */
void workers_tell(struct workers_self *self, const struct output *out, bool is_partly);

/* Does an item, in another process. Writes nothing but what it tells. */
typedef void workers_do(void *context, size_t item, struct workers_self *self);

/* Takes a result, in the order of the items. Non-zero: no more are wanted. */
typedef int workers_take(void *context, size_t item, const struct workers_result *result);

/*
 * Does `count` items. False with errno set if there is no memory, or no process can be made.
 */
bool workers_run(size_t count, workers_do *work, workers_take *take, void *context);

#endif
