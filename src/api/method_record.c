/*
 * method_record.c: the part of an answer that is the same for all addresses of a method's hot or cold part: its name,
 * its places, its funclets.
 */
#include "contracts/code_info/unwind_info.h"
#include "contracts/execution_manager/block_function.h"
#include "contracts/type_system/code_versions.h"
#include "contracts/type_system/method_name.h"
#include "src/api/session.h"
#include "target/core.h"
#include "util/binary_search.h"

enum {
    FUNCTIONS_MAX = 4 * 1024 * 1024, /* of all records of a session: a large process has some 100,000 */
    RECORDS_PER_RELEASE = 8 * 1024,  /* records after which the pages of the core that were read are unmapped */
};

/*
 * Reads the functions of the hot or cold part that holds block->ip, to find funclets. *ret is allocated, or NULL when
 * all of the part is the body. Returns the number of functions; 0 if the reader fails.
 */
static uint32_t read_functions(struct field_reader *reader, const struct code_block *block,
                               struct method_function **ret)
{
    uint64_t first = block->cold ? block->cold_functions : block->runtime_functions;
    uint32_t count = block->cold ? block->cold_function_count : block->runtime_function_count, found = 0;
    struct method_function *functions = block->cold || count > 1 ? calloc(count, sizeof *functions) : NULL;
    struct unwind_table table = unwind_table_at(reader, first, count, block->unwind_base);
    uint32_t body = (uint32_t)(block->start - block->unwind_base);
    if (!functions && count > !block->cold)
        reader_fail(&reader->raw, CDACQ_ERR_NOMEM, first, "functions");
    for (uint32_t i = 0; functions && i < count; i++) {
        bool is_funclet = block->cold ? block_cold_function_is_funclet(reader, block, &table, i)
                                      : i > 0 && !unwind_table_is_fragment(reader, &table, i);
        uint32_t begin = unwind_table_begin(reader, &table, i);
        if (is_funclet || !i || block->cold)
            functions[found++] = (struct method_function){begin, is_funclet ? begin : body};
    }
    *ret = functions;
    return functions && !reader_failed(&reader->raw) ? found : 0;
}

static void set_name(struct cdacq_session *session, struct cdacq_method *method, const struct method_name *name)
{
    if (name->text.length) {
        method->name = session_text(session, name->text.data, name->text.length);
        method->name_length = method->name ? name->text.length : 0;
    }
    const struct cdacq_error *problem = name->error.status < 0 ? &name->error : &name->doubt;
    if (problem->status < 0)
        method->error = session_text(session, problem->message, strlen(problem->message));
    method->token = name->token;
    method->module = name->module ? name->module->path : NULL;
    if (method->module && session_is_running(session)) { /* the module is freed when the process replaces it */
        if (!session->module_path || strcmp(session->module_path, method->module) != 0)
            session->module_path = session_intern(session, method->module, strlen(method->module));
        method->module = session->module_path;
    }
    if (name->unverified)
        method->module_verified = false;
}

/* Notes that it is not known whether a method is prepared. Answers say so unless their `error` has another reason. */
static void set_prepared_unknown(struct method_record *record)
{
    record->prepared_unknown = true;
    if (record->method.error)
        return;
    record->method.prepared_unknown = 1;
    record->method.error =
        "whether the runtime has prepared the method is not known: its image's map of entry points cannot be read";
}

static const struct name_spelling *const spellings[] = {
    [CDACQ_NAMES_CSHARP] = &name_spelling_csharp,
    [CDACQ_NAMES_SOS] = &name_spelling_sos,
    [CDACQ_NAMES_IL] = &name_spelling_il,
    [CDACQ_NAMES_SOURCE] = &name_spelling_source,
};

static void name_record(struct cdacq_session *session, const struct code_block *block, struct method_record *record)
{
    struct method_name name = {0};
    struct method_namer namer = {.cache = &session->modules,
                                 .spelling = spellings[session->names],
                                 .runtime_types = session->target->runtime_types};
    method_name_form(&namer, block, &name);
    set_name(session, &record->method, &name);
    record->module = name.module;
    text_deinit(&name.text);
    if (!session->target->target->recording)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(spellings); i++) { /* a recording must hold what every spelling needs */
        namer.spelling = spellings[i];
        name = (struct method_name){0};
        method_name_form(&namer, block, &name);
        text_deinit(&name.text);
    }
}

static const char *find_tier(struct cdacq_session *session, const struct code_block *block)
{
    const struct cdacq_target *target = session->target;
    if (!block->manager->compiles || !block->method_desc || !(target->layout.usable & 1u << LAYOUT_CodeVersions))
        return NULL;
    reader_begin(&session->reader.raw, FUEL_LOOKUP);
    return code_versions_tier(&session->reader, block->method_desc, block->start);
}

bool session_gave_up(const struct cdacq_session *session, struct cdacq_error *err)
{
    char text[128];
    if (!work_is_spent(&session->target->target->work, text, sizeof text))
        return false;
    error_set(err, CDACQ_ERR_FUEL, 0, "%s", text);
    return true;
}

/* Charges the growth of the arena to the bound on memory. False, with session->error set, if the bound is reached. */
static bool take_arena(struct cdacq_session *session)
{
    size_t grown = session->arena.size - session->arena_taken;
    session->arena_taken += grown;
    if (!grown || work_take_memory(&session->target->target->work, grown))
        return true;
    session_gave_up(session, &session->error);
    return false;
}

struct method_record *session_make_record(struct cdacq_session *session, const struct code_block *block)
{
    CLEANUP_FREE struct method_function *functions = NULL;
    if (!take_arena(session))
        return NULL;
    uint32_t count = read_functions(&session->reader, block, &functions);
    /* The methods of a damaged core can share one table: the total is bounded. */
    bool functions_unknown = reader_failed(&session->reader.raw) || count > FUNCTIONS_MAX - session->function_total;
    reader_recover(&session->reader.raw, FAILURE_ANY);
    count = functions_unknown ? 0 : count;
    session->function_total += count;
    struct method_record *record =
        arena_allocate(session_record_arena(session), sizeof *record + count * sizeof *functions);
    if (!record) {
        error_set(&session->error, CDACQ_ERR_NOMEM, 0, "out of memory");
        return NULL;
    }
    *record = (struct method_record){
        .method =
            {
                .size = sizeof record->method,
                .answer = CDACQ_ANSWER_MANAGED,
                .kind = block->kind,
                .method_desc = block->method_desc,
                .code_start = block->start,
                .code_size = block->hot_size,
                .cold_start = block->cold_start,
                .cold_size = block->cold_size,
                .cold = block->cold,
                .il_offset = CDACQ_OFFSET_UNKNOWN,
                .module_verified = !block->unverified,
            },
        .unwind_base = block->unwind_base,
        .function_count = count,
        .functions_unknown = functions_unknown,
    };
    if (count)
        memcpy(record->functions, functions, count * sizeof *functions);
    record->method.tier = find_tier(session, block);
    name_record(session, block, record);
    if (block->prepared_unknown)
        set_prepared_unknown(record);
    if (++session->records % RECORDS_PER_RELEASE == 0 && session->target->target->kind == CDACQ_TARGET_CORE)
        core_release_pages(session->target->target);
    return session_note_record(session, record) ? record : NULL;
}

/* The start of the funclet that contains `ip`, or of the method; 0 if the functions could not be read. */
static uint64_t funclet_start(const struct method_record *record, uint64_t ip)
{
    const struct method_function *functions = record->functions;
    if (!record->function_count)
        return record->functions_unknown ? 0 : record->method.code_start;
    uint32_t after = lower_bound_in_memory(i, record->function_count, record->unwind_base + functions[i].begin <= ip);
    return record->unwind_base + functions[after ? after - 1 : 0].funclet;
}

void record_answer(const struct method_record *record, uint64_t ip, struct cdacq_method *ret)
{
    const struct cdacq_method *method = &record->method;
    *ret = *method;
    ret->ip = ip;
    ret->offset = method->cold ? method->code_size + (ip - method->cold_start) : ip - method->code_start;
    ret->funclet_start = funclet_start(record, ip);
}
