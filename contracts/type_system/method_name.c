#include "contracts/type_system/method_name.h"

#include <inttypes.h>

#include "contracts/type_system/method_desc.h"
#include "contracts/execution_manager/r2r_jit_manager.h"
#include "contracts/type_system/type_handle.h"
#include "formats/names_runtime.h"

static enum cdacq_status append_type_handle(void *context, uint64_t handle, struct text *ret)
{
    return type_handle_name(context, handle, NAME_TYPE_CSHARP, ret);
}

static enum cdacq_status find_definition(void *context, uint64_t handle, const struct metadata **ret_metadata,
                                         uint32_t *ret_token)
{
    return type_handle_definition(context, handle, ret_metadata, ret_token);
}

/* Whether a module is there and has metadata; says what is missing of it. */
static bool has_metadata(const struct module *module, struct cdacq_error *err)
{
    if (!module)
        error_set(err, CDACQ_ERR_MODULE, 0, "the method has no module, or there are too many");
    else if (module->status < 0)
        *err = module->error;
    return module && module->status >= 0;
}

static void name_in_module(const struct method_namer *namer, struct module *module, uint32_t token,
                           const struct name_instance *instance, struct method_name *ret)
{
    ret->module = module;
    ret->token = module ? token : 0;
    if (!has_metadata(module, &ret->error))
        return;
    struct name_source source = {.metadata = &module->metadata};
    enum cdacq_status status = namer->style == CDACQ_NAMES_CSHARP
                                   ? name_method(&source, token, &ret->text)
                                   : name_method_runtime(&source, namer->style, token, instance, &ret->text);
    if (reader_failed(&namer->cache->reader->raw))
        reader_status(&namer->cache->reader->raw, &ret->error);
    else if (status < 0)
        module_cache_blame(namer->cache, status, module, &ret->error);
    ret->unverified |= module->unverified;
}

static void name_by_token(const struct method_namer *namer, uint64_t module_address, uint32_t token,
                          struct method_name *ret)
{
    name_in_module(namer, module_cache_get(namer->cache, module_address), token, NULL, ret);
}

/*
 * The assembly that the manifest metadata of a composite image calls by its `rid`-th AssemblyRef, where it is mapped.
 */
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

static void name_in_component(const struct method_namer *namer, const struct code_block *block,
                              const struct r2r_image *image, struct method_name *ret)
{
    struct module_cache *cache = namer->cache;
    const struct r2r_entries *entries = r2r_image_entries(image, cache->reader);
    struct module *module = entries ? find_manifest_assembly(cache, entries, block->component + 1u) : NULL;
    if (module)
        name_in_module(namer, module, metadata_token(METADATA_METHOD_DEF, block->entry), NULL, ret);
    else if (!module_cache_blame(cache, CDACQ_ERR_MODULE, NULL, &ret->error))
        error_set(&ret->error, CDACQ_ERR_MODULE, block->start,
                  "the method at 0x%" PRIx64 " belongs to assembly %u of a composite image, which is not mapped",
                  block->start, block->component);
}

/* ---- What a method is instantiated over, by its MethodDesc ---- */

struct instance_context {
    struct module_cache *cache;
    enum name_type_form owner_form;
    uint64_t method_table, type_arguments, method_arguments;
};

static enum cdacq_status append_owner(void *context, struct text *ret)
{
    const struct instance_context *instance = context;
    return type_handle_name(instance->cache, instance->method_table, instance->owner_form, ret);
}

static enum cdacq_status append_argument(void *context, bool of_method, uint32_t index, enum name_type_form form,
                                         struct text *ret)
{
    const struct instance_context *instance = context;
    return type_handle_argument(instance->cache, of_method ? instance->method_arguments : instance->type_arguments,
                                index, form, ret);
}

/* Whose functions take an instance_context, which `context` is. */
static struct name_instance instance_of(struct instance_context *context, const struct method_namer *namer,
                                        const struct method_desc *method)
{
    bool sos = namer->style == CDACQ_NAMES_SOS;
    struct name_instance instance = {.owner = append_owner, .argument = append_argument, .context = context};
    *context = (struct instance_context){.cache = namer->cache,
                                         .owner_form = sos ? NAME_TYPE_FULL : NAME_TYPE_BARE,
                                         .method_table = method->method_table};
    if (sos) { /* `il` does not say what it is instantiated over */
        type_handle_arguments(namer->cache, method->method_table, &context->type_arguments, &instance.type_count);
        instance.method_count = method_desc_arguments(namer->cache->reader, method, &context->method_arguments);
    }
    return instance;
}

/* ---- By a MethodDesc ---- */

/* The module that tokens in a dynamic method's signature belong to; the source gets its metadata where it has any. */
static struct module *find_signature_module(struct module_cache *cache, const struct method_desc *method,
                                            struct name_source *source)
{
    uint64_t address = read_field(cache->reader, method->method_table, F_MethodTable_Module);
    struct module *module = reader_failed(&cache->reader->raw) ? NULL : module_cache_get(cache, address);
    source->metadata = module && module->status >= 0 ? &module->metadata : NULL;
    return module;
}

/* `dynamicClass.Name(int)`, or `dynamicClass.Name(...)` where the parameters cannot be told. */
static void name_dynamic_csharp(struct name_source *source, struct module_cache *cache,
                                const struct method_desc *method, const char *name, const struct window *signature,
                                struct method_name *ret)
{
    text_puts(&ret->text, "dynamicClass.");
    text_escape(&ret->text, name, strlen(name));
    size_t length = ret->text.length;
    enum cdacq_status status = CDACQ_ERR_MEMORY;
    if (signature->bytes)
        status = name_parameters(source, signature->bytes, signature->size, &ret->text);
    if (status == CDACQ_ERR_MODULE && find_signature_module(cache, method, source) && source->metadata)
        status = name_parameters(source, signature->bytes, signature->size, &ret->text);
    if (status < 0 && !ret->text.broken) {
        ret->text.length = length;
        text_puts(&ret->text, "(...)");
    }
}

static void name_dynamic_runtime_form(const struct method_namer *namer, struct name_source *source,
                                      const struct method_desc *method, const char *name,
                                      const struct window *signature, struct method_name *ret)
{
    struct field_reader *reader = namer->cache->reader;
    struct instance_context context;
    struct name_instance instance = instance_of(&context, namer, method);
    bool sos = namer->style == CDACQ_NAMES_SOS;
    const char *owner = !sos ? "dynamicClass" : method_desc_is_il_stub(reader, method) ? "ILStubClass" : "DynamicClass";
    const struct module *module = find_signature_module(namer->cache, method, source);
    enum cdacq_status status = CDACQ_ERR_MEMORY;
    if (signature->bytes && !reader_failed(&reader->raw))
        status = name_dynamic_runtime(source, namer->style, owner, name, signature->bytes, signature->size, &instance,
                                      &ret->text);
    bool needed = module && module->status < 0 && status == CDACQ_ERR_MODULE;
    if (reader_failed(&reader->raw))
        reader_status(&reader->raw, &ret->error);
    else if (status < 0 && !module_cache_blame(namer->cache, status, needed ? module : NULL, &ret->error))
        error_set(&ret->error, status, method->address, "the dynamic method at 0x%" PRIx64 ": its signature: %s",
                  method->address, cdacq_status_text(status));
}

/*
 * DynamicMethod and IL stubs: they have no token, and carry their name and their signature with them. The signature's
 * tokens belong to the module that their MethodTable is of.
 */
static void name_dynamic(const struct method_namer *namer, const struct method_desc *method, struct method_name *ret)
{
    struct module_cache *cache = namer->cache;
    struct field_reader *reader = cache->reader;
    CLEANUP_FREE char *name = NULL;
    struct window signature = {0};
    struct name_source source = {
        .type_handle = append_type_handle,
        .type_definition = find_definition,
        .pointer_size = reader->raw.pointer_size,
        .big_endian = reader->raw.big_endian,
        .context = cache,
    };
    if (!method_desc_dynamic_name(reader, method, &name)) {
        reader_status(&reader->raw, &ret->error);
        return;
    }
    bool has_signature = method_desc_stored_signature(reader, method, &signature);
    if (namer->style == CDACQ_NAMES_CSHARP)
        name_dynamic_csharp(&source, cache, method, name, &signature, ret);
    else
        name_dynamic_runtime_form(namer, &source, method, name, &signature, ret);
    if (has_signature)
        window_deinit(&signature);
}

static void name_by_method_desc(const struct method_namer *namer, uint64_t address, struct method_name *ret)
{
    struct method_desc method;
    struct instance_context context;
    struct name_instance instance = {0};
    if (!method_desc_read(namer->cache->reader, address, &method)) {
        reader_status(&namer->cache->reader->raw, &ret->error);
        return;
    }
    if (method.classification == METHOD_DYNAMIC) {
        name_dynamic(namer, &method, ret);
        return;
    }
    if (namer->style != CDACQ_NAMES_CSHARP)
        instance = instance_of(&context, namer, &method);
    name_in_module(namer, module_cache_get(namer->cache, method.module), method.token, &instance, ret);
}

/* ---- By the image's tables ---- */

struct image_modules {
    struct module_cache *cache;
    const struct r2r_entries *entries;
};

/* Modules of a composite image are numbered by the manifest: 1 is itself, then come its AssemblyRefs. */
static const struct metadata *composite_module(void *context, uint32_t index)
{
    const struct image_modules *modules = context;
    struct module *module = index > 1 ? find_manifest_assembly(modules->cache, modules->entries, index - 1) : NULL;
    return module ? &module->metadata : NULL; /* one that is found can be read */
}

/*
 * An instance over types that the image knows: its signature tells the method, mostly by a token of the image itself.
 */
static void name_instance(const struct method_namer *namer, const struct code_block *block,
                          const struct r2r_image *image, struct method_name *ret)
{
    struct module_cache *cache = namer->cache;
    const struct r2r_entries *entries = r2r_image_entries(image, cache->reader);
    struct name_entry_point method;
    if (!entries) {
        reader_status(&cache->reader->raw, &ret->error);
        return;
    }
    const struct native_section *section = &entries->instances;
    if (block->entry >= section->size ||
        name_entry_point_decode(section->bytes + block->entry, section->size - block->entry, &method) < 0 ||
        !method.token) {
        error_set(&ret->error, CDACQ_ERR_CORRUPT, block->start, "the image's entry for 0x%" PRIx64 " is malformed",
                  block->start);
        return;
    }
    bool composite = entries->components, csharp = namer->style == CDACQ_NAMES_CSHARP;
    bool own_definition = (!method.owner || metadata_token_table(method.owner_token) == METADATA_TYPE_DEF) &&
                          metadata_token_table(method.token) == METADATA_METHOD_DEF;
    struct module *module = !composite ? module_cache_get(cache, block->module)
                            : own_definition && method.module > 1
                                ? find_manifest_assembly(cache, entries, method.module - 1)
                                : NULL;
    if (own_definition && module && (composite || method.module == 0)) {
        if (csharp) {
            name_in_module(namer, module, method.token, NULL, ret);
            return;
        }
        ret->module = module;
        ret->token = method.token;
    }
    if (composite && !module) {
        if (!module_cache_blame(cache, CDACQ_ERR_MODULE, NULL, &ret->error))
            error_set(&ret->error, CDACQ_ERR_MODULE, block->start,
                      "the method at 0x%" PRIx64 " is one of an assembly that is not mapped, and was not prepared",
                      block->start);
        return;
    }
    if (!has_metadata(module, &ret->error))
        return;
    struct image_modules modules = {.cache = cache, .entries = entries};
    struct name_source source = {.metadata = composite ? NULL : &module->metadata,
                                 .module = composite ? composite_module : NULL,
                                 .context = &modules};
    ret->unverified |= module->unverified;
    enum cdacq_status status = csharp ? name_entry_point(&source, &method, &ret->text)
                                      : name_entry_point_runtime(&source, namer->style, &method, &ret->text);
    if (status < 0 && !module_cache_blame(cache, status, status == CDACQ_ERR_MODULE ? NULL : module, &ret->error))
        error_set(&ret->error, CDACQ_ERR_MODULE, block->start,
                  "the method at 0x%" PRIx64 " is declared in another module and was not prepared", block->start);
}

/* By the image's tables or by the MethodDesc: whichever tells more here. */
static void form_name(const struct method_namer *namer, const struct code_block *block, const struct r2r_image *image,
                      struct method_name *ret)
{
    struct module_cache *cache = namer->cache;
    reader_begin(&cache->reader->raw, FUEL_NAME);
    cache->failed = NULL;
    if (block->entry_kind == ENTRY_METHODDEF)
        name_by_token(namer, block->module, metadata_token(METADATA_METHOD_DEF, block->entry), ret);
    else if (block->method_desc && namer->runtime_types)
        name_by_method_desc(namer, block->method_desc, ret);
    else if (block->entry_kind == ENTRY_INSTANCE && image)
        name_instance(namer, block, image, ret);
    else if (block->entry_kind == ENTRY_COMPONENT && image)
        name_in_component(namer, block, image, ret);
    else if (block->method_desc)
        error_set(&ret->error, CDACQ_ERR_CONTRACT, block->method_desc,
                  "the target does not describe MethodDescs: no name for 0x%" PRIx64, block->method_desc);
    else
        error_set(&ret->error, CDACQ_ERR_MODULE, block->start,
                  "the method at 0x%" PRIx64 " was not prepared, and its image does not name it here", block->start);
    ret->unverified |= reader_unverified(&cache->reader->raw);
    if (ret->text.broken && ret->error.status >= 0)
        error_set(&ret->error, CDACQ_ERR_FUEL, block->start,
                  "the method at 0x%" PRIx64 ": its name is longer than %d bytes, or memory ran out", block->start,
                  (int)TEXT_CAP);
    if (ret->error.status < 0)
        text_clear(&ret->text);
}

void method_name_form(const struct method_namer *namer, const struct code_block *block, const struct r2r_image *image,
                      struct method_name *ret)
{
    struct field_reader *reader = namer->cache->reader;
    form_name(namer, block, image, ret);
    if (ret->error.status >= 0 || !image || !block->method_desc || block->entry_kind == ENTRY_METHODDEF)
        return;
    /* The MethodDesc is not there, or what it leads to: the image's tables may know. */
    struct code_block named = *block;
    reader_begin(&reader->raw, FUEL_NAME);
    if (named.entry_kind == ENTRY_NONE)
        r2r_jit_manager_entry(image, reader, &named);
    bool unverified = reader_unverified(&reader->raw);
    if (named.entry_kind == ENTRY_NONE || reader_failed(&reader->raw))
        return;
    text_deinit(&ret->text);
    *ret = (struct method_name){0};
    named.method_desc = 0;
    form_name(namer, &named, image, ret);
    ret->unverified |= unverified;
}
