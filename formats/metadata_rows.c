/* Whole rows. */
#include "formats/metadata_access.h"
#include "formats/metadata_schema.h"

enum cdacq_status metadata_row(const struct metadata *metadata, enum metadata_table table, uint32_t rid, void *ret,
                               size_t size)
{
    const struct metadata_table_layout *layout = &metadata->tables[table];
    uint32_t row[METADATA_COLUMN_CAP];
    const uint8_t *p;
    if (rid - 1 >= layout->rows)
        return CDACQ_ERR_FORMAT;
    enum cdacq_status status = bytes_require(&metadata->bytes, metadata_row_offset(layout, rid), layout->row_size, &p);
    if (status != CDACQ_OK)
        return status;
    for (unsigned i = 0; i < size / sizeof row[0]; i++) {
        const uint8_t *cell = p + layout->column_offset[i];
        row[i] = layout->column_width[i] == 4 ? load_u32(cell, false) : load_u16(cell, false);
        if (!metadata_resolve_cell(table, i, &row[i]))
            return CDACQ_ERR_FORMAT;
    }
    memcpy(ret, row, size);
    return CDACQ_OK;
}

enum cdacq_status metadata_mvid(const struct metadata *metadata, uint8_t ret[16])
{
    struct metadata_module module;
    enum cdacq_status status = metadata_module(metadata, 1, &module);
    return status == CDACQ_OK ? metadata_guid(metadata, module.mvid, ret) : status;
}

enum cdacq_status metadata_assembly_name(const struct metadata *metadata, uint32_t *ret_name)
{
    if (!metadata_row_count(metadata, METADATA_ASSEMBLY)) {
        *ret_name = 0;
        return CDACQ_OK;
    }
    return metadata_cell(metadata, METADATA_ASSEMBLY, 1, ASSEMBLY_NAME, ret_name);
}
