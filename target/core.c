#include "target/core.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
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
    int fd;
    Elf *elf;
    const uint8_t *bytes; /* the whole file */
    size_t size;
    unsigned note_count; /* read so far */
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
    elf_end(core->elf);
    if (core->fd >= 0)
        close(core->fd);
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
static enum cdacq_status read_nt_file(struct core *core, const uint8_t *desc, size_t size, bool wide, bool big,
                                      struct cdacq_error *err)
{
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

/*
 * Read by hand: libelf copies notes in the other byte order or at odd addresses, and many headers may name the same
 * bytes.
 */
static enum cdacq_status read_notes(struct core *core, const GElf_Phdr *phdr, bool wide, bool big,
                                    struct cdacq_error *err)
{
    uint64_t available = phdr->p_offset < core->size ? core->size - phdr->p_offset : 0;
    uint64_t size = MIN(phdr->p_filesz, available), align = phdr->p_align == 8 ? 8 : 4;
    core->base.truncated |= phdr->p_filesz > available;
    const uint8_t *bytes = size ? core->bytes + phdr->p_offset : NULL;
    for (uint64_t at = 0; range_fits(at, 12, size) && core->note_count < NOTE_MAX; core->note_count++) {
        uint32_t name_size = load_u32(bytes + at, big), desc_size = load_u32(bytes + at + 4, big);
        uint32_t type = load_u32(bytes + at + 8, big);
        uint64_t desc = at + align_up(12 + (uint64_t)name_size, align);
        if (!range_fits(desc, desc_size, size))
            break;
        bool core_note = (name_size == 4 || name_size == 5) && memcmp(bytes + at + 12, "CORE", 4) == 0;
        if (core_note && type == NT_PRPSINFO && !core->base.pid)
            core->base.pid = pid_of_prpsinfo(bytes + desc, desc_size, wide, big);
        if (core_note && type == NT_FILE) {
            enum cdacq_status status = read_nt_file(core, bytes + desc, desc_size, wide, big, err);
            if (status < 0)
                return status;
        }
        at = desc + align_up(desc_size, align);
    }
    return CDACQ_OK;
}

static enum cdacq_status read_load(struct core *core, const GElf_Phdr *phdr, struct regions *regions,
                                   struct cdacq_error *err)
{
    uint64_t memory_end = add_saturated(phdr->p_vaddr, phdr->p_memsz);
    uint64_t size = MIN(phdr->p_filesz, memory_end - phdr->p_vaddr); /* bytes without memory are nobody's */
    core->base.segment_count++;
    if (phdr->p_vaddr < memory_end)
        regions->items[regions->count++] = (struct region){
            .begin = phdr->p_vaddr,
            .end = memory_end,
            .readable = (phdr->p_flags & PF_R) != 0,
            .writable = (phdr->p_flags & PF_W) != 0,
        };
    uint64_t available = phdr->p_offset < core->size ? core->size - phdr->p_offset : 0;
    core->base.truncated |= size > available;
    size = MIN(size, available);
    if (!size)
        return CDACQ_OK;
    core->base.dumped_size += size;
    struct span span = {phdr->p_vaddr, phdr->p_vaddr + size, core->bytes + phdr->p_offset, NULL, 0};
    if (!spans_add(&core->spans, span))
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the core's segments");
    return CDACQ_OK;
}

/* What PT_LOAD and PT_NOTE say. */
static enum cdacq_status read_segments(struct core *core, const char *path, struct regions *regions,
                                       struct cdacq_error *err)
{
    size_t count;
    GElf_Ehdr ehdr;
    GElf_Phdr phdr;
    if (!gelf_getehdr(core->elf, &ehdr) || elf_getphdrnum(core->elf, &count) < 0)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: program headers cannot be read: %s", path, elf_errmsg(-1));
    if (count > SEGMENT_MAX)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "%s: %zu segments are more than the %d that are supported", path,
                         count, SEGMENT_MAX);
    core->base.truncated |= ehdr.e_phnum != PN_XNUM && count < ehdr.e_phnum; /* libelf counts those that are there */
    bool wide = ehdr.e_ident[EI_CLASS] == ELFCLASS64, big = ehdr.e_ident[EI_DATA] == ELFDATA2MSB;
    core->base.elf_machine = ehdr.e_machine;
    regions->items = calloc(count + 1, sizeof *regions->items);
    if (!regions->items)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for %zu segments", count);
    enum cdacq_status status = CDACQ_OK;
    for (size_t i = 0; i < count && status >= 0; i++) {
        if (!gelf_getphdr(core->elf, (int)i, &phdr)) {
            core->base.truncated = true;
            break;
        }
        if (phdr.p_type == PT_LOAD)
            status = read_load(core, &phdr, regions, err);
        else if (phdr.p_type == PT_NOTE)
            status = read_notes(core, &phdr, wide, big, err);
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
    for (size_t i = 0; status >= 0 && i < core->spans.count; i++)
        if (!core->spans.items[i].bytes)
            core->base.missing_size += core->spans.items[i].end - core->spans.items[i].begin;
    spans_deinit(&dumped);
    free(regions.items);
    return status;
}

enum cdacq_status core_open(const char *path, struct file_policy *policy, bool record, struct target **ret,
                            struct cdacq_error *err)
{
    struct core *core = calloc(1, sizeof *core);
    if (!core)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    core->base = (struct target){.ops = &core_ops, .kind = CDACQ_TARGET_CORE};
    enum cdacq_status status = CDACQ_OK;
    struct stat st;
    elf_version(EV_CURRENT);
    core->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (core->fd < 0 || fstat(core->fd, &st) < 0)
        status = error_set(err, CDACQ_ERR_IO, 0, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        status = error_set(err, CDACQ_ERR_IO, 0, "%s: not a regular file", path);
    else if (!(core->elf = elf_begin(core->fd, ELF_C_READ_MMAP, NULL)) || elf_kind(core->elf) != ELF_K_ELF)
        status = error_set(err, CDACQ_ERR_FORMAT, 0, "%s: not an ELF file", path);
    GElf_Ehdr ehdr;
    if (status >= 0 && (!gelf_getehdr(core->elf, &ehdr) || ehdr.e_type != ET_CORE))
        status = error_set(err, CDACQ_ERR_FORMAT, 0, "%s: an ELF file, but not a core dump", path);
    if (status >= 0 && !(core->bytes = (const uint8_t *)elf_rawfile(core->elf, &core->size)))
        status = error_set(err, CDACQ_ERR_IO, 0, "%s: cannot be mapped: %s", path, elf_errmsg(-1));
    if (status >= 0 && record && !(core->base.recording = calloc(1, sizeof *core->base.recording)))
        status = error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    if (status >= 0)
        status = core_read(core, path, policy, err);
    if (status < 0) {
        core_destroy(&core->base);
        return status;
    }
    *ret = &core->base;
    return CDACQ_OK;
}
