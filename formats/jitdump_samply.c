#include "formats/jitdump_samply.h"

#include <inttypes.h>

#include "formats/jitdump_lists.h"

enum {
    SAMPLY_FIXED = 48,
    POSITIONS_FIXED = 48,
    CODE_OFFSET_SIZE = 8,
    POSITION_SIZE = 28,
    RANGE_CHECKS = 16, /* comparisons of an inline range with those of its parent, on average: no quadratic work */
    SLACK_MAX = 7,     /* padding after a record, which some writers add to align the next one */
};

/* ---- Lists ------------------------------------------------------------------------------------------------------- */

/* The lists of SAMPLY_JIT_CODE_DEBUG_INFO2 in their order, the two of enum cdacq_jitdump_strings first. */
enum samply_list_id { FILES, FUNCTION_NAMES, FUNCTIONS, INLINE_CALLS, RANGES, LINE_RECORDS };

/* Bytes of an element, which consists of 32-bit fields. */
static const uint8_t element_sizes[] = {[FUNCTIONS] = 20, [INLINE_CALLS] = 20, [RANGES] = 8, [LINE_RECORDS] = 16};

/* Counts and sizes are what the record claims. */
struct samply_list {
    uint32_t count;
    uint64_t begin, size; /* in the record */
};

/* No sum overflows 64 bits. */
static struct samply_list samply_list_at(const struct cdacq_jitdump_samply_debug_info2 *info, enum samply_list_id id)
{
    const uint32_t counts[] = {info->file_count,     info->function_names_count,
                               info->function_count, info->inline_call_record_count,
                               info->range_count,    info->line_record_count};
    struct samply_list list = {.begin = SAMPLY_FIXED};
    for (unsigned i = 0; i <= (unsigned)id; i++) {
        list.begin += list.size;
        list.count = counts[i];
        list.size = i == FILES            ? info->file_list_size
                    : i == FUNCTION_NAMES ? info->function_names_list_size
                                          : (uint64_t)counts[i] * element_sizes[i];
    }
    return list;
}

static bool is_samply(const struct cdacq_jitdump_record *record)
{
    return record->kind == CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2 && record->has_fields;
}

static bool next_string(const struct cdacq_jitdump_record *record, enum samply_list_id id, uint64_t *cursor,
                        const char **ret, size_t *ret_length)
{
    if (!is_samply(record))
        return false;
    struct samply_list list = samply_list_at(&record->as.samply_debug_info2, id);
    if (jitdump_cursor_count(*cursor) >= list.count)
        return false;
    uint64_t end = MIN(list.begin + list.size, (uint64_t)record->opaque.size);
    const char *string = jitdump_string_at(record, list.begin + jitdump_cursor_bytes(*cursor), end, ret_length);
    if (!string)
        return false;
    *ret = string;
    jitdump_cursor_advance(cursor, *ret_length + 1);
    return true;
}

/* Element `index` of a list, to the public struct of its kind: the fields follow the struct's size. */
static bool get_element(const struct cdacq_jitdump_record *record, enum samply_list_id id, uint32_t index, void *ret)
{
    if (!is_samply(record))
        return false;
    struct samply_list list = samply_list_at(&record->as.samply_debug_info2, id);
    uint64_t size = element_sizes[id], at = list.begin + index * size;
    if (index >= list.count || !range_fits(at, size, record->opaque.size))
        return false;
    jitdump_load_fields(record->opaque.bytes + at, size / 4, 0, record->opaque.big_endian,
                        (uint8_t *)ret + sizeof(size_t));
    return true;
}

JITDUMP_LIST_FUNCTION(get_function, uint32_t index, function, get_element(record, FUNCTIONS, index, &own))
JITDUMP_LIST_FUNCTION(get_inline_call, uint32_t index, inline_call, get_element(record, INLINE_CALLS, index, &own))
JITDUMP_LIST_FUNCTION(get_range, uint32_t index, range, get_element(record, RANGES, index, &own))
JITDUMP_LIST_FUNCTION(get_line_record, uint32_t index, line_record, get_element(record, LINE_RECORDS, index, &own))

enum cdacq_status cdacq_jitdump_record_next_string(const struct cdacq_jitdump_record *record,
                                                   enum cdacq_jitdump_strings list, uint64_t *cursor, const char **ret,
                                                   size_t *ret_length, struct cdacq_error *err)
{
    if ((unsigned)list > CDACQ_JITDUMP_FUNCTION_NAMES)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "a jitdump record has no list of strings %u", (unsigned)list);
    return next_string(record, (enum samply_list_id)list, cursor, ret, ret_length) ? CDACQ_OK : CDACQ_DONE;
}

/* ---- Checking the lists ------------------------------------------------------------------------------------------ */

/* A list of strings: as many as it claims, padded to a multiple of four. */
static void check_strings(const struct cdacq_jitdump_record *record, enum samply_list_id id, const char *what,
                          struct jitdump_problems *problems)
{
    struct samply_list list = samply_list_at(&record->as.samply_debug_info2, id);
    const char *string;
    uint64_t cursor = 0;
    size_t length;
    while (next_string(record, id, &cursor, &string, &length))
        ;
    if (jitdump_cursor_count(cursor) < list.count)
        jitdump_problem(problems, "%s: %" PRIu32 " strings are there, and %" PRIu32 " should be", what,
                        jitdump_cursor_count(cursor), list.count);
    else if (list.size % 4 || list.size - jitdump_cursor_bytes(cursor) > 3)
        jitdump_problem(problems, "%s: its size is %" PRIu64 ", and its strings take %" PRIu32, what, list.size,
                        jitdump_cursor_bytes(cursor));
}

static void check_index(struct jitdump_problems *problems, const char *list, uint32_t index, const char *field,
                        uint32_t value, uint32_t count)
{
    if (value >= count)
        jitdump_problem(problems, "%s[%" PRIu32 "].%s is %" PRIu32 ", and there are %" PRIu32, list, index, field,
                        value, count);
}

static void check_functions(const struct cdacq_jitdump_record *record, struct jitdump_problems *problems)
{
    const struct cdacq_jitdump_samply_debug_info2 *info = &record->as.samply_debug_info2;
    struct cdacq_jitdump_function function;
    for (uint32_t i = 0; get_element(record, FUNCTIONS, i, &function); i++) {
        check_index(problems, "function_list", i, "function_name_index", function.function_name_index,
                    info->function_names_count);
        check_index(problems, "function_list", i, "file_index", function.file_index, info->file_count);
    }
}

static void check_inline_calls(const struct cdacq_jitdump_record *record, struct jitdump_problems *problems)
{
    const struct cdacq_jitdump_samply_debug_info2 *info = &record->as.samply_debug_info2;
    struct cdacq_jitdump_inline_call call;
    uint64_t deepest = 0, ranges = 0; /* the depth that this call may have at most */
    uint32_t i;
    for (i = 0; get_element(record, INLINE_CALLS, i, &call); i++) {
        if (call.depth > deepest)
            jitdump_problem(problems,
                            "inline_call_list[%" PRIu32 "].depth is %" PRIu32 ", and at most %" PRIu64 " can be", i,
                            call.depth, deepest);
        if (!call.range_count)
            jitdump_problem(problems, "inline_call_list[%" PRIu32 "].range_count is 0", i);
        check_index(problems, "inline_call_list", i, "function_index", call.function_index, info->function_count);
        deepest = (uint64_t)call.depth + 1;
        ranges += call.range_count;
    }
    if (i == info->inline_call_record_count && ranges != info->range_count)
        jitdump_problem(problems, "range_count is %" PRIu32 ", and the inline calls take %" PRIu64, info->range_count,
                        ranges);
}

static void check_line_records(const struct cdacq_jitdump_record *record, struct jitdump_problems *problems)
{
    const struct cdacq_jitdump_samply_debug_info2 *info = &record->as.samply_debug_info2;
    struct cdacq_jitdump_line_record line;
    for (uint32_t i = 0; get_element(record, LINE_RECORDS, i, &line); i++) {
        check_index(problems, "line_record_list", i, "file_index", line.file_index, info->file_count);
        if (!line.line_number)
            jitdump_problem(problems, "line_record_list[%" PRIu32 "].line_number is 0, and lines begin at 1", i);
    }
}

/* The ranges of a call, and where among them the last search ended: ranges are mostly sorted. */
struct call_ranges {
    uint32_t first, count, at;
};

/* Whether [begin, end) is in ranges of the call, which may adjoin each other. Each comparison takes one of *left. */
static bool is_in_ranges(const struct cdacq_jitdump_record *record, uint64_t begin, uint64_t end,
                         struct call_ranges *call, uint32_t *left)
{
    struct cdacq_jitdump_range range;
    for (uint32_t misses = 0; misses < call->count && get_element(record, RANGES, call->first + call->at, &range);) {
        if (!*left || !--*left) /* too many to check */
            return true;
        uint64_t range_end = (uint64_t)range.start_offset + range.code_size;
        bool has_begin = begin >= range.start_offset && begin < range_end;
        if (begin >= range.start_offset && end <= range_end)
            return true;
        begin = has_begin ? range_end : begin;
        misses = has_begin ? 0 : misses + 1;
        call->at = (call->at + 1) % call->count;
    }
    return false;
}

/* The code of an inlined call is in that of the call that contains it. */
static void check_ranges(const struct cdacq_jitdump_record *record, struct jitdump_problems *problems)
{
    enum { DEPTH_MAX = 64 };                                   /* deeper calls are not checked */
    struct call_ranges parents[DEPTH_MAX] = {{0}}, none = {0}; /* the calls around the current one, by depth */
    struct cdacq_jitdump_inline_call call;
    struct cdacq_jitdump_range range;
    uint64_t checks = RANGE_CHECKS * (uint64_t)record->as.samply_debug_info2.range_count;
    uint32_t first = 0, left = (uint32_t)MIN(checks, record->total_size);
    for (uint32_t i = 0; get_element(record, INLINE_CALLS, i, &call); i++) {
        struct call_ranges *parent = call.depth && call.depth <= DEPTH_MAX ? &parents[call.depth - 1] : &none;
        for (uint32_t k = 0; k < call.range_count && get_element(record, RANGES, first + k, &range); k++) {
            uint64_t end = (uint64_t)range.start_offset + range.code_size;
            if (parent->count && !is_in_ranges(record, range.start_offset, end, parent, &left))
                jitdump_problem(problems,
                                "range_list[%" PRIu32 "] is outside of the ranges of the call that contains it",
                                first + k);
        }
        if (call.depth < DEPTH_MAX)
            parents[call.depth] = (struct call_ranges){first, call.range_count, 0};
        if (call.range_count > UINT32_MAX - first)
            return;
        first += call.range_count;
    }
}

void jitdump_check_samply(const struct cdacq_jitdump_record *record, struct jitdump_problems *problems)
{
    struct samply_list last = samply_list_at(&record->as.samply_debug_info2, LINE_RECORDS);
    uint64_t end = last.begin + last.size;
    if (end > record->total_size)
        jitdump_problem(problems,
                        "SAMPLY_JIT_CODE_DEBUG_INFO2: its lists take %" PRIu64 " bytes, and %" PRIu64 " are left",
                        end - SAMPLY_FIXED, record->total_size - SAMPLY_FIXED);
    else if (end + SLACK_MAX < record->total_size)
        jitdump_problem(problems,
                        "SAMPLY_JIT_CODE_DEBUG_INFO2: %" PRIu64 " bytes after its lists belong to none of them",
                        record->total_size - end);
    check_strings(record, FILES, "file_list", problems);
    check_strings(record, FUNCTION_NAMES, "function_names_list", problems);
    check_functions(record, problems);
    check_inline_calls(record, problems);
    check_line_records(record, problems);
    check_ranges(record, problems);
}

/* ---- The record that samply reads -------------------------------------------------------------------------------- */

bool jitdump_is_samply_positions(const struct cdacq_jitdump_record *record)
{
    const uint8_t *bytes = record->opaque.bytes;
    bool big = record->opaque.big_endian;
    if (record->kind != CDACQ_JITDUMP_SAMPLY_TIER || record->opaque.size != record->total_size ||
        record->total_size < POSITIONS_FIXED)
        return false;
    uint64_t offsets = load_u64(bytes + 24, big), positions = load_u64(bytes + 32, big);
    uint64_t strings = load_u64(bytes + 40, big), left = record->total_size - POSITIONS_FIXED;
    if (!offsets || !positions || offsets > left / CODE_OFFSET_SIZE ||
        positions > (left - offsets * CODE_OFFSET_SIZE) / POSITION_SIZE)
        return false;
    left -= offsets * CODE_OFFSET_SIZE + positions * POSITION_SIZE;
    for (const uint8_t *p = bytes + (record->total_size - left), *end = p + left; p < end; strings--) {
        const uint8_t *nul = memchr(p, '\0', (size_t)(end - p));
        if (!nul || !strings)
            return false;
        p = nul + 1;
    }
    return !strings;
}

static uint32_t position_field(const struct cdacq_jitdump_record *record, uint64_t index, unsigned field)
{
    uint64_t at = POSITIONS_FIXED + record->as.samply_positions.code_offset_count * CODE_OFFSET_SIZE;
    return load_u32(record->opaque.bytes + at + index * POSITION_SIZE + (size_t)4 * field, record->opaque.big_endian);
}

/* Field 0 is the offset in the code, field 1 the index of its source position. */
static uint32_t code_offset_field(const struct cdacq_jitdump_record *record, uint64_t index, unsigned field)
{
    return load_u32(record->opaque.bytes + POSITIONS_FIXED + index * CODE_OFFSET_SIZE + (size_t)4 * field,
                    record->opaque.big_endian);
}

/* samply searches the code offsets by halves. */
void jitdump_check_samply_positions(const struct cdacq_jitdump_record *record, struct jitdump_problems *problems)
{
    const struct cdacq_jitdump_samply_positions *info = &record->as.samply_positions;
    for (uint64_t i = 0; i < info->code_offset_count; i++) {
        uint32_t offset = code_offset_field(record, i, 0), position = code_offset_field(record, i, 1);
        if (i && offset <= code_offset_field(record, i - 1, 0))
            jitdump_problem(problems, "code_offset[%" PRIu64 "] is %" PRIu32 ", not more than the one before it", i,
                            offset);
        if (position >= info->source_position_count)
            jitdump_problem(problems, "code_offset[%" PRIu64 "].source_position is %" PRIu32 ", and there are %" PRIu64,
                            i, position, info->source_position_count);
    }
    for (uint64_t i = 0; i < info->source_position_count; i++) {
        uint32_t caller = position_field(record, i, 0), file = position_field(record, i, 2);
        if (caller != UINT32_MAX && (caller >= info->source_position_count || caller == i))
            jitdump_problem(problems, "source_position[%" PRIu64 "].caller_index is %" PRIu32, i, caller);
        if (position_field(record, i, 1) >= info->string_count)
            jitdump_problem(problems,
                            "source_position[%" PRIu64 "].function_name is %" PRIu32 ", and there are %" PRIu64, i,
                            position_field(record, i, 1), info->string_count);
        if (file != UINT32_MAX && file >= info->string_count)
            jitdump_problem(problems, "source_position[%" PRIu64 "].file is %" PRIu32 ", and there are %" PRIu64, i,
                            file, info->string_count);
    }
}

uint64_t jitdump_samply_end(const struct cdacq_jitdump_record *record)
{
    if (record->kind == CDACQ_JITDUMP_SAMPLY_POSITIONS)
        return code_offset_field(record, record->as.samply_positions.code_offset_count - 1, 0);
    struct cdacq_jitdump_range range;
    struct cdacq_jitdump_line_record line;
    uint64_t end = 0;
    for (uint32_t i = 0; get_element(record, RANGES, i, &range); i++)
        end = MAX(end, (uint64_t)range.start_offset + range.code_size);
    for (uint32_t i = 0; get_element(record, LINE_RECORDS, i, &line); i++)
        end = MAX(end, (uint64_t)line.code_offset);
    return end;
}
