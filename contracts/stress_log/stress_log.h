/*
 * stress_log.h: the StressLog contract: the log that the runtime keeps in memory if DOTNET_StressLog=1. Each thread
 * writes its messages into a ring of chunks, from the end of a chunk to its beginning, so that a later message has a
 * lower address. A message names its format string by an offset into the images in a table.
 *
 * Source: dotnet/runtime docs/design/datacontracts/StressLog.md; src/coreclr/inc/stresslog.h.
 */
#ifndef CDACQ_CONTRACTS_STRESS_LOG_STRESS_LOG_H
#define CDACQ_CONTRACTS_STRESS_LOG_STRESS_LOG_H

#include "descriptors/fields.h"

enum {
    STRESS_MODULES_MAX = 64,             /* images with format strings; .NET 11.0 has room for 5 */
    STRESS_ARGUMENTS_MAX = 63,           /* of a message: the header has 6 bits for their number */
    STRESS_CHUNK_MAX = 16 * 1024 * 1024, /* bytes of a chunk; .NET 11.0 has 32 KiB */
    STRESS_TIMESTAMP_BITS = 51,
};

/* The name of the facility of a bit; NULL above 31. */
const char *stress_facility_name(unsigned bit);

struct stress_log {
    uint64_t address; /* 0: the runtime has none */
    bool is_on;       /* it was started, so that the rest is known */
    uint32_t facilities, level, max_size_per_thread, max_size_total, chunk_count;
    uint64_t tick_frequency, start_timestamp;
    uint64_t start_time; /* 100 ns since 1601; 0: not published */
    uint64_t first;      /* ThreadStressLog */
    uint64_t module_offset;
    bool has_module_table;
    unsigned module_count;
    struct {
        uint64_t base, size;
    } modules[STRESS_MODULES_MAX];
};

/* False, and the reader fails, if it cannot be read. LAYOUT_StressLog must be usable. */
bool stress_log_read(struct reader *reader, struct stress_log *ret);

/* A ThreadStressLog. */
struct stress_thread {
    uint64_t address, next;
    uint64_t id; /* of the thread, as the operating system has it */
    uint64_t current, head, tail, write_chunk;
    bool write_has_wrapped;
};

bool stress_thread_read(struct reader *reader, uint64_t address, struct stress_thread *ret);

struct stress_message {
    uint64_t address;
    uint64_t time; /* ticks since the start of the log: the lowest STRESS_TIMESTAMP_BITS bits */
    uint32_t facility;
    uint64_t format; /* address of the format string; 0: no module has it */
    unsigned argument_count;
    uint64_t arguments; /* address of the first one */
};

enum stress_step {
    STRESS_MESSAGE,
    STRESS_FLAW,
    STRESS_DONE,
};

/* Visits the messages of a thread, the newest first. */
struct stress_cursor {
    struct stress_thread thread;
    uint64_t chunk;         /* 0: not begun */
    uint64_t position, end; /* of the next message, and of what can be read in its chunk */
    uint64_t marked;        /* a chunk that was visited: meeting it again shows a cycle */
    uint32_t chunk_count;   /* that were visited */
    bool has_wrapped, has_message, is_done;
    uint64_t time; /* of the last message */
};

void stress_cursor_begin(const struct stress_thread *thread, struct stress_cursor *ret);

/*
 * Moves on to the next older message. STRESS_FLAW: *ret_flaw says what cannot be read; what is older in the same chunk
 * is left out, and the next step goes on in the next chunk. A step has its own fuel.
 */
enum stress_step stress_cursor_next(struct reader *reader, const struct stress_log *log, struct stress_cursor *cursor,
                                    struct stress_message *ret, struct cdacq_error *ret_flaw);

#endif
