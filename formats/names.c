#include "formats/names.h"
#include "formats/namer.h"

enum { ARRAY_CHAIN_CAP = 32 /* arrays of arrays */ };

/* ---- Pieces of a name ---- */

/* The C# keyword of an element type, NULL for those that have none. */
static const char *keyword(uint8_t element)
{
    static const char *const keywords[] = {
        [ELEMENT_VOID] = "void",
        [ELEMENT_BOOLEAN] = "bool",
        [ELEMENT_CHAR] = "char",
        [ELEMENT_I1] = "sbyte",
        [ELEMENT_U1] = "byte",
        [ELEMENT_I2] = "short",
        [ELEMENT_U2] = "ushort",
        [ELEMENT_I4] = "int",
        [ELEMENT_U4] = "uint",
        [ELEMENT_I8] = "long",
        [ELEMENT_U8] = "ulong",
        [ELEMENT_R4] = "float",
        [ELEMENT_R8] = "double",
        [ELEMENT_STRING] = "string",
        [ELEMENT_TYPEDBYREF] = "System.TypedReference",
        [ELEMENT_I] = "nint",
        [ELEMENT_U] = "nuint",
        [ELEMENT_OBJECT] = "object",
        [ELEMENT_CANON_ZAPSIG] = "System.__Canon",
    };
    return element < ARRAY_SIZE(keywords) ? keywords[element] : NULL;
}

/* The length of `name` without the `N that it ends in; *ret_arity is that N, 0 where it has none. */
static size_t stem_length(const char *name, size_t length, uint32_t *ret_arity)
{
    uint32_t value = 0, unit = 1;
    size_t at = length;
    *ret_arity = 0;
    for (; at > 0 && length - at < 5 && name[at - 1] >= '0' && name[at - 1] <= '9'; at--, unit *= 10)
        value += (uint32_t)(name[at - 1] - '0') * unit;
    if (at == 0 || at == length || name[at - 1] != '`' || name[at] == '0')
        return length;
    *ret_arity = value;
    return at - 1;
}

/* The name of generic parameter `number`: formal, or `!0`, `!!0` where it is not known. */
static void put_formal(struct namer *n, const struct formals *formals, uint32_t number, const char *mark)
{
    struct metadata_generic_param param;
    uint32_t rid = 0;
    if (formals->metadata) {
        if (!formals->generics.first && !namer_spend_search(n, formals->metadata, METADATA_GENERIC_PARAM))
            return;
        if (!namer_check(n, metadata_generics_at(formals->metadata, &formals->generics, number, &rid)))
            return;
    }
    if (!rid)
        text_printf(n->text, "%s%u", mark, number);
    else if (namer_check(n, metadata_generic_param(formals->metadata, rid, &param)))
        namer_put_string(n, formals->metadata, param.name);
}

static bool read_generics(struct namer *n, const struct metadata *m, uint32_t owner, struct formals *ret)
{
    struct formals formals = {.metadata = m};
    if (!namer_spend_search(n, m, METADATA_GENERIC_PARAM) ||
        !namer_check(n, metadata_generics(m, owner, &formals.generics)))
        return false;
    *ret = formals;
    return true;
}

/* ---- A type and the types around it ---- */

/* For a path of TypeDefs: asks the parameters of every level. */
static bool path_read_arities(struct namer *n, struct type_path *path)
{
    for (unsigned i = 0; i < path->count; i++) {
        struct type_level *level = &path->levels[i];
        if (!read_generics(n, path->metadata, metadata_token(METADATA_TYPE_DEF, level->rid), &level->formals))
            return false;
        if (i == 0 && level->formals.generics.count == 0)
            break; /* a nested type repeats the parameters of those around it: they have none either */
    }
    path->arities_known = true;
    return true;
}

/* How many parameters a level adds to those around it. */
static uint32_t path_arity(const struct type_path *path, unsigned i)
{
    uint32_t own = path->levels[i].formals.generics.count;
    uint32_t outer = i + 1 < path->count ? path->levels[i + 1].formals.generics.count : 0;
    return own > outer ? own - outer : 0;
}

/* The generic arguments that a path is printed with: `put` prints the next one. */
struct arguments {
    uint32_t left, number;
    void (*put)(struct namer *n, struct arguments *arguments, const struct type_level *level);
    struct signature *signature;
    enum cdacq_status (*callback)(void *context, uint32_t index, struct text *ret);
    void *context;
};

/* The name of a level, without its `N where that many arguments follow. Returns how many do. */
static __attribute__((noinline)) uint32_t put_level_name(struct namer *n, const struct type_path *path, unsigned i,
                                                         uint32_t left)
{
    char buffer[METADATA_STRING_CAP];
    const char *name;
    size_t length;
    uint32_t suffix;
    if (path->levels[i].namespace_name) {
        size_t before = n->text->length;
        namer_put_string(n, path->metadata, path->levels[i].namespace_name);
        if (n->text->length != before)
            text_putc(n->text, '.');
    }
    if (!namer_check(n, metadata_string(path->metadata, path->levels[i].name, buffer, &name, &length)) ||
        !namer_spend_bulk(n, length))
        return 0;
    size_t stem = stem_length(name, length, &suffix);
    uint32_t taken = path->arities_known ? path_arity(path, i) : suffix;
    if (taken > left || i == 0) /* the innermost takes what is left, whatever it is called */
        taken = left;
    text_escape(n->text, name, taken && taken == suffix ? stem : length);
    return taken;
}

static void put_path(struct namer *n, const struct type_path *path, struct arguments *arguments)
{
    for (unsigned i = path->count; i-- > 0 && n->status == CDACQ_OK;) {
        uint32_t count = put_level_name(n, path, i, arguments->left);
        for (uint32_t k = 0; k < count && namer_spend(n, 1); k++) {
            text_puts(n->text, k == 0 ? "<" : ", ");
            arguments->put(n, arguments, &path->levels[i]);
            arguments->number++;
        }
        arguments->left -= count;
        if (count)
            text_putc(n->text, '>');
        if (i)
            text_putc(n->text, '.');
    }
}

static void put_formal_argument(struct namer *n, struct arguments *arguments, const struct type_level *level)
{
    put_formal(n, &level->formals, arguments->number, "!");
}

/* A TypeDef with the names of its parameters, which it also returns. */
static void put_formal_type(struct namer *n, const struct metadata *m, uint32_t rid, struct formals *ret)
{
    struct type_path path;
    if (!namer_path(n, m, metadata_token(METADATA_TYPE_DEF, rid), &path) || !path_read_arities(n, &path))
        return;
    struct arguments arguments = {.left = path.levels[0].formals.generics.count, .put = put_formal_argument};
    *ret = path.levels[0].formals;
    put_path(n, &path, &arguments);
}

/* ---- Types in signatures ---- */

static void put_type(struct namer *n, struct signature *s, const struct metadata *m);

static void put_type_spec(struct namer *n, const struct metadata *m, uint32_t rid)
{
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    const struct metadata *outer = n->outer;
    uint32_t index;
    blob.allocated = NULL;
    if (!namer_check(n, metadata_type_spec(m, rid, &index)) || !namer_check(n, metadata_blob_read(m, index, &blob)) ||
        !namer_spend_bulk(n, blob.length))
        return;
    struct signature s = signature_at(blob.data, blob.length, 0, false);
    n->outer = m;
    put_type(n, &s, m);
    n->outer = outer;
}

/* A type as it is referred to, without arguments. */
static void put_type_token(struct namer *n, const struct metadata *m, uint32_t token)
{
    struct type_path path;
    struct arguments none = {0};
    if (!m)
        namer_fail(n, CDACQ_ERR_MODULE);
    else if (metadata_token_table(token) == METADATA_TYPE_SPEC)
        put_type_spec(n, m, metadata_rid(token));
    else if (namer_path(n, m, token, &path))
        put_path(n, &path, &none);
}

static void put_signature_argument(struct namer *n, struct arguments *arguments, const struct type_level *level)
{
    (void)level;
    put_type(n, arguments->signature, n->outer);
}

/* What stands behind GENERICINST: the module and token of a type. */
static bool read_generic_type(struct namer *n, struct signature *s, const struct metadata **m, uint32_t *ret_token)
{
    uint8_t element = signature_byte(s);
    if (element == ELEMENT_MODULE_ZAPSIG) {
        *m = namer_module(n, signature_uint(s));
        element = signature_byte(s);
    }
    if (element == ELEMENT_CLASS || element == ELEMENT_VALUETYPE) {
        *ret_token = signature_token(s);
        return namer_good(n, s);
    }
    if (element != ELEMENT_INTERNAL || !n->source->type_definition)
        return namer_fail(n, CDACQ_ERR_FORMAT);
    uint64_t handle = signature_handle(s);
    return namer_good(n, s) && namer_check(n, n->source->type_definition(n->source->context, handle, m, ret_token));
}

/* Not inlined, for its path. */
static __attribute__((noinline)) void put_instance(struct namer *n, struct signature *s, const struct metadata *m)
{
    struct type_path path;
    uint32_t token;
    if (!read_generic_type(n, s, &m, &token) || !namer_path(n, m, token, &path))
        return;
    struct arguments arguments = {.left = signature_uint(s), .put = put_signature_argument, .signature = s};
    if (arguments.left > (size_t)(s->end - s->at)) /* an argument takes a byte at least */
        namer_fail(n, CDACQ_ERR_FORMAT);
    if (!namer_good(n, s))
        return;
    if (path.count > 1 && metadata_token_table(token) == METADATA_TYPE_DEF && !path_read_arities(n, &path))
        return;
    put_path(n, &path, &arguments);
}

/* `delegate*<int, void>`: parameters, then the return type, which the signature has first. */
static void put_function_pointer(struct namer *n, struct signature *s, const struct metadata *m)
{
    struct signature_header header = signature_method(s);
    struct signature result = *s;
    signature_skip_type(s);
    if (!namer_good(n, s) || !namer_spend_bulk(n, (size_t)(s->at - result.at)))
        return;
    text_puts(n->text, "delegate*<");
    for (uint32_t i = 0; i < header.parameter_count && namer_good(n, s); i++) {
        if (signature_peek(s) == ELEMENT_SENTINEL)
            s->at++;
        put_type(n, s, m);
        text_puts(n->text, ", ");
    }
    if (namer_good(n, s))
        put_type(n, &result, m);
    text_putc(n->text, '>');
}

static void put_handle(struct namer *n, struct signature *s)
{
    uint64_t handle = signature_handle(s);
    if (namer_good(n, s))
        namer_check(n, n->source->type_handle(n->source->context, handle, n->text));
}

static void put_zapsig_variable(struct namer *n, struct signature *s, const struct metadata *m)
{
    struct metadata_generic_param param;
    uint32_t rid = signature_uint(s);
    if (!m)
        namer_fail(n, CDACQ_ERR_MODULE);
    else if (namer_good(n, s) && namer_check(n, metadata_generic_param(m, rid, &param)))
        namer_put_string(n, m, param.name);
}

/* A type that is no array. */
static void put_plain_type(struct namer *n, struct signature *s, const struct metadata *m)
{
    uint8_t element = signature_byte(s);
    const char *word = keyword(element);
    if (word) {
        text_puts(n->text, word);
        return;
    }
    switch (element) {
    case ELEMENT_CLASS:
    case ELEMENT_VALUETYPE: {
        uint32_t token = signature_token(s);
        if (namer_good(n, s))
            put_type_token(n, m, token);
        return;
    }
    case ELEMENT_BYREF:
        text_puts(n->text, "ref ");
        put_type(n, s, m);
        return;
    case ELEMENT_PTR:
        put_type(n, s, m);
        text_putc(n->text, '*');
        return;
    case ELEMENT_VAR:
        put_formal(n, &n->type_formals, signature_uint(s), "!");
        return;
    case ELEMENT_MVAR:
        put_formal(n, &n->method_formals, signature_uint(s), "!!");
        return;
    case ELEMENT_GENERICINST:
        put_instance(n, s, m);
        return;
    case ELEMENT_FNPTR:
        put_function_pointer(n, s, m);
        return;
    case ELEMENT_INTERNAL:
        put_handle(n, s);
        return;
    case ELEMENT_VAR_ZAPSIG:
        put_zapsig_variable(n, s, m);
        return;
    case ELEMENT_NATIVE_VALUETYPE_ZAPSIG:
        put_type(n, s, m);
        return;
    case ELEMENT_MODULE_ZAPSIG:
        m = namer_module(n, signature_uint(s));
        if (m)
            put_type(n, s, m);
        return;
    default:
        namer_fail(n, CDACQ_ERR_FORMAT);
    }
}

static void put_rank(struct namer *n, uint32_t rank)
{
    text_putc(n->text, '[');
    if (rank == 1) /* not the vector T[] */
        text_putc(n->text, '*');
    while (rank-- > 1)
        text_putc(n->text, ',');
    text_putc(n->text, ']');
}

/* A type of any form. Arrays of arrays are written as C# has them, the outer one's brackets first. */
static void put_type(struct namer *n, struct signature *s, const struct metadata *m)
{
    uint8_t ranks[ARRAY_CHAIN_CAP]; /* 0 for a vector */
    unsigned count = 0;
    if (n->depth == NAME_DEPTH_CAP) {
        namer_fail(n, CDACQ_ERR_FUEL);
        return;
    }
    n->depth++;
    for (;;) {
        const uint8_t *before = s->at;
        signature_skip_modifiers(s);
        uint8_t element = signature_peek(s);
        if (!namer_good(n, s) || !namer_spend_bulk(n, (size_t)(s->at - before)) ||
            (element != ELEMENT_SZARRAY && element != ELEMENT_ARRAY))
            break;
        if (count == ARRAY_CHAIN_CAP) {
            namer_fail(n, CDACQ_ERR_FUEL);
            break;
        }
        s->at++;
        ranks[count++] = element == ELEMENT_ARRAY;
    }
    if (namer_good(n, s))
        put_plain_type(n, s, m);
    for (unsigned i = count; i-- > 0;)
        if (ranks[i])
            ranks[i] = (uint8_t)signature_array_shape(s);
    if (namer_good(n, s))
        for (unsigned i = 0; i < count; i++)
            put_rank(n, ranks[i]);
    n->depth--;
}

static void put_parameters(struct namer *n, struct signature *s, const struct metadata *m,
                           const struct signature_header *header)
{
    signature_skip_type(s);
    text_putc(n->text, '(');
    uint32_t i = 0;
    for (; i < header->parameter_count && signature_peek(s) != ELEMENT_SENTINEL && namer_good(n, s); i++) {
        if (i)
            text_puts(n->text, ", ");
        put_type(n, s, m);
    }
    if (header->kind == SIGNATURE_VARARG) /* what a call site passes beyond the sentinel is not part of the name */
        text_puts(n->text, i ? ", __arglist" : "__arglist");
    text_putc(n->text, ')');
    namer_good(n, s);
}

/* ---- Methods ---- */

/* `<U, V>` of a generic method; nothing for others. */
static void put_method_formals(struct namer *n, uint32_t count)
{
    for (uint32_t i = 0; i < count && namer_spend(n, 1); i++) {
        text_puts(n->text, i == 0 ? "<" : ", ");
        put_formal(n, &n->method_formals, i, "!!");
    }
    if (count)
        text_putc(n->text, '>');
}

/* The type of a MethodDef, a dot, and its name. */
static bool put_method_def_name(struct namer *n, const struct metadata *m, uint32_t rid, uint32_t *ret_signature)
{
    struct metadata_method_def method;
    uint32_t owner;
    if (!namer_check(n, metadata_method_def(m, rid, &method)) || !namer_spend_search(n, m, METADATA_METHOD_PTR) ||
        !namer_check(n, metadata_method_owner(m, rid, &owner)))
        return false;
    put_formal_type(n, m, owner, &n->type_formals);
    text_putc(n->text, '.');
    namer_put_string(n, m, method.name);
    *ret_signature = method.signature;
    return n->status == CDACQ_OK;
}

static void put_method_def(struct namer *n, const struct metadata *m, uint32_t rid)
{
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    uint32_t signature;
    blob.allocated = NULL;
    if (!put_method_def_name(n, m, rid, &signature) || !namer_check(n, metadata_blob_read(m, signature, &blob)) ||
        !namer_spend_bulk(n, blob.length))
        return;
    struct signature s = signature_at(blob.data, blob.length, 0, false);
    struct signature_header header = signature_method(&s);
    if (!namer_good(n, &s) ||
        (header.generic && !read_generics(n, m, metadata_token(METADATA_METHOD_DEF, rid), &n->method_formals)))
        return;
    put_method_formals(n, header.generic ? n->method_formals.generics.count : 0);
    put_parameters(n, &s, m, &header);
}

static void put_member_parent(struct namer *n, const struct metadata *m, uint32_t parent)
{
    uint32_t owner;
    switch (metadata_token_table(parent)) {
    case METADATA_TYPE_DEF:
        put_formal_type(n, m, metadata_rid(parent), &n->type_formals);
        break;
    case METADATA_METHOD_DEF: /* a call site of a method with variable arguments */
        if (namer_spend_search(n, m, METADATA_METHOD_PTR) &&
            namer_check(n, metadata_method_owner(m, metadata_rid(parent), &owner)))
            put_formal_type(n, m, owner, &n->type_formals);
        break;
    case METADATA_MODULE_REF:
        text_puts(n->text, "<Module>");
        break;
    default:
        put_type_token(n, m, parent);
    }
}

static void put_member_ref(struct namer *n, const struct metadata *m, uint32_t rid)
{
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    struct metadata_member_ref member;
    blob.allocated = NULL;
    if (!namer_check(n, metadata_member_ref(m, rid, &member)) ||
        !namer_check(n, metadata_blob_read(m, member.signature, &blob)) || !namer_spend_bulk(n, blob.length))
        return;
    struct signature s = signature_at(blob.data, blob.length, 0, false);
    struct signature_header header = signature_method(&s); /* refuses fields */
    if (!namer_good(n, &s))
        return;
    put_member_parent(n, m, member.parent);
    text_putc(n->text, '.');
    namer_put_string(n, m, member.name);
    put_method_formals(n, header.generic_count);
    put_parameters(n, &s, m, &header);
}

enum cdacq_status name_method(const struct name_source *source, uint32_t token, struct text *ret)
{
    struct namer n = namer_begin(source, ret);
    if (!source->metadata)
        namer_fail(&n, CDACQ_ERR_MODULE);
    else if (metadata_token_table(token) == METADATA_METHOD_DEF)
        put_method_def(&n, source->metadata, metadata_rid(token));
    else if (metadata_token_table(token) == METADATA_MEMBER_REF)
        put_member_ref(&n, source->metadata, metadata_rid(token));
    else
        namer_fail(&n, CDACQ_ERR_FORMAT);
    return namer_end(&n);
}

enum cdacq_status name_type(const struct name_source *source, uint32_t token, struct text *ret)
{
    struct namer n = namer_begin(source, ret);
    struct formals formals;
    if (source->metadata && metadata_token_table(token) == METADATA_TYPE_DEF)
        put_formal_type(&n, source->metadata, metadata_rid(token), &formals);
    else
        put_type_token(&n, source->metadata, token);
    return namer_end(&n);
}

static void put_callback_argument(struct namer *n, struct arguments *arguments, const struct type_level *level)
{
    (void)level;
    namer_check(n, arguments->callback(arguments->context, arguments->number, n->text));
}

enum cdacq_status name_type_instance(const struct name_source *source, uint32_t token, uint32_t count,
                                     enum cdacq_status (*argument)(void *context, uint32_t index, struct text *ret),
                                     void *context, struct text *ret)
{
    struct namer n = namer_begin(source, ret);
    struct type_path path;
    struct arguments arguments = {
        .left = count, .put = put_callback_argument, .callback = argument, .context = context};
    if (namer_path(&n, source->metadata, token, &path) &&
        (metadata_token_table(token) != METADATA_TYPE_DEF || path.count == 1 || path_read_arities(&n, &path)))
        put_path(&n, &path, &arguments);
    return namer_end(&n);
}

enum cdacq_status name_parameters(const struct name_source *source, const void *signature, size_t length,
                                  struct text *ret)
{
    struct namer n = namer_begin(source, ret);
    struct signature s = namer_cursor(&n, signature, length);
    struct signature_header header = signature_method(&s);
    if (namer_good(&n, &s))
        put_parameters(&n, &s, source->metadata, &header);
    return namer_end(&n);
}

enum cdacq_status name_signature_type(const struct name_source *source, const void *signature, size_t length,
                                      struct text *ret, size_t *ret_length)
{
    struct namer n = namer_begin(source, ret);
    struct signature s = namer_cursor(&n, signature, length);
    put_type(&n, &s, source->metadata);
    namer_good(&n, &s);
    enum cdacq_status status = namer_end(&n);
    if (status == CDACQ_OK && ret_length)
        *ret_length = (size_t)(s.at - (const uint8_t *)signature);
    return status;
}

/* ---- ReadyToRun ---- */

/* Finds the type at the head of an owner's signature and the module it is defined or referred to in. */
static void read_owner(struct signature s, struct name_entry_point *entry)
{
    for (;;) {
        signature_skip_modifiers(&s);
        uint8_t element = signature_byte(&s);
        switch (element) {
        case ELEMENT_MODULE_ZAPSIG:
            entry->owner_module = signature_uint(&s);
            continue;
        case ELEMENT_GENERICINST:
        case ELEMENT_NATIVE_VALUETYPE_ZAPSIG:
            continue;
        case ELEMENT_CLASS:
        case ELEMENT_VALUETYPE:
            entry->owner_token = signature_token(&s);
            break;
        default:
            break;
        }
        entry->owner_element = element;
        return;
    }
}

static void read_method_token(struct signature *s, struct name_entry_point *entry)
{
    uint32_t rid = signature_uint(s);
    if (entry->flags & NAME_ENTRY_SLOT_INSTEAD_OF_TOKEN) {
        entry->slot = rid;
        return;
    }
    if (rid == 0 || rid > 0xffffff)
        signature_fail(s);
    bool member_ref = entry->flags & NAME_ENTRY_MEMBER_REF_TOKEN;
    /* A MemberRef is looked up where the signature says that it starts from, a MethodDef where its type is. */
    entry->module = member_ref ? entry->context : entry->owner_module;
    entry->token = metadata_token(member_ref ? METADATA_MEMBER_REF : METADATA_METHOD_DEF, rid);
}

enum cdacq_status name_entry_point_decode(const void *blob, size_t length, struct name_entry_point *ret)
{
    enum { KNOWN_FLAGS = 2 * NAME_ENTRY_ASYNC_VARIANT - 1 };
    struct signature s = signature_at(blob, length, 0, false);
    struct name_entry_point entry = {.flags = signature_uint(&s)};
    if (entry.flags & ~(unsigned)KNOWN_FLAGS)
        return CDACQ_ERR_FORMAT;
    if (entry.flags & NAME_ENTRY_UPDATE_CONTEXT)
        entry.context = signature_uint(&s);
    entry.owner_module = entry.context;
    if (entry.flags & NAME_ENTRY_OWNER_TYPE) {
        entry.owner = s.at;
        read_owner(s, &entry);
        signature_skip_type(&s);
        entry.owner_length = (size_t)(s.at - entry.owner);
    }
    read_method_token(&s, &entry);
    if (entry.flags & NAME_ENTRY_METHOD_INSTANTIATION) {
        entry.argument_count = signature_uint(&s);
        entry.arguments = s.at;
        for (uint32_t i = 0; i < entry.argument_count && !s.failed; i++)
            signature_skip_type(&s);
        entry.arguments_length = (size_t)(s.at - entry.arguments);
    }
    if (entry.flags & NAME_ENTRY_CONSTRAINED)
        signature_skip_type(&s);
    if (s.failed)
        return CDACQ_ERR_FORMAT;
    entry.length = (size_t)(s.at - (const uint8_t *)blob);
    *ret = entry;
    return CDACQ_OK;
}

enum cdacq_status name_entry_point_skip(const void *blob, size_t length, size_t *ret_length)
{
    struct signature s = signature_at(blob, length, 0, false);
    uint32_t flags = signature_uint(&s);
    if (flags & NAME_ENTRY_UPDATE_CONTEXT)
        signature_skip_uint(&s);
    if (flags & NAME_ENTRY_OWNER_TYPE)
        signature_skip_type(&s);
    signature_skip_uint(&s);
    if (flags & NAME_ENTRY_METHOD_INSTANTIATION)
        signature_skip_types_(&s, signature_uint(&s), 0);
    if (flags & NAME_ENTRY_CONSTRAINED)
        signature_skip_type(&s);
    if (s.failed)
        return CDACQ_ERR_FORMAT;
    *ret_length = (size_t)(s.at - (const uint8_t *)blob);
    return CDACQ_OK;
}

static void put_entry_method(struct namer *n, const struct metadata *m, const struct name_entry_point *entry)
{
    struct metadata_method_def method;
    struct metadata_member_ref member;
    uint32_t rid = metadata_rid(entry->token), signature;
    if (metadata_token_table(entry->token) == METADATA_MEMBER_REF) {
        if (!namer_check(n, metadata_member_ref(m, rid, &member)))
            return;
        if (!entry->owner)
            put_member_parent(n, m, member.parent);
        text_putc(n->text, '.');
        namer_put_string(n, m, member.name);
    } else if (entry->owner) {
        text_putc(n->text, '.');
        if (namer_check(n, metadata_method_def(m, rid, &method)))
            namer_put_string(n, m, method.name);
    } else {
        put_method_def_name(n, m, rid, &signature);
    }
}

enum cdacq_status name_entry_point(const struct name_source *source, const struct name_entry_point *entry,
                                   struct text *ret)
{
    struct namer n = namer_begin(source, ret);
    const struct metadata *context = namer_module(&n, entry->context), *m = namer_module(&n, entry->module);
    if (!entry->token)
        namer_fail(&n, CDACQ_ERR_FORMAT);
    if (n.status == CDACQ_OK && entry->owner) {
        struct signature owner = signature_at(entry->owner, entry->owner_length, 0, false);
        put_type(&n, &owner, context);
        namer_good(&n, &owner);
    }
    if (n.status == CDACQ_OK)
        put_entry_method(&n, m, entry);
    struct signature s = signature_at(entry->arguments, entry->arguments_length, 0, false);
    for (uint32_t i = 0; i < entry->argument_count && n.status == CDACQ_OK; i++) {
        text_puts(n.text, i == 0 ? "<" : ", ");
        put_type(&n, &s, n.outer);
        namer_good(&n, &s);
    }
    if (entry->argument_count)
        text_putc(n.text, '>');
    return namer_end(&n);
}
