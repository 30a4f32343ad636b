#include "target/proc_status.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/error.h"
#include "util/file.h"
#include "util/proc_file.h"

enum { STATUS_SIZE = 4096, PROCESSES_MAX = 1 << 16 };

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

static int read_inner_id(int pid)
{
    char path[64], status[STATUS_SIZE];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    return file_read_text(AT_FDCWD, path, status, sizeof status) ? proc_status_inner_id(status) : 0;
}

/* The name of the pid namespace of a process. */
static bool read_namespace(int pid, char *ret, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/pid", pid);
    ssize_t length = readlink(path, ret, size - 1);
    if (length <= 0)
        return false;
    ret[length] = '\0';
    return true;
}

int proc_outer_id(int pid, int inner)
{
    char space[64], other[64];
    size_t count = 0;
    int found = 0, own = read_inner_id(pid);
    if (own == pid) /* it is in the reader's namespace, or nothing tells it from one that is */
        return inner;
    if (!own || inner <= 0 || !read_namespace(pid, space, sizeof space))
        return 0;
    CLEANUP_FREE int *pids = proc_list_processes(&count);
    for (size_t i = 0; pids && i < count && i < PROCESSES_MAX && !found; i++)
        if (read_inner_id(pids[i]) == inner && read_namespace(pids[i], other, sizeof other) &&
            strcmp(space, other) == 0)
            found = pids[i];
    return found;
}

bool proc_status_is_stopped(const char *status)
{
    return proc_status_value(status, "State")[0] == 'T';
}

const char *proc_refusal(const struct proc_rights *rights)
{
    if (rights->scope >= 3)
        return "kernel.yama.ptrace_scope is 3, which forbids it to everybody until the next boot: take a core instead";
    if (rights->is_capable)
        return "CAP_SYS_PTRACE does not suffice: seccomp, AppArmor, a user namespace or the like forbids it; try as "
               "root, outside of any container";
    if (rights->own_user == 0)
        return "this root lacks CAP_SYS_PTRACE: start its container with that capability";
    if (rights->own_user != rights->user)
        return "it belongs to another user: be that user, or root, or have CAP_SYS_PTRACE";
    if (rights->scope == 2)
        return "kernel.yama.ptrace_scope is 2: be root, or have CAP_SYS_PTRACE";
    if (rights->scope == 1)
        return "kernel.yama.ptrace_scope is 1: be root, or have CAP_SYS_PTRACE, or set it to 0";
    return "it has capabilities or groups that this user lacks, or forbids it: be root, or have CAP_SYS_PTRACE";
}

void proc_describe_refusal(int pid, char ret[PROC_REFUSAL_SIZE])
{
    enum { CAPABILITY_SYS_PTRACE = 19, HEX = 16 };
    char path[64], status[4096], scope[16];
    struct proc_rights rights = {.own_user = (long)getuid()};
    (void)file_read_text(AT_FDCWD, "/proc/self/status", status, sizeof status);
    uint64_t capabilities = strtoull(proc_status_value(status, "CapEff"), NULL, HEX);
    rights.is_capable = capabilities >> CAPABILITY_SYS_PTRACE & 1;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    (void)file_read_text(AT_FDCWD, path, status, sizeof status);
    rights.user = strtol(proc_status_value(status, "Uid"), NULL, 10);
    (void)file_read_text(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", scope, sizeof scope);
    rights.scope = (int)strtol(scope, NULL, 10);
    snprintf(ret, PROC_REFUSAL_SIZE, "%s", proc_refusal(&rights));
}

enum cdacq_status proc_error(int pid, struct cdacq_error *err)
{
    bool gone = errno == ENOENT || errno == ESRCH, refused = errno == EPERM || errno == EACCES;
    char why[PROC_REFUSAL_SIZE] = "";
    if (gone)
        return error_set(err, CDACQ_ERR_IO, 0, "process %d: there is no such process", pid);
    if (!refused)
        return error_set(err, CDACQ_ERR_IO, 0, "process %d: %s", pid, strerror(errno));
    proc_describe_refusal(pid, why);
    return error_set(err, CDACQ_ERR_IO, 0, "process %d: not permitted to read its memory (%s)", pid, why);
}
