#include "src/waits/pending_work.h"

#include "contracts/threading/async_method.h"
#include "contracts/threading/continuation.h"
#include "contracts/threading/task.h"
#include "contracts/threading/thread_pool.h"
#include "contracts/type_system/type_handle.h"
#include "formats/metadata_members.h"
#include "src/lookup/resolver.h"
#include "util/text.h"

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
    if (type == THREADING_AWAIT && threading_read(types, object, THREADING_AWAIT_ACTION, &delegate)) {
        item.kind = CDACQ_WORK_CALLBACK;
        describe_delegate(work, delegate, &item);
    } else if (describe_async(work, object, &item)) {
        return item;
    } else if (threading_is_task(type)) {
        item.kind = CDACQ_WORK_TASK;
        item.entry = task_entry_point(types, object);
    } else if ((item.entry = delegate_entry_point(types, async_reference(kinds, object, "_callback")))) {
        item.kind = CDACQ_WORK_CALLBACK;
    }
    return item;
}

static bool take_item(void *context, uint64_t object)
{
    struct pending_work *work = context;
    struct reader *reader = &work->operations->resolver->reader;
    if (work->items.count >= PENDING_ITEMS_MAX || !reader_step(reader, "work items")) {
        work->is_full = true;
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
    for (size_t i = 0; i < queues->count && !work->is_full; i++) {
        work->misses_items |= !work_queue_each(types, queues->items[i], take_item, work) && !work->is_full;
        work->has_queue = true;
    }
    for (size_t i = 0; i < stealing->count && !work->is_full; i++)
        work->misses_items |= !stealing_queue_each(types, stealing->items[i], take_item, work) && !work->is_full;
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
            !async_read(kinds, object, "_period", 4, &period)) {
            work->misses_timers = true;
            continue;
        }
        if (due == NO_DUE_TIME || start > INT64_MAX / 2)
            continue;
        work->is_full |= work->timers.count >= PENDING_ITEMS_MAX;
        if (work->is_full)
            return;
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

/* What an object of an async method refers to. */
struct sending {
    struct pending_work *work;
    uint64_t request; /* 0: none */
    int64_t start;    /* of the last time-out that a linked source of cancellation has; 0: none has one */
};

/*
 * HttpClient links a source of its own, which has the time-out, to the token of its caller: that of the caller, which
 * can be older, is no linked one.
 */
static bool is_linked(struct async_operations *operations, uint64_t object, uint64_t method_table)
{
    struct reader *reader = &operations->resolver->reader;
    const struct metadata *metadata;
    uint32_t token;
    bool is_plain = false;
    if (threading_type_of(&operations->types, object, false) != THREADING_CANCELLATION)
        return false;
    struct reader_task outer = reader_enter(reader, FUEL_NAME);
    bool is_known =
        type_handle_definition(&operations->resolver->modules, method_table, &metadata, &token) == CDACQ_OK &&
        metadata_type_is(metadata, token, "System.Threading", "CancellationTokenSource", &is_plain) == CDACQ_OK;
    return reader_leave(reader, &outer).status >= 0 && is_known && !is_plain;
}

static bool take_word(void *context, uint64_t word)
{
    struct sending *sending = context;
    struct async_operations *operations = sending->work->operations;
    struct async_kinds *kinds = &operations->kinds;
    uint64_t start;
    if (!word || word % operations->resolver->reader.pointer_size)
        return true;
    const struct async_type *known = async_types_find(&kinds->known, async_type_of(kinds, word));
    if (known && known->kind == ASYNC_HTTP_REQUEST)
        sending->request = word;
    else if (known && is_linked(operations, word, known->method_table) &&
             async_read(kinds, async_reference(kinds, word, "_timer"), "_startTicks", 8, &start) &&
             start < INT64_MAX / 2)
        sending->start = MAX(sending->start, (int64_t)start);
    return true;
}

enum sender {
    SENDER_NONE,
    SENDER_HIDDEN,  /* a thunk of the runtime between two methods */
    SENDER_HANDLER, /* a method that sends a request, and not one that makes a connection for it */
    SENDER_CLIENT,  /* of HttpClient itself, which has the time-out */
};

static enum sender sender_of(struct pending_work *work, const struct async_frame *frame)
{
    static const char file[] = "System.Net.Http.dll", client[] = "System.Net.Http.HttpClient.", send[] = "Send";
    struct cdacq_method method = {.size = sizeof method};
    struct reader *reader = &work->operations->resolver->reader;
    enum sender ret = SENDER_NONE;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    if (!async_frame_answer(&work->operations->async, frame, &method))
        ret = SENDER_HIDDEN;
    else if (method.module && method.name && strcmp(path_basename(method.module), file) == 0)
        ret = strncmp(method.name, client, sizeof client - 1) == 0 ? SENDER_CLIENT
              : strstr(method.name, send)                          ? SENDER_HANDLER
                                                                   : SENDER_NONE;
    reader_leave(reader, &outer);
    return ret;
}

/* What an async method refers to, in its box or its state machine. */
static struct sending look_into(struct pending_work *work, const struct async_frame *frame)
{
    struct threading_types *types = &work->operations->types;
    struct sending sending = {.work = work};
    struct async_method method;
    async_object_each_word(types, frame->object, take_word, &sending);
    if (frame->type && async_method_find(types, frame->object, &method) && method.machine)
        async_object_each_word(types, method.machine, take_word, &sending);
    return sending;
}

/* The requests that are known, by their addresses, and the one that the methods of a chain send, from the innermost. */
struct senders {
    struct pending_work *work;
    struct async_indices known;
    uint64_t request; /* 0: none yet, or no longer */
};

/* One of the outer methods, of the client, has the time of a request, and not always the request itself. */
static bool add_sent(struct senders *senders, uint64_t request, int64_t start)
{
    struct pending_work *work = senders->work;
    bool added;
    struct async_index *index =
        async_indices_insert(&senders->known, (struct async_index){request, work->requests.count}, &added);
    if (!index || (added && !pending_requests_append(&work->requests, (struct pending_request){.object = request})))
        return false;
    struct pending_request *item = &work->requests.items[index->other];
    item->start = item->start ? item->start : start;
    work->latest = MAX(work->latest, start);
    return true;
}

static void take_frame(struct senders *senders, const struct async_frame *frame)
{
    struct pending_work *work = senders->work;
    const struct sending sending = look_into(work, frame);
    if (!sending.request && !senders->request)
        return;
    enum sender sender = sender_of(work, frame);
    if (sender == SENDER_HIDDEN)
        return;
    senders->request = sender == SENDER_NONE ? 0 : sending.request ? sending.request : senders->request;
    if (senders->request && senders->known.count >= PENDING_REQUESTS_MAX)
        work->is_full = true;
    else if (senders->request)
        work->no_memory |= !add_sent(senders, senders->request, sender == SENDER_CLIENT ? sending.start : 0);
}

/* A request is in flight if a method that sends it is suspended. */
static void find_sent(struct pending_work *work)
{
    struct async_operations *operations = work->operations;
    struct reader *reader = &operations->resolver->reader;
    struct senders senders = {.work = work};
    if (!operations->objects[ASYNC_HTTP_REQUEST].count)
        return;
    for (uint32_t i = 0; i < operations->chains.count && !work->no_memory; i++) {
        struct async_chain_frames frames = async_chain_frames(operations, i);
        const struct async_frame *frame;
        senders.request = 0;
        while ((frame = async_next_frame(&frames)) && reader_step(reader, "async methods"))
            take_frame(&senders, frame);
    }
    async_indices_deinit(&senders.known);
}

/* ---- Requests that the process serves ---- */

/*
 * Whether the program answers the request. Its HttpContext says so, if the program uses one. What HttpProtocol says is
 * known of HTTP/1 alone: the streams of HTTP/2 and 3 pass no state until the response begins.
 */
static bool is_answering_now(struct pending_work *work, uint64_t served, uint64_t context, bool *ret)
{
    struct async_kinds *kinds = &work->operations->kinds;
    uint64_t status, active, http = async_reference(kinds, context, "<HttpContext>k__BackingField");
    if (async_read(kinds, http, "_active", 1, &active)) {
        *ret = active;
        return true;
    }
    if (!async_read(kinds, served, "_requestProcessingStatus", 4, &status))
        return false;
    *ret = status >= STATUS_APP_STARTED && status <= STATUS_HEADERS_FLUSHED;
    return true;
}

static void add_served(struct pending_work *work, uint64_t served)
{
    struct async_kinds *kinds = &work->operations->kinds;
    uint64_t start = 0, context = async_reference(kinds, served,
                                                  "<Microsoft.AspNetCore.Hosting.Server.Abstractions."
                                                  "IHostContextContainer<TContext>.HostContext>k__BackingField");
    bool is_answering;
    if (!is_answering_now(work, served, context, &is_answering)) {
        work->misses_requests = true;
        return;
    }
    if (!is_answering)
        return;
    /* When the program began to answer, if it asked for that: with a log of requests, metrics or diagnostics. */
    (void)async_read(kinds, context, "<StartTimestamp>k__BackingField", 8, &start);
    const struct pending_request request = {
        .object = served, .is_served = true, .start = start > INT64_MAX ? 0 : (int64_t)start / NS_OF_A_MS};
    work->latest = MAX(work->latest, request.start);
    work->no_memory |= !pending_requests_append(&work->requests, request);
}

static void find_served(struct pending_work *work)
{
    struct reader *reader = &work->operations->resolver->reader;
    const struct async_objects *served = &work->operations->objects[ASYNC_HTTP_SERVED];
    size_t before = work->requests.count;
    for (size_t i = 0; i < served->count && !work->no_memory && reader_step(reader, "HTTP requests"); i++) {
        work->is_full |= work->requests.count - before >= PENDING_REQUESTS_MAX;
        if (work->is_full)
            return;
        add_served(work, served->items[i]);
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
    work->is_full |= !operations->types.reads_left;
    if (work->no_memory)
        reader_fail(&operations->resolver->reader, CDACQ_ERR_NOMEM, 0, "work items");
    return !reader_failed(&operations->resolver->reader);
}
