/*
 * cdacq/session.h: which method owns an instruction pointer, and all methods and code ranges of a target.
 */
#ifndef CDACQ_SESSION_H
#define CDACQ_SESSION_H

#include <cdacq/code_kind.h>
#include <cdacq/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What one thread needs to ask: read hints and the names it has formed. Strings in answers live as long as it does. */
struct cdacq_session;

CDACQ_API enum cdacq_status cdacq_session_create(struct cdacq_target *target, struct cdacq_session **ret,
                                                 struct cdacq_error *err);
CDACQ_API void cdacq_session_destroy(struct cdacq_session *session);

/* ---- Which method owns an instruction pointer -------------------------------------------------------------------- */

enum cdacq_answer {
    CDACQ_ANSWER_NONE,    /* nothing of the runtime's is known to be there */
    CDACQ_ANSWER_MANAGED, /* a method owns the address: it lies within the method's real end */
    CDACQ_ANSWER_STUB,    /* code of the runtime's own: precodes, jump stubs, delay-load thunks */
    CDACQ_ANSWER_ERROR,   /* it could not be told */
};

#define CDACQ_OFFSET_UNKNOWN INT32_MIN

/*
 * One answer. The caller sets `size` before a call fills it. Pointers are owned by the session, except `error`, which
 * the next call on the session overwrites. Numbers that are not known are 0, strings NULL, il_offset
 * CDACQ_OFFSET_UNKNOWN.
 */
struct cdacq_method {
    size_t size; /* sizeof(struct cdacq_method) of whoever provides it */
    uint64_t ip; /* as asked */
    enum cdacq_answer answer;
    enum cdacq_code_kind kind;
    uint64_t method_desc; /* 0 for ReadyToRun code that the runtime has not prepared */
    uint64_t code_start;  /* of the hot code, also for an address in the cold part */
    uint64_t code_size;   /* the whole hot part, funclets included */
    uint64_t cold_start;  /* of the cold part; 0 where there is none */
    uint64_t cold_size;
    uint64_t offset;        /* from code_start; in the cold part: the whole hot length plus the offset there */
    uint64_t funclet_start; /* equals code_start outside a funclet, in the cold part of the body too; 0: not known */
    uint32_t token;         /* methoddef token of `module`, 0x06...; 0 for dynamic methods */
    int32_t il_offset;
    uint32_t line;
    bool cold;
    bool module_verified; /* false: a file had to be used that nothing in the target could confirm */
    const char *name;     /* in the target's enum cdacq_name_style; printable UTF-8, NUL-terminated */
    size_t name_length;
    const char *module; /* path of the module that declares the method, as the target names it */
    const char *tier;   /* Tier0, Tier1, Tier1OSR, Optimized, Tier0Instrumented, Tier1Instrumented; of JIT code */
    const char *file;
    const char *error; /* one line, only with CDACQ_ANSWER_ERROR; or why `name` is NULL */
};

/*
 * Which method owns `ip`. CDACQ_OK: *ret holds a managed method. CDACQ_NOT_MANAGED: *ret tells stub or none. Negative:
 * it could not be told; *ret is untouched.
 */
CDACQ_API enum cdacq_status cdacq_session_method_at(struct cdacq_session *session, uint64_t ip,
                                                    struct cdacq_method *ret, struct cdacq_error *err);

/*
 * The same for `count` addresses; every element of `ret` is written, failures with CDACQ_ANSWER_ERROR. The caller sets
 * the `size` of the first element, which is the distance from one to the next; that of the others is written. Fast for
 * many: after some questions about a code range its methods are indexed once, and an answer is a search in memory.
 * Strings under `error` live until the next call on the session. Fails with ARGUMENT only.
 */
CDACQ_API enum cdacq_status cdacq_session_methods_at(struct cdacq_session *session, const uint64_t *ips, size_t count,
                                                     struct cdacq_method *ret, struct cdacq_error *err);

enum cdacq_visit_flags {
    CDACQ_VISIT_STUBS = 1 << 0,    /* also code of the runtime's own */
    CDACQ_VISIT_R2R_ALL = 1 << 1,  /* every method of the ReadyToRun images, not just those that were prepared */
    CDACQ_VISIT_R2R_NONE = 1 << 2, /* none of them */
};

/*
 * Calls `visit` for every method of the process, by start address. It returns 0 to go on; anything else ends the visit
 * with CDACQ_STOPPED. Code ranges that cannot be read are reported as one element with CDACQ_ANSWER_ERROR each, and at
 * the end, at address 0, those that could not even be found.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_methods(struct cdacq_session *session, unsigned flags,
                                                        int (*visit)(const struct cdacq_method *method, void *context),
                                                        void *context, struct cdacq_error *err);

/* ---- Code ranges ------------------------------------------------------------------------------------------------- */

/* A range of the process that the runtime's range section map covers. */
struct cdacq_code_range_info {
    size_t size;
    uint64_t begin, end;
    const char *kind;   /* "jit", "r2r", "stubs", "interpreter" */
    const char *module; /* of ReadyToRun code */
    bool collectible;
};

CDACQ_API enum cdacq_status cdacq_session_visit_code_ranges(struct cdacq_session *session,
                                                            int (*visit)(const struct cdacq_code_range_info *range,
                                                                         void *context),
                                                            void *context, struct cdacq_error *err);

/*
 * Whether the methods of the code range that holds `address` can be told from what the target and its files have; else
 * *err says what is missing. CDACQ_NOT_MANAGED where no range holds it.
 */
CDACQ_API enum cdacq_status cdacq_session_check_code_range(struct cdacq_session *session, uint64_t address,
                                                           struct cdacq_error *err);

#ifdef __cplusplus
}
#endif

#endif
