#include "src/cli/commands/object_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/base.h"

static int append(const char *bytes, size_t length, void *context)
{
    struct text *text = context;
    text_append(text, bytes, length);
    return text->broken;
}

static void set_problem(struct object_view *view, const char *problem, struct shown_value *ret)
{
    view->problems++;
    ret->kind = SHOWN_PROBLEM;
    ret->cut = 0;
    text_clear(&ret->text);
    text_puts(&ret->text, problem);
}

void object_view_string(struct object_view *view, uint64_t address, struct shown_value *ret)
{
    struct cdacq_error error;
    uint32_t max = view->all ? OBJECT_UNITS_MAX : OBJECT_UNITS_SHOWN;
    ret->kind = SHOWN_STRING;
    ret->address = address;
    ret->cut = ret->length > max ? ret->length - max : 0;
    if (cdacq_session_write_string(view->session, address, max, append, &ret->text, &error) < 0)
        set_problem(view, error.message, ret);
}

bool object_view_count(const struct object_view *view, uint64_t address, uint64_t *ret)
{
    struct cdacq_contents contents = {.size = sizeof contents};
    if (cdacq_session_visit_items(view->session, address, 0, &contents, NULL, NULL, NULL) != CDACQ_OK)
        return false;
    *ret = contents.count;
    return true;
}

static void read_reference(struct object_view *view, uint64_t address, struct shown_value *ret)
{
    struct cdacq_object object = {.size = sizeof object};
    struct cdacq_error error;
    ret->kind = address ? SHOWN_REFERENCE : SHOWN_NULL;
    ret->address = address;
    if (!address)
        return;
    enum cdacq_status status = cdacq_session_check_object(view->session, address, &error);
    if (status == CDACQ_OK)
        status = cdacq_session_get_object(view->session, address, &object, &error);
    if (status != CDACQ_OK) {
        set_problem(view, status < 0 ? error.message : "no object is at this address", ret);
        return;
    }
    ret->type = object.type;
    ret->length = object.length;
    if (object.is_string)
        object_view_string(view, address, ret);
    else
        ret->has_count = object_view_count(view, address, &ret->count);
}

/* Whether the text is a number of JSON. That of an enum is the name of a member, which may have any characters. */
static bool is_number(const struct cdacq_value *value, const char *text)
{
    char digits[24];
    if (value->kind == CDACQ_VALUE_REAL)
        return !strchr(text, 'N') && !strchr(text, 'I'); /* NaN, Infinity */
    if (value->kind == CDACQ_VALUE_SIGNED)
        snprintf(digits, sizeof digits, "%" PRId64, (int64_t)value->bits);
    else if (value->kind == CDACQ_VALUE_UNSIGNED)
        snprintf(digits, sizeof digits, "%" PRIu64, value->bits);
    else
        return false;
    return !strcmp(text, digits);
}

static void read_text(struct object_view *view, const struct cdacq_value *value, struct shown_value *ret)
{
    struct cdacq_error error;
    enum cdacq_status status = cdacq_session_write_value(view->session, value, append, &ret->text, &error);
    if (status < 0 || ret->text.broken || !ret->text.data) {
        if (status < 0)
            set_problem(view, error.message, ret);
        else
            ret->kind = SHOWN_STRUCT;
        return;
    }
    ret->kind = value->kind == CDACQ_VALUE_BOOLEAN     ? SHOWN_WORD
                : value->kind == CDACQ_VALUE_CHARACTER ? SHOWN_CHARACTER
                : is_number(value, ret->text.data)     ? SHOWN_WORD
                                                       : SHOWN_TEXT;
}

void object_view_value(struct object_view *view, const struct cdacq_value *value, const char *problem,
                       struct shown_value *ret)
{
    struct cdacq_value inner = {.size = sizeof inner};
    struct cdacq_error error;
    bool has_value = true;
    *ret = (struct shown_value){.value = *value};
    if (problem) {
        set_problem(view, problem, ret);
        return;
    }
    enum cdacq_status status = value->kind == CDACQ_VALUE_STRUCT
                                   ? cdacq_session_get_nullable(view->session, value, &has_value, &inner, &error)
                                   : CDACQ_NOT_MANAGED;
    if (status < 0) {
        set_problem(view, error.message, ret);
        return;
    }
    if (status == CDACQ_OK && !has_value)
        return; /* SHOWN_NULL */
    if (status == CDACQ_OK)
        ret->value = inner;
    if (ret->value.kind == CDACQ_VALUE_REFERENCE)
        read_reference(view, ret->value.bits, ret);
    else
        read_text(view, &ret->value, ret);
    if (ret->kind == SHOWN_STRUCT && !ret->value.method_table)
        set_problem(view, "a struct whose type is not loaded, or cannot be found", ret);
    else if (ret->kind == SHOWN_STRUCT && view->depth >= OBJECT_DEPTH_MAX)
        set_problem(view, "too many structs within structs", ret);
}

void shown_value_deinit(struct shown_value *shown)
{
    text_deinit(&shown->text);
}

bool object_view_take_field(struct object_view *view)
{
    if (view->fields_left)
        return --view->fields_left;
    return false;
}

uint64_t object_view_item_limit(const struct object_view *view)
{
    return view->all ? UINT64_MAX : OBJECT_ITEMS_SHOWN;
}

const char *object_view_method(struct object_view *view)
{
    struct cdacq_delegate delegate = {.size = sizeof delegate};
    enum cdacq_status status = cdacq_session_get_delegate(view->session, view->object.address, &delegate, NULL);
    return status == CDACQ_OK ? delegate.method : NULL;
}
