/*
 * field.h: the fields of an object, by name. The metadata gives a field's row; the runtime's FieldDesc for that row
 * gives its offset. FieldDescs are found by type and by its base types.
 * Source: dotnet/runtime docs/design/datacontracts/RuntimeTypeSystem.md; src/coreclr/vm/field.h.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_FIELD_H
#define CDACQ_CONTRACTS_OBJECTS_FIELD_H

#include "contracts/module_cache.h"
#include "util/text.h"
#include "util/vector.h"

enum { HIERARCHY_MAX = 128 }; /* base types that are searched */

struct object_field {
    uint64_t owner;  /* the MethodTable of the type that declares it */
    uint32_t token;  /* fielddef */
    uint32_t offset; /* of an instance field, from the first field of the object */
    uint8_t element; /* enum element_type; ELEMENT_CLASS for every reference */
    bool is_static;  /* its place depends on the runtime's version, and is not found here */
    bool is_thread_static;
    bool is_in_image; /* static data of the image (RVA) */
};

/*
 * Finds a field that the type or its nearest base type declares. False if there is none, or if the reader fails: a
 * runtime that does not describe FieldDescs fails with FIELD.
 */
bool object_field_find(struct module_cache *cache, uint64_t method_table, const char *name, struct object_field *ret);

/* The same for a field that `method_table` itself declares. */
bool object_field_declared(struct module_cache *cache, uint64_t method_table, const char *name,
                           struct object_field *ret);

DEFINE_VECTOR(object_fields, struct object_field);

/*
 * Appends all instance fields of a type, those of its base types first. False if they cannot be read: the reader fails,
 * or memory has run out.
 */
bool object_fields_read(struct module_cache *cache, uint64_t method_table, struct object_fields *ret);

/* Appends the static fields that a type itself declares. False likewise. */
bool object_statics_read(struct module_cache *cache, uint64_t method_table, struct object_fields *ret);

/* Appends the name of a field as its metadata has it, escaped. False: it cannot be read. */
bool object_field_name(struct module_cache *cache, const struct object_field *field, struct text *ret);

/* The address of an instance field. */
uint64_t object_field_address(const struct reader *reader, uint64_t object, const struct object_field *field);

/* The value of a reference field of that name, 0 if it is null. False if there is no such field, or on failure. */
bool object_reference(struct module_cache *cache, uint64_t object, const char *name, uint64_t *ret);

/*
 * The element type of a primitive type's values, boxed or in arrays; ELEMENT_STRING for String; 0 for any other type.
 */
uint8_t boxed_element(struct module_cache *cache, uint64_t method_table);

/* The width of a primitive type's values, 0 for any other. */
unsigned element_width(uint8_t element, unsigned pointer_size);

/* The MethodTable of the base type, 0 for System.Object. */
uint64_t method_table_parent(struct reader *reader, uint64_t method_table);

#endif
