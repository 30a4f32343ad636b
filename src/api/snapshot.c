/*
 * snapshot.c: writes a small core of only the lines of 64 bytes that were read.
 */
#include "descriptors/contract_descriptor.h"
#include "src/lookup/opened_target.h"
#include "target/file_candidate.h"
#include "target/mapped_file.h"
#include "target/registers.h"
#include "target/target_process.h"
#include "target/threads.h"
#include "util/error.h"
#include "util/vector.h"
#include "src/api/core_output.h"
#include "src/lookup/opened_session.h"
#include "target/core.h"

enum {
    SNAPSHOT_PDBS_MAX = 256,
    SNAPSHOT_PDB_BYTES_MAX = 32 * 1024 * 1024, /* of all PDBs together */
};

DEFINE_VECTOR(segments, struct core_writer_segment);

/* `bytes` NULL: those that the target has. */
static bool add_segment(struct segments *segments, uint64_t address, const uint8_t *bytes, uint64_t size,
                        uint32_t flags)
{
    struct core_writer_segment *last = segments->count ? &segments->items[segments->count - 1] : NULL;
    if (last && last->vaddr + last->filesz == address && !last->bytes && !bytes && last->flags == flags) {
        last->filesz += size;
        last->memsz += size;
        return true;
    }
    return segments_append(segments, (struct core_writer_segment){address, bytes, size, size, flags});
}

/* The flags of the memory at an address, and how much of `size` has them. 0: it is missing, by at least one byte. */
static uint32_t flags_at(struct target *target, uint64_t address, uint64_t *size)
{
    struct span span;
    bool found = target->ops->memory_at(target, address, &span);
    *size = found ? MIN(span.end - address, *size) : 1;
    return !found ? 0 : CORE_WRITER_R | (span.unverified ? CORE_WRITER_UNCONFIRMED : 0);
}

/*
 * Adds the bytes of a line that the target has; its memory may begin or end within the line. The last line of the
 * address space ends at address 0, so offsets are compared, not addresses.
 */
static bool add_line(struct segments *segments, struct target *target, uint64_t line)
{
    for (uint64_t done = 0, size; done < LINE_SIZE; done += size) {
        size = LINE_SIZE - done;
        uint32_t flags = flags_at(target, line + done, &size);
        if (flags && !add_segment(segments, line + done, NULL, size, flags))
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

enum {
    HEADERS_MAX = 9999,   /* some readers refuse a core with more program headers; PT_NOTE is one of them */
    GAP_MAX = 64 * 1024,  /* bytes */
    FILLED_MAX = 1 << 30, /* bytes of all gaps */
};

/* Whether the target has all bytes of a gap, with the same flags as what is before it. */
static bool has_gap(struct target *target, uint64_t address, uint64_t size, uint32_t flags)
{
    uint64_t part;
    for (; size; address += part, size -= part) {
        part = size;
        if (flags_at(target, address, &part) != flags)
            return false;
    }
    return true;
}

/* Joins segments with gaps of at most `most` bytes between them. Takes what the gaps have from *left. */
static void join(struct target *target, struct segments *segments, uint64_t most, uint64_t *left)
{
    struct core_writer_segment *items = segments->items;
    size_t kept = 1;
    for (size_t i = 1; i < segments->count; i++) {
        struct core_writer_segment *last = &items[kept - 1];
        uint64_t end = last->vaddr + last->filesz, gap = items[i].vaddr - end;
        if (last->bytes || items[i].bytes || last->flags != items[i].flags || items[i].vaddr < end || gap > most ||
            gap > *left || !has_gap(target, end, gap, last->flags)) {
            items[kept++] = items[i];
            continue;
        }
        *left -= gap;
        last->filesz += gap + items[i].filesz;
        last->memsz = last->filesz;
    }
    segments->count = kept;
}

static void limit_headers(struct target *target, struct segments *segments)
{
    uint64_t left = FILLED_MAX;
    for (uint64_t gap = LINE_SIZE; gap <= GAP_MAX && segments->count + 1 > HEADERS_MAX; gap *= 2)
        join(target, segments, gap, &left);
}

/* Bytes for the writer. What the target has lost since is zero. */
static size_t read_memory(void *context, uint64_t address, size_t size, const void **ret_bytes)
{
    struct target *target = context;
    struct span span;
    *ret_bytes = NULL;
    if (!target->ops->memory_at(target, address, &span))
        return (size_t)MIN((uint64_t)size, PAGE_SIZE - address % PAGE_SIZE);
    *ret_bytes = span.bytes + (address - span.begin);
    return (size_t)MIN(span.end - address, (uint64_t)size);
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
    limit_headers(target, segments);
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
    for (size_t i = 0; handle->group && handle->problem.status < 0 && i < RUNTIME_MAX; i++)
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
    for (size_t number = 0; list && number < (handle->group ? RUNTIME_MAX : 1); number++) {
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
        .arguments = handle->records_arguments ? texts.arguments : NULL,
        .program = texts.program,
        .vdso = wide || target->vdso <= UINT32_MAX ? target->vdso : 0,
        .mappings = mappings,
        .mapping_count = mapping_count,
        .threads = threads,
        .thread_count = handle->snapshot_threads.count,
        .pdbs = pdbs,
        .pdb_count = pdb_count,
        .segments = segments.items,
        .segment_count = segments.count,
        .read = read_memory,
        .context = target,
    };
    if (status >= 0)
        status = core_output_write(path, &image, ret_size, err);
    segments_deinit(&segments);
    return status;
}

enum cdacq_status cdacq_target_record_arguments(struct cdacq_target *handle, struct cdacq_error *err)
{
    if (!handle || !handle->memory->recording)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0,
                         "arguments are recorded of a target that was opened with CDACQ_OPEN_RECORD");
    handle->records_arguments = true;
    return CDACQ_OK;
}

/* The next address at which a target may have memory, after one at which it has none. 0: there is none. */
static uint64_t next_memory(struct target *target, uint64_t address)
{
    struct core_part part;
    if (target->kind != CDACQ_TARGET_CORE)
        return align_down(add_saturated(address, PAGE_SIZE), PAGE_SIZE);
    return core_next_part(target, address + 1, &part) ? MAX(part.begin, address + 1) : 0;
}

enum cdacq_status cdacq_target_record_memory(struct cdacq_target *handle, uint64_t address, uint64_t size,
                                             struct cdacq_error *err)
{
    enum { PARTS_MAX = 1 << 24, LINES_OF_A_STEP = 4 };
    struct target *target = handle->memory;
    if (!target->recording)
        return error_set(err, CDACQ_ERR_ARGUMENT, address,
                         "memory is recorded of a target that was opened with CDACQ_OPEN_RECORD");
    if (size && address + (size - 1) < address)
        return error_set(err, CDACQ_ERR_ARGUMENT, address, "the memory reaches beyond the address space");
    uint64_t at = address, last = address + size - 1;
    for (unsigned parts = 0; size && at <= last; parts++) {
        struct span span;
        bool found = target->ops->memory_at(target, at, &span);
        uint64_t part = found ? MIN(span.end - at, last - at + 1) : 1;
        if (parts == PARTS_MAX || !work_take_steps(&target->work, part / LINE_SIZE / LINES_OF_A_STEP + 1))
            return error_set(err, CDACQ_ERR_FUEL, at, "the bound on work was reached before all memory was recorded");
        if (found)
            target_record(target, at, part);
        uint64_t next = found ? at + part : next_memory(target, at);
        if (next <= at) /* it was the last, or the end of the address space */
            break;
        at = next;
    }
    return CDACQ_OK;
}
