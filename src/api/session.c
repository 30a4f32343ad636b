/*
 * session.c: finds the methods that own addresses, and forms their names. The first look-ups each walk the runtime's
 * structures, which reads little; the methods of a range that is used repeatedly are indexed.
 */
#include <inttypes.h>

#include "src/api/question.h"
#include "src/api/source_lines.h"

#include "util/binary_search.h"
#include "contracts/type_system/code_versions.h"
#include "contracts/type_system/method_name.h"
#include "contracts/code_info/unwind_info.h"
#include "contracts/execution_manager/block_function.h"
#include "target/core.h"
#include "util/sized.h"

enum {
    FUNCTIONS_MAX = 4 * 1024 * 1024, /* of all records of a session: a large process has some 100,000 */
    MANY = 32,                       /* addresses of one call, from which on it uses indexes */
    CHUNK = 512,                     /* addresses of a running process whose answers are checked together */
    FETCHED = 32,                    /* records that are on their way to the cache together */
    WALKS_BEFORE_INDEX = 16, /* indexing a range costs about as much as this many look-ups that touch new pages */
    PARTS_OF_A_WALK = 32,    /* of a table are built in the time of one look-up, or a few more */
    SMALL_TABLE = WALKS_BEFORE_INDEX * PARTS_OF_A_WALK, /* parts: it is built at once for a batch */
    RECORDS_PER_RELEASE = 8 * 1024, /* after as many, the pages of a core that they were made from are unmapped */
};

/* An image that does not begin with its file is in a single-file application, whose path is not that of the image. */
static const char *path_at(void *context, uint64_t address)
{
    const struct mapping *mapping = target_mapping_at(context, address);
    return mapping && mapping->offset + (address - mapping->begin) == 0 ? mapping->path : NULL;
}

static bool next_assembly(void *context, struct reader *reader, const char *name, size_t length, size_t *position,
                          uint64_t *ret_base)
{
    const struct target *target = context;
    while (*position < target->mapping_count && reader_step(reader, "mapped files")) {
        const struct mapping *mapping = &target->mappings[(*position)++];
        const char *base = path_basename(mapping->path);
        if (mapping->offset == 0 && strncmp(base, name, length) == 0 && strcmp(base + length, ".dll") == 0) {
            *ret_base = mapping->begin;
            return true;
        }
    }
    return false;
}

enum cdacq_status cdacq_session_create(struct cdacq_target *target, struct cdacq_session **ret, struct cdacq_error *err)
{
    if (target && target->problem.status < 0) {
        if (err)
            *err = target->problem;
        return target->problem.status;
    }
    struct cdacq_session *session = target ? calloc(1, sizeof *session) : NULL;
    if (!session)
        return error_set(err, target ? CDACQ_ERR_NOMEM : CDACQ_ERR_ARGUMENT, 0,
                         target ? "out of memory" : "a session needs a target");
    session->target = target;
    session->names = target->names;
    field_reader_init(&session->reader, target->target, &target->layout, target->descriptor_info.pointer_size,
                      target->descriptor_info.big_endian);
    module_cache_init(
        &session->modules, &session->reader,
        (struct module_files){.path_at = path_at, .next_assembly = next_assembly, .context = target->target});
    session_begin_question(session);
    *ret = session;
    return CDACQ_OK;
}

void cdacq_session_destroy(struct cdacq_session *session)
{
    if (!session)
        return;
    session_question_deinit(session);
    native_modules_destroy(session->native);
    session_sources_deinit(session);
    module_cache_deinit(&session->modules);
    arena_deinit(&session->arena);
    arena_deinit(&session->scratch);
    free(session);
}

size_t cdacq_session_memory(const struct cdacq_session *session)
{
    return session->arena.size + session->texts.capacity * (sizeof *session->texts.slots + 1);
}

const struct code_map *session_map(struct cdacq_session *session)
{
    struct cdacq_target *target = session->target;
    if (session->map || session->no_map)
        return session->map;
    bool running = session_is_running(session);
    struct code_map *map = running ? NULL : atomic_load_explicit(&target->code_map, memory_order_acquire);
    if (running) {
        map = session->own_map = session_running_map(session);
    } else if (!map) {
        reader_begin(&session->reader.raw, FUEL_INDEX);
        map = code_map_build(&target->manager, &session->reader);
        struct code_map *other = NULL;
        if (map && !atomic_compare_exchange_strong_explicit(&target->code_map, &other, map, memory_order_acq_rel,
                                                            memory_order_acquire)) {
            code_map_free(map);
            map = other;
        }
    }
    session->ranges = map ? calloc(map->count + 1, sizeof *session->ranges) : NULL;
    session->no_map = !session->ranges;
    if (session->no_map && (map || reader_status(&session->reader.raw, &session->map_error) >= 0))
        error_set(&session->map_error, CDACQ_ERR_NOMEM, 0, "out of memory for the code ranges");
    session->map = session->ranges ? map : NULL;
    return session->map;
}

const struct code_map *session_question_map(struct cdacq_session *session, enum cdacq_status *ret_status,
                                            struct cdacq_error *err)
{
    session_begin_question(session);
    const struct code_map *map = session_map(session);
    *ret_status = session_check_process(session, err);
    if (*ret_status >= 0 && !map)
        *ret_status = session_map_error(session, err);
    return *ret_status < 0 ? NULL : map;
}

/* Whether a running process has freed a range since the map was read. */
static bool range_is_gone(struct cdacq_session *session, const struct range_section *section)
{
    struct reader *reader = &session->reader.raw;
    struct range_section now;
    if (!session_is_running(session) || section->stub_kind)
        return false;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    bool found = range_section_map_find(&session->reader, session->target->manager.map, section->begin, &now);
    struct reader_failure failure = reader_leave(reader, &outer);
    return failure.status >= 0 && (!found || now.address != section->address || now.begin != section->begin ||
                                   now.end != section->end || now.heap_list != section->heap_list ||
                                   now.range_list != section->range_list || now.r2r_module != section->r2r_module);
}

/*
 * Builds the table of a range. What could be read is used even if a running process has changed it meanwhile: where
 * methods are made and freed all the time, a large table never stays the same, and each method is looked up anyway. A
 * failure counts only if the process still holds what was read, and has the range.
 */
static void build_table(struct cdacq_session *session, size_t index)
{
    struct session_range *range = &session->ranges[index];
    struct code_range *code = &session->map->ranges[index];
    struct read_log log = {0};
    bool again = true;
    for (unsigned tries = 0; again && tries < SESSION_TRIES; tries++) {
        session_begin_logged(session, &log);
        range->table = code_range_table(&session->target->manager, &session->reader, code);
        again = session_end_logged(session, &log, !range->table) &&
                reader_failure(&session->reader.raw).status != CDACQ_ERR_FUEL;
        if (range->table)
            return;
        if (session_is_running(session) && !again)
            session_read_anew(session); /* the map may have changed since, in pages that were read earlier */
        range->is_gone = range_is_gone(session, &code->section);
        again = again && !range->is_gone;
    }
}

struct session_range *session_table(struct cdacq_session *session, size_t index)
{
    struct session_range *range = &session->ranges[index];
    if (range->table || range->no_table)
        return range->table ? range : NULL;
    build_table(session, index);
    if (range->table &&
        reader_take_memory(&session->reader.raw, range->table->count * sizeof *range->records, "code runs"))
        range->records = calloc(range->table->count + 1, sizeof *range->records);
    if (!range->records) {
        reader_fail(&session->reader.raw, CDACQ_ERR_NOMEM, 0, "code runs"); /* unless it has failed already */
        range->failure = reader_failure(&session->reader.raw);
        range->table = NULL;
        range->no_table = true;
        return NULL;
    }
    return range;
}

enum cdacq_status session_map_error(const struct cdacq_session *session, struct cdacq_error *err)
{
    if (err)
        *err = session->map_error;
    return session->map_error.status;
}

enum cdacq_status session_table_error(struct cdacq_session *session, size_t index, struct cdacq_error *err)
{
    uint64_t begin = session->map->ranges[index].section.begin;
    if (session->ranges[index].is_gone)
        return error_set(err, CDACQ_NOT_MANAGED, begin, "the process has freed the code at 0x%" PRIx64, begin);
    return reader_report(&session->reader.raw, &session->ranges[index].failure, err);
}

/* ---- Forming answers ---- */

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

/* That nobody knows whether a method is prepared: told unless there is something to tell about the name. */
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

/* Takes what the arena has grown by from the bound on memory. False, with session->error set, if that is reached. */
static bool take_arena(struct cdacq_session *session)
{
    size_t grown = session->arena.size - session->arena_taken;
    session->arena_taken += grown;
    if (!grown || work_take_memory(&session->target->target->work, grown))
        return true;
    session_gave_up(session, &session->error);
    return false;
}

/* The part of an answer that is the same for all addresses of a block's hot or cold part. NULL when out of memory. */
static struct method_record *make_record(struct cdacq_session *session, const struct code_block *block)
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

/* Reads the block of a part, as a task of its own. */
static bool part_block(struct cdacq_session *session, size_t index, const struct block_part *part,
                       struct code_block *ret)
{
    reader_begin(&session->reader.raw, FUEL_LOOKUP);
    return code_map_block(&session->target->manager, &session->reader, &session->map->ranges[index], part, ret);
}

struct method_record *session_record(struct cdacq_session *session, size_t index, const struct block_part *part)
{
    struct session_range *range = &session->ranges[index];
    struct method_record **slot = &range->records[part - range->table->items];
    struct code_block block;
    if (session_is_running(session) && (!*slot || (*slot)->is_void))
        session_prepare_records(session, index, (size_t)(part - range->table->items),
                                (size_t)(part - range->table->items) + 1, NULL);
    if (*slot || session_is_running(session))
        return *slot;
    if (!part_block(session, index, part, &block)) {
        reader_status(&session->reader.raw, &session->error);
        return NULL;
    }
    block.unverified |= reader_unverified(&session->reader.raw);
    struct method_record **walked = walked_records_find(&session->walked, (struct walked_key){block.start, block.cold});
    *slot = walked ? *walked : make_record(session, &block);
    return *slot;
}

static void answer_none(uint64_t ip, struct cdacq_method *ret)
{
    *ret = (struct cdacq_method){.size = sizeof *ret,
                                 .ip = ip,
                                 .answer = CDACQ_ANSWER_NONE,
                                 .il_offset = CDACQ_OFFSET_UNKNOWN,
                                 .module_verified = true};
}

static void answer_error(struct cdacq_session *session, uint64_t ip, struct cdacq_method *ret)
{
    answer_none(ip, ret);
    ret->answer = CDACQ_ANSWER_ERROR;
    ret->error = session->error.message;
}

/* The record of a block that a walk has found. NULL when out of memory. */
static struct method_record *walked_record(struct cdacq_session *session, const struct code_block *block)
{
    struct method_record **known =
        walked_records_find(&session->walked, (struct walked_key){block->start, block->cold});
    /* In a running process, other code may be there since the last check. */
    if (known && !(*known)->is_void && (*known)->round == session->modules.round)
        return *known;
    struct method_record *record = make_record(session, block);
    if (record && known)
        return *known = record;
    if (record && !walked_records_insert(&session->walked, record, NULL)) {
        error_set(&session->error, CDACQ_ERR_NOMEM, 0, "out of memory");
        return NULL;
    }
    return record;
}

static void answer_from(struct cdacq_session *session, struct method_record *record, const struct code_block *block,
                        uint64_t address, struct cdacq_method *ret)
{
    if (UNLIKELY(!record->has_il_map)) {
        record_read_il_map(session, record, block);
        record_read_source(session, record);
    }
    session->answered = record;
    record_answer(record, address, ret);
    record_answer_il(record, ret);
    record_answer_source(record, ret);
}

/*
 * Looks up one address as the specification does, without an index. `ip` is the address as the caller gave it. Returns
 * the record of a method, or NULL.
 */
static struct method_record *walk(struct cdacq_session *session, uint64_t ip, struct cdacq_method *ret)
{
    uint64_t address = session_address(session, ip);
    session_follow(session);
    struct field_reader *reader = &session->reader;
    struct code_block block;
    reader_begin(&reader->raw, FUEL_LOOKUP);
    if (!execution_manager_find(&session->target->manager, reader, address, &block)) {
        if (!reader_failed(&reader->raw)) {
            answer_none(ip, ret);
            ret->module_verified = !reader_unverified(&reader->raw);
            return NULL;
        }
        reader_status(&reader->raw, &session->error);
        answer_error(session, ip, ret);
        return NULL;
    }
    if (!code_block_is_method(&block)) {
        answer_none(ip, ret);
        ret->answer = CDACQ_ANSWER_STUB;
        ret->kind = block.kind;
        ret->code_start = block.start;
        ret->offset = block.offset;
        ret->module_verified = !block.unverified;
        return NULL;
    }
    struct method_record *record = walked_record(session, &block);
    if (record) {
        answer_from(session, record, &block, address, ret);
        ret->ip = ip;
        return record;
    }
    answer_error(session, ip, ret);
    return NULL;
}

static bool record_contains(const struct method_record *record, uint64_t address)
{
    const struct cdacq_method *method = &record->method;
    return method->cold ? address - method->cold_start < method->cold_size
                        : address - method->code_start < method->code_size;
}

/*
 * Whether a look-up finds the method at its last address, too: then no other method begins within it, and it is the
 * answer for each of its addresses. This is checked together with the answer, since the record goes with it.
 */
static bool is_whole(struct cdacq_session *session, struct method_record *record)
{
    const struct cdacq_method *method = &record->method;
    uint64_t end = method->cold ? method->cold_start + method->cold_size : method->code_start + method->code_size;
    struct code_block block;
    if (record->is_whole)
        return true;
    session_follow(session);
    reader_begin(&session->reader.raw, FUEL_LOOKUP);
    record->is_whole = execution_manager_find(&session->target->manager, &session->reader, end - 1, &block) &&
                       code_block_is_method(&block) && block.start == method->code_start &&
                       block.cold == method->cold &&
                       (!session_is_running(session) || record_list_append(&session->unchecked, record));
    return record->is_whole;
}

/* Whether a record of the index is the answer for an address. */
static bool is_record_of(struct cdacq_session *session, struct method_record *record, uint64_t address)
{
    return record && !record->is_void && record_contains(record, address) && is_whole(session, record);
}

/*
 * Looks up an address without a table. With `many`, the record of an earlier walk, such as `known`, is the answer if it
 * is that of the address; of a running process, one of this question. Returns whether it walked.
 */
static bool look_up_singly(struct cdacq_session *session, uint64_t ip, bool many, struct method_record *known,
                           struct cdacq_method *ret)
{
    uint64_t address = session_address(session, ip);
    struct method_record *record = known;
    if (many && !is_record_of(session, record, address)) {
        record = record_index_find(&session->formed, address); /* it may have been formed since */
        record = is_record_of(session, record, address) ? record : NULL;
    }
    if (record) {
        answer_from(session, record, NULL, address, ret);
        ret->ip = ip;
        return false;
    }
    record = walk(session, ip, ret);
    if (many && record)
        (void)record_index_add(&session->formed,
                               record->method.cold ? record->method.cold_start : record->method.code_start, record);
    return true;
}

/* Whether a range is a list of stubs of which its table has the used part. */
static bool is_past_stubs(const struct cdacq_session *session, size_t index)
{
    const struct code_range *range = &session->map->ranges[index];
    return range->manager->method_kind == CDACQ_CODE_UNKNOWN && !session_is_running(session) &&
           range->section.end - range->section.begin <= UINT32_MAX;
}

/* The index of the range that contains `address`, often that of the last look-up; SIZE_MAX if there is none. */
static size_t find_range(struct cdacq_session *session, uint64_t address)
{
    const struct code_map *map = session->map;
    const struct range_section *hint = map->count ? &map->ranges[session->hint].section : NULL;
    if (hint && address >= hint->begin && address < hint->end)
        return session->hint;
    struct code_range *range = code_map_range(map, address);
    if (!range)
        return SIZE_MAX;
    return session->hint = (size_t)(range - map->ranges);
}

/*
 * Whether look-ups in a range have taken so long that a table of it pays. `batch`: more will follow, so a small table
 * pays at once.
 */
static bool table_pays(struct cdacq_session *session, size_t index, bool batch)
{
    struct session_range *range = &session->ranges[index];
    if (!range->table_price) {
        size_t parts = code_range_part_count(&session->target->manager, &session->reader, &session->map->ranges[index]);
        range->table_price = MAX(parts, (size_t)SMALL_TABLE);
    }
    return range->spent >= range->table_price || (batch && range->table_price == SMALL_TABLE);
}

/* `batch`: more look-ups follow, so indexing pays at once; otherwise it pays after some look-ups. */
static void look_up(struct cdacq_session *session, uint64_t ip, bool batch, struct cdacq_method *ret)
{
    /* A recording target reads only what a look-up needs, not what an index needs. */
    bool many = batch || ++session->lookups > WALKS_BEFORE_INDEX;
    uint64_t address = session_address(session, ip);
    if (session->target->target->recording || (!session->map && !(many && session_map(session)))) {
        (void)walk(session, ip, ret);
        return;
    }
    size_t index = find_range(session, address);
    if (index == SIZE_MAX) {
        if (session->map->left_out || address == session->target->manager.the_pre_stub)
            (void)walk(session, ip, ret); /* in a range that was left out, or code outside of all ranges */
        else
            answer_none(ip, ret);
        return;
    }
    struct session_range *range = &session->ranges[index];
    if (!session->map->ranges[index].section.whole) { /* some look-ups in it may find nothing */
        (void)walk(session, ip, ret);
        return;
    }
    if (!range->table && (range->no_table || !table_pays(session, index, batch) || !session_table(session, index))) {
        bool large = range->table_price > SMALL_TABLE; /* it takes many look-ups until there is a table */
        range->spent += look_up_singly(session, ip, many && large, NULL, ret) ? PARTS_OF_A_WALK : 1;
        return;
    }
    uint64_t begin = session->map->ranges[index].section.begin;
    const struct block_part *part =
        address - begin <= UINT32_MAX ? code_table_find(range->table, (uint32_t)(address - begin)) : NULL;
    if (!part && is_past_stubs(session, index)) { /* a walk would look for their end again */
        answer_none(ip, ret);
        return;
    }
    if (!part || part->kind == PART_STUB || part->kind == PART_UNKNOWN) {
        (void)walk(session, ip, ret);
        return;
    }
    struct method_record *record = session_record(session, index, part);
    if (record) {
        struct code_block block;
        bool has_block = !record->has_il_map && part_block(session, index, part, &block);
        answer_from(session, record, has_block ? &block : NULL, address, ret);
        ret->ip = ip;
    } else {
        answer_error(session, ip, ret);
    }
}

/* The text of a failure stays until the scratch arena is emptied. */
static void keep_error(struct cdacq_session *session, struct cdacq_method *method)
{
    if (method->answer != CDACQ_ANSWER_ERROR)
        return;
    const char *text = arena_string(&session->scratch, session->error.message, strlen(session->error.message));
    method->error = text ? text : "out of memory";
}

/* ---- Running processes ---- */

static void answer_changed(struct cdacq_session *session, uint64_t ip, struct cdacq_method *ret)
{
    const char *gone = target_gone(session->target->target);
    error_set(&session->error, gone ? CDACQ_ERR_IO : CDACQ_ERR_CHANGED, ip, "%s",
              gone ? gone : cdacq_status_text(CDACQ_ERR_CHANGED));
    *ret = (struct cdacq_method){.size = sizeof *ret,
                                 .ip = ip,
                                 .answer = CDACQ_ANSWER_ERROR,
                                 .il_offset = CDACQ_OFFSET_UNKNOWN,
                                 .module_verified = true,
                                 .error = session->error.message};
}

/* Lets the processor fetch a record, or nothing for NULL. */
static inline void prefetch_record(const struct method_record *record)
{
    for (size_t at = 0; record && at < sizeof *record; at += LINE_SIZE)
        __builtin_prefetch((const char *)record + at);
}

/*
 * Looks up one address, and again while the process changes what the answer rests on. If the question goes on after it,
 * records of earlier look-ups are used again.
 */
static void running_answer(struct cdacq_session *session, uint64_t ip, struct cdacq_method *ret)
{
    bool same = false;
    session_clear_log(session);
    for (unsigned i = 0; i < SESSION_TRIES && !same; i++) {
        if (i)
            session_try_again(session);
        look_up_singly(session, ip, session->target->keep, NULL, ret);
        same = session_check(session);
    }
    if (!same || (ret->answer == CDACQ_ANSWER_ERROR && target_gone(session->target->target)))
        answer_changed(session, ip, ret);
}

static void put(struct cdacq_method *ret, size_t stride, size_t i, const struct cdacq_method *method)
{
    char *element = (char *)ret + i * stride;
    if (stride == sizeof *method) {
        memcpy(element, method, sizeof *method);
        return;
    }
    sized_set_size(element, stride);
    sized_copy(element, method, sizeof *method);
}

/* The answers from `from` on, of a process that has ended. */
static enum cdacq_status end_answers(struct cdacq_session *session, const uint64_t *ips, size_t from, size_t count,
                                     const char *why, struct cdacq_method *ret, size_t stride, struct cdacq_error *err)
{
    struct cdacq_method method;
    answer_changed(session, ips[from], &method);
    keep_error(session, &method);
    for (size_t i = from; i < count; i++) {
        method.ip = ips[i];
        put(ret, stride, i, &method);
    }
    return error_set(err, CDACQ_ERR_IO, 0, "process %d: %s", session->target->target->pid, why);
}

/* Addresses of a running process, and where their answers go. */
struct running_batch {
    const uint64_t *ips;
    bool many;
    struct cdacq_method *ret;
    size_t stride;
    bool failed;                        /* an answer is an error */
    size_t begin, end, fetched;         /* the chunk; the end of what was fetched of it */
    struct method_record *known[CHUNK]; /* of the fetched items: the record that the index had, or NULL */
};

/* Finds the records of the next items. They are seldom in the cache: the processor fetches them all meanwhile. */
static void fetch_known(struct cdacq_session *session, struct running_batch *batch)
{
    uint64_t addresses[RECORD_INDEX_BATCH] = {0};
    size_t count = MIN(batch->end - batch->fetched, (size_t)RECORD_INDEX_BATCH);
    struct method_record **records = &batch->known[batch->fetched - batch->begin];
    for (size_t i = 0; i < count; i++)
        addresses[i] = session_address(session, batch->ips[batch->fetched + i]);
    record_index_find_batch(&session->formed, addresses, count, records);
    for (size_t i = 0; i < count; i++)
        prefetch_record(records[i]);
    batch->fetched += count;
}

static void form_answer(struct cdacq_session *session, void *context, size_t i)
{
    struct running_batch *batch = context;
    struct cdacq_method own, *to = batch->stride == sizeof own ? &batch->ret[i] : &own; /* otherwise: another version */
    if (batch->many && i >= batch->fetched)
        fetch_known(session, batch);
    look_up_singly(session, batch->ips[i], batch->many, batch->many ? batch->known[i - batch->begin] : NULL, to);
    keep_error(session, to);
    batch->failed |= to->answer == CDACQ_ANSWER_ERROR;
    if (to == &own)
        put(batch->ret, batch->stride, i, &own);
}

/* Looks up addresses. IO if the process has ended: the answers that were not checked are errors then. */
static enum cdacq_status running_answers(struct cdacq_session *session, const uint64_t *ips, size_t count,
                                         struct cdacq_method *ret, size_t stride, struct cdacq_error *err)
{
    struct running_batch batch;
    size_t items[CHUNK];
    batch.ips = ips;
    batch.many = count >= MANY;
    batch.ret = ret;
    batch.stride = stride;
    for (size_t from = 0; from < count; from += CHUNK) {
        size_t n = MIN(count - from, (size_t)CHUNK);
        for (size_t i = 0; i < n; i++)
            items[i] = from + i;
        batch.failed = false;
        batch.begin = batch.fetched = from;
        batch.end = from + n;
        size_t changed = session_form_items(session, form_answer, &batch, items, n);
        const char *gone = changed || batch.failed ? target_gone(session->target->target) : NULL;
        if (gone)
            return end_answers(session, ips, from, count, gone, ret, stride, err);
        for (size_t i = 0; i < changed; i++) {
            struct cdacq_method method;
            answer_changed(session, ips[items[i]], &method);
            keep_error(session, &method);
            put(ret, stride, items[i], &method);
        }
    }
    return CDACQ_OK;
}

/* Forms the record of a part unless it exists. `context`: the index of its range. */
static void form_record(struct cdacq_session *session, void *context, size_t i)
{
    size_t index = *(const size_t *)context;
    struct session_range *range = &session->ranges[index];
    const struct block_part *part = &range->table->items[i];
    struct method_record **slot = &range->records[i];
    struct cdacq_method method;
    uint64_t begin = session->map->ranges[index].section.begin + part->begin;
    if ((part->kind != PART_HOT && part->kind != PART_COLD) || (*slot && !(*slot)->is_void))
        return;
    *slot = walk(session, begin, &method);
    if (!*slot && method.answer != CDACQ_ANSWER_ERROR)
        error_set(&session->error, CDACQ_NOT_MANAGED, begin, "%s", cdacq_status_text(CDACQ_NOT_MANAGED));
}

void session_prepare_records(struct cdacq_session *session, size_t index, size_t from, size_t to, const bool *wanted)
{
    struct session_range *range = &session->ranges[index];
    struct cdacq_method method;
    size_t parts[SESSION_AT_ONCE], count = 0;
    for (size_t i = from; i < to && count < SESSION_AT_ONCE; i++)
        if (!wanted || wanted[i - from])
            parts[count++] = i;
    count = session_form_items(session, form_record, &index, parts, count);
    for (size_t i = 0; i < count; i++) {
        range->records[parts[i]] = NULL;
        answer_changed(session, session->map->ranges[index].section.begin + range->table->items[parts[i]].begin,
                       &method);
    }
}

bool session_confirms(struct cdacq_session *session, const struct cdacq_method *method)
{
    struct cdacq_method found;
    const struct method_record *record = walk(session, method->code_start, &found);
    return session_check(session) && record && found.name == method->name && found.code_start == method->code_start &&
           found.code_size == method->code_size && found.method_desc == method->method_desc;
}

enum cdacq_status cdacq_session_method_at(struct cdacq_session *session, uint64_t ip, struct cdacq_method *ret,
                                          struct cdacq_error *err)
{
    struct cdacq_method method;
    enum cdacq_status status = sized_check(ret, "struct cdacq_method", err);
    if (status < 0)
        return status;
    session_begin_question(session);
    if (session_is_running(session))
        running_answer(session, ip, &method);
    else
        look_up(session, ip, false, &method);
    if (method.answer == CDACQ_ANSWER_ERROR) {
        if (err)
            *err = session->error;
        return session->error.status;
    }
    sized_copy(ret, &method, sizeof method);
    return method.answer == CDACQ_ANSWER_MANAGED ? CDACQ_OK : CDACQ_NOT_MANAGED;
}

/* Looks up one address. The text of a failure is valid until the scratch arena is emptied. */
static void answer_one(struct cdacq_session *session, uint64_t ip, bool batch, struct cdacq_method *ret)
{
    if (session_is_running(session))
        running_answer(session, ip, ret);
    else
        look_up(session, ip, batch, ret);
    keep_error(session, ret);
}

const struct method_record *session_find_record(struct cdacq_session *session, uint64_t ip, struct cdacq_method *ret)
{
    session->answered = NULL;
    session_answer(session, ip, ret);
    return ret->answer == CDACQ_ANSWER_MANAGED ? session->answered : NULL;
}

void session_answer(struct cdacq_session *session, uint64_t ip, struct cdacq_method *ret)
{
    arena_deinit(&session->scratch);
    answer_one(session, ip, false, ret);
}

/*
 * Finds the records of addresses in the indexes that exist, and NULL for the others. Records are seldom in the cache:
 * the processor fetches them all while it looks for the next.
 */
static void fetch_records(struct cdacq_session *session, const uint64_t *ips, size_t count,
                          struct method_record **records)
{
    struct code_search searches[FETCHED];
    const struct session_range *ranges[FETCHED];
    struct method_record **slots[FETCHED];
    bool usable = session->map && !session_is_running(session) && !session->target->target->recording;
    for (size_t i = 0; i < count; i++) {
        uint64_t address = session_address(session, ips[i]);
        size_t index = usable ? find_range(session, address) : SIZE_MAX;
        const struct session_range *range = index != SIZE_MAX ? &session->ranges[index] : NULL;
        uint64_t begin = range ? session->map->ranges[index].section.begin : 0;
        bool searched =
            range && range->table && session->map->ranges[index].section.whole && address - begin <= UINT32_MAX;
        ranges[i] = range;
        searches[i] = (struct code_search){.parts = searched ? range->table->items : NULL,
                                           .count = searched ? range->table->count : 0,
                                           .relative = (uint32_t)(address - begin)};
    }
    code_search_all(searches, count);
    for (size_t i = 0; i < count; i++) {
        const struct block_part *part = searches[i].parts;
        slots[i] = part && part->kind != PART_STUB && part->kind != PART_UNKNOWN
                       ? &ranges[i]->records[part - ranges[i]->table->items]
                       : NULL;
        __builtin_prefetch(slots[i]);
    }
    for (size_t i = 0; i < count; i++) {
        records[i] = slots[i] ? *slots[i] : NULL;
        prefetch_record(records[i]);
    }
}

/* Puts the answer for an address into its place, from its record if that is complete. */
static void put_answer(struct cdacq_session *session, uint64_t ip, bool batch, struct method_record *record,
                       struct cdacq_method *ret, size_t stride, size_t i)
{
    struct cdacq_method own, *to = stride == sizeof own ? &ret[i] : &own; /* otherwise: another version */
    if (record && record->has_il_map) {
        answer_from(session, record, NULL, session_address(session, ip), to);
        to->ip = ip;
    } else {
        answer_one(session, ip, batch, to);
    }
    if (to == &own)
        put(ret, stride, i, &own);
}

enum cdacq_status cdacq_session_methods_at(struct cdacq_session *session, const uint64_t *ips, size_t count,
                                           struct cdacq_method *ret, struct cdacq_error *err)
{
    enum cdacq_status status = count ? sized_check(ret, "struct cdacq_method", err) : CDACQ_OK;
    if (status < 0)
        return status;
    size_t stride = count ? ret->size : 0;
    arena_deinit(&session->scratch);
    session_begin_question(session);
    if (session_is_running(session))
        return running_answers(session, ips, count, ret, stride, err);
    for (size_t from = 0; from < count; from += FETCHED) {
        struct method_record *records[FETCHED];
        size_t n = MIN(count - from, (size_t)FETCHED);
        fetch_records(session, ips + from, n, records);
        for (size_t i = 0; i < n; i++)
            put_answer(session, ips[from + i], count >= MANY, records[i], ret, stride, from + i);
    }
    return CDACQ_OK;
}
