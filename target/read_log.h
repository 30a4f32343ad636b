/*
 * read_log.h: which memory of a running process was read, in order, so that it can be read again.
 */
#ifndef CDACQ_TARGET_READ_LOG_H
#define CDACQ_TARGET_READ_LOG_H

#include "util/vector.h"

struct logged_read {
    uint64_t address;
    uint64_t size; /* above 0; the interval does not wrap */
};

DEFINE_VECTOR(logged_reads, struct logged_read);

struct read_log {
    struct logged_reads reads;
    bool incomplete; /* memory ran out, or there were too many */
};

enum { READ_LOG_MAX = 1 << 22 };

/* Adds a read. One that continues or repeats the last one extends that. */
static inline void read_log_add(struct read_log *log, uint64_t address, uint64_t size)
{
    struct logged_reads *reads = &log->reads;
    struct logged_read *last = reads->count ? &reads->items[reads->count - 1] : NULL;
    if (last && address >= last->address && address - last->address <= last->size)
        last->size = MAX(last->size, address - last->address + size);
    else if (reads->count == READ_LOG_MAX || !logged_reads_append(reads, (struct logged_read){address, size}))
        log->incomplete = true;
}

static inline void read_log_clear(struct read_log *log)
{
    log->reads.count = 0;
    log->incomplete = false;
}

static inline void read_log_deinit(struct read_log *log)
{
    logged_reads_deinit(&log->reads);
}

#endif
