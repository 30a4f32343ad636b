/*
 * block.c: the calls of cdacq/block.h, a thin layer over contracts/.
 */
#include <inttypes.h>

#include "contracts/code_lookup/range_section_map.h"
#include "contracts/execution_manager/code_heap_infos.h"
#include "contracts/execution_manager/block_function.h"
#include "contracts/execution_manager/block_gc_info.h"
#include "contracts/execution_manager/exception_clauses.h"
#include "contracts/execution_manager/function_table.h"
#include "contracts/type_system/clause_handler.h"
#include "formats/debug_info.h"
#include "src/lookup/answer.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"
#include "util/sized.h"

_Static_assert(sizeof(struct code_block) <= sizeof(struct cdacq_block), "a block fits into its handle");

static struct code_block block_of(const struct cdacq_block *handle)
{
    struct code_block block;
    memcpy(&block, handle->opaque, sizeof block);
    return block;
}

static struct reader *begin_with(struct cdacq_session *session, uint32_t fuel)
{
    resolver_begin(&session->resolver);
    epoch_watch(&session->resolver.epoch);
    reader_begin(&session->resolver.reader, fuel);
    return &session->resolver.reader;
}

/* Begins a look-up. Returns the reader for it. */
static struct reader *begin(struct cdacq_session *session)
{
    return begin_with(session, FUEL_LOOKUP);
}

/* The same with fuel for a list of all heaps. */
static struct reader *begin_long(struct cdacq_session *session)
{
    return begin_with(session, FUEL_INDEX);
}

/*
 * Sets `answered` to the value of an expression that reads the target. Evaluates it again as long as a running process
 * changes what it has read. This is a macro because each call of this file evaluates another expression.
 */
#define ANSWER(session, answered, expression)                                          \
    do {                                                                               \
        struct epoch_tries tries_ = {0};                                               \
        do                                                                             \
            (answered) = (expression);                                                 \
        while (epoch_again_or_fail(&(session)->resolver.epoch, &tries_, &(answered))); \
    } while (0)

static enum cdacq_status not_managed(uint64_t address, struct cdacq_error *err)
{
    return error_set(err, CDACQ_NOT_MANAGED, address, "%s", cdacq_status_text(CDACQ_NOT_MANAGED));
}

enum cdacq_status cdacq_session_code_block_at(struct cdacq_session *session, uint64_t ip, struct cdacq_block *ret,
                                              struct cdacq_error *err)
{
    struct code_block block;
    bool found;
    ANSWER(session, found,
           execution_manager_find(&session->resolver.target->manager, begin(session),
                                  resolver_address(&session->resolver, ip), &block) &&
               code_block_is_method(&block));
    if (found) {
        *ret = (struct cdacq_block){0};
        memcpy(ret->opaque, &block, sizeof block);
        return CDACQ_OK;
    }
    enum cdacq_status status = reader_status(&session->resolver.reader, err);
    return status < 0 ? status : not_managed(ip, err);
}

uint64_t cdacq_block_get_method_desc(const struct cdacq_block *block)
{
    return block_of(block).method_desc;
}

uint64_t cdacq_block_get_start_address(const struct cdacq_block *block)
{
    return block_of(block).start;
}

uint64_t cdacq_block_get_relative_offset(const struct cdacq_block *block)
{
    return block_of(block).offset;
}

enum cdacq_jit_type cdacq_block_get_jit_type(const struct cdacq_block *block)
{
    return block_of(block).manager->jit_type;
}

uint64_t cdacq_block_get_unwind_info_base_address(const struct cdacq_block *block)
{
    return block_of(block).unwind_base;
}

/* The status of a look-up that has ended: OK, the failure of the reader, or CORRUPT with `problem`. */
static enum cdacq_status finish(struct cdacq_session *session, bool answered, uint64_t address, const char *problem,
                                struct cdacq_error *err)
{
    enum cdacq_status status = answered ? CDACQ_OK : reader_status(&session->resolver.reader, err);
    return answered || status < 0 ? status : error_set(err, CDACQ_ERR_CORRUPT, address, "%s", problem);
}

enum cdacq_status cdacq_block_get_method_region_info(const struct cdacq_block *handle, struct cdacq_session *session,
                                                     uint64_t *ret_hot_size, uint64_t *ret_cold_start,
                                                     uint64_t *ret_cold_size, struct cdacq_error *err)
{
    struct code_block block = block_of(handle);
    uint64_t hot_size;
    bool answered;
    ANSWER(session, answered, block_hot_size(begin(session), &block, &hot_size));
    if (answered) {
        *ret_hot_size = hot_size;
        *ret_cold_start = block.cold_start;
        *ret_cold_size = block.cold_size;
    }
    return finish(session, answered, block.start, "the method's size is not known", err);
}

static enum cdacq_status function_of(const struct cdacq_block *handle, struct cdacq_session *session,
                                     struct block_function *ret, struct cdacq_error *err)
{
    struct code_block block = block_of(handle);
    bool answered;
    ANSWER(session, answered, block_function_find(begin(session), &block, ret));
    return finish(session, answered, block.ip, "no unwind info covers the address", err);
}

enum cdacq_status cdacq_block_get_unwind_info(const struct cdacq_block *block, struct cdacq_session *session,
                                              uint64_t *ret, struct cdacq_error *err)
{
    struct block_function function;
    enum cdacq_status status = function_of(block, session, &function, err);
    if (status >= 0)
        *ret = function.entry;
    return status;
}

enum cdacq_status cdacq_block_get_funclet_start_address(const struct cdacq_block *block, struct cdacq_session *session,
                                                        uint64_t *ret, struct cdacq_error *err)
{
    struct block_function function;
    enum cdacq_status status = function_of(block, session, &function, err);
    if (status >= 0)
        *ret = function.start;
    return status;
}

enum cdacq_status cdacq_block_is_funclet(const struct cdacq_block *handle, struct cdacq_session *session, bool *ret,
                                         struct cdacq_error *err)
{
    struct code_block block = block_of(handle);
    bool is_funclet, answered;
    ANSWER(session, answered, block_is_funclet(begin(session), &block, &is_funclet));
    if (answered)
        *ret = is_funclet;
    return finish(session, answered, block.ip, "no unwind info covers the address", err);
}

enum cdacq_status cdacq_block_is_filter_funclet(const struct cdacq_block *handle, struct cdacq_session *session,
                                                bool *ret, struct cdacq_error *err)
{
    struct code_block block = block_of(handle);
    bool is_filter, answered;
    ANSWER(session, answered, block_is_filter_funclet(begin(session), &block, &is_filter));
    if (answered)
        *ret = is_filter;
    return finish(session, answered, block.ip, "no unwind info covers the address", err);
}

enum cdacq_status cdacq_block_get_debug_info(const struct cdacq_block *handle, struct cdacq_session *session,
                                             uint64_t *ret, bool *ret_has_flag_byte, struct cdacq_error *err)
{
    struct code_block block = block_of(handle);
    uint64_t debug_info;
    bool has_flag_byte, answered;
    ANSWER(session, answered, block.manager->debug_info(begin(session), &block, &debug_info, &has_flag_byte));
    /* The contract keeps the flag, but the encoding since .NET 11 has no such byte. */
    const struct debug_info_encoding *encoding = session->resolver.target->contracts.debug_info;
    if (answered) {
        *ret = debug_info;
        *ret_has_flag_byte = has_flag_byte && (!encoding || debug_info_has_flags(encoding));
    }
    return finish(session, answered, block.start, "the method's debug info is not known", err);
}

enum cdacq_status cdacq_block_get_gc_info(const struct cdacq_block *handle, struct cdacq_session *session,
                                          uint64_t *ret, uint32_t *ret_version, struct cdacq_error *err)
{
    struct code_block block = block_of(handle);
    uint64_t gc_info;
    uint32_t version;
    bool answered;
    ANSWER(session, answered, block.manager->gc_info(begin(session), &block, &gc_info, &version));
    if (answered) {
        *ret = gc_info;
        *ret_version = version;
    }
    return finish(session, answered, block.start, "the method's GC info is not known", err);
}

enum cdacq_status cdacq_block_is_gc_safe(const struct cdacq_block *handle, struct cdacq_session *session, bool *ret,
                                         struct cdacq_error *err)
{
    struct code_block block = block_of(handle);
    bool is_safe, answered;
    ANSWER(session, answered, block_is_gc_safe(begin(session), &block, &is_safe));
    if (answered)
        *ret = is_safe;
    return finish(session, answered, block.ip, "the method's GC info is not known", err);
}

enum cdacq_status cdacq_block_get_stack_parameter_size(const struct cdacq_block *handle, struct cdacq_session *session,
                                                       uint32_t *ret, struct cdacq_error *err)
{
    struct code_block block = block_of(handle);
    uint32_t size;
    bool answered;
    ANSWER(session, answered, block_stack_parameter_size(begin(session), &block, &size));
    if (answered)
        *ret = size;
    return finish(session, answered, block.ip, "the method's GC info is not known", err);
}

/* Adds the module of the clause's token, and whether the clause catches everything, if they are known. */
static void describe_handler(struct cdacq_session *session, const struct code_block *block,
                             struct cdacq_exception_clause *clause)
{
    struct cdacq_method method = {.size = sizeof method};
    bool is_catch_all;
    if (clause->kind != CDACQ_CLAUSE_TYPED)
        return;
    const struct method_record *record = answer_find(&session->resolver, block->ip, &method);
    /* In a running process, another method may be there by now. */
    bool is_same =
        record && record->method.code_start == block->start && record->method.method_desc == block->method_desc;
    const struct module *module = is_same ? record->module : NULL;
    if (clause->class_token && module)
        clause->module = module->address;
    reader_begin(&session->resolver.reader, FUEL_LOOKUP); /* not a new epoch, which could free the module */
    if (!clause_is_catch_all(&session->resolver.reader, module, clause, &is_catch_all))
        return;
    clause->is_catch_all = is_catch_all;
    clause->is_catch_all_known = true;
}

enum cdacq_status cdacq_block_visit_exception_clauses(const struct cdacq_block *handle, struct cdacq_session *session,
                                                      int (*visit)(const struct cdacq_exception_clause *clause,
                                                                   void *context),
                                                      void *context, struct cdacq_error *err)
{
    struct code_block block = block_of(handle);
    struct exception_clauses clauses;
    struct cdacq_exception_clause clause;
    bool answered;
    ANSWER(session, answered, block.manager->clauses(begin(session), &block, &clauses));
    if (!answered)
        return reader_status(&session->resolver.reader, err);
    for (uint32_t i = 0; i < clauses.count; i++) {
        /* `visit` may have used the session: each clause is a look-up of its own. */
        ANSWER(session, answered, exception_clause_read(begin(session), &clauses, i, &clause));
        if (!answered)
            return reader_status(&session->resolver.reader, err);
        describe_handler(session, &block, &clause);
        if (visit(&clause, context))
            return CDACQ_STOPPED;
    }
    return CDACQ_OK;
}

const char *cdacq_code_kind_text(enum cdacq_code_kind kind)
{
    static const char *const texts[] = {
#define KIND_TEXT(name, value, text) [value] = text,
        CDACQ_CODE_KINDS(KIND_TEXT)
#undef KIND_TEXT
    };
    return (unsigned)kind < ARRAY_SIZE(texts) ? texts[kind] : "Unknown";
}

enum cdacq_status cdacq_session_code_kind_at(struct cdacq_session *session, uint64_t address, enum cdacq_code_kind *ret,
                                             struct cdacq_error *err)
{
    struct code_block block;
    uint64_t plain = resolver_address(&session->resolver, address);
    bool found;
    ANSWER(session, found, execution_manager_find(&session->resolver.target->manager, begin(session), plain, &block));
    if (!found && reader_failed(&session->resolver.reader))
        return reader_status(&session->resolver.reader, err);
    *ret = found ? block.kind : CDACQ_CODE_UNKNOWN;
    return found ? CDACQ_OK : not_managed(address, err);
}

enum cdacq_status cdacq_session_ready_to_run_module_at(struct cdacq_session *session, uint64_t address, uint64_t *ret,
                                                       struct cdacq_error *err)
{
    struct range_section section;
    uint64_t plain = resolver_address(&session->resolver, address);
    bool found;
    ANSWER(session, found,
           execution_manager_section(&session->resolver.target->manager, begin(session), plain, &section));
    if (!found && reader_failed(&session->resolver.reader))
        return reader_status(&session->resolver.reader, err);
    if (!found || !jit_manager_of(&section)->in_images)
        return not_managed(address, err);
    *ret = section.r2r_module;
    return CDACQ_OK;
}

enum cdacq_status cdacq_session_get_jit_manager_info(struct cdacq_session *session, enum cdacq_code_kind kind,
                                                     struct cdacq_jit_manager_info *ret, struct cdacq_error *err)
{
    struct cdacq_jit_manager_info info;
    enum cdacq_status status = sized_check(ret, "struct cdacq_jit_manager_info", err);
    if (status < 0)
        return status;
    bool answered;
    ANSWER(session, answered, jit_manager_info(&session->resolver.target->manager, begin_long(session), kind, &info));
    if (!answered)
        return reader_status(&session->resolver.reader, err);
    if (!info.address)
        return not_managed(0, err);
    sized_copy(ret, &info, sizeof info);
    return CDACQ_OK;
}

/* The status of a list that was read, before `visit` uses the session. */
static enum cdacq_status list_status(const struct cdacq_session *session, struct cdacq_error *err)
{
    enum cdacq_status status = reader_status(&session->resolver.reader, err);
    return status < 0 ? status : epoch_check_process(&session->resolver.epoch, err);
}

enum cdacq_status cdacq_session_visit_code_heaps(struct cdacq_session *session, enum cdacq_code_kind kind,
                                                 int (*visit)(const struct cdacq_code_heap_info *heap, void *context),
                                                 void *context, struct cdacq_error *err)
{
    struct code_heap_list heaps;
    code_heaps_list(&session->resolver.target->manager, begin_long(session), kind, &heaps);
    enum cdacq_status status = list_status(session, err);
    for (size_t i = 0; i < heaps.count && status != CDACQ_STOPPED; i++)
        if (visit(&heaps.items[i], context))
            status = CDACQ_STOPPED;
    code_heap_list_deinit(&heaps);
    return status;
}

enum cdacq_status cdacq_session_visit_function_table_entries(struct cdacq_session *session, uint64_t table,
                                                             int (*visit)(uint64_t entry, void *context), void *context,
                                                             struct cdacq_error *err)
{
    struct function_table entries = {0};
    uint32_t size = session->resolver.target->layout.sizes[T_RuntimeFunction];
    function_table_read(&session->resolver.target->manager, begin_long(session), table, &entries);
    enum cdacq_status status = list_status(session, err);
    for (size_t i = 0; i < entries.count && status == CDACQ_OK; i++)
        for (uint32_t j = 0; j < entries.items[i].count && status == CDACQ_OK; j++)
            if (visit(entries.items[i].first + (uint64_t)j * size, context))
                status = CDACQ_STOPPED;
    function_table_deinit(&entries);
    return status;
}

enum cdacq_status cdacq_session_non_virtual_entry_to_method_desc(struct cdacq_session *session, uint64_t entry_point,
                                                                 uint64_t *ret, struct cdacq_error *err)
{
    uint64_t plain = resolver_address(&session->resolver, entry_point), method_desc;
    bool found;
    ANSWER(
        session, found,
        execution_manager_entry_method_desc(&session->resolver.target->manager, begin(session), plain, &method_desc));
    if (found) {
        *ret = method_desc;
        return CDACQ_OK;
    }
    enum cdacq_status status = reader_status(&session->resolver.reader, err);
    return status < 0 ? status
                      : error_set(err, CDACQ_NOT_MANAGED, entry_point,
                                  "0x%" PRIx64 " enters no method with a MethodDesc", entry_point);
}
