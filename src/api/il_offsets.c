/*
 * il_offsets.c: IL offsets in answers. The debug info of a method is decoded when an address of it is first asked
 * about, not when methods are listed.
 */
#include "contracts/execution_manager/il_offsets.h"

#include <stdio.h>

#include "src/api/session.h"

/* Of all methods that a session remembers: a large process has some 2 million bounds in all. */
enum { IL_POINTS_MAX = 8 * 1024 * 1024 };

/* Reads the map of a method; `block` may be NULL. False if the method has no map, or the reader has failed. */
static bool read_map(struct cdacq_session *session, const struct method_record *record, const struct code_block *block,
                     struct il_map *ret)
{
    struct cdacq_target *target = session->target;
    struct field_reader *reader = &session->reader;
    struct code_block found;
    reader_begin(&reader->raw, FUEL_LOOKUP);
    if (!block && execution_manager_find(&target->manager, reader, record->method.code_start, &found))
        block = &found;
    return block && code_block_is_method(block) && block_il_map(target->contracts.debug_info, reader, block, ret);
}

const char *record_why_no_il_offset(struct cdacq_session *session, const struct method_record *record)
{
    static const char plain[] = "the IL offset is not known, so the line is not known";
    struct cdacq_error reason;
    char text[sizeof plain + 2 + sizeof reason.message];
    struct il_map map = {0};
    if (read_map(session, record, NULL, &map))
        il_map_deinit(&map);
    if (!reader_failed(&session->reader.raw))
        return plain;
    reader_status(&session->reader.raw, &reason);
    int length = snprintf(text, sizeof text, "%s: %s", plain, reason.message);
    const char *kept = session_text(session, text, (size_t)length);
    return kept ? kept : plain;
}

void record_read_il_map(struct cdacq_session *session, struct method_record *record, const struct code_block *block)
{
    struct il_map map = {0};
    record->has_il_map = true; /* even if there is none: it is searched for once */
    if (!read_map(session, record, block, &map))
        return;
    size_t total = session->il_point_total + map.count;
    struct il_point *points =
        total <= IL_POINTS_MAX ? arena_allocate(session_record_arena(session), map.count * sizeof *points) : NULL;
    if (points && map.count) {
        memcpy(points, map.items, map.count * sizeof *points);
        record->il_points = points;
        record->il_point_count = (uint32_t)map.count;
    }
    session->il_point_total = MIN(total, (size_t)IL_POINTS_MAX);
    record->il_unverified = reader_unverified(&session->reader.raw);
    il_map_deinit(&map);
}

void record_answer_il(const struct method_record *record, struct cdacq_method *ret)
{
    if (!record->il_point_count || ret->offset > UINT32_MAX)
        return;
    ret->il_offset = (int32_t)il_map_find(record->il_points, record->il_point_count, (uint32_t)ret->offset);
    ret->module_verified &= !record->il_unverified;
}
