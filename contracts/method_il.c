#include "contracts/method_il.h"

#include "contracts/dynamic_il.h"

/* The address of `size` bytes of an image; 0 if they are not all in it. */
static uint64_t image_address(const struct module *module, uint32_t rva, uint32_t size)
{
    uint64_t offset;
    return pe_offset(&module->pe, rva, size, &offset) == CDACQ_OK ? module->source.base + offset : 0;
}

static bool read_body(const struct module *module, uint32_t rva, struct il_body *ret)
{
    uint8_t header[IL_HEADER_MAX];
    struct reader *reader = module->reader;
    /* A header of one byte may be at the end of the image. */
    for (uint32_t size = 1; size <= sizeof header; size += sizeof header - 1) {
        uint64_t address = image_address(module, rva, size);
        if (!address || !reader_try_copy(reader, address, header, size))
            return reader_fail(reader, CDACQ_ERR_MEMORY, module->base + rva, "the IL of a method");
        if (il_body_read(header, size, ret))
            return true;
    }
    return reader_fail(reader, CDACQ_ERR_CORRUPT, module->base + rva, "the header of a method's IL");
}

/* The body of a MethodDef, and where it is. */
static bool find_body(const struct module *module, uint32_t token, uint32_t *ret_rva, struct il_body *ret)
{
    struct reader *reader = module->reader;
    struct metadata_method_def method;
    if (module->status < 0 || !module->base ||
        metadata_rid(token) > metadata_row_count(&module->metadata, METADATA_METHOD_DEF))
        return false;
    if (dynamic_il_exists(reader, module->address, token) || reader_failed(reader) ||
        metadata_method_def(&module->metadata, metadata_rid(token), &method) != CDACQ_OK || !method.rva ||
        !read_body(module, method.rva, ret))
        return false;
    *ret_rva = method.rva;
    return true;
}

bool method_il_local_signature(const struct module *module, uint32_t token, uint32_t *ret)
{
    uint32_t rva;
    struct il_body body;
    if (!find_body(module, token, &rva, &body))
        return false;
    *ret = body.local_signature;
    return true;
}

bool method_il_read(const struct module *module, uint32_t token, struct window *ret_window, struct il_code *ret)
{
    struct reader *reader = module->reader;
    struct il_body body;
    struct window window;
    uint32_t rva;
    if (!find_body(module, token, &rva, &body))
        return false;
    uint64_t code = image_address(module, rva, body.header_size + body.code_size);
    if (!code || !reader_window(reader, code + body.header_size, body.code_size, "the IL of a method", &window))
        return false;
    *ret_window = window;
    *ret = (struct il_code){.bytes = window.bytes, .size = body.code_size};
    return true;
}
