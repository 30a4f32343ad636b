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
    /* Mixed with what nobody outside can know: a process could choose its pages so that all collide. */
    uint64_t hash = (address / PAGE_SIZE ^ (uint64_t)(uintptr_t)pages->slots) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    size_t i = (size_t)(hash >> 32) & mask;
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
