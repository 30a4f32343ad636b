#include "contracts/objects/collection.h"

#include "contracts/type_system/type_handle.h"
#include "formats/metadata_members.h"
#include "formats/names/signature.h"

enum { ENTRY_IN_USE = -1 }; /* the least Entry.next of an entry that is not free */

static const struct {
    const char *space, *name;
    enum collection_kind kind;
} known_types[] = {
    {"System.Collections.Generic", "List`1", COLLECTION_LIST},
    {"System.Collections.Generic", "Queue`1", COLLECTION_QUEUE},
    {"System.Collections.Generic", "Stack`1", COLLECTION_STACK},
    {"System.Collections.Generic", "HashSet`1", COLLECTION_SET},
    {"System.Collections.Generic", "Dictionary`2", COLLECTION_DICTIONARY},
    {"System.Collections.Concurrent", "ConcurrentDictionary`2", COLLECTION_CONCURRENT_DICTIONARY},
};

static const char *const assemblies[] = {"System.Private.CoreLib", "System.Collections",
                                         "System.Collections.Concurrent"};

static bool is_of_core(const struct metadata *metadata)
{
    bool equal = false;
    for (size_t i = 0; i < ARRAY_SIZE(assemblies) && !equal; i++)
        if (metadata_assembly_is(metadata, assemblies[i], &equal) != CDACQ_OK)
            return false;
    return equal;
}

/* Whether a type or one of its base types is known; *method_table is the one that is. */
static bool find_kind(struct module_cache *cache, uint64_t *method_table, enum collection_kind *ret)
{
    struct reader *reader = cache->reader;
    for (unsigned i = 0; *method_table && i < HIERARCHY_MAX && reader_step(reader, "base types"); i++) {
        const struct metadata *metadata;
        uint32_t token;
        bool equal = false;
        if (type_handle_definition(cache, *method_table, &metadata, &token) != CDACQ_OK)
            return false;
        for (size_t k = 0; k < ARRAY_SIZE(known_types); k++)
            if (metadata_type_is(metadata, token, known_types[k].space, known_types[k].name, &equal) == CDACQ_OK &&
                equal && is_of_core(metadata)) {
                *ret = known_types[k].kind;
                return true;
            }
        *method_table = method_table_parent(reader, *method_table);
    }
    return false;
}

/* ---- Fields by name ---- */

static bool number_of(struct module_cache *cache, uint64_t object, uint64_t type, const char *name, uint64_t *ret)
{
    struct object_field field;
    if (!object_field_declared(cache, type, name, &field) || field.is_static || field.element != ELEMENT_I4)
        return false;
    *ret = read_uint(cache->reader, object_field_address(cache->reader, object, &field), 4);
    return !reader_failed(cache->reader) && *ret <= INT32_MAX;
}

static bool reference_of(struct module_cache *cache, uint64_t object, uint64_t type, const char *name, uint64_t *ret)
{
    struct object_field field;
    if (!object_field_declared(cache, type, name, &field) || field.is_static || field.element != ELEMENT_CLASS)
        return false;
    *ret = read_pointer(cache->reader, object_field_address(cache->reader, object, &field));
    return !reader_failed(cache->reader);
}

/* An array in a field. One that is null has no elements. */
static bool array_of(struct module_cache *cache, uint64_t object, uint64_t type, const char *name,
                     struct object_array *ret)
{
    uint64_t array;
    if (!reference_of(cache, object, type, name, &array))
        return false;
    *ret = (struct object_array){.rank = 1};
    return !array || (object_array_read(cache->reader, array, ret) && ret->rank == 1);
}

static bool instance_field(struct module_cache *cache, uint64_t type, const char *name, struct object_field *ret)
{
    return object_field_declared(cache, type, name, ret) && !ret->is_static;
}

/* The entries of a Dictionary or HashSet, whose fields' names differ in case. */
static bool open_entries(struct module_cache *cache, uint64_t object, uint64_t type, struct collection *c)
{
    uint64_t used, free_count;
    bool is_set = c->kind == COLLECTION_SET;
    if (!array_of(cache, object, type, "_entries", &c->array) || !number_of(cache, object, type, "_count", &used) ||
        !number_of(cache, object, type, "_freeCount", &free_count) || used > c->array.count || free_count > used)
        return false;
    c->head = used;
    c->count = used - free_count;
    uint64_t entry = c->array.element_type;
    return !entry ||
           (instance_field(cache, entry, is_set ? "Next" : "next", &c->next) && c->next.element == ELEMENT_I4 &&
            instance_field(cache, entry, is_set ? "Value" : "value", &c->value) &&
            (is_set || instance_field(cache, entry, "key", &c->key)));
}

/* The buckets of a ConcurrentDictionary: structs that hold a node each. Their number is a sum over its locks. */
static bool open_buckets(struct module_cache *cache, uint64_t object, uint64_t type, struct collection *c)
{
    struct reader *reader = cache->reader;
    struct object_array counts;
    struct object_field node;
    uint64_t tables;
    if (!reference_of(cache, object, type, "_tables", &tables) || !tables)
        return false;
    type = object_method_table(reader, tables);
    if (reader_failed(reader) || !array_of(cache, tables, type, "_buckets", &c->array) ||
        !array_of(cache, tables, type, "_countPerLock", &counts) || counts.element_size != 4 ||
        !instance_field(cache, c->array.element_type, "_node", &node) || node.offset ||
        c->array.element_size != reader->pointer_size)
        return false;
    for (uint32_t i = 0; i < counts.count && reader_step(reader, "locks of a ConcurrentDictionary"); i++)
        c->count += read_u32(reader, counts.elements + 4 * (uint64_t)i);
    return !reader_failed(reader);
}

static bool open_known(struct module_cache *cache, uint64_t object, uint64_t type, struct collection *c)
{
    switch (c->kind) {
    case COLLECTION_QUEUE:
        return array_of(cache, object, type, "_array", &c->array) &&
               number_of(cache, object, type, "_head", &c->head) &&
               number_of(cache, object, type, "_size", &c->count) && c->count <= c->array.count &&
               (!c->count || c->head < c->array.count);
    case COLLECTION_STACK:
        return array_of(cache, object, type, "_array", &c->array) &&
               number_of(cache, object, type, "_size", &c->count) && c->count <= c->array.count;
    case COLLECTION_LIST:
        return array_of(cache, object, type, "_items", &c->array) &&
               number_of(cache, object, type, "_size", &c->count) && c->count <= c->array.count;
    case COLLECTION_SET:
    case COLLECTION_DICTIONARY:
        return open_entries(cache, object, type, c);
    case COLLECTION_CONCURRENT_DICTIONARY:
        return open_buckets(cache, object, type, c);
    default:
        return false;
    }
}

bool collection_open(struct module_cache *cache, uint64_t object, struct collection *ret)
{
    struct reader *reader = cache->reader;
    *ret = (struct collection){.kind = COLLECTION_ARRAY};
    if (object_array_read(reader, object, &ret->array)) {
        ret->count = ret->array.count;
        return true;
    }
    uint64_t type = object_method_table(reader, object);
    return !reader_failed(reader) && !cache->aot && find_kind(cache, &type, &ret->kind) &&
           open_known(cache, object, type, ret) && !reader_failed(reader);
}

/* ---- Items ---- */

/* Entries that are free are left out. */
static bool next_entry(struct module_cache *cache, struct collection *c, struct collection_item *ret)
{
    struct reader *reader = cache->reader;
    while (c->position < c->head && reader_step(reader, "entries")) {
        uint64_t entry = c->array.elements + c->position++ * c->array.element_size;
        if ((int32_t)read_u32(reader, entry + c->next.offset) < ENTRY_IN_USE)
            continue;
        ret->index = c->passed++;
        ret->has_key = c->kind == COLLECTION_DICTIONARY;
        if (ret->has_key)
            field_value_read(cache, &c->key, entry, &ret->key);
        field_value_read(cache, &c->value, entry, &ret->value);
        return true;
    }
    return false;
}

static bool next_node(struct module_cache *cache, struct collection *c, struct collection_item *ret)
{
    struct reader *reader = cache->reader;
    while (!c->node && c->position < c->array.count && reader_step(reader, "buckets"))
        c->node = read_pointer(reader, c->array.elements + c->position++ * c->array.element_size);
    uint64_t node = c->node, type = node ? object_method_table(reader, node) : 0;
    c->node = 0;
    if (!node || reader_failed(reader) || c->passed >= c->count) /* a cycle of nodes has no end */
        return false;
    ret->index = c->passed++;
    ret->has_key = true;
    if (instance_field(cache, type, "_key", &c->key) && instance_field(cache, type, "_value", &c->value) &&
        instance_field(cache, type, "_next", &c->next) && c->next.element == ELEMENT_CLASS) {
        field_value_read(cache, &c->key, object_field_address(reader, node, &c->key) - c->key.offset, &ret->key);
        field_value_read(cache, &c->value, object_field_address(reader, node, &c->value) - c->value.offset,
                         &ret->value);
        c->node = read_pointer(reader, object_field_address(reader, node, &c->next));
    } else {
        reader_fail(reader, CDACQ_ERR_CORRUPT, node, "a node of a ConcurrentDictionary");
    }
    return true;
}

bool collection_next(struct module_cache *cache, struct collection *c, struct collection_item *ret)
{
    *ret = (struct collection_item){.index = c->passed, .key.size = sizeof ret->key, .value.size = sizeof ret->value};
    if (c->kind == COLLECTION_SET || c->kind == COLLECTION_DICTIONARY)
        return next_entry(cache, c, ret);
    if (c->kind == COLLECTION_CONCURRENT_DICTIONARY)
        return next_node(cache, c, ret);
    if (c->position >= c->count)
        return false;
    uint64_t at = c->position++;
    ret->index = c->passed++;
    if (c->kind == COLLECTION_QUEUE)
        at = (c->head + at) % c->array.count;
    else if (c->kind == COLLECTION_STACK)
        at = c->count - 1 - at;
    element_value_read(cache, &c->array, at, &ret->value);
    return true;
}
