/*
 * watchdog.h: ends the tool when the memory of a running process never comes. Another program may supply a page
 * (userfaultfd, FUSE) and never do so; no signal except a fatal one ends the wait for it.
 */
#ifndef CDACQ_CLI_WATCHDOG_H
#define CDACQ_CLI_WATCHDOG_H

enum { WATCHDOG_ANY = -1 }; /* the process is not known yet */

/*
 * From now on, if the main thread waits in the kernel for 5 seconds in a row, uninterruptibly, the tool says that the
 * process does not answer and exits with EXIT_FAILED. 0: nothing is watched any more. Returns the pid before. What may
 * wait for a disk or another machine is done unwatched.
 */
int watchdog_set(int pid);

#endif
