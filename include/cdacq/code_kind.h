/*
 * cdacq/code_kind.h: the kinds of code that a .NET process holds.
 */
#ifndef CDACQ_CODE_KIND_H
#define CDACQ_CODE_KIND_H

#include <cdacq/error.h>

CDACQ_BEGIN_DECLS

/* The kind of code at an address: name, value, text. Stub kinds are spelled as the runtime spells them. */
#define CDACQ_CODE_KINDS(X)                                 \
    X(UNKNOWN, 0, "Unknown")                                \
    X(JUMP_STUB, 1, "JumpStub")                             \
    X(DYNAMIC_HELPER, 2, "DynamicHelper")                   \
    X(STUB_PRECODE, 3, "StubPrecode")                       \
    X(FIXUP_PRECODE, 4, "FixupPrecode")                     \
    X(VSD_DISPATCH_STUB, 5, "VSD_DispatchStub")             \
    X(VSD_RESOLVE_STUB, 6, "VSD_ResolveStub")               \
    X(VSD_LOOKUP_STUB, 7, "VSD_LookupStub")                 \
    X(VSD_VTABLE_STUB, 8, "VSD_VTableStub")                 \
    X(CALL_COUNTING_STUB, 9, "CallCountingStub")            \
    X(METHOD_CALL_THUNK, 10, "MethodCallThunk")             \
    X(JITTED, 11, "jit")                                    \
    X(READY_TO_RUN, 12, "r2r")                              \
    X(INTERPRETER, 13, "interpreter")                       \
    X(WRAPPER_STUB, 14, "WrapperStub")                      \
    X(SHUFFLE_THUNK, 15, "ShuffleThunk")                    \
    X(THE_PRE_STUB, 16, "ThePreStub")                       \
    X(STUB_LINK_STUB, 17, "StubLinkStub")                   \
    X(COPIED_WRITE_BARRIERS, 18, "JIT_CopiedWriteBarriers") \
    X(NATIVE_AOT, 19, "aot")

enum cdacq_code_kind {
#define CDACQ_CODE_KIND_(name, value, text) CDACQ_CODE_##name = value,
    CDACQ_CODE_KINDS(CDACQ_CODE_KIND_)
#undef CDACQ_CODE_KIND_
        CDACQ_CODE_KIND_COUNT
};

/* "jit", "r2r", "interpreter", "aot", the runtime's name of a stub kind, or "Unknown" for any other number; static. */
CDACQ_API const char *cdacq_code_kind_text(enum cdacq_code_kind kind);

CDACQ_END_DECLS

#endif
