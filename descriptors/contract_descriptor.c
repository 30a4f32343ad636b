#include "descriptors/contract_descriptor.h"

#include <inttypes.h>
#include <stdio.h>

#include "descriptors/descriptor.h"
#include "descriptors/json.h"
#include "target/image.h"
#include "target/reader.h"
#include "util/hash_table.h"
#include "util/text.h"
#include "util/vector.h"

static const char magic_little[8] = "DNCCDAC"; /* and the NUL */
static const char magic_big[8] = {'\0', 'C', 'A', 'D', 'C', 'C', 'N', 'D'};

enum {
    FLAG_POINTERS_OF_32_BITS = 2,
    HEADER_SIZE = 40,
    ORIGIN_SIZE = 100,
};

/* A descriptor that is to be read; the first one is the runtime's. */
struct pending {
    uint64_t address;
    char origin[ORIGIN_SIZE];
};

DEFINE_VECTOR(pendings, struct pending);
DEFINE_HASH_TABLE_TYPE(addresses, uint64_t);

DEFINE_U64_SET_FUNCTIONS(addresses);

/* One structure, as read. */
struct header {
    unsigned pointer_size;
    bool big_endian;
    uint32_t json_size, pointer_count;
    uint64_t json, pointers;
};

/* The state of reading one descriptor with its baseline and sub-descriptors. */
struct loader {
    struct target *target;
    const struct image *image;
    bool (*baseline)(const char *name, const char **ret_text, size_t *ret_size);
    struct descriptor *descriptor;
    struct contract_descriptor_info info;
    struct addresses seen; /* ends cycles */
    struct pendings queue;
    uint64_t size; /* of all descriptors that were read, in bytes */
    struct cdacq_error *err;
};

/* Reads from the target, or from the image's file with relocations applied. */
static enum cdacq_status read_data(struct loader *loader, uint64_t address, void *buffer, size_t size)
{
    bool from_file = false;
    enum cdacq_status status;
    if (loader->image) {
        status = image_read_relocated(loader->image, address, buffer, size, &from_file, loader->err);
    } else {
        struct reader reader;
        reader_init(&reader, loader->target, 8, false);
        reader_copy(&reader, address, buffer, size);
        status = reader_status(&reader, loader->err);
    }
    loader->info.from_file |= from_file;
    return status;
}

static enum cdacq_status read_header(struct loader *loader, uint64_t address, struct header *ret)
{
    uint8_t bytes[40] = {0};
    enum cdacq_status status = read_data(loader, address, bytes, 16);
    if (status < 0)
        return status;
    struct header header = {.big_endian = memcmp(bytes, magic_big, 8) == 0};
    if (!header.big_endian && memcmp(bytes, magic_little, 8) != 0)
        return error_set(loader->err, CDACQ_ERR_DESCRIPTOR, address,
                         "no contract descriptor at 0x%" PRIx64 ": its magic number is not there", address);
    bool big = header.big_endian, narrow = load_u32(bytes + 8, big) & FLAG_POINTERS_OF_32_BITS;
    header.pointer_size = narrow ? 4 : 8;
    status = read_data(loader, address + 16, bytes + 16, narrow ? 16 : 24);
    if (status < 0)
        return status;
    header.json_size = load_u32(bytes + 12, big);
    header.json = narrow ? load_u32(bytes + 16, big) : load_u64(bytes + 16, big);
    header.pointer_count = load_u32(bytes + (narrow ? 20 : 24), big);
    header.pointers = narrow ? load_u32(bytes + 28, big) : load_u64(bytes + 32, big);
    if (header.json_size > JSON_TEXT_MAX)
        return error_set(loader->err, CDACQ_ERR_DESCRIPTOR, address,
                         "contract descriptor at 0x%" PRIx64 ": %u bytes of JSON are more than the %d that are read",
                         address, header.json_size, JSON_TEXT_MAX);
    if (header.pointer_count > CONTRACT_POINTER_MAX)
        return error_set(loader->err, CDACQ_ERR_DESCRIPTOR, address,
                         "contract descriptor at 0x%" PRIx64 ": %u pointers are more than the %d that are read",
                         address, header.pointer_count, CONTRACT_POINTER_MAX);
    *ret = header;
    return CDACQ_OK;
}

static enum cdacq_status read_pointers(struct loader *loader, const struct header *header, uint64_t **ret)
{
    CLEANUP_FREE uint64_t *values = calloc((size_t)header->pointer_count + 1, sizeof *values);
    CLEANUP_FREE uint8_t *raw = malloc((size_t)header->pointer_count * header->pointer_size + 1);
    if (!values || !raw)
        return error_set(loader->err, CDACQ_ERR_NOMEM, 0, "out of memory for the descriptor");
    enum cdacq_status status = CDACQ_OK;
    if (header->pointer_count)
        status = read_data(loader, header->pointers, raw, (size_t)header->pointer_count * header->pointer_size);
    if (status < 0)
        return status;
    for (uint32_t i = 0; i < header->pointer_count; i++)
        values[i] = header->pointer_size == 4 ? load_u32(raw + i * 4, header->big_endian)
                                              : load_u64(raw + i * 8, header->big_endian);
    *ret = take_ptr(values);
    return CDACQ_OK;
}

static enum cdacq_status add_baseline(struct loader *loader, const struct json *root)
{
    const struct json *name = json_get(root, "baseline");
    if (!name || json_kind(name) != JSON_STRING || strcmp(json_text(name), "empty") == 0)
        return CDACQ_OK;
    const char *text;
    size_t size;
    struct json *baseline;
    char origin[100], printable[60];
    error_printable(printable, sizeof printable, json_text(name));
    if (!loader->baseline || !loader->baseline(json_text(name), &text, &size))
        return error_set(loader->err, CDACQ_ERR_DESCRIPTOR, 0,
                         "the descriptor builds on the baseline \"%s\", which this build does not have", printable);
    snprintf(origin, sizeof origin, "baseline %s", printable);
    enum cdacq_status status = json_parse(text, size, origin, &baseline, loader->err);
    if (status < 0)
        return status;
    struct pointer_data none = {0};
    status = descriptor_add(loader->descriptor, baseline, origin, none, MERGE_ADD, loader->err);
    json_free(baseline);
    return status;
}

static void name_of_sub_descriptor(const char *key, char ret[ORIGIN_SIZE])
{
    char printable[60];
    snprintf(ret, ORIGIN_SIZE, "sub-descriptor %s", error_printable(printable, sizeof printable, key));
}

static void note_missing(struct loader *loader, const char *origin, const char *why)
{
    bool is_named = string_begins_with(why, origin);
    if (!loader->info.missing[0])
        snprintf(loader->info.missing, sizeof loader->info.missing, "%s%s%s", is_named ? "" : origin,
                 is_named ? "" : ": ", why);
}

/* Puts a descriptor into the queue, once. */
static enum cdacq_status add_pending(struct loader *loader, uint64_t address, const char *origin)
{
    struct pending pending = {.address = address};
    if (addresses_find(&loader->seen, address))
        return CDACQ_OK;
    snprintf(pending.origin, sizeof pending.origin, "%s", origin);
    if (!addresses_insert(&loader->seen, address, NULL) || !pendings_append(&loader->queue, pending))
        return error_set(loader->err, CDACQ_ERR_NOMEM, 0, "out of memory for the descriptor");
    return CDACQ_OK;
}

/*
 * {"GC": [[N], "pointer"]}: pointer N is the address of a variable that holds the address of another descriptor, or
 * null where there is none (yet). No file holds the value of that variable.
 */
static enum cdacq_status add_sub_descriptors(struct loader *loader, const struct json *root,
                                             const struct header *header, const uint64_t *pointers)
{
    const struct json *subs = json_get(root, "subDescriptors");
    if (!subs)
        return CDACQ_OK;
    for (const struct json *sub = json_first(subs); sub; sub = json_next(sub)) {
        const struct json *value = json_kind(sub) == JSON_ARRAY && json_count(sub) == 2 ? json_first(sub) : sub;
        uint64_t index;
        char origin[ORIGIN_SIZE];
        name_of_sub_descriptor(json_key(sub), origin);
        if (json_kind(value) != JSON_ARRAY || json_count(value) != 1 || !json_integer(json_first(value), &index) ||
            index >= header->pointer_count) {
            note_missing(loader, origin, "not an index into the pointer data");
            continue;
        }
        struct reader reader;
        reader_init(&reader, loader->target, header->pointer_size, header->big_endian);
        uint64_t address = pointers[index] ? read_pointer(&reader, pointers[index]) : 0;
        if (reader_failed(&reader)) {
            reader_status(&reader, loader->err);
            note_missing(loader, origin, loader->err->message);
        }
        if (!address || reader_failed(&reader))
            continue;
        enum cdacq_status status = add_pending(loader, address, origin);
        if (status < 0)
            return status;
    }
    return CDACQ_OK;
}

/* Adds the items of a sub-descriptor, or none if one of them is malformed. */
static enum cdacq_status add_whole(struct loader *loader, const struct json *root, const char *origin,
                                   struct pointer_data data)
{
    struct descriptor trial = {0};
    enum cdacq_status status = descriptor_add(&trial, root, origin, data, MERGE_ADD, loader->err);
    descriptor_deinit(&trial);
    return status < 0 ? status : descriptor_add(loader->descriptor, root, origin, data, MERGE_ADD, loader->err);
}

/* False if the pointer to the JSON is an offset in the image, as in the file: the image is being loaded. */
static bool is_relocated(const struct loader *loader, const struct header *header)
{
    const struct image *image = loader->image;
    return !image || !image->base || header->json >= image->end - image->base;
}

static enum cdacq_status load_json(struct loader *loader, const struct header *header, const char *origin, bool is_main)
{
    struct reader reader;
    struct window text;
    struct json *root;
    CLEANUP_FREE uint64_t *pointers = NULL;
    reader_init(&reader, loader->target, header->pointer_size, header->big_endian);
    reader_begin(&reader, FUEL_OPEN);
    if (!reader_window(&reader, header->json, header->json_size, "the descriptor's JSON", &text)) {
        enum cdacq_status status = reader_status(&reader, loader->err);
        if (status == CDACQ_ERR_MEMORY && is_main && !is_relocated(loader, header))
            return error_set(loader->err, CDACQ_ERR_NO_RUNTIME, header->json,
                             "the runtime has not started yet: its image is not relocated (the process ended early, or "
                             "is still loading)");
        return status;
    }
    enum cdacq_status status = json_parse((const char *)text.bytes, text.size, origin, &root, loader->err);
    window_deinit(&text);
    if (status < 0)
        return status;
    status = read_pointers(loader, header, &pointers);
    if (status >= 0 && is_main)
        status = add_baseline(loader, root);
    if (status >= 0) {
        struct pointer_data data = {.values = pointers, .count = header->pointer_count};
        status = is_main ? descriptor_add(loader->descriptor, root, origin, data, MERGE_OVERRIDE, loader->err)
                         : add_whole(loader, root, origin, data);
    }
    if (status >= 0)
        status = add_sub_descriptors(loader, root, header, pointers);
    json_free(root);
    return status;
}

static enum cdacq_status load(struct loader *loader, uint64_t address, const char *origin, bool is_main)
{
    struct header header = {0};
    enum cdacq_status status = read_header(loader, address, &header);
    if (status < 0)
        return status;
    if (is_main) {
        loader->info.pointer_size = header.pointer_size;
        loader->info.big_endian = header.big_endian;
    } else if (header.pointer_size != loader->info.pointer_size || header.big_endian != loader->info.big_endian) {
        return error_set(loader->err, CDACQ_ERR_DESCRIPTOR, address,
                         "%s: its pointer size or byte order is not that of the main descriptor", origin);
    }
    loader->size += HEADER_SIZE + header.json_size + (uint64_t)header.pointer_count * header.pointer_size;
    if (loader->size > CONTRACT_SIZE_MAX)
        return error_set(loader->err, CDACQ_ERR_DESCRIPTOR, address,
                         "%s: the descriptors together are larger than the %d bytes that are read", origin,
                         CONTRACT_SIZE_MAX);
    return load_json(loader, &header, origin, is_main);
}

enum cdacq_status contract_descriptor_read(struct target *target, const struct image *image, uint64_t address,
                                           bool (*baseline)(const char *name, const char **ret_text, size_t *ret_size),
                                           struct descriptor *descriptor, struct contract_descriptor_info *ret,
                                           struct cdacq_error *err)
{
    struct cdacq_error error;
    struct loader loader = {
        .target = target, .image = image, .baseline = baseline, .descriptor = descriptor, .err = &error};
    enum cdacq_status status = add_pending(&loader, address, "runtime");
    /* One after the other: they can be nested to any depth. */
    for (size_t i = 0; i < loader.queue.count && status >= 0; i++) {
        struct pending pending = loader.queue.items[i];
        status = load(&loader, pending.address, pending.origin, i == 0);
        if ((status == CDACQ_ERR_MEMORY || status == CDACQ_ERR_DESCRIPTOR) && i) {
            note_missing(&loader, pending.origin, error.message);
            status = CDACQ_OK;
        }
    }
    addresses_deinit(&loader.seen);
    pendings_deinit(&loader.queue);
    if (status >= 0)
        *ret = loader.info;
    else if (err)
        *err = error;
    return status;
}
