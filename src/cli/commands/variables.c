#include "src/cli/commands/variables.h"

#include <inttypes.h>

#include "src/cli/commands/object_view.h"
#include "util/base.h"

enum {
    DEPTH = 4,              /* of the lines of text: two columns each */
    FRAME_FIELDS_MAX = 2048 /* of the structs in one frame */
};

struct writer {
    struct object_view view;
    struct json_writer *json; /* NULL: text */
    struct variable_counts *counts;
};

/* What a variable shows: a by-ref what it refers to. */
static const struct cdacq_value *value_of(const struct cdacq_variable *variable)
{
    return variable->target ? variable->target : variable->value;
}

/* ---- Text ---- */

void variable_put_name(struct output *out, enum cdacq_variable_kind kind, uint32_t number, const char *name,
                       const char *type)
{
    if (name)
        output_note(out, name);
    else
        output_printf(out, "%c_%" PRIu32, kind == CDACQ_VARIABLE_LOCAL ? 'V' : 'A', number);
    output_note_between(out, ": ", type ? type : "?", "");
}

static int put_text(const struct cdacq_variable *variable, void *context)
{
    struct writer *writer = context;
    struct output *out = writer->view.out;
    output_printf(out, "%*s", 2 * DEPTH, "");
    variable_put_name(out, variable->kind, variable->number, variable->name, variable->type);
    if (variable->state == CDACQ_VARIABLE_KNOWN) {
        object_view_put_text(&writer->view, value_of(variable));
    } else if (variable->state == CDACQ_VARIABLE_OPTIMIZED_OUT) {
        output_styled(out, STYLE_MINOR, " = <optimized out>");
        output_literal(out, "\n");
    } else {
        output_note_between(out, " = ? ", variable->problem, "\n");
        writer->counts->problems++;
    }
    writer->counts->shown++;
    return output_failed(out);
}

void variables_write_text(struct output *out, struct cdacq_session *session, const struct cdacq_frame *frame,
                          struct variable_counts *counts)
{
    struct cdacq_error error;
    struct writer writer = {.view = {.session = session, .out = out, .depth = DEPTH, .fields_left = FRAME_FIELDS_MAX},
                            .counts = counts};
    if (cdacq_session_visit_variables(session, frame, put_text, &writer, &error) < 0) {
        output_printf(out, "%*s", 2 * DEPTH, "");
        output_note_between(out, "? ", error.message, "\n");
        counts->problems++;
    }
    counts->problems += writer.view.problems;
}

/* ---- JSON ---- */

static const char *kind_text(enum cdacq_variable_kind kind)
{
    static const char *const texts[] = {[CDACQ_VARIABLE_THIS] = "this",
                                        [CDACQ_VARIABLE_PARAMETER] = "parameter",
                                        [CDACQ_VARIABLE_LOCAL] = "local",
                                        [CDACQ_VARIABLE_CAPTURED] = "captured"};
    return (size_t)kind < ARRAY_SIZE(texts) ? texts[kind] : NULL;
}

static const char *state_text(enum cdacq_variable_state state)
{
    static const char *const texts[] = {[CDACQ_VARIABLE_KNOWN] = "known",
                                        [CDACQ_VARIABLE_OPTIMIZED_OUT] = "optimized out",
                                        [CDACQ_VARIABLE_UNKNOWN] = "unknown"};
    return (size_t)state < ARRAY_SIZE(texts) ? texts[state] : NULL;
}

static int put_json(const struct cdacq_variable *variable, void *context)
{
    struct writer *writer = context;
    struct json_writer *w = writer->json;
    json_begin_object(w, NULL);
    json_note(w, "name", variable->name);
    json_string(w, "kind", kind_text(variable->kind));
    json_number(w, "number", variable->number);
    json_note(w, "type", variable->type);
    json_string(w, "state", state_text(variable->state));
    if (variable->state == CDACQ_VARIABLE_KNOWN) {
        object_view_put_json(&writer->view, w, value_of(variable));
        json_address(w, "address", value_of(variable)->address);
    } else {
        json_null(w, "value");
    }
    if (variable->problem) {
        json_note(w, "problem", variable->problem);
        writer->counts->problems++;
    }
    json_end_object(w);
    writer->counts->shown++;
    return output_failed(writer->view.out);
}

void variables_write_json(struct json_writer *w, struct cdacq_session *session, const struct cdacq_frame *frame,
                          struct variable_counts *counts)
{
    struct cdacq_error error;
    struct writer writer = {.view = {.session = session, .out = w->out, .depth = 1, .fields_left = FRAME_FIELDS_MAX},
                            .json = w,
                            .counts = counts};
    json_begin_array(w, "variables");
    enum cdacq_status status = cdacq_session_visit_variables(session, frame, put_json, &writer, &error);
    json_end_array(w);
    if (status < 0) {
        json_note(w, "variables_problem", error.message);
        counts->problems++;
    }
    counts->problems += writer.view.problems;
}
