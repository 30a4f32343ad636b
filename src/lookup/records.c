#include "src/lookup/records.h"

#include "contracts/code_info/unwind_info.h"
#include "contracts/execution_manager/block_function.h"
#include "contracts/execution_manager/jit_manager.h"
#include "contracts/type_system/code_versions.h"
#include "contracts/type_system/method_desc.h"
#include "formats/names/names.h"
#include "src/lookup/opened_target.h"
#include "src/lookup/resolver.h"
#include "target/core.h"
#include "target/native/native_modules.h"
#include "util/binary_search.h"
#include "util/error.h"

enum {
    FUNCTIONS_MAX = 4 * 1024 * 1024, /* of all records of a session: a large process has some 100,000 */
    RECORDS_PER_RELEASE = 8 * 1024,  /* records after which the pages of the core that were read are unmapped */
};

DEFINE_VECTOR(method_functions, struct method_function);

/* The functions of a block that its manager finds. */
struct found_functions {
    const struct code_block *block;
    struct method_functions list;
    bool lost; /* out of memory */
};

static bool take_function(uint64_t begin, bool is_filter, void *context)
{
    struct found_functions *found = context;
    uint32_t relative = (uint32_t)(begin - found->block->unwind_base);
    (void)is_filter;
    found->lost |= !method_functions_append(&found->list, (struct method_function){relative, relative});
    return !found->lost;
}

/* The same as read_functions() for a block without RUNTIME_FUNCTIONs. */
static uint32_t find_functions(struct reader *reader, const struct code_block *block, struct method_function **ret)
{
    struct found_functions found = {.block = block};
    if (!block->manager->functions(reader, block, take_function, &found) || found.lost || found.list.count < 2) {
        if (found.lost)
            reader_fail(reader, CDACQ_ERR_NOMEM, block->start, "functions");
        method_functions_deinit(&found.list);
        return 0;
    }
    *ret = found.list.items;
    return (uint32_t)found.list.count;
}

/*
 * Reads the functions of the hot or cold part that holds block->ip, to find funclets. *ret is allocated, or NULL when
 * all of the part is the body. Returns the number of functions; 0 if the reader fails.
 */
static uint32_t read_functions(struct reader *reader, const struct code_block *block, struct method_function **ret)
{
    if (block->manager->functions)
        return find_functions(reader, block, ret);
    uint64_t first = block->cold ? block->cold_functions : block->runtime_functions;
    uint32_t count = block->cold ? block->cold_function_count : block->runtime_function_count, found = 0;
    struct method_function *functions = block->cold || count > 1 ? calloc(count, sizeof *functions) : NULL;
    struct unwind_table table = unwind_table_at(reader, first, count, block->unwind_base);
    uint32_t body = (uint32_t)(block->start - block->unwind_base);
    if (!functions && count > !block->cold)
        reader_fail(reader, CDACQ_ERR_NOMEM, first, "functions");
    for (uint32_t i = 0; functions && i < count; i++) {
        bool is_funclet = block->cold ? block_cold_function_is_funclet(reader, block, &table, i)
                                      : i > 0 && !unwind_table_is_fragment(reader, &table, i);
        uint32_t begin = unwind_table_begin(reader, &table, i);
        if (is_funclet || !i || block->cold)
            functions[found++] = (struct method_function){begin, is_funclet ? begin : body};
    }
    *ret = functions;
    return functions && !reader_failed(reader) ? found : 0;
}

void resolver_set_name(struct resolver *resolver, struct cdacq_method *method, const struct method_name *name)
{
    if (name->text.length) {
        method->name = resolver_text(resolver, name->text.data, name->text.length);
        method->name_length = method->name ? name->text.length : 0;
    }
    const struct cdacq_error *problem = name->error.status < 0 ? &name->error : &name->doubt;
    if (problem->status < 0)
        method->error = resolver_text(resolver, problem->message, strlen(problem->message));
    method->token = name->token;
    method->module = name->module ? name->module->path : NULL;
    if (method->module && resolver_is_running(resolver)) { /* the module is freed when the process replaces it */
        if (!resolver->records.module_path || strcmp(resolver->records.module_path, method->module) != 0)
            resolver->records.module_path = resolver_intern(resolver, method->module, strlen(method->module));
        method->module = resolver->records.module_path;
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
    record->method.prepared_unknown = true;
    record->method.error =
        "whether the runtime has prepared the method is not known: its image's map of entry points cannot be read";
}

static const struct name_spelling *const spellings[] = {
    [CDACQ_NAMES_CSHARP] = &name_spelling_csharp,
    [CDACQ_NAMES_SOS] = &name_spelling_sos,
    [CDACQ_NAMES_IL] = &name_spelling_il,
    [CDACQ_NAMES_SOURCE] = &name_spelling_source,
};

struct method_namer resolver_namer(struct resolver *resolver, const struct name_spelling *spelling)
{
    return (struct method_namer){.cache = &resolver->modules,
                                 .spelling = spelling ? spelling : spellings[resolver->names],
                                 .runtime_types = resolver->target->runtime_types};
}

/* The linker's symbol in place of a name that NativeAOT code has not; the answer's `error` says why. */
static void name_by_symbol(struct resolver *resolver, struct method_record *record)
{
    struct native_symbol symbol;
    struct native_modules *native = resolver_native(resolver);
    if (!native || !native_modules_symbol(native, record->method.code_start, &symbol) || !symbol.name || symbol.offset)
        return;
    struct text name = {0};
    text_escape(&name, symbol.name, strlen(symbol.name));
    record->method.name = resolver_text(resolver, name.data, name.length);
    record->method.name_length = record->method.name ? name.length : 0;
    record->method.module_verified &= !symbol.unverified;
    text_deinit(&name);
}

static void name_record(struct resolver *resolver, const struct code_block *block, struct method_record *record)
{
    struct method_name name = {0};
    struct method_namer namer = resolver_namer(resolver, NULL);
    method_name_form(&namer, block, &name);
    resolver_set_name(resolver, &record->method, &name);
    record->module = name.module;
    text_deinit(&name.text);
    if (code_block_aot(block) && !record->method.name)
        name_by_symbol(resolver, record);
    if (!resolver->target->memory->recording)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(spellings); i++) { /* a recording must hold what every spelling needs */
        namer.spelling = spellings[i];
        name = (struct method_name){0};
        method_name_form(&namer, block, &name);
        text_deinit(&name.text);
    }
}

static const char *find_tier(struct resolver *resolver, const struct code_block *block)
{
    const struct cdacq_target *target = resolver->target;
    if (!block->manager->compiles || !block->method_desc || !(target->layout.usable & 1u << LAYOUT_CodeVersions))
        return NULL;
    reader_begin(&resolver->reader, FUEL_LOOKUP);
    return code_versions_tier(&resolver->reader, block->method_desc, block->start);
}

static bool is_async_thunk(struct resolver *resolver, const struct code_block *block)
{
    if (!block->method_desc || !resolver->target->runtime_types)
        return false;
    reader_begin(&resolver->reader, FUEL_LOOKUP);
    return method_desc_async_kind(&resolver->reader, block->method_desc).is_thunk;
}

/* Charges the growth of the arena to the bound on memory. False, with resolver->error set, if the bound is reached. */
static bool take_arena(struct resolver *resolver)
{
    struct records *records = &resolver->records;
    size_t grown = records->arena.size - records->arena_seen;
    records->arena_seen += grown;
    if (!grown || work_take_memory(&resolver->target->memory->work, grown)) {
        records->arena_taken += grown;
        return true;
    }
    resolver_gave_up(resolver, &resolver->error);
    return false;
}

struct method_record *record_make(struct resolver *resolver, const struct code_block *block)
{
    CLEANUP_FREE struct method_function *functions = NULL;
    if (!take_arena(resolver))
        return NULL;
    uint32_t count = read_functions(&resolver->reader, block, &functions);
    /* The methods of a damaged core can share one table: the total is bounded. */
    bool functions_unknown =
        reader_failed(&resolver->reader) || count > FUNCTIONS_MAX - resolver->records.function_total;
    reader_recover(&resolver->reader, FAILURE_ANY);
    count = functions_unknown ? 0 : count;
    resolver->records.function_total += count;
    struct method_record *record =
        arena_allocate(resolver_record_arena(resolver), sizeof *record + count * sizeof *functions);
    if (!record) {
        error_set(&resolver->error, CDACQ_ERR_NOMEM, 0, "out of memory");
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
                .runtime = resolver->target->runtime,
            },
        .unwind_base = block->unwind_base,
        .function_count = count,
        .functions_unknown = functions_unknown,
    };
    if (count)
        memcpy(record->functions, functions, count * sizeof *functions);
    record->method.tier = find_tier(resolver, block);
    record->method.async_thunk = is_async_thunk(resolver, block);
    name_record(resolver, block, record);
    if (block->prepared_unknown)
        set_prepared_unknown(record);
    if (++resolver->records.made % RECORDS_PER_RELEASE == 0 && resolver->target->memory->kind == CDACQ_TARGET_CORE)
        core_release_pages(resolver->target->memory);
    record->round = resolver->epoch.round;
    return epoch_note(&resolver->epoch, &record->is_void) ? record : NULL;
}
