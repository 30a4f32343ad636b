/*
 * fuzz_json.c: any bytes as the JSON of a data descriptor: parsed, walked, merged as a runtime's and as a supplement,
 * and bound. What one document says twice must be there as often, and what was accepted must be found again.
 */
#include "descriptors/descriptor.h"
#include "descriptors/json.h"
#include "descriptors/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;

static void walk(const struct json *value)
{
    uint64_t number;
    const char *text = json_text(value);
    if ((text != NULL) != (json_kind(value) == JSON_NUMBER || json_kind(value) == JSON_STRING))
        abort();
    if (json_integer(value, &number) && !text)
        abort();
    sink += strlen(json_key(value)) + (text ? strlen(text) : 0);
    size_t count = 0;
    for (const struct json *item = json_first(value); item; item = json_next(item), count++)
        walk(item);
    if (count != json_count(value))
        abort();
}

static void add(struct descriptor *descriptor, const struct json *root, enum descriptor_merge merge)
{
    static const uint64_t values[24] = {0, 0x1000, UINT64_MAX};
    const struct pointer_data pointers = {.values = values, .count = ARRAY_SIZE(values)};
    struct cdacq_error error;
    if (descriptor_add(descriptor, root, "fuzz", pointers, merge, &error) < 0 && !error.message[0])
        abort();
    for (size_t i = 0; i < descriptor->items.count; i++) {
        const struct descriptor_item *item = &descriptor->items.items[i];
        if (descriptor_find(descriptor, item->kind, item->scope, item->name) != item || !item->origin)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json *root;
    struct cdacq_error error;
    if (json_parse((const char *)data, size, "fuzz", &root, &error) < 0) {
        if (!error.message[0] || error.status != CDACQ_ERR_DESCRIPTOR)
            abort();
        return 0;
    }
    walk(root);
    struct descriptor descriptor = {0};
    struct layout layout;
    add(&descriptor, root, MERGE_OVERRIDE);
    add(&descriptor, root, MERGE_ADD);
    for (unsigned pointer_size = 4; pointer_size <= 8; pointer_size += 4) {
        if (layout_bind(&descriptor, pointer_size, 0, &layout, &error) < 0)
            abort(); /* nothing was needed */
        char names[300];
        for (enum layout_contract contract = 0; contract < LAYOUT_CONTRACT_COUNT; contract++)
            layout_missing(&layout, contract, names, sizeof names);
        layout_bind(&descriptor, pointer_size, UINT32_MAX, &layout, &error);
    }
    descriptor_deinit(&descriptor);
    json_free(root);
    return 0;
}
