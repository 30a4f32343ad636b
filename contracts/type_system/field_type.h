/*
 * field_type.h: the type of a field: its name, and the MethodTable of a value type. The owner's own arguments replace
 * the type parameters of the field's signature.
 */
#ifndef CDACQ_CONTRACTS_TYPE_SYSTEM_FIELD_TYPE_H
#define CDACQ_CONTRACTS_TYPE_SYSTEM_FIELD_TYPE_H

#include "contracts/module_cache.h"
#include "util/text.h"

/*
 * The MethodTable of a field's type if that is a value type and no primitive type that the signature names as such. 0
 * for any other type, and where it is not loaded or cannot be found. `owner` declares the field of the token.
 */
uint64_t field_type_find(struct module_cache *cache, uint64_t owner, uint32_t token);

/* Appends Type.ToString() of a field's type, printable. False: it is not known. */
bool field_type_name(struct module_cache *cache, uint64_t owner, uint32_t token, struct text *ret);

#endif
