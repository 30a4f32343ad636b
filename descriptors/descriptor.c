#include "descriptors/descriptor.h"

#include <inttypes.h>

#include "descriptors/json.h"

enum { ITEMS_FIRST = 768 }; /* .NET 8 to 10 have 350 to 700 */

static struct descriptor_key key_of(const struct descriptor_item *item)
{
    return (struct descriptor_key){item->kind, item->scope, item->name};
}

static struct descriptor_key slot_key(const struct descriptor_slot *slot)
{
    return slot->key;
}

/* The writer of a descriptor cannot know the seed, and so cannot make all names collide. */
static uint64_t hash_key(struct descriptor_key key, uint64_t seed)
{
    return hash_string(key.name, hash_string(key.scope, seed ^ (uint64_t)key.kind));
}

static bool equal_keys(struct descriptor_key a, struct descriptor_key b)
{
    return a.kind == b.kind && strcmp(a.name, b.name) == 0 && (a.scope == b.scope || strcmp(a.scope, b.scope) == 0);
}

DEFINE_HASH_TABLE_FUNCTIONS(descriptor_slots, struct descriptor_slot, struct descriptor_key, slot_key, hash_key,
                            equal_keys);

void descriptor_deinit(struct descriptor *descriptor)
{
    arena_deinit(&descriptor->strings);
    descriptor_items_deinit(&descriptor->items);
    descriptor_slots_deinit(&descriptor->slots);
    *descriptor = (struct descriptor){0};
}

/* A copy that lives as long as the descriptor; NULL stays NULL. Sets *failed when out of memory. */
static const char *keep(struct descriptor *descriptor, const char *string, bool *failed)
{
    const char *copy = string ? arena_string(&descriptor->strings, string, strlen(string)) : NULL;
    *failed |= string && !copy;
    return string && !copy ? "" : copy;
}

const struct descriptor_item *descriptor_find(const struct descriptor *descriptor, enum cdacq_descriptor_item_kind kind,
                                              const char *scope, const char *name)
{
    const struct descriptor_slot *slot =
        descriptor_slots_find(&descriptor->slots, (struct descriptor_key){kind, scope, name});
    return slot ? &descriptor->items.items[slot->index] : NULL;
}

/* A document that is being added to the table. */
struct merger {
    struct descriptor *descriptor;
    const char *origin; /* kept */
    struct pointer_data pointer_data;
    enum descriptor_merge merge;
    const char *type; /* the name of the type that is being added; kept */
    struct cdacq_error *err;
};

static enum cdacq_status malformed(const struct merger *merger, const char *what, const char *name, const char *problem)
{
    char printable[100];
    return error_set(merger->err, CDACQ_ERR_DESCRIPTOR, 0, "%s: %s \"%s\": %s", merger->origin, what,
                     error_printable(printable, sizeof printable, name), problem);
}

static enum cdacq_status out_of_memory(const struct merger *merger)
{
    return error_set(merger->err, CDACQ_ERR_NOMEM, 0, "out of memory for the descriptor");
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Whether two documents agree on an item. Declared types are not compared: often only one document has one. */
static bool agrees(const struct descriptor_item *a, const struct descriptor_item *b)
{
    if (a->has_value && b->has_value)
        return a->value == b->value;
    return a->has_value == b->has_value && same_text(a->text, b->text);
}

/* Merges an item, whose strings are kept, into the one of an earlier document. */
static void merge_item(const struct merger *merger, struct descriptor_item *item, struct descriptor_item *old)
{
    bool unknown = !old->has_value && !old->text; /* a placeholder of a baseline, or an unknown size */
    bool silent = !item->has_value && !item->text;
    if (!unknown && !silent && !agrees(old, item))
        item->other = old->other = merger->merge == MERGE_OVERRIDE ? old->origin : merger->origin;
    if (unknown || (merger->merge == MERGE_OVERRIDE && !silent)) {
        if (!item->type)
            item->type = old->type;
        *old = *item;
    }
}

/*
 * Puts one item into the table by the merge rule, and copies its strings, which belong to the document, except for the
 * scope, which is kept already. `ret` may be NULL.
 */
static enum cdacq_status put(struct merger *merger, struct descriptor_item item, struct descriptor_slot **ret)
{
    struct descriptor *descriptor = merger->descriptor;
    struct descriptor_slot wanted = {.key = key_of(&item), .index = (uint32_t)descriptor->items.count}, *slot;
    bool added, failed = false;
    if (descriptor->items.count >= DESCRIPTOR_ITEM_MAX)
        return malformed(merger, "descriptor", item.name, "too many items");
    if (!descriptor_items_reserve(&descriptor->items, descriptor->items.count + 1) ||
        !(slot = descriptor_slots_insert(&descriptor->slots, wanted, &added)))
        return out_of_memory(merger);
    if (added)
        slot->key.name = keep(descriptor, item.name, &failed);
    item.scope = slot->key.scope;
    item.name = slot->key.name;
    item.type = keep(descriptor, item.type, &failed);
    item.text = keep(descriptor, item.text, &failed);
    item.origin = merger->origin;
    if (added)
        descriptor->items.items[descriptor->items.count++] = item;
    else
        merge_item(merger, &item, &descriptor->items.items[slot->index]);
    if (ret)
        *ret = slot;
    return failed ? out_of_memory(merger) : CDACQ_OK;
}

static bool is_word(const struct json *value, const char *word)
{
    return json_kind(value) == JSON_STRING && strcmp(json_text(value), word) == 0;
}

/* V, or [N] for pointer data. "unknown" leaves the item without a value. */
static enum cdacq_status read_plain_value(struct merger *merger, const struct json *value, struct descriptor_item *item)
{
    if (json_kind(value) == JSON_ARRAY) {
        uint64_t index;
        if (json_count(value) != 1 || !json_integer(json_first(value), &index))
            return malformed(merger, "value", item->name, "an indirect value is [index]");
        if (!merger->pointer_data.values && !merger->pointer_data.unknown)
            return malformed(merger, "value", item->name, "an indirect value, but this document has no pointer data");
        if (index >= merger->pointer_data.count)
            return malformed(merger, "value", item->name, "an indirect value beyond the pointer data");
        item->has_value = !merger->pointer_data.unknown;
        item->value = item->has_value ? merger->pointer_data.values[index] : 0;
        return CDACQ_OK;
    }
    if (json_kind(value) != JSON_NUMBER && json_kind(value) != JSON_STRING)
        return malformed(merger, "value", item->name, "neither a number nor a string");
    item->has_value = json_integer(value, &item->value);
    if (json_kind(value) == JSON_STRING && !is_word(value, "unknown"))
        item->text = json_text(value);
    else if (json_kind(value) == JSON_NUMBER && !item->has_value)
        return malformed(merger, "value", item->name, "not a whole number of 64 bits");
    return CDACQ_OK;
}

/* A global's value, compact form: V, [N], [V, "type"], [[N], "type"]. */
static enum cdacq_status read_global_value(struct merger *merger, const struct json *value,
                                           struct descriptor_item *item)
{
    if (json_kind(value) == JSON_ARRAY && json_count(value) == 2) {
        const struct json *first = json_first(value), *second = json_next(first);
        if (json_kind(second) != JSON_STRING)
            return malformed(merger, "global", item->name, "its type is not a string");
        item->type = json_text(second);
        return read_plain_value(merger, first, item);
    }
    return read_plain_value(merger, value, item);
}

/* A field's offset: N, or [N, "type"]; negative for a field in front of its object. */
static enum cdacq_status read_offset(struct merger *merger, const struct json *value, struct descriptor_item *item)
{
    const struct json *offset = value;
    if (json_kind(value) == JSON_ARRAY) {
        offset = json_first(value);
        const struct json *type = offset ? json_next(offset) : NULL;
        if (json_count(value) != 2 || json_kind(type) != JSON_STRING)
            return malformed(merger, "field", item->name, "an offset is N or [N, \"type\"]");
        item->type = json_text(type);
    }
    if (is_word(offset, "unknown"))
        return CDACQ_OK;
    if (!json_integer(offset, &item->value) || (item->value > UINT32_MAX && item->value < (uint64_t)(int64_t)INT32_MIN))
        return malformed(merger, "field", item->name, "its offset is not a 32-bit number");
    item->has_value = true;
    return CDACQ_OK;
}

static enum cdacq_status read_size(struct merger *merger, const struct json *value, struct descriptor_item *item)
{
    if (is_word(value, "indeterminate"))
        return CDACQ_OK;
    if (!json_integer(value, &item->value) || item->value > UINT32_MAX)
        return malformed(merger, "type", item->name, "its size is not a 32-bit number");
    item->has_value = true;
    return CDACQ_OK;
}

/*
 * The name of a type, field or global: its key in the compact form, a member in the regular form. NULL where the member
 * is missing.
 */
static const char *name_of(const struct json *item, bool regular)
{
    const struct json *name = regular ? json_get(item, "name") : NULL;
    if (!regular)
        return json_key(item);
    return name && json_kind(name) == JSON_STRING ? json_text(name) : NULL;
}

/* Sets the declared type that the regular form gives an item. */
static void read_type(const struct json *value, struct descriptor_item *item)
{
    const struct json *type = json_get(value, "type");
    if (type && json_kind(type) == JSON_STRING)
        item->type = json_text(type);
}

enum { FIELD_MAX = 1024 };

/* A field that occurs twice in one document is an error: either could be meant. */
static enum cdacq_status add_field(struct merger *merger, const struct json *field, bool regular)
{
    struct descriptor_item item = {.kind = CDACQ_ITEM_FIELD, .scope = merger->type, .name = name_of(field, regular)};
    const struct json *offset = regular ? json_get(field, "offset") : field;
    if (!item.name)
        return malformed(merger, "type", merger->type, "a field without a name");
    struct descriptor_slot *slot;
    enum cdacq_status status = offset ? read_offset(merger, offset, &item) : CDACQ_OK;
    if (regular)
        read_type(field, &item);
    if (status < 0 || (status = put(merger, item, &slot)) < 0)
        return status;
    if (slot->definition == merger->descriptor->definitions)
        return malformed(merger, "type", merger->type, "a field appears twice");
    slot->definition = merger->descriptor->definitions;
    return CDACQ_OK;
}

/* Compact: {"!": SIZE, "Field": OFFSET, ...}; regular: {"name", "size", "fields": [{"name", "type", "offset"}]} */
static enum cdacq_status add_type(struct merger *merger, const struct json *value, bool regular)
{
    const char *name = name_of(value, regular);
    const struct json *size = json_get(value, regular ? "size" : "!");
    const struct json *fields = regular ? json_get(value, "fields") : value;
    if (regular && (!name || (fields && json_kind(fields) != JSON_ARRAY)))
        return malformed(merger, "type", name ? name : "", "needs a name and an array of fields");
    if (!regular && json_kind(value) != JSON_OBJECT)
        return malformed(merger, "type", name, "not an object");
    if (fields && json_count(fields) > FIELD_MAX)
        return malformed(merger, "type", name, "too many fields");
    struct descriptor_item type = {.kind = CDACQ_ITEM_TYPE, .scope = "", .name = name};
    struct descriptor_slot *slot;
    enum cdacq_status status = size ? read_size(merger, size, &type) : CDACQ_OK;
    if (status >= 0)
        status = put(merger, type, &slot);
    if (status < 0)
        return status;
    merger->type = slot->key.name;
    merger->descriptor->definitions++;
    bool has_size = false;
    for (const struct json *field = fields ? json_first(fields) : NULL; field && status >= 0;
         field = json_next(field)) {
        if (regular || strcmp(json_key(field), "!") != 0)
            status = add_field(merger, field, regular);
        else if (has_size)
            status = malformed(merger, "type", name, "a field appears twice");
        else
            has_size = true;
    }
    return status;
}

/* Calls `add` for each element of an object (the compact form) or array (the regular form). */
static enum cdacq_status add_each(struct merger *merger, const char *key, const struct json *container,
                                  enum cdacq_status (*add)(struct merger *, const struct json *, bool regular))
{
    enum cdacq_status status = CDACQ_OK;
    bool regular = json_kind(container) == JSON_ARRAY;
    if (!regular && json_kind(container) != JSON_OBJECT)
        return malformed(merger, "key", key, "neither an object nor an array");
    for (const struct json *item = json_first(container); item && status >= 0; item = json_next(item))
        status = add(merger, item, regular);
    return status;
}

static enum cdacq_status add_global(struct merger *merger, const struct json *global, bool regular)
{
    struct descriptor_item item = {.kind = CDACQ_ITEM_GLOBAL, .scope = "", .name = name_of(global, regular)};
    if (!item.name)
        return malformed(merger, "key", "globals", "a global without a name");
    enum cdacq_status status = CDACQ_OK;
    const struct json *value = regular ? json_get(global, "value") : NULL;
    if (regular)
        read_type(global, &item);
    if (!regular)
        status = read_global_value(merger, global, &item);
    else if (value)
        status = read_plain_value(merger, value, &item);
    return status >= 0 ? put(merger, item, NULL) : status;
}

/* {"Name": 2} or {"Name": "c1"}: both forms are kept as text. */
static enum cdacq_status add_contracts(struct merger *merger, const struct json *contracts)
{
    enum cdacq_status status = CDACQ_OK;
    if (json_kind(contracts) != JSON_OBJECT)
        return malformed(merger, "key", "contracts", "not an object");
    for (const struct json *item = json_first(contracts); item && status >= 0; item = json_next(item)) {
        const char *version = json_text(item);
        if (!version)
            return malformed(merger, "contract", json_key(item), "its version is neither a number nor a string");
        status = put(
            merger,
            (struct descriptor_item){.kind = CDACQ_ITEM_CONTRACT, .scope = "", .name = json_key(item), .text = version},
            NULL);
    }
    return status;
}

enum cdacq_status descriptor_add(struct descriptor *descriptor, const struct json *root, const char *origin,
                                 struct pointer_data pointer_data, enum descriptor_merge merge, struct cdacq_error *err)
{
    bool failed = false;
    struct merger merger = {
        .descriptor = descriptor,
        .origin = keep(descriptor, origin, &failed),
        .pointer_data = pointer_data,
        .merge = merge,
        .err = err,
    };
    if (failed)
        return out_of_memory(&merger);
    if (json_kind(root) != JSON_OBJECT)
        return malformed(&merger, "document", origin, "not an object");
    if (!descriptor_items_reserve(&descriptor->items, ITEMS_FIRST) ||
        !descriptor_slots_reserve(&descriptor->slots, ITEMS_FIRST))
        return out_of_memory(&merger);
    const struct json *types = json_get(root, "types"), *globals = json_get(root, "globals");
    const struct json *contracts = json_get(root, "contracts"), *version = json_get(root, "version");
    uint64_t schema;
    if (version && (!json_integer(version, &schema) || schema > UINT32_MAX))
        return malformed(&merger, "key", "version", "not a number of 32 bits");
    /* The baseline comes first, but the runtime's own document gives the schema version. */
    bool own = merge == MERGE_OVERRIDE;
    if (version && (!descriptor->has_schema || (own && !descriptor->schema_is_own))) {
        descriptor->schema = (unsigned)schema;
        descriptor->has_schema = true;
        descriptor->schema_is_own = own;
    }
    enum cdacq_status status = types ? add_each(&merger, "types", types, add_type) : CDACQ_OK;
    if (status >= 0 && globals)
        status = add_each(&merger, "globals", globals, add_global);
    if (status >= 0 && contracts)
        status = add_contracts(&merger, contracts);
    return status;
}
