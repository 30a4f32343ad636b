#include "formats/portable_pdb/sequence_points.h"

enum {
    IL_OFFSET_CAP = 0x20000000,
    COLUMN_CAP = 0x10000,
};

void sequence_points_begin(struct sequence_points *points, const void *blob, size_t size, uint32_t document)
{
    *points = (struct sequence_points){.at = signature_at(blob, size, 0, false), .document = document};
}

/* The IL offset of the next point, and its document. False if the blob is malformed. */
static bool read_il_offset(struct sequence_points *points)
{
    struct signature *at = &points->at;
    uint32_t delta;
    if (!points->begun) {
        points->begun = true;
        signature_uint(at); /* the signature of the method's locals */
        if (!points->document && !(points->document = signature_uint(at)))
            return false;
        points->il_offset = signature_uint(at);
        return !at->failed && points->il_offset < IL_OFFSET_CAP;
    }
    while (!(delta = signature_uint(at)) && !at->failed)
        if (!(points->document = signature_uint(at)))
            return false;
    points->il_offset += delta; /* both are below 0x20000000 */
    return !at->failed && points->il_offset < IL_OFFSET_CAP;
}

static bool add_signed(uint32_t value, int32_t delta, uint32_t cap, uint32_t *ret)
{
    int64_t sum = (int64_t)value + delta;
    *ret = (uint32_t)sum;
    return sum >= 0 && sum < cap;
}

/* The lines and columns of a point that is not hidden. False if the blob is malformed. */
static bool read_lines(struct sequence_points *points, uint32_t line_count, int32_t column_delta,
                       struct sequence_point *ret)
{
    struct signature *at = &points->at;
    uint32_t line = points->line, column = points->column, end_line, end_column;
    int32_t line_delta = points->has_line ? signature_int(at) : (int32_t)signature_uint(at);
    int32_t start_column_delta = points->has_line ? signature_int(at) : (int32_t)signature_uint(at);
    if (at->failed || !add_signed(line, line_delta, SEQUENCE_POINT_HIDDEN_LINE, &line) ||
        !add_signed(column, start_column_delta, COLUMN_CAP, &column) ||
        !add_signed(line, (int32_t)line_count, SEQUENCE_POINT_HIDDEN_LINE, &end_line) ||
        !add_signed(column, column_delta, COLUMN_CAP, &end_column))
        return false;
    points->line = line;
    points->column = column;
    points->has_line = true;
    ret->start_line = line;
    ret->end_line = end_line;
    ret->start_column = (uint16_t)column;
    ret->end_column = (uint16_t)end_column;
    return true;
}

bool sequence_points_next(struct sequence_points *points, struct sequence_point *ret)
{
    struct signature *at = &points->at;
    if (points->malformed || at->at == at->end)
        return false;
    bool good = read_il_offset(points);
    struct sequence_point point = {
        .il_offset = points->il_offset,
        .document = points->document,
        .start_line = SEQUENCE_POINT_HIDDEN_LINE,
        .end_line = SEQUENCE_POINT_HIDDEN_LINE,
    };
    uint32_t line_count = signature_uint(at);
    int32_t column_delta = line_count ? signature_int(at) : (int32_t)signature_uint(at);
    if (good && !at->failed && (line_count || column_delta))
        good = read_lines(points, line_count, column_delta, &point);
    points->malformed = !good || at->failed;
    if (!points->malformed)
        *ret = point;
    return !points->malformed;
}
