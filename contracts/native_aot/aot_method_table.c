#include "contracts/native_aot/aot_method_table.h"

enum {
    FLAG_HAS_DISPATCH_MAP = 0x40000,
    FLAG_IS_DYNAMIC = 0x80000,
    FLAG_HAS_FINALIZER = 0x100000,
    FLAG_HAS_SEALED_SLOTS = 0x400000,
    FLAG_IS_GENERIC = 0x2000000,
    ELEMENT_TYPE_SHIFT = 26,
    ELEMENT_TYPE_MASK = 0x1f,
    TYPE_ARRAY = 0x17,
    TYPE_VECTOR = 0x18,
    TYPE_REFERENCE = 0x19,
    TYPE_POINTER = 0x1a,
    TYPE_FUNCTION_POINTER = 0x1b,
    DISTANCE = 4, /* bytes of one */
};

enum aot_type_kind aot_type_kind(struct reader *reader, uint64_t method_table)
{
    uint32_t flags = (uint32_t)read_field(reader, method_table, F_MethodTable_Flags);
    if (reader_failed(reader))
        return AOT_PLAIN_TYPE;
    if (flags & FLAG_IS_DYNAMIC)
        return AOT_DYNAMIC_TYPE;
    switch (flags >> ELEMENT_TYPE_SHIFT & ELEMENT_TYPE_MASK) {
    case TYPE_ARRAY:
        return AOT_ARRAY;
    case TYPE_VECTOR:
        return AOT_VECTOR;
    case TYPE_REFERENCE:
        return AOT_REFERENCE;
    case TYPE_POINTER:
        return AOT_POINTER;
    case TYPE_FUNCTION_POINTER:
        return AOT_FUNCTION_POINTER;
    default:
        return flags & FLAG_IS_GENERIC ? AOT_GENERIC_INSTANCE : AOT_PLAIN_TYPE;
    }
}

/* The address that a distance leads to. */
static uint64_t follow(struct reader *reader, uint64_t at)
{
    return at + (uint64_t)(int32_t)read_u32(reader, at);
}

bool aot_instance_read(struct reader *reader, uint64_t method_table, struct aot_instance *ret)
{
    uint32_t flags = (uint32_t)read_field(reader, method_table, F_MethodTable_Flags);
    uint64_t at = field_address(reader, method_table, F_MethodTable_VTable);
    at += (read_field(reader, method_table, F_MethodTable_NumVtableSlots) +
           read_field(reader, method_table, F_MethodTable_NumInterfaces)) *
          reader->pointer_size;
    at += DISTANCE * (2 + !!(flags & FLAG_HAS_DISPATCH_MAP) + !!(flags & FLAG_HAS_FINALIZER) +
                      !!(flags & FLAG_HAS_SEALED_SLOTS)); /* the type's module and its writable data are always there */
    struct aot_instance instance = {.definition = follow(reader, at), .arguments = at + DISTANCE};
    instance.count = (uint32_t)read_field(reader, instance.definition, F_MethodTable_BaseSize) & UINT16_MAX;
    if (!reader_failed(reader) && (!instance.count || instance.count > AOT_TYPE_ARGUMENTS_MAX))
        reader_fail(reader, CDACQ_ERR_CORRUPT, instance.definition, "the arguments of a generic type");
    if (instance.count > 1) /* a single one takes the place of the distance to the list */
        instance.arguments = follow(reader, instance.arguments);
    if (reader_failed(reader))
        return false;
    *ret = instance;
    return true;
}

uint64_t aot_instance_argument(struct reader *reader, const struct aot_instance *instance, uint32_t index)
{
    return follow(reader, instance->arguments + (uint64_t)DISTANCE * index);
}
