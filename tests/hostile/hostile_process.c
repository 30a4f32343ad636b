/*
 * hostile_process HOW CORE [DIRECTORY [MORE]]: becomes a process with the memory of a core (core_memory.h) that makes
 * itself hard to read, in the way HOW (`ways` below lists them). Prints the pid to read, and goes on until it is killed
 * or its parent ends. Exit codes: 3: an address is taken; 77: the kernel does not permit what HOW needs.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/carrier/core_memory.h"

enum { PAGE = 4096, NOT_PERMITTED = 77, THREADS = 5000, MAPPINGS = 60000 };

static char **arguments;

static void ready(pid_t pid)
{
    char line[32];
    int length = snprintf(line, sizeof line, "%d\n", (int)pid);
    if (write(1, line, (size_t)length) != length)
        _exit(1);
}

static void *memory(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static void need(bool done)
{
    if (!done)
        _exit(NOT_PERMITTED);
}

static _Noreturn void wait_for_ever(void)
{
    for (;;)
        pause();
}

/* A child that dies with this process; 0 in the child. */
static pid_t child(void)
{
    pid_t parent = getpid(), pid = fork();
    need(pid >= 0);
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent && getppid() != 0) /* 0: in another namespace */
            _exit(1);
    }
    return pid;
}

static void start(void *(*run)(void *), void *context)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, run, context) != 0)
        usleep(1000); /* there are enough */
    pthread_attr_destroy(&attributes);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static const struct core_range *range_of(uint64_t address)
{
    for (size_t i = 0; i < core_range_count; i++)
        if (address >= core_ranges[i].begin && address < core_ranges[i].end)
            return &core_ranges[i];
    return NULL;
}

/* ---- Memory that changes ---- */

/* Where pointers to what was dumped are. */
static uint64_t **pointers;
static size_t pointer_count;

static void list_pointers(void)
{
    enum { POINTERS_MAX = 1 << 18 };
    pointers = calloc(POINTERS_MAX, sizeof *pointers);
    need(pointers);
    for (size_t i = 0; i < core_range_count; i++)
        for (uint64_t *at = memory(core_ranges[i].begin); at < (uint64_t *)memory(core_ranges[i].end); at++)
            if (*at && pointer_count < POINTERS_MAX && range_of(*at))
                pointers[pointer_count++] = at;
}

/* Makes pointers point to others, to themselves and to what is before them, for a moment each. */
static void rewrite_pointers(void)
{
    uint64_t state = 88172645463325252;
    list_pointers();
    need(pointer_count);
    ready(getpid());
    for (;;) {
        uint64_t *changed[64], before[64];
        for (int i = 0; i < 64; i++) {
            uint64_t random = next_random(&state);
            changed[i] = pointers[random % pointer_count];
            before[i] = *changed[i];
            uint64_t other = random % 3 == 0   ? (uintptr_t)changed[i]
                             : random % 3 == 1 ? (uintptr_t)changed[i] - 8 * (random >> 8 & 15)
                                               : *pointers[(random >> 20) % pointer_count];
            __atomic_store_n(changed[i], other, __ATOMIC_RELAXED);
        }
        for (int i = 64; i-- > 0;)
            __atomic_store_n(changed[i], before[i], __ATOMIC_RELAXED);
    }
}

/* The text of the descriptor is another one again and again. */
static void rewrite_descriptor(void)
{
    uint64_t state = 88172645463325252;
    char *text = NULL;
    size_t length = 0;
    for (size_t i = 0; i < core_range_count && !text; i++)
        text = memmem(memory(core_ranges[i].begin), core_ranges[i].end - core_ranges[i].begin, "{\"version\"", 10);
    need(text);
    while (text[length] && length < 64 * 1024)
        length++;
    ready(getpid());
    for (;;) {
        char *at = text + next_random(&state) % length, before = *at;
        *at = "{}[]\",:0-9x\\\x01"[next_random(&state) % 13];
        for (unsigned spin = 0; spin < state % 4096; spin++)
            __atomic_signal_fence(__ATOMIC_SEQ_CST);
        *at = before;
    }
}

/* Pages cannot be read for a moment. */
static void hide_pages(void)
{
    uint64_t state = 88172645463325252;
    ready(getpid());
    for (;;) {
        const struct core_range *range = &core_ranges[next_random(&state) % core_range_count];
        void *page = memory(range->begin + next_random(&state) % ((range->end - range->begin) / PAGE) * PAGE);
        mprotect(page, PAGE, PROT_NONE);
        usleep((useconds_t)(state % 100));
        mprotect(page, PAGE, PROT_READ | PROT_WRITE);
    }
}

/* A page, whose address follows DIRECTORY, never comes: another program has to supply it. */
static void never_come(void)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    uint64_t page = arguments[3] && arguments[4] ? strtoull(arguments[4], NULL, 16) : 0;
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register missing = {.range = {page, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    need(fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 && ioctl(fd, UFFDIO_REGISTER, &missing) == 0);
    madvise(memory(page), PAGE, MADV_DONTNEED);
    ready(getpid());
    wait_for_ever();
}

static char *remapped;

/* Other memory of the same size in place of a file. */
static void remap(int number)
{
    (void)number;
    need(mmap(remapped, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == remapped);
    strcpy(remapped, "NameInMemory");
    ready(getpid());
}

/* A name, the address of whose pointer follows DIRECTORY, is in a mapped file and, from a signal on, in its place. */
static void remap_file(void)
{
    char **name = arguments[3] && arguments[4] ? memory(strtoull(arguments[4], NULL, 16)) : NULL;
    need(name && chdir(arguments[3]) == 0);
    int fd = open("names", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    need(fd >= 0 && write(fd, "NameInFile", 10) == 10 && ftruncate(fd, PAGE) == 0);
    remapped = *name = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    need(remapped != MAP_FAILED);
    signal(SIGUSR1, remap);
    ready(getpid());
    wait_for_ever();
}

/* Before the runtime, a file of its name that no loader would load. */
static void map_other_runtime(void)
{
    static const unsigned char header[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    need(arguments[3] && chdir(arguments[3]) == 0 && mkdir("other", 0700) == 0 && chdir("other") == 0);
    int fd = open("libcoreclr.so", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    need(fd >= 0 && write(fd, header, sizeof header) == sizeof header && ftruncate(fd, PAGE) == 0);
    need(mmap(memory(0x200000), PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0) == memory(0x200000));
    ready(getpid());
    wait_for_ever();
}

/* ---- Many of all ---- */

static void *named_thread(void *context)
{
    (void)context;
    prctl(PR_SET_NAME, "\x1b[31m)\n Z \xff\"");
    wait_for_ever();
}

static void many_threads(void)
{
    for (int i = 0; i < THREADS; i++)
        start(named_thread, NULL);
    ready(getpid());
    wait_for_ever();
}

static int file_in_memory(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC);
    need(fd >= 0 && ftruncate(fd, 2 * PAGE) == 0);
    return fd;
}

static void many_mappings(void)
{
    int fd = file_in_memory("a\n7f0000000000-7f0000001000 r-xp 0 0:0 1 /libcoreclr.so\nb (deleted)");
    int runtime = file_in_memory("libcoreclr.so");
    for (int i = 0; i < MAPPINGS; i++) /* the order keeps the kernel from joining neighbours */
        if (mmap(NULL, PAGE, PROT_READ, MAP_SHARED, i % 1000 ? fd : runtime, i % 2 * PAGE) == MAP_FAILED)
            break;
    ready(getpid());
    wait_for_ever();
}

static void *short_thread(void *context)
{
    start(short_thread, context);
    return NULL;
}

static void on_signal(int number)
{
    (void)number;
}

/* Threads, processes and signals that come and go. */
static void come_and_go(void)
{
    struct itimerval often = {{0, 200}, {0, 200}};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    for (int i = 0; i < 4; i++)
        start(short_thread, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    ready(getpid());
    for (;;) {
        pid_t pid = fork();
        if (!pid)
            _exit(0);
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        usleep(1000);
    }
}

/* ---- Other states ---- */

static void only_wait(void)
{
    ready(getpid());
    wait_for_ever();
}

static void stop_itself(void)
{
    ready(getpid());
    raise(SIGSTOP);
    wait_for_ever();
}

static void be_zombie(void)
{
    pid_t pid = child();
    if (!pid)
        _exit(0);
    siginfo_t info;
    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
    ready(pid);
    wait_for_ever();
}

static void *stay(void *context)
{
    (void)context;
    usleep(10000);
    ready(getpid());
    wait_for_ever();
}

/* The first thread ends. */
static void lose_leader(void)
{
    start(stay, NULL);
    pthread_exit(NULL);
}

/* Waits, uninterruptibly, for a child that shares its memory. */
static void wait_in_vfork(void)
{
    pid_t parent = getpid();
    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        ready(parent);
        wait_for_ever();
    }
}

static void be_in_vfork(void)
{
    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        ready(getpid());
        wait_for_ever();
    }
}

static void be_traced(void)
{
    pid_t pid = child();
    if (!pid)
        wait_for_ever();
    need(ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0);
    ready(pid);
    wait_for_ever();
}

/* Can only read, write and exit. */
static void restrict_itself(void)
{
    int ends[2];
    char byte;
    need(pipe(ends) == 0);
    ready(getpid());
    need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    (void)!read(ends[0], &byte, 1);
}

static void become_undumpable(void)
{
    ready(getpid());
    for (int i = 0;; i++) {
        prctl(PR_SET_DUMPABLE, i % 2);
        usleep(200);
    }
}

static void execute_again(void)
{
    if (!getenv("AGAIN"))
        ready(getpid());
    setenv("AGAIN", "1", 1);
    usleep(3000);
    execv("/proc/self/exe", arguments);
}

static void be_in_namespaces(void)
{
    need(unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS) == 0);
    pid_t pid = child();
    if (!pid)
        wait_for_ever();
    ready(pid);
    wait_for_ever();
}

static pid_t child_with_pid(pid_t wanted)
{
    struct clone_args how = {
        .exit_signal = SIGCHLD, .set_tid = wanted ? (uintptr_t)&wanted : 0, .set_tid_size = wanted ? 1 : 0};
    return (pid_t)syscall(SYS_clone3, &how, sizeof how);
}

/* One pid is that of one process after another; every second one has other memory at the same addresses. */
static void reuse_pid(void)
{
    pid_t pid = 0;
    for (unsigned i = 0;; i++) {
        pid_t now = child_with_pid(pid);
        if (now < 0 && errno == EEXIST)
            continue;
        need(now >= 0);
        if (!now) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (size_t k = 0; i % 2 && k < core_range_count; k++)
                memset(memory(core_ranges[k].begin), 0xa5, core_ranges[k].end - core_ranges[k].begin);
            wait_for_ever();
        }
        pid = now;
        if (i == 1)
            ready(pid);
        usleep(2000);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

/* ---- Without a core: a file that looks like a runtime ---- */

/* The file, which CORE is, is cut and is whole again. */
static void cut_file(void)
{
    struct stat st;
    int fd = open(arguments[2], O_RDWR | O_CLOEXEC);
    need(fd >= 0 && fstat(fd, &st) == 0);
    char *bytes = malloc((size_t)st.st_size);
    need(bytes && read(fd, bytes, (size_t)st.st_size) == st.st_size);
    need(mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED);
    need(mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0) != MAP_FAILED);
    ready(getpid());
    for (unsigned i = 0;; i++) {
        (void)!ftruncate(fd, i % 2 ? PAGE : 0);
        (void)!pwrite(fd, bytes, (size_t)st.st_size, 0);
        usleep(i % 4 * 100);
    }
}

static const struct {
    const char *how;
    void (*run)(void);
} ways[] = {
    {"pointers", rewrite_pointers}, {"descriptor", rewrite_descriptor},
    {"hides", hide_pages},          {"never", never_come},
    {"threads", many_threads},      {"mappings", many_mappings},
    {"comes", come_and_go},         {"waits", only_wait},
    {"stopped", stop_itself},       {"zombie", be_zombie},
    {"leader", lose_leader},        {"vfork", wait_in_vfork},
    {"vforked", be_in_vfork},       {"traced", be_traced},
    {"seccomp", restrict_itself},   {"undumpable", become_undumpable},
    {"executes", execute_again},    {"namespaces", be_in_namespaces},
    {"reused", reuse_pid},          {"cut", cut_file},
    {"remaps", remap_file},         {"other", map_other_runtime},
};

int main(int argc, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    arguments = argv;
    for (size_t i = 0; argc >= 3 && i < ARRAY_SIZE(ways); i++) {
        if (strcmp(ways[i].how, argv[1]) != 0)
            continue;
        if (ways[i].run != cut_file)
            core_memory_load(argv[2], argv[3]);
        ways[i].run();
        return 1;
    }
    fputs("usage: hostile_process HOW CORE [DIRECTORY [MORE]]\n", stderr);
    return 1;
}
