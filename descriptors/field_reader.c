#include "descriptors/field_reader.h"

uint64_t field_missing(struct field_reader *reader, enum layout_field field)
{
    return reader_fail(&reader->raw, CDACQ_ERR_FIELD, 0, layout_field_name(field));
}
