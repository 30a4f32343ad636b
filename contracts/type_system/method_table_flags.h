/*
 * method_table_flags.h: what MethodTable.MTFlags of CoreCLR says of a type, and the tag of a TypeHandle.
 * Source: src/coreclr/vm/methodtable.h, enum WFLAGS_HIGH_ENUM; dotnet/runtime
 * docs/design/datacontracts/RuntimeTypeSystem.md.
 */
#ifndef CDACQ_CONTRACTS_TYPE_SYSTEM_METHOD_TABLE_FLAGS_H
#define CDACQ_CONTRACTS_TYPE_SYSTEM_METHOD_TABLE_FLAGS_H

#include "descriptors/fields.h"

enum {
    TYPE_DESC_TAG = 2, /* of a handle: a pointer or another type without a MethodTable */
    MT_COMPONENT_SIZE_MASK = 0xffff,
    MT_CATEGORY_MASK = 0xf0000,
    MT_CATEGORY_NULLABLE = 0x50000,
    MT_CATEGORY_ENUM = 0x60000,
    MT_CATEGORY_ARRAY = 0x80000, /* multi-dimensional, or one-dimensional with a lower bound */
    MT_CATEGORY_SZARRAY = 0xa0000,
    MT_VALUE_MASK = 0xc0000, /* the bits of the category that tell value types from others */
    MT_VALUE = 0x40000,      /* a struct, an enum or a primitive type */
};

#define MT_HAS_COMPONENT_SIZE  UINT32_C(0x80000000)
#define MT_CONTAINS_REFERENCES UINT32_C(0x1000000) /* a GCDesc is in front of it */
#define MT_COLLECTIBLE         UINT32_C(0x200000)
#define MT_COLLECTIBLE_NET8    UINT32_C(0x10000000)

/* Whether a type can be unloaded. False if the reader fails. */
static inline bool method_table_is_collectible(struct reader *reader, uint64_t method_table)
{
    uint64_t flags = read_field(reader, method_table, F_MethodTable_MTFlags);
    return flags & (has_field(reader, F_MethodTable_AuxiliaryData) ? MT_COLLECTIBLE : MT_COLLECTIBLE_NET8);
}

#endif
