/*
 * find.h: finds the method that owns an address. The first look-ups walk the runtime's structures, which reads little.
 * If a range is used repeatedly, its methods are indexed.
 */
#ifndef CDACQ_LOOKUP_FIND_H
#define CDACQ_LOOKUP_FIND_H

#include "cdacq/code_kind.h"
#include "util/base.h"

struct block_part;
struct cdacq_method;
struct method_record;
struct resolver;

enum resolved {
    RESOLVED_ERROR, /* resolver->error says why */
    RESOLVED_NONE,
    RESOLVED_STUB,
    RESOLVED_METHOD,
};

/* What owns an address. */
struct resolution {
    enum resolved kind;
    bool unverified;           /* NONE, STUB: bytes of an unconfirmed file were read */
    enum cdacq_code_kind stub; /* STUB: its kind, where it begins, and the offset of the address in it */
    uint64_t start, offset;
    struct method_record *record; /* METHOD; complete, with IL offsets and lines */
};

/* Looks up an address. With `batch`, more follow: an index pays at once. */
void resolver_find(struct resolver *resolver, uint64_t ip, bool batch, struct resolution *ret);

/*
 * Looks up one address without a table. With `many`, the record of an earlier walk, such as `known`, is the answer if
 * it is that of the address; of a running process, one of this epoch. Returns whether it walked.
 */
bool resolver_find_singly(struct resolver *resolver, uint64_t ip, bool many, struct method_record *known,
                          struct resolution *ret);

/* Makes *ret an error: the process has changed each time, or is gone. */
void resolver_fail_changed(struct resolver *resolver, uint64_t ip, struct resolution *ret);

/* The record of a part of a range, formed on demand. NULL on failure, with resolver->error set. */
struct method_record *resolver_record(struct resolver *resolver, size_t range, const struct block_part *part);

enum { RESOLVER_AT_ONCE = 256 }; /* methods of a running process that are read, and confirmed, together */

/*
 * Forms the records of at most RESOLVER_AT_ONCE parts of a range, from `from` up to `to`, and confirms them together.
 * resolver_record() then returns them, and fails with NOT_MANAGED for a method that the process no longer has. For a
 * running process. Parts for which `wanted`, which may be NULL, has false are left out.
 */
void resolver_prepare_records(struct resolver *resolver, size_t range, size_t from, size_t to, const bool *wanted);

/*
 * Whether a running process still has a method as `method` says. What was read since the last confirmation is confirmed
 * with it.
 */
bool resolver_confirms(struct resolver *resolver, const struct cdacq_method *method);

#endif
