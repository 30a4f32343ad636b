#include "src/lookup/il_offsets.h"

#include "contracts/execution_manager/execution_manager.h"
#include "contracts/execution_manager/il_offsets.h"
#include "src/lookup/opened_target.h"
#include "src/lookup/resolver.h"

#include <stdio.h>

/* Of all methods that a session remembers: a large process has some 2 million bounds in all. */
enum { IL_POINTS_MAX = 8 * 1024 * 1024 };

/* Reads the map of a method; `block` may be NULL. False if the method has no map, or the reader has failed. */
static bool read_map(struct resolver *resolver, const struct method_record *record, const struct code_block *block,
                     struct il_map *ret)
{
    struct cdacq_target *target = resolver->target;
    struct reader *reader = &resolver->reader;
    struct code_block found;
    reader_begin(reader, FUEL_LOOKUP);
    if (!block && execution_manager_find(&target->manager, reader, record->method.code_start, &found))
        block = &found;
    return block && code_block_is_method(block) && block_il_map(target->contracts.debug_info, reader, block, ret);
}

const char *record_why_no_il_offset(struct resolver *resolver, const struct method_record *record)
{
    static const char plain[] = "the IL offset is not known, so the line is not known";
    struct cdacq_error reason;
    char text[sizeof plain + 2 + sizeof reason.message];
    struct il_map map = {0};
    if (read_map(resolver, record, NULL, &map))
        il_map_deinit(&map);
    if (!reader_failed(&resolver->reader))
        return plain;
    reader_status(&resolver->reader, &reason);
    int length = snprintf(text, sizeof text, "%s: %s", plain, reason.message);
    const char *kept = resolver_text(resolver, text, (size_t)length);
    return kept ? kept : plain;
}

void record_read_il_map(struct resolver *resolver, struct method_record *record, const struct code_block *block)
{
    struct il_map map = {0};
    record->has_il_map = true; /* even if there is none: it is searched for once */
    if (!read_map(resolver, record, block, &map))
        return;
    /*
     * The runtime makes the code of some methods, such as P/Invokes since .NET 11, without debug info. Its stack traces
     * then show 0; they leave thunks out.
     */
    record->il_is_zero =
        !map.count && record->method.kind == CDACQ_CODE_JITTED && record->method.token && !record->method.async_thunk;
    size_t total = resolver->records.il_point_total + map.count;
    struct il_point *points =
        total <= IL_POINTS_MAX ? arena_allocate(resolver_record_arena(resolver), map.count * sizeof *points) : NULL;
    if (points && map.count) {
        memcpy(points, map.items, map.count * sizeof *points);
        record->il_points = points;
        record->il_point_count = (uint32_t)map.count;
    }
    resolver->records.il_point_total = MIN(total, (size_t)IL_POINTS_MAX);
    record->il_unverified = reader_unverified(&resolver->reader);
    il_map_deinit(&map);
}
