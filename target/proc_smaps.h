/*
 * proc_smaps.h: how much of each mapping of a process is in RAM, from the text of /proc/PID/smaps. The text is parsed
 * as any other: a line that is not as expected is left out. Pure function. Source: proc_pid_smaps(5).
 */
#ifndef CDACQ_TARGET_PROC_SMAPS_H
#define CDACQ_TARGET_PROC_SMAPS_H

#include "util/base.h"

struct proc_smap {
    uint64_t begin, end;
    uint64_t resident, swapped; /* bytes */
    const char *path;           /* or another name, such as "[heap]"; "": none. In the text */
};

/*
 * Reads the next mapping of a text, which ends with a NUL and is changed, and moves *text on. False after the last one.
 */
bool proc_smaps_next(char **text, struct proc_smap *ret);

#endif
