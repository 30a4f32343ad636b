#include "contracts/type_system/type_handle.h"

#include "contracts/module_cache.h"
#include "contracts/native_aot/aot_name.h"
#include "contracts/type_system/method_table_flags.h"
#include "formats/names/spelling.h"
#include "formats/names/type_walk.h"

enum {
    RANK_MAX = 32,
    TYPE_ARGUMENT_MAX = 256,
    MT_GENERICS_MASK = 0x30,
    MT_GENERICS_TYPICAL = 0x30, /* the definition itself */
};

static void put_handle(struct namer *n, struct module_cache *cache, uint64_t handle);

static enum cdacq_status failed_read(const struct reader *reader)
{
    return reader_failed(reader) ? reader_failure(reader).status : CDACQ_ERR_CORRUPT;
}

static bool reader_good(struct namer *n, const struct reader *reader)
{
    return reader_failed(reader) ? namer_fail(n, failed_read(reader)) : n->status == CDACQ_OK;
}

static void put_type_desc(struct namer *n, struct module_cache *cache, uint64_t desc)
{
    struct reader *reader = cache->reader;
    uint8_t kind = (uint8_t)read_field(reader, desc, F_TypeDesc_TypeAndFlags); /* without the flags above it */
    if (!reader_good(n, reader))
        return;
    if (kind == ELEMENT_VAR || kind == ELEMENT_MVAR || kind == ELEMENT_FNPTR) {
        type_unknown(n, kind);
        return;
    }
    if (kind != ELEMENT_PTR && kind != ELEMENT_BYREF && kind != ELEMENT_VALUETYPE) {
        namer_fail(n, CDACQ_ERR_CORRUPT);
        return;
    }
    uint64_t argument = read_field(reader, desc, F_ParamTypeDesc_TypeArg);
    if (!reader_good(n, reader))
        return;
    type_before(n, kind);
    put_handle(n, cache, argument);
    type_after(n, kind);
}

/* Each dimension adds two integers to the object, a bound and a lower bound. */
static unsigned array_rank(struct reader *reader, uint64_t method_table)
{
    uint64_t size = read_field(reader, method_table, F_MethodTable_BaseSize);
    uint64_t without = 3 * (uint64_t)reader->pointer_size;
    return size > without && (size - without) / 8 <= RANK_MAX ? (unsigned)(size - without) / 8 : 0;
}

static void put_array(struct namer *n, struct module_cache *cache, uint64_t method_table, bool vector)
{
    struct reader *reader = cache->reader;
    uint64_t element = read_field(reader, method_table, F_MethodTable_PerInstInfo);
    const struct array_shape shape = {.rank = vector ? 1 : array_rank(reader, method_table)};
    if (!reader_good(n, reader) || !shape.rank) {
        namer_fail(n, CDACQ_ERR_CORRUPT);
        return;
    }
    put_handle(n, cache, element);
    type_array(n, vector ? NULL : &shape);
}

/*
 * PerInstInfo is an array of dictionaries, one for each generic type in the hierarchy; the last is the type's own and
 * begins with its arguments. The GenericsDictInfo before the array has their number.
 */
static uint32_t find_arguments(struct reader *reader, uint64_t method_table, uint64_t *ret_arguments)
{
    uint64_t dictionaries = read_field(reader, method_table, F_MethodTable_PerInstInfo);
    uint64_t info = dictionaries - reader->pointer_size;
    uint64_t count = read_field(reader, info, F_GenericsDictInfo_NumDicts);
    uint64_t arguments = read_field(reader, info, F_GenericsDictInfo_NumTypeArgs);
    if (!reader_failed(reader) && (!count || !arguments || arguments > TYPE_ARGUMENT_MAX))
        reader_fail(reader, CDACQ_ERR_CORRUPT, info, "GenericsDictInfo");
    *ret_arguments = read_pointer(reader, dictionaries + (count - 1) * reader->pointer_size);
    return reader_failed(reader) ? 0 : (uint32_t)arguments;
}

/* In .NET 8 this has 16 bits; all are set if the rid needs more, which is then elsewhere. */
static uint32_t type_def_rid(struct reader *reader, uint64_t method_table)
{
    if (!has_field(reader, F_MethodTable_TypeDefRid))
        return (uint32_t)read_field(reader, method_table, F_MethodTable_MTFlags2) >> 8;
    uint32_t rid = (uint32_t)read_field(reader, method_table, F_MethodTable_TypeDefRid);
    return rid == UINT16_MAX ? 0 : rid;
}

static enum cdacq_status metadata_of(struct module_cache *cache, uint64_t method_table, uint32_t token,
                                     const struct metadata **ret)
{
    uint64_t address = read_field(cache->reader, method_table, F_MethodTable_Module);
    if (!address)
        reader_fail(cache->reader, CDACQ_ERR_CORRUPT, method_table, "MethodTable.Module");
    return reader_failed(cache->reader) ? failed_read(cache->reader)
                                        : module_cache_metadata(cache, address, token, ret);
}

enum cdacq_status type_handle_definition(struct module_cache *cache, uint64_t handle,
                                         const struct metadata **ret_metadata, uint32_t *ret_token)
{
    struct reader *reader = cache->reader;
    if (handle & TYPE_DESC_TAG)
        return CDACQ_ERR_CORRUPT;
    uint32_t rid = type_def_rid(reader, handle);
    *ret_token = metadata_token(METADATA_TYPE_DEF, rid);
    return reader_failed(reader) || !rid ? failed_read(reader) : metadata_of(cache, handle, *ret_token, ret_metadata);
}

static bool is_instantiated(uint32_t flags)
{
    uint32_t generics = flags & MT_GENERICS_MASK;
    return !(flags & MT_HAS_COMPONENT_SIZE) && generics && generics != MT_GENERICS_TYPICAL;
}

enum cdacq_status type_handle_arguments(struct module_cache *cache, uint64_t method_table, uint64_t *ret,
                                        uint32_t *ret_count)
{
    struct reader *reader = cache->reader;
    uint32_t flags = (uint32_t)read_field(reader, method_table, F_MethodTable_MTFlags);
    uint32_t category = flags & MT_CATEGORY_MASK;
    *ret_count = 0;
    if (reader_failed(reader))
        return failed_read(reader);
    if (category == MT_CATEGORY_ARRAY || category == MT_CATEGORY_SZARRAY) {
        *ret = field_address(reader, method_table, F_MethodTable_PerInstInfo);
        *ret_count = reader_failed(reader) ? 0 : 1;
        return CDACQ_OK;
    }
    if (!is_instantiated(flags))
        return CDACQ_OK;
    *ret_count = find_arguments(reader, method_table, ret);
    return *ret_count ? CDACQ_OK : failed_read(reader);
}

/* The type arguments of an instance: handles in the target. */
struct handle_arguments {
    struct module_cache *cache;
    uint64_t address;
};

static void put_argument(struct namer *n, const struct type_arguments *arguments)
{
    const struct handle_arguments *handles = arguments->context;
    struct reader *reader = handles->cache->reader;
    uint64_t handle = read_pointer(reader, handles->address + (uint64_t)arguments->number * reader->pointer_size);
    size_t begin = n->text->length;
    if (reader_good(n, handles->cache->reader))
        put_handle(n, handles->cache, handle);
    if (UNLIKELY(n->status != CDACQ_OK) && type_formal_instead(n, begin))
        reader_recover(reader, FAILURE_ANY);
}

static void put_class(struct namer *n, struct module_cache *cache, uint64_t method_table, uint32_t flags)
{
    struct reader *reader = cache->reader;
    struct handle_arguments handles = {.cache = cache};
    struct type_arguments arguments = {.put = put_argument, .context = &handles};
    struct named_type type = {0};
    if (!namer_check(n, type_handle_definition(cache, method_table, &type.metadata, &type.token)))
        return;
    if (is_instantiated(flags)) {
        arguments.left = find_arguments(reader, method_table, &handles.address);
        if (reader_good(n, reader))
            type_instance(n, &type, &arguments);
        return;
    }
    uint8_t element = type_primitive_named(n, type.metadata, type.token);
    if (element && type_primitive(n, element))
        n->origin = (struct origin){.metadata = type.metadata};
    else if (n->status == CDACQ_OK)
        type_definition(n, type.metadata, type.token);
}

static void put_method_table(struct namer *n, struct module_cache *cache, uint64_t method_table)
{
    uint32_t flags = (uint32_t)read_field(cache->reader, method_table, F_MethodTable_MTFlags);
    uint32_t category = flags & MT_CATEGORY_MASK;
    if (!reader_good(n, cache->reader))
        return;
    if (category == MT_CATEGORY_ARRAY || category == MT_CATEGORY_SZARRAY)
        put_array(n, cache, method_table, category == MT_CATEGORY_SZARRAY);
    else
        put_class(n, cache, method_table, flags);
}

static void put_handle(struct namer *n, struct module_cache *cache, uint64_t handle)
{
    if (!type_enter(n))
        return;
    if (handle & TYPE_DESC_TAG)
        put_type_desc(n, cache, handle & ~UINT64_C(3));
    else
        put_method_table(n, cache, handle);
    type_leave(n);
}

/* A type that the program has no metadata of has no name. */
static enum cdacq_status failure_of(enum cdacq_status status)
{
    return status == CDACQ_NOT_MANAGED ? CDACQ_ERR_MODULE : status;
}

void type_handle_feed(struct module_cache *cache, uint64_t handle, struct namer *n)
{
    if (!cache->aot)
        put_handle(n, cache, handle);
    else if (namer_spend(n, 1)) /* every spelling has the name that reflection gives */
        namer_check(n, failure_of(aot_name_type(cache->aot, cache->reader, handle, n->text)));
}

enum cdacq_status type_handle_name(struct module_cache *cache, uint64_t handle, struct text *ret)
{
    const struct name_source source = {0};
    struct namer n = namer_begin(&source, &type_spelling_reflection, ret);
    type_handle_feed(cache, handle, &n);
    return namer_end(&n);
}

void type_handle_feed_argument(struct module_cache *cache, uint64_t arguments, uint32_t index, struct namer *n)
{
    struct handle_arguments handles = {.cache = cache, .address = arguments};
    put_argument(n, &(struct type_arguments){.number = index, .context = &handles});
}
