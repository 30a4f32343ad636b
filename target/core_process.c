#include "target/core_process.h"

#include <stdio.h>

#include "util/error.h"
#include "formats/core_writer.h"

enum {
    MAPPING_MAX = 1024 * 1024,
    PDB_MAX = 4096,
    NOTE_MAX = 1024 * 1024, /* of a core; each thread has a handful */
    AUXV_MAX = 4096,        /* bytes of NT_AUXV; Linux writes some 20 entries of two words */
};

/* Where the notes come from, and where their contents go. */
struct destination {
    struct core_process *process;
    struct target *target;
    struct core_file *file;
};

void core_process_deinit(struct core_process *process)
{
    core_threads_deinit(&process->threads);
}

/* An entry that does not fit ends the list; earlier ones are kept. */
static enum cdacq_status read_nt_file(struct destination *to, const uint8_t *desc, size_t size, struct cdacq_error *err)
{
    struct target *target = to->target;
    struct elf_nt_file list;
    struct elf_mapped_file file;
    if (target->mapping_count || to->process->listed > MAPPING_MAX ||
        !elf_nt_file_open(to->file->elf, desc, size, &list))
        return CDACQ_OK;
    if (!elf_nt_file_count_fits(&list) || list.count > MAPPING_MAX)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "NT_FILE: %llu mappings do not fit a note of %zu bytes",
                         (unsigned long long)list.count, size);
    if (list.count && !list.page_size)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "NT_FILE: its page size is 0, so file offsets are unknown");
    to->process->listed += (unsigned)list.count + 1;
    target->mappings = calloc(list.count + 1, sizeof *target->mappings);
    if (!target->mappings)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for %llu mappings", (unsigned long long)list.count);
    while (elf_nt_file_next(&list, &file)) {
        struct mapping mapping = {.begin = file.begin, .end = file.end, .path = file.path};
        if (mapping.begin < mapping.end && !__builtin_mul_overflow(file.page_offset, list.page_size, &mapping.offset) &&
            mapping.offset <= UINT64_MAX - (mapping.end - mapping.begin))
            target->mappings[target->mapping_count++] = mapping;
    }
    if (!target->mapping_count) { /* a later NT_FILE may have some */
        free(target->mappings);
        target->mappings = NULL;
    }
    return CDACQ_OK;
}

/* A thread. False when out of memory. */
static bool read_prstatus(struct destination *to, const struct elf_note_bytes *view)
{
    struct core_process *process = to->process;
    struct thread_notes thread = {0};
    bool kept = core_prstatus_at(to->file->elf, view->desc, view->note.desc_size, &thread.status) &&
                process->threads.count < THREAD_MAX;
    process->seen.threads = true;
    process->lost_thread = !kept;
    process->seen.lost_threads |= !kept;
    return !kept || core_threads_append(&process->threads, thread);
}

/* The signal of the thread whose NT_PRSTATUS was the last one. */
static void read_siginfo(struct destination *to, const struct elf_note_bytes *view)
{
    struct core_process *process = to->process;
    process->seen.signal = true;
    if (process->threads.count && !process->lost_thread)
        process->threads.items[process->threads.count - 1].signal =
            core_siginfo_at(to->file->elf, view->desc, view->note.desc_size);
}

static void read_prpsinfo(struct destination *to, const struct elf_note_bytes *view)
{
    struct core_process *process = to->process;
    process->seen.process_first |= !process->seen.threads;
    if (to->target->pid)
        return;
    process->info = core_prpsinfo_at(to->file->elf, view->desc, view->note.desc_size);
    to->target->pid = process->info.pid;
}

/* Only the first is read: many headers of a damaged core may lead to the same note. */
static void read_auxv(struct destination *to, const struct elf_note_bytes *view)
{
    struct core_process *process = to->process;
    size_t size = MIN(view->note.desc_size, (size_t)AUXV_MAX);
    if (process->seen.auxv)
        return;
    process->seen.auxv = true;
    to->target->vdso = core_auxv_value(to->file->elf, view->desc, size, AT_SYSINFO_EHDR);
    process->program = core_auxv_value(to->file->elf, view->desc, size, AT_EXECFN);
}

/* A note that the kernel, createdump and gdb write. */
static enum cdacq_status read_core_note(struct destination *to, const struct elf_note_bytes *view,
                                        struct cdacq_error *err)
{
    switch (view->note.type) {
    case NT_PRSTATUS:
        if (!read_prstatus(to, view))
            return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the core's threads");
        break;
    case NT_SIGINFO:
        read_siginfo(to, view);
        break;
    case NT_PRPSINFO:
        read_prpsinfo(to, view);
        break;
    case NT_AUXV:
        read_auxv(to, view);
        break;
    case NT_FILE:
        return read_nt_file(to, view->desc, view->note.desc_size, err);
    default:
        break;
    }
    return CDACQ_OK;
}

/* A note that `cdacq snapshot` writes. False when out of memory. */
static bool read_snapshot_note(struct destination *to, const struct elf_note_bytes *view)
{
    const struct target_pdb pdb = {view->desc, view->note.desc_size};
    struct target_pdbs *pdbs = &to->target->pdbs;
    bool is_pdb = view->note.type == CORE_WRITER_PDB || view->note.type == CORE_WRITER_PDB_BEFORE;
    to->process->seen.snapshot = true;
    return !is_pdb || pdbs->count == PDB_MAX || target_pdbs_append(pdbs, pdb);
}

/* Whether a note's name is `name`, which may or may not be followed by its NUL. */
static bool is_named(const struct elf_note_bytes *view, const char *name)
{
    size_t length = strlen(name);
    return (view->note.name_size == length || view->note.name_size == length + 1) &&
           memcmp(view->name, name, length) == 0;
}

static enum cdacq_status read_note(struct destination *to, const struct elf_note_bytes *view, struct cdacq_error *err)
{
    size_t name_size = view->note.name_size;
    if (name_size == sizeof "GDB" && memcmp(view->name, "GDB", sizeof "GDB") == 0)
        to->process->seen.gdb = true;
    else if (name_size == sizeof CORE_WRITER_NOTE && memcmp(view->name, CORE_WRITER_NOTE, name_size) == 0)
        return read_snapshot_note(to, view) ? CDACQ_OK
                                            : error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the core's PDBs");
    else if (is_named(view, "CORE"))
        return read_core_note(to, view, err);
    return CDACQ_OK;
}

enum cdacq_status core_process_read_notes(struct core_process *process, struct target *target, struct core_file *file,
                                          const struct elf_segment *header, struct cdacq_error *err)
{
    struct destination to = {.process = process, .target = target, .file = file};
    uint64_t available = header->offset < file->size ? file->size - header->offset : 0;
    uint64_t size = MIN(header->file_size, available);
    unsigned align = header->align == 8 ? 8 : 4;
    target->truncated |= header->file_size > available;
    const uint8_t *bytes = NULL;
    if (size && !core_file_keep(file, header->offset, size, &bytes))
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the core's notes");
    target->truncated |= size && !bytes;
    if (!bytes)
        return CDACQ_OK;
    enum cdacq_status status = CDACQ_OK;
    struct elf_note_bytes view;
    for (uint64_t at = 0;
         status >= 0 && process->note_count < NOTE_MAX && elf_note_next(file->elf, bytes, size, align, &at, &view);
         process->note_count++)
        status = read_note(&to, &view, err);
    return status;
}

/*
 * gdb and `cdacq snapshot` write notes of their own. createdump writes the process before its threads, and the kernel
 * the first thread before the process; both write the signal of a process that died. Without threads, no note is
 * typical of one of them.
 */
const char *core_process_writer(const struct core_process *process)
{
    const struct core_process_notes *seen = &process->seen;
    if (seen->gdb)
        return "gdb";
    if (seen->snapshot)
        return "cdacq snapshot";
    if (!seen->threads)
        return NULL;
    if (seen->process_first)
        return "createdump";
    return seen->signal ? "the kernel" : "createdump";
}

enum cdacq_status core_process_list_threads(const struct core_process *process, const struct target *target,
                                            struct elf_class elf, struct threads *ret, struct cdacq_error *err)
{
    enum cdacq_status status =
        threads_of_core(target, &process->threads, elf, &process->info, process->seen.gdb, ret, err);
    if (status >= 0 && process->seen.lost_threads)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "the core has more threads than the %zu that can be read",
                         process->threads.count);
    return status;
}

/* The signal that ended the process: of the thread that died. */
static struct core_siginfo signal_of(const struct core_process *process)
{
    size_t dead = threads_find_dead(&process->threads, process->seen.gdb);
    if (dead == process->threads.count)
        return (struct core_siginfo){0};
    const struct thread_notes *thread = &process->threads.items[dead];
    return thread->signal.signal ? thread->signal : (struct core_siginfo){.signal = thread->status.signal};
}

void core_process_describe(const struct core_process *process, struct target_process *ret)
{
    char *end = stpcpy(ret->arguments, process->info.arguments);
    while (end > ret->arguments && end[-1] == ' ')
        *--end = '\0';
    ret->arguments_cut = strlen(process->info.arguments) >= sizeof process->info.arguments - 2;
    strcpy(ret->name, process->info.name);
    ret->program_address = process->program;
    ret->signal = signal_of(process);
}
