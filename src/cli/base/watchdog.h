/*
 * watchdog.h: ends the tool, with a message and EXIT_FAILED, where it cannot go on. The memory of a running process may
 * never come: another program may supply a page (userfaultfd, FUSE) and never do so, and no signal except a fatal one
 * ends the wait for it. A file that is mapped may be cut off by another program.
 */
#ifndef CDACQ_CLI_BASE_WATCHDOG_H
#define CDACQ_CLI_BASE_WATCHDOG_H

#include <signal.h>
#include <stdbool.h>

/*
 * From now on, if the main thread waits in the kernel for 5 seconds in a row, uninterruptibly or for bytes that it
 * reads, the tool says that the process does not answer, and ends. 0: nothing is watched any more. Returns the pid
 * before. What may wait for a disk or another machine is done unwatched.
 */
int watchdog_set(int pid);

/* From now on, where a file has become shorter than its mapping, or cannot be read, the tool says so, and ends. */
void watchdog_catch_bus_errors(void);

/*
 * The file that is removed when the tool ends like that, or by a signal that can be caught, because it is not complete:
 * a `name` in `folder`, or a path and AT_FDCWD. It has to stay valid until the next call. NULL: none.
 */
void watchdog_remove(int folder, const char *name);

/* Removes that file. As a signal handler may. */
void watchdog_remove_now(void);

/* From now on, these signals wait until the mask before, which is stored in *ret_before, is set again. */
void watchdog_block_ends(sigset_t *ret_before);

/*
 * From now on, signals that stop the tool (SIGTSTP, as of Ctrl+Z, SIGTTIN, SIGTTOU) wait, or do so no longer: a process
 * that the tool holds would stay stopped with it.
 */
void watchdog_delay_stops(bool delay);

/* Whether one of them waits. */
bool watchdog_stop_waits(void);

#endif
