/*
 * sampler PID [HZ [SECONDS]]: a sampling profiler that needs neither perf nor a setting of the process. It looks at
 * every thread HZ times a second (default 50) for SECONDS (default 5), stops those that are running, one at a time and
 * only while their stack is walked, and prints folded stacks:
 *     sampler 4242 | flamegraph.pl >out.svg
 * It needs the permission to ptrace the process, and runs on Linux on x86-64 and AArch64. Build it against an installed
 * copy with
 *     cc sampler.c $(pkg-config --cflags --libs libcdacq)
 */
#define _GNU_SOURCE
#include <cdacq.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

enum { FRAMES_MAX = 512, FRAME_TEXT_MAX = 256, STACKS_MAX = 1 << 16 /* a power of two */ };

/* Folded stacks, by a hash of their text with linear probing. */
struct stacks {
    struct {
        char *text;
        unsigned long count;
    } slots[STACKS_MAX];
    size_t used;
    unsigned long samples, incomplete, lost;
};

/* The frames of one sample, the innermost first. */
struct sample {
    char frames[FRAMES_MAX][FRAME_TEXT_MAX];
    unsigned count;
};

/* ---- A thread of the process ---- */

static bool is_running(int pid, int tid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    const char *state = strrchr(text, ')'); /* the name before it may contain anything */
    return state && state[1] == ' ' && state[2] == 'R';
}

/* The registers of a stopped thread by their DWARF numbers. */
static bool read_registers(int tid, struct cdacq_registers *ret)
{
    struct user_regs_struct regs;
    struct iovec io = {&regs, sizeof regs};
    memset(ret, 0, sizeof *ret);
    ret->size = sizeof *ret;
    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io) < 0)
        return false;
#if defined __x86_64__
    const unsigned long long values[] = {regs.rax, regs.rdx, regs.rcx, regs.rbx, regs.rsi, regs.rdi,
                                         regs.rbp, regs.rsp, regs.r8,  regs.r9,  regs.r10, regs.r11,
                                         regs.r12, regs.r13, regs.r14, regs.r15, regs.rip};
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
        ret->values[i] = values[i];
    ret->known = (UINT64_C(1) << 17) - 1;
#elif defined __aarch64__
    for (unsigned i = 0; i < 31; i++)
        ret->values[i] = regs.regs[i];
    ret->values[31] = regs.sp;
    ret->values[32] = regs.pc;
    ret->known = (UINT64_C(1) << 33) - 1;
#else
#error "this example knows the registers of x86-64 and AArch64"
#endif
    return true;
}

/* Stops a thread; release() lets it run on. *ret_signal is a signal that it was about to receive. */
static bool stop(int tid, int *ret_signal)
{
    int status;
    *ret_signal = 0;
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
        return false;
    if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 || waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
        return false; /* it has ended */
    if (status >> 16 != PTRACE_EVENT_STOP)
        *ret_signal = WSTOPSIG(status);
    return true;
}

static void release(int tid, int signal)
{
    ptrace(PTRACE_DETACH, tid, NULL, (void *)(long)signal);
}

/* ---- Stacks ---- */

/* Names are data of the process: they must not split a stack or a line, or control a terminal. */
static void make_printable(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        if (*c == ';')
            *c = ':';
        else if (*c < ' ' || *c == 0x7f)
            *c = '?';
        else if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) /* a C1 control in UTF-8 */
            c[0] = c[1] = '?';
    }
}

static int add_frame(const struct cdacq_frame *frame, void *context)
{
    struct sample *sample = (struct sample *)context;
    const char *module = frame->module ? strrchr(frame->module, '/') : NULL;
    if (sample->count == FRAMES_MAX)
        return 1;
    char *text = sample->frames[sample->count++];
    const char *name = frame->method && frame->method->name ? frame->method->name : frame->symbol;
    if (name)
        snprintf(text, FRAME_TEXT_MAX, "%s", name);
    else
        snprintf(text, FRAME_TEXT_MAX, "[%s]", module ? module + 1 : frame->method ? "stub" : "unknown");
    make_printable(text);
    return 0;
}

static void count_stack(struct stacks *stacks, const struct sample *sample)
{
    size_t length = 0;
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (unsigned i = 0; i < sample->count; i++)
        length += strlen(sample->frames[i]) + 1;
    char *text = (char *)malloc(length + 1), *end = text;
    if (!text || stacks->used >= STACKS_MAX / 2) {
        free(text);
        stacks->lost++;
        return;
    }
    for (unsigned i = sample->count; i > 0; i--)
        end = stpcpy(end, sample->frames[i - 1]), *end++ = ';';
    end[-1] = 0;
    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    size_t slot = hash % STACKS_MAX;
    while (stacks->slots[slot].text && strcmp(stacks->slots[slot].text, text) != 0)
        slot = (slot + 1) % STACKS_MAX;
    if (stacks->slots[slot].text) {
        free(text);
    } else {
        stacks->slots[slot].text = text;
        stacks->used++;
    }
    stacks->slots[slot].count++;
}

static void sample_thread(struct cdacq_session *session, int tid, struct stacks *stacks)
{
    static struct sample sample;
    struct cdacq_registers registers;
    struct cdacq_error error;
    int signal;
    if (!stop(tid, &signal))
        return;
    sample.count = 0;
    enum cdacq_status status = CDACQ_ERR_ARGUMENT;
    if (read_registers(tid, &registers))
        status = cdacq_session_visit_frames(session, NULL, &registers, 0, add_frame, &sample, &error);
    release(tid, signal);
    stacks->samples++;
    stacks->incomplete += status < 0;
    if (sample.count)
        count_stack(stacks, &sample);
}

static void sample_process(struct cdacq_session *session, int pid, struct stacks *stacks)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *threads = opendir(path);
    const struct dirent *entry;
    while (threads && (entry = readdir(threads))) {
        int tid = atoi(entry->d_name);
        if (tid > 0 && is_running(pid, tid))
            sample_thread(session, tid, stacks);
    }
    if (threads)
        closedir(threads);
}

static void sleep_until(struct timespec *next, long hz)
{
    next->tv_nsec += 1000000000 / hz;
    next->tv_sec += next->tv_nsec / 1000000000;
    next->tv_nsec %= 1000000000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL) == EINTR)
        ;
}

int main(int argc, char **argv)
{
    static struct stacks stacks;
    struct cdacq_error error;
    struct cdacq_target *target = NULL;
    struct cdacq_session *session = NULL;
    int exit_code = 0, pid = argc > 1 ? atoi(argv[1]) : 0;
    long hz = argc > 2 ? atol(argv[2]) : 50, seconds = argc > 3 ? atol(argv[3]) : 5;
    if (pid <= 0 || hz <= 0 || hz > 10000 || seconds <= 0) {
        fprintf(stderr, "usage: %s PID [HZ [SECONDS]]\n", argv[0]);
        return 64;
    }
    if (cdacq_target_open_pid(pid, NULL, &target, &error) < 0 || cdacq_session_create(target, &session, &error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        exit_code = 2;
    }
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (long i = 0; session && i < hz * seconds; i++) {
        sample_process(session, pid, &stacks);
        sleep_until(&next, hz);
    }
    for (size_t i = 0; i < STACKS_MAX; i++)
        if (stacks.slots[i].text) {
            printf("%s %lu\n", stacks.slots[i].text, stacks.slots[i].count);
            free(stacks.slots[i].text);
        }
    if (session)
        fprintf(stderr, "%lu samples, %lu incomplete, %lu lost\n", stacks.samples, stacks.incomplete, stacks.lost);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    return exit_code;
}
