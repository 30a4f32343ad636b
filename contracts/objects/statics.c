#include "contracts/objects/statics.h"

#include "contracts/load_context.h"
#include "contracts/lookup_map.h"
#include "contracts/objects/object.h"
#include "contracts/objects/static_field.h"
#include "contracts/type_system/method_table_flags.h"
#include "contracts/type_system/type_handle.h"
#include "contracts/type_system/type_table.h"
#include "formats/names/signature.h"

enum {
    TYPES_MAX = 1 << 22,
    TLS_KIND_SHIFT = 24, /* TLSIndex.TLSIndexRawIndex: the kind above, an index below */
    TLS_INDEX_MASK = 0xffffff,
    TLS_COLLECTIBLE = 1,
};

#define TLS_NONE UINT32_MAX

DEFINE_U64_SET(address_set);
DEFINE_VECTOR(address_list, uint64_t);

struct known_types {
    struct module_cache *cache;
    struct address_set seen; /* modules and types */
    struct address_list modules, types;
};

struct known_types *known_types_create(struct module_cache *cache)
{
    struct known_types *types = calloc(1, sizeof *types);
    if (types)
        types->cache = cache;
    else
        reader_fail(cache->reader, CDACQ_ERR_NOMEM, 0, "types");
    return types;
}

void known_types_destroy(struct known_types *types)
{
    if (!types)
        return;
    address_set_deinit(&types->seen);
    address_list_deinit(&types->modules);
    address_list_deinit(&types->types);
    free(types);
}

/* Whether the address is new in the list. */
static bool add(struct known_types *types, struct address_list *list, uint64_t address)
{
    struct reader *reader = types->cache->reader;
    bool added = false;
    if (!address || reader_failed(reader))
        return false;
    if (types->seen.count >= TYPES_MAX || !address_set_insert(&types->seen, address, &added) ||
        (added && !address_list_append(list, address)))
        return reader_fail(reader, CDACQ_ERR_NOMEM, address, "types");
    return added;
}

void known_types_add_module(struct known_types *types, uint64_t module)
{
    add(types, &types->modules, module);
}

void known_types_add(struct known_types *types, uint64_t method_table)
{
    struct reader *reader = types->cache->reader;
    for (unsigned i = 0; method_table && i < HIERARCHY_MAX && reader_step(reader, "base types"); i++) {
        if (method_table & TYPE_DESC_TAG || !add(types, &types->types, method_table))
            return;
        known_types_add_module(types, read_field(reader, method_table, F_MethodTable_Module));
        method_table = method_table_parent(reader, method_table);
    }
}

/* ---- Modules ---- */

static void add_module(void *context, uint64_t module)
{
    known_types_add_module(context, module);
}

bool known_types_add_domain(struct known_types *types)
{
    return assemblies_visit(types->cache->reader, add_module, types);
}

/* Adds the types of a module: those of its map, and those of its table. */
static void add_types_of(struct known_types *types, uint64_t address)
{
    struct reader *reader = types->cache->reader;
    const struct module *module = module_cache_get(types->cache, address);
    uint32_t count = module && module->status >= 0 ? metadata_row_count(&module->metadata, METADATA_TYPE_DEF) : 0;
    for (uint32_t rid = 1; rid <= count && reader_step(reader, "the types of a module"); rid++) {
        known_types_add(types, lookup_map_element(reader, address, F_Module_TypeDefToMethodTableMap, rid));
        reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY));
    }
    struct type_table_position position = {0};
    uint64_t handle;
    if (type_table_begin(reader, address, &position))
        while (type_table_next(reader, &position, &handle)) {
            known_types_add(types, handle);
            reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY));
        }
}

/* ---- Fields ---- */

struct statics_visit {
    struct known_types *types;
    const struct thread_list *threads;
    bool (*visit)(void *context, const struct static_reference *reference);
    void *context;
    bool stopped;
};

/* Visits what the slot has, if anything. */
static void visit_slot(struct statics_visit *v, const struct object_field *field, uint64_t address,
                       const struct thread_data *thread)
{
    struct reader *reader = v->types->cache->reader;
    struct static_reference reference = {
        .type = field->owner, .token = field->token, .address = address, .thread = thread};
    reference.object = read_pointer(reader, address);
    if (reference.object && !reader_failed(reader) && !v->visit(v->context, &reference))
        v->stopped = true;
}

/* The object with the references of a type's thread statics. 0: the thread has none yet. */
static uint64_t thread_base(struct reader *reader, const struct thread_data *thread, uint32_t index)
{
    uint64_t data = read_optional(reader, thread->address, F_Thread_ThreadLocalDataPtr),
             number = index & TLS_INDEX_MASK;
    bool is_collectible = index >> TLS_KIND_SHIFT == TLS_COLLECTIBLE;
    if (!data || index >> TLS_KIND_SHIFT > TLS_COLLECTIBLE)
        return 0;
    uint64_t count = read_field(reader, data,
                                is_collectible ? F_ThreadLocalData_CollectibleTlsDataCount
                                               : F_ThreadLocalData_NonCollectibleTlsDataCount);
    uint64_t array = read_field(reader, data,
                                is_collectible ? F_ThreadLocalData_CollectibleTlsArrayData
                                               : F_ThreadLocalData_NonCollectibleTlsArrayData);
    if (number >= count || !array)
        return 0;
    uint64_t base = read_pointer(
        reader,
        array + number *
                    reader->pointer_size); /* of the array object: see NumberOfTlsOffsetsNotUsedInNoncollectibleArray */
    return base && is_collectible ? read_pointer(reader, base) : base; /* a handle */
}

static void visit_thread_static(struct statics_visit *v, const struct object_field *field)
{
    struct reader *reader = v->types->cache->reader;
    uint64_t size = reader->layout->sizes[T_ThreadStaticsInfo];
    if (!size || !has_field(reader, F_ThreadStaticsInfo_GCTlsIndex) ||
        !has_field(reader, F_ThreadLocalData_NonCollectibleTlsArrayData))
        return;
    uint64_t info = read_field(reader, field->owner, F_MethodTable_AuxiliaryData) - size;
    uint32_t index = (uint32_t)read_field(reader, field_address(reader, info, F_ThreadStaticsInfo_GCTlsIndex),
                                          F_TLSIndex_TLSIndexRawIndex);
    for (size_t i = 0; index != TLS_NONE && i < v->threads->count && !v->stopped; i++) {
        if (!reader_step(reader, "thread statics"))
            return;
        uint64_t base = thread_base(reader, &v->threads->items[i], index);
        if (base && !reader_failed(reader))
            visit_slot(v, field, base + field->offset, &v->threads->items[i]);
        reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY));
    }
}

/* In .NET 8, the static fields of collectible types are elsewhere: in arrays that their LoaderAllocator has. */
static bool has_known_place(struct known_types *types, uint64_t method_table)
{
    struct reader *reader = types->cache->reader;
    return reader->layout->sizes[T_DynamicStaticsInfo] || !method_table_is_collectible(reader, method_table);
}

/* False: the static fields of the type are left out. */
static bool visit_type(struct statics_visit *v, uint64_t method_table)
{
    struct reader *reader = v->types->cache->reader;
    struct object_fields fields = {0};
    if (method_table_is_array(reader, method_table) || reader_failed(reader))
        return !reader_recover(reader, FAILURE_BUT_FUEL & ~FAILURE(CDACQ_ERR_NOMEM));
    object_statics_read(v->types->cache, method_table, &fields);
    for (size_t i = 0; i < fields.count && !v->stopped && !reader_failed(reader); i++) {
        const struct object_field *field = &fields.items[i];
        struct static_field place;
        if (field->is_in_image || (field->element != ELEMENT_CLASS && field->element != ELEMENT_VALUETYPE))
            continue;
        if (field->is_thread_static)
            visit_thread_static(v, field);
        else if (has_known_place(v->types, method_table) && static_field_place(reader, field, &place))
            visit_slot(v, field, place.address, NULL);
    }
    object_fields_deinit(&fields);
    return !reader_recover(reader, FAILURE_BUT_FUEL & ~FAILURE(CDACQ_ERR_NOMEM));
}

/* Each thread has an array of its thread statics, which also keeps what no type was found for. */
static void visit_thread_arrays(struct statics_visit *v)
{
    struct reader *reader = v->types->cache->reader;
    if (!has_field(reader, F_ThreadLocalData_NonCollectibleTlsArrayData))
        return;
    for (size_t i = 0; i < v->threads->count && !v->stopped && reader_step(reader, "thread statics"); i++) {
        const struct thread_data *thread = &v->threads->items[i];
        uint64_t data = read_optional(reader, thread->address, F_Thread_ThreadLocalDataPtr);
        if (data)
            visit_slot(v, &(struct object_field){0},
                       data + reader->layout->fields[F_ThreadLocalData_NonCollectibleTlsArrayData].offset, thread);
        reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY));
    }
}

bool known_types_visit_statics(struct known_types *types, const struct thread_list *threads,
                               bool (*visit)(void *context, const struct static_reference *reference), void *context,
                               uint64_t *ret_left_out)
{
    struct reader *reader = types->cache->reader;
    struct statics_visit v = {.types = types, .threads = threads, .visit = visit, .context = context};
    *ret_left_out = 0;
    for (size_t i = 0; i < types->modules.count && !reader_failed(reader); i++) /* the list grows */
        add_types_of(types, types->modules.items[i]);
    for (size_t i = 0; i < types->types.count && !v.stopped && !reader_failed(reader); i++)
        *ret_left_out += !visit_type(&v, types->types.items[i]);
    visit_thread_arrays(&v);
    return !v.stopped && !reader_failed(reader);
}
