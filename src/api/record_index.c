#include "src/api/record_index.h"

#include "util/binary_search.h"

enum { FEW = 256 };

void record_index_deinit(struct record_index *index)
{
    indexed_records_deinit(&index->many);
    indexed_records_deinit(&index->few);
}

/* The last item that starts at or before `address`, or NULL. */
static struct indexed_record *last_to(const struct indexed_records *list, uint64_t address)
{
    size_t after = lower_bound(i, list->count, list->items[i].start <= address);
    return after ? &list->items[after - 1] : NULL;
}

struct method_record *record_index_find(const struct record_index *index, uint64_t address)
{
    const struct indexed_record *a = last_to(&index->many, address), *b = last_to(&index->few, address);
    if (!a || (b && b->start > a->start))
        a = b;
    return a ? a->record : NULL;
}

/* Moves the items of the short list into the long one. */
static bool merge(struct record_index *index)
{
    struct indexed_records *many = &index->many, *few = &index->few;
    size_t from = many->count, left = few->count, to = from + left;
    if (!indexed_records_append_items(many, left))
        return false;
    while (left) {
        bool is_larger = from && many->items[from - 1].start > few->items[left - 1].start;
        many->items[--to] = is_larger ? many->items[--from] : few->items[--left];
    }
    few->count = 0;
    return true;
}

bool record_index_add(struct record_index *index, uint64_t start, struct method_record *record)
{
    struct indexed_records *lists[] = {&index->many, &index->few}, *few = &index->few;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        struct indexed_record *known = last_to(lists[i], start);
        if (known && known->start == start) {
            known->record = record;
            return true;
        }
    }
    if ((few->count == FEW && !merge(index)) || !indexed_records_append_items(few, 1))
        return false;
    size_t at = lower_bound(i, few->count - 1, few->items[i].start < start);
    memmove(few->items + at + 1, few->items + at, (few->count - 1 - at) * sizeof *few->items);
    few->items[at] = (struct indexed_record){start, record};
    return true;
}
