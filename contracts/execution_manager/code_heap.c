#include "contracts/execution_manager/code_heap.h"

#include "contracts/execution_manager/execution_manager.h"

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

uint64_t code_heap_start(const struct execution_manager *manager, struct field_reader *reader,
                         const struct range_section *section, uint64_t ip)
{
    struct code_heap heap;
    if (!read_heap(reader, section, &heap) || ip < heap.start || ip > heap.last)
        return 0;
    uint64_t start = manager->version->nibble_map->find(&reader->raw, &heap.map, ip);
    return reader_failed(&reader->raw) ? 0 : start;
}

uint64_t code_heap_header(const struct execution_manager *manager, struct field_reader *reader, uint64_t start,
                          struct code_block *ret)
{
    uint64_t header = read_pointer(&reader->raw, start - reader->raw.pointer_size);
    if (reader_failed(&reader->raw))
        return 0;
    if (header > reader->layout->globals[G_StubCodeBlockLast])
        return header;
    *ret =
        (struct code_block){.ip = start, .start = start, .kind = (uint8_t)execution_manager_stub_kind(manager, header)};
    return 0;
}

bool code_heap_each(const struct execution_manager *manager, struct field_reader *reader,
                    const struct range_section *section, bool (*found)(uint64_t start, void *context), void *context)
{
    struct code_heap heap;
    if (!section->heap_list)
        return true;
    return read_heap(reader, section, &heap) && heap.start <= heap.last &&
           nibble_map_each(&reader->raw, manager->version->nibble_map, &heap.map, heap.start,
                           MIN(add_saturated(heap.last, 1), section->end), found, context);
}

uint64_t code_block_field(struct field_reader *reader, const struct code_block *block, enum layout_field jit,
                          enum layout_field interpreter)
{
    uint64_t header = read_pointer(&reader->raw, block->start - reader->raw.pointer_size);
    return read_field(reader, header, block->kind == CDACQ_CODE_JITTED ? jit : interpreter);
}
