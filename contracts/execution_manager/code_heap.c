#include "contracts/execution_manager/code_heap.h"

#include "contracts/code_lookup/nibble_map.h"
#include "contracts/code_lookup/range_section_map.h"
#include "contracts/execution_manager/exception_clauses.h"
#include "contracts/execution_manager/stub_kinds.h"

struct code_heap {
    uint64_t start, last; /* of its used part, `last` included */
    uint64_t cold;        /* where the cold parts begin, which reach up to the end of the section; 0: there are none */
    struct nibble_map map;
};

uint64_t code_heap_end(struct reader *reader, uint64_t node)
{
    bool has_cold = has_field(reader, F_CodeHeapListNode_BottomEndAddress);
    return read_field(reader, node, has_cold ? F_CodeHeapListNode_BottomEndAddress : F_CodeHeapListNode_EndAddress);
}

/* The last used byte, and where the cold parts begin. Neither is logged. */
static void read_bounds(struct reader *reader, uint64_t node, struct code_heap *heap)
{
    struct read_log *log = reader_log(reader, NULL);
    heap->last = code_heap_end(reader, node);
    if (has_field(reader, F_CodeHeapListNode_BottomEndAddress))
        heap->cold = read_optional(reader, node, F_CodeHeapListNode_TopStartAddress);
    reader_log(reader, log);
}

/* The code heap of a section. False if it has none or the reader fails. */
static bool read_heap(struct reader *reader, const struct range_section *section, struct code_heap *ret)
{
    uint64_t heap = section->heap_list;
    if (!heap)
        return false;
    *ret = (struct code_heap){
        .start = read_field(reader, heap, F_CodeHeapListNode_StartAddress),
        .map.base = read_field(reader, heap, F_CodeHeapListNode_MapBase),
        .map.header_map = read_field(reader, heap, F_CodeHeapListNode_HeaderMap),
    };
    read_bounds(reader, heap, ret);
    return !reader_failed(reader);
}

/*
 * Whether an address is in the used part of the heap. That part grows with every method, and that `ip` is in it stays
 * true, so an answer about a running process does not rest on the exact bounds.
 */
static bool is_in_use(struct reader *reader, const struct range_section *section, const struct code_heap *heap,
                      uint64_t ip)
{
    if (ip < heap->start)
        return false;
    if (ip <= heap->last || (heap->cold && ip >= heap->cold))
        return true;
    (void)code_heap_end(reader, section->heap_list); /* again, for what rests on it now */
    (void)read_optional(reader, section->heap_list, F_CodeHeapListNode_TopStartAddress);
    return false;
}

/* Of a method's block: the part that it is, the start and the size of that. */
static uint64_t part_start(const struct code_block *block)
{
    return block->cold ? block->cold_start : block->start;
}

static uint64_t part_size(const struct code_block *block)
{
    return block->cold ? block->cold_size : block->hot_size;
}

/*
 * Whether the nibble map leads from the part's last byte to its start, as it must if the header has the right length.
 * Where the map's memory is missing, the length stands. False, and the reader fails, if they disagree.
 */
static bool is_confirmed(const struct section_reader *section, const struct code_heap *heap,
                         const struct code_block *block)
{
    struct reader *reader = section->reader;
    uint64_t size = part_size(block), last = part_start(block) + (size ? size - 1 : 0);
    bool in_use = is_in_use(section->reader, section->section, heap, last);
    uint64_t start = in_use ? section->managers->nibble_map->find(reader, &heap->map, last) : 0;
    if (!reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY)) && !reader_failed(reader) && start != part_start(block))
        reader_fail(reader, CDACQ_ERR_CORRUPT, block->start, "length of the code: the nibble map has less");
    return !reader_failed(reader);
}

bool code_heap_find(const struct section_reader *section, uint64_t ip, struct code_block *ret)
{
    struct reader *reader = section->reader;
    struct code_heap heap;
    struct code_block block;
    if (!read_heap(reader, section->section, &heap) || !is_in_use(reader, section->section, &heap, ip))
        return false;
    uint64_t start = section->managers->nibble_map->find(reader, &heap.map, ip);
    if (!start || reader_failed(reader) || !section->manager->block_at(section, start, PART_NO_NUMBER, &block))
        return false;
    uint64_t offset = ip - start;
    block.ip = ip;
    block.offset = offset + (block.cold ? block.hot_size : 0);
    if (code_block_is_method(&block) && !is_confirmed(section, &heap, &block))
        return false;
    if (code_block_is_method(&block) && offset >= part_size(&block) && offset) {
        if (!block.hot_size) /* a method of unknown length owns its start alone */
            reader_fail(reader, CDACQ_ERR_CORRUPT, start, layout_field_name(section->manager->gc_info_field));
        return false;
    }
    *ret = block;
    return true;
}

/* Whether the block at `start` is a cold part. The bound of hot code decides it, and grows only up to that of cold. */
static bool is_cold(const struct section_reader *section, uint64_t start)
{
    struct reader *reader = section->reader;
    struct code_heap heap = {0};
    if (!has_field(reader, F_CodeHeapListNode_BottomEndAddress))
        return false;
    read_bounds(reader, section->section->heap_list, &heap);
    return !reader_failed(reader) && heap.cold && start - reader->pointer_size >= heap.last;
}

uint64_t code_heap_header(const struct section_reader *section, uint64_t start, uint64_t *ret_method,
                          struct code_block *ret)
{
    struct reader *reader = section->reader;
    *ret_method = start;
    if (is_cold(section, start)) {
        *ret_method = read_pointer(reader, start - reader->pointer_size) + reader->pointer_size;
        reader_name_failure(reader, "pointer to the method of cold code");
    }
    if (reader_failed(reader))
        return 0;
    uint64_t header = read_pointer(reader, *ret_method - reader->pointer_size);
    reader_name_failure(reader, "pointer to the code's header");
    if (reader_failed(reader))
        return 0;
    if (header > section->reader->layout->globals[G_StubCodeBlockLast])
        return header;
    uint8_t kind = (uint8_t)stub_kind_of(section->managers->stub_kinds, header);
    *ret = (struct code_block){.ip = start, .start = start, .kind = kind};
    return 0;
}

uint64_t code_heap_header_field(struct reader *reader, const struct code_block *block, enum layout_field field)
{
    return read_field(reader, read_pointer(reader, block->start - reader->pointer_size), field);
}

bool code_heap_gc_info(struct reader *reader, const struct code_block *block, uint64_t *ret, uint32_t *ret_version)
{
    *ret = code_heap_header_field(reader, block, block->manager->gc_info_field);
    *ret_version = gc_info_version_of_jit(reader->layout);
    return !reader_failed(reader);
}

bool code_heap_clauses(struct reader *reader, const struct code_block *block, struct exception_clauses *ret)
{
    return exception_clauses_at(reader, code_heap_header_field(reader, block, block->manager->clauses_field), ret);
}

/* What it takes to find that a block's header is not there, beside reads: as long as so many of them. */
enum { UNITS_OF_A_LOST_BLOCK = 4 };

struct heap_visit {
    const struct section_reader *section;
    block_part_visitor *visit;
    void *context;
};

static bool visit_block(const struct nibble_block *nibble_block, void *context)
{
    const struct heap_visit *heap = context;
    const struct section_reader *section = heap->section;
    struct code_block block;
    uint64_t start = nibble_block->start, end = nibble_block->reach;
    enum block_part_kind kind = PART_UNKNOWN;
    /* Stubs, and a block whose header or length cannot be read, reach as far as a look-up finds them. */
    if (nibble_block->unknown)
        return heap->visit(start, end, kind, PART_NO_NUMBER, heap->context);
    if (!section->manager->block_at(section, start, PART_NO_NUMBER, &block)) {
        if (!reader_recover(section->reader, FAILURE(CDACQ_ERR_MEMORY) | FAILURE(CDACQ_ERR_CORRUPT)))
            return false;
        reader_charge(section->reader, UNITS_OF_A_LOST_BLOCK);
    } else if (!code_block_is_method(&block)) {
        kind = PART_STUB;
    } else if (part_size(&block) &&
               part_size(&block) <= end - start) { /* otherwise a look-up must confirm the length */
        kind = block.cold ? PART_COLD : PART_HOT;
        end = start + part_size(&block);
    }
    return heap->visit(start, end, kind, PART_NO_NUMBER, heap->context);
}

static bool visit_blocks(struct heap_visit *visiting, const struct nibble_map *map, uint64_t begin, uint64_t end)
{
    const struct section_reader *section = visiting->section;
    return nibble_map_each(section->reader, section->managers->nibble_map, map, begin, end, visit_block, visiting);
}

void code_heap_each(const struct section_reader *section, block_part_visitor *visit, void *context)
{
    struct code_heap heap;
    struct heap_visit visiting = {section, visit, context};
    uint64_t section_end = section->section->end;
    if (!read_heap(section->reader, section->section, &heap) || heap.start > heap.last)
        return;
    uint64_t end = MIN(add_saturated(heap.last, 1), section_end);
    if (visit_blocks(&visiting, &heap.map, heap.start, end) && heap.cold && heap.cold < section_end)
        visit_blocks(&visiting, &heap.map, MAX(heap.cold, end), section_end);
}
