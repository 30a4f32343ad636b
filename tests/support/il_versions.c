#include "tests/support/il_versions.h"

uint64_t il_version_put(struct mock *mock, enum il_version_source source, uint64_t next)
{
    uint64_t node = mock_new(mock, "ILCodeVersionNode", 0);
    mock_set(mock, node, "ILCodeVersionNode.Source", source);
    mock_set(mock, node, "ILCodeVersionNode.Next", next);
    return node;
}

uint64_t il_versions_put(struct mock *mock, uint64_t module, const uint64_t *lists, uint32_t count)
{
    unsigned word = mock_pointer_size(mock);
    uint64_t places = mock_alloc(mock, (uint64_t)count * word, 8);
    uint64_t map = module + mock_offset_of(mock, "Module.MethodDefToILCodeVersioningStateMap");
    for (uint32_t i = 0; i < count; i++) {
        uint64_t state = lists[i] ? mock_new(mock, "ILCodeVersioningState", 0) : 0;
        if (state)
            mock_set(mock, state, "ILCodeVersioningState.FirstVersionNode", lists[i]);
        mock_write_uint(mock, places + (uint64_t)i * word, word, state);
    }
    mock_set(mock, map, "ModuleLookupMap.TableData", places);
    mock_set(mock, map, "ModuleLookupMap.Count", count);
    return places;
}
