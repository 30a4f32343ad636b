#include "contracts/execution_manager/code_map.h"

#include "contracts/execution_manager/execution_manager.h"
#include "target/reader.h"
#include "util/binary_search.h"

static void table_destroy(struct code_table *table)
{
    if (table)
        code_table_deinit(table);
    free(table);
}

void code_map_free(struct code_map *map)
{
    if (!map)
        return;
    for (size_t i = 0; i < map->count; i++)
        table_destroy(atomic_load_explicit(&map->ranges[i].table, memory_order_acquire));
    free(map->ranges);
    free(map);
}

struct code_map *code_map_build(struct execution_manager *manager, struct reader *reader)
{
    struct range_section_list list;
    if (!execution_manager_list(manager, reader, &list))
        return NULL;
    bool added = stub_ranges_add(reader, &manager->image, &list);
    CLEANUP_FREE struct range_section *sections = list.items;
    if (!added)
        return NULL;
    struct code_map *map = calloc(1, sizeof *map);
    struct code_range *ranges = calloc(list.count + 1, sizeof *ranges);
    if (!map || !ranges) {
        free(map);
        free(ranges);
        reader_fail(reader, CDACQ_ERR_NOMEM, 0, "code ranges");
        return NULL;
    }
    map->ranges = ranges;
    map->left_out = list.left_out;
    for (size_t i = 0; i < list.count; i++) {
        ranges[i] = (struct code_range){sections[i], jit_manager_of(&sections[i]), NULL};
        atomic_init(&ranges[i].table, NULL);
    }
    map->count = list.count;
    return map;
}

struct code_range *code_map_range(const struct code_map *map, uint64_t address)
{
    struct code_range *ranges = map->ranges;
    size_t after = lower_bound_in_memory(i, map->count, ranges[i].section.begin <= address);
    return after && address < ranges[after - 1].section.end ? &ranges[after - 1] : NULL;
}

/* A table being built. */
struct builder {
    struct section_reader section;
    struct code_table *table;
};

/* Takes the memory for a table that is about to double its capacity. */
static bool make_room(const struct builder *builder)
{
    const struct code_table *table = builder->table;
    return table->count < table->capacity ||
           reader_take_memory(builder->section.reader, MAX(table->capacity, (size_t)64) * sizeof *table->items,
                              "code runs");
}

static bool add_part(uint64_t begin, uint64_t end, enum block_part_kind kind, uint32_t number, void *context)
{
    const struct builder *builder = context;
    struct code_table *table = builder->table;
    const struct range_section *section = builder->section.section;
    end = MIN(end, section->end);
    if (begin < section->begin || begin >= end || end - section->begin > UINT32_MAX)
        return true; /* a look-up could find nothing there */
    struct block_part part = {.begin = (uint32_t)(begin - section->begin),
                              .end = (uint32_t)(end - section->begin),
                              .number = number & PART_NO_NUMBER,
                              .kind = kind};
    struct block_part *previous = table->count ? &table->items[table->count - 1] : NULL;
    if (previous && part.begin < previous->begin)
        return true; /* the image's table is not sorted, so no search would find it either */
    if (previous && part.begin < previous->end)
        previous->end = part.begin; /* a look-up takes the nearest start before an address */
    if (previous && previous->end == part.begin && previous->kind == kind && previous->number == number &&
        number != PART_NO_NUMBER)
        previous->end = part.end;
    else if (!make_room(builder) || !code_table_append(table, part))
        return reader_fail(builder->section.reader, CDACQ_ERR_NOMEM, 0, "code runs");
    return true;
}

const struct code_table *code_range_table(struct execution_manager *manager, struct reader *reader,
                                          struct code_range *range)
{
    struct code_table *existing = atomic_load_explicit(&range->table, memory_order_acquire);
    if (existing)
        return existing;
    struct code_table *table = calloc(1, sizeof *table);
    if (!table) {
        reader_fail(reader, CDACQ_ERR_NOMEM, 0, "code runs");
        return NULL;
    }
    struct builder builder = {{range->manager, &manager->managers, reader, &range->section}, table};
    range->manager->each(&builder.section, add_part, &builder);
    if (reader_failed(reader)) {
        table_destroy(table);
        return NULL;
    }
    if (!atomic_compare_exchange_strong_explicit(&range->table, &existing, table, memory_order_acq_rel,
                                                 memory_order_acquire)) {
        table_destroy(table);
        return existing;
    }
    return table;
}

size_t code_range_part_count(struct execution_manager *manager, struct reader *reader, const struct code_range *range)
{
    struct section_reader section = {range->manager, &manager->managers, reader, &range->section};
    if (!range->manager->part_count)
        return 0;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    size_t count = range->manager->part_count(&section);
    reader_leave(reader, &outer);
    return count;
}

const struct block_part *code_table_find(const struct code_table *table, uint32_t relative)
{
    const struct block_part *parts = table->items;
    size_t after = lower_bound_in_memory(i, table->count, parts[i].begin <= relative);
    return after && relative < parts[after - 1].end ? &parts[after - 1] : NULL;
}

void code_search_all(struct code_search *searches, size_t count)
{
    /* They take their steps in turn: while one waits for memory, the others go on. */
    for (bool more = true; more;) {
        more = false;
        for (struct code_search *s = searches; s < searches + count; s++) {
            size_t half = s->count / 2;
            s->parts = half && s->parts[half].begin <= s->relative ? s->parts + half : s->parts;
            s->count -= half;
            more |= s->count > 1;
        }
    }
    for (struct code_search *s = searches; s < searches + count; s++)
        if (!s->count || s->relative < s->parts->begin || s->relative >= s->parts->end)
            s->parts = NULL;
}

bool code_map_block(struct execution_manager *manager, struct reader *reader, const struct code_range *range,
                    const struct block_part *part, struct code_block *ret)
{
    const struct section_reader section = {range->manager, &manager->managers, reader, &range->section};
    return range->manager->block_at(&section, range->section.begin + part->begin, part->number, ret);
}
