/*
 * core_process.h: what the notes of a core say of its process: its threads, its mappings, its id and name, the signal
 * that ended it, and which program wrote the core. Source: core(5); Linux fs/binfmt_elf.c; dotnet/runtime
 * src/coreclr/debug/createdump.
 */
#ifndef CDACQ_TARGET_CORE_PROCESS_H
#define CDACQ_TARGET_CORE_PROCESS_H

#include "formats/core_notes.h"
#include "target/core_file.h"
#include "target/threads.h"

/* The notes of one thread. They point into the core. */
struct thread_notes {
    struct core_prstatus status;
    struct core_siginfo signal;     /* its `signal` is 0 where there is no NT_SIGINFO */
    char name[THREAD_NAME_MAX + 1]; /* of a snapshot; "": not known */
    const uint8_t *floats;          /* NT_PRFPREG, within the note; NULL: there is none */
    size_t floats_size;
};

DEFINE_VECTOR(core_threads, struct thread_notes);

/* Which notes there were. */
struct core_process_notes {
    bool gdb, snapshot; /* of these programs' own */
    bool threads, signal, auxv;
    bool process_first; /* a note of the process was before all of threads */
    bool lost_threads;  /* there were threads that are not kept */
};

/* A text of a snapshot. The bytes belong to the core. */
struct core_process_text {
    const uint8_t *bytes;
    size_t size;
};

/* In a zeroed struct, nothing is known. */
struct core_process {
    struct core_process_notes seen;
    struct core_threads threads;
    bool lost_thread; /* the last NT_PRSTATUS is not among them */
    struct core_prpsinfo info;
    struct core_process_text arguments, path; /* of a snapshot: what `info` has no room for */
    uint64_t program;                         /* address of the path that the program was started by; 0: not known */
    uint64_t headers, header_count;           /* the program's headers: their address, and how many; 0: not known */
    unsigned note_count;                      /* read so far */
    unsigned listed;                          /* entries of NT_FILE that were read, with 1 for each note */
};

void core_process_deinit(struct core_process *process);

/*
 * Reads the notes of a PT_NOTE. Adds mappings, not sorted, and the PDBs of a snapshot to the target, and sets its pid,
 * vdso and pac_mask; what a cut core lacks makes it truncated. Paths and PDBs are bytes of `file`.
 */
enum cdacq_status core_process_read_notes(struct core_process *process, struct target *target, struct core_file *file,
                                          const struct elf_segment *header, struct cdacq_error *err);

/* The following are for a process whose notes have all been read. */

/* The name of the program that wrote the core, as far as the notes show it; static. NULL where it is not known. */
const char *core_process_writer(const struct core_process *process);

/* Whether the program that wrote the core leaves out memory by /proc/PID/coredump_filter: the kernel or gdb. */
bool core_process_has_filter(const struct core_process *process);

/* As target_threads(). */
enum cdacq_status core_process_list_threads(const struct core_process *process, const struct target *target,
                                            struct elf_class elf, struct threads *ret, struct cdacq_error *err);

/* Fills in all but the time of a zeroed struct. */
void core_process_describe(const struct core_process *process, struct target_process *ret);

#endif
