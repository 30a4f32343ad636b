#include "formats/perf_name.h"

#include "util/escape.h"

bool perf_name_is_stub(const char *name, size_t length)
{
    static const char stub[] = "stub";
    size_t i = sizeof stub - 1;
    if (length <= i || memcmp(name, stub, i) != 0)
        return false;
    if (name[i] == '<') {
        for (i++; i < length && name[i] >= '0' && name[i] <= '9'; i++)
            ;
        if (i == length || name[i++] != '>')
            return false;
    }
    return i < length && name[i] == ' ';
}

static size_t backslashes(const char *p, const char *end)
{
    size_t count = 0;
    while (p + count < end && p[count] == '\\')
        count++;
    return count;
}

/* The end of `il`, in the file's spelling, if it is at `p`; otherwise NULL. */
static const char *take_il(const char *p, const char *end, const char *il, size_t il_length)
{
    const char *il_end = il + il_length;
    if ((size_t)(end - p) >= il_length && memcmp(p, il, il_length) == 0)
        return p + il_length;
    while (il < il_end) {
        char form[ESCAPED_CHARACTER_SIZE];
        size_t taken, count = backslashes(p, end);
        if (count) {
            /* One more may belong to the escape of what follows. */
            size_t shown = backslashes(il, il_end);
            bool doubled = shown >= 2 * count;
            if (shown < count)
                return NULL;
            p += count;
            il += doubled ? 2 * count : count;
            continue;
        }
        if (p == end)
            return NULL;
        size_t form_length = (size_t)(escape_character(form, p, (size_t)(end - p), ESCAPE_DATA, &taken) - form);
        p += taken;
        if ((size_t)(il_end - il) < form_length || memcmp(il, form, form_length) != 0)
            return NULL;
        il += form_length;
    }
    return p;
}

/* The end of a tier such as "[Tier1]" at `p`, or `p`. */
static const char *skip_tier(const char *p, const char *end)
{
    const char *q = p + 1;
    if (p == end || *p != '[')
        return p;
    while (q < end && ((*q | 0x20) >= 'a' ? (*q | 0x20) <= 'z' : (*q >= '0' && *q <= '9') || *q == '-'))
        q++;
    return q < end && *q == ']' && q > p + 1 ? q + 1 : p;
}

bool perf_name_is_of(const char *name, size_t length, const char *il, size_t il_length)
{
    const char *end = name + length, *p = take_il(name, end, il, il_length);
    if (!p)
        return false;
    const char *hot = skip_tier(p, end);
    if (hot == end)
        return true;
    p = hot == p ? NULL : take_il(hot, end, il, il_length);
    return p && p != end && skip_tier(p, end) == end;
}
