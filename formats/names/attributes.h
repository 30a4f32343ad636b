/*
 * attributes.h: the custom attributes that names depend on. In most names, what cannot be read counts as absent, since
 * such an attribute only adds to a name; the source is told.
 */
#ifndef CDACQ_FORMATS_NAMES_ATTRIBUTES_H
#define CDACQ_FORMATS_NAMES_ATTRIBUTES_H

#include "formats/names/namer.h"

/*
 * Finds an attribute of a MethodDef, TypeDef or Param by its type; *rid is 0 or that of the attribute before, and
 * becomes 0 at the end. Of `names`, which NULL ends, any will do. *ret_value is the blob.
 */
enum cdacq_status attribute_next(struct namer *n, const struct metadata *m, uint32_t parent, const char *namespace_name,
                                 const char *const *names, uint32_t *rid, uint32_t *ret_value);

/* The same. False at the end, and if an attribute cannot be read. */
bool namer_next_attribute(struct namer *n, const struct metadata *m, uint32_t parent, const char *namespace_name,
                          const char *const *names, uint32_t *rid, uint32_t *ret_value);

/* Whether there is such an attribute. */
bool namer_has_attribute(struct namer *n, const struct metadata *m, uint32_t parent, const char *namespace_name,
                         const char *name);

/* The one fixed argument of an attribute, a string. False, and nothing is written, if it has another form. */
bool namer_attribute_string(struct namer *n, const struct metadata *m, uint32_t value, char ret[METADATA_STRING_CAP],
                            size_t *ret_length);

#endif
