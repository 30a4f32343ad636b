#include "contracts/unwind/unwind_rows.h"

enum { ROWS_MAX = 64 * 1024 }; /* of one function */

bool frame_rows_add(struct reader *reader, struct frame_rows *rows, const struct frame_row *row)
{
    if (rows->count && rows->items[rows->count - 1].begin == row->begin)
        rows->count--; /* an epilog that begins where the prolog ends */
    if (rows->count && frame_row_equal(&rows->items[rows->count - 1], row))
        return true;
    if (!reader_step(reader, "rows of call-frame information"))
        return false;
    if (rows->count == ROWS_MAX || !frame_rows_append(rows, *row))
        reader_fail(reader, rows->count == ROWS_MAX ? CDACQ_ERR_FUEL : CDACQ_ERR_NOMEM, row->begin,
                    "rows of call-frame information");
    return !reader_failed(reader);
}

bool frame_rows_fail(struct reader *reader, const struct unwind_function *function)
{
    return reader_fail(reader, CDACQ_ERR_CORRUPT, function->unwind_data, "unwind data: call-frame information");
}
