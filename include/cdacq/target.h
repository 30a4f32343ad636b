/*
 * cdacq/target.h: opens a core dump, a live process, an image or caller's memory; describes the target.
 */
#ifndef CDACQ_TARGET_H
#define CDACQ_TARGET_H

#include <cdacq/error.h>

CDACQ_BEGIN_DECLS

/* ---- Opening a target -------------------------------------------------------------------------------------------- */

/*
 * An open target. Several threads may use that of a core, an image or caller's memory at once. One thread at a time may
 * use a live process, or a target with CDACQ_OPEN_RECORD, together with its sessions. This holds for all calls on a
 * target. It owns the strings in the structs that describe it.
 *
 * A file that the target names, or memory that a process maps from such a file, may be on a file system that never
 * answers (FUSE, NFS). Only then does the library fork a helper process, which looks at it in the library's place and
 * is waited for 4 seconds for each target. The helper runs no handlers of pthread_atfork(), keeps no file descriptor
 * of the caller open, and ends with the caller. It sends no SIGCHLD, and only waitpid() with __WALL or __WCLONE finds
 * it.
 */
struct cdacq_target;

enum cdacq_open_flags {
    /*
     * live: stop all threads (PTRACE_SEIZE) until cdacq_target_resume or cdacq_target_close. The runtime and its
     * descriptor, which are found once, are read before the stop; the memory that answers rest on is read after it.
     */
    CDACQ_OPEN_STOP = 1 << 0,
    CDACQ_OPEN_RECORD = 1 << 1,     /* record what is read, for cdacq_target_write_snapshot */
    CDACQ_OPEN_DEBUGINFOD = 1 << 2, /* ask the servers in DEBUGINFOD_URLS for missing ELF files */
    /*
     * Also open a target where no method can be found: a process without a runtime, or with one that cannot be read.
     * cdacq_target_get_info then says why. All calls that take no session work; no session can be created. The search
     * for runtimes covers every mapped image instead of ending at the first libcoreclr.so.
     */
    CDACQ_OPEN_PARTIAL = 1 << 3,
    /*
     * Read the core, and the files that replace what it lacks, with pread into private memory. Map no file. For
     * programs that must not die of SIGBUS when such a file is truncated: bytes that are gone by then are missing
     * (MEMORY); bytes that were read before remain. Pages of the core are kept as they are read, at most 1 GiB; a
     * replacement file is read whole, at most 1 GiB of it.
     */
    CDACQ_OPEN_PREAD = 1 << 4,
    /*
     * live: keep what was read until cdacq_target_refresh. By default, each call reads again what the process can
     * change.
     */
    CDACQ_OPEN_KEEP = 1 << 5,
    /*
     * Also open the other runtimes of the process: those in files named libcoreclr.so and, with CDACQ_OPEN_PARTIAL,
     * any. A session then answers for all of them where cdacq/session.h says so; cdacq_session_of_runtime has those of
     * each. `descriptors` and `descriptor_address` are for cdacq_options.runtime alone. Opening fails only if no
     * runtime can be read; cdacq_runtime_info.problem says why one cannot.
     */
    CDACQ_OPEN_ALL_RUNTIMES = 1 << 6,
    /*
     * Also open a process whose only runtime cannot be read, because its file is missing, say. A session then knows
     * native code alone: the threads of the process and their native frames. cdacq_target_get_info says what is wrong
     * with the runtime.
     */
    CDACQ_OPEN_NATIVE = 1 << 7,
};

/*
 * The style of method names. SOS and IL are exactly the names of the runtime's debugger services and of its perf map,
 * except that backslashes in a method's name are doubled and unprintable characters are escaped. For code that the
 * runtime has not prepared, names come from its image: an assembly is then the referenced one, which may only forward.
 */
enum cdacq_name_style {
    CDACQ_NAMES_CSHARP, /* Ns.Outer.Inner<int>.M<U>(int, U): in C# syntax; a formal parameter where code is shared */
    CDACQ_NAMES_SOS,    /* Ns.Outer+Inner`1[[System.Int32, System.Private.CoreLib]].M(Int32): SOS, the runtime's DAC */
    CDACQ_NAMES_IL,     /* instance void [Asm] Ns.Outer+Inner`1[System.Int32]::M(!0): the runtime's perf map */
    CDACQ_NAMES_SOURCE, /* lambda in Ns.Outer.M(int): as CSHARP, but the method that a person wrote */
};

/* What is missing. */
enum cdacq_need_kind {
    CDACQ_NEED_FILE,               /* a mapped file whose bytes are missing */
    CDACQ_NEED_DESCRIPTOR,         /* the descriptor that the runtime does not publish: cdacq_options.descriptors */
    CDACQ_NEED_DESCRIPTOR_ADDRESS, /* the address of the descriptor: cdacq_options.descriptor_address */
    CDACQ_NEED_PDB,                /* the PDB of a module, for source lines */
};

/* Something that is missing. The library sets `size`. Strings are valid until the callback returns; NULL: not known. */
struct cdacq_need {
    size_t size;
    enum cdacq_need_kind kind;
    const char *path;       /* of a file, as the target names it; of a PDB only its name */
    const char *build_id;   /* of an ELF file, in hex: the key for debuginfod */
    const char *symbol_key; /* NAME/KEY/NAME: the key for symbol servers */
};

/* All optional: zero the struct, set `size` and the wanted fields. Strings and arrays are copied. */
struct cdacq_options {
    size_t size;      /* sizeof(struct cdacq_options) of the caller */
    unsigned flags;   /* enum cdacq_open_flags */
    unsigned runtime; /* index of the runtime to use; 0 is the first that cdacq_target_visit_runtimes visits */
    const char *const *sysroots; /* directories to prepend to the target's paths, tried in order */
    size_t sysroot_count;
    const char *const *module_paths; /* directories to search for a mapped file by its name, in order */
    size_t module_path_count;
    /*
     * URLs of symbol servers (https://example.com/symbols), asked in order for mapped files, debug files and PDBs that
     * are found nowhere else, by the keys of cdacq_need.symbol_key. A file is checked as any other; one that nothing
     * confirms is used as if it were at its own path. The program curl (PATH) reads the URLs, and runs meanwhile; it
     * sends SIGCHLD, and nothing can be fetched where that is ignored. While a process is stopped, no server is asked.
     */
    const char *const *symbol_servers;
    size_t symbol_server_count;
    /* The folder of fetched files, made if it is missing. NULL: $XDG_CACHE_HOME/cdacq or ~/.cache/cdacq. */
    const char *symbol_cache;
    const char *const *descriptors; /* JSON files that override the published descriptor, in order */
    size_t descriptor_count;
    uint64_t descriptor_address; /* of DotNetRuntimeContractDescriptor; 0: search for it */
    enum cdacq_name_style names; /* for all sessions of the target */
    /*
     * For cores that are compressed or come from a pipe: the maximal number of bytes in the temporary file, not
     * counting pages of zeros; 0 means 8 GiB. The rest is missing, and cdacq_target_info.truncation says so.
     */
    uint64_t store_max;
    /*
     * Bounds on what all calls on the target and its sessions take together: units of fuel (one for each read of memory
     * or step of a loop), and bytes of memory that are kept. 0: only the bounds of single calls apply.
     * CDACQ_BOUND_BY_SIZE: about two seconds and 256 MiB for a core of up to 128 MiB, or a process with as much in RAM
     * of its own; no bound for other targets. Work on a process begins anew with cdacq_target_refresh and _stop. Once a
     * bound is reached, calls fail with FUEL, and cdacq_target_bound_reached says which it is.
     */
    uint64_t work_max, memory_max;
    /*
     * Finds a mapped file, or the PDB of a module, on this machine: writes a path of at most `size` bytes, including
     * its NUL, and returns true. If it returns false, the library searches for the file itself. The library calls it
     * once for a file, when bytes of it are first missing, and once for a PDB, when it is first needed, before it
     * searches the sysroots and module paths. The file is checked as any other: if the target contradicts it, the
     * library refuses it and goes on searching. Called by one thread at a time, from within any call on the target or
     * its sessions; it must not call back into them. It must stay callable until cdacq_target_close.
     */
    bool (*find_file)(const struct cdacq_need *file, char *ret_path, size_t size, void *context);
    void *find_file_context;
    /*
     * Says how the user of the host program can supply what is missing: writes nothing, or a text of at most `size`
     * bytes, including its NUL, which is appended unchanged to the message that reports the need. Messages of the
     * library name what is missing but not how to supply it. Called under the rules of find_file, once for each need:
     * when a file was not found or not accepted, and when opening fails.
     */
    void (*describe_need)(const struct cdacq_need *need, char *ret_text, size_t size, void *context);
    void *describe_need_context;
    /*
     * Called often while a core that is compressed or comes from a pipe is read, in bytes of the file or pipe, and
     * while cdacq_target_verify reads its file twice, in bytes of twice the file. `total` is 0 if it is not known.
     */
    void (*progress)(uint64_t done, uint64_t total, void *context);
    void *progress_context;
    /*
     * Called often while a file is fetched by debuginfod (CDACQ_OPEN_DEBUGINFOD) or from a symbol server. `file` has
     * its path and build-id, or its key; `done` and `total` are bytes, and 0 while they are not known. Called once more
     * when the fetch has ended, with a `file` of NULL. Called under the rules of find_file.
     */
    void (*fetching)(const struct cdacq_need *file, uint64_t done, uint64_t total, void *context);
    /*
     * Called when a symbol server does not give a file, or gives another one: `why` is one line, `url` what was asked
     * for; or, where a copy of an earlier fetch is refused, its path. `absent`: the server has no such file. Called
     * under the rules of find_file.
     */
    void (*fetch_failed)(const struct cdacq_need *file, const char *url, bool absent, const char *why, void *context);
    void *fetching_context; /* of both */
    /*
     * live, with CDACQ_OPEN_STOP and without CDACQ_OPEN_RECORD: called once when all else is open, before the process
     * is stopped, so that the caller can watch it run for a time. `target` is one of a process that runs, which may be
     * stopped and resumed within the call; sessions of it must be destroyed before the call returns.
     */
    void (*before_stop)(struct cdacq_target *target, void *context);
    void *before_stop_context;
};

#define CDACQ_BOUND_BY_SIZE UINT64_MAX

/*
 * Opens an ELF core of either class and byte order; the caller closes it. The file is mapped, not copied, and must not
 * change while it is open (CDACQ_OPEN_PREAD for one that may). `options` may be NULL. Missing pages of mapped files
 * come from the files that the NT_FILE note names, if these are found and nothing in the core contradicts them. Fails
 * with ARGUMENT, NOMEM, IO, FORMAT, NO_RUNTIME, NO_DESCRIPTOR, DESCRIPTOR, CONTRACT, FIELD.
 *
 * A core that is compressed by zstd, gzip, xz or lz4, which its first bytes show, is unpacked into a temporary file
 * without a name, in TMPDIR or /var/tmp; its pages of zeros use no space. If the data are cut off or damaged, or
 * exceed a bound, what was unpacked until then is the core. Needs the format's library (fails with IO without it):
 * libzstd, zlib, liblzma or liblz4.
 */
CDACQ_API enum cdacq_status cdacq_target_open_core(const char *path, const struct cdacq_options *options,
                                                   struct cdacq_target **ret, struct cdacq_error *err);

/*
 * Opens a core that `fd` provides from its position to its end. `name` is its name in messages. A core from a pipe or
 * socket is stored in a temporary file, as one that is compressed; the call returns after all of it was read, or after
 * a bound was reached. The target does not use `fd` after the call; the caller closes it. Fails as
 * cdacq_target_open_core does.
 */
CDACQ_API enum cdacq_status cdacq_target_open_core_fd(int fd, const char *name, const struct cdacq_options *options,
                                                      struct cdacq_target **ret, struct cdacq_error *err);

/*
 * Opens a live process through process_vm_readv and /proc, which needs the permission to ptrace it. The process keeps
 * running unless CDACQ_OPEN_STOP is set. Each call reads again what the process can change, unless CDACQ_OPEN_KEEP or
 * CDACQ_OPEN_RECORD is set or the process is stopped. Fails as cdacq_target_open_core does.
 */
CDACQ_API enum cdacq_status cdacq_target_open_pid(int pid, const struct cdacq_options *options,
                                                  struct cdacq_target **ret, struct cdacq_error *err);

/*
 * Opens an ELF image, libcoreclr.so or a single-file application, as if it were loaded and had not run yet, to read its
 * descriptor and identify the runtime. Globals that the runtime sets when it starts have no value; those of .NET 8 and
 * 9 therefore need CDACQ_OPEN_PARTIAL. No method is found in an image. Fails as cdacq_target_open_core does.
 */
CDACQ_API enum cdacq_status cdacq_target_open_image(const char *path, const struct cdacq_options *options,
                                                    struct cdacq_target **ret, struct cdacq_error *err);

/* One mapping of a target whose memory the caller provides. `path` is NULL for anonymous memory. */
struct cdacq_mapping {
    size_t size; /* sizeof(struct cdacq_mapping) of the caller; an array uses that of its first element */
    uint64_t begin, end;
    uint64_t file_offset;
    const char *path;
};

struct cdacq_registers;

/* A thread of a target whose memory the caller provides. */
struct cdacq_memory_thread {
    size_t size;                             /* sizeof(struct cdacq_memory_thread) of the caller */
    int tid;                                 /* the kernel's id, which the runtime uses, too */
    int signal;                              /* the signal that it got; 0: none */
    bool died;                               /* that signal ended the process */
    const char *name;                        /* NULL: not known; up to 16 bytes are kept */
    const struct cdacq_registers *registers; /* cdacq/stack.h; NULL: not known */
};

/*
 * Target memory that the caller provides, such as that of a debugger, an emulator or another dump format. Zero the
 * struct, set `size`, one of `span_at` and `read`, and the other fields that are known. Everything that it points to,
 * including the mappings, their paths and the threads, must stay valid and unchanged until cdacq_target_close.
 */
struct cdacq_memory {
    size_t size; /* sizeof(struct cdacq_memory) of the caller */
    /*
     * For hosts that have the memory at hand: returns the bounds and the bytes of the widest readable span that
     * contains `address`, or false if it is not readable. The bytes must not change until cdacq_target_close; the
     * library does not copy them. Several threads may call it at once if several use the target.
     */
    bool (*span_at)(uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes, void *context);
    /*
     * For hosts that can only copy, as debuggers do: copies at most `size` bytes from `address` up to the first that
     * cannot be read, and returns their number. A host that can only succeed or fail as a whole may return 0 for a
     * partly readable range and is then asked for less. The library caches the bytes in pages of 4 KiB, at most 1 GiB,
     * and does not ask for them again; in most cases it does not ask for unreadable bytes again either. Answers about a
     * running process therefore reflect the time of the first read; call cdacq_target_open_memory again to see its
     * present state. A request never crosses a page. If a mapped file can supply unreadable bytes, an aligned line of
     * 64 bytes is taken to be readable at its ends only, so a file may supply readable bytes between unreadable ones.
     * Called by one thread at a time, from within any call on the target or its sessions; it must not call back into
     * them.
     */
    size_t (*read)(uint64_t address, void *buffer, size_t size, void *context);
    void *context;                        /* of both */
    const struct cdacq_mapping *mappings; /* in any order; may be empty if the options give a descriptor address */
    size_t mapping_count;
    /*
     * Where the host has memory, in any order; of a mapping, only its begin and end are used. `span_at` and `read` are
     * called for addresses in these intervals only, which makes a core that lacks the bytes of mapped files fast, and
     * what they return beside them is not used. They may still lack bytes within. NULL: not known. The first one's
     * `size` is that of all.
     */
    const struct cdacq_mapping *held;
    size_t held_count;
    int pid;              /* of the process, for cdacq_target_info only; 0 when not known */
    uint16_t elf_machine; /* EM_* of the process; 0 when not known: taken from the runtime's image if there is one */
    /* For cdacq_session_visit_threads, in its order of visits. The first one's `size` is that of all. */
    const struct cdacq_memory_thread *threads;
    size_t thread_count; /* at most 65536 are used; 0: the target has no threads */
};

/*
 * Opens memory that the caller provides. The runtime is found through the mappings: one with file offset 0 is the start
 * of libcoreclr.so or of another image that exports the descriptor. With options->descriptor_address no mapping is
 * needed (.NET 9 and later; .NET 8 publishes no descriptor). Mappings also give the ReadyToRun images their paths.
 *
 * Bytes that the callback lacks come from the mapped files, under the rules of cdacq_target_open_core, but only if the
 * options say where these are (find_file, sysroots, module_paths, CDACQ_OPEN_DEBUGINFOD). The callback's bytes always
 * take precedence, so it is asked about every byte that a file could supply. The library looks at nothing else on this
 * machine. CDACQ_OPEN_STOP has no effect. Fails as cdacq_target_open_core does, with ARGUMENT if the struct is not
 * valid.
 */
CDACQ_API enum cdacq_status cdacq_target_open_memory(const struct cdacq_memory *memory,
                                                     const struct cdacq_options *options, struct cdacq_target **ret,
                                                     struct cdacq_error *err);

/*
 * Names the bound of cdacq_options.work_max or memory_max that was reached: one line, in a buffer of the caller of at
 * most `size` bytes. Returns false, with an empty text, if none was. Any thread may call it.
 */
CDACQ_API bool cdacq_target_bound_reached(const struct cdacq_target *target, char *ret_text, size_t size);

/* Frees the target and resumes a stopped process. Destroy all of its sessions first. NULL is allowed. */
CDACQ_API void cdacq_target_close(struct cdacq_target *target);

/* ---- What the target is ------------------------------------------------------------------------------------------ */

/* What a target is. */
enum cdacq_target_kind { CDACQ_TARGET_CORE, CDACQ_TARGET_PROCESS, CDACQ_TARGET_MEMORY, CDACQ_TARGET_IMAGE };

/* Memory that the kernel and gdb leave out of a core if a bit of /proc/PID/coredump_filter is not set (core(5)). */
enum cdacq_core_filter {
    CDACQ_FILTER_PRIVATE = 1 << 0, /* anonymous private memory: the stacks and heaps */
    CDACQ_FILTER_SHARED = 1 << 1,  /* anonymous shared memory: with W^X, the runtime has its own structures there */
};

/* The target owns the strings, which are valid until it is closed. A string that is not known is NULL. */
struct cdacq_target_info {
    size_t size; /* sizeof(struct cdacq_target_info) of the caller */
    enum cdacq_target_kind kind;
    int pid;                          /* of the process, also for a core; 0 when not known */
    enum cdacq_status problem_status; /* with CDACQ_OPEN_PARTIAL: what opening would have failed with; or CDACQ_OK */
    const char *problem;              /* one line: why no method can be found; or NULL */
    const char *architecture;         /* the global "Architecture" of the descriptor, such as "x64" */
    const char *operating_system;     /* "unix" or "win", from the descriptor of .NET 10 and later; or NULL */
    const char *elf_machine;          /* from the core or the process, such as "x86-64" */
    unsigned pointer_size;            /* 4 or 8, from the descriptor; 0 without one */
    bool big_endian;                  /* from the descriptor */
    bool native_aot;                  /* the runtime is NativeAOT, whether or not there is a problem */
    unsigned runtime_count;
    unsigned runtime;         /* index of the one in use */
    const char *runtime_path; /* the image that publishes the descriptor */
    uint64_t runtime_base;
    const char *runtime_build_id;     /* in hex */
    const char *runtime_release;      /* "10.0"; NULL unless the runtime publishes it, or two sources agree */
    const char *runtime_version;      /* "10.0.12" */
    const char *runtime_file_version; /* "10.0.1226.42308", from the image */
    uint64_t descriptor_address;      /* 0 if the descriptor does not come from the target */
    const char *descriptor_origin;    /* "memory" or another source; NULL if no descriptor could be read */
    const char *descriptor_missing;   /* one line: the first part of it that is missing or damaged; or NULL */
    const char *supplement;           /* what this build adds to the descriptor; NULL if nothing */
    unsigned schema;                  /* the "version" in the descriptor's JSON */
    /* Of a core: */
    unsigned missing_filter; /* enum cdacq_core_filter: of a whole core, the bits it was written without, as it seems */
    const char *writer;      /* the program that wrote it: "createdump", "gdb", "the kernel", "cdacq snapshot" */
    uint64_t segment_count;  /* PT_LOAD segments */
    uint64_t dumped_size;    /* bytes of memory in it */
    uint64_t missing_size;   /* bytes of file mappings that it lacks */
    bool truncated;          /* the file ends before its last segment */
    const char *truncation;  /* of one that is compressed or came from a pipe, one line: why it is truncated */
};

/*
 * Begins an epoch of a running process: from now on, all sessions of the target read again what the process can
 * change. Only needed with CDACQ_OPEN_KEEP. The list of mapped files is read again when the size of the process's
 * memory has changed, or a second has passed; a process that was opened with CDACQ_OPEN_STOP keeps it. Does nothing for
 * other targets. Fails with IO if the process has ended or executed another program.
 */
CDACQ_API enum cdacq_status cdacq_target_refresh(struct cdacq_target *target, struct cdacq_error *err);

/*
 * Stops all threads of a process that was opened without CDACQ_OPEN_STOP, until cdacq_target_resume, and begins an
 * epoch as cdacq_target_refresh does. A thread of the library holds them; the caller must not call waitpid(-1)
 * meanwhile. If this process ends, by whatever signal, the target runs on. Fails with ARGUMENT unless the target is a
 * process that runs, or within cdacq_session_visit_code_files, and with IO if a thread cannot be stopped, or if the
 * process has ended or executed another program, which then runs on.
 */
CDACQ_API enum cdacq_status cdacq_target_stop(struct cdacq_target *target, struct cdacq_error *err);

/*
 * Lets a stopped process run on. With CDACQ_OPEN_STOP, memory that was read before stays as it is, but memory that is
 * read later is that of a process that runs: ask nothing more. Does nothing for other targets.
 */
CDACQ_API void cdacq_target_resume(struct cdacq_target *target);

/* The stops that have ended: their number and durations. */
struct cdacq_stops {
    size_t size; /* sizeof(struct cdacq_stops) of the caller */
    uint64_t count;
    uint64_t total_ns, longest_ns;
};

/*
 * Counts the stops of the process since it was opened: each that has ended, also one that could not stop all threads. A
 * stop that lasts is not counted yet. The caller sets `size` of *ret. All are 0 for other targets. Fails with ARGUMENT.
 */
CDACQ_API enum cdacq_status cdacq_target_get_stops(const struct cdacq_target *target, struct cdacq_stops *ret,
                                                   struct cdacq_error *err);

/* Describes the target. Fails with ARGUMENT only. */
CDACQ_API enum cdacq_status cdacq_target_get_info(struct cdacq_target *target, struct cdacq_target_info *ret,
                                                  struct cdacq_error *err);

/*
 * Returns the `truncation` of cdacq_target_info, without the cost of cdacq_target_get_info, which searches the image of
 * the runtime for its version. The target owns the string. NULL if nothing is missing, or no reason is known.
 */
CDACQ_API const char *cdacq_target_truncation(const struct cdacq_target *target);

/* The process, apart from its runtime. The target owns the strings; what is not known is 0 or NULL. */
struct cdacq_process_info {
    size_t size; /* sizeof(struct cdacq_process_info) of the caller */
    int pid;
    const char *program;   /* path of the executable, or as it was started */
    const char *name;      /* of the first thread, at most 15 bytes */
    const char *arguments; /* the command line, separated by spaces */
    bool arguments_cut;    /* there may be more: a core without the top of the stack has some 80 bytes of them */
    /* Of a running process: */
    bool is_stopped; /* a signal such as SIGSTOP has stopped it, or had before this target did */
    bool is_frozen;  /* the freezer of its control group holds it, as `docker pause` makes it */
    /* Of a core: */
    int64_t time_s;  /* since 1970, when its file was last written to */
    int signal;      /* that ended the process */
    int signal_code; /* si_code: above 0, the kernel sent the signal */
    bool has_signal_address;
    uint64_t signal_address; /* si_addr of a fault */
    int sender_pid;          /* the process that sent the signal, perhaps this one; 0: the kernel sent it */
    unsigned sender_uid;
    /*
     * What glibc printed before it ended the process: a failed assertion of native code, "double free or corruption",
     * or the like. Any bytes, without a newline at their end: escape them before you print them.
     */
    const char *abort_message;
};

/* Describes the process. Fails with ARGUMENT and NOMEM. */
CDACQ_API enum cdacq_status cdacq_target_get_process_info(struct cdacq_target *target, struct cdacq_process_info *ret,
                                                          struct cdacq_error *err);

/*
 * Calls `visit_variable` for each variable of the environment that the process was started with, as "NAME=VALUE", in
 * its order, also where the program has changed it since. Any bytes, and often secrets. The string is valid until
 * `visit_variable` returns. CDACQ_STOPPED: it returned non-zero. Fails with NOMEM, and with MEMORY if the target lacks
 * it, as cores without the top of the first thread's stack do, and snapshots. Source: proc(5); Linux fs/binfmt_elf.c.
 */
CDACQ_API enum cdacq_status cdacq_target_visit_environment(struct cdacq_target *target,
                                                           int (*visit_variable)(const char *variable, void *context),
                                                           void *context, struct cdacq_error *err);

/* How many runtimes the process has, as cdacq_target_visit_runtimes visits them. */
CDACQ_API unsigned cdacq_target_runtime_count(const struct cdacq_target *target);

/* A runtime of the process. A string that is not known is NULL. */
struct cdacq_runtime_info {
    size_t size;
    const char *path;            /* NULL if only the descriptor's address is known */
    uint64_t base;               /* where the image is mapped; 0 likewise */
    const char *build_id;        /* in hex */
    const char *version;         /* "10.0.12", or "10.0" */
    uint64_t descriptor_address; /* 0: not known */
    bool in_use;                 /* with CDACQ_OPEN_ALL_RUNTIMES: it can be read */
    const char *problem;         /* of one that was to be used, one line: why it cannot be read; or NULL */
};

/*
 * Calls `visit` for every runtime, in the order of cdacq_options.runtime. Strings are valid until it returns. Does not
 * fail: returns CDACQ_OK, or CDACQ_STOPPED if `visit` returned non-zero.
 */
CDACQ_API enum cdacq_status cdacq_target_visit_runtimes(struct cdacq_target *target,
                                                        int (*visit)(const struct cdacq_runtime_info *runtime,
                                                                     void *context),
                                                        void *context, struct cdacq_error *err);

/* A contract that the descriptor names. Strings are valid until `visit` returns. */
struct cdacq_contract_info {
    size_t size;
    const char *name;
    const char *version; /* as published: a number or text */
    const char *origin;  /* the document that names it */
    bool supported;      /* this build reads that version */
    const char *known;   /* the versions that this build reads; "" if none */
};

/*
 * Calls `visit` for every contract of the merged descriptor, in its order. Reads no memory of the target, and does not
 * fail: returns CDACQ_OK, or CDACQ_STOPPED if `visit` returned non-zero.
 */
CDACQ_API enum cdacq_status cdacq_target_visit_contracts(struct cdacq_target *target,
                                                         int (*visit)(const struct cdacq_contract_info *contract,
                                                                      void *context),
                                                         void *context, struct cdacq_error *err);

/* A file of this machine that was found to be one of the target. Valid until the `visit` that has it returns. */
struct cdacq_local_file;

/*
 * Opens the file for reading: the very one that was compared with the target. The caller closes *ret_fd. Its path may
 * lead elsewhere by now, to a file of whoever the target belongs to. Fails with IO if the file was replaced or changed
 * since it was compared, or cannot be opened.
 */
CDACQ_API enum cdacq_status cdacq_local_file_open(const struct cdacq_local_file *file, int *ret_fd,
                                                  struct cdacq_error *err);

/* A file that is mapped into the target. Pointers are valid until `visit` returns. */
struct cdacq_mapped_file {
    size_t size;
    const char *path;
    uint64_t begin, end;    /* from the lowest to the highest mapping */
    uint64_t missing_size;  /* bytes of the file that the target itself lacks */
    const char *local_path; /* the file that supplies them; NULL if none was needed, found or accepted */
    const struct cdacq_local_file *local_file; /* that of `local_path`, or NULL */
    bool verified;                             /* something in the target confirmed `local_path` */
    const char *problem;                       /* one line: why no file was used; or NULL */
    /* The keys are those of `local_path` where the target itself lacks the headers; NULL when not known. */
    const char *build_id;   /* of an ELF image, in hex: the key for debuginfod */
    const char *symbol_key; /* NAME/KEY/NAME: the key for symbol servers */
};

/*
 * Calls `visit` for every file with a path that is mapped into the target, in no particular order; of a running
 * process, as the mappings were last listed. Devices and memfds are left out. Needs no runtime: which of the files have
 * managed code is for cdacq_session_visit_code_files. Looks for each file that the target lacks bytes of, so it can
 * take long, and may call find_file, describe_need and fetching of the options. A file that is not found is no failure:
 * it has a `problem`. Returns CDACQ_OK, or CDACQ_STOPPED if `visit` returned non-zero; fails with IO if the process has
 * ended before its mappings were listed, or NOMEM.
 */
CDACQ_API enum cdacq_status cdacq_target_visit_mapped_files(struct cdacq_target *target,
                                                            int (*visit)(const struct cdacq_mapped_file *file,
                                                                         void *context),
                                                            void *context, struct cdacq_error *err);

/* ---- The descriptor ---------------------------------------------------------------------------------------------- */

/* What a value of the descriptor is. */
enum cdacq_descriptor_item_kind {
    CDACQ_ITEM_TYPE,  /* name; with has_value, value is the size */
    CDACQ_ITEM_FIELD, /* of the type visited before it; value is the offset */
    CDACQ_ITEM_GLOBAL,
    CDACQ_ITEM_CONTRACT, /* text is the version */
};

/* One value of the merged descriptor. The target owns the strings, which are valid until it is closed. */
struct cdacq_descriptor_item {
    size_t size;
    enum cdacq_descriptor_item_kind kind;
    const char *name;
    const char *type; /* declared type; or NULL */
    const char *text; /* string value; or NULL */
    uint64_t value;   /* a negative number is stored as two's complement */
    bool has_value;
    const char *origin;    /* the document that it came from */
    const char *overrides; /* another document that has a different value; or NULL */
};

/*
 * Calls `visit` for every type, followed by its fields, then for globals, then for contracts. CDACQ_STOPPED: `visit`
 * returned non-zero. Fails with NOMEM.
 */
CDACQ_API enum cdacq_status cdacq_target_visit_descriptor(struct cdacq_target *target,
                                                          int (*visit)(const struct cdacq_descriptor_item *item,
                                                                       void *context),
                                                          void *context, struct cdacq_error *err);

/* ---- Snapshots --------------------------------------------------------------------------------------------------- */

/*
 * Writes a self-contained ELF core with only the memory that was read since the target was opened with
 * CDACQ_OPEN_RECORD, and its mappings (NT_FILE). The core gives the same answers on any machine without other
 * files; it has the PDBs that lines came from, up to 32 MiB of them. It has the threads that the last
 * cdacq_session_visit_threads visited, with their registers, and neither the arguments nor the environment of the
 * process, though copies of these can be on its heap. It also has each stack that cdacq_session_visit_frames
 * walked, up to the outermost frame: at most 1 MiB, and what the walk read beyond that. Where it would have more than
 * 10,000 program headers, it also has what is in the smallest gaps between what was read, as far as the target has
 * that. *ret_size is the size of the
 * core in bytes. Fails with ARGUMENT (no CDACQ_OPEN_RECORD, no path), NOMEM, IO.
 */
CDACQ_API enum cdacq_status cdacq_target_write_snapshot(struct cdacq_target *target, const char *path,
                                                        uint64_t *ret_size, struct cdacq_error *err);

/*
 * Has a snapshot hold `size` bytes from `address` on, as far as the target has them. Fails with ARGUMENT (no
 * CDACQ_OPEN_RECORD, an end beyond the address space), or with FUEL at a bound.
 */
CDACQ_API enum cdacq_status cdacq_target_record_memory(struct cdacq_target *target, uint64_t address, uint64_t size,
                                                       struct cdacq_error *err);

/*
 * Has a snapshot hold the command line, which it leaves out by default: passwords are among arguments. Fails with
 * ARGUMENT (no CDACQ_OPEN_RECORD).
 */
CDACQ_API enum cdacq_status cdacq_target_record_arguments(struct cdacq_target *target, struct cdacq_error *err);

/* ---- Complete cores ---------------------------------------------------------------------------------------------- */

enum cdacq_complete_flags {
    CDACQ_COMPLETE_UNVERIFIED = 1 << 0, /* also use files that nothing in the core confirms or contradicts */
};

/*
 * A file that a complete core lacks bytes of, or that nothing confirms. Strings are valid until the callback returns.
 */
struct cdacq_unfilled_file {
    size_t size; /* set by the library */
    const char *path;
    uint64_t missing_size; /* bytes of its mappings; 0: there are none, but it is unverified */
    const char *problem;   /* one line: why it does not supply them; or what is wrong with it */
    bool unverified;       /* there is a file that nothing in the core contradicts, and nothing confirms either */
};

/* What was written. The caller sets `size`. */
struct cdacq_complete_core {
    size_t size;
    uint64_t file_size;       /* bytes of the new core */
    uint64_t filled_size;     /* bytes of memory in it that files supplied */
    uint64_t missing_size;    /* bytes of file mappings that it lacks all the same */
    uint64_t unverified_size; /* of the filled_size, from files that nothing confirms */
    uint64_t segment_count;   /* PT_LOADs */
};

/*
 * Writes a core again, to the file at `path`, with the missing pages of its mapped files filled in: for programs that
 * take memory from the core alone, as the debugger services do. Only files that something in the core confirms supply
 * bytes (cdacq_module_info.verified), unless `flags` (enum cdacq_complete_flags) say otherwise: those bytes are marked,
 * so that this library tells answers that rest on them. Of cores of the kernel and of gdb, which have all memory that
 * the process has changed, all missing pages are filled in; of others, those that no process changes. The notes stay as
 * they are. Adjacent segments are joined; there are more than 10,000 program headers only where the memory has that
 * many parts.
 *
 * `visit`, if it is not NULL, is called for each file that still lacks bytes or is unverified, after the core was
 * written; a result other than 0 ends the visit with CDACQ_STOPPED. `ret` may be NULL. The file has mode 0600 and
 * appears when it is complete. Fails with ARGUMENT if the target is no core, with FORMAT if its notes are missing, with
 * NOMEM, with IO, or with FUEL if what would be written exceeds cdacq_options.work_max.
 */
CDACQ_API enum cdacq_status
cdacq_target_write_complete_core(struct cdacq_target *target, const char *path, unsigned flags,
                                 int (*visit)(const struct cdacq_unfilled_file *file, void *context), void *context,
                                 struct cdacq_complete_core *ret, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
