#include "src/cli/watchdog.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/cli.h"
#include "util/file.h"

enum { SECONDS = 5, CHECKS_PER_SECOND = 2 };

static atomic_int process;

/* How often the main thread has been switched, if it waits uninterruptibly; otherwise 0. */
static unsigned long switches_of_wait(const char *path)
{
    static const char state[] = "\nState:\tD", count[] = "\nvoluntary_ctxt_switches:\t";
    static char text[1 << 20]; /* a user can be in 65,536 groups, whose ids it has */
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = fd < 0 ? 0 : file_read_at(fd, 0, text, sizeof text - 1);
    text[n] = '\0';
    const char *switches = strstr(text, count);
    return strstr(text, state) && switches ? strtoul(switches + sizeof count - 1, NULL, 10) : 0;
}

/* The message does not go through console.h, whose lock the main thread may hold while it waits. */
static void give_up(int pid)
{
    char name[32] = "a process", line[160];
    if (pid != WATCHDOG_ANY)
        snprintf(name, sizeof name, "process %d", pid);
    int length =
        snprintf(line, sizeof line, "%scdacq: %s: its memory, or a file that it maps, has not come for %d seconds\n",
                 isatty(STDERR_FILENO) ? "\r\033[K" : "", name, SECONDS);
    (void)!write(STDERR_FILENO, line, (size_t)length);
    _exit(EXIT_FAILED); /* the main thread cannot go on, and nothing that it holds can be freed */
}

static void *watch(void *context)
{
    char path[64];
    unsigned long before = 0;
    unsigned same = 0;
    (void)context;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)getpid());
    for (;;) {
        usleep(1000000 / CHECKS_PER_SECOND);
        int pid = atomic_load(&process);
        unsigned long now = pid ? switches_of_wait(path) : 0;
        same = now && now == before ? same + 1 : 0;
        before = now;
        if (same == SECONDS * CHECKS_PER_SECOND)
            give_up(pid);
    }
    return NULL;
}

int watchdog_set(int pid)
{
    static bool begun;
    pthread_t thread;
    sigset_t all, old;
    int last = atomic_exchange(&process, pid);
    if (!pid || begun)
        return last;
    begun = true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&thread, NULL, watch, NULL) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return last;
}
