#include "src/cli/watchdog.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/cli.h"
#include "src/cli/console.h"
#include "util/file.h"

enum { SECONDS = 5, CHECKS_PER_SECOND = 2 };

static _Atomic(const char *) subject;
static pid_t watched;

/* How often the thread has been switched, if it waits uninterruptibly; otherwise 0. */
static unsigned long switches_of_wait(const char *path)
{
    static const char state[] = "\nState:\tD", count[] = "\nvoluntary_ctxt_switches:\t";
    char text[4096];
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = fd < 0 ? 0 : file_read_at(fd, 0, text, sizeof text - 1);
    text[n] = '\0';
    const char *switches = strstr(text, count);
    return strstr(text, state) && switches ? strtoul(switches + sizeof count - 1, NULL, 10) : 0;
}

static void *watch(void *context)
{
    char path[64];
    unsigned long before = 0;
    unsigned same = 0;
    (void)context;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", watched);
    while (same < SECONDS * CHECKS_PER_SECOND) {
        usleep(1000000 / CHECKS_PER_SECOND);
        unsigned long now = switches_of_wait(path);
        same = now && now == before ? same + 1 : 0;
        before = now;
    }
    message("%s: its memory, or a file that it maps, has not come for %d seconds", atomic_load(&subject), SECONDS);
    _exit(EXIT_FAILED); /* the other thread cannot go on, and nothing that it holds can be freed */
}

void watchdog_begin(const char *what)
{
    pthread_t thread;
    sigset_t all, old;
    bool begun = atomic_exchange(&subject, what) != NULL;
    if (begun)
        return;
    watched = gettid();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&thread, NULL, watch, NULL) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}
