#include "contracts/objects/resource_keys.h"

#include <strings.h>

#include "contracts/objects/field.h"
#include "contracts/objects/object.h"
#include "contracts/objects/static_field.h"
#include "contracts/objects/string.h"
#include "contracts/type_system/core_type.h"

enum {
    PROPERTIES_MAX = 64 * 1024, /* of AppContext */
    VALUE_MAX = 64,             /* characters of "true" and white space */
};

static const char switch_name[] = "System.Resources.UseSystemResourceKeys";

/* Whether a string is `expected`; white space at its ends and the case of letters make no difference. */
static bool is_text(struct reader *reader, uint64_t string, const char *expected)
{
    struct text text = {0};
    bool equal = false;
    if (string && string_append(reader, string, VALUE_MAX, &text) && text.data) {
        size_t begin = strspn(text.data, " \t\r\n"), length = strlen(expected);
        equal = strncasecmp(text.data + begin, expected, length) == 0 &&
                text.data[begin + length + strspn(text.data + begin + length, " \t\r\n")] == '\0';
    }
    text_deinit(&text);
    return equal;
}

/* The value of a key of a Dictionary<string, object>. False: it has none, or the reader fails. */
static bool dictionary_find(struct module_cache *cache, uint64_t dictionary, const char *key, uint64_t *ret)
{
    struct reader *reader = cache->reader;
    struct object_field key_field, value_field;
    struct object_array entries;
    uint64_t object;
    if (!object_reference(cache, dictionary, "_entries", &object) || !object ||
        !object_array_read(reader, object, &entries) ||
        !object_field_declared(cache, entries.element_type, "key", &key_field) ||
        !object_field_declared(cache, entries.element_type, "value", &value_field))
        return false;
    for (uint32_t i = 0; i < MIN(entries.count, (uint32_t)PROPERTIES_MAX) && !reader_failed(reader); i++) {
        uint64_t entry = entries.elements + (uint64_t)i * entries.element_size;
        uint64_t string = read_pointer(reader, entry + key_field.offset);
        if (string && string_length(reader, string) == strlen(key) && is_text(reader, string, key)) {
            *ret = read_pointer(reader, entry + value_field.offset);
            return !reader_failed(reader);
        }
    }
    return false;
}

/* What the core library has found. */
static enum resource_texts read_answer(struct module_cache *cache, uint64_t core)
{
    struct static_field field;
    uint64_t type = core_type(cache, core, "System", "SR");
    if (!type || !static_field_find(cache, type, "s_usingResourceKeys", &field))
        return RESOURCE_TEXTS_UNKNOWN;
    uint64_t value = read_uint(cache->reader, field.address, 1);
    return reader_failed(cache->reader) ? RESOURCE_TEXTS_UNKNOWN
           : value & 1                  ? RESOURCE_KEYS
           : field.is_initialized       ? RESOURCE_TEXTS
                                        : RESOURCE_TEXTS_UNKNOWN;
}

/* What it will find: the properties that the process was started with have the switch. */
static enum resource_texts read_switch(struct module_cache *cache, uint64_t core)
{
    uint64_t properties, value = 0;
    uint64_t type = core_type(cache, core, "System", "AppContext");
    if (!type || !static_reference(cache, type, "s_dataStore", &properties) || !properties)
        return RESOURCE_TEXTS_UNKNOWN;
    bool is_on = dictionary_find(cache, properties, switch_name, &value) && is_text(cache->reader, value, "true");
    return reader_failed(cache->reader) ? RESOURCE_TEXTS_UNKNOWN : is_on ? RESOURCE_KEYS : RESOURCE_TEXTS;
}

enum resource_texts resource_texts_find(struct module_cache *cache)
{
    struct reader *reader = cache->reader;
    struct reader_task outer = reader_enter(reader, FUEL_INDEX);
    uint64_t core = core_module(cache->reader);
    enum resource_texts ret = core ? read_answer(cache, core) : RESOURCE_TEXTS_UNKNOWN;
    (void)reader_leave(reader, &outer);
    if (!core || ret != RESOURCE_TEXTS_UNKNOWN)
        return ret;
    outer = reader_enter(reader, FUEL_INDEX);
    ret = read_switch(cache, core);
    (void)reader_leave(reader, &outer);
    return ret;
}
