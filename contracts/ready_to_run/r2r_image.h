/*
 * r2r_image.h: a ReadyToRun image: its runtime functions, which of them start which methods, its hot/cold map and its
 * thunks. Opened once and kept.
 *
 * The runtime's map from entry points to MethodDescs holds only prepared methods, a few percent. Walking back to the
 * nearest entry in it, as specified, names a neighbour for all others. So the starts come from the image's tables,
 * METHODDEF_ENTRYPOINTS (103, a NativeArray by methoddef rid) and INSTANCE_ENTRYPOINTS (109, a hash table of
 * signatures), and, of the stubs that continue async methods, from the import sections (r2r_imports.h); only an image
 * that has neither table is walked.
 * Source: dotnet/runtime docs/design/coreclr/botr/readytorun-format.md; ExecutionManager.md, "ReadyToRunJitManager".
 */
#ifndef CDACQ_CONTRACTS_READY_TO_RUN_R2R_IMAGE_H
#define CDACQ_CONTRACTS_READY_TO_RUN_R2R_IMAGE_H

#include <stdatomic.h>

#include "formats/ready_to_run.h"
#include "contracts/code_info/unwind_info.h"
#include "contracts/code_lookup/hot_cold_map.h"
#include "contracts/code_lookup/range_section_map.h"
#include "contracts/ready_to_run/native_format.h"

/* How an image's tables name a method. */
enum method_entry_kind {
    ENTRY_NONE,            /* no table of the image names it */
    ENTRY_METHODDEF,       /* `entry` is a methoddef rid */
    ENTRY_INSTANCE,        /* `entry` is the offset of a signature in the instance entry points */
    ENTRY_COMPONENT,       /* of a composite image: `entry` is a methoddef rid of `component` */
    ENTRY_RESUMPTION_STUB, /* a stub that continues an async method; it has no metadata */
};

enum {
    R2R_FUNCTION_MAX = 8 * 1024 * 1024,        /* of one image: the framework as one image has some 400,000 */
    R2R_FUNCTION_TOTAL_MAX = 32 * 1024 * 1024, /* of all images of a target */
    R2R_COMPONENT_MAX = 4096,
};

/* An image's entry point tables, inverted: on first use, because that takes milliseconds for a large image. */
struct r2r_entries {
    uint32_t *methods;               /* by function: which method starts there; NULL if the image has no such tables */
    uint16_t *components;            /* by function: whose methoddef it is; NULL unless the image is composite */
    struct native_section instances; /* section 109: `entry` of an ENTRY_INSTANCE is an offset in it */
    bool instances_incomplete;       /* an entry of it could not be decoded */
    bool unverified;
    struct reader_failure failure; /* why they cannot be read; every look-up that needs them fails with it */
    struct window instances_window;
    struct window manifest; /* section 112: metadata whose AssemblyRefs are the components of a composite image */
    struct window mvids;    /* section 118: 16 bytes for each of them */
};

struct r2r_image {
    struct r2r_image *next;
    uint64_t module;    /* the Module that the range section names */
    uint64_t base, end; /* of the range section */
    uint64_t info;      /* ReadyToRunInfo */
    struct unwind_table functions;
    struct hot_cold_map hot_cold;
    uint32_t first_cold;
    struct r2r_section thunks;             /* of size 0 if there are none */
    uint64_t entry_point_map;              /* HashMap from entry point to MethodDesc */
    uint64_t header;                       /* READYTORUN_HEADER */
    unsigned gc_info_version;              /* 0 if not known */
    unsigned major_version;                /* of the image format; 0 if not known */
    bool has_resumption_stubs;             /* it may have stubs that continue async methods, which no table lists */
    _Atomic(struct r2r_entries *) entries; /* NULL until first use */
    bool unverified;
    struct reader_failure failure; /* why it cannot be read; every look-up in it fails with it */
    struct window hot_cold_window;
};

/* Reads the image of a range section. NULL, and the reader fails, only if memory runs out; see `failure`. */
struct r2r_image *r2r_image_open(struct reader *reader, const struct range_section *section);
void r2r_image_free(struct r2r_image *image);

/* The image's tables, read on first use. NULL, and the reader fails, if that cannot be done. */
const struct r2r_entries *r2r_image_entries(const struct r2r_image *image, struct reader *reader);

/* The index of a runtime function by its address. The caller checks that the image has it. */
static inline uint64_t r2r_image_function_at(const struct r2r_image *image, uint64_t address)
{
    return (address - image->functions.address) / image->functions.entry_size;
}

/* The section of a type, within the image. False if there is none or the reader fails. */
bool r2r_image_section(const struct r2r_image *image, struct reader *reader, enum r2r_section_type type,
                       struct r2r_section *ret);

/* Which method starts at a function, by the image's tables; ENTRY_NONE for funclets and without tables. */
enum method_entry_kind r2r_entry(const struct r2r_entries *entries, uint32_t function, uint32_t *ret_entry,
                                 uint16_t *ret_component);

/*
 * Whether the tables give the code that starts at a function to another method of the image than its methoddef `rid`.
 * The method's own entry is read first: all tables are read only if that leads elsewhere. False, and the reader may
 * fail, if it is not known.
 */
bool r2r_image_contradicts(const struct r2r_image *image, struct reader *reader, uint32_t function, uint32_t rid);

/* Whether a method starts at a function: by the tables or, without tables, by the runtime's map. */
bool r2r_image_is_start(const struct r2r_image *image, const struct r2r_entries *entries, struct reader *reader,
                        uint32_t function);

/*
 * The MethodDesc of the method that starts at a function; 0 if it was not prepared, or if memory of the map is missing:
 * then *ret_unknown is where, and not 0, and the reader does not fail.
 */
uint64_t r2r_image_method_desc(const struct r2r_image *image, struct reader *reader, uint32_t function,
                               uint64_t *ret_unknown);

#endif
