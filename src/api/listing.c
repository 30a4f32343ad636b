/*
 * listing.c: visits every method of a process, and its code ranges.
 */
#include <inttypes.h>
#include <stdio.h>

#include "src/api/listing.h"
#include "contracts/execution_manager/code_block.h"
#include "contracts/execution_manager/code_map.h"
#include "src/lookup/answer.h"
#include "src/lookup/find.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/index.h"
#include "src/lookup/opened_target.h"
#include "util/error.h"
#include "util/text.h"

enum { STEPS_OF_ELEMENT = 8 }; /* units of work for each element, in addition to those for its reads */

/* What a listing could not read. */
struct missing {
    size_t images; /* whose maps of entry points cannot be read: which of their methods are prepared is not known */
    uint64_t last_image; /* the begin of the last one */
    bool any_part;       /* that cannot be read, or is said to be freed: the process may be gone */
};

struct visit {
    struct cdacq_session *session;
    struct missing *missing;
    unsigned flags;
    const struct listing_filter *filter; /* NULL: all parts are visited */
    int (*visit)(const struct cdacq_method *method, void *context);
    void *context;
};

static enum cdacq_status stopped(int result)
{
    return result ? CDACQ_STOPPED : CDACQ_OK;
}

/* Reports an element. Its texts count as work: a core chooses how long they are, and how many methods share them. */
static enum cdacq_status visit_element(const struct visit *visit, const struct cdacq_method *method)
{
    size_t length = method->name_length + (method->module ? strlen(method->module) : 0);
    (void)work_take_text(&visit->session->resolver.target->memory->work, length); /* the next element finds out */
    return stopped(visit->visit(method, visit->context));
}

/* Reports a range, or a part of one, that cannot be read. */
static enum cdacq_status visit_failure(const struct visit *visit, uint64_t begin, uint64_t end)
{
    struct cdacq_method method = {
        .size = sizeof method,
        .ip = begin,
        .answer = CDACQ_ANSWER_ERROR,
        .code_start = begin,
        .code_size = end - begin,
        .il_offset = CDACQ_OFFSET_UNKNOWN,
        .module_verified = true,
        .error = visit->session->resolver.error.message,
    };
    visit->missing->any_part = true;
    return stopped(visit->visit(&method, visit->context));
}

/* A part that a running process has freed. */
static enum cdacq_status leave_freed(const struct visit *visit)
{
    visit->missing->any_part = true;
    return CDACQ_OK;
}

/* Reports stubs: one element for a block or a whole range list. */
static enum cdacq_status visit_stub(const struct visit *visit, uint64_t begin, uint64_t end)
{
    struct cdacq_method method;
    if (!(visit->flags & CDACQ_VISIT_STUBS))
        return CDACQ_OK;
    answer_find(&visit->session->resolver, begin, &method);
    method.code_start = begin;
    method.code_size = end - begin;
    return stopped(visit->visit(&method, visit->context));
}

/* A block that the index does not know enough about: looks up its start. */
static enum cdacq_status visit_unknown(const struct visit *visit, uint64_t begin, uint64_t end)
{
    struct cdacq_method method;
    answer_find(&visit->session->resolver, begin, &method);
    if (method.answer == CDACQ_ANSWER_NONE)
        return resolver_is_running(&visit->session->resolver) ? leave_freed(visit) : CDACQ_OK;
    if (method.answer == CDACQ_ANSWER_ERROR)
        return visit_failure(visit, begin, end);
    if (method.answer == CDACQ_ANSWER_STUB && !(visit->flags & CDACQ_VISIT_STUBS))
        return CDACQ_OK;
    return visit_element(visit, &method);
}

/* Whether no method of the range is visited. */
static bool is_left_out(const struct visit *visit, const struct code_range *range)
{
    return range->manager->in_images && visit->flags & CDACQ_VISIT_R2R_NONE;
}

static void note_unknown(const struct visit *visit, const struct code_range *range)
{
    struct missing *missing = visit->missing;
    missing->images += missing->last_image != range->section.begin;
    missing->last_image = range->section.begin;
}

/*
 * Whether a part is code of an image that the runtime is not known to have prepared. Naming it takes most of the time.
 */
static bool is_unprepared(const struct visit *visit, const struct code_range *range, const struct block_part *part)
{
    struct cdacq_session *session = visit->session;
    struct code_block block;
    if (!range->manager->in_images || visit->flags & CDACQ_VISIT_R2R_ALL || part->kind != PART_HOT)
        return false;
    struct read_log *log = reader_log(&session->resolver.reader, NULL); /* no answer rests on it */
    reader_begin(&session->resolver.reader, FUEL_LOOKUP);
    bool found = code_map_block(&session->resolver.target->manager, &session->resolver.reader, range, part, &block);
    reader_log(&session->resolver.reader, log);
    if (found && block.prepared_unknown)
        note_unknown(visit, range);
    return found && !block.method_desc;
}

static enum cdacq_status visit_part(const struct visit *visit, size_t index, const struct block_part *part)
{
    const struct code_range *range = &visit->session->resolver.index.map->ranges[index];
    uint64_t base = range->section.begin;
    struct cdacq_method method = {.answer = CDACQ_ANSWER_MANAGED};
    if (part->kind == PART_COLD || (part->kind != PART_STUB && is_left_out(visit, range)))
        return CDACQ_OK; /* a cold part is reported with its hot part */

    /* In a section that is not whole, a look-up may find nothing. */
    if (!range->section.whole)
        answer_find(&visit->session->resolver, base + part->begin, &method);
    if (method.answer == CDACQ_ANSWER_NONE)
        return CDACQ_OK;
    if (method.answer == CDACQ_ANSWER_ERROR)
        return visit_failure(visit, base + part->begin, base + part->end);
    if (part->kind == PART_STUB)
        return visit_stub(visit, base + part->begin, base + part->end);
    if (part->kind == PART_UNKNOWN)
        return visit_unknown(visit, base + part->begin, base + part->end);
    if (!resolver_is_running(&visit->session->resolver) && !visit->session->resolver.target->memory->recording &&
        is_unprepared(visit, range, part))
        return CDACQ_OK;
    const struct method_record *record = resolver_record(&visit->session->resolver, index, part);
    if (!record && visit->session->resolver.error.status == CDACQ_NOT_MANAGED)
        return leave_freed(visit);
    if (!record)
        return visit_failure(visit, base + part->begin, base + part->end);
    if (record->method.code_start != base + part->begin)
        return CDACQ_OK; /* a later part of the same method */
    if (range->manager->in_images && !record->method.method_desc && !(visit->flags & CDACQ_VISIT_R2R_ALL)) {
        if (record->prepared_unknown)
            note_unknown(visit, range);
        return CDACQ_OK;
    }
    answer_fill_record(record, record->method.code_start, &method);
    return visit_element(visit, &method);
}

/* Reads the records of parts of a running process: from `from` up to `to`, unless the filter does not want them. */
static void prepare(const struct visit *visit, size_t index, const struct code_table *table, size_t from, size_t to,
                    bool wanted[RESOLVER_AT_ONCE])
{
    const struct code_range *range = &visit->session->resolver.index.map->ranges[index];
    const struct listing_filter *filter = visit->filter;
    if (is_left_out(visit, range)) {
        memset(wanted, true, to - from);
        return;
    }
    for (size_t i = from; i < to; i++) {
        uint64_t begin = range->section.begin + table->items[i].begin;
        wanted[i - from] =
            (!filter || filter->wants(filter->context, range, begin)) && !is_unprepared(visit, range, &table->items[i]);
    }
    resolver_prepare_records(&visit->session->resolver, index, from, to, wanted);
}

static enum cdacq_status visit_range(const struct visit *visit, size_t index)
{
    struct cdacq_session *session = visit->session;
    const struct code_range *range = &session->resolver.index.map->ranges[index];
    bool wanted[RESOLVER_AT_ONCE];
    /* ReadyToRun images also hold stubs. */
    if (is_left_out(visit, range) && !(visit->flags & CDACQ_VISIT_STUBS))
        return CDACQ_OK;
    struct index_range *table = resolver_table(&session->resolver, index);
    if (!table) {
        if (resolver_table_error(&session->resolver, index, &session->resolver.error) == CDACQ_NOT_MANAGED)
            return leave_freed(visit);
        if (resolver_gave_up(&session->resolver, &session->resolver.error))
            return CDACQ_ERR_FUEL;
        return visit_failure(visit, range->section.begin, range->section.end);
    }
    enum cdacq_status status = CDACQ_OK;
    size_t count = table->table->count;
    for (size_t i = 0; i < count && status == CDACQ_OK; i++) {
        work_add_steps(&session->resolver.target->memory->work, STEPS_OF_ELEMENT);
        if (resolver_gave_up(&session->resolver, &session->resolver.error))
            return CDACQ_ERR_FUEL;
        if (resolver_is_running(&session->resolver) && i % RESOLVER_AT_ONCE == 0)
            prepare(visit, index, table->table, i, MIN(i + RESOLVER_AT_ONCE, count), wanted);
        if (!resolver_is_running(&session->resolver) || wanted[i % RESOLVER_AT_ONCE])
            status = visit_part(visit, index, &table->table->items[i]);
    }
    return status;
}

enum cdacq_status listing_report_left_out(const struct code_map *map, struct cdacq_error *err)
{
    return error_set(err, CDACQ_ERR_MEMORY, 0,
                     "there may be more code: %zu part%s of the range section map %s missing or damaged", map->left_out,
                     plural(map->left_out), map->left_out == 1 ? "is" : "are");
}

/* Reports that not all ranges, or not all prepared methods of images, are known. */
static void report_missing(const struct code_map *map, const struct missing *missing, struct cdacq_error *err)
{
    static const char text[] = "images whose maps of prepared methods cannot be read: ";
    if (!map->left_out) {
        error_set(err, CDACQ_ERR_MEMORY, 0, "there may be more prepared methods: %s%zu", text, missing->images);
        return;
    }
    listing_report_left_out(map, err);
    size_t length = strlen(err->message);
    if (missing->images)
        snprintf(err->message + length, sizeof err->message - length, "; %s%zu", text, missing->images);
}

enum cdacq_status session_visit_methods(struct cdacq_session *session, unsigned flags,
                                        const struct listing_filter *filter,
                                        int (*visit)(const struct cdacq_method *method, void *context), void *context,
                                        struct cdacq_error *err)
{
    enum cdacq_status status;
    const struct code_map *map = resolver_begin_map(&session->resolver, &status, err);
    if (!map)
        return status;
    struct missing missing = {0};
    struct visit all = {session, &missing, flags, filter, visit, context};
    epoch_pin(&session->resolver.epoch); /* `visit` may use the session, whose map has to stay */
    for (size_t i = 0; i < map->count && status == CDACQ_OK; i++)
        status = visit_range(&all, i);
    epoch_unpin(&session->resolver.epoch);
    if (status < 0 && err)
        *err = session->resolver.error;
    /* A process that is gone now has been read to the end if nothing is missing. */
    if (status == CDACQ_OK && (missing.any_part || map->left_out || missing.images))
        status = epoch_check_process(&session->resolver.epoch, err);
    if (status != CDACQ_OK || (!map->left_out && !missing.images))
        return status;
    report_missing(map, &missing, &session->resolver.error);
    return visit_failure(&all, 0, 0); /* not even the starts of this code are known */
}

enum cdacq_status cdacq_session_visit_methods(struct cdacq_session *session, unsigned flags,
                                              int (*visit)(const struct cdacq_method *method, void *context),
                                              void *context, struct cdacq_error *err)
{
    enum cdacq_status status = error_check_flags(flags, VISIT_FLAGS, err);
    return status < 0 ? status : session_visit_methods(session, flags, NULL, visit, context, err);
}

enum cdacq_status cdacq_session_visit_code_ranges(struct cdacq_session *session,
                                                  int (*visit)(const struct cdacq_code_range_info *range,
                                                               void *context),
                                                  void *context, struct cdacq_error *err)
{
    enum cdacq_status status;
    const struct code_map *map = resolver_begin_map(&session->resolver, &status, err);
    if (!map)
        return status;
    epoch_pin(&session->resolver.epoch);
    for (size_t i = 0; i < map->count && status == CDACQ_OK; i++) {
        const struct code_range *range = &map->ranges[i];
        const struct mapping *mapping = range->manager->in_images
                                            ? target_mapping_at(session->resolver.target->memory, range->section.begin)
                                            : NULL;
        struct cdacq_code_range_info info = {
            .size = sizeof info,
            .begin = range->section.begin,
            .end = range->section.end,
            .kind = range->manager->range_kind,
            .module = mapping ? mapping->path : NULL,
            .collectible = range->section.flags & RANGE_SECTION_COLLECTIBLE,
        };
        status = stopped(visit(&info, context));
    }
    epoch_unpin(&session->resolver.epoch);
    return status == CDACQ_OK && map->left_out ? listing_report_left_out(map, err) : status;
}

/* The answer for an address in no listed range: a look-up shows whether the missing parts of the map have a range. */
static enum cdacq_status check_unlisted(struct cdacq_session *session, uint64_t address, struct cdacq_error *err)
{
    struct reader *reader = &session->resolver.reader;
    struct range_section section;
    struct epoch_tries tries = {0};
    bool found;
    epoch_watch(&session->resolver.epoch);
    do {
        reader_begin(reader, FUEL_LOOKUP);
        found = execution_manager_section(&session->resolver.target->manager, &session->resolver.reader,
                                          resolver_address(&session->resolver, address), &section);
    } while (epoch_again_or_fail(&session->resolver.epoch, &tries, &found));
    if (reader_failed(reader))
        return reader_status(reader, err);
    if (found)
        return error_set(err, CDACQ_ERR_CORRUPT, address,
                         "the code range that holds 0x%" PRIx64 " cannot be listed: others claim its addresses",
                         address);
    return error_set(err, CDACQ_NOT_MANAGED, address, "no code range holds 0x%" PRIx64, address);
}

enum cdacq_status cdacq_session_check_code_range(struct cdacq_session *session, uint64_t address,
                                                 struct cdacq_error *err)
{
    enum cdacq_status status;
    const struct code_map *map = resolver_begin_map(&session->resolver, &status, err);
    const struct code_range *range = map ? code_map_range(map, resolver_address(&session->resolver, address)) : NULL;
    if (!map)
        return status;
    if (!range)
        return check_unlisted(session, address, err);
    size_t index = (size_t)(range - map->ranges);
    return resolver_table(&session->resolver, index) ? CDACQ_OK : resolver_table_error(&session->resolver, index, err);
}
