#include <inttypes.h>

#include "src/cli/commands/object_view.h"
#include "util/base.h"

static int put_field(const struct cdacq_field *field, void *context);

static void indent(const struct object_view *view)
{
    output_printf(view->out, "%*s", (int)(2 * view->depth), "");
}

static void put_quoted(struct output *out, const char *quote, const struct text *text)
{
    output_literal(out, quote);
    output_escaped(out, text->data ? text->data : "", text->length, ESCAPE_DATA);
    output_literal(out, quote);
}

static void put_string(struct output *out, const struct shown_value *shown)
{
    put_quoted(out, "\"", &shown->text);
    if (shown->cut)
        output_printf(out, " and %" PRIu32 " more characters", shown->cut);
}

static void put_count(struct output *out, uint64_t count)
{
    output_printf(out, ", %" PRIu64 " item%s", count, plural(count));
}

/* The value without the end of its line. */
static void put_simple(struct object_view *view, const struct shown_value *shown)
{
    struct output *out = view->out;
    switch (shown->kind) {
    case SHOWN_NULL:
        output_literal(out, "null");
        break;
    case SHOWN_CHARACTER:
        put_quoted(out, "'", &shown->text);
        break;
    case SHOWN_STRING:
        output_printf(out, "0x%" PRIx64 " ", shown->address);
        put_string(out, shown);
        break;
    case SHOWN_REFERENCE:
        output_printf(out, "0x%" PRIx64, shown->address);
        output_note_between(out, " ", shown->type ? shown->type : "?", "");
        if (shown->has_count)
            put_count(out, shown->count);
        break;
    case SHOWN_PROBLEM:
        output_styled(out, STYLE_ERROR, "? ");
        output_note(out, shown->text.data ? shown->text.data : "no reason is known");
        break;
    case SHOWN_STRUCT:
        break;
    default:
        output_escaped(out, shown->text.data, shown->text.length, ESCAPE_DATA);
        break;
    }
}

/* The value after `mark`, and the end of its line. The fields of a struct follow on lines of their own. */
static void put_value(struct object_view *view, const char *mark, const struct cdacq_value *value, const char *problem)
{
    struct shown_value shown;
    struct cdacq_error error;
    object_view_value(view, value, problem, &shown);
    output_literal(view->out, shown.kind == SHOWN_STRUCT ? "" : mark);
    put_simple(view, &shown);
    output_literal(view->out, "\n");
    if (shown.kind == SHOWN_STRUCT) {
        view->depth++;
        if (cdacq_session_visit_value_fields(view->session, &shown.value, put_field, view, &error) < 0) {
            view->problems++;
            indent(view);
            output_note_between(view->out, "? ", error.message, "\n");
        }
        view->depth--;
    }
    shown_value_deinit(&shown);
}

void object_view_put_text(struct object_view *view, const struct cdacq_value *value)
{
    put_value(view, " = ", value, NULL);
}

static int put_field(const struct cdacq_field *field, void *context)
{
    struct object_view *view = context;
    if (!object_view_take_field(view)) {
        view->problems++;
        indent(view);
        output_literal(view->out, "? too many fields\n");
        return 1;
    }
    indent(view);
    output_note(view->out, field->name ? field->name : "?");
    output_note_between(view->out, ": ", field->type ? field->type : "?", "");
    put_value(view, " = ", field->value, field->problem);
    return output_failed(view->out);
}

/* ---- Arrays and collections ---- */

struct item_view {
    struct object_view *view;
    struct cdacq_contents contents;
};

/* "3", or of an array of several dimensions or with lower bounds, "1,-2". */
static void put_index(struct output *out, const struct cdacq_contents *contents, uint64_t index)
{
    uint64_t below = 1, left = index;
    for (uint32_t i = 1; i < contents->rank; i++)
        below *= contents->lengths[i] ? contents->lengths[i] : 1;
    for (uint32_t i = 0; i < contents->rank; i++) {
        int64_t at = (int64_t)(left / below) + contents->lower_bounds[i];
        output_printf(out, "%s%" PRId64, i ? "," : "", at);
        left %= below;
        if (i + 1 < contents->rank)
            below /= contents->lengths[i + 1] ? contents->lengths[i + 1] : 1;
    }
    if (!contents->rank)
        output_printf(out, "%" PRIu64, index);
}

static int put_item(const struct cdacq_item *item, void *context)
{
    const struct item_view *items = context;
    struct object_view *view = items->view;
    indent(view);
    output_literal(view->out, "[");
    if (item->key && !item->problem) {
        struct shown_value key;
        object_view_value(view, item->key, NULL, &key);
        put_simple(view, &key);
        if (key.kind == SHOWN_STRUCT)
            output_printf(view->out, "a struct at 0x%" PRIx64, item->key->address);
        shown_value_deinit(&key);
    } else {
        put_index(view->out, &items->contents, item->index);
    }
    output_literal(view->out, "]");
    put_value(view, " = ", item->value, item->problem);
    return output_failed(view->out);
}

/* False: it has no items, or they cannot be read. */
static bool put_items(struct object_view *view)
{
    struct item_view items = {.view = view, .contents.size = sizeof items.contents};
    struct cdacq_error error;
    uint64_t limit = object_view_item_limit(view);
    enum cdacq_status status = cdacq_session_visit_items(view->session, view->object.address, limit, &items.contents,
                                                         put_item, &items, &error);
    if (status == CDACQ_OK && items.contents.count > limit)
        output_printf(view->out, "  and %" PRIu64 " more; --all shows them\n", items.contents.count - limit);
    if (status < 0 && view->object.is_array) {
        view->problems++;
        output_note_between(view->out, "  ? ", error.message, "\n");
    }
    return status == CDACQ_OK || view->object.is_array;
}

/* ---- Objects ---- */

static void put_heading(struct object_view *view)
{
    const struct cdacq_object *object = &view->object;
    uint64_t count;
    output_printf(view->out, "0x%" PRIx64, object->address);
    output_note_between(view->out, " ", object->type ? object->type : "?", "");
    output_printf(view->out, ", %" PRIu64 " bytes", object->byte_size);
    if (object->is_string)
        output_printf(view->out, ", %" PRIu32 " character%s", object->length, plural(object->length));
    else if (object_view_count(view, object->address, &count))
        put_count(view->out, count);
    output_literal(view->out, "\n");
}

/* The value of a box that has a text. */
static bool put_boxed(struct object_view *view)
{
    struct cdacq_value value = {.size = sizeof value};
    if (cdacq_session_get_boxed(view->session, view->object.address, &value, NULL) != CDACQ_OK)
        return false;
    struct shown_value shown;
    object_view_value(view, &value, NULL, &shown);
    bool has_text = shown.kind != SHOWN_STRUCT && shown.kind != SHOWN_PROBLEM;
    if (has_text) {
        output_literal(view->out, "  = ");
        put_simple(view, &shown);
        output_literal(view->out, "\n");
    }
    shown_value_deinit(&shown);
    return has_text;
}

static void put_referrers(struct object_view *view)
{
    struct object_referrers found = {0};
    struct cdacq_error error;
    uint64_t count;
    bool good = object_referrers_read(view->session, view->object.address, view->all ? UINT64_MAX : REFERRERS_SHOWN,
                                      &found, &count, &error);
    output_printf(view->out, "  %" PRIu64 " reference%s to it\n", count, plural(count));
    for (size_t i = 0; i < found.count && !output_failed(view->out); i++) {
        const struct object_referrer *referrer = &found.items[i];
        const char *type = NULL, *name = NULL;
        output_printf(view->out, "    0x%016" PRIx64 " ", referrer->address);
        (void)cdacq_session_get_type_name(view->session, referrer->method_table, &type, NULL);
        output_note(view->out, type ? type : "?");
        (void)cdacq_session_get_reference_name(view->session, referrer->address, referrer->offset, &name, NULL);
        output_note_between(view->out, " (by ", name ? name : "?", ")\n");
    }
    if (found.count < count)
        output_printf(view->out, "    ... %" PRIu64 " more (--all)\n", count - found.count);
    view->problems += !good;
    if (!good)
        output_note_between(view->out, "  ? the heap: ", error.message, "\n");
    object_referrers_deinit(&found);
}

void object_view_write_text(struct object_view *view)
{
    struct cdacq_error error;
    put_heading(view);
    const char *method = object_view_method(view);
    if (method)
        output_note_between(view->out, "  calls ", method, "\n");
    view->depth = 1;
    if (view->object.is_string) {
        struct shown_value shown = {.length = view->object.length};
        object_view_string(view, view->object.address, &shown);
        indent(view);
        if (shown.kind == SHOWN_PROBLEM)
            put_simple(view, &shown);
        else
            put_string(view->out, &shown);
        output_literal(view->out, "\n");
        shown_value_deinit(&shown);
    } else if (!put_items(view) && !put_boxed(view) &&
               cdacq_session_visit_fields(view->session, view->object.address, put_field, view, &error) < 0) {
        view->problems++;
        output_note_between(view->out, "  ? ", error.message, "\n");
    }
    if (view->with_referrers)
        put_referrers(view);
}

void object_write_error_text(struct output *out, const char *address, const char *why)
{
    output_text_between(out, "", address, "");
    output_styled(out, STYLE_ERROR, " ? [error] ");
    output_note_between(out, "", why, "\n");
}
