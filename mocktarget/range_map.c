/*
 * range_map.c: the RangeSectionMap: a radix tree of tables of 256 pointers, whose leaves are lists of fragments.
 *
 * As the runtime builds it: a section has one fragment for each chunk of address space that it touches, each with the
 * whole section's range, in one array; a leaf lists those that are not collectible before those that are; the lowest
 * bit of every pointer to something collectible is set.
 * Source: src/coreclr/vm/codeman.h, RangeSectionMap.
 */
#include "mocktarget/mock.h"

enum { SLOTS = 256, COLLECTIBLE_TAG = 1 };

unsigned mock_map_levels(const struct mock *mock)
{
    return mock->word == 4 ? 2 : 5;
}

uint64_t mock_chunk_size(const struct mock *mock)
{
    return mock->word == 4 ? 64 * 1024 : 128 * 1024;
}

uint64_t mock_map_address(const struct mock *mock)
{
    return mock->map;
}

static uint64_t slot_in(const struct mock *mock, uint64_t table, uint64_t address, unsigned level)
{
    uint64_t chunk = address / mock_chunk_size(mock);
    for (unsigned i = 1; i < level; i++)
        chunk /= SLOTS;
    return table + chunk % SLOTS * mock->word;
}

uint64_t mock_map_slot(struct mock *mock, uint64_t address, unsigned level)
{
    uint64_t table = mock_address_of(mock, mock->map, F_RangeSectionMap_TopLevelData);
    for (unsigned at = mock_map_levels(mock); at > level && table; at--)
        table = mock_read_pointer(mock, slot_in(mock, table, address, at)) & ~(uint64_t)COLLECTIBLE_TAG;
    return table ? slot_in(mock, table, address, level) : 0;
}

/* The level-1 slot for an address; makes the tables that lead to it. */
static uint64_t ensure_slot(struct mock *mock, uint64_t address, uint64_t tag)
{
    uint64_t table = mock_address_of(mock, mock->map, F_RangeSectionMap_TopLevelData);
    for (unsigned level = mock_map_levels(mock); level > 1 && !mock->failed; level--) {
        uint64_t slot = slot_in(mock, table, address, level);
        table = mock_read_pointer(mock, slot) & ~(uint64_t)COLLECTIBLE_TAG;
        if (!table) {
            table = mock_alloc(mock, SLOTS * mock->word, mock->word);
            mock_write_pointer(mock, slot, table | tag);
        }
    }
    return slot_in(mock, table, address, 1);
}

/* A collectible fragment goes after those that are not; any other goes first. */
static void link_fragment(struct mock *mock, uint64_t slot, uint64_t fragment, uint64_t tag)
{
    uint64_t link = slot;
    for (uint64_t next = mock_read_pointer(mock, link); tag && next && !(next & COLLECTIBLE_TAG) && !mock->failed;
         next = mock_read_pointer(mock, link))
        link = mock_address_of(mock, next, F_RangeSectionFragment_Next);
    mock_put(mock, fragment, F_RangeSectionFragment_Next, mock_read_pointer(mock, link));
    mock_write_pointer(mock, link, fragment | tag);
}

static uint64_t new_section(struct mock *mock, const struct mock_section *section)
{
    uint64_t object = mock_object(mock, T_RangeSection, 0);
    mock_put(mock, object, F_RangeSection_RangeBegin, section->begin);
    mock_put(mock, object, F_RangeSection_RangeEndOpen, section->end);
    mock_put(mock, object, F_RangeSection_Flags, section->flags);
    mock_put(mock, object, F_RangeSection_JitManager,
             section->flags & MOCK_SECTION_INTERPRETER ? mock->interpreter_manager : mock->jit_manager);
    mock_put(mock, object, F_RangeSection_HeapList, section->heap_list);
    mock_put(mock, object, F_RangeSection_R2RModule, section->r2r_module);
    mock_put(mock, object, F_RangeSection_RangeList, section->range_list);
    return object;
}

uint64_t mock_section_add(struct mock *mock, const struct mock_section *section)
{
    uint64_t chunk = mock_chunk_size(mock), tag = section->flags & MOCK_SECTION_COLLECTIBLE ? COLLECTIBLE_TAG : 0;
    uint64_t first = align_down(section->begin, chunk), stride = mock->sizes[T_RangeSectionFragment];
    size_t count = (size_t)((section->end - first + chunk - 1) / chunk);
    if (section->begin >= section->end)
        return mock_fail(mock, "a section of no bytes");
    uint64_t object = new_section(mock, section);
    struct mock_fragments fragments = {object, 0, count, {section->begin, section->end}};
    for (size_t i = 0; i < count && !mock->failed; i++) {
        /* mock_alloc pads, so the first allocation makes room for all fragments, which must be contiguous. */
        uint64_t fragment =
            i ? fragments.first + i * stride : mock_object(mock, T_RangeSectionFragment, (count - 1) * stride);
        fragments.first = i ? fragments.first : fragment;
        mock_put(mock, fragment, F_RangeSectionFragment_RangeBegin, section->begin);
        mock_put(mock, fragment, F_RangeSectionFragment_RangeEndOpen, section->end);
        mock_put(mock, fragment, F_RangeSectionFragment_RangeSection, object);
        link_fragment(mock, ensure_slot(mock, first + i * chunk, tag), fragment, tag);
    }
    if (mock->failed || !mock_stored(mock, mock_sections_append(&mock->sections, fragments)))
        return 0;
    return object;
}

static const struct mock_fragments *find_section(const struct mock *mock, uint64_t section)
{
    for (size_t i = 0; i < mock->sections.count; i++)
        if (mock->sections.items[i].section == section)
            return &mock->sections.items[i];
    return NULL;
}

uint64_t mock_section_fragments(const struct mock *mock, uint64_t section, size_t *ret_count, uint64_t *ret_stride)
{
    const struct mock_fragments *fragments = find_section(mock, section);
    *ret_count = fragments ? fragments->count : 0;
    *ret_stride = mock->sizes[T_RangeSectionFragment];
    return fragments ? fragments->first : 0;
}

void mock_section_delete(struct mock *mock, uint64_t section)
{
    const struct mock_fragments *fragments = find_section(mock, section);
    if (!fragments) {
        mock_fail(mock, "%#llx is no section", (unsigned long long)section);
        return;
    }
    /* The list of sections to delete ends with 1. */
    uint64_t next = 1;
    for (size_t i = 0; i < mock->sections.count; i++)
        if (mock->sections.items[i].section != section && mock_random(mock, 2))
            next = mock->sections.items[i].section;
    mock_put(mock, section, F_RangeSection_NextForDelete, next);
    mock_expect_nothing(mock, fragments->range.begin, fragments->range.end);
}
