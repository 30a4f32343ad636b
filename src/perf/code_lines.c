#include "src/perf/code_lines.h"

#include "formats/debug_info.h"
#include "src/lookup/resolver.h"
#include "util/binary_search.h"

void code_lines_init(struct code_lines *lines, const struct method_record *record, uint64_t offset, uint64_t size)
{
    uint32_t after = lower_bound(i, record->il_point_count, record->il_points[i].native_offset <= offset);
    *lines = (struct code_lines){
        .record = record,
        .offset = offset,
        .end = add_saturated(offset, size),
        .next = after ? after - 1 : 0,
    };
}

bool code_lines_next(struct code_lines *lines, struct code_line *ret)
{
    const struct method_record *record = lines->record;
    if (lines->next == record->il_point_count || record->il_points[lines->next].native_offset >= lines->end)
        return false;
    const struct il_point *il = &record->il_points[lines->next++];
    struct cdacq_method at = {.offset = il->native_offset, .il_offset = (int32_t)il->il_offset};
    *ret = (struct code_line){
        .at = il->native_offset > lines->offset ? il->native_offset - lines->offset : 0,
        .point = record_source_point(record, &at),
    };
    return true;
}

const struct source_point *first_line_of(const struct method_record *record)
{
    for (uint32_t i = 0; record && record->il_point_count && i < record->source_point_count; i++)
        if (record->source_points[i].document)
            return &record->source_points[i];
    return NULL;
}
