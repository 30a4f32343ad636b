/*
 * cdacq/target.h: opening a core dump, a live process, an image or caller's memory; and what the target is.
 */
#ifndef CDACQ_TARGET_H
#define CDACQ_TARGET_H

#include <cdacq/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Opening a target -------------------------------------------------------------------------------------------- */

struct cdacq_target;

enum cdacq_open_flags {
    CDACQ_OPEN_STOP =
        1 << 0, /* live: hold all threads (PTRACE_SEIZE) until cdacq_target_close, which lets them run on */
    CDACQ_OPEN_RECORD = 1 << 1,     /* remember what is read, for cdacq_target_write_snapshot */
    CDACQ_OPEN_DEBUGINFOD = 1 << 2, /* ask the servers in DEBUGINFOD_URLS for missing ELF files */
    /*
     * Open also what no method can be found in: a process without a runtime, or with one that cannot be read.
     * cdacq_target_get_info then says why, and everything that takes no session tells what is there; no session can be
     * made. Runtimes are looked for in every mapped image, not just until libcoreclr.so is found.
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

enum cdacq_need_kind {
    CDACQ_NEED_FILE,               /* a file that the target has mapped and whose bytes are missing */
    CDACQ_NEED_DESCRIPTOR,         /* what the runtime does not publish: cdacq_options.descriptors can */
    CDACQ_NEED_DESCRIPTOR_ADDRESS, /* where the descriptor is: cdacq_options.descriptor_address */
};

/* One thing that is missing. Strings live until the callback returns; they are NULL where not known. */
struct cdacq_need {
    size_t size;
    enum cdacq_need_kind kind;
    const char *path;       /* of a file: as the target names it */
    const char *build_id;   /* hex, of an ELF file: what debuginfod asks by */
    const char *symbol_key; /* NAME/KEY/NAME: what symbol servers ask by */
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
     * within any call on the target or its sessions; it must not call back into them. Good until cdacq_target_close.
     */
    bool (*find_file)(void *context, const struct cdacq_need *file, char *ret_path, size_t size);
    void *find_file_context;
    /*
     * How the host's user can supply what is missing: writes nothing, or a text of at most `size` bytes, its NUL
     * included, which is appended as it is to the message that reports the need. The library's own messages name what
     * is missing, but no way to supply it. Called under the rules of find_file, once for each need: when a file has
     * been searched for and not found or not accepted, and when opening fails.
     */
    void (*describe_need)(void *context, const struct cdacq_need *need, char *ret_text, size_t size);
    void *describe_need_context;
};

/*
 * Opens an ELF core of either class and byte order. The file is mapped, never copied, and must not change while it is
 * open (CDACQ_OPEN_PREAD for one that may). Missing file-backed pages come from the files that the core's NT_FILE note
 * names, where those can be found and nothing in the core contradicts them. Fails with IO, FORMAT, NO_RUNTIME,
 * NO_DESCRIPTOR, DESCRIPTOR, CONTRACT, FIELD.
 */
CDACQ_API enum cdacq_status cdacq_target_open_core(const char *path, const struct cdacq_options *options,
                                                   struct cdacq_target **ret, struct cdacq_error *err);

/*
 * Opens a running process through process_vm_readv and /proc, which takes the permission to ptrace it. It is not
 * stopped unless CDACQ_OPEN_STOP asks for it. What was read is kept: answers are those of the time of reading.
 */
CDACQ_API enum cdacq_status cdacq_target_open_pid(int pid, const struct cdacq_options *options,
                                                  struct cdacq_target **ret, struct cdacq_error *err);

/*
 * Opens an ELF image, libcoreclr.so or a single-file application, as if it were loaded and nothing had run: for its
 * descriptor, and for what the runtime is. Globals that a runtime writes down only as it starts have no value (those of
 * .NET 8 and 9, which then take CDACQ_OPEN_PARTIAL). No method is found in it.
 */
CDACQ_API enum cdacq_status cdacq_target_open_image(const char *path, const struct cdacq_options *options,
                                                    struct cdacq_target **ret, struct cdacq_error *err);

/* One mapping of a target whose memory the caller provides. `path` is NULL for anonymous memory. */
struct cdacq_mapping {
    size_t size; /* sizeof(struct cdacq_mapping) of the caller; of an array that of the first element counts */
    uint64_t begin, end;
    uint64_t file_offset;
    const char *path;
};

/*
 * Target memory that the caller provides: of a debugger's target, a format of dumps of its own, an emulator. Zero the
 * struct, set `size`, one of `span_at` and `read`, and what is known of the rest. Everything it points to must stay
 * valid until cdacq_target_close, the mappings and their paths unchanged too.
 */
struct cdacq_memory {
    size_t size; /* sizeof(struct cdacq_memory) of the caller */
    void *context;
    /*
     * For who has the memory at hand: the widest readable run of bytes that holds `address`, its bounds and its bytes,
     * which stay as they are until cdacq_target_close: the library takes no copy. False where there is none. May be
     * called from every thread that uses the target, by several at once.
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
     * new cdacq_target_open_memory. Asked for are ranges that cross no page, from within any call on the target or its
     * sessions, by one thread at a time; it must not call back into them.
     */
    size_t (*read)(void *context, uint64_t address, void *buffer, size_t size);
    int pid;              /* of the process; 0 where not known: cdacq_target_info tells it, nothing depends on it */
    uint16_t elf_machine; /* EM_* of the process; 0 where not known: the runtime's image, where there is one, tells */
};

/*
 * Opens memory that the caller provides. The runtime is found through the mappings: one of them, with file offset 0,
 * is the start of libcoreclr.so or of another image that exports the descriptor. Where only the descriptor's address is
 * known, options->descriptor_address does without any mapping (.NET 9 and later; 8 publishes no descriptor). Mappings
 * also give the ReadyToRun images their paths.
 *
 * What the callback does not have comes from the mapped files, under the rules of cdacq_target_open_core, only where
 * the options say where these are (find_file, sysroots, module_paths, CDACQ_OPEN_DEBUGINFOD). What it has counts, to
 * the byte, so it is asked about each byte that a file gives. Nothing else on this machine is looked at.
 * CDACQ_OPEN_STOP has no meaning here. Fails as cdacq_target_open_core does, with ARGUMENT where the struct is not as
 * it should be.
 */
CDACQ_API enum cdacq_status cdacq_target_open_memory(const struct cdacq_memory *memory,
                                                     const struct cdacq_options *options, struct cdacq_target **ret,
                                                     struct cdacq_error *err);

/* Frees everything and lets a stopped process run on. All sessions must be destroyed before. NULL is fine. */
CDACQ_API void cdacq_target_close(struct cdacq_target *target);

/* ---- What the target is ------------------------------------------------------------------------------------------ */

enum cdacq_target_kind { CDACQ_TARGET_CORE, CDACQ_TARGET_PROCESS, CDACQ_TARGET_MEMORY, CDACQ_TARGET_IMAGE };

/* Strings are owned by the target and may be NULL where not known. */
struct cdacq_target_info {
    size_t size; /* sizeof(struct cdacq_target_info) of the caller */
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

/* Fails with ARGUMENT only. */
CDACQ_API enum cdacq_status cdacq_target_get_info(struct cdacq_target *target, struct cdacq_target_info *ret,
                                                  struct cdacq_error *err);

/*
 * One of the process's runtimes, in the order by which cdacq_options.runtime counts them. Strings as in
 * cdacq_target_info.
 */
struct cdacq_runtime_info {
    size_t size;
    const char *path; /* NULL where only the descriptor's address is known */
    uint64_t base;
    const char *build_id;
    const char *version; /* "10.0.12", or "10.0" */
    uint64_t descriptor_address;
    bool in_use;
};

/* Strings live until `visit` returns. */
CDACQ_API enum cdacq_status cdacq_target_visit_runtimes(struct cdacq_target *target,
                                                        int (*visit)(const struct cdacq_runtime_info *runtime,
                                                                     void *context),
                                                        void *context, struct cdacq_error *err);

struct cdacq_contract_info {
    size_t size;
    const char *name;
    const char *version; /* as published: a number or a text */
    const char *origin;  /* which document */
    bool supported;      /* whether this build reads that version */
    const char *known;   /* versions that this build reads, "" where it reads none */
};

CDACQ_API enum cdacq_status cdacq_target_visit_contracts(struct cdacq_target *target,
                                                         int (*visit)(const struct cdacq_contract_info *contract,
                                                                      void *context),
                                                         void *context, struct cdacq_error *err);

/* A file that is mapped into the target. Strings live until `visit` returns. */
struct cdacq_module_info {
    size_t size;
    const char *path;
    uint64_t begin, end;    /* from its lowest to its highest mapping */
    uint64_t missing_size;  /* bytes that the target itself does not hold */
    const char *local_path; /* the file that supplies them; NULL where none was needed, found or accepted */
    const char *build_id;   /* hex, of an ELF image: what debuginfod asks by; NULL where not known */
    const char *symbol_key; /* NAME/KEY/NAME: what symbol servers ask by; NULL where not known */
    const char *problem;    /* why no file was used: one line; NULL where all is well */
    bool verified;          /* something in the target confirmed `local_path` */
};

CDACQ_API enum cdacq_status cdacq_target_visit_modules(struct cdacq_target *target,
                                                       int (*visit)(const struct cdacq_module_info *module,
                                                                    void *context),
                                                       void *context, struct cdacq_error *err);

/* ---- The descriptor ---------------------------------------------------------------------------------------------- */

enum cdacq_descriptor_item_kind {
    CDACQ_ITEM_TYPE,  /* name; value is the size where has_value */
    CDACQ_ITEM_FIELD, /* of the type visited last; value is the offset */
    CDACQ_ITEM_GLOBAL,
    CDACQ_ITEM_CONTRACT, /* text is the version */
};

/* One value of the merged descriptor. Strings are owned by the target. */
struct cdacq_descriptor_item {
    size_t size;
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
CDACQ_API enum cdacq_status cdacq_target_visit_descriptor(struct cdacq_target *target,
                                                          int (*visit)(const struct cdacq_descriptor_item *item,
                                                                       void *context),
                                                          void *context, struct cdacq_error *err);

/* ---- Snapshots --------------------------------------------------------------------------------------------------- */

/*
 * Writes a self-contained ELF core that holds just the pages which were read since the target was opened with
 * CDACQ_OPEN_RECORD, its mappings (NT_FILE) and no other note: it answers the questions that were asked, on any
 * machine, with no other file. *ret_size is the size written.
 */
CDACQ_API enum cdacq_status cdacq_target_write_snapshot(struct cdacq_target *target, const char *path,
                                                        uint64_t *ret_size, struct cdacq_error *err);

#ifdef __cplusplus
}
#endif

#endif
