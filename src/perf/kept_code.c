#include "src/perf/kept_code.h"

#include "util/binary_search.h"

DEFINE_VECTOR_FUNCTIONS(kept_pieces, struct kept_piece);

void kept_code_deinit(struct kept_code *kept, struct work *work)
{
    work_return_memory(work, kept->size);
    kept_pieces_deinit(&kept->pieces);
    arena_deinit(&kept->arena);
}

bool kept_code_add(struct kept_code *kept, struct work *work, uint64_t begin, const void *bytes, size_t size)
{
    if (!work_take_memory(work, size))
        return false;
    kept->size += size;
    uint8_t *copy = arena_allocate(&kept->arena, size);
    return copy &&
           kept_pieces_append(&kept->pieces, (struct kept_piece){begin, begin + size, memcpy(copy, bytes, size)});
}

void kept_code_sort(struct kept_code *kept)
{
    struct kept_pieces *pieces = &kept->pieces;
    sort_u64(pieces->items, pieces->count, sizeof *pieces->items);
    for (size_t i = 0; i + 1 < pieces->count; i++)
        pieces->items[i].end = MIN(pieces->items[i].end, pieces->items[i + 1].begin);
}

void kept_code_copy(const struct kept_code *kept, uint64_t begin, uint8_t *bytes, size_t size)
{
    const struct kept_pieces *pieces = &kept->pieces;
    size_t i = lower_bound(k, pieces->count, pieces->items[k].end <= begin);
    for (; i < pieces->count && pieces->items[i].begin < begin + size; i++) {
        const struct kept_piece *piece = &pieces->items[i];
        uint64_t from = MAX(piece->begin, begin), to = MIN(piece->end, begin + size);
        if (from < to)
            memcpy(bytes + (from - begin), piece->bytes + (from - piece->begin), (size_t)(to - from));
    }
}
