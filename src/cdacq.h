/*
 * cdacq.h: read a .NET process from outside and say which method owns an instruction pointer.
 *
 * The process is a *target*: an ELF core dump, a live process, or memory that the caller hands over. The library
 * reads it through the data contracts that the runtime publishes about itself (DotNetRuntimeContractDescriptor).
 * It loads no component of the runtime, runs no code in the target and never writes to it.
 *
 *     struct cdacq_error error;
 *     struct cdacq *target;
 *     struct cdacq_session *session;
 *     struct cdacq_method method;
 *
 *     if (cdacq_open_core("core.1234", NULL, &target, &error) < 0 ||
 *         cdacq_session_create(target, &session, &error) < 0)
 *         errx(2, "%s", error.message);
 *     if (cdacq_method_at(session, 0x7f21c8a31b47, &method, &error) == CDACQ_OK)
 *         printf("%s +%#" PRIx64 "\n", method.name, method.offset);
 *     cdacq_session_destroy(session);
 *     cdacq_close(target);
 *
 * Rules that hold throughout:
 *  - A target address is a uint64_t, a range is [begin, end), a size is in bytes.
 *  - A function returns an enum cdacq_status: 0 is success, a positive value is an answer that is not a failure
 *    (CDACQ_NOT_MANAGED), a negative one is a failure. On failure outputs are untouched, and `err`, which the caller
 *    owns and which may be NULL, holds one line of text that names the thing and the address.
 *  - A target is hostile: sizes are capped and loops bounded, so a call ends on any input, with an answer that the
 *    data supports or with a status. No answer is preferred over a wrong one.
 *  - The library prints nothing and has no global or thread-local state.
 *  - An address of code may be a code pointer as it stands in a register, a slot or a return address: a Thumb bit and
 *    pointer authentication are taken off. What answers hold are plain addresses.
 *  - Threads: a `struct cdacq` of a dump or of caller's memory is immutable to its users and may be shared between
 *    threads. A `struct cdacq_session` belongs to one thread at a time. A live target and its sessions belong to one
 *    thread at a time together.
 *  - Version 0 promises no stable ABI; the SONAME changes with it.
 */
#ifndef CDACQ_H
#define CDACQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CDACQ_API __attribute__((visibility("default")))

/* ---- Errors ------------------------------------------------------------------------------------------------- */

/* name, value, text */
#define CDACQ_STATUSES(X)                                                               \
    X(CDACQ_OK, 0, "success")                                                           \
    X(CDACQ_NOT_MANAGED, 1, "no managed method owns the address")                       \
    X(CDACQ_STOPPED, 2, "the visitor asked to stop")                                    \
    X(CDACQ_END, 3, "there is no more")                                                 \
    X(CDACQ_ERR_NOMEM, -1, "out of memory")                                             \
    X(CDACQ_ERR_ARGUMENT, -2, "an argument is not valid")                               \
    X(CDACQ_ERR_IO, -3, "a file or a process cannot be read")                           \
    X(CDACQ_ERR_FORMAT, -4, "a file is not what it should be")                          \
    X(CDACQ_ERR_NO_RUNTIME, -5, "no .NET runtime in the target")                        \
    X(CDACQ_ERR_NO_DESCRIPTOR, -6, "the runtime's contract descriptor cannot be found") \
    X(CDACQ_ERR_DESCRIPTOR, -7, "the runtime's contract descriptor is malformed")       \
    X(CDACQ_ERR_CONTRACT, -8, "a contract is missing or its version is not supported")  \
    X(CDACQ_ERR_FIELD, -9, "a type, field or global is not described")                  \
    X(CDACQ_ERR_MEMORY, -10, "memory is not in the target")                             \
    X(CDACQ_ERR_FUEL, -11, "a bound on work was reached")                               \
    X(CDACQ_ERR_CORRUPT, -12, "the target's data contradicts itself")                   \
    X(CDACQ_ERR_MODULE, -13, "a file that is needed is missing or is not the one that was mapped")

enum cdacq_status {
#define CDACQ_STATUS_(name, value, text) name = value,
    CDACQ_STATUSES(CDACQ_STATUS_)
#undef CDACQ_STATUS_
};

#define CDACQ_ERROR_MESSAGE_SIZE 512

/* Caller-owned; holds the last failure of the call it was passed to. `address` is 0 where none is concerned. */
struct cdacq_error {
    enum cdacq_status status;
    uint64_t address;
    char message[CDACQ_ERROR_MESSAGE_SIZE]; /* one line, NUL-terminated, printable */
};

/* The general meaning of a status, a static string. "unknown status" for a number that is none. */
CDACQ_API const char *cdacq_status_text(enum cdacq_status status);

/* "0.1.0": the version of the library in use. */
CDACQ_API const char *cdacq_version(void);

/* ---- Opening a target --------------------------------------------------------------------------------------- */

struct cdacq;

enum cdacq_open_flags {
    CDACQ_OPEN_STOP = 1 << 0,   /* live: hold all threads (PTRACE_SEIZE) until cdacq_close, which lets them run on */
    CDACQ_OPEN_RECORD = 1 << 1, /* remember what is read, for cdacq_write_snapshot */
    CDACQ_OPEN_DEBUGINFOD = 1 << 2, /* ask the servers in DEBUGINFOD_URLS for missing ELF files */
    /*
     * Open also what no method can be found in: a process without a runtime, or with one that cannot be read.
     * cdacq_get_info then says why, and everything that takes no session tells what is there; no session can be made.
     * Runtimes are looked for in every mapped image, not just until libcoreclr.so is found.
     */
    CDACQ_OPEN_PARTIAL = 1 << 3,
    /*
     * Read the core, and files that stand in for what it lacks, with pread into memory of the library's own; map
     * nothing. For programs that must not die of SIGBUS when another one cuts such a file shorter: what is then not
     * there is missing (MEMORY), what was read before stays. Pages of the core are kept as they are asked for, 1 GiB of
     * them at most; a file that stands in is read as a whole, up to 1 GiB of it.
     */
    CDACQ_OPEN_PREAD = 1 << 4,
};

/*
 * How methods are named. SOS and IL are to the letter what the runtime's debugger services and its perf map have, but
 * that backslashes in a method's name stand doubled and what is not printable is escaped. Of code that the runtime has
 * not prepared they tell what its image tells: an assembly is then the one that is referred to, which may only forward.
 */
enum cdacq_name_style {
    CDACQ_NAMES_CSHARP, /* Ns.Outer.Inner<T>.M<U>(int, U): the definition, as C# writes it */
    CDACQ_NAMES_SOS,    /* Ns.Outer+Inner`1[[System.Int32, System.Private.CoreLib]].M(Int32): SOS, the runtime's DAC */
    CDACQ_NAMES_IL,     /* instance void [Asm] Ns.Outer+Inner`1[System.Int32]::M(!0): the runtime's perf map */
};

/* A file that the target has mapped and whose bytes are wanted. Strings live until the callback returns. */
struct cdacq_wanted_file {
    const char *path;       /* as the target names it */
    const char *build_id;   /* hex, of an ELF image: what debuginfod asks by; NULL where not known */
    const char *symbol_key; /* NAME/KEY/NAME: what symbol servers ask by; NULL where not known */
};

/* All optional: zero the struct, set `size`, then what is wanted. Strings and arrays are copied. */
struct cdacq_options {
    size_t size;                 /* sizeof(struct cdacq_options) of the caller */
    unsigned flags;              /* enum cdacq_open_flags */
    unsigned runtime;            /* which one, where a process has several: 0 is the first that `info` shows */
    const char *const *sysroots; /* directories put before the target's paths, tried in order */
    size_t sysroot_count;
    const char *const *module_paths; /* directories searched for a mapped file by its name, tried in order */
    size_t module_path_count;
    const char *const *descriptors; /* JSON descriptor files that override what the target publishes, in order */
    size_t descriptor_count;
    uint64_t descriptor_address; /* DotNetRuntimeContractDescriptor is here: do not search for it */
    enum cdacq_name_style names; /* of every session of the target */
    /*
     * Where such a file is on this machine, as the host knows it: writes a path of at most `size` bytes, its NUL
     * included, and returns true; or false, and the file is looked for as without it. Asked once for a file, when
     * bytes of it are first missing, before sysroots and module paths. Its answer is checked as any file is: one that
     * anything in the target contradicts is refused, and the search goes on. Called by one thread at a time, from
     * within any call on the target or its sessions; it must not call back into them. Good until cdacq_close.
     */
    bool (*find_file)(void *context, const struct cdacq_wanted_file *file, char *ret_path, size_t size);
    void *find_file_context;
};

/*
 * Opens an ELF core of either class and byte order. The file is mapped, never copied, and must not change while it is
 * open (CDACQ_OPEN_PREAD for one that may). Missing file-backed pages come from the files that the core's NT_FILE note
 * names, where those can be found and nothing in the core contradicts them. Fails with IO, FORMAT, NO_RUNTIME,
 * NO_DESCRIPTOR, DESCRIPTOR, CONTRACT, FIELD.
 */
CDACQ_API enum cdacq_status cdacq_open_core(const char *path, const struct cdacq_options *options, struct cdacq **ret,
                                            struct cdacq_error *err);

/*
 * Opens a running process through process_vm_readv and /proc, which takes the permission to ptrace it. It is not
 * stopped unless CDACQ_OPEN_STOP asks for it. What was read is kept: answers are those of the time of reading.
 */
CDACQ_API enum cdacq_status cdacq_open_pid(int pid, const struct cdacq_options *options, struct cdacq **ret,
                                           struct cdacq_error *err);

/*
 * Opens an ELF image, libcoreclr.so or a single-file application, as if it were loaded and nothing had run: for its
 * descriptor, and for what the runtime is. Globals that a runtime writes down only as it starts have no value (those of
 * .NET 8 and 9, which then take CDACQ_OPEN_PARTIAL). No method is found in it.
 */
CDACQ_API enum cdacq_status cdacq_open_image(const char *path, const struct cdacq_options *options, struct cdacq **ret,
                                             struct cdacq_error *err);

/* One mapping of a target whose memory the caller provides. `path` is NULL for anonymous memory. */
struct cdacq_mapping {
    uint64_t begin, end;
    uint64_t file_offset;
    const char *path;
};

/*
 * Target memory that the caller provides: of a debugger's target, a format of dumps of its own, an emulator. Zero the
 * struct, set `size`, one of `span_at` and `read`, and what is known of the rest. Everything it points to must stay
 * valid until cdacq_close, the mappings and their paths unchanged too.
 */
struct cdacq_memory {
    size_t size; /* sizeof(struct cdacq_memory) of the caller */
    void *context;
    /*
     * For who has the memory at hand: the widest readable run of bytes that holds `address`, its bounds and its bytes,
     * which stay as they are until cdacq_close: the library takes no copy. False where there is none. May be called
     * from every thread that uses the target, by several at once.
     */
    bool (*span_at)(void *context, uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes);
    const struct cdacq_mapping *mappings; /* sorted or not; may be empty when options give a descriptor address */
    size_t mapping_count;
    /*
     * For who can only copy, as debuggers do: copies the bytes from `address` on, at most `size` of them, up to the
     * first that cannot be read, and returns how many they were; 0 where that is the first. A host that can but
     * succeed or fail as a whole may return 0 for less than all: it is then asked for less. What was copied is kept, in
     * pages of 4 KiB and at most 1 GiB of them, and not asked for again; nor is, mostly, what was not there: of a
     * process that runs on, answers are those of the time of reading, and a look at the process as it is now takes a
     * new cdacq_open_memory. Asked for are ranges that cross no page, from within any call on the target or its
     * sessions, by one thread at a time; it must not call back into them.
     */
    size_t (*read)(void *context, uint64_t address, void *buffer, size_t size);
    int pid;              /* of the process; 0 where not known: cdacq_info tells it, nothing depends on it */
    uint16_t elf_machine; /* EM_* of the process; 0 where not known: the runtime's image, where there is one, tells */
};

/*
 * Opens memory that the caller provides. The runtime is found through the mappings: one of them, with file offset 0,
 * is the start of libcoreclr.so or of another image that exports the descriptor. Where only the descriptor's address is
 * known, options->descriptor_address does without any mapping (.NET 9 and later; 8 publishes no descriptor). Mappings
 * also give the ReadyToRun images their paths.
 *
 * What the callback does not have comes from the mapped files, under the rules of cdacq_open_core, only where the
 * options say where these are (find_file, sysroots, module_paths, CDACQ_OPEN_DEBUGINFOD). What it has counts, to the
 * byte, so it is asked about each byte that a file gives. Nothing else on this machine is looked at. CDACQ_OPEN_STOP
 * has no meaning here. Fails as cdacq_open_core does, with ARGUMENT where the struct is not as it should be.
 */
CDACQ_API enum cdacq_status cdacq_open_memory(const struct cdacq_memory *memory, const struct cdacq_options *options,
                                              struct cdacq **ret, struct cdacq_error *err);

/* Frees everything and lets a stopped process run on. All sessions must be destroyed before. NULL is fine. */
CDACQ_API void cdacq_close(struct cdacq *target);

/* ---- Sessions ----------------------------------------------------------------------------------------------- */

/* What one thread needs to ask: read hints and the names it has formed. Strings in answers live as long as it does. */
struct cdacq_session;

CDACQ_API enum cdacq_status cdacq_session_create(struct cdacq *target, struct cdacq_session **ret,
                                                 struct cdacq_error *err);
CDACQ_API void cdacq_session_destroy(struct cdacq_session *session);

/* ---- Which method owns an instruction pointer ---------------------------------------------------------------- */

enum cdacq_answer {
    CDACQ_ANSWER_NONE,    /* nothing of the runtime's is known to be there */
    CDACQ_ANSWER_MANAGED, /* a method owns the address: it lies within the method's real end */
    CDACQ_ANSWER_STUB,    /* code of the runtime's own: precodes, jump stubs, delay-load thunks */
    CDACQ_ANSWER_ERROR,   /* it could not be told */
};

/* What kind of code an address is in, spelled as the runtime's CodeKind. */
#define CDACQ_CODE_KINDS(X)                      \
    X(UNKNOWN, 0, "Unknown")                     \
    X(JUMP_STUB, 1, "JumpStub")                  \
    X(DYNAMIC_HELPER, 2, "DynamicHelper")        \
    X(STUB_PRECODE, 3, "StubPrecode")            \
    X(FIXUP_PRECODE, 4, "FixupPrecode")          \
    X(VSD_DISPATCH_STUB, 5, "VSD_DispatchStub")  \
    X(VSD_RESOLVE_STUB, 6, "VSD_ResolveStub")    \
    X(VSD_LOOKUP_STUB, 7, "VSD_LookupStub")      \
    X(VSD_VTABLE_STUB, 8, "VSD_VTableStub")      \
    X(CALL_COUNTING_STUB, 9, "CallCountingStub") \
    X(METHOD_CALL_THUNK, 10, "MethodCallThunk")  \
    X(JITTED, 11, "jit")                         \
    X(READY_TO_RUN, 12, "r2r")                   \
    X(INTERPRETER, 13, "interpreter")            \
    X(WRAPPER_STUB, 14, "WrapperStub")           \
    X(SHUFFLE_THUNK, 15, "ShuffleThunk")         \
    X(THE_PRE_STUB, 16, "ThePreStub")

enum cdacq_code_kind {
#define CDACQ_CODE_KIND_(name, value, text) CDACQ_CODE_##name = value,
    CDACQ_CODE_KINDS(CDACQ_CODE_KIND_)
#undef CDACQ_CODE_KIND_
        CDACQ_CODE_KIND_COUNT
};

/* "jit", "r2r", "interpreter", or the runtime's name of a stub kind; a static string. */
CDACQ_API const char *cdacq_code_kind_text(enum cdacq_code_kind kind);

#define CDACQ_OFFSET_UNKNOWN INT32_MIN

/*
 * One answer. Pointers are owned by the session, except `error`, which the next call on the session overwrites.
 * Numbers that are not known are 0, strings NULL, il_offset CDACQ_OFFSET_UNKNOWN.
 */
struct cdacq_method {
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
CDACQ_API enum cdacq_status cdacq_method_at(struct cdacq_session *session, uint64_t ip, struct cdacq_method *ret,
                                            struct cdacq_error *err);

/*
 * The same for `count` addresses; every element of `ret` is written, failures with CDACQ_ANSWER_ERROR. Fast for many:
 * after some questions about a code range its methods are indexed once, and an answer is a search in memory.
 * Strings under `error` live until the next call on the session.
 */
CDACQ_API void cdacq_methods_at(struct cdacq_session *session, const uint64_t *ips, size_t count,
                                struct cdacq_method *ret);

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
CDACQ_API enum cdacq_status cdacq_visit_methods(struct cdacq_session *session, unsigned flags,
                                                int (*visit)(const struct cdacq_method *method, void *context),
                                                void *context, struct cdacq_error *err);

/* ---- The ExecutionManager contract -------------------------------------------------------------------------- */

/*
 * GetCodeBlockHandle and its companions, named as the specification names them
 * (dotnet/runtime docs/design/datacontracts/ExecutionManager.md). The handle is a plain value, good for the target's
 * life; its fields are the library's.
 */
struct cdacq_code_block {
    uint64_t opaque[16];
};

/* The block that owns `ip`. CDACQ_NOT_MANAGED when no method does, at its real end too. */
CDACQ_API enum cdacq_status cdacq_get_code_block(struct cdacq_session *session, uint64_t ip,
                                                 struct cdacq_code_block *ret, struct cdacq_error *err);

/* GetMethodDesc: 0 for ReadyToRun code that the runtime has not prepared. */
CDACQ_API uint64_t cdacq_get_method_desc(const struct cdacq_code_block *block);

/* GetStartAddress: of the method's hot code. */
CDACQ_API uint64_t cdacq_get_start_address(const struct cdacq_code_block *block);

/* GetRelativeOffset: bytes from the start; in a cold part the hot length plus the offset there. */
CDACQ_API uint64_t cdacq_get_relative_offset(const struct cdacq_code_block *block);

/* GetJITType: CDACQ_CODE_JITTED, CDACQ_CODE_READY_TO_RUN or CDACQ_CODE_INTERPRETER. */
CDACQ_API enum cdacq_code_kind cdacq_get_jit_type(const struct cdacq_code_block *block);

/*
 * The calls below read more of the target, so each can fail on its own: MEMORY and FIELD name the type, the field and
 * the address of what is missing, and the other calls answer all the same.
 */

/*
 * GetMethodRegionInfo: sizes in bytes of the whole hot part, funclets included, and of the cold part; cold start and
 * size are 0 where the method is not split. The code's length comes from the GC info, as the runtime has it, and must
 * be what the unwind information says: CORRUPT where it is not. Where the GC info is missing the latter is taken alone.
 */
CDACQ_API enum cdacq_status cdacq_get_method_region_info(struct cdacq_session *session,
                                                         const struct cdacq_code_block *block, uint64_t *ret_hot_size,
                                                         uint64_t *ret_cold_start, uint64_t *ret_cold_size,
                                                         struct cdacq_error *err);

/* GetUnwindInfo: the address of the RUNTIME_FUNCTION that covers the block's ip; 0 for methods that have none: of the
 * interpreter, and of a JIT without funclets (x86 for Windows before .NET 10). */
CDACQ_API enum cdacq_status cdacq_get_unwind_info(struct cdacq_session *session, const struct cdacq_code_block *block,
                                                  uint64_t *ret, struct cdacq_error *err);

/* GetUnwindInfoBaseAddress: what the addresses in it are relative to. */
CDACQ_API uint64_t cdacq_get_unwind_info_base_address(const struct cdacq_code_block *block);

/*
 * GetFuncletStartAddress: where the function that covers the block's ip starts: the start address in the method's
 * body, else a funclet's; in a cold part the start of what lies there of the one or the other.
 */
CDACQ_API enum cdacq_status cdacq_get_funclet_start_address(struct cdacq_session *session,
                                                            const struct cdacq_code_block *block, uint64_t *ret,
                                                            struct cdacq_error *err);

/* IsFunclet: whether the block's ip is in a handler, a filter or a finally block; not in the cold part of a body. */
CDACQ_API enum cdacq_status cdacq_is_funclet(struct cdacq_session *session, const struct cdacq_code_block *block,
                                             bool *ret, struct cdacq_error *err);

/* IsFilterFunclet: whether it is in a filter. */
CDACQ_API enum cdacq_status cdacq_is_filter_funclet(struct cdacq_session *session, const struct cdacq_code_block *block,
                                                    bool *ret, struct cdacq_error *err);

/*
 * GetDebugInfo: the address of the blob that maps the method's code to its IL, 0 where it has none (dynamic methods),
 * and whether a byte of flags precedes it. The format is that of dotnet/runtime
 * docs/design/datacontracts/DebugInfo.md.
 */
CDACQ_API enum cdacq_status cdacq_get_debug_info(struct cdacq_session *session, const struct cdacq_code_block *block,
                                                 uint64_t *ret, bool *ret_has_flag_byte, struct cdacq_error *err);

/*
 * GetGCInfo: the address of the method's GC info, and the version of its format, 0 where that is not known (dotnet/
 * runtime docs/design/datacontracts/GCInfo.md).
 */
CDACQ_API enum cdacq_status cdacq_get_gc_info(struct cdacq_session *session, const struct cdacq_code_block *block,
                                              uint64_t *ret, uint32_t *ret_version, struct cdacq_error *err);

enum cdacq_clause_kind { CDACQ_CLAUSE_TYPED, CDACQ_CLAUSE_FILTER, CDACQ_CLAUSE_FINALLY, CDACQ_CLAUSE_FAULT };

/* What handles exceptions of a part of a method. Offsets count from the method's start, as relative offsets do. */
struct cdacq_exception_clause {
    enum cdacq_clause_kind kind;
    uint32_t flags;     /* as they stand in the target */
    bool duplicated;    /* its handler is a copy of another one's, in the method's body: a finally block, no funclet */
    uint32_t try_start; /* protected are offsets [try_start, try_end) */
    uint32_t try_end;
    uint32_t handler_start;
    uint32_t handler_end;
    uint32_t filter_offset; /* of a FILTER */
    uint32_t class_token;   /* of a TYPED clause: of the module that declares the method; 0 for dynamic methods */
    uint64_t type_handle;   /* of a TYPED clause of a dynamic method; else 0 */
};

/*
 * GetExceptionClauses: calls `visit` for each clause, in the order in which the runtime searches them. It returns 0 to
 * go on; anything else ends the visit with CDACQ_STOPPED.
 */
CDACQ_API enum cdacq_status
cdacq_visit_exception_clauses(struct cdacq_session *session, const struct cdacq_code_block *block,
                              int (*visit)(const struct cdacq_exception_clause *clause, void *context), void *context,
                              struct cdacq_error *err);

/*
 * GetCodeKind: what kind of code is at an address: a method's or a stub's, CDACQ_CODE_UNKNOWN for stubs of a kind that
 * is not known. CDACQ_NOT_MANAGED, with CDACQ_CODE_UNKNOWN in *ret, where it is no code that the runtime knows.
 */
CDACQ_API enum cdacq_status cdacq_get_code_kind(struct cdacq_session *session, uint64_t address,
                                                enum cdacq_code_kind *ret, struct cdacq_error *err);

/* FindReadyToRunModule: the Module whose ReadyToRun image holds an address, of code or data; CDACQ_NOT_MANAGED: none.
 */
CDACQ_API enum cdacq_status cdacq_find_ready_to_run_module(struct cdacq_session *session, uint64_t address,
                                                           uint64_t *ret, struct cdacq_error *err);

/* A JIT manager of the target. */
struct cdacq_jit_manager_info {
    enum cdacq_code_kind kind; /* CDACQ_CODE_JITTED or CDACQ_CODE_INTERPRETER */
    uint64_t address;
    uint64_t heap_list; /* the first CodeHeapListNode; 0 where the runtime does not describe its list */
};

/* GetJitManagerInfo, of the manager of a kind of code. CDACQ_NOT_MANAGED: the target has none. */
CDACQ_API enum cdacq_status cdacq_get_jit_manager_info(struct cdacq_session *session, enum cdacq_code_kind kind,
                                                       struct cdacq_jit_manager_info *ret, struct cdacq_error *err);

enum cdacq_code_heap_type {
    CDACQ_CODE_HEAP_UNKNOWN, /* the runtime does not describe it */
    CDACQ_CODE_HEAP_LOADER,  /* of code that stays */
    CDACQ_CODE_HEAP_HOST,    /* of dynamic methods, which can be freed one by one */
};

/* A heap of code. Addresses; 0 where not known. */
struct cdacq_code_heap_info {
    enum cdacq_code_heap_type type;
    uint64_t node;       /* its CodeHeapListNode */
    uint64_t heap;       /* its CodeHeap */
    uint64_t begin, end; /* of its used part */
    uint64_t map_base, header_map;
    uint64_t loader_heap;   /* of a LOADER heap */
    uint64_t base, current; /* of a HOST heap */
};

/*
 * GetCodeHeapInfos, of the manager of a kind of code: in the order of the runtime's list, or by address where the
 * runtime does not describe that. `visit` as above. Where some cannot be read the others are told, and the status says
 * why there may be more.
 */
CDACQ_API enum cdacq_status cdacq_visit_code_heaps(struct cdacq_session *session, enum cdacq_code_kind kind,
                                                   int (*visit)(const struct cdacq_code_heap_info *heap, void *context),
                                                   void *context, struct cdacq_error *err);

/*
 * NonVirtualEntry2MethodDesc: the address of the MethodDesc that `entry_point` enters. It is a code pointer as it
 * stands in a slot, a delegate or a call instruction (a Thumb bit and pointer authentication are taken off): the start
 * of a method's code or, as in the specification, any address in it; or the start of a precode that stands for the
 * method. Where the target has portable entry points it is the address of one. CDACQ_NOT_MANAGED, and *ret untouched,
 * where it enters no method that has a MethodDesc: outside of all code, a stub that stands for no method, or ReadyToRun
 * code that the runtime has not prepared. Failures: MEMORY, FIELD, CORRUPT, FUEL as everywhere; CONTRACT where
 * `entry_point` may be a precode and the target publishes PrecodeStubs in no version that this build reads. Source:
 * dotnet/runtime docs/design/datacontracts/ExecutionManager.md and PrecodeStubs.md.
 */
CDACQ_API enum cdacq_status cdacq_non_virtual_entry_to_method_desc(struct cdacq_session *session, uint64_t entry_point,
                                                                   uint64_t *ret, struct cdacq_error *err);

/* ---- What the target is ------------------------------------------------------------------------------------- */

enum cdacq_target_kind { CDACQ_TARGET_CORE, CDACQ_TARGET_PROCESS, CDACQ_TARGET_MEMORY, CDACQ_TARGET_IMAGE };

/* Strings are owned by the target and may be NULL where not known. */
struct cdacq_info {
    enum cdacq_target_kind kind;
    int pid;                  /* of the process, also that of a core; 0 where not known */
    unsigned pointer_size;    /* 4 or 8, as the descriptor says; 0 without one */
    bool big_endian;          /* as the descriptor says */
    const char *architecture; /* the descriptor's global, "x64" */
    const char *elf_machine;  /* "x86-64", from the core or the process */
    unsigned runtime_count;
    unsigned runtime;         /* the one in use */
    const char *runtime_path; /* the image that publishes the descriptor */
    uint64_t runtime_base;
    const char *runtime_build_id;     /* hex */
    const char *runtime_release;      /* "10.0"; NULL unless two sources in the target agree on it */
    const char *runtime_version;      /* "10.0.12" */
    const char *runtime_file_version; /* "10.0.1226.42308", from the image */
    uint64_t descriptor_address;      /* 0 where it came from elsewhere */
    const char *descriptor_origin;    /* "memory", or where else it came from; NULL where none could be read */
    const char *supplement;           /* what this build adds to it; NULL where nothing */
    unsigned schema;                  /* "version" of the descriptor's JSON */
    const char *writer;               /* of a core: "createdump", "gdb", "the kernel", "cdacq snapshot" */
    uint64_t segment_count;           /* of the core: PT_LOADs */
    uint64_t dumped_size;             /* bytes of memory that the core holds */
    uint64_t missing_size;            /* bytes that file-backed mappings have and the core does not */
    bool truncated;                   /* the core ends before its last segment does */
    enum cdacq_status problem_status; /* CDACQ_OK, or with CDACQ_OPEN_PARTIAL: as opening would have failed */
    const char *problem;              /* one line: why no method can be found; NULL where they can */
    bool native_aot;                  /* it is that the runtime looks like NativeAOT */
};

CDACQ_API void cdacq_get_info(struct cdacq *target, struct cdacq_info *ret);

/* One of the process's runtimes, in the order by which cdacq_options.runtime counts them. Strings as in cdacq_info. */
struct cdacq_runtime_info {
    const char *path; /* NULL where only the descriptor's address is known */
    uint64_t base;
    const char *build_id;
    const char *version; /* "10.0.12", or "10.0" */
    uint64_t descriptor_address;
    bool in_use;
};

/* Strings live until `visit` returns. */
CDACQ_API void cdacq_visit_runtimes(struct cdacq *target,
                                    int (*visit)(const struct cdacq_runtime_info *runtime, void *context),
                                    void *context);

struct cdacq_contract_info {
    const char *name;
    const char *version; /* as published: a number or a text */
    const char *origin;  /* which document */
    bool supported;      /* whether this build reads that version */
    const char *known;   /* versions that this build reads, "" where it reads none */
};

CDACQ_API void cdacq_visit_contracts(struct cdacq *target,
                                     int (*visit)(const struct cdacq_contract_info *contract, void *context),
                                     void *context);

/* A file that is mapped into the target. Strings live until `visit` returns. */
struct cdacq_module_info {
    const char *path;
    uint64_t begin, end;    /* from its lowest to its highest mapping */
    uint64_t missing_size;  /* bytes that the target itself does not hold */
    const char *local_path; /* the file that supplies them; NULL where none was needed, found or accepted */
    const char *build_id;   /* hex, of an ELF image: what debuginfod asks by; NULL where not known */
    const char *symbol_key; /* NAME/KEY/NAME: what symbol servers ask by; NULL where not known */
    const char *problem;    /* why no file was used: one line; NULL where all is well */
    bool verified;          /* something in the target confirmed `local_path` */
};

CDACQ_API enum cdacq_status cdacq_visit_modules(struct cdacq *target,
                                                int (*visit)(const struct cdacq_module_info *module, void *context),
                                                void *context, struct cdacq_error *err);

/* A range of the process that the runtime's range section map covers. */
struct cdacq_code_range_info {
    uint64_t begin, end;
    const char *kind;   /* "jit", "r2r", "stubs", "interpreter" */
    const char *module; /* of ReadyToRun code */
    bool collectible;
};

CDACQ_API enum cdacq_status cdacq_visit_code_ranges(struct cdacq_session *session,
                                                    int (*visit)(const struct cdacq_code_range_info *, void *context),
                                                    void *context, struct cdacq_error *err);

/*
 * Whether the methods of the code range that holds `address` can be told from what the target and its files have; else
 * *err says what is missing. CDACQ_NOT_MANAGED where no range holds it.
 */
CDACQ_API enum cdacq_status cdacq_check_code_range(struct cdacq_session *session, uint64_t address,
                                                   struct cdacq_error *err);

/* ---- The descriptor ------------------------------------------------------------------------------------------ */

enum cdacq_descriptor_item_kind {
    CDACQ_ITEM_TYPE,  /* name; value is the size where has_value */
    CDACQ_ITEM_FIELD, /* of the type visited last; value is the offset */
    CDACQ_ITEM_GLOBAL,
    CDACQ_ITEM_CONTRACT, /* text is the version */
};

/* One value of the merged descriptor. Strings are owned by the target. */
struct cdacq_descriptor_item {
    enum cdacq_descriptor_item_kind kind;
    const char *name;
    const char *type; /* declared type; NULL where none */
    const char *text; /* string value; NULL where none */
    uint64_t value;   /* a negative number as two's complement */
    bool has_value;
    const char *origin;    /* which document it came from */
    const char *overrides; /* another document that said something else, NULL where none did */
};

/* Types with their fields, then globals, then contracts. */
CDACQ_API void cdacq_visit_descriptor(struct cdacq *target,
                                      int (*visit)(const struct cdacq_descriptor_item *item, void *context),
                                      void *context);

/* ---- Snapshots ----------------------------------------------------------------------------------------------- */

/*
 * Writes a self-contained ELF core that holds just the pages which were read since the target was opened with
 * CDACQ_OPEN_RECORD, its mappings (NT_FILE) and no other note: it answers the questions that were asked, on any
 * machine, with no other file. *ret_size is the size written.
 */
CDACQ_API enum cdacq_status cdacq_write_snapshot(struct cdacq *target, const char *path, uint64_t *ret_size,
                                                 struct cdacq_error *err);

/* ---- What perf reads ---------------------------------------------------------------------------------------- */

/*
 * Perf maps and jitdumps of a target, as its runtime writes them with DOTNET_PerfMapEnabled, also where it never did.
 * `flags` are those of cdacq_visit_methods; names are in the target's enum cdacq_name_style, CDACQ_NAMES_IL being the
 * runtime's. Code is told as the runtime tells it: a method with its funclets as one piece, the cold part of a
 * ReadyToRun method as another, behind each name the tier where it is known, in the words of these files
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
    uint64_t size;       /* bytes */
    uint64_t methods;    /* pieces of methods: lines or records */
    uint64_t stubs;      /* and of stubs */
    uint64_t left_out;   /* pieces */
    uint64_t unverified; /* of those written: by a file that nothing in the target could confirm */
};

/*
 * "0x7f21c8a31b40 1a NAME", one line for each piece of code. Fails, before anything is written, as cdacq_visit_methods
 * does. Source: tools/perf/Documentation/jit-interface.txt of Linux; dotnet/runtime src/coreclr/vm/perfmap.cpp.
 */
CDACQ_API enum cdacq_status cdacq_write_perf_map(struct cdacq_session *session, unsigned flags,
                                                 const struct cdacq_sink *sink, struct cdacq_written *ret,
                                                 struct cdacq_error *err);

/*
 * A jitdump of version 1, in the target's byte order: its header, a JIT_CODE_LOAD with the bytes of each piece of code,
 * and JIT_CODE_CLOSE. When code was compiled, and by which thread, the target does not tell: the time of the records
 * counts 1, 2, 3, ..., nanoseconds of CLOCK_MONOTONIC, so that the code is older than any sample; the thread is the
 * process's first. Fails as cdacq_write_perf_map. Source: tools/perf/Documentation/jitdump-specification.txt of Linux.
 */
CDACQ_API enum cdacq_status cdacq_write_jitdump(struct cdacq_session *session, unsigned flags,
                                                const struct cdacq_sink *sink, struct cdacq_written *ret,
                                                struct cdacq_error *err);

/* ---- jitdump files ------------------------------------------------------------------------------------------ */

/*
 * Reads what a runtime writes of the code that it compiles (/tmp/jit-PID.dump): the format of perf's
 * jitdump-specification.txt, versions 1 and 2 in either byte order, with samply's three extensions. No target is
 * needed. The file is read in blocks with pread, never mapped: it may grow, shrink or be replaced meanwhile. Memory
 * stays bounded whatever the file's size; reading a record allocates nothing.
 *
 *     struct cdacq_jitdump *jitdump;
 *     struct cdacq_jitdump_record record;
 *     enum cdacq_status status;
 *
 *     if (cdacq_jitdump_open("/tmp/jit-1234.dump", 0, &jitdump, &error) < 0)
 *         errx(2, "%s", error.message);
 *     while ((status = cdacq_jitdump_next(jitdump, &record, &error)) == CDACQ_OK)
 *         if (record.kind == CDACQ_JITDUMP_LOAD && record.has_fields)
 *             printf("%#" PRIx64 " %s\n", record.as.load.vma, record.as.load.name);
 *     if (status < 0)
 *         warnx("%s", error.message);
 *     cdacq_jitdump_close(jitdump);
 */
struct cdacq_jitdump;

enum cdacq_jitdump_flags {
    CDACQ_JITDUMP_FOLLOW = 1 << 0, /* the file is being written: wait for what is not there yet */
    CDACQ_JITDUMP_CODE = 1 << 1,   /* hand out code and unwinding data too; without it they are not even read */
};

/* The text is the `type` in `cdacq records --json`. */
#define CDACQ_JITDUMP_KINDS(X)                  \
    X(HEADER, "header")                         \
    X(LOAD, "load")                             \
    X(MOVE, "move")                             \
    X(DEBUG_INFO, "debug_info")                 \
    X(CLOSE, "close")                           \
    X(UNWINDING_INFO, "unwinding_info")         \
    X(SAMPLY_DEBUG_INFO2, "samply_debug_info2") \
    X(SAMPLY_TIER, "samply_tier")               \
    X(SAMPLY_SOURCE, "samply_source")           \
    X(UNKNOWN, "unknown")

enum cdacq_jitdump_kind {
#define CDACQ_JITDUMP_KIND_(name, text) CDACQ_JITDUMP_##name,
    CDACQ_JITDUMP_KINDS(CDACQ_JITDUMP_KIND_)
#undef CDACQ_JITDUMP_KIND_
};

/* "load"; a static string. */
CDACQ_API const char *cdacq_jitdump_kind_text(enum cdacq_jitdump_kind kind);

/* The file's header. Fields that a short header does not have are 0. */
struct cdacq_jitdump_header {
    uint32_t version, total_size, elf_mach, pad1, pid;
    uint64_t flags; /* bit 0: JITDUMP_FLAGS_ARCH_TIMESTAMP, times are the processor's ticks instead of nanoseconds */
    bool big_endian;
    const char *restart; /* NULL at first; why the file is read from its start again: it was truncated or replaced */
};

/* JIT_CODE_LOAD */
struct cdacq_jitdump_load {
    uint32_t pid, tid;
    uint64_t vma, code_addr, code_size, code_index;
    const char *name; /* as in the file, NUL-terminated: any bytes; NULL where the record is damaged */
    size_t name_length;
    const void *code;     /* code_size bytes; NULL without CDACQ_JITDUMP_CODE, or where they are not all there */
    uint64_t code_offset; /* where the code is in the file; 0 where not known */
    /* Offsets of the records before it that are about this function; 0 where there is none. */
    uint64_t debug_info, unwinding_info, samply_debug_info2;
};

/* JIT_CODE_MOVE */
struct cdacq_jitdump_move {
    uint32_t pid, tid;
    uint64_t vma, old_code_addr, new_code_addr, code_size, code_index;
    uint64_t load; /* offset of the JIT_CODE_LOAD that it moves; 0 where there is none */
};

/* JIT_CODE_DEBUG_INFO; entries by cdacq_jitdump_next_entry */
struct cdacq_jitdump_debug_info {
    uint64_t code_addr, nr_entry;
};

/* JIT_CODE_UNWINDING_INFO */
struct cdacq_jitdump_unwinding_info {
    uint64_t unwind_data_size, eh_frame_hdr_size, mapped_size;
    const void *unwinding_data; /* unwind_data_size bytes, as `code` above */
    uint64_t unwinding_data_offset;
};

/*
 * SAMPLY_JIT_CODE_DEBUG_INFO2. Strings by cdacq_jitdump_next_string, the other lists by index. Counts are as the file
 * says them; the functions below give only what is really there.
 */
struct cdacq_jitdump_samply_debug_info2 {
    uint32_t file_count, file_list_size, function_names_count, function_names_list_size, function_count,
        inline_call_record_count, range_count, line_record_count;
};

/*
 * One record, or the file's header, which comes first. Everything it points to is good until the next call on the
 * handle. `error` is a line on what is wrong with the record: lists may be cut then, strings NULL, and without
 * has_fields the record is too short for the fields of its kind, which are 0. Kinds without a member in `as` are
 * described by what stands before it.
 */
struct cdacq_jitdump_record {
    enum cdacq_jitdump_kind kind;
    uint32_t id;           /* as in the file; 0 for the header */
    uint64_t offset, size; /* in the file, its own header included */
    uint64_t timestamp;
    const char *error;
    bool has_fields;
    union {
        struct cdacq_jitdump_header header;
        struct cdacq_jitdump_load load;
        struct cdacq_jitdump_move move;
        struct cdacq_jitdump_debug_info debug_info;
        struct cdacq_jitdump_unwinding_info unwinding_info;
        struct cdacq_jitdump_samply_debug_info2 samply_debug_info2;
    } as;
    struct {
        const uint8_t *bytes; /* those that were read */
        size_t size;
        bool big_endian;
    } opaque; /* the library's */
};

/*
 * Opens a regular file. Nothing of it is read yet: what it is shows at the first cdacq_jitdump_next. A handle belongs
 * to one thread at a time. Fails with IO, NOMEM.
 */
CDACQ_API enum cdacq_status cdacq_jitdump_open(const char *path, unsigned flags, struct cdacq_jitdump **ret,
                                               struct cdacq_error *err);

/* NULL is fine. */
CDACQ_API void cdacq_jitdump_close(struct cdacq_jitdump *jitdump);

/*
 * The next record, the header first. A record that is not as it should be is told in its `error`; those behind it are
 * not lost. CDACQ_END: there is no more. FORMAT: it is no jitdump, or the record at err->address, the last one, is cut,
 * or says a size that leads nowhere. The file is read up to the size it had when it was opened.
 *
 * With CDACQ_JITDUMP_FOLLOW only whole records are read, and CDACQ_END means that there is none at present: sleep and
 * ask again. When the file was truncated or rewritten, or another one took its place under the same path and this one
 * has been read to its end, the next record is a header again, with `restart`.
 */
CDACQ_API enum cdacq_status cdacq_jitdump_next(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_record *ret,
                                               struct cdacq_error *err);

/* One debug_entry of a JIT_CODE_DEBUG_INFO record. */
struct cdacq_jitdump_entry {
    uint64_t code_addr;
    uint32_t line, discrim;
    const char *name; /* NUL-terminated, any bytes */
    size_t name_length;
};

/* Entries in order: *cursor is 0 at first. False behind the last. */
CDACQ_API bool cdacq_jitdump_next_entry(const struct cdacq_jitdump_record *record, uint64_t *cursor,
                                        struct cdacq_jitdump_entry *ret);

/* The lists of SAMPLY_JIT_CODE_DEBUG_INFO2. All numbers are as in the file, indexes not checked against their lists. */
enum cdacq_jitdump_strings { CDACQ_JITDUMP_FILES, CDACQ_JITDUMP_FUNCTION_NAMES };

/* Strings of a list in order: *cursor is 0 at first. False behind the last. */
CDACQ_API bool cdacq_jitdump_next_string(const struct cdacq_jitdump_record *record, enum cdacq_jitdump_strings list,
                                         uint64_t *cursor, const char **ret, size_t *ret_length);

struct cdacq_jitdump_function {
    uint32_t function_name_index, file_index, start_line, start_column, flags;
};

/* The calls are a tree in depth-first order: the caller of a call is the last one before it of a smaller depth. */
struct cdacq_jitdump_inline_call {
    uint32_t depth, range_count, function_index, call_line_number, call_column_number;
};

/* Each call takes the next `range_count` of them, in the order of calls. Offsets count from the function's start. */
struct cdacq_jitdump_range {
    uint32_t start_offset, size;
};

struct cdacq_jitdump_line_record {
    uint32_t code_offset, file_index, line_number, column_number;
};

/* Element `index` of a list. False behind the last. */
CDACQ_API bool cdacq_jitdump_function(const struct cdacq_jitdump_record *record, uint32_t index,
                                      struct cdacq_jitdump_function *ret);
CDACQ_API bool cdacq_jitdump_inline_call(const struct cdacq_jitdump_record *record, uint32_t index,
                                         struct cdacq_jitdump_inline_call *ret);
CDACQ_API bool cdacq_jitdump_range(const struct cdacq_jitdump_record *record, uint32_t index,
                                   struct cdacq_jitdump_range *ret);
CDACQ_API bool cdacq_jitdump_line_record(const struct cdacq_jitdump_record *record, uint32_t index,
                                         struct cdacq_jitdump_line_record *ret);

/* Where the function of a JIT_CODE_LOAD is, after the JIT_CODE_MOVEs of it. */
struct cdacq_jitdump_place {
    uint64_t code_index;
    uint64_t load; /* offset of its JIT_CODE_LOAD; of the last one, where several have the same index */
    uint64_t vma, code_addr, code_size;
    uint64_t timestamp; /* of the record that put it there */
};

/*
 * Calls `visit` for every function of the records read so far, where it is now, in no order. `visit` returns 0 to go
 * on; anything else ends the visit with CDACQ_STOPPED. The first call, like the first JIT_CODE_MOVE, reads the file
 * again and makes a table, kept from then on: at most 128 bytes for each function, and 8,388,608 of them (FUEL beyond).
 * What the last record pointed to is no longer good.
 */
CDACQ_API enum cdacq_status cdacq_jitdump_visit_places(struct cdacq_jitdump *jitdump,
                                                       int (*visit)(const struct cdacq_jitdump_place *place,
                                                                    void *context),
                                                       void *context, struct cdacq_error *err);

/* ---- Cross-checking ----------------------------------------------------------------------------------------- */

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
    enum cdacq_verdict verdict;
    /* The record. Of MISSING_FROM_FILE all is 0. */
    uint64_t offset;    /* of the record or the line in the file */
    uint64_t line;      /* of a perf map, from 1; else 0 */
    uint64_t timestamp; /* of a jitdump */
    uint64_t address, size;
    const char *name; /* any bytes; NUL-terminated in no case */
    size_t name_length;
    /* What the target has there, or the method that the record is of: named as CDACQ_NAMES_IL. NULL: nothing. */
    const struct cdacq_method *method;
    const char *detail; /* one line: how they differ, or why it cannot be told; NULL where there is nothing to add */
};

/* The sum of it. */
struct cdacq_verification {
    bool perf_map;                                  /* the file is one; else a jitdump */
    uint64_t records;                               /* of the file, without those that are about no code */
    uint64_t counts[CDACQ_VERDICT_COUNT];           /* of all but MISSING_FROM_FILE they add up to `records` */
    uint64_t contradictions;                        /* the four of them that are one */
    uint64_t names_not_compared;                    /* of MATCH: the target does not tell the name */
    uint64_t code_not_compared;                     /* of MATCH in a jitdump: code that the target or file lacks */
    const char *advice;                             /* what would make the runtime write a better file; or NULL */
    char cut[CDACQ_ERROR_MESSAGE_SIZE];             /* "": the file ends at the end of a record; else a line */
    char methods_problem[CDACQ_ERROR_MESSAGE_SIZE]; /* "": all methods were looked for in the file; else a line */
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
CDACQ_API enum cdacq_status cdacq_verify(struct cdacq *target, const char *path,
                                         int (*visit)(const struct cdacq_comparison *comparison, void *context),
                                         void *context, struct cdacq_verification *ret, struct cdacq_error *err);

#ifdef __cplusplus
}
#endif

#endif
