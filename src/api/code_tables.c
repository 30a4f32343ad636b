/*
 * code_tables.c: the map of a process's code and the tables of its ranges, built when look-ups or listings need them. A
 * running process may change both while they are read.
 */
#include <inttypes.h>

#include "src/api/session.h"

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
 * Builds the table of a range. The table is used even if a running process has changed meanwhile: if methods are made
 * and freed all the time, a large table never stays the same, and each method is looked up anyway. A failure counts
 * only if the process has not changed what was read, and still has the range.
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

size_t session_find_range(struct cdacq_session *session, uint64_t address)
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
