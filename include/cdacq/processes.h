/*
 * cdacq/processes.h: finds the .NET processes of this machine, and reads how busy the threads of a process are and what
 * limits them. The calls need no target, keep no state, and may be used by several threads at once.
 */
#ifndef CDACQ_PROCESSES_H
#define CDACQ_PROCESSES_H

#include <cdacq/error.h>

CDACQ_BEGIN_DECLS

/* A process. The library sets `size`. Strings are valid until the callback returns, and NULL if not known. */
struct cdacq_process {
    size_t size;
    int pid;                  /* as the caller's pid namespace has it */
    int inner_pid;            /* as its own pid namespace has it, such as that of a container; 0: not known */
    unsigned uid;             /* that it runs as */
    unsigned thread_count;    /* all threads, also native ones */
    const char *name;         /* of its first thread, at most 15 bytes */
    const char *program;      /* path of the executable, or as it was started */
    const char *arguments;    /* the command line, separated by spaces */
    bool arguments_cut;       /* there are more */
    const char *container;    /* id of the container, 64 hex digits, from the name of its control group */
    const char *runtime_path; /* of the mapped libcoreclr.so, as the process's mount namespace has it */
};

/*
 * Calls `visit` for each .NET process that this process can see, in the order of the pids, including those in
 * containers. A process counts as .NET if code of libcoreclr.so is mapped into it. It also counts if one of its first
 * 64 threads has a name that a .NET runtime gives its own threads (".NET Finalizer"), because the mappings of another
 * user's process cannot be read, and a single-file program maps no libcoreclr.so. A process that was found by the name
 * of a thread can be NativeAOT; cdacq_target_open_pid tells. Reads /proc only, and opens no process. Processes that
 * begin or end meanwhile may be missing. CDACQ_STOPPED: `visit` returned non-zero. Fails with ARGUMENT or NOMEM, or
 * with IO if /proc cannot be read. Source: proc(5).
 */
CDACQ_API enum cdacq_status cdacq_visit_processes(int (*visit)(const struct cdacq_process *process, void *context),
                                                  void *context, struct cdacq_error *err);

/*
 * The same for one process: `visit` is not called if it is not .NET, or has ended. A hostile process can block
 * reads of its command line or mappings, with memory that never comes. A caller who must go on makes the call in a
 * child process, and kills that.
 */
CDACQ_API enum cdacq_status cdacq_visit_process(int pid,
                                                int (*visit)(const struct cdacq_process *process, void *context),
                                                void *context, struct cdacq_error *err);

/* The processor time of a thread of a process, .NET or not. The library sets `size`. */
struct cdacq_thread_time {
    size_t size;
    int tid;                    /* as the caller's pid namespace has it */
    uint64_t processor_time_ns; /* since it began, in the program and in the kernel */
    uint64_t delay_ns;          /* how long it was ready to run and no processor was free; 0: not known */
    uint64_t runs;              /* how often it was given a processor; 0: not known */
    bool ready;                 /* at that moment, it ran, or was ready to run */
};

/*
 * Calls `visit` for each thread of a process, in the order of /proc. Two calls show which threads were busy between
 * them. Reads /proc only, and neither opens nor stops the process. The time of a running thread is as old as the last
 * tick of the kernel's clock, usually 1 to 10 ms, and the delay of one that waits for a processor as old as its last
 * run. Threads that begin or end meanwhile may be missing. CDACQ_STOPPED: `visit` returned non-zero. Fails with
 * ARGUMENT, or with IO if there is no such process. Source: proc(5).
 */
CDACQ_API enum cdacq_status cdacq_visit_thread_times(int pid,
                                                     int (*visit)(const struct cdacq_thread_time *time, void *context),
                                                     void *context, struct cdacq_error *err);

/*
 * The limit on the processor time of a process: the lowest that one of its control groups sets. The
 * caller sets `size`.
 */
struct cdacq_processor_limit {
    size_t size;
    uint64_t quota_ns;          /* the group may use so much in each period; 0: there is no limit, or it is not known */
    uint64_t period_ns;         /* 0: likewise */
    uint64_t periods;           /* in which the group wanted to run, since it was made */
    uint64_t throttled_periods; /* of these, those in which it had used its quota, and was held back */
    uint64_t throttled_time_ns; /* how long it was held back, the sum of all processors */
};

/*
 * Reads the limit of a process. Two calls show whether the group was held back between
 * them. Reads /proc and the mounted control groups, of version 1 or 2, as the caller's mount namespace has them. Fails
 * with ARGUMENT, or with IO if there is no such process. Source: cgroups(7); Linux Documentation/admin-guide/
 * cgroup-v2.rst, scheduler/sched-bwc.rst.
 */
CDACQ_API enum cdacq_status cdacq_get_processor_limit(int pid, struct cdacq_processor_limit *ret,
                                                      struct cdacq_error *err);

/*
 * The limit on the memory of a process, in bytes: of its control groups, that which is nearest to its limit. The caller
 * sets `size`.
 */
struct cdacq_memory_limit {
    size_t size;
    uint64_t limit; /* 0: there is no limit, or it is not known */
    uint64_t used;  /* by the group, without what the kernel can free of cached files */
};

/* As cdacq_get_processor_limit. Source: cgroups(7); Linux Documentation/admin-guide/cgroup-v2.rst. */
CDACQ_API enum cdacq_status cdacq_get_memory_limit(int pid, struct cdacq_memory_limit *ret, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
