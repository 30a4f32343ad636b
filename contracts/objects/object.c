#include "contracts/objects/object.h"

enum {
    MT_CATEGORY_MASK = 0xf0000,
    MT_CATEGORY_ARRAY = 0x80000, /* multi-dimensional, or one-dimensional with a lower bound */
    MT_CATEGORY_SZARRAY = 0xa0000,
    MT_COMPONENT_SIZE_MASK = 0xffff,
    BYTES_PER_DIMENSION = 8, /* a length and a lower bound */
};

#define MT_HAS_COMPONENT_SIZE UINT32_C(0x80000000)

uint64_t object_method_table(struct field_reader *reader, uint64_t object)
{
    uint64_t unmask = reader->layout->globals[G_ObjectToMethodTableUnmask];
    uint64_t method_table = object ? read_field(reader, object, F_Object_m_pMethTab) & ~unmask : 0;
    if (!method_table)
        reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, object, "Object.m_pMethTab");
    return method_table;
}

uint64_t object_size(struct field_reader *reader, uint64_t object)
{
    uint64_t method_table = object_method_table(reader, object);
    uint32_t flags = (uint32_t)read_field(reader, method_table, F_MethodTable_MTFlags);
    uint64_t size = read_field(reader, method_table, F_MethodTable_BaseSize);
    if (flags & MT_HAS_COMPONENT_SIZE)
        size += (flags & MT_COMPONENT_SIZE_MASK) * read_field(reader, object, F_Array_m_NumComponents);
    return reader_failed(&reader->raw) ? 0 : size;
}

/* The lengths of all dimensions, then their lower bounds. Fails if they contradict the number of elements. */
static void read_bounds(struct field_reader *reader, uint64_t bounds, struct object_array *array)
{
    uint64_t product = 1;
    for (uint32_t i = 0; i < array->rank; i++) {
        array->lengths[i] = read_u32(&reader->raw, bounds + 4 * (uint64_t)i);
        array->lower_bounds[i] = (int32_t)read_u32(&reader->raw, bounds + 4 * (uint64_t)(array->rank + i));
        product = product > UINT32_MAX ? product : product * array->lengths[i];
    }
    if (product != array->count)
        reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, bounds, "the bounds of an array");
}

bool object_array_read(struct field_reader *reader, uint64_t object, struct object_array *ret)
{
    unsigned pointer = reader->raw.pointer_size;
    uint64_t method_table = object_method_table(reader, object);
    uint32_t flags = (uint32_t)read_field(reader, method_table, F_MethodTable_MTFlags);
    uint32_t category = flags & MT_CATEGORY_MASK;
    if (reader_failed(&reader->raw) || !(flags & MT_HAS_COMPONENT_SIZE) ||
        (category != MT_CATEGORY_ARRAY && category != MT_CATEGORY_SZARRAY))
        return false;
    uint64_t base_size = read_field(reader, method_table, F_MethodTable_BaseSize);
    struct object_array array = {
        .count = (uint32_t)read_field(reader, object, F_Array_m_NumComponents),
        .rank = 1,
        .element_size = flags & MT_COMPONENT_SIZE_MASK,
        .element_type = read_field(reader, method_table, F_MethodTable_PerInstInfo),
        .elements = object + base_size - pointer, /* the size counts the header, which precedes the object */
    };
    if (category == MT_CATEGORY_ARRAY) {
        uint64_t bounds = base_size - 3 * (uint64_t)pointer;
        array.rank = (uint32_t)(bounds / BYTES_PER_DIMENSION);
        if (base_size <= 3 * (uint64_t)pointer || bounds > ARRAY_RANK_MAX * BYTES_PER_DIMENSION || !array.rank)
            reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, method_table, "MethodTable.BaseSize");
        else
            read_bounds(reader, object + 2 * (uint64_t)pointer, &array);
    } else {
        if (base_size != 3 * (uint64_t)pointer)
            reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, method_table, "MethodTable.BaseSize");
        array.lengths[0] = array.count;
    }
    if (reader_failed(&reader->raw))
        return false;
    *ret = array;
    return true;
}
