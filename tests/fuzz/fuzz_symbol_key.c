/*
 * fuzz_symbol_key.c: any bytes as the key of a symbol server, and as a URL. What comes of a key is three names that
 * lead nowhere else.
 */
#include "src/files/symbol_key.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;

static void check_part(const char *part)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%";
    size_t length = strlen(part);
    if (!length || length >= SYMBOL_KEY_PART_SIZE || strspn(part, plain) != length || !strcmp(part, ".") ||
        !strcmp(part, ".."))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct symbol_key key;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    if (symbol_key_read(text, &key)) {
        check_part(key.name);
        check_part(key.middle);
        check_part(key.plain_name);
        if (strcasecmp(key.name, key.plain_name) != 0)
            abort();
    }
    if (symbol_key_is_url(text)) {
        if (strncmp(text, "http", 4) != 0 || strpbrk(text, "?# \n"))
            abort();
        sink += strlen(text);
    }
    free(text);
    return 0;
}
