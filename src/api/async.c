/* async.c: the calls of cdacq/async.h. Equal chains become one; their words are formed once. */
#include "cdacq/async.h"

#include <inttypes.h>

#include "contracts/gc/problems.h"
#include "contracts/objects/exception.h"
#include "contracts/threading/async_method.h"
#include "contracts/threading/task.h"
#include "src/api/heap.h"
#include "src/api/type_name.h"
#include "src/lookup/answer.h"
#include "src/waits/async_reasons.h"
#include "util/sized.h"
#include "util/text.h"

enum { FRAMES_SHOWN_MAX = 16 * 1024 }; /* of a chain */

/* A chain by its frames and what it waits for. */
struct group_key {
    const struct async_operations *operations;
    uint32_t chain;
    enum async_reason_kind kind;
    uint64_t type;
    uint64_t hash;
};

struct group {
    struct group_key key;
    uint64_t count;
    struct async_common common;
};

static struct group_key group_key(const struct group *group)
{
    return group->key;
}

static uint64_t hash_group(struct group_key key, uint64_t seed)
{
    return hash_u64(key.hash, seed);
}

static bool equal_frames(const struct async_frame *a, const struct async_frame *b)
{
    return a->info == b->info && a->pc == b->pc && a->type == b->type && a->state == b->state;
}

static bool equal_groups(struct group_key a, struct group_key b)
{
    struct async_chain_frames left = async_chain_frames(a.operations, a.chain),
                              right = async_chain_frames(b.operations, b.chain);
    const struct async_chain *chains = a.operations->chains.items;
    const struct async_frame *one, *other;
    if (a.hash != b.hash || a.kind != b.kind || a.type != b.type ||
        chains[a.chain].is_cycle != chains[b.chain].is_cycle)
        return false;
    do {
        one = async_next_frame(&left);
        other = async_next_frame(&right);
    } while (one && other && equal_frames(one, other));
    return !one && !other;
}

DEFINE_HASH_TABLE(groups, struct group, struct group_key, group_key, hash_group, equal_groups);
DEFINE_VECTOR(method_list, struct cdacq_method);

/* A failed task, and how many are like it. */
struct failure_key {
    uint64_t method, type; /* of the state machine, and of the exception */
};

struct failure {
    struct failure_key key;
    uint64_t object, exception, count;
};

static struct failure_key failure_key(const struct failure *failure)
{
    return failure->key;
}

static uint64_t hash_failure(struct failure_key key, uint64_t seed)
{
    return hash_u64(key.method, hash_u64(key.type, seed));
}

static bool equal_failures(struct failure_key a, struct failure_key b)
{
    return a.method == b.method && a.type == b.type;
}

/*
 * Code of one method that a line awaits in: the method may be compiled several times, and each goes on elsewhere. `key`
 * is an address, or a hash of what is shown of it.
 */
struct spot {
    uint64_t key;
    uint64_t pc, info; /* those that stand for all */
};

DEFINE_U64_TABLE(spots, struct spot, key);
DEFINE_HASH_TABLE(failures, struct failure, struct failure_key, failure_key, hash_failure, equal_failures);

struct visit {
    struct cdacq_session *session;
    struct cdacq_async_visitor visitor;
    struct cdacq_async_info info;
    struct gc_problems problems;
    struct async_operations operations;
    struct async_reasons reasons;
    struct groups groups;
    struct spots by_code, by_line;
    struct failures failures;
    bool stopped;
};

static bool out_of_memory(struct visit *visit)
{
    return reader_fail(&visit->session->resolver.reader, CDACQ_ERR_NOMEM, 0, "async operations");
}

/* ---- Chains ---- */

static uint64_t hash_of_answer(const struct cdacq_method *method)
{
    uint64_t seed = hash_table_seed();
    uint64_t place = method->line ? (uint64_t)1 << 32 | method->line : (uint32_t)method->il_offset;
    uint64_t hash = hash_u64(method->token, hash_string(method->name, seed));
    return hash_u64(place, hash_string(method->file ? method->file : "", hash));
}

/* The address that stands for all code which is shown as the code at `frame->pc` is. NULL when out of memory. */
static const struct spot *find_spot(struct visit *visit, const struct async_frame *frame)
{
    struct cdacq_method method = {.size = sizeof method};
    struct reader *reader = &visit->session->resolver.reader;
    struct spot spot = {.key = frame->pc, .pc = frame->pc, .info = frame->info};
    const struct spot *known = spots_find(&visit->by_code, frame->pc);
    if (known || visit->by_code.count >= ASYNC_PLACES_MAX)
        return known;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    if (async_frame_answer(&visit->operations.async, frame, &method) && method.name && !method.error) {
        spot.key = hash_of_answer(&method);
        known = spots_insert(&visit->by_line, spot, NULL);
        spot = known ? *known : spot;
        spot.key = frame->pc;
    }
    reader_leave(reader, &outer);
    return spots_insert(&visit->by_code, spot, NULL);
}

/* Makes frames equal that are shown alike. */
static void join_frames(struct visit *visit)
{
    struct async_frame_list *frames = &visit->operations.frames;
    for (size_t i = 0; i < frames->count; i++) {
        struct async_frame *frame = &frames->items[i];
        const struct spot *spot = frame->pc ? find_spot(visit, frame) : NULL;
        if (spot) {
            frame->pc = spot->pc;
            frame->info = spot->info;
        }
    }
}

static uint64_t hash_chain(const struct async_operations *operations, uint32_t chain)
{
    struct async_chain_frames frames = async_chain_frames(operations, chain);
    const struct async_frame *frame;
    uint64_t hash = 0;
    while ((frame = async_next_frame(&frames)))
        hash = hash_u64(frame->pc ^ frame->type, hash_u64(frame->info ^ (uint32_t)frame->state, hash));
    return hash;
}

static bool add_chain(struct visit *visit, uint32_t number)
{
    const struct async_reason reason = async_reason_of(&visit->reasons, &visit->operations.chains.items[number]);
    const struct group new = {
        .key = {&visit->operations, number, reason.kind, reason.type, hash_chain(&visit->operations, number)},
        .common = {reason, reason.due, reason.due, false}};
    bool added;
    struct group *group = groups_insert(&visit->groups, new, &added);
    if (!group)
        return out_of_memory(visit);
    group->count++;
    if (added)
        return true;
    struct async_common *common = &group->common;
    common->differs |= common->reason.thing != reason.thing;
    if (common->reason.awaited != reason.awaited)
        common->reason.has_due &= reason.has_due;
    common->due_begin = MIN(common->due_begin, reason.due);
    common->due_end = MAX(common->due_end, reason.due);
    return true;
}

static bool group_chains(struct visit *visit)
{
    const struct async_chain_list *chains = &visit->operations.chains;
    struct reader *reader = &visit->session->resolver.reader;
    join_frames(visit);
    for (uint32_t i = 0; i < chains->count && reader_step(reader, "chains of async methods"); i++) {
        visit->info.chain_count++;
        visit->info.method_count += chains->items[i].frame_count;
        if (!add_chain(visit, i))
            return false;
    }
    return !reader_failed(reader);
}

static int by_count(const void *a, const void *b)
{
    const struct group *left = a, *right = b;
    if (left->count != right->count)
        return left->count < right->count ? 1 : -1;
    return (left->key.chain > right->key.chain) - (left->key.chain < right->key.chain);
}

/* Forms the answers for the frames that a person wrote. */
static bool form_methods(struct visit *visit, uint32_t chain, struct method_list *methods)
{
    struct async_chain_frames frames = async_chain_frames(&visit->operations, chain);
    const struct async_frame *frame;
    methods->count = 0;
    while ((frame = async_next_frame(&frames)) && methods->count < FRAMES_SHOWN_MAX) {
        struct cdacq_method method = {.size = sizeof method};
        struct reader *reader = &visit->session->resolver.reader;
        struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
        bool shown = async_frame_answer(&visit->operations.async, frame, &method);
        reader_leave(reader, &outer);
        if (shown && !method.name && !method.error)
            continue;
        if (shown && method.error)
            answer_keep_error(&visit->session->resolver, &method);
        if (shown && !method_list_append(methods, method))
            return out_of_memory(visit);
    }
    return true;
}

/* What the completion of the outermost operation of a chain leads to. */
static uint64_t completed_by(struct visit *visit, const struct async_chain *chain)
{
    uint64_t last = visit->operations.items.items[chain->last].object;
    bool several = false;
    uint64_t object = chain->is_cycle ? 0 : async_frames_continuation(&visit->operations.async, last, &several);
    return several || async_operation_of(&visit->operations, object) != ASYNC_NONE ? 0 : object;
}

static void tell_chain(struct visit *visit, const struct group *group, struct method_list *methods)
{
    const struct async_chain *chain = &visit->operations.chains.items[group->key.chain];
    struct text words = {0};
    if (!form_methods(visit, group->key.chain, methods) || !methods->count)
        return;
    async_reason_put(&visit->reasons, chain, &group->common, &words);
    const struct cdacq_async_chain told = {
        .size = sizeof told,
        .methods = methods->items,
        .method_count = methods->count,
        .count = group->count,
        .waits_for = words.data && !words.broken ? words.data : "not known",
        .object = group->common.differs ? 0 : group->common.reason.thing & ~UINT64_C(1),
        .first_object = group->common.reason.thing & ~UINT64_C(1),
        .operation = visit->operations.items.items[chain->operation].object,
        .completes = completed_by(visit, chain),
        .is_cycle = chain->is_cycle,
    };
    visit->stopped = visit->visitor.chain(&told, visit->visitor.context) != 0;
    text_deinit(&words);
}

static void tell_chains(struct visit *visit)
{
    struct reader *reader = &visit->session->resolver.reader;
    struct method_list methods = {0};
    if (!visit->visitor.chain || visit->stopped)
        return;
    CLEANUP_FREE struct group *list = groups_sorted(&visit->groups, by_count);
    if (!list)
        out_of_memory(visit);
    for (size_t i = 0;
         list && i < visit->groups.count && !visit->stopped && reader_step(reader, "chains of async methods"); i++)
        tell_chain(visit, &list[i], &methods);
    method_list_deinit(&methods);
}

/* ---- Failed tasks ---- */

static bool take_first(void *context, uint64_t object)
{
    uint64_t *first = context;
    *first = object;
    return false;
}

/* Adds the task of a TaskExceptionHolder, if nobody has seen its exceptions. */
static bool add_failure(struct visit *visit, uint64_t holder)
{
    struct async_kinds *kinds = &visit->operations.kinds;
    struct threading_types *types = &visit->operations.types;
    uint64_t handled, captured = 0, task = async_reference(kinds, holder, "m_task");
    uint64_t list = async_reference(kinds, holder, "m_faultExceptions");
    struct async_method method = {0};
    enum task_status status;
    if (!async_read(kinds, holder, "m_isHandled", 1, &handled) || handled || !list ||
        !threading_is_task(threading_type_of(types, task, true)) || !task_read_status(types, task, &status) ||
        status != TASK_FAULTED)
        return true;
    (void)list_each(types, list, 1, take_first, &captured);
    struct failure failure = {.object = task, .exception = async_reference(kinds, captured, "_exception")};
    if (async_method_find(types, task, &method))
        failure.key.method = method.type;
    failure.key.type = async_type_of(kinds, failure.exception);
    struct failure *known = failures_insert(&visit->failures, failure, NULL);
    if (!known)
        return out_of_memory(visit);
    known->count++;
    visit->info.failed_count++;
    return true;
}

static bool find_failures(struct visit *visit)
{
    const struct async_objects *holders = &visit->operations.objects[ASYNC_HOLDER];
    struct reader *reader = &visit->session->resolver.reader;
    for (size_t i = 0; i < holders->count && reader_step(reader, "failed tasks"); i++)
        if (!add_failure(visit, holders->items[i]))
            return false;
    return !reader_failed(reader);
}

static int by_failures(const void *a, const void *b)
{
    const struct failure *left = a, *right = b;
    if (left->count != right->count)
        return left->count < right->count ? 1 : -1;
    return (left->object > right->object) - (left->object < right->object);
}

static void tell_failure(struct visit *visit, const struct failure *failure)
{
    const struct async_frame frame = {.object = failure->object, .type = failure->key.method, .state = -1};
    struct cdacq_method method = {.size = sizeof method};
    struct reader *reader = &visit->session->resolver.reader;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    bool named = frame.type && async_frame_answer(&visit->operations.async, &frame, &method);
    reader_leave(reader, &outer);
    const struct cdacq_failed_task told = {
        .size = sizeof told,
        .count = failure->count,
        .address = failure->object,
        .exception = failure->exception,
        .method = named ? method.name : NULL,
        .type = failure->key.type ? type_name(visit->session, failure->key.type, NULL) : NULL,
    };
    visit->stopped = visit->visitor.failed(&told, visit->visitor.context) != 0;
}

static void tell_failures(struct visit *visit)
{
    struct reader *reader = &visit->session->resolver.reader;
    if (!visit->visitor.failed || visit->stopped)
        return;
    CLEANUP_FREE struct failure *list = failures_sorted(&visit->failures, by_failures);
    if (!list)
        out_of_memory(visit);
    for (size_t i = 0; list && i < visit->failures.count && !visit->stopped && reader_step(reader, "failed tasks"); i++)
        tell_failure(visit, &list[i]);
}

/* ---- The visit ---- */

static void visit_gc(struct visit *visit, const struct gc *gc)
{
    if (async_operations_find(&visit->operations, gc) &&
        async_reasons_init(&visit->reasons, &visit->operations, async_time_of(&visit->session->resolver)) &&
        async_reasons_mark_cycles(&visit->reasons) && group_chains(visit) && find_failures(visit)) {
        tell_chains(visit);
        tell_failures(visit);
    }
}

static enum cdacq_status check(struct cdacq_session *session, const struct cdacq_async_visitor *visitor,
                               const struct cdacq_async_info *ret, struct cdacq_error *err)
{
    enum cdacq_status status =
        heap_check(session, visitor, "struct cdacq_async_visitor", ret, "struct cdacq_async_info", err);
    if (status == CDACQ_OK && session->resolver.modules.aot)
        return error_set(err, CDACQ_ERR_CONTRACT, 0, "async operations of NativeAOT programs are not found");
    return status;
}

enum cdacq_status cdacq_session_visit_async(struct cdacq_session *session, const struct cdacq_async_visitor *visitor,
                                            struct cdacq_async_info *ret, struct cdacq_error *err)
{
    struct gc gc;
    enum cdacq_status status = check(session, visitor, ret, err);
    if (status < 0)
        return status;
    CLEANUP_FREE struct visit *visit = calloc(1, sizeof *visit);
    if (!visit)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    status = heap_begin(session, &gc, err);
    if (status < 0)
        return status;
    visit->session = session;
    memcpy(&visit->visitor, visitor, MIN(visitor->size, sizeof visit->visitor));
    visit->problems = (struct gc_problems){
        .tell = visit->visitor.problem, .context = visit->visitor.context, .stopped = &visit->stopped};
    visit->info.size = sizeof visit->info;
    async_operations_init(&visit->operations, &session->resolver, &visit->problems);
    visit_gc(visit, &gc);
    status = heap_end(session, &gc, visit->stopped, err);
    visit->info.problem_count = visit->problems.count;
    if (ret && status >= 0)
        sized_copy(ret, &visit->info, sizeof visit->info);
    async_reasons_deinit(&visit->reasons);
    async_operations_deinit(&visit->operations);
    groups_deinit(&visit->groups);
    spots_deinit(&visit->by_code);
    spots_deinit(&visit->by_line);
    failures_deinit(&visit->failures);
    return status;
}
