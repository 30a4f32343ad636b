#include "contracts/code_lookup/range_sections.h"

#include "contracts/code_lookup/range_section_map.h"
#include "target/reader.h"
#include "util/binary_search.h"

static void destroy_list(struct range_section_list *list)
{
    if (list)
        free(list->items);
    free(list);
}

void range_sections_deinit(struct range_sections *sections)
{
    destroy_list(atomic_load_explicit(&sections->list, memory_order_acquire));
}

/* The list of all sections, empty if the map cannot be listed. NULL when out of memory. */
static const struct range_section_list *list_of(struct range_sections *sections, struct reader *reader, uint64_t map)
{
    struct range_section_list *existing = atomic_load_explicit(&sections->list, memory_order_acquire);
    if (existing)
        return existing;
    struct range_section_list *list = calloc(1, sizeof *list);
    if (!list)
        return NULL;
    struct reader_task outer = reader_enter(reader, FUEL_INDEX);
    if (!range_section_map_list(reader, map, list))
        *list = (struct range_section_list){0};
    reader_leave(reader, &outer);
    if (!atomic_compare_exchange_strong_explicit(&sections->list, &existing, list, memory_order_acq_rel,
                                                 memory_order_acquire)) {
        destroy_list(list);
        return existing;
    }
    return list;
}

bool range_sections_find(struct range_sections *sections, struct reader *reader, uint64_t map, uint64_t address,
                         struct range_section *ret)
{
    if (range_section_map_find(reader, map, address, ret))
        return true;
    struct reader_failure failure = reader_failure(reader);
    if (failure.status != CDACQ_ERR_MEMORY || sections->changes)
        return false;
    reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY));
    const struct range_section_list *list = list_of(sections, reader, map);
    const struct range_section *items = list ? list->items : NULL;
    size_t after = list ? lower_bound(i, list->count, items[i].begin <= address) : 0;
    if (!after || address >= items[after - 1].end) {
        reader_fail_again(reader, &failure);
        return false;
    }
    *ret = items[after - 1];
    return true;
}
