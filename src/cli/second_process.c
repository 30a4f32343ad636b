#include "src/cli/second_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/cli/watchdog.h"

enum {
    WAIT_MS = 2000,          /* for more results: the first process has as much to do as the second */
    RESULTS_MAX = 1 << 26,   /* bytes */
    PIPE_SIZE = 1024 * 1024, /* bytes that are written before the first process reads */
    READ_SIZE = 64 * 1024,
};

static const char complete[] = "\4"; /* after the last result; escaped text never has this byte */

static bool has_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
}

/* The second process removes no file of the first one, and keeps none of its standard streams open. */
static bool leave_first(pid_t first)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    watchdog_remove(AT_FDCWD, NULL);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (nowhere < 0 || dup2(nowhere, fd) < 0)
            return false;
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == first;
}

static _Noreturn void run(int results, pid_t first, second_process_write *write_part, void *context)
{
    struct output out;
    if (!leave_first(first))
        _exit(EXIT_FAILURE);
    output_open_fd(&out, results, "a pipe");
    if (write_part(context, &out)) {
        output_literal(&out, complete);
        output_flush(&out);
    }
    _exit(EXIT_SUCCESS);
}

bool second_process_begin(struct second_process *second, second_process_write *write_part, void *context)
{
    int ends[2];
    *second = (struct second_process){.results = -1};
    if (!has_processors() || pipe2(ends, O_CLOEXEC) < 0)
        return false;
    (void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_SIZE);
    signal(SIGCHLD, SIG_DFL); /* where it is ignored, another process can get the id of one that has ended */
    pid_t first = getpid(), pid = fork();
    if (pid == 0)
        run(ends[1], first, write_part, context);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return false;
    }
    *second = (struct second_process){.pid = pid, .results = ends[0]};
    return true;
}

/* Reads to the end. False if that takes too long, or fails. */
static bool read_results(int fd, struct output *ret)
{
    struct pollfd more = {.fd = fd, .events = POLLIN};
    while (ret->length < RESULTS_MAX && poll(&more, 1, WAIT_MS) > 0) {
        char *p = output_reserve(ret, READ_SIZE);
        ssize_t n = read(fd, p, READ_SIZE);
        if (n <= 0)
            return n == 0;
        output_commit(ret, p + n);
    }
    return false;
}

bool second_process_take(struct second_process *second, struct output *ret)
{
    output_open_memory(ret);
    if (read_results(second->results, ret) && ret->length && ret->data[ret->length - 1] == complete[0]) {
        ret->length--;
        return true;
    }
    output_abandon(ret);
    second_process_stop(second);
    return false;
}

void second_process_stop(struct second_process *second)
{
    kill(second->pid, SIGKILL);
    second->is_stopped = true;
}

void second_process_end(struct second_process *second)
{
    if (!second->pid)
        return;
    close(second->results);
    waitpid(second->pid, NULL, second->is_stopped ? WNOHANG : 0); /* it may wait for memory that never comes */
}
