#include "src/cli/base/json_writer.h"
#include "src/cli/commands/records.h"

/* `known` is false if the record is too short for its fields. */
static void write_json_fields(struct json_writer *w, const struct record_fields *fields, const void *object, bool known)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct record_field *field = &fields->items[i];
        size_t length;
        const char *string;
        switch (field->format) {
        case RECORD_HEX:
            json_known_address(w, field->label, known, record_field_value(field, object));
            break;
        case RECORD_STRING:
            string = record_field_string(field, object, &length);
            json_string_bytes(w, field->label, string, length);
            break;
        case RECORD_ENDIAN:
            json_note(w, field->label, record_field_value(field, object) ? "big" : "little");
            break;
        default: {
            uint64_t value = record_field_value(field, object);
            json_known_number(w, field->label, known && (value || field->format == RECORD_DECIMAL), value);
            break;
        }
        }
    }
}

static void write_json_list(struct json_writer *w, const struct record_list *list,
                            const struct cdacq_jitdump_record *record)
{
    bool is_object = list->json.items[0].label != NULL;
    union record_element element;
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

void record_write_json(struct output *out, const struct cdacq_jitdump_record *record)
{
    const struct record_kind *kind = record_kind_find(record->kind);
    bool is_header = record->kind == CDACQ_JITDUMP_HEADER;
    struct json_writer writer = json_begin_line(out), *w = &writer;
    json_note(w, "type", cdacq_jitdump_kind_text(record->kind));
    if (!is_header)
        write_json_fields(w, &record_common_json, record, true);
    write_json_fields(w, &kind->json, record, record->has_fields || is_header);
    for (size_t i = 0; i < kind->list_count; i++)
        write_json_list(w, &kind->lists[i], record);
    if (!is_header || record->error)
        json_note(w, "error", record->error);
    json_end_line(w);
}
