#include "target/core.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#include "util/arena.h"
#include "util/binary_search.h"
#include "util/error.h"
#include "util/file.h"
#include "formats/core_writer.h"
#include "formats/elf.h"
#include "target/mapped_files.h"
#include "target/page_cache.h"
#include "target/segments.h"
#include "target/threads.h"

enum {
    SEGMENT_MAX = 4 * 1024 * 1024, /* vm.max_map_count is 65,530 by default; the table takes 224 MB at most */
    MAPPING_MAX = 1024 * 1024,
    PDB_MAX = 4096,
    NOTE_MAX = 1024 * 1024,             /* of a core; each thread has a handful */
    NOTE_BYTES_MAX = 256 * 1024 * 1024, /* copied from a core that is not mapped */
    AUXV_MAX = 4096,                    /* bytes of NT_AUXV; Linux writes some 20 entries of two words */
};

/* Memory that is to lie beyond the end of the file. */
struct cut {
    uint64_t begin, end;
};

DEFINE_VECTOR(cuts, struct cut);

struct core {
    struct target base;
    struct segments segments;
    struct cuts cuts;     /* sorted by begin, once the headers were read */
    const uint8_t *bytes; /* the whole file; NULL where `fd` is read instead */
    size_t size;
    int fd; /* -1 where the file is mapped */
    struct page_cache cache;
    struct mapped_file self;        /* marks segments that are read from `fd`; only its address is used */
    struct mapped_file unconfirmed; /* likewise, segments that a snapshot took from a file that nothing confirmed */
    struct arena notes;             /* of a core that is not mapped; paths point into them */
    uint64_t note_bytes;
    struct elf_class elf;                                     /* of the headers; the runtime's data may differ */
    unsigned note_count;                                      /* read so far */
    unsigned listed;                                          /* entries of NT_FILE that were read, with 1 for each */
    unsigned seen;                                            /* enum seen_notes */
    bool stored;                                              /* the file is a temporary one, which core_store() made */
    char problem[sizeof(((struct stored_core *)0)->problem)]; /* of storing it; "" where there is none */
    struct core_threads threads;
    bool lost_thread; /* the last NT_PRSTATUS is not among them */
    struct core_prpsinfo process;
    uint64_t program; /* address of the path that the program was started by; 0: not known */
    int64_t written;  /* modification time of the file */
};

/* A PT_LOAD, for the access of the mappings that it covers. */
struct load {
    uint64_t begin, end; /* once sorted, the highest end of the loads up to this one */
    bool readable, writable, executable;
    uint32_t readable_before, writable_before, executable_before; /* once sorted, how many of those before it are */
};

struct loads {
    struct load *items; /* followed by a sentinel */
    size_t count;
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
    if (core->bytes)
        munmap((void *)(uintptr_t)core->bytes, core->size);
    arena_deinit(&core->notes);
    core_threads_deinit(&core->threads);
    page_cache_deinit(&core->cache);
    if (core->fd >= 0)
        close(core->fd);
    free(core);
}

static size_t read_core(void *context, uint64_t offset, void *buffer, size_t size)
{
    return file_read_at(((const struct core *)context)->fd, offset, buffer, size);
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
    if (!page_cache_at(&core->cache, segment->file_offset + (address - segment->begin), &page))
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
    return mapped_file_memory_at(segment->file, mapping ? mapping->access : MAPPING_UNKNOWN, segment->begin,
                                 segment->end, segment->file_offset, address, ret);
}

enum seen_notes {
    SEEN_GDB = 1,
    SEEN_THREADS = 2,
    SEEN_SIGNAL = 4,
    SEEN_SNAPSHOT = 8,
    SEEN_LOST_THREADS = 16,
    SEEN_PROCESS_FIRST = 32,
    SEEN_AUXV = 64,
};

static enum cdacq_status core_list_threads(struct target *target, struct threads *ret, struct cdacq_error *err)
{
    const struct core *core = core_of(target);
    enum cdacq_status status =
        threads_of_core(target, &core->threads, core->elf, &core->process, core->seen & SEEN_GDB, ret, err);
    if (status >= 0 && core->seen & SEEN_LOST_THREADS)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "the core has more threads than the %zu that can be read",
                         core->threads.count);
    return status;
}

/* The signal that ended the process: of the thread that died. */
static struct core_siginfo core_signal(const struct core *core)
{
    size_t dead = threads_find_dead(&core->threads, core->seen & SEEN_GDB);
    if (dead == core->threads.count)
        return (struct core_siginfo){0};
    const struct thread_notes *thread = &core->threads.items[dead];
    return thread->signal.signal ? thread->signal : (struct core_siginfo){.signal = thread->status.signal};
}

static void core_process(struct target *target, struct target_process *ret)
{
    const struct core *core = core_of(target);
    char *end = stpcpy(ret->arguments, core->process.arguments);
    while (end > ret->arguments && end[-1] == ' ')
        *--end = '\0';
    ret->arguments_cut = strlen(core->process.arguments) >= sizeof core->process.arguments - 2;
    strcpy(ret->name, core->process.name);
    ret->program_address = core->program;
    ret->signal = core_signal(core);
    ret->time = core->written;
}

static const struct target_ops core_ops = {
    .memory_at = core_memory_at,
    .is_cut_at = core_is_cut_at,
    .dumped_at = core_dumped_at,
    .threads = core_list_threads,
    .process = core_process,
    .destroy = core_destroy,
};

/* Bytes of the file, in `buffer` where it is not mapped; zeros after its end. */
static const uint8_t *core_peek(struct core *core, uint64_t offset, size_t size, uint8_t *buffer)
{
    struct span span;
    if (core->bytes && range_fits(offset, size, core->size))
        return core->bytes + offset;
    memset(buffer, 0, size);
    for (size_t done = 0; !core->bytes && done < size && page_cache_at(&core->cache, offset + done, &span);) {
        size_t n = (size_t)MIN(span.end - (offset + done), (uint64_t)(size - done));
        memcpy(buffer + done, span.bytes + (offset + done - span.begin), n);
        done += n;
    }
    return buffer;
}

/* An extent of the file, valid as long as the core. *ret is NULL where it cannot be read. False when out of memory. */
static bool core_notes(struct core *core, uint64_t offset, uint64_t size, const uint8_t **ret)
{
    *ret = core->bytes ? core->bytes + offset : NULL;
    if (core->bytes || size > NOTE_BYTES_MAX - core->note_bytes)
        return true;
    core->note_bytes += size;
    uint8_t *bytes = arena_allocate(&core->notes, size);
    if (bytes && file_read_at(core->fd, offset, bytes, size) == size)
        *ret = bytes;
    return bytes != NULL;
}

/* Sorts the loads and fills in what is known then. Only a damaged core has overlaps. */
static void sort_loads(struct loads *loads)
{
    sort_u64(loads->items, loads->count, sizeof *loads->items);
    for (size_t i = 0; i < loads->count; i++) {
        struct load *load = &loads->items[i], *next = load + 1;
        next->readable_before = load->readable_before + load->readable;
        next->writable_before = load->writable_before + load->writable;
        next->executable_before = load->executable_before + load->executable;
        if (i)
            load->end = MAX(load->end, load[-1].end);
    }
}

/* The first load whose begin (or end) is above `address`; the sentinel where there is none. */
static const struct load *load_above(const struct loads *loads, uint64_t address, bool by_end)
{
    const struct load *items = loads->items;
    return &items[lower_bound(i, loads->count, (by_end ? items[i].end : items[i].begin) <= address)];
}

/* Sets the access to a mapping by the loads in it. *ret_guard is set where none of them is readable. */
static void set_access(const struct loads *loads, struct mapping *mapping, bool *ret_guard)
{
    const struct load *first = load_above(loads, mapping->begin, true),
                      *after = load_above(loads, mapping->end - 1, false);
    bool known = first < after, writable = known && after->writable_before > first->writable_before;
    *ret_guard = known && after->readable_before == first->readable_before;
    mapping->access = !known ? MAPPING_UNKNOWN : writable ? MAPPING_WRITABLE : MAPPING_READ_ONLY;
    mapping->may_execute = !known || after->executable_before > first->executable_before;
}

/* An entry that does not fit ends the list; earlier ones are kept. */
static enum cdacq_status read_nt_file(struct core *core, const uint8_t *desc, size_t size, struct cdacq_error *err)
{
    struct elf_nt_file list;
    struct elf_mapped_file file;
    if (core->base.mapping_count || core->listed > MAPPING_MAX || !elf_nt_file_open(core->elf, desc, size, &list))
        return CDACQ_OK;
    if (!elf_nt_file_count_fits(&list) || list.count > MAPPING_MAX)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "NT_FILE: %llu mappings do not fit a note of %zu bytes",
                         (unsigned long long)list.count, size);
    if (list.count && !list.page_size)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "NT_FILE: its page size is 0, so file offsets are unknown");
    core->listed += (unsigned)list.count + 1;
    core->base.mappings = calloc(list.count + 1, sizeof *core->base.mappings);
    if (!core->base.mappings)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for %llu mappings", (unsigned long long)list.count);
    while (elf_nt_file_next(&list, &file)) {
        struct mapping mapping = {.begin = file.begin, .end = file.end, .path = file.path};
        if (mapping.begin < mapping.end && !__builtin_mul_overflow(file.page_offset, list.page_size, &mapping.offset) &&
            mapping.offset <= UINT64_MAX - (mapping.end - mapping.begin))
            core->base.mappings[core->base.mapping_count++] = mapping;
    }
    if (!core->base.mapping_count) { /* a later NT_FILE may have some */
        free(core->base.mappings);
        core->base.mappings = NULL;
    }
    return CDACQ_OK;
}

/*
 * gdb and `cdacq snapshot` write notes of their own. createdump writes the process before its threads, and the kernel
 * the first thread before the process; both write the signal of a process that died. NULL if nothing shows it:
 * without threads, no note is typical of one of them.
 */
static const char *writer_of(unsigned seen)
{
    if (seen & SEEN_GDB)
        return "gdb";
    if (seen & SEEN_SNAPSHOT)
        return "cdacq snapshot";
    if (!(seen & SEEN_THREADS))
        return NULL;
    if (seen & SEEN_PROCESS_FIRST)
        return "createdump";
    return seen & SEEN_SIGNAL ? "the kernel" : "createdump";
}

/* A note of the process or of a thread: that of the last NT_PRSTATUS before it. False when out of memory. */
static bool read_process_note(struct core *core, const struct elf_note_bytes *view)
{
    const struct elf_note *note = &view->note;
    struct thread_notes thread = {0};
    if (note->type == NT_PRSTATUS) {
        core->seen |= SEEN_THREADS;
        bool kept = core_prstatus_at(core->elf, view->desc, note->desc_size, &thread.status) &&
                    core->threads.count < THREAD_MAX;
        core->lost_thread = !kept;
        core->seen |= kept ? 0 : SEEN_LOST_THREADS;
        return !kept || core_threads_append(&core->threads, thread);
    }
    if (note->type == NT_SIGINFO) {
        core->seen |= SEEN_SIGNAL;
        struct thread_notes *last = core->threads.count ? &core->threads.items[core->threads.count - 1] : NULL;
        if (last && !core->lost_thread)
            last->signal = core_siginfo_at(core->elf, view->desc, note->desc_size);
    }
    if (note->type == NT_PRPSINFO && !(core->seen & SEEN_THREADS))
        core->seen |= SEEN_PROCESS_FIRST;
    if (note->type == NT_PRPSINFO && !core->base.pid) {
        core->process = core_prpsinfo_at(core->elf, view->desc, note->desc_size);
        core->base.pid = core->process.pid;
    }
    /* Only the first: many headers of a damaged core may lead to the same note. */
    if (note->type == NT_AUXV && !(core->seen & SEEN_AUXV)) {
        size_t size = MIN(note->desc_size, (size_t)AUXV_MAX);
        core->seen |= SEEN_AUXV;
        core->base.vdso = core_auxv_value(core->elf, view->desc, size, AT_SYSINFO_EHDR);
        core->program = core_auxv_value(core->elf, view->desc, size, AT_EXECFN);
    }
    return true;
}

/* False when out of memory. */
static bool read_own_note(struct core *core, const struct elf_note_bytes *view)
{
    const struct target_pdb pdb = {view->desc, view->note.desc_size};
    bool is_pdb = view->note.type == CORE_WRITER_PDB || view->note.type == CORE_WRITER_PDB_BEFORE;
    return !is_pdb || core->base.pdbs.count == PDB_MAX || target_pdbs_append(&core->base.pdbs, pdb);
}

static enum cdacq_status read_notes(struct core *core, const struct elf_segment *header, struct cdacq_error *err)
{
    uint64_t available = header->offset < core->size ? core->size - header->offset : 0;
    uint64_t size = MIN(header->file_size, available);
    unsigned align = header->align == 8 ? 8 : 4;
    core->base.truncated |= header->file_size > available;
    const uint8_t *bytes = NULL;
    if (size && !core_notes(core, header->offset, size, &bytes))
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the core's notes");
    core->base.truncated |= size && !bytes;
    if (!bytes)
        return CDACQ_OK;
    struct elf_note_bytes view;
    uint64_t at = 0;
    for (; core->note_count < NOTE_MAX && elf_note_next(core->elf, bytes, size, align, &at, &view);
         core->note_count++) {
        const struct elf_note *note = &view.note;
        if (note->name_size == 4 && memcmp(view.name, "GDB", 4) == 0)
            core->seen |= SEEN_GDB;
        if (note->name_size == sizeof CORE_WRITER_NOTE && memcmp(view.name, CORE_WRITER_NOTE, note->name_size) == 0) {
            core->seen |= SEEN_SNAPSHOT;
            if (!read_own_note(core, &view))
                return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the core's PDBs");
        }
        if ((note->name_size != 4 && note->name_size != 5) || memcmp(view.name, "CORE", 4) != 0)
            continue;
        if (!read_process_note(core, &view))
            return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the core's threads");
        if (note->type == NT_FILE) {
            enum cdacq_status status = read_nt_file(core, view.desc, note->desc_size, err);
            if (status < 0)
                return status;
        }
    }
    return CDACQ_OK;
}

static enum cdacq_status read_load(struct core *core, const struct elf_segment *header, struct loads *loads,
                                   struct cdacq_error *err)
{
    uint64_t memory_end = add_saturated(header->vaddr, header->memory_size);
    uint64_t size =
        MIN(header->file_size, memory_end - header->vaddr); /* p_filesz may exceed p_memsz in a damaged core */
    core->base.segment_count++;
    if (header->vaddr < memory_end)
        loads->items[loads->count++] = (struct load){
            .begin = header->vaddr,
            .end = memory_end,
            .readable = (header->flags & PF_R) != 0,
            .writable = (header->flags & PF_W) != 0,
            .executable = (header->flags & PF_X) != 0,
        };
    uint64_t available = header->offset < core->size ? core->size - header->offset : 0;
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
        .bytes = core->bytes ? core->bytes + header->offset : NULL,
        .file = header->flags & CORE_WRITER_UNCONFIRMED ? &core->unconfirmed
                : core->bytes                           ? NULL
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
    return elf_segment_at(core->elf, core_peek(core, at, elf_segment_size(core->elf), buffer));
}

/*
 * The number of program headers. With PN_XNUM the first section header holds it. Linux writes that at the end of the
 * file; where it was cut off, the program headers end where the contents of the first one begin.
 */
static uint64_t count_headers(struct core *core, const struct elf_header *elf)
{
    uint8_t buffer[ELF_RECORD_MAX];
    size_t section_size = elf_section_size(core->elf), entry_size = elf_segment_size(core->elf);
    if (elf->segment_count != PN_XNUM)
        return elf->segment_count;
    if (elf->sections && range_fits(elf->sections, section_size, core->size))
        return elf_section_at(core->elf, core_peek(core, elf->sections, section_size, buffer)).info;
    core->base.truncated = true;
    uint64_t table = elf->segments;
    uint64_t contents = range_fits(table, entry_size, core->size) ? read_header(core, table).offset : 0;
    return contents > table ? (contents - table) / entry_size : elf->segment_count;
}

static enum cdacq_status read_segments(struct core *core, const char *path, struct loads *loads,
                                       struct cdacq_error *err)
{
    uint8_t buffer[ELF_RECORD_MAX];
    struct elf_header elf = elf_header_at(core->elf, core_peek(core, 0, elf_header_size(core->elf), buffer));
    uint64_t table = elf.segments, entry_size = elf_segment_size(core->elf), claimed = count_headers(core, &elf);
    uint64_t count = MIN(claimed, table < core->size ? (core->size - table) / entry_size : 0);
    if (!count)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: no program headers: an empty or truncated core", path);
    if (count > SEGMENT_MAX)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: %llu segments are more than the %d that are supported", path,
                         (unsigned long long)count, SEGMENT_MAX);
    core->base.truncated |= count < claimed;
    loads->items = calloc(count + 1, sizeof *loads->items);
    if (!loads->items)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the core's segments");
    enum cdacq_status status = CDACQ_OK;
    for (uint64_t i = 0; i < count && status >= 0; i++) {
        struct elf_segment header = read_header(core, table + i * entry_size);
        if (header.type == PT_LOAD)
            status = read_load(core, &header, loads, err);
        else if (header.type == PT_NOTE)
            status = read_notes(core, &header, err);
    }
    sort_loads(loads);
    sort_u64(core->cuts.items, core->cuts.count, sizeof *core->cuts.items);
    return status;
}

/* A mapping of a file becomes a hole. mapped_file_constant() decides which of its bytes the file may fill. */
static enum cdacq_status add_holes(struct segments *holes, struct target *target, struct file_policy *policy,
                                   const struct loads *loads, struct cdacq_error *err)
{
    for (size_t i = 0; i < target->mapping_count; i++) {
        struct mapping *mapping = &target->mappings[i];
        bool guard;
        set_access(loads, mapping, &guard);
        if (i && strcmp(mapping[-1].path, mapping->path) == 0)
            mapping->file = mapping[-1].file;
        else
            mapping->file = mapped_files_get(target, policy, mapping->path);
        if (!mapping->file)
            continue;
        /* The loader maps gaps between segments without access, perhaps to beyond the end of the file. */
        uint64_t end = mapping->offset + (mapping->end - mapping->begin);
        if (!guard)
            mapping->file->mapped_size = MAX(mapping->file->mapped_size, end);
        struct segment hole = {mapping->begin, mapping->end, NULL, mapping->file, mapping->offset};
        if (!segments_add(holes, hole))
            return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the list of mappings");
    }
    if (!mapped_files_index(target))
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the list of mappings");
    return CDACQ_OK;
}

static enum cdacq_status core_read(struct core *core, const char *path, struct file_policy *policy,
                                   struct cdacq_error *err)
{
    struct loads loads = {0};
    struct segments dumped = {0};
    enum cdacq_status status = read_segments(core, path, &loads, err);
    if (status >= 0) {
        target_sort_mappings(&core->base);
        dumped = core->segments;
        core->segments = (struct segments){0};
        status = add_holes(&core->segments, &core->base, policy, &loads, err);
    }
    bool stored = true;
    for (size_t i = 0; i < dumped.count && stored; i++)
        stored = segments_add(&core->segments, dumped.items[i]);
    if (status >= 0 && (!stored || !segments_seal(&core->segments)))
        status = error_set(err, CDACQ_ERR_NOMEM, 0, "%s: out of memory for its segments", path);
    for (size_t i = 0; status >= 0 && i < core->segments.count; i++) {
        const struct segment *segment = &core->segments.items[i];
        if (is_dumped(core, segment))
            continue;
        core->base.missing_size = add_saturated(core->base.missing_size, segment->end - segment->begin);
        segment->file->missing_size = add_saturated(segment->file->missing_size, segment->end - segment->begin);
    }
    segments_deinit(&dumped);
    free(loads.items);
    return status;
}

/* Replaces *fd, which is the source's or was opened, by the temporary file that the core is stored in. */
static enum cdacq_status store(struct core *core, const struct core_source *source, int *fd, struct cdacq_error *err)
{
    struct stored_core stored;
    enum cdacq_status status = core_store(*fd, source->path, &source->store, &stored, err);
    if (status < 0)
        return status;
    if (*fd != source->fd)
        close(*fd);
    *fd = stored.fd;
    core->size = (size_t)stored.size;
    core->stored = true;
    memcpy(core->problem, stored.problem, sizeof core->problem);
    return CDACQ_OK;
}

/* The size of a file without its holes, which cost nothing and say nothing. Some file systems count no blocks. */
static uint64_t size_on_disk(int fd, uint64_t size)
{
    struct stat st;
    enum { BLOCK = 512 }; /* of st_blocks, on every file system */
    return fstat(fd, &st) == 0 && st.st_blocks > 0 ? MIN(size, (uint64_t)st.st_blocks * BLOCK) : size;
}

/* Opens the file. *ret is a descriptor of its own that can be mapped, and core->size is set. */
static enum cdacq_status open_file(struct core *core, const struct core_source *source, int *ret,
                                   struct cdacq_error *err)
{
    struct stat st;
    int fd = source->fd;
    if (fd < 0 ? (fd = file_open(source->path, &st)) < 0 : fstat(fd, &st) < 0)
        return error_set(err, CDACQ_ERR_IO, 0, "%s: %s", source->path, strerror(errno));
    enum cdacq_status status = CDACQ_OK;
    bool is_file = S_ISREG(st.st_mode) && (source->fd < 0 || lseek(fd, 0, SEEK_CUR) == 0);
    if (is_file && (uint64_t)st.st_size > SIZE_MAX / 2) /* of a program of 32 bits */
        status = error_set(err, CDACQ_ERR_IO, 0, "%s: %s", source->path, strerror(EFBIG));
    core->size = (size_t)st.st_size;
    core->written = S_ISREG(st.st_mode) ? st.st_mtime : 0;
    if (source->fd < 0 && !S_ISREG(st.st_mode))
        status = error_set(err, CDACQ_ERR_IO, 0, "%s: not a regular file", source->path);
    else if (status >= 0 && (!is_file || core_store_needed(fd)))
        status = store(core, source, &fd, err);
    if (status >= 0 && fd == source->fd && (fd = fcntl(fd, F_DUPFD_CLOEXEC, 3)) < 0)
        status = error_set(err, CDACQ_ERR_IO, 0, "%s: %s", source->path, strerror(errno));
    if (status >= 0) {
        *ret = fd;
        core->base.file_size = size_on_disk(fd, core->size);
    } else if (fd >= 0 && fd != source->fd) {
        close(fd);
    }
    return status;
}

/* Opens the file, maps it if `map` is set, and checks that it is a core. */
static enum cdacq_status open_core(struct core *core, const struct core_source *source, bool map,
                                   struct cdacq_error *err)
{
    CLEANUP_CLOSE int fd = -1;
    const char *path = source->path;
    enum cdacq_status status = open_file(core, source, &fd, err);
    if (status < 0)
        return status;
    if (core->size < EI_NIDENT)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: %s", path, core->size ? "not an ELF file" : "empty");
    if (map) {
        void *bytes = mmap(NULL, core->size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED)
            return error_set(err, CDACQ_ERR_IO, 0, "%s: cannot be mapped: %s", path, strerror(errno));
        core->bytes = bytes;
    } else {
        core->fd = fd;
        fd = -1;
    }
    uint8_t buffer[ELF_RECORD_MAX];
    if (!elf_class_of(core_peek(core, 0, EI_NIDENT, buffer), &core->elf) || core->size < elf_header_size(core->elf))
        return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: not an ELF file", path);
    struct elf_header elf = elf_header_at(core->elf, core_peek(core, 0, elf_header_size(core->elf), buffer));
    if (elf.type != ET_CORE)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: an ELF file, but not a core dump", path);
    core->base.elf_machine = elf.machine;
    return CDACQ_OK;
}

/* Marks a core that was stored in part. A stored core may also have ended early without a sign of it. */
static void note_truncation(struct core *core)
{
    if (core->problem[0])
        core->base.truncated = true;
    else if (core->stored && core->base.truncated)
        snprintf(core->problem, sizeof core->problem,
                 "only its first %zu bytes were read: it ends before its last segment", core->size);
    if (core->problem[0])
        core->base.truncation = core->problem;
}

enum cdacq_status core_open_source(const struct core_source *source, struct file_policy *policy, bool record,
                                   struct target **ret, struct cdacq_error *err)
{
    struct core *core = calloc(1, sizeof *core);
    if (!core || !page_cache_init(&core->cache, read_core, core)) {
        free(core);
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    }
    core->base = (struct target){.ops = &core_ops, .kind = CDACQ_TARGET_CORE};
    core->fd = -1;
    enum cdacq_status status = open_core(core, source, !policy || !policy->pread, err);
    if (status >= 0 && record && !(core->base.recording = calloc(1, sizeof *core->base.recording)))
        status = error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    if (status >= 0)
        status = core_read(core, source->path, policy, err);
    if (status == CDACQ_ERR_FORMAT && core->problem[0])
        error_set(err, status, 0, "%s: no usable core: %s", source->path, core->problem);
    if (status < 0) {
        core_destroy(&core->base);
        return status;
    }
    core->base.writer = writer_of(core->seen);
    note_truncation(core);
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
    if (core_of(core)->bytes)
        (void)madvise((void *)(uintptr_t)core_of(core)->bytes, core_of(core)->size, MADV_DONTNEED);
}
