/*
 * cmd_inspect.c: shows all that the ExecutionManager contract provides for an IP. Questions are separate: the reason
 * for a missing answer is shown together with the other answers.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/answers.h"
#include "src/cli/commands.h"
#include "src/cli/complaints.h"
#include "src/cli/console.h"
#include "src/cli/ips.h"
#include "src/cli/json_writer.h"
#include "src/cli/memory.h"
#include "src/cli/output.h"
#include "src/cli/places.h"
#include "util/vector.h"

/* Questions that can fail separately, and the JSON key of the reason. */
#define QUESTIONS(X)                          \
    X(JIT_TYPE, "jit_type")                   \
    X(METHOD_REGION, "hot_size")              \
    X(FUNCLET_START, "funclet_start")         \
    X(IS_FUNCLET, "is_funclet")               \
    X(IS_FILTER_FUNCLET, "is_filter_funclet") \
    X(UNWIND_INFO, "unwind_info")             \
    X(DEBUG_INFO, "debug_info")               \
    X(GC_INFO, "gc_info")                     \
    X(GC_SAFE, "gc_safe")                     \
    X(PARAMETERS, "stack_parameter_size")     \
    X(ENTRY_METHOD_DESC, "entry_method_desc") \
    X(EXCEPTION_CLAUSES, "exception_clauses")

enum question {
#define QUESTION_(name, key) QUESTION_##name,
    QUESTIONS(QUESTION_)
#undef QUESTION_
        QUESTION_COUNT
};

static const char *const keys[QUESTION_COUNT] = {
#define QUESTION_(name, key) [QUESTION_##name] = key,
    QUESTIONS(QUESTION_)
#undef QUESTION_
};

DEFINE_VECTOR(clauses, struct cdacq_exception_clause);

struct inspection {
    struct cdacq_method method;
    struct cdacq_block block;
    uint64_t hot_size, cold_start, cold_size;
    uint64_t funclet_start;
    bool is_funclet, is_filter_funclet;
    uint64_t unwind_info;
    uint64_t debug_info;
    bool has_flag_byte;
    uint64_t gc_info;
    uint32_t gc_version;
    bool gc_safe;
    uint32_t stack_parameter_size;
    uint64_t entry_method_desc;
    struct clauses clauses;
    struct cdacq_source source; /* of managed code */
    bool answered[QUESTION_COUNT];
    char *problems[QUESTION_COUNT]; /* allocated; NULL if there is none */
    size_t problem_count;
};

struct work {
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct output out;
    struct progress progress;
    struct inspection inspection;
    struct cdacq_target *stops; /* --stop: the process, which is stopped for each IP; or NULL */
    bool stopped;               /* it cannot be stopped any more */
    bool ended;                 /* the process has; the rest of the answers say so */
    bool found;                 /* an answer that is no error */
    bool json;
    uint64_t bad;                 /* texts that are not IPs */
    uint64_t done, errors;        /* IPs with a value that is not known */
    uint64_t unconfirmed;         /* of text: IPs that use a file that nothing confirms */
    struct answers_unread unread; /* of text */
};

/* ---- Asking ---- */

static void note(struct inspection *inspection, enum question question, enum cdacq_status status,
                 const struct cdacq_error *error)
{
    inspection->answered[question] = status == CDACQ_OK;
    if (status >= 0)
        return;
    inspection->problems[question] = strdup(error->message);
    if (!inspection->problems[question])
        out_of_memory();
    inspection->problem_count++;
}

static int take_clause(const struct cdacq_exception_clause *clause, void *context)
{
    if (!clauses_append(context, *clause))
        out_of_memory();
    return 0;
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

static void ask(struct cdacq_session *session, uint64_t ip, struct inspection *inspection)
{
    struct clauses clauses = {.items = inspection->clauses.items, .capacity = inspection->clauses.capacity};
    struct cdacq_error error;
    *inspection = (struct inspection){
        .clauses = clauses, .method.size = sizeof inspection->method, .source.size = sizeof inspection->source};
    inspection->source.il_offset = CDACQ_OFFSET_UNKNOWN;
    cdacq_session_methods_at(session, &ip, 1, &inspection->method, NULL);
    if (inspection->method.answer == CDACQ_ANSWER_MANAGED) {
        (void)cdacq_session_source_at(session, ip, &inspection->source, &error);
        note(inspection, QUESTION_JIT_TYPE, cdacq_session_get_code_block(session, ip, &inspection->block, &error),
             &error);
        if (inspection->answered[QUESTION_JIT_TYPE])
            ask_about_block(session, inspection);
    }
    enum cdacq_status status =
        cdacq_session_non_virtual_entry_to_method_desc(session, ip, &inspection->entry_method_desc, &error);
    if (status == CDACQ_ERR_MEMORY && inspection->method.prepared_unknown)
        status = CDACQ_NOT_MANAGED; /* told of method_desc */
    note(inspection, QUESTION_ENTRY_METHOD_DESC, status, &error);
}

static void free_problems(struct inspection *inspection)
{
    for (size_t i = 0; i < QUESTION_COUNT; i++)
        free(inspection->problems[i]);
}

/* ---- Writing ---- */

static const char *clause_text(enum cdacq_clause_kind kind)
{
    static const char *const texts[] = {[CDACQ_CLAUSE_TYPED] = "typed",
                                        [CDACQ_CLAUSE_FILTER] = "filter",
                                        [CDACQ_CLAUSE_FINALLY] = "finally",
                                        [CDACQ_CLAUSE_FAULT] = "fault"};
    return texts[kind];
}

/* The result of GetJITType, in the specification's enumeration; 0 if unknown. */
static unsigned jit_type(const struct inspection *inspection)
{
    return inspection->answered[QUESTION_JIT_TYPE] ? (unsigned)cdacq_block_get_jit_type(&inspection->block) : 0;
}

static void write_clauses(struct json_writer *w, const struct clauses *clauses)
{
    json_begin_array(w, keys[QUESTION_EXCEPTION_CLAUSES]);
    for (size_t i = 0; i < clauses->count; i++) {
        const struct cdacq_exception_clause *clause = &clauses->items[i];
        bool typed = clause->kind == CDACQ_CLAUSE_TYPED;
        json_begin_object(w, NULL);
        json_note(w, "kind", clause_text(clause->kind));
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
        json_null(w, keys[QUESTION_EXCEPTION_CLAUSES]);
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

/* `bad` is the text that is not an IP, or NULL. All keys are written in any case. */
static void write_json(struct output *out, const struct inspection *inspection, const struct bad_ip *bad)
{
    const struct cdacq_method *method = &inspection->method;
    const bool *answered = inspection->answered;
    bool code = method->answer == CDACQ_ANSWER_MANAGED, kind = code || method->answer == CDACQ_ANSWER_STUB;
    struct json_writer writer = json_begin(out), *w = &writer;
    json_begin_object(w, NULL);
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
    json_string(w, "method", code ? method->name : NULL);
    json_note(w, "module", method->module);
    json_known_bool(w, "module_verified", answers_tells_verified(method), method->module_verified);
    json_note(w, "error", method->error);
    json_begin_object(w, "errors");
    for (size_t i = 0; i < QUESTION_COUNT; i++)
        if (inspection->problems[i])
            json_note(w, keys[i], inspection->problems[i]);
    json_end_object(w);
    write_source(w, &inspection->source);
    json_end_object(w);
    json_end_line(w);
}

static void text_problem(struct output *out, const char *key, const char *why)
{
    output_printf(out, "  %-18s ? ", key);
    output_note_between(out, "", why, "\n");
}

static void text_hex(struct output *out, const char *key, bool known, uint64_t value)
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
        output_printf(out, "  %-18s %s\n", "pdb", "in the image or the snapshot");
    }
    if (source->problem)
        text_problem(out, "source", source->problem);
}

static void text_clauses(struct output *out, const struct inspection *inspection)
{
    for (size_t i = 0; i < inspection->clauses.count; i++) {
        const struct cdacq_exception_clause *clause = &inspection->clauses.items[i];
        output_printf(out, "  %-18s %-7s try +0x%" PRIx32 "..+0x%" PRIx32 " handler +0x%" PRIx32 "..+0x%" PRIx32,
                      "exception_clause", clause_text(clause->kind), clause->try_start, clause->try_end,
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

/* Writes the line of ip2method. */
static void text_answer(struct output *out, const struct cdacq_method *method)
{
    output_printf(out, "0x%" PRIx64, method->ip);
    switch (method->answer) {
    case CDACQ_ANSWER_MANAGED:
        output_literal(out, " ");
        output_literal(out, method->name ? method->name : ""); /* the library has escaped it */
        output_literal(out, answers_doubt_name(method) ? "?" : "");
        output_printf(out, " +0x%" PRIx64 " [%s]\n", method->offset, cdacq_code_kind_text(method->kind));
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

/* Writes the line of ip2method, then one line for each other value. */
static void write_text(struct output *out, const struct inspection *inspection)
{
    const struct cdacq_method *method = &inspection->method;
    const bool *answered = inspection->answered;
    text_answer(out, method);
    if (method->answer == CDACQ_ANSWER_MANAGED && (!method->name || method->error))
        text_problem(out, method->prepared_unknown ? "method_desc" : "method",
                     method->error ? method->error : "no reason is known");
    if (!method->module_verified)
        output_printf(out, "  %-18s %s\n", "module_verified", "no");
    text_hex(out, "method_desc", true, method->method_desc);
    text_hex(out, "entry_method_desc", answered[QUESTION_ENTRY_METHOD_DESC], inspection->entry_method_desc);
    text_hex(out, "code_start", true, method->code_start);
    if (answered[QUESTION_METHOD_REGION]) {
        output_printf(out, "  %-18s %" PRIu64 "\n", "hot_size", inspection->hot_size);
        if (inspection->cold_start)
            output_printf(out, "  %-18s 0x%" PRIx64 ", %" PRIu64 " bytes\n", "cold_start", inspection->cold_start,
                          inspection->cold_size);
    }
    text_hex(out, "funclet_start", answered[QUESTION_FUNCLET_START], inspection->funclet_start);
    if (answered[QUESTION_IS_FUNCLET] && inspection->is_funclet)
        output_printf(out, "  %-18s %s\n", "is_funclet", inspection->is_filter_funclet ? "yes, a filter" : "yes");
    text_hex(out, "unwind_info", answered[QUESTION_UNWIND_INFO], inspection->unwind_info);
    if (inspection->answered[QUESTION_JIT_TYPE])
        text_hex(out, "unwind_info_base", true, cdacq_block_get_unwind_info_base_address(&inspection->block));
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
            text_problem(out, keys[i], inspection->problems[i]);
}

/* ---- The command ---- */

/* Whether a failure is the end of the process. A message says so. */
static bool has_ended(const struct work *work)
{
    struct cdacq_error error;
    const struct inspection *inspection = &work->inspection;
    if ((inspection->method.answer != CDACQ_ANSWER_ERROR && !inspection->problem_count) ||
        cdacq_target_refresh(work->target, &error) >= 0)
        return false;
    message("%s", error.message);
    return true;
}

static void inspect(void *context, uint64_t ip)
{
    struct work *work = context;
    struct inspection *inspection = &work->inspection;
    if (work->stops && !target_stop(work->stops)) {
        work->stopped = true;
        return;
    }
    ask(work->session, ip, inspection);
    cdacq_target_resume(work->stops);
    work->ended = work->ended || has_ended(work);
    work->found |= inspection->method.answer != CDACQ_ANSWER_ERROR;
    work->errors += inspection->method.answer == CDACQ_ANSWER_ERROR || inspection->problem_count;
    work->unconfirmed += !work->json && !inspection->method.module_verified;
    if (work->json) {
        write_json(&work->out, inspection, NULL);
    } else {
        answers_count_unread(&work->unread, &inspection->method);
        write_text(&work->out, inspection);
    }
    free_problems(inspection);
    if (++work->done % 256 == 0)
        progress_step(&work->progress, work->done);
}

/* Text that is not an IP gets a line, too. */
static void inspect_bad(void *context, uint64_t line, const struct bad_ip *bad)
{
    struct work *work = context;
    if (++work->bad <= COMPLAINTS_MAX)
        ips_complain(line, bad);
    work->errors++;
    if (work->json) {
        struct inspection nothing = {
            .method = {.answer = CDACQ_ANSWER_ERROR, .module_verified = true, .error = bad->problem},
            .source.il_offset = CDACQ_OFFSET_UNKNOWN};
        write_json(&work->out, &nothing, bad);
    } else {
        output_escaped(&work->out, bad->text, bad->length, ESCAPE_DATA);
        output_styled(&work->out, STYLE_ERROR, " ? [error] ");
        output_note_between(&work->out, "", bad->problem, "\n");
    }
}

static int inspect_all(const struct invocation *invocation, struct cdacq_target *target, struct cdacq_session *session)
{
    struct work work = {.target = target,
                        .session = session,
                        .json = invocation->json,
                        .stops = stop_is_wanted(invocation) ? target : NULL};
    struct places places = {.target = target, .session = session};
    struct ips_taker taker = {.context = &work,
                              .take = inspect,
                              .take_bad = inspect_bad,
                              .out = &work.out,
                              .stopped = &work.stopped,
                              .progress = &work.progress,
                              .read_other = places_find,
                              .other = &places};
    if (!output_open_stream(&work.out, invocation->output))
        return EXIT_FAILED;
    progress_begin(&work.progress, "addresses", work.out.fd);
    bool ok = ips_feed(invocation->ips, invocation->ip_count, &taker);
    progress_end(&work.progress);
    places_deinit(&places);
    clauses_deinit(&work.inspection.clauses);
    answers_tell_unread(&work.unread);
    answers_tell_unconfirmed(work.unconfirmed, "answer");
    ok = output_close(&work.out) && ok;
    ok &= !work.ended || work.found;
    return !ok || work.stopped ? EXIT_FAILED : work.errors ? EXIT_PARTLY : EXIT_ANSWERED;
}

int cmd_inspect(const struct invocation *invocation)
{
    return target_run(invocation, 0, inspect_all);
}
