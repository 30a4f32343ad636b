/*
 * fields.h: reads the fields that a layout binds, with a reader that has one.
 */
#ifndef CDACQ_DESCRIPTORS_FIELDS_H
#define CDACQ_DESCRIPTORS_FIELDS_H

#include "descriptors/layout.h"
#include "target/reader.h"

static inline void reader_init_fields(struct reader *reader, struct target *target, const struct layout *layout,
                                      unsigned pointer_size, bool big_endian)
{
    reader_init(reader, target, pointer_size, big_endian);
    reader->layout = layout;
}

static inline bool has_field(const struct reader *reader, enum layout_field field)
{
    return reader->layout->fields[field].present;
}

/* Makes the reader fail because the descriptor lacks `field`. Returns 0. */
uint64_t field_missing(struct reader *reader, enum layout_field field);

/* Names the field in the message if the read of `value` has failed. Returns `value`. */
static inline uint64_t field_read(struct reader *reader, enum layout_field field, uint64_t value)
{
    if (reader_failed(reader))
        reader_name_failure(reader, layout_field_name(field));
    return value;
}

/* The field's value in the structure at `base`. 0, and the reader fails, when it is absent or unreadable. */
static inline uint64_t read_field(struct reader *reader, uint64_t base, enum layout_field field)
{
    const struct layout_slot *slot = &reader->layout->fields[field];
    if (UNLIKELY(!slot->present))
        return field_missing(reader, field);
    return field_read(reader, field, read_uint(reader, base + slot->offset, slot->width));
}

/* The same, but 0 without failing if the field is absent or `base` is 0. */
static inline uint64_t read_optional(struct reader *reader, uint64_t base, enum layout_field field)
{
    return base && has_field(reader, field) ? read_field(reader, base, field) : 0;
}

/* The address of an INLINE field. 0, and the reader fails, when it is absent. */
static inline uint64_t field_address(struct reader *reader, uint64_t base, enum layout_field field)
{
    const struct layout_slot *slot = &reader->layout->fields[field];
    return LIKELY(slot->present) ? base + slot->offset : field_missing(reader, field);
}

#endif
