#include "formats/jitdump.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "util/sized.h"

enum {
    MAGIC = 0x4A695444,
    VERSION_MAX = 2,
    MOVE_FIXED = 64,
    DEBUG_FIXED = 32,
    ENTRY_FIXED = 16,
    UNWINDING_FIXED = 40,
    SAMPLY_FIXED = 48,
    SLACK_MAX = 7, /* padding that writers put behind a record to keep the next one aligned */
};

/* ---- Headers ---------------------------------------------------------------------------------------------------- */

bool jitdump_is_magic(const void *bytes)
{
    return load_u32(bytes, true) == MAGIC || load_u32(bytes, false) == MAGIC;
}

enum cdacq_status jitdump_decode_header(const void *bytes, size_t size, struct cdacq_jitdump_record *ret,
                                        struct cdacq_error *err)
{
    uint8_t fields[JITDUMP_HEADER_SIZE] = {0};
    if (size < JITDUMP_HEADER_SIZE_MIN)
        return CDACQ_END;
    bool big = load_u32(bytes, true) == MAGIC;
    if (!big && load_u32(bytes, false) != MAGIC)
        return error_set(err, CDACQ_ERR_FORMAT, 0, "not a jitdump: it begins with %08" PRIx32 ", not with \"JiTD\"",
                         load_u32(bytes, true));
    uint32_t version = load_u32((const uint8_t *)bytes + 4, big);
    uint32_t total_size = load_u32((const uint8_t *)bytes + 8, big);
    if (version < 1 || version > VERSION_MAX)
        return error_set(err, CDACQ_ERR_FORMAT, 4, "jitdump version %" PRIu32 " is not known: 1 and 2 are", version);
    if (total_size < JITDUMP_HEADER_SIZE_MIN)
        return error_set(err, CDACQ_ERR_FORMAT, 8,
                         "jitdump header: total_size %" PRIu32 " is less than the fields up to it", total_size);
    /* What lies behind a short header are records, not fields of it. */
    size_t own = MIN((size_t)total_size, sizeof fields);
    if (size < own)
        return CDACQ_END;
    memcpy(fields, bytes, own);
    *ret = (struct cdacq_jitdump_record){
        .size = sizeof *ret,
        .kind = CDACQ_JITDUMP_HEADER,
        .total_size = total_size,
        .has_fields = true,
        .opaque.big_endian = big,
        .timestamp = load_u64(fields + 24, big),
        .as.header =
            {
                .version = version,
                .total_size = total_size,
                .elf_mach = load_u32(fields + 12, big),
                .pad1 = load_u32(fields + 16, big),
                .pid = load_u32(fields + 20, big),
                .flags = load_u64(fields + 32, big),
                .big_endian = big,
            },
    };
    return CDACQ_OK;
}

const char *cdacq_jitdump_kind_text(enum cdacq_jitdump_kind kind)
{
    static const char *const texts[] = {
#define KIND_TEXT(name, text) text,
        CDACQ_JITDUMP_KINDS(KIND_TEXT)
#undef KIND_TEXT
    };
    return (unsigned)kind < ARRAY_SIZE(texts) ? texts[kind] : "unknown";
}

static enum cdacq_jitdump_kind kind_of(uint32_t id)
{
    switch (id) {
    case 0:
        return CDACQ_JITDUMP_LOAD;
    case 1:
        return CDACQ_JITDUMP_MOVE;
    case 2:
        return CDACQ_JITDUMP_DEBUG_INFO;
    case 3:
        return CDACQ_JITDUMP_CLOSE;
    case 4:
        return CDACQ_JITDUMP_UNWINDING_INFO;
    case 827346259:
        return CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2;
    case 827346260:
        return CDACQ_JITDUMP_SAMPLY_TIER;
    case 827346261:
        return CDACQ_JITDUMP_SAMPLY_SOURCE;
    default:
        return CDACQ_JITDUMP_UNKNOWN;
    }
}

void jitdump_decode_prefix(const void *bytes, bool big_endian, uint64_t offset, struct cdacq_jitdump_record *ret)
{
    const uint8_t *p = bytes;
    *ret = (struct cdacq_jitdump_record){
        .size = sizeof *ret,
        .id = load_u32(p, big_endian),
        .offset = offset,
        .total_size = load_u32(p + 4, big_endian),
        .timestamp = load_u64(p + 8, big_endian),
        .opaque.big_endian = big_endian,
    };
    ret->kind = kind_of(ret->id);
}

/* ---- Problems of a record ---------------------------------------------------------------------------------------- */

/* The first one is told, the others are counted. */
struct problems {
    struct cdacq_error *err;
    uint64_t offset, count;
};

static void problem(struct problems *problems, const char *format, ...) PRINTF_LIKE(2, 3);

static void problem(struct problems *problems, const char *format, ...)
{
    if (problems->count++)
        return;
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    error_set(problems->err, CDACQ_ERR_FORMAT, problems->offset, "%s", line);
}

static enum cdacq_status problems_end(const struct problems *problems)
{
    if (problems->count > 1 && problems->err) {
        char *message = problems->err->message;
        size_t length = strlen(message);
        snprintf(message + length, sizeof problems->err->message - length, " (and %" PRIu64 " more problems)",
                 problems->count - 1);
    }
    return problems->count ? CDACQ_ERR_FORMAT : CDACQ_OK;
}

/* ---- Lists ------------------------------------------------------------------------------------------------------- */

/*
 * A cursor over elements that have no fixed size: how many were handed out (upper half) and how many bytes they took
 * (lower half; a record has less than 4 GiB).
 */
static uint32_t cursor_count(uint64_t cursor)
{
    return (uint32_t)(cursor >> 32);
}

static uint32_t cursor_bytes(uint64_t cursor)
{
    return (uint32_t)cursor;
}

static void cursor_advance(uint64_t *cursor, size_t bytes)
{
    *cursor += (UINT64_C(1) << 32) + bytes;
}

/* The string at `at` that ends before `end`. NULL where it does not. */
static const char *string_at(const struct cdacq_jitdump_record *record, uint64_t at, uint64_t end, size_t *ret_length)
{
    if (at >= end)
        return NULL;
    const char *string = (const char *)record->opaque.bytes + at;
    const char *nul = memchr(string, '\0', (size_t)(end - at));
    if (!nul)
        return NULL;
    *ret_length = (size_t)(nul - string);
    return string;
}

static bool next_entry(const struct cdacq_jitdump_record *record, uint64_t *cursor, struct cdacq_jitdump_entry *ret)
{
    if (record->kind != CDACQ_JITDUMP_DEBUG_INFO || !record->has_fields ||
        cursor_count(*cursor) >= record->as.debug_info.nr_entry)
        return false;
    uint64_t at = DEBUG_FIXED + (uint64_t)cursor_bytes(*cursor);
    size_t length;
    const char *name = string_at(record, at + ENTRY_FIXED, record->opaque.size, &length);
    if (!name)
        return false;
    const uint8_t *p = record->opaque.bytes + at;
    *ret = (struct cdacq_jitdump_entry){
        .code_addr = load_u64(p, record->opaque.big_endian),
        .line = load_u32(p + 8, record->opaque.big_endian),
        .discrim = load_u32(p + 12, record->opaque.big_endian),
        .name = name,
        .name_length = length,
    };
    cursor_advance(cursor, ENTRY_FIXED + length + 1);
    return true;
}

/* The lists of SAMPLY_JIT_CODE_DEBUG_INFO2 in their order. */
enum samply_list { FILES, FUNCTION_NAMES, FUNCTIONS, INLINE_CALLS, RANGES, LINE_RECORDS, SAMPLY_LISTS };

enum { FUNCTION_SIZE = 20, INLINE_CALL_SIZE = 20, RANGE_SIZE = 8, LINE_RECORD_SIZE = 16 };

/*
 * Where a list begins, as the sizes before it say; with SAMPLY_LISTS where the last one ends. No sum overflows 64 bits.
 */
static uint64_t samply_begin(const struct cdacq_jitdump_samply_debug_info2 *info, enum samply_list list)
{
    const uint64_t sizes[SAMPLY_LISTS] = {
        info->file_list_size,
        info->function_names_list_size,
        (uint64_t)info->function_count * FUNCTION_SIZE,
        (uint64_t)info->inline_call_record_count * INLINE_CALL_SIZE,
        (uint64_t)info->range_count * RANGE_SIZE,
        (uint64_t)info->line_record_count * LINE_RECORD_SIZE,
    };
    uint64_t at = SAMPLY_FIXED;
    for (unsigned i = 0; i < (unsigned)list; i++)
        at += sizes[i];
    return at;
}

static bool is_samply(const struct cdacq_jitdump_record *record)
{
    return record->kind == CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2 && record->has_fields;
}

static bool next_string(const struct cdacq_jitdump_record *record, enum cdacq_jitdump_strings list, uint64_t *cursor,
                        const char **ret, size_t *ret_length)
{
    if (!is_samply(record))
        return false;
    const struct cdacq_jitdump_samply_debug_info2 *info = &record->as.samply_debug_info2;
    enum samply_list which = list == CDACQ_JITDUMP_FILES ? FILES : FUNCTION_NAMES;
    if (cursor_count(*cursor) >= (which == FILES ? info->file_count : info->function_names_count))
        return false;
    uint64_t end = MIN(samply_begin(info, which + 1), (uint64_t)record->opaque.size);
    const char *string = string_at(record, samply_begin(info, which) + cursor_bytes(*cursor), end, ret_length);
    if (!string)
        return false;
    *ret = string;
    cursor_advance(cursor, *ret_length + 1);
    return true;
}

/* Element `index` of a list of `count` elements of `size` bytes. NULL where it is not there. */
static const uint8_t *element_at(const struct cdacq_jitdump_record *record, enum samply_list list, uint32_t count,
                                 uint32_t index, size_t size)
{
    if (!is_samply(record) || index >= count)
        return NULL;
    uint64_t at = samply_begin(&record->as.samply_debug_info2, list) + (uint64_t)index * size;
    return range_fits(at, size, record->opaque.size) ? record->opaque.bytes + at : NULL;
}

static bool get_function(const struct cdacq_jitdump_record *record, uint32_t index, struct cdacq_jitdump_function *ret)
{
    bool big = record->opaque.big_endian;
    const uint8_t *p =
        element_at(record, FUNCTIONS, record->as.samply_debug_info2.function_count, index, FUNCTION_SIZE);
    if (!p)
        return false;
    *ret = (struct cdacq_jitdump_function){
        .function_name_index = load_u32(p, big),
        .file_index = load_u32(p + 4, big),
        .start_line = load_u32(p + 8, big),
        .start_column = load_u32(p + 12, big),
        .flags = load_u32(p + 16, big),
    };
    return true;
}

static bool get_inline_call(const struct cdacq_jitdump_record *record, uint32_t index,
                            struct cdacq_jitdump_inline_call *ret)
{
    bool big = record->opaque.big_endian;
    const uint8_t *p = element_at(record, INLINE_CALLS, record->as.samply_debug_info2.inline_call_record_count, index,
                                  INLINE_CALL_SIZE);
    if (!p)
        return false;
    *ret = (struct cdacq_jitdump_inline_call){
        .depth = load_u32(p, big),
        .range_count = load_u32(p + 4, big),
        .function_index = load_u32(p + 8, big),
        .call_line_number = load_u32(p + 12, big),
        .call_column_number = load_u32(p + 16, big),
    };
    return true;
}

static bool get_range(const struct cdacq_jitdump_record *record, uint32_t index, struct cdacq_jitdump_range *ret)
{
    const uint8_t *p = element_at(record, RANGES, record->as.samply_debug_info2.range_count, index, RANGE_SIZE);
    if (!p)
        return false;
    *ret = (struct cdacq_jitdump_range){
        .start_offset = load_u32(p, record->opaque.big_endian),
        .code_size = load_u32(p + 4, record->opaque.big_endian),
    };
    return true;
}

static bool get_line_record(const struct cdacq_jitdump_record *record, uint32_t index,
                            struct cdacq_jitdump_line_record *ret)
{
    bool big = record->opaque.big_endian;
    const uint8_t *p =
        element_at(record, LINE_RECORDS, record->as.samply_debug_info2.line_record_count, index, LINE_RECORD_SIZE);
    if (!p)
        return false;
    *ret = (struct cdacq_jitdump_line_record){
        .code_offset = load_u32(p, big),
        .file_index = load_u32(p + 4, big),
        .line_number = load_u32(p + 8, big),
        .column_number = load_u32(p + 12, big),
    };
    return true;
}

/*
 * The public functions: `get` as above, into the caller's struct. Copies with the size of what is copied known to the
 * compiler cost next to nothing.
 */
#define LIST_FUNCTION(name, where, item, get)                                                                \
    enum cdacq_status cdacq_jitdump_record_##name(const struct cdacq_jitdump_record *record, where,          \
                                                  struct cdacq_jitdump_##item *ret, struct cdacq_error *err) \
    {                                                                                                        \
        struct cdacq_jitdump_##item own;                                                                     \
        enum cdacq_status status = sized_check(ret, "struct cdacq_jitdump_" #item, err);                     \
        if (status < 0)                                                                                      \
            return status;                                                                                   \
        if (!get)                                                                                            \
            return CDACQ_END;                                                                                \
        sized_copy(ret, &own, sizeof own);                                                                   \
        return CDACQ_OK;                                                                                     \
    }

LIST_FUNCTION(next_entry, uint64_t *cursor, entry, next_entry(record, cursor, &own))
LIST_FUNCTION(get_function, uint32_t index, function, get_function(record, index, &own))
LIST_FUNCTION(get_inline_call, uint32_t index, inline_call, get_inline_call(record, index, &own))
LIST_FUNCTION(get_range, uint32_t index, range, get_range(record, index, &own))
LIST_FUNCTION(get_line_record, uint32_t index, line_record, get_line_record(record, index, &own))

enum cdacq_status cdacq_jitdump_record_next_string(const struct cdacq_jitdump_record *record,
                                                   enum cdacq_jitdump_strings list, uint64_t *cursor, const char **ret,
                                                   size_t *ret_length, struct cdacq_error *err)
{
    if ((unsigned)list > CDACQ_JITDUMP_FUNCTION_NAMES)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "a jitdump record has no list of strings %u", (unsigned)list);
    return next_string(record, list, cursor, ret, ret_length) ? CDACQ_OK : CDACQ_END;
}

/* ---- Fields ------------------------------------------------------------------------------------------------------ */

static void decode_load(const uint8_t *p, struct cdacq_jitdump_record *record, struct problems *problems)
{
    struct cdacq_jitdump_load *load = &record->as.load;
    bool big = record->opaque.big_endian;
    size_t size = record->opaque.size;
    *load = (struct cdacq_jitdump_load){
        .pid = load_u32(p + 16, big),
        .tid = load_u32(p + 20, big),
        .vma = load_u64(p + 24, big),
        .code_addr = load_u64(p + 32, big),
        .code_size = load_u64(p + 40, big),
        .code_index = load_u64(p + 48, big),
    };
    const char *name = (const char *)p + JITDUMP_LOAD_FIXED;
    const char *end = memchr(name, '\0', size - JITDUMP_LOAD_FIXED);
    if (!end) {
        problem(problems, "JIT_CODE_LOAD: its name has no end");
        return;
    }
    load->name = name;
    load->name_length = (size_t)(end - name);
    uint64_t code = JITDUMP_LOAD_FIXED + (uint64_t)load->name_length + 1;
    load->code_offset = record->offset + code;
    if (!range_fits(code, load->code_size, record->total_size))
        problem(problems, "JIT_CODE_LOAD: code_size is %" PRIu64 ", and %" PRIu64 " bytes are left for the code",
                load->code_size, record->total_size - code);
    else if (range_fits(code, load->code_size, size))
        load->code = p + code;
    if (load->code_size > UINT64_MAX - load->vma)
        problem(problems, "JIT_CODE_LOAD: %" PRIu64 " bytes at 0x%" PRIx64 " go beyond the last address",
                load->code_size, load->vma);
}

static void decode_move(const uint8_t *p, struct cdacq_jitdump_record *record)
{
    bool big = record->opaque.big_endian;
    record->as.move = (struct cdacq_jitdump_move){
        .pid = load_u32(p + 16, big),
        .tid = load_u32(p + 20, big),
        .vma = load_u64(p + 24, big),
        .old_code_addr = load_u64(p + 32, big),
        .new_code_addr = load_u64(p + 40, big),
        .code_size = load_u64(p + 48, big),
        .code_index = load_u64(p + 56, big),
    };
}

static void decode_debug_info(const uint8_t *p, struct cdacq_jitdump_record *record, struct problems *problems)
{
    struct cdacq_jitdump_debug_info *info = &record->as.debug_info;
    struct cdacq_jitdump_entry entry;
    bool big = record->opaque.big_endian;
    *info = (struct cdacq_jitdump_debug_info){.code_addr = load_u64(p + 16, big), .nr_entry = load_u64(p + 24, big)};
    uint64_t count = 0;
    for (uint64_t cursor = 0; next_entry(record, &cursor, &entry);)
        count++;
    if (count < info->nr_entry)
        problem(problems, "JIT_CODE_DEBUG_INFO: nr_entry is %" PRIu64 ", and %" PRIu64 " entries are there",
                info->nr_entry, count);
}

static void decode_unwinding_info(const uint8_t *p, struct cdacq_jitdump_record *record, struct problems *problems)
{
    struct cdacq_jitdump_unwinding_info *info = &record->as.unwinding_info;
    bool big = record->opaque.big_endian;
    *info = (struct cdacq_jitdump_unwinding_info){
        .unwind_data_size = load_u64(p + 16, big),
        .eh_frame_hdr_size = load_u64(p + 24, big),
        .mapped_size = load_u64(p + 32, big),
        .unwinding_data_offset = record->offset + UNWINDING_FIXED,
    };
    if (!range_fits(UNWINDING_FIXED, info->unwind_data_size, record->total_size))
        problem(problems, "JIT_CODE_UNWINDING_INFO: unwind_data_size is %" PRIu64 ", and %" PRIu64 " bytes are left",
                info->unwind_data_size, record->total_size - UNWINDING_FIXED);
    else if (range_fits(UNWINDING_FIXED, info->unwind_data_size, record->opaque.size))
        info->unwinding_data = p + UNWINDING_FIXED;
    if (info->eh_frame_hdr_size > info->unwind_data_size)
        problem(problems,
                "JIT_CODE_UNWINDING_INFO: eh_frame_hdr_size %" PRIu64 " is more than unwind_data_size %" PRIu64,
                info->eh_frame_hdr_size, info->unwind_data_size);
}

/* ---- samply ------------------------------------------------------------------------------------------------------ */

/* A list of strings: as many as it says, padded to a multiple of four. */
static void check_strings(const struct cdacq_jitdump_record *record, enum cdacq_jitdump_strings list,
                          struct problems *problems)
{
    const struct cdacq_jitdump_samply_debug_info2 *info = &record->as.samply_debug_info2;
    bool files = list == CDACQ_JITDUMP_FILES;
    const char *what = files ? "file_list" : "function_names_list", *string;
    uint32_t size = files ? info->file_list_size : info->function_names_list_size;
    uint32_t expected = files ? info->file_count : info->function_names_count;
    uint64_t cursor = 0;
    size_t length;
    while (next_string(record, list, &cursor, &string, &length))
        ;
    if (cursor_count(cursor) < expected)
        problem(problems, "%s: %" PRIu32 " strings are there, and %" PRIu32 " should be", what, cursor_count(cursor),
                expected);
    else if (size % 4 || size - cursor_bytes(cursor) > 3)
        problem(problems, "%s: its size is %" PRIu32 ", and its strings take %" PRIu32, what, size,
                cursor_bytes(cursor));
}

static void check_index(struct problems *problems, const char *list, uint32_t index, const char *field, uint32_t value,
                        uint32_t count)
{
    if (value >= count)
        problem(problems, "%s[%" PRIu32 "].%s is %" PRIu32 ", and there are %" PRIu32, list, index, field, value,
                count);
}

static void check_functions(const struct cdacq_jitdump_record *record, struct problems *problems)
{
    const struct cdacq_jitdump_samply_debug_info2 *info = &record->as.samply_debug_info2;
    struct cdacq_jitdump_function function;
    for (uint32_t i = 0; get_function(record, i, &function); i++) {
        check_index(problems, "function_list", i, "function_name_index", function.function_name_index,
                    info->function_names_count);
        check_index(problems, "function_list", i, "file_index", function.file_index, info->file_count);
    }
}

static void check_inline_calls(const struct cdacq_jitdump_record *record, struct problems *problems)
{
    const struct cdacq_jitdump_samply_debug_info2 *info = &record->as.samply_debug_info2;
    struct cdacq_jitdump_inline_call call;
    uint64_t deepest = 0, ranges = 0; /* the depth that this call may have at most */
    uint32_t i;
    for (i = 0; get_inline_call(record, i, &call); i++) {
        if (call.depth > deepest)
            problem(problems, "inline_call_list[%" PRIu32 "].depth is %" PRIu32 ", and at most %" PRIu64 " can be", i,
                    call.depth, deepest);
        if (!call.range_count)
            problem(problems, "inline_call_list[%" PRIu32 "].range_count is 0", i);
        check_index(problems, "inline_call_list", i, "function_index", call.function_index, info->function_count);
        deepest = (uint64_t)call.depth + 1;
        ranges += call.range_count;
    }
    if (i == info->inline_call_record_count && ranges != info->range_count)
        problem(problems, "range_count is %" PRIu32 ", and the inline calls take %" PRIu64, info->range_count, ranges);
}

static void check_line_records(const struct cdacq_jitdump_record *record, struct problems *problems)
{
    const struct cdacq_jitdump_samply_debug_info2 *info = &record->as.samply_debug_info2;
    struct cdacq_jitdump_line_record line;
    for (uint32_t i = 0; get_line_record(record, i, &line); i++)
        check_index(problems, "line_record_list", i, "file_index", line.file_index, info->file_count);
}

static void decode_samply(const uint8_t *p, struct cdacq_jitdump_record *record, struct problems *problems)
{
    struct cdacq_jitdump_samply_debug_info2 *info = &record->as.samply_debug_info2;
    bool big = record->opaque.big_endian;
    *info = (struct cdacq_jitdump_samply_debug_info2){
        .file_count = load_u32(p + 16, big),
        .file_list_size = load_u32(p + 20, big),
        .function_names_count = load_u32(p + 24, big),
        .function_names_list_size = load_u32(p + 28, big),
        .function_count = load_u32(p + 32, big),
        .inline_call_record_count = load_u32(p + 36, big),
        .range_count = load_u32(p + 40, big),
        .line_record_count = load_u32(p + 44, big),
    };
    uint64_t end = samply_begin(info, SAMPLY_LISTS);
    if (end > record->total_size)
        problem(problems, "SAMPLY_JIT_CODE_DEBUG_INFO2: its lists take %" PRIu64 " bytes, and %" PRIu64 " are left",
                end - SAMPLY_FIXED, record->total_size - SAMPLY_FIXED);
    else if (end + SLACK_MAX < record->total_size)
        problem(problems, "SAMPLY_JIT_CODE_DEBUG_INFO2: %" PRIu64 " bytes behind its lists are of none",
                record->total_size - end);
    check_strings(record, CDACQ_JITDUMP_FILES, problems);
    check_strings(record, CDACQ_JITDUMP_FUNCTION_NAMES, problems);
    check_functions(record, problems);
    check_inline_calls(record, problems);
    check_line_records(record, problems);
}

/* ---- Records ----------------------------------------------------------------------------------------------------- */

/* Size of the fields that every record of a kind has, its prefix included. */
static size_t fixed_size(enum cdacq_jitdump_kind kind)
{
    switch (kind) {
    case CDACQ_JITDUMP_LOAD:
        return JITDUMP_LOAD_FIXED;
    case CDACQ_JITDUMP_MOVE:
        return MOVE_FIXED;
    case CDACQ_JITDUMP_DEBUG_INFO:
        return DEBUG_FIXED;
    case CDACQ_JITDUMP_UNWINDING_INFO:
        return UNWINDING_FIXED;
    case CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2:
        return SAMPLY_FIXED;
    default:
        return JITDUMP_PREFIX_SIZE;
    }
}

enum cdacq_status jitdump_decode(const void *bytes, size_t size, bool big_endian, struct cdacq_jitdump_record *record,
                                 struct cdacq_error *err)
{
    struct problems problems = {.err = err, .offset = record->offset};
    size_t fixed = fixed_size(record->kind);
    record->opaque.bytes = bytes;
    record->opaque.size = (size_t)MIN((uint64_t)size, record->total_size);
    record->opaque.big_endian = big_endian;
    record->has_fields = record->opaque.size >= fixed;
    memset(&record->as, 0, sizeof record->as);
    if (!record->has_fields)
        return error_set(err, CDACQ_ERR_FORMAT, record->offset,
                         "%s: the record has %" PRIu64 " bytes, and its fields take %zu",
                         cdacq_jitdump_kind_text(record->kind), record->total_size, fixed);
    switch (record->kind) {
    case CDACQ_JITDUMP_LOAD:
        decode_load(bytes, record, &problems);
        break;
    case CDACQ_JITDUMP_MOVE:
        decode_move(bytes, record);
        break;
    case CDACQ_JITDUMP_DEBUG_INFO:
        decode_debug_info(bytes, record, &problems);
        break;
    case CDACQ_JITDUMP_UNWINDING_INFO:
        decode_unwinding_info(bytes, record, &problems);
        break;
    case CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2:
        decode_samply(bytes, record, &problems);
        break;
    default:
        break;
    }
    return problems_end(&problems);
}
