/*
 * watchdog.h: ends the tool when the memory of a running process never comes. Another program may supply a page
 * (userfaultfd, FUSE) and never do so; no signal except a fatal one ends the wait for it.
 */
#ifndef CDACQ_CLI_WATCHDOG_H
#define CDACQ_CLI_WATCHDOG_H

/*
 * From now on, if the calling thread waits in the kernel for 5 seconds in a row, uninterruptibly, the tool says that
 * `what` does not answer and exits with EXIT_FAILED. A second call only sets `what`, which must stay valid.
 */
void watchdog_begin(const char *what);

#endif
