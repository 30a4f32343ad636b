#include "target/thread_holder.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/file.h"
#include "util/proc_file.h"
#include "formats/core_notes.h"
#include "target/proc_freezer.h"
#include "target/proc_status.h"
#include "target/threads.h"

enum {
    STOP_ROUNDS = 64, /* each stops all threads that are listed; only threads that still run create new ones */
    STOP_SECONDS = 5, /* a thread in an uninterruptible wait may never stop */
    REFUSAL_SIZE = PROC_REFUSAL_SIZE + 8,
};

DEFINE_VECTOR_FUNCTIONS(held_threads, struct held_thread);
DEFINE_U64_SET_FUNCTIONS(thread_ids);

static const char frozen[] = ": the freezer of its control group holds the process, which 'docker unpause' ends";

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) < 0 && errno == EINTR)
        ;
}

/* Whether a thread has ended. The first thread of a process stays listed until all others have ended. */
static bool has_ended(int pid, pid_t tid)
{
    char path[64], stat[512];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    size_t n = file_read_text(AT_FDCWD, path, stat, sizeof stat);
    const char *state = strrchr(stat, ')'); /* the name before it may hold any byte */
    return !n || !state || strncmp(state, ") Z", 3) == 0 || strncmp(state, ") X", 3) == 0;
}

/* Why a thread must not be traced, as the end of a message. */
static void describe_refusal(int pid, pid_t tid, char ret[REFUSAL_SIZE])
{
    char path[64], status[4096], name[32];
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, tid);
    (void)file_read_text(AT_FDCWD, path, status, sizeof status);
    long tracer = strtol(proc_status_value(status, "TracerPid"), NULL, 10);
    if (tracer <= 0) {
        char why[PROC_REFUSAL_SIZE];
        proc_describe_refusal(pid, why);
        snprintf(ret, REFUSAL_SIZE, " (%s)", why);
        return;
    }
    snprintf(path, sizeof path, "/proc/%ld/status", tracer);
    (void)file_read_text(AT_FDCWD, path, status, sizeof status);
    long process = strtol(proc_status_value(status, "Tgid"), NULL, 10); /* that is a thread */
    tracer = process > 0 ? process : tracer;
    snprintf(path, sizeof path, "/proc/%ld/comm", tracer);
    (void)file_read_text(AT_FDCWD, path, name, sizeof name);
    name[strcspn(name, "\n")] = '\0';
    snprintf(ret, REFUSAL_SIZE, " (it is traced by another process: %ld%s%s)", tracer, name[0] ? ", " : "", name);
}

/*
 * Whether a thread has stopped, or ended. The report of a stop is left where it is (WNOWAIT): the kernel takes a signal
 * from a thread with it, and if this program is killed, it would not give the signal back.
 */
static bool has_stopped(pid_t tid, siginfo_t *ret)
{
    *ret = (siginfo_t){0};
    while (waitid(P_PID, (id_t)tid, ret, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
        if (errno != EINTR) {
            ret->si_code = CLD_EXITED;
            return true;
        }
    return ret->si_pid != 0;
}

bool thread_interrupt(int pid, pid_t tid)
{
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0)
        return ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 || errno != ESRCH || !has_ended(pid, tid);
    int failure = errno;
    errno = failure == ESRCH || has_ended(pid, tid) ? ESRCH : failure;
    return false;
}

enum cdacq_status thread_refused(int pid, pid_t tid, int failure, struct cdacq_error *err)
{
    char refusal[REFUSAL_SIZE] = "";
    if (failure == EPERM)
        describe_refusal(pid, tid, refusal);
    return error_set(err, CDACQ_ERR_IO, 0, "process %d: thread %d cannot be stopped: %s%s", pid, tid, strerror(failure),
                     refusal);
}

/*
 * A stop is either that of the interrupt, with an event in the high bytes, or a signal, which must not be lost. The
 * former has the signal that had stopped the process, else SIGTRAP. The state in /proc would not do: for a moment after
 * another tracer has let it go, a stopped thread runs.
 */
enum thread_stop thread_stopped(pid_t tid, int *ret_signal, bool *ret_process)
{
    siginfo_t stop;
    if (!has_stopped(tid, &stop))
        return THREAD_RUNS;
    if (stop.si_code != CLD_TRAPPED && stop.si_code != CLD_STOPPED) {
        (void)waitpid(tid, NULL, __WALL | WNOHANG);
        return THREAD_ENDED;
    }
    bool is_event = stop.si_status >> 8;
    *ret_signal = is_event ? 0 : stop.si_status;
    *ret_process = is_event && (stop.si_status & 0xff) != SIGTRAP;
    return THREAD_STOPPED;
}

void thread_let_go(pid_t tid, int signal)
{
    ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)signal);
}

/* Stops one thread. Succeeds for a thread that has ended meanwhile. */
static enum cdacq_status hold_thread(struct thread_holder *holder, pid_t tid, const struct timespec *deadline,
                                     struct cdacq_error *err)
{
    enum thread_stop stop;
    int signal;
    bool is_stopped;
    if (!thread_interrupt(holder->pid, tid))
        return errno == ESRCH ? CDACQ_OK : thread_refused(holder->pid, tid, errno, err);
    for (long pause = 10 * 1000; (stop = thread_stopped(tid, &signal, &is_stopped)) == THREAD_RUNS;
         pause = MIN(pause * 2, 1000L * 1000)) {
        struct timespec now, nap = {0, pause};
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec >= deadline->tv_sec)
            return error_set(err, CDACQ_ERR_IO, 0, "process %d: thread %d did not stop within %d s%s", holder->pid, tid,
                             STOP_SECONDS, proc_is_frozen(holder->pid) ? frozen : "");
        nanosleep(&nap, NULL);
    }
    if (stop == THREAD_ENDED)
        return CDACQ_OK;
    holder->is_stopped |= is_stopped;
    (void)held_threads_append(&holder->held, (struct held_thread){tid, signal}); /* there is room for all */
    (void)thread_ids_insert(&holder->ids, (uint64_t)tid, NULL);
    return CDACQ_OK;
}

static enum cdacq_status hold_all_threads(struct thread_holder *holder, struct cdacq_error *err)
{
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += STOP_SECONDS;
    for (int round = 0; round < STOP_ROUNDS; round++) {
        size_t before = holder->held.count;
        DIR *dir = proc_folder_open(holder->pid, "task");
        if (!dir)
            return proc_error(holder->pid, err);
        enum cdacq_status status = CDACQ_OK;
        struct dirent *entry;
        while (status >= 0 && (entry = readdir(dir))) {
            pid_t tid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
            if (!tid || thread_ids_find(&holder->ids, (uint64_t)tid))
                continue;
            if (holder->held.count == THREAD_MAX)
                status = error_set(err, CDACQ_ERR_IO, 0, "process %d: more than %d threads cannot be stopped",
                                   holder->pid, THREAD_MAX);
            else
                status = hold_thread(holder, tid, &deadline, err);
        }
        closedir(dir);
        if (status < 0 || holder->held.count == before)
            return status;
    }
    return error_set(err, CDACQ_ERR_IO, 0, "process %d: cannot be stopped: it keeps creating threads", holder->pid);
}

/* The bits of signed addresses, of arm64: all threads of a process have the same. 0: not known. */
static uint64_t read_pac_mask(pid_t tid)
{
    static const struct elf_class native = {.wide = true, .big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__};
    uint8_t masks[16];
    struct iovec whole = {masks, sizeof masks};
    bool is_read = ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_ARM_PAC_MASK, &whole) == 0;
    return is_read ? core_pac_mask_at(native, masks, whole.iov_len) : 0;
}

enum cdacq_status thread_list_stopped(const struct target *target, pid_t tid, uint64_t *pac_mask, struct threads *ret,
                                      struct cdacq_error *err)
{
    uint8_t registers[64 * 8]; /* more than any machine has in NT_PRSTATUS */
    struct iovec whole = {registers, sizeof registers};
    int failure = ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_PRSTATUS, &whole) < 0 ? errno : 0;
    if (failure == ESRCH) /* it was killed */
        return CDACQ_OK;
    if (target->elf_machine == EM_AARCH64 && !*pac_mask)
        *pac_mask = read_pac_mask(tid);
    if (threads_append_live(ret, target, tid, registers, failure ? 0 : whole.iov_len))
        return CDACQ_OK;
    return error_set(err, CDACQ_ERR_IO, 0, "process %d: the registers of thread %d cannot be read: %s", target->pid,
                     tid, failure ? strerror(failure) : "the kernel has only some of them");
}

/* Adds the floating-point registers, if they can be read: few answers need them. */
static void add_xmm(const struct target *target, pid_t tid, struct registers *registers)
{
    uint8_t bytes[FXSAVE_SIZE];
    struct iovec whole = {bytes, sizeof bytes};
    if (target->elf_machine == EM_X86_64 && registers->known &&
        ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_PRFPREG, &whole) == 0)
        registers_add_xmm(register_machine_find(EM_X86_64), bytes, whole.iov_len, registers);
}

/* Reads the registers of all threads that are held. */
static enum cdacq_status list_threads(struct thread_holder *holder, struct cdacq_error *err)
{
    enum cdacq_status status = CDACQ_OK;
    if (!threads_reserve(holder->list, holder->list->count + holder->held.count))
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the threads");
    for (size_t i = 0; i < holder->held.count; i++) {
        pid_t tid = holder->held.items[i].tid;
        size_t before = holder->list->count;
        enum cdacq_status one =
            thread_list_stopped(holder->target, tid, &holder->pac_mask, holder->list, status < 0 ? NULL : err);
        if (holder->list->count > before)
            add_xmm(holder->target, tid, &holder->list->items[before].registers);
        status = status < 0 ? status : one; /* the first failure */
    }
    return status;
}

static void *holder_main(void *context)
{
    struct thread_holder *holder = context;
    holder->status = hold_all_threads(holder, &holder->error);
    sem_post(&holder->settled);
    if (holder->status >= 0)
        wait_for(&holder->wake);
    while (holder->list) {
        holder->status = list_threads(holder, &holder->error);
        sem_post(&holder->settled);
        wait_for(&holder->wake);
    }
    for (size_t i = 0; i < holder->held.count; i++)
        thread_let_go(holder->held.items[i].tid, holder->held.items[i].signal);
    return NULL;
}

static void free_lists(struct thread_holder *holder)
{
    held_threads_deinit(&holder->held);
    thread_ids_deinit(&holder->ids);
}

enum cdacq_status thread_holder_hold(struct thread_holder *holder, int pid, struct cdacq_error *err)
{
    sigset_t all, old;
    holder->pid = pid;
    if (!held_threads_reserve(&holder->held, THREAD_MAX) || !thread_ids_reserve(&holder->ids, THREAD_MAX)) {
        free_lists(holder);
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    }
    holder->began = monotonic_ns();
    sem_init(&holder->settled, 0, 0);
    sem_init(&holder->wake, 0, 0);
    sigfillset(&all); /* the caller's other threads handle signals, not the holder */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    holder->started = pthread_create(&holder->thread, NULL, holder_main, holder) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!holder->started) {
        free_lists(holder);
        return error_set(err, CDACQ_ERR_NOMEM, 0, "no thread for holding process %d", pid);
    }
    wait_for(&holder->settled);
    if (holder->status < 0 && err)
        *err = holder->error;
    return holder->status;
}

enum cdacq_status thread_holder_list(struct thread_holder *holder, const struct target *target, struct threads *ret,
                                     struct cdacq_error *err)
{
    holder->target = target;
    holder->list = ret;
    sem_post(&holder->wake);
    wait_for(&holder->settled);
    holder->list = NULL;
    if (holder->status < 0 && err)
        *err = holder->error;
    return holder->status;
}

uint64_t thread_holder_release(struct thread_holder *holder)
{
    if (!holder->started)
        return 0;
    bool held = holder->held.count;
    sem_post(&holder->wake);
    pthread_join(holder->thread, NULL);
    sem_destroy(&holder->settled);
    sem_destroy(&holder->wake);
    free_lists(holder);
    uint64_t time = held ? monotonic_ns() - holder->began : 0;
    *holder = (struct thread_holder){0};
    return time;
}
