#include "contracts/lookup_map.h"

/*
 * False where the runtime has no such map. One that has grown, as that of a module which is edited while it runs, has
 * its first part unchanged.
 */
static bool read_rows(struct field_reader *reader, uint64_t module, enum layout_field map, uint32_t *ret)
{
    if (!has_field(reader, map))
        return false;
    uint32_t places = (uint32_t)read_field(reader, field_address(reader, module, map), F_ModuleLookupMap_Count);
    *ret = places - 1;
    return places && !reader_failed(&reader->raw);
}

bool lookup_maps_differ(struct field_reader *reader, uint64_t module, const struct metadata *metadata,
                        struct lookup_map_difference *ret)
{
    static const struct {
        enum layout_field map;
        enum metadata_table table;
        const char *what;
    } maps[] = {
        {F_Module_TypeDefToMethodTableMap, METADATA_TYPE_DEF, "types"},
        {F_Module_MethodDefToDescMap, METADATA_METHOD_DEF, "methods"},
        {F_Module_FieldDefToDescMap, METADATA_FIELD, "fields"},
        {F_Module_TypeRefToMethodTableMap, METADATA_TYPE_REF, "references to types"},
        {F_Module_MemberRefToDescMap, METADATA_MEMBER_REF, "references to members"},
    };
    bool differ = false;
    struct reader_task outer = reader_enter(&reader->raw, FUEL_LOOKUP);
    for (size_t i = 0; i < ARRAY_SIZE(maps) && has_field(reader, F_ModuleLookupMap_Count) && !differ; i++) {
        *ret = (struct lookup_map_difference){maps[i].what, metadata_row_count(metadata, maps[i].table), 0};
        differ = read_rows(reader, module, maps[i].map, &ret->loaded) && ret->loaded != ret->rows;
    }
    reader_leave(&reader->raw, &outer);
    return differ;
}
