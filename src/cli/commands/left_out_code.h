/*
 * left_out_code.h: tells what a file of a listing lacks: methods that the library left out, and functions without
 * call-frame information. A zeroed struct with a target has nothing to tell. One thread at a time.
 */
#ifndef CDACQ_CLI_COMMANDS_LEFT_OUT_CODE_H
#define CDACQ_CLI_COMMANDS_LEFT_OUT_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "cdacq/perf.h"
#include "src/cli/base/read_failures.h"

struct left_out {
    const struct cdacq_target *target;
    bool at_once; /* each has its message when it is taken */
    uint64_t count;
    /* Held back until it is known whether anything was written. The last place is for what has no address. */
    char *complaints[READ_FAILURES_MAX + 1];
    uint64_t complaint_count; /* also those with a message at once */
};

/* What sink.left_out of the library calls this for, it takes. Returns 0. */
int left_out_take(struct left_out *left_out, const struct cdacq_method *method);

/*
 * Tells what was held back, and frees it. One line, not several, where nothing is written (`none`): `problem` says why,
 * unless all was left out.
 */
void left_out_tell(struct left_out *left_out, bool none, const char *problem);

/* Tells how many there are, and what else the library has counted. */
void left_out_tell_counts(const struct left_out *left_out, const struct cdacq_written *written);

#endif
