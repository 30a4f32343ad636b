#include "descriptors/supplement.h"

#include <inttypes.h>
#include <stdio.h>

#include "cdacq/target.h"
#include "descriptors/descriptor.h"
#include "descriptors/embedded.h"
#include "descriptors/json.h"
#include "target/image.h"
#include "target/reader.h"

enum { POINTER_DATA_MAX = 4096 };

static bool is_pointer_data(const struct json *root, const char *symbol)
{
    const struct json *name = json_get(root, "$pointer_data");
    return name && json_text(name) && strcmp(json_text(name), symbol) == 0;
}

/* How many pointers an array of `size` bytes lacks of those that servicing versions added. -1: it is another array. */
static int missing_pointers(const struct json *root, const struct image *image, uint64_t size, uint64_t whole_size)
{
    const struct json *added = json_get(root, "$pointer_data_added");
    unsigned word = image->elf.wide ? 8 : 4;
    if (size > whole_size || (whole_size - size) % word || (whole_size - size) / word > json_count(added))
        return -1;
    return (int)((whole_size - size) / word);
}

/* `any_pointer_data`: the array of pointers may have any size. Otherwise *ret_missing is how many it lacks, if any. */
static bool symbols_match(const struct json *root, const struct json *symbols, const struct image *image,
                          bool any_pointer_data, int *ret_missing)
{
    for (const struct json *symbol = json_first(symbols); symbol; symbol = json_next(symbol)) {
        uint64_t address, size = 0, wanted = 0;
        bool found = image_find_symbol(image, json_key(symbol), &address, &size);
        if (json_kind(symbol) == JSON_NULL ? found : !found || !json_integer(symbol, &wanted))
            return false;
        if (size == wanted)
            continue;
        if (!is_pointer_data(root, json_key(symbol)))
            return false;
        if (!any_pointer_data && (*ret_missing = missing_pointers(root, image, size, wanted)) < 0)
            return false;
    }
    return true;
}

static bool is_optional(const struct json *root)
{
    return json_get(root, "$pointer_data_optional") != NULL;
}

/* Whether a global's value is an index into the array of pointers. */
static bool has_indirect_values(const struct json *root)
{
    const struct json *globals = json_get(root, "globals");
    for (const struct json *global = globals ? json_first(globals) : NULL; global; global = json_next(global)) {
        const struct json *value = json_kind(global) == JSON_ARRAY ? json_first(global) : NULL;
        if (value && json_kind(value) == JSON_ARRAY)
            return true;
    }
    return false;
}

/* What a supplement is looked for: the image of a runtime, or else what a runtime publishes. */
struct wanted {
    const struct image *image; /* NULL: by the descriptor */
    const char *release;       /* of an image whose array of pointers may have any size; or NULL */
    unsigned elf_machine;
    const struct descriptor *descriptor;
};

/* Whether the image has the symbols that the file names. */
static bool matches_image(const struct json *root, const struct json *match, const struct wanted *wanted,
                          struct supplement *ret)
{
    const struct json *symbols = json_get(match, "symbols");
    char runtime[32];
    snprintf(runtime, sizeof runtime, ".NET %s", wanted->release ? wanted->release : "");
    if (!symbols || json_kind(symbols) != JSON_OBJECT)
        return false;
    if (wanted->release && (strcmp(ret->runtime, runtime) != 0 || !is_optional(root)))
        return false;
    return symbols_match(root, symbols, wanted->image, wanted->release, &ret->missing_pointers);
}

/* Whether a runtime publishes each of the texts, and a version of the release that the file names. */
static bool matches_published(const struct json *match, const struct descriptor *descriptor, const char *runtime)
{
    static const char prefix[] = ".NET ";
    const struct json *globals = json_get(match, "globals");
    const struct descriptor_item *version =
        descriptor_find(descriptor, CDACQ_ITEM_GLOBAL, "", "RuntimeProductVersionString");
    size_t length = strlen(runtime);
    if (!globals || length <= sizeof prefix - 1 || !version || !version->text)
        return false;
    runtime += sizeof prefix - 1;
    length -= sizeof prefix - 1;
    if (strncmp(version->text, runtime, length) != 0 || version->text[length] != '.')
        return false;
    for (const struct json *global = json_first(globals); global; global = json_next(global)) {
        const struct descriptor_item *item = descriptor_find(descriptor, CDACQ_ITEM_GLOBAL, "", json_key(global));
        if (!item || !item->text || !json_text(global) || strcmp(item->text, json_text(global)) != 0)
            return false;
    }
    return true;
}

static bool matches(const struct json *root, const struct wanted *wanted, struct supplement *ret)
{
    const struct json *match = json_get(root, "$match");
    const struct json *machine = match ? json_get(match, "elf_machine") : NULL;
    uint64_t number;
    ret->runtime = json_text(match ? json_get(match, "runtime") : NULL);
    if (!machine || !json_integer(machine, &number) || number != wanted->elf_machine || !ret->runtime)
        return false;
    return wanted->image ? matches_image(root, match, wanted, ret)
                         : matches_published(match, wanted->descriptor, ret->runtime);
}

static enum cdacq_status search(const struct wanted *wanted, struct supplement *ret, struct cdacq_error *err)
{
    *ret = (struct supplement){0};
    for (size_t i = 0; i < embedded_descriptor_count; i++) {
        const struct embedded_file *file = &embedded_descriptors[i];
        struct supplement found = {.name = file->name};
        enum cdacq_status status = json_parse((const char *)file->data, file->size, file->name, &found.root, err);
        if (status < 0)
            return status;
        if (matches(found.root, wanted, &found)) {
            *ret = found;
            return CDACQ_OK;
        }
        json_free(found.root);
    }
    return CDACQ_OK;
}

enum cdacq_status supplement_find_published(unsigned elf_machine, const struct descriptor *descriptor,
                                            struct supplement *ret, struct cdacq_error *err)
{
    return search(&(struct wanted){.elf_machine = elf_machine, .descriptor = descriptor}, ret, err);
}

enum cdacq_status supplement_find(const struct image *image, const char *release, struct supplement *ret,
                                  struct cdacq_error *err)
{
    const struct wanted wanted = {.image = image, .release = release, .elf_machine = image->machine};
    enum cdacq_status status = search(&wanted, ret, err);
    if (ret->root)
        ret->lacks_pointers = release && has_indirect_values(ret->root);
    return status;
}

void supplement_deinit(struct supplement *supplement)
{
    json_free(supplement->root);
    *supplement = (struct supplement){0};
}

bool supplement_fits(const struct supplement *supplement, const struct descriptor *descriptor)
{
    const struct json *types = json_get(json_get(supplement->root, "$match"), "fields");
    for (const struct json *type = types ? json_first(types) : NULL; type; type = json_next(type))
        for (const struct json *field = json_first(type); field; field = json_next(field)) {
            const struct descriptor_item *item =
                descriptor_find(descriptor, CDACQ_ITEM_FIELD, json_key(type), json_key(field));
            uint64_t offset;
            if (!item || !item->has_value || !json_integer(field, &offset) || item->value != offset)
                return false;
        }
    return true;
}

/* Whether the index is one of the last `count` that were added. */
static bool is_missing(const struct json *root, size_t index, int count)
{
    const struct json *added = json_get(root, "$pointer_data_added");
    int left = (int)json_count(added);
    uint64_t number;
    for (const struct json *item = json_first(added); item; item = json_next(item), left--)
        if (left <= count && json_integer(item, &number) && number == index)
            return true;
    return false;
}

/* Reads the array that indirect values refer to, from the dump only. Pointers that it lacks are 0. */
static enum cdacq_status read_pointer_data(const struct supplement *supplement, const struct image *image,
                                           const char *symbol, uint64_t **ret_values, size_t *ret_count,
                                           struct cdacq_error *err)
{
    uint64_t address, size;
    unsigned word = image->elf.wide ? 8 : 4;
    if (!image_find_symbol(image, symbol, &address, &size) || size / word > POINTER_DATA_MAX)
        return error_set(err, CDACQ_ERR_DESCRIPTOR, 0, "the runtime's %s cannot be found", symbol);
    *ret_count = size / word + (unsigned)supplement->missing_pointers;
    uint64_t *values = calloc(*ret_count + 1, sizeof *values);
    if (!values)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    struct reader reader;
    reader_init(&reader, image->target, word, image->elf.big);
    reader.dumped_only = true;
    for (size_t i = 0, read = 0; i < *ret_count && read < size / word; i++)
        if (!is_missing(supplement->root, i, supplement->missing_pointers))
            values[i] = read_pointer(&reader, address + read++ * word);
    if (reader_failed(&reader)) {
        free(values);
        return error_set(err, CDACQ_ERR_MEMORY, address,
                         "the runtime's %s at 0x%" PRIx64 " is not in the target, and no file holds its values", symbol,
                         address);
    }
    *ret_values = values;
    return CDACQ_OK;
}

enum cdacq_status supplement_add(const struct supplement *supplement, const struct image *image,
                                 struct descriptor *descriptor, struct cdacq_error *err)
{
    const struct json *symbol = json_get(supplement->root, "$pointer_data");
    CLEANUP_FREE uint64_t *values = NULL;
    struct pointer_data pointer_data = {0};
    char origin[100];
    if (supplement->lacks_pointers) {
        pointer_data = (struct pointer_data){.count = POINTER_DATA_MAX, .unknown = true};
    } else if (symbol && json_text(symbol) && has_indirect_values(supplement->root)) {
        enum cdacq_status status =
            read_pointer_data(supplement, image, json_text(symbol), &values, &pointer_data.count, err);
        pointer_data.unknown =
            status == CDACQ_ERR_MEMORY && (is_optional(supplement->root) || image->target->kind == CDACQ_TARGET_IMAGE);
        if (status < 0 && !pointer_data.unknown)
            return status;
        pointer_data.values = values;
    }
    snprintf(origin, sizeof origin, "supplement %s", supplement->name);
    return descriptor_add(descriptor, supplement->root, origin, pointer_data, MERGE_ADD, err);
}
