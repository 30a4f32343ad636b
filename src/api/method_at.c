/*
 * method_at.c: the calls that look addresses up, one or many. Their records and indexes are seldom in the processor's
 * cache, so they are fetched for several addresses together. Answers about a running process are confirmed hundreds at
 * a time.
 */
#include "contracts/execution_manager/code_map.h"
#include "contracts/execution_manager/jit_manager.h"
#include "src/lookup/answer.h"
#include "src/lookup/find.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/index.h"
#include "src/lookup/opened_target.h"
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

/* The answer for an address that the process changed each time, or for one of a process that is gone. */
static void answer_changed(struct resolver *resolver, uint64_t ip, struct cdacq_method *ret)
{
    struct resolution changed;
    resolver_fail_changed(resolver, ip, &changed);
    answer_fill(resolver, &changed, ip, ret);
    answer_keep_error(resolver, ret);
}

/* Makes the answers from `from` on errors: the process has ended. */
static void end_answers(struct resolver *resolver, const uint64_t *ips, size_t from, size_t count,
                        struct answer_array ret)
{
    struct cdacq_method method;
    answer_changed(resolver, ips[from], &method);
    for (size_t i = from; i < count; i++) {
        method.ip = ips[i];
        put(ret, i, &method);
    }
}

/* Addresses in a running process, and the array for their answers. */
struct running_batch {
    struct resolver *resolver;
    const uint64_t *ips;
    bool many;
    struct answer_array ret;
    bool failed;                        /* an answer is an error */
    size_t begin, end;                  /* the chunk */
    struct method_record *known[CHUNK]; /* of its items: the record that the index has, or NULL */
};

/* Finds the records that the index has for the chunk. */
static void find_known(struct running_batch *batch)
{
    if (!batch->many) {
        memset(batch->known, 0, (batch->end - batch->begin) * sizeof *batch->known);
        return;
    }
    for (size_t from = batch->begin, count; from < batch->end; from += count) {
        uint64_t addresses[RECORD_INDEX_BATCH] = {0};
        count = MIN(batch->end - from, (size_t)RECORD_INDEX_BATCH);
        for (size_t i = 0; i < count; i++)
            addresses[i] = resolver_address(batch->resolver, batch->ips[from + i]);
        record_index_find_batch(&batch->resolver->records.formed, addresses, count, &batch->known[from - batch->begin]);
    }
}

/* An item whose record has to be formed. */
struct new_item {
    uint64_t ip;
    size_t item;
};

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
    sort_u64(items, count, sizeof *items);
    for (size_t i = 0; i < count; i++)
        *ret++ = items[i].item;
}

static void form_answer(void *context, size_t i)
{
    struct running_batch *batch = context;
    struct resolution found;
    struct cdacq_method own, *to = batch->ret.stride == sizeof own ? &batch->ret.items[i] : &own;
    prefetch_record(i + AHEAD < batch->end ? batch->known[i + AHEAD - batch->begin] : NULL);
    resolver_find_singly(batch->resolver, batch->ips[i], batch->many, batch->known[i - batch->begin], &found);
    answer_fill(batch->resolver, &found, batch->ips[i], to);
    answer_keep_error(batch->resolver, to);
    batch->failed |= to->answer == CDACQ_ANSWER_ERROR;
    if (to == &own)
        put(batch->ret, i, &own);
}

/* Looks up addresses. IO if the process has ended: the answers that were not checked are errors then. */
static enum cdacq_status running_answers(struct resolver *resolver, const uint64_t *ips, size_t count,
                                         struct answer_array ret, struct cdacq_error *err)
{
    struct running_batch batch;
    size_t items[CHUNK];
    batch.resolver = resolver;
    batch.ips = ips;
    batch.many = count >= MANY;
    batch.ret = ret;
    for (size_t from = 0; from < count; from += CHUNK) {
        size_t n = MIN(count - from, (size_t)CHUNK);
        batch.failed = false;
        batch.begin = from;
        batch.end = from + n;
        find_known(&batch);
        list_items(&batch, items);
        size_t changed = epoch_form_items(&resolver->epoch, form_answer, &batch, items, n);
        if ((changed || batch.failed) && target_check_gone(resolver->target->memory, 0, err) < 0) {
            end_answers(resolver, ips, from, count, ret);
            return CDACQ_ERR_IO;
        }
        for (size_t i = 0; i < changed; i++) {
            struct cdacq_method method;
            answer_changed(resolver, ips[items[i]], &method);
            put(ret, items[i], &method);
        }
    }
    return CDACQ_OK;
}

/*
 * Finds the records of addresses in the indexes that exist, and NULL for the others. Records are seldom in the cache:
 * the processor fetches them all while it looks for the next.
 */
static void fetch_records(struct resolver *resolver, const uint64_t *ips, size_t count, struct method_record **records)
{
    struct code_search searches[FETCHED];
    const struct code_index *index = &resolver->index;
    const struct index_range *ranges[FETCHED];
    struct method_record **slots[FETCHED];
    bool usable = index->map && !resolver_is_running(resolver) && !resolver->target->memory->recording;
    for (size_t i = 0; i < count; i++) {
        uint64_t address = resolver_address(resolver, ips[i]);
        size_t at = usable ? resolver_find_range(resolver, address) : SIZE_MAX;
        const struct index_range *range = at != SIZE_MAX ? &index->ranges[at] : NULL;
        uint64_t begin = range ? index->map->ranges[at].section.begin : 0;
        bool searched = range && range->table && index->map->ranges[at].section.whole && address - begin <= UINT32_MAX;
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
static void put_answer(struct resolver *resolver, uint64_t ip, bool batch, struct method_record *record,
                       struct answer_array ret, size_t i)
{
    struct cdacq_method own, *to = ret.stride == sizeof own ? &ret.items[i] : &own;
    struct resolution found = {.kind = RESOLVED_METHOD, .record = record};
    if (!record || !record->has_il_map)
        resolver_find(resolver, ip, batch, &found);
    answer_fill(resolver, &found, ip, to);
    answer_keep_error(resolver, to);
    if (to == &own)
        put(ret, i, &own);
}

/* The answers of one runtime, whose epoch has begun. */
static enum cdacq_status answer_own(struct resolver *resolver, const uint64_t *ips, size_t count,
                                    struct answer_array answers, struct cdacq_error *err)
{
    if (resolver_is_running(resolver))
        return running_answers(resolver, ips, count, answers, err);
    for (size_t from = 0; from < count; from += FETCHED) {
        struct method_record *records[FETCHED];
        size_t n = MIN(count - from, (size_t)FETCHED);
        fetch_records(resolver, ips + from, n, records);
        for (size_t i = 0; i < n; i++)
            put_answer(resolver, ips[from + i], count >= MANY, records[i], answers, from + i);
    }
    return CDACQ_OK;
}

static const struct cdacq_method *answer_at(struct answer_array answers, size_t i)
{
    return (const void *)((const char *)answers.items + i * answers.stride);
}

/* Asks another session for up to CHUNK addresses from `from` that the answers so far leave open. Returns their end. */
static size_t ask_other(struct cdacq_session *other, const uint64_t *ips, size_t from, size_t count,
                        struct answer_array ret, enum cdacq_status *status, struct cdacq_error *err)
{
    uint64_t open[CHUNK];
    size_t items[CHUNK], n = 0;
    for (; from < count && n < CHUNK; from++)
        if (answer_is_open(answer_at(ret, from)->answer)) {
            open[n] = ips[from];
            items[n++] = from;
        }
    struct cdacq_method *found = n ? malloc(n * sizeof *found) : NULL;
    if (!found) {
        *status = n ? error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory") : CDACQ_OK;
        return from;
    }
    *status = answer_own(&other->resolver, open, n, (struct answer_array){found, sizeof *found}, err);
    for (size_t i = 0; i < n && *status >= 0; i++)
        if (answer_is_better(answer_at(ret, items[i]), &found[i]))
            put(ret, items[i], &found[i]);
    free(found);
    return from;
}

enum cdacq_status cdacq_session_method_at(struct cdacq_session *session, uint64_t ip, struct cdacq_method *ret,
                                          struct cdacq_error *err)
{
    struct cdacq_method method;
    struct resolution found;
    enum cdacq_status status = sized_check(ret, "struct cdacq_method", err);
    if (status < 0)
        return status;
    resolver_begin(&session->resolver);
    resolver_find(&session->resolver, ip, false, &found);
    answer_fill(&session->resolver, &found, ip, &method);
    const struct cdacq_session *answering = session_ask_others(session, &method);
    if (method.answer == CDACQ_ANSWER_ERROR) {
        if (err)
            *err = answering->resolver.error;
        return answering->resolver.error.status;
    }
    sized_copy(ret, &method, sizeof method);
    return method.answer == CDACQ_ANSWER_MANAGED ? CDACQ_OK : CDACQ_NOT_MANAGED;
}

enum cdacq_status cdacq_session_methods_at(struct cdacq_session *session, const uint64_t *ips, size_t count,
                                           struct cdacq_method *ret, struct cdacq_error *err)
{
    enum cdacq_status status = count ? sized_check(ret, "struct cdacq_method", err) : CDACQ_OK;
    if (status < 0)
        return status;
    struct answer_array answers = {.items = ret, .stride = count ? ret->size : 0};
    bool says_which = answers.stride >= offsetof(struct cdacq_method, kind); /* the caller's struct has room for it */
    struct cdacq_session *other;
    arena_deinit(&session->resolver.failure_texts);
    resolver_begin(&session->resolver);
    status = answer_own(&session->resolver, ips, count, answers, err);
    for (unsigned next = 0; status >= 0 && says_which && (other = session_next_other(session, &next));) {
        arena_deinit(&other->resolver.failure_texts);
        resolver_begin(&other->resolver);
        for (size_t from = 0; from < count && status >= 0;)
            from = ask_other(other, ips, from, count, answers, &status, err);
    }
    return status;
}
