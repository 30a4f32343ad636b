/*
 * attributes.h: the custom attributes that names depend on. In most names, what cannot be read counts as absent, since
 * such an attribute only adds to a name; the source hears of it.
 */
#ifndef CDACQ_FORMATS_NAMES_ATTRIBUTES_H
#define CDACQ_FORMATS_NAMES_ATTRIBUTES_H

#include "formats/names/namer.h"

/* A search for the attributes of a MethodDef, TypeDef or Param that are of one of several types. */
struct attribute_search {
    const struct metadata *metadata;
    uint32_t parent; /* the token of the MethodDef, TypeDef or Param */
    const char *namespace_name;
    const char *const *names; /* of the types; NULL ends them */
    uint32_t rid;             /* of the attribute that was found last; 0: before the first, and after the last */
    uint32_t value;           /* its blob */
};

/* Finds the next one. At the end, `rid` becomes 0. */
enum cdacq_status attribute_next(struct namer *n, struct attribute_search *search);

/* The same. False at the end, and if an attribute cannot be read. */
bool namer_next_attribute(struct namer *n, struct attribute_search *search);

/* Whether there is such an attribute. */
bool namer_has_attribute(struct namer *n, const struct metadata *m, uint32_t parent, const char *namespace_name,
                         const char *name);

/* The one fixed argument of an attribute, a string. False, and nothing is written, if it has another form. */
bool namer_attribute_string(struct namer *n, const struct metadata *m, uint32_t value, char ret[METADATA_STRING_CAP],
                            size_t *ret_length);

#endif
