/*
 * thread.h: the Thread contract: the runtime's Threads. Each belongs to a thread of the kernel and leads to the Frames
 * that the runtime has put on its stack. .NET 8 publishes no contract; its supplement has what version 1 needs.
 * Source: dotnet/runtime docs/design/datacontracts/Thread.md; src/coreclr/vm/threads.h.
 */
#ifndef CDACQ_CONTRACTS_THREAD_H
#define CDACQ_CONTRACTS_THREAD_H

#include "descriptors/fields.h"
#include "util/vector.h"

enum { RUNTIME_THREADS_MAX = 1 << 20 }; /* Threads of one runtime, whether or not their threads have ended */

struct thread_data {
    uint64_t address;    /* of the Thread */
    uint64_t os_id;      /* the kernel's id; 0 for a thread that has not started or has ended */
    uint64_t frame;      /* the innermost Frame; see frame_is_last() */
    uint64_t stack_base; /* the highest address of its stack; 0: not known */
    /*
     * Of a hijacked thread: where on its stack the return address of a frame was replaced by one of the runtime's, and
     * what it was. 0: the thread is not hijacked, or the runtime does not describe it.
     */
    uint64_t hijacked_slot, hijacked_address;
    uint32_t id, state;  /* ThreadState of the specification; 0: not described */
    bool is_cooperative; /* garbage can be collected only when it stops; false also if that is not described */
};

/* Bits of the state of a Thread whose thread has ended. As a process exits, the runtime does not delete these. */
enum { THREAD_STATE_DEAD = 0x800 };
#define THREAD_STATE_DETACHED UINT32_C(0x80000000)

static inline bool thread_has_ended(const struct thread_data *thread)
{
    return thread->state & (THREAD_STATE_DEAD | THREAD_STATE_DETACHED);
}

DEFINE_VECTOR(thread_list, struct thread_data);

/* What the runtime records of an exception that a thread throws or handles. */
struct exception_info {
    uint64_t previous; /* that of the exception in whose handling this one was thrown; 0: none */
    uint64_t object;   /* the exception; 0: none yet */
};

/* Whether the runtime describes these records. */
bool exception_info_described(const struct reader *reader);

/* GetNestedExceptionInfo of the Exception contract. False, and the reader fails, if it cannot be read. */
bool exception_info_read(struct reader *reader, uint64_t address, struct exception_info *ret);

/* What a Thread says of exceptions and its managed object. Addresses of objects; 0: none, or not described. */
struct thread_objects {
    uint64_t exception_info; /* of the exception that is being thrown or handled, the innermost */
    uint64_t last_thrown;    /* handled since, unless it is that one */
    bool unhandled;          /* the runtime ends the process because of `last_thrown`: FailFast, a fatal error */
    uint64_t exposed;        /* System.Threading.Thread */
};

/* False, and the reader fails, when it cannot be read. */
bool thread_read_objects(struct reader *reader, uint64_t address, struct thread_objects *ret);

/* What a thread is blocked on, as the runtime tells its debugger. .NET 8 to 10 describe monitors only. */
enum thread_blocking_kind {
    THREAD_BLOCKED_ENTERING, /* Monitor.Enter */
    THREAD_BLOCKED_WAITING,  /* Monitor.Wait */
};

struct thread_blocking {
    enum thread_blocking_kind kind;
    uint64_t sync_block; /* whose monitor it is */
    uint32_t timeout;    /* milliseconds; UINT32_MAX: without end */
};

/*
 * What a Thread is blocked on, the innermost. False, without failing, if it is blocked on no monitor or the runtime
 * does not describe it; false, and the reader fails, if that cannot be read.
 */
bool thread_read_blocking(struct reader *reader, uint64_t address, struct thread_blocking *ret);

/* The Thread that runs finalizers; 0 if that is not described. The reader may fail. */
uint64_t thread_of_finalizers(struct reader *reader);

/* Whether a Thread is the one that runs finalizers. False also if that is not described; the reader may fail. */
bool thread_is_finalizer(struct reader *reader, uint64_t address);

/* GetThreadData. False, and the reader fails, when it cannot be read. */
bool thread_read(struct reader *reader, uint64_t address, struct thread_data *ret);

/*
 * GetThreadStoreData and the list that begins there: every Thread, in the runtime's order. False, and the reader fails,
 * when the list cannot be read to its end or has a cycle; the Threads before are listed, each once. The caller frees
 * *ret in either case.
 */
bool thread_list_read(struct reader *reader, struct thread_list *ret);

/*
 * The Thread that has suspended, or is about to suspend, all others that run managed code: for a garbage collection, or
 * to replace code. 0: there is none, or the runtime does not describe it. The reader fails when it cannot be read.
 */
uint64_t thread_suspending(struct reader *reader);

#endif
