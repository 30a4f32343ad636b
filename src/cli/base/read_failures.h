/*
 * read_failures.h: messages about what cannot be read. The first ones are written, the others counted: there may be any
 * number, as where a whole image is missing.
 */
#ifndef CDACQ_CLI_BASE_READ_FAILURES_H
#define CDACQ_CLI_BASE_READ_FAILURES_H

#include <stdint.h>

enum { READ_FAILURES_MAX = 20 }; /* messages of one command; its output has the others */

struct read_failures {
    uint64_t count; /* of all */
    uint64_t told;
};

/*
 * Says why something at `address` cannot be read; `why` may be NULL. What has no address (0) may be any number of
 * methods: it is always told.
 */
void read_failures_add(struct read_failures *complaints, uint64_t address, const char *why);

/* Says how many were not told: "1 more ONE cannot be read", "12 more MANY cannot be read". */
void read_failures_end(const struct read_failures *complaints, const char *one, const char *many);

#endif
