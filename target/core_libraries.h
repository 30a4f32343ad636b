/*
 * core_libraries.h: the mappings of the program and its libraries, for a core that lists none: qemu's user-mode
 * emulation writes no NT_FILE, and tools strip it. Their places come from the dynamic linker's list, their extents from
 * their program headers in memory. Other files that were mapped, such as assemblies, are not known.
 */
#ifndef CDACQ_TARGET_CORE_LIBRARIES_H
#define CDACQ_TARGET_CORE_LIBRARIES_H

#include "target/link_map.h"
#include "target/target.h"
#include "util/arena.h"

/*
 * Adds mappings, not sorted, to a target that has none; there are still none if the list cannot be read. `program_path`
 * is the address of the path that the program was started by, 0 if it is not known. Paths are allocated in `paths`.
 * False when out of memory.
 */
bool core_libraries_list(struct target *target, const struct link_map_memory *memory,
                         const struct program_headers *program, uint64_t program_path, struct arena *paths);

#endif
