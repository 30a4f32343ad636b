/*
 * report_waiting.h: what a thread of the program waits for that no thread of the process is known to hold up. One
 * thread at a time.
 */
#ifndef CDACQ_CLI_REPORT_REPORT_WAITING_H
#define CDACQ_CLI_REPORT_REPORT_WAITING_H

#include "src/cli/report/report.h"
#include "src/cli/report/wait_lines.h"

/* A thread that waits. */
struct report_waiting {
    const struct stack_thread *thread;
    const struct cdacq_wait *wait;        /* NULL: it waits in the kernel, in */
    const struct cdacq_system_call *call; /* NULL: not known */
    const char *word;                     /* for programs: "socket" */
    struct report_place place;            /* where the program waits: of async methods, the innermost */
    struct report_place blocked;          /* where the thread itself waits, if `place` is of an async method */
    const struct cdacq_method *called;    /* the method of the framework that the program called; NULL: not known */
};

/* Whether a thread may be waiting: it was in no code of its own, and did not run while the process was measured. */
bool report_may_wait(const struct report *report, const struct stack_thread *thread);

/* Says what a thread waits for. False if it does not wait, or runs no code of the program. */
bool report_describe_waiting(const struct report *report, const struct shown_waits *waits, int tid,
                             struct report_waiting *ret);

/*
 * Finds the thread whose wait tells most, among those that run code of the program: the one that runs finalizers, or
 * any other. False if none waits.
 */
bool report_find_waiting(const struct report *report, const struct shown_waits *waits, bool of_finalizer,
                         struct report_waiting *ret);

/* Writes " waits for ...", which needs no place. */
void report_put_waiting(struct output *out, const struct report *report, const struct report_waiting *waiting);

#endif
