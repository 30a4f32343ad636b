/*
 * runtime_forms.h: the parts of names_runtime.c: types that stand by themselves (runtime_forms.c) and the signatures of
 * the two spellings (runtime_il.c, runtime_sos.c). Internal to them.
 */
#ifndef CDACQ_FORMATS_RUNTIME_FORMS_H
#define CDACQ_FORMATS_RUNTIME_FORMS_H

#include "cdacq/target.h"
#include "formats/namer.h"
#include "formats/names_runtime.h"

/* The name in the making, and what only these forms need. */
struct runtime_namer {
    struct namer n;
    enum cdacq_name_style style;
    const struct name_instance *instance; /* NULL: none */
};

struct runtime_namer runtime_begin(const struct name_source *source, enum cdacq_name_style style,
                                   const struct name_instance *instance, struct text *text);

/* One type deeper; whoever enters leaves by n->depth--. */
static inline bool runtime_enter(struct namer *n)
{
    if (n->depth == NAME_DEPTH_CAP || !namer_spend(n, 1))
        return namer_fail(n, CDACQ_ERR_FUEL);
    n->depth++;
    return true;
}

/* A cursor over a blob of metadata, of which `blob` keeps a copy. */
struct signature runtime_read_blob(struct namer *n, const struct metadata *m, uint32_t index,
                                   struct metadata_blob *blob);

/* Takes the modifiers that a form leaves out. */
void runtime_skip_modifiers(struct namer *n, struct signature *s);

/* A namespace, where there is one, and a dot; `put` appends its string. */
void runtime_put_namespace(struct namer *n, const struct metadata *m, uint32_t index,
                           void (*put)(struct namer *n, const struct metadata *m, uint32_t index));

/* Where a type is from: the name of an assembly. No metadata: the core library. */
struct origin {
    const struct metadata *metadata;
    uint32_t name;
};

/* Where a type with that scope (0: a TypeDef) is from. */
struct origin runtime_origin_of(struct namer *n, const struct metadata *m, uint32_t scope);
void runtime_put_origin(struct namer *n, struct origin origin);

/* A TypeDef or TypeRef as a type that stands by itself, and the type at a cursor with its arguments. */
struct origin runtime_put_named_type(struct namer *n, const struct metadata *m, uint32_t token);
struct origin runtime_put_type_alone(struct runtime_namer *w, struct signature *s, const struct metadata *m);

/* What the row of a TypeDef or TypeRef says. */
void runtime_put_row(struct namer *n, const struct metadata *m, uint32_t token, bool with_namespace);

/* The name that a primitive type has in the core library's namespace System; NULL for other elements. */
const char *runtime_core_type(uint8_t element);

/* The type handle at the cursor: where it points, and what it means. */
bool runtime_read_handle(struct namer *n, struct signature *s, const struct metadata **ret_metadata,
                         uint32_t *ret_token, uint64_t *ret_handle);

/* `instance vararg void `, and `(int32,...)`, of the signature whose head was taken. */
void il_signature_head(struct namer *n, struct signature *s, const struct metadata *m,
                       const struct signature_header *header);
void il_parameters(struct namer *n, struct signature *s, const struct metadata *m, uint32_t count);

/* A type, and `(Int32, ...)`, with the arguments of the namer's instance. */
void sos_type(struct runtime_namer *w, struct signature *s, const struct metadata *m);
void sos_parameters(struct runtime_namer *w, struct signature *s, const struct metadata *m,
                    const struct signature_header *header);

#endif
