/*
 * read_log.h: which memory of a running process was read, in order, so that it can be read again; copies of what was
 * read of memory that it shares; and which parts of mapped files supplied bytes in its place.
 */
#ifndef CDACQ_TARGET_READ_LOG_H
#define CDACQ_TARGET_READ_LOG_H

#include "util/arena.h"
#include "util/vector.h"

struct logged_read {
    uint64_t address;
    uint64_t size;        /* above 0; the interval does not wrap */
    const uint8_t *bytes; /* of shared memory: what was read, in the log's copies; otherwise NULL */
    const uint8_t *now;   /* of shared memory: where it was read */
};

DEFINE_VECTOR(logged_reads, struct logged_read);

/* A line of an extent of a mapped file: the first one that was used of it. */
struct logged_file {
    uint64_t extent; /* where it begins */
    uint64_t address;
    const uint8_t *bytes; /* of the file, for `address` */
    size_t size;
};

DEFINE_VECTOR(logged_files, struct logged_file);

/* A mapping of shared memory that was read. */
struct logged_mapping {
    uint64_t begin, end;
    const uint8_t *bytes; /* at `begin` */
};

DEFINE_VECTOR(logged_mappings, struct logged_mapping);

enum {
    READ_LOG_MAX = 1 << 22,
    READ_LOG_COPIES_MAX = 1 << 26, /* bytes */
    READ_LOG_RECENT = 512,         /* words */
    READ_LOG_RECENT_FILES = 256,   /* extents of files, or mappings */
};

struct read_log {
    struct logged_reads reads;
    size_t part;                      /* reads before this one are not extended, and may be repeated */
    uint32_t recent[READ_LOG_RECENT]; /* by a word of memory: a read that began in it, which may be any by now */
    struct arena copies;              /* of shared memory */
    struct logged_mappings mappings;
    uint32_t recent_mappings[READ_LOG_RECENT_FILES]; /* as recent_files */
    struct logged_files files;
    uint32_t recent_files[READ_LOG_RECENT_FILES]; /* by an extent: its line, which may be that of another by now */
    bool incomplete; /* memory ran out, there were too many, or a file was not what the process maps */
};

/* Where the log has a read that is known to have all of these bytes; NULL if none is known. */
static inline const struct logged_read *read_log_recent(struct read_log *log, uint64_t address, uint64_t size,
                                                        uint32_t **ret_slot)
{
    uint32_t *recent = *ret_slot = &log->recent[address / 8 % READ_LOG_RECENT];
    if (*recent < log->part || *recent >= log->reads.count)
        return NULL;
    const struct logged_read *read = &log->reads.items[*recent];
    return address >= read->address && address - read->address <= read->size &&
                   size <= read->size - (address - read->address)
               ? read
               : NULL;
}

static inline void read_log_append(struct read_log *log, uint32_t *recent, struct logged_read read)
{
    *recent = (uint32_t)log->reads.count;
    if (log->reads.count == READ_LOG_MAX || !logged_reads_append(&log->reads, read))
        log->incomplete = true;
}

/* Adds a read, unless that is known to repeat an earlier one. One that continues the last one extends that. */
static inline void read_log_add(struct read_log *log, uint64_t address, uint64_t size)
{
    struct logged_reads *reads = &log->reads;
    struct logged_read *last = reads->count > log->part ? &reads->items[reads->count - 1] : NULL;
    uint32_t *recent;
    if (last && !last->bytes && address >= last->address && address - last->address <= last->size) {
        last->size = MAX(last->size, address - last->address + size);
        return;
    }
    if (!read_log_recent(log, address, size, &recent))
        read_log_append(log, recent, (struct logged_read){.address = address, .size = size});
}

/*
 * Adds a read of shared memory. Returns a copy of its bytes, which stays until the log is cleared, or that of an
 * earlier read of them. NULL when out of memory.
 */
static inline const uint8_t *read_log_copy(struct read_log *log, uint64_t address, const uint8_t *bytes, uint64_t size)
{
    uint32_t *recent;
    const struct logged_read *known = read_log_recent(log, address, size, &recent);
    if (known && known->bytes)
        return known->bytes + (address - known->address);
    uint8_t *copy = log->copies.size < READ_LOG_COPIES_MAX && size <= READ_LOG_COPIES_MAX - log->copies.size
                        ? arena_allocate(&log->copies, (size_t)size)
                        : NULL;
    if (!copy) {
        log->incomplete = true;
        return NULL;
    }
    memcpy(copy, bytes, (size_t)size);
    read_log_append(log, recent, (struct logged_read){address, size, copy, bytes});
    return copy;
}

/* The slot of an extent or a mapping that begins at an address. */
static inline uint32_t *read_log_slot(uint32_t recent[READ_LOG_RECENT_FILES], uint64_t begin)
{
    return &recent[(begin * UINT64_C(0x9e3779b97f4a7c15) >> 32) % READ_LOG_RECENT_FILES];
}

/* Adds a mapping of shared memory unless it is known to be there. */
static inline void read_log_add_mapping(struct read_log *log, const struct logged_mapping *mapping)
{
    struct logged_mappings *mappings = &log->mappings;
    uint32_t *recent = read_log_slot(log->recent_mappings, mapping->begin);
    if (*recent < mappings->count && mappings->items[*recent].begin == mapping->begin)
        return;
    *recent = (uint32_t)mappings->count;
    if (mappings->count == READ_LOG_MAX || !logged_mappings_append(mappings, *mapping))
        log->incomplete = true;
}

/* Adds a line of an extent of a file unless it is known to have one. */
static inline void read_log_add_file(struct read_log *log, const struct logged_file *line)
{
    struct logged_files *files = &log->files;
    uint32_t *recent = read_log_slot(log->recent_files, line->extent);
    if (*recent < files->count && files->items[*recent].extent == line->extent)
        return;
    *recent = (uint32_t)files->count;
    if (files->count == READ_LOG_MAX || !logged_files_append(files, *line))
        log->incomplete = true;
}

/* Begins a part that is complete in itself: it repeats what earlier parts have. Returns the index of its first read. */
static inline size_t read_log_begin_part(struct read_log *log)
{
    return log->part = log->reads.count;
}

static inline void read_log_clear(struct read_log *log)
{
    log->reads.count = log->part = log->files.count = log->mappings.count = 0;
    log->incomplete = false;
    arena_clear(&log->copies);
}

static inline void read_log_deinit(struct read_log *log)
{
    logged_reads_deinit(&log->reads);
    arena_deinit(&log->copies);
    logged_files_deinit(&log->files);
    logged_mappings_deinit(&log->mappings);
}

#endif
