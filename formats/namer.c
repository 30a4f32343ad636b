#include "formats/namer.h"

struct namer namer_begin(const struct name_source *source, struct text *text)
{
    return (struct namer){
        .source = source,
        .text = text,
        .status = text->broken ? CDACQ_ERR_FUEL : CDACQ_OK,
        .fuel = NAME_FUEL,
        .outer = source->metadata,
        .text_length = text->length,
    };
}

bool namer_spend_bulk(struct namer *n, size_t amount)
{
    return namer_spend(n, (uint32_t)MIN(1 + amount / NAME_BULK, (size_t)NAME_FUEL + 1));
}

bool namer_spend_search(struct namer *n, const struct metadata *m, enum metadata_table table)
{
    return namer_spend_bulk(n, metadata_search_cost(m, table));
}

enum cdacq_status namer_end(struct namer *n)
{
    if (n->text->broken)
        namer_fail(n, CDACQ_ERR_FUEL);
    if (n->status != CDACQ_OK && n->text->data) {
        n->text->length = n->text_length;
        n->text->data[n->text_length] = '\0';
    }
    return n->status;
}

const struct metadata *namer_module(struct namer *n, uint32_t index)
{
    const struct metadata *m = NULL;
    if (index == 0)
        m = n->source->metadata;
    else if (n->source->module)
        m = n->source->module(n->source->context, index);
    if (!m)
        namer_fail(n, CDACQ_ERR_MODULE);
    return m;
}

void namer_put_string(struct namer *n, const struct metadata *m, uint32_t index)
{
    char buffer[METADATA_STRING_CAP];
    const char *string;
    size_t length;
    if (namer_check(n, metadata_string(m, index, buffer, &string, &length)) && namer_spend_bulk(n, length))
        text_escape(n->text, string, length);
}

static struct type_level *path_add(struct namer *n, struct type_path *path)
{
    if (path->count == NAME_NESTING_CAP) {
        namer_fail(n, CDACQ_ERR_FUEL);
        return NULL;
    }
    struct type_level *level = &path->levels[path->count++];
    level->formals.metadata = NULL;
    level->formals.generics = (struct metadata_generics){0};
    return level;
}

static bool path_of_type_def(struct namer *n, uint32_t rid, struct type_path *path)
{
    enum { VISIBILITY_MASK = 7, NESTED_VISIBILITIES = 2 };
    const struct metadata *m = path->metadata;
    while (rid) {
        struct metadata_type_def type;
        struct type_level *level = path_add(n, path);
        if (!level || !namer_spend(n, 1) || !namer_check(n, metadata_type_def(m, rid, &type)))
            return false;
        level->rid = rid;
        level->name = type.name;
        level->namespace_name = type.namespace_name;
        if ((type.flags & VISIBILITY_MASK) < NESTED_VISIBILITIES)
            return true;
        if (!namer_spend_search(n, m, METADATA_NESTED_CLASS) || !namer_check(n, metadata_enclosing(m, rid, &rid)))
            return false;
    }
    return path->count > 0 || namer_fail(n, CDACQ_ERR_FORMAT);
}

static bool path_of_type_ref(struct namer *n, uint32_t rid, struct type_path *path)
{
    for (;;) {
        struct metadata_type_ref type;
        struct type_level *level = path_add(n, path);
        if (!level || !namer_spend(n, 1) || !namer_check(n, metadata_type_ref(path->metadata, rid, &type)))
            return false;
        level->rid = rid;
        level->name = type.name;
        level->namespace_name = type.namespace_name;
        path->scope = type.scope;
        if (metadata_token_table(type.scope) != METADATA_TYPE_REF || !metadata_rid(type.scope))
            return true;
        rid = metadata_rid(type.scope);
    }
}

bool namer_path(struct namer *n, const struct metadata *m, uint32_t token, struct type_path *path)
{
    path->metadata = m;
    path->count = 0;
    path->arities_known = false;
    path->scope = 0;
    if (!m)
        return namer_fail(n, CDACQ_ERR_MODULE);
    switch (metadata_token_table(token)) {
    case METADATA_TYPE_DEF:
        return path_of_type_def(n, metadata_rid(token), path);
    case METADATA_TYPE_REF:
        return path_of_type_ref(n, metadata_rid(token), path);
    default:
        return namer_fail(n, CDACQ_ERR_FORMAT);
    }
}

struct signature namer_cursor(const struct namer *n, const void *data, size_t length)
{
    bool handles = n->source->type_handle != NULL;
    return signature_at(data, length, handles ? n->source->pointer_size : 0, n->source->big_endian);
}
