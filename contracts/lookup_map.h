/*
 * lookup_map.h: the runtime's maps from the tokens of a module to what it has loaded for them. Each has a place for
 * every row of its table in the metadata, and one for the token of row 0: metadata with other counts of rows is not
 * that of the assembly that the runtime loaded.
 * Source: dotnet/runtime docs/design/datacontracts/Loader.md (ModuleLookupMap); src/coreclr/vm/ceeload.cpp
 * (Module::AllocateMaps).
 */
#ifndef CDACQ_CONTRACTS_LOOKUP_MAP_H
#define CDACQ_CONTRACTS_LOOKUP_MAP_H

#include "descriptors/fields.h"
#include "formats/metadata.h"

/*
 * What the map of the Module at `module` has for row `rid` of its table, without the flags. 0: nothing, or the target
 * does not describe the map. The reader fails when it cannot be read.
 */
uint64_t lookup_map_element(struct reader *reader, uint64_t module, enum layout_field map, uint32_t rid);

/* How metadata differs from what the runtime loaded. */
struct lookup_map_difference {
    const char *what;      /* the rows of a table: "types", "methods" */
    uint32_t rows, loaded; /* how many the metadata has, and the runtime */
};

/*
 * Whether the maps of the Module at `module` show that metadata is that of another assembly. False also where the
 * target does not describe the maps or lacks them. The reader does not fail.
 */
bool lookup_maps_differ(struct reader *reader, uint64_t module, const struct metadata *metadata,
                        struct lookup_map_difference *ret);

#endif
