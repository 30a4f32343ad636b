/*
 * aot_image.h: the image of a NativeAOT program: its managed code, and the tables that ILC puts beside it for
 * reflection and stack traces. The call-frame information of the image describes its code: each method is a function,
 * and so is each of its funclets, whose language-specific data lead to the method.
 *
 * An image belongs to a target. Its tables are read when they are first needed, and published by compare-exchange: two
 * threads may read them, and one copy is kept.
 * Source: dotnet/runtime src/coreclr/nativeaot/Runtime/unix/UnixNativeCodeManager.cpp (language-specific data),
 * src/coreclr/tools/Common/Internal/Runtime/{ReadyToRunConstants,MetadataBlob}.cs (sections),
 * src/coreclr/nativeaot/System.Private.StackTraceMetadata (the tables of methods),
 * src/coreclr/nativeaot/System.Private.TypeLoader (the table of types).
 */
#ifndef CDACQ_CONTRACTS_NATIVE_AOT_AOT_IMAGE_H
#define CDACQ_CONTRACTS_NATIVE_AOT_AOT_IMAGE_H

#include <stdatomic.h>

#include "contracts/native_aot/aot_metadata.h"
#include "util/base.h"

struct image;
struct native_section;
struct reader;

struct aot_tables;

struct aot_image {
    const struct image *image; /* NULL: not known */
    _Atomic(struct aot_tables *) tables;
};

void aot_image_deinit(struct aot_image *aot);

/* The addresses of the managed code. False, and the reader fails, if they cannot be read. */
bool aot_code_range(struct reader *reader, uint64_t *ret_begin, uint64_t *ret_end);

/* ---- Functions ---- */

enum aot_function_kind {
    AOT_BODY,    /* of a method */
    AOT_HANDLER, /* a funclet: a catch, finally or fault block */
    AOT_FILTER,
};

struct aot_function {
    uint64_t begin, end;
    uint64_t method; /* where its method begins */
    enum aot_function_kind kind;
};

/* The function that covers an address. False if there is none, or the reader fails. */
bool aot_function_at(const struct aot_image *aot, struct reader *reader, uint64_t address, struct aot_function *ret);

/* The end of the last function of the method that begins at `begin`; 0 if the reader fails. */
uint64_t aot_method_end(const struct aot_image *aot, struct reader *reader, uint64_t begin);

/* Calls `visit` for the functions that begin in [begin, end), ascending. False if the reader fails. */
bool aot_functions_each(const struct aot_image *aot, struct reader *reader, uint64_t begin, uint64_t end,
                        bool (*visit)(const struct aot_function *function, void *context), void *context);

/* How many functions the image has, about. */
size_t aot_function_count(const struct aot_image *aot, struct reader *reader);

/* ---- Names ---- */

/* A method that the tables name. */
struct aot_method {
    uint64_t begin; /* of its code */
    struct aot_method_name name;
    bool is_hidden; /* stack traces leave it out */
    bool has_name;
};

/* NULL, and the reader fails, if the tables cannot be read. The result lives as long as the image. */
const struct aot_tables *aot_tables_get(struct aot_image *aot, struct reader *reader);

const struct native_section *aot_metadata(const struct aot_tables *tables);

/* The method that begins at an address. NULL: the tables do not have it. */
const struct aot_method *aot_method_at(const struct aot_tables *tables, uint64_t begin);

/* The definition of the type of a MethodTable, AOT_TYPE_DEFINITION; 0: the tables do not have it. */
aot_handle aot_type_of(const struct aot_tables *tables, uint64_t method_table);

/* The MethodTable of the type with a full name, as aot_put_type() writes it; 0: the tables do not have it. */
uint64_t aot_type_named(const struct aot_tables *tables, const char *name);

#endif
