#include "contracts/ready_to_run/r2r_method_bounds.h"

#include "contracts/code_info/gc_info.h"
#include "contracts/ready_to_run/r2r_method_info.h"

uint32_t r2r_method_start(const struct r2r_image *image, const struct r2r_entries *entries, struct field_reader *reader,
                          uint32_t function)
{
    for (uint32_t i = function + 1; i-- > 0 && reader_step(&reader->raw, "ReadyToRun method start");)
        if (r2r_image_is_start(image, entries, reader, i))
            return i;
    return UINT32_MAX;
}

uint32_t r2r_method_end(const struct r2r_image *image, const struct r2r_entries *entries, struct field_reader *reader,
                        uint32_t start)
{
    uint32_t end = start + 1;
    while (end < image->first_cold && reader_step(&reader->raw, "ReadyToRun method end") &&
           !r2r_image_is_start(image, entries, reader, end))
        end++;
    return end;
}

uint32_t r2r_method_length(const struct r2r_image *image, struct field_reader *reader, uint32_t start)
{
    uint64_t gc_info;
    bool found = image->gc_info_version && r2r_method_gc_info(image, reader, start, &gc_info);
    /* Without unwind data the image's tables bound the method. */
    if (!found)
        reader_recover(&reader->raw, ~FAILURE(CDACQ_ERR_FUEL));
    return found ? gc_info_code_length(reader, gc_info, image->gc_info_version) : 0;
}

uint32_t r2r_method_end_by_length(const struct r2r_image *image, struct field_reader *reader, uint32_t start,
                                  uint32_t length)
{
    uint32_t end = unwind_table_begin(reader, &image->functions, start) + length;
    for (uint32_t i = start; i < image->first_cold && reader_step(&reader->raw, "ReadyToRun functions"); i++) {
        uint32_t function_end =
            unwind_table_begin(reader, &image->functions, i) + unwind_table_length(reader, &image->functions, i);
        if (function_end >= end)
            return function_end == end ? i + 1 : 0;
    }
    return 0;
}
