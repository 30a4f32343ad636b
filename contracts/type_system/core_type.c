#include "contracts/type_system/core_type.h"

#include "contracts/lookup_map.h"
#include "formats/metadata_members.h"

uint64_t core_module(struct reader *reader)
{
    if (!reader->layout->global_present[G_StringMethodTable])
        return 0;
    uint64_t type = read_pointer(reader, reader->layout->globals[G_StringMethodTable]);
    return type ? read_field(reader, type, F_MethodTable_Module) : 0;
}

uint64_t core_type(struct module_cache *cache, uint64_t core, const char *space, const char *name)
{
    struct reader *reader = cache->reader;
    const struct module *module = core ? module_cache_get(cache, core) : NULL;
    if (!module || module->status < 0 || !has_field(reader, F_Module_TypeDefToMethodTableMap))
        return 0;
    uint32_t count = metadata_row_count(&module->metadata, METADATA_TYPE_DEF);
    for (uint32_t rid = 1; rid <= count && reader_step(reader, "types of the core library"); rid++) {
        bool equal = false;
        uint32_t token = metadata_token(METADATA_TYPE_DEF, rid);
        if (metadata_type_is(&module->metadata, token, space, name, &equal) != CDACQ_OK)
            return 0;
        if (equal)
            return lookup_map_element(reader, module->address, F_Module_TypeDefToMethodTableMap, rid);
    }
    return 0;
}
