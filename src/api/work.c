/* work.c: the calls of cdacq/work.h. Equal work items and equal timers become one; their words are formed once. */
#include "cdacq/work.h"

#include <stdlib.h>

#include "contracts/gc/problems.h"
#include "src/api/heap.h"
#include "src/api/type_name.h"
#include "src/waits/pending_work.h"
#include "src/waits/wait_graph.h"
#include "util/sized.h"
#include "util/text.h"

struct item_key {
    uint64_t method, type; /* `method`: an entry point, the type of a state machine, or where one goes on */
    enum cdacq_work_kind kind;
};

struct item_group {
    struct item_key key;
    uint64_t count;
    struct pending_item first;
    struct async_frame frame; /* of an async method */
};

struct timer_key {
    uint64_t entry;
    int64_t period_ms;
};

struct timer_group {
    struct timer_key key;
    uint64_t count;
    struct pending_timer first, last; /* to be due */
};

static struct item_key item_key(const struct item_group *group)
{
    return group->key;
}

static uint64_t hash_item(struct item_key key, uint64_t seed)
{
    return hash_u64(key.method, hash_u64(key.type ^ (uint64_t)key.kind, seed));
}

static bool equal_items(struct item_key a, struct item_key b)
{
    return a.method == b.method && a.type == b.type && a.kind == b.kind;
}

static struct timer_key timer_key(const struct timer_group *group)
{
    return group->key;
}

static uint64_t hash_timer(struct timer_key key, uint64_t seed)
{
    return hash_u64(key.entry, hash_u64((uint64_t)key.period_ms, seed));
}

static bool equal_timers(struct timer_key a, struct timer_key b)
{
    return a.entry == b.entry && a.period_ms == b.period_ms;
}

DEFINE_HASH_TABLE(item_groups, struct item_group, struct item_key, item_key, hash_item, equal_items);
DEFINE_HASH_TABLE(timer_groups, struct timer_group, struct timer_key, timer_key, hash_timer, equal_timers);

struct visit {
    struct cdacq_session *session;
    struct cdacq_work_visitor visitor;
    struct cdacq_work_info info;
    struct gc_problems problems;
    struct async_operations operations;
    struct pending_work work;
    struct item_groups items;
    struct timer_groups timers;
    int64_t now; /* of a process; 0: not known */
    bool stopped;
};

const char *cdacq_work_kind_text(enum cdacq_work_kind kind)
{
    static const char *const texts[] = {
        [CDACQ_WORK_OTHER] = "object",
        [CDACQ_WORK_TASK] = "task",
        [CDACQ_WORK_ASYNC] = "async method",
        [CDACQ_WORK_CALLBACK] = "callback",
    };
    return (size_t)kind < ARRAY_SIZE(texts) ? texts[kind] : "?";
}

static bool out_of_memory(struct visit *visit)
{
    return reader_fail(&visit->session->resolver.reader, CDACQ_ERR_NOMEM, 0, "work items");
}

/* ---- Names ---- */

/* Where the async method goes on that an item continues: the innermost, where the runtime suspends them. */
static struct async_frame frame_of(struct visit *visit, const struct pending_item *item)
{
    struct reader *reader = &visit->session->resolver.reader;
    struct async_frame frame = {.object = item->object, .type = item->machine, .state = -1};
    struct async_frame_list frames = {0};
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    if (!item->machine && async_frames_of(&visit->operations.async, item->object, &frames) && frames.count)
        frame = frames.items[0];
    reader_leave(reader, &outer);
    async_frame_list_deinit(&frames);
    return frame;
}

static void put_async(struct visit *visit, const struct async_frame *frame, struct text *ret)
{
    struct cdacq_method method = {.size = sizeof method};
    struct reader *reader = &visit->session->resolver.reader;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    if ((frame->type || frame->pc) && async_frame_answer(&visit->operations.async, frame, &method) && method.name)
        text_append(ret, method.name, method.name_length);
    reader_leave(reader, &outer);
}

static const char *text_or_null(const struct text *text)
{
    return text->length && !text->broken ? text->data : NULL;
}

/* ---- Work items ---- */

static bool group_items(struct visit *visit)
{
    const struct pending_items *items = &visit->work.items;
    for (size_t i = 0; i < items->count; i++) {
        const struct pending_item *item = &items->items[i];
        bool is_async = item->kind == CDACQ_WORK_ASYNC;
        const struct async_frame frame = is_async ? frame_of(visit, item) : (struct async_frame){.state = -1};
        const struct item_group new = {.key = {!is_async    ? item->entry
                                               : frame.type ? frame.type
                                                            : frame.pc,
                                               item->type, item->kind},
                                       .first = *item,
                                       .frame = frame};
        struct item_group *group = item_groups_insert(&visit->items, new, NULL);
        if (!group)
            return out_of_memory(visit);
        group->count++;
    }
    return true;
}

static int by_count(const void *a, const void *b)
{
    const struct item_group *left = a, *right = b;
    if (left->count != right->count)
        return left->count < right->count ? 1 : -1;
    return (left->first.object > right->first.object) - (left->first.object < right->first.object);
}

static void tell_item(struct visit *visit, const struct item_group *group)
{
    struct text method = {0};
    if (group->key.kind == CDACQ_WORK_ASYNC)
        put_async(visit, &group->frame, &method);
    else
        async_entry_put(&visit->session->resolver, group->first.entry, &method);
    const struct cdacq_work_item told = {.size = sizeof told,
                                         .kind = group->key.kind,
                                         .method = text_or_null(&method),
                                         .type = type_name(visit->session, group->key.type, NULL),
                                         .count = group->count,
                                         .object = group->first.object};
    visit->stopped = visit->visitor.item(&told, visit->visitor.context) != 0;
    text_deinit(&method);
}

static void tell_items(struct visit *visit)
{
    struct reader *reader = &visit->session->resolver.reader;
    if (!visit->visitor.item || visit->stopped || !group_items(visit))
        return;
    CLEANUP_FREE struct item_group *list = item_groups_sorted(&visit->items, by_count);
    if (!list)
        out_of_memory(visit);
    for (size_t i = 0; list && i < visit->items.count && !visit->stopped && reader_step(reader, "work items"); i++)
        tell_item(visit, &list[i]);
}

/* ---- Timers ---- */

static bool group_timers(struct visit *visit)
{
    const struct pending_timers *timers = &visit->work.timers;
    for (size_t i = 0; i < timers->count; i++) {
        const struct pending_timer *timer = &timers->items[i];
        const struct timer_group new = {.key = {timer->entry, timer->period_ms}, .first = *timer, .last = *timer};
        struct timer_group *group = timer_groups_insert(&visit->timers, new, NULL);
        if (!group)
            return out_of_memory(visit);
        group->count++;
        group->first = timer->due < group->first.due ? *timer : group->first;
        group->last = timer->due > group->last.due ? *timer : group->last;
    }
    return true;
}

static int by_due(const void *a, const void *b)
{
    const struct timer_group *left = a, *right = b;
    if (left->first.due != right->first.due)
        return left->first.due < right->first.due ? -1 : 1;
    return (left->first.object > right->first.object) - (left->first.object < right->first.object);
}

/* A core does not say when it was written: but not before the last thing that is known to have begun. */
static int64_t time_of(const struct visit *visit, bool *ret_exact)
{
    *ret_exact = visit->now >= visit->work.latest && visit->now;
    return *ret_exact ? visit->now : visit->work.latest;
}

static void tell_timer(struct visit *visit, const struct timer_group *group)
{
    struct text callback = {0};
    bool is_exact;
    int64_t now = time_of(visit, &is_exact);
    async_entry_put(&visit->session->resolver, group->key.entry, &callback);
    const struct cdacq_timer told = {.size = sizeof told,
                                     .callback = text_or_null(&callback),
                                     .period_ms = group->key.period_ms,
                                     .count = group->count,
                                     .first_due_ms = group->first.due - now,
                                     .last_due_ms = group->last.due - now,
                                     .is_exact = is_exact,
                                     .object = group->first.object};
    visit->stopped = visit->visitor.timer(&told, visit->visitor.context) != 0;
    text_deinit(&callback);
}

static void tell_timers(struct visit *visit)
{
    struct reader *reader = &visit->session->resolver.reader;
    if (!visit->visitor.timer || visit->stopped || !group_timers(visit))
        return;
    CLEANUP_FREE struct timer_group *list = timer_groups_sorted(&visit->timers, by_due);
    if (!list)
        out_of_memory(visit);
    for (size_t i = 0; list && i < visit->timers.count && !visit->stopped && reader_step(reader, "timers"); i++)
        tell_timer(visit, &list[i]);
}

/* ---- Requests ---- */

static int by_age(const void *a, const void *b)
{
    const struct pending_request *left = a, *right = b;
    if (left->is_served != right->is_served)
        return left->is_served ? 1 : -1;
    if (left->start != right->start) /* those of unknown age come last */
        return !left->start ? 1 : !right->start ? -1 : left->start < right->start ? -1 : 1;
    return (left->object > right->object) - (left->object < right->object);
}

static void tell_request(struct visit *visit, const struct pending_request *request)
{
    struct text text = {0};
    struct reader *reader = &visit->session->resolver.reader;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    bool is_exact, is_known = request->is_served ? pending_served_put(&visit->work, request->object, &text)
                                                 : async_request_put(&visit->operations, request->object, &text);
    reader_leave(reader, &outer);
    int64_t now = time_of(visit, &is_exact);
    const struct cdacq_http_request told = {.size = sizeof told,
                                            .is_served = request->is_served,
                                            .request = is_known ? text_or_null(&text) : NULL,
                                            .has_elapsed = request->start != 0,
                                            .is_exact = is_exact && request->start,
                                            .elapsed_ms = request->start ? now - request->start : 0,
                                            .object = request->object};
    visit->stopped = visit->visitor.request(&told, visit->visitor.context) != 0;
    text_deinit(&text);
}

static void tell_requests(struct visit *visit)
{
    struct reader *reader = &visit->session->resolver.reader;
    struct pending_requests *requests = &visit->work.requests;
    if (!visit->visitor.request || visit->stopped)
        return;
    if (requests->count)
        qsort(requests->items, requests->count, sizeof *requests->items, by_age);
    for (size_t i = 0; i < requests->count && !visit->stopped && reader_step(reader, "HTTP requests"); i++)
        tell_request(visit, &requests->items[i]);
}

/* ---- The visit ---- */

static void tell_missing(struct visit *visit)
{
    const struct pending_work *work = &visit->work;
    if (work->misses_items)
        gc_problem(&visit->problems, "a queue of the thread pool cannot be read to its end: work items are missing");
    if (work->misses_timers)
        gc_problem(&visit->problems, "timers are missing: one cannot be read, or this build does not know their type");
    if (work->misses_requests)
        gc_problem(
            &visit->problems,
            "requests that Kestrel serves are missing: one cannot be read, or this build does not know its types");
    if (work->is_full)
        gc_problem(&visit->problems, "there is more work than this build looks at: some of it is missing");
}

static void visit_gc(struct visit *visit, const struct gc *gc)
{
    if (!async_operations_find(&visit->operations, gc) || !pending_work_find(&visit->work, &visit->operations))
        return;
    tell_missing(visit);
    visit->info.has_queue = visit->work.has_queue;
    visit->info.item_count = visit->work.items.count;
    visit->info.timer_count = visit->work.timers.count;
    visit->info.request_count = visit->work.requests.count;
    tell_items(visit);
    tell_timers(visit);
    tell_requests(visit);
}

static enum cdacq_status check(struct cdacq_session *session, const struct cdacq_work_visitor *visitor,
                               const struct cdacq_work_info *ret, struct cdacq_error *err)
{
    enum cdacq_status status =
        heap_check(session, visitor, "struct cdacq_work_visitor", ret, "struct cdacq_work_info", err);
    if (status == CDACQ_OK && session->resolver.modules.aot)
        return error_set(err, CDACQ_ERR_CONTRACT, 0, "work items of NativeAOT programs are not found");
    return status;
}

enum cdacq_status cdacq_session_visit_work(struct cdacq_session *session, const struct cdacq_work_visitor *visitor,
                                           struct cdacq_work_info *ret, struct cdacq_error *err)
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
    visit->now = async_time_of(&session->resolver);
    memcpy(&visit->visitor, visitor, MIN(visitor->size, sizeof visit->visitor));
    visit->problems = (struct gc_problems){
        .tell = visit->visitor.problem, .context = visit->visitor.context, .stopped = &visit->stopped};
    visit->info.size = sizeof visit->info;
    async_operations_init(&visit->operations, &session->resolver, &visit->problems);
    visit->operations.also_searched = pending_work_kinds();
    visit_gc(visit, &gc);
    status = heap_end(session, &gc, visit->stopped, err);
    visit->info.problem_count = visit->problems.count;
    if (ret && status >= 0)
        sized_copy(ret, &visit->info, sizeof visit->info);
    pending_work_deinit(&visit->work);
    async_operations_deinit(&visit->operations);
    item_groups_deinit(&visit->items);
    timer_groups_deinit(&visit->timers);
    return status;
}
