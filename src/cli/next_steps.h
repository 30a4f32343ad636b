/*
 * next_steps.h: a line for each thing that is missing, with the option that would supply it.
 */
#ifndef CDACQ_CLI_NEXT_STEPS_H
#define CDACQ_CLI_NEXT_STEPS_H

#include "cdacq.h"

struct next_step {
    const char *need; /* "file", "files", "core", "memory", "names", "descriptor" or "runtime" */
    const char *text; /* one line, printable */
    const char *path; /* of a file, with its keys; NULL if unknown, and for other needs */
    const char *build_id, *symbol_key;
    const char *options[4]; /* that would supply it, up to the first NULL */
};

/* cdacq_options.describe_need. `context` is the const struct cdacq_options. */
void next_steps_describe(void *context, const struct cdacq_need *need, char *text, size_t size);

/*
 * Visits each step, files last. `memory_ranges` is the number of code ranges whose memory is missing and that no file
 * can supply.
 */
void next_steps_visit(struct cdacq_target *target, const struct cdacq_options *options, uint64_t memory_ranges,
                      void (*visit)(const struct next_step *step, void *context), void *context);

#endif
