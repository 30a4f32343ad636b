#include "src/perf/verify_starts.h"

enum { STARTS_MAX = 16 * 1024 * 1024 };

void verify_starts_update(struct record_starts *starts, const struct file_record *record)
{
    struct record_start *start = record_starts_find(starts, record->address);
    if (start)
        start->last = record->number;
}

enum cdacq_status verify_starts_add(struct record_starts *starts, const struct file_record *record,
                                    struct cdacq_error *err)
{
    struct record_start *start = record_starts_find(starts, record->address);
    if (start) {
        start->last = record->number;
        return CDACQ_OK;
    }
    if (starts->count >= STARTS_MAX)
        return error_set(err, CDACQ_ERR_FUEL, 0, "more than %d places have records that do not match", STARTS_MAX);
    return record_starts_insert(starts, (struct record_start){record->address, record->number}, NULL)
               ? CDACQ_OK
               : error_set(err, CDACQ_ERR_NOMEM, 0, "verify: out of memory");
}

bool verify_starts_has_later(const struct record_starts *starts, const struct file_record *record)
{
    const struct record_start *start = record_starts_find(starts, record->address);
    return start && start->last > record->number;
}
