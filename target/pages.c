#include "target/pages.h"

#define EMPTY UINT64_MAX /* no aligned address has this value */

void pages_deinit(struct pages *pages)
{
    for (size_t i = 0; i < pages->capacity; i++)
        if (pages->slots[i].address != EMPTY)
            free(pages->slots[i].bytes);
    free(pages->slots);
    *pages = (struct pages){0};
}

static struct page *slot_of(const struct pages *pages, uint64_t address)
{
    size_t mask = pages->capacity - 1;
    size_t i = (size_t)((address / PAGE_SIZE * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & mask;
    while (pages->slots[i].address != EMPTY && pages->slots[i].address != address)
        i = (i + 1) & mask;
    return &pages->slots[i];
}

struct page *pages_find(const struct pages *pages, uint64_t address)
{
    if (!pages->capacity)
        return NULL;
    struct page *slot = slot_of(pages, address);
    return slot->address == EMPTY ? NULL : slot;
}

static bool pages_grow(struct pages *pages)
{
    struct pages larger = {.count = pages->count, .capacity = MAX(pages->capacity * 2, (size_t)256)};
    larger.slots = malloc(larger.capacity * sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < larger.capacity; i++)
        larger.slots[i] = (struct page){.address = EMPTY};
    for (size_t i = 0; i < pages->capacity; i++)
        if (pages->slots[i].address != EMPTY)
            *slot_of(&larger, pages->slots[i].address) = pages->slots[i];
    free(pages->slots);
    *pages = larger;
    return true;
}

struct page *pages_add(struct pages *pages, uint64_t address, bool *ret_added)
{
    if (pages->count * 4 >= pages->capacity * 3 && !pages_grow(pages))
        return NULL;
    struct page *slot = slot_of(pages, address);
    bool added = slot->address == EMPTY;
    if (added) {
        *slot = (struct page){.address = address};
        pages->count++;
    }
    if (ret_added)
        *ret_added = added;
    return slot;
}
