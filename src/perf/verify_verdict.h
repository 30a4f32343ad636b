/*
 * verify_verdict.h: the verdict on a record, given what the first pass over the file has found. A record is of the code
 * that the target has only if name, range and code agree well enough. Any other record may be of code of another time;
 * it is a contradiction only if that is impossible. One thread at a time.
 */
#ifndef CDACQ_PERF_VERIFY_VERDICT_H
#define CDACQ_PERF_VERIFY_VERDICT_H

#include "cdacq/perf.h"
#include "src/perf/verify_evidence.h"
#include "src/perf/verify_methods.h"
#include "src/perf/verify_starts.h"

enum { VERDICT_DETAIL_SIZE = 320 };

/* What the first pass has found. */
struct record_history {
    struct verify_methods methods; /* with their matches */
    struct record_starts starts;
    struct {
        uint64_t timestamp, number;
    } newest; /* matching record of a JIT-compiled method; 0, 0 if none */
};

/* Whether a record is newer than the newest that matches. */
static inline bool record_history_ends_before(const struct record_history *history, const struct file_record *record)
{
    return record->timestamp != history->newest.timestamp ? record->timestamp > history->newest.timestamp
                                                          : record->number > history->newest.number;
}

/*
 * Sets *evidence to what the target has for a record, and `detail` to what the verdict rests on, which may be nothing.
 * Notes of a method that differs from the record that the record describes it.
 */
enum cdacq_verdict verdict_on(struct cdacq_session *session, struct record_history *history,
                              const struct file_record *record, struct evidence *evidence,
                              char detail[VERDICT_DETAIL_SIZE]);

/* The verdict on the last line of a perf map if it has no end and is no record of the target. */
enum cdacq_verdict verdict_on_half_line(char detail[VERDICT_DETAIL_SIZE]);

#endif
