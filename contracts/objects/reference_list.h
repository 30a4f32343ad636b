/*
 * reference_list.h: the elements of arrays and of List<T>, if they are references. A list uses the first elements of an
 * array.
 * Source: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Collections/Generic/List.cs.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_REFERENCE_LIST_H
#define CDACQ_CONTRACTS_OBJECTS_REFERENCE_LIST_H

#include "contracts/module_cache.h"
#include "contracts/objects/object.h"

/* False if the object is no array of references, or if the reader fails. */
bool reference_array_read(struct reader *reader, uint64_t object, struct object_array *ret);

/* The same for an array or a System.Collections.Generic.List<T>, not a type that is derived from it. */
bool reference_list_read(struct module_cache *cache, uint64_t object, struct object_array *ret);

#endif
