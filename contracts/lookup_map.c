#include "contracts/lookup_map.h"

/*
 * False where the runtime has no such map. One that has grown, as that of a module which is edited while it runs, has
 * its first part unchanged.
 */
static bool read_rows(struct reader *reader, uint64_t module, enum layout_field map, uint32_t *ret)
{
    if (!has_field(reader, map))
        return false;
    uint32_t places = (uint32_t)read_field(reader, field_address(reader, module, map), F_ModuleLookupMap_Count);
    *ret = places - 1;
    return places && !reader_failed(reader);
}

uint64_t lookup_map_element(struct reader *reader, uint64_t module, enum layout_field map, uint32_t rid)
{
    if (!has_field(reader, map) || !has_field(reader, F_ModuleLookupMap_TableData))
        return 0;
    uint64_t part = field_address(reader, module, map);
    while (part && reader_step(reader, "parts of a module's map")) {
        uint32_t count = (uint32_t)read_field(reader, part, F_ModuleLookupMap_Count);
        if (rid < count) {
            uint64_t places = read_field(reader, part, F_ModuleLookupMap_TableData);
            uint64_t flags = read_optional(reader, part, F_ModuleLookupMap_SupportedFlagsMask);
            return read_pointer(reader, places + (uint64_t)rid * reader->pointer_size) & ~flags;
        }
        rid -= count;
        part = read_optional(reader, part, F_ModuleLookupMap_Next);
    }
    return 0;
}

bool lookup_maps_differ(struct reader *reader, uint64_t module, const struct metadata *metadata,
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
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    for (size_t i = 0; i < ARRAY_SIZE(maps) && has_field(reader, F_ModuleLookupMap_Count) && !differ; i++) {
        *ret = (struct lookup_map_difference){maps[i].what, metadata_row_count(metadata, maps[i].table), 0};
        differ = read_rows(reader, module, maps[i].map, &ret->loaded) && ret->loaded != ret->rows;
    }
    reader_leave(reader, &outer);
    return differ;
}
