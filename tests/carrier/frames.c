/*
 * frames.c: a program whose stack has a frame of every kind that compilers and the kernel make. Its innermost function
 * writes the frames as the program's own unwinder sees them, and waits. Functions that the tests look for by name are
 * not static. Each line that it writes: program counter, whether that is the interrupted instruction, CFA, in hex.
 */
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

enum { DEPTH = 200 };

#if __has_attribute(noclone) /* clang clones nothing */
#define FRAME __attribute__((noinline, noclone))
#else
#define FRAME __attribute__((noinline))
#endif
#define BARRIER __asm__ volatile("" ::: "memory")

extern void through_assembly(void (*function)(void));
extern void bare_thread(void *(*function)(void *), void *context);
extern void bare_pause(void);
void capture(void);
void in_handler(int number, siginfo_t *info, void *context);
void faulting(volatile int *pointer);
void realigned(int n);
void with_alloca(size_t n);
void never_returns(void) __attribute__((noreturn));
void ends_with_a_call(void);
void recursion(int depth);
void *thread_main(void *context);

static volatile int alternate_stack, is_bare;

static _Unwind_Reason_Code write_frame(struct _Unwind_Context *context, void *unused)
{
    (void)unused;
    int interrupted = 0;
    uintptr_t pc = _Unwind_GetIPInfo(context, &interrupted);
    if (pc)
        printf("%lx %d %lx\n", (unsigned long)pc, interrupted, (unsigned long)_Unwind_GetCFA(context));
    return _URC_NO_REASON;
}

FRAME void capture(void)
{
    _Unwind_Backtrace(write_frame, NULL);
    printf("end\n");
    fflush(stdout);
    for (;;)
        is_bare ? bare_pause() : (void)pause();
}

/* A frame without a frame pointer, that saves a register that calls preserve and moves the stack pointer twice. */
#if defined(__x86_64__)
__asm__(".text\n"
        ".globl through_assembly\n"
        ".type through_assembly, @function\n"
        "through_assembly:\n"
        ".cfi_startproc\n"
        "push %rbx\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_offset rbx, -16\n"
        "sub $64, %rsp\n"
        ".cfi_adjust_cfa_offset 64\n"
        ".cfi_remember_state\n"
        "mov $0x5eed, %ebx\n"
        "call *%rdi\n"
        "add $64, %rsp\n"
        ".cfi_adjust_cfa_offset -64\n"
        "pop %rbx\n"
        ".cfi_adjust_cfa_offset -8\n"
        ".cfi_restore rbx\n"
        "ret\n"
        ".cfi_restore_state\n"
        ".cfi_endproc\n"
        ".size through_assembly, .-through_assembly\n"
        ".section .note.GNU-stack,\"\",@progbits\n"
        ".text\n");

/* What a C library without call-frame information has as its trampoline. */
__asm__(".text\n"
        "nop\n" /* unwinders look one byte before a return address */
        ".globl restorer\n"
        ".type restorer, @function\n"
        "restorer:\n"
        "mov $15, %rax\n"
        "syscall\n"
        ".size restorer, .-restorer\n");

/* What a C library without call-frame information has below a thread's first function, and around system calls. */
__asm__(".text\n"
        ".globl bare_thread\n"
        ".type bare_thread, @function\n"
        "bare_thread:\n"
        "sub $8, %rsp\n"
        "mov %rdi, %rax\n"
        "mov %rsi, %rdi\n"
        "call *%rax\n"
        "mov %eax, %edi\n"
        "xor %eax, %eax\n"
        "mov $60, %al\n"
        "syscall\n"
        "hlt\n"
        ".size bare_thread, .-bare_thread\n"
        ".globl bare_pause\n"
        ".type bare_pause, @function\n"
        "bare_pause:\n"
        "mov $34, %eax\n"
        "syscall\n"
        "ret\n"
        ".size bare_pause, .-bare_pause\n");

extern void restorer(void);

static void handle_with_restorer(int number)
{
    struct {
        void (*handler)(int number, siginfo_t *info, void *context);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } action = {in_handler, SA_SIGINFO | SA_ONSTACK | 0x04000000, restorer, 0}; /* SA_RESTORER of the kernel */
    syscall(SYS_rt_sigaction, number, &action, NULL, sizeof action.mask);
}
#else
void bare_thread(void *(*function)(void *), void *context)
{
    function(context);
}

void bare_pause(void)
{
    pause();
}

static void handle_with_restorer(int number)
{
    (void)number;
}

FRAME void through_assembly(void (*function)(void))
{
    function();
    BARRIER;
}
#endif

FRAME void in_handler(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
    through_assembly(capture);
    BARRIER;
}

/* Interrupted at its first instruction of this pointer; the handler runs on another stack. */
FRAME void faulting(volatile int *pointer)
{
    *pointer = 1;
    BARRIER;
}

/* The compiler aligns the stack, and describes the CFA by an expression. */
FRAME void realigned(int n)
{
    volatile char aligned[64] __attribute__((aligned(128)));
    volatile char *dynamic = alloca((size_t)n);
    aligned[0] = dynamic[0] = 1;
    if (alternate_stack)
        faulting(NULL);
    else
        through_assembly(capture);
    aligned[1] = dynamic[0] + aligned[0];
}

FRAME void with_alloca(size_t n)
{
    volatile char *bytes = alloca(n);
    bytes[0] = bytes[n - 1] = 1;
    realigned((int)n);
    bytes[0] = 2;
}

FRAME void never_returns(void)
{
    with_alloca(300);
    abort();
}

/* The call is the last instruction; the return address belongs to the next function. */
FRAME void ends_with_a_call(void)
{
    never_returns();
}

static void (*volatile bottom)(void) = ends_with_a_call;

FRAME void recursion(int depth)
{
    volatile int local = depth;
    if (depth)
        recursion(depth - 1);
    else
        bottom();
    local++;
}

FRAME void *thread_main(void *context)
{
    recursion(*(int *)context);
    return NULL;
}

/*
 * frames [signal] [thread] [restorer] [bare]: whether a signal handler and a thread are part of the stack, whether the
 * handler returns to a trampoline without call-frame information, and whether the outermost and the innermost function
 * have none.
 */
int main(int argc, char **argv)
{
    int depth = DEPTH, in_thread = 0, with_restorer = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 1; i < argc; i++) {
        alternate_stack |= strcmp(argv[i], "signal") == 0;
        in_thread |= strcmp(argv[i], "thread") == 0;
        with_restorer |= strcmp(argv[i], "restorer") == 0;
        is_bare |= strcmp(argv[i], "bare") == 0;
    }
    if (alternate_stack && !in_thread) {
        stack_t stack = {.ss_size = 256 * 1024};
        stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        sigaltstack(&stack, NULL);
    }
    struct sigaction action = {.sa_sigaction = in_handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    if (with_restorer)
        handle_with_restorer(SIGSEGV);
    if (in_thread) {
        pthread_t thread;
        pthread_create(&thread, NULL, thread_main, &depth);
        pthread_join(thread, NULL);
    }
    if (is_bare)
        bare_thread(thread_main, &depth);
    thread_main(&depth);
    return 0;
}
