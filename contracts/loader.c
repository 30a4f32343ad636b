#include "contracts/loader.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "util/error.h"
#include "util/text.h"
#include "util/utf16.h"
#include "contracts/lookup_map.h"
#include "target/mapped_path.h"

enum {
    IMAGE_SPAN_MAX = 0x7fffffff, /* RVAs of an image are below 2 GB */
    PATH_UNITS_MAX = 4096,
    LAYOUT_MAPPED = 1, /* PEImageLayout.Flags */
    DYNAMIC_METADATA_MAX = 256 * 1024 * 1024,
};

static const void *missing_window(struct module *module, uint64_t address)
{
    module->source.missing = address;
    *module->failed = module;
    return NULL;
}

/* Room for `count` bytes. NULL when out of memory. */
static uint8_t *joined_room(struct target_bytes *source, size_t count)
{
    if (count > source->joined_size) {
        uint8_t *joined = realloc(source->joined, count);
        if (!joined) {
            source->missing = 0;
            return NULL;
        }
        source->joined = joined;
        source->joined_size = count;
    }
    return source->joined;
}

static const void *target_window(void *context, uint64_t offset, size_t count)
{
    struct module *module = context;
    struct reader *reader = module->reader;
    uint64_t address = module->source.base + offset;
    const uint8_t *view = reader_try_view(reader, address, count);
    if (view)
        return view;
    uint8_t *joined = joined_room(&module->source, count);
    if (!joined || reader_try_copy(reader, address, joined, count))
        return joined;
    return missing_window(module, address);
}

/* Bytes of the header and of as many pieces as they are in. */
static const void *pieces_window(void *context, uint64_t offset, size_t count)
{
    struct module *module = context;
    struct reader *reader = module->reader;
    const struct read_write_metadata *read_write = &module->read_write;
    if (UNLIKELY(!reader_spend(reader)))
        return missing_window(module, 0);
    if (offset < read_write->header_size && count <= read_write->header_size - offset)
        return read_write->header + offset;
    uint8_t *joined = joined_room(&module->source, count);
    for (size_t done = 0, n; joined && done < count; done += n, offset += n) {
        if (offset < read_write->header_size) {
            n = (size_t)MIN(read_write->header_size - offset, count - done);
            memcpy(joined + done, read_write->header + offset, n);
            continue;
        }
        const struct metadata_piece *piece = read_write_metadata_piece(read_write, offset);
        uint64_t skipped = offset - piece->offset;
        n = (size_t)MIN(piece->size - skipped, count - done);
        if (!reader_try_copy(reader, piece->address + skipped, joined + done, n))
            return missing_window(module, piece->address + skipped);
    }
    return joined;
}

/* Most of the work of a name is to read metadata. */
static const void *metadata_window(void *context, uint64_t offset, size_t count)
{
    struct module *module = context;
    struct reader *reader = module->reader;
    (void)count;
    if (UNLIKELY(!reader_spend(reader)))
        return missing_window(module, module->source.base + module->part.offset + offset);
    reader_add_unverified(reader, module->source.metadata_unverified);
    return module->source.metadata + offset;
}

static struct bytes bytes_of_target(struct module *module, uint64_t size)
{
    return (struct bytes){.window = target_window, .context = module, .size = size};
}

bool module_get_symbol_stream(const struct module *module, uint64_t *ret_address, uint32_t *ret_size)
{
    struct reader *reader = module->reader;
    if (module->form != MODULE_LOADED || !has_field(reader, F_Module_GrowableSymbolStream) ||
        !has_field(reader, F_CGrowableSymbolStream_Buffer) || !has_field(reader, F_CGrowableSymbolStream_Size))
        return false;
    uint64_t stream = read_field(reader, module->address, F_Module_GrowableSymbolStream);
    if (!stream) /* a small core may lack the Module, too */
        return false;
    *ret_address = read_field(reader, stream, F_CGrowableSymbolStream_Buffer);
    *ret_size = *ret_address ? (uint32_t)read_field(reader, stream, F_CGrowableSymbolStream_Size) : 0;
    return *ret_size || reader_failed(reader);
}

void module_report(const struct module *module, enum cdacq_status status, struct cdacq_error *err)
{
    const char *path = module->path ? path_basename(module->path) : "a module";
    if (status == CDACQ_ERR_MEMORY && module->source.missing) {
        char what[PATH_MAX];
        snprintf(what, sizeof what, "%s: metadata", path);
        const struct reader_failure failure = {.status = status, .address = module->source.missing, .what = what};
        reader_report(module->reader, &failure, err);
    } else {
        error_set(err, status, module->base, "%s: metadata: %s", path, cdacq_status_text(status));
    }
}

/* Where the loaded image is: Module.Base in .NET 9 and later, the PEImageLayout of the PEAssembly in all. */
static uint64_t find_base(struct reader *reader, uint64_t module, uint64_t *ret_layout)
{
    uint64_t image = 0;
    if (has_field(reader, F_PEAssembly_PEImage) && has_field(reader, F_PEImage_LoadedImageLayout))
        image = read_optional(reader, read_optional(reader, module, F_Module_PEAssembly), F_PEAssembly_PEImage);
    *ret_layout = read_optional(reader, image, F_PEImage_LoadedImageLayout);
    if (has_field(reader, F_Module_Base))
        return read_field(reader, module, F_Module_Base);
    return *ret_layout ? read_field(reader, *ret_layout, F_PEImageLayout_Base) : 0;
}

/* Appends a NUL-terminated UTF-16 string of the target as UTF-8. */
static void append_utf16(struct reader *reader, uint64_t address, struct text *raw)
{
    uint8_t units[2 * PATH_UNITS_MAX];
    char utf8[UTF8_PER_UTF16 * PATH_UNITS_MAX];
    size_t count = 0, taken;
    for (uint16_t unit; count < PATH_UNITS_MAX && (unit = read_u16(reader, address + 2 * count)); count++) {
        units[2 * count] = (uint8_t)unit;
        units[2 * count + 1] = (uint8_t)(unit >> 8);
    }
    text_append(raw, utf8, (size_t)(utf16_to_utf8(utf8, units, count, false, false, &taken) - utf8));
}

/* An escaped copy, or NULL. */
static char *escaped(const char *data, size_t length)
{
    struct text text = {0};
    text_escape(&text, data, length);
    if (text.broken)
        text_deinit(&text);
    return text.data;
}

/*
 * The path of the mapped file, or else the runtime's name of the module. An image that was loaded from an array of
 * bytes is in memory without a file, which the kernel names all the same.
 */
static char *find_path(const char *mapped, struct reader *reader, uint64_t module)
{
    struct text raw = {0};
    if (mapped && mapped[0] == '/' && !mapped_path_is_memory(mapped)) {
        text_puts(&raw, mapped);
    } else {
        uint64_t path = read_optional(reader, module, F_Module_Path);
        if (path && !reader_failed(reader))
            append_utf16(reader, path, &raw);
        if (reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY))) /* the metadata has a name, too */
            text_clear(&raw);
    }
    char *path = raw.length ? escaped(raw.data, raw.length) : NULL;
    text_deinit(&raw);
    return path;
}

/* Lets the metadata be read without a search for its memory, if that is possible. */
static void view_metadata(struct module *module)
{
    struct target_bytes *source = &module->source;
    struct bytes *bytes = &module->metadata_bytes;
    source->metadata = reader_try_lasting_view(module->reader, source->base + module->part.offset, bytes->size,
                                               &source->metadata_unverified);
    if (source->metadata)
        *bytes = (struct bytes){.window = metadata_window, .context = module, .size = bytes->size};
}

static enum cdacq_status open_image(struct module *module, bool mapped, uint64_t size)
{
    struct bytes image = bytes_of_target(module, size);
    enum cdacq_status status = pe_open(&image, mapped, &module->pe);
    if (status >= 0)
        status = pe_metadata(&module->pe, &module->part, &module->metadata_bytes);
    if (status >= 0)
        view_metadata(module);
    if (status >= 0)
        status = metadata_open(&module->metadata_bytes, &module->metadata);
    return status;
}

static void open_loaded_image(struct module *module, struct reader *reader, uint64_t layout)
{
    bool mapped = true, known = false;
    uint64_t size = 0;
    if (layout && has_field(reader, F_PEImageLayout_Flags) && has_field(reader, F_PEImageLayout_Size) &&
        read_field(reader, layout, F_PEImageLayout_Base) == module->base) {
        mapped = read_field(reader, layout, F_PEImageLayout_Flags) & LAYOUT_MAPPED;
        size = read_field(reader, layout, F_PEImageLayout_Size);
        known = !reader_failed(reader);
    }
    uint64_t span = size && size <= IMAGE_SPAN_MAX ? size : IMAGE_SPAN_MAX;
    module->source.base = module->base;
    module->status = open_image(module, mapped, span);
    bool may_be_flat = module->status == CDACQ_ERR_FORMAT || module->status == CDACQ_ERR_MEMORY;
    if (!known && may_be_flat && (module->status = open_image(module, false, span)) < 0)
        module->status = open_image(module, mapped, span); /* its failure is the one to tell of */
    /* If the size differs from what the runtime mapped, these are another image's bytes. */
    if (module->status >= 0 && known && mapped && module->pe.image_size != size)
        module->status = error_set(&module->error, CDACQ_ERR_MODULE, module->base,
                                   "%s: SizeOfImage is %u, the runtime mapped %" PRIu64 " bytes: not the same image",
                                   module->path ? path_basename(module->path) : "image", module->pe.image_size, size);
    else if (module->status < 0)
        module_report(module, module->status, &module->error);
}

/* Reflection.Emit: the copy of the metadata for debuggers: {size, bytes}, in .NET 8 an SBuffer. */
static uint64_t find_dynamic_metadata(struct reader *reader, uint64_t module, uint64_t *ret_size)
{
    if (has_field(reader, F_Module_DynamicMetadata)) {
        uint64_t metadata = read_field(reader, module, F_Module_DynamicMetadata);
        *ret_size = metadata ? read_field(reader, metadata, F_DynamicMetadata_Size) : 0;
        return metadata ? field_address(reader, metadata, F_DynamicMetadata_Data) : 0;
    }
    if (has_field(reader, F_Module_DynamicMetadataSBuffer)) {
        uint64_t buffer = read_field(reader, module, F_Module_DynamicMetadataSBuffer);
        *ret_size = buffer ? read_field(reader, buffer, F_SBuffer_Size) : 0;
        return buffer ? read_field(reader, buffer, F_SBuffer_Buffer) : 0;
    }
    return 0;
}

static void open_dynamic(struct module *module, struct reader *reader)
{
    uint64_t size = 0, data = find_dynamic_metadata(reader, module->address, &size);
    if (!data || !size || size > DYNAMIC_METADATA_MAX || reader_failed(reader)) {
        module->status =
            error_set(&module->error, CDACQ_ERR_MODULE, module->address,
                      "the module at 0x%" PRIx64 " has neither an image nor dynamic metadata", module->address);
        return;
    }
    module->source.base = data;
    module->metadata_bytes = bytes_of_target(module, size);
    module->status = metadata_open(&module->metadata_bytes, &module->metadata);
    if (module->status < 0)
        module_report(module, module->status, &module->error);
}

/* A dynamic module has only the name in its metadata. */
static void take_name_from_metadata(struct module *module)
{
    struct metadata_module row;
    char buffer[METADATA_STRING_CAP];
    const char *name;
    size_t length;
    if (metadata_module(&module->metadata, 1, &row) < 0 ||
        metadata_string(&module->metadata, row.name, buffer, &name, &length) < 0 || !length)
        return;
    module->path = escaped(name, length);
}

/* A field of a PE image, which is little-endian on every machine. */
static uint32_t read_own_pe_u32(struct reader *reader, uint64_t address)
{
    uint32_t value = read_own_u32(reader, address);
    return reader->big_endian ? __builtin_bswap32(value) : value;
}

bool module_is_mapped(const struct module *module, struct reader *reader)
{
    enum { PE_POINTER = 0x3c, STAMP = 8, SIZE = 24 + 56 };
    if (module->status < 0 || !module->base)
        return true;
    uint64_t header = module->base + read_own_pe_u32(reader, module->base + PE_POINTER);
    return read_own_pe_u32(reader, header + STAMP) == module->pe.time_stamp &&
           read_own_pe_u32(reader, header + SIZE) == module->pe.image_size;
}

/* A file that nothing else confirms may be a newer build of the assembly that the runtime loaded. */
static void refuse_other_assembly(struct module *module, struct reader *reader)
{
    struct lookup_map_difference difference;
    if (lookup_maps_differ(reader, module->address, &module->metadata, &difference))
        module->status = error_set(&module->error, CDACQ_ERR_MODULE, module->base,
                                   "the file %s has %" PRIu32 " %s, and the assembly that was loaded has %" PRIu32
                                   ": it is another build",
                                   module->path ? path_basename(module->path) : "of the image", difference.rows,
                                   difference.what, difference.loaded);
}

static void open_read_write(struct module *module, struct reader *reader)
{
    if (!read_write_metadata_find(reader, module->address, &module->read_write)) {
        module->status = reader_status(reader, &module->error);
        if (module->status >= 0)
            module->status = error_set(&module->error, CDACQ_ERR_MODULE, module->address,
                                       "%s: its metadata lacks a row that the runtime refers to",
                                       module->path ? module->path : "a module");
        return;
    }
    module->metadata_bytes =
        (struct bytes){.window = pieces_window, .context = module, .size = module->read_write.size};
    module->status = metadata_open(&module->metadata_bytes, &module->metadata);
    if (module->status < 0)
        module_report(module, module->status, &module->error);
}

void module_open(struct module *module, const struct module_files *files)
{
    struct reader *reader = module->reader;
    uint64_t layout = 0;
    if (module->form == MODULE_READ_WRITE) {
        open_read_write(module, reader);
        return;
    }
    if (module->address)
        module->base = find_base(reader, module->address, &layout);
    const char *mapped = module->base ? files->path_at(files->context, module->base) : NULL;
    if (!reader_failed(reader))
        module->path = find_path(mapped, reader, module->address);
    if (reader_failed(reader)) {
        module->status = reader_status(reader, &module->error);
        return;
    }
    /* A task of its own: only the image's own bytes decide whether the module is verified. */
    reader_begin(reader, FUEL_NAME);
    if (module->base)
        open_loaded_image(module, reader, layout);
    else
        open_dynamic(module, reader);
    if (module->status >= 0 && !module->path)
        take_name_from_metadata(module);
    if (!module->path && mapped)
        module->path = escaped(mapped, strlen(mapped));
    module->unverified = reader_unverified(reader);
    if (module->status >= 0 && module->address && module->base && module->unverified)
        refuse_other_assembly(module, reader);
    if (reader->target->changes && !module_is_mapped(module, reader)) {
        module->status =
            error_set(&module->error, CDACQ_ERR_MODULE, module->base, "%s: the process maps another image there now",
                      module->path ? path_basename(module->path) : "image");
        reader_distrust_file(reader, module->base);
    }
}

void module_deinit(struct module *module)
{
    free(module->path);
    free(module->source.joined);
    read_write_metadata_deinit(&module->read_write);
}
