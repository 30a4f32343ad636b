/*
 * read_log.h: which memory of a running process was read, in order, so that it can be read again; and which parts
 * of mapped files supplied bytes in its place.
 */
#ifndef CDACQ_TARGET_READ_LOG_H
#define CDACQ_TARGET_READ_LOG_H

#include "util/vector.h"

struct logged_read {
    uint64_t address;
    uint64_t size; /* above 0; the interval does not wrap */
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

enum {
    READ_LOG_MAX = 1 << 22,
    READ_LOG_RECENT = 512,       /* words */
    READ_LOG_RECENT_FILES = 256, /* extents of files */
};

struct read_log {
    struct logged_reads reads;
    size_t part;                      /* reads before this one are not extended, and may be repeated */
    uint32_t recent[READ_LOG_RECENT]; /* by a word of memory: a read that began in it, which may be any by now */
    struct logged_files files;
    uint32_t recent_files[READ_LOG_RECENT_FILES]; /* by an extent: its line, which may be that of another by now */
    bool incomplete; /* memory ran out, there were too many, or a file was not what the process maps */
};

/* Whether the log has a read that is known to have all of these bytes. */
static inline bool read_log_has(const struct read_log *log, uint32_t recent, uint64_t address, uint64_t size)
{
    if (recent < log->part || recent >= log->reads.count)
        return false;
    const struct logged_read *read = &log->reads.items[recent];
    return address >= read->address && address - read->address <= read->size &&
           size <= read->size - (address - read->address);
}

/* Adds a read, unless that is known to repeat an earlier one. One that continues the last one extends that. */
static inline void read_log_add(struct read_log *log, uint64_t address, uint64_t size)
{
    struct logged_reads *reads = &log->reads;
    struct logged_read *last = reads->count > log->part ? &reads->items[reads->count - 1] : NULL;
    if (last && address >= last->address && address - last->address <= last->size) {
        last->size = MAX(last->size, address - last->address + size);
        return;
    }
    uint32_t *recent = &log->recent[address / 8 % READ_LOG_RECENT];
    if (read_log_has(log, *recent, address, size))
        return;
    *recent = (uint32_t)reads->count;
    if (reads->count == READ_LOG_MAX || !logged_reads_append(reads, (struct logged_read){address, size}))
        log->incomplete = true;
}

/* Adds a line of an extent of a file unless it is known to have one. */
static inline void read_log_add_file(struct read_log *log, const struct logged_file *line)
{
    struct logged_files *files = &log->files;
    uint32_t *recent = &log->recent_files[(line->extent * UINT64_C(0x9e3779b97f4a7c15) >> 32) % READ_LOG_RECENT_FILES];
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
    log->reads.count = log->part = log->files.count = 0;
    log->incomplete = false;
}

static inline void read_log_deinit(struct read_log *log)
{
    logged_reads_deinit(&log->reads);
    logged_files_deinit(&log->files);
}

#endif
