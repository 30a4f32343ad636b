#include "src/files/source_link.h"

enum { ENTRIES_MAX = 1024 }; /* entries that are compared with a path; compilers write one for each repository */

static const struct json *first_entry(const struct source_link *link)
{
    const struct json *documents = link->json ? json_get(link->json, "documents") : NULL;
    return documents && json_kind(documents) == JSON_OBJECT ? json_first(documents) : NULL;
}

void source_link_init(struct source_link *link, const void *json, size_t size)
{
    static const uint8_t byte_order_mark[] = {0xef, 0xbb, 0xbf};
    *link = (struct source_link){0};
    if (size >= sizeof byte_order_mark && memcmp(json, byte_order_mark, sizeof byte_order_mark) == 0) {
        json = (const char *)json + sizeof byte_order_mark;
        size -= sizeof byte_order_mark;
    }
    if (json_parse(json, size, "Source Link", &link->json, NULL) < 0)
        link->json = NULL;
    for (const struct json *entry = first_entry(link); entry && link->entry_count < ENTRIES_MAX;
         entry = json_next(entry)) {
        link->entry_count++;
        link->key_bytes += strlen(json_key(entry));
    }
}

size_t source_link_price(const struct source_link *link, size_t length)
{
    return MIN(link->key_bytes, link->entry_count * length);
}

void source_link_deinit(struct source_link *link)
{
    json_free(link->json);
    link->json = NULL;
}

static char to_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool equal_without_case(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (to_lower(a[i]) != to_lower(b[i]))
            return false;
    return true;
}

/*
 * Whether an entry is for a path: its key is the path or, if the key ends in `*`, the beginning of the path. The key
 * and the URL must both have a `*`, or neither. *ret_length is the length of the part that key and path share.
 */
static bool entry_fits(const struct json *entry, const char *path, size_t length, size_t *ret_length)
{
    const char *key = json_key(entry), *star = strchr(key, '*');
    size_t key_length = strlen(key);
    bool is_prefix = star && key + key_length - 1 == star;
    if (json_kind(entry) != JSON_STRING || !key_length || (star && !is_prefix) ||
        is_prefix != (strchr(json_text(entry), '*') != NULL))
        return false;
    key_length -= is_prefix;
    *ret_length = key_length;
    return (is_prefix ? key_length <= length : key_length == length) && equal_without_case(key, path, key_length);
}

/* Appends a part of a path to a URL. Characters that are neither unreserved (RFC 3986) nor separators become %XX. */
static void append_escaped(const char *path, size_t length, struct text *url)
{
    for (size_t i = 0; i < length; i++) {
        char c = path[i];
        if (c == '/' || c == '\\')
            text_putc(url, '/');
        else if ((to_lower(c) >= 'a' && to_lower(c) <= 'z') || (c >= '0' && c <= '9') || (c && strchr("-._~", c)))
            text_putc(url, c);
        else
            text_printf(url, "%%%02X", (unsigned char)c);
    }
}

void source_link_url(const struct source_link *link, const char *path, size_t length, struct text *url)
{
    const struct json *entry = memchr(path, '*', length) ? NULL : first_entry(link);
    const char *best = NULL;
    size_t best_length = 0;
    for (size_t i = 0; i < link->entry_count && entry; i++, entry = json_next(entry)) {
        size_t common;
        if (!entry_fits(entry, path, length, &common) || (best && common < best_length))
            continue;
        best = json_text(entry);
        best_length = common;
    }
    if (!best)
        return;
    const char *star = strchr(best, '*');
    text_append(url, best, star ? (size_t)(star - best) : strlen(best));
    if (!star)
        return;
    append_escaped(path + best_length, length - best_length, url);
    text_puts(url, star + 1);
}
