/*
 * cdacq/last_words.h: how the runtime ended a process, and what it wrote to standard error as it did.
 *
 * No code of the target runs: the library forms the text from memory, as the runtime did. Source: dotnet/runtime
 * src/coreclr/vm/{eepolicy,excep}.cpp.
 */
#ifndef CDACQ_LAST_WORDS_H
#define CDACQ_LAST_WORDS_H

#include <cdacq/exception.h>

CDACQ_BEGIN_DECLS

/* How the runtime ended a process. */
enum cdacq_end_kind {
    CDACQ_END_NONE,           /* the runtime did not end the process, or the target does not show it */
    CDACQ_END_UNHANDLED,      /* an exception that no handler caught */
    CDACQ_END_OUT_OF_MEMORY,  /* the same for System.OutOfMemoryException, which .NET up to 10 does not describe */
    CDACQ_END_FAIL_FAST,      /* Environment.FailFast, or an assertion that failed */
    CDACQ_END_STACK_OVERFLOW, /* a stack is full */
    CDACQ_END_FATAL,          /* an access violation in managed code, or an error in the runtime */
    CDACQ_END_TERMINATED,     /* the C++ library did (.NET 9: an exception left managed code that native code called) */
};

/* The end of a process. The caller sets `size`. */
struct cdacq_end {
    size_t size;
    enum cdacq_end_kind kind;
    int tid; /* of the thread that died; 0: none did, or it died of another signal than the runtime's */
    /*
     * The exception that nobody caught, that stands for the access violation or that was passed to FailFast. If the C++
     * library ended the process: the last exception of the thread. 0: none.
     */
    uint64_t exception;
    uint64_t message; /* the string that was passed to FailFast; 0: none */
    uint64_t source;  /* the string that precedes it, for an assertion: "Assertion Failed"; 0: none */
    unsigned flaws;   /* enum cdacq_exception_flaw */
};

/*
 * Reports how the runtime ended the process. The flaw INFERRED means one of these:
 *
 * - A search of the frame of FailFast found an argument (.NET 9 and later).
 * - The kind of a fatal error follows from the stack (.NET 8).
 * - Native frames are missing that would show that the runtime ended the process (musl).
 * - Native code has switched stacks, and an outer one is lower in memory: the runtime may list the methods otherwise.
 * - The C++ library ended the process (CDACQ_END_TERMINATED), so `exception` may have been handled before.
 *
 * Fails as cdacq_session_visit_threads does.
 */
CDACQ_API enum cdacq_status cdacq_session_get_end(struct cdacq_session *session, struct cdacq_end *ret,
                                                  struct cdacq_error *err);

/*
 * Passes what the runtime wrote to standard error to `write`, in pieces; nothing for CDACQ_END_NONE and
 * CDACQ_END_TERMINATED. CDACQ_STOPPED: `write` returned non-zero. The text is any UTF-8, up to 64 MiB: escape it before
 * you print it. *ret_flaws is a set of enum cdacq_exception_flaw. A text that contains NUL is complete here; the
 * runtime writes it only up to the NUL. If .NET 11 had no memory to describe an OutOfMemoryException, the text has the
 * flaw INFERRED. `write` must not use the session. Fails as cdacq_session_get_end does.
 */
CDACQ_API enum cdacq_status cdacq_session_write_last_words(struct cdacq_session *session,
                                                           int (*write)(const char *bytes, size_t length,
                                                                        void *context),
                                                           void *context, unsigned *ret_flaws, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
