/*
 * ending.h: how the runtime ended a process, found by one walk of the thread that died. The text that it then
 * wrote (src/ending/last_words.c) is made from the same walk.
 */
#ifndef CDACQ_ENDING_ENDING_H
#define CDACQ_ENDING_ENDING_H

#include "cdacq/last_words.h"
#include "contracts/stack_walk/call_stack.h"
#include "src/ending/native_ending.h"
#include "src/lookup/opened_session.h"
#include "target/threads.h"

struct text;

enum {
    FIRST_FRAMES = 3,  /* methods of FailFast that are looked at */
    HIDDEN_SLOTS = 256 /* recent methods, and whether stack traces hide them */
};

/* A managed frame at the end of the stack. */
struct first_frame {
    uint64_t method_desc, sp, cfa;
};

/* Whether a method is hidden, of the last ones that were asked about. */
struct hidden_slot {
    uint64_t method_desc;
    bool hidden;
};

struct ending {
    struct cdacq_session *session;
    struct cdacq_thread thread; /* that died */
    const char *runtime_path;
    int pid;
    struct call_stack stack;
    bool of_runtime;    /* the runtime called abort(), or the C++ library, which did */
    bool is_unordered;  /* managed frames are on several stacks, an outer one below an inner one */
    uint64_t last_sp;   /* of the last managed frame */
    bool is_inferred;   /* that is only assumed: the native frames that would show it are missing */
    bool is_in_runtime; /* managed code shows it, too */
    bool of_cplusplus;  /* the C++ library called abort() */
    bool terminates;    /* in std::terminate() */
    bool has_funclet;   /* a handler is on the stack */
    bool interrupted;   /* managed code faulted, and the stack begins there */
    bool has_source;    /* FailFast was called with a source, which may be missing */
    bool is_overflow;   /* the fatal exception of the thread is a stack overflow */
    bool unverified;    /* the kind rests on a file that nothing confirms */
    unsigned managed;   /* frames in `first` */
    struct first_frame first[FIRST_FRAMES];
    struct hidden_slot hidden[HIDDEN_SLOTS];
    struct native_ending *native; /* of NativeAOT: how its runtime ended the process; or NULL */
    struct cdacq_end end;
};

/*
 * Sets *ret to what the session keeps until the next call, and of a core for good: the walk of a stack that
 * has overflowed takes much of the work that is allowed. Fails as cdacq_session_get_end does.
 */
enum cdacq_status ending_find(struct cdacq_session *session, struct ending **ret, struct cdacq_error *err);

/* Drops what a session keeps of how the process ended. */
void ending_forget(struct cdacq_session *session);

/* Appends Type.ToString() of an exception, printable. Returns its flaws (enum exception_text_flaw). */
unsigned ending_exception_type(struct cdacq_session *session, uint64_t address, struct text *ret);

/*
 * Whether there was no memory for the text of the OutOfMemoryException that nobody caught: forming it threw another
 * one, or there had been none for its stack trace. Exceptions that the runtime makes ahead of time have no stack trace.
 */
bool ending_lacks_text(struct ending *ending);

/* The metadata of the core library, which a type of it leads to. NULL: not known. */
const struct metadata *ending_core_library(struct cdacq_session *session);

/*
 * Forms the name of a method as the runtime writes it in such a text; empty if it cannot be read. Returns whether it
 * rests on a file that nothing confirms.
 */
bool ending_form_name(struct cdacq_session *session, const struct metadata *core, uint64_t method_desc,
                      struct text *ret);

#endif
