#include "formats/perf_name.h"

#include "util/escape.h"

static const char NEWLINE[] = "\\x0a"; /* as CDACQ_NAMES_IL spells it */

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

/* The next newline of `il`, in its spelling: a backslash that no other one precedes, and its number. NULL: none. */
static const char *next_newline(const char *il, const char *end)
{
    while (il < end) {
        size_t count = backslashes(il, end);
        const char *last = il + count - 1;
        if (count % 2 && (size_t)(end - last) >= sizeof NEWLINE - 1 && memcmp(last, NEWLINE, sizeof NEWLINE - 1) == 0)
            return last;
        il += count ? count : 1;
    }
    return NULL;
}

static bool ends_with(const char *p, const char *end, const char *suffix, size_t length)
{
    return (size_t)(end - p) >= length && memcmp(end - length, suffix, length) == 0;
}

/* Where the line [p, end) of `il` ends without the carriage returns at its end. */
static const char *trim_returns(const char *p, const char *end)
{
    while (ends_with(p, end, "\\x0d", 4))
        end -= 4;
    return end;
}

static bool is_blank(const char *p, const char *end)
{
    for (end = trim_returns(p, end); p < end;) {
        if (ends_with(p, end, " ", 1))
            end--;
        else if (ends_with(p, end, "\\x09", 4))
            end -= 4;
        else
            return false;
    }
    return true;
}

const char *perf_name_take_line(const char *line, size_t length, const char *il, size_t il_length)
{
    const char *end = il + il_length, *newline = next_newline(il, end), *line_end = line + length;
    if (!newline)
        return NULL;
    if (take_il(line, line_end, il, (size_t)(newline - il)) != line_end &&
        take_il(line, line_end, il, (size_t)(trim_returns(il, newline) - il)) != line_end)
        return NULL;
    for (il = newline + sizeof NEWLINE - 1; (newline = next_newline(il, end)) && is_blank(il, newline);)
        il = newline + sizeof NEWLINE - 1; /* empty lines are no lines */
    return il;
}

bool perf_name_is_whole(const char *name, size_t length)
{
    return length && (name[length - 1] == ')' || name[length - 1] == ']');
}
