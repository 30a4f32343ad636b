/*
 * processes.c: finds the .NET processes of this machine, by what /proc shows to everybody and by the mappings that the
 * caller may see. A process can have any name, arguments, mappings and number of threads, so all of these are bounded.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "cdacq.h"
#include "target/mapped_path.h"
#include "target/proc_maps.h"
#include "target/proc_status.h"
#include "util/error.h"
#include "util/file.h"
#include "util/proc_file.h"

enum {
    STATUS_MAX = 64 * 1024,  /* bytes of /proc/PID/status, cgroup and comm */
    ARGUMENTS_MAX = 4096,    /* bytes of the command line that are kept */
    PROBED_THREADS_MAX = 64, /* of a process, whose names are read; those of the runtime are among the first */
    CONTAINER_DIGITS = 64,
};

struct found {
    struct cdacq_process process;
    char name[16], program[PATH_MAX], arguments[ARGUMENTS_MAX + 1], container[CONTAINER_DIGITS + 1];
    char runtime_path[PATH_MAX];
};

/* Reads /proc/PID/NAME. NULL if it cannot be read or has more than `most` bytes. */
static char *read_file(int pid, const char *name, size_t most, size_t *ret_length)
{
    CLEANUP_CLOSE int fd = proc_file_open(pid, name);
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
    CLEANUP_CLOSE int fd = proc_file_open(pid, "cmdline");
    if (fd >= 0) {
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
    if (length > 0) {
        found->program[length] = '\0';
        found->program[mapped_path_length(found->program)] = '\0';
    }
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

/* Whether code of a runtime is mapped. A process that only reads the file, as cdacq does, maps no code of it. */
static bool maps_runtime(struct found *found, int pid)
{
    struct proc_maps maps;
    struct proc_map map;
    CLEANUP_CLOSE int file = proc_maps_open(pid);
    if (file < 0)
        return false;
    bool is_found = false, is_begun = proc_maps_begin(file, true, &maps) == 0;
    while (is_begun && !is_found && proc_maps_next(&maps, &map))
        is_found = mapped_path_is_still(path_basename(map.path), "libcoreclr.so");
    if (is_found) {
        snprintf(found->runtime_path, sizeof found->runtime_path, "%.*s", (int)mapped_path_length(map.path), map.path);
        found->process.runtime_path = found->runtime_path;
    }
    proc_maps_end(&maps);
    return is_found;
}

static bool has_runtime_threads(int pid)
{
    char path[64], name[16];
    DIR *threads = proc_folder_open(pid, "task");
    bool is_dotnet = false;
    struct dirent *entry;
    for (unsigned i = 0; threads && !is_dotnet && i < PROBED_THREADS_MAX && (entry = readdir(threads));) {
        if (entry->d_name[0] == '.')
            continue;
        i++;
        snprintf(path, sizeof path, "task/%.12s/comm", entry->d_name);
        CLEANUP_CLOSE int fd = proc_file_open(pid, path);
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

enum cdacq_status cdacq_visit_process(int pid, int (*visit)(const struct cdacq_process *process, void *context),
                                      void *context, struct cdacq_error *err)
{
    if (!visit || pid <= 0)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0,
                         pid <= 0 ? "no process can have this pid" : "no callback is given");
    CLEANUP_FREE struct found *found = malloc(sizeof *found);
    if (!found)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    return visit_if_dotnet(pid, found, visit, context) ? CDACQ_STOPPED : CDACQ_OK;
}

enum cdacq_status cdacq_visit_processes(int (*visit)(const struct cdacq_process *process, void *context), void *context,
                                        struct cdacq_error *err)
{
    size_t count;
    if (!visit)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no callback is given");
    CLEANUP_FREE int *pids = proc_list_processes(&count);
    if (!pids && errno != ENOMEM)
        return error_set(err, CDACQ_ERR_IO, 0, "/proc: %s", strerror(errno));
    CLEANUP_FREE struct found *found = malloc(sizeof *found);
    if (!pids || !found)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    for (size_t i = 0; i < count; i++)
        if (visit_if_dotnet(pids[i], found, visit, context))
            return CDACQ_STOPPED;
    return CDACQ_OK;
}
