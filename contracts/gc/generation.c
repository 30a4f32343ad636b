#include "contracts/gc/generation.h"

#include "util/base.h"

const char *cdacq_generation_text(enum cdacq_generation generation)
{
    static const char *const names[] = {"0", "1", "2", "loh", "poh", "frozen"};
    _Static_assert(ARRAY_SIZE(names) == CDACQ_GENERATION_COUNT, "a name for each");
    return (unsigned)generation < ARRAY_SIZE(names) ? names[generation] : "unknown";
}
