#include "contracts/variables/frame_method.h"

#include "contracts/execution_manager/block_function.h"
#include "contracts/execution_manager/block_gc_info.h"
#include "contracts/method_il.h"
#include "contracts/objects/field.h"
#include "contracts/objects/object.h"
#include "contracts/objects/value.h"
#include "contracts/ready_to_run/r2r_image.h"
#include "contracts/type_system/method_desc.h"
#include "contracts/type_system/type_handle.h"
#include "formats/names/spelling.h"
#include "formats/names/type_walk.h"

enum {
    SIGNATURE_LOCALS = 0x07, /* II.23.2.6 */
    VARIABLES_MAX = 65535,   /* what an instruction can address */
};

/* ---- Signatures ---- */

static bool open_signature(struct frame_method *method)
{
    const struct metadata *metadata = method->scope.metadata;
    struct metadata_method_def row;
    if (metadata_method_def(metadata, metadata_rid(method->token), &row) != CDACQ_OK ||
        metadata_blob_read(metadata, row.signature, &method->signature) != CDACQ_OK)
        return false;
    struct signature s = signature_at(method->signature.data, method->signature.length, 0, false);
    struct signature_header header = signature_method(&s);
    method->has_this = header.flags & SIGNATURE_HAS_THIS && !(header.flags & SIGNATURE_EXPLICIT_THIS);
    method->argument_count = header.parameter_count + method->has_this;
    return !s.failed && header.parameter_count < VARIABLES_MAX && header.kind != SIGNATURE_VARARG;
}

/* The signature of the locals. Without it, there are only arguments. */
static void open_locals(const struct module *module, struct frame_method *method)
{
    struct reader *reader = method->scope.cache->reader;
    struct metadata_stand_alone_sig row;
    uint32_t token;
    if (method->scope.metadata != &module->metadata || !method_il_local_signature(module, method->token, &token)) {
        reader_recover(reader, FAILURE_BUT_FUEL);
        return;
    }
    method->has_locals = !token;
    if (!token || metadata_stand_alone_sig(&module->metadata, metadata_rid(token), &row) != CDACQ_OK ||
        metadata_blob_read(&module->metadata, row.signature, &method->locals) != CDACQ_OK)
        return;
    struct signature s = signature_at(method->locals.data, method->locals.length, 0, false);
    bool is_of_locals = signature_byte(&s) == SIGNATURE_LOCALS;
    uint32_t count = signature_uint(&s);
    method->has_locals = is_of_locals && !s.failed && count <= VARIABLES_MAX;
    method->local_count = method->has_locals ? count : 0;
}

struct signature frame_method_parameters(const struct frame_method *method)
{
    struct signature s = signature_at(method->signature.data, method->signature.length, 0, false);
    (void)signature_method(&s);
    signature_skip_type(&s); /* what it returns */
    return s;
}

struct signature frame_method_locals(const struct frame_method *method)
{
    struct signature s = signature_at(method->locals.data, method->locals.length, 0, false);
    (void)signature_byte(&s);
    (void)signature_uint(&s);
    return s;
}

/* ---- Type arguments ---- */

static bool same_definition(struct module_cache *cache, uint64_t a, uint64_t b)
{
    const struct metadata *metadata;
    uint32_t token_a, token_b;
    struct reader *reader = cache->reader;
    return read_field(reader, a, F_MethodTable_Module) == read_field(reader, b, F_MethodTable_Module) &&
           type_handle_definition(cache, a, &metadata, &token_a) == CDACQ_OK &&
           type_handle_definition(cache, b, &metadata, &token_b) == CDACQ_OK && token_a == token_b;
}

/* Whether some argument stands for any reference type. */
static bool has_canon(const struct frame_method *method)
{
    const struct signature_scope *scope = &method->scope;
    for (unsigned of_method = 0; of_method < 2; of_method++)
        for (uint32_t i = 0; i < (of_method ? scope->method_count : scope->type_count); i++)
            if (type_handle_is_canon(scope->cache, signature_scope_argument(scope, of_method, i)))
                return true;
    return false;
}

/* Takes the arguments of a type that is the method's own or one with other arguments. */
static bool take_owner(struct frame_method *method, uint64_t owner)
{
    struct signature_scope *scope = &method->scope;
    uint64_t arguments = 0;
    uint32_t count;
    if (!owner || type_handle_arguments(scope->cache, owner, &arguments, &count) != CDACQ_OK ||
        reader_failed(scope->cache->reader))
        return false;
    method->owner = owner;
    scope->type_arguments = arguments;
    scope->type_count = count;
    return true;
}

/* The type among those that an object's type derives from that has the method. */
static uint64_t owner_of_object(const struct frame_method *method, uint64_t object)
{
    struct module_cache *cache = method->scope.cache;
    struct reader *reader = cache->reader;
    uint64_t type = object && object_is_plausible(reader, object) ? object_method_table(reader, object) : 0;
    for (unsigned i = 0; type && i < HIERARCHY_MAX && !reader_failed(reader); i++) {
        if (same_definition(cache, type, method->owner))
            return type;
        type = method_table_parent(reader, type);
    }
    return 0;
}

/* Takes the arguments of another MethodDesc of the same method. */
static bool take_method(struct frame_method *method, uint64_t address)
{
    struct module_cache *cache = method->scope.cache;
    struct reader *reader = cache->reader;
    struct method_desc desc;
    uint64_t arguments = 0;
    if (!address || !method_desc_read(reader, address, &desc) || desc.token != method->token ||
        desc.module != method->scope.module || !same_definition(cache, desc.method_table, method->owner))
        return false;
    uint32_t count = method_desc_arguments(reader, &desc, &arguments);
    if (reader_failed(reader) || count != method->scope.method_count || !take_owner(method, desc.method_table))
        return false;
    method->scope.method_arguments = arguments;
    method->scope.method_count = count;
    return true;
}

/* Finds the actual arguments of shared code. False: they are not known. */
static bool find_actual(const struct variable_frame *frame, struct frame_method *method)
{
    struct reader *reader = frame->cache->reader;
    enum gc_generic_context kind = GC_CONTEXT_NONE;
    int64_t slot = 0;
    bool from_frame_pointer;
    uint64_t base = frame->cfa;
    if (block_generic_context(reader, &method->block, &kind, &slot, &from_frame_pointer) && kind != GC_CONTEXT_NONE) {
        /* A funclet has a caller of its own, and the frame pointer of its method. */
        if (from_frame_pointer ? !variable_frame_pointer(frame, &base) : method->is_funclet || !base)
            return false;
        uint64_t word = read_pointer(reader, base + (uint64_t)slot);
        if (reader_failed(reader))
            return false;
        if (kind == GC_CONTEXT_METHOD_DESC)
            return take_method(method, word);
        uint64_t owner = kind == GC_CONTEXT_THIS ? owner_of_object(method, word)
                         : word && !(word & 3) && same_definition(frame->cache, word, method->owner) ? word
                                                                                                     : 0;
        return !reader_failed(reader) && take_owner(method, owner);
    }
    reader_recover(reader, FAILURE_BUT_FUEL);
    struct variable_place place;
    if (!method->has_this || method->owner_is_value || method->scope.method_count)
        return false;
    variable_place_find(frame, &method->places, method->is_funclet, 0, &place);
    if (place.kind == PLACE_MEMORY)
        place.bits = read_pointer(reader, place.address);
    if ((place.kind != PLACE_MEMORY && place.kind != PLACE_REGISTER) || reader_failed(reader))
        return false;
    return take_owner(method, owner_of_object(method, place.bits));
}

/* The generic arguments, as far as they are known. */
static void find_arguments(const struct variable_frame *frame, const struct method_desc *desc,
                           struct frame_method *method)
{
    struct reader *reader = frame->cache->reader;
    if (!take_owner(method, desc->method_table))
        return;
    uint64_t arguments = 0;
    method->owner_is_value = method_table_is_value(reader, method->owner);
    method->scope.method_count = method_desc_arguments(reader, desc, &arguments);
    method->scope.method_arguments = arguments;
    if (reader_failed(reader) || !has_canon(method))
        return;
    method->is_shared = !find_actual(frame, method) || has_canon(method);
    reader_recover(reader, FAILURE_BUT_FUEL); /* the shared arguments do, too */
}

/* ----------------------------------------------------------------------------------------------------------------- */

/* The module and the token of a block's method; *ret is zeroed where it has no MethodDesc. */
static struct module *find_module(const struct variable_frame *frame, struct frame_method *method,
                                  struct method_desc *ret)
{
    const struct code_block *block = &method->block;
    struct reader *reader = frame->cache->reader;
    *ret = (struct method_desc){0};
    if (block->method_desc) {
        if (!method_desc_read(reader, block->method_desc, ret) || !ret->token || ret->classification == METHOD_ARRAY)
            return NULL;
        method->token = ret->token;
        method->scope.module = ret->module;
    } else if (block->entry_kind == ENTRY_METHODDEF) {
        method->token = metadata_token(METADATA_METHOD_DEF, block->entry);
        method->scope.module = block->image->module;
    } else {
        return NULL;
    }
    return module_cache_get(frame->cache, method->scope.module);
}

bool frame_method_open(const struct variable_frame *frame, struct frame_method *ret)
{
    struct reader *reader = frame->cache->reader;
    struct method_desc desc;
    uint32_t type;
    *ret = (struct frame_method){.scope.cache = frame->cache};
    if (!execution_manager_find(frame->manager, reader, frame->pc, &ret->block) || !code_block_is_method(&ret->block) ||
        code_block_aot(&ret->block))
        return false;
    const struct module *module = find_module(frame, ret, &desc);
    if (!module || module->status < 0 || reader_failed(reader))
        return false;
    ret->scope.metadata = module_metadata(module, ret->token);
    if (!open_signature(ret))
        return false;
    open_locals(module, ret);
    ret->scope.method_token = ret->token;
    if (metadata_method_owner(ret->scope.metadata, metadata_rid(ret->token), &type) == CDACQ_OK)
        ret->scope.type_token = metadata_token(METADATA_TYPE_DEF, type);
    if (!block_is_funclet(reader, &ret->block, &ret->is_funclet))
        return false;
    if (ret->block.offset > UINT32_MAX ||
        !block_variables_read(frame->encoding, reader, &ret->block, (uint32_t)ret->block.offset, &ret->places,
                              &ret->places_problem)) {
        reader_recover(reader, FAILURE_BUT_FUEL); /* then no value is known */
        ret->places_problem = "the debug info cannot be read";
    }
    if (desc.method_table)
        find_arguments(frame, &desc, ret);
    return !reader_failed(reader);
}

void frame_method_close(struct frame_method *method)
{
    metadata_blob_deinit(&method->signature);
    metadata_blob_deinit(&method->locals);
    block_variables_deinit(&method->places);
}

bool frame_method_this_name(const struct frame_method *method, struct text *ret)
{
    const struct signature_scope *scope = &method->scope;
    const struct name_source source = {.metadata = scope->metadata};
    struct namer n = namer_begin(&source, &type_spelling_reflection, ret);
    if (method->owner && !method->is_shared)
        type_handle_feed(scope->cache, method->owner, &n);
    else if (scope->type_token)
        (void)type_definition(&n, scope->metadata, scope->type_token);
    else
        namer_fail(&n, CDACQ_ERR_MODULE);
    return namer_end(&n) == CDACQ_OK;
}
