#include "src/cli/commands/records.h"

#include <stddef.h>
#include <string.h>

#define FIELD(label, format, type, path)                                                 \
    {                                                                                    \
        label, RECORD_##format, sizeof((*(const type *)NULL).path), offsetof(type, path) \
    }
#define FIELDS(...)                                                                          \
    {                                                                                        \
        (const struct record_field[]){__VA_ARGS__},                                          \
            sizeof((const struct record_field[]){__VA_ARGS__}) / sizeof(struct record_field) \
    }

/* perf takes the name "\xff" for that of the entry before (tools/perf/util/genelf_debug.c), which *ret still has. */
static bool next_entry(const struct cdacq_jitdump_record *record, uint64_t *cursor, union record_element *ret)
{
    struct cdacq_jitdump_entry before = *cursor ? ret->entry : (struct cdacq_jitdump_entry){0};
    ret->entry.size = sizeof ret->entry;
    if (cdacq_jitdump_record_next_entry(record, cursor, &ret->entry, NULL) != CDACQ_OK)
        return false;
    if (before.name && ret->entry.name_length == 1 && ret->entry.name[0] == '\xff') {
        ret->entry.name = before.name;
        ret->entry.name_length = before.name_length;
    }
    return true;
}

static bool next_file(const struct cdacq_jitdump_record *record, uint64_t *cursor, union record_element *ret)
{
    return cdacq_jitdump_record_next_string(record, CDACQ_JITDUMP_FILES, cursor, &ret->string.text, &ret->string.length,
                                            NULL) == CDACQ_OK;
}

static bool next_function_name(const struct cdacq_jitdump_record *record, uint64_t *cursor, union record_element *ret)
{
    return cdacq_jitdump_record_next_string(record, CDACQ_JITDUMP_FUNCTION_NAMES, cursor, &ret->string.text,
                                            &ret->string.length, NULL) == CDACQ_OK;
}

static bool next_function(const struct cdacq_jitdump_record *record, uint64_t *cursor, union record_element *ret)
{
    ret->function.size = sizeof ret->function;
    return cdacq_jitdump_record_get_function(record, (uint32_t)(*cursor)++, &ret->function, NULL) == CDACQ_OK;
}

static bool next_inline_call(const struct cdacq_jitdump_record *record, uint64_t *cursor, union record_element *ret)
{
    ret->call.size = sizeof ret->call;
    return cdacq_jitdump_record_get_inline_call(record, (uint32_t)(*cursor)++, &ret->call, NULL) == CDACQ_OK;
}

static bool next_range(const struct cdacq_jitdump_record *record, uint64_t *cursor, union record_element *ret)
{
    ret->range.size = sizeof ret->range;
    return cdacq_jitdump_record_get_range(record, (uint32_t)(*cursor)++, &ret->range, NULL) == CDACQ_OK;
}

static bool next_line_record(const struct cdacq_jitdump_record *record, uint64_t *cursor, union record_element *ret)
{
    ret->line.size = sizeof ret->line;
    return cdacq_jitdump_record_get_line_record(record, (uint32_t)(*cursor)++, &ret->line, NULL) == CDACQ_OK;
}

#define ELEMENT(label, format, path) FIELD(label, format, union record_element, path)

static const struct record_list entry_lists[] = {
    {
        .key = "entries",
        .next = next_entry,
        .json = FIELDS(ELEMENT("code_addr", HEX, entry.code_addr), ELEMENT("line", DECIMAL, entry.line),
                       ELEMENT("discrim", DECIMAL, entry.discrim), ELEMENT("name", STRING, entry.name)),
        .text_label = "\n  ",
        .text = FIELDS(ELEMENT("", HEX, entry.code_addr), ELEMENT(" ", STRING, entry.name),
                       ELEMENT(":", DECIMAL, entry.line), ELEMENT(":", DECIMAL, entry.discrim)),
    },
};

/* In text, functions, files and names are shown as numbers, because many elements may share one. */
static const struct record_list samply_lists[] = {
    {
        .key = "file_list",
        .next = next_file,
        .json = FIELDS(ELEMENT(NULL, STRING, string.text)),
        .text_label = "\n  file ",
        .is_numbered = true,
        .text = FIELDS(ELEMENT(" ", STRING, string.text)),
    },
    {
        .key = "function_names_list",
        .next = next_function_name,
        .json = FIELDS(ELEMENT(NULL, STRING, string.text)),
        .text_label = "\n  name ",
        .is_numbered = true,
        .text = FIELDS(ELEMENT(" ", STRING, string.text)),
    },
    {
        .key = "function_list",
        .next = next_function,
        .json = FIELDS(
            ELEMENT("function_name_index", DECIMAL, function.function_name_index),
            ELEMENT("file_index", DECIMAL, function.file_index), ELEMENT("start_line", DECIMAL, function.start_line),
            ELEMENT("start_column", DECIMAL, function.start_column), ELEMENT("flags", DECIMAL, function.flags)),
        .text_label = "\n  function ",
        .is_numbered = true,
        .text = FIELDS(ELEMENT(" name ", DECIMAL, function.function_name_index),
                       ELEMENT(" file ", DECIMAL, function.file_index), ELEMENT(":", DECIMAL, function.start_line),
                       ELEMENT(":", DECIMAL, function.start_column), ELEMENT(" flags ", HEX, function.flags)),
    },
    {
        .key = "inline_call_list",
        .next = next_inline_call,
        .json = FIELDS(ELEMENT("depth", DECIMAL, call.depth), ELEMENT("range_count", DECIMAL, call.range_count),
                       ELEMENT("function_index", DECIMAL, call.function_index),
                       ELEMENT("call_line_number", DECIMAL, call.call_line_number),
                       ELEMENT("call_column_number", DECIMAL, call.call_column_number)),
        .text_label = "\n  call",
        .has_ranges = true,
        .text =
            FIELDS(ELEMENT(" depth ", DECIMAL, call.depth), ELEMENT(" function ", DECIMAL, call.function_index),
                   ELEMENT(" from :", DECIMAL, call.call_line_number), ELEMENT(":", DECIMAL, call.call_column_number)),
    },
    {
        .key = "range_list",
        .next = next_range,
        .json = FIELDS(ELEMENT("start_offset", DECIMAL, range.start_offset), ELEMENT("size", DECIMAL, range.code_size)),
    },
    {
        .key = "line_record_list",
        .next = next_line_record,
        .json = FIELDS(
            ELEMENT("code_offset", DECIMAL, line.code_offset), ELEMENT("file_index", DECIMAL, line.file_index),
            ELEMENT("line_number", DECIMAL, line.line_number), ELEMENT("column_number", DECIMAL, line.column_number)),
        .text_label = "\n  line",
        .text = FIELDS(ELEMENT(" +", HEX, line.code_offset), ELEMENT(" file ", DECIMAL, line.file_index),
                       ELEMENT(":", DECIMAL, line.line_number), ELEMENT(":", DECIMAL, line.column_number)),
    },
};

#define RECORD(label, format, path)     FIELD(label, format, struct cdacq_jitdump_record, path)
#define HEADER(label, format, field)    RECORD(label, format, as.header.field)
#define LOAD(label, format, field)      RECORD(label, format, as.load.field)
#define MOVE(label, format, field)      RECORD(label, format, as.move.field)
#define DEBUG(label, format, field)     RECORD(label, format, as.debug_info.field)
#define UNWIND(label, format, field)    RECORD(label, format, as.unwinding_info.field)
#define SAMPLY(label, format, field)    RECORD(label, format, as.samply_debug_info2.field)
#define POSITIONS(label, format, field) RECORD(label, format, as.samply_positions.field)
#define WORD(text)    \
    {                 \
        .label = text \
    }

const struct record_fields record_common_json =
    FIELDS(RECORD("id", DECIMAL, id), RECORD("offset", DECIMAL, offset), RECORD("size", DECIMAL, total_size),
           RECORD("timestamp", DECIMAL, timestamp));

const struct record_fields record_line_start =
    FIELDS(RECORD("", DECIMAL, offset), RECORD(" ", DECIMAL, timestamp), WORD(" "));

static const struct record_kind kinds[] = {
    [CDACQ_JITDUMP_HEADER] = {FIELDS(HEADER("version", DECIMAL, version), HEADER("total_size", DECIMAL, total_size),
                                     HEADER("elf_mach", DECIMAL, elf_mach), HEADER("pid", DECIMAL, pid),
                                     RECORD("timestamp", DECIMAL, timestamp), HEADER("flags", DECIMAL, flags),
                                     HEADER("endian", ENDIAN, big_endian)),
                              FIELDS(HEADER("version ", DECIMAL, version), HEADER(", pid ", DECIMAL, pid),
                                     HEADER(", elf_mach ", DECIMAL, elf_mach), HEADER(", ", ENDIAN, big_endian),
                                     HEADER("-endian", TICKS, flags)),
                              NULL, 0},
    [CDACQ_JITDUMP_LOAD] = {FIELDS(LOAD("pid", DECIMAL, pid), LOAD("tid", DECIMAL, tid), LOAD("vma", HEX, vma),
                                   LOAD("code_addr", HEX, code_addr), LOAD("code_size", DECIMAL, code_size),
                                   LOAD("code_index", DECIMAL, code_index), LOAD("debug_info", REFERENCE, debug_info),
                                   LOAD("unwinding_info", REFERENCE, unwinding_info),
                                   LOAD("samply_debug_info2", REFERENCE, samply_debug_info2),
                                   LOAD("name", STRING, name)),
                            FIELDS(LOAD("", HEX, vma), LOAD(" +", HEX, code_size), LOAD(" ", STRING, name),
                                   LOAD(" [index ", DECIMAL, code_index), LOAD(" tid ", DECIMAL, tid), WORD("]")),
                            NULL, 0},
    [CDACQ_JITDUMP_MOVE] = {FIELDS(MOVE("pid", DECIMAL, pid), MOVE("tid", DECIMAL, tid), MOVE("vma", HEX, vma),
                                   MOVE("old_code_addr", HEX, old_code_addr), MOVE("new_code_addr", HEX, new_code_addr),
                                   MOVE("code_size", DECIMAL, code_size), MOVE("code_index", DECIMAL, code_index),
                                   MOVE("load", REFERENCE, load)),
                            FIELDS(MOVE("", HEX, vma), MOVE(" +", HEX, code_size), MOVE(" from ", HEX, old_code_addr),
                                   MOVE(" [index ", DECIMAL, code_index), MOVE(" tid ", DECIMAL, tid), WORD("]")),
                            NULL, 0},
    [CDACQ_JITDUMP_DEBUG_INFO] = {FIELDS(DEBUG("code_addr", HEX, code_addr), DEBUG("nr_entry", DECIMAL, nr_entry)),
                                  FIELDS(DEBUG("", HEX, code_addr), DEBUG(" ", DECIMAL, nr_entry), WORD(" entries")),
                                  entry_lists, ARRAY_SIZE(entry_lists)},
    [CDACQ_JITDUMP_UNWINDING_INFO] = {FIELDS(UNWIND("unwind_data_size", DECIMAL, unwind_data_size),
                                             UNWIND("eh_frame_hdr_size", DECIMAL, eh_frame_hdr_size),
                                             UNWIND("mapped_size", DECIMAL, mapped_size),
                                             UNWIND("fde_count", REFERENCE, fde_count)),
                                      FIELDS(UNWIND("", DECIMAL, unwind_data_size),
                                             UNWIND(" bytes, of which eh_frame_hdr ", DECIMAL, eh_frame_hdr_size),
                                             UNWIND(", mapped ", DECIMAL, mapped_size)),
                                      NULL, 0},
    [CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2] =
        {FIELDS(SAMPLY("file_count", DECIMAL, file_count), SAMPLY("file_list_size", DECIMAL, file_list_size),
                SAMPLY("function_names_count", DECIMAL, function_names_count),
                SAMPLY("function_names_list_size", DECIMAL, function_names_list_size),
                SAMPLY("function_count", DECIMAL, function_count),
                SAMPLY("inline_call_record_count", DECIMAL, inline_call_record_count),
                SAMPLY("range_count", DECIMAL, range_count), SAMPLY("line_record_count", DECIMAL, line_record_count)),
         FIELDS(SAMPLY("", DECIMAL, function_count), SAMPLY(" functions, ", DECIMAL, inline_call_record_count),
                SAMPLY(" inline calls, ", DECIMAL, line_record_count), WORD(" line records")),
         samply_lists, ARRAY_SIZE(samply_lists)},
    [CDACQ_JITDUMP_SAMPLY_POSITIONS] =
        {FIELDS(POSITIONS("code_addr", HEX, code_addr), POSITIONS("code_offset_count", DECIMAL, code_offset_count),
                POSITIONS("source_position_count", DECIMAL, source_position_count),
                POSITIONS("string_count", DECIMAL, string_count)),
         FIELDS(POSITIONS("", HEX, code_addr), POSITIONS(" ", DECIMAL, code_offset_count), WORD(" code offsets, "),
                POSITIONS("", DECIMAL, source_position_count), WORD(" source positions")),
         NULL, 0},
};

static const struct record_kind other_kind = {
    .text = FIELDS(RECORD("id ", DECIMAL, id), RECORD(", ", DECIMAL, total_size), WORD(" bytes"))};

const struct record_kind *record_kind_find(enum cdacq_jitdump_kind kind)
{
    return kind < ARRAY_SIZE(kinds) && kinds[kind].text.count ? &kinds[kind] : &other_kind;
}

uint64_t record_field_value(const struct record_field *field, const void *object)
{
    const char *p = (const char *)object + field->offset;
    uint64_t value;
    uint32_t half;
    switch (field->size) {
    case sizeof value:
        memcpy(&value, p, sizeof value);
        return value;
    case sizeof half:
        memcpy(&half, p, sizeof half);
        return half;
    default:
        return *(const bool *)p;
    }
}

const char *record_field_string(const struct record_field *field, const void *object, size_t *ret_length)
{
    const char *string;
    memcpy(&string, (const char *)object + field->offset, sizeof string);
    memcpy(ret_length, (const char *)object + field->offset + sizeof string, sizeof *ret_length);
    return string;
}
