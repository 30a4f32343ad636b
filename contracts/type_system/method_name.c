#include "contracts/type_system/method_name.h"

#include <inttypes.h>

#include "contracts/execution_manager/jit_manager.h"
#include "contracts/module_cache.h"
#include "contracts/native_aot/aot_name.h"
#include "contracts/ready_to_run/r2r_image.h"
#include "contracts/type_system/method_desc.h"
#include "contracts/type_system/type_handle.h"
#include "formats/names/names.h"
#include "formats/names/signature.h"
#include "formats/names/state_machine.h"
#include "formats/names/spelling.h"
#include "util/error.h"

/* What the functions of a name_source take. */
struct source_context {
    struct module_cache *cache;
    const struct r2r_entries *entries; /* of a composite image; otherwise NULL */
    struct cdacq_error *doubt;
    bool part_lost; /* the doubt is about more than type arguments */
};

static void feed_handle(void *context, uint64_t handle, struct namer *n)
{
    const struct source_context *source = context;
    type_handle_feed(source->cache, handle, n);
}

static enum cdacq_status find_definition(void *context, uint64_t handle, const struct metadata **ret_metadata,
                                         uint32_t *ret_token)
{
    const struct source_context *source = context;
    return type_handle_definition(source->cache, handle, ret_metadata, ret_token);
}

static const char arguments_lost[] = "type arguments are not known";

/* Keeps the first reason why something is not known; afterwards the reader can go on. `module` may be NULL. */
static void note_doubt(struct module_cache *cache, enum cdacq_status status, const struct module *module,
                       const char *what, struct cdacq_error *doubt)
{
    struct reader *reader = cache->reader;
    struct cdacq_error reason;
    if (doubt->status >= 0) {
        if (reader_failed(reader))
            status = reader_status(reader, &reason);
        else if (!module_cache_report(cache, status, module, &reason))
            error_set(&reason, status, 0, "%s", cdacq_status_text(status));
        error_set(doubt, status, reason.address, "%s: %s", what, reason.message);
    }
    reader_recover(reader, FAILURE_ANY);
}

static void note_lost_argument(void *context, enum cdacq_status status)
{
    const struct source_context *source = context;
    note_doubt(source->cache, status, NULL, arguments_lost, source->doubt);
}

static void note_lost_part(void *context, enum cdacq_status status)
{
    struct source_context *source = context;
    source->part_lost = true;
    note_doubt(source->cache, status, NULL, "a part of the name is not known", source->doubt);
}

/* Whether a module exists and has metadata; *err says what is missing. */
static bool has_metadata(const struct module *module, struct cdacq_error *err)
{
    if (!module)
        error_set(err, CDACQ_ERR_MODULE, 0, "the method has no module, or there are too many");
    else if (module->status < 0)
        *err = module->error;
    return module && module->status >= 0;
}

/* Whether a method or its type has type parameters. True if that is not known. */
static bool is_generic(const struct metadata *metadata, uint32_t token)
{
    struct metadata_generics of_type, of_method;
    uint32_t type;
    return metadata_method_owner(metadata, metadata_rid(token), &type) < 0 ||
           metadata_generics(metadata, type, &of_type) < 0 || metadata_generics(metadata, token, &of_method) < 0 ||
           of_type.count || of_method.count;
}

static void name_in_module(const struct method_namer *namer, struct module *module, uint32_t token,
                           const struct name_instance *instance, struct method_name *ret)
{
    ret->module = module;
    ret->token = module ? token : 0;
    if (!has_metadata(module, &ret->error))
        return;
    const struct metadata *metadata = module_metadata(module, token);
    struct source_context context = {.cache = namer->cache, .doubt = &ret->doubt};
    struct name_source source = {.metadata = metadata,
                                 .core = namer->core,
                                 .argument_lost = note_lost_argument,
                                 .part_lost = note_lost_part,
                                 .context = &context};
    enum cdacq_status status = name_method(&source, namer->spelling, token, instance, &ret->text);
    if (status < 0 && instance && namer->spelling->formal) {
        note_doubt(namer->cache, status, module, arguments_lost, &ret->doubt);
        status = name_method(&source, namer->spelling, token, NULL, &ret->text);
    }
    if (reader_failed(namer->cache->reader))
        reader_status(namer->cache->reader, &ret->error);
    else if (status < 0)
        module_cache_report(namer->cache, status, module, &ret->error);
    else if (ret->doubt.status < 0 && !context.part_lost && !is_generic(metadata, token))
        ret->doubt = (struct cdacq_error){0};
    ret->unverified |= module->unverified;
}

/* The assembly of the `rid`-th AssemblyRef of a composite image's manifest metadata, or NULL. */
static struct module *find_manifest_assembly(struct module_cache *cache, const struct r2r_entries *entries,
                                             uint32_t rid)
{
    struct metadata manifest;
    struct metadata_assembly_ref reference;
    char buffer[METADATA_STRING_CAP];
    const char *name;
    size_t length;
    struct bytes bytes = bytes_of_buffer(entries->manifest.bytes, entries->manifest.size);
    if (!entries->manifest.size || metadata_open(&bytes, &manifest) < 0 ||
        metadata_assembly_ref(&manifest, rid, &reference) < 0 ||
        metadata_string(&manifest, reference.name, buffer, &name, &length) < 0 ||
        !range_fits((uint64_t)(rid - 1) * 16, 16, entries->mvids.size))
        return NULL;
    return module_cache_find_assembly(cache, name, length, entries->mvids.bytes + (size_t)(rid - 1) * 16);
}

static void name_in_component(const struct method_namer *namer, const struct code_block *block, struct method_name *ret)
{
    struct module_cache *cache = namer->cache;
    const struct r2r_entries *entries = r2r_image_entries(block->image, cache->reader);
    struct module *module = entries ? find_manifest_assembly(cache, entries, block->component + 1u) : NULL;
    if (module)
        name_in_module(namer, module, metadata_token(METADATA_METHOD_DEF, block->entry), NULL, ret);
    else if (!module_cache_report(cache, CDACQ_ERR_MODULE, NULL, &ret->error))
        error_set(&ret->error, CDACQ_ERR_MODULE, block->start,
                  "the method at 0x%" PRIx64 " belongs to assembly %u of a composite image, which is not mapped",
                  block->start, block->component);
}

/* ---- What a method is instantiated over, by its MethodDesc ---- */

struct instance_context {
    struct module_cache *cache;
    uint64_t method_table, type_arguments, method_arguments;
};

static void feed_owner(void *context, struct namer *n)
{
    const struct instance_context *instance = context;
    type_handle_feed(instance->cache, instance->method_table, n);
}

static void feed_argument(void *context, bool of_method, uint32_t index, struct namer *n)
{
    const struct instance_context *instance = context;
    type_handle_feed_argument(instance->cache, of_method ? instance->method_arguments : instance->type_arguments, index,
                              n);
}

/* What the spelling shows of the instance. Its functions take `context`. */
static struct name_instance instance_of(struct instance_context *context, const struct method_namer *namer,
                                        const struct method_desc *method, struct cdacq_error *doubt)
{
    struct name_instance instance = {.argument = feed_argument, .context = context};
    *context = (struct instance_context){.cache = namer->cache, .method_table = method->method_table};
    if (!namer->spelling->formal)
        instance.owner = feed_owner;
    if (namer->spelling->arguments) {
        type_handle_arguments(namer->cache, method->method_table, &context->type_arguments, &instance.type_count);
        instance.method_count = method_desc_arguments(namer->cache->reader, method, &context->method_arguments);
    }
    if (namer->spelling->formal && reader_failed(namer->cache->reader)) /* which does without them */
        note_doubt(namer->cache, CDACQ_OK, NULL, arguments_lost, doubt);
    return instance;
}

/* ---- By a MethodDesc ---- */

/* The module whose tokens a dynamic method's signature holds; the source gets its metadata if it has any. */
static struct module *find_signature_module(struct module_cache *cache, const struct method_desc *method,
                                            struct name_source *source)
{
    uint64_t address = read_field(cache->reader, method->method_table, F_MethodTable_Module);
    struct module *module = reader_failed(cache->reader) ? NULL : module_cache_get(cache, address);
    source->metadata = module && module->status >= 0 ? &module->metadata : NULL;
    return module;
}

/* Without a signature, that could not be read. *ret_module is the module that was needed, if any. */
static enum cdacq_status name_signature(const struct method_namer *namer, const struct method_desc *method,
                                        struct dynamic_method named, const struct module **ret_module,
                                        struct method_name *ret)
{
    struct reader *reader = namer->cache->reader;
    if (!named.signature || reader_failed(reader))
        return CDACQ_ERR_MEMORY;
    struct instance_context context;
    struct cdacq_error not_shown = {0}; /* a dynamic method has no type parameters, and its type is not in its name */
    struct name_instance instance = instance_of(&context, namer, method, &not_shown);
    struct source_context source_context = {.cache = namer->cache, .doubt = &ret->doubt};
    struct name_source source = {
        .core = namer->core,
        .type_handle = feed_handle,
        .type_definition = find_definition,
        .pointer_size = reader->pointer_size,
        .big_endian = reader->big_endian,
        .argument_lost = note_lost_argument,
        .part_lost = note_lost_part,
        .context = &source_context,
    };
    if (reader_failed(reader))
        return CDACQ_ERR_MEMORY;
    named.instance = &instance;
    enum cdacq_status status = name_dynamic(&source, namer->spelling, &named, &ret->text);
    if (status == CDACQ_ERR_MODULE && (*ret_module = find_signature_module(namer->cache, method, &source)) &&
        source.metadata)
        status = name_dynamic(&source, namer->spelling, &named, &ret->text);
    return status;
}

/*
 * DynamicMethod and IL stubs have a name and a signature instead of a token. The signature's tokens belong to the
 * module of their MethodTable. A formal name may lack parameters: `(...)`.
 */
static void name_dynamic_method(const struct method_namer *namer, const struct method_desc *method,
                                struct method_name *ret)
{
    struct module_cache *cache = namer->cache;
    struct reader *reader = cache->reader;
    CLEANUP_FREE char *name = NULL;
    struct window signature = {0};
    const struct module *module = NULL;
    if (!method_desc_dynamic_name(reader, method, &name)) {
        reader_status(reader, &ret->error);
        return;
    }
    bool has_signature = method_desc_stored_signature(reader, method, &signature);
    const char *owner = namer->spelling->stub_class && method_desc_is_il_stub(reader, method)
                            ? namer->spelling->stub_class
                            : namer->spelling->dynamic_class;
    const struct dynamic_method named = {
        .owner = owner, .name = name, .signature = signature.bytes, .length = signature.size};
    enum cdacq_status status = name_signature(namer, method, named, &module, ret);
    bool needed = module && module->status < 0 && status == CDACQ_ERR_MODULE;
    if (namer->spelling->formal) {
        reader_recover(reader, FAILURE_ANY);
        if (status < 0 && !ret->text.broken) {
            text_printf(&ret->text, "%s.", owner);
            text_escape(&ret->text, name, strlen(name));
            text_puts(&ret->text, "(...)");
            ret->doubt = (struct cdacq_error){0}; /* the name says what it lacks */
        }
    } else if (reader_failed(reader)) {
        reader_status(reader, &ret->error);
    } else if (status < 0 && !module_cache_report(cache, status, needed ? module : NULL, &ret->error)) {
        error_set(&ret->error, status, method->address, "the dynamic method at 0x%" PRIx64 ": its signature: %s",
                  method->address, cdacq_status_text(status));
    }
    if (has_signature)
        window_deinit(&signature);
}

static enum name_result result_of(struct method_async_kind kind)
{
    return !kind.is_variant ? NAME_RESULT_DECLARED : kind.drops_result ? NAME_RESULT_VOID : NAME_RESULT_OF_TASK;
}

static void name_by_method_desc(const struct method_namer *namer, uint64_t address, struct method_name *ret)
{
    struct method_desc method;
    struct instance_context context;
    if (!method_desc_read(namer->cache->reader, address, &method)) {
        reader_status(namer->cache->reader, &ret->error);
        return;
    }
    if (method.classification == METHOD_DYNAMIC) {
        name_dynamic_method(namer, &method, ret);
        return;
    }
    struct name_instance instance = instance_of(&context, namer, &method, &ret->doubt);
    if (namer->spelling->result)
        instance.result = result_of(method_desc_async_kind(namer->cache->reader, address));
    name_in_module(namer, module_cache_get(namer->cache, method.module), method.token, &instance, ret);
}

void method_name_of_desc(const struct method_namer *namer, uint64_t method_desc, struct method_name *ret)
{
    name_by_method_desc(namer, method_desc, ret);
    if (ret->error.status < 0)
        text_clear(&ret->text);
}

/* ---- By a state machine ---- */

/* The arguments of a state machine's type: those of the type around its method, then those of the method. */
struct machine_context {
    struct module_cache *cache;
    uint64_t arguments;
    uint32_t type_count;
};

static void feed_machine_argument(void *context, bool of_method, uint32_t index, struct namer *n)
{
    const struct machine_context *machine = context;
    type_handle_feed_argument(machine->cache, machine->arguments, of_method ? machine->type_count + index : index, n);
}

/* The number of type parameters of the type that declares a method. */
static uint32_t arity_of_owner(const struct metadata *metadata, uint32_t token)
{
    struct metadata_generics generics;
    uint32_t type;
    return metadata_method_owner(metadata, metadata_rid(token), &type) == CDACQ_OK &&
                   metadata_generics(metadata, metadata_token(METADATA_TYPE_DEF, type), &generics) == CDACQ_OK
               ? generics.count
               : 0;
}

void method_name_of_state_machine(const struct method_namer *namer, uint64_t method_table, uint32_t token,
                                  struct method_name *ret)
{
    struct module_cache *cache = namer->cache;
    struct machine_context context = {.cache = cache};
    const struct metadata *metadata;
    uint32_t type, method, count = 0;
    struct module *module = module_cache_get(cache, read_field(cache->reader, method_table, F_MethodTable_Module));
    if (type_handle_definition(cache, method_table, &metadata, &type) == CDACQ_OK &&
        namer->spelling == &name_spelling_csharp &&
        state_machine_method(metadata, metadata_rid(type), &method) == CDACQ_OK && method)
        token = metadata_token(METADATA_METHOD_DEF, method);
    if (type_handle_arguments(cache, method_table, &context.arguments, &count) != CDACQ_OK)
        count = 0;
    if (!reader_failed(cache->reader) && module && module->status >= 0)
        context.type_count = MIN(arity_of_owner(module_metadata(module, token), token), count);
    const struct name_instance instance = {.argument = feed_machine_argument,
                                           .type_count = context.type_count,
                                           .method_count = count - context.type_count,
                                           .context = &context};
    name_in_module(namer, module, token, count ? &instance : NULL, ret);
    if (ret->error.status < 0)
        text_clear(&ret->text);
}

/* ---- By the image's tables ---- */

/* Modules of a composite image are numbered by the manifest: 1 is itself, then its AssemblyRefs follow. */
static const struct metadata *composite_module(void *context, uint32_t index)
{
    const struct source_context *source = context;
    struct module *module = index > 1 ? find_manifest_assembly(source->cache, source->entries, index - 1) : NULL;
    return module ? &module->metadata : NULL;
}

/* Why no MethodDesc names a block. */
static const char *why_no_method_desc(const struct code_block *block)
{
    return block->prepared_unknown ? "whether it was prepared cannot be read" : "it was not prepared";
}

/* The entry of an instance. False, with an error: it cannot be read. */
static bool read_instance(struct reader *reader, const struct code_block *block, const struct r2r_entries **ret_entries,
                          struct name_entry_point *ret, struct cdacq_error *err)
{
    const struct r2r_entries *entries = r2r_image_entries(block->image, reader);
    if (!entries) {
        reader_status(reader, err);
        return false;
    }
    const struct native_section *section = &entries->instances;
    if (block->entry >= section->size ||
        name_entry_point_decode(section->bytes + block->entry, section->size - block->entry, ret) < 0 || !ret->token) {
        error_set(err, CDACQ_ERR_CORRUPT, block->start, "the image's entry for 0x%" PRIx64 " is malformed",
                  block->start);
        return false;
    }
    *ret_entries = entries;
    return true;
}

/*
 * The module of an instance's tokens: that of the image or, in a composite image, which has none, that of the method.
 * NULL: the latter is not known. *ret_is_own: the module defines the method.
 */
static struct module *module_of_instance(struct module_cache *cache, const struct code_block *block,
                                         const struct r2r_entries *entries, const struct name_entry_point *method,
                                         bool *ret_is_own)
{
    bool is_definition = (!method->owner || metadata_token_table(method->owner_token) == METADATA_TYPE_DEF) &&
                         metadata_token_table(method->token) == METADATA_METHOD_DEF;
    struct module *module = NULL;
    if (!entries->components)
        module = module_cache_get(cache, block->image->module);
    else if (is_definition && method->module > 1)
        module = find_manifest_assembly(cache, entries, method->module - 1);
    *ret_is_own = is_definition && module && (entries->components || method->module == 0);
    return module;
}

/* An instance: its signature has the method, mostly by a token of the image itself. */
static void name_by_instance(const struct method_namer *namer, const struct code_block *block, struct method_name *ret)
{
    struct module_cache *cache = namer->cache;
    const struct r2r_entries *entries;
    struct name_entry_point method;
    bool is_own;
    if (!read_instance(cache->reader, block, &entries, &method, &ret->error))
        return;
    bool composite = entries->components;
    struct module *module = module_of_instance(cache, block, entries, &method, &is_own);
    if (is_own) {
        ret->module = module;
        ret->token = method.token;
    }
    if (composite && !module) {
        if (!module_cache_report(cache, CDACQ_ERR_MODULE, NULL, &ret->error))
            error_set(&ret->error, CDACQ_ERR_MODULE, block->start,
                      "the method at 0x%" PRIx64 " is one of an assembly that is not mapped, and %s", block->start,
                      why_no_method_desc(block));
        return;
    }
    if (!has_metadata(module, &ret->error))
        return;
    struct source_context context = {.cache = cache, .entries = entries, .doubt = &ret->doubt};
    struct name_source source = {.metadata = composite ? NULL : &module->metadata,
                                 .module = composite ? composite_module : NULL,
                                 .argument_lost = note_lost_argument,
                                 .part_lost = note_lost_part,
                                 .context = &context};
    ret->unverified |= module->unverified;
    enum cdacq_status status = name_entry_point(&source, namer->spelling, &method, &ret->text);
    if (status < 0 && is_own && namer->spelling->formal) {
        note_doubt(cache, status, module, arguments_lost, &ret->doubt);
        name_in_module(namer, module, method.token, NULL, ret);
    } else if (status < 0 &&
               !module_cache_report(cache, status, status == CDACQ_ERR_MODULE ? NULL : module, &ret->error))
        error_set(&ret->error, CDACQ_ERR_MODULE, block->start,
                  "the method at 0x%" PRIx64 " is declared in another module, and %s", block->start,
                  why_no_method_desc(block));
}

static void set_not_named(const struct code_block *block, struct method_name *ret)
{
    error_set(&ret->error, CDACQ_ERR_MODULE, block->start,
              "the method at 0x%" PRIx64 ": %s, and its image does not name it here", block->start,
              why_no_method_desc(block));
}

/*
 * A stub by which an async method continues. When the runtime prepares the async method, it makes a dynamic method of
 * this name for the stub, in the module of the async method. Which module of a composite image that is, is not known.
 * Source: dotnet/runtime src/coreclr/vm/readytoruninfo.cpp.
 */
static void name_resumption_stub(const struct method_namer *namer, const struct code_block *block,
                                 struct method_name *ret)
{
    static const uint8_t signature[] = {0, 2, ELEMENT_OBJECT, ELEMENT_OBJECT, ELEMENT_BYREF, ELEMENT_U1};
    struct module_cache *cache = namer->cache;
    const struct r2r_entries *entries = r2r_image_entries(block->image, cache->reader);
    struct module *module = entries && !entries->components ? module_cache_get(cache, block->image->module) : NULL;
    struct name_source source = {.metadata = module && module->status >= 0 ? &module->metadata : NULL};
    const struct name_spelling *spelling = namer->spelling;
    const struct dynamic_method named = {.owner = spelling->stub_class ? spelling->stub_class : spelling->dynamic_class,
                                         .name = "IL_STUB_AsyncResume",
                                         .signature = signature,
                                         .length = sizeof signature};
    ret->unverified |= module && module->unverified;
    if (reader_failed(cache->reader)) {
        reader_status(cache->reader, &ret->error);
        return;
    }
    enum cdacq_status status = name_dynamic(&source, spelling, &named, &ret->text);
    if (status < 0 && !module_cache_report(cache, status, module, &ret->error))
        set_not_named(block, ret);
}

/* ---- By the tables of a NativeAOT image ---- */

static void name_by_aot(const struct method_namer *namer, const struct code_block *block, struct method_name *ret)
{
    struct reader *reader = namer->cache->reader;
    enum aot_name_style style = namer->spelling->owner == &csharp_types ? AOT_CSHARP : AOT_STACK_TRACE;
    enum cdacq_status status = aot_name_method(block->aot, reader, block->start, style, &ret->text);
    if (status == CDACQ_NOT_MANAGED)
        error_set(&ret->error, CDACQ_ERR_MODULE, block->start,
                  "the method at 0x%" PRIx64 ": the program has no stack trace metadata of it", block->start);
    else if (reader_failed(reader))
        reader_status(reader, &ret->error);
    else if (status < 0)
        error_set(&ret->error, status, block->start, "the method at 0x%" PRIx64 ": its stack trace metadata: %s",
                  block->start, cdacq_status_text(status));
}

/* By the image's tables or by the MethodDesc, whichever says more about this block. */
static void form_name(const struct method_namer *namer, const struct code_block *block, struct method_name *ret)
{
    struct module_cache *cache = namer->cache;
    reader_begin(cache->reader, FUEL_NAME);
    cache->failed = NULL;
    if (code_block_aot(block))
        name_by_aot(namer, block, ret);
    else if (block->entry_kind == ENTRY_METHODDEF)
        name_in_module(namer, module_cache_get(cache, block->image->module),
                       metadata_token(METADATA_METHOD_DEF, block->entry), NULL, ret);
    else if (block->method_desc && namer->runtime_types)
        name_by_method_desc(namer, block->method_desc, ret);
    else if (block->entry_kind == ENTRY_INSTANCE)
        name_by_instance(namer, block, ret);
    else if (block->entry_kind == ENTRY_COMPONENT)
        name_in_component(namer, block, ret);
    else if (block->entry_kind == ENTRY_RESUMPTION_STUB)
        name_resumption_stub(namer, block, ret);
    else if (block->method_desc)
        error_set(&ret->error, CDACQ_ERR_CONTRACT, block->method_desc,
                  "the target does not describe MethodDescs: no name for 0x%" PRIx64, block->method_desc);
    else
        set_not_named(block, ret);
    ret->unverified |= reader_unverified(cache->reader);
    if (ret->text.broken && ret->error.status >= 0)
        error_set(&ret->error, CDACQ_ERR_FUEL, block->start,
                  "the method at 0x%" PRIx64 ": its name is longer than %d bytes, or memory ran out", block->start,
                  (int)TEXT_CAP);
    if (ret->error.status < 0)
        text_clear(&ret->text);
}

/* Reads from the image's tables which method a block is. */
static void read_entry(struct reader *reader, struct code_block *block)
{
    const struct r2r_image *image = block->image;
    const struct r2r_entries *entries = r2r_image_entries(image, reader);
    uint64_t function = r2r_image_function_at(image, block->runtime_functions);
    if (entries && function < image->functions.count)
        block->entry_kind = (uint8_t)r2r_entry(entries, (uint32_t)function, &block->entry, &block->component);
}

static bool lacks_something(const struct method_name *name)
{
    return name->error.status < 0 || name->doubt.status < 0;
}

/* One of the runtime's map and the tables of the image has named the block: whether the other names another method. */
static bool is_contradicted(const struct method_namer *namer, const struct code_block *block)
{
    struct reader *reader = namer->cache->reader;
    const struct r2r_image *image = block->image;
    struct method_desc method;
    bool differs = false;
    if (!image || !block->method_desc || !namer->runtime_types)
        return false;
    reader_begin(reader, FUEL_NAME);
    if (method_desc_read(reader, block->method_desc, &method)) {
        uint32_t rid = metadata_rid(method.token);
        uint64_t function = r2r_image_function_at(image, block->runtime_functions);
        if (block->entry_kind == ENTRY_METHODDEF)
            differs = method.module != image->module || rid != block->entry;
        else if (method.module == image->module && function < image->functions.count)
            differs = r2r_image_contradicts(image, reader, (uint32_t)function, rid);
    }
    return differs && !reader_failed(reader);
}

void method_name_form(const struct method_namer *namer, const struct code_block *block, struct method_name *ret)
{
    struct reader *reader = namer->cache->reader;
    form_name(namer, block, ret);
    if (ret->error.status >= 0 && is_contradicted(namer, block)) {
        text_deinit(&ret->text);
        *ret = (struct method_name){.unverified = ret->unverified};
        error_set(&ret->error, CDACQ_ERR_CORRUPT, block->start,
                  "the method at 0x%" PRIx64 ": the runtime's map of entry points has another one than the image",
                  block->start);
        return;
    }
    if (!lacks_something(ret) || !block->image || !block->method_desc || block->entry_kind == ENTRY_METHODDEF)
        return;
    /* The MethodDesc, or what it leads to, is missing: try the image's tables. */
    struct code_block named = *block;
    reader_begin(reader, FUEL_NAME);
    if (named.entry_kind == ENTRY_NONE)
        read_entry(reader, &named);
    bool unverified = reader_unverified(reader);
    if (named.entry_kind == ENTRY_NONE || reader_failed(reader))
        return;
    struct method_name by_tables = {0};
    named.method_desc = 0;
    form_name(namer, &named, &by_tables);
    by_tables.unverified |= unverified;
    if (ret->error.status >= 0 && lacks_something(&by_tables)) {
        text_deinit(&by_tables.text);
        return;
    }
    if (!by_tables.module) { /* a reference, which does not tell the definition */
        by_tables.module = ret->module;
        by_tables.token = ret->token;
        by_tables.unverified |= ret->unverified;
    }
    text_deinit(&ret->text);
    *ret = by_tables;
}
