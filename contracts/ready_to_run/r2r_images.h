/*
 * r2r_images.h: the ReadyToRun images of a target, each opened on first use and kept as long as the target. Threads
 * share them without locks.
 */
#ifndef CDACQ_CONTRACTS_READY_TO_RUN_R2R_IMAGES_H
#define CDACQ_CONTRACTS_READY_TO_RUN_R2R_IMAGES_H

#include <stdatomic.h>

#include "util/base.h"

struct r2r_image;
struct range_section;
struct reader;

struct r2r_images {
    _Atomic(struct r2r_image *) buckets[64]; /* by base: lists that only grow */
    _Atomic(uint64_t) functions;             /* number of runtime functions of all of them */
};

/* The image of a section. NULL, and the reader fails, when it cannot be read. */
const struct r2r_image *r2r_images_get(struct r2r_images *images, struct reader *reader,
                                       const struct range_section *section);

void r2r_images_deinit(struct r2r_images *images);

#endif
