/* variables.c: the calls of cdacq/variables.h. */
#include "cdacq/variables.h"

#include "contracts/objects/value.h"
#include "contracts/type_system/field_type.h"
#include "contracts/type_system/type_handle.h"
#include "contracts/variables/frame_variable.h"
#include "formats/portable_pdb/local_variables.h"
#include "src/files/module_pdb.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"
#include "src/lookup/source_lines.h"
#include "util/sized.h"
#include "util/text.h"

static const char variables_of_method[] = "variables of a method"; /* in messages */

enum {
    CLOSURE_DEPTH_MAX = 8, /* closures within closures */
    VISITED_MAX = 64 * 1024,
};

struct visited_variable {
    struct cdacq_variable variable; /* without its pointers to values */
    struct cdacq_value value, target;
    bool has_target;
    const char *location; /* of a visit of places */
    bool is_hidden;       /* a closure of the same frame has the variable */
};

DEFINE_VECTOR(visited_variables, struct visited_variable);

/* A visit of one frame. */
struct visit {
    struct cdacq_session *session;
    struct variable_frame frame;
    struct registers registers;
    struct frame_method method;
    struct visited_variables found;
    bool in_locals; /* of the parts of a frame, they are being added */
    int (*take)(const struct cdacq_variable *variable, void *context); /* one of these two */
    int (*take_place)(const struct cdacq_variable_place *place, void *context);
    void *context;
    const char *doubt; /* why no value is to be trusted; NULL: they are */
    bool failed;       /* memory ran out */
};

/* ---- Texts ---- */

/* A text of the session, whose content `text` loses; NULL if there is none. */
static const char *take_text(struct visit *visit, bool is_known, struct text *text)
{
    struct resolver *resolver = &visit->session->resolver;
    const char *kept =
        is_known && text->length && !text->broken ? resolver_intern(resolver, text->data, text->length) : NULL;
    text_clear(text);
    reader_recover(&resolver->reader, FAILURE_BUT_FUEL);
    return kept;
}

static const char *keep_problem(struct visit *visit, const char *problem)
{
    const char *kept = resolver_intern(&visit->session->resolver, problem, strlen(problem));
    return kept ? kept : "out of memory";
}

static const char *take_name(struct visit *visit, const struct metadata *metadata, uint32_t index)
{
    char buffer[METADATA_STRING_CAP];
    const char *name;
    size_t length;
    struct text text = {0};
    bool is_known = metadata_string(metadata, index, buffer, &name, &length) == CDACQ_OK;
    if (is_known)
        text_escape(&text, name, length);
    const char *kept = take_text(visit, is_known, &text);
    text_deinit(&text);
    return kept;
}

static const char *parameter_name(struct visit *visit, uint32_t number)
{
    const struct metadata *metadata = visit->method.scope.metadata;
    struct metadata_param row;
    uint32_t rid = 0;
    return metadata_parameter(metadata, metadata_rid(visit->method.token), number + 1, &rid) == CDACQ_OK && rid &&
                   metadata_param(metadata, rid, &row) == CDACQ_OK
               ? take_name(visit, metadata, row.name)
               : NULL;
}

static const char *type_at(struct visit *visit, const struct signature *type)
{
    struct text text = {0};
    struct signature s = *type;
    bool is_known = type->at < type->end && signature_type_name(&visit->method.scope, &s, &text);
    const char *kept = take_text(visit, is_known, &text);
    text_deinit(&text);
    return kept;
}

/* ---- Values ---- */

static void take_value(struct visit *visit, const struct frame_value *value, struct visited_variable *ret)
{
    static const char unread[] = "the value is in registers that are not read",
                      no_type[] = "the type is not loaded, or cannot be found";
    struct cdacq_variable *variable = &ret->variable;
    const char *problem = visit->doubt                         ? visit->doubt
                          : value->error.status < 0            ? value->error.message
                          : value->kind == FRAME_VALUE_UNREAD  ? unread
                          : value->kind == FRAME_VALUE_NO_TYPE ? no_type
                                                               : NULL;
    ret->value = value->value;
    ret->target = value->referent;
    if (value->kind == FRAME_VALUE_NONE)
        variable->state = CDACQ_VARIABLE_OPTIMIZED_OUT;
    else if (problem) {
        variable->state = CDACQ_VARIABLE_UNKNOWN;
        variable->problem = keep_problem(visit, problem);
    } else {
        variable->state = CDACQ_VARIABLE_KNOWN;
        ret->has_target = value->kind == FRAME_VALUE_BY_REF;
    }
}

/* Takes where the debug info has a variable, by its number in the IL. */
static void take_location(struct visit *visit, uint32_t number, struct visited_variable *ret)
{
    const struct frame_method *method = &visit->method;
    bool is_doubtful;
    const struct debug_info_variable *place = variable_place_search(&method->places, number, &is_doubtful);
    struct text text = {0};
    bool has_text = place && variable_place_text(visit->frame.cache->reader->layout->architecture, place,
                                                 method->is_funclet, &text);
    ret->location = take_text(visit, has_text, &text);
    ret->variable.state = CDACQ_VARIABLE_OPTIMIZED_OUT;
    ret->variable.problem = method->places_problem    ? method->places_problem
                            : is_doubtful             ? "the debug info gives several places"
                            : place && !has_text      ? "this build has no words for its place"
                            : place && !ret->location ? "out of memory"
                                                      : NULL;
    text_deinit(&text);
}

/* Reads a variable by its number in the IL; the type of `this` is NULL. */
static void read_variable(struct visit *visit, uint32_t number, const struct signature *type,
                          struct visited_variable *ret)
{
    struct frame_value value;
    if (visit->take_place) {
        take_location(visit, number, ret);
        return;
    }
    frame_variable_read(&visit->frame, &visit->method, number, type, &value);
    take_value(visit, &value, ret);
}

/* Whether a captured variable is among those found: several closures can lead to one. */
static bool is_captured_twice(const struct visit *visit, const struct visited_variable *item)
{
    for (size_t i = 0; i < visit->found.count; i++) {
        const struct visited_variable *other = &visit->found.items[i];
        if (other->variable.kind == CDACQ_VARIABLE_CAPTURED && other->value.address == item->value.address)
            return true;
    }
    return false;
}

/* Hides the parameter of a name, whose value was copied to a closure. */
static void hide_parameter(struct visit *visit, const char *name)
{
    for (size_t i = 0; name && i < visit->found.count; i++) {
        struct visited_variable *other = &visit->found.items[i];
        if (other->variable.kind == CDACQ_VARIABLE_PARAMETER && other->variable.name &&
            strcmp(other->variable.name, name) == 0)
            other->is_hidden = true;
    }
}

static void append(struct visit *visit, const struct visited_variable *item)
{
    visit->failed |= visit->found.count >= VISITED_MAX || !visited_variables_append(&visit->found, *item);
}

/* ---- Closures and state machines ---- */

/* Whether the compiler made a type for captured variables: <>c__DisplayClass1_0, <Method>d__2. */
static bool is_closure(struct module_cache *cache, uint64_t type)
{
    char buffer[METADATA_STRING_CAP];
    const char *name;
    size_t length;
    const struct metadata *metadata;
    struct metadata_type_def row;
    uint32_t token;
    if (method_table_is_array(cache->reader, type) || reader_failed(cache->reader) ||
        type_handle_definition(cache, type, &metadata, &token) != CDACQ_OK ||
        metadata_type_def(metadata, metadata_rid(token), &row) != CDACQ_OK ||
        metadata_string(metadata, row.name, buffer, &name, &length) != CDACQ_OK || length < 2 || name[0] != '<')
        return false;
    const char *end = memchr(name, '>', length);
    static const char display[] = "c__DisplayClass", machine[] = "d__";
    size_t left = end ? length - (size_t)(end + 1 - name) : 0;
    return (left > sizeof display - 1 && memcmp(end + 1, display, sizeof display - 1) == 0) ||
           (left > sizeof machine - 1 && memcmp(end + 1, machine, sizeof machine - 1) == 0);
}

/* What the program called a captured variable. False: the compiler made the field for itself. */
static bool captured_name(const char *field, struct text *ret)
{
    const char *end = field[0] == '<' ? strchr(field, '>') : NULL;
    if (string_begins_with(field, "CS$"))
        return false;
    if (field[0] != '<')
        text_puts(ret, field);
    else if (!strcmp(field, "<>4__this"))
        text_puts(ret, "this");
    else if (end && end > field + 1 && string_begins_with(end + 1, "5__")) /* a local of a state machine */
        text_append(ret, field + 1, (size_t)(end - field - 1));
    else
        return false;
    return true;
}

static void add_captured(struct visit *visit, uint64_t type, uint64_t base, unsigned depth);

/* Adds the variables of a closure that an object is. */
static void add_captured_of_object(struct visit *visit, uint64_t object, unsigned depth)
{
    struct reader *reader = &visit->session->resolver.reader;
    uint64_t type = object && object_is_plausible(reader, object) ? object_method_table(reader, object) : 0;
    if (type && !reader_failed(reader) && is_closure(visit->frame.cache, type))
        add_captured(visit, type, object + reader->pointer_size, depth);
    reader_recover(reader, FAILURE_BUT_FUEL);
}

static void add_captured_field(struct visit *visit, const struct object_field *field, uint64_t base, unsigned depth)
{
    struct module_cache *cache = visit->frame.cache;
    struct text text = {0}, name = {0};
    struct visited_variable item = {.variable = {.size = sizeof item.variable, .kind = CDACQ_VARIABLE_CAPTURED}};
    bool is_named = object_field_name(cache, field, &text) && text.data;
    field_value_read(cache, field, base, &item.value);
    if (reader_failed(cache->reader)) {
        struct cdacq_error error;
        reader_status(cache->reader, &error);
        item.variable.state = CDACQ_VARIABLE_UNKNOWN;
        item.variable.problem = keep_problem(visit, error.message);
        reader_recover(cache->reader, FAILURE_BUT_FUEL);
    }
    bool is_variable = is_named && captured_name(text.data, &name);
    bool may_nest = is_named && !is_variable && item.value.kind == CDACQ_VALUE_REFERENCE &&
                    (string_begins_with(text.data, "CS$<>8__locals") || string_begins_with(text.data, "<>8__"));
    text_clear(&text);
    if (is_variable) {
        item.variable.name = take_text(visit, true, &name);
        item.variable.type = take_text(visit, field_type_name(cache, field->owner, field->token, &text), &text);
        if (visit->in_locals)
            hide_parameter(visit, item.variable.name);
        if (!is_captured_twice(visit, &item))
            append(visit, &item);
    } else if (may_nest && depth < CLOSURE_DEPTH_MAX) {
        add_captured_of_object(visit, item.value.bits, depth + 1);
    }
    text_deinit(&text);
    text_deinit(&name);
}

static void add_captured(struct visit *visit, uint64_t type, uint64_t base, unsigned depth)
{
    struct object_fields fields = {0};
    if (object_fields_read(visit->frame.cache, type, &fields))
        for (size_t i = 0; i < fields.count && !visit->failed; i++)
            add_captured_field(visit, &fields.items[i], base, depth);
    object_fields_deinit(&fields);
}

/* Adds what a variable holds if that is a closure. A state machine can be a struct, to which `this` refers. */
static void add_captured_of(struct visit *visit, const struct visited_variable *item)
{
    const struct cdacq_value *value = &item->value, *target = &item->target;
    if (item->variable.state != CDACQ_VARIABLE_KNOWN)
        return;
    if (item->has_target && target->kind == CDACQ_VALUE_STRUCT && target->method_table && target->address &&
        is_closure(visit->frame.cache, target->method_table))
        add_captured(visit, target->method_table, target->address, 0);
    else if (!item->has_target && value->kind == CDACQ_VALUE_REFERENCE)
        add_captured_of_object(visit, value->bits, 0);
    reader_recover(&visit->session->resolver.reader, FAILURE_BUT_FUEL);
}

/* Adds the variables of an async method that waits: its state machine is in a box, as an object or as a struct. */
static bool add_waiting(struct visit *visit, uint64_t box)
{
    struct module_cache *cache = visit->frame.cache;
    struct reader *reader = cache->reader;
    struct object_field field;
    uint64_t type = box && object_is_plausible(reader, box) ? object_method_table(reader, box) : 0;
    if (!type || reader_failed(reader) || !object_field_find(cache, type, "StateMachine", &field) || field.is_static)
        return false;
    uint64_t address = object_field_address(reader, box, &field);
    if (field.element == ELEMENT_CLASS) {
        add_captured_of_object(visit, read_pointer(reader, address), 0);
        return true;
    }
    type = field_type_find(cache, field.owner, field.token);
    if (!type || reader_failed(reader) || !is_closure(cache, type))
        return false;
    add_captured(visit, type, address, 0);
    return true;
}

/* ---- Arguments ---- */

static void add_this(struct visit *visit)
{
    struct visited_variable item = {.variable = {.size = sizeof item.variable, .kind = CDACQ_VARIABLE_THIS}};
    struct text text = {0};
    item.variable.name = "this";
    bool is_known = frame_method_this_name(&visit->method, &text);
    if (is_known && visit->method.owner_is_value)
        text_putc(&text, '&');
    item.variable.type = take_text(visit, is_known, &text);
    text_deinit(&text);
    read_variable(visit, 0, NULL, &item);
    append(visit, &item);
    add_captured_of(visit, &item);
}

static void add_parameters(struct visit *visit)
{
    const struct frame_method *method = &visit->method;
    struct signature s = frame_method_parameters(method);
    for (uint32_t i = method->has_this; i < method->argument_count && !visit->failed; i++) {
        uint32_t number = i - method->has_this;
        struct visited_variable item = {
            .variable = {.size = sizeof item.variable, .kind = CDACQ_VARIABLE_PARAMETER, .number = number}};
        item.variable.name = parameter_name(visit, number);
        item.variable.type = type_at(visit, &s);
        read_variable(visit, i, &s, &item);
        append(visit, &item);
        signature_skip_type(&s);
        if (s.failed)
            return;
    }
}

/* ---- Locals ---- */

/* The names of locals in scope, by slot. */
struct local_names {
    const char **names;
    bool *in_scope;
    uint32_t count;
    struct visit *visit;
    const struct metadata *metadata; /* of the PDB */
};

static bool take_local(const struct local_variable *local, void *context)
{
    struct local_names *names = context;
    if (local->slot < names->count) {
        names->in_scope[local->slot] = true;
        names->names[local->slot] = take_name(names->visit, names->metadata, local->name);
    }
    return true;
}

static void add_local(struct visit *visit, uint32_t slot, const char *name, const struct signature *type)
{
    const struct frame_method *method = &visit->method;
    struct visited_variable item = {
        .variable = {.size = sizeof item.variable, .kind = CDACQ_VARIABLE_LOCAL, .number = slot, .name = name}};
    read_variable(visit, method->argument_count + slot, type, &item);
    if (name && string_begins_with(name, "CS$<>8__locals")) { /* the closure is no variable of the program */
        add_captured_of(visit, &item);
        return;
    }
    item.variable.type = type_at(visit, type);
    append(visit, &item);
}

/* The names, unless the method was compiled from other IL than that of the PDB. False: there is no PDB. */
static bool find_names(struct visit *visit, int32_t il_offset, struct local_names *names)
{
    struct resolver *resolver = &visit->session->resolver;
    const struct module *module = module_cache_get(visit->frame.cache, visit->method.scope.module);
    struct reader_task outer = reader_enter(&resolver->reader, FUEL_LOOKUP);
    const struct module_pdb *pdb = resolver_module_pdb(resolver, module);
    (void)reader_leave(&resolver->reader, &outer);
    uint32_t rid = metadata_rid(visit->method.token);
    if (!pdb || !pdb->usable || !local_variables_exist(&pdb->tables, rid))
        return pdb && pdb->usable;
    names->metadata = &pdb->tables.metadata;
    if (il_offset >= 0)
        (void)local_variables_each(&pdb->tables, rid, (uint32_t)il_offset, take_local, names);
    return true;
}

static void add_locals(struct visit *visit, int32_t il_offset)
{
    const struct frame_method *method = &visit->method;
    struct signature s = frame_method_locals(method);
    struct local_names names = {.count = method->local_count, .visit = visit};
    if (!method->local_count || resolver_il_is_replaced(&visit->session->resolver, method->scope.module, method->token,
                                                        method->block.method_desc, method->block.start))
        return;
    names.names = calloc(names.count, sizeof *names.names);
    names.in_scope = calloc(names.count, sizeof *names.in_scope);
    visit->failed |= !names.names || !names.in_scope;
    visit->in_locals = true;
    bool has_pdb = !visit->failed && find_names(visit, il_offset, &names);
    for (uint32_t i = 0; i < names.count && !visit->failed && !s.failed; i++) {
        if (!has_pdb || names.in_scope[i])
            add_local(visit, i, names.names[i], &s);
        signature_skip_modifiers(&s);
        signature_skip_type(&s);
    }
    free(names.names);
    free(names.in_scope);
}

/* ---- The call ---- */

/* Passes on where a variable is. */
static int give_place(const struct visit *visit, const struct visited_variable *item)
{
    const struct cdacq_variable_place place = {.size = sizeof place,
                                               .kind = item->variable.kind,
                                               .number = item->variable.number,
                                               .name = item->variable.name,
                                               .type = item->variable.type,
                                               .location = item->location,
                                               .problem = item->variable.problem};
    return visit->take_place(&place, visit->context);
}

static int give_variable(const struct visit *visit, struct visited_variable *item)
{
    if (item->is_hidden)
        return 0;
    item->value.size = sizeof item->value;
    item->target.size = sizeof item->target;
    if (item->variable.state == CDACQ_VARIABLE_KNOWN)
        item->variable.value = &item->value;
    if (item->has_target)
        item->variable.target = &item->target;
    return visit->take(&item->variable, visit->context);
}

static enum cdacq_status pass_on(struct visit *visit)
{
    struct epoch *epoch = &visit->session->resolver.epoch;
    int stopped = 0;
    epoch_pin(epoch); /* what the caller does is part of this epoch */
    for (size_t i = 0; !stopped && i < visit->found.count; i++) {
        struct visited_variable *item = &visit->found.items[i];
        stopped = visit->take_place ? give_place(visit, item) : give_variable(visit, item);
    }
    epoch_unpin(epoch);
    return stopped ? CDACQ_STOPPED : CDACQ_OK;
}

/* Adds what a method has. */
static void add_all(struct visit *visit, int32_t il_offset)
{
    if (visit->method.has_this)
        add_this(visit);
    add_parameters(visit);
    add_locals(visit, il_offset);
}

static enum cdacq_status read_all(struct visit *visit, const struct cdacq_frame *frame, struct cdacq_error *err)
{
    struct reader *reader = &visit->session->resolver.reader;
    bool is_async = frame->kind == CDACQ_FRAME_ASYNC;
    bool has_variables =
        is_async ? add_waiting(visit, frame->object) : frame_method_open(&visit->frame, &visit->method);
    if (is_async)
        reader_recover(reader, FAILURE_BUT_FUEL);
    if (has_variables && !is_async)
        add_all(visit, frame->method->il_offset);
    frame_method_close(&visit->method);
    reader_name_failure(reader, variables_of_method);
    if (visit->failed)
        return error_set(err, CDACQ_ERR_NOMEM, frame->pc, "too many variables, or out of memory");
    enum cdacq_status status = reader_status(reader, err);
    return status < 0 ? status : has_variables ? CDACQ_OK : CDACQ_NOT_MANAGED;
}

static struct variable_frame frame_at(const struct visit *visit, uint64_t pc, bool is_call, uint64_t cfa)
{
    struct resolver *resolver = &visit->session->resolver;
    return (struct variable_frame){.cache = &resolver->modules,
                                   .manager = &resolver->target->manager,
                                   .encoding = resolver->target->contracts.debug_info,
                                   .registers = &visit->registers,
                                   .pc = resolver_address(resolver, pc) - is_call,
                                   .cfa = cfa};
}

enum cdacq_status cdacq_session_visit_variables(struct cdacq_session *session, const struct cdacq_frame *frame,
                                                int (*visit)(const struct cdacq_variable *variable, void *context),
                                                void *context, struct cdacq_error *err)
{
    if (!session || !frame || !visit)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no session, no frame or no function to call");
    struct cdacq_frame copy = {.size = sizeof copy};
    enum cdacq_status status = sized_check(frame, "struct cdacq_frame", err);
    if (status < 0)
        return status;
    sized_copy(&copy, frame, sized_size(frame));
    bool is_code = (copy.kind == CDACQ_FRAME_MANAGED || copy.kind == CDACQ_FRAME_FUNCLET) && copy.registers;
    bool is_waiting = copy.kind == CDACQ_FRAME_ASYNC && copy.object;
    struct resolver *resolver = &session->resolver;
    if ((!is_code && !is_waiting) || !copy.method || copy.method->runtime != resolver->target->runtime ||
        resolver->modules.aot)
        return CDACQ_NOT_MANAGED;
    resolver_begin(resolver);
    reader_begin(&resolver->reader, FUEL_INDEX);
    struct visit v = {.session = session, .take = visit, .context = context};
    for (unsigned i = 0; is_code && i < REGISTER_MAX; i++)
        if (copy.registers->known >> i & 1)
            register_set(&v.registers, i, copy.registers->values[i]);
    v.frame = frame_at(&v, copy.pc, copy.is_call, copy.cfa);
    if (copy.by == CDACQ_FRAME_BY_GUESS)
        v.doubt = "the frame rests on a guess";
    status = read_all(&v, &copy, err);
    if (status == CDACQ_OK)
        status = pass_on(&v);
    visited_variables_deinit(&v.found);
    return status;
}

/* ---- Places ---- */

/* The IL offset of the visit's code; CDACQ_OFFSET_UNKNOWN where the debug info has none. */
static int32_t il_offset_of(const struct visit *visit)
{
    const struct code_block *block = &visit->method.block;
    struct reader *reader = visit->frame.cache->reader;
    struct il_map map = {0};
    int32_t offset = CDACQ_OFFSET_UNKNOWN;
    if (block_il_map(visit->frame.encoding, reader, block, &map) && map.count && block->offset <= UINT32_MAX)
        offset = (int32_t)il_map_find(map.items, map.count, (uint32_t)block->offset);
    reader_recover(reader, FAILURE_BUT_FUEL);
    il_map_deinit(&map);
    return offset;
}

/* Finds the places at an address. False: no variables are known, or the reader fails. */
static bool find_places(struct visit *visit, uint64_t ip)
{
    struct resolver *resolver = &visit->session->resolver;
    visit->found.count = 0;
    visit->in_locals = false;
    resolver_begin(resolver);
    epoch_watch(&resolver->epoch);
    reader_begin(&resolver->reader, FUEL_INDEX);
    visit->frame = frame_at(visit, ip, false, 0);
    bool found = frame_method_open(&visit->frame, &visit->method);
    if (found)
        add_all(visit, il_offset_of(visit));
    frame_method_close(&visit->method);
    return found && !reader_failed(&resolver->reader);
}

enum cdacq_status cdacq_session_visit_variable_places(struct cdacq_session *session, uint64_t ip,
                                                      int (*visit)(const struct cdacq_variable_place *place,
                                                                   void *context),
                                                      void *context, struct cdacq_error *err)
{
    if (!session || !visit)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no session, or no function to call");
    if (session->resolver.modules.aot)
        return CDACQ_NOT_MANAGED;
    struct visit v = {.session = session, .take_place = visit, .context = context};
    struct epoch_tries tries = {0};
    bool found;
    do
        found = find_places(&v, ip);
    while (epoch_again_or_fail(&session->resolver.epoch, &tries, &found));
    reader_name_failure(&session->resolver.reader, variables_of_method);
    enum cdacq_status status = found ? CDACQ_OK : reader_status(&session->resolver.reader, err);
    if (v.failed)
        status = error_set(err, CDACQ_ERR_NOMEM, ip, "too many variables, or out of memory");
    else if (found)
        status = pass_on(&v);
    else if (status == CDACQ_OK)
        status = CDACQ_NOT_MANAGED;
    visited_variables_deinit(&v.found);
    return status;
}
