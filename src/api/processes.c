/*
 * processes.c: finds the .NET processes of this machine, by what /proc shows to everybody and by the mappings that the
 * caller may see. A process can have any name, arguments, mappings and number of threads, so all of these are bounded.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "cdacq.h"
#include "target/proc_status.h"
#include "util/error.h"
#include "util/file.h"
#include "util/vector.h"

enum {
    PIDS_MAX = 4 << 20,      /* the kernel's own limit */
    STATUS_MAX = 64 * 1024,  /* bytes of /proc/PID/status, cgroup and comm */
    ARGUMENTS_MAX = 4096,    /* bytes of the command line that are kept */
    MAPPINGS_MAX = 16 << 20, /* bytes of /proc/PID/maps: some 150,000 mappings */
    PROBED_THREADS_MAX = 64, /* of a process, whose names are read; those of the runtime are among the first */
    CONTAINER_DIGITS = 64,
};

DEFINE_VECTOR(pids, int);

struct found {
    struct cdacq_process process;
    char name[16], program[PATH_MAX], arguments[ARGUMENTS_MAX + 1], container[CONTAINER_DIGITS + 1];
    char runtime_path[PATH_MAX];
};

/* Reads /proc/PID/NAME. NULL if it cannot be read or has more than `most` bytes. */
static char *read_file(int pid, const char *name, size_t most, size_t *ret_length)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? NULL : file_read_all(fd, most, ret_length);
}

/* ---- Facts that everybody may see ------------------------------------------------------------------------------ */

/* Returns false if the process has ended or is the kernel's: it has no memory. */
static bool read_status(struct found *found, int pid)
{
    size_t length;
    CLEANUP_FREE char *status = read_file(pid, "status", STATUS_MAX, &length);
    if (!status || !*proc_status_value(status, "VmSize"))
        return false;
    found->process.inner_pid = proc_status_inner_id(status);
    found->process.uid = (unsigned)strtoul(proc_status_value(status, "Uid"), NULL, 10);
    found->process.thread_count = (unsigned)strtoul(proc_status_value(status, "Threads"), NULL, 10);
    return true;
}

static void read_name(struct found *found, int pid)
{
    size_t length;
    CLEANUP_FREE char *name = read_file(pid, "comm", STATUS_MAX, &length);
    if (!name)
        return;
    snprintf(found->name, sizeof found->name, "%.*s", (int)strcspn(name, "\n"), name);
    found->process.name = found->name;
}

static void read_program(struct found *found, int pid)
{
    char path[64];
    CLEANUP_CLOSE int fd = -1;
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    if ((fd = open(path, O_RDONLY | O_CLOEXEC)) >= 0) {
        size_t n = file_read_at(fd, 0, found->arguments, sizeof found->arguments);
        found->process.arguments_cut = n == sizeof found->arguments;
        n = MIN(n, sizeof found->arguments - 1);
        if (n)
            snprintf(found->program, sizeof found->program, "%.*s", (int)strnlen(found->arguments, n),
                     found->arguments);
        while (n && !found->arguments[n - 1])
            n--;
        for (size_t i = 0; i < n; i++)
            found->arguments[i] = found->arguments[i] ? found->arguments[i] : ' ';
        found->arguments[n] = '\0';
        found->process.arguments = n ? found->arguments : NULL;
    }
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    ssize_t length = readlink(path, found->program, sizeof found->program - 1);
    if (length > 0)
        found->program[length] = '\0';
    found->process.program = found->program[0] ? found->program : NULL;
}

/* Container managers name a control group after the id of the container. */
static void read_container(struct found *found, int pid)
{
    size_t length;
    CLEANUP_FREE char *groups = read_file(pid, "cgroup", STATUS_MAX, &length);
    for (const char *p = groups; p && *p;) {
        size_t digits = strspn(p, "0123456789abcdef");
        if (digits == CONTAINER_DIGITS) {
            snprintf(found->container, sizeof found->container, "%s", p);
            found->process.container = found->container;
            return;
        }
        p += digits + (p[digits] != '\0');
    }
}

/* ---- Is it .NET? ----------------------------------------------------------------------------------------------- */

/* Whether a line of the maps, "BEGIN-END r-xp ...", is of code. */
static bool is_executable(const char *line)
{
    const char *permissions = line + strcspn(line, " \n");
    return strnlen(permissions, 4) == 4 && permissions[3] == 'x';
}

/* Whether code of a runtime is mapped. A process that only reads the file, as cdacq does, maps no code of it. */
static bool maps_runtime(struct found *found, int pid)
{
    static const char file[] = "/libcoreclr.so";
    size_t length;
    CLEANUP_FREE char *maps = read_file(pid, "maps", MAPPINGS_MAX, &length);
    for (const char *at = maps; at && (at = strstr(at, file)); at += sizeof file - 1) {
        const char *end = at + sizeof file - 1, *line = at, *line_end = at + strcspn(at, "\n");
        if (end != line_end && strncmp(end, " (deleted)\n", 11) != 0)
            continue;
        while (line > maps && line[-1] != '\n')
            line--;
        if (!is_executable(line))
            continue;
        /* A path may contain spaces: it begins at the first slash of the line. */
        const char *begin = memchr(line, '/', (size_t)(at + 1 - line));
        snprintf(found->runtime_path, sizeof found->runtime_path, "%.*s", (int)(end - begin), begin);
        found->process.runtime_path = found->runtime_path;
        return true;
    }
    return false;
}

static bool has_runtime_threads(int pid)
{
    char path[64], name[16];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *threads = opendir(path);
    bool is_dotnet = false;
    struct dirent *entry;
    for (unsigned i = 0; threads && !is_dotnet && i < PROBED_THREADS_MAX && (entry = readdir(threads));) {
        if (entry->d_name[0] == '.')
            continue;
        i++;
        snprintf(path, sizeof path, "/proc/%d/task/%.12s/comm", pid, entry->d_name);
        CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
        is_dotnet = fd >= 0 && file_read_at(fd, 0, name, sizeof name) > 5 && !memcmp(name, ".NET ", 5);
    }
    if (threads)
        closedir(threads);
    return is_dotnet;
}

static int visit_if_dotnet(int pid, struct found *found, int (*visit)(const struct cdacq_process *, void *),
                           void *context)
{
    *found = (struct found){.process = {.size = sizeof found->process, .pid = pid}};
    if (!read_status(found, pid) || (!maps_runtime(found, pid) && !has_runtime_threads(pid)))
        return 0;
    read_name(found, pid);
    read_program(found, pid);
    read_container(found, pid);
    return visit(&found->process, context);
}

static int compare_pids(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

enum cdacq_status cdacq_visit_processes(int (*visit)(const struct cdacq_process *process, void *context), void *context,
                                        struct cdacq_error *err)
{
    struct pids pids = {0};
    struct dirent *entry;
    if (!visit)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no callback is given");
    DIR *all = opendir("/proc");
    if (!all)
        return error_set(err, CDACQ_ERR_IO, 0, "/proc: %s", strerror(errno));
    bool room = true;
    while (room && pids.count < PIDS_MAX && (entry = readdir(all))) {
        long pid = strtol(entry->d_name, NULL, 10);
        if (pid > 0 && pid <= INT32_MAX)
            room = pids_append(&pids, (int)pid);
    }
    closedir(all);
    CLEANUP_FREE struct found *found = malloc(sizeof *found);
    enum cdacq_status status = room && found ? CDACQ_OK : error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    if (status == CDACQ_OK && pids.count)
        qsort(pids.items, pids.count, sizeof *pids.items, compare_pids);
    for (size_t i = 0; status == CDACQ_OK && i < pids.count; i++)
        if (visit_if_dotnet(pids.items[i], found, visit, context))
            status = CDACQ_STOPPED;
    pids_deinit(&pids);
    return status;
}
