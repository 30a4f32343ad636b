#include "contracts/unwind/unwinder.h"

const struct unwinder *unwinder_of(enum architecture architecture)
{
    static const struct unwinder *const rows[ARCHITECTURE_COUNT] = {
        [ARCHITECTURE_X64] = &unwinder_x64,
        [ARCHITECTURE_X86] = &unwinder_x86,
        [ARCHITECTURE_ARM] = &unwinder_arm,
        [ARCHITECTURE_ARM64] = &unwinder_arm64,
    };
    return (size_t)architecture < ARRAY_SIZE(rows) ? rows[architecture] : NULL;
}
