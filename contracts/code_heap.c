#include "contracts/code_heap.h"

#include "contracts/execution_manager.h"

/* The code heap of a section. False, without failing, when `ip` is not in its used part. */
static bool read_heap(struct reader *reader, const struct range_section *section, uint64_t ip, struct nibble_map *ret)
{
    uint64_t heap = section->heap_list;
    if (!heap)
        return false;
    uint64_t start = read_field(reader, heap, F_CodeHeapListNode_StartAddress);
    uint64_t end = read_field(reader, heap, F_CodeHeapListNode_EndAddress);
    *ret = (struct nibble_map){
        .base = read_field(reader, heap, F_CodeHeapListNode_MapBase),
        .header_map = read_field(reader, heap, F_CodeHeapListNode_HeaderMap),
    };
    return ip >= start && ip <= end && !reader_failed(reader);
}

uint64_t code_heap_start(const struct execution_manager *manager, struct reader *reader,
                         const struct range_section *section, uint64_t ip)
{
    struct nibble_map map;
    if (!read_heap(reader, section, ip, &map))
        return 0;
    uint64_t start = manager->version->nibble_map->find(reader, &map, ip);
    return reader_failed(reader) ? 0 : start;
}

uint64_t code_heap_header(const struct execution_manager *manager, struct reader *reader, uint64_t start,
                          struct code_block *ret)
{
    uint64_t header = read_pointer(reader, start - reader->pointer_size);
    if (reader_failed(reader))
        return 0;
    if (header > reader->layout->globals[G_StubCodeBlockLast])
        return header;
    *ret =
        (struct code_block){.ip = start, .start = start, .kind = (uint8_t)execution_manager_stub_kind(manager, header)};
    return 0;
}

bool code_heap_each(const struct execution_manager *manager, struct reader *reader, const struct range_section *section,
                    bool (*found)(uint64_t start, void *context), void *context)
{
    uint64_t heap = section->heap_list;
    if (!heap)
        return true;
    uint64_t start = read_field(reader, heap, F_CodeHeapListNode_StartAddress);
    uint64_t end = read_field(reader, heap, F_CodeHeapListNode_EndAddress);
    struct nibble_map map;
    return read_heap(reader, section, start, &map) &&
           nibble_map_each(reader, manager->version->nibble_map, &map, start, MIN(add_saturated(end, 1), section->end),
                           found, context);
}

uint64_t code_block_header(struct reader *reader, const struct code_block *block)
{
    return read_pointer(reader, block->start - reader->pointer_size);
}
