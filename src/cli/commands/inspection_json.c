#include "src/cli/base/answers.h"
#include "src/cli/commands/inspection.h"
#include "src/cli/base/json_writer.h"

/* The result of GetJITType, in the specification's enumeration; 0 if unknown. */
static unsigned jit_type(const struct inspection *inspection)
{
    return inspection->answered[QUESTION_JIT_TYPE] ? (unsigned)cdacq_block_get_jit_type(&inspection->block) : 0;
}

static void write_clauses(struct json_writer *w, const struct inspection_clauses *clauses)
{
    json_begin_array(w, inspection_key(QUESTION_EXCEPTION_CLAUSES));
    for (size_t i = 0; i < clauses->count; i++) {
        const struct cdacq_exception_clause *clause = &clauses->items[i];
        bool typed = clause->kind == CDACQ_CLAUSE_TYPED;
        json_begin_object(w, NULL);
        json_note(w, "kind", inspection_clause_kind(clause->kind));
        json_number(w, "flags", clause->flags);
        json_number(w, "try_start", clause->try_start);
        json_number(w, "try_end", clause->try_end);
        json_number(w, "handler_start", clause->handler_start);
        json_number(w, "handler_end", clause->handler_end);
        json_known_number(w, "filter_offset", clause->kind == CDACQ_CLAUSE_FILTER, clause->filter_offset);
        json_token(w, "class_token", typed ? clause->class_token : 0);
        json_address(w, "type_handle", typed ? clause->type_handle : 0);
        json_bool(w, "duplicated", clause->duplicated);
        json_address(w, "module", clause->module);
        json_known_bool(w, "is_catch_all", clause->is_catch_all_known, clause->is_catch_all);
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_variables(struct json_writer *w, const struct inspection_variables *variables)
{
    json_begin_array(w, "variables");
    for (size_t i = 0; i < variables->count; i++) {
        const struct cdacq_variable_place *variable = &variables->items[i];
        json_begin_object(w, NULL);
        json_note(w, "name", variable->name);
        json_string(w, "kind", inspection_variable_kind(variable->kind));
        json_number(w, "number", variable->number);
        json_note(w, "type", variable->type);
        json_note(w, "location", variable->location);
        if (variable->problem)
            json_note(w, "problem", variable->problem);
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_block(struct json_writer *w, const struct inspection *inspection)
{
    const bool *answered = inspection->answered;
    bool has_region = answered[QUESTION_METHOD_REGION], has_debug_info = answered[QUESTION_DEBUG_INFO],
         has_gc_info = answered[QUESTION_GC_INFO];
    unsigned type = jit_type(inspection);
    json_known_number(w, "jit_type", type != 0, type);
    json_known_number(w, "hot_size", has_region, inspection->hot_size);
    json_address(w, "cold_start", has_region ? inspection->cold_start : 0);
    json_known_number(w, "cold_size", has_region && inspection->cold_start, inspection->cold_size);
    json_address(w, "unwind_info", answered[QUESTION_UNWIND_INFO] ? inspection->unwind_info : 0);
    json_address(w, "unwind_info_base",
                 inspection->answered[QUESTION_JIT_TYPE] ? cdacq_block_get_unwind_info_base_address(&inspection->block)
                                                         : 0);
    json_address(w, "debug_info", has_debug_info ? inspection->debug_info : 0);
    json_known_bool(w, "has_flag_byte", has_debug_info && inspection->debug_info, inspection->has_flag_byte);
    json_address(w, "gc_info", has_gc_info ? inspection->gc_info : 0);
    json_known_number(w, "gc_version", has_gc_info && inspection->gc_version, inspection->gc_version);
    json_known_bool(w, "gc_safe", answered[QUESTION_GC_SAFE], inspection->gc_safe);
    json_known_number(w, "stack_parameter_size", answered[QUESTION_PARAMETERS], inspection->stack_parameter_size);
    json_address(w, "entry_method_desc", answered[QUESTION_ENTRY_METHOD_DESC] ? inspection->entry_method_desc : 0);
    if (answered[QUESTION_EXCEPTION_CLAUSES])
        write_clauses(w, &inspection->clauses);
    else
        json_null(w, inspection_key(QUESTION_EXCEPTION_CLAUSES));
}

static void write_source(struct json_writer *w, const struct cdacq_source *source)
{
    json_known_number(w, "il_offset", source->il_offset >= 0, (uint64_t)source->il_offset);
    json_note(w, "file", source->file);
    json_known_number(w, "line", source->line != 0, source->line);
    json_known_number(w, "column", source->column != 0, source->column);
    json_known_number(w, "end_line", source->end_line != 0, source->end_line);
    json_known_number(w, "end_column", source->end_column != 0, source->end_column);
    json_note(w, "source_url", source->url);
    json_string(w, "pdb", source->pdb);
    json_known_bool(w, "pdb_embedded", source->pdb || source->pdb_embedded, source->pdb_embedded);
    json_note(w, "source_problem", source->problem);
}

void inspection_write_json(const struct inspection *inspection, const struct bad_ip *bad, struct output *out)
{
    const struct cdacq_method *method = &inspection->method;
    const bool *answered = inspection->answered;
    bool code = method->answer == CDACQ_ANSWER_MANAGED, kind = code || method->answer == CDACQ_ANSWER_STUB;
    struct json_writer writer = json_begin_line(out), *w = &writer;
    if (bad)
        json_string_bytes(w, "ip", bad->text, bad->length);
    else
        json_known_address(w, "ip", true, method->ip);
    json_note(w, "status", answers_status(method->answer));
    json_note(w, "kind", kind ? cdacq_code_kind_text(method->kind) : NULL);
    json_address(w, "method_desc", code ? method->method_desc : 0);
    json_address(w, "code_start", kind ? method->code_start : 0);
    json_address(w, "funclet_start", answered[QUESTION_FUNCLET_START] ? inspection->funclet_start : 0);
    json_known_bool(w, "is_funclet", answered[QUESTION_IS_FUNCLET], inspection->is_funclet);
    json_known_bool(w, "is_filter_funclet", answered[QUESTION_IS_FILTER_FUNCLET], inspection->is_filter_funclet);
    json_known_number(w, "offset", kind, method->offset);
    write_block(w, inspection);
    json_note(w, "method", code ? method->name : NULL);
    json_note(w, "module", method->module);
    json_known_bool(w, "module_verified", answers_tells_verified(method), method->module_verified);
    json_note(w, "error", method->error);
    json_begin_object(w, "errors");
    for (size_t i = 0; i < QUESTION_COUNT; i++)
        if (inspection->problems[i])
            json_note(w, inspection_key((enum question)i), inspection->problems[i]);
    json_end_object(w);
    write_source(w, &inspection->source);
    json_known_bool(w, "async_thunk", code && method->method_desc, method->async_thunk);
    if (inspection->has_variables)
        write_variables(w, &inspection->variables);
    else
        json_null(w, "variables");
    json_note(w, "variables_problem", inspection->variables_problem);
    if (inspection->tells_runtime)
        json_known_number(w, "runtime", method->answer != CDACQ_ANSWER_NONE && !bad, method->runtime);
    json_end_line(w);
}
