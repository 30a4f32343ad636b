#include <inttypes.h>

#include "src/cli/base/answers.h"
#include "src/cli/commands/inspection.h"
#include "src/cli/commands/variables.h"

static void text_problem(struct output *out, const char *key, const char *why)
{
    output_printf(out, "  %-18s ? ", key);
    output_note_between(out, "", why, "\n");
}

static void write_hex(struct output *out, const char *key, bool known, uint64_t value)
{
    if (known && value)
        output_printf(out, "  %-18s 0x%" PRIx64 "\n", key, value);
}

static void text_source(struct output *out, const struct cdacq_source *source)
{
    if (source->il_offset >= 0)
        output_printf(out, "  %-18s %" PRId32 "\n", "il_offset", source->il_offset);
    if (source->file) {
        output_printf(out, "  %-18s ", "source");
        output_note(out, source->file);
        output_printf(out, ":%" PRIu32 ":%" PRIu32 " to %" PRIu32 ":%" PRIu32 "\n", source->line, source->column,
                      source->end_line, source->end_column);
    }
    if (source->url) {
        output_printf(out, "  %-18s ", "source_url");
        output_note_between(out, "", source->url, "\n");
    }
    if (source->pdb) {
        output_printf(out, "  %-18s ", "pdb");
        output_text_between(out, "", source->pdb, "\n");
    } else if (source->pdb_embedded) {
        output_printf(out, "  %-18s %s\n", "pdb", "in the target");
    }
    if (source->problem)
        text_problem(out, "source", source->problem);
}

static void text_clauses(struct output *out, const struct inspection *inspection)
{
    for (size_t i = 0; i < inspection->clauses.count; i++) {
        const struct cdacq_exception_clause *clause = &inspection->clauses.items[i];
        output_printf(out, "  %-18s %-7s try +0x%" PRIx32 "..+0x%" PRIx32 " handler +0x%" PRIx32 "..+0x%" PRIx32,
                      "exception_clause", inspection_clause_kind(clause->kind), clause->try_start, clause->try_end,
                      clause->handler_start, clause->handler_end);
        if (clause->kind == CDACQ_CLAUSE_FILTER)
            output_printf(out, " filter +0x%" PRIx32, clause->filter_offset);
        else if (clause->class_token)
            output_printf(out, " class 0x%08" PRIx32, clause->class_token);
        else if (clause->type_handle)
            output_printf(out, " type 0x%" PRIx64, clause->type_handle);
        if (clause->is_catch_all)
            output_literal(out, " (everything)");
        output_literal(out, clause->duplicated ? " (duplicate)\n" : "\n");
    }
}

static void text_variables(struct output *out, const struct inspection_variables *variables)
{
    for (size_t i = 0; i < variables->count; i++) {
        const struct cdacq_variable_place *variable = &variables->items[i];
        output_printf(out, "  %-18s %-8s ", "variable", inspection_variable_kind(variable->kind));
        variable_put_name(out, variable->kind, variable->number, variable->name, variable->type);
        if (variable->problem)
            output_note_between(out, " ? ", variable->problem, "\n");
        else if (variable->location)
            output_note_between(out, " at ", variable->location, "\n");
        else
            output_literal(out, ", not live here\n");
    }
}

/* Writes the line of ip2method. */
static void text_answer(struct output *out, const struct cdacq_method *method)
{
    output_printf(out, "0x%" PRIx64, method->ip);
    switch (method->answer) {
    case CDACQ_ANSWER_MANAGED:
        output_literal(out, " ");
        output_literal(out, method->name ? method->name : ""); /* the library has escaped it */
        output_literal(out, answers_doubt_name(method) ? "?" : "");
        output_printf(out, " +0x%" PRIx64 " [%s%s]\n", method->offset, cdacq_code_kind_text(method->kind),
                      method->async_thunk ? " async thunk" : "");
        break;
    case CDACQ_ANSWER_STUB:
        output_printf(out, " - [stub %s]\n", cdacq_code_kind_text(method->kind));
        break;
    case CDACQ_ANSWER_NONE:
        output_literal(out, " - [none]\n");
        break;
    case CDACQ_ANSWER_ERROR:
        output_note_between(out, " ? [error] ", method->error ? method->error : "no reason is known", "\n");
        break;
    }
}

void inspection_write_text(const struct inspection *inspection, struct output *out)
{
    const struct cdacq_method *method = &inspection->method;
    const bool *answered = inspection->answered;
    text_answer(out, method);
    if (method->answer == CDACQ_ANSWER_MANAGED && (!method->name || method->error))
        text_problem(out, method->prepared_unknown ? "method_desc" : "method",
                     method->error ? method->error : "no reason is known");
    if (!method->module_verified)
        output_printf(out, "  %-18s %s\n", "module_verified", "no");
    if (inspection->tells_runtime && method->answer != CDACQ_ANSWER_NONE)
        output_printf(out, "  %-18s %u\n", "runtime", method->runtime);
    write_hex(out, "method_desc", true, method->method_desc);
    write_hex(out, "entry_method_desc", answered[QUESTION_ENTRY_METHOD_DESC], inspection->entry_method_desc);
    write_hex(out, "code_start", true, method->code_start);
    if (answered[QUESTION_METHOD_REGION]) {
        output_printf(out, "  %-18s %" PRIu64 "\n", "hot_size", inspection->hot_size);
        if (inspection->cold_start)
            output_printf(out, "  %-18s 0x%" PRIx64 ", %" PRIu64 " bytes\n", "cold_start", inspection->cold_start,
                          inspection->cold_size);
    }
    write_hex(out, "funclet_start", answered[QUESTION_FUNCLET_START], inspection->funclet_start);
    if (answered[QUESTION_IS_FUNCLET] && inspection->is_funclet)
        output_printf(out, "  %-18s %s\n", "is_funclet", inspection->is_filter_funclet ? "yes, a filter" : "yes");
    write_hex(out, "unwind_info", answered[QUESTION_UNWIND_INFO], inspection->unwind_info);
    if (inspection->answered[QUESTION_JIT_TYPE])
        write_hex(out, "unwind_info_base", true, cdacq_block_get_unwind_info_base_address(&inspection->block));
    if (answered[QUESTION_DEBUG_INFO] && inspection->debug_info)
        output_printf(out, "  %-18s 0x%" PRIx64 "%s\n", "debug_info", inspection->debug_info,
                      inspection->has_flag_byte ? ", after a byte of flags" : "");
    if (answered[QUESTION_GC_INFO] && inspection->gc_info) {
        output_printf(out, "  %-18s 0x%" PRIx64, "gc_info", inspection->gc_info);
        if (inspection->gc_version)
            output_printf(out, ", version %" PRIu32, inspection->gc_version);
        output_literal(out, "\n");
    }
    if (answered[QUESTION_GC_SAFE])
        output_printf(out, "  %-18s %s\n", "gc_safe", inspection->gc_safe ? "yes" : "no");
    if (answered[QUESTION_PARAMETERS] && inspection->stack_parameter_size)
        output_printf(out, "  %-18s %" PRIu32 "\n", "stack_parameters", inspection->stack_parameter_size);
    text_source(out, &inspection->source);
    text_clauses(out, inspection);
    for (size_t i = 0; i < QUESTION_COUNT; i++)
        if (inspection->problems[i])
            text_problem(out, inspection_key((enum question)i), inspection->problems[i]);
    text_variables(out, &inspection->variables);
    if (inspection->variables_problem)
        text_problem(out, "variables", inspection->variables_problem);
}
