/*
 * type_sums.h: how many objects of the heap each type has, and what they take. A zeroed struct is empty.
 */
#ifndef CDACQ_CLI_BASE_TYPE_SUMS_H
#define CDACQ_CLI_BASE_TYPE_SUMS_H

#include "cdacq.h"
#include "src/cli/base/json_writer.h"
#include "util/base.h"
#include "util/hash_table.h"

struct object_sum {
    uint64_t count, bytes;
};

struct type_sum {
    uint64_t method_table;
    struct object_sum sum;
    bool is_free;
    const char *name; /* the session owns it; NULL: not asked, or not known */
};

DEFINE_U64_TABLE(type_sum_table, struct type_sum, method_table);

enum { TYPE_SUMS_RECENT_BITS = 10 };

struct type_sums {
    struct type_sum_table table;
    uint32_t recent[1 << TYPE_SUMS_RECENT_BITS]; /* slots of the table: most objects are of few types */
};

static inline void object_sum_add(struct object_sum *sum, struct object_sum more)
{
    sum->count += more.count;
    sum->bytes += more.bytes;
}

/* False: out of memory. */
static inline bool type_sums_add(struct type_sums *types, const struct cdacq_heap_object *object)
{
    struct type_sum_table *table = &types->table;
    uint64_t method_table = object->method_table;
    uint32_t *slot = &types->recent[method_table * UINT64_C(0x9e3779b97f4a7c15) >> (64 - TYPE_SUMS_RECENT_BITS)];
    if (UNLIKELY(*slot >= table->capacity || table->slots[*slot].method_table != method_table)) {
        const struct type_sum type = {.method_table = method_table, .is_free = object->is_free};
        const struct type_sum *kept = type_sum_table_insert(table, type, NULL);
        if (!kept)
            return false;
        *slot = (uint32_t)(kept - table->slots);
    }
    object_sum_add(&table->slots[*slot].sum, (struct object_sum){1, object->byte_size});
    return true;
}

/* The name in text, and in JSON all of it as members. */
void type_sum_write_name(struct output *out, const struct type_sum *type);
void type_sum_write_members(struct json_writer *w, const struct type_sum *type);

static inline void type_sums_deinit(struct type_sums *types)
{
    type_sum_table_deinit(&types->table);
}

#endif
