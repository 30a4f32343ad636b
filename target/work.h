/*
 * work.h: what all calls on a target may take together, in steps of fuel and bytes of memory. The fuel of one call
 * (target/reader.h) bounds that call only; a command makes many. A zeroed struct sets no bound.
 * Thread-safe after work_set().
 */
#ifndef CDACQ_TARGET_WORK_H
#define CDACQ_TARGET_WORK_H

#include <stdatomic.h>

#include "util/base.h"

struct work {
    uint64_t steps_max, memory_max; /* 0: no bound */
    _Atomic uint64_t steps, memory; /* taken so far */
    atomic_bool memory_refused;
};

/* A bound of WORK_BY_SIZE is that of a core of 128 MiB or less, in proportion for a larger one. */
#define WORK_BY_SIZE UINT64_MAX

/* Sets the bounds of a target of `size` bytes; 0: none, and WORK_BY_SIZE then means no bound. */
void work_set(struct work *work, uint64_t steps_max, uint64_t memory_max, uint64_t size);

/* The steps that are left. */
static inline uint64_t work_left(const struct work *work)
{
    uint64_t steps = atomic_load_explicit(&work->steps, memory_order_relaxed);
    return !work->steps_max ? UINT64_MAX : steps < work->steps_max ? work->steps_max - steps : 0;
}

static inline void work_add_steps(struct work *work, uint64_t steps)
{
    if (work->steps_max && steps)
        atomic_fetch_add_explicit(&work->steps, steps, memory_order_relaxed);
}

/* Forgets the steps that were taken; the memory stays. */
static inline void work_begin_anew(struct work *work)
{
    atomic_store_explicit(&work->steps, 0, memory_order_relaxed);
}

/* Adds steps. False, with nothing added, if none are left: then what they are for is not to be done. */
static inline bool work_take_steps(struct work *work, uint64_t steps)
{
    if (!work_left(work))
        return false;
    work_add_steps(work, steps);
    return true;
}

/* Steps for what is done outside of the target's memory: as long as the kernel takes, about. */
enum {
    WORK_OF_A_PATH = 100,  /* a file is looked for at a path */
    WORK_OF_A_FILE = 2500, /* it is opened, mapped, compared and closed */
    WORK_OF_AN_ENTRY = 10, /* a file of a directory is listed */
};

enum { WORK_BYTES_OF_A_STEP = 32 }; /* that are compared, summed or unpacked in the time of a step, about */

/*
 * Adds the steps that it takes to go through bytes of a file, where no reader counts them. False if no more are left:
 * then the bytes are not to be read.
 */
static inline bool work_take_bytes(struct work *work, uint64_t bytes)
{
    return work_take_steps(work, bytes / WORK_BYTES_OF_A_STEP + 1);
}

enum { WORK_USES_OF_A_TEXT = 4 }; /* a text in an answer is compared, escaped and written, perhaps more than once */

/* The same for a text, each time that it is in an answer: a core chooses how long it is, and how often it is shown. */
static inline bool work_take_text(struct work *work, uint64_t length)
{
    return work_take_bytes(work, length * WORK_USES_OF_A_TEXT);
}

/* The same for a text as it is in the target: a byte that has to be escaped becomes up to five. */
bool work_take_raw_text(struct work *work, const char *bytes, size_t length);

enum { WORK_USES_OF_CODE = 4 }; /* code that is written is copied into the output, and by the kernel to the file */

/* The same for code that is written: methods of a core may share their bytes, so that it is far more than the core. */
static inline bool work_take_code(struct work *work, uint64_t size)
{
    return work_take_bytes(work, size * WORK_USES_OF_CODE);
}

/*
 * Whether the bound alone allows bytes, or code, that are written at the end, all at once. What was found until the
 * bound was reached is written, so what was taken before does not matter.
 */
static inline bool work_allows_bytes(const struct work *work, uint64_t size)
{
    return !work->steps_max || size / WORK_BYTES_OF_A_STEP < work->steps_max;
}

static inline bool work_allows_code(const struct work *work, uint64_t size)
{
    return work_allows_bytes(work, size * WORK_USES_OF_CODE);
}

/* Takes memory that the target or a session keeps. False if the bound does not allow it. */
bool work_take_memory(struct work *work, uint64_t bytes);
void work_return_memory(struct work *work, uint64_t bytes);

/* Whether a bound was reached. If so, the text names it: one line. */
bool work_is_spent(const struct work *work, char *text, size_t size);

#endif
