/*
 * handles.h: the insides of the public handles, for the files that implement cdacq.h.
 */
#ifndef CDACQ_API_HANDLES_H
#define CDACQ_API_HANDLES_H

#include <stdatomic.h>

#include "cdacq.h"
#include "util/arena.h"
#include "util/hash_table.h"
#include "contracts/execution_manager/code_map.h"
#include "contracts/contracts.h"
#include "contracts/loader.h"
#include "contracts/code_lookup/platform_metadata.h"
#include "descriptors/runtime.h"
#include "descriptors/runtime_version.h"

struct cdacq_target {
    struct file_policy policy;
    char *image_path; /* of a target that is a file: its one mapping's */
    struct target *target;
    struct runtimes runtimes;
    unsigned runtime; /* index of the one in use */
    struct descriptor descriptor;
    struct contract_descriptor_info descriptor_info;
    struct layout layout;
    struct contracts contracts;
    enum cdacq_name_style names;
    bool runtime_types; /* MethodDescs and metadata are described, in versions that this build reads */
    struct execution_manager manager;
    struct cdacq_error problem; /* status OK, or why no method can be found: a target that was opened in part */
    _Atomic(struct code_map *) code_map;
    char build_id[2 * BUILD_ID_MAX + 1];
    struct runtime_version version; /* found when first asked for, under the policy's lock */
    bool has_version;
};

/*
 * One of a method's functions, relative to unwind_base: where it begins, and the funclet, or else the method, it is of.
 */
struct method_function {
    uint32_t begin, funclet;
};

/* A method that has been asked about: its answer but for the address asked. */
struct method_record {
    struct cdacq_method method; /* without what depends on the address */
    uint64_t unwind_base;
    uint32_t function_count;
    bool functions_unknown;             /* they could not be read, or are too many */
    struct method_function functions[]; /* sorted; none where all is the body */
};

struct walked_key {
    uint64_t start;
    bool cold;
};

DEFINE_HASH_TABLE_TYPE(walked_records, struct method_record *);

/* A code range of the map, as one session sees it. */
struct session_range {
    const struct code_table *table;
    struct method_record **records; /* by part; NULL where nobody has asked */
    unsigned walks;                 /* look-ups that went without the table */
    bool no_table;                  /* it cannot be built: */
    struct reader_failure failure;  /* why */
};

struct cdacq_session {
    struct cdacq_target *target;
    enum cdacq_name_style names;
    struct field_reader reader;
    struct module_cache modules;
    struct arena arena;           /* names and records */
    struct arena scratch;         /* texts of the failures of the last call */
    struct walked_records walked; /* those of single look-ups */
    uint32_t function_total;      /* of all records */
    unsigned lookups;             /* single ones, until there is a map */
    const struct code_map *map;
    bool no_map;
    struct cdacq_error map_error; /* why there is none */
    struct session_range *ranges; /* one for each of the map's */
    size_t hint;                  /* the range of the last look-up */
    struct cdacq_error error;     /* of the last failed look-up: what cdacq_method.error points to */
};

/*
 * The address that a code pointer of the caller holds. Every call that takes one begins with this; contracts take plain
 * addresses.
 */
static inline uint64_t session_address(const struct cdacq_session *session, uint64_t pointer)
{
    return address_of_code_pointer(session->target->layout.code_pointer_flags, pointer);
}

/* The map of all code, built when first asked for. NULL where that cannot be done: look-ups then walk. */
const struct code_map *session_map(struct cdacq_session *session);

/* The table of a range, with this session's view of it. NULL where that cannot be built. */
struct session_range *session_table(struct cdacq_session *session, size_t range);

/* Why they are NULL. */
enum cdacq_status session_map_error(const struct cdacq_session *session, struct cdacq_error *err);
enum cdacq_status session_table_error(struct cdacq_session *session, size_t range, struct cdacq_error *err);

/* The record of a part, formed when first asked for. NULL on failure, which `session->error` tells. */
struct method_record *session_record(struct cdacq_session *session, size_t range, const struct block_part *part);

/* What is at an address. The text of a failure lives until the next call on the session. */
void session_answer(struct cdacq_session *session, uint64_t ip, struct cdacq_method *ret);

/* Fills an answer from a record. */
void record_answer(const struct method_record *record, uint64_t ip, struct cdacq_method *ret);

#endif
