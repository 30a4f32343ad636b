#include "contracts/threading/async_method.h"

#include "contracts/method_il.h"
#include "contracts/objects/field.h"
#include "contracts/objects/object.h"
#include "contracts/objects/value.h"
#include "contracts/threading/task.h"
#include "contracts/type_system/type_handle.h"
#include "formats/metadata_members.h"

#include <inttypes.h>
#include <stdio.h>

/*
 * The state of a compiled async method: from 0 up it awaits, at -1 it runs or was not started, at -2 it has ended. An
 * iterator has further states from -3 down, in which it was not started or has given a value.
 */
enum { MACHINE_RUNS = -1 };

static const char state_name[] = "<>1__state";

/* ---- Words that may not be objects ---- */

static uint64_t method_table_of(struct threading_types *types, uint64_t object)
{
    struct reader *reader = types->cache->reader;
    if (!object || object % reader->pointer_size || !types->reads_left)
        return 0;
    types->reads_left--;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    uint64_t table = object_method_table(reader, object);
    return reader_leave(reader, &outer).status < 0 ? 0 : table;
}

/* The words of an object after its method table, one after the other. */
struct words {
    struct threading_types *types;
    uint64_t at, end;
};

static struct words words_of(struct threading_types *types, uint64_t object, unsigned max)
{
    struct reader *reader = types->cache->reader;
    unsigned width = reader->pointer_size;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    uint64_t size = object ? object_size(reader, object) : 0; /* with the header, which precedes the object */
    (void)reader_leave(reader, &outer);
    size = MIN(size, (uint64_t)max * width);
    return (struct words){types, object + width, size < width ? 0 : object + size - width};
}

static bool next_word(struct words *words, uint64_t *ret)
{
    struct reader *reader = words->types->cache->reader;
    if (words->at >= words->end || !words->types->reads_left)
        return false;
    words->types->reads_left--;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    *ret = read_pointer(reader, words->at);
    words->at += reader->pointer_size;
    return reader_leave(reader, &outer).status >= 0;
}

/* ---- Boxes ---- */

/* Whether a type of the core library is a box, by its name. */
static bool is_box(const struct metadata *metadata, uint32_t token)
{
    static const char *const names[] = {"AsyncStateMachineBox`1", "StateMachineBox`1"};
    struct metadata_type_def row;
    bool equal = false;
    if (metadata_type_def(metadata, metadata_rid(token), &row) != CDACQ_OK)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(names) && !equal; i++)
        if (metadata_string_equals(metadata, row.name, names[i], strlen(names[i]), &equal) != CDACQ_OK)
            return false;
    return equal;
}

/* The type of a box's state machine: the last type argument of the box's type. 0: it is no box. */
static uint64_t read_machine_type(struct threading_types *types, uint64_t method_table)
{
    struct reader *reader = types->cache->reader;
    const struct metadata *metadata;
    uint32_t token, count = 0;
    uint64_t arguments;
    for (unsigned i = 0; i < HIERARCHY_MAX && method_table && reader_step(reader, "base types"); i++) {
        if (read_field(reader, method_table, F_MethodTable_Module) == types->core &&
            type_handle_definition(types->cache, method_table, &metadata, &token) == CDACQ_OK &&
            is_box(metadata, token) &&
            type_handle_arguments(types->cache, method_table, &arguments, &count) == CDACQ_OK && count)
            return read_pointer(reader, arguments + (uint64_t)(count - 1) * reader->pointer_size);
        method_table = method_table_parent(reader, method_table);
    }
    return 0;
}

/* The same with what it says of the box, looked up once. */
static struct threading_box find_box(struct threading_types *types, uint64_t method_table)
{
    struct reader *reader = types->cache->reader;
    const struct threading_box *known = threading_boxes_find(&types->boxes, method_table);
    struct threading_box box = {.method_table = method_table};
    if (known || !method_table)
        return known ? *known : box;
    struct type_search search = type_search_begin(types, FUEL_NAME);
    box.machine = read_machine_type(types, method_table);
    box.is_inside = box.machine && method_table_is_value(reader, box.machine);
    if (!type_search_end(types, &search))
        return (struct threading_box){.method_table = method_table};
    if (types->boxes.count < THREADING_TYPES_MAX)
        (void)threading_boxes_insert(&types->boxes, box, NULL);
    return box;
}

uint64_t async_box_machine(struct threading_types *types, uint64_t method_table)
{
    return find_box(types, method_table).machine;
}

uint64_t async_object_reference_to(struct threading_types *types, uint64_t object, uint64_t method_table)
{
    struct words words = words_of(types, object, ASYNC_WORDS_MAX);
    uint64_t word;
    while (next_word(&words, &word))
        if (word != object && method_table_of(types, word) == method_table)
            return word;
    return 0;
}

bool async_object_refers_to(struct threading_types *types, uint64_t object, uint64_t other)
{
    struct words words = words_of(types, object, ASYNC_WORDS_MAX);
    uint64_t word;
    while (next_word(&words, &word))
        if (word == other)
            return true;
    return false;
}

void async_object_each_word(struct threading_types *types, uint64_t object, bool (*visit)(void *context, uint64_t word),
                            void *context)
{
    struct words words = words_of(types, object, ASYNC_WORDS_MAX);
    uint64_t word;
    while (next_word(&words, &word) && visit(context, word))
        continue;
}

uint64_t async_object_task(struct threading_types *types, uint64_t object, bool (*leads)(void *context, uint64_t task),
                           void *context)
{
    struct words words = words_of(types, object, ASYNC_WORDS_MAX);
    uint64_t word;
    while (next_word(&words, &word))
        if (threading_is_task(threading_type_of(types, word, false)) && leads(context, word))
            return word;
    return 0;
}

/* The box of an iterator: the two refer to each other, so nothing else can be mistaken for it. */
static uint64_t box_of_iterator(struct threading_types *types, uint64_t iterator, uint64_t method_table)
{
    struct words words = words_of(types, iterator, ASYNC_WORDS_MAX);
    uint64_t word;
    while (next_word(&words, &word))
        if (threading_type_of(types, word, false) == THREADING_TASK &&
            async_box_machine(types, method_table_of(types, word)) == method_table &&
            async_object_reference_to(types, word, method_table) == iterator)
            return word;
    return 0;
}

bool async_method_find(struct threading_types *types, uint64_t object, struct async_method *ret)
{
    uint64_t table = method_table_of(types, object);
    const struct threading_box box = find_box(types, table);
    *ret = (struct async_method){.box = object, .type = box.machine};
    if (ret->type) {
        ret->machine = box.is_inside ? 0 : async_object_reference_to(types, object, ret->type);
        return true;
    }
    if (!table || threading_is_task(threading_type_of(types, object, true)))
        return table != 0;
    *ret = (struct async_method){.box = box_of_iterator(types, object, table), .machine = object, .type = table};
    return ret->box != 0;
}

/* ---- What is awaited ---- */

/* What stands for the name of a field; the numbers between are those of awaiters, as in their names. */
enum { FIELD_STATE = 0, FIELD_MACHINE_OF_BOX = UINT32_MAX, FIELD_PROMISE = UINT32_MAX - 1 };

static const char *field_name(uint32_t number, char room[static 32])
{
    if (number == FIELD_STATE)
        return state_name;
    if (number == FIELD_MACHINE_OF_BOX)
        return "StateMachine";
    if (number == FIELD_PROMISE)
        return "<>v__promiseOfValueOrEnd";
    snprintf(room, 32, "<>u__%" PRIu32, number);
    return room;
}

/* Searches for a field of a type once. False: it has none, or cannot be read. */
static bool find_field(struct threading_types *types, uint64_t method_table, uint32_t number, uint32_t *ret_offset)
{
    const struct threading_async_key key = {method_table, number};
    const struct threading_async_field *known = threading_async_fields_find(&types->async_fields, key);
    struct threading_async_field item = {.key = key};
    struct object_field field = {.offset = 0};
    char room[32];
    if (!known) {
        const char *name = field_name(number, room);
        struct type_search search = type_search_begin(types, FUEL_NAME);
        item.found =
            (number == FIELD_MACHINE_OF_BOX ? object_field_find(types->cache, method_table, name, &field)
                                            : object_field_declared(types->cache, method_table, name, &field)) &&
            !field.is_static;
        item.offset = field.offset;
        if (!type_search_end(types, &search))
            return false;
        if (types->async_fields.count < THREADING_TYPES_MAX)
            (void)threading_async_fields_insert(&types->async_fields, item, NULL);
        known = &item;
    }
    *ret_offset = known->offset;
    return known->found;
}

/* The address of a field of the state machine. */
static bool machine_field(struct threading_types *types, const struct async_method *method, uint32_t number,
                          uint64_t *ret)
{
    unsigned pointer = types->cache->reader->pointer_size;
    uint32_t place = 0, offset;
    if (!method->type || !types->reads_left)
        return false;
    types->reads_left--;
    if (!method->machine && !find_field(types, method_table_of(types, method->box), FIELD_MACHINE_OF_BOX, &place))
        return false;
    if (!find_field(types, method->type, number, &offset))
        return false;
    *ret = (method->machine ? method->machine : method->box + place) + pointer + offset;
    return true;
}

bool async_method_is_iterator(struct threading_types *types, const struct async_method *method)
{
    uint32_t offset;
    return method->machine && find_field(types, method->type, FIELD_PROMISE, &offset);
}

/* The value of a field of the state machine; 0 if it has no such field, or if it cannot be read. */
static uint64_t read_machine_field(struct threading_types *types, const struct async_method *method, uint32_t number,
                                   unsigned width)
{
    struct reader *reader = types->cache->reader;
    uint64_t address;
    if (!machine_field(types, method, number, &address))
        return 0;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    uint64_t value = read_uint(reader, address, width);
    return reader_leave(reader, &outer).status < 0 ? 0 : value;
}

/*
 * Whether a source continues the box: it has a delegate, and after it the box as the delegate's argument. It keeps both
 * after it has completed, until it is used again, so has_completed() has to be asked, too.
 */
static bool continues(struct threading_types *types, uint64_t source, uint64_t box)
{
    struct words words = words_of(types, source, ASYNC_SOURCE_WORDS_MAX);
    uint64_t word, before = 0;
    for (; next_word(&words, &word); before = word)
        if (word == box && threading_type_of(types, before, false) == THREADING_DELEGATE)
            return true;
    return false;
}

/* Whether the state machine of an iterator or a pooled box says that it has given its value, or has ended. */
static bool has_completed(struct threading_types *types, uint64_t source)
{
    struct async_method method;
    return async_method_find(types, source, &method) &&
           (int32_t)read_machine_field(types, &method, FIELD_STATE, 4) < MACHINE_RUNS;
}

/*
 * The next object that the first word of an awaiter refers to; 0 after the last one. Only awaiters are looked at: the
 * compiler clears them as soon as the method goes on, while a variable may refer to what was awaited long ago.
 */
static uint64_t next_of_awaiters(struct threading_types *types, const struct async_method *method, unsigned *number)
{
    uint64_t address, object;
    while (++*number <= ASYNC_AWAITERS_MAX) {
        if (!machine_field(types, method, *number, &address))
            return 0;
        struct words words = {types, address, address + types->cache->reader->pointer_size};
        if (next_word(&words, &object) && object)
            return object;
    }
    return 0;
}

/* The source that the method awaits, to which one of its awaiters refers; 0: there is none. */
static uint64_t awaited_source(struct threading_types *types, const struct async_method *method)
{
    uint64_t source;
    for (unsigned number = 0; (source = next_of_awaiters(types, method, &number));)
        if (threading_type_of(types, source, false) == THREADING_OTHER && method_table_of(types, source) &&
            continues(types, source, method->box) && !has_completed(types, source))
            return source;
    return 0;
}

uint64_t async_method_awaiter_task(struct threading_types *types, const struct async_method *method)
{
    uint64_t task, address;
    if (!method->type || !machine_field(types, method, FIELD_STATE, &address) ||
        (int32_t)read_machine_field(types, method, FIELD_STATE, 4) < 0)
        return 0;
    for (unsigned number = 0; (task = next_of_awaiters(types, method, &number));)
        if (threading_is_task(threading_type_of(types, task, false)))
            return task;
    return 0;
}

uint64_t async_method_awaiter(struct threading_types *types, const struct async_method *method)
{
    uint64_t object, found = 0;
    for (unsigned number = 0; (object = next_of_awaiters(types, method, &number));) {
        enum task_status status;
        if (!method_table_of(types, object))
            continue;
        found = found ? found : object;
        if (threading_is_task(threading_type_of(types, object, true)) && task_read_status(types, object, &status) &&
            !task_is_completed(status))
            return object;
    }
    return found;
}

uint64_t async_method_awaited(struct threading_types *types, const struct async_method *method,
                              bool (*leads_to)(void *context, uint64_t task, uint64_t object), void *context)
{
    const uint64_t places[] = {method->box, method->machine};
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        struct words words = words_of(types, places[i], ASYNC_WORDS_MAX);
        uint64_t word;
        while (next_word(&words, &word))
            if (word != method->box && word != method->machine &&
                threading_is_task(threading_type_of(types, word, false)) && leads_to(context, word, method->box))
                return word;
    }
    return awaited_source(types, method);
}

/* ---- Where it has suspended ---- */

/* Whether `token`, of an instruction of the state machine, means the field with the number of its state. */
static bool is_state_field(const struct metadata *metadata, uint32_t token, uint32_t state_field)
{
    struct metadata_member_ref row;
    bool equal = false;
    if (metadata_token_table(token) != METADATA_MEMBER_REF) /* which a generic state machine has */
        return token == state_field;
    return metadata_member_ref(metadata, metadata_rid(token), &row) == CDACQ_OK &&
           metadata_string_equals(metadata, row.name, state_name, sizeof state_name - 1, &equal) == CDACQ_OK && equal;
}

/* The offset of the only instruction that stores `state`; ASYNC_IL_UNKNOWN if there is none, or several. */
static uint32_t find_store(const struct metadata *metadata, struct il_code code, uint32_t state_field, int32_t state)
{
    struct il_instruction instruction;
    uint32_t found = ASYNC_IL_UNKNOWN;
    int32_t constant = state - 1;
    while (il_next(&code, &instruction)) {
        if (instruction.opcode == IL_STFLD && constant == state &&
            is_state_field(metadata, instruction.operand, state_field)) {
            if (found != ASYNC_IL_UNKNOWN)
                return ASYNC_IL_UNKNOWN;
            found = instruction.offset;
        }
        /* The constant is also copied to a local variable on its way to the field. */
        if (!il_constant(&instruction, &constant) && instruction.opcode != IL_DUP && !il_is_stloc(&instruction))
            constant = state - 1;
    }
    return found;
}

static bool find_suspension(struct threading_types *types, uint64_t method_table, int32_t state,
                            struct async_suspension *ret)
{
    static const char move_next[] = "MoveNext";
    struct reader *reader = types->cache->reader;
    const struct metadata *metadata;
    struct object_field field;
    struct window window;
    struct il_code code;
    uint32_t type, method;
    const struct module *module =
        module_cache_get(types->cache, read_field(reader, method_table, F_MethodTable_Module));
    if (!module || type_handle_definition(types->cache, method_table, &metadata, &type) != CDACQ_OK ||
        !object_field_declared(types->cache, method_table, state_name, &field))
        return false;
    if (metadata_method_named(metadata, metadata_rid(type), move_next, sizeof move_next - 1, &method) != CDACQ_OK ||
        !method || reader_failed(reader))
        return false;
    *ret = (struct async_suspension){module, metadata_token(METADATA_METHOD_DEF, method), ASYNC_IL_UNKNOWN};
    if (metadata == &module->metadata && method_il_read(module, ret->token, &window, &code)) {
        ret->il_offset = find_store(metadata, code, field.token, state);
        window_deinit(&window);
    }
    (void)reader_recover(reader, FAILURE_ANY); /* the method is known all the same */
    return true;
}

bool async_method_state(struct threading_types *types, const struct async_method *method, int32_t *ret)
{
    uint64_t address;
    if (!method->type || !machine_field(types, method, FIELD_STATE, &address))
        return false;
    *ret = (int32_t)read_machine_field(types, method, FIELD_STATE, 4);
    return *ret >= 0;
}

bool async_method_suspension(struct threading_types *types, uint64_t method_table, int32_t state,
                             struct async_suspension *ret)
{
    struct async_suspension found;
    struct type_search search = type_search_begin(types, FUEL_INDEX);
    bool is_found = find_suspension(types, method_table, state, &found);
    if (!type_search_end(types, &search) || !is_found)
        return false;
    *ret = found;
    return true;
}

/* ---- Who waits for a source ---- */

uint64_t async_method_source_continuation(struct threading_types *types, uint64_t source)
{
    struct words words = words_of(types, source, ASYNC_SOURCE_WORDS_MAX);
    uint64_t word, before = 0;
    for (; next_word(&words, &word); before = word)
        if (threading_type_of(types, before, false) == THREADING_DELEGATE &&
            (threading_is_task(threading_type_of(types, word, false)) ||
             async_box_machine(types, method_table_of(types, word))) &&
            !has_completed(types, source))
            return word;
    return 0;
}
