/*
 * code_progress.h: the progress of what visits all methods in the order of their addresses. How many there are is not
 * known before. It is estimated: the share of the code that was passed is also that of the methods.
 */
#ifndef CDACQ_CLI_COMMANDS_CODE_PROGRESS_H
#define CDACQ_CLI_COMMANDS_CODE_PROGRESS_H

#include <cdacq/session.h>

#include "src/cli/base/console.h"
#include "util/vector.h"

struct code_extent {
    uint64_t begin, end;
};

DEFINE_VECTOR(code_extents, struct code_extent);

struct code_progress {
    struct progress progress;
    struct code_extents extents; /* those that are visited, by address; if the progress is shown */
    size_t next;                 /* extents before this one were passed */
    uint64_t all, passed;        /* bytes of all extents, and of those before `next` */
    uint64_t done;               /* methods */
};

/* `flags`, enum cdacq_visit_flags, are those of the visit; `results` is as for progress_begin. */
void code_progress_begin(struct code_progress *progress, struct cdacq_session *session, unsigned flags, int results);
/* Counts a method or a block of stubs that is visited. */
void code_progress_step(struct code_progress *progress, const struct cdacq_method *method);
void code_progress_end(struct code_progress *progress);

#endif
