#include "formats/perf_map.h"

#include <inttypes.h>
#include <stdio.h>

void perf_map_open(const void *bytes, size_t size, struct perf_map *ret)
{
    *ret = (struct perf_map){.next = bytes, .end = (const char *)bytes + size};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && is_blank(*p))
        p++;
    return p;
}

/* A hexadecimal number up to a blank or the end. Returns its end; NULL if there is none. */
static const char *take_number(const char *p, const char *end, uint64_t *ret)
{
    if (end - p > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
        p += 2;
    const char *first = p;
    uint64_t value = 0;
    for (; p < end && digit_value(*p) < 16; p++) {
        if (value >> 60)
            return NULL;
        value = value << 4 | digit_value(*p);
    }
    if (p == first || (p < end && !is_blank(*p)))
        return NULL;
    *ret = value;
    return p;
}

/* Returns what is wrong with the line [p, end), or NULL. */
static const char *parse(const char *p, const char *end, struct perf_map_symbol *ret)
{
    p = take_number(skip_blanks(p, end), end, &ret->address);
    if (!p)
        return "its start is not a hexadecimal number";
    p = take_number(skip_blanks(p, end), end, &ret->size);
    if (!p)
        return "its size is not a hexadecimal number";
    if (ret->size && ret->size - 1 > UINT64_MAX - ret->address)
        return "it goes beyond the last address";
    ret->name = skip_blanks(p, end);
    ret->name_length = (size_t)(end - ret->name);
    return NULL;
}

enum perf_map_result perf_map_next(struct perf_map *map, struct perf_map_symbol *ret, const char **ret_problem)
{
    while (map->next < map->end) {
        const char *line = map->next, *end = memchr(line, '\n', (size_t)(map->end - line));
        map->next = end ? end + 1 : map->end;
        end = end ? end : map->end;
        map->line++;
        while (end > line && end[-1] == '\r')
            end--;
        if (skip_blanks(line, end) == end)
            continue;
        struct perf_map_symbol symbol;
        const char *problem = parse(line, end, &symbol);
        if (problem) {
            map->bad_lines++;
            *ret_problem = problem;
            return PERF_MAP_BAD;
        }
        *ret = symbol;
        return PERF_MAP_SYMBOL;
    }
    return PERF_MAP_END;
}

size_t perf_map_encode(uint64_t address, uint64_t size, char *ret)
{
    return (size_t)snprintf(ret, PERF_MAP_HEAD_MAX, "0x%" PRIx64 " %" PRIx64 " ", address, size);
}
