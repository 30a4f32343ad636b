#include "contracts/code_lookup/range_section_map.h"

#include "util/vector.h"

#define TAG_MASK UINT64_C(1)

enum { SLOTS = 256 };

static unsigned level_count(const struct field_reader *reader)
{
    return reader->raw.pointer_size == 4 ? 2 : 5;
}

/* The lowest address bit that selects a slot of `level`; level 1 is the innermost. */
static unsigned level_shift(const struct field_reader *reader, unsigned level)
{
    return (reader->raw.pointer_size == 4 ? 16 : 17) + 8 * (level - 1);
}

static uint64_t untagged(uint64_t pointer)
{
    return pointer & ~TAG_MASK;
}

static bool read_section(struct field_reader *reader, uint64_t address, struct range_section *ret)
{
    struct range_section section = {
        .address = address,
        .begin = read_field(reader, address, F_RangeSection_RangeBegin),
        .end = read_field(reader, address, F_RangeSection_RangeEndOpen),
        .jit_manager = read_field(reader, address, F_RangeSection_JitManager),
        .heap_list = read_field(reader, address, F_RangeSection_HeapList),
        .r2r_module = read_field(reader, address, F_RangeSection_R2RModule),
        .flags = (uint32_t)read_field(reader, address, F_RangeSection_Flags),
        .range_list = read_optional(reader, address, F_RangeSection_RangeList),
    };
    if (reader_failed(&reader->raw))
        return false;
    *ret = section;
    return true;
}

/* 1 marks the end of the deletion list, so any non-zero value means that the section is being deleted. */
static bool is_being_deleted(struct field_reader *reader, uint64_t section)
{
    return has_field(reader, F_RangeSection_NextForDelete) &&
           read_field(reader, section, F_RangeSection_NextForDelete) != 0;
}

/* Follows the slots for `address` down to that of `last_level`; 0 if one is empty. */
static uint64_t follow(struct field_reader *reader, uint64_t map, uint64_t address, unsigned last_level)
{
    uint64_t table = field_address(reader, map, F_RangeSectionMap_TopLevelData);
    for (unsigned level = level_count(reader); level >= last_level && table; level--) {
        uint64_t slot = address >> level_shift(reader, level) & (SLOTS - 1);
        table = untagged(read_pointer(&reader->raw, table + slot * reader->raw.pointer_size));
        reader_name_failure(&reader->raw, "RangeSectionMap");
    }
    return table;
}

bool range_section_map_reaches(struct field_reader *reader, uint64_t map, uint64_t address)
{
    return reader->raw.pointer_size == 4 || follow(reader, map, address, 3) != 0;
}

bool range_section_map_find(struct field_reader *reader, uint64_t map, uint64_t address, struct range_section *ret)
{
    for (uint64_t fragment = follow(reader, map, address, 1);
         fragment && reader_step(&reader->raw, "RangeSectionFragment.Next list");
         fragment = untagged(read_field(reader, fragment, F_RangeSectionFragment_Next))) {
        if (address < read_field(reader, fragment, F_RangeSectionFragment_RangeBegin) ||
            address >= read_field(reader, fragment, F_RangeSectionFragment_RangeEndOpen))
            continue;
        uint64_t section = read_field(reader, fragment, F_RangeSectionFragment_RangeSection);
        if (is_being_deleted(reader, section))
            continue;
        if (!read_section(reader, section, ret))
            return false;
        if (address >= ret->begin && address < ret->end)
            return true;
        reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, fragment, "RangeSectionFragment.RangeSection");
    }
    return false;
}

DEFINE_VECTOR(addresses, uint64_t);

struct lister {
    struct field_reader *reader;
    uint64_t tables[RANGE_TABLE_MAX];
    size_t table_count;
    struct addresses sections; /* with duplicates */
    size_t fragment_count, unreadable;
};

/* Counts and skips what could not be read, so that the rest of the map is still listed. */
static bool skip_unreadable(struct lister *lister)
{
    bool recovered = reader_recover(&lister->reader->raw, FAILURE(CDACQ_ERR_MEMORY));
    lister->unreadable += recovered;
    return recovered;
}

static bool add_section(struct lister *lister, uint64_t address)
{
    const struct addresses *sections = &lister->sections;
    if (sections->count && sections->items[sections->count - 1] == address)
        return true;
    return addresses_append(&lister->sections, address) ||
           reader_fail(&lister->reader->raw, CDACQ_ERR_NOMEM, 0, "range sections");
}

static void list_fragments(struct lister *lister, uint64_t fragment)
{
    struct field_reader *reader = lister->reader;
    while (fragment && reader_step(&reader->raw, "RangeSectionFragment.Next list")) {
        if (++lister->fragment_count > RANGE_FRAGMENT_MAX) {
            reader_fail(&reader->raw, CDACQ_ERR_FUEL, fragment, "RangeSectionFragment.Next list");
            return;
        }
        uint64_t section = read_field(reader, fragment, F_RangeSectionFragment_RangeSection);
        uint64_t next = untagged(read_field(reader, fragment, F_RangeSectionFragment_Next));
        if (reader_failed(&reader->raw) || !add_section(lister, section)) {
            skip_unreadable(lister);
            return;
        }
        fragment = next;
    }
}

static bool seen_before(struct lister *lister, uint64_t table)
{
    for (size_t i = lister->table_count; i--;)
        if (lister->tables[i] == table)
            return true;
    return false;
}

static void list_table(struct lister *lister, uint64_t table, unsigned level)
{
    struct field_reader *reader = lister->reader;
    struct window window;
    if (lister->table_count == RANGE_TABLE_MAX || seen_before(lister, table)) {
        reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, table,
                    "RangeSectionMap: a table appears twice, or there are too many");
        return;
    }
    lister->tables[lister->table_count++] = table;
    if (!reader_window(&reader->raw, table, (uint64_t)SLOTS * reader->raw.pointer_size, "RangeSectionMap", &window)) {
        skip_unreadable(lister);
        return;
    }
    for (unsigned slot = 0; slot < SLOTS && !reader_failed(&reader->raw); slot++) {
        const uint8_t *p = window.bytes + slot * reader->raw.pointer_size;
        uint64_t next = untagged(reader->raw.pointer_size == 4 ? load_u32(p, reader->raw.big_endian)
                                                               : load_u64(p, reader->raw.big_endian));
        if (next && level == 1)
            list_fragments(lister, next);
        else if (next)
            list_table(lister, next, level - 1);
    }
    window_deinit(&window);
}

static int compare_sections(const void *a, const void *b)
{
    const struct range_section *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static bool read_sections(struct lister *lister, struct range_section_list *ret)
{
    struct field_reader *reader = lister->reader;
    const struct addresses *sections = &lister->sections;
    if (sections->count)
        qsort(sections->items, sections->count, sizeof *sections->items, compare_u64);
    ret->items = calloc(sections->count + 1, sizeof *ret->items);
    if (!ret->items)
        return reader_fail(&reader->raw, CDACQ_ERR_NOMEM, 0, "range sections");
    for (size_t i = 0; i < sections->count; i++) {
        uint64_t address = sections->items[i];
        if (i && address == sections->items[i - 1])
            continue;
        struct range_section section;
        bool deleted = is_being_deleted(reader, address);
        if (!deleted && read_section(reader, address, &section))
            ret->items[ret->count++] = section;
        else if (reader_failed(&reader->raw) && !skip_unreadable(lister))
            return false;
    }
    qsort(ret->items, ret->count, sizeof *ret->items, compare_sections);
    return true;
}

bool range_section_map_list(struct field_reader *reader, uint64_t map, struct range_section_list *ret)
{
    struct lister *lister = calloc(1, sizeof *lister);
    struct range_section_list list = {0};
    if (!lister)
        return reader_fail(&reader->raw, CDACQ_ERR_NOMEM, 0, "range sections");
    lister->reader = reader;
    list_table(lister, field_address(reader, map, F_RangeSectionMap_TopLevelData), level_count(reader));
    if (!reader_failed(&reader->raw))
        read_sections(lister, &list);
    list.unreadable = lister->unreadable;
    addresses_deinit(&lister->sections);
    free(lister);
    if (reader_failed(&reader->raw)) {
        free(list.items);
        return false;
    }
    *ret = list;
    return true;
}
