#include "contracts/execution_manager/stub_ranges.h"

#include <cdacq/code_kind.h>

#include "contracts/code_lookup/range_section_map.h"
#include "util/vector.h"
#include "contracts/code_lookup/auxiliary_symbols.h"
#include "contracts/execution_manager/range_list_manager.h"

enum {
    BARRIERS_SIZE = 4096,   /* what the runtime reserves for the copies; it begins where they do */
    BLOCK_RANGES = 10,      /* of a block of the list: RangeList::RANGE_COUNT */
    BLOCK_MAX = 128,        /* of the list; later ones are not visited */
    RANGE_MAX = 256 * 1024, /* bytes; the runtime reserves some 64 KiB at once. A larger range holds no stubs of ours */
};

DEFINE_VECTOR(stub_sections, struct range_section);

/* Takes a range. False ends the visit. */
typedef bool range_visitor(uint64_t begin, uint64_t end, enum cdacq_code_kind kind, void *context);

/* The ranges of one block of a RangeList. False: the visit has ended, or the reader has failed. */
static bool visit_block(struct reader *reader, uint64_t block, enum cdacq_code_kind kind, range_visitor *visit,
                        void *context)
{
    uint64_t size = reader->layout->sizes[T_RangeListRange];
    uint64_t at = field_address(reader, block, F_RangeListBlock_Ranges);
    for (unsigned i = 0; i < BLOCK_RANGES && reader_step(reader, "ranges of stubs"); i++, at += size) {
        if (!read_field(reader, at, F_RangeListRange_Id))
            continue;
        uint64_t first = read_field(reader, at, F_RangeListRange_Start),
                 last = read_field(reader, at, F_RangeListRange_End);
        if (!reader_failed(reader) && first < last && last - first <= RANGE_MAX && !visit(first, last, kind, context))
            return false;
    }
    return !reader_failed(reader);
}

static bool describes_lists(const struct reader *reader)
{
    return has_field(reader, F_RangeListBlock_Ranges) && has_field(reader, F_RangeListBlock_Next) &&
           has_field(reader, F_RangeListRange_Start) && has_field(reader, F_RangeListRange_End) &&
           has_field(reader, F_RangeListRange_Id);
}

/* The ranges of a RangeList, from its first block on, which may be 0. */
static bool visit_list(struct reader *reader, uint64_t block, enum cdacq_code_kind kind, range_visitor *visit,
                       void *context)
{
    uint64_t earlier = 0;
    for (unsigned i = 0; i < BLOCK_MAX && block && reader_step(reader, "ranges of stubs"); i++) {
        if (!visit_block(reader, block, kind, visit, context))
            return false;
        if (!(i & (i - 1))) /* a power of two: a list that returns to this block ends there */
            earlier = block;
        block = read_field(reader, block, F_RangeListBlock_Next);
        if (block == earlier)
            break;
    }
    return !reader_failed(reader);
}

/* Those that the StubLinkStubManager lists. */
static bool visit_stub_link_stubs(struct reader *reader, range_visitor *visit, void *context)
{
    uint64_t variable = reader->layout->globals[G_StubLinkStubManager];
    bool described = variable && describes_lists(reader) && has_field(reader, F_StubLinkStubManager_StarterBlock);
    uint64_t manager = described ? read_pointer(reader, variable) : 0;
    uint64_t block = manager ? field_address(reader, manager, F_StubLinkStubManager_StarterBlock) : 0;
    return visit_list(reader, block, CDACQ_CODE_STUB_LINK_STUB, visit, context);
}

/* Those that count the calls of methods until these are compiled again. Collectible assemblies have others. */
static bool visit_call_counting_stubs(struct reader *reader, range_visitor *visit, void *context)
{
    uint64_t variable = reader->layout->globals[G_SystemDomain];
    bool described = variable && describes_lists(reader) && has_field(reader, F_SystemDomain_m_callCountingManager) &&
                     has_field(reader, F_CallCountingManager_StarterBlock);
    uint64_t domain = described ? read_pointer(reader, variable) : 0;
    uint64_t manager = domain ? read_field(reader, domain, F_SystemDomain_m_callCountingManager) : 0;
    uint64_t block = manager ? field_address(reader, manager, F_CallCountingManager_StarterBlock) : 0;
    return visit_list(reader, block, CDACQ_CODE_CALL_COUNTING_STUB, visit, context);
}

/* The write barrier that JIT-compiled code calls; 0 if that is not known or the reader fails. */
static uint64_t find_barrier(struct reader *reader)
{
    const struct layout *layout = reader->layout;
    uint64_t table = layout->globals[G_hlpDynamicFuncTable];
    if (!table)
        return auxiliary_symbols_find(reader, "JIT_WriteBarrier");
    uint64_t index = layout->globals[G_DYNAMIC_CORINFO_HELP_ASSIGN_REF];
    return read_pointer(reader, table + index * reader->pointer_size);
}

/* The copies of the write barriers. Without copies, the helper is that of the runtime's image. */
static bool visit_barriers(struct reader *reader, const struct image_bounds *image, range_visitor *visit, void *context)
{
    if (!image->end)
        return true;
    uint64_t helper = find_barrier(reader);
    uint64_t begin = align_down(helper, BARRIERS_SIZE);
    if (reader_failed(reader))
        return false;
    if (!begin || (helper >= image->begin && helper < image->end) || begin > UINT64_MAX - BARRIERS_SIZE)
        return true;
    return visit(begin, begin + BARRIERS_SIZE, CDACQ_CODE_COPIED_WRITE_BARRIERS, context);
}

/* What the target lacks is not visited. */
static void visit_ranges(struct reader *reader, const struct image_bounds *image, range_visitor *visit, void *context)
{
    bool goes_on = visit_stub_link_stubs(reader, visit, context);
    goes_on |= reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY));
    goes_on = goes_on && visit_call_counting_stubs(reader, visit, context);
    goes_on |= reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY));
    if (goes_on)
        (void)visit_barriers(reader, image, visit, context);
    reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY));
}

static struct range_section section_of(uint64_t begin, uint64_t end, enum cdacq_code_kind kind)
{
    return (struct range_section){
        .begin = begin, .end = end, .flags = RANGE_SECTION_RANGE_LIST, .stub_kind = (uint8_t)kind, .whole = true};
}

struct search {
    struct reader *reader;
    uint64_t address;
    struct range_section found;
};

static bool holds_address(uint64_t begin, uint64_t end, enum cdacq_code_kind kind, void *context)
{
    struct search *search = context;
    if (search->address < begin || search->address >= end)
        return true;
    if (!stubs_use(search->reader, begin, end, search->address))
        return true;
    search->found = section_of(begin, end, kind);
    return false;
}

bool stub_ranges_find(struct reader *reader, const struct image_bounds *image, uint64_t address,
                      struct range_section *ret)
{
    struct search search = {.reader = reader, .address = address};
    visit_ranges(reader, image, holds_address, &search);
    if (reader_failed(reader) || !search.found.end)
        return false;
    *ret = search.found;
    return true;
}

struct listing {
    struct reader *reader;
    struct stub_sections sections;
};

static bool add_range(uint64_t begin, uint64_t end, enum cdacq_code_kind kind, void *context)
{
    struct listing *listing = context;
    struct range_section section = section_of(begin, stubs_used_end(listing->reader, begin, end), kind);
    if (section.begin < section.end && !stub_sections_append(&listing->sections, section))
        return reader_fail(listing->reader, CDACQ_ERR_NOMEM, 0, "ranges of stubs");
    return !reader_failed(listing->reader);
}

/*
 * Merges both lists. Of a range, what a section holds is left out: look-ups find the section there. `sections` and
 * `ranges` are sorted.
 */
static bool merge(const struct range_section_list *sections, const struct stub_sections *ranges,
                  struct stub_sections *ret)
{
    uint64_t taken = 0; /* up to here, addresses are in a range that was added */
    size_t next = 0;
    for (size_t i = 0; i < ranges->count; i++) {
        struct range_section rest = ranges->items[i];
        rest.begin = MAX(rest.begin, taken);
        while (next < sections->count && sections->items[next].end <= rest.begin)
            if (!stub_sections_append(ret, sections->items[next++]))
                return false;
        for (size_t k = next; rest.begin < rest.end; k++) {
            struct range_section piece = rest;
            const struct range_section *section = k < sections->count ? &sections->items[k] : NULL;
            bool cut = section && section->begin < rest.end;
            piece.end = cut ? MAX(section->begin, rest.begin) : rest.end;
            if (piece.begin < piece.end && !stub_sections_append(ret, piece))
                return false;
            rest.begin = cut ? MAX(section->end, rest.begin) : rest.end;
        }
        taken = MAX(taken, ranges->items[i].end);
    }
    for (; next < sections->count; next++)
        if (!stub_sections_append(ret, sections->items[next]))
            return false;
    return true;
}

bool stub_ranges_add(struct reader *reader, const struct image_bounds *image, struct range_section_list *list)
{
    struct listing listing = {.reader = reader};
    struct stub_sections merged = {0};
    visit_ranges(reader, image, add_range, &listing);
    bool good = !reader_failed(reader);
    if (good && listing.sections.count) {
        sort_u64(listing.sections.items, listing.sections.count, sizeof *listing.sections.items);
        good = merge(list, &listing.sections, &merged);
        if (!good)
            reader_fail(reader, CDACQ_ERR_NOMEM, 0, "ranges of stubs");
    }
    if (good && merged.count) {
        sort_u64(merged.items, merged.count, sizeof *merged.items);
        free(list->items);
        list->items = merged.items;
        list->count = merged.count;
        merged = (struct stub_sections){0};
    }
    stub_sections_deinit(&merged);
    stub_sections_deinit(&listing.sections);
    return good;
}
