#include "contracts/method_name.h"

#include <inttypes.h>

#include "contracts/method_desc.h"
#include "contracts/r2r_jit_manager.h"
#include "contracts/type_handle.h"
#include "src/formats/names.h"

static enum cdacq_status append_type_handle(void *context, uint64_t handle, struct text *ret)
{
    return type_handle_name(context, handle, ret);
}

static enum cdacq_status find_definition(void *context, uint64_t handle, const struct metadata **ret_metadata,
                                         uint32_t *ret_token)
{
    return type_handle_definition(context, handle, ret_metadata, ret_token);
}

static void name_in_module(struct module *module, uint32_t token, struct method_name *ret)
{
    if (!module) {
        error_set(&ret->error, CDACQ_ERR_MODULE, 0, "the method has no module, or there are too many");
        return;
    }
    ret->module = module;
    ret->token = token;
    if (module->status < 0) {
        ret->error = module->error;
        return;
    }
    struct name_source source = {.metadata = &module->metadata};
    module->source.missing = 0;
    enum cdacq_status status = name_method(&source, token, &ret->text);
    if (status < 0)
        module_error(module, status, &ret->error);
    ret->unverified |= module->unverified;
}

static void name_by_token(struct module_cache *cache, uint64_t module_address, uint32_t token, struct method_name *ret)
{
    name_in_module(module_cache_get(cache, module_address), token, ret);
}

/* The assembly that the manifest metadata of a composite image calls by its `rid`-th AssemblyRef, where it is mapped.
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

static void name_in_component(struct module_cache *cache, const struct code_block *block, const struct r2r_image *image,
                              struct method_name *ret)
{
    const struct r2r_entries *entries = r2r_image_entries(image, cache->reader);
    struct module *module = entries ? find_manifest_assembly(cache, entries, block->component + 1u) : NULL;
    if (module)
        name_in_module(module, metadata_token(METADATA_METHOD_DEF, block->entry), ret);
    else
        error_set(&ret->error, CDACQ_ERR_MODULE, block->start,
                  "the method at 0x%" PRIx64 " belongs to assembly %u of a composite image, which is not mapped",
                  block->start, block->component);
}

/* DynamicMethod and IL stubs: they belong to no module, and carry their name and their signature with them. */
static void name_dynamic(struct module_cache *cache, const struct method_desc *method, struct method_name *ret)
{
    struct reader *reader = cache->reader;
    CLEANUP_FREE char *name = NULL;
    struct window signature;
    if (!method_desc_dynamic_name(reader, method, &name)) {
        reader_status(reader, &ret->error);
        return;
    }
    text_puts(&ret->text, "dynamicClass.");
    text_escape(&ret->text, name, strlen(name));
    size_t length = ret->text.length;
    struct name_source source = {
        .type_handle = append_type_handle,
        .type_definition = find_definition,
        .pointer_size = reader->pointer_size,
        .big_endian = reader->big_endian,
        .context = cache,
    };
    enum cdacq_status status = CDACQ_ERR_MEMORY;
    if (method_desc_stored_signature(reader, method, &signature)) {
        status = name_parameters(&source, signature.bytes, signature.size, &ret->text);
        window_deinit(&signature);
    }
    if (status < 0 && !ret->text.broken) {
        ret->text.length = length;
        text_puts(&ret->text, "(...)");
    }
}

static void name_by_method_desc(struct module_cache *cache, uint64_t address, struct method_name *ret)
{
    struct method_desc method;
    if (!method_desc_read(cache->reader, address, &method))
        reader_status(cache->reader, &ret->error);
    else if (method.classification == METHOD_DYNAMIC)
        name_dynamic(cache, &method, ret);
    else
        name_by_token(cache, method.module, method.token, ret);
}

/* An instance over types that the image knows: its signature tells the method, mostly by a token of the image itself.
 */
static void name_instance(struct module_cache *cache, const struct code_block *block, const struct r2r_image *image,
                          struct method_name *ret)
{
    const struct r2r_entries *entries = r2r_image_entries(image, cache->reader);
    struct name_entry_point method;
    if (!entries) {
        reader_status(cache->reader, &ret->error);
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
    bool own_type = !method.owner || metadata_token_table(method.owner_token) == METADATA_TYPE_DEF;
    if (entries->components) {
        /* Modules are numbered by the manifest: 1 is itself, then come its AssemblyRefs. */
        struct module *module =
            own_type && method.module > 1 && metadata_token_table(method.token) == METADATA_METHOD_DEF
                ? find_manifest_assembly(cache, entries, method.module - 1)
                : NULL;
        if (module)
            name_in_module(module, method.token, ret);
        else
            error_set(&ret->error, CDACQ_ERR_MODULE, block->start,
                      "the method at 0x%" PRIx64 " is one of an assembly that is not mapped, and was not prepared",
                      block->start);
        return;
    }
    if (method.module == 0 && own_type && metadata_token_table(method.token) == METADATA_METHOD_DEF) {
        name_by_token(cache, block->module, method.token, ret);
        return;
    }
    struct module *module = module_cache_get(cache, block->module);
    if (!module || module->status < 0)
        return;
    struct name_source source = {.metadata = &module->metadata};
    ret->unverified |= module->unverified;
    if (name_entry_point(&source, &method, &ret->text) < 0)
        error_set(&ret->error, CDACQ_ERR_MODULE, block->start,
                  "the method at 0x%" PRIx64 " is declared in another module and was not prepared", block->start);
}

/* By the image's tables or by the MethodDesc: whichever tells more here. */
static void form_name(struct module_cache *cache, const struct code_block *block, const struct r2r_image *image,
                      bool runtime_types, struct method_name *ret)
{
    reader_begin(cache->reader, FUEL_NAME);
    if (block->entry_kind == ENTRY_METHODDEF)
        name_by_token(cache, block->module, metadata_token(METADATA_METHOD_DEF, block->entry), ret);
    else if (block->method_desc && runtime_types)
        name_by_method_desc(cache, block->method_desc, ret);
    else if (block->entry_kind == ENTRY_INSTANCE && image)
        name_instance(cache, block, image, ret);
    else if (block->entry_kind == ENTRY_COMPONENT && image)
        name_in_component(cache, block, image, ret);
    else if (block->method_desc)
        error_set(&ret->error, CDACQ_ERR_CONTRACT, block->method_desc,
                  "the target does not describe MethodDescs: no name for 0x%" PRIx64, block->method_desc);
    else
        error_set(&ret->error, CDACQ_ERR_MODULE, block->start,
                  "the method at 0x%" PRIx64 " was not prepared, and its image does not name it here", block->start);
    ret->unverified |= cache->reader->unverified;
    if (ret->text.broken || ret->error.status < 0)
        text_clear(&ret->text);
}

void method_name_form(struct module_cache *cache, const struct code_block *block, const struct r2r_image *image,
                      bool runtime_types, struct method_name *ret)
{
    form_name(cache, block, image, runtime_types, ret);
    if (ret->error.status >= 0 || !image || !block->method_desc || block->entry_kind == ENTRY_METHODDEF)
        return;
    /* The MethodDesc is not there, or what it leads to: the image's tables may know. */
    struct code_block named = *block;
    reader_begin(cache->reader, FUEL_NAME);
    if (named.entry_kind == ENTRY_NONE)
        r2r_jit_manager_entry(image, cache->reader, &named);
    bool unverified = cache->reader->unverified;
    if (named.entry_kind == ENTRY_NONE || reader_failed(cache->reader))
        return;
    text_deinit(&ret->text);
    *ret = (struct method_name){0};
    named.method_desc = 0;
    form_name(cache, &named, image, runtime_types, ret);
    ret->unverified |= unverified;
}
