#include "src/cli/commands/name_pattern.h"

#include <string.h>

static bool matches(const char *text, size_t length, const char *pattern)
{
    const char *end = text + length, *star = NULL, *resume = NULL;
    while (text < end) {
        if (*pattern == '*') {
            star = ++pattern;
            resume = text;
        } else if (*pattern && (*pattern == '?' || *pattern == *text)) {
            pattern++;
            text++;
        } else if (star) { /* the last star takes one byte more; those before it need not */
            pattern = star;
            text = ++resume;
        } else {
            return false;
        }
    }
    return !pattern[strspn(pattern, "*")];
}

bool name_matches(const char *name, const char *pattern)
{
    size_t length = strlen(name), bare = strcspn(name, "(");
    return matches(name, length, pattern) || (bare < length && matches(name, bare, pattern));
}

bool name_is_wanted(const char *name, const struct word_list *patterns)
{
    bool wanted = !patterns->count;
    for (size_t i = 0; i < patterns->count && name; i++)
        wanted |= name_matches(name, patterns->items[i]);
    return wanted;
}
