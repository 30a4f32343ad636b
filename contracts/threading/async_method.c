#include "contracts/threading/async_method.h"

#include "contracts/method_il.h"
#include "contracts/objects/field.h"
#include "contracts/objects/object.h"
#include "contracts/type_system/type_handle.h"
#include "formats/metadata_members.h"

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
static uint64_t machine_type(struct threading_types *types, uint64_t method_table)
{
    struct reader *reader = types->cache->reader;
    struct type_search search = type_search_begin(types, FUEL_NAME);
    const struct metadata *metadata;
    uint32_t token, count = 0;
    uint64_t arguments, ret = 0;
    for (unsigned i = 0; i < HIERARCHY_MAX && method_table && reader_step(reader, "base types"); i++) {
        if (read_field(reader, method_table, F_MethodTable_Module) == types->core &&
            type_handle_definition(types->cache, method_table, &metadata, &token) == CDACQ_OK &&
            is_box(metadata, token) &&
            type_handle_arguments(types->cache, method_table, &arguments, &count) == CDACQ_OK && count) {
            ret = read_pointer(reader, arguments + (uint64_t)(count - 1) * reader->pointer_size);
            break;
        }
        method_table = method_table_parent(reader, method_table);
    }
    return type_search_end(types, &search) ? ret : 0;
}

/* The first word of `object` that refers to an object of `method_table`. 0: there is none. */
static uint64_t reference_to(struct threading_types *types, uint64_t object, uint64_t method_table)
{
    struct words words = words_of(types, object, ASYNC_WORDS_MAX);
    uint64_t word;
    while (next_word(&words, &word))
        if (word != object && method_table_of(types, word) == method_table)
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
            machine_type(types, method_table_of(types, word)) == method_table &&
            reference_to(types, word, method_table) == iterator)
            return word;
    return 0;
}

bool async_method_find(struct threading_types *types, uint64_t object, struct async_method *ret)
{
    uint64_t table = method_table_of(types, object);
    *ret = (struct async_method){.box = object, .type = table ? machine_type(types, table) : 0};
    if (ret->type) {
        ret->machine = reference_to(types, object, ret->type);
        return true;
    }
    if (!table || threading_is_task(threading_type_of(types, object, true)))
        return table != 0;
    *ret = (struct async_method){.box = box_of_iterator(types, object, table), .machine = object, .type = table};
    return ret->box != 0;
}

/* ---- What is awaited ---- */

/* The address of a field of the state machine. */
static bool machine_field(struct threading_types *types, const struct async_method *method, const char *name,
                          uint64_t *ret)
{
    struct reader *reader = types->cache->reader;
    struct object_field place = {.offset = 0}, field = {.offset = 0};
    if (!method->type || !types->reads_left)
        return false;
    types->reads_left--;
    struct type_search search = type_search_begin(types, FUEL_NAME);
    bool found = method->machine ||
                 object_field_find(types->cache, object_method_table(reader, method->box), "StateMachine", &place);
    found = found && object_field_declared(types->cache, method->type, name, &field) && !field.is_static;
    uint64_t start = method->machine ? method->machine : method->box + place.offset;
    if (!type_search_end(types, &search) || !found)
        return false;
    *ret = object_field_address(reader, start, &field);
    return true;
}

/* The value of a field of the state machine; 0 if it has no such field, or if it cannot be read. */
static uint64_t read_machine_field(struct threading_types *types, const struct async_method *method, const char *name,
                                   unsigned width)
{
    struct reader *reader = types->cache->reader;
    uint64_t address;
    if (!machine_field(types, method, name, &address))
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
           (int32_t)read_machine_field(types, &method, state_name, 4) < MACHINE_RUNS;
}

/*
 * The next object that the first word of an awaiter refers to; 0 after the last one. Only awaiters are looked at: the
 * compiler clears them as soon as the method goes on, while a variable may refer to what was awaited long ago.
 */
static uint64_t next_of_awaiters(struct threading_types *types, const struct async_method *method, unsigned *number)
{
    char name[32];
    uint64_t address, object;
    while (++*number <= ASYNC_AWAITERS_MAX) {
        snprintf(name, sizeof name, "<>u__%u", *number);
        if (!machine_field(types, method, name, &address))
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
    if (!method->type || !machine_field(types, method, state_name, &address) ||
        (int32_t)read_machine_field(types, method, state_name, 4) < 0)
        return 0;
    for (unsigned number = 0; (task = next_of_awaiters(types, method, &number));)
        if (threading_is_task(threading_type_of(types, task, false)))
            return task;
    return 0;
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
    if (!method->type || !machine_field(types, method, state_name, &address))
        return false;
    *ret = (int32_t)read_machine_field(types, method, state_name, 4);
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
            threading_is_task(threading_type_of(types, word, false)) && !has_completed(types, source))
            return word;
    return 0;
}
