#include "contracts/stress_log/message_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#include "util/utf16.h"

/* A conversion specification. */
struct conversion {
    bool left, zero, plus, space, alternative;
    unsigned width;
    int precision; /* -1: none */
    unsigned bits; /* of an integer */
    bool wide;     /* UTF-16 */
    char letter;
};

struct message {
    struct reader *reader;
    const struct message_source *source;
    const char *at, *end; /* of the format */
    const uint64_t *arguments;
    unsigned count, next;
    unsigned flaws;
    struct text *text;
};

static char current(const struct message *m)
{
    return m->at < m->end ? *m->at : '\0';
}

static bool accept(struct message *m, const char *word)
{
    size_t length = strlen(word);
    bool found = (size_t)(m->end - m->at) >= length && memcmp(m->at, word, length) == 0;
    m->at += found ? length : 0;
    return found;
}

/* False, and the text says so, if the message has no more. */
static bool take(struct message *m, uint64_t *ret)
{
    if (m->next < m->count) {
        *ret = m->arguments[m->next++];
        return true;
    }
    m->flaws |= MESSAGE_NO_ARGUMENT;
    *ret = 0;
    return false;
}

/* ---- Conversion specifications ---- */

/* A number, or an argument for '*'. A larger one than `max` is cut. */
static int parse_number(struct message *m, int max)
{
    uint64_t value = 0;
    if (accept(m, "*")) {
        take(m, &value);
        return (int32_t)value < -max ? -max : (int32_t)value > max ? max : (int32_t)value;
    }
    for (; current(m) >= '0' && current(m) <= '9'; m->at++)
        value = MIN(value * 10 + (uint64_t)(current(m) - '0'), (uint64_t)max);
    return (int)value;
}

static void parse_length(struct message *m, struct conversion *c)
{
    static const struct {
        const char *word;
        uint8_t bits; /* 0: those of a pointer */
    } lengths[] = {{"I64", 64}, {"I32", 32}, {"I", 0}, {"hh", 8}, {"h", 16}, {"ll", 64}, {"l", 0},
                   {"q", 64},   {"j", 64},   {"z", 0}, {"t", 0},  {"L", 64}, {"w", 32}};
    c->bits = 32;
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
        if (accept(m, lengths[i].word)) {
            c->bits = lengths[i].bits ? lengths[i].bits : m->reader->pointer_size * 8;
            c->wide = lengths[i].word[0] == 'l' || lengths[i].word[0] == 'w';
            return;
        }
}

/* After the '%'. */
static struct conversion parse_conversion(struct message *m)
{
    struct conversion c = {.precision = -1};
    for (;; m->at++) {
        char flag = current(m);
        c.left |= flag == '-';
        c.zero |= flag == '0';
        c.plus |= flag == '+';
        c.space |= flag == ' ';
        c.alternative |= flag == '#';
        if (!flag || !strchr("-0+ #", flag))
            break;
    }
    int width = parse_number(m, MESSAGE_WIDTH_MAX);
    c.left |= width < 0;
    c.width = (unsigned)(width < 0 ? -width : width);
    if (accept(m, "."))
        c.precision = parse_number(m, MESSAGE_STRING_MAX);
    parse_length(m, &c);
    c.letter = current(m);
    m->at += m->at < m->end;
    return c;
}

/* ---- Values ---- */

static void put_repeated(struct text *text, char c, unsigned count)
{
    while (count--)
        text_putc(text, c);
}

/* Pads what is printable: `sign` and the zeros come before the rest. */
static void put_padded(struct message *m, const struct conversion *c, const char *sign, unsigned zeros,
                       const char *body, size_t length)
{
    size_t used = strlen(sign) + zeros + length;
    unsigned padding = used < c->width ? c->width - (unsigned)used : 0;
    bool as_zeros = c->zero && !c->left;
    put_repeated(m->text, ' ', c->left || as_zeros ? 0 : padding);
    text_puts(m->text, sign);
    put_repeated(m->text, '0', zeros + (as_zeros ? padding : 0));
    text_append(m->text, body, length);
    put_repeated(m->text, ' ', c->left ? padding : 0);
}

static void put_integer(struct message *m, const struct conversion *c, uint64_t value)
{
    char digits[32];
    unsigned above = 64 - c->bits;
    bool is_signed = c->letter == 'd' || c->letter == 'i';
    bool negative = is_signed && (int64_t)(value << above) < 0;
    value = value << above >> above;
    if (negative)
        value = (~value + 1) << above >> above;
    const char *sign = negative ? "-" : is_signed && c->plus ? "+" : is_signed && c->space ? " " : "";
    if (c->alternative && value)
        sign = c->letter == 'x' ? "0x" : c->letter == 'X' ? "0X" : c->letter == 'o' ? "0" : sign;
    int length = c->letter == 'x'   ? snprintf(digits, sizeof digits, "%" PRIx64, value)
                 : c->letter == 'X' ? snprintf(digits, sizeof digits, "%" PRIX64, value)
                 : c->letter == 'o' ? snprintf(digits, sizeof digits, "%" PRIo64, value)
                                    : snprintf(digits, sizeof digits, "%" PRIu64, value);
    int precision = MIN(c->precision, (int)MESSAGE_PRECISION_MAX);
    struct conversion padded = *c;
    padded.zero &= precision < 0;
    if (precision == 0 && !value)
        length = 0;
    put_padded(m, &padded, sign, precision > length ? (unsigned)(precision - length) : 0, digits, (size_t)length);
}

/* A word holds the bits of a double, or, of 32 bits, those of a float. */
static void put_real(struct message *m, const struct conversion *c, uint64_t bits)
{
    char digits[512];
    double value;
    uint32_t half = (uint32_t)bits;
    float single;
    memcpy(&value, &bits, sizeof value);
    memcpy(&single, &half, sizeof single);
    if (m->reader->pointer_size == 4)
        value = single;
    bool negative = __builtin_signbit(value) != 0, finite = __builtin_isfinite(value);
    int precision = c->precision < 0 ? 6 : MIN(c->precision, (int)MESSAGE_PRECISION_MAX);
    value = negative ? -value : value;
    int length = c->letter == 'f' || c->letter == 'F'   ? snprintf(digits, sizeof digits, "%.*f", precision, value)
                 : c->letter == 'g' || c->letter == 'G' ? snprintf(digits, sizeof digits, "%.*g", precision, value)
                 : c->letter == 'a' || c->letter == 'A' ? snprintf(digits, sizeof digits, "%a", value)
                                                        : snprintf(digits, sizeof digits, "%.*e", precision, value);
    length = MIN(length, (int)sizeof digits - 1);
    for (int i = 0; c->letter < 'a' && i < length; i++)
        digits[i] = (char)toupper((unsigned char)digits[i]);
    struct conversion padded = *c;
    padded.zero &= finite;
    put_padded(m, &padded, negative ? "-" : c->plus ? "+" : c->space ? " " : "", 0, digits, (size_t)length);
}

/* The bytes of a string up to its NUL, in `ret`. False if memory is missing before that. */
static bool read_bytes(struct message *m, uint64_t address, size_t max, unsigned width, uint8_t *ret, size_t *ret_count)
{
    enum { PIECE = 32 }; /* bytes: a string may be at the end of what there is */
    struct reader *reader = m->reader;
    bool ended = false, found = true;
    size_t count = 0;
    while (!ended && found && count < max) {
        uint64_t at = address + count * width;
        size_t piece = MIN(MAX((PIECE - at % PIECE) / width, (size_t)1), max - count), i = 0;
        found = reader_try_copy(reader, at, ret + count * width, piece * width);
        for (; found && i < piece && !ended; i++)
            ended = width == 1 ? !ret[count + i] : !load_u16(ret + 2 * (count + i), reader->big_endian);
        count += ended ? i - 1 : i;
    }
    if (!ended && found)
        m->flaws |= MESSAGE_CUT;
    *ret_count = count;
    return found;
}

static void put_string(struct message *m, const struct conversion *c, uint64_t address)
{
    uint8_t bytes[2 * MESSAGE_STRING_MAX];
    char utf8[UTF8_PER_UTF16 * MESSAGE_STRING_MAX];
    bool wide = c->wide || c->letter == 'S';
    unsigned before = m->flaws;
    size_t max = c->precision >= 0 ? (size_t)c->precision : MESSAGE_STRING_MAX, count = 0, taken, length;
    struct text shown = {0};
    if (!address) {
        put_padded(m, &(struct conversion){.width = c->width, .left = c->left}, "", 0, "(null)", 6);
        return;
    }
    if (!read_bytes(m, address, MIN(max, (size_t)MESSAGE_STRING_MAX), wide ? 2 : 1, bytes, &count)) {
        m->flaws |= MESSAGE_MISSING;
        text_printf(m->text, "(no string at 0x%" PRIx64 ")", address);
        return;
    }
    if (c->precision >= 0)
        m->flaws = before; /* the format wants no more */
    length = wide ? (size_t)(utf16_to_utf8(utf8, bytes, count, m->reader->big_endian, false, &taken) - utf8) : count;
    if (!m->source->is_constant || !m->source->is_constant(m->source->context, address))
        m->flaws |= MESSAGE_CHANGEABLE;
    text_escape(&shown, wide ? utf8 : (const char *)bytes, length);
    put_padded(m, &(struct conversion){.width = c->width, .left = c->left}, "", 0, shown.data ? shown.data : "",
               shown.length);
    text_deinit(&shown);
}

static void put_pointer(struct message *m, const struct conversion *c, uint64_t value)
{
    static const char letters[] = {
        [MESSAGE_TYPE] = 'T', [MESSAGE_METHOD] = 'M', [MESSAGE_VTABLE] = 'V', [MESSAGE_CODE] = 'K'};
    char digits[24];
    struct conversion padded = *c;
    int length = snprintf(digits, sizeof digits, "%" PRIx64, value);
    padded.zero &= c->width > 0;
    put_padded(m, &padded, "0x", 0, digits, (size_t)length);
    for (unsigned kind = 0; kind < ARRAY_SIZE(letters); kind++) {
        if (current(m) != letters[kind])
            continue;
        m->at++;
        size_t before = m->text->length;
        text_puts(m->text, " (");
        if (value && m->source->name && m->source->name(m->source->context, (enum message_name)kind, value, m->text)) {
            text_putc(m->text, ')');
        } else if (!m->text->broken) {
            text_cut(m->text, before);
        }
        return;
    }
}

static void put_character(struct message *m, const struct conversion *c, uint64_t value)
{
    struct text shown = {0};
    char utf8[UTF8_PER_UTF16] = {(char)value};
    size_t length = 1, taken;
    if (c->wide || c->letter == 'C') {
        uint16_t unit = (uint16_t)value;
        length = (size_t)(utf16_to_utf8(utf8, &unit, 1, false, false, &taken) - utf8);
    }
    text_escape(&shown, utf8, length);
    put_padded(m, &(struct conversion){.width = c->width, .left = c->left}, "", 0, shown.data ? shown.data : "",
               shown.length);
    text_deinit(&shown);
}

/* What begins with a '%'. */
static void put_conversion(struct message *m)
{
    const char *begin = m->at++;
    if (accept(m, "%")) {
        text_putc(m->text, '%');
        return;
    }
    struct conversion c = parse_conversion(m);
    uint64_t value;
    if (!c.letter || !strchr("diuxXocCpsSeEfFgGaA", c.letter)) {
        text_escape(m->text, begin, (size_t)(m->at - begin)); /* no conversion that is known */
        return;
    }
    if (!take(m, &value)) {
        text_puts(m->text, "(no argument)");
        return;
    }
    if (strchr("diuxXo", c.letter))
        put_integer(m, &c, value);
    else if (c.letter == 'p')
        put_pointer(m, &c, value);
    else if (c.letter == 's' || c.letter == 'S')
        put_string(m, &c, value);
    else if (c.letter == 'c' || c.letter == 'C')
        put_character(m, &c, value);
    else
        put_real(m, &c, value);
}

unsigned message_text_write(struct reader *reader, const struct message_source *source, const char *format,
                            size_t length, const uint64_t *arguments, unsigned count, struct text *ret)
{
    struct message m = {.reader = reader, .source = source, .arguments = arguments, .count = count, .text = ret};
    if (length > MESSAGE_FORMAT_MAX) {
        length = MESSAGE_FORMAT_MAX;
        m.flaws |= MESSAGE_CUT;
    }
    while (length && (format[length - 1] == '\n' || format[length - 1] == '\r'))
        length--;
    m.at = format;
    m.end = format + length;
    while (m.at < m.end && !ret->broken) {
        const char *percent = memchr(m.at, '%', (size_t)(m.end - m.at)), *plain_end = percent ? percent : m.end;
        text_escape(ret, m.at, (size_t)(plain_end - m.at));
        m.at = plain_end;
        if (percent)
            put_conversion(&m);
    }
    return m.flaws | (ret->broken ? MESSAGE_CUT : 0);
}
