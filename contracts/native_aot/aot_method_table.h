/*
 * aot_method_table.h: the MethodTable of NativeAOT: what kind of type it is of, and what that is made from. The lists
 * of virtual methods and interfaces follow its head, and after them 32-bit distances to what the flags say there is.
 * Source: dotnet/runtime src/coreclr/nativeaot/Runtime/inc/MethodTable.h;
 * src/coreclr/nativeaot/Runtime.Base/src/System/Runtime/MethodTable.cs.
 */
#ifndef CDACQ_CONTRACTS_NATIVE_AOT_AOT_METHOD_TABLE_H
#define CDACQ_CONTRACTS_NATIVE_AOT_AOT_METHOD_TABLE_H

#include "descriptors/fields.h"

enum aot_type_kind {
    AOT_PLAIN_TYPE,
    AOT_GENERIC_INSTANCE,
    AOT_ARRAY, /* multi-dimensional, or with a lower bound */
    AOT_VECTOR,
    AOT_REFERENCE,
    AOT_POINTER,
    AOT_FUNCTION_POINTER,
    AOT_DYNAMIC_TYPE, /* made at run time: its parts are not read */
};

/* AOT_PLAIN_TYPE, too, if the reader fails. */
enum aot_type_kind aot_type_kind(struct reader *reader, uint64_t method_table);

enum { AOT_TYPE_ARGUMENTS_MAX = 256 };

/* An instance of a generic type. */
struct aot_instance {
    uint64_t definition; /* MethodTable of the generic type */
    uint64_t arguments;  /* address of the distances to those of the arguments */
    uint32_t count;
};

/* False, and the reader fails, if it cannot be read or is corrupt. */
bool aot_instance_read(struct reader *reader, uint64_t method_table, struct aot_instance *ret);

/* The MethodTable of an argument. */
uint64_t aot_instance_argument(struct reader *reader, const struct aot_instance *instance, uint32_t index);

#endif
