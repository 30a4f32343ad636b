#include "src/cli/base/watchdog.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "src/cli/base/exit_code.h"
#include "util/file.h"

enum { SECONDS = 5, CHECKS_PER_SECOND = 2 };

static atomic_int process;

/* They change only while the main thread runs, and are read only while it waits. */
static atomic_int incomplete_folder;
static const char *_Atomic incomplete_name;

/* Whether the main thread reads memory or a file. FUSE waits for a page as one that signals wake up. */
static bool is_in_a_read(const char *path)
{
    char text[256];
    long number = file_read_text(AT_FDCWD, path, text, sizeof text) ? strtol(text, NULL, 10) : 0;
    return number > 0 && (number == SYS_process_vm_readv || number == SYS_pread64);
}

struct watched {
    char status[64], call[64]; /* the files of the main thread in /proc */
};

/* How often the main thread has been switched, if it waits uninterruptibly, or in a read; otherwise 0. */
static unsigned long switches_of_wait(const struct watched *watched)
{
    static const char state[] = "\nState:\t", count[] = "\nvoluntary_ctxt_switches:\t";
    static char text[1 << 20]; /* a user can be in 65,536 groups, whose ids it has */
    (void)file_read_text(AT_FDCWD, watched->status, text, sizeof text);
    const char *switches = strstr(text, count), *now = strstr(text, state);
    char letter = now ? now[sizeof state - 1] : '\0';
    bool waits = letter == 'D' || (letter == 'S' && is_in_a_read(watched->call));
    return waits && switches ? strtoul(switches + sizeof count - 1, NULL, 10) : 0;
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
    struct termios terminal;
    if (tcgetattr(STDERR_FILENO, &terminal) == 0) /* isatty(), which a signal handler may not call */
        (void)!write(STDERR_FILENO, clear, sizeof clear - 1);
    (void)!write(STDERR_FILENO, line, strlen(line));
    watchdog_remove_now();
    _exit(EXIT_FAILED);
}

static _Noreturn void give_up_waiting(int pid)
{
    char line[160];
    snprintf(line, sizeof line,
             "cdacq: process %d: its memory, or a file that it maps, could not be read for %d seconds\n", pid, SECONDS);
    give_up(line);
}

static void *watch(void *context)
{
    struct watched watched;
    unsigned long before = 0;
    unsigned same = 0;
    (void)context;
    snprintf(watched.status, sizeof watched.status, "/proc/self/task/%d/status", (int)getpid());
    snprintf(watched.call, sizeof watched.call, "/proc/self/task/%d/syscall", (int)getpid());
    for (;;) {
        usleep(1000000 / CHECKS_PER_SECOND);
        int pid = atomic_load(&process);
        unsigned long now = pid ? switches_of_wait(&watched) : 0;
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
    atomic_store(&incomplete_name, NULL); /* a signal that comes now must not remove the earlier name in this folder */
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

static void fill_stops(sigset_t *ret)
{
    sigemptyset(ret);
    sigaddset(ret, SIGTSTP);
    sigaddset(ret, SIGTTIN);
    sigaddset(ret, SIGTTOU);
}

void watchdog_delay_stops(bool delay)
{
    static bool delayed;
    static sigset_t before;
    sigset_t stops;
    if (delay == delayed)
        return;
    delayed = delay;
    fill_stops(&stops);
    if (delay)
        sigprocmask(SIG_BLOCK, &stops, &before);
    else
        sigprocmask(SIG_SETMASK, &before, NULL);
}

bool watchdog_stop_waits(void)
{
    sigset_t pending, stops;
    fill_stops(&stops);
    return sigpending(&pending) == 0 && sigandset(&pending, &pending, &stops) == 0 && !sigisemptyset(&pending);
}
