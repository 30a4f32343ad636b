/*
 * native_ending.h: how the runtime of a NativeAOT program ended the process, and what it wrote as it did. Before it
 * calls abort(), that runtime writes a report in JSON to a buffer of its own: the reason, the message and the
 * exception. The buffer is found by how the report begins, which has the address of the program. The stack of the
 * thread that died has the methods that FailFast lists.
 * Source: dotnet/runtime
 * src/coreclr/nativeaot/System.Private.CoreLib/src/System/{RuntimeExceptionHelpers,CrashInfo}.cs.
 */
#ifndef CDACQ_ENDING_NATIVE_ENDING_H
#define CDACQ_ENDING_NATIVE_ENDING_H

#include "util/base.h"
#include "util/vector.h"

struct cdacq_session;
struct cdacq_thread;

enum native_reason {
    NATIVE_REASON_UNKNOWN,
    NATIVE_REASON_UNHANDLED,
    NATIVE_REASON_FAIL_FAST,
    NATIVE_REASON_INTERNAL,
};

/* Addresses of the stack, the innermost first. */
DEFINE_VECTOR_TYPE(native_frames, uint64_t);

struct native_ending {
    enum native_reason reason;
    char *message;               /* NULL: none */
    bool message_cut;            /* it may be longer */
    uint64_t message_object;     /* the string; 0: not found */
    const char *source;          /* the word before the message of an assertion; NULL: not known */
    bool is_assertion;           /* one that failed: FailFast has a word for it, and lists no stack */
    uint64_t exception;          /* 0: none */
    struct native_frames frames; /* from FailFast on */
    bool frames_cut;             /* the walk of the stack ended early */
    bool is_inferred;            /* there is no report; the stack and the thread's exception show that there was one */
};

/* Finds it, for a thread that died. NULL: the runtime did not end the process, or out of memory. */
struct native_ending *native_ending_find(struct cdacq_session *session, const struct cdacq_thread *thread);
void native_ending_free(struct native_ending *ending);

/* Writes the text by `put`; exceptions by `put_exception`. Returns flaws (enum cdacq_exception_flaw). */
struct native_words {
    void (*put)(void *context, const char *bytes, size_t length);
    void (*put_exception)(void *context, uint64_t exception);
    void *context;
};

unsigned native_ending_write(struct cdacq_session *session, const struct native_ending *ending,
                             const struct native_words *words);

#endif
