#include "target/live.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#include "formats/core_notes.h"
#include "target/target_process.h"
#include "util/error.h"
#include "util/file.h"
#include "util/file_root.h"
#include "util/proc_file.h"
#include "formats/elf.h"
#include "target/link_map.h"
#include "target/live_mappings.h"
#include "target/live_pages.h"
#include "target/mapped_files.h"
#include "target/mapped_path.h"
#include "target/proc_maps.h"
#include "target/proc_freezer.h"
#include "target/proc_status.h"
#include "target/thread_holder.h"
#include "target/threads.h"

enum {
    RECENT = 128,            /* spans of the epoch that are remembered */
    STATUS_SIZE = 16 * 1024, /* bytes that are read of a status: the ids come after the list of groups */
};

struct live {
    struct target base;
    struct live_pages pages;
    struct span recent[RECENT]; /* of the epoch, found by the page of the address: reads alternate between pages */
    struct live_mappings mappings;
    struct program_headers program;         /* the count is 0 if they are not known */
    uint64_t libraries[LINK_MAP_FOUND_MAX]; /* that were last looked for, as the dynamic linker has them */
    size_t library_count;
    struct file_policy *policy;
    struct thread_holder holder; /* holds threads from the stop to the resumption */
};

static struct live *live_of(struct target *target)
{
    return (struct live *)target;
}

static bool live_own_memory_at(struct target *target, uint64_t address, struct span *ret)
{
    return live_pages_at(&live_of(target)->pages, target->epoch, address, ret);
}

/* Of another file, only an assembly is compared with all that the process has of it (src/files/file_match.c). */
static bool is_like_memory(const struct mapped_file *file)
{
    return file->verified && (file->content.tag.kind == FILE_TAG_PE || !mapped_file_is_another(file, &file->content));
}

/* Takes what no process changes from the mapped file, if it is certain that this file is mapped. */
static bool find_memory(struct target *target, uint64_t address, struct span *ret)
{
    const struct mapping *mapping = target_mapping_at(target, address);
    struct mapped_file *file = mapping ? mapping->file : NULL;
    if (file && !file->distrusted && !file->policy->pread && mapped_file_resolve(file) && is_like_memory(file)) {
        const struct mapped_part part = {
            .access = mapping->access, .begin = mapping->begin, .end = mapping->end, .offset = mapping->offset};
        if (mapped_file_memory_at(file, &part, address, ret))
            return true;
    }
    return live_own_memory_at(target, address, ret);
}

static bool live_memory_at(struct target *target, uint64_t address, struct span *ret)
{
    struct span *recent = &live_of(target)->recent[address / PAGE_SIZE % RECENT];
    if (address < recent->begin || address >= recent->end) {
        struct span found;
        if (!find_memory(target, address, &found))
            return false;
        *recent = found;
    }
    *ret = *recent;
    return true;
}

static size_t live_peek(struct target *target, uint64_t address, void *buffer, size_t size)
{
    return live_pages_peek(&live_of(target)->pages, address, buffer, size);
}

static void forget_recent(struct live *live)
{
    memset(live->recent, 0, sizeof live->recent);
}

static void live_begin_epoch(struct target *target)
{
    live_pages_trim(&live_of(target)->pages);
    forget_recent(live_of(target));
    target->epoch++;
}

static void live_renew(struct target *target, uint64_t begin, uint64_t end)
{
    live_pages_renew(&live_of(target)->pages, target->epoch, begin, end);
    forget_recent(live_of(target));
}

static bool live_is_silent_at(struct target *target, uint64_t address)
{
    struct live *live = live_of(target);
    return live->pages.error == ETIMEDOUT && live_mappings_part_at(&live->mappings, address).is_far;
}

static bool live_distrust_file(struct target *target, uint64_t address)
{
    const struct mapping *mapping = target_mapping_at(target, address);
    if (!mapping || !mapping->file || mapping->file->distrusted)
        return false;
    mapping->file->distrusted = true;
    live_mappings_expire(&live_of(target)->mappings);
    forget_recent(live_of(target));
    return true;
}

/* Why the process is gone, or NULL. The file descriptor has no memory once the process ends or executes a program. */
static const char *live_gone(struct target *target)
{
    struct live *live = live_of(target);
    uint8_t byte;
    if (live->pages.memory < 0 || live_mappings_part_at(&live->mappings, target->vdso).is_far ||
        pread(live->pages.memory, &byte, 1, (off_t)target->vdso) != 0)
        return NULL;
    return kill(target->pid, 0) < 0 && errno == ESRCH ? "the process has ended"
                                                      : "the process has ended or executed another program";
}

static bool live_unchanged(struct target *target, const struct read_log *log, size_t from)
{
    struct live_pages *pages = &live_of(target)->pages;
    if (!log->reads.count && !log->files.count && !log->incomplete)
        return true;
    const struct logged_file *differs = live_pages_differing_file(pages, &log->files);
    if (differs)
        live_distrust_file(target, differs->address);
    /* live_gone() comes last: it shows that everything before it was read from the program that was opened. */
    return !differs && live_pages_unchanged(pages, target->epoch, log, from) && !live_gone(target);
}

static void resume(struct live *live)
{
    struct target_stops *stops = &live->base.stops;
    uint64_t time = thread_holder_release(&live->holder);
    live->base.is_held = false;
    if (!time)
        return;
    stops->count++;
    stops->total += time;
    stops->longest = MAX(stops->longest, time);
}

static void live_destroy(struct target *target)
{
    struct live *live = live_of(target);
    resume(live);
    live_pages_deinit(&live->pages);
    if (live->pages.memory >= 0)
        close(live->pages.memory);
    live_mappings_close(&live->mappings);
    mapped_files_deinit(target);
    target_deinit(target);
    free(live);
}

/* Reads /proc/PID/NAME, at most `size` - 1 bytes, and ends them with a NUL. Returns their number; 0 on failure. */
static size_t read_proc_file(int pid, const char *name, char *ret, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return file_read_text(AT_FDCWD, path, ret, size);
}

/* The name of a thread, without the newline that /proc ends it with. */
static void read_name(int pid, int tid, char *ret, size_t size)
{
    char file[32];
    snprintf(file, sizeof file, "task/%d/comm", tid);
    read_proc_file(pid, file, ret, size);
    ret[strcspn(ret, "\n")] = '\0';
}

/* The id of a thread in its own pid namespace or, if that is not known, in ours. */
static int read_inner_id(int pid, int tid)
{
    char file[32], status[STATUS_SIZE];
    snprintf(file, sizeof file, "task/%d/status", tid);
    read_proc_file(pid, file, status, sizeof status);
    int id = proc_status_inner_id(status);
    return id > 0 ? id : tid;
}

static enum cdacq_status live_threads(struct target *target, struct threads *ret, struct cdacq_error *err)
{
    struct live *live = live_of(target);
    if (!live->holder.started)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0,
                         "process %d: threads can be read only while the process is stopped", target->pid);
    if (!register_machine_find(target->elf_machine))
        return error_set(err, CDACQ_ERR_FORMAT, 0, "process %d: registers of ELF machine %u cannot be read",
                         target->pid, target->elf_machine);
    enum cdacq_status status = thread_holder_list(&live->holder, target, ret, err);
    target->pac_mask = live->holder.pac_mask;
    /* All threads of a process are in one pid namespace, and the first one has the process's id. */
    bool is_inside = read_inner_id(target->pid, target->pid) != target->pid;
    for (size_t i = 0; i < ret->count; i++) {
        struct target_thread *thread = &ret->items[i];
        read_name(target->pid, thread->tid, thread->name, sizeof thread->name);
        if (is_inside)
            thread->inner_tid = read_inner_id(target->pid, thread->tid);
    }
    return status;
}

static bool is_stopped(int pid)
{
    char status[STATUS_SIZE];
    read_proc_file(pid, "status", status, sizeof status);
    return proc_status_is_stopped(status);
}

static void live_process(struct target *target, struct target_process *ret)
{
    const struct live *live = live_of(target);
    char path[64];
    ret->is_frozen = proc_is_frozen(target->pid);
    ret->is_stopped = live->holder.started ? live->holder.is_stopped : is_stopped(target->pid);
    size_t n = read_proc_file(target->pid, "cmdline", ret->arguments, sizeof ret->arguments);
    ret->inner_pid = read_inner_id(target->pid, target->pid);
    ret->arguments_cut = n == sizeof ret->arguments - 1;
    for (size_t i = 0; i + 1 < n; i++)
        ret->arguments[i] = ret->arguments[i] ? ret->arguments[i] : ' ';
    read_name(target->pid, target->pid, ret->name, sizeof ret->name); /* the first thread has the process's id */
    snprintf(path, sizeof path, "/proc/%d/exe", target->pid);
    ssize_t length = readlink(path, ret->program, sizeof ret->program - 1);
    ret->program[MAX(length, 0)] = '\0';
    ret->program[mapped_path_length(ret->program)] = '\0';
}

static void live_refresh(struct target *target)
{
    struct live *live = live_of(target);
    if (!target->changes || !live_mappings_are_due(&live->mappings) || live_gone(target))
        return;
    live_mappings_refresh(&live->mappings);
    forget_recent(live);
}

static enum cdacq_status live_list_mappings(struct target *target)
{
    struct live *live = live_of(target);
    forget_recent(live);
    return live_mappings_list(&live->mappings);
}

static const struct mapping *live_mapping_at(struct target *target, uint64_t address)
{
    return live_mappings_at(&live_of(target)->mappings, address);
}

static size_t peek_pages(void *pages, uint64_t address, void *buffer, size_t size)
{
    return live_pages_peek(pages, address, buffer, size);
}

static const struct mapping *live_next_loaded(struct target *target, bool (*accepts)(const char *path),
                                              uint64_t *position)
{
    struct live *live = live_of(target);
    const struct link_map_memory memory = {peek_pages, &live->pages};
    if (!*position)
        live->library_count = link_map_find(&memory, &live->program, accepts, live->libraries);
    if (!live->library_count)
        return live_mappings_next_loaded(&live->mappings, accepts, position);
    size_t i = 0;
    while (i < live->library_count && live->libraries[i] < *position)
        i++;
    if (i == live->library_count)
        return NULL;
    uint64_t base = live->libraries[i];
    const struct mapping *first = live_mappings_at(&live->mappings, base);
    if (first && first->begin == base && !first->offset && accepts(first->path)) {
        *position = base + 1;
        return first;
    }
    (void)live_list_mappings(target); /* the list of the dynamic linker is not true */
    return NULL;
}

static enum cdacq_status live_stop(struct target *target, bool as_core, struct cdacq_error *err)
{
    struct live *live = live_of(target);
    if (live->holder.started)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "process %d: it is stopped already", target->pid);
    enum cdacq_status status = thread_holder_hold(&live->holder, live->base.pid, err);
    if (status >= 0) /* the process may have executed another program, whose threads these are */
        status = target_check_gone(target, 0, err);
    if (status < 0) {
        resume(live);
        return status;
    }
    target->is_held = true;
    live_begin_epoch(target);
    if (!target->partial) {
        (void)live_list_mappings(target); /* if it fails, the known ones stay */
    } else if ((status = target_list_mappings(target, err)) < 0) {
        resume(live);
        return status;
    }
    target->changes &= !as_core;
    return CDACQ_OK;
}

static void live_resume(struct target *target)
{
    resume(live_of(target));
}

static const struct target_ops live_ops = {
    .memory_at = live_memory_at,
    .dumped_at = live_own_memory_at,
    .peek = live_peek,
    .threads = live_threads,
    .process = live_process,
    .mapping_at = live_mapping_at,
    .next_loaded = live_next_loaded,
    .list_mappings = live_list_mappings,
    .begin_epoch = live_begin_epoch,
    .refresh = live_refresh,
    .renew = live_renew,
    .stop = live_stop,
    .resume = live_resume,
    .unchanged = live_unchanged,
    .distrust_file = live_distrust_file,
    .is_silent_at = live_is_silent_at,
    .gone = live_gone,
    .destroy = live_destroy,
};

/* Fails once, at open, for a process that has ended or may not be read. */
static enum cdacq_status check_readable(struct live *live, struct cdacq_error *err)
{
    struct span span;
    for (size_t i = 0; i < live->base.mapping_count; i++)
        if ((uintptr_t)live->base.mappings[i].begin != live->base.mappings[i].begin)
            return error_set(err, CDACQ_ERR_IO, 0,
                             "process %d: it has 64-bit addresses, which a 32-bit program cannot read", live->base.pid);
    live->pages.memory = proc_file_open(live->base.pid, "mem");
    if (!live_own_memory_at(&live->base, live->base.vdso, &span)) {
        errno = live->pages.error;
        if (errno != EFAULT && errno != EIO) /* no memory there */
            return proc_error(live->base.pid, err);
    }
    return CDACQ_OK;
}

/* Reads the program's header and its auxiliary vector. */
static void read_program(struct live *live)
{
    struct target *target = &live->base;
    char auxv[1024];
    struct elf_class elf;
    uint8_t bytes[ELF_RECORD_MAX];
    CLEANUP_CLOSE int fd = file_open_program(target->pid);
    if (fd < 0 || file_read_at(fd, 0, bytes, sizeof bytes) < sizeof bytes || !elf_class_of(bytes, &elf))
        return;
    target->elf_machine = elf_header_at(elf, bytes).machine;
    size_t size = read_proc_file(target->pid, "auxv", auxv, sizeof auxv);
    target->vdso = core_auxv_value(elf, (const uint8_t *)auxv, size, AT_SYSINFO_EHDR);
    live->program = (struct program_headers){
        .elf = elf,
        .address = core_auxv_value(elf, (const uint8_t *)auxv, size, AT_PHDR),
        .count = core_auxv_value(elf, (const uint8_t *)auxv, size, AT_PHNUM),
    };
}

static void open_root(struct target *target)
{
    target->own_root = malloc(sizeof *target->own_root);
    if (target->own_root && !file_root_open_process(target->own_root, target->pid)) {
        file_root_close(target->own_root);
        free(take_ptr(target->own_root));
    }
}

enum cdacq_status live_open(int pid, struct file_policy *policy, bool stop, bool record, struct target **ret,
                            struct cdacq_error *err)
{
    struct live *live = calloc(1, sizeof *live);
    if (!live)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    live->base = (struct target){
        .ops = &live_ops, .kind = CDACQ_TARGET_PROCESS, .pid = pid, .changes = !stop && !record, .epoch = 1};
    live->pages.pid = pid;
    live->pages.part_at = live_mappings_part_at;
    live->pages.context = &live->mappings;
    live->mappings.file = live->mappings.statm = -1;
    live->pages.memory = -1;
    live->policy = policy;
    enum cdacq_status status = stop ? thread_holder_hold(&live->holder, live->base.pid, err) : CDACQ_OK;
    if (status >= 0)
        status = live_mappings_open(&live->base, policy, !stop && !record && sizeof(uintptr_t) == sizeof(uint64_t),
                                    &live->mappings, err);
    if (status >= 0 && record && !(live->base.recording = calloc(1, sizeof *live->base.recording)))
        status = error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    live->pages.work = &live->base.work;
    if (status >= 0) {
        live->base.own_size = live_mappings_own_size(&live->mappings);
        read_program(live);
        open_root(&live->base);
        status = check_readable(live, err);
    }
    if (status < 0) {
        live_destroy(&live->base);
        return status;
    }
    *ret = &live->base;
    return CDACQ_OK;
}
