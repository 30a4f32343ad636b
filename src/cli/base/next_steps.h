/*
 * next_steps.h: a line for each thing that is missing, with the option that would supply it.
 */
#ifndef CDACQ_CLI_BASE_NEXT_STEPS_H
#define CDACQ_CLI_BASE_NEXT_STEPS_H

#include "cdacq.h"

struct next_step {
    const char *need; /* "file", "files", "pdb", "core", "memory", "names", "descriptor" or "runtime" */
    const char *text; /* one line, printable */
    const char *path; /* of a file, with its keys; NULL if unknown, and for other needs */
    const char *build_id, *symbol_key;
    const char *options[5]; /* that would supply it, up to the first NULL */
};

/* cdacq_options.describe_need. `context` is the const struct cdacq_options. */
void next_steps_describe(const struct cdacq_need *need, char *text, size_t size, void *context);

/* What to do about memory that a core lacks because of coredump_filter, one line. NULL: it lacks none for that. */
const char *next_steps_of_filter(const struct cdacq_target_info *info);

/*
 * Visits each step, files last. `memory_ranges` is the number of code ranges whose memory is missing and that no file
 * can supply.
 */
void next_steps_visit(struct cdacq_target *target, const struct cdacq_options *options, uint64_t memory_ranges,
                      void (*visit)(const struct next_step *step, void *context), void *context);

#endif
