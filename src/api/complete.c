/*
 * complete.c: writes a core again with the pages of its mapped files filled in, from files that the core confirms.
 * Readers that take nothing from files, such as the debugger services, then find what they need in it.
 */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>

#include "src/api/core_output.h"
#include "src/lookup/opened_session.h"
#include "formats/elf.h"
#include "src/lookup/opened_target.h"
#include "target/core.h"
#include "target/mapped_file.h"
#include "target/mapped_path.h"
#include "target/segments.h"
#include "util/binary_search.h"
#include "util/sized.h"

enum {
    HEADERS_MAX = 9999, /* some readers refuse a core with more program headers, PT_NOTE among them */
    NOTES_MAX = 1024,   /* PT_NOTEs; a core has one */
    TIMES_MAX = 8,      /* a file is filled in, as a whole: assemblies are mapped flat and as images */
};

#define FILLED_MAX (UINT64_C(16) << 30) /* bytes of all files together */
#define FUEL       (UINT64_C(1) << 28)  /* extents and headers of files that are looked at */

/* A PT_LOAD of the core that is read. */
struct load {
    uint64_t begin, end;
    uint32_t flags;
};

DEFINE_VECTOR(loads, struct load);
DEFINE_VECTOR(notes, struct core_writer_notes);
DEFINE_VECTOR(headers, struct core_writer_segment);

/* What a file supplies to the core that is written, and what is missing of it there. */
struct file_gap {
    const struct mapped_file *file;
    uint64_t filled, missing;
};

static const struct mapped_file *file_gap_key(const struct file_gap *gap)
{
    return gap->file;
}

static uint64_t hash_file(const struct mapped_file *file, uint64_t seed)
{
    return hash_u64((uintptr_t)file, seed);
}

static bool equal_files(const struct mapped_file *a, const struct mapped_file *b)
{
    return a == b;
}

DEFINE_HASH_TABLE(file_gaps, struct file_gap, const struct mapped_file *, file_gap_key, hash_file, equal_files);

struct completion {
    struct target *core;
    struct loads loads;
    struct notes notes;
    /* Where each byte comes from: `file` is that of a part, or one of the marks below, or NULL where it is missing. */
    struct segments parts;
    struct mapped_file dumped, zeros, unconfirmed_zeros; /* only their addresses are used */
    struct headers headers;
    struct file_gaps gaps;
    unsigned flags; /* enum cdacq_complete_flags */
    uint64_t filled, unconfirmed, missing;
    uint64_t fuel;
};

/* ---- Reading --------------------------------------------------------------------------------------------------- */

static enum cdacq_status no_memory(struct cdacq_error *err)
{
    return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the core");
}

static enum cdacq_status read_headers(struct completion *work, struct cdacq_error *err)
{
    struct elf_segment header;
    for (uint64_t i = 0; core_program_header(work->core, i, &header); i++) {
        uint64_t end = add_saturated(header.vaddr, header.memory_size);
        const uint8_t *bytes;
        if (header.type == PT_LOAD && header.vaddr < end &&
            (!loads_append(&work->loads, (struct load){header.vaddr, end, header.flags}) ||
             !segments_add(&work->parts, (struct segment){header.vaddr, end, NULL, NULL, 0})))
            return no_memory(err);
        if (header.type != PT_NOTE || work->notes.count == NOTES_MAX)
            continue;
        if (!core_bytes(work->core, header.offset, header.file_size, &bytes))
            return no_memory(err);
        if (!bytes)
            return error_set(err, CDACQ_ERR_FORMAT, 0, "the core ends before its notes: copy it again");
        if (!notes_append(&work->notes, (struct core_writer_notes){bytes, (size_t)header.file_size}))
            return no_memory(err);
    }
    sort_u64(work->loads.items, work->loads.count, sizeof *work->loads.items);
    return work->notes.count ? CDACQ_OK : error_set(err, CDACQ_ERR_FORMAT, 0, "the core has no notes: no PT_NOTE");
}

static bool add_part(struct completion *work, uint64_t begin, uint64_t end, struct mapped_file *file, uint64_t offset)
{
    return segments_add(&work->parts, (struct segment){begin, end, NULL, file, offset});
}

/* ---- What files may fill --------------------------------------------------------------------------------------- */

/* Takes from what a file may fill in: a damaged core may map it a million times. False: that is not left. */
static bool take(struct completion *work, struct file_gap *gap, uint64_t size)
{
    if (size > FILLED_MAX - work->filled || gap->filled + size > (gap->file->content.size + PAGE_SIZE) * TIMES_MAX)
        return false;
    gap->filled += size;
    work->filled += size;
    work->unconfirmed += gap->file->verified ? 0 : size;
    return true;
}

/* A part that the process cannot have changed equals the file; after the file's end, the last page has zeros. */
static bool fill_whole(struct completion *work, const struct core_part *part, struct file_gap *gap)
{
    uint64_t size = part->file->content.size;
    uint64_t in_file = part->file_offset < size ? MIN(size - part->file_offset, part->end - part->begin) : 0;
    uint64_t end = part->begin + in_file, page_end = in_file ? MIN(align_up(end, PAGE_SIZE), part->end) : end;
    if (!take(work, gap, page_end - part->begin))
        return true;
    return add_part(work, part->begin, end, part->file, part->file_offset) &&
           add_part(work, end, page_end, part->file->verified ? &work->zeros : &work->unconfirmed_zeros, 0);
}

/* Where the process may have changed memory that the core lacks, only what is constant in every process. */
static bool fill_constant(struct completion *work, const struct core_part *part, const struct mapping *mapping,
                          struct file_gap *gap)
{
    const struct file_extents *extents = &part->file->content.constant;
    uint64_t size = part->file->content.size, limit = part->file_offset + (part->end - part->begin);
    for (uint64_t at = part->file_offset; at < MIN(limit, size) && work->fuel > extents->count;) {
        uint64_t begin = at, end = MIN(limit, size);
        work->fuel -= extents->count + 1;
        if (!mapped_file_constant(part->file, mapping->access, at, &begin, &end)) {
            uint64_t next = end; /* the next byte at which an extent begins or ends */
            for (size_t i = 0; i < extents->count; i++)
                if (extents->items[i].begin > at)
                    next = MIN(next, extents->items[i].begin);
            at = next;
            continue;
        }
        uint64_t address = part->begin + (at - part->file_offset);
        if (!take(work, gap, end - at))
            return true;
        if (!add_part(work, address, address + (end - at), part->file, at))
            return false;
        at = end;
    }
    return true;
}

static bool fill(struct completion *work, const struct core_part *part)
{
    const struct mapping *mapping = target_mapping_at(work->core, part->begin);
    if (!mapping || mapping->is_guard || !mapped_file_resolve(part->file))
        return true;
    if (!part->file->verified && !(work->flags & CDACQ_COMPLETE_UNVERIFIED))
        return true;
    struct file_gap *gap = file_gaps_insert(&work->gaps, (struct file_gap){.file = part->file}, NULL);
    if (!gap)
        return false;
    bool is_cut = work->core->ops->is_cut_at(work->core, part->begin);
    return core_has_changed_memory(work->core) && !is_cut ? fill_whole(work, part, gap)
                                                          : fill_constant(work, part, mapping, gap);
}

/* Lists what the core has and what files supply. */
static enum cdacq_status collect(struct completion *work, struct cdacq_error *err)
{
    struct core_part part;
    for (uint64_t at = 0; core_next_part(work->core, at, &part); at = part.end) {
        /* A mapping may begin or end within a part. */
        const struct mapping *mapping = part.file ? target_mapping_at(work->core, part.begin) : NULL;
        if (mapping)
            part.end = MIN(part.end, mapping->end);
        bool stored = add_part(work, part.begin, part.end, part.file ? NULL : &work->dumped, 0);
        if (!stored || (part.file && !fill(work, &part)))
            return no_memory(err);
    }
    return segments_seal(&work->parts) ? CDACQ_OK : no_memory(err);
}

/* Counts what the file of a part, if it has one, does not supply. */
static bool count_missing(struct completion *work, const struct segment *part)
{
    const struct mapping *mapping = target_mapping_at(work->core, part->begin);
    if (!mapping || mapping->is_guard || !mapping->file)
        return true;
    struct file_gap *gap = file_gaps_insert(&work->gaps, (struct file_gap){.file = mapping->file}, NULL);
    if (gap)
        gap->missing = add_saturated(gap->missing, part->end - part->begin);
    work->missing = add_saturated(work->missing, part->end - part->begin);
    return gap != NULL;
}

/* ---- The program headers --------------------------------------------------------------------------------------- */

/* The access of a mapping that the core has no PT_LOAD for: that of the image's segment. */
static uint32_t flags_in_file(struct completion *work, const struct mapped_file *file, uint64_t offset)
{
    struct bytes bytes = bytes_of_buffer(file->content.bytes, file->content.size);
    struct elf_file elf;
    struct elf_segment segment;
    if (file->content.bytes && elf_file_open(&bytes, &elf))
        for (unsigned i = 0; work->fuel && elf_file_segment(&elf, i, &segment); i++, work->fuel--)
            if (segment.type == PT_LOAD && align_down(segment.offset, PAGE_SIZE) <= offset &&
                offset - align_down(segment.offset, PAGE_SIZE) <= segment.file_size)
                return segment.flags & (PF_R | PF_W | PF_X);
    return PF_R;
}

/* Whether the bytes of a part are a file's. */
static bool is_of_file(const struct completion *work, const struct segment *part)
{
    return part->file && part->file != &work->dumped && part->file != &work->zeros &&
           part->file != &work->unconfirmed_zeros;
}

static uint32_t flags_of(struct completion *work, const struct segment *part)
{
    bool is_file = is_of_file(work, part);
    bool is_unconfirmed = part->file == &work->unconfirmed_zeros || (is_file && !part->file->verified);
    uint32_t mark = is_unconfirmed ? CORE_WRITER_UNCONFIRMED : 0;
    size_t after = lower_bound(i, work->loads.count, work->loads.items[i].begin <= part->begin);
    if (after && part->begin < work->loads.items[after - 1].end)
        return work->loads.items[after - 1].flags | mark;
    return (is_file ? flags_in_file(work, part->file, part->file_offset) : PF_R) | mark;
}

/* A header has bytes and then, perhaps, memory without. One goes on where nothing is missing in between. */
static bool can_join(const struct core_writer_segment *header, uint64_t begin, bool has_bytes, uint32_t flags)
{
    return header->vaddr + header->memsz == begin && header->flags == flags &&
           (!has_bytes || header->filesz == header->memsz);
}

static bool plan_headers(struct completion *work)
{
    for (size_t i = 0; i < work->parts.count; i++) {
        const struct segment *part = &work->parts.items[i];
        uint64_t size = part->end - part->begin, in_file = part->file ? size : 0;
        uint32_t flags = flags_of(work, part);
        if (!part->file && !count_missing(work, part))
            return false;
        struct core_writer_segment *last = work->headers.count ? &work->headers.items[work->headers.count - 1] : NULL;
        if (last && can_join(last, part->begin, part->file, flags)) {
            last->filesz += in_file;
            last->memsz += size;
        } else if (!headers_append(&work->headers,
                                   (struct core_writer_segment){part->begin, NULL, in_file, size, flags})) {
            return false;
        }
    }
    return true;
}

/* Joins neighbours of different access where there are too many headers. */
static void join_headers(struct completion *work)
{
    struct core_writer_segment *items = work->headers.items;
    size_t kept = 0;
    if (work->headers.count + 1 <= HEADERS_MAX)
        return;
    for (size_t i = 0; i < work->headers.count; i++) {
        struct core_writer_segment *last = kept ? &items[kept - 1] : NULL;
        if (!last || !can_join(last, items[i].vaddr, items[i].filesz, last->flags)) {
            items[kept++] = items[i];
            continue;
        }
        last->filesz += items[i].filesz;
        last->memsz += items[i].memsz;
        last->flags |= items[i].flags;
    }
    work->headers.count = kept;
}

/* PT_LOADs may share the bytes of a small file: what is written is work, too. What was taken before does not matter. */
static enum cdacq_status check_size(struct completion *work, struct cdacq_error *err)
{
    uint64_t size = 0;
    for (size_t i = 0; i < work->headers.count; i++)
        size = add_saturated(size, work->headers.items[i].filesz);
    if (!work_allows_bytes(&work->core->work, size))
        return error_set(err, CDACQ_ERR_FUEL, 0,
                         "the new core would have %" PRIu64 " bytes, more than the bound on work allows", size);
    return CDACQ_OK;
}

/* ---- Writing --------------------------------------------------------------------------------------------------- */

/* Bytes for the writer, which asks in the order of addresses. What can no longer be read is zero. */
static size_t read_part(void *context, uint64_t address, size_t size, const void **ret_bytes)
{
    struct completion *work = context;
    const struct segment *part = segments_find(&work->parts, address);
    struct span span;
    *ret_bytes = NULL;
    if (!part)
        return size;
    size = (size_t)MIN(part->end - address, (uint64_t)size);
    if (part->file == &work->dumped) {
        /* As memory_at() has it: bytes of a snapshot that nothing confirmed are the core's own, too. */
        if (!work->core->ops->memory_at(work->core, address, &span))
            return (size_t)MIN(size, PAGE_SIZE - address % PAGE_SIZE);
        *ret_bytes = span.bytes + (address - span.begin);
        return (size_t)MIN(span.end - address, (uint64_t)size);
    }
    if (is_of_file(work, part))
        *ret_bytes = part->file->content.bytes + part->file_offset + (address - part->begin);
    return size;
}

static enum cdacq_status write_core(struct completion *work, const char *path, uint64_t *ret_size,
                                    struct cdacq_error *err)
{
    struct elf_class class = core_class(work->core);
    struct core_writer_image image = {
        .wide = class.wide,
        .big_endian = class.big,
        .machine = work->core->elf_machine,
        .segments = work->headers.items,
        .segment_count = work->headers.count,
        .notes = work->notes.items,
        .note_count = work->notes.count,
        .read = read_part,
        .context = work,
    };
    return core_output_write(path, &image, ret_size, err);
}

/* ---- The call -------------------------------------------------------------------------------------------------- */

static const char *why_not(const struct mapped_file *file)
{
    const char *problem = mapped_file_problem(file);
    if (problem)
        return problem;
    if (!mapped_path_is_file(file->path))
        return "no file has its contents";
    if (file->local_path && !file->verified)
        return "nothing in the core confirms the file that is there now";
    return file->local_path
               ? "the process may have changed it, or it reaches beyond the end of the file, or a bound was "
                 "reached"
               : "no file was found";
}

static enum cdacq_status tell_gaps(const struct completion *work,
                                   int (*visit)(const struct cdacq_unfilled_file *file, void *context), void *context)
{
    for (const struct file_gap *gap = NULL; (gap = file_gaps_next(&work->gaps, gap));) {
        if (!gap->missing && gap->file->verified)
            continue;
        const struct cdacq_unfilled_file unfilled = {.size = sizeof unfilled,
                                                     .path = gap->file->path,
                                                     .missing_size = gap->missing,
                                                     .unverified = gap->file->local_path && !gap->file->verified,
                                                     .problem = why_not(gap->file)};
        if (visit(&unfilled, context))
            return CDACQ_STOPPED;
    }
    return CDACQ_OK;
}

static void deinit(struct completion *work)
{
    loads_deinit(&work->loads);
    notes_deinit(&work->notes);
    segments_deinit(&work->parts);
    headers_deinit(&work->headers);
    file_gaps_deinit(&work->gaps);
    free(work);
}

enum cdacq_status cdacq_target_write_complete_core(struct cdacq_target *handle, const char *path, unsigned flags,
                                                   int (*visit)(const struct cdacq_unfilled_file *file, void *context),
                                                   void *context, struct cdacq_complete_core *ret,
                                                   struct cdacq_error *err)
{
    enum cdacq_status status = ret ? sized_check(ret, "struct cdacq_complete_core", err) : CDACQ_OK;
    if (status >= 0)
        status = error_check_path(path, err);
    if (status >= 0 && handle->memory->kind != CDACQ_TARGET_CORE)
        status = error_set(err, CDACQ_ERR_ARGUMENT, 0, "only a core can be completed");
    struct completion *work = status < 0 ? NULL : calloc(1, sizeof *work);
    if (!work)
        return status < 0 ? status : no_memory(err);
    work->core = handle->memory;
    work->flags = flags;
    work->fuel = FUEL;
    status = read_headers(work, err);
    if (status >= 0)
        status = collect(work, err);
    if (status >= 0 && !plan_headers(work))
        status = no_memory(err);
    uint64_t size = 0;
    if (status >= 0) {
        join_headers(work);
        status = check_size(work, err);
    }
    if (status >= 0)
        status = write_core(work, path, &size, err);
    if (status >= 0 && ret)
        sized_copy(ret,
                   &(struct cdacq_complete_core){.file_size = size,
                                                 .filled_size = work->filled,
                                                 .unverified_size = work->unconfirmed,
                                                 .missing_size = work->missing,
                                                 .segment_count = work->headers.count},
                   sizeof *ret);
    if (status >= 0 && visit)
        status = tell_gaps(work, visit, context);
    deinit(work);
    return status;
}
