#include "src/waits/async_reasons.h"

#include <inttypes.h>
#include <time.h>

#include "contracts/objects/object.h"
#include "contracts/objects/string.h"
#include "contracts/threading/async_method.h"
#include "contracts/threading/task.h"
#include "contracts/type_system/type_handle.h"
#include "src/waits/wait_graph.h"

enum {
    CHANNEL_DEPTH = 4,        /* from a channel to an object that it lists */
    CHANNEL_WORDS_MAX = 4096, /* of an object that it refers to */
    LOOKS_MAX = 1 << 22,      /* at such words, of all channels */
    SEMAPHORE_LIST_MAX = 1 << 20,
    NAMED_MAX = 3,            /* tasks of Task.WhenAll that are named */
    ALL_MAX = 1 << 16,        /* of one Task.WhenAll that are looked at */
    TEXT_MAX = 1024,          /* characters of a string */
    HTTP_OPERATIONS_MAX = 64, /* of a chain in which a request is searched for */
    REQUEST_TYPES_MAX = 16,   /* HttpRequestMessage, and types derived from it */
    NO_DUE_TIME = UINT32_MAX, /* of a timer that does not run */
    MS_OF_A_SECOND = 1000,
};

/* ---- What refers to what ---- */

static bool note(struct async_reasons *reasons, struct async_indices *indices, uint64_t object, uint64_t other)
{
    if (indices->count < ASYNC_OPERATIONS_MAX &&
        !async_indices_insert(indices, (struct async_index){object, other}, NULL))
        reasons->operations->no_memory = true;
    return !reasons->operations->no_memory;
}

static void read_semaphore(struct async_reasons *reasons, uint64_t semaphore)
{
    struct async_kinds *kinds = &reasons->operations->kinds;
    uint64_t count = 0, node = async_reference(kinds, semaphore, "m_asyncHead");
    if (!node)
        return;
    for (; node && count < SEMAPHORE_LIST_MAX && !async_indices_find(&reasons->semaphores, node); count++) {
        if (async_kind_of(kinds, node) != ASYNC_SEMAPHORE_TASK || !note(reasons, &reasons->semaphores, node, semaphore))
            break;
        node = async_reference(kinds, node, "Next");
    }
    (void)note(reasons, &reasons->waiters, semaphore, count);
}

/* Notes the reads or writes that an object which a channel refers to lists. */
static void read_channel_list(struct async_reasons *reasons, uint64_t object, uint64_t channel, unsigned depth)
{
    struct async_kinds *kinds = &reasons->operations->kinds;
    struct reader *reader = &reasons->operations->resolver->reader;
    struct object_array array;
    if (!depth || !object)
        return;
    if (threading_array(kinds->types, object, &array)) {
        for (uint64_t i = 0; i < MIN(array.count, (uint32_t)CHANNEL_WORDS_MAX) && reasons->looks_left; i++) {
            uint64_t item;
            reasons->looks_left--;
            if (!threading_element(kinds->types, &array, i, &item))
                return;
            if (item && async_kind_of(kinds, item) == ASYNC_CHANNEL_CALL)
                read_channel_list(reasons, item, channel, depth - 1);
        }
        return;
    }
    enum async_kind kind = async_kind_of(kinds, object);
    if (kind == ASYNC_DEQUE)
        read_channel_list(reasons, async_reference(kinds, object, "_array"), channel, depth - 1);
    while (kind == ASYNC_CHANNEL_CALL && reasons->looks_left && !async_indices_find(&reasons->channels, object) &&
           note(reasons, &reasons->channels, object, channel) && !reader_failed(reader)) {
        reasons->looks_left--;
        object = async_reference(kinds, object, "<Next>k__BackingField");
        object = object && async_kind_of(kinds, object) == ASYNC_CHANNEL_CALL ? object : 0;
        if (!object)
            break;
    }
}

static void read_channel(struct async_reasons *reasons, uint64_t channel)
{
    /* The fields of all kinds of channels in all versions. */
    static const struct {
        const char *name;
        bool is_write;
    } fields[] = {
        {"_blockedReaders", false},     {"_blockedReader", false},      {"_blockedReadersHead", false},
        {"_waitingReadersTail", false}, {"_waitingReadersHead", false}, {"_waitingReader", false},
        {"_blockedWriters", true},      {"_blockedWritersHead", true},  {"_waitingWritersTail", true},
        {"_waitingWritersHead", true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        read_channel_list(reasons, async_reference(&reasons->operations->kinds, channel, fields[i].name),
                          channel | fields[i].is_write, CHANNEL_DEPTH);
}

int64_t async_time_of(const struct resolver *resolver)
{
    struct timespec now;
    if (resolver->reader.target->kind != CDACQ_TARGET_PROCESS || clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        return 0;
    return (int64_t)now.tv_sec * MS_OF_A_SECOND + now.tv_nsec / 1000000;
}

bool async_reasons_init(struct async_reasons *reasons, struct async_operations *operations, int64_t now)
{
    const struct async_objects *semaphores = &operations->objects[ASYNC_SEMAPHORE],
                               *channels = &operations->objects[ASYNC_CHANNEL],
                               *sources = &operations->objects[ASYNC_SOURCE];
    struct reader *reader = &operations->resolver->reader;
    *reasons = (struct async_reasons){.operations = operations, .looks_left = LOOKS_MAX, .now = now};
    for (size_t i = 0; i < semaphores->count && reader_step(reader, "semaphores"); i++)
        read_semaphore(reasons, semaphores->items[i]);
    for (size_t i = 0; i < channels->count && reader_step(reader, "channels"); i++)
        read_channel(reasons, channels->items[i]);
    for (size_t i = 0; i < sources->count && reader_step(reader, "sources of tasks"); i++) {
        uint64_t task = async_reference(&operations->kinds, sources->items[i], "_task");
        if (task && !note(reasons, &reasons->sources, task, sources->items[i]))
            break;
    }
    for (const struct async_type *type = NULL; (type = async_types_next(&operations->kinds.known, type));)
        if (type->kind == ASYNC_HTTP_REQUEST && reasons->request_types.count < REQUEST_TYPES_MAX)
            operations->no_memory |= !async_objects_append(&reasons->request_types, type->method_table);
    if (operations->no_memory)
        reader_fail(reader, CDACQ_ERR_NOMEM, 0, "async operations");
    return !reader_failed(reader);
}

void async_reasons_deinit(struct async_reasons *reasons)
{
    async_indices_deinit(&reasons->semaphores);
    async_indices_deinit(&reasons->waiters);
    async_indices_deinit(&reasons->channels);
    async_indices_deinit(&reasons->sources);
    async_objects_deinit(&reasons->request_types);
}

/* ---- The reason ---- */

/* Reads when a timer is due. A timer of the core library may be in another one, which a TimeProvider has made. */
static bool read_due(struct async_reasons *reasons, uint64_t owner, struct async_reason *ret)
{
    struct async_kinds *kinds = &reasons->operations->kinds;
    uint64_t start, due, timer = async_reference(kinds, owner, "_timer");
    if (timer && !async_read(kinds, timer, "_startTicks", 8, &start))
        timer = async_reference(kinds, timer, "_timer");
    if (!timer || !async_read(kinds, timer, "_startTicks", 8, &start) ||
        !async_read(kinds, timer, "_dueTime", 4, &due) || due == NO_DUE_TIME || start > INT64_MAX / 2)
        return false;
    ret->has_due = true;
    ret->due = (int64_t)start + (int64_t)due;
    reasons->latest = MAX(reasons->latest, (int64_t)start);
    return true;
}

static void find_delay(struct async_reasons *reasons, uint64_t task, struct async_reason *ret)
{
    struct async_kinds *kinds = &reasons->operations->kinds;
    uint64_t token;
    ret->kind = read_due(reasons, task, ret)                          ? ASYNC_REASON_DELAY
                : async_reference(kinds, task, "_timer")              ? ASYNC_REASON_UNKNOWN
                : async_read(kinds, task, "_registration", 0, &token) ? ASYNC_REASON_CANCELLATION
                                                                      : ASYNC_REASON_ENDLESS;
}

static void find_by_index(const struct async_indices *indices, enum async_reason_kind kind, struct async_reason *ret)
{
    const struct async_index *found = async_indices_find(indices, ret->awaited);
    ret->kind = kind;
    ret->thing = found ? found->other : 0;
}

/* A task of no special type. */
static void find_task(struct async_reasons *reasons, struct async_reason *ret)
{
    struct threading_types *types = &reasons->operations->types;
    uint64_t action;
    find_by_index(&reasons->sources, ASYNC_REASON_SOURCE, ret);
    if (ret->thing)
        return;
    ret->thing = ret->awaited;
    if (threading_read(types, ret->awaited, THREADING_TASK_ACTION, &action) && action)
        ret->kind = ASYNC_REASON_WORK;
    else
        ret->kind = ASYNC_REASON_NO_SOURCE;
}

static void find_by_kind(struct async_reasons *reasons, enum async_kind kind, struct async_reason *ret)
{
    struct async_kinds *kinds = &reasons->operations->kinds;
    switch (kind) {
    case ASYNC_BOX:
    case ASYNC_RUNTIME_TASK:
        ret->kind = ASYNC_REASON_RUNNING;
        break;
    case ASYNC_DELAY:
        find_delay(reasons, ret->awaited, ret);
        break;
    case ASYNC_WHEN_ALL:
        ret->kind = ASYNC_REASON_ALL;
        break;
    case ASYNC_WHEN_ANY:
        ret->kind = ASYNC_REASON_ANY;
        break;
    case ASYNC_UNWRAP:
        ret->kind = ASYNC_REASON_UNWRAP;
        break;
    case ASYNC_SEMAPHORE_TASK:
        find_by_index(&reasons->semaphores, ASYNC_REASON_SEMAPHORE, ret);
        break;
    case ASYNC_CHANNEL_CALL:
        find_by_index(&reasons->channels, ASYNC_REASON_CHANNEL, ret);
        break;
    case ASYNC_SOCKET:
        ret->kind = ASYNC_REASON_SOCKET;
        break;
    case ASYNC_FILE:
        ret->kind = ASYNC_REASON_FILE;
        break;
    case ASYNC_PERIODIC:
        ret->thing = async_reference(kinds, ret->awaited, "_owner");
        ret->kind = ret->thing ? ASYNC_REASON_PERIODIC : ASYNC_REASON_OTHER;
        (void)read_due(reasons, ret->thing, ret);
        break;
    case ASYNC_TASK:
        find_task(reasons, ret);
        break;
    default:
        ret->kind = ASYNC_REASON_OTHER;
    }
}

/* The operation that an awaited object stands for: its task, or the box of an iterator. */
static uint32_t operation_of(struct async_operations *operations, uint64_t object)
{
    struct async_method method;
    uint32_t found = async_operation_of(operations, object);
    if (found != ASYNC_NONE || threading_is_task(threading_type_of(&operations->types, object, true)) ||
        !async_method_find(&operations->types, object, &method))
        return found;
    return async_operation_of(operations, method.box);
}

struct async_reason async_reason_of(struct async_reasons *reasons, const struct async_chain *chain)
{
    struct async_operations *operations = reasons->operations;
    struct async_reason reason = {.awaited = chain->awaited};
    enum task_status status;
    uint64_t inner;
    enum async_kind kind = async_kind_of(&operations->kinds, reason.awaited);
    if (kind == ASYNC_WAIT_ASYNC && (inner = async_reference(&operations->kinds, reason.awaited, "_task"))) {
        (void)read_due(reasons, reason.awaited, &reason);
        reason.awaited = inner;
        kind = async_kind_of(&operations->kinds, inner);
    }
    if (threading_type_of(&operations->types, reason.awaited, true) == THREADING_SOURCE_TASK &&
        threading_read(&operations->types, reason.awaited, THREADING_TASK_SOURCE, &inner) && inner) {
        reason.awaited = inner;
        kind = async_kind_of(&operations->kinds, inner);
    }
    reason.type = async_type_of(&operations->kinds, reason.awaited);
    reason.thing = reason.awaited;
    if (!reason.type)
        return reason;
    if (reason.awaited == operations->items.items[chain->operation].object)
        reason.kind = ASYNC_REASON_RUNNING;
    else if (threading_is_task(threading_type_of(&operations->types, reason.awaited, true)) &&
             task_read_status(&operations->types, reason.awaited, &status) && task_is_completed(status))
        reason.kind = ASYNC_REASON_COMPLETED;
    else if (operation_of(operations, reason.awaited) != ASYNC_NONE)
        reason.kind = ASYNC_REASON_OPERATION;
    else
        find_by_kind(reasons, kind, &reason);
    return reason;
}

/* Appends the name of a type, or "?". */
static void put_type(struct async_reasons *reasons, uint64_t method_table, struct text *ret)
{
    struct resolver *resolver = reasons->operations->resolver;
    struct text text = {0};
    struct reader_task outer = reader_enter(&resolver->reader, FUEL_NAME);
    bool named = method_table && type_handle_name(&resolver->modules, method_table, &text) == CDACQ_OK && text.length;
    reader_leave(&resolver->reader, &outer);
    text_append(ret, named ? text.data : "?", named ? text.length : 1);
    text_deinit(&text);
}

/* ---- Cycles ---- */

struct missing {
    struct async_reasons *reasons;
    struct text *text; /* NULL: only what follows is wanted */
    uint32_t chain;    /* that is searched for */
    bool found;
    uint64_t count;
};

static void put_operation(struct async_reasons *reasons, uint32_t operation, struct text *ret);

static bool take_missing(void *context, uint64_t task)
{
    struct missing *missing = context;
    struct async_operations *operations = missing->reasons->operations;
    enum task_status status;
    if (!threading_is_task(threading_type_of(&operations->types, task, true)) ||
        !task_read_status(&operations->types, task, &status) || task_is_completed(status))
        return true;
    uint32_t operation = async_operation_of(operations, task);
    missing->found |= operation != ASYNC_NONE && operations->items.items[operation].chain == missing->chain;
    if (missing->text && missing->count < NAMED_MAX) {
        text_puts(missing->text, missing->count ? ", " : ": ");
        if (operation != ASYNC_NONE)
            put_operation(missing->reasons, operation, missing->text);
        else
            put_type(missing->reasons, async_type_of(&operations->kinds, task), missing->text);
    }
    return ++missing->count < ALL_MAX;
}

/* The chain that a chain waits for; ASYNC_NONE: none. */
static uint32_t chain_before(struct async_reasons *reasons, uint32_t number)
{
    struct async_operations *operations = reasons->operations;
    const struct async_chain *chain = &operations->chains.items[number];
    uint32_t operation = operation_of(operations, chain->awaited);
    if (operation == chain->operation) /* a thread runs it */
        return ASYNC_NONE;
    if (operation != ASYNC_NONE)
        return operations->items.items[operation].chain;
    struct missing missing = {.reasons = reasons, .chain = number};
    if (async_kind_of(&operations->kinds, chain->awaited) == ASYNC_WHEN_ALL)
        (void)task_each_of_all(&operations->types, chain->awaited, take_missing, &missing);
    return missing.found ? number : ASYNC_NONE;
}

bool async_reasons_mark_cycles(struct async_reasons *reasons)
{
    struct async_chain_list *chains = &reasons->operations->chains;
    struct reader *reader = &reasons->operations->resolver->reader;
    /* Of each chain, that before it, and the number of the search that has come to it, from 1. */
    uint32_t *before = calloc(chains->count + 1, sizeof *before), *seen = calloc(chains->count + 1, sizeof *seen);
    if (!before || !seen)
        reader_fail(reader, CDACQ_ERR_NOMEM, 0, "async operations");
    for (uint32_t i = 0; i < chains->count && reader_step(reader, "chains"); i++)
        before[i] = chains->items[i].is_cycle || chains->items[i].is_bounded ? ASYNC_NONE : chain_before(reasons, i);
    for (uint32_t i = 0; i < chains->count && reader_step(reader, "chains"); i++) {
        uint32_t at = i;
        for (; at != ASYNC_NONE && !seen[at]; at = before[at])
            seen[at] = i + 1;
        for (uint32_t first = at; at != ASYNC_NONE && seen[at] == i + 1 && !chains->items[at].is_cycle;
             at = before[at] == first ? ASYNC_NONE : before[at])
            chains->items[at].is_cycle = true;
    }
    free(before);
    free(seen);
    return !reader_failed(reader);
}

/* ---- Words ---- */

bool async_string_put(struct async_operations *operations, uint64_t string, struct text *ret)
{
    struct reader *reader = &operations->resolver->reader;
    struct text raw = {0};
    struct reader_task outer = reader_enter(reader, FUEL_NAME);
    bool found = string && string_append(reader, string, TEXT_MAX, &raw);
    found &= reader_leave(reader, &outer).status >= 0;
    if (found)
        text_escape(ret, raw.data, raw.length);
    text_deinit(&raw);
    return found;
}

static bool put_frame(struct async_reasons *reasons, const struct async_frame *frame, struct text *ret)
{
    struct cdacq_method method = {.size = sizeof method};
    struct reader *reader = &reasons->operations->resolver->reader;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    bool named = async_frame_answer(&reasons->operations->async, frame, &method) && method.name;
    reader_leave(reader, &outer);
    if (named)
        text_append(ret, method.name, method.name_length);
    return named;
}

/* The method whose task an operation is: the outermost. */
static void put_operation(struct async_reasons *reasons, uint32_t operation, struct text *ret)
{
    struct async_operations *operations = reasons->operations;
    const struct async_operation *item = &operations->items.items[operation];
    for (uint32_t i = item->frame_count; i-- > 0;)
        if (put_frame(reasons, async_operation_frames(operations, operation) + i, ret))
            return;
    put_type(reasons, async_type_of(&operations->kinds, item->object), ret);
}

static void put_address(const struct async_common *common, uint64_t object, struct text *ret)
{
    text_printf(ret, "%s0x%" PRIx64, common->differs ? ", such as " : " ", object);
}

static void put_due(struct async_reasons *reasons, const struct async_common *common, const char *what,
                    struct text *ret)
{
    /* A core does not say when it was written: but not before the last timer was started. */
    bool is_exact = reasons->now >= reasons->latest;
    int64_t now = is_exact ? reasons->now : reasons->latest;
    double begin = (double)(common->due_begin - now) / MS_OF_A_SECOND,
           end = (double)(common->due_end - now) / MS_OF_A_SECOND;
    if (end < 0 && is_exact)
        text_printf(ret, ", %s%.1f s ago", what, -end);
    else if (!is_exact)
        text_printf(ret, ", %sin at most %.1f s", what, end);
    else if (end - begin < 0.1)
        text_printf(ret, ", %sin %.1f s", what, begin);
    else
        text_printf(ret, ", %sin %.1f to %.1f s", what, begin, end);
}

static void put_semaphore(struct async_reasons *reasons, const struct async_common *common, struct text *ret)
{
    struct async_kinds *kinds = &reasons->operations->kinds;
    uint64_t semaphore = common->reason.thing, count, blocked = 0;
    text_puts(ret, "SemaphoreSlim");
    if (!semaphore)
        return;
    put_address(common, semaphore, ret);
    const struct async_index *listed = async_indices_find(&reasons->waiters, semaphore);
    (void)async_read(kinds, semaphore, "m_waitCount", 4, &blocked);
    uint64_t waiters = (listed ? listed->other : 0) + (blocked & INT32_MAX);
    if (async_read(kinds, semaphore, "m_currentCount", 4, &count))
        text_printf(ret, " (count %" PRId32 ", %" PRIu64 " waiter%s)", (int32_t)count, waiters, plural(waiters));
}

static void put_channel(struct async_reasons *reasons, const struct async_common *common, struct text *ret)
{
    struct async_kinds *kinds = &reasons->operations->kinds;
    uint64_t channel = common->reason.thing & ~UINT64_C(1), capacity, items, size;
    text_puts(ret, "Channel");
    if (!channel)
        return;
    put_address(common, channel, ret);
    text_puts(ret, common->reason.thing & 1 ? " (to write" : " (to read");
    items = async_reference(kinds, channel, "_items");
    if (items && async_read(kinds, items, "_size", 4, &size))
        text_printf(ret, ", %" PRIu64 " item%s", size, plural(size));
    if (async_read(kinds, channel, "_bufferedCapacity", 4, &capacity))
        text_printf(ret, ", capacity %" PRIu64, capacity);
    text_puts(ret, ")");
}

/* A class that a library derived from TaskCompletionSource tells more. */
static void put_source(struct async_reasons *reasons, const struct async_common *common, struct text *ret)
{
    struct async_operations *operations = reasons->operations;
    struct reader *reader = &operations->resolver->reader;
    uint64_t type = async_type_of(&operations->kinds, common->reason.thing & ~UINT64_C(1));
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    bool is_derived = type && read_field(reader, type, F_MethodTable_Module) != operations->types.core;
    if (reader_leave(reader, &outer).status >= 0 && is_derived)
        put_type(reasons, type, ret);
    else
        text_puts(ret, "TaskCompletionSource");
    put_address(common, common->reason.thing, ret);
}

static void put_all(struct async_reasons *reasons, const struct async_common *common, struct text *ret)
{
    struct async_operations *operations = reasons->operations;
    struct missing missing = {.reasons = reasons, .chain = ASYNC_NONE};
    struct text names = {0};
    struct object_array array;
    uint64_t tasks = async_reference(&operations->kinds, common->reason.awaited, "m_tasks"), left;
    missing.text = &names;
    text_puts(ret, "Task.WhenAll");
    if (tasks && threading_array(&operations->types, tasks, &array)) {
        (void)task_each_of_all(&operations->types, common->reason.awaited, take_missing, &missing);
        text_printf(ret, "%s %" PRIu64 " of %" PRIu32 " tasks missing", common->differs ? ", such as with" : ",",
                    missing.count, array.count);
        text_append(ret, names.data ? names.data : "", names.length);
        if (missing.count > NAMED_MAX)
            text_puts(ret, ", ...");
    } else if (async_read(&operations->kinds, common->reason.awaited, "m_count", 4, &left) ||
               async_read(&operations->kinds, common->reason.awaited, "_remainingToComplete", 4, &left)) {
        text_printf(ret, "%s %" PRIu64 " task%s missing", common->differs ? ", such as with" : ",", left & INT32_MAX,
                    plural(left));
    }
    text_deinit(&names);
}

void async_entry_put(struct resolver *resolver, uint64_t entry, struct text *ret)
{
    struct text name = {0};
    struct reader_task outer = reader_enter(&resolver->reader, FUEL_NAME);
    if (entry)
        wait_name_entry(resolver, entry, &name);
    reader_leave(&resolver->reader, &outer);
    if (name.length && !name.broken)
        text_append(ret, name.data, name.length);
    text_deinit(&name);
}

static void put_work(struct async_reasons *reasons, const struct async_common *common, struct text *ret)
{
    struct async_operations *operations = reasons->operations;
    enum task_status status = TASK_CREATED;
    (void)task_read_status(&operations->types, common->reason.awaited, &status);
    text_puts(ret, "the task of ");
    size_t length = ret->length;
    async_entry_put(operations->resolver, task_entry_point(&operations->types, common->reason.awaited), ret);
    text_puts(ret, ret->length == length ? "a delegate" : "");
    text_printf(ret, " (%s)", task_status_text(status));
}

static void put_end_point(struct async_reasons *reasons, uint64_t socket, struct text *ret)
{
    struct async_kinds *kinds = &reasons->operations->kinds;
    uint64_t end = async_reference(kinds, socket, "_remoteEndPoint"), port, bits;
    if (!end)
        end = async_reference(kinds, socket, "_rightEndPoint");
    uint64_t address = async_reference(kinds, end, "_address");
    if (!address || async_reference(kinds, address, "_numbers") ||
        !async_read(kinds, address, "_addressOrScopeId", 4, &bits) || !async_read(kinds, end, "_port", 4, &port))
        return;
    text_printf(ret, " with %u.%u.%u.%u:%u", (unsigned)(bits & 255), (unsigned)(bits >> 8 & 255),
                (unsigned)(bits >> 16 & 255), (unsigned)(bits >> 24 & 255), (unsigned)(port & UINT16_MAX));
}

static void put_socket(struct async_reasons *reasons, const struct async_common *common, struct text *ret)
{
    static const char *const names[] = {
        "",     "Accept",      "Connect", "Disconnect", "Receive", "ReceiveFrom", "ReceiveMessageFrom",
        "Send", "SendPackets", "SendTo"};
    struct async_kinds *kinds = &reasons->operations->kinds;
    uint64_t operation = 0, socket = async_reference(kinds, common->reason.awaited, "_currentSocket");
    (void)async_read(kinds, common->reason.awaited, "_completedOperation", 4, &operation);
    text_puts(ret, "socket");
    if (operation && operation < ARRAY_SIZE(names))
        text_printf(ret, ": %s", names[operation]);
    if (socket && !common->differs)
        put_end_point(reasons, socket, ret);
}

static void put_file(struct async_reasons *reasons, const struct async_common *common, struct text *ret)
{
    struct async_kinds *kinds = &reasons->operations->kinds;
    uint64_t handle = async_reference(kinds, common->reason.awaited, "_fileHandle");
    uint64_t path = async_reference(kinds, handle, "_path");
    text_puts(ret, "file");
    if (path) {
        text_puts(ret, common->differs ? ", such as " : " ");
        if (!async_string_put(reasons->operations, path, ret))
            text_puts(ret, "?");
    }
}

/* Searches the methods of a chain for the HTTP request that they make. 0: there is none. */
static uint64_t find_request(struct async_reasons *reasons, const struct async_chain *chain)
{
    struct async_operations *operations = reasons->operations;
    struct threading_types *types = &operations->types;
    for (size_t k = 0; k < reasons->request_types.count; k++) {
        uint64_t type = reasons->request_types.items[k];
        uint32_t at = chain->operation;
        for (unsigned i = 0; i < HTTP_OPERATIONS_MAX && i < chain->operation_count && at != ASYNC_NONE; i++) {
            const struct async_operation *item = &operations->items.items[at];
            for (uint32_t j = 0; j < MIN(item->frame_count, (uint32_t)HTTP_OPERATIONS_MAX); j++) {
                struct async_method method;
                uint64_t object = async_operation_frames(operations, at)[j].object, found;
                found = async_object_reference_to(types, object, type);
                if (!found && async_method_find(types, object, &method) && method.machine)
                    found = async_object_reference_to(types, method.machine, type);
                if (found)
                    return found;
            }
            at = item->next;
        }
    }
    return 0;
}

bool async_request_put(struct async_operations *operations, uint64_t request, struct text *ret)
{
    struct async_kinds *kinds = &operations->kinds;
    uint64_t verb = async_reference(kinds, async_reference(kinds, request, "_method"), "_method");
    uint64_t uri = async_reference(kinds, async_reference(kinds, request, "_requestUri"), "_string");
    if (!async_string_put(operations, verb, ret))
        return false;
    text_putc(ret, ' ');
    return async_string_put(operations, uri, ret);
}

static void put_request(struct async_reasons *reasons, const struct async_chain *chain,
                        const struct async_common *common, struct text *ret)
{
    uint64_t request = find_request(reasons, chain);
    struct text text = {0};
    if (request && async_request_put(reasons->operations, request, &text) && !text.broken)
        text_printf(ret, "HTTP request%s %s, ", common->differs ? "s, such as" : "", text.data);
    text_deinit(&text);
}

static void put_other(struct async_reasons *reasons, const struct async_common *common, struct text *ret)
{
    put_type(reasons, common->reason.type, ret);
    put_address(common, common->reason.awaited, ret);
}

static void put_running(struct async_reasons *reasons, const struct async_common *common, struct text *ret)
{
    struct async_operations *operations = reasons->operations;
    struct async_method method;
    struct text name = {0};
    struct async_frame frame = {.object = common->reason.awaited, .state = -1};
    if (async_method_find(&operations->types, common->reason.awaited, &method) && method.type)
        frame.type = method.type;
    text_puts(ret, "a method that runs");
    if (frame.type && put_frame(reasons, &frame, &name) && !name.broken)
        text_printf(ret, ": %s", name.data);
    text_deinit(&name);
}

void async_reason_put(struct async_reasons *reasons, const struct async_chain *chain, const struct async_common *common,
                      struct text *ret)
{
    struct async_operations *operations = reasons->operations;
    uint32_t operation;
    put_request(reasons, chain, common, ret);
    switch (common->reason.kind) {
    case ASYNC_REASON_UNKNOWN:
        text_puts(ret, "not known");
        break;
    case ASYNC_REASON_COMPLETED:
        text_puts(ret, "nothing: what it awaited has completed, and it has not gone on yet");
        break;
    case ASYNC_REASON_OPERATION:
        operation = operation_of(operations, common->reason.awaited);
        text_puts(ret, chain->is_cycle ? "deadlock: the task of " : "another task: ");
        put_operation(reasons, operation, ret);
        if (chain->is_cycle)
            text_puts(ret, ", which waits for this");
        break;
    case ASYNC_REASON_RUNNING:
        put_running(reasons, common, ret);
        break;
    case ASYNC_REASON_DELAY:
        text_puts(ret, "Task.Delay");
        put_due(reasons, common, "due ", ret);
        return;
    case ASYNC_REASON_CANCELLATION:
        text_puts(ret, "cancellation: Task.Delay without end");
        break;
    case ASYNC_REASON_ENDLESS:
        text_puts(ret, "Task.Delay without end");
        break;
    case ASYNC_REASON_PERIODIC:
        text_puts(ret, "PeriodicTimer");
        put_address(common, common->reason.thing, ret);
        if (common->reason.has_due)
            put_due(reasons, common, "due ", ret);
        return;
    case ASYNC_REASON_SEMAPHORE:
        put_semaphore(reasons, common, ret);
        break;
    case ASYNC_REASON_CHANNEL:
        put_channel(reasons, common, ret);
        break;
    case ASYNC_REASON_SOURCE:
        put_source(reasons, common, ret);
        break;
    case ASYNC_REASON_NO_SOURCE:
        put_other(reasons, common, ret);
        text_puts(ret, ", for which the heap has no TaskCompletionSource");
        break;
    case ASYNC_REASON_WORK:
        put_work(reasons, common, ret);
        break;
    case ASYNC_REASON_ALL:
        text_puts(ret, chain->is_cycle ? "deadlock: " : "");
        put_all(reasons, common, ret);
        break;
    case ASYNC_REASON_ANY:
        text_puts(ret, "Task.WhenAny");
        break;
    case ASYNC_REASON_UNWRAP:
        text_puts(ret, "Task.Run or Task.Unwrap of a task");
        break;
    case ASYNC_REASON_SOCKET:
        put_socket(reasons, common, ret);
        break;
    case ASYNC_REASON_FILE:
        put_file(reasons, common, ret);
        break;
    case ASYNC_REASON_OTHER:
        put_other(reasons, common, ret);
        break;
    }
    if (common->reason.has_due)
        put_due(reasons, common, "time-out ", ret);
}
