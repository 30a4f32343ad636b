/*
 * metadata_schema.h: the columns of the metadata tables: what each holds, how wide it is, and which tables a coded
 * index chooses from. Source: ECMA-335 II.22, II.24.2.6.
 */
#ifndef CDACQ_FORMATS_METADATA_SCHEMA_H
#define CDACQ_FORMATS_METADATA_SCHEMA_H

#include "formats/metadata.h"

enum { METADATA_ROW_COUNT_CAP = 0xffffff }; /* what a token can address */

enum heap_size_flags {
    HEAP_STRINGS_WIDE = 0x01,
    HEAP_GUIDS_WIDE = 0x02,
    HEAP_BLOBS_WIDE = 0x04,
    HEAP_EXTRA_DATA = 0x40, /* four bytes between row counts and rows */
};

enum coded_index {
    TYPE_DEF_OR_REF,
    HAS_CONSTANT,
    HAS_CUSTOM_ATTRIBUTE,
    HAS_FIELD_MARSHAL,
    HAS_DECL_SECURITY,
    MEMBER_REF_PARENT,
    HAS_SEMANTICS,
    METHOD_DEF_OR_REF,
    MEMBER_FORWARDED,
    IMPLEMENTATION,
    CUSTOM_ATTRIBUTE_TYPE,
    RESOLUTION_SCOPE,
    TYPE_OR_METHOD_DEF,
};

/* Columns that are read, by position. */
enum {
    MODULE_NAME = 1,
    MODULE_MVID = 2,
    TYPE_REF_SCOPE = 0,
    TYPE_REF_NAME = 1,
    TYPE_REF_NAMESPACE = 2,
    TYPE_DEF_FLAGS = 0,
    TYPE_DEF_NAME = 1,
    TYPE_DEF_NAMESPACE = 2,
    TYPE_DEF_EXTENDS = 3,
    TYPE_DEF_METHOD_LIST = 5,
    METHOD_PTR_METHOD = 0,
    METHOD_DEF_RVA = 0,
    METHOD_DEF_IMPL_FLAGS = 1,
    METHOD_DEF_FLAGS = 2,
    METHOD_DEF_NAME = 3,
    METHOD_DEF_SIGNATURE = 4,
    MEMBER_REF_PARENT_COLUMN = 0,
    MEMBER_REF_NAME = 1,
    MEMBER_REF_SIGNATURE = 2,
    MODULE_REF_NAME = 0,
    TYPE_SPEC_SIGNATURE = 0,
    ASSEMBLY_NAME = 7,
    ASSEMBLY_REF_FLAGS = 4,
    ASSEMBLY_REF_NAME = 6,
    ASSEMBLY_REF_CULTURE = 7,
    NESTED_CLASS_NESTED = 0,
    NESTED_CLASS_ENCLOSING = 1,
    GENERIC_PARAM_NUMBER = 0,
    GENERIC_PARAM_FLAGS = 1,
    GENERIC_PARAM_OWNER = 2,
    GENERIC_PARAM_NAME = 3,
    METHOD_SPEC_METHOD = 0,
    METHOD_SPEC_INSTANTIATION = 1,
};

/*
 * Computes the columns of every table from the row counts, which are known by then. `heap_sizes` holds enum
 * heap_size_flags; in `minimal` metadata every index is wide.
 */
void metadata_lay_out_columns(struct metadata *metadata, uint8_t heap_sizes, bool minimal);

/* A coded index as a token; false where its tag means no table. */
bool metadata_decode(enum coded_index coded, uint32_t value, uint32_t *ret_token);

#endif
