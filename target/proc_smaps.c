#include "target/proc_smaps.h"

#include <ctype.h>
#include <errno.h>

/* Cuts the next line off. NULL: there is none. */
static char *next_line(char **text)
{
    char *line = *text, *end = strchr(line, '\n');
    if (!*line)
        return NULL;
    *text = end ? end + 1 : line + strlen(line);
    if (end)
        *end = '\0';
    return line;
}

/* "begin-end perms offset device inode   path". The other lines begin with a name in capital letters. */
static bool parse_header(char *line, struct proc_smap *ret)
{
    enum { FIELDS = 4 }; /* between the addresses and the path */
    char *at = line;
    if (!isxdigit((unsigned char)*line))
        return false;
    errno = 0;
    uint64_t begin = strtoull(at, &at, 16);
    if (*at != '-' || !isxdigit((unsigned char)at[1]))
        return false;
    uint64_t end = strtoull(at + 1, &at, 16);
    if (*at != ' ' || errno || begin >= end)
        return false;
    for (int i = 0; i < FIELDS; i++) {
        at += strspn(at, " ");
        at += strcspn(at, " ");
    }
    *ret = (struct proc_smap){.begin = begin, .end = end, .path = at + strspn(at, " ")};
    return true;
}

/* "Rss:   12 kB" */
static void parse_size(const char *line, const char *name, uint64_t *ret)
{
    size_t length = strlen(name);
    uint64_t size;
    if (strncmp(line, name, length) != 0)
        return;
    line += length + strspn(line + length, " ");
    if (isdigit((unsigned char)*line) && !__builtin_mul_overflow(strtoull(line, NULL, 10), UINT64_C(1024), &size))
        *ret = size;
}

bool proc_smaps_next(char **text, struct proc_smap *ret)
{
    bool found = false;
    for (char *line; !found && (line = next_line(text));)
        found = parse_header(line, ret);
    if (!found)
        return false;
    while (isupper((unsigned char)**text)) {
        const char *line = next_line(text);
        parse_size(line, "Rss:", &ret->resident);
        parse_size(line, "Swap:", &ret->swapped);
    }
    return true;
}
