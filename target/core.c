#include "target/core.h"

#include <stdio.h>

#include "target/target_process.h"
#include "util/binary_search.h"
#include "util/error.h"
#include "formats/core_writer.h"
#include "target/core_libraries.h"
#include "target/core_loads.h"
#include "target/core_process.h"
#include "target/mapped_files.h"
#include "target/mapped_path.h"
#include "target/segments.h"

enum {
    SEGMENT_MAX = 4 * 1024 * 1024, /* vm.max_map_count is 65,530 by default; the table takes 224 MB at most */
    /*
     * A binary search among segments takes a step for each doubling of their number. A table of 2^14 fits into the
     * processor's caches. With a larger one, each further step waits for memory, about as long as three reads take.
     */
    CACHED_STEPS = 14,
    UNITS_OF_A_STEP = 3,
    UNITS_OF_A_SEGMENT = 10, /* that is read and sorted, beyond these */
};

/* Memory that is to lie beyond the end of the file. */
struct cut {
    uint64_t begin, end;
};

DEFINE_VECTOR(cuts, struct cut);

struct core {
    struct target base;
    struct core_file file;
    struct core_process process;
    struct segments segments;
    struct cuts cuts;               /* sorted by begin, once the headers were read */
    uint64_t headers, header_count; /* the program headers: their offset, and how many of them the file has */
    struct mapped_file self;        /* marks segments that are read from `file.fd`; only its address is used */
    struct mapped_file unconfirmed; /* likewise, segments that a snapshot took from a file that nothing confirmed */
};

static struct core *core_of(struct target *target)
{
    return (struct core *)target;
}

static void core_destroy(struct target *target)
{
    struct core *core = core_of(target);
    segments_deinit(&core->segments);
    cuts_deinit(&core->cuts);
    mapped_files_deinit(target);
    target_deinit(target);
    core_process_deinit(&core->process);
    core_file_close(&core->file);
    free(core);
}

/* Whether a segment's bytes are the core's own, not a file's. */
static bool is_dumped(const struct core *core, const struct segment *segment)
{
    return segment->bytes || segment->file == &core->self || segment->file == &core->unconfirmed;
}

static bool dumped_memory_at(struct core *core, const struct segment *segment, uint64_t address, struct span *ret)
{
    struct span page;
    bool unverified = segment->file == &core->unconfirmed;
    if (segment->bytes) {
        *ret = (struct span){
            .begin = segment->begin, .end = segment->end, .bytes = segment->bytes, .unverified = unverified};
        return true;
    }
    /* A page of the file may reach beyond the segment. */
    if (!page_cache_at(&core->file.cache, segment->file_offset + (address - segment->begin), &page))
        return false;
    uint64_t begin = MAX(page.begin, segment->file_offset);
    uint64_t end = MIN(page.end, segment->file_offset + (segment->end - segment->begin));
    *ret = (struct span){
        .begin = segment->begin + (begin - segment->file_offset),
        .end = segment->begin + (end - segment->file_offset),
        .bytes = page.bytes + (begin - page.begin),
        .unverified = unverified,
    };
    return true;
}

/* Bytes of an unconfirmed file say nothing of other files. */
static bool core_dumped_at(struct target *target, uint64_t address, struct span *ret)
{
    struct core *core = core_of(target);
    const struct segment *segment = segments_find(&core->segments, address);
    return segment && is_dumped(core, segment) && dumped_memory_at(core, segment, address, ret) && !ret->unverified;
}

static bool core_is_cut_at(const struct target *target, uint64_t address)
{
    const struct cuts *cuts = &((const struct core *)target)->cuts;
    size_t after = lower_bound(i, cuts->count, cuts->items[i].begin <= address);
    return after && address < cuts->items[after - 1].end;
}

static bool core_memory_at(struct target *target, uint64_t address, struct span *ret)
{
    struct core *core = core_of(target);
    const struct segment *segment = segments_find(&core->segments, address);
    if (!segment)
        return false;
    if (is_dumped(core, segment))
        return dumped_memory_at(core, segment, address, ret);
    const struct mapping *mapping = target_mapping_at(target, address);
    const struct mapped_part part = {.access = mapping ? mapping->access : MAPPING_UNKNOWN,
                                     .begin = segment->begin,
                                     .end = segment->end,
                                     .offset = segment->file_offset};
    return mapped_file_memory_at(segment->file, &part, address, ret);
}

static enum cdacq_status core_list_threads(struct target *target, struct threads *ret, struct cdacq_error *err)
{
    const struct core *core = core_of(target);
    return core_process_list_threads(&core->process, target, core->file.elf, ret, err);
}

static void core_describe(struct target *target, struct target_process *ret)
{
    const struct core *core = core_of(target);
    core_process_describe(&core->process, ret);
    ret->elf = core->file.elf;
    ret->time = core->file.written;
}

static const struct target_ops core_ops = {
    .memory_at = core_memory_at,
    .is_cut_at = core_is_cut_at,
    .dumped_at = core_dumped_at,
    .threads = core_list_threads,
    .process = core_describe,
    .destroy = core_destroy,
};

static enum cdacq_status read_load(struct core *core, const struct elf_segment *header, struct core_loads *loads,
                                   struct cdacq_error *err)
{
    uint64_t memory_end = add_saturated(header->vaddr, header->memory_size);
    uint64_t size =
        MIN(header->file_size, memory_end - header->vaddr); /* p_filesz may exceed p_memsz in a damaged core */
    core->base.segment_count++;
    if (header->vaddr < memory_end)
        core_loads_add(loads, header, memory_end);
    uint64_t available = header->offset < core->file.size ? core->file.size - header->offset : 0;
    if (size > available) {
        core->base.truncated = true;
        if (!cuts_append(&core->cuts, (struct cut){header->vaddr + available, header->vaddr + size}))
            return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the core's segments");
    }
    size = MIN(size, available);
    if (!size)
        return CDACQ_OK;
    core->base.dumped_size += size;
    struct segment segment = {
        .begin = header->vaddr,
        .end = header->vaddr + size,
        .bytes = core->file.bytes ? core->file.bytes + header->offset : NULL,
        .file = header->flags & CORE_WRITER_UNCONFIRMED ? &core->unconfirmed
                : core->file.bytes                      ? NULL
                                                        : &core->self,
        .file_offset = header->offset,
    };
    if (!segments_add(&core->segments, segment))
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the core's segments");
    return CDACQ_OK;
}

static struct elf_segment read_header(struct core *core, uint64_t at)
{
    uint8_t buffer[ELF_RECORD_MAX];
    return elf_segment_at(core->file.elf, core_file_peek(&core->file, at, elf_segment_size(core->file.elf), buffer));
}

/*
 * The number of program headers. With PN_XNUM the first section header holds it. Linux writes that at the end of the
 * file; where it was cut off, the program headers end where the contents of the first one begin.
 */
static uint64_t count_headers(struct core *core, const struct elf_header *elf)
{
    uint8_t buffer[ELF_RECORD_MAX];
    size_t section_size = elf_section_size(core->file.elf), entry_size = elf_segment_size(core->file.elf);
    if (elf->segment_count != PN_XNUM)
        return elf->segment_count;
    if (elf->sections && range_fits(elf->sections, section_size, core->file.size))
        return elf_section_at(core->file.elf, core_file_peek(&core->file, elf->sections, section_size, buffer)).info;
    core->base.truncated = true;
    uint64_t table = elf->segments;
    uint64_t contents = range_fits(table, entry_size, core->file.size) ? read_header(core, table).offset : 0;
    return contents > table ? (contents - table) / entry_size : elf->segment_count;
}

static enum cdacq_status read_segments(struct core *core, const char *path, struct core_loads *loads,
                                       struct cdacq_error *err)
{
    uint8_t buffer[ELF_RECORD_MAX];
    struct elf_header elf =
        elf_header_at(core->file.elf, core_file_peek(&core->file, 0, elf_header_size(core->file.elf), buffer));
    uint64_t table = elf.segments, entry_size = elf_segment_size(core->file.elf), claimed = count_headers(core, &elf);
    uint64_t count = MIN(claimed, table < core->file.size ? (core->file.size - table) / entry_size : 0);
    if (!count)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: no program headers: an empty or truncated core", path);
    if (count > SEGMENT_MAX)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: %llu segments are more than the %d that are supported", path,
                         (unsigned long long)count, SEGMENT_MAX);
    core->base.truncated |= count < claimed;
    core->headers = table;
    core->header_count = count;
    if (!core_loads_init(loads, (size_t)count))
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the core's segments");
    enum cdacq_status status = CDACQ_OK;
    for (uint64_t i = 0; i < count && status >= 0; i++) {
        struct elf_segment header = read_header(core, table + i * entry_size);
        if (header.type == PT_LOAD)
            status = read_load(core, &header, loads, err);
        else if (header.type == PT_NOTE)
            status = core_process_read_notes(&core->process, &core->base, &core->file, &header, err);
    }
    core_loads_sort(loads);
    sort_u64(core->cuts.items, core->cuts.count, sizeof *core->cuts.items);
    return status;
}

/* gdb copies the paths of mappings from the text of /proc/PID/maps. */
static struct mapped_file *get_file(struct target *target, struct file_policy *policy, const char *name)
{
    bool is_by_gdb = core_of(target)->process.seen.gdb;
    CLEANUP_FREE char *unescaped = is_by_gdb && strchr(name, '\\') ? strdup(name) : NULL;
    if (unescaped)
        mapped_path_unescape(unescaped);
    return mapped_files_get(target, policy, unescaped ? unescaped : name);
}

/*
 * Finds how much of each file was mapped. The loader maps gaps between segments without access, perhaps to beyond the
 * end of the file. Where the core has nothing of such a mapping, two things show it: it is what the loader's first
 * mapping, of the whole image, has left there, and the next segment begins with an earlier part of the file. Images
 * for pages of 64 KiB have gaps of nearly that size.
 */
static void find_gaps(struct target *target)
{
    const struct mapping *first = NULL; /* of the image: with its beginning */
    for (size_t i = 0; i < target->mapping_count; i++) {
        struct mapping *mapping = &target->mappings[i];
        const struct mapping *next = i + 1 < target->mapping_count ? mapping + 1 : NULL;
        uint64_t end = mapping->offset + (mapping->end - mapping->begin);
        if (!mapping->file)
            continue;
        if (!mapping->offset || (first && first->file != mapping->file))
            first = mapping->offset ? NULL : mapping;
        bool is_rest = first && first != mapping && mapping->offset == mapping->begin - first->begin;
        bool goes_back = next && next->file == mapping->file && next->begin == mapping->end && next->offset < end;
        mapping->is_guard |= mapping->access == MAPPING_UNKNOWN && is_rest && goes_back;
        if (!mapping->is_guard)
            mapping->file->mapped_size = MAX(mapping->file->mapped_size, end);
    }
}

/* A mapping of a file becomes a hole. mapped_file_constant() decides which of its bytes the file may fill. */
static enum cdacq_status add_holes(struct segments *holes, struct target *target, struct file_policy *policy,
                                   const struct core_loads *loads, struct cdacq_error *err)
{
    for (size_t i = 0; i < target->mapping_count; i++) {
        struct mapping *mapping = &target->mappings[i];
        mapping->is_guard = !core_loads_set_access(loads, mapping);
        if (i && mapping[-1].file && strcmp(mapping[-1].file->name, mapping->path) == 0)
            mapping->file = mapping[-1].file;
        else
            mapping->file = get_file(target, policy, mapping->path);
        if (!mapping->file)
            continue;
        mapping->path = mapping->file->path;
        struct segment hole = {mapping->begin, mapping->end, NULL, mapping->file, mapping->offset};
        if (!segments_add(holes, hole))
            return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the list of mappings");
    }
    find_gaps(target);
    if (!mapped_files_index(target))
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the list of mappings");
    return CDACQ_OK;
}

static size_t peek(void *core, uint64_t address, void *buffer, size_t size)
{
    struct span span;
    size_t done = 0;
    while (done < size && core_dumped_at(core, address + done, &span)) {
        size_t n = (size_t)MIN(span.end - (address + done), (uint64_t)(size - done));
        memcpy((uint8_t *)buffer + done, span.bytes + (address + done - span.begin), n);
        done += n;
    }
    return done;
}

/* Lists the mappings of a core that has no list of them, from what was dumped. */
static enum cdacq_status list_libraries(struct core *core, struct cdacq_error *err)
{
    const struct core_process *process = &core->process;
    const struct link_map_memory memory = {peek, core};
    const struct program_headers program = {core->file.elf, process->headers, process->header_count};
    bool stored = segments_seal(&core->segments) &&
                  core_libraries_list(&core->base, &memory, &program, process->program, &core->file.kept);
    return stored ? CDACQ_OK : error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the list of mappings");
}

static uint32_t units_of_a_seek(size_t segments)
{
    uint32_t units = 0;
    for (size_t left = segments >> CACHED_STEPS; left; left >>= 1)
        units += UNITS_OF_A_STEP;
    return units;
}

static enum cdacq_status core_read(struct core *core, const char *path, struct file_policy *policy,
                                   struct cdacq_error *err)
{
    struct core_loads loads = {0};
    struct segments dumped = {0};
    enum cdacq_status status = read_segments(core, path, &loads, err);
    if (status >= 0 && !core->base.mapping_count && core->process.headers)
        status = list_libraries(core, err);
    if (status >= 0) {
        target_sort_mappings(&core->base);
        dumped = core->segments;
        core->segments = (struct segments){0};
        status = add_holes(&core->segments, &core->base, policy, &loads, err);
    }
    core_loads_deinit(&loads);
    bool stored = segments_reserve(&core->segments, core->segments.count + dumped.count);
    for (size_t i = 0; i < dumped.count && stored; i++)
        stored = segments_add(&core->segments, dumped.items[i]);
    segments_deinit(&dumped); /* as much memory as what is sealed takes in the meantime */
    if (status >= 0 && (!stored || !segments_seal(&core->segments)))
        status = error_set(err, CDACQ_ERR_NOMEM, 0, "%s: out of memory for its segments", path);
    size_t cached = MIN(core->segments.count, (size_t)1 << CACHED_STEPS);
    core->base.open_units = (uint64_t)(core->segments.count - cached) * UNITS_OF_A_SEGMENT;
    core->base.seek_units = units_of_a_seek(core->segments.count);
    for (size_t i = 0; status >= 0 && i < core->segments.count; i++) {
        const struct segment *segment = &core->segments.items[i];
        if (is_dumped(core, segment))
            continue;
        core->base.missing_size = add_saturated(core->base.missing_size, segment->end - segment->begin);
        segment->file->missing_size = add_saturated(segment->file->missing_size, segment->end - segment->begin);
    }
    return status;
}

/*
 * Finds memory that the kernel or gdb has left out by kind (core(5)). Without the stacks and heaps, what remains
 * outside of the mapped files is the code that the kernel gives each process (vdso).
 */
static void note_filter(struct core *core)
{
    enum { VDSO_MAX = 64 * 1024 };
    struct target *target = &core->base;
    uint64_t private = 0, shared = 0, mapped = 0;
    if (!target->mapping_count || target->truncated || !core_process_has_filter(&core->process))
        return;
    for (size_t i = 0; i < core->segments.count; i++) {
        const struct segment *segment = &core->segments.items[i];
        const struct mapping *mapping = target_mapping_at(target, segment->begin);
        uint64_t size = segment->end - segment->begin, dumped = is_dumped(core, segment) ? size : 0;
        if (!mapping) {
            private = add_saturated(private, dumped);
        } else if (mapped_path_is_memory(mapping->path)) {
            shared = add_saturated(shared, dumped);
            mapped = add_saturated(mapped, size);
        }
    }
    target->missing_filter |= private <= VDSO_MAX ? CDACQ_FILTER_PRIVATE : 0;
    target->missing_filter |= shared < mapped / 2 ? CDACQ_FILTER_SHARED : 0;
}

/* Marks a core that was stored in part. A stored core may also have ended early without a sign of it. */
static void note_truncation(struct core *core)
{
    if (core->file.problem[0])
        core->base.truncated = true;
    else if (core->file.stored && core->base.truncated)
        snprintf(core->file.problem, sizeof core->file.problem,
                 "only its first %zu bytes were read: it ends before its last segment", core->file.size);
    if (core->file.problem[0])
        core->base.truncation = core->file.problem;
}

enum cdacq_status core_open_source(const struct core_source *source, struct file_policy *policy, bool record,
                                   struct target **ret, struct cdacq_error *err)
{
    struct core *core = calloc(1, sizeof *core);
    if (!core)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    core->base = (struct target){.ops = &core_ops, .kind = CDACQ_TARGET_CORE};
    enum cdacq_status status = core_file_open(&core->file, source, !policy || !policy->pread, err);
    core->base.elf_machine = core->file.machine;
    core->base.own_size = core->file.size_on_disk;
    if (status >= 0 && record && !(core->base.recording = calloc(1, sizeof *core->base.recording)))
        status = error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    if (status >= 0)
        status = core_read(core, source->path, policy, err);
    if (status == CDACQ_ERR_FORMAT && core->file.problem[0])
        error_set(err, status, 0, "%s: no usable core: %s", source->path, core->file.problem);
    if (status < 0) {
        core_destroy(&core->base);
        return status;
    }
    core->base.writer = core_process_writer(&core->process);
    note_truncation(core);
    note_filter(core);
    *ret = &core->base;
    return CDACQ_OK;
}

enum cdacq_status core_open(const char *path, struct file_policy *policy, bool record, struct target **ret,
                            struct cdacq_error *err)
{
    return core_open_source(&(struct core_source){.path = path, .fd = -1}, policy, record, ret, err);
}

void core_release_pages(struct target *core)
{
    core_file_release_pages(&core_of(core)->file);
}

/* ---- For one who writes the core again ---- */

bool core_next_part(struct target *target, uint64_t address, struct core_part *ret)
{
    const struct core *core = core_of(target);
    const struct segment *segment = segments_next(&core->segments, address);
    if (!segment)
        return false;
    bool dumped = is_dumped(core, segment);
    uint64_t begin = MAX(segment->begin, address);
    *ret = (struct core_part){begin, segment->end, dumped ? NULL : segment->file,
                              dumped ? 0 : segment->file_offset + (begin - segment->begin)};
    return true;
}

struct elf_class core_class(const struct target *target)
{
    return ((const struct core *)target)->file.elf;
}

bool core_program_header(struct target *target, uint64_t index, struct elf_segment *ret)
{
    struct core *core = core_of(target);
    if (index >= core->header_count)
        return false;
    *ret = read_header(core, core->headers + index * elf_segment_size(core->file.elf));
    return true;
}

bool core_bytes(struct target *target, uint64_t offset, uint64_t size, const uint8_t **ret)
{
    struct core *core = core_of(target);
    *ret = NULL;
    return !range_fits(offset, size, core->file.size) || core_file_keep(&core->file, offset, size, ret);
}

bool core_has_changed_memory(const struct target *target)
{
    const struct core *core = (const struct core *)target;
    return core_process_has_filter(&core->process) && !(target->missing_filter & CDACQ_FILTER_PRIVATE);
}
