#include "src/waits/async_kinds.h"

#include "contracts/objects/field.h"
#include "contracts/threading/async_method.h"
#include "contracts/type_system/type_handle.h"
#include "formats/metadata_members.h"

/* The names of the types; a nested one has no namespace. Several names can stand for one kind. */
static const struct {
    enum async_kind kind;
    bool is_core; /* only of the core library */
    const char *space, *name;
} kind_names[] = {
    {ASYNC_DELAY, true, "", "DelayPromise"},
    {ASYNC_WHEN_ALL, true, "", "WhenAllPromise"},
    {ASYNC_WHEN_ALL, true, "", "WhenAllPromise`1"},
    {ASYNC_WHEN_ANY, true, "", "CompleteOnInvokePromise"},
    {ASYNC_WHEN_ANY, true, "", "CompleteOnInvokePromise`1"},
    {ASYNC_WHEN_ANY, true, "", "TwoTaskWhenAnyPromise`1"},
    {ASYNC_WAIT_ASYNC, true, "", "CancellationPromise`1"},
    {ASYNC_UNWRAP, true, "System.Threading.Tasks", "UnwrapPromise`1"},
    {ASYNC_SEMAPHORE, true, "System.Threading", "SemaphoreSlim"},
    {ASYNC_SEMAPHORE_TASK, true, "", "TaskNode"},
    {ASYNC_SOURCE, true, "System.Threading.Tasks", "TaskCompletionSource"},
    {ASYNC_SOURCE, true, "System.Threading.Tasks", "TaskCompletionSource`1"},
    {ASYNC_HOLDER, true, "System.Threading.Tasks", "TaskExceptionHolder"},
    {ASYNC_CHANNEL, false, "System.Threading.Channels", "BoundedChannel`1"},
    {ASYNC_CHANNEL, false, "System.Threading.Channels", "UnboundedChannel`1"},
    {ASYNC_CHANNEL, false, "System.Threading.Channels", "SingleConsumerUnboundedChannel`1"},
    {ASYNC_CHANNEL, false, "System.Threading.Channels", "UnboundedPrioritizedChannel`1"},
    {ASYNC_CHANNEL, false, "System.Threading.Channels", "RendezvousChannel`1"},
    {ASYNC_CHANNEL_CALL, false, "System.Threading.Channels", "AsyncOperation"},
    {ASYNC_CHANNEL_CALL, false, "System.Threading.Channels", "AsyncOperation`1"},
    {ASYNC_CHANNEL_CALL, false, "System.Threading.Channels", "AsyncOperation`2"},
    {ASYNC_DEQUE, false, "System.Collections.Generic", "Deque`1"},
    {ASYNC_SOCKET, false, "System.Net.Sockets", "SocketAsyncEventArgs"},
    {ASYNC_FILE, true, "", "ThreadPoolValueTaskSource"},
    {ASYNC_PERIODIC, true, "", "State"},
    {ASYNC_HTTP_REQUEST, false, "System.Net.Http", "HttpRequestMessage"},
    {ASYNC_HTTP_SERVED, false, "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http", "HttpProtocol"},
    {ASYNC_TIMER, true, "System.Threading", "TimerQueueTimer"},
    {ASYNC_WORK_QUEUE, true, "System.Threading", "ThreadPoolWorkQueue"},
    {ASYNC_STEALING, true, "", "WorkStealingQueue"},
};

void async_kinds_deinit(struct async_kinds *kinds)
{
    async_types_deinit(&kinds->known);
    async_named_fields_deinit(&kinds->fields);
}

uint64_t async_type_of(struct async_kinds *kinds, uint64_t object)
{
    struct reader *reader = kinds->types->cache->reader;
    if (!object || object % reader->pointer_size || !kinds->types->reads_left)
        return 0;
    kinds->types->reads_left--;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    uint64_t table = object_method_table(reader, object);
    return reader_leave(reader, &outer).status < 0 ? 0 : table;
}

static enum async_kind kind_of_name(const struct metadata *metadata, uint32_t token, bool is_core)
{
    for (size_t i = 0; i < ARRAY_SIZE(kind_names); i++) {
        bool equal = false;
        if (kind_names[i].is_core && !is_core)
            continue;
        if (metadata_type_is(metadata, token, kind_names[i].space, kind_names[i].name, &equal) == CDACQ_OK && equal)
            return kind_names[i].kind;
    }
    return ASYNC_OTHER;
}

/* The kind that the name of a type or of one of its base types gives. */
static enum async_kind kind_by_name(struct async_kinds *kinds, uint64_t method_table)
{
    struct threading_types *types = kinds->types;
    struct reader *reader = types->cache->reader;
    const struct metadata *metadata;
    uint32_t token;
    enum async_kind kind = ASYNC_OTHER;
    struct reader_task outer = reader_enter(reader, FUEL_NAME);
    for (unsigned i = 0; method_table && !kind && i < HIERARCHY_MAX && reader_step(reader, "base types"); i++) {
        bool is_core = read_field(reader, method_table, F_MethodTable_Module) == types->core;
        if (!method_table_is_array(reader, method_table) &&
            type_handle_definition(types->cache, method_table, &metadata, &token) == CDACQ_OK)
            kind = kind_of_name(metadata, token, is_core);
        method_table = method_table_parent(reader, method_table);
    }
    return reader_leave(reader, &outer).status < 0 ? ASYNC_OTHER : kind;
}

static enum async_kind classify(struct async_kinds *kinds, uint64_t method_table, uint64_t sample)
{
    enum threading_type type = threading_type_of(kinds->types, sample, true);
    if (type == THREADING_RUNTIME_ASYNC)
        return ASYNC_RUNTIME_TASK;
    if (async_box_machine(kinds->types, method_table))
        return ASYNC_BOX;
    enum async_kind kind = kind_by_name(kinds, method_table);
    return kind == ASYNC_OTHER && threading_is_task(type) ? ASYNC_TASK : kind;
}

enum async_kind async_kind_of_type(struct async_kinds *kinds, uint64_t method_table, uint64_t sample)
{
    struct async_type *known = async_types_find(&kinds->known, method_table);
    if (known && known->is_known)
        return known->kind;
    enum async_kind kind = classify(kinds, method_table, sample);
    const struct async_type type = {.method_table = method_table, .sample = sample, .kind = kind, .is_known = true};
    if (known)
        *known = type;
    else if (kinds->known.count < THREADING_TYPES_MAX)
        (void)async_types_insert(&kinds->known, type, NULL);
    return kind;
}

enum async_kind async_kind_of(struct async_kinds *kinds, uint64_t object)
{
    uint64_t table = async_type_of(kinds, object);
    return table ? async_kind_of_type(kinds, table, object) : ASYNC_OTHER;
}

static struct async_named_field find_field(struct async_kinds *kinds, uint64_t method_table, const char *name)
{
    struct reader *reader = kinds->types->cache->reader;
    struct async_named_field item = {.key = {method_table, name}};
    const struct async_named_field *known = async_named_fields_find(&kinds->fields, item.key);
    struct object_field field = {.offset = 0};
    if (known)
        return *known;
    struct reader_task outer = reader_enter(reader, FUEL_INDEX);
    item.found = object_field_find(kinds->types->cache, method_table, name, &field) && !field.is_static;
    item.found &= reader_leave(reader, &outer).status >= 0;
    item.offset = field.offset + reader->pointer_size;
    item.element = field.element;
    if (kinds->fields.count < THREADING_TYPES_MAX)
        (void)async_named_fields_insert(&kinds->fields, item, NULL);
    return item;
}

bool async_read(struct async_kinds *kinds, uint64_t object, const char *name, unsigned width, uint64_t *ret)
{
    struct reader *reader = kinds->types->cache->reader;
    uint64_t table = async_type_of(kinds, object);
    if (!table)
        return false;
    const struct async_named_field field = find_field(kinds, table, name);
    if (!field.found)
        return false;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    uint64_t value = read_uint(reader, object + field.offset, width ? width : reader->pointer_size);
    if (reader_leave(reader, &outer).status < 0)
        return false;
    *ret = value;
    return true;
}

uint64_t async_reference(struct async_kinds *kinds, uint64_t object, const char *name)
{
    uint64_t value;
    return async_read(kinds, object, name, 0, &value) ? value : 0;
}
