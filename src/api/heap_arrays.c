/* heap_arrays.c: the objects of the heap as arrays: a visit of the heap that keeps what it gets. */
#include "cdacq/heap.h"

#include "util/error.h"
#include "util/hash_table.h"
#include "util/sized.h"
#include "util/vector.h"

struct heap_type {
    uint64_t method_table;
    uint32_t index;
};

DEFINE_U64_TABLE(heap_types, struct heap_type, method_table);
DEFINE_VECTOR(words, uint64_t);
DEFINE_VECTOR(indices, uint32_t);
DEFINE_VECTOR(numbers, uint8_t);

struct reading {
    struct cdacq_heap_arrays arrays; /* what the caller gets: first, so that both are one allocation */
    struct words addresses, byte_sizes, method_tables, first_references, targets;
    struct indices types;
    struct numbers generations;
    struct heap_types known;
    const struct heap_type *recent;
    struct cdacq_heap_visitor visitor; /* of the caller */
    bool has_references, is_out_of_memory;
};

static int fail(struct reading *reading)
{
    reading->is_out_of_memory = true;
    return 1;
}

/* A pointer into the table is valid until the next type. */
static bool find_type(struct reading *reading, uint64_t method_table, uint32_t *ret)
{
    bool added = false;
    if (UNLIKELY(!reading->recent || reading->recent->method_table != method_table)) {
        const struct heap_type type = {method_table, (uint32_t)reading->method_tables.count};
        reading->recent = heap_types_insert(&reading->known, type, &added);
        if (!reading->recent || (added && !words_append(&reading->method_tables, method_table)))
            return false;
    }
    *ret = reading->recent->index;
    return true;
}

static int take_object(const struct cdacq_heap_object *object, void *context)
{
    struct reading *reading = context;
    uint32_t type;
    if (!find_type(reading, object->method_table, &type) || !words_append(&reading->addresses, object->address) ||
        !words_append(&reading->byte_sizes, object->byte_size) || !indices_append(&reading->types, type) ||
        !numbers_append(&reading->generations, (uint8_t)object->generation))
        return fail(reading);
    if (object->is_free)
        reading->arrays.free_type = type;
    if (reading->has_references && !words_append(&reading->first_references, reading->targets.count))
        return fail(reading);
    return 0;
}

static int take_reference(uint64_t object, uint64_t offset, uint64_t target, void *context)
{
    struct reading *reading = context;
    (void)object, (void)offset;
    return words_append(&reading->targets, target) ? 0 : fail(reading);
}

static int tell_segment(const struct cdacq_heap_segment *segment, void *context)
{
    const struct reading *reading = context;
    return reading->visitor.segment ? reading->visitor.segment(segment, reading->visitor.context) : 0;
}

static int tell_problem(const char *text, void *context)
{
    const struct reading *reading = context;
    return reading->visitor.problem ? reading->visitor.problem(text, reading->visitor.context) : 0;
}

static struct cdacq_heap_arrays *finish(struct reading *reading)
{
    struct cdacq_heap_arrays *arrays = &reading->arrays;
    words_shrink(&reading->addresses);
    words_shrink(&reading->byte_sizes);
    words_shrink(&reading->targets);
    words_shrink(&reading->first_references);
    indices_shrink(&reading->types);
    numbers_shrink(&reading->generations);
    heap_types_deinit(&reading->known);
    arrays->object_count = reading->addresses.count;
    arrays->addresses = reading->addresses.items;
    arrays->byte_sizes = reading->byte_sizes.items;
    arrays->types = reading->types.items;
    arrays->generations = reading->generations.items;
    arrays->type_count = reading->method_tables.count;
    arrays->method_tables = reading->method_tables.items;
    arrays->reference_count = reading->targets.count;
    arrays->first_references = reading->first_references.items;
    arrays->targets = reading->targets.items;
    return arrays;
}

enum cdacq_status cdacq_session_read_heap(struct cdacq_session *session, unsigned flags,
                                          const struct cdacq_heap_visitor *visitor, struct cdacq_heap_arrays **ret,
                                          struct cdacq_heap_info *ret_info, struct cdacq_error *err)
{
    if (!ret || flags & ~(unsigned)CDACQ_HEAP_REFERENCES)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, ret ? "flags that are not known" : "no place for the arrays");
    enum cdacq_status status = visitor ? sized_check(visitor, "struct cdacq_heap_visitor", err) : CDACQ_OK;
    struct reading *reading = status < 0 ? NULL : calloc(1, sizeof *reading);
    if (!reading)
        return status < 0 ? status : error_set(err, CDACQ_ERR_NOMEM, 0, "the heap: out of memory");
    reading->arrays = (struct cdacq_heap_arrays){.size = sizeof reading->arrays, .free_type = UINT32_MAX};
    reading->has_references = flags & CDACQ_HEAP_REFERENCES;
    if (visitor)
        memcpy(&reading->visitor, visitor, MIN(visitor->size, sizeof reading->visitor));
    const struct cdacq_heap_visitor taking = {
        .size = sizeof taking,
        .segment = tell_segment,
        .object = take_object,
        .problem = tell_problem,
        .context = reading,
        .reference = reading->has_references ? take_reference : NULL,
    };
    status = cdacq_session_visit_heap(session, &taking, ret_info, err);
    if (status >= 0 && (reading->is_out_of_memory ||
                        (reading->has_references && !words_append(&reading->first_references, reading->targets.count))))
        status = error_set(err, CDACQ_ERR_NOMEM, 0, "the heap: out of memory");
    struct cdacq_heap_arrays *arrays = finish(reading);
    if (status < 0) {
        cdacq_heap_arrays_destroy(arrays);
        return status;
    }
    *ret = arrays;
    return status;
}

void cdacq_heap_arrays_destroy(struct cdacq_heap_arrays *arrays)
{
    struct reading *reading = (struct reading *)arrays;
    if (!reading)
        return;
    words_deinit(&reading->addresses);
    words_deinit(&reading->byte_sizes);
    words_deinit(&reading->method_tables);
    words_deinit(&reading->first_references);
    words_deinit(&reading->targets);
    indices_deinit(&reading->types);
    numbers_deinit(&reading->generations);
    free(reading);
}
