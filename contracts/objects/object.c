#include "contracts/objects/object.h"

#include "contracts/type_system/method_table_flags.h"

enum {
    BYTES_PER_DIMENSION = 8, /* a length and a lower bound */
    CANONICAL_TAG = 1,       /* of EEClassOrCanonMT */
};

/* The flags of a MethodTable, as far as they tell arrays and strings. */
struct method_table_form {
    enum layout_field flags, element; /* the fields of the flags, and of an array's element */
    uint32_t category;                /* the bits that tell what a type is */
    uint32_t array, vector;           /* an array that is multi-dimensional or has a lower bound; any other */
    uint32_t string_mask, string;
};

static const struct method_table_form coreclr_form = {
    .flags = F_MethodTable_MTFlags,
    .element = F_MethodTable_PerInstInfo,
    .category = MT_CATEGORY_MASK,
    .array = MT_CATEGORY_ARRAY,
    .vector = MT_CATEGORY_SZARRAY,
    /* The component size is 2, and the category not that of an array. */
    .string_mask = MT_CATEGORY_MASK | MT_COMPONENT_SIZE_MASK,
    .string = 2,
};

/* Source: src/coreclr/nativeaot/Runtime/inc/MethodTable.h, EETypeElementType. */
#define NATIVE_AOT_ELEMENT(type) (UINT32_C(type) << 26)

static const struct method_table_form native_aot_form = {
    .flags = F_MethodTable_Flags,
    .element = F_MethodTable_RelatedType,
    .category = NATIVE_AOT_ELEMENT(0x1f),
    .array = NATIVE_AOT_ELEMENT(0x17),
    .vector = NATIVE_AOT_ELEMENT(0x18),
    .string_mask = NATIVE_AOT_ELEMENT(0x1f) | MT_COMPONENT_SIZE_MASK,
    .string = NATIVE_AOT_ELEMENT(0x14) | 2,
};

static const struct method_table_form *form_of(const struct reader *reader)
{
    return has_field(reader, F_MethodTable_RelatedType) ? &native_aot_form : &coreclr_form;
}

static uint32_t flags_of(struct reader *reader, uint64_t method_table)
{
    return (uint32_t)read_field(reader, method_table, form_of(reader)->flags);
}

static bool is_array(const struct method_table_form *form, uint32_t flags)
{
    uint32_t category = flags & form->category;
    return flags & MT_HAS_COMPONENT_SIZE && (category == form->array || category == form->vector);
}

bool method_table_is_array(struct reader *reader, uint64_t method_table)
{
    uint32_t flags = flags_of(reader, method_table);
    return !reader_failed(reader) && is_array(form_of(reader), flags);
}

bool method_table_is_string(struct reader *reader, uint64_t method_table)
{
    const struct method_table_form *form = form_of(reader);
    uint32_t flags = flags_of(reader, method_table);
    return !reader_failed(reader) && (flags & form->string_mask) == form->string;
}

uint64_t object_method_table(struct reader *reader, uint64_t object)
{
    uint64_t unmask = reader->layout->globals[G_ObjectToMethodTableUnmask];
    uint64_t method_table = object ? read_field(reader, object, F_Object_m_pMethTab) & ~unmask : 0;
    if (!method_table)
        reader_fail(reader, CDACQ_ERR_CORRUPT, object, "Object.m_pMethTab");
    return method_table;
}

/* Whether the class of a MethodTable, or of that which it shares the class with, leads back to it. */
static bool has_class(struct reader *reader, uint64_t method_table)
{
    uint64_t class = read_field(reader, method_table, F_MethodTable_EEClassOrCanonMT);
    if (class & CANONICAL_TAG) {
        method_table = class & ~(uint64_t)CANONICAL_TAG;
        class = read_field(reader, method_table, F_MethodTable_EEClassOrCanonMT);
    }
    return class && !(class & CANONICAL_TAG) && read_field(reader, class, F_EEClass_MethodTable) == method_table;
}

bool object_is_plausible(struct reader *reader, uint64_t object)
{
    uint64_t method_table, pointer = reader->pointer_size;
    if (!object || object % pointer || (method_table = object_method_table(reader, object)) % pointer ||
        read_field(reader, method_table, F_MethodTable_BaseSize) < 2 * pointer)
        return false;
    bool plausible = !has_field(reader, F_EEClass_MethodTable) || has_class(reader, method_table);
    return plausible && !reader_failed(reader);
}

uint64_t object_size(struct reader *reader, uint64_t object)
{
    uint64_t method_table = object_method_table(reader, object);
    uint32_t flags = flags_of(reader, method_table);
    uint64_t size = read_field(reader, method_table, F_MethodTable_BaseSize);
    if (flags & MT_HAS_COMPONENT_SIZE)
        size += (flags & MT_COMPONENT_SIZE_MASK) * read_field(reader, object, F_Array_m_NumComponents);
    return reader_failed(reader) ? 0 : size;
}

/* The lengths of all dimensions, then their lower bounds. Fails if they contradict the number of elements. */
static void read_bounds(struct reader *reader, uint64_t bounds, struct object_array *array)
{
    uint64_t product = 1;
    for (uint32_t i = 0; i < array->rank; i++) {
        array->lengths[i] = read_u32(reader, bounds + 4 * (uint64_t)i);
        array->lower_bounds[i] = (int32_t)read_u32(reader, bounds + 4 * (uint64_t)(array->rank + i));
        product = product > UINT32_MAX ? product : product * array->lengths[i];
    }
    if (product != array->count)
        reader_fail(reader, CDACQ_ERR_CORRUPT, bounds, "the bounds of an array");
}

bool object_array_read(struct reader *reader, uint64_t object, struct object_array *ret)
{
    unsigned pointer = reader->pointer_size;
    uint64_t method_table = object_method_table(reader, object);
    const struct method_table_form *form = form_of(reader);
    uint32_t flags = flags_of(reader, method_table);
    if (reader_failed(reader) || !is_array(form, flags))
        return false;
    uint64_t base_size = read_field(reader, method_table, F_MethodTable_BaseSize);
    struct object_array array = {
        .count = (uint32_t)read_field(reader, object, F_Array_m_NumComponents),
        .rank = 1,
        .element_size = flags & MT_COMPONENT_SIZE_MASK,
        .element_type = read_field(reader, method_table, form->element),
        .elements = object + base_size - pointer, /* the size counts the header, which precedes the object */
    };
    if ((flags & form->category) == form->array) {
        uint64_t bounds = base_size - 3 * (uint64_t)pointer;
        array.rank = (uint32_t)(bounds / BYTES_PER_DIMENSION);
        if (base_size <= 3 * (uint64_t)pointer || bounds > ARRAY_RANK_MAX * BYTES_PER_DIMENSION || !array.rank)
            reader_fail(reader, CDACQ_ERR_CORRUPT, method_table, "MethodTable.BaseSize");
        else
            read_bounds(reader, object + 2 * (uint64_t)pointer, &array);
    } else {
        if (base_size != 3 * (uint64_t)pointer)
            reader_fail(reader, CDACQ_ERR_CORRUPT, method_table, "MethodTable.BaseSize");
        array.lengths[0] = array.count;
    }
    if (reader_failed(reader))
        return false;
    *ret = array;
    return true;
}
