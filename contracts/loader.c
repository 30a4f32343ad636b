#include "contracts/loader.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

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
    module->cache->failed = module;
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
    struct field_reader *reader = module->cache->reader;
    uint64_t address = module->source.base + offset;
    const uint8_t *view = reader_try_view(&reader->raw, address, count);
    if (view)
        return view;
    uint8_t *joined = joined_room(&module->source, count);
    if (!joined || reader_try_copy(&reader->raw, address, joined, count))
        return joined;
    return missing_window(module, address);
}

/* Bytes of the header and of as many pieces as they are in. */
static const void *pieces_window(void *context, uint64_t offset, size_t count)
{
    struct module *module = context;
    struct reader *reader = &module->cache->reader->raw;
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
    struct reader *reader = &module->cache->reader->raw;
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

static struct module_key module_key(struct module *const *module)
{
    return (struct module_key){(*module)->form == MODULE_IMAGE ? (*module)->base : (*module)->address, (*module)->form};
}

static uint64_t hash_key(struct module_key key, uint64_t seed)
{
    return hash_u64(key.address ^ (uint64_t)key.form << 62, seed);
}

static bool equal_keys(struct module_key a, struct module_key b)
{
    return a.address == b.address && a.form == b.form;
}

DEFINE_HASH_TABLE_FUNCTIONS(modules, struct module *, struct module_key, module_key, hash_key, equal_keys);

static void forget_evidence(struct module *module)
{
    logged_reads_deinit(&module->evidence.reads);
    free(module->evidence.bytes);
    module->evidence.bytes = NULL;
}

static void module_destroy(struct module *module)
{
    forget_evidence(module);
    free(module->path);
    free(module->source.joined);
    read_write_metadata_deinit(&module->read_write);
    free(module);
}

void module_cache_init(struct module_cache *cache, struct field_reader *reader, struct module_files files)
{
    *cache = (struct module_cache){.reader = reader, .files = files};
}

static void free_retired(struct module_cache *cache)
{
    cache->failed = NULL;
    while (cache->retired) {
        struct module *module = cache->retired;
        cache->retired = module->retired;
        module_destroy(module);
    }
    cache->retired_count = 0;
}

void module_cache_deinit(struct module_cache *cache)
{
    for (struct module **module = NULL; (module = modules_next(&cache->modules, module));)
        module_destroy(*module);
    modules_deinit(&cache->modules);
    free_retired(cache);
}

void module_cache_trim(struct module_cache *cache)
{
    if (cache->modules.count > MODULE_KEPT)
        module_cache_deinit(cache);
    else
        free_retired(cache);
}

/* Reports a failure to read the module's metadata; `status` is what the metadata reader returned. */
static void module_error(const struct module *module, enum cdacq_status status, struct cdacq_error *err)
{
    const char *path = module->path ? path_basename(module->path) : "a module";
    if (status == CDACQ_ERR_MEMORY && module->source.missing) {
        char what[PATH_MAX];
        snprintf(what, sizeof what, "%s: metadata", path);
        const struct reader_failure failure = {.status = status, .address = module->source.missing, .what = what};
        reader_report(&module->cache->reader->raw, &failure, err);
    } else {
        error_set(err, status, module->base, "%s: metadata: %s", path, cdacq_status_text(status));
    }
}

/* Where the loaded image is: Module.Base in .NET 9 and later, the PEImageLayout of the PEAssembly in all. */
static uint64_t find_base(struct field_reader *reader, uint64_t module, uint64_t *ret_layout)
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
static void append_utf16(struct field_reader *reader, uint64_t address, struct text *raw)
{
    uint8_t units[2 * PATH_UNITS_MAX];
    char utf8[UTF8_PER_UTF16 * PATH_UNITS_MAX];
    size_t count = 0, taken;
    for (uint16_t unit; count < PATH_UNITS_MAX && (unit = read_u16(&reader->raw, address + 2 * count)); count++) {
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
static char *find_path(const char *mapped, struct field_reader *reader, uint64_t module)
{
    struct text raw = {0};
    if (mapped && mapped[0] == '/' && !mapped_path_is_memory(mapped)) {
        text_puts(&raw, mapped);
    } else {
        uint64_t path = read_optional(reader, module, F_Module_Path);
        if (path && !reader_failed(&reader->raw))
            append_utf16(reader, path, &raw);
        if (reader_recover(&reader->raw, FAILURE(CDACQ_ERR_MEMORY))) /* the metadata has a name, too */
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
    source->metadata = reader_try_lasting_view(&module->cache->reader->raw, source->base + module->part.offset,
                                               bytes->size, &source->metadata_unverified);
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

static void open_loaded_image(struct module *module, struct field_reader *reader, uint64_t layout)
{
    bool mapped = true, known = false;
    uint64_t size = 0;
    if (layout && has_field(reader, F_PEImageLayout_Flags) && has_field(reader, F_PEImageLayout_Size) &&
        read_field(reader, layout, F_PEImageLayout_Base) == module->base) {
        mapped = read_field(reader, layout, F_PEImageLayout_Flags) & LAYOUT_MAPPED;
        size = read_field(reader, layout, F_PEImageLayout_Size);
        known = !reader_failed(&reader->raw);
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
        module_error(module, module->status, &module->error);
}

/* Reflection.Emit: the copy of the metadata for debuggers: {size, bytes}, in .NET 8 an SBuffer. */
static uint64_t find_dynamic_metadata(struct field_reader *reader, uint64_t module, uint64_t *ret_size)
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

static void open_dynamic(struct module *module, struct field_reader *reader)
{
    uint64_t size = 0, data = find_dynamic_metadata(reader, module->address, &size);
    if (!data || !size || size > DYNAMIC_METADATA_MAX || reader_failed(&reader->raw)) {
        module->status =
            error_set(&module->error, CDACQ_ERR_MODULE, module->address,
                      "the module at 0x%" PRIx64 " has neither an image nor dynamic metadata", module->address);
        return;
    }
    module->source.base = data;
    module->metadata_bytes = bytes_of_target(module, size);
    module->status = metadata_open(&module->metadata_bytes, &module->metadata);
    if (module->status < 0)
        module_error(module, module->status, &module->error);
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

/*
 * Whether the running process has the headers of the image that was opened: its file may have been unmapped, and
 * another one mapped in its place, since the files were listed. True where there is no image.
 */
static bool is_mapped(const struct module *module, struct reader *reader)
{
    enum { PE_POINTER = 0x3c, STAMP = 8, SIZE = 24 + 56 };
    if (module->status < 0 || !module->base)
        return true;
    uint64_t header = module->base + read_own_pe_u32(reader, module->base + PE_POINTER);
    return read_own_pe_u32(reader, header + STAMP) == module->pe.time_stamp &&
           read_own_pe_u32(reader, header + SIZE) == module->pe.image_size;
}

/* A file that nothing else confirms may be a newer build of the assembly that the runtime loaded. */
static void refuse_other_assembly(struct module *module, struct field_reader *reader)
{
    struct lookup_map_difference difference;
    if (lookup_maps_differ(reader, module->address, &module->metadata, &difference))
        module->status = error_set(&module->error, CDACQ_ERR_MODULE, module->base,
                                   "the file %s has %" PRIu32 " %s, and the assembly that was loaded has %" PRIu32
                                   ": it is another build",
                                   module->path ? path_basename(module->path) : "of the image", difference.rows,
                                   difference.what, difference.loaded);
}

static void open_read_write(struct module *module, struct field_reader *reader)
{
    struct module **loaded = modules_find(&module->cache->modules, (struct module_key){module->address, MODULE_LOADED});
    const char *path = loaded && (*loaded)->path ? (*loaded)->path : "a module";
    module->path = strdup(path_basename(path));
    if (!read_write_metadata_find(reader, module->address, &module->read_write)) {
        module->status = reader_status(&reader->raw, &module->error);
        if (module->status >= 0)
            module->status = error_set(&module->error, CDACQ_ERR_MODULE, module->address,
                                       "%s: its metadata lacks a row that the runtime refers to", path_basename(path));
        return;
    }
    module->metadata_bytes =
        (struct bytes){.window = pieces_window, .context = module, .size = module->read_write.size};
    module->status = metadata_open(&module->metadata_bytes, &module->metadata);
    if (module->status >= 0 && !read_write_metadata_agrees(&module->read_write, &module->metadata))
        module->status = CDACQ_ERR_FORMAT;
    if (module->status < 0)
        module_error(module, module->status, &module->error);
}

static void module_open(struct module *module, struct field_reader *reader)
{
    uint64_t layout = 0;
    const struct module_files *files = &module->cache->files;
    if (module->form == MODULE_READ_WRITE) {
        open_read_write(module, reader);
        return;
    }
    if (module->address)
        module->base = find_base(reader, module->address, &layout);
    const char *mapped = module->base ? files->path_at(files->context, module->base) : NULL;
    if (!reader_failed(&reader->raw))
        module->path = find_path(mapped, reader, module->address);
    if (reader_failed(&reader->raw)) {
        module->status = reader_status(&reader->raw, &module->error);
        return;
    }
    /* A task of its own: only the image's own bytes decide whether the module is verified. */
    reader_begin(&reader->raw, FUEL_NAME);
    if (module->base)
        open_loaded_image(module, reader, layout);
    else
        open_dynamic(module, reader);
    if (module->status >= 0 && !module->path)
        take_name_from_metadata(module);
    if (!module->path && mapped)
        module->path = escaped(mapped, strlen(mapped));
    module->unverified = reader_unverified(&reader->raw);
    if (module->status >= 0 && module->address && module->base && module->unverified)
        refuse_other_assembly(module, reader);
    if (reader->raw.target->changes && !is_mapped(module, &reader->raw)) {
        module->status =
            error_set(&module->error, CDACQ_ERR_MODULE, module->base, "%s: the process maps another image there now",
                      module->path ? path_basename(module->path) : "image");
        reader_distrust_file(&reader->raw, module->base);
    }
}

enum { EVIDENCE_MAX = 256 * 1024 }; /* bytes */

/* Keeps what was read from the log's item `from` on. */
static void keep_evidence(struct module *module, struct reader *reader, size_t from)
{
    struct module_evidence *evidence = &module->evidence;
    uint64_t size = 0;
    evidence->incomplete = true;
    if (!reader->log || module->status < 0)
        return;
    struct read_log *log = reader_log(reader, NULL); /* copying must not extend what is copied */
    for (size_t i = from; i < log->reads.count; i++)
        size += log->reads.items[i].size;
    size_t count = log->reads.count - from;
    evidence->incomplete = log->incomplete || size > EVIDENCE_MAX || !logged_reads_reserve(&evidence->reads, count) ||
                           !(evidence->bytes = malloc(size + 1));
    size_t at = 0;
    for (size_t i = 0; !evidence->incomplete && i < count; i++) {
        const struct logged_read *read = &log->reads.items[from + i];
        (void)logged_reads_append(&evidence->reads, (struct logged_read){.address = read->address, .size = read->size});
        if (read->bytes)
            memcpy(evidence->bytes + at, read->bytes, read->size);
        else
            evidence->incomplete = !reader_try_copy(reader, read->address, evidence->bytes + at, read->size);
        at += read->size;
    }
    reader_log(reader, log);
}

/* Whether memory still holds what the module was opened by, and maps its image. */
static bool evidence_holds(const struct module *module, struct reader *reader)
{
    const struct module_evidence *evidence = &module->evidence;
    size_t at = 0;
    if (evidence->incomplete)
        return false;
    struct reader_task outer = reader_enter(reader, FUEL_NAME);
    bool holds = is_mapped(module, reader);
    for (size_t i = 0; holds && i < evidence->reads.count; i++) {
        const struct logged_read *read = &evidence->reads.items[i];
        uint8_t piece[256];
        for (uint64_t done = 0, n; holds && done < read->size; done += n, at += n) {
            n = MIN(read->size - done, sizeof piece);
            holds =
                reader_try_copy(reader, read->address + done, piece, n) && memcmp(piece, evidence->bytes + at, n) == 0;
        }
    }
    (void)reader_leave(reader, &outer);
    return holds;
}

/* Opens a module in a nested task, whose failure the module keeps; the look-up pays MODULE_COST. */
static struct module *module_create(struct module_cache *cache, struct module_key key)
{
    struct module *module = cache->modules.count + cache->retired_count < MODULE_MAX ? calloc(1, sizeof *module) : NULL;
    if (!module)
        return NULL;
    module->form = key.form;
    *(key.form == MODULE_IMAGE ? &module->base : &module->address) = key.address;
    module->cache = cache;
    module->round = cache->round;
    struct reader *reader = &cache->reader->raw;
    const struct module *failed = cache->failed;
    struct reader_task outer = reader_enter(reader, FUEL_NAME);
    size_t from = reader->log ? read_log_begin_part(reader->log) : 0;
    module_open(module, cache->reader);
    if (reader->target->changes)
        keep_evidence(module, reader, from);
    (void)reader_leave(reader, &outer); /* module->error has the failure */
    reader_charge(reader, MODULE_COST);
    cache->failed = failed;
    return module;
}

static struct module *cache_add(struct module_cache *cache, struct module_key key)
{
    struct module *module = module_create(cache, key);
    if (module && modules_insert(&cache->modules, module, NULL))
        return module;
    if (module)
        module_destroy(module);
    return NULL;
}

/* The module of an entry or, if the process has another one there now, that. */
static struct module *cache_check(struct module_cache *cache, struct module **entry)
{
    struct module *module = *entry;
    if (module->round == cache->round || evidence_holds(module, &cache->reader->raw)) {
        module->round = cache->round;
        return module;
    }
    struct module *now = module_create(cache, module_key(entry));
    if (!now)
        return NULL;
    forget_evidence(module);
    module->retired = cache->retired;
    cache->retired = module;
    cache->retired_count++;
    return *entry = now;
}

static struct module *cache_get(struct module_cache *cache, struct module_key key)
{
    struct module **known = modules_find(&cache->modules, key);
    return known ? cache_check(cache, known) : cache_add(cache, key);
}

struct module *module_cache_get(struct module_cache *cache, uint64_t address)
{
    return address ? cache_get(cache, (struct module_key){address, MODULE_LOADED}) : NULL;
}

struct module *module_cache_get_image(struct module_cache *cache, uint64_t base)
{
    return cache_get(cache, (struct module_key){base, MODULE_IMAGE});
}

const struct metadata *module_metadata(const struct module *module, uint32_t token)
{
    uint32_t table = metadata_token_table(token);
    if (module->form != MODULE_LOADED || table >= METADATA_TABLE_COUNT ||
        metadata_rid(token) <= metadata_row_count(&module->metadata, table))
        return &module->metadata;
    struct module_cache *cache = module->cache;
    const struct module *added = cache_get(cache, (struct module_key){module->address, MODULE_READ_WRITE});
    if (added && added->status >= 0)
        return &added->metadata;
    cache->failed = added;
    return &module->metadata;
}

enum cdacq_status module_cache_metadata(struct module_cache *cache, uint64_t address, uint32_t token,
                                        const struct metadata **ret)
{
    struct module *module = module_cache_get(cache, address);
    if (!module)
        return CDACQ_ERR_NOMEM;
    if (module->status < 0)
        cache->failed = module;
    else
        *ret = module_metadata(module, token);
    return module->status;
}

bool module_cache_report(const struct module_cache *cache, enum cdacq_status status, const struct module *module,
                         struct cdacq_error *err)
{
    /* A module that is open but lacks bytes is the cause only of a MEMORY failure. */
    if (cache->failed && (cache->failed->status < 0 || status == CDACQ_ERR_MEMORY))
        module = cache->failed;
    if (module && module->status < 0)
        *err = module->error;
    else if (module)
        module_error(module, status, err);
    return module != NULL;
}

static bool has_mvid(const struct module *module, const uint8_t *mvid)
{
    uint8_t found[16];
    return module && module->status >= 0 && metadata_mvid(&module->metadata, found) >= 0 &&
           memcmp(found, mvid, sizeof found) == 0;
}

struct module *module_cache_find_assembly(struct module_cache *cache, const char *name, size_t length,
                                          const uint8_t *mvid)
{
    const struct module_files *files = &cache->files;
    const struct module *failed = cache->failed;
    size_t position = 0;
    uint64_t base;
    while (files->next_assembly(files->context, &cache->reader->raw, name, length, &position, &base)) {
        struct module *module = module_cache_get_image(cache, base);
        if (has_mvid(module, mvid)) {
            cache->failed = failed;
            return module;
        }
        if (module && module->status < 0)
            cache->failed = module;
    }
    return NULL;
}
