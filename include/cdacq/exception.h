/*
 * cdacq/exception.h: the exceptions of a target: what Exception.ToString() returns, from memory alone.
 *
 * No code of the target runs. The library makes the messages that types of the framework make from their fields
 * (parameter names, lists of inner exceptions, file names). If a type of the program overrides Message, ToString or
 * StackTrace, the stored fields are written instead, and a flaw says so. Source: dotnet/runtime
 * docs/design/datacontracts/Exception.md; src/libraries/System.Private.CoreLib/src/System/Exception.cs.
 */
#ifndef CDACQ_EXCEPTION_H
#define CDACQ_EXCEPTION_H

#include <cdacq/session.h>

CDACQ_BEGIN_DECLS

/* How a text differs from that of the runtime: a bit each. */
enum cdacq_exception_flaw {
    CDACQ_EXCEPTION_OVERRIDDEN = 1 << 0, /* code of the target would have to run: has stored fields instead */
    CDACQ_EXCEPTION_CUT = 1 << 1,        /* too long, too deep, or a cycle (docs/limits.md) */
    CDACQ_EXCEPTION_MISSING = 1 << 2,    /* something could not be read, and is left out */
    /*
     * A part can be wrong: it was found by a search (cdacq/last_words.h); or it is a number with a sign or a point,
     * which the runtime writes as the thread's culture does; or it is a text of the framework's resources, and the
     * process may have other texts: a translation, or the keys of the texts (System.Resources.UseSystemResourceKeys).
     */
    CDACQ_EXCEPTION_INFERRED = 1 << 3,
    /* Names or lines come from a file that nothing in the target could confirm: it may be that of another build. */
    CDACQ_EXCEPTION_UNVERIFIED = 1 << 4,
};

/* An exception object. The caller sets `size`. The session owns the string: see struct cdacq_method. */
struct cdacq_exception {
    size_t size;
    uint64_t address;
    const char *type;     /* as Type.ToString() gives it, perhaps from an unverified file; printable UTF-8; or NULL */
    uint64_t inner;       /* the address of InnerException, or 0 */
    int32_t hresult;      /* HResult */
    uint32_t frame_count; /* frames of its stack trace */
    bool thrown;          /* it has a stack trace, perhaps without frames */
};

/*
 * Reads the exception object at `address`. Fails with ARGUMENT, or with CORRUPT, MEMORY or FIELD if it cannot be read,
 * and then leaves *ret untouched. Does not check that the object is an exception.
 */
CDACQ_API enum cdacq_status cdacq_session_get_exception(struct cdacq_session *session, uint64_t address,
                                                        struct cdacq_exception *ret, struct cdacq_error *err);

/* A frame of an exception's stack trace. Frame 0 threw. */
struct cdacq_exception_frame {
    size_t size;
    uint64_t ip; /* in the instruction; in a caller, one less than the return address */
    uint64_t method_desc;
    bool last_of_foreign; /* the frames that follow were added when the exception was thrown again elsewhere */
};

/*
 * Calls `visit` for each frame that the exception object recorded, the one that threw first. CDACQ_STOPPED: `visit`
 * returned non-zero. Fails as cdacq_session_get_exception does, and with FUEL after 200,000 frames if there are more.
 * `visit` must not use the session.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_exception_frames(struct cdacq_session *session, uint64_t address,
                                                                 int (*visit)(const struct cdacq_exception_frame *frame,
                                                                              void *context),
                                                                 void *context, struct cdacq_error *err);

/*
 * Passes the text of Exception.ToString() to `write`, in pieces. CDACQ_STOPPED: `write` returned non-zero. Source lines
 * are those of cdacq_session_source_at. The text is any UTF-8, up to 64 MiB: escape it before you print it. *ret_flaws
 * is a set of enum cdacq_exception_flaw, or 0 if the text is exactly that of the runtime. `write` must not use the
 * session. Fails as cdacq_session_get_exception does, before anything is written.
 */
CDACQ_API enum cdacq_status cdacq_session_write_exception(struct cdacq_session *session, uint64_t address,
                                                          int (*write)(const char *bytes, size_t length, void *context),
                                                          void *context, unsigned *ret_flaws, struct cdacq_error *err);

/* An exception that a thread throws or handles. */
struct cdacq_nested_exception {
    size_t size;
    uint64_t info;   /* address of the runtime's record of it (ExceptionInfo) */
    uint64_t object; /* the exception; 0: the runtime has not made it yet */
};

/*
 * Calls `visit` for the exceptions that a thread throws or handles: the innermost, which is `exception` of struct
 * cdacq_thread, then the one in whose handling it was thrown, and so on. `thread` is the address of a Thread, as struct
 * cdacq_thread has it. An exception that is thrown again has two records of one object in .NET 9 and later. These
 * runtimes also keep an exception whose handler threw the next until the handler of that one returns; .NET 8 does not.
 * CDACQ_STOPPED: `visit` returned non-zero. Fails with ARGUMENT, with CONTRACT if the runtime does not describe the
 * records, with CORRUPT for a cycle, with FUEL after 4,096 records, or with MEMORY; the records before that are
 * visited. `visit` must not use the session. Source: dotnet/runtime docs/design/datacontracts/Exception.md.
 */
CDACQ_API enum cdacq_status
cdacq_session_visit_nested_exceptions(struct cdacq_session *session, uint64_t thread,
                                      int (*visit)(const struct cdacq_nested_exception *nested, void *context),
                                      void *context, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
