#include "target/core_process.h"

#include <signal.h>
#include <stdio.h>

#include "target/target_process.h"
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

/*
 * A copy of a path in the core, at most up to `end`: whoever owns the file of the core may change it at any time, and a
 * path is used more than once. Mappings of the same file follow each other and share the copy. NULL when out of memory.
 */
static const char *copy_path(struct core_file *file, const char *path, const uint8_t *end, const char *previous)
{
    size_t length = strnlen(path, (size_t)((const char *)end - path));
    if (previous && strlen(previous) == length && memcmp(previous, path, length) == 0)
        return previous;
    return arena_string(&file->kept, path, length);
}

/* An entry that does not fit ends the list; earlier ones are kept. */
static enum cdacq_status read_nt_file(struct destination *to, const uint8_t *desc, size_t size, struct cdacq_error *err)
{
    struct target *target = to->target;
    struct elf_nt_file list;
    struct elf_mapped_file file;
    const char *path = NULL;
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
        path = copy_path(to->file, file.path, desc + size, path);
        if (!path)
            return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the paths of mapped files");
        struct mapping mapping = {.begin = file.begin, .end = file.end, .path = path};
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

/* The floating-point registers of the thread whose NT_PRSTATUS was the last one. */
static void read_prfpreg(struct destination *to, const struct elf_note_bytes *view)
{
    struct core_process *process = to->process;
    if (!process->threads.count || process->lost_thread)
        return;
    struct thread_notes *thread = &process->threads.items[process->threads.count - 1];
    thread->floats = view->desc;
    thread->floats_size = view->note.desc_size;
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
    process->headers = core_auxv_value(to->file->elf, view->desc, size, AT_PHDR);
    process->header_count = core_auxv_value(to->file->elf, view->desc, size, AT_PHNUM);
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
    case NT_PRFPREG:
        read_prfpreg(to, view);
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

/* Copies a text, as much as there is room for. Whoever owns the file of the core may change it meanwhile. */
static void copy_text(struct core_process_text text, char *ret, size_t size)
{
    size_t length = MIN(text.size, size - 1);
    if (length)
        memcpy(ret, text.bytes, length);
    ret[length] = '\0';
}

static void read_snapshot_text(struct core_process *process, uint32_t type, struct core_process_text text)
{
    if (type == CORE_WRITER_ARGUMENTS)
        process->arguments = text;
    else if (type == CORE_WRITER_PROGRAM)
        process->path = text;
    else if (type == CORE_WRITER_THREAD_NAME && process->threads.count && !process->lost_thread) {
        struct thread_notes *last = &process->threads.items[process->threads.count - 1];
        copy_text(text, last->name, sizeof last->name);
    }
}

/* A note that `cdacq snapshot` writes. False when out of memory. */
static bool read_snapshot_note(struct destination *to, const struct elf_note_bytes *view)
{
    const struct target_pdb pdb = {.bytes = view->desc, .size = view->note.desc_size};
    struct target_pdbs *pdbs = &to->target->pdbs;
    bool is_pdb = view->note.type == CORE_WRITER_PDB || view->note.type == CORE_WRITER_PDB_BEFORE;
    to->process->seen.snapshot = true;
    read_snapshot_text(to->process, view->note.type, (struct core_process_text){pdb.bytes, pdb.size});
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
    else if (is_named(view, "LINUX") && view->note.type == NT_ARM_PAC_MASK && !to->target->pac_mask)
        to->target->pac_mask = core_pac_mask_at(to->file->elf, view->desc, view->note.desc_size);
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

bool core_process_has_filter(const struct core_process *process)
{
    const struct core_process_notes *seen = &process->seen;
    return seen->gdb || (!seen->snapshot && !seen->process_first && seen->threads && seen->signal);
}

/* ---- Threads ---- */

/* Whether a signal can have ended a process that a debugger had stopped, for which it also uses signals. */
static bool is_fatal(int number)
{
    return number == SIGSEGV || number == SIGABRT || number == SIGBUS || number == SIGILL || number == SIGFPE ||
           number == SIGSYS || number == SIGQUIT;
}

/*
 * The index of the thread whose signal ended the process; the count where none did.
 *
 * Linux writes the thread that died first, with the process's only NT_SIGINFO, and the signal into every NT_PRSTATUS.
 * createdump writes signal and NT_SIGINFO for the thread that crashed, wherever it is in the list. gdb writes what each
 * thread stopped for, and the current thread first. Without NT_SIGINFO the signal identifies a thread only if no other
 * one has it.
 */
static size_t find_dead(const struct core_process *process)
{
    const struct core_threads *threads = &process->threads;
    bool by_debugger = process->seen.gdb;
    size_t signals = 0, last = threads->count;
    for (size_t i = 0; i < threads->count; i++) {
        const struct thread_notes *thread = &threads->items[i];
        if (thread->signal.signal && (!by_debugger || is_fatal(thread->signal.signal)))
            return i;
        if (thread->status.signal && (!by_debugger || is_fatal(thread->status.signal))) {
            signals++;
            last = i;
        }
    }
    return signals == 1 ? last : threads->count;
}

/* The signal of one thread. Linux gives every thread that of the one that died. */
static int signal_of(const struct thread_notes *thread, bool died, bool by_debugger)
{
    int status = died || by_debugger ? thread->status.signal : 0;
    return thread->signal.signal ? thread->signal.signal : status;
}

enum cdacq_status core_process_list_threads(const struct core_process *process, const struct target *target,
                                            struct elf_class elf, struct threads *ret, struct cdacq_error *err)
{
    const struct register_machine *machine = register_machine_find(target->elf_machine);
    const struct core_threads *threads = &process->threads;
    size_t dead = find_dead(process);
    if (!threads->count)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "the core has no threads: it holds memory only");
    if (!machine)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "threads of ELF machine %u cannot be read", target->elf_machine);
    if (!threads_reserve(ret, threads->count))
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for %zu threads", threads->count);
    for (size_t i = 0; i < threads->count; i++) {
        /* The one that died comes first, then those before it. */
        size_t index = dead == threads->count || i > dead ? i : i ? i - 1 : dead;
        const struct thread_notes *thread = &threads->items[index];
        struct target_thread *added = &ret->items[ret->count++];
        *added = (struct target_thread){
            .tid = thread->status.tid,
            .inner_tid = thread->status.tid, /* the kernel writes ids as the process has them */
            .signal = signal_of(thread, index == dead, process->seen.gdb),
            .died = index == dead,
        };
        if (thread->name[0])
            memcpy(added->name, thread->name, sizeof added->name);
        else if (added->tid == process->info.pid)
            memcpy(added->name, process->info.name, sizeof added->name);
        registers_from_kernel(machine, thread->status.registers, thread->status.registers_size, elf.big,
                              &added->registers);
        if (added->registers.known && thread->floats)
            registers_add_xmm(machine, thread->floats, thread->floats_size, &added->registers);
        added->mode = registers_mode(machine, thread->status.registers, thread->status.registers_size);
        added->call = registers_call(machine, thread->status.registers, thread->status.registers_size);
        /* `cdacq snapshot` writes 0 for those that it could not read. No thread has a stack at 0. */
        if (process->seen.snapshot && !added->registers.values[machine->pc] && !added->registers.values[machine->sp])
            added->registers = (struct registers){0};
    }
    return !process->seen.lost_threads
               ? CDACQ_OK
               : error_set(err, CDACQ_ERR_FORMAT, 0, "the core has more threads than the %zu that can be read",
                           threads->count);
}

/* ---- The process ---- */

/* The signal that ended the process: of the thread that died. */
static struct core_siginfo fatal_signal(const struct core_process *process)
{
    size_t dead = find_dead(process);
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
    if (process->arguments.size) {
        copy_text(process->arguments, ret->arguments, sizeof ret->arguments);
        ret->arguments_cut = process->arguments.size >= sizeof ret->arguments - 1;
    }
    strcpy(ret->name, process->info.name);
    copy_text(process->path, ret->program, sizeof ret->program);
    ret->program_address = process->program;
    ret->signal = fatal_signal(process);
}
