/*
 * report_runtimes.h: the report of a process that has several runtimes. Each has exceptions, locks and waits of its
 * own, which a struct report for each holds. The one that ended the process leads: its words are the report's.
 */
#ifndef CDACQ_CLI_REPORT_REPORT_RUNTIMES_H
#define CDACQ_CLI_REPORT_REPORT_RUNTIMES_H

#include "src/cli/report/report.h"

/* Adds a report for each other runtime of the session's process, with what its threads are and wait for. */
void report_add_runtimes(struct report *report);

/* The thread as the runtime that knows it has it. `thread`: as the runtime of the report has it. */
struct cdacq_thread report_known_thread(const struct report *report, const struct cdacq_thread *thread);

/* Has the runtime lead that ended the process, if that is another one. `find` sets how a report's runtime ended it. */
void report_choose_runtime(struct report *report, void (*find)(struct report *report));

void report_release_runtimes(struct report *report);

#endif
