/*
 * cmd_records.c: decodes a jitdump file, one line for each record. It streams: memory use is constant, and --follow
 * prints all records before it waits for more.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/commands.h"
#include "src/cli/complaints.h"
#include "src/cli/console.h"
#include "src/cli/follow.h"
#include "src/cli/json_writer.h"
#include "src/cli/output.h"
#include "src/cli/put.h"
#include "util/base.h"

enum {
    FIELDS_ROOM = 1024, /* the fields of a record as text, without its strings */
    WAIT_MS = 100,
};

struct work {
    const char *path;
    struct output out;
    struct progress progress;
    uint64_t size; /* of the file, for the end of the progress */
    uint64_t done, errors;
    bool follow;
    int process; /* whose file is followed, as follow_open_process() gives it; -1: not known */
    bool ended;  /* it has */
    bool closed; /* the runtime has closed the file */
};

/* ---- Tables of fields -------------------------------------------------------------------------------------------- */

enum format {
    NOTHING, /* only the label, in text */
    DECIMAL,
    REFERENCE, /* a number; 0 is unknown */
    HEX,
    STRING, /* followed by its length */
    ENDIAN,
    TICKS, /* the header's flags */
};

/* A member of a struct. Its label is the JSON key or the text before the value. */
struct field {
    const char *label;
    uint8_t format, size;
    uint16_t offset;
};

struct fields {
    const struct field *items;
    size_t count;
};

#define FIELD(label, format, type, path)                                        \
    {                                                                           \
        label, format, sizeof((*(const type *)NULL).path), offsetof(type, path) \
    }
#define FIELDS(...)                                                                                             \
    {                                                                                                           \
        (const struct field[]){__VA_ARGS__}, sizeof((const struct field[]){__VA_ARGS__}) / sizeof(struct field) \
    }

union element {
    struct cdacq_jitdump_entry entry;
    struct cdacq_jitdump_function function;
    struct cdacq_jitdump_inline_call call;
    struct cdacq_jitdump_range range;
    struct cdacq_jitdump_line_record line;
    struct {
        const char *text;
        size_t length;
    } string;
};

/* A list that follows the fields of a record. */
struct list {
    const char *key;
    /* False after the last element. *cursor is 0 at first. */
    bool (*next)(const struct cdacq_jitdump_record *record, uint64_t *cursor, union element *ret);
    struct fields json;     /* a label of NULL: the element is not an object */
    const char *text_label; /* NULL: not shown as text */
    bool is_numbered;
    struct fields text;
};

static bool next_entry(const struct cdacq_jitdump_record *record, uint64_t *cursor, union element *ret)
{
    ret->entry.size = sizeof ret->entry;
    return cdacq_jitdump_record_next_entry(record, cursor, &ret->entry, NULL) == CDACQ_OK;
}

static bool next_file(const struct cdacq_jitdump_record *record, uint64_t *cursor, union element *ret)
{
    return cdacq_jitdump_record_next_string(record, CDACQ_JITDUMP_FILES, cursor, &ret->string.text, &ret->string.length,
                                            NULL) == CDACQ_OK;
}

static bool next_function_name(const struct cdacq_jitdump_record *record, uint64_t *cursor, union element *ret)
{
    return cdacq_jitdump_record_next_string(record, CDACQ_JITDUMP_FUNCTION_NAMES, cursor, &ret->string.text,
                                            &ret->string.length, NULL) == CDACQ_OK;
}

static bool next_function(const struct cdacq_jitdump_record *record, uint64_t *cursor, union element *ret)
{
    ret->function.size = sizeof ret->function;
    return cdacq_jitdump_record_get_function(record, (uint32_t)(*cursor)++, &ret->function, NULL) == CDACQ_OK;
}

static bool next_inline_call(const struct cdacq_jitdump_record *record, uint64_t *cursor, union element *ret)
{
    ret->call.size = sizeof ret->call;
    return cdacq_jitdump_record_get_inline_call(record, (uint32_t)(*cursor)++, &ret->call, NULL) == CDACQ_OK;
}

static bool next_range(const struct cdacq_jitdump_record *record, uint64_t *cursor, union element *ret)
{
    ret->range.size = sizeof ret->range;
    return cdacq_jitdump_record_get_range(record, (uint32_t)(*cursor)++, &ret->range, NULL) == CDACQ_OK;
}

static bool next_line_record(const struct cdacq_jitdump_record *record, uint64_t *cursor, union element *ret)
{
    ret->line.size = sizeof ret->line;
    return cdacq_jitdump_record_get_line_record(record, (uint32_t)(*cursor)++, &ret->line, NULL) == CDACQ_OK;
}

#define ELEMENT(label, format, path) FIELD(label, format, union element, path)

static const struct list entry_lists[] = {
    {"entries", next_entry,
     FIELDS(ELEMENT("code_addr", HEX, entry.code_addr), ELEMENT("line", DECIMAL, entry.line),
            ELEMENT("discrim", DECIMAL, entry.discrim), ELEMENT("name", STRING, entry.name)),
     "\n  ", false,
     FIELDS(ELEMENT("", HEX, entry.code_addr), ELEMENT(" ", STRING, entry.name), ELEMENT(":", DECIMAL, entry.line),
            ELEMENT(":", DECIMAL, entry.discrim))},
};

/* In text, functions, files and names are shown as numbers, because many elements may share one. */
static const struct list samply_lists[] = {
    {"file_list", next_file, FIELDS(ELEMENT(NULL, STRING, string.text)), "\n  file ", true,
     FIELDS(ELEMENT(" ", STRING, string.text))},
    {"function_names_list", next_function_name, FIELDS(ELEMENT(NULL, STRING, string.text)), "\n  name ", true,
     FIELDS(ELEMENT(" ", STRING, string.text))},
    {"function_list", next_function,
     FIELDS(ELEMENT("function_name_index", DECIMAL, function.function_name_index),
            ELEMENT("file_index", DECIMAL, function.file_index), ELEMENT("start_line", DECIMAL, function.start_line),
            ELEMENT("start_column", DECIMAL, function.start_column), ELEMENT("flags", DECIMAL, function.flags)),
     "\n  function ", true,
     FIELDS(ELEMENT(" name ", DECIMAL, function.function_name_index), ELEMENT(" file ", DECIMAL, function.file_index),
            ELEMENT(":", DECIMAL, function.start_line), ELEMENT(":", DECIMAL, function.start_column),
            ELEMENT(" flags ", HEX, function.flags))},
    {"inline_call_list", next_inline_call,
     FIELDS(ELEMENT("depth", DECIMAL, call.depth), ELEMENT("range_count", DECIMAL, call.range_count),
            ELEMENT("function_index", DECIMAL, call.function_index),
            ELEMENT("call_line_number", DECIMAL, call.call_line_number),
            ELEMENT("call_column_number", DECIMAL, call.call_column_number)),
     "\n  call", false, /* its ranges follow */
     FIELDS(ELEMENT(" depth ", DECIMAL, call.depth), ELEMENT(" function ", DECIMAL, call.function_index),
            ELEMENT(" from :", DECIMAL, call.call_line_number), ELEMENT(":", DECIMAL, call.call_column_number))},
    {"range_list",
     next_range,
     FIELDS(ELEMENT("start_offset", DECIMAL, range.start_offset), ELEMENT("size", DECIMAL, range.code_size)),
     NULL,
     false,
     {0}},
    {"line_record_list", next_line_record,
     FIELDS(ELEMENT("code_offset", DECIMAL, line.code_offset), ELEMENT("file_index", DECIMAL, line.file_index),
            ELEMENT("line_number", DECIMAL, line.line_number), ELEMENT("column_number", DECIMAL, line.column_number)),
     "\n  line", false,
     FIELDS(ELEMENT(" +", HEX, line.code_offset), ELEMENT(" file ", DECIMAL, line.file_index),
            ELEMENT(":", DECIMAL, line.line_number), ELEMENT(":", DECIMAL, line.column_number))},
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

/* The first JSON members of every record except the header. */
static const struct fields common_fields =
    FIELDS(RECORD("id", DECIMAL, id), RECORD("offset", DECIMAL, offset), RECORD("size", DECIMAL, total_size),
           RECORD("timestamp", DECIMAL, timestamp));

static const struct record_kind {
    struct fields json, text;
    const struct list *lists;
    size_t list_count;
} kinds[] = {
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

static const struct record_kind *find_kind(enum cdacq_jitdump_kind kind)
{
    return kind < ARRAY_SIZE(kinds) && kinds[kind].text.count ? &kinds[kind] : &other_kind;
}

static uint64_t field_value(const struct field *field, const void *object)
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

/* Returns NULL if the record is damaged. */
static const char *field_string(const struct field *field, const void *object, size_t *ret_length)
{
    const char *string;
    memcpy(&string, (const char *)object + field->offset, sizeof string);
    memcpy(ret_length, (const char *)object + field->offset + sizeof string, sizeof *ret_length);
    return string;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* `known` is false if the record is too short for its fields. */
static void write_json_fields(struct json_writer *w, const struct fields *fields, const void *object, bool known)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *field = &fields->items[i];
        size_t length;
        const char *string;
        switch (field->format) {
        case HEX:
            json_known_address(w, field->label, known, field_value(field, object));
            break;
        case STRING:
            string = field_string(field, object, &length);
            json_string_bytes(w, field->label, string, length);
            break;
        case ENDIAN:
            json_note(w, field->label, field_value(field, object) ? "big" : "little");
            break;
        default: {
            uint64_t value = field_value(field, object);
            json_known_number(w, field->label, known && (value || field->format == DECIMAL), value);
            break;
        }
        }
    }
}

static void write_json_list(struct json_writer *w, const struct list *list, const struct cdacq_jitdump_record *record)
{
    bool is_object = list->json.items[0].label != NULL;
    union element element;
    if (!record->has_fields) {
        json_null(w, list->key);
        return;
    }
    json_begin_array(w, list->key);
    for (uint64_t cursor = 0; list->next(record, &cursor, &element);) {
        if (is_object)
            json_begin_object(w, NULL);
        write_json_fields(w, &list->json, &element, true);
        if (is_object)
            json_end_object(w);
    }
    json_end_array(w);
}

static void write_json(struct output *out, const struct cdacq_jitdump_record *record)
{
    const struct record_kind *kind = find_kind(record->kind);
    bool is_header = record->kind == CDACQ_JITDUMP_HEADER;
    struct json_writer writer = json_begin(out), *w = &writer;
    json_begin_object(w, NULL);
    json_note(w, "type", cdacq_jitdump_kind_text(record->kind));
    if (!is_header)
        write_json_fields(w, &common_fields, record, true);
    write_json_fields(w, &kind->json, record, record->has_fields || is_header);
    for (size_t i = 0; i < kind->list_count; i++)
        write_json_list(w, &kind->lists[i], record);
    if (!is_header || record->error)
        json_note(w, "error", record->error);
    json_end_object(w);
    json_end_line(w);
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

/* For short texts, faster than strlen and memcpy. */
static inline char *put_text(char *p, const char *text)
{
    while (*text)
        *p++ = *text++;
    return p;
}

static void write_text_string(struct output *out, const struct field *field, const void *object)
{
    size_t length;
    const char *string = field_string(field, object, &length);
    if (string)
        output_escaped(out, string, length, ESCAPE_DATA);
    else
        output_literal(out, "?");
}

static void write_text_fields(struct output *out, const struct fields *fields, const void *object)
{
    char *p = output_reserve(out, FIELDS_ROOM);
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *field = &fields->items[i];
        p = put_text(p, field->label);
        switch (field->format) {
        case NOTHING:
            break;
        case STRING:
            output_commit(out, p);
            write_text_string(out, field, object);
            p = output_reserve(out, FIELDS_ROOM);
            break;
        case HEX:
            p = put_hex(p, field_value(field, object));
            break;
        case ENDIAN:
            p = put_text(p, field_value(field, object) ? "big" : "little");
            break;
        case TICKS:
            p = put_text(p, field_value(field, object) & 1 ? ", times in ticks of the processor" : "");
            break;
        default:
            p = put_decimal(p, field_value(field, object));
            break;
        }
    }
    output_commit(out, p);
}

/* Each inline call owns the next `range_count` ranges. */
static void write_text_ranges(struct output *out, const struct cdacq_jitdump_record *record, uint32_t count,
                              uint32_t *next)
{
    struct cdacq_jitdump_range range = {.size = sizeof range};
    for (; count && cdacq_jitdump_record_get_range(record, *next, &range, NULL) == CDACQ_OK; count--, ++*next)
        output_printf(out, " +0x%" PRIx32 "..0x%" PRIx64, range.start_offset,
                      (uint64_t)range.start_offset + range.code_size);
}

static void write_text_list(struct output *out, const struct list *list, const struct cdacq_jitdump_record *record)
{
    union element element;
    uint32_t number = 0, ranges = 0;
    for (uint64_t cursor = 0; list->text_label && list->next(record, &cursor, &element); number++) {
        output_literal(out, list->text_label);
        if (list->is_numbered)
            output_printf(out, "%" PRIu32, number);
        write_text_fields(out, &list->text, &element);
        if (list->next == next_inline_call)
            write_text_ranges(out, record, element.call.range_count, &ranges);
    }
}

/* The start of every line. */
static const struct fields line_start = FIELDS(RECORD("", DECIMAL, offset), RECORD(" ", DECIMAL, timestamp), WORD(" "));

static void write_text(struct output *out, const struct cdacq_jitdump_record *record)
{
    const struct record_kind *kind = find_kind(record->kind);
    write_text_fields(out, &line_start, record);
    output_literal(out, cdacq_jitdump_kind_text(record->kind));
    if ((record->has_fields || record->kind == CDACQ_JITDUMP_HEADER) && record->kind != CDACQ_JITDUMP_CLOSE) {
        output_literal(out, " ");
        write_text_fields(out, &kind->text, record);
        for (size_t i = 0; i < kind->list_count; i++)
            write_text_list(out, &kind->lists[i], record);
    }
    if (record->error) {
        output_styled(out, STYLE_ERROR, " ? [error] ");
        output_note(out, record->error);
    }
    output_literal(out, "\n");
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

static void take_record(struct work *work, const struct cdacq_jitdump_record *record, bool json)
{
    if (record->kind == CDACQ_JITDUMP_HEADER && record->as.header.restart)
        message("'%s': %s; reading again from the start", work->path, record->as.header.restart);
    (json ? write_json : write_text)(&work->out, record);
    if (record->error && ++work->errors <= COMPLAINTS_MAX)
        message("'%s', offset %" PRIu64 ": %s", work->path, record->offset, record->error);
    work->closed |= record->kind == CDACQ_JITDUMP_CLOSE;
    work->closed &= record->kind != CDACQ_JITDUMP_HEADER; /* another runtime writes to the file */
    if (++work->done % 1024 == 0 && !work->follow && record->offset)
        progress_estimate(&work->progress, work->done, record->offset, work->size);
}

/*
 * Waits for the file to grow. Returns false if it cannot, or if the output has no reader. What a process wrote before
 * it ended is still to be read.
 */
static bool wait_for_more(struct work *work)
{
    if (work->closed || work->ended)
        return false;
    work->ended = follow_process_ended(work->process);
    return work->ended || follow_wait(&work->out, WAIT_MS);
}

static enum cdacq_status print_all(struct work *work, struct cdacq_jitdump *jitdump, bool json)
{
    struct cdacq_jitdump_record record = {.size = sizeof record};
    struct cdacq_error error;
    for (;;) {
        enum cdacq_status status = cdacq_jitdump_next(jitdump, &record, &error);
        if (status == CDACQ_OK)
            take_record(work, &record, json);
        else if (status != CDACQ_END) {
            progress_end(&work->progress);
            message("'%s': %s", work->path, error.message);
            return status;
        } else if (!work->follow || !wait_for_more(work))
            break;
        if (follow_interrupted() || output_failed(&work->out))
            return CDACQ_OK;
    }
    if (!(work->closed || work->ended) || cdacq_jitdump_check_end(jitdump, &error) >= 0)
        return CDACQ_OK;
    message("'%s': %s", work->path, error.message);
    return CDACQ_ERR_FORMAT;
}

/*
 * The file of TARGET: its path or, of a process, that of its jitdump, for which --follow waits. False: a message says
 * why.
 */
static bool find_file(const struct invocation *invocation, struct work *work, char *room, size_t size)
{
    struct cdacq_error error;
    const char *name = invocation->targets[0];
    enum cdacq_status status = CDACQ_OK;
    work->path = name;
    if (!target_is_pid(name))
        return true;
    work->path = room;
    if (invocation->follow)
        work->process = follow_open_process(target_pid(name));
    do {
        status = cdacq_jitdump_find_file(target_pid(name), room, size, &error);
    } while (status == CDACQ_NOT_MANAGED && invocation->follow && !follow_interrupted() &&
             !follow_process_ended(work->process) && (poll(NULL, 0, WAIT_MS), true));
    if (status != CDACQ_OK)
        message("%s", error.message);
    return status == CDACQ_OK;
}

static void write_found(struct work *work, uint64_t at, const struct cdacq_jitdump_record *record,
                        const struct cdacq_jitdump_place *place, bool found, bool json)
{
    const struct cdacq_jitdump_load *load = &record->as.load;
    if (!json) {
        output_printf(&work->out, "0x%" PRIx64 " ", at);
        if (found)
            output_escaped(&work->out, load->name ? load->name : "?", load->name ? load->name_length : 1, ESCAPE_DATA);
        if (found)
            output_printf(&work->out, " +0x%" PRIx64 " [0x%" PRIx64 " +0x%" PRIx64 ", index %" PRIu64 "]\n",
                          at - place->vma, place->vma, place->code_size, place->code_index);
        else
            output_literal(&work->out, "[none]\n");
        return;
    }
    struct json_writer writer = json_begin(&work->out), *w = &writer;
    json_begin_object(w, NULL);
    json_known_address(w, "ip", true, at);
    json_string_bytes(w, "name", found ? load->name : NULL, found ? load->name_length : 0);
    json_known_address(w, "start", found, place->vma);
    json_known_number(w, "size", found, place->code_size);
    json_known_number(w, "offset", found, at - place->vma);
    json_known_number(w, "code_index", found, place->code_index);
    json_known_number(w, "load", found, place->load);
    json_known_number(w, "timestamp", found, place->timestamp);
    json_number(w, "damaged", place->damaged);
    json_note(w, "problem", place->problem);
    json_end_object(w);
    json_end_line(w);
}

/* What is wrong with the records that were searched. */
static void complain_of_search(const struct work *work, const struct cdacq_jitdump_place *place)
{
    if (!place->problem)
        return;
    message("'%s': %s", work->path, place->problem);
    if (place->damaged > 1)
        message("'%s': %" PRIu64 " more damaged record%s", work->path, place->damaged - 1, plural(place->damaged - 1));
}

/* --at: the function that has the address. */
static int show_function(const struct invocation *invocation, struct work *work, struct cdacq_jitdump *jitdump)
{
    struct cdacq_jitdump_record record = {.size = sizeof record};
    struct cdacq_jitdump_place place = {.size = sizeof place};
    struct cdacq_error error;
    uint64_t time = invocation->has_time ? invocation->time : CDACQ_JITDUMP_LAST;
    enum cdacq_status status = cdacq_jitdump_find(jitdump, invocation->at, time, &record, &place, &error);
    if (status >= 0)
        write_found(work, invocation->at, &record, &place, status == CDACQ_OK, invocation->json);
    else
        message("'%s': %s", work->path, error.message);
    if (status >= 0)
        complain_of_search(work, &place);
    return !output_close_if(&work->out, status >= 0) ? EXIT_FAILED : place.damaged ? EXIT_PARTLY : EXIT_ANSWERED;
}

int cmd_records(const struct invocation *invocation)
{
    struct work work = {.follow = invocation->follow, .process = -1};
    struct cdacq_jitdump *jitdump;
    struct cdacq_error error;
    char room[4096];
    if (invocation->has_time && !invocation->has_at) {
        message("--time needs --at");
        return EXIT_USAGE;
    }
    if (output_is_a_target(invocation))
        return EXIT_FAILED;
    if (work.follow)
        follow_begin();
    if (!find_file(invocation, &work, room, sizeof room) || output_is_input(invocation, work.path))
        return EXIT_FAILED;
    if (cdacq_jitdump_open(work.path, work.follow ? CDACQ_JITDUMP_FOLLOW : 0, &jitdump, &error) < 0) {
        message("%s", error.message);
        return EXIT_FAILED;
    }
    if (!(work.follow ? output_open_stream : output_open)(&work.out, invocation->output)) {
        cdacq_jitdump_close(jitdump);
        return EXIT_FAILED;
    }
    if (invocation->has_at) {
        int status = show_function(invocation, &work, jitdump);
        cdacq_jitdump_close(jitdump);
        return status;
    }
    progress_begin(&work.progress, "records", work.out.fd);
    work.size = path_size(work.path);
    enum cdacq_status status = print_all(&work, jitdump, invocation->json);
    progress_end(&work.progress);
    cdacq_jitdump_close(jitdump);
    if (work.errors > COMPLAINTS_MAX)
        message("'%s': %" PRIu64 " more damaged record%s", work.path, work.errors - COMPLAINTS_MAX,
                plural(work.errors - COMPLAINTS_MAX));
    if (!output_close_if(&work.out, status >= 0 || work.done))
        return EXIT_FAILED;
    return status < 0 || work.errors ? EXIT_PARTLY : EXIT_ANSWERED;
}
