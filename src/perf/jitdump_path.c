/*
 * jitdump_path.c: finds the jitdump of a running process. A runtime maps a page of its file, so that perf sees it;
 * where it does not, the file is where the environment of the process says, or in /tmp. The process may have another
 * root directory and another pid than it has here.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cdacq/jitdump.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

enum { PROC_FILE_MAX = 64 * 1024 * 1024, PATH_ROOM = 4096 };

/* A file of /proc/PID, to be freed. NULL with errno set. */
static char *read_proc(int pid, const char *name, size_t *ret_length)
{
    char path[64];
    struct stat st;
    *ret_length = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    CLEANUP_CLOSE int fd = file_open(path, &st);
    return fd < 0 ? NULL : file_read_all(fd, PROC_FILE_MAX, ret_length);
}

/* The pid as the process itself sees it. */
static int own_pid(int pid)
{
    size_t length;
    CLEANUP_FREE char *status = read_proc(pid, "status", &length);
    char *line = status ? strstr(status, "\nNSpid:") : NULL;
    if (!line)
        return pid;
    line++;
    line[strcspn(line, "\n")] = '\0';
    const char *last = strrchr(line, '\t');
    int own = last ? atoi(last) : 0;
    return own > 0 ? own : pid;
}

/* Whether the end of a path is jit-PID.dump. */
static bool is_jitdump(const char *path)
{
    const char *name = strrchr(path, '/');
    if (!name || strncmp(name, "/jit-", 5) != 0)
        return false;
    size_t digits = strspn(name + 5, "0123456789");
    return digits && strcmp(name + 5 + digits, ".dump") == 0;
}

/* Writes how the file of the process is reached from here. False if it is not there. */
static bool reach(int pid, const char *path, char *ret, size_t size)
{
    struct stat st, root, own;
    char link[64];
    snprintf(link, sizeof link, "/proc/%d/root", pid);
    bool same =
        stat(link, &root) == 0 && stat("/", &own) == 0 && root.st_dev == own.st_dev && root.st_ino == own.st_ino;
    int length = same ? snprintf(ret, size, "%s", path) : snprintf(ret, size, "%s%s", link, path);
    return length > 0 && (size_t)length < size && stat(ret, &st) == 0 && S_ISREG(st.st_mode);
}

static bool find_mapped(int pid, char *ret, size_t size)
{
    size_t length;
    CLEANUP_FREE char *maps = read_proc(pid, "maps", &length);
    for (char *line = maps, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        const char *path = strchr(line, '/');
        if (path && is_jitdump(path) && reach(pid, path, ret, size))
            return true;
        if (!next)
            break;
    }
    return false;
}

/*
 * A variable of the environment that the process started with, or NULL. The process can write to that memory: the last
 * variable need not end with NUL, except with the one after all of the `size` bytes.
 */
static const char *variable(const char *environment, size_t size, const char *name)
{
    size_t length = strlen(name);
    for (const char *p = environment; p && p < environment + size; p += strlen(p) + 1)
        if (strncmp(p, name, length) == 0 && p[length] == '=' && p[length + 1] == '/')
            return p + length + 1;
    return NULL;
}

enum cdacq_status cdacq_jitdump_find_file(int pid, char *ret, size_t size, struct cdacq_error *err)
{
    static const char *const variables[] = {"DOTNET_PerfMapJitDumpPath", "COMPlus_PerfMapJitDumpPath", "JITDUMPDIR",
                                            "TMPDIR"};
    char path[PATH_ROOM], name[64];
    size_t environment_size;
    snprintf(path, sizeof path, "/proc/%d", pid);
    if (pid <= 0 || access(path, F_OK) < 0)
        return error_set(err, CDACQ_ERR_IO, 0, "there is no process %d", pid);
    if (find_mapped(pid, ret, size))
        return CDACQ_OK;
    snprintf(name, sizeof name, "jit-%d.dump", own_pid(pid));
    CLEANUP_FREE char *environment = read_proc(pid, "environ", &environment_size);
    for (size_t i = 0; i <= ARRAY_SIZE(variables); i++) {
        const char *directory =
            i < ARRAY_SIZE(variables) ? variable(environment, environment_size, variables[i]) : "/tmp";
        int length = directory ? snprintf(path, sizeof path, "%s/%s", directory, name) : 0;
        if (length > 0 && (size_t)length < sizeof path && reach(pid, path, ret, size))
            return CDACQ_OK;
    }
    return error_set(
        err, CDACQ_NOT_MANAGED, 0,
        "process %d has no jitdump: it maps none, and there is no %s in /tmp or where its environment says "
        "(DOTNET_PerfMapEnabled=1 makes a .NET process write it)",
        pid, name);
}
