/*
 * value.h: values as they are stored in fields and in elements of arrays, and the text of those that have one: numbers,
 * enums, Guid, DateTime and other types of the core library, as their ToString() gives it for the invariant culture.
 * Source: ECMA-335 I.12.1; dotnet/runtime src/libraries/System.Private.CoreLib/src/System/{DateTime,Decimal,Enum,Guid,
 * TimeSpan}.cs.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_VALUE_H
#define CDACQ_CONTRACTS_OBJECTS_VALUE_H

#include "cdacq/object.h"
#include "contracts/objects/field.h"
#include "contracts/objects/object.h"

/*
 * Reads the value of an instance field; `base` is the address of the first field of the object or struct. The reader
 * fails if it cannot be read: what is known of the value is then still set.
 */
void field_value_read(struct module_cache *cache, const struct object_field *field, uint64_t base,
                      struct cdacq_value *ret);

/* The same for an element of an array that has it. Fails with CORRUPT if its type has another width. */
void element_value_read(struct module_cache *cache, const struct object_array *array, uint64_t index,
                        struct cdacq_value *ret);

/* The value in a box: an object of a value type. False: the object is none, or the reader fails. */
bool boxed_value_read(struct module_cache *cache, uint64_t object, struct cdacq_value *ret);

/*
 * The element type by which a value of a loaded type is read: that of a primitive type or of an enum's number,
 * ELEMENT_VALUETYPE for other structs, ELEMENT_CLASS for references, ELEMENT_PTR for pointers.
 */
uint8_t type_handle_element(struct module_cache *cache, uint64_t type);

/* A value of such an element type in memory; `type` is that of a struct or an enum, or 0. Fails as field_value_read. */
void typed_value_read(struct module_cache *cache, uint8_t element, uint64_t type, uint64_t address,
                      struct cdacq_value *ret);

/* The same in the lowest bytes of a register: it has no address. The bits of a struct are those of its fields. */
void typed_value_of_bits(struct module_cache *cache, uint8_t element, uint64_t type, uint64_t bits,
                         struct cdacq_value *ret);

/* The value of an instance field of a struct without an address. */
void field_value_of_bits(struct module_cache *cache, const struct object_field *field, uint64_t bits,
                         struct cdacq_value *ret);

/* The bytes of a struct's fields, perhaps with padding after them. 0 if the reader fails. */
uint64_t struct_size(struct reader *reader, uint64_t method_table);

/* Whether a MethodTable is of a struct, an enum or a primitive type. */
bool method_table_is_value(struct reader *reader, uint64_t method_table);

/*
 * The value in a System.Nullable<T>, whose kind is that of a struct. False: `value` is none, or the reader fails.
 * *ret_has_value is false for null.
 */
bool nullable_value_read(struct module_cache *cache, const struct cdacq_value *value, bool *ret_has_value,
                         struct cdacq_value *ret);

/* Appends the text of a value. False: it has none, or the reader fails. */
bool value_text(struct module_cache *cache, const struct cdacq_value *value, struct text *ret);

#endif
