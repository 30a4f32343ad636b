/*
 * method_name.h: from a code block to the name of its method, by the image's tables if they name it or by its
 * MethodDesc.
 */
#ifndef CDACQ_CONTRACTS_TYPE_SYSTEM_METHOD_NAME_H
#define CDACQ_CONTRACTS_TYPE_SYSTEM_METHOD_NAME_H

#include "cdacq/error.h"
#include "util/text.h"

struct code_block;
struct metadata;
struct module;
struct module_cache;
struct name_spelling;

struct method_name {
    struct text text;            /* empty if there is no name */
    uint32_t token;              /* methoddef; 0 if there is none or it is not known */
    const struct module *module; /* that declares it; NULL for dynamic methods, or if not known */
    bool unverified;             /* it rests on a file that nothing confirmed */
    struct cdacq_error error;    /* why there is no name */
    struct cdacq_error doubt;    /* why the name has formal parameters for type arguments */
};

struct method_namer {
    struct module_cache *cache;
    const struct name_spelling *spelling;
    const struct metadata *core; /* of the core library; only name_spelling_fatal needs it */
    bool runtime_types;          /* the target describes MethodDescs */
};

/* Fills `ret`, which must be zero, with whatever is known, even if there is no name. */
void method_name_form(const struct method_namer *namer, const struct code_block *block, struct method_name *ret);

/* The same for a MethodDesc, within the reader's current task. */
void method_name_of_desc(const struct method_namer *namer, uint64_t method_desc, struct method_name *ret);

/*
 * The same for the async method that a state machine of type `method_table` belongs to. In C#, it is the method that a
 * person wrote; in other spellings, it is the state machine's MoveNext, whose MethodDef is `token`.
 */
void method_name_of_state_machine(const struct method_namer *namer, uint64_t method_table, uint32_t token,
                                  struct method_name *ret);

#endif
