/* object.c: the calls of cdacq/object.h. */
#include "contracts/objects/collection.h"
#include "contracts/objects/string.h"
#include "contracts/type_system/field_type.h"
#include "contracts/type_system/type_handle.h"
#include "formats/metadata_members.h"
#include "formats/names/spelling.h"
#include "src/api/type_name.h"
#include "src/lookup/opened_target.h"
#include "src/lookup/records.h"
#include "util/sized.h"

static enum cdacq_status begin(struct cdacq_session *session, uint64_t object, struct cdacq_error *err)
{
    if (!session || !object)
        return error_set(err, CDACQ_ERR_ARGUMENT, object, session ? "no object" : "no session");
    resolver_begin(&session->resolver);
    reader_begin(&session->resolver.reader, FUEL_INDEX);
    return CDACQ_OK;
}

enum cdacq_status cdacq_session_get_object(struct cdacq_session *session, uint64_t address, struct cdacq_object *ret,
                                           struct cdacq_error *err)
{
    struct object_array array;
    enum cdacq_status status = sized_check(ret, "struct cdacq_object", err);
    if (status == CDACQ_OK)
        status = begin(session, address, err);
    if (status < 0)
        return status;
    struct reader *reader = &session->resolver.reader;
    struct cdacq_object object = {.size = sizeof object,
                                  .address = address,
                                  .method_table = object_method_table(reader, address),
                                  .byte_size = object_size(reader, address)};
    if (object_array_read(reader, address, &array)) {
        object.is_array = true;
        object.length = array.count;
        object.rank = array.rank;
        object.element_size = array.element_size;
    } else if (!reader_failed(reader)) {
        struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
        object.length = string_length(reader, address);
        object.is_string = reader_leave(reader, &outer).status >= 0;
        object.length = object.is_string ? object.length : 0;
    }
    if (reader_failed(reader))
        return reader_status(reader, err);
    object.type = type_name(session, object.method_table, NULL);
    sized_copy(ret, &object, sizeof object);
    return CDACQ_OK;
}

enum cdacq_status cdacq_session_check_object(struct cdacq_session *session, uint64_t address, struct cdacq_error *err)
{
    enum cdacq_status status = begin(session, address, err);
    if (status < 0)
        return status;
    bool plausible = object_is_plausible(&session->resolver.reader, address);
    status = reader_status(&session->resolver.reader, err);
    return status < 0 ? status : plausible ? CDACQ_OK : CDACQ_NOT_MANAGED;
}

/* ---- Values ---- */

enum cdacq_status cdacq_session_get_field(struct cdacq_session *session, uint64_t object, const char *name,
                                          struct cdacq_value *ret, struct cdacq_error *err)
{
    struct object_field field;
    struct cdacq_value value;
    enum cdacq_status status = sized_check(ret, "struct cdacq_value", err);
    if (status == CDACQ_OK)
        status = name ? begin(session, object, err) : error_set(err, CDACQ_ERR_ARGUMENT, 0, "no name");
    if (status < 0)
        return status;
    struct reader *reader = &session->resolver.reader;
    uint64_t method_table = object_method_table(reader, object);
    bool found = !reader_failed(reader) && object_field_find(&session->resolver.modules, method_table, name, &field);
    if (reader_failed(reader))
        return reader_status(reader, err);
    if (!found)
        return CDACQ_NOT_MANAGED;
    if (field.is_static)
        return error_set(err, CDACQ_ERR_CONTRACT, object,
                         "the field is static: this build does not read static fields");
    field_value_read(&session->resolver.modules, &field, object + reader->pointer_size, &value);
    if (reader_failed(reader))
        return reader_status(reader, err);
    sized_copy(ret, &value, sizeof value);
    return CDACQ_OK;
}

enum cdacq_status cdacq_session_get_element(struct cdacq_session *session, uint64_t array, uint32_t index,
                                            struct cdacq_value *ret, struct cdacq_error *err)
{
    struct object_array content;
    struct cdacq_value value;
    enum cdacq_status status = sized_check(ret, "struct cdacq_value", err);
    if (status == CDACQ_OK)
        status = begin(session, array, err);
    if (status < 0)
        return status;
    struct reader *reader = &session->resolver.reader;
    bool is_array = object_array_read(reader, array, &content);
    if (!reader_failed(reader) && (!is_array || index >= content.count))
        return error_set(err, CDACQ_ERR_ARGUMENT, array,
                         is_array ? "the array has no such element" : "the object is no array");
    if (is_array)
        element_value_read(&session->resolver.modules, &content, index, &value);
    if (reader_failed(reader))
        return reader_status(reader, err);
    sized_copy(ret, &value, sizeof value);
    return CDACQ_OK;
}

enum cdacq_status cdacq_session_get_boxed(struct cdacq_session *session, uint64_t object, struct cdacq_value *ret,
                                          struct cdacq_error *err)
{
    struct cdacq_value value;
    enum cdacq_status status = sized_check(ret, "struct cdacq_value", err);
    if (status == CDACQ_OK)
        status = begin(session, object, err);
    if (status < 0)
        return status;
    if (boxed_value_read(&session->resolver.modules, object, &value)) {
        sized_copy(ret, &value, sizeof value);
        return CDACQ_OK;
    }
    status = reader_status(&session->resolver.reader, err);
    return status < 0 ? status : CDACQ_NOT_MANAGED;
}

enum cdacq_status cdacq_session_get_nullable(struct cdacq_session *session, const struct cdacq_value *value,
                                             bool *ret_has_value, struct cdacq_value *ret, struct cdacq_error *err)
{
    struct cdacq_value own = {.size = sizeof own}, inner;
    enum cdacq_status status = sized_check(value, "struct cdacq_value", err);
    if (status == CDACQ_OK)
        status = sized_check(ret, "struct cdacq_value", err);
    if (status == CDACQ_OK)
        status = ret_has_value ? begin(session, UINT64_MAX, err)
                               : error_set(err, CDACQ_ERR_ARGUMENT, 0, "nowhere to put the answer");
    if (status < 0)
        return status;
    sized_copy(&own, value, sized_size(value));
    if (nullable_value_read(&session->resolver.modules, &own, ret_has_value, &inner)) {
        sized_copy(ret, &inner, sizeof inner);
        return CDACQ_OK;
    }
    status = reader_status(&session->resolver.reader, err);
    return status < 0 ? status : CDACQ_NOT_MANAGED;
}

enum cdacq_status cdacq_session_write_value(struct cdacq_session *session, const struct cdacq_value *value,
                                            int (*write)(const char *bytes, size_t length, void *context),
                                            void *context, struct cdacq_error *err)
{
    struct cdacq_value own = {.size = sizeof own};
    enum cdacq_status status = sized_check(value, "struct cdacq_value", err);
    if (status == CDACQ_OK)
        status = write ? begin(session, UINT64_MAX, err) : error_set(err, CDACQ_ERR_ARGUMENT, 0, "no function to call");
    if (status < 0)
        return status;
    sized_copy(&own, value, sized_size(value));
    struct text text = {0};
    bool has_text = value_text(&session->resolver.modules, &own, &text);
    if (has_text) {
        epoch_pin(&session->resolver.epoch); /* what `write` does is part of this epoch */
        status = write(text.data, text.length, context) ? CDACQ_STOPPED : CDACQ_OK;
        epoch_unpin(&session->resolver.epoch);
    } else {
        status = text.broken ? error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory")
                             : reader_status(&session->resolver.reader, err);
        status = status < 0 ? status : CDACQ_NOT_MANAGED;
    }
    text_deinit(&text);
    return status;
}

/* ---- Fields ---- */

struct visited_field {
    struct cdacq_field field; /* without its `value` */
    struct cdacq_value value;
};

DEFINE_VECTOR(visited_fields, struct visited_field);

/* Why the current task failed, as a text of the session. The task goes on if it has fuel. */
static const char *take_problem(struct cdacq_session *session)
{
    struct cdacq_error error;
    struct reader *reader = &session->resolver.reader;
    if (reader_status(reader, &error) >= 0)
        return NULL;
    reader_recover(reader, FAILURE_BUT_FUEL);
    const char *problem = resolver_intern(&session->resolver, error.message, strlen(error.message));
    return problem ? problem : "out of memory";
}

/* A text of the session, whose content `text` loses; NULL if there is none. */
static const char *take_text(struct cdacq_session *session, bool is_known, struct text *text)
{
    const char *kept = is_known && text->length ? resolver_intern(&session->resolver, text->data, text->length) : NULL;
    text_clear(text);
    return kept;
}

/* The fields of an object or a struct. */
struct field_source {
    uint64_t base; /* the address of the first one; 0: `bits` has them */
    uint64_t size; /* bytes of all */
    uint64_t bits;
};

/* The value of a field, which must lie within the bytes of all fields. */
static void read_visited(struct cdacq_session *session, const struct object_field *field,
                         const struct field_source *source, struct visited_field *ret)
{
    struct reader *reader = &session->resolver.reader;
    if (field->offset < source->size && source->base)
        field_value_read(&session->resolver.modules, field, source->base, &ret->value);
    else if (field->offset < source->size)
        field_value_of_bits(&session->resolver.modules, field, source->bits, &ret->value);
    if (!reader_failed(reader) && (field->offset >= source->size || ret->value.width > source->size - field->offset))
        reader_fail(reader, CDACQ_ERR_CORRUPT, source->base + field->offset, "a field beyond the end of its object");
    ret->field.problem = take_problem(session);
    ret->value.address = source->base ? source->base + field->offset : 0;
    if (ret->field.problem)
        ret->value.bits = ret->value.method_table = 0;
}

static bool append_visited(struct cdacq_session *session, const struct object_field *field,
                           const struct field_source *source, struct visited_fields *ret)
{
    struct module_cache *modules = &session->resolver.modules;
    struct visited_field visited = {.field = {.size = sizeof visited.field, .offset = field->offset},
                                    .value.size = sizeof visited.value};
    struct text text = {0};
    visited.field.name = take_text(session, object_field_name(modules, field, &text), &text);
    visited.field.type = take_text(session, field_type_name(modules, field->owner, field->token, &text), &text);
    reader_recover(&session->resolver.reader, FAILURE_BUT_FUEL);
    text_deinit(&text);
    visited.field.owner = type_name(session, field->owner, NULL);
    read_visited(session, field, source, &visited);
    return visited_fields_append(ret, visited);
}

static enum cdacq_status visit_all(struct cdacq_session *session, uint64_t type, const struct field_source *source,
                                   int (*visit)(const struct cdacq_field *field, void *context), void *context,
                                   struct cdacq_error *err)
{
    struct object_fields fields = {0};
    struct visited_fields visited = {0};
    enum cdacq_status status = CDACQ_OK;
    if (!object_fields_read(&session->resolver.modules, type, &fields))
        status = reader_status(&session->resolver.reader, err);
    for (size_t i = 0; status == CDACQ_OK && i < fields.count; i++)
        if (!append_visited(session, &fields.items[i], source, &visited))
            status = error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    epoch_pin(&session->resolver.epoch);
    for (size_t i = 0; status == CDACQ_OK && i < visited.count; i++) {
        visited.items[i].field.value = &visited.items[i].value;
        status = visit(&visited.items[i].field, context) ? CDACQ_STOPPED : CDACQ_OK;
    }
    epoch_unpin(&session->resolver.epoch);
    object_fields_deinit(&fields);
    visited_fields_deinit(&visited);
    return status;
}

enum cdacq_status cdacq_session_visit_fields(struct cdacq_session *session, uint64_t object,
                                             int (*visit)(const struct cdacq_field *field, void *context),
                                             void *context, struct cdacq_error *err)
{
    enum cdacq_status status =
        visit ? begin(session, object, err) : error_set(err, CDACQ_ERR_ARGUMENT, 0, "no function to call");
    if (status < 0)
        return status;
    struct reader *reader = &session->resolver.reader;
    uint64_t type = object_method_table(reader, object), size = object_size(reader, object);
    uint64_t header = 2 * (uint64_t)reader->pointer_size;
    if (reader_failed(reader))
        return reader_status(reader, err);
    const struct field_source source = {.base = object + reader->pointer_size,
                                        .size = size < header ? 0 : size - header};
    return visit_all(session, type, &source, visit, context, err);
}

enum cdacq_status cdacq_session_visit_struct_fields(struct cdacq_session *session, uint64_t type, uint64_t address,
                                                    int (*visit)(const struct cdacq_field *field, void *context),
                                                    void *context, struct cdacq_error *err)
{
    enum cdacq_status status =
        visit ? begin(session, type, err) : error_set(err, CDACQ_ERR_ARGUMENT, 0, "no function to call");
    if (status < 0)
        return status;
    const struct field_source source = {.base = address, .size = struct_size(&session->resolver.reader, type)};
    status = reader_status(&session->resolver.reader, err);
    return status < 0 ? status : visit_all(session, type, &source, visit, context, err);
}

enum cdacq_status cdacq_session_visit_value_fields(struct cdacq_session *session, const struct cdacq_value *value,
                                                   int (*visit)(const struct cdacq_field *field, void *context),
                                                   void *context, struct cdacq_error *err)
{
    struct cdacq_value own = {.size = sizeof own};
    enum cdacq_status status = sized_check(value, "struct cdacq_value", err);
    if (status < 0)
        return status;
    sized_copy(&own, value, sized_size(value));
    if (own.kind != CDACQ_VALUE_STRUCT || !own.method_table || (!own.address && own.width > sizeof own.bits))
        return error_set(err, CDACQ_ERR_ARGUMENT, own.address, "the value is no struct of a known type");
    if (own.address)
        return cdacq_session_visit_struct_fields(session, own.method_table, own.address, visit, context, err);
    status =
        visit ? begin(session, own.method_table, err) : error_set(err, CDACQ_ERR_ARGUMENT, 0, "no function to call");
    const struct field_source source = {.size = own.width, .bits = own.bits};
    return status < 0 ? status : visit_all(session, own.method_table, &source, visit, context, err);
}

/* ---- Delegates ---- */

/* A field of System.Delegate. */
static bool delegate_field(struct module_cache *modules, uint64_t object, const char *name, uint64_t *ret)
{
    struct object_field field;
    const struct metadata *metadata;
    uint32_t type;
    bool equal = false;
    uint64_t method_table = object_method_table(modules->reader, object);
    if (reader_failed(modules->reader) || modules->aot || !object_field_find(modules, method_table, name, &field) ||
        field.is_static || type_handle_definition(modules, field.owner, &metadata, &type) != CDACQ_OK ||
        metadata_type_is(metadata, type, "System", "Delegate", &equal) != CDACQ_OK || !equal)
        return false;
    *ret = read_pointer(modules->reader, object_field_address(modules->reader, object, &field));
    return !reader_failed(modules->reader);
}

static const char *name_of_desc(struct resolver *resolver, uint64_t method_desc)
{
    const struct method_namer namer = resolver_namer(resolver, NULL);
    struct method_name name = {0};
    method_name_of_desc(&namer, method_desc, &name);
    const char *kept = name.text.length ? resolver_intern(resolver, name.text.data, name.text.length) : NULL;
    text_deinit(&name.text);
    return kept;
}

enum cdacq_status cdacq_session_get_delegate(struct cdacq_session *session, uint64_t object, struct cdacq_delegate *ret,
                                             struct cdacq_error *err)
{
    enum cdacq_status status = sized_check(ret, "struct cdacq_delegate", err);
    if (status == CDACQ_OK)
        status = begin(session, object, err);
    if (status < 0)
        return status;
    struct resolver *resolver = &session->resolver;
    struct module_cache *modules = &resolver->modules;
    struct cdacq_delegate delegate = {.size = sizeof delegate};
    uint64_t indirect = 0;
    /* Of a static method, _methodPtr is code that moves the arguments, and _target the delegate itself. */
    bool found = delegate_field(modules, object, "_target", &delegate.target) &&
                 delegate_field(modules, object, "_methodPtr", &delegate.entry) &&
                 delegate_field(modules, object, "_methodPtrAux", &indirect);
    delegate.entry = indirect ? indirect : delegate.entry;
    delegate.target = indirect ? 0 : delegate.target;
    found =
        found && execution_manager_entry_method_desc(&resolver->target->manager, &resolver->reader,
                                                     resolver_address(resolver, delegate.entry), &delegate.method_desc);
    if (reader_failed(&resolver->reader))
        return reader_status(&resolver->reader, err);
    if (!found)
        return CDACQ_NOT_MANAGED;
    delegate.method = name_of_desc(resolver, delegate.method_desc);
    sized_copy(ret, &delegate, sizeof delegate);
    return CDACQ_OK;
}

/* ---- Arrays and collections ---- */

static void fill_contents(const struct collection *collection, struct cdacq_contents *ret)
{
    struct cdacq_contents contents = {.size = sizeof contents,
                                      .count = collection->count,
                                      .is_array = collection->kind == COLLECTION_ARRAY,
                                      .has_keys = collection->kind == COLLECTION_DICTIONARY ||
                                                  collection->kind == COLLECTION_CONCURRENT_DICTIONARY};
    if (contents.is_array)
        contents.rank = collection->array.rank;
    for (uint32_t i = 0; i < contents.rank; i++) {
        contents.lengths[i] = collection->array.lengths[i];
        contents.lower_bounds[i] = collection->array.lower_bounds[i];
    }
    sized_copy(ret, &contents, sizeof contents);
}

/* Passes on the next item, which has a task of its own. False at the end. */
static bool visit_item(struct cdacq_session *session, struct collection *collection,
                       int (*visit)(const struct cdacq_item *item, void *context), void *context,
                       enum cdacq_status *status)
{
    struct collection_item found;
    reader_begin(&session->resolver.reader, FUEL_OPEN);
    if (!collection_next(&session->resolver.modules, collection, &found) && !reader_failed(&session->resolver.reader))
        return false;
    struct cdacq_item item = {
        .size = sizeof item, .index = found.index, .key = found.has_key ? &found.key : NULL, .value = &found.value};
    bool is_last = reader_failure(&session->resolver.reader).status == CDACQ_ERR_FUEL;
    item.problem = take_problem(session);
    if (visit(&item, context))
        *status = CDACQ_STOPPED;
    return *status == CDACQ_OK && !is_last;
}

enum cdacq_status cdacq_session_visit_items(struct cdacq_session *session, uint64_t object, uint64_t max,
                                            struct cdacq_contents *ret,
                                            int (*visit)(const struct cdacq_item *item, void *context), void *context,
                                            struct cdacq_error *err)
{
    struct collection collection;
    enum cdacq_status status = ret ? sized_check(ret, "struct cdacq_contents", err) : CDACQ_OK;
    if (status == CDACQ_OK)
        status = begin(session, object, err);
    if (status < 0)
        return status;
    if (!collection_open(&session->resolver.modules, object, &collection)) {
        status = reader_status(&session->resolver.reader, err);
        return status < 0 ? status : CDACQ_NOT_MANAGED;
    }
    if (ret)
        fill_contents(&collection, ret);
    epoch_pin(&session->resolver.epoch);
    for (uint64_t i = 0; visit && i < max && visit_item(session, &collection, visit, context, &status); i++)
        ;
    epoch_unpin(&session->resolver.epoch);
    return status;
}

/* ---- Strings ---- */

struct caller {
    int (*write)(const char *bytes, size_t length, void *context);
    void *context;
    bool stopped;
};

static bool pass_on(void *context, const char *utf8, size_t length)
{
    struct caller *caller = context;
    caller->stopped = caller->write(utf8, length, caller->context) != 0;
    return !caller->stopped;
}

enum cdacq_status cdacq_session_write_string(struct cdacq_session *session, uint64_t string, uint32_t max,
                                             int (*write)(const char *bytes, size_t length, void *context),
                                             void *context, struct cdacq_error *err)
{
    struct caller caller = {.write = write, .context = context};
    enum cdacq_status status =
        write ? begin(session, string, err) : error_set(err, CDACQ_ERR_ARGUMENT, 0, "no function to call");
    if (status < 0)
        return status;
    epoch_pin(&session->resolver.epoch); /* what `write` does is part of this epoch */
    string_each(&session->resolver.reader, string, max, pass_on, &caller);
    epoch_unpin(&session->resolver.epoch);
    if (caller.stopped)
        return CDACQ_STOPPED;
    return reader_status(&session->resolver.reader, err);
}
