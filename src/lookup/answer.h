/*
 * answer.h: the answers of the public API about addresses. answer_fill() alone turns what was found into a
 * struct cdacq_method.
 */
#ifndef CDACQ_LOOKUP_ANSWER_H
#define CDACQ_LOOKUP_ANSWER_H

#include "cdacq/session.h"
#include "util/base.h"

struct method_record;
struct resolution;
struct resolver;

/* `ip`: the address as the caller gave it. The text of an error is resolver->error's. */
void answer_fill(const struct resolver *resolver, const struct resolution *resolution, uint64_t ip,
                 struct cdacq_method *ret);

/* The answer for an address that resolver->error is about. */
void answer_error(const struct resolver *resolver, uint64_t ip, struct cdacq_method *ret);

/* Looks up an address. The text of a failure is valid until the next call. Returns the method's record, or NULL. */
const struct method_record *answer_find(struct resolver *resolver, uint64_t ip, struct cdacq_method *ret);

/* Keeps the text of a failure until the arena for them is emptied: for one of several answers. */
void answer_keep_error(struct resolver *resolver, struct cdacq_method *method);

/* Fills in what a record has without IL offsets and lines. `address` is plain. */
void answer_fill_record(const struct method_record *record, uint64_t address, struct cdacq_method *ret);

/* Adds the line of the IL offset, where it is known. */
void answer_add_line(const struct method_record *record, struct cdacq_method *ret);

/* Whether an answer leaves an address to other runtimes: no method and no stub was found. */
static inline bool answer_is_open(enum cdacq_answer answer)
{
    return answer == CDACQ_ANSWER_NONE || answer == CDACQ_ANSWER_ERROR;
}

/* Whether `other`, of another runtime, is an answer for an address that `answer` leaves open. */
bool answer_is_better(const struct cdacq_method *answer, const struct cdacq_method *other);

#endif
