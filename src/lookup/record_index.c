#include "src/lookup/record_index.h"

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
    size_t after = lower_bound_in_memory(i, list->count, list->items[i].start <= address);
    return after ? &list->items[after - 1] : NULL;
}

static struct method_record *later_record(const struct indexed_record *a, const struct indexed_record *b)
{
    const struct indexed_record *later = !a || (b && b->start > a->start) ? b : a;
    return later ? later->record : NULL;
}

struct method_record *record_index_find(const struct record_index *index, uint64_t address)
{
    return later_record(last_to(&index->many, address), last_to(&index->few, address));
}

/*
 * Counts the items that start at or before each address. The searches take their steps in turn and without branches, so
 * that the others go on while one waits for memory.
 */
static void count_to(const struct indexed_records *list, const uint64_t *addresses, size_t count, size_t *ret)
{
    const struct indexed_record *items = list->items;
    size_t left = list->count;
    memset(ret, 0, count * sizeof *ret);
    while (left) {
        size_t half = (left + 1) / 2;
        for (size_t i = 0; i < count; i++)
            ret[i] += half & -(size_t)(items[ret[i] + half - 1].start <= addresses[i]);
        left -= half;
    }
}

void record_index_find_batch(const struct record_index *index, const uint64_t *addresses, size_t count,
                             struct method_record **ret)
{
    size_t many[RECORD_INDEX_BATCH], few[RECORD_INDEX_BATCH];
    count_to(&index->many, addresses, count, many);
    count_to(&index->few, addresses, count, few);
    for (size_t i = 0; i < count; i++)
        ret[i] = later_record(many[i] ? &index->many.items[many[i] - 1] : NULL,
                              few[i] ? &index->few.items[few[i] - 1] : NULL);
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
