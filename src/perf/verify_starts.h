/*
 * verify_starts.h: the starts with a record that does not match, and the last record of each. A zeroed struct has none.
 * One thread at a time.
 */
#ifndef CDACQ_PERF_VERIFY_STARTS_H
#define CDACQ_PERF_VERIFY_STARTS_H

#include "src/perf/record_file.h"
#include "util/hash_table.h"

struct record_start {
    uint64_t address;
    uint64_t last; /* number of the last record with this start */
};

DEFINE_U64_TABLE(record_starts, struct record_start, address);

/* Adds the start of a record that does not match, or sets its last record. NOMEM; FUEL: there are too many. */
enum cdacq_status verify_starts_add(struct record_starts *starts, const struct file_record *record,
                                    struct cdacq_error *err);

/* Sets the last record of a start that was added. */
void verify_starts_update(struct record_starts *starts, const struct file_record *record);

/* Whether a later record has the same start. */
bool verify_starts_has_later(const struct record_starts *starts, const struct file_record *record);

#endif
