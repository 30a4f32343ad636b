/*
 * static_field.h: the fields of types that exist once. The runtime keeps the references of a type apart from the other
 * values. Since .NET 9, it has both places in front of the auxiliary data of each type; in .NET 8, all types of a
 * module share them (DomainLocalModule). In .NET 8, of generic types only the references are found, and of types of
 * collectible assemblies nothing.
 * Source: dotnet/runtime docs/design/datacontracts/RuntimeTypeSystem.md; src/coreclr/vm/{methodtable,appdomain}.h.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_STATIC_FIELD_H
#define CDACQ_CONTRACTS_OBJECTS_STATIC_FIELD_H

#include "contracts/objects/field.h"

struct static_field {
    uint64_t address;
    uint8_t element;     /* enum element_type; ELEMENT_CLASS for every reference */
    bool is_initialized; /* the static constructor of the type has run. False also if that is not known, as in .NET 8 */
};

/*
 * A static field that `method_table` itself declares. False if there is none or it has no place yet, or if the reader
 * fails, as it does where the runtime does not describe such fields.
 */
bool static_field_find(struct module_cache *cache, uint64_t method_table, const char *name, struct static_field *ret);

/* The same for a field that is known to be one of `method_table`, no thread static. */
bool static_field_place(struct reader *reader, const struct object_field *field, struct static_field *ret);

/* The value of a static reference, 0 if it is null. False likewise. */
bool static_reference(struct module_cache *cache, uint64_t method_table, const char *name, uint64_t *ret);

#endif
