/*
 * wait_lines.h: which waits of a report are one line of its text, and in which order: those of threads that wait for
 * the same, or for tasks that read alike. What is not known is not the same. One thread at a time.
 */
#ifndef CDACQ_CLI_REPORT_WAIT_LINES_H
#define CDACQ_CLI_REPORT_WAIT_LINES_H

#include "cdacq.h"
#include "util/vector.h"

DEFINE_VECTOR_TYPE(shown_waits, const struct cdacq_wait *);

enum { TASK_OTHERS_MAX = 100 }; /* the greatest cdacq_task.others: there may be more */

/* The waits of a graph, those of one line next to each other. The caller releases them. */
void wait_lines_collect(struct cdacq_wait_graph *graph, struct shown_waits *ret);
void wait_lines_release(struct shown_waits *waits);

/* How many waits are one line, from this one on. */
size_t wait_lines_count(const struct shown_waits *waits, size_t first);

/* The wait of a thread; NULL if it has none. */
const struct cdacq_wait *wait_lines_of(const struct shown_waits *waits, int tid);

/* The method of a task, or else its type; "?" if neither is known. */
const char *wait_lines_task(const struct cdacq_task *task);

/* Whether the lines of two tasks are the same. */
bool wait_lines_tasks_alike(const struct cdacq_task *a, const struct cdacq_task *b);

#endif
