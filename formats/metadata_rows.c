/* The rows of single tables, with references resolved to tokens. */
#include "formats/metadata_access.h"
#include "formats/metadata_schema.h"

static uint32_t load_cell(const uint8_t *row, const struct metadata_table_layout *layout, unsigned column)
{
    const uint8_t *p = row + layout->column_offset[column];
    return layout->column_width[column] == 4 ? load_u32(p, false) : load_u16(p, false);
}

static enum cdacq_status read_row(const struct metadata *metadata, enum metadata_table table, uint32_t rid,
                                  uint32_t ret[METADATA_COLUMN_CAP])
{
    const struct metadata_table_layout *layout = &metadata->tables[table];
    const uint8_t *p;
    if (rid - 1 >= layout->rows)
        return CDACQ_ERR_FORMAT;
    enum cdacq_status status = metadata_window(metadata, metadata_row_offset(layout, rid), layout->row_size, &p);
    if (status != CDACQ_OK)
        return status;
    for (unsigned i = 0; i < METADATA_COLUMN_CAP; i++)
        ret[i] = layout->column_width[i] ? load_cell(p, layout, i) : 0;
    return CDACQ_OK;
}

enum cdacq_status metadata_module(const struct metadata *metadata, struct metadata_module *ret)
{
    uint32_t row[METADATA_COLUMN_CAP];
    enum cdacq_status status = read_row(metadata, METADATA_MODULE, 1, row);
    if (status == CDACQ_OK)
        *ret = (struct metadata_module){.name = row[MODULE_NAME], .mvid = row[MODULE_MVID]};
    return status;
}

enum cdacq_status metadata_mvid(const struct metadata *metadata, uint8_t ret[16])
{
    struct metadata_module module;
    const uint8_t *p;
    enum cdacq_status status = metadata_module(metadata, &module);
    if (status != CDACQ_OK)
        return status;
    uint64_t offset = (uint64_t)(module.mvid - 1) * 16; /* 0, none, lands far outside */
    if (!range_fits(offset, 16, metadata->guids.size))
        return CDACQ_ERR_FORMAT;
    status = metadata_window(metadata, metadata->guids.offset + offset, 16, &p);
    if (status == CDACQ_OK)
        memcpy(ret, p, 16);
    return status;
}

enum cdacq_status metadata_type_ref(const struct metadata *metadata, uint32_t rid, struct metadata_type_ref *ret)
{
    uint32_t row[METADATA_COLUMN_CAP], scope;
    enum cdacq_status status = read_row(metadata, METADATA_TYPE_REF, rid, row);
    if (status != CDACQ_OK)
        return status;
    if (!metadata_decode(RESOLUTION_SCOPE, row[TYPE_REF_SCOPE], &scope))
        return CDACQ_ERR_FORMAT;
    *ret = (struct metadata_type_ref){
        .scope = scope, .name = row[TYPE_REF_NAME], .namespace_name = row[TYPE_REF_NAMESPACE]};
    return CDACQ_OK;
}

enum cdacq_status metadata_type_def(const struct metadata *metadata, uint32_t rid, struct metadata_type_def *ret)
{
    uint32_t row[METADATA_COLUMN_CAP], extends;
    enum cdacq_status status = read_row(metadata, METADATA_TYPE_DEF, rid, row);
    if (status != CDACQ_OK)
        return status;
    if (!metadata_decode(TYPE_DEF_OR_REF, row[TYPE_DEF_EXTENDS], &extends))
        return CDACQ_ERR_FORMAT;
    *ret = (struct metadata_type_def){.flags = row[TYPE_DEF_FLAGS],
                                      .name = row[TYPE_DEF_NAME],
                                      .namespace_name = row[TYPE_DEF_NAMESPACE],
                                      .extends = extends,
                                      .method_list = row[TYPE_DEF_METHOD_LIST]};
    return CDACQ_OK;
}

enum cdacq_status metadata_method_def(const struct metadata *metadata, uint32_t rid, struct metadata_method_def *ret)
{
    uint32_t row[METADATA_COLUMN_CAP];
    enum cdacq_status status = read_row(metadata, METADATA_METHOD_DEF, rid, row);
    if (status == CDACQ_OK)
        *ret = (struct metadata_method_def){.rva = row[METHOD_DEF_RVA],
                                            .impl_flags = (uint16_t)row[METHOD_DEF_IMPL_FLAGS],
                                            .flags = (uint16_t)row[METHOD_DEF_FLAGS],
                                            .name = row[METHOD_DEF_NAME],
                                            .signature = row[METHOD_DEF_SIGNATURE]};
    return status;
}

enum cdacq_status metadata_member_ref(const struct metadata *metadata, uint32_t rid, struct metadata_member_ref *ret)
{
    uint32_t row[METADATA_COLUMN_CAP], parent;
    enum cdacq_status status = read_row(metadata, METADATA_MEMBER_REF, rid, row);
    if (status != CDACQ_OK)
        return status;
    if (!metadata_decode(MEMBER_REF_PARENT, row[MEMBER_REF_PARENT_COLUMN], &parent))
        return CDACQ_ERR_FORMAT;
    *ret = (struct metadata_member_ref){
        .parent = parent, .name = row[MEMBER_REF_NAME], .signature = row[MEMBER_REF_SIGNATURE]};
    return CDACQ_OK;
}

enum cdacq_status metadata_method_spec(const struct metadata *metadata, uint32_t rid, struct metadata_method_spec *ret)
{
    uint32_t row[METADATA_COLUMN_CAP], method;
    enum cdacq_status status = read_row(metadata, METADATA_METHOD_SPEC, rid, row);
    if (status != CDACQ_OK)
        return status;
    if (!metadata_decode(METHOD_DEF_OR_REF, row[METHOD_SPEC_METHOD], &method))
        return CDACQ_ERR_FORMAT;
    *ret = (struct metadata_method_spec){.method = method, .instantiation = row[METHOD_SPEC_INSTANTIATION]};
    return CDACQ_OK;
}

enum cdacq_status metadata_generic_param(const struct metadata *metadata, uint32_t rid,
                                         struct metadata_generic_param *ret)
{
    uint32_t row[METADATA_COLUMN_CAP], owner;
    enum cdacq_status status = read_row(metadata, METADATA_GENERIC_PARAM, rid, row);
    if (status != CDACQ_OK)
        return status;
    if (!metadata_decode(TYPE_OR_METHOD_DEF, row[GENERIC_PARAM_OWNER], &owner))
        return CDACQ_ERR_FORMAT;
    *ret = (struct metadata_generic_param){.number = (uint16_t)row[GENERIC_PARAM_NUMBER],
                                           .flags = (uint16_t)row[GENERIC_PARAM_FLAGS],
                                           .owner = owner,
                                           .name = row[GENERIC_PARAM_NAME]};
    return CDACQ_OK;
}

enum cdacq_status metadata_assembly_ref(const struct metadata *metadata, uint32_t rid,
                                        struct metadata_assembly_ref *ret)
{
    uint32_t row[METADATA_COLUMN_CAP];
    enum cdacq_status status = read_row(metadata, METADATA_ASSEMBLY_REF, rid, row);
    if (status != CDACQ_OK)
        return status;
    *ret = (struct metadata_assembly_ref){
        .flags = row[ASSEMBLY_REF_FLAGS], .name = row[ASSEMBLY_REF_NAME], .culture = row[ASSEMBLY_REF_CULTURE]};
    for (unsigned i = 0; i < ARRAY_SIZE(ret->version); i++)
        ret->version[i] = (uint16_t)row[i];
    return CDACQ_OK;
}

enum cdacq_status metadata_type_spec(const struct metadata *metadata, uint32_t rid, uint32_t *ret_signature)
{
    return metadata_cell(metadata, METADATA_TYPE_SPEC, rid, TYPE_SPEC_SIGNATURE, ret_signature);
}

enum cdacq_status metadata_module_ref_name(const struct metadata *metadata, uint32_t rid, uint32_t *ret_name)
{
    return metadata_cell(metadata, METADATA_MODULE_REF, rid, MODULE_REF_NAME, ret_name);
}

enum cdacq_status metadata_assembly_name(const struct metadata *metadata, uint32_t *ret_name)
{
    if (!metadata_row_count(metadata, METADATA_ASSEMBLY)) {
        *ret_name = 0;
        return CDACQ_OK;
    }
    return metadata_cell(metadata, METADATA_ASSEMBLY, 1, ASSEMBLY_NAME, ret_name);
}
