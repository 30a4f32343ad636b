/*
 * field_type.h: the type of a field: its name, and the MethodTable of a value type. The field's signature names the
 * type by tokens of its module and by type parameters; the owner's own arguments replace these. Tokens lead to
 * MethodTables through the maps of the module. Instances of generic types are in a table of the module that loaded
 * them: the table is searched, as its hashes are those of names.
 * Source: dotnet/runtime docs/design/datacontracts/{Loader,RuntimeTypeSystem}.md; src/coreclr/vm/dacenumerablehash.h.
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
