/*
 * metadata_access.h: checked access to the cells of opened metadata.
 */
#ifndef CDACQ_FORMATS_METADATA_ACCESS_H
#define CDACQ_FORMATS_METADATA_ACCESS_H

#include "formats/metadata.h"

static inline uint64_t metadata_row_offset(const struct metadata_table_layout *layout, uint32_t rid)
{
    return layout->offset + (uint64_t)(rid - 1) * layout->row_size;
}

static inline enum cdacq_status metadata_cell(const struct metadata *metadata, enum metadata_table table, uint32_t rid,
                                              unsigned column, uint32_t *ret)
{
    const struct metadata_table_layout *layout = &metadata->tables[table];
    const uint8_t *p;
    if (UNLIKELY(rid - 1 >= layout->rows))
        return CDACQ_ERR_FORMAT;
    unsigned width = layout->column_width[column];
    enum cdacq_status status =
        bytes_require(&metadata->bytes, metadata_row_offset(layout, rid) + layout->column_offset[column], width, &p);
    if (LIKELY(status == CDACQ_OK))
        *ret = width == 4 ? load_u32(p, false) : load_u16(p, false);
    return status;
}

#endif
