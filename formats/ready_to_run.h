/*
 * ready_to_run.h: the header of a ReadyToRun image: READYTORUN_HEADER, followed by a table of sections; the shorter
 * READYTORUN_CORE_HEADER that each component of a composite image has; and the rows of READYTORUN_IMPORT_SECTIONS. They
 * are read word by word, so that a snapshot of a target needs to contain only these words.
 * Source: dotnet/runtime docs/design/coreclr/botr/readytorun-format.md; src/coreclr/inc/readytorun.h.
 */
#ifndef CDACQ_FORMATS_READY_TO_RUN_H
#define CDACQ_FORMATS_READY_TO_RUN_H

#include "util/base.h"

enum {
    R2R_HEADER_SIZE = 16,
    R2R_SECTION_MAX = 256, /* of one header; images have some twenty */
};

enum r2r_section_type {
    R2R_IMPORT_SECTIONS = 101,
    R2R_RUNTIME_FUNCTIONS = 102,
    R2R_METHODDEF_ENTRYPOINTS = 103,
    R2R_EXCEPTION_INFO = 104,
    R2R_DEBUG_INFO = 105,
    R2R_INSTANCE_ENTRYPOINTS = 109,
    R2R_MANIFEST_METADATA = 112,
    R2R_COMPONENT_ASSEMBLIES = 115,
    R2R_MANIFEST_MVIDS = 118,
    R2R_HOT_COLD_MAP = 120,
};

/* The source of the words: a file or memory. */
struct r2r_source {
    uint32_t (*word)(void *context, uint64_t at); /* the word at `at`; 0 if it cannot be read */
    void *context;
    bool big_endian;
};

struct r2r_section_table {
    uint64_t at;
    uint32_t count;
};

struct r2r_header {
    uint16_t major, minor; /* of the format */
    struct r2r_section_table sections;
};

struct r2r_section {
    uint32_t rva, size;
};

/* The READYTORUN_HEADER at `at`. False if it does not begin with the signature. */
bool r2r_header_read(const struct r2r_source *source, uint64_t at, struct r2r_header *ret);

/* The sections of the READYTORUN_CORE_HEADER at `at`. */
struct r2r_section_table r2r_core_header_read(const struct r2r_source *source, uint64_t at);

/* The section of a type. False if the table has none, or an empty one. */
bool r2r_section_find(const struct r2r_source *source, const struct r2r_section_table *table,
                      enum r2r_section_type type, struct r2r_section *ret);

enum {
    R2R_IMPORT_SECTION_SIZE = 20,
    R2R_IMPORT_SECTION_TYPE_UNKNOWN = 0, /* it has cells of several kinds */

    /* The kind of a signature that the image's RVA of a resumption stub follows. Since version 17, as in .NET 11. */
    R2R_FIXUP_RESUMPTION_STUB_ENTRY_POINT = 0x38,
};

/* A READYTORUN_IMPORT_SECTION: cells that the runtime fills in before code uses them. */
struct r2r_import_section {
    uint32_t size; /* of all cells */
    uint8_t type, cell_size;
    uint32_t signatures; /* the RVA of an array: for each cell, the RVA of the signature of what it is for; 0: none */
};

struct r2r_import_section r2r_import_section_read(const struct r2r_source *source, uint64_t at);

#endif
