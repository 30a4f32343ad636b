#include "contracts/execution_manager/stub_kinds.h"

/* The older numbering does not use 2. */
static const uint8_t kinds_10[] = {
    [0] = CDACQ_CODE_UNKNOWN,          [1] = CDACQ_CODE_JUMP_STUB,
    [3] = CDACQ_CODE_DYNAMIC_HELPER,   [4] = CDACQ_CODE_STUB_PRECODE,
    [5] = CDACQ_CODE_FIXUP_PRECODE,    [6] = CDACQ_CODE_VSD_DISPATCH_STUB,
    [7] = CDACQ_CODE_VSD_RESOLVE_STUB, [8] = CDACQ_CODE_VSD_LOOKUP_STUB,
    [9] = CDACQ_CODE_VSD_VTABLE_STUB,  [10] = CDACQ_CODE_CALL_COUNTING_STUB,
};
static const uint8_t kinds_11[] = {
    [0] = CDACQ_CODE_UNKNOWN,          [1] = CDACQ_CODE_JUMP_STUB,
    [2] = CDACQ_CODE_DYNAMIC_HELPER,   [3] = CDACQ_CODE_STUB_PRECODE,
    [4] = CDACQ_CODE_FIXUP_PRECODE,    [5] = CDACQ_CODE_VSD_DISPATCH_STUB,
    [6] = CDACQ_CODE_VSD_RESOLVE_STUB, [7] = CDACQ_CODE_VSD_LOOKUP_STUB,
    [8] = CDACQ_CODE_VSD_VTABLE_STUB,  [9] = CDACQ_CODE_CALL_COUNTING_STUB,
    [10] = CDACQ_CODE_WRAPPER_STUB,    [11] = CDACQ_CODE_SHUFFLE_THUNK,
};

const struct stub_kinds stub_kinds_10 = {kinds_10, ARRAY_SIZE(kinds_10)};
const struct stub_kinds stub_kinds_11 = {kinds_11, ARRAY_SIZE(kinds_11)};
