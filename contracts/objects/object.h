/*
 * object.h: the Object contract: the method table of an object, its size, and arrays. Objects are not trusted: a
 * corrupt heap has any bytes.
 * Source: dotnet/runtime docs/design/datacontracts/Object.md; src/coreclr/vm/object.h.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_OBJECT_H
#define CDACQ_CONTRACTS_OBJECTS_OBJECT_H

#include "descriptors/fields.h"

enum { ARRAY_RANK_MAX = 32 };

/* Without the bits that the garbage collector sets. 0, and the reader fails, if it cannot be read or is 0. */
uint64_t object_method_table(struct reader *reader, uint64_t object);

/* The bytes of an instance, with its header and, for arrays and strings, its elements. 0 if the reader fails. */
uint64_t object_size(struct reader *reader, uint64_t object);

/*
 * Whether there is an object, as far as its MethodTable tells: the class that it leads to leads back to it. False if
 * the reader fails.
 */
bool object_is_plausible(struct reader *reader, uint64_t object);

/* Whether a MethodTable is that of an array. False if the reader fails. */
bool method_table_is_array(struct reader *reader, uint64_t method_table);

/* Whether it is that of System.String, by its form. False likewise. */
bool method_table_is_string(struct reader *reader, uint64_t method_table);

struct object_array {
    uint32_t count; /* of elements, in all dimensions */
    uint32_t rank;
    uint32_t element_size;
    uint64_t element_type; /* a type handle */
    uint64_t elements;     /* the address of the first */
    uint32_t lengths[ARRAY_RANK_MAX];
    int32_t lower_bounds[ARRAY_RANK_MAX];
};

/* False if the object is no array, or if the reader fails. */
bool object_array_read(struct reader *reader, uint64_t object, struct object_array *ret);

#endif
