/*
 * metadata_writer.h: writes small metadata blobs for tests, in the forms that compilers of today do not: uncompressed
 * tables with indirection, tables that are not sorted, wide columns, rows that contradict each other. It has its own
 * table of columns and shares nothing with the reader. Rows are given as numbers; see metadata_writer.c for the
 * columns.
 */
#ifndef CDACQ_TESTS_SUPPORT_METADATA_WRITER_H
#define CDACQ_TESTS_SUPPORT_METADATA_WRITER_H

#include "formats/metadata.h"

struct metadata_writer {
    bool uncompressed, minimal_delta, extra_data;
    uint8_t wide_heaps; /* 1 #Strings, 2 #GUID, 4 #Blob */
    uint64_t sorted;
    uint32_t claimed_rows[METADATA_TABLE_COUNT]; /* instead of the real number, where not 0 */
    struct metadata_writer_table {
        uint32_t *cells;
        uint32_t rows, capacity;
    } tables[METADATA_TABLE_COUNT];
    uint8_t *strings, *blobs;
    uint32_t strings_size, blobs_size;
};

void metadata_writer_init(struct metadata_writer *writer); /* with one Module row and the `<Module>` type */
void metadata_writer_deinit(struct metadata_writer *writer);

uint32_t metadata_writer_string(struct metadata_writer *writer, const char *string);
uint32_t metadata_writer_blob(struct metadata_writer *writer, const void *data, size_t size);

/* Appends a row of as many cells as the table has columns; returns its rid. */
uint32_t metadata_writer_row(struct metadata_writer *writer, enum metadata_table table, const uint32_t *cells);
#define METADATA_ROW(writer, table, ...) metadata_writer_row(writer, table, (const uint32_t[]){__VA_ARGS__})

/* The blob, to be freed. */
uint8_t *metadata_writer_finish(const struct metadata_writer *writer, size_t *ret_size);

/* Coded indexes. */
enum { CODED_TYPE_DEF = 0, CODED_TYPE_REF = 1, CODED_TYPE_SPEC = 2 }; /* TypeDefOrRef: 2 bits */
enum { CODED_MODULE = 0, CODED_MODULE_REF = 1, CODED_ASSEMBLY_REF = 2, CODED_SCOPE_TYPE_REF = 3 }; /* 2 bits */
enum {
    CODED_PARENT_TYPE_DEF,
    CODED_PARENT_TYPE_REF,
    CODED_PARENT_MODULE_REF,
    CODED_PARENT_METHOD_DEF,
    CODED_PARENT_TYPE_SPEC
}; /* MemberRefParent: 3 bits */

#endif
