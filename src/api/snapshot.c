/*
 * snapshot.c: writes a small core of only the lines of 64 bytes that were read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "util/file.h"
#include "util/vector.h"
#include "src/lookup/opened_session.h"
#include "formats/core_writer.h"

enum {
    SNAPSHOT_PDBS_MAX = 256,
    SNAPSHOT_PDB_BYTES_MAX = 32 * 1024 * 1024, /* of all PDBs together */
};

DEFINE_VECTOR(segments, struct core_writer_segment);

static bool add_segment(struct segments *segments, uint64_t address, const uint8_t *bytes, uint64_t size,
                        uint32_t flags)
{
    struct core_writer_segment *last = segments->count ? &segments->items[segments->count - 1] : NULL;
    /* Extends the last segment when both memory and source continue it. */
    if (last && last->vaddr + last->filesz == address && (const uint8_t *)last->bytes + last->filesz == bytes &&
        last->flags == flags) {
        last->filesz += size;
        last->memsz += size;
        return true;
    }
    return segments_append(segments, (struct core_writer_segment){address, bytes, size, size, flags});
}

/*
 * Adds the bytes of a line that the target has; its memory may begin or end within the line. The last line of the
 * address space ends at address 0, so offsets are compared, not addresses.
 */
static bool add_line(struct segments *segments, struct target *target, uint64_t line)
{
    for (uint64_t done = 0, size; done < LINE_SIZE; done += size) {
        uint64_t address = line + done;
        struct span span;
        bool found = target->ops->memory_at(target, address, &span);
        size = found ? MIN(span.end - address, LINE_SIZE - done) : 1;
        uint32_t flags = CORE_WRITER_R | (found && span.unverified ? CORE_WRITER_UNCONFIRMED : 0);
        if (found && !add_segment(segments, address, span.bytes + (address - span.begin), size, flags))
            return false;
    }
    return true;
}

static bool add_page(struct segments *segments, struct target *target, const struct page *page)
{
    for (unsigned i = 0; i < PAGE_LINES; i++)
        if ((page->lines >> i & 1) && !add_line(segments, target, page->address + i * LINE_SIZE))
            return false;
    return true;
}

static bool collect(struct target *target, struct segments *segments)
{
    const struct recording *recording = target->recording;
    CLEANUP_FREE struct page *pages = calloc(recording->pages.count + 1, sizeof *pages);
    size_t count = 0;
    if (!pages)
        return false;
    for (const struct page *page = NULL; (page = pages_next(&recording->pages, page));)
        pages[count++] = *page;
    sort_u64(pages, count, sizeof *pages);
    for (size_t i = 0; i < count; i++)
        if (!add_page(segments, target, &pages[i]))
            return false;
    for (const struct patch *patch = recording->patches; patch; patch = patch->next)
        if (!add_segment(segments, patch->address, patch->bytes, patch->size, CORE_WRITER_R))
            return false;
    sort_u64(segments->items, segments->count, sizeof *segments->items);
    return true;
}

/*
 * The mappings for NT_FILE, from which answers take the paths of modules. An emulator that runs a 32-bit runtime has
 * mappings beyond the 32-bit address space, which a 32-bit core cannot describe.
 */
static struct core_writer_mapping *list_mappings(const struct target *target, bool wide, size_t *ret_count)
{
    struct core_writer_mapping *mappings = calloc(target->mapping_count + 1, sizeof *mappings);
    size_t count = 0;
    for (size_t i = 0; mappings && i < target->mapping_count; i++) {
        const struct mapping *mapping = &target->mappings[i];
        if (wide || mapping->end <= UINT32_MAX)
            mappings[count++] =
                (struct core_writer_mapping){mapping->begin, mapping->end, mapping->offset, mapped_file_name(mapping)};
    }
    *ret_count = count;
    return mappings;
}

/* What the descriptor says of the process. That of another runtime if the one in use cannot be read. */
static const struct contract_descriptor_info *description_of(const struct cdacq_target *handle)
{
    const struct contract_descriptor_info *found = &handle->descriptor_info;
    for (size_t i = 0; handle->group && handle->problem.status < 0 && i < TARGET_RUNTIMES_MAX; i++)
        if (handle->group->items[i])
            found = &handle->group->items[i]->descriptor_info;
    return found;
}

/* The threads for NT_PRSTATUS. *ret_words holds their registers. */
static struct core_writer_thread *list_threads(const struct cdacq_target *handle, const struct core_siginfo *signal,
                                               uint8_t **ret_words)
{
    const struct threads *threads = &handle->snapshot_threads;
    const struct register_machine *machine = register_machine_find(handle->memory->elf_machine);
    struct core_writer_thread *list = calloc(threads->count + 1, sizeof *list);
    uint8_t *words = calloc(threads->count + 1, REGISTERS_KERNEL_SIZE);
    int ended_by = 0;
    for (size_t i = 0; i < threads->count; i++)
        ended_by = threads->items[i].died ? threads->items[i].signal : ended_by;
    for (size_t i = 0; list && words && machine && i < threads->count; i++) {
        const struct target_thread *thread = &threads->items[i];
        uint8_t *registers = words + i * REGISTERS_KERNEL_SIZE;
        size_t size = registers_to_kernel(machine, &thread->registers, description_of(handle)->big_endian, registers);
        registers_put_mode(machine, thread->mode, thread->call, registers);
        list[i] = (struct core_writer_thread){
            .tid = thread->inner_tid, /* as in a core of the kernel: the id that the runtime knows */
            .signal = ended_by,
            .died = thread->died,
            .code = signal->code,
            .address = signal->has_address ? signal->address : 0,
            .sender_pid = signal->pid,
            .sender_uid = signal->uid,
            .registers = registers,
            .registers_size = size,
            .pac_mask = handle->memory->pac_mask,
            .name = thread->name[0] ? thread->name : NULL,
        };
    }
    *ret_words = words;
    return list;
}

/*
 * The PDBs that were used for source lines. They are files of this machine, not memory of the process, and a snapshot
 * is read on another machine. Large ones are left out: their lines need the file on that machine.
 */
static struct core_writer_pdb *list_pdbs(struct cdacq_target *handle, size_t *ret_count)
{
    CLEANUP_FREE struct file_candidate *files = calloc(SNAPSHOT_PDBS_MAX, sizeof *files);
    struct core_writer_pdb *list = files ? calloc(SNAPSHOT_PDBS_MAX, sizeof *list) : NULL;
    uint64_t total = 0;
    *ret_count = 0;
    for (size_t number = 0; list && number < (handle->group ? TARGET_RUNTIMES_MAX : 1); number++) {
        struct cdacq_target *target = handle->group ? handle->group->items[number] : handle;
        if (!target)
            continue;
        pthread_mutex_lock(&target->policy->lock);
        size_t count = module_pdbs_list(&target->module_pdbs, files, SNAPSHOT_PDBS_MAX);
        pthread_mutex_unlock(&target->policy->lock);
        for (size_t i = 0; i < count && *ret_count < SNAPSHOT_PDBS_MAX; i++) {
            if (files[i].size > SNAPSHOT_PDB_BYTES_MAX - total)
                continue;
            total += files[i].size;
            list[(*ret_count)++] = (struct core_writer_pdb){files[i].bytes, (size_t)files[i].size};
        }
    }
    return list;
}

static enum cdacq_status write_file(const char *path, const struct core_writer_image *image, uint64_t *ret_size,
                                    struct cdacq_error *err)
{
    struct new_file created;
    /* Not readable by others: it holds memory of a process. */
    if (!file_create(path, 0600, &created))
        return error_set(err, CDACQ_ERR_IO, 0, "%s: %s", path, created.problem ? created.problem : strerror(errno));
    int fd = fcntl(created.fd, F_DUPFD_CLOEXEC, 3); /* fclose() reports what could not be written */
    FILE *file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    struct cdacq_error error;
    uint64_t written = 0;
    enum cdacq_status status = file ? core_writer_write(file, image, &written, &error)
                                    : error_set(&error, CDACQ_ERR_IO, 0, "%s", strerror(errno));
    if (status < 0)
        error_set(err, status, 0, "%s: %s", path, error.message);
    if (fd >= 0 && (file ? fclose(file) : close(fd)) != 0 && status >= 0)
        status = error_set(err, CDACQ_ERR_IO, 0, "%s: %s", path, strerror(errno));
    if (status < 0)
        file_abandon(&created);
    else if (!file_commit(&created))
        status = error_set(err, CDACQ_ERR_IO, 0, "%s: %s", path, strerror(errno));
    if (status >= 0 && ret_size)
        *ret_size = written;
    return status;
}

enum cdacq_status cdacq_target_write_snapshot(struct cdacq_target *handle, const char *path, uint64_t *ret_size,
                                              struct cdacq_error *err)
{
    struct target *target = handle->memory;
    struct segments segments = {0};
    if (!target->recording)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0,
                         "a snapshot needs a target that was opened with CDACQ_OPEN_RECORD");
    enum cdacq_status status = error_check_path(path, err);
    if (status < 0)
        return status;
    bool wide = description_of(handle)->pointer_size == 8;
    size_t mapping_count, pdb_count;
    CLEANUP_FREE struct core_writer_mapping *mappings = list_mappings(target, wide, &mapping_count);
    CLEANUP_FREE struct core_writer_pdb *pdbs = list_pdbs(handle, &pdb_count);
    CLEANUP_FREE uint8_t *registers = NULL;
    CLEANUP_FREE struct target_process *process = calloc(1, sizeof *process);
    if (process && target->ops->process)
        target->ops->process(target, process);
    CLEANUP_FREE struct core_writer_thread *threads =
        process ? list_threads(handle, &process->signal, &registers) : NULL;
    if (!mappings || !pdbs || !threads || !registers || !collect(target, &segments))
        status = error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the snapshot");
    /* What is read for these is not recorded any more: the environment is beside the command line. */
    struct cdacq_process_info texts = {.size = sizeof texts};
    if (handle->snapshot_threads.count)
        (void)cdacq_target_get_process_info(handle, &texts, NULL);
    struct core_writer_image image = {
        .wide = wide,
        .big_endian = description_of(handle)->big_endian,
        .packed = true,
        .marked = true,
        .machine = target->elf_machine,
        .pid = process && process->inner_pid ? process->inner_pid : target->pid,
        .name = process && process->name[0] ? process->name : NULL,
        .arguments = texts.arguments,
        .program = texts.program,
        .mappings = mappings,
        .mapping_count = mapping_count,
        .threads = threads,
        .thread_count = handle->snapshot_threads.count,
        .pdbs = pdbs,
        .pdb_count = pdb_count,
        .segments = segments.items,
        .segment_count = segments.count,
    };
    if (status >= 0)
        status = write_file(path, &image, ret_size, err);
    segments_deinit(&segments);
    return status;
}
