#include "contracts/ready_to_run/r2r_method_bounds.h"

#include "contracts/code_info/gc_info.h"
#include "contracts/ready_to_run/r2r_method_info.h"

uint32_t r2r_functions_size(const struct r2r_image *image, struct reader *reader, uint32_t first, uint32_t after)
{
    uint32_t begin = unwind_table_begin(reader, &image->functions, first), size = 0;
    for (uint32_t i = first; i < after && reader_step(reader, "ReadyToRun functions"); i++) {
        uint32_t at = unwind_table_begin(reader, &image->functions, i);
        uint32_t length = unwind_table_length(reader, &image->functions, i);
        if (at >= begin && at - begin <= UINT32_MAX - length)
            size = MAX(size, at - begin + length);
    }
    return size;
}

struct r2r_cold_part r2r_method_cold_part(const struct r2r_image *image, struct reader *reader, uint32_t start)
{
    uint32_t begin, end;
    if (!hot_cold_cold_of(&image->hot_cold, start, &begin, &end))
        return (struct r2r_cold_part){0};
    return (struct r2r_cold_part){.first = begin,
                                  .count = end - begin,
                                  .rva = unwind_table_begin(reader, &image->functions, begin),
                                  .size = r2r_functions_size(image, reader, begin, end)};
}

uint32_t r2r_method_length(const struct r2r_image *image, struct reader *reader, uint32_t start)
{
    uint64_t gc_info;
    bool found = image->gc_info_version && r2r_method_gc_info(image, reader, start, &gc_info);
    /* Without unwind data the image's tables bound the method. */
    if (!found)
        reader_recover(reader, ~FAILURE(CDACQ_ERR_FUEL));
    return found ? gc_info_code_length(reader, gc_info, image->gc_info_version) : 0;
}

uint32_t r2r_method_end_by_length(const struct r2r_image *image, struct reader *reader, uint32_t start, uint32_t length,
                                  uint32_t limit)
{
    uint32_t end = unwind_table_begin(reader, &image->functions, start) + length;
    for (uint32_t i = start; i < limit && reader_step(reader, "ReadyToRun functions"); i++) {
        uint32_t function_end =
            unwind_table_begin(reader, &image->functions, i) + unwind_table_length(reader, &image->functions, i);
        if (function_end >= end)
            return function_end == end ? i + 1 : 0;
    }
    return 0;
}

uint32_t r2r_next_start(const struct r2r_image *image, const struct r2r_entries *entries, struct reader *reader,
                        uint32_t function)
{
    uint32_t next = function + 1;
    while (next < image->first_cold && reader_step(reader, "ReadyToRun method end") &&
           !r2r_image_is_start(image, entries, reader, next))
        next++;
    return next;
}

uint32_t r2r_method_end(const struct r2r_image *image, struct reader *reader, uint32_t start, uint32_t next_start)
{
    if (!image->has_resumption_stubs || next_start == start + 1 || reader_failed(reader))
        return next_start;
    uint32_t length = r2r_method_length(image, reader, start);
    uint32_t cold_size = r2r_method_cold_part(image, reader, start).size;
    uint32_t end =
        length > cold_size ? r2r_method_end_by_length(image, reader, start, length - cold_size, next_start) : 0;
    return end ? end : next_start;
}

uint32_t r2r_method_start(const struct r2r_image *image, const struct r2r_entries *entries, struct reader *reader,
                          uint32_t function)
{
    uint32_t start = function;
    while (!r2r_image_is_start(image, entries, reader, start))
        if (!reader_step(reader, "ReadyToRun method start") || !start--)
            return UINT32_MAX;
    if (!image->has_resumption_stubs || start == function)
        return start;
    uint32_t next_start = r2r_next_start(image, entries, reader, function);
    while (start < function && reader_step(reader, "ReadyToRun method start")) {
        uint32_t end = r2r_method_end(image, reader, start, next_start);
        if (function < end)
            break;
        start = end;
    }
    return start;
}
