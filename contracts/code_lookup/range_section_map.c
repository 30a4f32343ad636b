#include "contracts/code_lookup/range_section_map.h"

#include "descriptors/fields.h"
#include "descriptors/layout.h"
#include "target/reader.h"
#include "util/binary_search.h"
#include "util/vector.h"

#define TAG_MASK UINT64_C(1)

enum { SLOTS = 256 };

static unsigned level_count(const struct reader *reader)
{
    return reader->pointer_size == 4 ? 2 : 5;
}

/* The lowest address bit that selects a slot of `level`; level 1 is the innermost. */
static unsigned level_shift(const struct reader *reader, unsigned level)
{
    return (reader->pointer_size == 4 ? 16 : 17) + 8 * (level - 1);
}

static uint64_t untagged(uint64_t pointer)
{
    return pointer & ~TAG_MASK;
}

static bool read_section(struct reader *reader, uint64_t address, struct range_section *ret)
{
    struct range_section section = {
        .address = address,
        .begin = read_field(reader, address, F_RangeSection_RangeBegin),
        .end = read_field(reader, address, F_RangeSection_RangeEndOpen),
        .jit_manager = read_field(reader, address, F_RangeSection_JitManager),
        .heap_list = read_field(reader, address, F_RangeSection_HeapList),
        .r2r_module = read_optional(reader, address, F_RangeSection_R2RModule),
        .flags = (uint32_t)read_field(reader, address, F_RangeSection_Flags),
        .range_list = read_optional(reader, address, F_RangeSection_RangeList),
    };
    if (reader_failed(reader))
        return false;
    *ret = section;
    return true;
}

/* 1 marks the end of the deletion list, so any non-zero value means that the section is being deleted. */
static bool is_being_deleted(struct reader *reader, uint64_t section)
{
    return has_field(reader, F_RangeSection_NextForDelete) &&
           read_field(reader, section, F_RangeSection_NextForDelete) != 0;
}

/* Follows the slots for `address` down to that of `last_level`; 0 if one is empty. */
static uint64_t follow(struct reader *reader, uint64_t map, uint64_t address, unsigned last_level)
{
    uint64_t table = field_address(reader, map, F_RangeSectionMap_TopLevelData);
    for (unsigned level = level_count(reader); level >= last_level && table; level--) {
        uint64_t slot = address >> level_shift(reader, level) & (SLOTS - 1);
        table = untagged(read_pointer(reader, table + slot * reader->pointer_size));
        reader_name_failure(reader, "RangeSectionMap");
    }
    return table;
}

bool range_section_map_reaches(struct reader *reader, uint64_t map, uint64_t address)
{
    return reader->pointer_size == 4 || follow(reader, map, address, 3) != 0;
}

bool range_section_map_find(struct reader *reader, uint64_t map, uint64_t address, struct range_section *ret)
{
    for (uint64_t fragment = follow(reader, map, address, 1);
         fragment && reader_step(reader, "RangeSectionFragment.Next list");
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
        reader_fail(reader, CDACQ_ERR_CORRUPT, fragment, "RangeSectionFragment.RangeSection");
    }
    return false;
}

/* A section as one slot of level 1 lists it. */
struct listed_section {
    uint64_t address;
    uint64_t begin, end; /* of the fragment; a look-up reads the section only for addresses in it */
    bool in_gap;         /* other fragments of the slot cannot be read */
};

/* Addresses whose slots or fragments cannot be read. */
struct gap {
    uint64_t begin, last;
};

/* Addresses for which a look-up comes to a section that does not hold them all. */
struct claim {
    uint64_t begin, end;
};

DEFINE_VECTOR(listed_sections, struct listed_section);
DEFINE_VECTOR(gaps, struct gap);
DEFINE_VECTOR(claims, struct claim);

struct listed_table {
    uint64_t address;
    unsigned level;
};

struct lister {
    struct reader *reader;
    struct listed_table tables[RANGE_TABLE_MAX];
    size_t table_count, repeated_count;
    struct listed_sections sections; /* one for each slot that lists it */
    struct gaps gaps;                /* sorted, disjoint */
    struct claims claims;
    size_t fragment_count, left_out;
};

/* Counts and skips what could not be read, so that the rest of the map is still listed. */
static bool skip_unreadable(struct lister *lister)
{
    bool recovered = reader_recover(lister->reader, FAILURE(CDACQ_ERR_MEMORY));
    lister->left_out += recovered;
    return recovered;
}

/* The addresses from `begin` on that a slot of `level` covers are a gap. */
static bool add_gap(struct lister *lister, uint64_t begin, unsigned level)
{
    struct gap gap = {begin, begin + (UINT64_C(1) << level_shift(lister->reader, level)) - 1};
    return gaps_append(&lister->gaps, gap) || reader_fail(lister->reader, CDACQ_ERR_NOMEM, 0, "range sections");
}

static void add_section(struct lister *lister, struct listed_section listed)
{
    if (!listed_sections_append(&lister->sections, listed))
        reader_fail(lister->reader, CDACQ_ERR_NOMEM, 0, "range sections");
}

static bool lists_the_same(const struct listed_section *a, const struct listed_section *b)
{
    return a->address == b->address && a->begin == b->begin && a->end == b->end;
}

/* The sections from `first` on end with a cycle of `length`. Keeps each once. */
static void end_cycle(struct lister *lister, size_t first, size_t length)
{
    struct listed_sections *sections = &lister->sections;
    const struct listed_section *items = sections->items;
    while (sections->count - first > length &&
           lists_the_same(&items[sections->count - 1], &items[sections->count - 1 - length]))
        sections->count--;
    lister->left_out++;
}

/* The fragments of the slot of level 1 for the addresses from `begin` on cannot be read to their end. */
static void skip_fragments(struct lister *lister, size_t first, uint64_t begin)
{
    if (!skip_unreadable(lister) || !add_gap(lister, begin, 1))
        return;
    for (size_t i = first; i < lister->sections.count; i++)
        lister->sections.items[i].in_gap = true;
}

/* Lists the fragments of the slot of level 1 for the addresses from `begin` on. */
static void list_fragments(struct lister *lister, uint64_t fragment, uint64_t begin)
{
    struct reader *reader = lister->reader;
    size_t first = lister->sections.count, marked_at = 0;
    uint64_t marked = 0;
    for (size_t i = 0; fragment && reader_step(reader, "RangeSectionFragment.Next list"); i++) {
        if (!(i & (i - 1))) { /* a power of two: a list that returns to this fragment is a cycle */
            marked = fragment;
            marked_at = i;
        }
        if (++lister->fragment_count > RANGE_FRAGMENT_MAX) {
            reader_fail(reader, CDACQ_ERR_FUEL, fragment, "RangeSectionFragment.Next list");
            return;
        }
        struct listed_section listed = {
            .address = read_field(reader, fragment, F_RangeSectionFragment_RangeSection),
            .begin = read_field(reader, fragment, F_RangeSectionFragment_RangeBegin),
            .end = read_field(reader, fragment, F_RangeSectionFragment_RangeEndOpen),
        };
        if (!reader_failed(reader))
            add_section(lister, listed); /* a look-up that ends here does not read which one is next */
        uint64_t next = untagged(read_field(reader, fragment, F_RangeSectionFragment_Next));
        if (reader_failed(reader)) {
            skip_fragments(lister, first, begin);
            return;
        }
        fragment = next;
        if (fragment == marked) {
            end_cycle(lister, first, i + 1 - marked_at);
            return;
        }
    }
}

static bool seen_before(struct lister *lister, uint64_t table, unsigned level)
{
    for (size_t i = lister->table_count; i--;)
        if (lister->tables[i].address == table && lister->tables[i].level == level)
            return true;
    return false;
}

/* A slot of a table, from its window if all of the table could be read. False if the slot is missing. */
static bool read_slot(struct reader *reader, const struct window *window, uint64_t table, unsigned slot, uint64_t *ret)
{
    size_t size = reader->pointer_size, offset = slot * size;
    uint8_t copy[8];
    const uint8_t *p = window ? window->bytes + offset : copy;
    if (!window && !reader_try_copy(reader, table + offset, copy, size))
        return false;
    *ret = untagged(size == 4 ? load_u32(p, reader->big_endian) : load_u64(p, reader->big_endian));
    return true;
}

/* Lists a table of `level`, for the addresses from `begin` on. */
static void list_table(struct lister *lister, uint64_t table, unsigned level, uint64_t begin)
{
    struct reader *reader = lister->reader;
    struct window window;
    if (lister->table_count == RANGE_TABLE_MAX || lister->repeated_count == RANGE_REPEATED_MAX) {
        reader_fail(reader, CDACQ_ERR_FUEL, table, "RangeSectionMap: tables");
        return;
    }
    if (seen_before(lister, table, level)) {
        lister->repeated_count++;
        lister->left_out++;
        return;
    }
    lister->tables[lister->table_count++] = (struct listed_table){table, level};
    bool whole = reader_window(reader, table, (uint64_t)SLOTS * reader->pointer_size, "RangeSectionMap", &window);
    if (!whole && !reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY)))
        return;
    bool skipped = false; /* the slot before this one; what is missing in a row counts once */
    for (unsigned slot = 0; slot < SLOTS && !reader_failed(reader); slot++) {
        uint64_t first = begin + ((uint64_t)slot << level_shift(reader, level)), next;
        if (!read_slot(reader, whole ? &window : NULL, table, slot, &next)) {
            lister->left_out += !skipped;
            skipped = add_gap(lister, first, level);
            continue;
        }
        skipped = false;
        if (next && level == 1)
            list_fragments(lister, next, first);
        else if (next)
            list_table(lister, next, level - 1, first);
    }
    if (whole)
        window_deinit(&window);
}

/*
 * Whether every look-up of an address in `section` finds it, or fails for want of memory: `count` slots without a gap
 * list it. The map ignores the highest bits of an address.
 */
static bool is_whole(struct lister *lister, const struct range_section *section, size_t count)
{
    const struct reader *reader = lister->reader;
    uint64_t mask = (UINT64_C(1) << level_shift(reader, level_count(reader) + 1)) - 1;
    if (section->begin >= section->end)
        return false;
    uint64_t begin = section->begin & mask, last = (section->end - 1) & mask;
    unsigned shift = level_shift(reader, 1);
    const struct gap *gaps = lister->gaps.items;
    size_t gap = lower_bound(i, lister->gaps.count, gaps[i].last < begin);
    uint64_t slots = (last >> shift) - (begin >> shift) + 1, found = count;
    for (; gap < lister->gaps.count && gaps[gap].begin <= last && reader_step(lister->reader, "range sections"); gap++)
        found += (MIN(last, gaps[gap].last) >> shift) - (MAX(begin, gaps[gap].begin) >> shift) + 1;
    return begin <= last && found >= slots;
}

/*
 * The fragments of an unreadable section, or those that differ from it. Returns how many are like it, in slots without
 * a gap.
 */
static size_t add_claims(struct lister *lister, const struct range_section *section,
                         const struct listed_section *listed, size_t count)
{
    size_t alike = 0;
    for (size_t i = 0; i < count; i++) {
        if (section && listed[i].begin == section->begin && listed[i].end == section->end)
            alike += !listed[i].in_gap;
        else if (!claims_append(&lister->claims, (struct claim){listed[i].begin, listed[i].end}))
            reader_fail(lister->reader, CDACQ_ERR_NOMEM, 0, "range sections");
    }
    return alike;
}

/* A section is not whole if some look-ups in it come to another one, which does not hold their address. */
static void apply_claims(struct lister *lister, struct range_section_list *list)
{
    const struct claims *claims = &lister->claims;
    uint64_t end = 0; /* of the claims that begin before the section's end */
    size_t next = 0;
    sort_u64(claims->items, claims->count, sizeof *claims->items);
    for (size_t i = 0; i < list->count; i++) {
        struct range_section *section = &list->items[i];
        for (; next < claims->count && claims->items[next].begin < section->end; next++)
            end = MAX(end, claims->items[next].end);
        section->whole &= end <= section->begin;
    }
}

/*
 * Leaves out sections that no runtime has: they are empty, or overlap others. Of two that overlap, the one stays that
 * is listed for all of its addresses, if the other is not. `list` is sorted.
 */
static size_t leave_out_impossible(struct range_section_list *list)
{
    struct range_section *items = list->items;
    uint64_t clash_end[2] = {0}; /* of sections that overlap others of their kind; by `whole` */
    size_t count = list->count, kept = 0;
    for (size_t i = 0; i < count; i++) {
        const struct range_section section = items[i];
        if (section.begin >= section.end)
            continue;
        if (section.begin < clash_end[section.whole]) {
            clash_end[section.whole] = MAX(clash_end[section.whole], section.end);
            continue;
        }
        if (!kept || items[kept - 1].end <= section.begin) {
            items[kept++] = section;
        } else if (items[kept - 1].whole == section.whole) {
            clash_end[section.whole] = MAX(items[kept - 1].end, section.end);
            kept--;
        } else if (section.whole) {
            items[kept - 1] = section;
        }
    }
    list->count = kept;
    return count - kept;
}

static bool read_sections(struct lister *lister, struct range_section_list *ret)
{
    struct reader *reader = lister->reader;
    const struct listed_sections *sections = &lister->sections;
    sort_u64(sections->items, sections->count, sizeof *sections->items);
    ret->items = calloc(sections->count + 1, sizeof *ret->items);
    if (!ret->items)
        return reader_fail(reader, CDACQ_ERR_NOMEM, 0, "range sections");
    for (size_t i = 0, next; i < sections->count; i = next) {
        const struct listed_section *listed = &sections->items[i];
        for (next = i + 1; next < sections->count && sections->items[next].address == listed->address;)
            next++;
        struct range_section section;
        bool deleted = is_being_deleted(reader, listed->address);
        if (!deleted && read_section(reader, listed->address, &section)) {
            section.whole = is_whole(lister, &section, add_claims(lister, &section, listed, next - i));
            ret->items[ret->count++] = section;
        } else if (reader_failed(reader)) {
            if (!skip_unreadable(lister))
                return false;
            add_claims(lister, NULL, listed, next - i);
        }
    }
    sort_u64(ret->items, ret->count, sizeof *ret->items);
    lister->left_out += leave_out_impossible(ret);
    apply_claims(lister, ret);
    return !reader_failed(reader);
}

bool range_section_map_list(struct reader *reader, uint64_t map, struct range_section_list *ret)
{
    struct lister *lister = calloc(1, sizeof *lister);
    struct range_section_list list = {0};
    if (!lister)
        return reader_fail(reader, CDACQ_ERR_NOMEM, 0, "range sections");
    lister->reader = reader;
    list_table(lister, field_address(reader, map, F_RangeSectionMap_TopLevelData), level_count(reader), 0);
    if (!reader_failed(reader))
        read_sections(lister, &list);
    list.left_out = lister->left_out;
    listed_sections_deinit(&lister->sections);
    gaps_deinit(&lister->gaps);
    claims_deinit(&lister->claims);
    free(lister);
    if (reader_failed(reader)) {
        free(list.items);
        return false;
    }
    *ret = list;
    return true;
}
