#include "contracts/ready_to_run/r2r_method_info.h"

#include "util/binary_search.h"
#include "contracts/ready_to_run/native_format.h"

enum { CLAUSE_MAX = 64 * 1024 }; /* of one method */

bool r2r_method_gc_info(const struct r2r_image *image, struct reader *reader, uint32_t function, uint64_t *ret)
{
    uint64_t address;
    uint32_t size;
    if (!unwind_table_data(reader, &image->functions, function, &address, &size))
        return false;
    *ret = address + size;
    return true;
}

/* Reads only the few bytes that lead to the element: the section of a large image has megabytes. */
bool r2r_method_debug_info(const struct r2r_image *image, struct reader *reader, uint32_t function, uint64_t *ret)
{
    struct r2r_section found;
    struct native_array array;
    uint32_t element, back, next;
    *ret = 0;
    if (!r2r_image_section(image, reader, R2R_DEBUG_INFO, &found))
        return !reader_failed(reader);
    struct native_section section = {.size = found.size, .reader = reader, .address = image->base + found.rva};
    if (!native_array_open(section, &array))
        return reader_fail(reader, CDACQ_ERR_CORRUPT, section.address, "ReadyToRun section 105");
    if (!native_array_at(&array, function, &element))
        return !reader_failed(reader);
    next = element;
    if (!native_unsigned(&section, &next, &back) || back > element)
        reader_fail(reader, CDACQ_ERR_CORRUPT, section.address + element, "ReadyToRun section 105");
    *ret = section.address + (back ? element - back : next);
    return !reader_failed(reader);
}

static uint32_t entry_field(struct reader *reader, uint64_t table, uint32_t i, enum layout_field field)
{
    return (uint32_t)read_field(reader, table + (uint64_t)i * reader->layout->sizes[T_ExceptionLookupTableEntry],
                                field);
}

bool r2r_method_clauses(const struct r2r_image *image, struct reader *reader, uint32_t rva, uint64_t *ret_address,
                        uint32_t *ret_count)
{
    struct r2r_section section;
    *ret_address = *ret_count = 0;
    if (!r2r_image_section(image, reader, R2R_EXCEPTION_INFO, &section))
        return !reader_failed(reader);
    uint32_t entry_size = reader->layout->sizes[T_ExceptionLookupTableEntry];
    uint32_t clause_size = reader->layout->sizes[T_R2RExceptionClause];
    if (!entry_size || !clause_size)
        return reader_fail(reader, CDACQ_ERR_FIELD, 0, entry_size ? "R2RExceptionClause" : "ExceptionLookupTableEntry");
    /* The first entry after the method's. The last entry of the table is a sentinel. */
    uint64_t table = image->base + section.rva;
    uint32_t after = lower_bound(i, section.size / entry_size,
                                 reader_step(reader, "ReadyToRun section 104") &&
                                     entry_field(reader, table, i, F_ExceptionLookupTableEntry_MethodStartRVA) <= rva);
    if (reader_failed(reader) || !after || after * (uint64_t)entry_size >= section.size ||
        entry_field(reader, table, after - 1, F_ExceptionLookupTableEntry_MethodStartRVA) != rva)
        return !reader_failed(reader);
    uint32_t begin = entry_field(reader, table, after - 1, F_ExceptionLookupTableEntry_ExceptionInfoRVA);
    uint32_t end = entry_field(reader, table, after, F_ExceptionLookupTableEntry_ExceptionInfoRVA);
    if (end < begin || (end - begin) % clause_size || (end - begin) / clause_size > CLAUSE_MAX ||
        end > image->end - image->base)
        reader_fail(reader, CDACQ_ERR_CORRUPT, table + (uint64_t)(after - 1) * entry_size, "ReadyToRun section 104");
    *ret_address = image->base + begin;
    *ret_count = reader_failed(reader) ? 0 : (end - begin) / clause_size;
    return !reader_failed(reader);
}
