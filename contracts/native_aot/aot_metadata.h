/*
 * aot_metadata.h: the metadata that ILC embeds in a NativeAOT program, for reflection and stack traces: records of
 * compressed integers, which handles lead to. Malformed metadata read as absent: a record is then not read, and a name
 * is not written.
 *
 * Names are written in two ways: as the runtime writes them in stack traces and as Type.ToString() does, and as C#
 * writes them. Pure functions of the section's bytes.
 * Source: dotnet/runtime src/coreclr/tools/Common/Internal/Metadata/NativeFormat;
 * src/coreclr/nativeaot/System.Private.StackTraceMetadata (MethodNameFormatter.cs).
 */
#ifndef CDACQ_CONTRACTS_NATIVE_AOT_AOT_METADATA_H
#define CDACQ_CONTRACTS_NATIVE_AOT_AOT_METADATA_H

#include "util/base.h"

struct native_section;
struct text;

/* The types of records that are read, in the format's own numbering. */
enum aot_handle_type {
    AOT_ARRAY_SIGNATURE = 1,
    AOT_BYREF_SIGNATURE = 2,
    AOT_STRING_ARRAY = 25,
    AOT_STRING = 26,
    AOT_FUNCTION_POINTER_SIGNATURE = 37,
    AOT_GENERIC_PARAMETER = 38,
    AOT_METHOD = 40,
    AOT_METHOD_SIGNATURE = 43,
    AOT_METHOD_VARIABLE = 44,
    AOT_MODIFIED_TYPE = 45,
    AOT_NAMESPACE_DEFINITION = 47,
    AOT_NAMESPACE_REFERENCE = 48,
    AOT_PARAMETER = 49,
    AOT_POINTER_SIGNATURE = 50,
    AOT_VECTOR_SIGNATURE = 55,
    AOT_SCOPE_DEFINITION = 56,
    AOT_SCOPE_REFERENCE = 57,
    AOT_TYPE_DEFINITION = 58,
    AOT_TYPE_INSTANCE = 60,
    AOT_TYPE_REFERENCE = 61,
    AOT_TYPE_SPECIFICATION = 62,
    AOT_TYPE_VARIABLE = 63,
};

/* A record: its type in the highest seven bits, its offset in the others. 0: none. */
typedef uint32_t aot_handle;

enum { AOT_HANDLE_OFFSET_BITS = 25 };

static inline aot_handle aot_handle_of(enum aot_handle_type type, uint32_t offset)
{
    return (uint32_t)type << AOT_HANDLE_OFFSET_BITS | (offset & ((1u << AOT_HANDLE_OFFSET_BITS) - 1));
}

static inline unsigned aot_handle_type(aot_handle handle)
{
    return handle >> AOT_HANDLE_OFFSET_BITS;
}

static inline uint32_t aot_handle_offset(aot_handle handle)
{
    return handle & ((1u << AOT_HANDLE_OFFSET_BITS) - 1);
}

/* A method, as far as the metadata have it. */
struct aot_method_name {
    aot_handle owner;           /* a type */
    aot_handle name, signature; /* AOT_STRING, AOT_METHOD_SIGNATURE */
    aot_handle arguments;       /* AOT_STRING_ARRAY: of a generic method; 0: none */
    aot_handle method;          /* AOT_METHOD: then the three before are not used */
};

enum aot_name_style {
    AOT_STACK_TRACE, /* Ns.Outer`1.M[T](String, List`1) */
    AOT_CSHARP,      /* Ns.Outer<T>.M<T>(string, System.Collections.Generic.List<int>) */
};

/* Appends a method's name, escaped. False, and nothing is appended, if the metadata are malformed. */
bool aot_put_method(const struct native_section *metadata, const struct aot_method_name *method,
                    enum aot_name_style style, struct text *ret);

/* Appends the name of a type as Type.ToString() writes it, without arguments: Ns.Outer`1+Inner. False likewise. */
bool aot_put_type(const struct native_section *metadata, aot_handle type, struct text *ret);

/* Appends the full name of the type that a method belongs to, with '+' before a nested type, and its own name. */
bool aot_put_owner(const struct native_section *metadata, const struct aot_method_name *method, struct text *ret_type,
                   struct text *ret_name);

/* Appends the simple name of the assembly that a type belongs to. False likewise. */
bool aot_put_assembly(const struct native_section *metadata, aot_handle type, struct text *ret);

/* Whether a method, or the type that declares it, has System.Diagnostics.StackTraceHiddenAttribute. */
bool aot_is_hidden(const struct native_section *metadata, const struct aot_method_name *method);

#endif
