#include "target/work.h"

#include <inttypes.h>
#include <stdio.h>

#include "util/escape.h"
#include "util/text.h"

enum {
    SIZE_OF_BOUNDS = 128 * 1024 * 1024, /* bytes of a core to which the next two belong */
    PROPORTION = 1024 * 1024,           /* bytes to which a larger core is rounded */
    STEPS_BY_SIZE = 60 * 1000 * 1000, /* two seconds at most; a snapshot of all methods of a small process takes half */
    MEMORY_BY_SIZE = 256 * 1024 * 1024, /* with the pages of the core itself, under 512 MiB */
};

/* `base`, in proportion to the size of the target above SIZE_OF_BOUNDS. */
static uint64_t by_size(uint64_t base, uint64_t size)
{
    uint64_t units = MAX(size, (uint64_t)SIZE_OF_BOUNDS) / PROPORTION, product;
    return __builtin_mul_overflow(base, units, &product) ? UINT64_MAX : product / (SIZE_OF_BOUNDS / PROPORTION);
}

void work_set(struct work *work, uint64_t steps_max, uint64_t memory_max, uint64_t size)
{
    work->steps_max = steps_max != WORK_BY_SIZE ? steps_max : size ? by_size(STEPS_BY_SIZE, size) : 0;
    work->memory_max = memory_max != WORK_BY_SIZE ? memory_max : size ? by_size(MEMORY_BY_SIZE, size) : 0;
}

bool work_take_memory(struct work *work, uint64_t bytes)
{
    if (!work->memory_max)
        return true;
    uint64_t taken = atomic_load_explicit(&work->memory, memory_order_relaxed);
    do {
        if (add_saturated(taken, bytes) > work->memory_max) {
            atomic_store_explicit(&work->memory_refused, true, memory_order_relaxed);
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&work->memory, &taken, taken + bytes, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

void work_return_memory(struct work *work, uint64_t bytes)
{
    if (work->memory_max)
        atomic_fetch_sub_explicit(&work->memory, bytes, memory_order_relaxed);
}

bool work_take_raw_text(struct work *work, const char *bytes, size_t length)
{
    uint64_t escaped = 0;
    for (size_t i = 0; i < length; i++)
        escaped += !escape_keeps((uint8_t)bytes[i]);
    return work_take_text(work, length + escaped * (ESCAPED_SIZE(1) - 1));
}

bool work_is_spent(const struct work *work, char *text, size_t size)
{
    char bytes[32];
    if (!work_left(work)) {
        snprintf(text, size, "stopped at the bound on work, %" PRIu64 " step%s: results are incomplete",
                 work->steps_max, work->steps_max == 1 ? "" : "s");
    } else if (atomic_load_explicit(&work->memory_refused, memory_order_relaxed)) {
        text_bytes(bytes, sizeof bytes, work->memory_max);
        snprintf(text, size, "stopped at the bound on memory, %s: results are incomplete", bytes);
    } else {
        return false;
    }
    return true;
}
