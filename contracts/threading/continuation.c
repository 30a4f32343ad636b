#include "contracts/threading/continuation.h"

#include "contracts/objects/field.h"
#include "contracts/objects/thread_static.h"
#include "contracts/type_system/core_type.h"

enum { DISPATCHERS_MAX = 256 }; /* on one stack */

/* The fields of AsyncDispatcherInfo. */
enum { DISPATCHER_NEXT, DISPATCHER_CONTINUATION, DISPATCHER_TASK, DISPATCHER_FIELDS };

/* Whether the type of an object is Continuation, or one that the runtime has derived from it. */
static bool is_continuation(struct reader *reader, uint64_t object)
{
    const struct layout *layout = reader->layout;
    if (!layout->global_present[G_ContinuationMethodTable])
        return false;
    uint64_t base = read_pointer(reader, layout->globals[G_ContinuationMethodTable]);
    uint64_t table = object_method_table(reader, object);
    return !reader_failed(reader) && base && (table == base || method_table_parent(reader, table) == base);
}

/* Whether a Continuation stands for what a method waits for. */
static bool is_awaited(enum threading_type type)
{
    return type == THREADING_TASK_AWAIT || type == THREADING_SOURCE_AWAIT;
}

/* Where a method goes on: in its image, if it was compiled ahead of time, whose data a core may lack. 0: not known. */
static uint64_t read_diagnostic_ip(struct threading_types *types, uint64_t info)
{
    const struct module_files *files = &types->cache->files;
    struct reader *reader = types->cache->reader;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    uint64_t pc = read_field(reader, info, F_AsyncResumeInfo_DiagnosticIP);
    if (reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY)) &&
        !files->relocated_pointer(files->context, reader, field_address(reader, info, F_AsyncResumeInfo_DiagnosticIP),
                                  &pc))
        pc = 0;
    return reader_leave(reader, &outer).status < 0 ? 0 : pc;
}

bool continuation_read(struct threading_types *types, uint64_t object, struct continuation *ret)
{
    struct reader *reader = types->cache->reader;
    struct continuation found = {0};
    if (!object || object % reader->pointer_size || !types->reads_left)
        return false;
    types->reads_left--;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    bool is_one = is_continuation(reader, object);
    if (is_one) {
        found.next = read_field(reader, object, F_ContinuationObject_Next);
        found.info = read_field(reader, object, F_ContinuationObject_ResumeInfo);
    }
    if (reader_leave(reader, &outer).status < 0 || !is_one)
        return false;
    if (is_awaited(threading_type_of(types, object, true)))
        found.info = 0; /* that of the runtime's code for all of these */
    *ret = found;
    if (found.info)
        ret->pc = read_diagnostic_ip(types, found.info);
    return true;
}

uint64_t continuation_of_task(struct threading_types *types, uint64_t task)
{
    struct continuation first;
    uint64_t object;
    return threading_type_of(types, task, true) == THREADING_RUNTIME_ASYNC &&
                   threading_read(types, task, THREADING_TASK_STATE_OBJECT, &object) &&
                   continuation_read(types, object, &first)
               ? object
               : 0;
}

uint64_t continuation_awaited(struct threading_types *types, uint64_t first)
{
    enum threading_type type = threading_type_of(types, first, true);
    uint64_t awaited = 0;
    if (type == THREADING_TASK_AWAIT)
        (void)threading_read(types, first, THREADING_CONTINUATION_TASK, &awaited);
    else if (type == THREADING_SOURCE_AWAIT)
        (void)threading_read(types, first, THREADING_CONTINUATION_SOURCE, &awaited);
    return awaited;
}

/* Finds AsyncDispatcherInfo once. False if it is not loaded or cannot be found. */
static bool find_dispatcher(struct threading_types *types)
{
    static const char *const names[DISPATCHER_FIELDS] = {"Next", "NextContinuation", "CurrentTask"};
    struct threading_dispatcher *dispatcher = &types->dispatcher;
    if (!dispatcher->searched) {
        uint64_t type = core_type(types->cache, types->core, "System.Runtime.CompilerServices", "AsyncDispatcherInfo");
        bool found = type != 0;
        for (unsigned i = 0; i < DISPATCHER_FIELDS && found; i++) {
            struct object_field field = {.offset = 0};
            found = object_field_declared(types->cache, type, names[i], &field) && !field.is_static;
            dispatcher->offsets[i] = field.offset;
        }
        dispatcher->searched = true;
        dispatcher->method_table = found ? type : 0;
    }
    return dispatcher->method_table != 0;
}

void continuation_each_dispatched(struct threading_types *types, uint64_t thread,
                                  bool (*visit)(void *context, const struct dispatched *dispatched), void *context)
{
    struct reader *reader = types->cache->reader;
    const struct threading_dispatcher *dispatcher = &types->dispatcher;
    uint64_t current, info = 0;
    if (!types->core || !thread || !types->reads_left)
        return;
    types->reads_left--;
    struct type_search search = type_search_begin(types, FUEL_INDEX);
    if (find_dispatcher(types) &&
        thread_static_find(types->cache, thread, dispatcher->method_table, "t_current", &current))
        info = read_pointer(reader, current);
    for (unsigned i = 0; info && i < DISPATCHERS_MAX; i++) {
        const struct dispatched item = {.running = read_pointer(reader, info + dispatcher->offsets[DISPATCHER_TASK]),
                                        .next =
                                            read_pointer(reader, info + dispatcher->offsets[DISPATCHER_CONTINUATION])};
        info = read_pointer(reader, info + dispatcher->offsets[DISPATCHER_NEXT]);
        if (reader_failed(reader) || (item.running && !visit(context, &item)))
            break;
    }
    (void)type_search_end(types, &search);
}
