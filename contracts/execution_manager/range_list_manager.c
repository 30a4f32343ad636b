/*
 * range_list_manager.c: lists of ranges of precodes and other stubs, without methods. The list says which kind of stub
 * it holds if the target describes that. The runtime reserves more memory for a list than it uses, and uses it from its
 * start on; nothing published says how much. What it has not used is zero or not readable.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "RangeList"; src/coreclr/vm/codeman.h;
 * src/coreclr/utilcode/loaderheap.cpp.
 */
#include "contracts/execution_manager/range_list_manager.h"

#include "contracts/code_lookup/range_section_map.h"
#include "contracts/execution_manager/jit_manager.h"
#include "contracts/execution_manager/stub_kinds.h"
#include "descriptors/fields.h"

enum {
    STUB_ALIGNMENT = 16,         /* of stubs, and more than the zeros with which one ends */
    UNUSED_MIN = 256,            /* zeros that show the end: more than data pages of precodes have at theirs */
    LIST_MAX = 16 * 1024 * 1024, /* bytes of a list whose end is looked for; those of runtimes have some 64 KiB */
};

/* The number of bytes before the zeros with which `bytes` ends. */
static size_t without_zeros(const uint8_t *bytes, size_t count)
{
    while (count && !bytes[count - 1])
        count--;
    return count;
}

/* Where what can be read ends, and what of it may be in use. */
struct piece_ends {
    uint64_t readable, used;
    bool has_hole; /* something before `readable` is missing */
};

/* Moves the ends to those of [begin, end), which is in one page. False if a byte of it is missing. */
static bool read_piece(struct reader *reader, uint64_t begin, uint64_t end, struct piece_ends *ret)
{
    uint8_t copy[PAGE_SIZE];
    const uint8_t *bytes = reader_try_view(reader, begin, end - begin);
    if (!bytes && reader_try_copy(reader, begin, copy, end - begin))
        bytes = copy;
    if (!bytes)
        return false;
    size_t count = without_zeros(bytes, end - begin);
    bool follows_hole = begin > ret->readable;
    if (count || follows_hole) /* what is missing before it may be in use */
        ret->used = begin + count;
    ret->has_hole |= follows_hole;
    ret->readable = end;
    return true;
}

/* The end of the aligned piece of `size` bytes that has `at`, or `end`. */
static uint64_t piece_end(uint64_t at, uint64_t size, uint64_t end)
{
    return MIN(align_down(at, size) + size, end);
}

uint64_t stubs_used_end(struct reader *reader, uint64_t begin, uint64_t end)
{
    struct piece_ends ends = {.readable = begin, .used = begin};
    if (end - begin > LIST_MAX)
        return end;
    for (uint64_t at = begin, next; at < end && reader_step(reader, "stubs"); at = next) {
        next = piece_end(at, PAGE_SIZE, end);
        if (read_piece(reader, at, next, &ends))
            continue;
        for (uint64_t line = at; line < next; line = piece_end(line, LINE_SIZE, next)) /* a snapshot has lines */
            (void)read_piece(reader, line, piece_end(line, LINE_SIZE, next), &ends);
    }
    /* What a core that lacks parts of the list, such as a mini core, lacks after the zeros may be in use. */
    bool is_known = ends.readable > begin && (!ends.has_hole || ends.readable == end);
    bool is_end = is_known && ends.readable - ends.used >= MIN((uint64_t)UNUSED_MIN, end - ends.used);
    return is_end ? MIN(align_up(ends.used, STUB_ALIGNMENT), end) : end;
}

static uint64_t used_end(struct reader *reader, const struct range_section *section)
{
    return section->stub_kind ? section->end : stubs_used_end(reader, section->begin, section->end);
}

bool stubs_use(struct reader *reader, uint64_t begin, uint64_t end, uint64_t ip)
{
    struct piece_ends ends = {.readable = ip, .used = ip};
    /* What is not zero from here to the end of the line shows, without the rest, what stubs_used_end() would find. */
    return (read_piece(reader, ip, piece_end(ip, LINE_SIZE, end), &ends) && ends.used > ip) ||
           ip < stubs_used_end(reader, begin, end);
}

/* Nothing says where one stub of a list begins. Its block is the list, as in listings. */
static struct code_block stub_at(const struct range_section *section, uint64_t ip, uint8_t kind)
{
    return (struct code_block){.ip = ip, .start = section->begin, .offset = ip - section->begin, .kind = kind};
}

static bool find(const struct section_reader *section, uint64_t ip, struct code_block *ret)
{
    struct reader *reader = section->reader;
    if (section->section->stub_kind) {
        *ret = stub_at(section->section, ip, section->section->stub_kind);
        return true;
    }
    uint64_t number = read_optional(reader, section->section->range_list, F_CodeRangeMapRangeList_RangeListType);
    reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY)); /* stubs of an unknown kind are still stubs */
    uint8_t kind = (uint8_t)stub_kind_of(section->managers->stub_kinds, number);
    if (!stubs_use(reader, section->section->begin, section->section->end, ip))
        return false;
    *ret = stub_at(section->section, ip, kind);
    return !reader_failed(reader);
}

static void each(const struct section_reader *section, block_part_visitor *visit, void *context)
{
    uint64_t end = used_end(section->reader, section->section);
    if (end > section->section->begin)
        visit(section->section->begin, end, PART_STUB, PART_NO_NUMBER, context);
}

const struct jit_manager_ops range_list_manager = {
    .range_kind = "stubs",
    .find = find,
    .each = each,
};
