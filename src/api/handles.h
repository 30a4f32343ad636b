/*
 * handles.h: the content of the public handles, for the files that implement cdacq.h.
 */
#ifndef CDACQ_API_HANDLES_H
#define CDACQ_API_HANDLES_H

#include <stdatomic.h>

#include "cdacq.h"
#include "util/arena.h"
#include "util/hash_table.h"
#include "util/text.h"
#include "contracts/execution_manager/code_map.h"
#include "contracts/contracts.h"
#include "contracts/module_cache.h"
#include "contracts/code_lookup/platform_metadata.h"
#include "descriptors/runtime.h"
#include "descriptors/runtime_version.h"
#include "src/api/debuginfod.h"
#include "src/api/record_index.h"
#include "src/api/module_pdbs.h"
#include "src/api/source_link.h"
#include "target/threads.h"
#include "target/native/native_modules.h"

struct cdacq_target {
    bool keep;        /* CDACQ_OPEN_KEEP */
    uint64_t refresh; /* counts the calls of cdacq_target_refresh */
    unsigned visits;  /* of a running process's mappings that are under way: they must stay */
    struct file_policy policy;
    struct debuginfod_listener listener;                            /* of what the policy fetches */
    void (*progress)(void *context, uint64_t done, uint64_t total); /* as in cdacq_options */
    void *progress_context;
    char *image_path; /* of CDACQ_TARGET_IMAGE: the path of its only mapping */
    struct target *target;
    struct runtimes runtimes;
    unsigned runtime; /* index of the one in use */
    struct descriptor descriptor;
    struct contract_descriptor_info descriptor_info;
    struct layout layout;
    struct contracts contracts;
    enum cdacq_name_style names;
    bool runtime_types; /* this build reads MethodDescs and metadata of this runtime */
    struct execution_manager manager;
    struct cdacq_error problem; /* CDACQ_OPEN_PARTIAL: why no method can be found */
    _Atomic(struct code_map *) code_map;
    struct module_pdbs module_pdbs;           /* under the policy's lock */
    _Atomic(struct target_process *) process; /* NULL until first needed */
    struct threads snapshot_threads;          /* of a recording target: those that a snapshot will hold */
    uint64_t snapshot_stacks;                 /* bytes of stacks that were looked at for it */
    char build_id[2 * BUILD_ID_MAX + 1];
    struct runtime_version version; /* found on demand, under the policy's lock */
    bool has_version;
};

/* One function of a method: its start and that of its funclet or method, both relative to unwind_base. */
struct method_function {
    uint32_t begin, funclet;
};

DEFINE_HASH_TABLE_TYPE(interned_texts, const char *);

/* A method that was looked up: its answer without the fields that depend on the address. */
struct method_record {
    struct cdacq_method method;
    uint64_t unwind_base;
    uint32_t function_count;
    bool functions_unknown;                   /* unreadable, or too many */
    bool prepared_unknown;                    /* of ReadyToRun code: method_desc is 0, but perhaps only missing */
    uint64_t round;                           /* of a running process: of the session's modules when it was formed */
    bool is_void;                             /* of a running process: it changed while this was formed */
    bool is_whole;                            /* of a running process: no other method begins within it */
    bool has_il_map;                          /* the next three fields were filled */
    bool il_unverified;                       /* bytes of an unconfirmed file were read for them */
    uint32_t il_point_count;                  /* 0: no IL offset is known */
    const struct il_point *il_points;         /* sorted by native offset */
    const struct module *module;              /* that declares it; NULL if there is none or it is not known */
    const struct source_point *source_points; /* sorted by IL offset; filled with the IL offsets */
    uint32_t source_point_count;              /* 0: no line is known */
    bool il_replaced;                         /* or that cannot be told: the PDB is of other IL */
    bool source_cut;                          /* there are too many lines to read */
    bool source_unverified;                   /* an unconfirmed file named the PDB */
    struct method_function functions[];       /* sorted; none if all of the part is the body */
};

struct walked_key {
    uint64_t start;
    bool cold;
};

static inline struct walked_key walked_key(struct method_record *const *record)
{
    return (struct walked_key){(*record)->method.code_start, (*record)->method.cold};
}

static inline uint64_t hash_walked(struct walked_key key, uint64_t seed)
{
    return hash_u64(key.start, seed);
}

static inline bool equal_walked(struct walked_key a, struct walked_key b)
{
    return a.start == b.start && a.cold == b.cold;
}

DEFINE_HASH_TABLE(walked_records, struct method_record *, struct walked_key, walked_key, hash_walked, equal_walked);
DEFINE_VECTOR(record_list, struct method_record *);
DEFINE_HASH_TABLE_TYPE(module_sources, struct module_source *);

/* A code range of the map, as one session sees it. */
struct session_range {
    const struct code_table *table;
    struct method_record **records; /* by part; NULL until first needed */
    size_t spent;                   /* on look-ups without the table; the unit is the time for a part of a table */
    size_t table_price;             /* what the table takes, in the same unit; 0: not yet known */
    bool no_table;                  /* the table cannot be built */
    bool is_gone;                   /* since a running process has freed the range */
    struct reader_failure failure;  /* why not */
};

struct cdacq_session {
    struct cdacq_target *target;
    enum cdacq_name_style names;
    struct field_reader reader;
    struct module_cache modules;
    struct arena arena;            /* of names and records */
    struct arena records_arena;    /* of a running process: of the records of one question */
    struct interned_texts texts;   /* of types and, of a running process, of methods: names, which live longer */
    const char *module_path;       /* of the last record of a running process, one of the texts; or NULL */
    struct read_log log;           /* of a running process: what the unchecked records and answers rest on */
    struct record_list unchecked;  /* records that were formed since the last check */
    struct code_map *own_map;      /* of a running process, for one question */
    uint64_t pages_of;             /* the question of the target that the reader's last span is of */
    unsigned visits;               /* that are under way: the question goes on */
    bool text_unverified;          /* the last text of an exception rests on a file that nothing confirms */
    uint64_t refresh;              /* the target's count when the question began */
    size_t arena_taken;            /* bytes of it that were taken from the target's bound on memory */
    struct arena scratch;          /* of the failure texts of the last call */
    struct walked_records walked;  /* records of look-ups without a table */
    struct record_index formed;    /* the same records by address, if there are many look-ups */
    uint32_t records;              /* that were made */
    uint32_t function_total;       /* of all records */
    size_t il_point_total;         /* of all records */
    struct module_sources sources; /* PDBs in use */
    size_t source_point_total;     /* of all records */
    size_t source_point_bytes;     /* decoded for them */
    size_t source_document_bytes;  /* of the names and URLs of documents */
    unsigned lookups;              /* without a map */
    const struct code_map *map;
    bool no_map;
    struct cdacq_error map_error;         /* why there is no map */
    struct session_range *ranges;         /* one for each range of the map */
    size_t hint;                          /* the range of the last look-up */
    const struct method_record *answered; /* of the last look-up that found a method */
    struct cdacq_error error;             /* of the last failed look-up; cdacq_method.error points to it */
    uint64_t mapping_round;               /* of the target, to which `native` belongs */
    struct native_modules *native;        /* created for the first walk of a stack */
    struct cdacq_error native_error;      /* why that is not possible */
    struct ending *ending;                /* how the process ended, if that was asked */
    uint64_t *stacks_fuel;                /* of all walks while threads are visited; else NULL */
};

/* The plain address of a code pointer from the caller. Contracts take plain addresses only. */
static inline uint64_t session_address(const struct cdacq_session *session, uint64_t pointer)
{
    return address_of_code_pointer(session->target->layout.code_pointer_flags, pointer);
}

/* The arena for what belongs to a record. */
static inline struct arena *session_record_arena(struct cdacq_session *session)
{
    return session->target->target->changes ? &session->records_arena : &session->arena;
}

#endif
