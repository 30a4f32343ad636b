/*
 * report_places.c: where a thread is in the program: the innermost method of the program, with its source line.
 */
#include <inttypes.h>

#include "src/cli/report/report.h"
#include "util/base.h"

struct report_place report_place_of_method(const struct cdacq_method *method)
{
    if (!method)
        return (struct report_place){.method = NULL};
    return (struct report_place){.method = method->name, .file = method->file, .line = method->line};
}

struct report_place report_place_on_stack(const struct stack *stack)
{
    const struct cdacq_method *method = report_program_method(stack);
    struct report_place ret = report_place_of_method(method);
    ret.is_guess = method && report_is_doubtful(stack, method);
    return ret;
}

struct report_place report_place_of(const struct report *report, int tid)
{
    return report_place_on_stack(report_stack_of(report, tid));
}

void report_put_place(struct output *out, const struct report_place *place)
{
    output_note(out, place->method);
    if (place->file)
        output_text_between(out, " ", path_basename(place->file), "");
    if (place->file && place->line)
        output_printf(out, ":%" PRIu32, place->line);
    if (place->is_guess)
        output_styled(out, STYLE_DOUBT, " [guess]");
}

void report_put_in_place(struct output *out, const struct report_place *place)
{
    if (!place->method)
        return;
    output_literal(out, " in ");
    report_put_place(out, place);
}

void report_write_place_members(struct json_writer *w, const struct report_place *place)
{
    json_note(w, "method", place->method);
    json_string(w, "file", place->file);
    json_known_number(w, "line", place->file && place->line, place->line);
    json_bool(w, "guess", place->is_guess);
}

void report_write_place_json(struct json_writer *w, const char *key, const struct report_place *place)
{
    if (!place->method) {
        json_null(w, key);
        return;
    }
    json_begin_object(w, key);
    report_write_place_members(w, place);
    json_end_object(w);
}
