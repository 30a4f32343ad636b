#include "src/waits/async_frames.h"

#include <inttypes.h>

#include "contracts/thread.h"
#include "contracts/threading/async_method.h"
#include "contracts/threading/continuation.h"
#include "contracts/threading/task.h"
#include "formats/metadata_members.h"
#include "src/lookup/answer.h"
#include "src/lookup/resolver.h"
#include "src/lookup/source_lines.h"
#include "src/lookup/records.h"
#include "util/error.h"

static struct async_place_key place_key(const struct async_place *place)
{
    return (struct async_place_key){place->type, place->state};
}

static uint64_t hash_place(struct async_place_key key, uint64_t seed)
{
    return hash_u64(key.type, hash_u64((uint32_t)key.state, seed));
}

static bool equal_places(struct async_place_key a, struct async_place_key b)
{
    return a.type == b.type && a.state == b.state;
}

DEFINE_HASH_TABLE_FUNCTIONS(async_places, struct async_place, struct async_place_key, place_key, hash_place,
                            equal_places);
DEFINE_U64_TABLE_FUNCTIONS(async_running_tasks, struct async_running, running);

void async_frames_init(struct async_frames *frames, struct resolver *resolver, struct threading_types *types)
{
    *frames = (struct async_frames){.resolver = resolver, .types = types};
}

void async_frames_deinit(struct async_frames *frames)
{
    async_places_deinit(&frames->places);
    async_running_tasks_deinit(&frames->running);
}

/* ---- The methods of a task ---- */

static bool add_running(void *context, const struct dispatched *dispatched)
{
    struct async_frames *frames = context;
    const struct async_running item = {dispatched->running, dispatched->next};
    return frames->running.count < ASYNC_RUNNING_MAX && async_running_tasks_insert(&frames->running, item, NULL);
}

/* Reads once which tasks the threads run. */
static void read_running(struct async_frames *frames)
{
    struct reader *reader = &frames->resolver->reader;
    struct thread_list list;
    if (frames->has_running)
        return;
    frames->has_running = true;
    reader_begin(reader, FUEL_OPEN);
    (void)thread_list_read(reader, &list);
    for (size_t i = 0; i < list.count; i++)
        continuation_each_dispatched(frames->types, list.items[i].address, add_running, frames);
    thread_list_deinit(&list);
}

/* The first Continuation of a task that waits, or the next one of a task that runs; 0: there is none. */
static uint64_t first_continuation(struct async_frames *frames, uint64_t task)
{
    uint64_t first = continuation_of_task(frames->types, task);
    if (first)
        return first;
    read_running(frames);
    const struct async_running *running = async_running_tasks_find(&frames->running, task);
    return running ? running->next : 0;
}

static bool add_continuations(struct async_frames *frames, uint64_t task, struct async_frame_list *ret)
{
    struct continuation continuation;
    uint64_t at = first_continuation(frames, task);
    for (unsigned i = 0; i < ASYNC_FRAMES_MAX && continuation_read(frames->types, at, &continuation); i++) {
        const struct async_frame frame = {.object = at, .info = continuation.info, .pc = continuation.pc};
        if (continuation.info && !async_frame_list_append(ret, frame))
            return false;
        at = continuation.next;
    }
    return true;
}

static bool add_machine(struct async_frames *frames, const struct async_method *method, struct async_frame_list *ret)
{
    struct async_frame frame = {.object = method->box, .type = method->type};
    return !async_method_state(frames->types, method, &frame.state) || async_frame_list_append(ret, frame);
}

bool async_frames_of(struct async_frames *frames, uint64_t object, struct async_frame_list *ret)
{
    struct async_method method;
    if (threading_type_of(frames->types, object, true) == THREADING_RUNTIME_ASYNC)
        return add_continuations(frames, object, ret);
    return !async_method_find(frames->types, object, &method) || !method.type || add_machine(frames, &method, ret);
}

/* ---- Who waits for a task ---- */

struct only {
    uint64_t object;
    bool several;
};

static bool take_only(void *context, uint64_t object, enum threading_type type)
{
    struct only *only = context;
    if (type == THREADING_EVENT) /* of a thread that is blocked */
        return true;
    only->several = only->object && only->object != object;
    only->object = object;
    return !only->several;
}

uint64_t async_frames_continuation(struct async_frames *frames, uint64_t object, bool *ret_several)
{
    struct only only = {0};
    struct async_method method;
    bool is_task = threading_is_task(threading_type_of(frames->types, object, true));
    if (is_task)
        (void)task_each_continuation(frames->types, object, take_only, &only);
    *ret_several = only.several;
    if (only.object || only.several)
        return only.several ? 0 : only.object;
    if (!async_method_find(frames->types, object, &method) || !method.type)
        return 0;
    /* An iterator passes its values on by itself, and a pooled box by the box. */
    if (method.box == object && !is_task)
        return async_method_source_continuation(frames->types, object);
    return async_method_is_iterator(frames->types, &method)
               ? async_method_source_continuation(frames->types, method.machine)
               : 0;
}

bool async_frames_awaiting(struct async_frames *frames, uint64_t task, struct async_frame_list *ret)
{
    size_t begin = ret->count;
    for (unsigned i = 0; i < ASYNC_FRAMES_MAX && ret->count - begin < ASYNC_FRAMES_MAX; i++) {
        bool several;
        task = async_frames_continuation(frames, task, &several);
        if (!task)
            break;
        if (!async_frames_of(frames, task, ret))
            return false;
    }
    return true;
}

/* ---- Answers ---- */

/* Adds the line of an IL offset of a method that may have no code. */
static void add_line(struct resolver *resolver, const struct async_suspension *place, struct cdacq_method *ret)
{
    struct method_record record = {
        .method = {.size = sizeof record.method, .token = place->token, .module_verified = true},
        .module = place->module,
        .il_point_count = 1,
    };
    if (place->il_offset > INT32_MAX)
        return;
    ret->il_offset = (int32_t)place->il_offset;
    record_read_source(resolver, &record);
    answer_add_line(&record, ret);
}

static struct cdacq_method describe_place(struct async_frames *frames, uint64_t type, int32_t state)
{
    struct resolver *resolver = frames->resolver;
    struct cdacq_method method = {.size = sizeof method,
                                  .answer = CDACQ_ANSWER_MANAGED,
                                  .il_offset = CDACQ_OFFSET_UNKNOWN,
                                  .module_verified = true};
    const struct method_namer namer = resolver_namer(resolver, NULL);
    struct method_name name = {0};
    struct async_suspension place;
    if (!async_method_suspension(frames->types, type, state, &place))
        return method;
    reader_begin(&resolver->reader, FUEL_NAME);
    method_name_of_state_machine(&namer, type, place.token, &name);
    resolver_set_name(resolver, &method, &name);
    text_deinit(&name.text);
    reader_begin(&resolver->reader, FUEL_NAME);
    add_line(resolver, &place, &method);
    return method;
}

static bool answer_machine(struct async_frames *frames, const struct async_frame *frame, struct cdacq_method *ret)
{
    const struct async_place_key key = {frame->type, frame->state};
    const struct async_place *known = async_places_find(&frames->places, key);
    if (known) {
        *ret = known->method;
        return ret->name != NULL;
    }
    struct async_place place = {key.type, key.state, describe_place(frames, key.type, key.state)};
    if (frames->places.count < ASYNC_PLACES_MAX)
        (void)async_places_insert(&frames->places, place, NULL);
    *ret = place.method;
    return ret->name != NULL;
}

/*
 * Whether a method is async in its source. The runtime also suspends its own stubs, and methods that only return the
 * task of another one.
 */
static bool is_async(struct resolver *resolver, const struct method_record *record)
{
    struct metadata_method_def row;
    if (!record->module || record->module->status < 0)
        return record->method.token != 0;
    reader_begin(&resolver->reader, FUEL_NAME);
    const struct metadata *metadata = module_metadata(record->module, record->method.token);
    return metadata_method_def(metadata, metadata_rid(record->method.token), &row) == CDACQ_OK &&
           row.impl_flags & METHOD_IMPL_ASYNC;
}

/* Answers for a method whose object alone is known. */
static void answer_unknown(struct resolver *resolver, const struct async_frame *frame, struct cdacq_method *ret)
{
    (void)error_set(&resolver->error, CDACQ_ERR_MEMORY, frame->info,
                    "where the async method of the Continuation 0x%" PRIx64
                    " goes on cannot be read: the target lacks its AsyncResumeInfo at 0x%" PRIx64,
                    frame->object, frame->info);
    answer_error(resolver, frame->pc, ret);
}

bool async_frame_answer(struct async_frames *frames, const struct async_frame *frame, struct cdacq_method *ret)
{
    if (!frame->info)
        return answer_machine(frames, frame, ret);
    if (!frame->pc) {
        answer_unknown(frames->resolver, frame, ret);
        return true;
    }
    *ret = (struct cdacq_method){.size = sizeof *ret};
    const struct method_record *record = answer_find(frames->resolver, frame->pc, ret);
    return ret->answer == CDACQ_ANSWER_ERROR || (record && is_async(frames->resolver, record));
}
