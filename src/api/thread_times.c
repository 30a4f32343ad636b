/*
 * thread_times.c: reads how much processor time each thread of a process has used, and the limit on that of all.
 * Source: proc(5); Linux Documentation/scheduler/sched-stats.rst.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cdacq.h"
#include "target/control_group.h"
#include "target/threads.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/file.h"
#include "util/proc_file.h"
#include "util/sized.h"
#include "util/text.h"

enum {
    FIELD_UTIME = 14, /* of /proc/PID/task/TID/stat, counted from 1 */
    FIELD_STATE = 3,
};

/* The text of a file of the thread's folder; false if it cannot be read. */
static bool read_thread_file(int task, const char *tid, const char *name, char *ret, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "%.12s/%s", tid, name);
    return file_read_text(task, path, ret, size) > 0;
}

/*
 * Reads the state, and a time that is exact to a tick of the kernel's clock, usually 10 ms. Every kernel has both.
 * False, and nothing is changed, if they cannot be read.
 */
static bool read_ticks(int task, const char *tid, struct cdacq_thread_time *ret)
{
    char text[1024];
    unsigned long long user, kernel;
    long ticks = sysconf(_SC_CLK_TCK);
    if (ticks <= 0 || !read_thread_file(task, tid, "stat", text, sizeof text))
        return false;
    const char *at = strrchr(text, ')'); /* the name before it may hold any byte */
    bool ready = string_begins_with(at, ") R");
    for (int field = FIELD_STATE; at && field <= FIELD_UTIME; field++)
        at = strchr(at + 1, ' ');
    if (!at || sscanf(at, "%llu %llu", &user, &kernel) != 2)
        return false;
    ret->processor_time_ns = (uint64_t)(user + kernel) * (NS_PER_SECOND / (uint64_t)ticks);
    ret->ready = ready;
    return true;
}

/*
 * Reads the state, and the times in nanoseconds, or that of the processor in ticks if the kernel does not count these
 * (CONFIG_SCHED_INFO) and writes zeros.
 */
static bool read_times(int task, const char *tid, struct cdacq_thread_time *ret)
{
    char text[128];
    unsigned long long time = 0, delay = 0, runs = 0;
    bool has_state = read_ticks(task, tid, ret);
    if (read_thread_file(task, tid, "schedstat", text, sizeof text) &&
        sscanf(text, "%llu %llu %llu", &time, &delay, &runs) == 3 && time) {
        ret->processor_time_ns = time;
        ret->delay_ns = delay;
        ret->runs = runs;
        return true;
    }
    return has_state;
}

enum cdacq_status cdacq_visit_thread_times(int pid, int (*visit)(const struct cdacq_thread_time *time, void *context),
                                           void *context, struct cdacq_error *err)
{
    if (!visit)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no callback is given");
    if (pid <= 0)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "%d is no process id", pid);
    DIR *threads = proc_folder_open(pid, "task");
    if (!threads)
        return error_set(err, CDACQ_ERR_IO, 0, "process %d: /proc/%d/task: %s", pid, pid, strerror(errno));
    enum cdacq_status status = CDACQ_OK;
    struct dirent *entry;
    for (unsigned count = 0; status == CDACQ_OK && count < THREAD_MAX && (entry = readdir(threads));) {
        struct cdacq_thread_time time = {.size = sizeof time, .tid = (int)strtol(entry->d_name, NULL, 10)};
        if (time.tid <= 0 || !read_times(dirfd(threads), entry->d_name, &time))
            continue;
        count++;
        if (visit(&time, context))
            status = CDACQ_STOPPED;
    }
    closedir(threads);
    return status;
}

/* Whether there is such a process, whose limits are asked for. */
static enum cdacq_status check_process(int pid, struct cdacq_error *err)
{
    if (pid <= 0)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "%d is no process id", pid);
    CLEANUP_CLOSE int process = proc_file_open(pid, "stat");
    if (process < 0)
        return error_set(err, CDACQ_ERR_IO, 0, "process %d: /proc/%d/stat: %s", pid, pid, strerror(errno));
    return CDACQ_OK;
}

enum cdacq_status cdacq_get_processor_limit(int pid, struct cdacq_processor_limit *ret, struct cdacq_error *err)
{
    enum cdacq_status status = sized_check(ret, "struct cdacq_processor_limit", err);
    struct cdacq_processor_limit found = {.size = sizeof found};
    struct cpu_limit limit;
    if (status >= 0)
        status = check_process(pid, err);
    if (status < 0)
        return status;
    if (cpu_limit_read(pid, &limit)) {
        found.quota_ns = limit.quota;
        found.period_ns = limit.period;
        found.periods = limit.periods;
        found.throttled_periods = limit.throttled_periods;
        found.throttled_time_ns = limit.throttled_time;
    }
    sized_copy(ret, &found, sizeof found);
    return CDACQ_OK;
}

enum cdacq_status cdacq_get_memory_limit(int pid, struct cdacq_memory_limit *ret, struct cdacq_error *err)
{
    enum cdacq_status status = sized_check(ret, "struct cdacq_memory_limit", err);
    struct memory_limit limit = {0};
    if (status >= 0)
        status = check_process(pid, err);
    if (status < 0)
        return status;
    (void)memory_limit_read(pid, &limit);
    sized_copy(ret, &(struct cdacq_memory_limit){.limit = limit.limit, .used = limit.used}, sizeof *ret);
    return CDACQ_OK;
}
