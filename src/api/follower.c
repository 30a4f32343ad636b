/*
 * follower.c: follows the code that a running process compiles: lists all code again and again, and visits what is new.
 */
#include "src/api/follower.h"

#include "contracts/execution_manager/code_map.h"
#include "src/api/listing.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"
#include "util/clock.h"
#include "util/error.h"

enum {
    ERRORS_BEFORE_VISIT = 3, /* rounds in which code cannot be read; the process may be about to free it */
    FAILURES_MAX = 5,        /* rounds in a row that fail; the runtime's lists may change while they are read */
};

DEFINE_U64_TABLE_FUNCTIONS(followed_table, struct followed, start);

enum cdacq_status cdacq_follower_create(struct cdacq_target *target, unsigned flags, struct cdacq_follower **ret,
                                        struct cdacq_error *err)
{
    if (!target || target->memory->kind != CDACQ_TARGET_PROCESS || !target->memory->changes)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "only a process that runs can be followed");
    enum cdacq_status status = error_check_flags(flags, JITDUMP_WRITE_FLAGS, err);
    if (status < 0)
        return status;
    struct cdacq_follower *follower = calloc(1, sizeof *follower);
    if (!follower)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    follower->target = target;
    follower->flags = flags;
    follower->jitdump.written.size = sizeof follower->jitdump.written;
    *ret = follower;
    return CDACQ_OK;
}

void cdacq_follower_destroy(struct cdacq_follower *follower)
{
    if (!follower)
        return;
    cdacq_session_destroy(follower->session);
    followed_table_deinit(&follower->known);
    free(follower);
}

void follower_retry(struct cdacq_follower *follower, uint64_t start)
{
    struct followed *followed = followed_table_find(&follower->known, start);
    if (followed)
        followed->is_known = followed->is_kept = false;
}

enum cdacq_status follower_session(struct cdacq_follower *follower, struct cdacq_error *err)
{
    return follower->session ? CDACQ_OK : cdacq_session_create(follower->target, &follower->session, err);
}

/* Whether a part of the listing has to be read. A known part that the process never frees need not be. */
static bool is_wanted(void *context, const struct code_range *range, uint64_t begin)
{
    struct cdacq_follower *follower = context;
    struct followed *followed = followed_table_find(&follower->known, begin);
    (void)range;
    if (!followed || !followed->is_kept)
        return true;
    followed->round = follower->round;
    return false;
}

/* Whether code of a method stays until the process ends, and its whole name is known. */
static bool is_kept(struct cdacq_follower *follower, const struct cdacq_method *method)
{
    const struct code_range *range = code_map_range(follower->session->resolver.index.map, method->code_start);
    return method->answer == CDACQ_ANSWER_MANAGED && method->name && !method->error && range &&
           !(range->section.flags & RANGE_SECTION_COLLECTIBLE);
}

static struct followed describe(const struct cdacq_method *method)
{
    return (struct followed){
        .start = method->code_start,
        .size = method->code_size,
        .cold_start = method->cold_start,
        .method_desc = method->method_desc,
        .name = method->name ? hash_string(method->name, hash_table_seed()) : 0,
    };
}

static bool is_same(const struct followed *a, const struct followed *b)
{
    return a->size == b->size && a->cold_start == b->cold_start && a->method_desc == b->method_desc &&
           a->name == b->name;
}

/* Notes an element of the listing, and visits it if it is new. */
static int take_element(const struct cdacq_method *method, void *context)
{
    struct cdacq_follower *follower = context;
    struct followed found = describe(method);
    if (method->answer == CDACQ_ANSWER_ERROR && target_gone(follower->target->memory)) {
        follower->has_ended = true;
        return 1;
    }
    struct followed *known = followed_table_insert(&follower->known, found, NULL);
    if (!known) /* out of memory: without a record, the element counts as new */
        return follower->visit(method, follower->context);
    known->round = follower->round;
    if (method->answer == CDACQ_ANSWER_ERROR) {
        known->errors += known->errors < ERRORS_BEFORE_VISIT;
        if (known->errors < ERRORS_BEFORE_VISIT || known->was_error)
            return 0;
        known->was_error = true;
        return follower->visit(method, follower->context);
    }
    if (known->is_known && is_same(known, &found)) {
        known->errors = 0;
        return 0;
    }
    found.round = follower->round;
    found.is_known = true;
    found.is_kept = is_kept(follower, method);
    *known = found; /* before the visit, which may ask for another */
    return follower->visit(method, follower->context);
}

/* Forgets the code that the last round has not found. Out of memory, it does so after a later round. */
static void forget_freed(struct cdacq_follower *follower)
{
    struct followed_table left = {0};
    size_t count = 0;
    for (const struct followed *followed = NULL; (followed = followed_table_next(&follower->known, followed));)
        count += followed->round == follower->round;
    if (count == follower->known.count || !followed_table_reserve(&left, count))
        return;
    for (const struct followed *followed = NULL; (followed = followed_table_next(&follower->known, followed));)
        if (followed->round == follower->round && !followed_table_insert(&left, *followed, NULL)) {
            followed_table_deinit(&left);
            return;
        }
    followed_table_deinit(&follower->known);
    follower->known = left;
}

enum cdacq_status cdacq_follower_visit_methods(struct cdacq_follower *follower,
                                               int (*visit)(const struct cdacq_method *method, void *context),
                                               void *context, struct cdacq_error *err)
{
    if (!follower || !visit)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no follower, or no function to call");
    if (follower->has_ended || cdacq_target_refresh(follower->target, NULL) < 0) {
        follower->has_ended = true;
        return CDACQ_DONE;
    }
    follower->round++;
    uint64_t began = monotonic_ns();
    follower->visit = visit;
    follower->context = context;
    struct cdacq_error error;
    const struct listing_filter filter = {is_wanted, follower};
    enum cdacq_status status = follower_session(follower, &error);
    if (status >= 0)
        status = session_visit_methods(follower->session, follower->flags, &filter, take_element, follower, &error);
    if (follower->has_ended || (status < 0 && target_gone(follower->target->memory))) {
        follower->has_ended = true;
        return CDACQ_DONE;
    }
    if (status < 0 && ++follower->failures < FAILURES_MAX)
        return CDACQ_OK;
    if (status < 0 && err)
        *err = error;
    if (status >= 0)
        follower->failures = 0;
    if (status != CDACQ_OK) /* it has not seen all code: what is new in the next round may be older than this one */
        return status;
    follower->began = began;
    forget_freed(follower);
    return CDACQ_OK;
}
