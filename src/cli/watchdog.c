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

/* They change only while the main thread runs, and are read only while it waits. */
static atomic_int incomplete_folder;
static const char *_Atomic incomplete_name;

/* How often the main thread has been switched, if it waits uninterruptibly; otherwise 0. */
static unsigned long switches_of_wait(const char *path)
{
    static const char state[] = "\nState:\tD", count[] = "\nvoluntary_ctxt_switches:\t";
    static char text[1 << 20]; /* a user can be in 65,536 groups, whose ids it has */
    (void)file_read_text(AT_FDCWD, path, text, sizeof text);
    const char *switches = strstr(text, count);
    return strstr(text, state) && switches ? strtoul(switches + sizeof count - 1, NULL, 10) : 0;
}

void watchdog_remove_now(void)
{
    const char *incomplete = atomic_load(&incomplete_name);
    if (incomplete)
        (void)unlinkat(atomic_load(&incomplete_folder), incomplete, 0);
}

/*
 * Nothing that the main thread holds can be freed. The message does not go through console.h, whose lock that thread
 * may hold. Only calls that a signal handler may make.
 */
static _Noreturn void give_up(const char *line)
{
    static const char clear[] = "\r\033[K";
    if (isatty(STDERR_FILENO))
        (void)!write(STDERR_FILENO, clear, sizeof clear - 1);
    (void)!write(STDERR_FILENO, line, strlen(line));
    watchdog_remove_now();
    _exit(EXIT_FAILED);
}

static _Noreturn void give_up_waiting(int pid)
{
    char name[32] = "a process", line[160];
    if (pid != WATCHDOG_ANY)
        snprintf(name, sizeof name, "process %d", pid);
    snprintf(line, sizeof line, "cdacq: %s: its memory, or a file that it maps, could not be read for %d seconds\n",
             name, SECONDS);
    give_up(line);
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
            give_up_waiting(pid);
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

/* Another program's kill() has the usual effect. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code > 0)
        give_up("cdacq: a file was cut off while it was read, or its disk has failed\n");
    signal(number, SIG_DFL);
    raise(number);
}

void watchdog_catch_bus_errors(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
}

static void on_end(int number)
{
    watchdog_remove_now();
    signal(number, SIG_DFL);
    raise(number);
}

/* Signals that end the tool: SIGPIPE, when nothing reads its messages any more; SIGXCPU, at a limit of the shell. */
static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGALRM, SIGXCPU, SIGUSR1, SIGUSR2};

/* What is ignored (nohup), or has a handler of its own (--follow), stays so. */
static void catch_ends(void)
{
    struct sigaction action = {.sa_handler = on_end}, now;
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        if (sigaction(ends[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            sigaction(ends[i], &action, NULL);
}

void watchdog_remove(int folder, const char *name)
{
    static bool caught;
    atomic_store(&incomplete_folder, folder);
    atomic_store(&incomplete_name, name);
    if (name && !caught)
        catch_ends();
    caught |= name != NULL;
}

void watchdog_block_ends(sigset_t *ret_before)
{
    sigset_t blocked;
    sigemptyset(&blocked);
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        sigaddset(&blocked, ends[i]);
    sigprocmask(SIG_BLOCK, &blocked, ret_before);
}
