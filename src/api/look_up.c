/*
 * look_up.c: finds the method that owns an address. The first look-ups walk the runtime's structures, which reads
 * little. If a range is used repeatedly, its methods are indexed.
 */
#include "src/api/session.h"
#include "src/api/source_lines.h"
#include "util/sized.h"

enum {
    WALKS_BEFORE_INDEX = 16, /* indexing a range costs about as much as this many look-ups that touch new pages */
    PARTS_OF_A_WALK = 32,    /* parts of a table that take about as long to build as one look-up */
    SMALL_TABLE = WALKS_BEFORE_INDEX * PARTS_OF_A_WALK, /* parts: it is built at once for a batch */
};

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
    size_t i = (size_t)(part - range->table->items);
    struct method_record **slot = &range->records[i];
    struct code_block block;
    if (session_is_running(session) && (!*slot || (*slot)->is_void))
        session_prepare_records(session, index, i, i + 1, NULL);
    if (*slot || session_is_running(session))
        return *slot;
    if (!part_block(session, index, part, &block)) {
        reader_status(&session->reader.raw, &session->error);
        return NULL;
    }
    block.unverified |= reader_unverified(&session->reader.raw);
    struct method_record **walked = walked_records_find(&session->walked, (struct walked_key){block.start, block.cold});
    *slot = walked ? *walked : session_make_record(session, &block);
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
    struct method_record *record = session_make_record(session, block);
    if (record && known)
        return *known = record;
    if (record && !walked_records_insert(&session->walked, record, NULL)) {
        error_set(&session->error, CDACQ_ERR_NOMEM, 0, "out of memory");
        return NULL;
    }
    return record;
}

void session_answer_from(struct cdacq_session *session, struct method_record *record, const struct code_block *block,
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
        session_answer_from(session, record, &block, address, ret);
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
 * Whether a look-up finds the method at its last address, too. If so, no other method begins within it, and its record
 * answers all of its addresses. The reads of this look-up are checked together with the answer that needs it.
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

bool session_look_up_singly(struct cdacq_session *session, uint64_t ip, bool many, struct method_record *known,
                            struct cdacq_method *ret)
{
    uint64_t address = session_address(session, ip);
    struct method_record *record = known;
    if (many && !is_record_of(session, record, address)) {
        record = record_index_find(&session->formed, address); /* an earlier item may have formed it */
        record = is_record_of(session, record, address) ? record : NULL;
    }
    if (record) {
        session_answer_from(session, record, NULL, address, ret);
        ret->ip = ip;
        return false;
    }
    record = walk(session, ip, ret);
    if (many && record)
        (void)record_index_add(&session->formed,
                               record->method.cold ? record->method.cold_start : record->method.code_start, record);
    return true;
}

/* Whether a range is a list of stubs whose table has exactly the used part, so that nothing is after it. */
static bool is_past_stubs(const struct cdacq_session *session, size_t index)
{
    const struct code_range *range = &session->map->ranges[index];
    return range->manager->method_kind == CDACQ_CODE_UNKNOWN && !session_is_running(session) &&
           range->section.end - range->section.begin <= UINT32_MAX;
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
    size_t index = session_find_range(session, address);
    if (index == SIZE_MAX) {
        if (session->map->left_out || address == session->target->manager.the_pre_stub)
            (void)walk(session, ip, ret); /* it may be in a range that was left out, or in ThePreStub, of no range */
        else
            answer_none(ip, ret);
        return;
    }
    struct session_range *range = &session->ranges[index];
    if (!session->map->ranges[index].section.whole) { /* a look-up may find nothing at some of its addresses */
        (void)walk(session, ip, ret);
        return;
    }
    if (!range->table && (range->no_table || !table_pays(session, index, batch) || !session_table(session, index))) {
        bool large = range->table_price > SMALL_TABLE; /* it takes many look-ups until there is a table */
        range->spent += session_look_up_singly(session, ip, many && large, NULL, ret) ? PARTS_OF_A_WALK : 1;
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
        session_answer_from(session, record, has_block ? &block : NULL, address, ret);
        ret->ip = ip;
    } else {
        answer_error(session, ip, ret);
    }
}

void session_answer_changed(struct cdacq_session *session, uint64_t ip, struct cdacq_method *ret)
{
    const char *gone = target_gone(session->target->target);
    error_set(&session->error, gone ? CDACQ_ERR_IO : CDACQ_ERR_CHANGED, ip, "%s",
              gone ? gone : cdacq_status_text(CDACQ_ERR_CHANGED));
    answer_error(session, ip, ret);
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
        session_look_up_singly(session, ip, session->target->keep, NULL, ret);
        same = session_check(session);
    }
    if (!same || (ret->answer == CDACQ_ANSWER_ERROR && target_gone(session->target->target)))
        session_answer_changed(session, ip, ret);
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
        session_answer_changed(session, session->map->ranges[index].section.begin + range->table->items[parts[i]].begin,
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

void session_keep_error(struct cdacq_session *session, struct cdacq_method *method)
{
    if (method->answer != CDACQ_ANSWER_ERROR)
        return;
    const char *text = arena_string(&session->scratch, session->error.message, strlen(session->error.message));
    method->error = text ? text : "out of memory";
}

void session_answer_one(struct cdacq_session *session, uint64_t ip, bool batch, struct cdacq_method *ret)
{
    if (session_is_running(session))
        running_answer(session, ip, ret);
    else
        look_up(session, ip, batch, ret);
    session_keep_error(session, ret);
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
    session_answer_one(session, ip, false, ret);
}
