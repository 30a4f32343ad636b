#include "formats/jitdump.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "formats/cfi.h"
#include "util/sized.h"

enum {
    MAGIC = 0x4A695444,
    VERSION_MAX = 2,
    DEBUG_FIXED = 32,
    ENTRY_FIXED = 16,
    UNWINDING_FIXED = 40,
    SAMPLY_FIXED = 48,
    POSITIONS_FIXED = 48,
    CODE_OFFSET_SIZE = 8,
    POSITION_SIZE = 28,
    RANGE_CHECKS = 16, /* comparisons of an inline range with those of its parent, on average: no quadratic work */
    SLACK_MAX = 7,     /* padding after a record, which some writers add to align the next one */
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
    /* A short header is followed by records. */
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
    enum { PERF_LAST = 4, SAMPLY_FIRST = 827346259, SAMPLY_LAST = 827346261 };
    /* The kinds are in the order of the ids. */
    if (id <= PERF_LAST)
        return (enum cdacq_jitdump_kind)(CDACQ_JITDUMP_LOAD + id);
    if (id >= SAMPLY_FIRST && id <= SAMPLY_LAST)
        return (enum cdacq_jitdump_kind)(CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2 + (id - SAMPLY_FIRST));
    return CDACQ_JITDUMP_UNKNOWN;
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

/* The first one is reported, the others are counted. */
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
 * A cursor over elements without a fixed size: the number of elements so far (upper half) and of their bytes (lower
 * half; a record has less than 4 GiB).
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

/* The string at `at`. NULL if it does not end before `end`. */
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
    if (cursor_count(*cursor) >= list.count)
        return false;
    uint64_t end = MIN(list.begin + list.size, (uint64_t)record->opaque.size);
    const char *string = string_at(record, list.begin + cursor_bytes(*cursor), end, ret_length);
    if (!string)
        return false;
    *ret = string;
    cursor_advance(cursor, *ret_length + 1);
    return true;
}

/* Copies `narrow` 32-bit fields, then `wide` 64-bit ones, to `ret`, a struct that has them in the same order. */
static inline void load_fields(const uint8_t *p, size_t narrow, size_t wide, bool big, void *ret)
{
    uint8_t *to = ret;
    memcpy(to, p, 4 * narrow + 8 * wide);
    if (big == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))
        return;
    for (; narrow--; to += 4)
        store_u32(to, load_u32(to, false), true);
    for (; wide--; to += 8)
        store_u64(to, load_u64(to, false), true);
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
    load_fields(record->opaque.bytes + at, size / 4, 0, record->opaque.big_endian, (uint8_t *)ret + sizeof(size_t));
    return true;
}

/* The public functions: `get` fills `own`, which is copied to the caller's struct. */
#define LIST_FUNCTION(name, where, item, get)                                                                \
    enum cdacq_status cdacq_jitdump_record_##name(const struct cdacq_jitdump_record *record, where,          \
                                                  struct cdacq_jitdump_##item *ret, struct cdacq_error *err) \
    {                                                                                                        \
        struct cdacq_jitdump_##item own = {0};                                                               \
        enum cdacq_status status = sized_check(ret, "struct cdacq_jitdump_" #item, err);                     \
        if (status < 0)                                                                                      \
            return status;                                                                                   \
        if (!get)                                                                                            \
            return CDACQ_END;                                                                                \
        sized_copy(ret, &own, sizeof own);                                                                   \
        return CDACQ_OK;                                                                                     \
    }

LIST_FUNCTION(next_entry, uint64_t *cursor, entry, next_entry(record, cursor, &own))
LIST_FUNCTION(get_function, uint32_t index, function, get_element(record, FUNCTIONS, index, &own))
LIST_FUNCTION(get_inline_call, uint32_t index, inline_call, get_element(record, INLINE_CALLS, index, &own))
LIST_FUNCTION(get_range, uint32_t index, range, get_element(record, RANGES, index, &own))
LIST_FUNCTION(get_line_record, uint32_t index, line_record, get_element(record, LINE_RECORDS, index, &own))

enum cdacq_status cdacq_jitdump_record_next_string(const struct cdacq_jitdump_record *record,
                                                   enum cdacq_jitdump_strings list, uint64_t *cursor, const char **ret,
                                                   size_t *ret_length, struct cdacq_error *err)
{
    if ((unsigned)list > CDACQ_JITDUMP_FUNCTION_NAMES)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "a jitdump record has no list of strings %u", (unsigned)list);
    return next_string(record, (enum samply_list_id)list, cursor, ret, ret_length) ? CDACQ_OK : CDACQ_END;
}

/* ---- Fields ------------------------------------------------------------------------------------------------------ */

static void finish_load(const uint8_t *p, struct cdacq_jitdump_record *record, struct problems *problems)
{
    struct cdacq_jitdump_load *load = &record->as.load;
    size_t size = record->opaque.size;
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
    if (load->code_size && load->code_size - 1 > UINT64_MAX - load->vma)
        problem(problems, "JIT_CODE_LOAD: %" PRIu64 " bytes at 0x%" PRIx64 " go beyond the last address",
                load->code_size, load->vma);
}

static void finish_debug_info(struct cdacq_jitdump_record *record, struct problems *problems)
{
    const struct cdacq_jitdump_debug_info *info = &record->as.debug_info;
    struct cdacq_jitdump_entry entry;
    uint64_t count = 0;
    for (uint64_t cursor = 0; next_entry(record, &cursor, &entry);)
        count++;
    if (count < info->nr_entry)
        problem(problems, "JIT_CODE_DEBUG_INFO: nr_entry is %" PRIu64 ", and %" PRIu64 " entries are there",
                info->nr_entry, count);
}

static int32_t offset_at(const struct cfi_bytes *bytes, uint64_t at)
{
    return (int32_t)load_u32(bytes->bytes + at, bytes->big);
}

/*
 * Checks .eh_frame_hdr, which follows .eh_frame in the data of a JIT_CODE_UNWINDING_INFO. Addresses are offsets in the
 * data: nothing says where the data will be.
 */
static void check_eh_frame_hdr(struct cdacq_jitdump_record *record, struct problems *problems)
{
    struct cdacq_jitdump_unwinding_info *info = &record->as.unwinding_info;
    uint64_t frame_size = info->unwind_data_size - info->eh_frame_hdr_size;
    struct cfi_bytes header = {.bytes = (const uint8_t *)info->unwinding_data + frame_size,
                               .size = (size_t)info->eh_frame_hdr_size,
                               .address = frame_size,
                               .word_size = 8,
                               .big = record->opaque.big_endian};
    struct cfi_index index;
    if (!cfi_index_read(&header, &index)) {
        problem(problems, "JIT_CODE_UNWINDING_INFO: its eh_frame_hdr is damaged");
        return;
    }
    info->fde_count = index.count;
    uint64_t table = index.count ? index.table - frame_size : 0, room = header.size - MIN(table, (uint64_t)header.size);
    if (index.eh_frame >= frame_size)
        problem(problems, "JIT_CODE_UNWINDING_INFO: the eh_frame of its eh_frame_hdr is not in its data");
    else if (index.count > room / CFI_INDEX_ENTRY)
        problem(problems,
                "JIT_CODE_UNWINDING_INFO: its eh_frame_hdr has %" PRIu64 " entries, and %" PRIu64 " bytes for them",
                index.count, room);
    else
        for (uint64_t i = 0; i < index.count; i++) {
            uint64_t at = table + i * CFI_INDEX_ENTRY;
            uint64_t fde = frame_size + (uint64_t)(int64_t)offset_at(&header, at + 4);
            if (fde >= frame_size)
                problem(problems,
                        "JIT_CODE_UNWINDING_INFO: entry %" PRIu64 " of its eh_frame_hdr has no FDE in its data", i);
            if (i && offset_at(&header, at - CFI_INDEX_ENTRY) > offset_at(&header, at))
                problem(problems, "JIT_CODE_UNWINDING_INFO: entry %" PRIu64 " of its eh_frame_hdr is not in order", i);
        }
}

static void finish_unwinding_info(const uint8_t *p, struct cdacq_jitdump_record *record, struct problems *problems)
{
    struct cdacq_jitdump_unwinding_info *info = &record->as.unwinding_info;
    info->unwinding_data_offset = record->offset + UNWINDING_FIXED;
    if (!range_fits(UNWINDING_FIXED, info->unwind_data_size, record->total_size))
        problem(problems, "JIT_CODE_UNWINDING_INFO: unwind_data_size is %" PRIu64 ", and %" PRIu64 " bytes are left",
                info->unwind_data_size, record->total_size - UNWINDING_FIXED);
    else if (range_fits(UNWINDING_FIXED, info->unwind_data_size, record->opaque.size))
        info->unwinding_data = p + UNWINDING_FIXED;
    if (info->eh_frame_hdr_size > info->unwind_data_size)
        problem(problems,
                "JIT_CODE_UNWINDING_INFO: eh_frame_hdr_size %" PRIu64 " is more than unwind_data_size %" PRIu64,
                info->eh_frame_hdr_size, info->unwind_data_size);
    else if (info->eh_frame_hdr_size && info->unwinding_data)
        check_eh_frame_hdr(record, problems);
}

/* ---- samply ------------------------------------------------------------------------------------------------------ */

/* A list of strings: as many as it claims, padded to a multiple of four. */
static void check_strings(const struct cdacq_jitdump_record *record, enum samply_list_id id, const char *what,
                          struct problems *problems)
{
    struct samply_list list = samply_list_at(&record->as.samply_debug_info2, id);
    const char *string;
    uint64_t cursor = 0;
    size_t length;
    while (next_string(record, id, &cursor, &string, &length))
        ;
    if (cursor_count(cursor) < list.count)
        problem(problems, "%s: %" PRIu32 " strings are there, and %" PRIu32 " should be", what, cursor_count(cursor),
                list.count);
    else if (list.size % 4 || list.size - cursor_bytes(cursor) > 3)
        problem(problems, "%s: its size is %" PRIu64 ", and its strings take %" PRIu32, what, list.size,
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
    for (uint32_t i = 0; get_element(record, FUNCTIONS, i, &function); i++) {
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
    for (i = 0; get_element(record, INLINE_CALLS, i, &call); i++) {
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
    for (uint32_t i = 0; get_element(record, LINE_RECORDS, i, &line); i++) {
        check_index(problems, "line_record_list", i, "file_index", line.file_index, info->file_count);
        if (!line.line_number)
            problem(problems, "line_record_list[%" PRIu32 "].line_number is 0, and lines begin at 1", i);
    }
}

/* Whether [begin, end) is in one of `count` ranges from `first` on. Each comparison takes one of *left. */
static bool is_in_ranges(const struct cdacq_jitdump_record *record, uint64_t begin, uint64_t end, uint32_t first,
                         uint32_t count, uint32_t *left)
{
    struct cdacq_jitdump_range range;
    for (uint32_t i = 0; i < count && get_element(record, RANGES, first + i, &range); i++) {
        if (!*left || !--*left) /* too many to check */
            return true;
        if (begin >= range.start_offset && end <= (uint64_t)range.start_offset + range.code_size)
            return true;
    }
    return false;
}

/* The calls around the current one, by depth. */
struct call_ranges {
    uint32_t first, count;
};

/* The code of an inlined call is in that of the call that contains it. */
static void check_ranges(const struct cdacq_jitdump_record *record, struct problems *problems)
{
    enum { DEPTH_MAX = 64 }; /* deeper calls are not checked */
    struct call_ranges parents[DEPTH_MAX] = {{0}};
    struct cdacq_jitdump_inline_call call;
    struct cdacq_jitdump_range range;
    uint64_t checks = RANGE_CHECKS * (uint64_t)record->as.samply_debug_info2.range_count;
    uint32_t first = 0, left = (uint32_t)MIN(checks, record->total_size);
    for (uint32_t i = 0; get_element(record, INLINE_CALLS, i, &call); i++) {
        const struct call_ranges *parent =
            call.depth && call.depth <= DEPTH_MAX ? &parents[call.depth - 1] : &(struct call_ranges){0};
        for (uint32_t k = 0; k < call.range_count && get_element(record, RANGES, first + k, &range); k++) {
            uint64_t end = (uint64_t)range.start_offset + range.code_size;
            if (parent->count && !is_in_ranges(record, range.start_offset, end, parent->first, parent->count, &left))
                problem(problems, "range_list[%" PRIu32 "] is outside of the ranges of the call that contains it",
                        first + k);
        }
        if (call.depth < DEPTH_MAX)
            parents[call.depth] = (struct call_ranges){first, call.range_count};
        if (call.range_count > UINT32_MAX - first)
            return;
        first += call.range_count;
    }
}

/* ---- The record that samply reads -------------------------------------------------------------------------------- */

/* Whether the contents of a record with the id of SAMPLY_TIER are lists that fill it exactly. */
static bool is_positions(const struct cdacq_jitdump_record *record)
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
static void check_positions(const struct cdacq_jitdump_record *record, struct problems *problems)
{
    const struct cdacq_jitdump_samply_positions *info = &record->as.samply_positions;
    for (uint64_t i = 0; i < info->code_offset_count; i++) {
        uint32_t offset = code_offset_field(record, i, 0), position = code_offset_field(record, i, 1);
        if (i && offset <= code_offset_field(record, i - 1, 0))
            problem(problems, "code_offset[%" PRIu64 "] is %" PRIu32 ", not more than the one before it", i, offset);
        if (position >= info->source_position_count)
            problem(problems, "code_offset[%" PRIu64 "].source_position is %" PRIu32 ", and there are %" PRIu64, i,
                    position, info->source_position_count);
    }
    for (uint64_t i = 0; i < info->source_position_count; i++) {
        uint32_t caller = position_field(record, i, 0), file = position_field(record, i, 2);
        if (caller != UINT32_MAX && (caller >= info->source_position_count || caller == i))
            problem(problems, "source_position[%" PRIu64 "].caller_index is %" PRIu32, i, caller);
        if (position_field(record, i, 1) >= info->string_count)
            problem(problems, "source_position[%" PRIu64 "].function_name is %" PRIu32 ", and there are %" PRIu64, i,
                    position_field(record, i, 1), info->string_count);
        if (file != UINT32_MAX && file >= info->string_count)
            problem(problems, "source_position[%" PRIu64 "].file is %" PRIu32 ", and there are %" PRIu64, i, file,
                    info->string_count);
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

static void check_samply(const struct cdacq_jitdump_record *record, struct problems *problems)
{
    struct samply_list last = samply_list_at(&record->as.samply_debug_info2, LINE_RECORDS);
    uint64_t end = last.begin + last.size;
    if (end > record->total_size)
        problem(problems, "SAMPLY_JIT_CODE_DEBUG_INFO2: its lists take %" PRIu64 " bytes, and %" PRIu64 " are left",
                end - SAMPLY_FIXED, record->total_size - SAMPLY_FIXED);
    else if (end + SLACK_MAX < record->total_size)
        problem(problems, "SAMPLY_JIT_CODE_DEBUG_INFO2: %" PRIu64 " bytes after its lists belong to none of them",
                record->total_size - end);
    check_strings(record, FILES, "file_list", problems);
    check_strings(record, FUNCTION_NAMES, "function_names_list", problems);
    check_functions(record, problems);
    check_inline_calls(record, problems);
    check_line_records(record, problems);
    check_ranges(record, problems);
}

/* ---- Records ----------------------------------------------------------------------------------------------------- */

/* The fields that every record of a kind has after its prefix, as load_fields copies them to the struct of the kind. */
static const struct {
    uint8_t narrow, wide;
} fixed_fields[] = {
    [CDACQ_JITDUMP_LOAD] = {2, 4},
    [CDACQ_JITDUMP_MOVE] = {2, 5},
    [CDACQ_JITDUMP_DEBUG_INFO] = {0, 2},
    [CDACQ_JITDUMP_UNWINDING_INFO] = {0, 3},
    [CDACQ_JITDUMP_UNKNOWN] = {0, 0},
    [CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2] = {8, 0},
    [CDACQ_JITDUMP_SAMPLY_POSITIONS] = {0, 4},
};

_Static_assert(offsetof(struct cdacq_jitdump_load, name) == 2 * 4 + 4 * 8, "fields are as in the file");
_Static_assert(offsetof(struct cdacq_jitdump_move, load) == 2 * 4 + 5 * 8, "fields are as in the file");
_Static_assert(sizeof(struct cdacq_jitdump_debug_info) == 2 * 8, "fields are as in the file");
_Static_assert(offsetof(struct cdacq_jitdump_unwinding_info, unwinding_data) == 3 * 8, "fields are as in the file");
_Static_assert(sizeof(struct cdacq_jitdump_samply_debug_info2) == 8 * 4, "fields are as in the file");
_Static_assert(sizeof(struct cdacq_jitdump_samply_positions) == 4 * 8, "fields are as in the file");

enum cdacq_status jitdump_decode(const void *bytes, size_t size, bool big_endian, struct cdacq_jitdump_record *record,
                                 struct cdacq_error *err)
{
    struct problems problems = {.err = err, .offset = record->offset};
    record->opaque.bytes = bytes;
    record->opaque.size = (size_t)MIN((uint64_t)size, record->total_size);
    record->opaque.big_endian = big_endian;
    if (is_positions(record))
        record->kind = CDACQ_JITDUMP_SAMPLY_POSITIONS;
    size_t narrow = fixed_fields[record->kind].narrow, wide = fixed_fields[record->kind].wide;
    size_t fixed = JITDUMP_PREFIX_SIZE + 4 * narrow + 8 * wide;
    record->has_fields = record->opaque.size >= fixed;
    memset(&record->as, 0, sizeof record->as);
    if (!record->has_fields)
        return error_set(err, CDACQ_ERR_FORMAT, record->offset,
                         "%s: the record has %" PRIu64 " bytes, and its fields take %zu",
                         cdacq_jitdump_kind_text(record->kind), record->total_size, fixed);
    load_fields((const uint8_t *)bytes + JITDUMP_PREFIX_SIZE, narrow, wide, big_endian, &record->as);
    if (record->kind == CDACQ_JITDUMP_LOAD)
        finish_load(bytes, record, &problems);
    else if (record->kind == CDACQ_JITDUMP_DEBUG_INFO)
        finish_debug_info(record, &problems);
    else if (record->kind == CDACQ_JITDUMP_UNWINDING_INFO)
        finish_unwinding_info(bytes, record, &problems);
    else if (record->kind == CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2)
        check_samply(record, &problems);
    else if (record->kind == CDACQ_JITDUMP_SAMPLY_POSITIONS)
        check_positions(record, &problems);
    else if (record->kind == CDACQ_JITDUMP_CLOSE && record->total_size > JITDUMP_PREFIX_SIZE)
        problem(&problems, "JIT_CODE_CLOSE: %" PRIu64 " bytes after its header belong to nothing",
                record->total_size - JITDUMP_PREFIX_SIZE);
    return problems_end(&problems);
}
