#include <inttypes.h>

#include "src/cli/base/put.h"
#include "src/cli/commands/records.h"

enum { FIELDS_ROOM = 1024 }; /* the fields of a record as text, without its strings */

/* For short texts, faster than strlen and memcpy. */
static inline char *put_text(char *p, const char *text)
{
    while (*text)
        *p++ = *text++;
    return p;
}

static void write_text_string(struct output *out, const struct record_field *field, const void *object)
{
    size_t length;
    const char *string = record_field_string(field, object, &length);
    if (string)
        output_escaped(out, string, length, ESCAPE_DATA);
    else
        output_literal(out, "?");
}

static void write_text_fields(struct output *out, const struct record_fields *fields, const void *object)
{
    char *p = output_reserve(out, FIELDS_ROOM);
    for (size_t i = 0; i < fields->count; i++) {
        const struct record_field *field = &fields->items[i];
        p = put_text(p, field->label);
        switch (field->format) {
        case RECORD_NOTHING:
            break;
        case RECORD_STRING:
            output_commit(out, p);
            write_text_string(out, field, object);
            p = output_reserve(out, FIELDS_ROOM);
            break;
        case RECORD_HEX:
            p = put_hex(p, record_field_value(field, object));
            break;
        case RECORD_ENDIAN:
            p = put_text(p, record_field_value(field, object) ? "big" : "little");
            break;
        case RECORD_TICKS:
            p = put_text(p, record_field_value(field, object) & 1 ? ", times in ticks of the processor" : "");
            break;
        default:
            p = put_decimal(p, record_field_value(field, object));
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

static void write_text_list(struct output *out, const struct record_list *list,
                            const struct cdacq_jitdump_record *record)
{
    union record_element element;
    uint32_t number = 0, ranges = 0;
    for (uint64_t cursor = 0; list->text_label && list->next(record, &cursor, &element); number++) {
        output_literal(out, list->text_label);
        if (list->is_numbered)
            output_printf(out, "%" PRIu32, number);
        write_text_fields(out, &list->text, &element);
        if (list->has_ranges)
            write_text_ranges(out, record, element.call.range_count, &ranges);
    }
}

void record_write_text(struct output *out, const struct cdacq_jitdump_record *record)
{
    const struct record_kind *kind = record_kind_find(record->kind);
    write_text_fields(out, &record_line_start, record);
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
