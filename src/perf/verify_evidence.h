/*
 * verify_evidence.h: what the target has where a record says that there is code: a method, and whether its name, its
 * range and its code agree with the record. One thread at a time.
 */
#ifndef CDACQ_PERF_VERIFY_EVIDENCE_H
#define CDACQ_PERF_VERIFY_EVIDENCE_H

#include "src/lookup/opened_session.h"
#include "src/perf/record_file.h"

enum agreement { AGREE_UNKNOWN, AGREE_NO, AGREE_YES };

/* What the target has for a record. */
struct evidence {
    struct cdacq_method method; /* at the record's start, or the method that the record describes */
    bool at_start;              /* the method or its cold part starts at the record's address */
    bool same_range;
    enum agreement name, code;
    uint64_t code_differs; /* offset of the first byte that differs */
};

/* How long code stays at an address. */
enum code_lifetime {
    CODE_LIFETIME_UNKNOWN,    /* the target's map of code ranges cannot be read */
    CODE_LIFETIME_PERMANENT,  /* up to the end of the process */
    CODE_LIFETIME_RELEASABLE, /* it may have been released */
};

/* Finds what the target has at the record's start. */
void evidence_find(struct cdacq_session *session, const struct file_record *record, struct evidence *ret);

/* Whether the record is of the code that the target has. */
bool evidence_matches(const struct evidence *evidence);

enum agreement evidence_compare_names(const struct file_record *record, const struct cdacq_method *method);

/* Compares the record's code with the target's memory at `address`. *ret_differs is set for AGREE_NO. */
enum agreement evidence_compare_code(struct cdacq_session *session, const struct file_record *record, uint64_t address,
                                     uint64_t *ret_differs);

enum code_lifetime evidence_code_lifetime(struct cdacq_session *session, uint64_t address);

/* The part of a method that its answer is of: the cold one or the hot one. */
static inline uint64_t evidence_part_start(const struct cdacq_method *method)
{
    return method->cold ? method->cold_start : method->code_start;
}

static inline uint64_t evidence_part_size(const struct cdacq_method *method)
{
    return method->cold ? method->cold_size : method->code_size;
}

#endif
