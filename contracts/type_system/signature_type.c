#include "contracts/type_system/signature_type.h"

#include "contracts/lookup_map.h"
#include "contracts/type_system/core_type.h"
#include "contracts/type_system/method_table_flags.h"
#include "contracts/type_system/type_handle.h"
#include "contracts/type_system/type_table.h"
#include "formats/metadata_members.h"
#include "formats/names/spelling.h"
#include "formats/names/type_walk.h"

enum {
    DEPTH_MAX = 16,   /* types within types that are compared */
    MODULES_MAX = 16, /* whose tables may have an instance */
};

uint64_t signature_scope_argument(const struct signature_scope *scope, bool of_method, uint32_t number)
{
    struct reader *reader = scope->cache->reader;
    uint64_t arguments = of_method ? scope->method_arguments : scope->type_arguments;
    uint32_t count = of_method ? scope->method_count : scope->type_count;
    return number < count ? read_pointer(reader, arguments + (uint64_t)number * reader->pointer_size) : 0;
}

/* ---- Definitions ---- */

/* Whether a handle is of a type of the core library with the name of a TypeRef. */
static bool is_core_reference(const struct signature_scope *scope, uint64_t handle, uint32_t token)
{
    char space_buffer[METADATA_STRING_CAP], name_buffer[METADATA_STRING_CAP];
    const char *space, *name;
    size_t space_length, name_length;
    const struct metadata *metadata;
    struct metadata_type_ref reference;
    struct metadata_type_def definition;
    uint32_t type;
    bool equal = false;
    if (read_field(scope->cache->reader, handle, F_MethodTable_Module) != core_module(scope->cache->reader) ||
        type_handle_definition(scope->cache, handle, &metadata, &type) != CDACQ_OK ||
        metadata_type_ref(scope->metadata, metadata_rid(token), &reference) != CDACQ_OK ||
        metadata_token_table(reference.scope) == METADATA_TYPE_REF || !reference.namespace_name ||
        metadata_type_def(metadata, metadata_rid(type), &definition) != CDACQ_OK ||
        metadata_string(scope->metadata, reference.namespace_name, space_buffer, &space, &space_length) != CDACQ_OK)
        return false;
    if (metadata_string_equals(metadata, definition.namespace_name, space, space_length, &equal) != CDACQ_OK || !equal)
        return false;
    return metadata_string(scope->metadata, reference.name, name_buffer, &name, &name_length) == CDACQ_OK &&
           metadata_string_equals(metadata, definition.name, name, name_length, &equal) == CDACQ_OK && equal;
}

/* What the module has loaded for a TypeDef or TypeRef. 0: nothing. */
static uint64_t loaded_type(const struct signature_scope *scope, uint32_t token)
{
    struct reader *reader = scope->cache->reader;
    switch (metadata_token_table(token)) {
    case METADATA_TYPE_DEF:
        return lookup_map_element(reader, scope->module, F_Module_TypeDefToMethodTableMap, metadata_rid(token));
    case METADATA_TYPE_REF:
        return lookup_map_element(reader, scope->module, F_Module_TypeRefToMethodTableMap, metadata_rid(token));
    default:
        return 0;
    }
}

static bool equal_definitions(struct module_cache *cache, uint64_t a, uint64_t b)
{
    const struct metadata *metadata;
    uint32_t token_a, token_b;
    struct reader *reader = cache->reader;
    return a == b || (read_field(reader, a, F_MethodTable_Module) == read_field(reader, b, F_MethodTable_Module) &&
                      type_handle_definition(cache, a, &metadata, &token_a) == CDACQ_OK &&
                      type_handle_definition(cache, b, &metadata, &token_b) == CDACQ_OK && token_a == token_b);
}

/* Whether a MethodTable is of the TypeDef or TypeRef, or of an instance of it. */
static bool is_definition(const struct signature_scope *scope, uint64_t method_table, uint32_t token)
{
    uint64_t loaded = loaded_type(scope, token);
    if (loaded)
        return !(loaded & TYPE_DESC_TAG) && equal_definitions(scope->cache, loaded, method_table);
    return metadata_token_table(token) == METADATA_TYPE_REF && is_core_reference(scope, method_table, token);
}

/* ---- Instances ---- */

static bool is_primitive(const struct signature_scope *scope, uint64_t method_table, uint8_t element)
{
    struct text text = {0};
    const struct name_source source = {0};
    struct namer n = namer_begin(&source, &type_spelling_reflection, &text), expected = n;
    const struct metadata *metadata;
    struct text word = {0};
    uint32_t token;
    bool equal = false;
    expected.text = &word;
    if (type_handle_definition(scope->cache, method_table, &metadata, &token) == CDACQ_OK &&
        type_primitive(&expected, element)) {
        type_handle_feed(scope->cache, method_table, &n);
        equal = namer_end(&n) == CDACQ_OK && word.data && text_equals(&text, word.data);
    }
    text_deinit(&text);
    text_deinit(&word);
    return equal;
}

static bool is_vector(const struct signature_scope *scope, uint64_t method_table)
{
    uint32_t flags = (uint32_t)read_field(scope->cache->reader, method_table, F_MethodTable_MTFlags);
    return (flags & MT_CATEGORY_MASK) == MT_CATEGORY_SZARRAY;
}

static bool matches(const struct signature_scope *scope, uint64_t handle, struct signature *s, unsigned depth);

/* Whether the arguments of an instance are the `count` types at the cursor. */
static bool match_arguments(const struct signature_scope *scope, uint64_t method_table, uint32_t count,
                            struct signature *s, unsigned depth)
{
    struct reader *reader = scope->cache->reader;
    uint64_t arguments;
    uint32_t found;
    if (type_handle_arguments(scope->cache, method_table, &arguments, &found) != CDACQ_OK || found != count)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!matches(scope, read_pointer(reader, arguments + (uint64_t)i * reader->pointer_size), s, depth + 1))
            return false;
    return true;
}

/* Whether a type is the one at the cursor, which is taken if it is. */
static bool matches(const struct signature_scope *scope, uint64_t handle, struct signature *s, unsigned depth)
{
    struct reader *reader = scope->cache->reader;
    if (depth > DEPTH_MAX || !handle || handle & TYPE_DESC_TAG || !reader_step(reader, "types of a signature"))
        return false;
    signature_skip_modifiers(s);
    uint8_t element = signature_byte(s);
    uint32_t token;
    switch (element) {
    case ELEMENT_CLASS:
    case ELEMENT_VALUETYPE:
        token = signature_token(s);
        return !s->failed && is_definition(scope, handle, token);
    case ELEMENT_VAR:
    case ELEMENT_MVAR:
        return signature_scope_argument(scope, element == ELEMENT_MVAR, signature_uint(s)) == handle;
    case ELEMENT_GENERICINST:
        (void)signature_byte(s);
        token = signature_token(s);
        return !s->failed && is_definition(scope, handle, token) &&
               match_arguments(scope, handle, signature_uint(s), s, depth);
    case ELEMENT_SZARRAY:
        return is_vector(scope, handle) && match_arguments(scope, handle, 1, s, depth);
    default:
        return !s->failed && is_primitive(scope, handle, element);
    }
}

/* A type of a module's table that is the one at the cursor. 0: there is none, or the runtime does not describe it. */
static uint64_t search_table(const struct signature_scope *scope, uint64_t module, uint64_t definition,
                             const struct signature *type)
{
    struct reader *reader = scope->cache->reader;
    struct type_table_position position;
    uint64_t defined_by = definition ? read_field(reader, definition, F_MethodTable_Module) : 0, handle;
    if (!type_table_begin(reader, module, &position))
        return 0;
    while (type_table_next(reader, &position, &handle)) {
        struct signature copy = *type;
        if (handle && !(handle & TYPE_DESC_TAG) &&
            (!defined_by || read_field(reader, handle, F_MethodTable_Module) == defined_by) &&
            matches(scope, handle, &copy, 0))
            return handle;
        reader_recover(reader, FAILURE_BUT_FUEL); /* of this entry alone */
    }
    return 0;
}

/* A Module at most once. */
struct module_set {
    uint64_t items[MODULES_MAX];
    unsigned count;
};

static void add_address(struct module_set *set, uint64_t module)
{
    for (unsigned i = 0; i < set->count; i++)
        if (set->items[i] == module)
            return;
    if (module && set->count < MODULES_MAX)
        set->items[set->count++] = module;
}

static void add_module(struct reader *reader, struct module_set *set, uint64_t method_table)
{
    if (method_table && !(method_table & TYPE_DESC_TAG) && set->count < MODULES_MAX)
        add_address(set, read_field(reader, method_table, F_MethodTable_Module));
}

/* Adds the modules of all types in a signature: the runtime keeps an instance with one of them. */
static void add_modules(const struct signature_scope *scope, struct signature s, struct module_set *set)
{
    struct reader *reader = scope->cache->reader;
    while (s.at < s.end && !s.failed && reader_step(reader, "types of a signature")) {
        signature_skip_modifiers(&s);
        uint8_t element = signature_byte(&s);
        switch (element) {
        case ELEMENT_CLASS:
        case ELEMENT_VALUETYPE:
            add_module(reader, set, loaded_type(scope, signature_token(&s)));
            break;
        case ELEMENT_GENERICINST:
            (void)signature_byte(&s);
            add_module(reader, set, loaded_type(scope, signature_token(&s)));
            (void)signature_uint(&s);
            break;
        case ELEMENT_VAR:
        case ELEMENT_MVAR:
            add_module(reader, set, signature_scope_argument(scope, element == ELEMENT_MVAR, signature_uint(&s)));
            break;
        default:
            break;
        }
    }
    for (uint32_t i = 0; i < scope->type_count && i < MODULES_MAX; i++)
        add_module(reader, set, signature_scope_argument(scope, false, i));
    add_address(set, scope->module);
}

/* The instance at the cursor, after ELEMENT_GENERICINST. */
static uint64_t find_instance(const struct signature_scope *scope, struct signature type)
{
    struct signature s = type;
    struct module_set modules = {.count = 0};
    (void)signature_byte(&s);
    if (signature_byte(&s) != ELEMENT_VALUETYPE)
        return 0;
    uint64_t definition = loaded_type(scope, signature_token(&s)), found = 0;
    add_modules(scope, type, &modules);
    for (unsigned i = 0; i < modules.count && !found; i++)
        found = search_table(scope, modules.items[i], definition, &type);
    if (!found && core_module(scope->cache->reader))
        found = search_table(scope, core_module(scope->cache->reader), definition, &type);
    return found;
}

uint64_t signature_type_find(const struct signature_scope *scope, struct signature type)
{
    uint64_t found = 0;
    signature_skip_modifiers(&type);
    struct signature s = type;
    uint8_t element = signature_byte(&s);
    switch (element) {
    case ELEMENT_VALUETYPE:
        found = loaded_type(scope, signature_token(&s));
        break;
    case ELEMENT_VAR:
    case ELEMENT_MVAR:
        found = signature_scope_argument(scope, element == ELEMENT_MVAR, signature_uint(&s));
        break;
    case ELEMENT_GENERICINST:
        found = find_instance(scope, type);
        break;
    default:
        break;
    }
    return found & TYPE_DESC_TAG || reader_failed(scope->cache->reader) ? 0 : found;
}

/* ---- Names ---- */

bool type_handle_is_canon(struct module_cache *cache, uint64_t handle)
{
    const struct metadata *metadata;
    uint32_t token;
    bool equal = false;
    struct reader *reader = cache->reader;
    return handle && !(handle & TYPE_DESC_TAG) &&
           !(read_field(reader, handle, F_MethodTable_MTFlags) & MT_HAS_COMPONENT_SIZE) &&
           read_field(reader, handle, F_MethodTable_Module) == core_module(reader) &&
           type_handle_definition(cache, handle, &metadata, &token) == CDACQ_OK &&
           metadata_type_is(metadata, token, "System", "__Canon", &equal) == CDACQ_OK && equal;
}

/* The name of a type parameter. */
static void put_parameter(const struct signature_scope *scope, uint32_t owner, uint32_t number, struct namer *n)
{
    const struct metadata *metadata = scope->metadata;
    struct metadata_generics generics;
    struct metadata_generic_param parameter;
    uint32_t rid = 0;
    if (namer_check(n, metadata_generics(metadata, owner, &generics)) &&
        namer_check(n, metadata_generics_at(metadata, &generics, number, &rid)) &&
        namer_check(n, rid ? metadata_generic_param(metadata, rid, &parameter) : CDACQ_ERR_FORMAT))
        namer_put_string(n, metadata, parameter.name);
}

static void put_argument(void *context, bool of_method, uint32_t index, struct namer *n)
{
    const struct signature_scope *scope = context;
    uint64_t arguments = of_method ? scope->method_arguments : scope->type_arguments;
    uint32_t owner = of_method ? scope->method_token : scope->type_token;
    if (index >= (of_method ? scope->method_count : scope->type_count))
        namer_fail(n, CDACQ_ERR_FORMAT);
    else if (owner && type_handle_is_canon(scope->cache, signature_scope_argument(scope, of_method, index)))
        put_parameter(scope, owner, index, n);
    else
        type_handle_feed_argument(scope->cache, arguments, index, n);
}

bool signature_type_name(const struct signature_scope *scope, struct signature *s, struct text *ret)
{
    const struct name_source source = {.metadata = scope->metadata};
    struct signature_scope copy = *scope;
    const struct name_instance instance = {.argument = put_argument,
                                           .type_count = scope->type_count,
                                           .method_count = scope->method_count,
                                           .context = &copy};
    struct type_spelling spelling = type_spelling_reflection;
    struct namer n = namer_begin(&source, &spelling, ret);
    spelling.variable = type_variable_number; /* the arguments replace the type parameters */
    n.instance = &instance;
    type_signature(&n, s, scope->metadata);
    return namer_end(&n) == CDACQ_OK;
}
