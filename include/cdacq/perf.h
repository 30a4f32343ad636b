/*
 * cdacq/perf.h: writing perf maps and jitdumps of a target, and comparing a target with such a file.
 */
#ifndef CDACQ_PERF_H
#define CDACQ_PERF_H

#include <cdacq/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

/*
 * Perf maps and jitdumps of a target, as its runtime writes them with DOTNET_PerfMapEnabled, also where it never did.
 * `flags` are those of cdacq_session_visit_methods; names are in the target's enum cdacq_name_style, CDACQ_NAMES_IL
 * being the runtime's. Code is told as the runtime tells it: a method with its funclets as one piece, the cold part of
 * a ReadyToRun method as another, behind each name the tier where it is known, in the words of these files
 * ("[OptimizedTier1]", "[PreJIT]",
 * "[PreJit-cold]"). A stub is
 * called "stub <FixupPrecode>", by its kind. Interpreted methods have no code of their own: none is written.
 *
 * What cannot be told is left out, never guessed, and takes nothing else with it: a part of the code that cannot be
 * read, a method without a name, and of a jitdump code of which a byte is missing.
 */

/* Where it goes. Each returns 0 to go on; anything else ends the writing with CDACQ_STOPPED. */
struct cdacq_sink {
    size_t size; /* sizeof(struct cdacq_sink) of the caller */
    void *context;
    int (*write)(const void *bytes, size_t size, void *context); /* the next bytes of the file */
    /*
     * A piece of code that is left out: from `code_start` on, `code_size` bytes; `error` says why, what else is known
     * of it is there too. May be NULL.
     */
    int (*left_out)(const struct cdacq_method *method, void *context);
};

struct cdacq_written {
    size_t size; /* sizeof(struct cdacq_written) of the caller */
    uint64_t bytes;
    uint64_t methods;    /* pieces of methods: lines or records */
    uint64_t stubs;      /* and of stubs */
    uint64_t left_out;   /* pieces */
    uint64_t unverified; /* of those written: by a file that nothing in the target could confirm */
};

/*
 * "0x7f21c8a31b40 1a NAME", one line for each piece of code. Fails, before anything is written, as
 * cdacq_session_visit_methods does. Source: tools/perf/Documentation/jit-interface.txt of Linux; dotnet/runtime
 * src/coreclr/vm/perfmap.cpp.
 */
CDACQ_API enum cdacq_status cdacq_session_write_perf_map(struct cdacq_session *session, unsigned flags,
                                                         const struct cdacq_sink *sink, struct cdacq_written *ret,
                                                         struct cdacq_error *err);

/*
 * A jitdump of version 1, in the target's byte order: its header, a JIT_CODE_LOAD with the bytes of each piece of code,
 * and JIT_CODE_CLOSE. When code was compiled, and by which thread, the target does not tell: the time of the records
 * counts 1, 2, 3, ..., nanoseconds of CLOCK_MONOTONIC, so that the code is older than any sample; the thread is the
 * process's first. Fails as cdacq_session_write_perf_map. Source: tools/perf/Documentation/jitdump-specification.txt of
 * Linux.
 */
CDACQ_API enum cdacq_status cdacq_session_write_jitdump(struct cdacq_session *session, unsigned flags,
                                                        const struct cdacq_sink *sink, struct cdacq_written *ret,
                                                        struct cdacq_error *err);

/* ---- Comparing --------------------------------------------------------------------------------------------------- */

/*
 * What becomes of a record of a jitdump or perf map that is compared with the target: name, text, whether it is a
 * contradiction, meaning. DAMAGED and UNTOLD are records that could not be compared.
 */
#define CDACQ_VERDICTS(X)                                                                                        \
    X(MATCH, "match", false, "start, size, name and code are the same")                                          \
    X(FREED, "freed", false, "its code was released")                                                            \
    X(REPLACED, "replaced", false, "a later record is of the same start")                                        \
    X(STUB, "stub", false, "code of the runtime's own")                                                          \
    X(LATER, "later", false, "newer than the target")                                                            \
    X(UNKNOWN_TO_TARGET, "unknown-to-target", true, "no method is there, and none can have been released there") \
    X(NAME_DIFFERS, "name-differs", true, "the method there is called something else")                           \
    X(RANGE_DIFFERS, "range-differs", true, "the method starts or ends elsewhere")                               \
    X(BYTES_DIFFER, "bytes-differ", true, "the target's memory holds other code")                                \
    X(MISSING_FROM_FILE, "missing-from-file", false, "JIT-compiled methods that no record is of")                \
    X(DAMAGED, "damaged", false, "records that make no sense")                                                   \
    X(UNTOLD, "untold", false, "the target lacks what telling takes")

enum cdacq_verdict {
#define CDACQ_VERDICT_(name, text, contradiction, meaning) CDACQ_VERDICT_##name,
    CDACQ_VERDICTS(CDACQ_VERDICT_)
#undef CDACQ_VERDICT_
        CDACQ_VERDICT_COUNT
};

/* "name-differs"; and its meaning, a few words. Static strings. */
CDACQ_API const char *cdacq_verdict_text(enum cdacq_verdict verdict);
CDACQ_API const char *cdacq_verdict_meaning(enum cdacq_verdict verdict);

/* Whether the file and the target contradict each other: UNKNOWN_TO_TARGET, NAME_, RANGE_DIFFERS, BYTES_DIFFER. */
CDACQ_API bool cdacq_verdict_is_contradiction(enum cdacq_verdict verdict);

/* A record of the file, or a method that it lacks. Everything it points to is good until `visit` returns. */
struct cdacq_comparison {
    size_t size;
    enum cdacq_verdict verdict;
    /* The record. Of MISSING_FROM_FILE all is 0. */
    uint64_t offset;    /* of the record or the line in the file */
    uint64_t line;      /* of a perf map, from 1; else 0 */
    uint64_t timestamp; /* of a jitdump */
    uint64_t address, code_size;
    const char *name; /* any bytes; NUL-terminated in no case */
    size_t name_length;
    /* What the target has there, or the method that the record is of: named as CDACQ_NAMES_IL. NULL: nothing. */
    const struct cdacq_method *method;
    const char *detail; /* one line: how they differ, or why it cannot be told; NULL where there is nothing to add */
};

/* The sum of it. */
struct cdacq_verification {
    size_t size;                                    /* sizeof(struct cdacq_verification) of the caller */
    bool perf_map;                                  /* the file is one; else a jitdump */
    uint64_t records;                               /* of the file, without those that are about no code */
    uint64_t contradictions;                        /* the four of them that are one */
    uint64_t names_not_compared;                    /* of MATCH: the target does not tell the name */
    uint64_t code_not_compared;                     /* of MATCH in a jitdump: code that the target or file lacks */
    const char *advice;                             /* what would make the runtime write a better file; or NULL */
    char cut[CDACQ_ERROR_MESSAGE_SIZE];             /* "": the file ends at the end of a record; else a line */
    char methods_problem[CDACQ_ERROR_MESSAGE_SIZE]; /* "": all methods were looked for in the file; else a line */
    uint64_t counts[CDACQ_VERDICT_COUNT];           /* of all but MISSING_FROM_FILE they add up to `records` */
};

/*
 * Compares every record of `path`, a jitdump or a perf map as a .NET runtime writes it (which of the two, its first
 * bytes tell), with the target, and the JIT-compiled methods of the target with the file. `visit`, which may be NULL,
 * is called for every record in the order of the file, then for every method that the file lacks; it returns 0 to go
 * on, anything else ends with CDACQ_STOPPED and *ret holds what was counted so far.
 *
 * A record whose code is not what the target has at its start is REPLACED where a later record has that start; else
 * LATER where it is newer, by time or in a perf map by order, than every first record of a JIT-compiled method that
 * matches; else FREED where code can be released there: in a section that is collectible, or that is gone. Code is
 * compared byte by byte where the file holds it. Take the file after the core: where it ends before it, in a process
 * that releases code and compiles other in its place, such code may look like a contradiction.
 *
 * The file is read twice, up to the size it has when it is opened. Memory: some for each method of the target, and 16
 * bytes for each place of which a record does not match (FUEL beyond 16,777,216 of them). Names are those of
 * CDACQ_NAMES_IL whatever the target was opened with. Fails with IO, NOMEM, FUEL, and FORMAT where the file is neither.
 */
CDACQ_API enum cdacq_status cdacq_target_verify(struct cdacq_target *target, const char *path,
                                                int (*visit)(const struct cdacq_comparison *comparison, void *context),
                                                void *context, struct cdacq_verification *ret, struct cdacq_error *err);

#ifdef __cplusplus
}
#endif

#endif
