#include "formats/names/namer.h"

#include "util/own_stack.h"
#include "util/sha1.h"

struct namer namer_begin(const struct name_source *source, const struct type_spelling *types, struct text *text)
{
    return (struct namer){
        .source = source,
        .types = types,
        .text = text,
        .status = text->broken ? CDACQ_ERR_FUEL : CDACQ_OK,
        .fuel = NAME_FUEL,
        .outer = source->metadata,
        .text_length = text->length,
    };
}

bool namer_has_stack(struct namer *n)
{
    enum { RESERVE = 128 * 1024 }; /* for what one type needs, down to the reading of memory */
    if (!n->stack_floor)
        n->stack_floor = own_stack_floor(RESERVE);
    return (uintptr_t)__builtin_frame_address(0) > n->stack_floor;
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
    if (n->status != CDACQ_OK)
        text_cut(n->text, n->text_length);
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

bool namer_blob(struct namer *n, const struct metadata *m, uint32_t index, struct metadata_blob *blob)
{
    return namer_check(n, metadata_blob_read(m, index, blob)) && namer_spend_bulk(n, blob->length);
}

void namer_rotate(struct namer *n, size_t begin, size_t middle)
{
    char chunk[128], *text = n->text->data;
    while (begin < middle && middle < n->text->length && !n->text->broken) {
        size_t length = MIN(sizeof chunk, n->text->length - middle);
        memcpy(chunk, text + middle, length);
        memmove(text + begin + length, text + begin, middle - begin);
        memcpy(text + begin, chunk, length);
        begin += length;
        middle += length;
    }
}

void namer_put_string(struct namer *n, const struct metadata *m, uint32_t index)
{
    char buffer[METADATA_STRING_CAP];
    const char *string;
    size_t length;
    if (namer_check(n, metadata_string(m, index, buffer, &string, &length)) && namer_spend_bulk(n, length))
        text_escape(n->text, string, length);
}

void namer_put_reserved(struct namer *n, const struct metadata *m, uint32_t index)
{
    char buffer[METADATA_STRING_CAP];
    const char *string;
    size_t length;
    if (!namer_check(n, metadata_string(m, index, buffer, &string, &length)) || !namer_spend_bulk(n, length))
        return;
    for (const char *end = string + length; string < end;) {
        const char *plain = string;
        while (string < end && (!*string || !strchr(",[]&*+", *string)))
            string++;
        text_escape(n->text, plain, (size_t)(string - plain));
        if (string < end) {
            text_putc(n->text, '\\');
            text_putc(n->text, *string++);
        }
    }
}

void namer_put_namespace(struct namer *n, const struct metadata *m, uint32_t index,
                         void (*put)(struct namer *n, const struct metadata *m, uint32_t index))
{
    size_t before = n->text->length;
    if (index)
        put(n, m, index);
    if (n->text->length != before)
        text_putc(n->text, '.');
}

void namer_put_origin(struct namer *n, struct origin origin)
{
    struct metadata_assembly_ref reference;
    uint32_t name;
    if (!origin.metadata) {
        text_puts(n->text, "System.Private.CoreLib");
    } else if (metadata_token_table(origin.scope) == METADATA_ASSEMBLY_REF) {
        if (namer_check(n, metadata_assembly_ref(origin.metadata, metadata_rid(origin.scope), &reference)))
            namer_put_string(n, origin.metadata, reference.name);
    } else if (namer_check(n, metadata_assembly_name(origin.metadata, &name))) {
        namer_put_string(n, origin.metadata, name);
    }
}

/* The last eight bytes of the SHA-1 of a public key, in reverse order; a token is stored as it is. */
static void put_token(struct namer *n, const struct metadata *m, uint32_t blob, bool is_key)
{
    enum { TOKEN_SIZE = 8, KEY_MAX = 16 * 1024 }; /* real keys have up to 2 KiB */
    CLEANUP_METADATA_BLOB struct metadata_blob key;
    uint8_t hash[SHA1_SIZE], token[TOKEN_SIZE];
    char text[2 * TOKEN_SIZE + 1];
    key.allocated = NULL;
    if (!blob) {
        text_puts(n->text, "null");
        return;
    }
    if (!namer_check(n, metadata_blob_read(m, blob, &key)) || !namer_spend_bulk(n, key.length))
        return;
    if (is_key && key.length <= KEY_MAX) {
        sha1(key.data, key.length, hash);
        for (unsigned i = 0; i < TOKEN_SIZE; i++)
            token[i] = hash[SHA1_SIZE - 1 - i];
    } else if (!is_key && key.length == TOKEN_SIZE) {
        memcpy(token, key.data, TOKEN_SIZE);
    } else {
        namer_fail(n, CDACQ_ERR_FORMAT);
        return;
    }
    text_hex(text, token, TOKEN_SIZE);
    text_puts(n->text, text);
}

void namer_put_identity(struct namer *n, struct origin origin)
{
    const struct metadata *m = origin.metadata ? origin.metadata : n->source->core;
    struct metadata_assembly definition = {0};
    struct metadata_assembly_ref assembly = {0};
    bool is_reference = origin.metadata && metadata_token_table(origin.scope) == METADATA_ASSEMBLY_REF;
    bool is_key = !is_reference;
    if (!m) {
        namer_fail(n, CDACQ_ERR_MODULE);
    } else if (is_reference && namer_check(n, metadata_assembly_ref(m, metadata_rid(origin.scope), &assembly))) {
        is_key = assembly.flags & ASSEMBLY_FLAG_PUBLIC_KEY;
    } else if (!is_reference && namer_check(n, metadata_assembly(m, 1, &definition))) {
        memcpy(assembly.version, definition.version, sizeof assembly.version);
        assembly.key = definition.key;
        assembly.name = definition.name;
        assembly.culture = definition.culture;
    }
    if (n->status != CDACQ_OK)
        return;
    namer_put_string(n, m, assembly.name);
    text_printf(n->text, ", Version=%u.%u.%u.%u, Culture=", assembly.version[0], assembly.version[1],
                assembly.version[2], assembly.version[3]);
    if (assembly.culture)
        namer_put_string(n, m, assembly.culture);
    else
        text_puts(n->text, "neutral");
    text_puts(n->text, ", PublicKeyToken=");
    put_token(n, m, assembly.key, is_key);
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
    path->token = token;
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

bool namer_formals(struct namer *n, const struct metadata *m, uint32_t owner, struct formals *ret)
{
    struct formals formals = {.metadata = m};
    if (!namer_spend_search(n, m, METADATA_GENERIC_PARAM) ||
        !namer_check(n, metadata_generics(m, owner, &formals.generics)))
        return false;
    *ret = formals;
    return true;
}
