#include "formats/jitdump_places.h"

#include <inttypes.h>

enum cdacq_status jitdump_places_load(struct jitdump_places *places, const struct cdacq_jitdump_record *record,
                                      struct cdacq_error *err)
{
    const struct cdacq_jitdump_load *load = &record->as.load;
    struct jitdump_place place = {
        .code_index = load->code_index,
        .load = record->offset,
        .vma = load->vma,
        .code_addr = load->code_addr,
        .code_size = load->code_size,
        .timestamp = record->timestamp,
    };
    struct jitdump_place *known = jitdump_places_find(places, place.code_index);
    if (!known && places->count == JITDUMP_PLACES_MAX)
        return error_set(err, CDACQ_ERR_FUEL, record->offset, "jitdump functions: more than %d of them",
                         JITDUMP_PLACES_MAX);
    if (known)
        *known = place;
    else if (!jitdump_places_insert(places, place, NULL))
        return error_set(err, CDACQ_ERR_NOMEM, record->offset, "jitdump functions: out of memory");
    return CDACQ_OK;
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
