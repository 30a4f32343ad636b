/* r2r_plan.h: the methods that a ReadyToRun image will hold, its tables, and where each of them will be. */
#ifndef CDACQ_MOCKTARGET_R2R_PLAN_H
#define CDACQ_MOCKTARGET_R2R_PLAN_H

#include "mocktarget/mock.h"

enum { R2R_HEADER = 16, R2R_SECTION = 12, R2R_SECTION_MAX = 7, R2R_SENTINEL_COUNT = 1 };

/* An entry of section 115, and the header with sections that it points to. */
enum { R2R_COMPONENT = 16, R2R_CORE_HEADER = 8 };

/*
 * Section 101: two import sections, the signatures of whose cells follow. The first cell of each is for something else.
 */
enum { R2R_IMPORT_SECTION = 20, R2R_IMPORT_SECTIONS = 2, R2R_OTHER_CELLS = 2, R2R_SIGNATURE = 5 };

/* A method as requested, with copies of all arrays. */
struct planned_method {
    struct mock_r2r_method spec;
    uint64_t *sizes; /* of hot functions, then of cold ones */
    uint8_t *instance;
    const struct mock_clause *clauses;
    uint32_t hot_function, cold_function; /* numbers of the first ones */
    uint32_t debug_info;                  /* in its section */
    uint64_t start;                       /* relative to the image */
};

DEFINE_VECTOR(planned_methods, struct planned_method);

struct mock_r2r_plan {
    struct mock_r2r_options options;
    char *path;
    uint8_t *metadata;
    struct planned_methods methods;
    uint32_t hot_count, cold_count;
    struct mock_bytes methoddefs, instances, debug_info;
    size_t method_with_clauses_count, clause_count, resumption_stub_count;
    uint32_t clr, metadata_at, header, methoddefs_at, instances_at, debug_info_at, exceptions, clauses, imports,
        functions, map, unwind, code, end; /* RVAs */
};

/* Builds the tables and places everything. False, and the mock fails, when out of memory. */
bool mock_r2r_lay_out(struct mock_r2r *r2r);

#endif
