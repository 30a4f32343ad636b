/*
 * attributes.h: the custom attributes that names depend on. What cannot be read counts as absent: an attribute only
 * adds to a name.
 */
#ifndef CDACQ_FORMATS_NAMES_ATTRIBUTES_H
#define CDACQ_FORMATS_NAMES_ATTRIBUTES_H

#include "formats/names/namer.h"

/* Whether a TypeDef or TypeRef has that name. A type whose name cannot be read has not. */
bool type_is_named(const struct metadata *m, uint32_t token, const char *namespace_name, const char *name);

/*
 * Finds an attribute of a MethodDef, TypeDef or Param by its type; *rid is 0 or that of the attribute before. Of
 * `names`, which NULL ends, any will do. *ret_value is the blob.
 */
bool namer_next_attribute(struct namer *n, const struct metadata *m, uint32_t parent, const char *namespace_name,
                          const char *const *names, uint32_t *rid, uint32_t *ret_value);

/* Whether there is such an attribute. */
bool namer_has_attribute(struct namer *n, const struct metadata *m, uint32_t parent, const char *namespace_name,
                         const char *name);

/* The one fixed argument of an attribute, a string. False, and nothing is written, if it has another form. */
bool namer_attribute_string(struct namer *n, const struct metadata *m, uint32_t value, char ret[METADATA_STRING_CAP],
                            size_t *ret_length);

#endif
