/*
 * ip_text.h: the text of an address: hex digits.
 */
#ifndef CDACQ_CLI_BASE_IP_TEXT_H
#define CDACQ_CLI_BASE_IP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0 to 15 for a hex digit, 16 or more for anything else */
extern const uint8_t ip_digit[256];

/* A carriage return counts as a blank: it ends the lines of some tools. */
static inline bool ip_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Text that is not an IP. */
struct bad_ip {
    const char *text; /* trimmed, not escaped; only the start of a long line */
    size_t length;
    const char *problem; /* valid until the next bad IP */
};

/*
 * Reads up to 16 hex digits after an optional 0x, blanks around them. 15 digits that are all decimal and would be a
 * usual address as a decimal number are an error, which shows the address in hex. On failure fills *bad, whose text is
 * within `text`.
 */
bool ip_parse(const char *text, size_t length, uint64_t *ret, struct bad_ip *bad);

/* Whether 15 digits, "1" first, may have been meant as a decimal number: 0x5af3107a4000 to 0x7fffffffffff. */
static inline bool ip_looks_decimal(uint64_t value)
{
    return value >= 0x100000000000000 && value <= 0x140737488355327;
}

/* Reports a bad IP; `line` is 0 for the command line. */
void ip_complain(uint64_t line, const struct bad_ip *bad);

#endif
