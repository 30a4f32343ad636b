#include "contracts/type_system/type_handle.h"

#include "formats/names_runtime.h"
#include "formats/signature.h"

enum {
    DEPTH_MAX = 16,
    RANK_MAX = 32,
    TYPE_ARGUMENT_MAX = 256,
    TYPE_DESC_TAG = 2,
    TYPE_DESC_KIND_MASK = 0xff,
    MT_CATEGORY_MASK = 0xf0000,
    MT_CATEGORY_PRIMITIVE = 0x70000, /* those with an element type of their own; no enumerations */
    MT_CATEGORY_ARRAY = 0x80000,     /* multi-dimensional, or one-dimensional with a lower bound */
    MT_CATEGORY_SZARRAY = 0xa0000,
    MT_GENERICS_MASK = 0x30,
    MT_GENERICS_TYPICAL = 0x30, /* the definition itself */
};

#define MT_HAS_COMPONENT_SIZE UINT32_C(0x80000000)

struct type_namer {
    struct module_cache *cache;
    enum name_type_form form;
    unsigned depth;
    uint64_t arguments; /* of the generic type in the making: the address of its handles */
};

static enum cdacq_status name_handle(const struct type_namer *namer, uint64_t handle, struct text *ret);

static enum cdacq_status failed_read(const struct field_reader *reader)
{
    return reader_failed(&reader->raw) ? reader_failure(&reader->raw).status : CDACQ_ERR_CORRUPT;
}

static enum cdacq_status name_type_desc(const struct type_namer *namer, uint64_t desc, struct text *ret)
{
    struct field_reader *reader = namer->cache->reader;
    bool csharp = namer->form == NAME_TYPE_CSHARP;
    unsigned kind = (unsigned)read_field(reader, desc, F_TypeDesc_TypeAndFlags) & TYPE_DESC_KIND_MASK;
    if (reader_failed(&reader->raw))
        return failed_read(reader);
    if (!csharp && kind != ELEMENT_PTR && kind != ELEMENT_BYREF)
        return CDACQ_ERR_CONTRACT;
    if (kind == ELEMENT_VAR || kind == ELEMENT_MVAR) {
        text_puts(ret, kind == ELEMENT_VAR ? "!" : "!!");
        return CDACQ_OK;
    }
    if (kind == ELEMENT_FNPTR) {
        text_puts(ret, "delegate*");
        return CDACQ_OK;
    }
    if (kind != ELEMENT_PTR && kind != ELEMENT_BYREF && kind != ELEMENT_VALUETYPE)
        return CDACQ_ERR_CORRUPT;
    uint64_t argument = read_field(reader, desc, F_ParamTypeDesc_TypeArg);
    if (reader_failed(&reader->raw))
        return failed_read(reader);
    if (kind == ELEMENT_BYREF && csharp)
        text_puts(ret, "ref ");
    enum cdacq_status status = name_handle(namer, argument, ret);
    if (status >= 0 && kind == ELEMENT_PTR)
        text_putc(ret, '*');
    else if (status >= 0 && kind == ELEMENT_BYREF && !csharp)
        text_puts(ret, namer->form == NAME_TYPE_SIGNATURE ? " ByRef" : "&");
    return status;
}

/* The array's dimensions: each adds two integers to the object, a bound and a lower bound. */
static unsigned array_rank(struct field_reader *reader, uint64_t method_table)
{
    uint64_t size = read_field(reader, method_table, F_MethodTable_BaseSize);
    uint64_t without = 3 * (uint64_t)reader->raw.pointer_size;
    return size > without && (size - without) / 8 <= RANK_MAX ? (unsigned)(size - without) / 8 : 0;
}

static enum cdacq_status name_array(const struct type_namer *namer, uint64_t method_table, bool vector,
                                    struct text *ret)
{
    struct field_reader *reader = namer->cache->reader;
    uint64_t element = read_field(reader, method_table, F_MethodTable_PerInstInfo);
    unsigned rank = vector ? 1 : array_rank(reader, method_table);
    if (reader_failed(&reader->raw) || !rank)
        return failed_read(reader);
    enum cdacq_status status = name_handle(namer, element, ret);
    bool marked = !vector && rank == 1 && (namer->form == NAME_TYPE_BARE || namer->form == NAME_TYPE_FULL);
    text_puts(ret, marked ? "[*" : "[");
    for (unsigned i = 1; i < rank; i++)
        text_putc(ret, ',');
    text_putc(ret, ']');
    return status;
}

/*
 * The type arguments: PerInstInfo is an array of dictionaries, one for each generic type in the hierarchy; the last is
 * the type's own, and begins with the arguments. How many there are stands in a GenericsDictInfo just before the array.
 */
static uint32_t find_arguments(struct field_reader *reader, uint64_t method_table, uint64_t *ret_arguments)
{
    uint64_t dictionaries = read_field(reader, method_table, F_MethodTable_PerInstInfo);
    uint64_t info = dictionaries - reader->raw.pointer_size;
    uint64_t count = read_field(reader, info, F_GenericsDictInfo_NumDicts);
    uint64_t arguments = read_field(reader, info, F_GenericsDictInfo_NumTypeArgs);
    if (!reader_failed(&reader->raw) && (!count || !arguments || arguments > TYPE_ARGUMENT_MAX))
        reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, info, "GenericsDictInfo");
    *ret_arguments = read_pointer(&reader->raw, dictionaries + (count - 1) * reader->raw.pointer_size);
    return reader_failed(&reader->raw) ? 0 : (uint32_t)arguments;
}

/* In .NET 8 the low 16 bits stand alone, all set where the rid needs more; its upper bits are then elsewhere. */
static uint32_t type_def_rid(struct field_reader *reader, uint64_t method_table)
{
    if (!has_field(reader, F_MethodTable_TypeDefRid))
        return (uint32_t)read_field(reader, method_table, F_MethodTable_MTFlags2) >> 8;
    uint32_t rid = (uint32_t)read_field(reader, method_table, F_MethodTable_TypeDefRid);
    return rid == UINT16_MAX ? 0 : rid;
}

/* The metadata of the module that the type is of. */
static enum cdacq_status metadata_of(struct module_cache *cache, uint64_t method_table, const struct metadata **ret)
{
    uint64_t address = read_field(cache->reader, method_table, F_MethodTable_Module);
    if (!address)
        reader_fail(&cache->reader->raw, CDACQ_ERR_CORRUPT, method_table, "MethodTable.Module");
    return reader_failed(&cache->reader->raw) ? failed_read(cache->reader) : module_cache_metadata(cache, address, ret);
}

enum cdacq_status type_handle_definition(struct module_cache *cache, uint64_t handle,
                                         const struct metadata **ret_metadata, uint32_t *ret_token)
{
    struct field_reader *reader = cache->reader;
    if (handle & TYPE_DESC_TAG)
        return CDACQ_ERR_CORRUPT;
    uint32_t rid = type_def_rid(reader, handle);
    *ret_token = metadata_token(METADATA_TYPE_DEF, rid);
    return reader_failed(&reader->raw) || !rid ? failed_read(reader) : metadata_of(cache, handle, ret_metadata);
}

/* The MethodTable of a type, or of what a pointer, a reference or an array is of; 0, and the reader fails. */
static uint64_t innermost_method_table(struct field_reader *reader, uint64_t handle)
{
    for (unsigned depth = 0; depth < DEPTH_MAX && (handle & TYPE_DESC_TAG); depth++)
        handle = read_field(reader, handle & ~UINT64_C(3), F_ParamTypeDesc_TypeArg);
    return handle & TYPE_DESC_TAG ? reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, handle, "ParamTypeDesc.TypeArg")
                                  : handle;
}

static enum cdacq_status name_assembly_of(struct module_cache *cache, uint64_t handle, struct text *ret)
{
    uint64_t method_table = innermost_method_table(cache->reader, handle);
    const struct metadata *metadata;
    enum cdacq_status status = metadata_of(cache, method_table, &metadata);
    return status < 0 ? status : name_assembly(&(struct name_source){.metadata = metadata}, ret);
}

static enum cdacq_status name_argument(void *context, uint32_t index, struct text *ret)
{
    const struct type_namer *namer = context;
    struct field_reader *reader = namer->cache->reader;
    uint64_t handle = read_pointer(&reader->raw, namer->arguments + (uint64_t)index * reader->raw.pointer_size);
    bool full = namer->form == NAME_TYPE_FULL;
    if (reader_failed(&reader->raw))
        return failed_read(reader);
    text_puts(ret, full ? "[" : "");
    enum cdacq_status status = name_handle(namer, handle, ret);
    if (status < 0 || !full)
        return status;
    text_puts(ret, ", ");
    status = name_assembly_of(namer->cache, handle, ret);
    text_putc(ret, ']');
    return status;
}

/* The definition of a type, and the arguments of one that is instantiated. */
static enum cdacq_status name_runtime_type(const struct type_namer *namer, uint64_t method_table, uint32_t flags,
                                           const struct name_source *source, uint32_t token, struct text *ret)
{
    bool signature = namer->form == NAME_TYPE_SIGNATURE;
    struct type_namer inner = *namer;
    uint32_t count = 0;
    bool primitive = (flags & MT_CATEGORY_MASK) == MT_CATEGORY_PRIMITIVE;
    enum cdacq_status status =
        signature ? name_type_row(source, token, !primitive, ret) : name_type_alone(source, token, ret);
    if (status >= 0)
        status = type_handle_arguments(namer->cache, method_table, &inner.arguments, &count);
    for (uint32_t i = 0; i < count && status >= 0; i++) {
        text_putc(ret, i ? ',' : signature ? '<' : '[');
        status = name_argument(&inner, i, ret);
    }
    if (count)
        text_putc(ret, signature ? '>' : ']');
    return status;
}

static bool is_instantiated(uint32_t flags)
{
    uint32_t generics = flags & MT_GENERICS_MASK;
    return !(flags & MT_HAS_COMPONENT_SIZE) && generics && generics != MT_GENERICS_TYPICAL;
}

enum cdacq_status type_handle_arguments(struct module_cache *cache, uint64_t method_table, uint64_t *ret,
                                        uint32_t *ret_count)
{
    struct field_reader *reader = cache->reader;
    uint32_t flags = (uint32_t)read_field(reader, method_table, F_MethodTable_MTFlags);
    uint32_t category = flags & MT_CATEGORY_MASK;
    *ret_count = 0;
    if (reader_failed(&reader->raw))
        return failed_read(reader);
    if (category == MT_CATEGORY_ARRAY || category == MT_CATEGORY_SZARRAY) {
        *ret = field_address(reader, method_table, F_MethodTable_PerInstInfo);
        *ret_count = reader_failed(&reader->raw) ? 0 : 1;
        return CDACQ_OK;
    }
    if (!is_instantiated(flags))
        return CDACQ_OK;
    *ret_count = find_arguments(reader, method_table, ret);
    return *ret_count ? CDACQ_OK : failed_read(reader);
}

static enum cdacq_status name_method_table(const struct type_namer *namer, uint64_t method_table, struct text *ret)
{
    struct field_reader *reader = namer->cache->reader;
    uint32_t flags = (uint32_t)read_field(reader, method_table, F_MethodTable_MTFlags);
    uint32_t category = flags & MT_CATEGORY_MASK;
    if (reader_failed(&reader->raw))
        return failed_read(reader);
    if (category == MT_CATEGORY_ARRAY || category == MT_CATEGORY_SZARRAY)
        return name_array(namer, method_table, category == MT_CATEGORY_SZARRAY, ret);
    const struct metadata *metadata;
    uint32_t token;
    enum cdacq_status status = type_handle_definition(namer->cache, method_table, &metadata, &token);
    if (status < 0)
        return status;
    struct name_source source = {.metadata = metadata, .pointer_size = reader->raw.pointer_size};
    if (namer->form != NAME_TYPE_CSHARP)
        return name_runtime_type(namer, method_table, flags, &source, token, ret);
    if (!is_instantiated(flags))
        return name_type(&source, token, ret);
    struct type_namer inner = *namer;
    uint32_t count = find_arguments(reader, method_table, &inner.arguments);
    if (!count)
        return failed_read(reader);
    return name_type_instance(&source, token, count, name_argument, &inner, ret);
}

/* Primitive types are called by their keyword wherever they occur. */
static void use_keyword(struct text *text, size_t begin)
{
    static const struct {
        const char *name, *keyword;
    } keywords[] = {
        {"System.Boolean", "bool"},  {"System.Byte", "byte"},     {"System.SByte", "sbyte"},
        {"System.Char", "char"},     {"System.Int16", "short"},   {"System.UInt16", "ushort"},
        {"System.Int32", "int"},     {"System.UInt32", "uint"},   {"System.Int64", "long"},
        {"System.UInt64", "ulong"},  {"System.Single", "float"},  {"System.Double", "double"},
        {"System.IntPtr", "nint"},   {"System.UIntPtr", "nuint"}, {"System.String", "string"},
        {"System.Object", "object"}, {"System.Void", "void"},
    };
    for (size_t i = 0; !text->broken && text->data && i < ARRAY_SIZE(keywords); i++)
        if (strcmp(text->data + begin, keywords[i].name) == 0) {
            text->length = begin;
            text_puts(text, keywords[i].keyword);
            return;
        }
}

static enum cdacq_status name_handle(const struct type_namer *namer, uint64_t handle, struct text *ret)
{
    if (namer->depth >= DEPTH_MAX)
        return CDACQ_ERR_FUEL;
    struct type_namer inner = {.cache = namer->cache, .form = namer->form, .depth = namer->depth + 1};
    size_t begin = ret->length;
    enum cdacq_status status = handle & TYPE_DESC_TAG ? name_type_desc(&inner, handle & ~UINT64_C(3), ret)
                                                      : name_method_table(&inner, handle, ret);
    if (status >= 0 && namer->form == NAME_TYPE_CSHARP)
        use_keyword(ret, begin);
    return status;
}

enum cdacq_status type_handle_name(struct module_cache *cache, uint64_t handle, enum name_type_form form,
                                   struct text *ret)
{
    struct type_namer namer = {.cache = cache, .form = form};
    return name_handle(&namer, handle, ret);
}

enum cdacq_status type_handle_argument(struct module_cache *cache, uint64_t arguments, uint32_t index,
                                       enum name_type_form form, struct text *ret)
{
    struct type_namer namer = {.cache = cache, .form = form, .arguments = arguments};
    return name_argument(&namer, index, ret);
}
