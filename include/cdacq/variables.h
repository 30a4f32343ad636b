/*
 * cdacq/variables.h: the arguments and locals of the frames of a stack, with their values. Names come from the metadata
 * and from a PDB, places from the runtime's debug info. Optimized code keeps few values: what it no longer holds has
 * none. Source: dotnet/runtime docs/design/datacontracts/DebugInfo.md; src/coreclr/inc/cordebuginfo.h.
 */
#ifndef CDACQ_VARIABLES_H
#define CDACQ_VARIABLES_H

#include <cdacq/object.h>
#include <cdacq/stack.h>

CDACQ_BEGIN_DECLS

/* What a variable is. */
enum cdacq_variable_kind {
    CDACQ_VARIABLE_THIS,
    CDACQ_VARIABLE_PARAMETER,
    CDACQ_VARIABLE_LOCAL,
    CDACQ_VARIABLE_CAPTURED, /* of the method as it was written, in a closure or a state machine */
};

/* Whether the value of a variable is known. */
enum cdacq_variable_state {
    CDACQ_VARIABLE_KNOWN,         /* `value` */
    CDACQ_VARIABLE_OPTIMIZED_OUT, /* the code does not hold it here, or holds it in a register that nobody saved */
    CDACQ_VARIABLE_UNKNOWN,       /* `problem` says why */
};

/*
 * A variable of a frame, for the time of a visit. The library sets `size`. The session owns the strings (struct
 * cdacq_method).
 */
struct cdacq_variable {
    size_t size;
    enum cdacq_variable_kind kind;
    enum cdacq_variable_state state;
    uint32_t number;                  /* of a parameter, from 0 without `this`; of a local, its slot; else 0 */
    const char *name;                 /* printable UTF-8; NULL: not known, as that of a local without a PDB */
    const char *type;                 /* as Type.ToString() gives it; NULL: not known */
    const char *problem;              /* one line; NULL unless the state is CDACQ_VARIABLE_UNKNOWN */
    const struct cdacq_value *value;  /* NULL: not known; in a register it has no address */
    const struct cdacq_value *target; /* of a by-ref that can be read: what it refers to; else NULL */
};

/*
 * Calls `visit` for `this`, the parameters and the locals of a frame, one that cdacq_session_visit_frames passed, while
 * its visit lasts; the variables that a closure or a state machine holds follow it, and are all of an async method that
 * waits. Locals are those in scope where the code runs, if there is a PDB, else all. A type parameter whose argument
 * shared code does not know has its own name. All are read before the first is passed on, and `visit` may use the
 * session. CDACQ_NOT_MANAGED: the frame has no variables that this build finds: native code, a stub, a dynamic method,
 * an async method that waits without a state machine, NativeAOT, code of another runtime than the session's.
 * CDACQ_STOPPED: `visit` returned non-zero. Fails with ARGUMENT, NOMEM, MEMORY, CORRUPT or FUEL.
 */
CDACQ_API enum cdacq_status
cdacq_session_visit_variables(struct cdacq_session *session, const struct cdacq_frame *frame,
                              int (*visit)(const struct cdacq_variable *variable, void *context), void *context,
                              struct cdacq_error *err);

/*
 * Where a variable of a method is at an address of its code, for the time of a visit. The library sets `size`. The
 * session owns the strings.
 */
struct cdacq_variable_place {
    size_t size;
    enum cdacq_variable_kind kind; /* never CDACQ_VARIABLE_CAPTURED */
    uint32_t number;               /* these three as in struct cdacq_variable */
    const char *name;
    const char *type;
    const char *location; /* "rdi", "rbp-0x18", "rax:rdx" (two parts), "[rdi]" (its address is there); NULL: not here */
    const char *problem;  /* one line: why that is not known; NULL: it is */
};

/*
 * Calls `visit` for `this`, the parameters and the locals of the method at `ip`, in the order of
 * cdacq_session_visit_variables. Values need a frame, places do not: the answer is the runtime's debug info. All are
 * read before the first is passed on, and `visit` may use the session. CDACQ_NOT_MANAGED: no method with variables that
 * this build finds is there. CDACQ_STOPPED: `visit` returned non-zero. Fails with ARGUMENT, NOMEM, MEMORY, CORRUPT,
 * CHANGED or FUEL.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_variable_places(struct cdacq_session *session, uint64_t ip,
                                                                int (*visit)(const struct cdacq_variable_place *place,
                                                                             void *context),
                                                                void *context, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
