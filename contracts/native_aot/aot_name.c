#include "contracts/native_aot/aot_name.h"

#include "contracts/native_aot/aot_method_table.h"

enum { TYPE_DEPTH_MAX = 16, RANK_MAX = 32 };

enum cdacq_status aot_name_method(struct aot_image *aot, struct reader *reader, uint64_t begin,
                                  enum aot_name_style style, struct text *ret)
{
    const struct aot_tables *tables = aot_tables_get(aot, reader);
    const struct aot_method *method = tables ? aot_method_at(tables, begin) : NULL;
    if (!tables)
        return reader_failure(reader).status;
    if (!method || !method->has_name)
        return CDACQ_NOT_MANAGED;
    return aot_put_method(aot_metadata(tables), &method->name, style, ret) ? CDACQ_OK : CDACQ_ERR_FORMAT;
}

/* What is needed to write the name of a type. */
struct type_namer {
    const struct aot_tables *tables;
    struct reader *reader;
    struct text *text;
};

static enum cdacq_status put_type(const struct type_namer *n, uint64_t method_table, unsigned depth);

static enum cdacq_status put_instance(const struct type_namer *n, uint64_t method_table, unsigned depth)
{
    struct reader *reader = n->reader;
    struct aot_instance instance;
    if (!aot_instance_read(n->reader, method_table, &instance))
        return reader_failure(reader).status;
    aot_handle type = aot_type_of(n->tables, instance.definition);
    if (!type)
        return CDACQ_NOT_MANAGED;
    if (!aot_put_type(aot_metadata(n->tables), type, n->text))
        return CDACQ_ERR_FORMAT;
    enum cdacq_status status = CDACQ_OK;
    for (uint32_t i = 0; i < instance.count && status == CDACQ_OK; i++) {
        text_putc(n->text, i ? ',' : '[');
        status = put_type(n, aot_instance_argument(n->reader, &instance, i), depth);
    }
    text_putc(n->text, ']');
    return status;
}

/* An array, a pointer or a reference: its element is the related type. */
static enum cdacq_status put_composed(const struct type_namer *n, uint64_t method_table, enum aot_type_kind kind,
                                      unsigned depth)
{
    struct reader *reader = n->reader;
    uint64_t element = read_field(n->reader, method_table, F_MethodTable_RelatedType);
    uint64_t size = read_field(n->reader, method_table, F_MethodTable_BaseSize),
             vector = 3 * (uint64_t)reader->pointer_size;
    uint64_t rank = size > vector ? (size - vector) / 8 : 0;
    if (reader_failed(reader))
        return reader_failure(reader).status;
    if (kind == AOT_ARRAY && (!rank || rank > RANK_MAX))
        return CDACQ_ERR_CORRUPT;
    enum cdacq_status status = put_type(n, element, depth);
    if (kind == AOT_REFERENCE || kind == AOT_POINTER) {
        text_putc(n->text, kind == AOT_REFERENCE ? '&' : '*');
        return status;
    }
    text_putc(n->text, '[');
    if (kind == AOT_ARRAY && rank == 1)
        text_putc(n->text, '*');
    for (uint64_t i = 1; kind == AOT_ARRAY && i < rank; i++)
        text_putc(n->text, ',');
    text_putc(n->text, ']');
    return status;
}

static enum cdacq_status put_type(const struct type_namer *n, uint64_t method_table, unsigned depth)
{
    struct reader *reader = n->reader;
    aot_handle type = aot_type_of(n->tables, method_table);
    if (type)
        return aot_put_type(aot_metadata(n->tables), type, n->text) ? CDACQ_OK : CDACQ_ERR_FORMAT;
    enum aot_type_kind kind = aot_type_kind(n->reader, method_table);
    if (reader_failed(reader))
        return reader_failure(reader).status;
    if (depth == TYPE_DEPTH_MAX || !reader_step(reader, "the name of a type"))
        return CDACQ_ERR_FUEL;
    switch (kind) {
    case AOT_GENERIC_INSTANCE:
        return put_instance(n, method_table, depth + 1);
    case AOT_ARRAY:
    case AOT_VECTOR:
    case AOT_REFERENCE:
    case AOT_POINTER:
        return put_composed(n, method_table, kind, depth + 1);
    default:
        return CDACQ_NOT_MANAGED;
    }
}

enum cdacq_status aot_name_type(struct aot_image *aot, struct reader *reader, uint64_t method_table, struct text *ret)
{
    struct type_namer n = {.tables = aot_tables_get(aot, reader), .reader = reader, .text = ret};
    size_t begin = ret->length;
    enum cdacq_status status = n.tables ? put_type(&n, method_table, 0) : reader_failure(reader).status;
    if (status == CDACQ_OK && ret->broken)
        status = CDACQ_ERR_FUEL;
    if (status != CDACQ_OK)
        text_cut(ret, begin);
    return status;
}
