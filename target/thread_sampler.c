#include "target/thread_sampler.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "target/proc_status.h"
#include "target/thread_holder.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/file.h"
#include "util/proc_file.h"

enum {
    OPEN_FILES_MAX = 512,    /* of the counts of threads */
    ROUNDS_PER_LISTING = 64, /* a thread may have taken the place of another */
    LAST_SECONDS = 5,
    STATUS_SIZE = 16 * 1024,
};

DEFINE_VECTOR_FUNCTIONS(sampled_list, struct sampled_thread *);

/* Reads /proc/PID/task/TID/NAME. Returns its length; 0 if it cannot be read. */
static size_t read_file(const struct thread_sampler *sampler, pid_t tid, const char *name, char *ret, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "%d/%s", tid, name);
    return file_read_text(sampler->tasks, path, ret, size);
}

/* ---- The list ---- */

static void free_thread(struct thread_sampler *sampler, struct sampled_thread *thread)
{
    if (thread->counts >= 0) {
        close(thread->counts);
        sampler->open_files--;
    }
    free(thread->stack);
    free(thread);
}

static bool add_thread(struct thread_sampler *sampler, pid_t tid)
{
    struct sampled_thread *thread = calloc(1, sizeof *thread);
    char path[64], status[STATUS_SIZE];
    if (!thread || !sampled_list_append(&sampler->threads, thread)) {
        free(thread);
        return false;
    }
    *thread = (struct sampled_thread){.tid = tid, .inner_tid = tid, .counts = -1, .listing = sampler->listing};
    read_file(sampler, tid, "comm", thread->name, sizeof thread->name);
    thread->name[strcspn(thread->name, "\n")] = '\0';
    if (sampler->is_inside && read_file(sampler, tid, "status", status, sizeof status) &&
        proc_status_inner_id(status) > 0)
        thread->inner_tid = proc_status_inner_id(status);
    snprintf(path, sizeof path, "%d/schedstat", tid);
    if (sampler->open_files < OPEN_FILES_MAX)
        thread->counts = openat(sampler->tasks, path, O_RDONLY | O_CLOEXEC);
    sampler->open_files += thread->counts >= 0;
    return true;
}

static struct sampled_thread *find_thread(const struct thread_sampler *sampler, pid_t tid, size_t hint)
{
    size_t count = sampler->threads.count;
    for (size_t i = 0; i < count; i++) { /* both lists are in the order of the kernel's */
        struct sampled_thread *thread = sampler->threads.items[(hint + i) % count];
        if (thread->tid == tid)
            return thread;
    }
    return NULL;
}

/* Threads that are asked to stop stay, until they are seen to have ended. */
static void drop_ended(struct thread_sampler *sampler)
{
    struct sampled_list *threads = &sampler->threads;
    size_t kept = 0;
    for (size_t i = 0; i < threads->count; i++) {
        struct sampled_thread *thread = threads->items[i];
        if (thread->listing == sampler->listing || thread->is_asked)
            threads->items[kept++] = thread;
        else
            free_thread(sampler, thread);
    }
    threads->count = kept;
}

static enum cdacq_status list_threads(struct thread_sampler *sampler, struct cdacq_error *err)
{
    struct stat folder;
    DIR *tasks = proc_folder_open(sampler->target->pid, "task");
    if (!tasks)
        return proc_error(sampler->target->pid, err);
    sampler->listed_links = fstat(sampler->tasks, &folder) == 0 ? folder.st_nlink : 0;
    sampler->listing++;
    sampler->has_ended = false;
    enum cdacq_status status = CDACQ_OK;
    struct dirent *entry;
    for (size_t i = 0; status >= 0 && i < THREAD_MAX && (entry = readdir(tasks)); i++) {
        pid_t tid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
        struct sampled_thread *known = tid ? find_thread(sampler, tid, i) : NULL;
        if (known)
            known->listing = sampler->listing;
        else if (tid && !add_thread(sampler, tid))
            status = error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the threads");
    }
    closedir(tasks);
    drop_ended(sampler);
    return status;
}

enum cdacq_status thread_sampler_init(struct thread_sampler *sampler, struct target *target, struct cdacq_error *err)
{
    char status[STATUS_SIZE];
    *sampler = (struct thread_sampler){.target = target, .tasks = proc_file_open(target->pid, "task")};
    if (sampler->tasks < 0)
        return proc_error(target->pid, err);
    bool is_read = file_read_text(sampler->tasks, "../status", status, sizeof status) > 0;
    int inner = is_read ? proc_status_inner_id(status) : 0;
    sampler->is_inside = inner > 0 && inner != target->pid;
    return CDACQ_OK;
}

enum cdacq_status thread_sampler_begin(struct thread_sampler *sampler, struct cdacq_error *err)
{
    struct stat folder;
    bool is_known = fstat(sampler->tasks, &folder) == 0 && folder.st_nlink == sampler->listed_links;
    if (sampler->rounds++ % ROUNDS_PER_LISTING && is_known && !sampler->has_ended)
        return CDACQ_OK;
    return list_threads(sampler, err);
}

/* ---- Looking ---- */

/* Reads how much a thread has run. False: it has ended. *ret_ran: it may have, since that was last read. */
static bool read_counts(struct thread_sampler *sampler, struct sampled_thread *thread, bool *ret_ran)
{
    char text[sizeof thread->schedule];
    size_t n = 0;
    if (thread->counts >= 0) {
        ssize_t got = pread(thread->counts, text, sizeof text - 1, 0); /* one call: there are many threads */
        n = got > 0 ? (size_t)got : 0;
        text[n] = '\0';
    } else {
        n = read_file(sampler, thread->tid, "schedstat", text, sizeof text);
    }
    if (!n)
        return false;
    *ret_ran = strcmp(text, thread->schedule) != 0 || text[0] == '0'; /* zeros: the kernel does not count */
    memcpy(thread->schedule, text, sizeof text);
    return true;
}

/*
 * The system call in which a thread waits, with its arguments and its place in the program, but without its number: one
 * that was interrupted goes on as restart_syscall. False: it runs, or that is not known.
 */
static bool read_call(const struct thread_sampler *sampler, pid_t tid, char ret[SAMPLED_CALL_SIZE])
{
    char text[SAMPLED_CALL_SIZE];
    if (!read_file(sampler, tid, "syscall", text, sizeof text) || strncmp(text, "running", 7) == 0)
        return false;
    snprintf(ret, SAMPLED_CALL_SIZE, "%s", text + strcspn(text, " "));
    return ret[0] != '\0';
}

static bool has_same_stack(const struct thread_sampler *sampler, const struct sampled_thread *thread)
{
    uint8_t bytes[SAMPLED_STACK_MAX];
    size_t n = sampler->target->ops->peek(sampler->target, thread->sp, bytes, thread->stack_size);
    return n && n == thread->stack_size && memcmp(bytes, thread->stack, n) == 0;
}

enum thread_look thread_sampler_look(struct thread_sampler *sampler, struct sampled_thread *thread)
{
    char call[SAMPLED_CALL_SIZE];
    bool ran;
    if (!read_counts(sampler, thread, &ran)) {
        sampler->has_ended = true;
        return THREAD_GONE;
    }
    if (!ran)
        return THREAD_STILL;
    thread->waited = false;
    if (!read_call(sampler, thread->tid, call))
        return THREAD_READY;
    bool is_same = thread->is_known && thread->call[0] && strcmp(call, thread->call) == 0;
    if (is_same && has_same_stack(sampler, thread))
        return THREAD_STILL;
    thread->waited = true;
    return THREAD_WAITS;
}

/* ---- Stopping ---- */

enum cdacq_status thread_sampler_ask(struct thread_sampler *sampler, struct sampled_thread *thread,
                                     struct cdacq_error *err)
{
    thread->asked = monotonic_ns();
    thread->is_asked = thread_interrupt(sampler->target->pid, thread->tid);
    if (thread->is_asked)
        return CDACQ_OK;
    sampler->has_ended = errno == ESRCH;
    return errno == ESRCH ? CDACQ_OK : thread_refused(sampler->target->pid, thread->tid, errno, err);
}

/* Keeps what shows later whether a waiting thread has moved. */
static void keep_stack(struct thread_sampler *sampler, struct sampled_thread *thread,
                       const struct target_thread *stopped)
{
    const struct register_machine *machine = register_machine_find(sampler->target->elf_machine);
    thread->call[0] = '\0';
    if (!thread->waited || stopped->mode == CDACQ_MODE_USER || !machine ||
        !read_call(sampler, thread->tid, thread->call))
        return;
    thread->sp = stopped->registers.values[machine->sp];
    if (!thread->stack && !(thread->stack = malloc(SAMPLED_STACK_MAX)))
        thread->stack_size = 0;
    else
        thread->stack_size = sampler->target->ops->peek(sampler->target, thread->sp, thread->stack, SAMPLED_STACK_MAX);
}

static void count_stop(struct target_stops *stops, uint64_t time)
{
    stops->count++;
    stops->total += time;
    stops->longest = MAX(stops->longest, time);
}

bool thread_sampler_take(struct thread_sampler *sampler, struct sampled_thread *thread,
                         void (*visit)(struct sampled_thread *thread, const struct target_thread *stopped,
                                       void *context),
                         void *context)
{
    struct threads list = {0};
    bool is_stopped;
    int signal = 0;
    uint64_t now = monotonic_ns();
    enum thread_stop stop = thread_stopped(thread->tid, &signal, &is_stopped);
    if (stop == THREAD_RUNS) {
        thread->asked = now;
        return false;
    }
    thread->is_asked = false;
    if (stop == THREAD_ENDED) {
        sampler->has_ended = true;
        return true;
    }
    if (visit && threads_reserve(&list, 1) &&
        thread_list_stopped(sampler->target, thread->tid, &sampler->pac_mask, &list, NULL) >= 0 && list.count) {
        struct target_thread *stopped = &list.items[0];
        sampler->target->pac_mask = sampler->pac_mask;
        stopped->inner_tid = thread->inner_tid;
        memcpy(stopped->name, thread->name, sizeof stopped->name);
        keep_stack(sampler, thread, stopped);
        visit(thread, stopped, context);
        thread->is_known = true;
    }
    thread_let_go(thread->tid, signal);
    count_stop(&sampler->target->stops, monotonic_ns() - thread->asked);
    threads_deinit(&list);
    return true;
}

void thread_sampler_let_go(struct thread_sampler *sampler)
{
    uint64_t end = monotonic_ns() + LAST_SECONDS * NS_PER_SECOND;
    for (size_t i = 0; i < sampler->threads.count; i++)
        while (sampler->threads.items[i]->is_asked &&
               !thread_sampler_take(sampler, sampler->threads.items[i], NULL, NULL) && monotonic_ns() < end)
            nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
}

void thread_sampler_deinit(struct thread_sampler *sampler)
{
    thread_sampler_let_go(sampler);
    for (size_t i = 0; i < sampler->threads.count; i++)
        free_thread(sampler, sampler->threads.items[i]);
    sampled_list_deinit(&sampler->threads);
    if (sampler->tasks >= 0)
        close(sampler->tasks);
    *sampler = (struct thread_sampler){.tasks = -1};
}
