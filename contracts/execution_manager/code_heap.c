#include "contracts/execution_manager/code_heap.h"

struct code_heap {
    uint64_t start, last; /* of its used part, `last` included */
    struct nibble_map map;
};

/* The code heap of a section. False where it has none, without failing, and when the reader fails. */
static bool read_heap(struct field_reader *reader, const struct range_section *section, struct code_heap *ret)
{
    uint64_t heap = section->heap_list;
    if (!heap)
        return false;
    *ret = (struct code_heap){
        .start = read_field(reader, heap, F_CodeHeapListNode_StartAddress),
        .last = read_field(reader, heap, F_CodeHeapListNode_EndAddress),
        .map.base = read_field(reader, heap, F_CodeHeapListNode_MapBase),
        .map.header_map = read_field(reader, heap, F_CodeHeapListNode_HeaderMap),
    };
    return !reader_failed(&reader->raw);
}

uint64_t code_heap_start(const struct nibble_map_version *version, struct field_reader *reader,
                         const struct range_section *section, uint64_t ip)
{
    struct code_heap heap;
    if (!read_heap(reader, section, &heap) || ip < heap.start || ip > heap.last)
        return 0;
    uint64_t start = version->find(&reader->raw, &heap.map, ip);
    return reader_failed(&reader->raw) ? 0 : start;
}

uint64_t code_heap_header(const struct stub_kinds *kinds, struct field_reader *reader, uint64_t start,
                          struct code_block *ret)
{
    uint64_t header = read_pointer(&reader->raw, start - reader->raw.pointer_size);
    if (reader_failed(&reader->raw))
        return 0;
    if (header > reader->layout->globals[G_StubCodeBlockLast])
        return header;
    *ret = (struct code_block){.ip = start, .start = start, .kind = (uint8_t)stub_kind_of(kinds, header)};
    return 0;
}

uint64_t code_heap_header_field(struct field_reader *reader, const struct code_block *block, enum layout_field field)
{
    return read_field(reader, read_pointer(&reader->raw, block->start - reader->raw.pointer_size), field);
}

/* A heap whose blocks are being visited. */
struct heap_visit {
    const struct jit_manager_ops *manager;
    struct jit_managers *managers;
    struct field_reader *reader;
    const struct range_section *section;
    block_part_visitor *visit;
    void *context;
};

static bool visit_block(uint64_t start, void *context)
{
    const struct heap_visit *heap = context;
    struct code_block block;
    uint64_t end = heap->section->end;
    enum block_part_kind kind = PART_UNKNOWN;
    /* A stub block, and one whose header or length is not readable, reach up to the next start. */
    if (!heap->manager->block_at(heap->managers, heap->reader, heap->section, start, PART_NO_NUMBER, &block)) {
        if (!reader_recover(&heap->reader->raw, FAILURE(CDACQ_ERR_MEMORY) | FAILURE(CDACQ_ERR_CORRUPT)))
            return false;
    } else if (!code_block_is_method(&block)) {
        kind = PART_STUB;
    } else if (block.hot_size) {
        kind = PART_HOT;
        end = start + block.hot_size;
    }
    return heap->visit(start, end, kind, PART_NO_NUMBER, heap->context);
}

void code_heap_each(const struct jit_manager_ops *manager, struct jit_managers *managers, struct field_reader *reader,
                    const struct range_section *section, block_part_visitor *visit, void *context)
{
    struct code_heap heap;
    struct heap_visit visiting = {manager, managers, reader, section, visit, context};
    if (read_heap(reader, section, &heap) && heap.start <= heap.last)
        nibble_map_each(&reader->raw, managers->nibble_map, &heap.map, heap.start,
                        MIN(add_saturated(heap.last, 1), section->end), visit_block, &visiting);
}
