/*
 * core_loads.h: the PT_LOADs of a core, for the access of the mappings that they cover: NT_FILE, which lists the
 * mappings, does not have it.
 */
#ifndef CDACQ_TARGET_CORE_LOADS_H
#define CDACQ_TARGET_CORE_LOADS_H

#include "formats/elf.h"
#include "target/target.h"

struct core_load {
    uint64_t begin, end; /* once sorted, the highest end of the loads up to this one */
    bool readable, writable, executable;
    uint32_t readable_before, writable_before, executable_before; /* once sorted, how many of those before it are */
};

struct core_loads {
    struct core_load *items; /* followed by a sentinel */
    size_t count;
};

/* Makes room for `count` loads. False when out of memory. */
bool core_loads_init(struct core_loads *loads, size_t count);
void core_loads_deinit(struct core_loads *loads);

/* Adds a load that ends at `end`. There is room for it. */
void core_loads_add(struct core_loads *loads, const struct elf_segment *header, uint64_t end);

/* Sorts the loads and counts their access. Call it once, after the last was added. */
void core_loads_sort(struct core_loads *loads);

/*
 * Sets the access to a mapping by the loads in it. False where there are some and none of them is readable: such
 * mappings guard the gaps between the segments of an image.
 */
bool core_loads_set_access(const struct core_loads *loads, struct mapping *mapping);

#endif
