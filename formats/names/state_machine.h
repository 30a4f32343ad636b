/*
 * state_machine.h: which method a compiler's state machine was made from, and what else System.Diagnostics.StackTrace
 * asks of a method's metadata: whether it is hidden. Statuses are those of metadata.h; FUEL: there are more attributes
 * than a search reads.
 * Source: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Diagnostics/StackTrace.cs.
 */
#ifndef CDACQ_FORMATS_NAMES_STATE_MACHINE_H
#define CDACQ_FORMATS_NAMES_STATE_MACHINE_H

#include "formats/metadata.h"

/* Whether the runtime suspends the async method itself, without a state machine (MethodImplAttributes.Async). */
enum cdacq_status method_is_runtime_async(const struct metadata *metadata, uint32_t token, bool *ret);

/* Whether stack traces leave the method out, unless it is the last: StackTraceHidden or AggressiveInlining. */
enum cdacq_status method_is_hidden(const struct metadata *metadata, uint32_t token, bool *ret);

struct state_machine {
    uint32_t method; /* that the state machine was made from, or the given one */
    bool async;      /* the method belongs to the state machine of an async method */
    bool iterator;   /* `method` is an iterator: the name of the given one follows */
};

/* A method that belongs to no state machine is returned as it is. */
enum cdacq_status state_machine_resolve(const struct metadata *metadata, uint32_t token, struct state_machine *ret);

/*
 * Finds the method of TypeDef `outer` whose attribute names the state machine `type`, a type in it. *ret_method is its
 * rid, or 0. *ret_iterator: the attribute is one of iterators.
 */
enum cdacq_status state_machine_kickoff(const struct metadata *m, uint32_t outer, uint32_t type, uint32_t *ret_method,
                                        bool *ret_iterator);

/*
 * The method that the state machine `type` was made from: by its attribute or, as that of a lambda has none, by the
 * name that the compiler has put into the type's name. *ret_method is its rid, or 0.
 */
enum cdacq_status state_machine_method(const struct metadata *m, uint32_t type, uint32_t *ret_method);

/*
 * Parses the name of something that a compiler has made, `<INNER>KIND__REST`. Returns the kind, or 0. INNER has
 * *ret_inner characters; REST begins at *ret_rest.
 */
char compiler_name_parse(const char *name, size_t length, size_t *ret_inner, size_t *ret_rest);

#endif
