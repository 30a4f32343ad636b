/*
 * second_process.h: a second process of the tool, which writes a part of the results. Most of a short run is spent on
 * memory that is used for the first time, and threads of one process would wait for each other there. Where the second
 * process is not certain of its results, there are none: the first one can always do without them, and is the only one
 * that has messages.
 */
#ifndef CDACQ_CLI_SECOND_PROCESS_H
#define CDACQ_CLI_SECOND_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "src/cli/output.h"

struct second_process {
    pid_t pid;       /* 0: there is none */
    int results;     /* a pipe from it */
    bool is_stopped; /* it is of no use, and was killed */
};

/* Writes a part of the results, without the console. Returns whether they can be used. */
typedef bool second_process_write(void *context, struct output *out);

/*
 * Calls `write_part` in a second process, which has all memory as it is now. False: none can be made, or there is only
 * one processor for both.
 */
bool second_process_begin(struct second_process *second, second_process_write *write_part, void *context);

/* Waits for the results, which output_abandon frees. False: there are none. */
bool second_process_take(struct second_process *second, struct output *ret);

/* Its results are not wanted. */
void second_process_stop(struct second_process *second);

/* Waits for its end, so that no zombie is left. Does nothing if there is none. */
void second_process_end(struct second_process *second);

#endif
