/*
 * records.h: records of a jitdump as lines: records_fields.c has the tables of what a line has, records_text.c and
 * records_json.c write it. The tables are constant; one thread at a time may use an output.
 */
#ifndef CDACQ_CLI_COMMANDS_RECORDS_H
#define CDACQ_CLI_COMMANDS_RECORDS_H

#include "cdacq.h"
#include "src/cli/base/output.h"

enum record_format {
    RECORD_NOTHING, /* only the label, in text */
    RECORD_DECIMAL,
    RECORD_REFERENCE, /* a number; 0 is unknown */
    RECORD_HEX,
    RECORD_STRING, /* followed by its length */
    RECORD_ENDIAN,
    RECORD_TICKS, /* the header's flags */
};

/* A member of a struct. Its label is the JSON key or the text before the value. */
struct record_field {
    const char *label;
    uint8_t format, size;
    uint16_t offset;
};

struct record_fields {
    const struct record_field *items;
    size_t count;
};

union record_element {
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
struct record_list {
    const char *key;
    /* False after the last element. *cursor is 0 at first. */
    bool (*next)(const struct cdacq_jitdump_record *record, uint64_t *cursor, union record_element *ret);
    struct record_fields json; /* a label of NULL: the element is not an object */
    const char *text_label;    /* NULL: not shown as text */
    bool is_numbered;
    bool has_ranges; /* in text, each element is followed by its ranges */
    struct record_fields text;
};

struct record_kind {
    struct record_fields json, text;
    const struct record_list *lists;
    size_t list_count;
};

extern const struct record_fields record_common_json; /* the first members of every record except the header */
extern const struct record_fields record_line_start;  /* of every line of text */

/* The fields of a kind; of one that is not known, those that every record has. */
const struct record_kind *record_kind_find(enum cdacq_jitdump_kind kind);

/* The value of a field that is a number. */
uint64_t record_field_value(const struct record_field *field, const void *object);

/* The bytes of a field that is a string. Returns NULL if the record is damaged. */
const char *record_field_string(const struct record_field *field, const void *object, size_t *ret_length);

void record_write_json(struct output *out, const struct cdacq_jitdump_record *record);
void record_write_text(struct output *out, const struct cdacq_jitdump_record *record);

#endif
