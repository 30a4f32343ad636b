/*
 * resolver.h: what one session knows of the code of one runtime, and for how long. index.h builds the map and its
 * tables, records.h forms records, source_lines.h reads lines, find.h looks addresses up.
 */
#ifndef CDACQ_LOOKUP_RESOLVER_H
#define CDACQ_LOOKUP_RESOLVER_H

#include "cdacq/session.h"
#include "contracts/module_cache.h"
#include "contracts/code_lookup/platform_metadata.h"
#include "src/lookup/epoch.h"
#include "src/lookup/kept_sources.h"
#include "src/lookup/native_code.h"
#include "src/lookup/record_index.h"
#include "util/arena.h"
#include "util/hash_table.h"

struct cdacq_target;
struct code_map;
struct code_table;
struct il_point;
struct method_record;

/* One function of a method: its start and that of its funclet or method, both relative to unwind_base. */
struct method_function {
    uint32_t begin, funclet;
};

/* A method that was looked up: its answer without the fields that depend on the address. */
struct method_record {
    struct cdacq_method method;
    uint64_t unwind_base;
    uint32_t function_count;
    bool functions_unknown;                   /* unreadable, or too many */
    bool prepared_unknown;                    /* of ReadyToRun code: method_desc is 0, but perhaps only missing */
    uint64_t round;                           /* of the epoch, when it was formed */
    bool is_void;                             /* of a running process: it changed while this was formed */
    bool is_whole;                            /* of a running process: no other method begins within it */
    bool has_il_map;                          /* the next four fields were filled */
    bool il_unverified;                       /* bytes of an unconfirmed file were read for them */
    bool il_is_zero;                          /* without points: the IL offset of all code is 0 */
    uint32_t il_point_count;                  /* 0: no IL offset is known, unless it is 0 */
    const struct il_point *il_points;         /* sorted by native offset */
    const struct module *module;              /* that declares it; NULL if there is none or it is not known */
    const struct source_point *source_points; /* sorted by IL offset; filled with the IL offsets */
    uint32_t source_point_count;              /* 0: no line is known */
    bool il_replaced;                         /* the PDB is of other IL */
    bool il_unknown;                          /* whether it is cannot be read */
    bool source_cut;                          /* there are too many lines to read */
    bool source_by_code;                      /* the points are sorted by offset in the code */
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
DEFINE_HASH_TABLE_TYPE(interned_texts, const char *);

/* Bytes that a session keeps of a running process, which makes new methods. With sanitizers, few: to find old uses. */
#ifdef CDACQ_SANITIZED
enum { SESSION_TEXTS_MAX = 4096 };
#else
enum { SESSION_TEXTS_MAX = 32 * 1024 * 1024 };
#endif

struct records {
    struct arena arena;           /* of texts; dropped as an epoch begins if there are more than SESSION_TEXTS_MAX */
    unsigned text_users;          /* that keep texts, such as graphs of waits: all texts stay */
    struct arena epoch_arena;     /* of a running process: of the records of one epoch */
    struct interned_texts texts;  /* of types and, of a running process, of methods: names, which live longer */
    const char *module_path;      /* of the last record of a running process, one of the texts; or NULL */
    size_t arena_seen;            /* bytes of `arena` when it was last charged to the target's bound on memory */
    size_t arena_taken;           /* those that the bound allowed */
    struct walked_records walked; /* of look-ups without a table */
    struct record_index formed;   /* the same by address, if there are many look-ups */
    uint32_t made;
    uint32_t function_total; /* of all records */
    size_t il_point_total;   /* likewise */
};

/* A code range of the map. */
struct index_range {
    const struct code_table *table;
    struct method_record **records; /* by part; NULL until first needed */
    size_t spent;                   /* on look-ups without the table; the unit is the time for a part of a table */
    size_t table_price;             /* what the table takes, in the same unit; 0: not yet known */
    bool no_table;                  /* the table cannot be built */
    bool is_gone;                   /* since a running process has freed the range */
    struct reader_failure failure;  /* why not */
};

struct code_index {
    const struct code_map *map;
    struct code_map *own_map; /* of a running process, for one epoch; else the map is the target's */
    bool no_map;
    struct cdacq_error map_error; /* why there is no map */
    struct index_range *ranges;   /* one for each range of the map */
    size_t hint;                  /* the range of the last look-up */
    unsigned lookups;             /* without a map */
};

struct resolver {
    struct cdacq_target *target;
    enum cdacq_name_style names;
    struct reader reader;
    struct module_cache modules;
    struct epoch epoch;
    struct records records;
    struct code_index index;
    struct source_lines lines;
    struct native_code native;
    struct cdacq_error error;   /* of the last failed look-up; cdacq_method.error points to it */
    struct arena failure_texts; /* of the last call */
};

void resolver_init(struct resolver *resolver, struct cdacq_target *target, struct module_files files);
void resolver_deinit(struct resolver *resolver);

/* Begins an epoch unless one goes on: every call that asks something calls it first. */
void resolver_begin(struct resolver *resolver);

static inline bool resolver_is_running(const struct resolver *resolver)
{
    return epoch_is_running(&resolver->epoch);
}

/* The plain address of a code pointer from the caller. Contracts take plain addresses only. */
static inline uint64_t resolver_address(const struct resolver *resolver, uint64_t pointer)
{
    return address_of_code_pointer(&resolver->reader, pointer);
}

static inline struct native_modules *resolver_native(struct resolver *resolver)
{
    return native_code_modules(&resolver->native, resolver->target);
}

/* Whether a bound on all work on the target was reached. Sets *err if so. */
bool resolver_gave_up(const struct resolver *resolver, struct cdacq_error *err);

/* The arena for what belongs to a record. */
static inline struct arena *resolver_record_arena(struct resolver *resolver)
{
    return resolver_is_running(resolver) ? &resolver->records.epoch_arena : &resolver->records.arena;
}

/* A text that lives as long as the session or, of a running process, until the next epoch. NULL when out of memory. */
const char *resolver_text(struct resolver *resolver, const char *text, size_t length);

/* The same, and one copy for equal texts without NUL: for few texts that are asked for again and again. */
const char *resolver_intern(struct resolver *resolver, const char *text, size_t length);

#endif
