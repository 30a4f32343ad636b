#include "src/cli/commands/follow.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/cli/base/console.h"
#include "util/base.h"
#include "util/clock.h"

enum {
    LEAST_WAIT_MS = 200, /* between two rounds */
    WAIT_SHARE = 4,      /* times as long as the round took: the process is not to be slowed down */
};

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

void follow_begin(void)
{
    struct sigaction action = {.sa_handler = interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool follow_interrupted(void)
{
    return interrupted;
}

bool follow_is_possible(const struct common_options *options)
{
    bool is_process = target_is_pid(options->targets.items[0]);
    if (!options->follow || (is_process && !(options->open.flags & CDACQ_OPEN_STOP)))
        return true;
    message("--follow needs a running process, not %s", is_process ? "one that --stop stops" : "a core");
    return false;
}

bool follow_wait(struct output *out, int milliseconds)
{
    output_flush(out);
    if (interrupted || output_failed(out))
        return false;
    struct pollfd file = {.fd = out->fd};
    int n = poll(&file, 1, milliseconds); /* without events, it reports only errors: the reader has left */
    return n == 0 || (n < 0 && errno == EINTR && !interrupted);
}

int follow_open_process(int pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

bool follow_process_ended(int process)
{
    return process >= 0 && poll(&(struct pollfd){.fd = process, .events = POLLIN}, 1, 0) > 0;
}

struct cdacq_follower *follow_open(struct cdacq_target *target, unsigned flags)
{
    struct cdacq_follower *follower = NULL;
    struct cdacq_error error;
    follow_begin();
    if (cdacq_follower_create(target, flags, &follower, &error) < 0)
        message("%s", error.message);
    return follower;
}

enum cdacq_status follow_process(struct cdacq_follower *follower, struct output *out, follow_round *round,
                                 void *context)
{
    for (;;) {
        uint64_t began = monotonic_ns();
        enum cdacq_status status = round(follower, context);
        progress_end_all(); /* from now on, it waits most of the time */
        uint64_t pause = (monotonic_ns() - began) / 1000000 * WAIT_SHARE;
        if (status != CDACQ_OK || !follow_wait(out, (int)MIN(MAX(pause, (uint64_t)LEAST_WAIT_MS), (uint64_t)INT_MAX)))
            return status;
    }
}
