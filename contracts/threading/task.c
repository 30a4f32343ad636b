#include "contracts/threading/task.h"

#include "contracts/objects/field.h"
#include "contracts/objects/object.h"
#include "contracts/type_system/type_handle.h"
#include "formats/metadata_members.h"

/* Task.m_stateFlags */
enum {
    STATE_STARTED = 0x10000,
    STATE_DELEGATE_INVOKED = 0x20000,
    STATE_FAULTED = 0x200000,
    STATE_CANCELED = 0x400000,
    STATE_WAITING_ON_CHILDREN = 0x800000,
    STATE_RAN_TO_COMPLETION = 0x1000000,
    STATE_WAITING_FOR_ACTIVATION = 0x2000000,
};

enum { CONTINUATION_STEPS = 4 }; /* objects between a continuation and the task, event or box that it leads to */

bool task_read_status(struct threading_types *types, uint64_t task, enum task_status *ret)
{
    static const struct {
        uint32_t flag;
        enum task_status status;
    } rows[] = {
        {STATE_FAULTED, TASK_FAULTED},
        {STATE_CANCELED, TASK_CANCELED},
        {STATE_RAN_TO_COMPLETION, TASK_RAN_TO_COMPLETION},
        {STATE_WAITING_ON_CHILDREN, TASK_WAITING_FOR_CHILDREN},
        {STATE_DELEGATE_INVOKED, TASK_RUNNING},
        {STATE_STARTED, TASK_WAITING_TO_RUN},
        {STATE_WAITING_FOR_ACTIVATION, TASK_WAITING_FOR_ACTIVATION},
    };
    uint64_t flags;
    if (!threading_read(types, task, THREADING_TASK_STATE, &flags))
        return false;
    *ret = TASK_CREATED;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (flags & rows[i].flag) {
            *ret = rows[i].status;
            break;
        }
    }
    return true;
}

const char *task_status_text(enum task_status status)
{
    static const char *const texts[] = {"Created",
                                        "WaitingForActivation",
                                        "WaitingToRun",
                                        "Running",
                                        "WaitingForChildrenToComplete",
                                        "RanToCompletion",
                                        "Canceled",
                                        "Faulted"};
    return texts[status];
}

/* A field of Task.ContingentProperties, an object that few tasks need. 0: the task has none, or the field is null. */
static bool read_contingent(struct threading_types *types, uint64_t task, enum threading_field field, uint64_t *ret)
{
    uint64_t contingent;
    *ret = 0;
    return threading_read(types, task, THREADING_TASK_CONTINGENT, &contingent) &&
           (!contingent || threading_read(types, contingent, field, ret));
}

bool task_read_cancellation(struct threading_types *types, uint64_t task, bool *ret)
{
    enum task_status status;
    uint64_t source;
    if (!task_read_status(types, task, &status) || !read_contingent(types, task, THREADING_CONTINGENT_TOKEN, &source))
        return false;
    *ret = source && status < TASK_RUNNING;
    return true;
}

uint64_t task_waiting_parent(struct threading_types *types, uint64_t task)
{
    uint64_t parent;
    enum task_status status;
    return read_contingent(types, task, THREADING_CONTINGENT_PARENT, &parent) && parent &&
                   threading_is_task(threading_type_of(types, parent, true)) &&
                   task_read_status(types, parent, &status) && status == TASK_WAITING_FOR_CHILDREN
               ? parent
               : 0;
}

/* ---- Lists ---- */

static bool array_each(struct threading_types *types, uint64_t items, uint64_t size, uint64_t limit,
                       bool (*visit)(void *context, uint64_t object), void *context)
{
    struct object_array array;
    uint64_t object;
    if (!threading_array(types, items, &array))
        return true;
    size = MIN(size, array.count);
    for (uint64_t i = 0; i < MIN(size, limit) && types->reads_left; i++)
        if (!threading_element(types, &array, i, &object) || (object && !visit(context, object)))
            break;
    return size <= limit;
}

bool list_each(struct threading_types *types, uint64_t list, uint64_t limit,
               bool (*visit)(void *context, uint64_t object), void *context)
{
    uint64_t items, size;
    return !threading_read(types, list, THREADING_LIST_ITEMS, &items) ||
           !threading_read(types, list, THREADING_LIST_SIZE, &size) || !items ||
           array_each(types, items, size, limit, visit, context);
}

bool task_each_of_all(struct threading_types *types, uint64_t task, bool (*visit)(void *context, uint64_t object),
                      void *context)
{
    uint64_t items;
    return !threading_read(types, task, THREADING_ALL_TASKS, &items) || !items ||
           array_each(types, items, TASK_ARRAY_MAX + 1, TASK_ARRAY_MAX, visit, context);
}

/* ---- Continuations ---- */

struct continuations {
    struct threading_types *types;
    bool (*visit)(void *context, uint64_t object, enum threading_type type);
    void *context;
};

/* The task, event or box that a continuation completes or runs; 0 if that cannot be found. */
static uint64_t resolve(struct threading_types *types, uint64_t object, enum threading_type *ret_type)
{
    for (unsigned i = 0; i < CONTINUATION_STEPS; i++) {
        enum threading_type type = *ret_type = threading_type_of(types, object, true);
        enum threading_field next = type == THREADING_DELEGATE        ? THREADING_DELEGATE_TARGET
                                    : type == THREADING_AWAIT         ? THREADING_AWAIT_ACTION
                                    : type == THREADING_CONTINUE_WITH ? THREADING_CONTINUE_WITH_TASK
                                    : type == THREADING_TASK_AWAIT    ? THREADING_CONTINUATION_ASYNC_TASK
                                                                      : THREADING_FIELD_COUNT;
        if (next == THREADING_FIELD_COUNT)
            return object;
        if (!threading_read(types, object, next, &object))
            return 0;
    }
    return 0;
}

static bool visit_element(void *context, uint64_t object)
{
    struct continuations *c = context;
    enum threading_type type;
    uint64_t found = resolve(c->types, object, &type);
    return !found || type == THREADING_LIST || c->visit(c->context, found, type);
}

bool task_each_continuation(struct threading_types *types, uint64_t task,
                            bool (*visit)(void *context, uint64_t object, enum threading_type type), void *context)
{
    struct continuations c = {.types = types, .visit = visit, .context = context};
    enum threading_type type;
    uint64_t object;
    if (!threading_read(types, task, THREADING_TASK_CONTINUATION, &object) || !object)
        return true;
    object = resolve(types, object, &type);
    if (object && type == THREADING_LIST)
        return list_each(types, object, CONTINUATIONS_MAX, visit_element, &c);
    if (object)
        visit(context, object, type);
    return true;
}

/* ---- What it runs ---- */

uint64_t delegate_entry_point(struct threading_types *types, uint64_t delegate)
{
    uint64_t entry = 0;
    if (threading_type_of(types, delegate, true) != THREADING_DELEGATE)
        return 0;
    /* A delegate of a static method calls a stub, and keeps the method's entry point in a second field. */
    if (threading_read(types, delegate, THREADING_DELEGATE_METHOD_AUX, &entry) && !entry)
        (void)threading_read(types, delegate, THREADING_DELEGATE_METHOD, &entry);
    return entry;
}

uint64_t task_entry_point(struct threading_types *types, uint64_t task)
{
    uint64_t action;
    return threading_read(types, task, THREADING_TASK_ACTION, &action) ? delegate_entry_point(types, action) : 0;
}
