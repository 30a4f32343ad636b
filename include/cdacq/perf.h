/*
 * cdacq/perf.h: writing perf maps and jitdumps of a target, and comparing a target with such a file.
 */
#ifndef CDACQ_PERF_H
#define CDACQ_PERF_H

#include <cdacq/session.h>

CDACQ_BEGIN_DECLS

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

/*
 * Writes the perf maps and jitdumps that the runtime of a target writes with DOTNET_PerfMapEnabled, even if it has not
 * written them. `flags` are enum cdacq_visit_flags. Names are in the target's enum cdacq_name_style; the runtime's own
 * style is CDACQ_NAMES_IL. As in the runtime's files, a method with its funclets is one entry and the cold part of a
 * ReadyToRun method is another. The tier, when known, follows the name in the words of these files ("[OptimizedTier1]",
 * "[PreJIT]", "[PreJit-cold]"). A stub is named after its kind: "stub <FixupPrecode>". Interpreted methods have no code
 * of their own and are not written.
 *
 * What cannot be read is left out, and everything else is still written. Left out are unreadable code, methods without
 * a name and, in a jitdump, code that lacks a byte.
 */

/* Receives the output. Each callback returns 0 to continue; any other value ends the writing with CDACQ_STOPPED. */
struct cdacq_sink {
    size_t size;                                                 /* sizeof(struct cdacq_sink) of the caller */
    int (*write)(const void *bytes, size_t size, void *context); /* receives the next bytes of the file */
    /*
     * Reports code that is left out: [code_start, code_start + code_size). `error` says why; the other fields hold what
     * is known of the code. May be NULL.
     */
    int (*left_out)(const struct cdacq_method *method, void *context);
    /*
     * Shows progress: called for all that is visited (methods, stubs, what cannot be read) in order of address, before
     * any of it is written. May be NULL.
     */
    void (*visited)(const struct cdacq_method *method, void *context);
    void *context;
};

struct cdacq_written {
    size_t size; /* sizeof(struct cdacq_written) of the caller */
    uint64_t bytes;
    uint64_t methods;    /* entries of methods: lines or records */
    uint64_t stubs;      /* entries of stubs */
    uint64_t left_out;   /* entries left out */
    uint64_t unverified; /* entries written from a file that nothing in the target could confirm */
    /* Of an ELF file: */
    uint64_t functions;          /* functions with call-frame information: bodies, funclets, cold parts */
    uint64_t functions_left_out; /* functions whose unwind data cannot be read */
    uint64_t without_epilogs;    /* functions whose code is missing, so that nothing is known of their epilogs */
};

/*
 * Writes one line for each entry: "0x7f21c8a31b40 1a NAME". Fails as cdacq_session_visit_methods does, before anything
 * is written. At a bound on work or memory (FUEL), and when the process ends meanwhile (IO), what was found until then
 * is written if there is any; then ret->methods or ret->stubs is not 0. Source:
 * tools/perf/Documentation/jit-interface.txt of Linux; dotnet/runtime src/coreclr/vm/perfmap.cpp.
 */
CDACQ_API enum cdacq_status cdacq_session_write_perf_map(struct cdacq_session *session, unsigned flags,
                                                         const struct cdacq_sink *sink, struct cdacq_written *ret,
                                                         struct cdacq_error *err);

enum cdacq_jitdump_write_flags {
    CDACQ_WRITE_DEBUG = 1 << 17,  /* with lines and call-frame information */
    CDACQ_WRITE_SAMPLY = 1 << 18, /* with CDACQ_WRITE_DEBUG: lines and columns also in samply's own record */
};

/*
 * Writes a jitdump of version 1 in the target's byte order: a header, a JIT_CODE_LOAD with the code bytes for each
 * entry, and a JIT_CODE_CLOSE. `flags` are enum cdacq_visit_flags and enum cdacq_jitdump_write_flags. With
 * CDACQ_WRITE_DEBUG, a JIT_CODE_DEBUG_INFO precedes the entry of a method whose lines are known, and a
 * JIT_CODE_UNWINDING_INFO that of a method whose unwind data can be read (x64 and arm64). With CDACQ_WRITE_SAMPLY, a
 * CDACQ_JITDUMP_SAMPLY_POSITIONS precedes the JIT_CODE_DEBUG_INFO, without inlined calls. The target records
 * neither the time nor the thread that compiled code. The timestamps therefore count 1, 2, 3, ... nanoseconds of
 * CLOCK_MONOTONIC, so that the code is older than any sample, and the thread is the first thread of the process. Fails
 * as cdacq_session_write_perf_map does. Source: tools/perf/Documentation/jitdump-specification.txt of Linux.
 */
CDACQ_API enum cdacq_status cdacq_session_write_jitdump(struct cdacq_session *session, unsigned flags,
                                                        const struct cdacq_sink *sink, struct cdacq_written *ret,
                                                        struct cdacq_error *err);

/* ---- ELF --------------------------------------------------------------------------------------------------------- */

enum cdacq_elf_flags {
    CDACQ_ELF_CODE = 1 << 16, /* with the bytes of the code, so that the file can be disassembled alone */
};

/*
 * Writes an ELF file (ET_EXEC) of the target's managed code, at the addresses that the code has in the process. gdb
 * (add-symbol-file), lldb, addr2line and objdump read it. `flags` are enum cdacq_visit_flags and enum cdacq_elf_flags.
 *
 * - .symtab has a symbol for each method's body, each funclet ("NAME [funclet]"), each cold part ("NAME [cold]") and,
 *   with CDACQ_VISIT_STUBS, each block of stubs. Names are in the target's enum cdacq_name_style.
 * - .debug_frame has the call-frame information of every function, from the runtime's own unwind data: prologs, bodies
 *   and epilogs (x64 and arm64).
 * - .text sections have the addresses of the code, one section for each code range. They hold bytes with
 *   CDACQ_ELF_CODE, with zeros for what is missing.
 * - The build-id is a hash of the contents.
 *
 * What cannot be read is left out; ret->left_out and sink->left_out report code without a name. Of a running process,
 * code and call-frame information are those of the method that has the symbol: a method that is freed meanwhile is
 * silently left out, and one that keeps changing, or whose code cannot be read, is reported.
 *
 * Memory use: some 200 bytes for each method, the sections' contents except for code, and the code of a running
 * process. Fails as cdacq_session_write_perf_map does, also at a bound; and with FUEL, before anything is written, if a
 * section would exceed 1 GiB or there are more than 60,000 sections, with NOMEM, or with CONTRACT for an architecture
 * that this build does not know.
 */
CDACQ_API enum cdacq_status cdacq_session_write_elf(struct cdacq_session *session, unsigned flags,
                                                    const struct cdacq_sink *sink, struct cdacq_written *ret,
                                                    struct cdacq_error *err);

/*
 * The same for the code in the mappings of one file, at the offsets in the file. This is where perf looks for the
 * symbols of a sample, also if the file is an image in another format, or a memfd without a path on disk: its segments
 * claim these offsets. Without any code there, nothing is written. Code that cannot be read is reported for the file
 * that it is in. Fails as cdacq_session_write_elf does; at a bound nothing is written.
 */
CDACQ_API enum cdacq_status cdacq_session_write_elf_of_file(struct cdacq_session *session, const char *path,
                                                            unsigned flags, const struct cdacq_sink *sink,
                                                            struct cdacq_written *ret, struct cdacq_error *err);

/* A mapped file as perf knows it: by the path that the kernel gives. Pointers are valid until `visit` returns. */
struct cdacq_code_file {
    size_t size;
    const char *path; /* as the target names it; NULL: compiled code in memory that no file backs */
    /* The path that it had, if it was deleted or replaced since, which the kernel adds to `path`; else NULL. */
    const char *former_path;
    bool has_code;    /* a code range of the runtime is in its mappings: see cdacq_session_write_elf_of_file */
    bool may_execute; /* one of its mappings can be executed, or that is not known */
    /* Of a core, or of a file that was deleted: the file on this machine that was found to be the same; else NULL. */
    const char *local_path;
    const struct cdacq_local_file *local_file; /* that of `local_path`, or NULL */
};

/*
 * Calls `visit` for every mapped file, also a memfd, to say whether it has managed code: by the address of its first
 * mapping, and last for compiled code that is in no file. What a file is, and whether the target lacks bytes of it, is
 * for cdacq_target_visit_mapped_files. CDACQ_STOPPED: `visit` returned non-zero. Fails where the range section map
 * cannot be read: with MEMORY after the visit if parts of it are missing, so that more files may have code. Fails with
 * IO, without a visit, if a running process has ended or executed another program.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_code_files(struct cdacq_session *session,
                                                           int (*visit)(const struct cdacq_code_file *file,
                                                                        void *context),
                                                           void *context, struct cdacq_error *err);

/* ---- Comparing --------------------------------------------------------------------------------------------------- */

/*
 * The result of comparing a record of a jitdump or perf map with the target: name, text, whether it is a
 * contradiction, meaning. DAMAGED and NOT_COMPARED are records that could not be compared.
 */
#define CDACQ_VERDICTS(X)                                                                                        \
    X(MATCH, "match", false, "start, size, name and code are the same")                                          \
    X(FREED, "freed", false, "its code was released")                                                            \
    X(REPLACED, "replaced", false, "a later record has the same start")                                          \
    X(STUB, "stub", false, "the runtime's own code")                                                             \
    X(LATER, "later", false, "newer than the target")                                                            \
    X(UNKNOWN_TO_TARGET, "unknown-to-target", true, "no method is there, and none can have been released there") \
    X(NAME_DIFFERS, "name-differs", true, "the method there has another name")                                   \
    X(RANGE_DIFFERS, "range-differs", true, "the method starts or ends elsewhere")                               \
    X(BYTES_DIFFER, "bytes-differ", true, "the target's memory holds other code")                                \
    X(MISSING_FROM_FILE, "missing-from-file", false, "JIT-compiled methods without a record")                    \
    X(DAMAGED, "damaged", false, "records that make no sense")                                                   \
    X(NOT_COMPARED, "not-compared", false, "what is needed to compare is missing")

enum cdacq_verdict {
#define CDACQ_VERDICT_(name, text, contradiction, meaning) CDACQ_VERDICT_##name,
    CDACQ_VERDICTS(CDACQ_VERDICT_)
#undef CDACQ_VERDICT_
        CDACQ_VERDICT_COUNT
};

/* The text ("name-differs") and the meaning of a verdict, or "unknown" for any other number; static strings. */
CDACQ_API const char *cdacq_verdict_text(enum cdacq_verdict verdict);
CDACQ_API const char *cdacq_verdict_meaning(enum cdacq_verdict verdict);

/* True for UNKNOWN_TO_TARGET, NAME_DIFFERS, RANGE_DIFFERS and BYTES_DIFFER: the file contradicts the target. */
CDACQ_API bool cdacq_verdict_is_contradiction(enum cdacq_verdict verdict);

/* A record of the file, or a method that the file lacks. What it points to is valid until `visit` returns. */
struct cdacq_comparison {
    size_t size;
    enum cdacq_verdict verdict;
    /* The record; all 0 for MISSING_FROM_FILE. */
    uint64_t offset;    /* of the record or line in the file */
    uint64_t line;      /* in a perf map, from 1; otherwise 0 */
    uint64_t timestamp; /* in a jitdump; otherwise 0 */
    uint64_t address, code_size;
    const char *name; /* any bytes, NUL-terminated */
    size_t name_length;
    /* The method or stub at the address, or the method that the record describes; names as CDACQ_NAMES_IL. Or NULL. */
    const struct cdacq_method *method;
    const char *detail; /* one line: how they differ, or why they cannot be compared; or NULL */
};

/* The totals. A buffer holds one line, or "" when there is nothing to report. */
struct cdacq_verification {
    size_t size;                                    /* sizeof(struct cdacq_verification) of the caller */
    bool perf_map;                                  /* the file is a perf map; otherwise a jitdump */
    uint64_t records;                               /* records of the file that describe code */
    uint64_t contradictions;                        /* records whose verdict is a contradiction */
    uint64_t names_not_compared;                    /* of MATCH: the target does not hold the name */
    uint64_t code_not_compared;                     /* of MATCH in a jitdump: the target or the file lacks the code */
    const char *advice;                             /* how to make the runtime write a better file; or NULL */
    char cut[CDACQ_ERROR_MESSAGE_SIZE];             /* the file ends within a record */
    char methods_problem[CDACQ_ERROR_MESSAGE_SIZE]; /* why methods may be missing from the comparison */
    uint64_t counts[CDACQ_VERDICT_COUNT];           /* all except MISSING_FROM_FILE add up to `records` */
};

/*
 * Compares every record of `path` with the target, and the JIT-compiled methods of the target with the file. The file
 * is a jitdump or a perf map as a .NET runtime writes it; its first bytes decide which. `visit`, which may be NULL, is
 * called for every record in the order of the file, then for every method that the file lacks. If it stops the visit,
 * *ret holds the totals so far.
 *
 * A record that does not match the code at its start is REPLACED if a later record has the same start. Otherwise it is
 * LATER if it is newer than the first matching record of every JIT-compiled method; the order is by time, in a perf map
 * by line. Otherwise it is FREED if code can be released there: in a collectible section or one that no longer exists.
 * Code is compared byte by byte when the file holds it. Copy the file after taking the core: with an older copy, code
 * that the process has since released and replaced may look like a contradiction.
 *
 * A process that runs makes and releases code meanwhile. What differs where code can be released is then FREED, LATER
 * or REPLACED, and no method there is MISSING_FROM_FILE. With CDACQ_OPEN_STOP such code is compared, too.
 *
 * The file is read twice, up to its size when it was opened. Memory use: some for each method of the target, and 16
 * bytes for each start address of a record that does not match (FUEL beyond 16,777,216 of them). Names are those of
 * CDACQ_NAMES_IL regardless of the target's options. Fails with ARGUMENT, with IO, also if the process has ended or
 * executed another program, NOMEM, FUEL, or with FORMAT when the file is neither.
 */
CDACQ_API enum cdacq_status cdacq_target_verify(struct cdacq_target *target, const char *path,
                                                int (*visit)(const struct cdacq_comparison *comparison, void *context),
                                                void *context, struct cdacq_verification *ret, struct cdacq_error *err);

/*
 * Finds the perf map of a running process: perf-PID.map in a directory that its environment names
 * (DOTNET_PerfMapJitDumpPath, TMPDIR) or in /tmp. A file that was last written to before the process began is not its
 * own. Writes its path, as this process reaches it, to `ret`, which has room for `size` bytes. CDACQ_NOT_MANAGED: there
 * is none, perhaps not yet. Fails with IO; also if it finds none and is not permitted to read the process's
 * environment.
 */
CDACQ_API enum cdacq_status cdacq_perf_map_find_file(int pid, char *ret, size_t size, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
