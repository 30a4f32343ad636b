#include "src/files/symbol_key.h"

#include <ctype.h>

/* Writes a part of a key so that it is one component of a URL, and a name of a file. False: it cannot be one. */
static bool escape_part(const char *part, size_t length, bool lower, char ret[SYMBOL_KEY_PART_SIZE])
{
    static const char digits[] = "0123456789ABCDEF";
    char *to = ret;
    if (!length || (part[0] == '.' && (length == 1 || (length == 2 && part[1] == '.'))))
        return false;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)part[i];
        if (ret + SYMBOL_KEY_PART_SIZE - to < 4)
            return false;
        if (c < 0x80 && (isalnum(c) || strchr("-._~", c))) {
            *to++ = (char)(lower ? tolower(c) : c);
            continue;
        }
        *to++ = '%';
        *to++ = digits[c >> 4];
        *to++ = digits[c & 15];
    }
    *to = '\0';
    return true;
}

bool symbol_key_read(const char *text, struct symbol_key *ret)
{
    const char *middle = strchr(text, '/'), *last = middle ? strchr(middle + 1, '/') : NULL;
    size_t length = middle ? (size_t)(middle - text) : 0;
    return last && strlen(last + 1) == length && memcmp(last + 1, text, length) == 0 &&
           escape_part(text, length, true, ret->name) && escape_part(text, length, false, ret->plain_name) &&
           escape_part(middle + 1, (size_t)(last - middle) - 1, false, ret->middle);
}

bool symbol_key_is_url(const char *url)
{
    size_t scheme = strncmp(url, "https://", 8) == 0 ? 8 : strncmp(url, "http://", 7) == 0 ? 7 : 0;
    size_t length = strnlen(url, SYMBOL_KEY_URL_MAX + 1);
    if (!scheme || length <= scheme || length > SYMBOL_KEY_URL_MAX)
        return false;
    for (size_t i = 0; i < length; i++)
        if (url[i] <= ' ' || url[i] > '~' || strchr("\"<>\\^`{|}", url[i]))
            return false;
    size_t host = strcspn(url + scheme, "/");
    if (!host || memchr(url + scheme, '@', host))
        return false; /* other users of the machine would see a password among curl's arguments */

    return !strpbrk(url, "?#"); /* a key comes after it */
}
