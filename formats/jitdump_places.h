/*
 * jitdump_places.h: where the functions of a jitdump are after their moves: a hash table by code_index of the
 * JIT_CODE_LOADs, to which JIT_CODE_MOVEs are applied in file order. One thread at a time.
 */
#ifndef CDACQ_FORMATS_JITDUMP_PLACES_H
#define CDACQ_FORMATS_JITDUMP_PLACES_H

#include "cdacq/jitdump.h"
#include "util/error.h"
#include "util/hash_table.h"

enum { JITDUMP_PLACES_MAX = 1 << 23 };

/* As struct cdacq_jitdump_place, but small: there may be millions. */
struct jitdump_place {
    uint64_t code_index;
    uint64_t load;
    uint64_t vma, code_addr, code_size;
    uint64_t timestamp;
};

DEFINE_U64_TABLE(jitdump_places, struct jitdump_place, code_index);

/* A JIT_CODE_LOAD. A later one of the same index replaces it. NOMEM; FUEL at JITDUMP_PLACES_MAX. */
enum cdacq_status jitdump_places_load(struct jitdump_places *places, const struct cdacq_jitdump_record *record,
                                      struct cdacq_error *err);

/*
 * Applies a JIT_CODE_MOVE and sets its `load`. FORMAT: it contradicts what is known of its function, which moves
 * nevertheless; or there is no such function.
 */
enum cdacq_status jitdump_places_move(struct jitdump_places *places, struct cdacq_jitdump_record *record,
                                      struct cdacq_error *err);

#endif
