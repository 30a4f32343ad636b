#include "src/cli/commands/inspection.h"

#include <stdlib.h>
#include <string.h>

#include "src/cli/base/memory.h"

const char *inspection_key(enum question question)
{
    static const char *const keys[QUESTION_COUNT] = {
#define QUESTION_(name, key) [QUESTION_##name] = key,
        QUESTIONS(QUESTION_)
#undef QUESTION_
    };
    return keys[question];
}

const char *inspection_clause_kind(enum cdacq_clause_kind kind)
{
    static const char *const texts[] = {[CDACQ_CLAUSE_TYPED] = "typed",
                                        [CDACQ_CLAUSE_FILTER] = "filter",
                                        [CDACQ_CLAUSE_FINALLY] = "finally",
                                        [CDACQ_CLAUSE_FAULT] = "fault"};
    return texts[kind];
}

const char *inspection_variable_kind(enum cdacq_variable_kind kind)
{
    return kind == CDACQ_VARIABLE_LOCAL ? "local" : "argument";
}

static void free_problems(struct inspection *inspection)
{
    for (size_t i = 0; i < QUESTION_COUNT; i++)
        free(inspection->problems[i]);
    free(inspection->variables_problem);
}

void inspection_deinit(struct inspection *inspection)
{
    free_problems(inspection);
    inspection_clauses_deinit(&inspection->clauses);
    inspection_variables_deinit(&inspection->variables);
    *inspection = (struct inspection){0};
}

static void note(struct inspection *inspection, enum question question, enum cdacq_status status,
                 const struct cdacq_error *error)
{
    inspection->answered[question] = status == CDACQ_OK;
    if (status >= 0)
        return;
    inspection->problems[question] = copy_text(error->message);
    inspection->problem_count++;
}

static int take_clause(const struct cdacq_exception_clause *clause, void *context)
{
    if (!inspection_clauses_append(context, *clause))
        out_of_memory();
    return 0;
}

static int take_variable(const struct cdacq_variable_place *variable, void *context)
{
    if (!inspection_variables_append(context, *variable))
        out_of_memory();
    return 0;
}

static void ask_about_variables(struct cdacq_session *session, struct inspection *inspection, uint64_t ip)
{
    struct cdacq_error error;
    enum cdacq_status status =
        cdacq_session_visit_variable_places(session, ip, take_variable, &inspection->variables, &error);
    inspection->has_variables = status == CDACQ_OK;
    if (status < 0)
        inspection->variables_problem = copy_text(error.message);
}

static void ask_about_block(struct cdacq_session *session, struct inspection *inspection)
{
    const struct cdacq_block *block = &inspection->block;
    struct cdacq_error error;
    note(inspection, QUESTION_METHOD_REGION,
         cdacq_block_get_method_region_info(block, session, &inspection->hot_size, &inspection->cold_start,
                                            &inspection->cold_size, &error),
         &error);
    note(inspection, QUESTION_FUNCLET_START,
         cdacq_block_get_funclet_start_address(block, session, &inspection->funclet_start, &error), &error);
    note(inspection, QUESTION_IS_FUNCLET, cdacq_block_is_funclet(block, session, &inspection->is_funclet, &error),
         &error);
    note(inspection, QUESTION_IS_FILTER_FUNCLET,
         cdacq_block_is_filter_funclet(block, session, &inspection->is_filter_funclet, &error), &error);
    note(inspection, QUESTION_UNWIND_INFO,
         cdacq_block_get_unwind_info(block, session, &inspection->unwind_info, &error), &error);
    note(inspection, QUESTION_DEBUG_INFO,
         cdacq_block_get_debug_info(block, session, &inspection->debug_info, &inspection->has_flag_byte, &error),
         &error);
    note(inspection, QUESTION_GC_INFO,
         cdacq_block_get_gc_info(block, session, &inspection->gc_info, &inspection->gc_version, &error), &error);
    note(inspection, QUESTION_GC_SAFE, cdacq_block_is_gc_safe(block, session, &inspection->gc_safe, &error), &error);
    note(inspection, QUESTION_PARAMETERS,
         cdacq_block_get_stack_parameter_size(block, session, &inspection->stack_parameter_size, &error), &error);
    note(inspection, QUESTION_EXCEPTION_CLAUSES,
         cdacq_block_visit_exception_clauses(block, session, take_clause, &inspection->clauses, &error), &error);
}

void inspection_ask(struct inspection *inspection, struct cdacq_session *session, uint64_t ip)
{
    struct inspection_clauses clauses = {.items = inspection->clauses.items, .capacity = inspection->clauses.capacity};
    struct inspection_variables variables = {.items = inspection->variables.items,
                                             .capacity = inspection->variables.capacity};
    struct cdacq_error error;
    free_problems(inspection);
    *inspection = (struct inspection){.tells_runtime = inspection->tells_runtime,
                                      .clauses = clauses,
                                      .variables = variables,
                                      .method.size = sizeof inspection->method,
                                      .source.size = sizeof inspection->source};
    inspection->source.il_offset = CDACQ_OFFSET_UNKNOWN;
    cdacq_session_methods_at(session, &ip, 1, &inspection->method, NULL);
    struct cdacq_session *owner = cdacq_session_of_runtime(session, (unsigned)inspection->method.runtime);
    if (inspection->method.answer != CDACQ_ANSWER_NONE && owner)
        session = owner;
    if (inspection->method.answer == CDACQ_ANSWER_MANAGED) {
        (void)cdacq_session_source_at(session, ip, &inspection->source, &error);
        note(inspection, QUESTION_JIT_TYPE, cdacq_session_code_block_at(session, ip, &inspection->block, &error),
             &error);
        if (inspection->answered[QUESTION_JIT_TYPE])
            ask_about_block(session, inspection);
        if (inspection->method.name) /* else it is said already why its metadata cannot be read */
            ask_about_variables(session, inspection, ip);
    }
    enum cdacq_status status =
        cdacq_session_non_virtual_entry_to_method_desc(session, ip, &inspection->entry_method_desc, &error);
    if (status == CDACQ_ERR_MEMORY && inspection->method.prepared_unknown)
        status = CDACQ_NOT_MANAGED; /* method_desc says so */
    note(inspection, QUESTION_ENTRY_METHOD_DESC, status, &error);
}
