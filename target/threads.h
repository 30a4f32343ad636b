/*
 * threads.h: the threads of a target with their registers: from the notes of a core, or from the kernel for a stopped
 * process. Source: core(5); Linux fs/binfmt_elf.c; dotnet/runtime src/coreclr/debug/createdump; ptrace(2); proc(5).
 */
#ifndef CDACQ_TARGET_THREADS_H
#define CDACQ_TARGET_THREADS_H

#include "target/registers.h"
#include "util/vector.h"

enum {
    THREAD_MAX = 65536, /* of a target */
    THREAD_NAME_MAX = 16,
};

struct target_thread {
    int tid;       /* as the reader's pid namespace has it */
    int inner_tid; /* as its own has it: the id by which the runtime knows the thread */
    int signal;    /* of a core: the signal that the thread got; 0: none */
    bool died;     /* of a core: that signal ended the process */
    enum cdacq_thread_mode mode;
    uint32_t call;                  /* the number of the system call that it was in, plus 1; 0: none, or not known */
    char name[THREAD_NAME_MAX + 1]; /* "" where unknown; a core but a snapshot has only that of the first thread */
    struct registers registers;
};

DEFINE_VECTOR(threads, struct target_thread);

/*
 * All threads: the one that died, then the others in the order of the core or of /proc. Fails with ARGUMENT if the
 * target has no threads: a process that is not stopped, the caller's memory without threads, an image file, a core
 * without registers; with FORMAT if the machine is not known. Where a core has more threads than can be read, the
 * status is FORMAT too, and *ret has those that can. Where registers of a process cannot be read, the status is IO, and
 * *ret has all threads, some without registers. The caller frees *ret with threads_deinit(), also after a failure. Live
 * targets: one thread at a time.
 */
enum cdacq_status target_threads(struct target *target, struct threads *ret, struct cdacq_error *err);

/* ---- For the backends ---- */

/*
 * Appends a thread, for which there is room, with the registers of PTRACE_GETREGSET. False, and none of them is known,
 * where the program counter and the stack pointer are not both there.
 */
bool threads_append_live(struct threads *threads, const struct target *target, int tid, const uint8_t *registers,
                         size_t size);

#endif
