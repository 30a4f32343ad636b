/*
 * type_names.h: names of types by themselves, which the library writes only as parts of the names of methods. `types`
 * is how they are spelled.
 */
#ifndef CDACQ_TESTS_SUPPORT_TYPE_NAMES_H
#define CDACQ_TESTS_SUPPORT_TYPE_NAMES_H

#include "formats/names/spelling.h"
#include "formats/names/type_walk.h"

/* A TypeDef (with its formal parameters, where these are shown), TypeRef or TypeSpec. */
static inline enum cdacq_status name_type(const struct name_source *source, const struct type_spelling *types,
                                          uint32_t token, struct text *ret)
{
    struct namer n = namer_begin(source, types, ret);
    if (!source->metadata)
        namer_fail(&n, CDACQ_ERR_MODULE);
    else if (metadata_token_table(token) == METADATA_TYPE_DEF)
        type_definition(&n, source->metadata, token);
    else if (metadata_token_table(token) == METADATA_TYPE_SPEC && types->type_specs)
        type_spec(&n, source->metadata, token);
    else
        types->named(&n, &(struct named_type){.metadata = source->metadata, .token = token}, NULL);
    return namer_end(&n);
}

/* One type of a signature. *ret_length, which may be NULL, is how many bytes it took. */
static inline enum cdacq_status name_signature_type(const struct name_source *source, const struct type_spelling *types,
                                                    const void *signature, size_t length, struct text *ret,
                                                    size_t *ret_length)
{
    struct namer n = namer_begin(source, types, ret);
    struct signature s = signature_at(signature, length, source->pointer_size, source->big_endian);
    type_signature(&n, &s, source->metadata);
    enum cdacq_status status = namer_end(&n);
    if (status == CDACQ_OK && ret_length)
        *ret_length = (size_t)(s.at - (const uint8_t *)signature);
    return status;
}

#endif
