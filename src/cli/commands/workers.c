#include "src/cli/commands/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/cli/base/watchdog.h"
#include "util/base.h"
#include "util/clock.h"

enum {
    QUICK = 2,         /* processes that are not held up */
    WORKERS_MAX = 256, /* all of them */
    HELD_UP_MS = 300,  /* for an item: another process goes on */
    MESSAGE_MAX = 256 * 1024,
};

#define HELD_UP_NS (HELD_UP_MS * UINT64_C(1000000))
#define LATE_NS    (WORKERS_SECONDS * NS_PER_SECOND)

/* Comes before the text of a message. */
struct told {
    bool is_last; /* of the item */
    bool is_partly;
};

struct workers_self {
    int socket;
};

struct worker {
    pid_t pid;
    int socket; /* -1: there is no such process any more */
    bool is_busy;
    size_t item;
    uint64_t since; /* when it got the item */
};

struct result {
    char *text; /* NULL: none */
    size_t length;
    bool is_partly, is_late, is_done;
};

struct pool {
    workers_do *work;
    workers_take *take;
    void *context;
    struct worker workers[WORKERS_MAX];
    size_t worker_count;
    struct result *results;
    size_t count, next, taken; /* items: all, given to a process, results taken */
};

/* ---- The other processes ---- */

static bool tell(int socket, struct told told, const char *text, size_t length)
{
    struct iovec parts[] = {{&told, sizeof told}, {(void *)(uintptr_t)text, length}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    return sendmsg(socket, &message, MSG_NOSIGNAL) >= 0;
}

void workers_tell(struct workers_self *self, const struct output *out, bool is_partly)
{
    if (!tell(self->socket, (struct told){.is_partly = is_partly}, out->data, out->length))
        _exit(EXIT_FAILURE);
}

/* Ends with its parent, removes no file of it, and keeps none of its files open except `kept`. */
static bool leave(pid_t parent, int kept)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    watchdog_remove(AT_FDCWD, NULL);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (nowhere < 0 || dup2(nowhere, fd) < 0)
            return false;
    file_close_all_from(STDERR_FILENO + 1, kept);
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
}

static _Noreturn void do_items(const struct pool *pool, int socket, pid_t first)
{
    struct workers_self self = {socket};
    size_t item;
    if (!leave(first, socket))
        _exit(EXIT_FAILURE);
    while (recv(socket, &item, sizeof item, 0) == sizeof item) {
        pool->work(pool->context, item, &self);
        if (!tell(socket, (struct told){.is_last = true}, NULL, 0))
            break;
    }
    _exit(EXIT_SUCCESS);
}

/* ---- The first process ---- */

static bool add_worker(struct pool *pool)
{
    int ends[2];
    struct worker *worker = NULL;
    for (size_t i = 0; i < pool->worker_count && !worker; i++)
        worker = pool->workers[i].socket < 0 ? &pool->workers[i] : NULL;
    if (!worker && pool->worker_count < WORKERS_MAX)
        worker = &pool->workers[pool->worker_count];
    if (!worker || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    pid_t first = getpid(), pid = fork();
    if (pid == 0)
        do_items(pool, ends[1], first);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return false;
    }
    if (worker == &pool->workers[pool->worker_count])
        pool->worker_count++;
    *worker = (struct worker){.pid = pid, .socket = ends[0]};
    return true;
}

/* It may be held up by what no signal ends: nobody waits for its end. */
static void leave_behind(struct worker *worker)
{
    kill(worker->pid, SIGKILL);
    close(worker->socket);
    worker->socket = -1;
    (void)waitpid(worker->pid, NULL, WNOHANG);
}

static void end_item(struct pool *pool, struct worker *worker, bool is_late)
{
    struct result *result = &pool->results[worker->item];
    result->is_done = true;
    result->is_late = is_late;
    worker->is_busy = false;
}

static void receive(struct pool *pool, struct worker *worker, char *message)
{
    struct told told;
    ssize_t n = recv(worker->socket, message, MESSAGE_MAX, 0);
    if (n < 0 && errno == EINTR)
        return;
    if (n < (ssize_t)sizeof told) { /* it has ended before it was done */
        leave_behind(worker);
        if (worker->is_busy)
            end_item(pool, worker, true);
        return;
    }
    memcpy(&told, message, sizeof told);
    if (told.is_last) {
        end_item(pool, worker, false);
        return;
    }
    struct result *result = &pool->results[worker->item];
    free(result->text);
    *result = (struct result){.is_partly = told.is_partly, .length = (size_t)n - sizeof told};
    result->text = malloc(result->length + 1);
    if (result->text)
        memcpy(result->text, message + sizeof told, result->length);
}

/* Gives items to those that have none, and has enough of those that are not held up. */
static void give_items(struct pool *pool)
{
    uint64_t now = monotonic_ns();
    size_t quick = 0;
    for (size_t i = 0; i < pool->worker_count; i++) {
        const struct worker *worker = &pool->workers[i];
        quick += worker->socket >= 0 && (!worker->is_busy || now - worker->since < HELD_UP_NS);
    }
    for (; quick < QUICK && quick < pool->count - pool->next; quick++)
        if (!add_worker(pool))
            break;
    for (size_t i = 0; i < pool->worker_count && pool->next < pool->count; i++) {
        struct worker *worker = &pool->workers[i];
        if (worker->socket < 0 || worker->is_busy)
            continue;
        worker->is_busy = true;
        worker->item = pool->next;
        worker->since = now;
        if (send(worker->socket, &pool->next, sizeof pool->next, MSG_NOSIGNAL) < 0) {
            leave_behind(worker);
            worker->is_busy = false;
        } else {
            pool->next++;
        }
    }
}

/*
 * Until a process has something to tell, or may be held up, or has had its time. False: there is nothing to wait for.
 */
static bool wait_for_any(struct pool *pool, char *message)
{
    struct pollfd polled[WORKERS_MAX];
    size_t which[WORKERS_MAX], count = 0;
    for (size_t i = 0; i < pool->worker_count; i++)
        if (pool->workers[i].socket >= 0 && pool->workers[i].is_busy) {
            polled[count] = (struct pollfd){.fd = pool->workers[i].socket, .events = POLLIN};
            which[count++] = i;
        }
    if (!count)
        return false;
    (void)poll(polled, count, HELD_UP_MS / 3);
    uint64_t now = monotonic_ns();
    for (size_t i = 0; i < count; i++) {
        struct worker *worker = &pool->workers[which[i]];
        if (polled[i].revents)
            receive(pool, worker, message);
        if (worker->is_busy && worker->socket >= 0 && now - worker->since >= LATE_NS) {
            leave_behind(worker);
            end_item(pool, worker, true);
        }
    }
    return true;
}

/* Hands over the results that are next. Returns whether more are wanted. */
static bool take_results(struct pool *pool)
{
    while (pool->taken < pool->count && pool->results[pool->taken].is_done) {
        const struct result *known = &pool->results[pool->taken];
        const struct workers_result result = {.text = known->text ? known->text : "",
                                              .length = known->text ? known->length : 0,
                                              .is_partly = known->is_partly,
                                              .is_late = known->is_late};
        if (pool->take(pool->context, pool->taken++, &result))
            return false;
    }
    return pool->taken < pool->count;
}

static void pool_deinit(struct pool *pool)
{
    for (size_t i = 0; i < pool->worker_count; i++)
        if (pool->workers[i].socket >= 0)
            leave_behind(&pool->workers[i]);
    for (size_t i = 0; pool->results && i < pool->count; i++)
        free(pool->results[i].text);
    free(pool->results);
}

bool workers_run(size_t count, workers_do *work, workers_take *take, void *context)
{
    struct pool pool = {.work = work, .take = take, .context = context, .count = count};
    CLEANUP_FREE char *message = malloc(MESSAGE_MAX);
    pool.results = calloc(count + !count, sizeof *pool.results);
    bool goes_on = message && pool.results;
    int error = goes_on ? 0 : ENOMEM;
    signal(SIGCHLD, SIG_DFL); /* where it is ignored, another process can get the id of one that has ended */
    while (goes_on && take_results(&pool)) {
        errno = 0;
        give_items(&pool);
        goes_on = wait_for_any(&pool, message);
        error = goes_on ? 0 : errno ? errno : EAGAIN;
    }
    pool_deinit(&pool);
    errno = error;
    return !error;
}
