#include "src/cli/base/json_writer.h"
#include "src/cli/commands/object_view.h"
#include "util/base.h"

struct json_view {
    struct object_view *view;
    struct json_writer *json;
};

static int put_field(const struct cdacq_field *field, void *context);

static void put_word(struct json_writer *json, const char *key, const struct text *text)
{
    char *p = json_begin_value(json, key, text->length);
    memcpy(p, text->data, text->length);
    output_commit(json->out, p + text->length);
}

static void put_text(struct json_writer *json, const char *key, const struct text *text)
{
    json_lines(json, key, text->data ? text->data : "", text->length);
}

static void put_struct(struct json_view *writer, const struct cdacq_value *value)
{
    struct cdacq_error error;
    struct json_writer *json = writer->json;
    json_begin_array(json, "fields");
    writer->view->depth++;
    enum cdacq_status status =
        cdacq_session_visit_value_fields(writer->view->session, value, put_field, writer, &error);
    writer->view->depth--;
    json_end_array(json);
    if (status < 0) {
        writer->view->problems++;
        json_note(json, "problem", error.message);
    }
}

/* The members of an object that are about a value. */
static void put_value(struct json_view *writer, const struct cdacq_value *value, const char *problem)
{
    struct json_writer *json = writer->json;
    struct shown_value shown;
    object_view_value(writer->view, value, problem, &shown);
    switch (shown.kind) {
    case SHOWN_TEXT:
    case SHOWN_CHARACTER:
        put_text(json, "value", &shown.text);
        break;
    case SHOWN_WORD:
        put_word(json, "value", &shown.text);
        break;
    case SHOWN_STRING:
        put_text(json, "value", &shown.text);
        json_address(json, "object", shown.address);
        if (shown.cut)
            json_number(json, "left_out", shown.cut);
        break;
    case SHOWN_REFERENCE:
        json_address(json, "value", shown.address);
        json_address(json, "object", shown.address);
        json_note(json, "object_type", shown.type);
        if (shown.has_count)
            json_number(json, "count", shown.count);
        break;
    default:
        json_null(json, "value");
        break;
    }
    bool is_enum = shown.kind == SHOWN_TEXT &&
                   (shown.value.kind == CDACQ_VALUE_SIGNED || shown.value.kind == CDACQ_VALUE_UNSIGNED);
    if (is_enum) {
        bool negative = shown.value.kind == CDACQ_VALUE_SIGNED && shown.value.bits >> 63;
        text_clear(&shown.text);
        text_printf(&shown.text, "%s%llu", negative ? "-" : "",
                    (unsigned long long)(negative ? 0 - shown.value.bits : shown.value.bits));
        put_word(json, "number", &shown.text);
    }
    if (shown.kind == SHOWN_STRUCT)
        put_struct(writer, &shown.value);
    if (shown.kind == SHOWN_PROBLEM)
        json_note(json, "problem", shown.text.data);
    shown_value_deinit(&shown);
}

void object_view_put_json(struct object_view *view, struct json_writer *json, const struct cdacq_value *value)
{
    struct json_view writer = {.view = view, .json = json};
    put_value(&writer, value, NULL);
}

static int put_field(const struct cdacq_field *field, void *context)
{
    struct json_view *writer = context;
    struct json_writer *json = writer->json;
    if (!object_view_take_field(writer->view)) {
        writer->view->problems++;
        return 1;
    }
    json_begin_object(json, NULL);
    json_note(json, "name", field->name);
    json_note(json, "type", field->type);
    put_value(writer, field->value, field->problem);
    json_note(json, "declared_by", field->owner);
    json_number(json, "offset", field->offset);
    json_end_object(json);
    return output_failed(writer->view->out);
}

static int put_item(const struct cdacq_item *item, void *context)
{
    struct json_view *writer = context;
    struct json_writer *json = writer->json;
    json_begin_object(json, NULL);
    json_number(json, "index", item->index);
    if (item->key && !item->problem) {
        json_begin_object(json, "key");
        put_value(writer, item->key, NULL);
        json_end_object(json);
    }
    put_value(writer, item->value, item->problem);
    json_end_object(json);
    return output_failed(writer->view->out);
}

static void put_items(struct json_view *writer)
{
    struct object_view *view = writer->view;
    struct json_writer *json = writer->json;
    struct cdacq_contents contents = {.size = sizeof contents};
    struct cdacq_error error;
    enum cdacq_status status =
        cdacq_session_visit_items(view->session, view->object.address, 0, &contents, NULL, NULL, &error);
    if (status == CDACQ_OK) {
        json_number(json, "count", contents.count);
        if (contents.is_array) {
            json_begin_array(json, "lengths");
            for (uint32_t i = 0; i < contents.rank; i++)
                json_number(json, NULL, contents.lengths[i]);
            json_end_array(json);
        }
        json_begin_array(json, contents.is_array ? "elements" : "items");
        status = cdacq_session_visit_items(view->session, view->object.address, object_view_item_limit(view), NULL,
                                           put_item, writer, &error);
        json_end_array(json);
    }
    if (status < 0) {
        view->problems++;
        json_note(json, "problem", error.message);
    }
}

static void put_content(struct json_view *writer)
{
    struct object_view *view = writer->view;
    struct json_writer *json = writer->json;
    struct cdacq_value boxed = {.size = sizeof boxed};
    struct cdacq_error error;
    const struct cdacq_object *object = &view->object;
    json_begin_array(json, "fields");
    enum cdacq_status status =
        object->is_string || object->is_array
            ? CDACQ_OK
            : cdacq_session_visit_fields(view->session, object->address, put_field, writer, &error);
    json_end_array(json);
    if (status < 0) {
        view->problems++;
        json_note(json, "problem", error.message);
    }
    if (object->is_string) {
        struct shown_value shown = {.length = object->length};
        object_view_string(view, object->address, &shown);
        if (shown.kind == SHOWN_PROBLEM) {
            json_null(json, "value");
            json_note(json, "problem", shown.text.data);
        } else {
            put_text(json, "value", &shown.text);
        }
        if (shown.cut)
            json_number(json, "left_out", shown.cut);
        shown_value_deinit(&shown);
    } else if (cdacq_session_get_boxed(view->session, object->address, &boxed, NULL) == CDACQ_OK) {
        json_begin_object(json, "boxed");
        put_value(writer, &boxed, NULL);
        json_end_object(json);
    } else {
        put_items(writer);
    }
}

static void put_referrers(struct json_view *writer)
{
    struct object_view *view = writer->view;
    struct json_writer *json = writer->json;
    struct object_referrers found = {0};
    struct cdacq_error error;
    uint64_t count;
    bool good = object_referrers_read(view->session, view->object.address, view->all ? UINT64_MAX : REFERRERS_SHOWN,
                                      &found, &count, &error);
    json_begin_array(json, "referrers");
    for (size_t i = 0; i < found.count && !output_failed(view->out); i++) {
        const struct object_referrer *referrer = &found.items[i];
        const char *type = NULL, *name = NULL;
        json_begin_object(json, NULL);
        json_address(json, "address", referrer->address);
        (void)cdacq_session_get_type_name(view->session, referrer->method_table, &type, NULL);
        json_note(json, "type", type);
        (void)cdacq_session_get_reference_name(view->session, referrer->address, referrer->offset, &name, NULL);
        json_note(json, "by", name);
        json_end_object(json);
    }
    json_end_array(json);
    json_known_number(json, "referrer_count", good, count);
    view->problems += !good;
    if (!good)
        json_note(json, "referrers_problem", error.message);
    object_referrers_deinit(&found);
}

void object_view_write_json(struct object_view *view)
{
    struct json_writer json = json_begin_line(view->out);
    struct json_view writer = {.view = view, .json = &json};
    json_address(&json, "address", view->object.address);
    json_note(&json, "type", view->object.type);
    json_number(&json, "size", view->object.byte_size);
    json_string(&json, "generation",
                view->heap ? object_heap_generation(view->heap, view->session, view->object.address) : NULL);
    json_address(&json, "method_table", view->object.method_table);
    put_content(&writer);
    const char *method = object_view_method(view);
    if (method)
        json_note(&json, "method", method);
    if (view->with_referrers)
        put_referrers(&writer);
    json_end_line(&json);
}

void object_write_error_json(struct output *out, const char *address, const char *why)
{
    struct json_writer json = json_begin_line(out);
    json_string(&json, "address", address);
    json_note(&json, "error", why);
    json_end_line(&json);
}
