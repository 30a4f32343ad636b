/*
 * cdacq/session.h: the method that owns an instruction pointer; the methods and code ranges of a target.
 */
#ifndef CDACQ_SESSION_H
#define CDACQ_SESSION_H

#include <cdacq/code_kind.h>
#include <cdacq/target.h>

CDACQ_BEGIN_DECLS

/* The state that one thread needs for its look-ups. It owns the strings in answers. One thread at a time may use it. */
struct cdacq_session;

/*
 * Creates a session; the caller destroys it before the target is closed. Fails with ARGUMENT, NOMEM, or, for a target
 * that was opened with CDACQ_OPEN_PARTIAL, with its `problem_status`.
 */
CDACQ_API enum cdacq_status cdacq_session_create(struct cdacq_target *target, struct cdacq_session **ret,
                                                 struct cdacq_error *err);

/* Frees the session and all strings in its answers. NULL is allowed. */
CDACQ_API void cdacq_session_destroy(struct cdacq_session *session);

/*
 * The session of a runtime, by its number (cdacq_options.runtime), of a target that was opened with
 * CDACQ_OPEN_ALL_RUNTIMES. It belongs to `session`, is destroyed with it, and under its rules. `session` itself has its
 * own number. NULL: the runtime cannot be read, or was not asked for.
 *
 * Two kinds of calls answer for all runtimes: look-ups of addresses (cdacq_session_method_at and _methods_at) and the
 * frames of stacks. All others are about the runtime of their session: its methods, ranges, Threads, objects, locks.
 */
CDACQ_API struct cdacq_session *cdacq_session_of_runtime(struct cdacq_session *session, unsigned runtime);

/* The target of the session's runtime, for calls that describe it. It is not to be closed if it is one of several. */
CDACQ_API struct cdacq_target *cdacq_session_target(const struct cdacq_session *session);

/* ---- Which method owns an instruction pointer -------------------------------------------------------------------- */

/* What an address is in. */
enum cdacq_answer {
    CDACQ_ANSWER_NONE,    /* the runtime is not known to have code at the address */
    CDACQ_ANSWER_MANAGED, /* a method owns the address, which is below the exact end of its code */
    CDACQ_ANSWER_STUB,    /* code that the runtime itself generates: precodes, jump stubs, delay-load thunks */
    CDACQ_ANSWER_ERROR,   /* the look-up failed */
};

#define CDACQ_OFFSET_UNKNOWN INT32_MIN

/*
 * One answer. The caller sets `size` before a call fills it. What is not known is 0, NULL or, for il_offset,
 * CDACQ_OFFSET_UNKNOWN.
 *
 * The session owns all strings in answers. Of a running process, which makes new methods for ever, they are valid until
 * the process is read again: until the next call on a session of the target or, with CDACQ_OPEN_KEEP, the first call
 * after cdacq_target_refresh or cdacq_target_stop. Calls from within a visit leave them valid. Of other targets, they
 * are valid until the session is destroyed, but `error` until the next call.
 */
struct cdacq_method {
    size_t size; /* sizeof(struct cdacq_method) of the caller */
    uint64_t ip; /* the address as the caller gave it */
    enum cdacq_answer answer;
    enum cdacq_code_kind kind;
    unsigned runtime;     /* the number of the one whose code this is (cdacq_options.runtime); 0 for ANSWER_NONE */
    bool module_verified; /* false: the answer uses a file that nothing in the target could confirm */
    bool cold;            /* the address is in the cold part */
    /* Whether the ReadyToRun code is prepared cannot be read: `error` says why, and `name` is complete. */
    bool prepared_unknown;
    /*
     * The code is an async thunk, which the runtime makes (since .NET 11). It stands for the method that `name` and
     * `token` name, and calls the method's own code, which has the same name and token. The runtime's stack traces
     * leave thunks out. False also if that is not known, as of code that is not prepared.
     */
    bool async_thunk;
    const char *name; /* in the target's enum cdacq_name_style; printable UTF-8, NUL-terminated */
    size_t name_length;
    const char *module;   /* path of the module that declares the method, as the target names it */
    uint64_t method_desc; /* 0 for ReadyToRun code that the runtime has not prepared; see prepared_unknown */
    const char *tier;     /* of JIT code: Tier0, Tier1, Tier1OSR, Optimized, Tier0Instrumented or Tier1Instrumented */
    uint32_t token;       /* MethodDef token in `module`, 0x06...; 0 for dynamic methods */
    int32_t il_offset;    /* of the code at the address, by the rule of the runtime's stack traces */
    uint64_t code_start;  /* start of the hot part, also for an address in the cold part */
    uint64_t code_size;   /* size of the whole hot part, including funclets */
    uint64_t cold_start;  /* start of the cold part; 0 if there is none */
    uint64_t cold_size;
    uint64_t offset;        /* from code_start; in the cold part: code_size plus the offset from cold_start */
    uint64_t funclet_start; /* equals code_start outside funclets, also in the cold part of the body; 0: not known */
    const char *file;       /* the path of the source file when the module was built */
    const char *source_url; /* where the text of `file` is, by Source Link */
    uint32_t line;          /* from 1, in `file`, by the rule of the runtime's stack traces; see cdacq/source.h */
    uint32_t column;        /* from 1, where the statement at `line` begins */
    const char *error;      /* one line: why the look-up failed, why `name` is NULL, or what is missing */
};

/*
 * Finds the method that owns `ip`. CDACQ_OK: *ret describes a managed method. CDACQ_NOT_MANAGED: *ret describes a stub
 * or nothing. Negative: the look-up failed, and *ret is untouched.
 */
CDACQ_API enum cdacq_status cdacq_session_method_at(struct cdacq_session *session, uint64_t ip,
                                                    struct cdacq_method *ret, struct cdacq_error *err);

/*
 * Does the same for `count` addresses and writes every element of `ret`; a look-up that fails gives CDACQ_ANSWER_ERROR.
 * The caller sets the `size` of the first element, which is the distance between elements; the call sets the others. A
 * large batch is fast: the methods of a code range are indexed once, and each look-up is then a search in that index.
 * Every `error` is valid until the next call on the session. Fails with ARGUMENT, or with IO when a running process has
 * ended: the elements that are not answered then have CDACQ_ANSWER_ERROR.
 */
CDACQ_API enum cdacq_status cdacq_session_methods_at(struct cdacq_session *session, const uint64_t *ips, size_t count,
                                                     struct cdacq_method *ret, struct cdacq_error *err);

enum cdacq_visit_flags {
    CDACQ_VISIT_STUBS = 1 << 0,    /* also visit stubs */
    CDACQ_VISIT_R2R_ALL = 1 << 1,  /* every method of the ReadyToRun images, not only the prepared ones */
    CDACQ_VISIT_R2R_NONE = 1 << 2, /* no method of the ReadyToRun images */
};

/*
 * Calls `visit` for every method of the process, ordered by start address. A code range that cannot be read is reported
 * as one element with CDACQ_ANSWER_ERROR. A last such element, at address 0, reports code that cannot even be located:
 * ranges and, unless the flags ask for all methods of the images or for none, methods whose state (prepared or not)
 * cannot be read. CDACQ_STOPPED: `visit` returned non-zero. Fails where the range section map cannot be read at all;
 * and with IO if a running process has ended or executed another program before all of its code was visited.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_methods(struct cdacq_session *session, unsigned flags,
                                                        int (*visit)(const struct cdacq_method *method, void *context),
                                                        void *context, struct cdacq_error *err);

/* ---- Code ranges ------------------------------------------------------------------------------------------------- */

/* A range of addresses that the runtime's range section map covers, or that has stubs outside of it. */
struct cdacq_code_range_info {
    size_t size;
    uint64_t begin, end;
    const char *kind;   /* "jit", "r2r", "stubs", "interpreter"; a static string */
    const char *module; /* path of the image of ReadyToRun code; otherwise NULL */
    bool collectible;
};

/*
 * Calls `visit` for every code range, ordered by address. CDACQ_STOPPED: `visit` returned non-zero. Fails where the
 * range section map cannot be read: with MEMORY after the visit if there may be more ranges, because parts of the map
 * are missing. Fails with IO, without a visit, if a running process has ended or executed another program.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_code_ranges(struct cdacq_session *session,
                                                            int (*visit)(const struct cdacq_code_range_info *range,
                                                                         void *context),
                                                            void *context, struct cdacq_error *err);

/*
 * Checks what this build takes for granted of the runtime's layout, by a few reads: the list of threads begins with
 * threads of the process and has as many as the runtime counts, the core library's Module is that of a mapped image,
 * and the range section map has ranges. A runtime since .NET 11 also publishes the names that 11.0.0 does, and its
 * contracts in versions that this build reads. CORRUPT if not: *err names what the runtime lays out in a way that this
 * build does not know. What does not rest on that is right. OK also where it cannot be checked: in a running process
 * that is not stopped, or where a core lacks memory.
 */
CDACQ_API enum cdacq_status cdacq_session_check_layout(struct cdacq_session *session, struct cdacq_error *err);

/*
 * Checks whether the target and its files hold what finding methods in the code range around `address` takes; if not,
 * *err names what is missing, which may be the part of the range section map that says whether there is a range. Fails
 * with IO if a running process has ended or executed another program. CDACQ_NOT_MANAGED: no code range contains the
 * address.
 */
CDACQ_API enum cdacq_status cdacq_session_check_code_range(struct cdacq_session *session, uint64_t address,
                                                           struct cdacq_error *err);

CDACQ_END_DECLS

#endif
