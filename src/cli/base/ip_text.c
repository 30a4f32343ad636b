#include "src/cli/base/ip_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "src/cli/base/console.h"

enum { IP_DIGITS = 16 };

#define NO_4   16, 16, 16, 16
#define NO_16  NO_4, NO_4, NO_4, NO_4
#define LETTER 16, 10, 11, 12, 13, 14, 15, 16, NO_4, NO_4
#define NO_64  NO_16, NO_16, NO_16, NO_16
const uint8_t ip_digit[256] = {
    NO_16, NO_16, NO_16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 16, NO_4, LETTER, NO_16, LETTER, NO_16, NO_64, NO_64,
};

static bool set_bad(struct bad_ip *bad, const char *text, size_t length, const char *problem)
{
    *bad = (struct bad_ip){text, length, problem};
    return false;
}

/* What no runtime maps as hex, and is where Linux maps libraries and JIT code as decimal. */
static bool is_decimal(const char *text, size_t length, struct bad_ip *bad)
{
    static char problem[80];
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    snprintf(problem, sizeof problem, "a decimal number? addresses are hexadecimal: it would be 0x%" PRIx64, value);
    return !set_bad(bad, text, length, problem);
}

bool ip_parse(const char *text, size_t length, uint64_t *ret, struct bad_ip *bad)
{
    while (length && ip_is_blank(text[0]))
        text++, length--;
    while (length && ip_is_blank(text[length - 1]))
        length--;
    if (!length)
        return set_bad(bad, text, length, "an empty line, not an address");

    size_t prefix = length >= 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 2 : 0;
    uint64_t value = 0;
    for (size_t i = prefix; i < length; i++) {
        uint8_t digit = ip_digit[(uint8_t)text[i]];
        if (digit >= 16)
            return set_bad(bad, text, length, "not a hexadecimal address");
        value = value << 4 | digit;
    }
    if (length == prefix)
        return set_bad(bad, text, length, "not a hexadecimal address");
    if (length - prefix > IP_DIGITS)
        return set_bad(bad, text, length, "more than 16 hexadecimal digits");
    if (!prefix && length == 15 && ip_looks_decimal(value) && is_decimal(text, length, bad))
        return false;
    *ret = value;
    return true;
}

void ip_complain(uint64_t line, const struct bad_ip *bad)
{
    enum { QUOTED_MAX = 80 };
    int length = bad->length < QUOTED_MAX ? (int)bad->length : QUOTED_MAX;
    const char *dots = bad->length > QUOTED_MAX ? "..." : "";
    if (line)
        message("line %" PRIu64 ": '%.*s%s': %s", line, length, bad->text, dots, bad->problem);
    else
        message("'%.*s%s': %s", length, bad->text, dots, bad->problem);
}
