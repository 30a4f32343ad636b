/*
 * heap_messages.h: what every command that reads the heap says where it cannot be read. One thread at a time.
 */
#ifndef CDACQ_CLI_BASE_HEAP_MESSAGES_H
#define CDACQ_CLI_BASE_HEAP_MESSAGES_H

#include <inttypes.h>

#include "cdacq.h"
#include "src/cli/base/console.h"

/* Says why a visit of the heap, which is for `what`, has failed. Nothing if it has not. */
static inline void heap_tell_failure(enum cdacq_status status, const char *what, const struct cdacq_error *error)
{
    if (status == CDACQ_ERR_MEMORY)
        message("no heap in this core: %s", error->message);
    else if (status < 0)
        message("%s cannot be read: %s", what, error->message);
}

/* Tells the first problems of a visit of the heap, and counts them. */
struct heap_problem_teller {
    uint64_t count;
};

enum { HEAP_PROBLEMS_SHOWN = 10 };

static inline int heap_tell_problem(const char *text, struct heap_problem_teller *teller)
{
    if (teller->count++ < HEAP_PROBLEMS_SHOWN)
        message("%s", text);
    return 0;
}

/* `all`: with those that were only counted. */
static inline void heap_tell_more_problems(uint64_t all)
{
    if (all > HEAP_PROBLEMS_SHOWN)
        message("%" PRIu64 " more problems", all - HEAP_PROBLEMS_SHOWN);
}

static inline void heap_tell_under_way(bool is_under_way)
{
    if (is_under_way)
        message("a garbage collection was under way: what it had not finished is missing or inexact");
}

#endif
