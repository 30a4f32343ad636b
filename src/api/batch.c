/*
 * batch.c: looks up many addresses in one call. Their records and indexes are seldom in the processor's cache, so they
 * are fetched for several addresses together. Answers about a running process are checked hundreds at a time.
 */
#include "src/api/session.h"
#include "util/sized.h"

enum {
    MANY = 32,    /* addresses: a call with so many or more uses indexes */
    CHUNK = 1024, /* addresses of a running process whose answers are checked together */
    FETCHED = 32, /* records that are on their way to the cache together */
    AHEAD = 16,   /* the record of the item that comes this many later is fetched */
};

/* The caller's array. The struct of another version of its header has another size. */
struct answer_array {
    struct cdacq_method *items;
    size_t stride;
};

static void put(struct answer_array answers, size_t i, const struct cdacq_method *method)
{
    char *element = (char *)answers.items + i * answers.stride;
    if (answers.stride == sizeof *method) {
        memcpy(element, method, sizeof *method);
        return;
    }
    sized_set_size(element, answers.stride);
    sized_copy(element, method, sizeof *method);
}

/* Has the processor fetch a record. Does nothing for NULL. */
static inline void prefetch_record(const struct method_record *record)
{
    for (size_t at = 0; record && at < sizeof *record; at += LINE_SIZE)
        __builtin_prefetch((const char *)record + at);
}

/* Makes the answers from `from` on errors: the process has ended. */
static void end_answers(struct cdacq_session *session, const uint64_t *ips, size_t from, size_t count,
                        struct answer_array ret)
{
    struct cdacq_method method;
    session_answer_changed(session, ips[from], &method);
    session_keep_error(session, &method);
    for (size_t i = from; i < count; i++) {
        method.ip = ips[i];
        put(ret, i, &method);
    }
}

/* Addresses in a running process, and the array for their answers. */
struct running_batch {
    const uint64_t *ips;
    bool many;
    struct answer_array ret;
    bool failed;                        /* an answer is an error */
    size_t begin, end;                  /* the chunk */
    struct method_record *known[CHUNK]; /* of its items: the record that the index has, or NULL */
};

/* Finds the records that the index has for the chunk. */
static void find_known(struct cdacq_session *session, struct running_batch *batch)
{
    if (!batch->many) {
        memset(batch->known, 0, (batch->end - batch->begin) * sizeof *batch->known);
        return;
    }
    for (size_t from = batch->begin, count; from < batch->end; from += count) {
        uint64_t addresses[RECORD_INDEX_BATCH] = {0};
        count = MIN(batch->end - from, (size_t)RECORD_INDEX_BATCH);
        for (size_t i = 0; i < count; i++)
            addresses[i] = session_address(session, batch->ips[from + i]);
        record_index_find_batch(&session->formed, addresses, count, &batch->known[from - batch->begin]);
    }
}

/* An item whose record has to be formed. */
struct new_item {
    uint64_t ip;
    size_t item;
};

static int compare_new_items(const void *a, const void *b)
{
    const struct new_item *x = a, *y = b;
    return x->ip < y->ip ? -1 : x->ip > y->ip;
}

/*
 * Lists the items of the chunk: those with a record, then the others by address, because methods that are near each
 * other rest on the same memory.
 */
static void list_items(const struct running_batch *batch, size_t *ret)
{
    struct new_item items[CHUNK];
    size_t count = 0;
    for (size_t i = batch->begin; i < batch->end; i++)
        if (batch->known[i - batch->begin])
            *ret++ = i;
        else
            items[count++] = (struct new_item){batch->ips[i], i};
    qsort(items, count, sizeof *items, compare_new_items);
    for (size_t i = 0; i < count; i++)
        *ret++ = items[i].item;
}

static void form_answer(struct cdacq_session *session, void *context, size_t i)
{
    struct running_batch *batch = context;
    struct cdacq_method own, *to = batch->ret.stride == sizeof own ? &batch->ret.items[i] : &own;
    prefetch_record(i + AHEAD < batch->end ? batch->known[i + AHEAD - batch->begin] : NULL);
    session_look_up_singly(session, batch->ips[i], batch->many, batch->known[i - batch->begin], to);
    session_keep_error(session, to);
    batch->failed |= to->answer == CDACQ_ANSWER_ERROR;
    if (to == &own)
        put(batch->ret, i, &own);
}

/* Looks up addresses. IO if the process has ended: the answers that were not checked are errors then. */
static enum cdacq_status running_answers(struct cdacq_session *session, const uint64_t *ips, size_t count,
                                         struct answer_array ret, struct cdacq_error *err)
{
    struct running_batch batch;
    size_t items[CHUNK];
    batch.ips = ips;
    batch.many = count >= MANY;
    batch.ret = ret;
    for (size_t from = 0; from < count; from += CHUNK) {
        size_t n = MIN(count - from, (size_t)CHUNK);
        batch.failed = false;
        batch.begin = from;
        batch.end = from + n;
        find_known(session, &batch);
        list_items(&batch, items);
        size_t changed = session_form_items(session, form_answer, &batch, items, n);
        if ((changed || batch.failed) && target_check_gone(session->target->target, 0, err) < 0) {
            end_answers(session, ips, from, count, ret);
            return CDACQ_ERR_IO;
        }
        for (size_t i = 0; i < changed; i++) {
            struct cdacq_method method;
            session_answer_changed(session, ips[items[i]], &method);
            session_keep_error(session, &method);
            put(ret, items[i], &method);
        }
    }
    return CDACQ_OK;
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
        size_t index = usable ? session_find_range(session, address) : SIZE_MAX;
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
                       struct answer_array ret, size_t i)
{
    struct cdacq_method own, *to = ret.stride == sizeof own ? &ret.items[i] : &own;
    if (record && record->has_il_map) {
        session_answer_from(session, record, NULL, session_address(session, ip), to);
        to->ip = ip;
    } else {
        session_answer_one(session, ip, batch, to);
    }
    if (to == &own)
        put(ret, i, &own);
}

enum cdacq_status cdacq_session_methods_at(struct cdacq_session *session, const uint64_t *ips, size_t count,
                                           struct cdacq_method *ret, struct cdacq_error *err)
{
    enum cdacq_status status = count ? sized_check(ret, "struct cdacq_method", err) : CDACQ_OK;
    if (status < 0)
        return status;
    struct answer_array answers = {.items = ret, .stride = count ? ret->size : 0};
    arena_deinit(&session->scratch);
    session_begin_question(session);
    if (session_is_running(session))
        return running_answers(session, ips, count, answers, err);
    for (size_t from = 0; from < count; from += FETCHED) {
        struct method_record *records[FETCHED];
        size_t n = MIN(count - from, (size_t)FETCHED);
        fetch_records(session, ips + from, n, records);
        for (size_t i = 0; i < n; i++)
            put_answer(session, ips[from + i], count >= MANY, records[i], answers, from + i);
    }
    return CDACQ_OK;
}
