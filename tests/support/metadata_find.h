/*
 * metadata_find.h: types and methods by name. Linear; the statuses and bounds of formats/metadata.h.
 */
#ifndef CDACQ_TESTS_SUPPORT_METADATA_FIND_H
#define CDACQ_TESTS_SUPPORT_METADATA_FIND_H

#include "formats/metadata.h"

/* The MethodDef that an element of a method list (metadata_methods) is. */
enum cdacq_status metadata_method_at(const struct metadata *metadata, uint32_t element, uint32_t *ret_method);

/*
 * The TypeDef of that namespace and name inside `enclosing` (0: not nested), and the method of a TypeDef of that name
 * and, unless `signature` is NULL, exactly that signature. The result is 0 if there is none.
 */
enum cdacq_status metadata_find_type(const struct metadata *metadata, const char *namespace_name, const char *name,
                                     uint32_t enclosing, uint32_t *ret_type);
enum cdacq_status metadata_find_method(const struct metadata *metadata, uint32_t type, const char *name,
                                       const void *signature, size_t signature_length, uint32_t *ret_method);

#endif
