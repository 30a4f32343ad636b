/*
 * next_steps.h: what a person can do about what is missing: one line for each thing, which names it and the option that
 * supplies it.
 */
#ifndef CDACQ_CLI_NEXT_STEPS_H
#define CDACQ_CLI_NEXT_STEPS_H

#include "cdacq.h"

struct next_step {
    const char *need; /* "file", "files", "core", "memory", "names", "descriptor" or "runtime" */
    const char *text; /* one line, printable */
    const char *path; /* of a file, with what it is known by elsewhere: NULL where not known, and for other needs */
    const char *build_id, *symbol_key;
    const char *options[4]; /* of this tool, that supply it; up to the first NULL */
};

/* What `info` has found out about the target beside cdacq_target_get_info. */
struct next_steps_facts {
    uint64_t memory_ranges; /* code ranges that memory is missing for which no file can supply */
};

/* cdacq_options.describe_need: how a message of the library ends. `context` is the const struct cdacq_options. */
void next_steps_describe(void *context, const struct cdacq_need *need, char *text, size_t size);

/* Calls `visit` for each, files last. */
void next_steps_visit(struct cdacq_target *target, const struct cdacq_options *options,
                      const struct next_steps_facts *facts, void (*visit)(const struct next_step *step, void *context),
                      void *context);

#endif
