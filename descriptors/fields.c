#include "descriptors/fields.h"

uint64_t field_missing(struct reader *reader, enum layout_field field)
{
    return reader_fail(reader, CDACQ_ERR_FIELD, 0, layout_field_name(field));
}
