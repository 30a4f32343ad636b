#include "contracts/execution_manager/code_map.h"

#include "contracts/execution_manager/ee_jit_manager.h"
#include "contracts/execution_manager/interpreter_jit_manager.h"
#include "contracts/code_info/unwind_info.h"

void code_map_free(struct code_map *map)
{
    if (!map)
        return;
    for (size_t i = 0; i < map->count; i++) {
        struct code_table *table = atomic_load_explicit(&map->ranges[i].table, memory_order_acquire);
        if (table)
            free(table->runs);
        free(table);
    }
    free(map->ranges);
    free(map);
}

struct code_map *code_map_build(struct execution_manager *manager, struct field_reader *reader)
{
    struct range_section_list list;
    if (!range_section_map_list(reader, manager->map, &list))
        return NULL;
    CLEANUP_FREE struct range_section *sections = list.items;
    struct code_map *map = calloc(1, sizeof *map);
    struct code_range *ranges = calloc(list.count + 1, sizeof *ranges);
    if (!map || !ranges) {
        free(map);
        free(ranges);
        reader_fail(&reader->raw, CDACQ_ERR_NOMEM, 0, "code ranges");
        return NULL;
    }
    map->ranges = ranges;
    map->unreadable = list.unreadable;
    uint64_t end = 0;
    for (size_t i = 0; i < list.count; i++) {
        if (sections[i].begin >= sections[i].end || sections[i].begin < end) {
            reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, sections[i].address, "RangeSection: overlaps another one");
            code_map_free(map);
            return NULL;
        }
        end = sections[i].end;
        ranges[map->count] = (struct code_range){sections[i], range_section_manager(&sections[i]), NULL};
        atomic_init(&ranges[map->count++].table, NULL);
    }
    return map;
}

struct code_range *code_map_range(const struct code_map *map, uint64_t address)
{
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->ranges[middle].section.begin <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && address < map->ranges[low - 1].section.end ? &map->ranges[low - 1] : NULL;
}

/* A table being built. */
struct builder {
    const struct execution_manager *manager;
    struct field_reader *reader;
    const struct code_range *range;
    struct code_table *table;
    size_t capacity;
};

static bool add_run(struct builder *builder, uint64_t begin, uint64_t end, enum code_run_kind kind, uint32_t method)
{
    struct code_table *table = builder->table;
    const struct range_section *section = &builder->range->section;
    end = MIN(end, section->end);
    if (begin < section->begin || begin >= end || end - section->begin > UINT32_MAX)
        return true; /* nothing that a look-up could find there */
    if (table->count == builder->capacity) {
        size_t capacity = MAX(builder->capacity * 2, (size_t)64);
        struct code_run *runs = realloc(table->runs, capacity * sizeof *runs);
        if (!runs)
            return reader_fail(&builder->reader->raw, CDACQ_ERR_NOMEM, 0, "code runs");
        table->runs = runs;
        builder->capacity = capacity;
    }
    struct code_run run = {(uint32_t)(begin - section->begin), (uint32_t)(end - section->begin), method, kind};
    struct code_run *previous = table->count ? &table->runs[table->count - 1] : NULL;
    if (previous && run.begin < previous->begin)
        return true; /* a table that is not sorted: no search would find it either */
    if (previous && run.begin < previous->end)
        previous->end = run.begin; /* a look-up takes the nearest start before an address */
    if (previous && previous->end == run.begin && previous->kind == kind && previous->method == method &&
        (kind == RUN_METHOD || kind == RUN_COLD) && builder->range->manager == CODE_MANAGER_R2R)
        previous->end = run.end;
    else
        table->runs[table->count++] = run;
    return true;
}

/* The block of a code heap that starts there. */
static bool heap_block_at(const struct execution_manager *manager, struct field_reader *reader,
                          const struct code_range *range, uint64_t start, struct code_block *ret)
{
    if (range->manager == CODE_MANAGER_INTERPRETER)
        return interpreter_jit_manager_block_at(manager, reader, &range->section, start, ret);
    return ee_jit_manager_block_at(manager, reader, &range->section, start, ret);
}

static bool add_heap_block(uint64_t start, void *context)
{
    struct builder *builder = context;
    struct field_reader *reader = builder->reader;
    struct code_block block;
    uint64_t range_end = builder->range->section.end;
    /* A stub block, and one whose header or length is not readable, reach up to the next start. */
    if (!heap_block_at(builder->manager, reader, builder->range, start, &block)) {
        if (!reader_recover(&reader->raw, FAILURE(CDACQ_ERR_MEMORY) | FAILURE(CDACQ_ERR_CORRUPT)))
            return false;
        return add_run(builder, start, range_end, RUN_UNKNOWN, 0);
    }
    if (!code_block_is_method(&block))
        return add_run(builder, start, range_end, RUN_STUB, 0);
    if (!block.hot_size)
        return add_run(builder, start, range_end, RUN_UNKNOWN, 0);
    return add_run(builder, start, start + block.hot_size, RUN_METHOD, 0);
}

static void build_r2r(struct builder *builder, const struct r2r_image *image)
{
    struct field_reader *reader = builder->reader;
    const struct r2r_entries *entries = r2r_image_entries(image, reader);
    uint32_t start = UINT32_MAX;
    if (!entries)
        return;
    for (uint32_t i = 0; i < image->functions.count && reader_step(&reader->raw, "ReadyToRun functions"); i++) {
        bool cold = i >= image->first_cold;
        uint32_t hot = i;
        if (!cold && r2r_image_is_start(image, entries, reader, i))
            start = i;
        if (cold) {
            start = UINT32_MAX;
            if (hot_cold_hot_of(&image->hot_cold, i, &hot))
                start = r2r_jit_manager_start_of(image, entries, reader, hot);
        }
        if (start == UINT32_MAX)
            continue;
        uint64_t begin = image->base + unwind_table_begin(reader, &image->functions, i);
        if (!add_run(builder, begin, begin + unwind_table_length(reader, &image->functions, i),
                     cold ? RUN_COLD : RUN_METHOD, start))
            return;
    }
}

const struct code_table *code_range_table(struct execution_manager *manager, struct field_reader *reader,
                                          struct code_range *range)
{
    struct code_table *existing = atomic_load_explicit(&range->table, memory_order_acquire);
    if (existing)
        return existing;
    struct code_table *table = calloc(1, sizeof *table);
    if (!table) {
        reader_fail(&reader->raw, CDACQ_ERR_NOMEM, 0, "code runs");
        return NULL;
    }
    struct builder builder = {manager, reader, range, table, 0};
    if (range->manager == CODE_MANAGER_EE || range->manager == CODE_MANAGER_INTERPRETER) {
        code_heap_each(manager, reader, &range->section, add_heap_block, &builder);
    } else if (range->manager == CODE_MANAGER_R2R) {
        table->image = r2r_jit_manager_image(manager, reader, &range->section);
        if (table->image)
            build_r2r(&builder, table->image);
    }
    if (reader_failed(&reader->raw)) {
        free(table->runs);
        free(table);
        return NULL;
    }
    if (!atomic_compare_exchange_strong_explicit(&range->table, &existing, table, memory_order_acq_rel,
                                                 memory_order_acquire)) {
        free(table->runs);
        free(table);
        return existing;
    }
    return table;
}

const struct code_run *code_table_find(const struct code_table *table, uint32_t relative)
{
    const struct code_run *runs = table->runs;
    size_t low = 0, count = table->count;
    /* No branch to mispredict: each step halves the count, whichever half it keeps. */
    while (count > 1) {
        size_t half = count / 2;
        low = runs[low + half].begin <= relative ? low + half : low;
        count -= half;
    }
    return count && runs[low].begin <= relative && relative < runs[low].end ? &runs[low] : NULL;
}

bool code_run_block(const struct execution_manager *manager, struct field_reader *reader,
                    const struct code_range *range, const struct code_table *table, const struct code_run *run,
                    struct code_block *ret)
{
    uint64_t address = range->section.begin + run->begin;
    if (range->manager != CODE_MANAGER_R2R)
        return heap_block_at(manager, reader, range, address, ret);
    if (!r2r_jit_manager_block_at(table->image, reader, run->method, ret))
        return false;
    ret->cold = run->kind == RUN_COLD;
    ret->ip = address;
    ret->offset = ret->cold ? ret->hot_size + (address - ret->cold_start) : address - ret->start;
    return true;
}
