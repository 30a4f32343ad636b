/*
 * report_samples.h: watches a process before it is stopped for a report. One thread at a time.
 */
#ifndef CDACQ_CLI_REPORT_REPORT_SAMPLES_H
#define CDACQ_CLI_REPORT_REPORT_SAMPLES_H

#include "src/cli/base/busy_threads.h"

/*
 * Measures how busy the threads are, and samples the stacks of the busiest. Each sample stops the process for a moment.
 */
void report_watch(struct cdacq_target *target, int pid, struct busy_threads *ret);

#endif
