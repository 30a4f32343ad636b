/*
 * type_walk.h: the structure of a type, from a feeder to a spelling. A feeder decodes types from signatures
 * (type_signature) or from type handles (contracts/type_system/type_handle.c) and reports their elements to the
 * functions below, which write them in the spelling of the namer's `types`.
 *
 * A feeder calls type_enter before each type and type_leave after it. A composed type is reported around its element
 * type: type_before, the element, type_after; an array after its element.
 */
#ifndef CDACQ_FORMATS_NAMES_TYPE_WALK_H
#define CDACQ_FORMATS_NAMES_TYPE_WALK_H

#include "formats/names/namer.h"
#include "formats/names/signature.h"
#include "formats/names/spelling.h"

/* One type deeper. */
static inline bool type_enter(struct namer *n)
{
    if ((UNLIKELY(n->depth >= NAME_DEPTH_FREE) && !namer_has_stack(n)) || !namer_spend(n, 1))
        return namer_fail(n, CDACQ_ERR_FUEL);
    n->depth++;
    return true;
}

static inline void type_leave(struct namer *n)
{
    n->depth--;
}

/* A primitive type. False, and nothing is written, if the spelling has no word for that element type. */
bool type_primitive(struct namer *n, uint8_t element);

/* The word for a primitive type of the namespace System; NULL if it is none. */
const char *type_primitive_word(const char *name, size_t length, enum primitive_column column);

/* The element type of a TypeDef that has the name of a primitive type; 0 for others. */
uint8_t type_primitive_named(struct namer *n, const struct metadata *m, uint32_t token);

/* A TypeDef or TypeRef. */
struct named_type {
    const struct metadata *metadata;
    uint32_t token;
    uint64_t handle; /* in the signature instead of the token, or 0 */
};

/* The arguments of a generic type or method; `put` feeds argument `number`. */
struct type_arguments {
    uint32_t left, number;
    void (*put)(struct namer *n, const struct type_arguments *arguments);
    const struct type_level *level; /* that takes the argument; only if a spelling has `named_takes_arguments` */
    void *context;
};

/* The next argument; all that are left, as a list. */
void type_argument(struct namer *n, struct type_arguments *arguments);
void type_argument_list(struct namer *n, struct type_arguments *arguments);

/* An instance of a generic type. */
void type_instance(struct namer *n, const struct named_type *type, struct type_arguments *arguments);

/* A TypeDef with its formal parameters, if the spelling shows them. Returns these. */
struct formals type_definition(struct namer *n, const struct metadata *m, uint32_t token);

/* ELEMENT_PTR or ELEMENT_BYREF; others are ignored. */
void type_before(struct namer *n, uint8_t element);
void type_after(struct namer *n, uint8_t element);

struct array_shape {
    uint32_t rank, size_count, bound_count;
    int64_t sizes[SIGNATURE_RANK_CAP], bounds[SIGNATURE_RANK_CAP];
};

/* NULL: a vector. */
void type_array(struct namer *n, const struct array_shape *shape);

/* A type parameter: its argument in the namer's instance, or its name. */
void type_variable(struct namer *n, bool of_method, uint32_t number);
void type_variable_argument(struct namer *n, const struct name_instance *instance, bool of_method, uint32_t number);

/*
 * Writes the formal parameter in place of an argument that has failed, if the spelling does so; the argument began at
 * `begin` of the text. Returns whether it did: then the failure is gone.
 */
bool type_formal_instead(struct namer *n, size_t begin);

/* An ELEMENT_VAR, _MVAR or _FNPTR that a feeder cannot resolve further. */
void type_unknown(struct namer *n, uint8_t element);

/* ---- The feeder of signatures ---- */

/* The type at the cursor, with tokens of `m`. */
void type_signature(struct namer *n, struct signature *s, const struct metadata *m);

/* The same if the tokens of generic arguments are also those of `m`, not of the namer's `outer`. */
void type_signature_alone(struct namer *n, struct signature *s, const struct metadata *m);

/* What a method returns that has the type at the cursor in its signature. */
void type_result(struct namer *n, struct signature *s, const struct metadata *m, enum name_result result);

/* A TypeSpec. */
void type_spec(struct namer *n, const struct metadata *m, uint32_t token);

/* The parameters at the cursor of a method signature. */
struct parameter_style;
void type_parameters(struct namer *n, struct signature *s, const struct metadata *m,
                     const struct signature_header *header, const struct parameter_style *style);

#endif
