/*
 * cdacq/stack.h: the threads of a target and the frames of their stacks.
 */
#ifndef CDACQ_STACK_H
#define CDACQ_STACK_H

#include <cdacq/session.h>

CDACQ_BEGIN_DECLS

/* ---- Threads ----------------------------------------------------------------------------------------------------- */

/*
 * The registers of a thread or a frame. The index is the DWARF number of the register in the processor
 * supplement of the ELF ABI. On x86-64, 6 is rbp, 7 is rsp, and 16 is the program counter. On AArch64, 29 is x29, 30 is
 * the link register, 31 is sp, and 32, which is not a DWARF number, is the program counter. On x86-64, 17 to 32 are the
 * low halves of xmm0 to xmm15, of a thread and its innermost frame.
 */
struct cdacq_registers {
    size_t size;         /* sizeof(struct cdacq_registers) of the caller */
    uint64_t known;      /* a bit for each register whose value is known */
    uint64_t values[64]; /* 0 if not known */
};

/*
 * Some bits of the runtime's state of a thread. Source: dotnet/runtime docs/design/datacontracts/Thread.md and
 * src/coreclr/vm/threads.h.
 */
enum cdacq_thread_state {
    CDACQ_THREAD_BACKGROUND = 0x200,  /* the process does not wait for its end */
    CDACQ_THREAD_EXITING = 0x10000,   /* it has ended, or has run Main and waits for the foreground threads to end */
    CDACQ_THREAD_POOL = 0x1000000,    /* a worker of the thread pool, or a thread that serves it */
    CDACQ_THREAD_WAITING = 0x2000000, /* it sleeps, waits or joins */
};

/* What a thread did at the moment that the target shows. Known on x86-64 only, and not of the caller's memory. */
enum cdacq_thread_mode {
    CDACQ_MODE_UNKNOWN,
    CDACQ_MODE_KERNEL, /* it was in a system call, as a waiting thread is */
    CDACQ_MODE_USER,   /* it was in no system call: it ran, or was ready to run */
};

/* What a system call does, or waits for. */
enum cdacq_call_kind {
    CDACQ_CALL_OTHER,
    CDACQ_CALL_READ, /* of a file, a pipe or a terminal */
    CDACQ_CALL_WRITE,
    CDACQ_CALL_RECEIVE, /* from a socket */
    CDACQ_CALL_SEND,
    CDACQ_CALL_ACCEPT, /* a connection */
    CDACQ_CALL_CONNECT,
    CDACQ_CALL_POLL,  /* for one of several descriptors, or a time */
    CDACQ_CALL_LOCK,  /* the lock of a file: flock, or fcntl with F_SETLKW */
    CDACQ_CALL_CHILD, /* for a child process */
    CDACQ_CALL_SLEEP,
    CDACQ_CALL_FUTEX, /* for another thread: locks and events of the process wait so */
};

/* A system call that a thread was in. What pointers point to is valid as long as that of the thread. */
struct cdacq_system_call {
    size_t size;
    enum cdacq_call_kind kind;
    unsigned number;  /* the kernel's, on x86-64 */
    const char *name; /* "recvmsg"; NULL: not known */
    int descriptor;   /* that it uses; -1: none, or not known */
    /*
     * Of CDACQ_CALL_CHILD: the process, in the caller's pid namespace; of a core, as the thread knew it. 0: any, or not
     * known.
     */
    int child;
    /* Of a running process: */
    const char *file;  /* what the descriptor leads to: a path, or the kernel's "pipe:[123]"; NULL: not known */
    const char *local; /* of a socket: its own address, "127.0.0.1:80" or a path; NULL: not known */
    const char *peer;  /* the other end's; NULL: not known, or it has none */
    /*
     * Of CDACQ_CALL_LOCK: the process that took the lock, in the caller's pid namespace; it may be the process itself,
     * through another descriptor. One that has ended left the lock to a process that it started. 0: not known.
     */
    int holder;
};

/* A thread. The library sets `size`. What pointers point to is valid until the callback returns. */
struct cdacq_thread {
    size_t size;
    int tid;             /* the kernel's id, in the caller's pid namespace; of a core, as it was written */
    uint64_t thread;     /* address of the runtime's Thread; 0: the runtime does not know the thread */
    uint32_t managed_id; /* the runtime's id; 0: not known */
    int signal;          /* of a core: the signal that the thread got; 0: none */
    bool died;           /* of a core: that signal ended the process */
    const char *name;    /* that the program gave it, or else the kernel's; NULL: not known */
    const struct cdacq_registers *registers;
    uint64_t exception;        /* object that is being thrown or handled, the innermost (cdacq/exception.h); 0: none */
    uint64_t last_thrown;      /* object of the last exception; handled since, unless it is `exception`; 0: none */
    bool last_thrown_is_fatal; /* the runtime ended the process because of it: FailFast or a fatal error */
    uint32_t state;            /* bits of the runtime: enum cdacq_thread_state and others; 0: not known */
    enum cdacq_thread_mode mode;
    /*
     * The runtime has suspended the other threads of managed code for this one, or is about to, as for a garbage
     * collection. False also if that is not known, as with the server collector.
     */
    bool suspends_others;
    /*
     * The runtime is about to suspend all threads, and waits for this one, which runs managed code or native code that
     * was called without telling the runtime (SuppressGCTransition). False also if that is not known, as on .NET 8.
     */
    bool delays_suspension;
    const struct cdacq_system_call *call; /* NULL: it was in none, or that is not known, as on all but x86-64 */
};

/*
 * Calls `visit` for every thread: the one that died, then the others in the order of the core or of /proc.
 * CDACQ_STOPPED: `visit` returned non-zero. Fails with ARGUMENT if the target has no threads: a live process that is
 * not stopped (by CDACQ_OPEN_STOP or cdacq_target_stop), a core without registers, caller's memory without threads, an
 * image. If the runtime's list of Threads cannot be read, the threads are visited without `thread`. If a core has more
 * than 65,536 threads, the further ones are left out. If the registers of a thread of a process cannot be read, it is
 * visited with none that is known. In these cases the call fails after the visit, and *err says why.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_threads(struct cdacq_session *session,
                                                        int (*visit)(const struct cdacq_thread *thread, void *context),
                                                        void *context, struct cdacq_error *err);

/*
 * What the runtime does at one moment, in numbers that cost little to read: many calls in a second show for which part
 * of it garbage was collected, and whether exceptions are thrown. The library sets all fields but `size`.
 */
struct cdacq_activity {
    size_t size;
    /*
     * The threads of managed code are suspended, or are about to be, as for a garbage collection. With
     * `suspension_partly`, only the part of a collection that moves or frees objects counts: the server collector tells
     * no more. False also if nothing is known.
     */
    bool suspended, suspension_partly;
    bool suspension_known;
    uint32_t thread_count; /* the runtime's Threads that were looked at, at most 4,096 */
    uint32_t throwing;     /* of these, those that throw an exception or handle one */
    /*
     * Of these, those whose last exception is another one than at the call before on this session. At least so many
     * exceptions were thrown since; a collection that moves an exception adds one. 0 at the first call.
     */
    uint32_t thrown;
};

/*
 * Reads what the runtime does, of one that runs or is stopped, without stopping it. Of a process that runs, a number
 * can be wrong by what changes while it is read. Of several runtimes, it is that of the session. Fails with CONTRACT if
 * the runtime publishes no Thread contract that this build reads, and with the statuses of cdacq/error.h for what
 * cannot be read. Source: dotnet/runtime docs/design/datacontracts/Thread.md and GC.md.
 */
CDACQ_API enum cdacq_status cdacq_session_get_activity(struct cdacq_session *session, struct cdacq_activity *ret,
                                                       struct cdacq_error *err);

/* ---- Frames ------------------------------------------------------------------------------------------------------ */

/* What the code of a frame is. */
enum cdacq_frame_kind {
    CDACQ_FRAME_NATIVE,   /* native code, or code of an unknown kind */
    CDACQ_FRAME_MANAGED,  /* a method's body */
    CDACQ_FRAME_FUNCLET,  /* a handler, filter or finally block of a method */
    CDACQ_FRAME_STUB,     /* code that the runtime itself generates */
    CDACQ_FRAME_SIGNAL,   /* the trampoline that the kernel returns to from a signal handler */
    CDACQ_FRAME_EXPLICIT, /* a Frame of the runtime, which has no code; only with CDACQ_FRAMES_EXPLICIT */
    CDACQ_FRAME_ASYNC,    /* an async method that waits, which has no frame; only with CDACQ_FRAMES_ASYNC */
};

/* How a frame was found. */
enum cdacq_frame_source {
    CDACQ_FRAME_BY_CONTEXT, /* the registers that the walk began with */
    CDACQ_FRAME_BY_UNWIND,  /* the unwind data of the managed code that it called, or the form of a stub */
    CDACQ_FRAME_BY_CFI,     /* the call-frame information of the native code that it called, or its instructions */
    CDACQ_FRAME_BY_FRAME,   /* a Frame of the runtime */
    /*
     * The frame pointer, or a word of the stack that looks like a return address. Each further frame rests on the same
     * guess, until a Frame of the runtime confirms the walk. Such a frame can be wrong, and others can be missing.
     */
    CDACQ_FRAME_BY_GUESS,
    CDACQ_FRAME_BY_AWAIT, /* the objects that lead from an async method to the one that awaits it */
};

/* The kind of a funclet. */
enum cdacq_funclet_kind {
    CDACQ_FUNCLET_NONE, /* not a funclet, or its kind is not known */
    CDACQ_FUNCLET_CATCH,
    CDACQ_FUNCLET_FILTER,
    CDACQ_FUNCLET_FINALLY,
    CDACQ_FUNCLET_FAULT,
};

/* One frame. The library sets `size`. What pointers point to is valid until the callback returns. */
struct cdacq_frame {
    size_t size;
    unsigned index; /* 0 is the innermost; of a frame without code, that of the next one with code */
    enum cdacq_frame_kind kind;
    enum cdacq_frame_source by;
    enum cdacq_funclet_kind funclet;
    bool is_call; /* `pc` is a return address: the call is the instruction before it */
    uint64_t pc, sp;
    uint64_t cfa; /* the stack pointer of the caller, as its call left it; 0: not known */
    /*
     * The method or stub; NULL for native code, unless the look-up failed (see its `answer`). `ip` is `pc`, and
     * `offset` is that of `pc`. What depends on the instruction, such as `il_offset`, is that of the call.
     */
    const struct cdacq_method *method;
    const char *symbol; /* of native code; NULL: not known */
    uint64_t symbol_offset;
    const char *module; /* path of the image that native code is in; NULL: not known */
    uint64_t module_offset;
    uint64_t frame;                          /* address of an explicit Frame; else 0 */
    const char *frame_name;                  /* of an explicit Frame: "InlinedCallFrame"; NULL: its kind is not known */
    const struct cdacq_registers *registers; /* those that are known; NULL for an explicit Frame */
    bool after_gap;      /* frames may be missing before it: the walk found no caller there, and went on with a Frame */
    bool files_verified; /* false: its native symbol, or how it was found, rests on a file that nothing confirms */
    uint64_t object;     /* of an async method: a Continuation, or the box of a state machine; else 0 */
};

enum cdacq_frames_flags {
    CDACQ_FRAMES_EXPLICIT = 1 << 0, /* also visit the runtime's Frames, where they are on the stack */
    CDACQ_FRAMES_CALLER = 1 << 1,   /* the registers are those of a caller: the program counter is a return address */
    CDACQ_FRAMES_ASYNC = 1 << 2,    /* also visit async methods that wait for what the thread does, or it for them */
};

/*
 * Calls `visit` for the frames of a thread, from the innermost to the outermost. `thread` is one that
 * cdacq_session_visit_threads passed, or a struct whose `size` and `thread` the caller set: it leads to the
 * runtime's Frames. If it is NULL, the walk uses no Frames. The walk begins with `registers`, or with those of `thread`
 * if `registers` is NULL; the program counter and the stack pointer must be known. `visit` may use the session.
 * CDACQ_OK: the outermost frame was visited. CDACQ_STOPPED: `visit` returned non-zero. Negative: the walk ended before
 * the outermost frame, and *err says why; the frames that were visited are valid. Fails with ARGUMENT, and with
 * CONTRACT if this build does not walk stacks of the target's architecture. Source: dotnet/runtime
 * docs/design/datacontracts/StackWalk.md.
 *
 * With CDACQ_FRAMES_ASYNC, async methods are visited where they would be if they had not been suspended. If the thread
 * runs async code, the methods that await it come before the frame of the runtime's method that resumed it. If the
 * thread waits for a task, the methods of the task that are suspended come before the frame of the method that waits.
 * `method` says where a method awaits; of its numbers, only `token` and `il_offset` are known of a state machine. The
 * chain ends where several methods await one task, and where a task completes that keeps no list of what it waits for
 * (Task.WhenAll without results). It needs a thread of cdacq_session_visit_threads.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_frames(struct cdacq_session *session, const struct cdacq_thread *thread,
                                                       const struct cdacq_registers *registers, unsigned flags,
                                                       int (*visit)(const struct cdacq_frame *frame, void *context),
                                                       void *context, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
