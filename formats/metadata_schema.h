/*
 * metadata_schema.h: the columns of the metadata tables: what each holds and how wide it is. Source: ECMA-335 II.22,
 * II.24.2.6; dotnet/runtime docs/design/specs/PortablePdb-Metadata.md.
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

/* Columns that are read by themselves, by position. */
enum {
    TYPE_DEF_FIELD_LIST = 4,
    TYPE_DEF_METHOD_LIST = 5,
    METHOD_DEF_PARAM_LIST = 5,
    METHOD_PTR_METHOD = 0,
    PARAM_SEQUENCE = 1,
    INTERFACE_IMPL_CLASS = 0,
    EVENT_MAP_PARENT = 0,
    EVENT_MAP_EVENT_LIST = 1,
    EVENT_NAME = 1,
    CONSTANT_PARENT = 1,
    CONSTANT_VALUE = 2,
    CUSTOM_ATTRIBUTE_PARENT = 0,
    METHOD_IMPL_CLASS = 0,
    ASSEMBLY_NAME = 7,
    NESTED_CLASS_NESTED = 0,
    NESTED_CLASS_ENCLOSING = 1,
    GENERIC_PARAM_NUMBER = 0,
    GENERIC_PARAM_OWNER = 2,
    LOCAL_SCOPE_METHOD = 0,
    CUSTOM_DEBUG_PARENT = 0,
};

/* The rows of the type system that a portable PDB refers to, by table; its own tables lack them. */
struct metadata_referenced_rows {
    uint32_t rows[METADATA_TABLE_COUNT];
};

/*
 * Computes the columns of every table from the row counts, or from the referenced ones if these are greater.
 * `heap_sizes` holds enum heap_size_flags; in `minimal` metadata every index is wide.
 */
void metadata_lay_out_columns(struct metadata *metadata, const struct metadata_referenced_rows *referenced,
                              uint8_t heap_sizes, bool minimal);

/* Turns the value of a cell that is a coded index into a token. False if its tag means no table. */
bool metadata_resolve_cell(enum metadata_table table, unsigned column, uint32_t *value);

/* The reverse: how a coded index stores a token. False if the column cannot refer to that table. */
bool metadata_encode_cell(enum metadata_table table, unsigned column, uint32_t token, uint32_t *ret);

#endif
