/*
 * jitdump_pending.h: the records of a jitdump that describe a function and come before its JIT_CODE_LOAD: its lines,
 * its unwinding data and samply's form of its lines. They are kept until the JIT_CODE_LOAD that they belong to is read;
 * one that belongs to none is reported. A zeroed struct is empty. One thread at a time.
 */
#ifndef CDACQ_PERF_JITDUMP_PENDING_H
#define CDACQ_PERF_JITDUMP_PENDING_H

#include "cdacq/jitdump.h"

enum { JITDUMP_PENDING_MAX = 64 };

struct jitdump_pending_record {
    uint64_t offset, code_addr;
    uint64_t end; /* of samply's ranges and lines */
    enum cdacq_jitdump_kind kind;
    bool has_address, is_damaged;
};

struct jitdump_pending {
    struct jitdump_pending_record records[JITDUMP_PENDING_MAX]; /* in file order */
    size_t count;
    bool has_debug_info; /* since the last JIT_CODE_LOAD; of last_debug_info */
    uint64_t last_debug_info, last_load;
};

/*
 * Keeps a record about a function. A later one of the same kind and function counts. The functions with `problem` store
 * there what they report on a record (jitdump_set_problem).
 */
void jitdump_pending_add(struct jitdump_pending *pending, struct cdacq_jitdump_record *record,
                         struct cdacq_error *problem);

/* Gives a JIT_CODE_LOAD the offsets of the records that belong to it, which are then no longer kept. */
void jitdump_pending_bind(struct jitdump_pending *pending, struct cdacq_jitdump_record *record,
                          struct cdacq_error *problem);

/* Reports on a JIT_CODE_CLOSE the records that are still kept, and drops them. */
void jitdump_pending_close(struct jitdump_pending *pending, struct cdacq_jitdump_record *record,
                           struct cdacq_error *problem);

/* At the end of the file: FORMAT if a record is still kept. */
enum cdacq_status jitdump_pending_check_end(const struct jitdump_pending *pending, struct cdacq_error *err);

#endif
