/* options.c: reads the values of options by their rows. */
#include "src/cli/base/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/base/console.h"
#include "src/cli/base/ip_text.h"

bool option_is_in(const struct option_row *row, const struct option_row *rows)
{
    while (rows->name && rows != row)
        rows++;
    return rows->name;
}

bool option_choice(const struct option_row *row, size_t number, char *ret, size_t size)
{
    const char *words = row->choices;
    while (number-- && words)
        words = strchr(words, ' ') ? strchr(words, ' ') + 1 : NULL;
    if (!words)
        return false;
    snprintf(ret, size, "%.*s", (int)strcspn(words, " "), words);
    return true;
}

static bool wrong_value(const struct option_row *row, const char *value, const char *problem)
{
    message("--%s '%s': %s", row->name, value, problem);
    return false;
}

/* With a unit of K, M, G or T: of bytes, powers of 1,024; of steps, powers of 1,000. */
static bool read_number(const struct option_row *row, const char *value, uint64_t *ret)
{
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    const char *unit = row->unit && *end ? strchr(units, *end) : NULL;
    bool wrong = value[0] < (row->unit && row->min ? '1' : '0') || value[0] > '9' || errno || end[unit != NULL];
    for (ptrdiff_t i = 0; unit && i <= unit - units; i++)
        wrong |= __builtin_mul_overflow(number, row->unit, &number);
    if (wrong || number < row->min || number > row->max)
        return wrong_value(row, value, row->wrong);
    *ret = number;
    return true;
}

static bool read_address(const struct option_row *row, const char *value, uint64_t *ret)
{
    struct bad_ip bad;
    if (!ip_parse(value, strlen(value), ret, &bad))
        return wrong_value(row, value, bad.problem);
    return *ret >= row->min || wrong_value(row, value, row->wrong);
}

static bool read_choice(const struct option_row *row, const char *value, uint64_t *ret)
{
    char one[32], next[32], problem[160] = "";
    for (size_t i = 0; option_choice(row, i, one, sizeof one); i++) {
        if (!strcmp(value, one)) {
            *ret = i;
            return true;
        }
        size_t length = strlen(problem);
        bool is_last = !option_choice(row, i + 1, next, sizeof next);
        snprintf(problem + length, sizeof problem - length, "%s'%s'", !i ? "expected " : is_last ? " or " : ", ", one);
    }
    return wrong_value(row, value, problem);
}

static bool read_value(const struct option_row *row, const char *value, uint64_t *ret)
{
    switch (row->kind) {
    case OPTION_CHOICE:
        return read_choice(row, value, ret);
    case OPTION_NUMBER:
        return read_number(row, value, ret);
    case OPTION_ADDRESS:
        return read_address(row, value, ret);
    case OPTION_OUTPUT:
        return value[0] || wrong_value(row, value, "not a file name");
    default:
        return true;
    }
}

bool option_read(const struct option_row *row, const char *value, void *options)
{
    uint64_t number = 0;
    if (!read_value(row, value, &number))
        return false;
    if (!options)
        return true;
    char *member = (char *)options + row->offset;
    if (row->given)
        *(bool *)((char *)options + row->given) = true;
    if (row->kind == OPTION_FLAG)
        *(bool *)member = true;
    else if (row->kind == OPTION_BITS)
        *(unsigned *)member |= row->bits;
    else if (row->kind == OPTION_OUTPUT)
        *(const char **)member = strcmp(value, "-") != 0 ? value : NULL;
    else if (row->kind == OPTION_CHOICE || row->width == sizeof(unsigned))
        *(unsigned *)member = (unsigned)number;
    else
        *(uint64_t *)member = number;
    return true;
}
