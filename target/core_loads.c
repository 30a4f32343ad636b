#include "target/core_loads.h"

#include "util/binary_search.h"

bool core_loads_init(struct core_loads *loads, size_t count)
{
    *loads = (struct core_loads){.items = calloc(count + 1, sizeof *loads->items)};
    return loads->items != NULL;
}

void core_loads_deinit(struct core_loads *loads)
{
    free(loads->items);
}

void core_loads_add(struct core_loads *loads, const struct elf_segment *header, uint64_t end)
{
    loads->items[loads->count++] = (struct core_load){
        .begin = header->vaddr,
        .end = end,
        .readable = (header->flags & PF_R) != 0,
        .writable = (header->flags & PF_W) != 0,
        .executable = (header->flags & PF_X) != 0,
    };
}

/* Only a damaged core has overlaps. */
void core_loads_sort(struct core_loads *loads)
{
    sort_u64(loads->items, loads->count, sizeof *loads->items);
    for (size_t i = 0; i < loads->count; i++) {
        struct core_load *load = &loads->items[i], *next = load + 1;
        next->readable_before = load->readable_before + load->readable;
        next->writable_before = load->writable_before + load->writable;
        next->executable_before = load->executable_before + load->executable;
        if (i)
            load->end = MAX(load->end, load[-1].end);
    }
}

/* The first load that ends above `address`; the sentinel where there is none. */
static const struct core_load *first_ending_above(const struct core_loads *loads, uint64_t address)
{
    return &loads->items[lower_bound(i, loads->count, loads->items[i].end <= address)];
}

/* The first load that begins above `address`; the sentinel where there is none. */
static const struct core_load *first_beginning_above(const struct core_loads *loads, uint64_t address)
{
    return &loads->items[lower_bound(i, loads->count, loads->items[i].begin <= address)];
}

bool core_loads_set_access(const struct core_loads *loads, struct mapping *mapping)
{
    const struct core_load *first = first_ending_above(loads, mapping->begin);
    const struct core_load *after = first_beginning_above(loads, mapping->end - 1);
    bool known = first < after, writable = known && after->writable_before > first->writable_before;
    mapping->access = !known ? MAPPING_UNKNOWN : writable ? MAPPING_WRITABLE : MAPPING_READ_ONLY;
    mapping->may_execute = !known || after->executable_before > first->executable_before;
    return !known || after->readable_before > first->readable_before;
}
