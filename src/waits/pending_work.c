#include "src/waits/pending_work.h"

#include "contracts/threading/continuation.h"
#include "contracts/threading/task.h"
#include "contracts/threading/thread_pool.h"

enum {
    NO_DUE_TIME = UINT32_MAX, /* of a timer that does not run; also of a period */
    NS_OF_A_MS = 1000000,     /* System.Diagnostics.Stopwatch counts nanoseconds on Linux */
    /* RequestProcessingStatus of Kestrel: what the program has begun to answer. */
    STATUS_APP_STARTED = 3,
    STATUS_HEADERS_FLUSHED = 5,
};

uint64_t pending_work_kinds(void)
{
    return UINT64_C(1) << ASYNC_HTTP_REQUEST | UINT64_C(1) << ASYNC_HTTP_SERVED | UINT64_C(1) << ASYNC_TIMER |
           UINT64_C(1) << ASYNC_WORK_QUEUE | UINT64_C(1) << ASYNC_STEALING;
}

void pending_work_deinit(struct pending_work *work)
{
    pending_items_deinit(&work->items);
    pending_timers_deinit(&work->timers);
    pending_requests_deinit(&work->requests);
}

/* ---- Work items ---- */

/* Takes an async method that goes on as the item. */
static bool describe_async(struct pending_work *work, uint64_t object, struct pending_item *item)
{
    struct threading_types *types = &work->operations->types;
    struct async_method method;
    bool is_async = threading_type_of(types, object, true) == THREADING_RUNTIME_ASYNC;
    if (!is_async && (!async_method_find(types, object, &method) || !method.type))
        return false;
    item->kind = CDACQ_WORK_ASYNC;
    item->machine = is_async ? 0 : method.type;
    return true;
}

/* A delegate may continue an async method: its target is the box then. */
static void describe_delegate(struct pending_work *work, uint64_t delegate, struct pending_item *item)
{
    struct threading_types *types = &work->operations->types;
    uint64_t target;
    if (threading_type_of(types, delegate, true) == THREADING_DELEGATE &&
        threading_read(types, delegate, THREADING_DELEGATE_TARGET, &target) && target &&
        async_box_machine(types, async_type_of(&work->operations->kinds, target)) && describe_async(work, target, item))
        return;
    item->entry = delegate_entry_point(types, delegate);
}

static struct pending_item describe_item(struct pending_work *work, uint64_t object)
{
    struct threading_types *types = &work->operations->types;
    struct async_kinds *kinds = &work->operations->kinds;
    struct pending_item item = {.object = object, .kind = CDACQ_WORK_OTHER, .type = async_type_of(kinds, object)};
    enum threading_type type = threading_type_of(types, object, true);
    uint64_t delegate;
    if (threading_is_task(type) && !describe_async(work, object, &item)) {
        item.kind = CDACQ_WORK_TASK;
        item.entry = task_entry_point(types, object);
    } else if (type == THREADING_AWAIT && threading_read(types, object, THREADING_AWAIT_ACTION, &delegate)) {
        item.kind = CDACQ_WORK_CALLBACK;
        describe_delegate(work, delegate, &item);
    } else if (item.kind == CDACQ_WORK_OTHER && !describe_async(work, object, &item) &&
               (delegate = async_reference(kinds, object, "_callback")) &&
               (item.entry = delegate_entry_point(types, delegate))) {
        item.kind = CDACQ_WORK_CALLBACK;
    }
    return item;
}

static bool take_item(void *context, uint64_t object)
{
    struct pending_work *work = context;
    struct reader *reader = &work->operations->resolver->reader;
    if (work->items.count >= PENDING_ITEMS_MAX || !reader_step(reader, "work items")) {
        work->misses_items = true;
        return false;
    }
    work->no_memory |= !pending_items_append(&work->items, describe_item(work, object));
    return !work->no_memory;
}

static void find_items(struct pending_work *work)
{
    struct threading_types *types = &work->operations->types;
    const struct async_objects *queues = &work->operations->objects[ASYNC_WORK_QUEUE],
                               *stealing = &work->operations->objects[ASYNC_STEALING];
    for (size_t i = 0; i < queues->count; i++) {
        work->misses_items |= !work_queue_each(types, queues->items[i], take_item, work);
        work->has_queue = true;
    }
    for (size_t i = 0; i < stealing->count; i++)
        work->misses_items |= !stealing_queue_each(types, stealing->items[i], take_item, work);
}

/* ---- Timers ---- */

static void find_timers(struct pending_work *work)
{
    struct async_kinds *kinds = &work->operations->kinds;
    struct reader *reader = &work->operations->resolver->reader;
    const struct async_objects *timers = &work->operations->objects[ASYNC_TIMER];
    for (size_t i = 0; i < timers->count && !work->no_memory && reader_step(reader, "timers"); i++) {
        uint64_t object = timers->items[i], start, due, period;
        if (!async_read(kinds, object, "_startTicks", 8, &start) || !async_read(kinds, object, "_dueTime", 4, &due) ||
            !async_read(kinds, object, "_period", 4, &period) || due == NO_DUE_TIME || start > INT64_MAX / 2)
            continue;
        const struct pending_timer timer = {
            .object = object,
            .entry = delegate_entry_point(kinds->types, async_reference(kinds, object, "_timerCallback")),
            .period_ms = !period || period == NO_DUE_TIME ? -1 : (int64_t)period,
            .due = (int64_t)start + (int64_t)due};
        work->latest = MAX(work->latest, (int64_t)start);
        work->no_memory |= !pending_timers_append(&work->timers, timer);
    }
}

/* ---- Requests that the process has sent ---- */

/* What an object of an async method in System.Net.Http refers to. */
struct sending {
    struct pending_work *work;
    uint64_t request; /* 0: none */
    int64_t start;    /* of the time-out, which begins with the request; 0: it has none */
};

static bool take_word(void *context, uint64_t word)
{
    struct sending *sending = context;
    struct async_operations *operations = sending->work->operations;
    uint64_t start;
    if (!word || word % operations->resolver->reader.pointer_size)
        return true;
    const struct async_type *known =
        async_types_find(&operations->kinds.known, async_type_of(&operations->kinds, word));
    if (known && known->kind == ASYNC_HTTP_REQUEST)
        sending->request = word;
    else if (known && threading_type_of(&operations->types, word, false) == THREADING_CANCELLATION &&
             async_read(&operations->kinds, async_reference(&operations->kinds, word, "_timer"), "_startTicks", 8,
                        &start) &&
             start < INT64_MAX / 2)
        sending->start = sending->start ? MIN(sending->start, (int64_t)start) : (int64_t)start;
    return true;
}

static bool is_of_http(struct pending_work *work, const struct async_frame *frame)
{
    static const char name[] = "System.Net.Http.dll";
    struct cdacq_method method = {.size = sizeof method};
    struct reader *reader = &work->operations->resolver->reader;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    bool is_known = async_frame_answer(&work->operations->async, frame, &method) && method.module;
    reader_leave(reader, &outer);
    return is_known && strcmp(path_basename(method.module), name) == 0;
}

static bool add_request(struct pending_work *work, struct async_indices *known, const struct sending *sending)
{
    bool added;
    struct async_index *index =
        async_indices_insert(known, (struct async_index){sending->request, work->requests.count}, &added);
    if (!index)
        return false;
    if (!added) { /* several methods on the way have it; one of them has its time */
        struct pending_request *request = &work->requests.items[index->other];
        request->start = request->start ? request->start : sending->start;
        return true;
    }
    return pending_requests_append(&work->requests,
                                   (struct pending_request){.object = sending->request, .start = sending->start});
}

/* A request is in flight if a method of HttpClient that has it is suspended. */
static void find_sent(struct pending_work *work)
{
    struct async_operations *operations = work->operations;
    struct reader *reader = &operations->resolver->reader;
    struct async_indices known = {0};
    if (!operations->objects[ASYNC_HTTP_REQUEST].count)
        return;
    for (size_t i = 0; i < operations->frames.count && known.count < PENDING_REQUESTS_MAX && !work->no_memory &&
                       reader_step(reader, "async methods");
         i++) {
        const struct async_frame *frame = &operations->frames.items[i];
        struct sending sending = {.work = work};
        struct async_method method;
        if (!is_of_http(work, frame))
            continue;
        async_object_each_word(&operations->types, frame->object, take_word, &sending);
        if (frame->type && async_method_find(&operations->types, frame->object, &method) && method.machine)
            async_object_each_word(&operations->types, method.machine, take_word, &sending);
        work->latest = MAX(work->latest, sending.start);
        work->no_memory |= sending.request && !add_request(work, &known, &sending);
    }
    async_indices_deinit(&known);
}

/* ---- Requests that the process serves ---- */

/* When the program began to answer, if it asked for that: with a log of requests, metrics or diagnostics. */
static int64_t read_start(struct pending_work *work, uint64_t served)
{
    struct async_kinds *kinds = &work->operations->kinds;
    uint64_t start = 0, context = async_reference(kinds, served,
                                                  "<Microsoft.AspNetCore.Hosting.Server.Abstractions."
                                                  "IHostContextContainer<TContext>.HostContext>k__BackingField");
    (void)async_read(kinds, context, "<StartTimestamp>k__BackingField", 8, &start);
    return start > INT64_MAX ? 0 : (int64_t)start / NS_OF_A_MS;
}

static void find_served(struct pending_work *work)
{
    struct async_kinds *kinds = &work->operations->kinds;
    struct reader *reader = &work->operations->resolver->reader;
    const struct async_objects *served = &work->operations->objects[ASYNC_HTTP_SERVED];
    size_t count = 0;
    for (size_t i = 0;
         i < served->count && count < PENDING_REQUESTS_MAX && !work->no_memory && reader_step(reader, "HTTP requests");
         i++) {
        uint64_t status;
        if (!async_read(kinds, served->items[i], "_requestProcessingStatus", 4, &status)) {
            work->misses_requests = true;
            continue;
        }
        if (status < STATUS_APP_STARTED || status > STATUS_HEADERS_FLUSHED)
            continue;
        const struct pending_request request = {
            .object = served->items[i], .is_served = true, .start = read_start(work, served->items[i])};
        work->latest = MAX(work->latest, request.start);
        work->no_memory |= !pending_requests_append(&work->requests, request);
        count++;
    }
}

bool pending_served_put(struct pending_work *work, uint64_t request, struct text *ret)
{
    /* Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.HttpMethod */
    static const char *const methods[] = {"GET",   "PUT",   "DELETE",  "POST",   "HEAD",
                                          "TRACE", "PATCH", "CONNECT", "OPTIONS"};
    struct async_operations *operations = work->operations;
    struct async_kinds *kinds = &operations->kinds;
    uint64_t number, target = async_reference(kinds, request, "<RawTarget>k__BackingField");
    if (!async_string_put(operations, async_reference(kinds, request, "_methodText"), ret)) {
        if (!async_read(kinds, request, "<Method>k__BackingField", 1, &number) || number >= ARRAY_SIZE(methods))
            return false;
        text_puts(ret, methods[number]);
    }
    text_putc(ret, ' ');
    return async_string_put(operations, target ? target : async_reference(kinds, request, "<Path>k__BackingField"),
                            ret);
}

bool pending_work_find(struct pending_work *work, struct async_operations *operations)
{
    *work = (struct pending_work){.operations = operations};
    find_items(work);
    find_timers(work);
    find_sent(work);
    find_served(work);
    if (work->no_memory)
        reader_fail(&operations->resolver->reader, CDACQ_ERR_NOMEM, 0, "work items");
    return !reader_failed(&operations->resolver->reader);
}
