/*
 * kept_code.h: copies of code of a running process, for a file that is written later: by then the process may have
 * other code there. A zeroed struct has none. One thread at a time.
 */
#ifndef CDACQ_PERF_KEPT_CODE_H
#define CDACQ_PERF_KEPT_CODE_H

#include "target/work.h"
#include "util/arena.h"
#include "util/vector.h"

struct kept_piece {
    uint64_t begin, end;
    const uint8_t *bytes;
};

DEFINE_VECTOR_TYPE(kept_pieces, struct kept_piece);

struct kept_code {
    struct kept_pieces pieces;
    struct arena arena;
    uint64_t size; /* of all pieces, as they were added */
};

/* Returns to `work` what was taken from it. */
void kept_code_deinit(struct kept_code *kept, struct work *work);

/* Adds a copy of the code at `begin`. False when out of memory, or if the bound of `work` does not allow it. */
bool kept_code_add(struct kept_code *kept, struct work *work, uint64_t begin, const void *bytes, size_t size);

/* Ends the adding. Code ends where other code begins, as a symbol does. */
void kept_code_sort(struct kept_code *kept);

/* Puts what is kept of [begin, begin + size) into its place in `bytes`. The rest of them stays. */
void kept_code_copy(const struct kept_code *kept, uint64_t begin, uint8_t *bytes, size_t size);

#endif
