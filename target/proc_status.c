#include "target/proc_status.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"

const char *proc_status_value(const char *status, const char *key)
{
    char line[24];
    snprintf(line, sizeof line, "\n%s:\t", key);
    const char *found = strstr(status, line);
    return found ? found + strlen(line) : "";
}

int proc_status_inner_id(const char *status)
{
    /* The ids in all namespaces, from that of the reader to the innermost. */
    const char *ids = proc_status_value(status, "NSpid"), *end = ids + strcspn(ids, "\n");
    while (end > ids && isdigit((unsigned char)end[-1]))
        end--;
    return (int)strtol(end, NULL, 10);
}

bool proc_status_is_stopped(const char *status)
{
    return proc_status_value(status, "State")[0] == 'T';
}

enum cdacq_status proc_error(int pid, struct cdacq_error *err)
{
    bool gone = errno == ENOENT || errno == ESRCH, refused = errno == EPERM || errno == EACCES;
    return error_set(err, CDACQ_ERR_IO, 0, "process %d: %s", pid,
                     gone      ? "there is no such process"
                     : refused ? "not permitted to read its memory (same user, or root; see ptrace_scope)"
                               : strerror(errno));
}
