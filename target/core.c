#include "target/core.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "src/error.h"
#include "target/spans.h"

enum {
    SEGMENT_MAX = 4 * 1024 * 1024, /* vm.max_map_count is 65,530 by default and int32 at most; a table of 224 MB */
    MAPPING_MAX = 1024 * 1024,
    NOTE_MAX = 1024 * 1024, /* of a core; NT_PRSTATUS and friends: a handful for each thread */
};

struct core {
    struct target base;
    struct spans spans;
    const uint8_t *bytes; /* the whole file */
    size_t size;
    bool wide, big;      /* of the ELF headers, not of the runtime's data by definition */
    unsigned note_count; /* read so far */
    unsigned seen;       /* notes that tell who wrote it */
};

/* A program header. */
struct header {
    uint32_t type, flags;
    uint64_t offset, vaddr, file_size, memory_size, align;
};

/* A PT_LOAD as the process had it, for the access of the mappings it covers. */
struct region {
    uint64_t begin, end; /* once sorted, the end of whichever of the regions up to this one reaches furthest */
    bool readable, writable;
    uint32_t readable_before, writable_before; /* how many of the regions before it are, once sorted */
};

struct regions {
    struct region *items;
    size_t count;
};

static struct core *core_of(struct target *target)
{
    return (struct core *)target;
}

static void core_destroy(struct target *target)
{
    struct core *core = core_of(target);
    spans_deinit(&core->spans);
    target_deinit(target);
    if (core->bytes)
        munmap((void *)(uintptr_t)core->bytes, core->size);
    free(core);
}

static bool core_dumped_at(struct target *target, uint64_t address, struct memory *ret)
{
    const struct span *span = spans_find(&core_of(target)->spans, address);
    if (!span || !span->bytes)
        return false;
    *ret = (struct memory){span->begin, span->end, span->bytes, false};
    return true;
}

/* The part of a hole around `address` that the mapped file may fill. */
static bool core_memory_from_file(struct target *target, const struct span *span, uint64_t address, struct memory *ret)
{
    struct mapped_file *file = span->file;
    if (!mapped_file_resolve(file))
        return false;
    const struct mapping *mapping = target_mapping_at(target, address);
    uint64_t begin = span->file_offset, end = span->file_offset + (span->end - span->begin);
    uint64_t offset = span->file_offset + (address - span->begin);
    if (!mapped_file_constant(file, mapping ? mapping->access : MAPPING_UNKNOWN, offset, &begin, &end))
        return false;
    *ret = (struct memory){
        .begin = span->begin + (begin - span->file_offset),
        .end = span->begin + (end - span->file_offset),
        .bytes = file->content.bytes + begin,
        .unverified = !file->verified,
    };
    return true;
}

static bool core_memory_at(struct target *target, uint64_t address, struct memory *ret)
{
    const struct span *span = spans_find(&core_of(target)->spans, address);
    if (!span)
        return false;
    if (!span->bytes)
        return core_memory_from_file(target, span, address, ret);
    *ret = (struct memory){span->begin, span->end, span->bytes, false};
    return true;
}

static const struct target_ops core_ops = {
    .memory_at = core_memory_at,
    .dumped_at = core_dumped_at,
    .destroy = core_destroy,
};

static int compare_regions(const void *a, const void *b)
{
    const struct region *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Sorts, makes overlaps, which only a damaged core has, harmless for a binary search, and fills the sentinel behind. */
static void sort_regions(struct regions *regions)
{
    qsort(regions->items, regions->count, sizeof *regions->items, compare_regions);
    for (size_t i = 0; i < regions->count; i++) {
        struct region *region = &regions->items[i], *next = region + 1;
        next->readable_before = region->readable_before + region->readable;
        next->writable_before = region->writable_before + region->writable;
        if (i)
            region->end = MAX(region->end, region[-1].end);
    }
}

/* The first region whose begin (or end) is beyond `address`; the sentinel where there is none. */
static const struct region *region_beyond(const struct regions *regions, uint64_t address, bool by_end)
{
    size_t low = 0, high = regions->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct region *region = &regions->items[middle];
        if ((by_end ? region->end : region->begin) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return &regions->items[low];
}

/* How the process could access a mapping, by the segments in it. `*ret_guard`: it could not at all. */
static enum mapping_access access_of(const struct regions *regions, uint64_t begin, uint64_t end, bool *ret_guard)
{
    const struct region *first = region_beyond(regions, begin, true), *behind = region_beyond(regions, end - 1, false);
    *ret_guard = false;
    if (first >= behind)
        return MAPPING_UNKNOWN;
    *ret_guard = behind->readable_before == first->readable_before;
    return behind->writable_before > first->writable_before ? MAPPING_WRITABLE : MAPPING_READ_ONLY;
}

/*
 * NT_FILE: count and page size, then {begin, end, page offset} of each mapping, then their paths, one NUL each. Numbers
 * have the width of the ELF class. What does not fit ends the list; what came before it stands.
 */
static enum cdacq_status read_nt_file(struct core *core, const uint8_t *desc, size_t size, struct cdacq_error *err)
{
    bool wide = core->wide, big = core->big;
    size_t word = wide ? 8 : 4;
    if (size < 2 * word || core->base.mappings)
        return CDACQ_OK;
#define WORD(i) (wide ? load_u64(desc + (i)*8, big) : load_u32(desc + (i)*4, big))
    uint64_t count = WORD(0), page_size = WORD(1);
    if (count > (size / word - 2) / 3 || count > MAPPING_MAX)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "NT_FILE: %llu mappings do not fit a note of %zu bytes",
                         (unsigned long long)count, size);
    if (count && !page_size)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "NT_FILE: its page size is 0: where files are mapped is not told");
    core->base.mappings = calloc(count + 1, sizeof *core->base.mappings);
    if (!core->base.mappings)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for %llu mappings", (unsigned long long)count);
    const char *path = (const char *)desc + (2 + 3 * count) * word, *end = (const char *)desc + size;
    for (uint64_t i = 0; i < count; i++) {
        size_t length = strnlen(path, (size_t)(end - path));
        if (path + length == end)
            break;
        uint64_t offset;
        struct mapping mapping = {.begin = WORD(2 + 3 * i), .end = WORD(3 + 3 * i), .path = path};
        if (mapping.begin < mapping.end && !__builtin_mul_overflow(WORD(4 + 3 * i), page_size, &offset) &&
            offset <= UINT64_MAX - (mapping.end - mapping.begin)) {
            mapping.offset = offset;
            core->base.mappings[core->base.mapping_count++] = mapping;
        }
        path += length + 1;
    }
#undef WORD
    return CDACQ_OK;
}

/* pr_pid of NT_PRPSINFO: four bytes of state, a flag word, uid and gid (16 bits each where words are 32), then it. */
static int pid_of_prpsinfo(const uint8_t *desc, size_t size, bool wide, bool big)
{
    size_t offset = wide ? 24 : 12;
    return size >= offset + 4 ? (int)load_u32(desc + offset, big) : 0;
}

/* Kinds of notes that tell who wrote a core. */
enum { SEEN_GDB = 1, SEEN_THREADS = 2, SEEN_SIGNAL = 4 };

/* gdb leaves a note of its own; the kernel tells the signal; createdump does not; a snapshot has no threads. */
static const char *writer_of(unsigned seen)
{
    if (seen & SEEN_GDB)
        return "gdb";
    if (!(seen & SEEN_THREADS))
        return "cdacq snapshot";
    return seen & SEEN_SIGNAL ? "the kernel" : "createdump";
}

static enum cdacq_status read_notes(struct core *core, const struct header *header, struct cdacq_error *err)
{
    uint64_t available = header->offset < core->size ? core->size - header->offset : 0;
    uint64_t size = MIN(header->file_size, available), align = header->align == 8 ? 8 : 4;
    core->base.truncated |= header->file_size > available;
    const uint8_t *bytes = size ? core->bytes + header->offset : NULL;
    for (uint64_t at = 0; range_fits(at, 12, size) && core->note_count < NOTE_MAX; core->note_count++) {
        uint32_t name_size = load_u32(bytes + at, core->big), desc_size = load_u32(bytes + at + 4, core->big);
        uint32_t type = load_u32(bytes + at + 8, core->big);
        uint64_t desc = at + align_up(12 + (uint64_t)name_size, align);
        if (!range_fits(desc, desc_size, size))
            break;
        if (name_size == 4 && memcmp(bytes + at + 12, "GDB", 4) == 0)
            core->seen |= SEEN_GDB;
        bool core_note = (name_size == 4 || name_size == 5) && memcmp(bytes + at + 12, "CORE", 4) == 0;
        if (core_note && type == NT_PRSTATUS)
            core->seen |= SEEN_THREADS;
        if (core_note && type == NT_SIGINFO)
            core->seen |= SEEN_SIGNAL;
        if (core_note && type == NT_PRPSINFO && !core->base.pid)
            core->base.pid = pid_of_prpsinfo(bytes + desc, desc_size, core->wide, core->big);
        if (core_note && type == NT_FILE) {
            enum cdacq_status status = read_nt_file(core, bytes + desc, desc_size, err);
            if (status < 0)
                return status;
        }
        at = desc + align_up(desc_size, align);
    }
    return CDACQ_OK;
}

static enum cdacq_status read_load(struct core *core, const struct header *header, struct regions *regions,
                                   struct cdacq_error *err)
{
    uint64_t memory_end = add_saturated(header->vaddr, header->memory_size);
    uint64_t size = MIN(header->file_size, memory_end - header->vaddr); /* bytes without memory are nobody's */
    core->base.segment_count++;
    if (header->vaddr < memory_end)
        regions->items[regions->count++] = (struct region){
            .begin = header->vaddr,
            .end = memory_end,
            .readable = (header->flags & PF_R) != 0,
            .writable = (header->flags & PF_W) != 0,
        };
    uint64_t available = header->offset < core->size ? core->size - header->offset : 0;
    core->base.truncated |= size > available;
    size = MIN(size, available);
    if (!size)
        return CDACQ_OK;
    core->base.dumped_size += size;
    struct span span = {header->vaddr, header->vaddr + size, core->bytes + header->offset, NULL, 0};
    if (!spans_add(&core->spans, span))
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the core's segments");
    return CDACQ_OK;
}

/* A field that is a word in both classes, at its offset in each. */
static uint64_t word_at(const struct core *core, uint64_t at, unsigned wide_offset, unsigned narrow_offset)
{
    return core->wide ? load_u64(core->bytes + at + wide_offset, core->big)
                      : load_u32(core->bytes + at + narrow_offset, core->big);
}

static struct header read_header(const struct core *core, uint64_t at)
{
    return (struct header){
        .type = load_u32(core->bytes + at, core->big),
        .flags = load_u32(core->bytes + at + (core->wide ? 4 : 24), core->big),
        .offset = word_at(core, at, 8, 4),
        .vaddr = word_at(core, at, 16, 8),
        .file_size = word_at(core, at, 32, 16),
        .memory_size = word_at(core, at, 40, 20),
        .align = word_at(core, at, 48, 28),
    };
}

/*
 * How many program headers the core has. PN_XNUM: the first section header holds the count. Linux puts that at the end
 * of the file: where it was cut off, the headers end where the contents of the first of them begin.
 */
static uint64_t count_headers(struct core *core, uint64_t table, uint64_t entry_size)
{
    uint64_t count = load_u16(core->bytes + (core->wide ? 56 : 44), core->big);
    if (count != PN_XNUM)
        return count;
    uint64_t section = word_at(core, 0, 40, 32);
    if (section && range_fits(section, core->wide ? 64 : 40, core->size))
        return load_u32(core->bytes + section + (core->wide ? 44 : 28), core->big);
    core->base.truncated = true;
    uint64_t contents = range_fits(table, entry_size, core->size) ? read_header(core, table).offset : 0;
    return contents > table ? (contents - table) / entry_size : count;
}

/*
 * What PT_LOAD and PT_NOTE say. Headers and notes are read by hand: of a cut table libelf gives nothing, it copies
 * notes in the other byte order once for each header that names them, and allocates for sections that a core has no use
 * for.
 */
static enum cdacq_status read_segments(struct core *core, const char *path, struct regions *regions,
                                       struct cdacq_error *err)
{
    uint64_t table = word_at(core, 0, 32, 28), entry_size = core->wide ? 56 : 32;
    uint64_t claimed = count_headers(core, table, entry_size);
    uint64_t count = MIN(claimed, table < core->size ? (core->size - table) / entry_size : 0);
    if (!count)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: no program headers: an empty core, or one that was cut", path);
    if (count > SEGMENT_MAX)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: %llu segments are more than the %d that are supported", path,
                         (unsigned long long)count, SEGMENT_MAX);
    core->base.truncated |= count < claimed;
    regions->items = calloc(count + 1, sizeof *regions->items);
    if (!regions->items)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the core's segments");
    enum cdacq_status status = CDACQ_OK;
    for (uint64_t i = 0; i < count && status >= 0; i++) {
        struct header header = read_header(core, table + i * entry_size);
        if (header.type == PT_LOAD)
            status = read_load(core, &header, regions, err);
        else if (header.type == PT_NOTE)
            status = read_notes(core, &header, err);
    }
    sort_regions(regions);
    return status;
}

/* What is mapped from files becomes a hole; which of its bytes the file may fill, mapped_file_constant() decides. */
static enum cdacq_status add_holes(struct spans *holes, struct target *target, struct file_policy *policy,
                                   const struct regions *regions, struct cdacq_error *err)
{
    for (size_t i = 0; i < target->mapping_count; i++) {
        struct mapping *mapping = &target->mappings[i];
        bool guard;
        mapping->access = access_of(regions, mapping->begin, mapping->end, &guard);
        /* Neighbours mostly share a file: saves the search through the list. */
        if (i && strcmp(mapping[-1].path, mapping->path) == 0)
            mapping->file = mapping[-1].file;
        else
            mapping->file = mapped_file_get(target, policy, mapping->path);
        if (!mapping->file)
            continue;
        mapped_file_extend(mapping->file, mapping->begin, mapping->end);
        /* The loader leaves gaps between segments mapped without access, to beyond the file's end if they are wide. */
        uint64_t end = mapping->offset + (mapping->end - mapping->begin);
        if (!guard)
            mapping->file->mapped_size = MAX(mapping->file->mapped_size, end);
        struct span hole = {mapping->begin, mapping->end, NULL, mapping->file, mapping->offset};
        if (!spans_add(holes, hole))
            return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the list of mappings");
    }
    return CDACQ_OK;
}

static enum cdacq_status core_read(struct core *core, const char *path, struct file_policy *policy,
                                   struct cdacq_error *err)
{
    struct regions regions = {0};
    struct spans dumped = {0};
    enum cdacq_status status = read_segments(core, path, &regions, err);
    if (status >= 0) {
        target_sort_mappings(&core->base);
        dumped = core->spans;
        core->spans = (struct spans){0};
        status = add_holes(&core->spans, &core->base, policy, &regions, err);
    }
    bool stored = true;
    for (size_t i = 0; i < dumped.count && stored; i++)
        stored = spans_add(&core->spans, dumped.items[i]);
    if (status >= 0 && (!stored || !spans_seal(&core->spans)))
        status = error_set(err, CDACQ_ERR_NOMEM, 0, "%s: out of memory for its segments", path);
    for (size_t i = 0; status >= 0 && i < core->spans.count; i++) {
        const struct span *span = &core->spans.items[i];
        if (span->bytes)
            continue;
        core->base.missing_size = add_saturated(core->base.missing_size, span->end - span->begin);
        span->file->missing_size = add_saturated(span->file->missing_size, span->end - span->begin);
    }
    spans_deinit(&dumped);
    free(regions.items);
    return status;
}

/* Maps the file and checks that it is a core. */
static enum cdacq_status map_core(struct core *core, const char *path, struct cdacq_error *err)
{
    struct stat st;
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_set(err, CDACQ_ERR_IO, 0, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return error_set(err, CDACQ_ERR_IO, 0, "%s: not a regular file", path);
    if (st.st_size < (off_t)sizeof(Elf32_Ehdr))
        return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: not an ELF file", path);
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return error_set(err, CDACQ_ERR_IO, 0, "%s: cannot be mapped: %s", path, strerror(errno));
    core->bytes = bytes;
    core->size = (size_t)st.st_size;
    const uint8_t *ident = core->bytes;
    core->wide = ident[EI_CLASS] == ELFCLASS64;
    core->big = ident[EI_DATA] == ELFDATA2MSB;
    if (memcmp(ident, ELFMAG, SELFMAG) != 0 || (!core->wide && ident[EI_CLASS] != ELFCLASS32) ||
        (!core->big && ident[EI_DATA] != ELFDATA2LSB) || ident[EI_VERSION] != EV_CURRENT ||
        core->size < (core->wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)))
        return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: not an ELF file", path);
    if (load_u16(core->bytes + 16, core->big) != ET_CORE)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: an ELF file, but not a core dump", path);
    core->base.elf_machine = load_u16(core->bytes + 18, core->big);
    return CDACQ_OK;
}

enum cdacq_status core_open(const char *path, struct file_policy *policy, bool record, struct target **ret,
                            struct cdacq_error *err)
{
    struct core *core = calloc(1, sizeof *core);
    if (!core)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    core->base = (struct target){.ops = &core_ops, .kind = CDACQ_TARGET_CORE};
    enum cdacq_status status = map_core(core, path, err);
    if (status >= 0 && record && !(core->base.recording = calloc(1, sizeof *core->base.recording)))
        status = error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    if (status >= 0)
        status = core_read(core, path, policy, err);
    if (status < 0) {
        core_destroy(&core->base);
        return status;
    }
    core->base.writer = writer_of(core->seen);
    *ret = &core->base;
    return CDACQ_OK;
}

void core_release_pages(struct target *core)
{
    (void)madvise((void *)(uintptr_t)core_of(core)->bytes, core_of(core)->size, MADV_DONTNEED);
}
