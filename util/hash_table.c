#include "util/hash_table.h"

#include <stdatomic.h>
#include <sys/random.h>
#include <time.h>

uint64_t hash_table_seed(void)
{
    static _Atomic uint64_t kept; /* 0: none yet */
    uint64_t seed = atomic_load_explicit(&kept, memory_order_relaxed), other = 0;
    if (seed)
        return seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) {
        struct timespec now = {0};
        clock_gettime(CLOCK_REALTIME, &now);
        seed = hash_u64((uint64_t)now.tv_nsec, (uintptr_t)&now); /* the address space layout is random too */
    }
    seed |= 1;
    return atomic_compare_exchange_strong(&kept, &other, seed) ? seed : other;
}
