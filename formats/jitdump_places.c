#include "formats/jitdump_places.h"

#include <inttypes.h>

enum { CAPACITY_FIRST = 1024 };

void jitdump_places_deinit(struct jitdump_places *places)
{
    free(places->slots);
    *places = (struct jitdump_places){0};
}

/*
 * The slot of an index: its own, or the free one where it belongs. At most three quarters are taken. Hashing starts
 * from what nobody who writes a file can know, so that nobody can make all indexes meet.
 */
static struct jitdump_place *slot_of(const struct jitdump_places *places, uint64_t code_index)
{
    uint64_t hash = code_index ^ (uintptr_t)places->slots;
    hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    size_t i = (size_t)(hash ^ hash >> 32) & (places->capacity - 1);
    while (places->slots[i].load && places->slots[i].code_index != code_index)
        i = (i + 1) & (places->capacity - 1);
    return &places->slots[i];
}

static bool grow(struct jitdump_places *places)
{
    struct jitdump_places bigger = {.count = places->count,
                                    .capacity = places->capacity ? places->capacity * 2 : CAPACITY_FIRST};
    bigger.slots = calloc(bigger.capacity, sizeof *bigger.slots);
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < places->capacity; i++)
        if (places->slots[i].load)
            *slot_of(&bigger, places->slots[i].code_index) = places->slots[i];
    free(places->slots);
    *places = bigger;
    return true;
}

enum cdacq_status jitdump_places_load(struct jitdump_places *places, const struct cdacq_jitdump_record *record,
                                      struct cdacq_error *err)
{
    const struct cdacq_jitdump_load *load = &record->as.load;
    if (4 * (places->count + 1) > 3 * places->capacity && !grow(places))
        return error_set(err, CDACQ_ERR_NOMEM, record->offset, "jitdump functions: out of memory");
    struct jitdump_place *slot = slot_of(places, load->code_index);
    if (!slot->load) {
        if (places->count == JITDUMP_PLACES_MAX)
            return error_set(err, CDACQ_ERR_FUEL, record->offset, "jitdump functions: more than %d of them",
                             JITDUMP_PLACES_MAX);
        places->count++;
    }
    *slot = (struct jitdump_place){
        .code_index = load->code_index,
        .load = record->offset,
        .vma = load->vma,
        .code_addr = load->code_addr,
        .code_size = load->code_size,
        .timestamp = record->timestamp,
    };
    return CDACQ_OK;
}

struct jitdump_place *jitdump_places_find(const struct jitdump_places *places, uint64_t code_index)
{
    struct jitdump_place *slot = places->capacity ? slot_of(places, code_index) : NULL;
    return slot && slot->load ? slot : NULL;
}

enum cdacq_status jitdump_places_move(struct jitdump_places *places, struct cdacq_jitdump_record *record,
                                      struct cdacq_error *err)
{
    struct cdacq_jitdump_move *move = &record->as.move;
    struct jitdump_place *place = jitdump_places_find(places, move->code_index);
    if (!place)
        return error_set(err, CDACQ_ERR_FORMAT, record->offset,
                         "JIT_CODE_MOVE: no JIT_CODE_LOAD before it has code_index %" PRIu64, move->code_index);
    enum cdacq_status status = CDACQ_OK;
    if (move->code_size != place->code_size)
        status = error_set(err, CDACQ_ERR_FORMAT, record->offset,
                           "JIT_CODE_MOVE: code_size is %" PRIu64 ", and its JIT_CODE_LOAD says %" PRIu64,
                           move->code_size, place->code_size);
    else if (move->old_code_addr != place->code_addr)
        status = error_set(err, CDACQ_ERR_FORMAT, record->offset,
                           "JIT_CODE_MOVE: old_code_addr is 0x%" PRIx64 ", and the function was at 0x%" PRIx64,
                           move->old_code_addr, place->code_addr);
    move->load = place->load;
    place->vma = move->vma;
    place->code_addr = move->new_code_addr;
    place->timestamp = record->timestamp;
    return status;
}
