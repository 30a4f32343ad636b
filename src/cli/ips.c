#include "src/cli/ips.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/cli/console.h"
#include "src/cli/memory.h"

enum {
    BUFFER_SIZE = 256 * 1024,
    LINE_MAX_LENGTH = 4096,
    IP_DIGITS = 16,
};

#define NO_4   16, 16, 16, 16
#define NO_16  NO_4, NO_4, NO_4, NO_4
#define LETTER 16, 10, 11, 12, 13, 14, 15, 16, NO_4, NO_4
#define NO_64  NO_16, NO_16, NO_16, NO_16
const uint8_t ips_digit[256] = {
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

bool ips_parse(const char *text, size_t length, uint64_t *ret, struct bad_ip *bad)
{
    while (length && ips_is_blank(text[0]))
        text++, length--;
    while (length && ips_is_blank(text[length - 1]))
        length--;
    if (!length)
        return set_bad(bad, text, length, "an empty line, not an address");

    size_t prefix = length >= 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 2 : 0;
    uint64_t value = 0;
    for (size_t i = prefix; i < length; i++) {
        uint8_t digit = ips_digit[(uint8_t)text[i]];
        if (digit >= 16)
            return set_bad(bad, text, length, "not a hexadecimal address");
        value = value << 4 | digit;
    }
    if (length == prefix)
        return set_bad(bad, text, length, "not a hexadecimal address");
    if (length - prefix > IP_DIGITS)
        return set_bad(bad, text, length, "more than 16 hexadecimal digits");
    if (!prefix && length == 15 && ips_looks_decimal(value) && is_decimal(text, length, bad))
        return false;
    *ret = value;
    return true;
}

void ips_reader_init(struct ips_reader *reader, int fd, const char *what)
{
    struct stat st;
    if (isatty(fd))
        notice("reading %s from the terminal; Ctrl-D ends it", what);
    *reader = (struct ips_reader){.fd = fd, .data = reallocate(NULL, BUFFER_SIZE + 1)};
    reader->size = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    reader->next = reader->end = reader->data;
    *reader->end = '\0';
}

void ips_reader_deinit(struct ips_reader *reader)
{
    progress_end(&reader->progress);
    free(reader->data);
    reader->data = NULL;
}

void ips_reader_show(struct ips_reader *reader, int results)
{
    progress_begin(&reader->progress, "KiB of text", results);
    progress_expect(&reader->progress, reader->size >> 10);
}

bool ips_would_block(const struct ips_reader *reader)
{
    return !reader->at_end && poll(&(struct pollfd){.fd = reader->fd, .events = POLLIN}, 1, 0) == 0;
}

bool ips_take_line(struct ips_reader *reader, struct text_line *ret)
{
    while (reader->next < reader->end) {
        const char *text = reader->next, *newline = memchr(text, '\n', (size_t)(reader->end - text));
        bool is_full = reader->end - text == BUFFER_SIZE, was_skipping = reader->skipping;
        if (!newline && !is_full && !was_skipping && !reader->at_end)
            break;
        reader->next = newline ? newline + 1 : reader->end;
        reader->skipping = !newline;
        if (was_skipping)
            continue;
        *ret = (struct text_line){text, newline ? newline : reader->end, !newline && is_full};
        return true;
    }
    return false;
}

bool ips_fill(struct ips_reader *reader)
{
    size_t left = (size_t)(reader->end - reader->next);
    memmove(reader->data, reader->next, left);
    reader->next = reader->data;
    reader->end = reader->data + left;
    *reader->end = '\0';

    ssize_t n;
    bool waits = ips_would_block(reader);
    if (waits)
        progress_wait(true);
    while ((n = read(reader->fd, reader->end, BUFFER_SIZE - left)) < 0) {
        if (errno == EAGAIN) /* a non-blocking stream */
            poll(&(struct pollfd){.fd = reader->fd, .events = POLLIN}, 1, -1);
        else if (errno != EINTR)
            break;
    }
    if (waits)
        progress_wait(false);
    if (n < 0)
        return false;
    reader->taken += (uint64_t)n;
    progress_step(&reader->progress, reader->taken >> 10);
    reader->at_end = n == 0;
    reader->end += n;
    *reader->end = '\0';
    return true;
}

static enum ips_line take_long(struct ips_reader *reader, const char *newline)
{
    if (!reader->skipping) {
        memcpy(reader->start, reader->next, sizeof reader->start);
        reader->skipping = true;
    }
    reader->next = newline ? newline + 1 : reader->end;
    if (!newline && !reader->at_end)
        return IPS_MORE;
    reader->skipping = false;
    reader->line++;
    set_bad(&reader->bad, reader->start, sizeof reader->start, "a line of more than 4096 bytes, not an address");
    return IPS_BAD;
}

/* Parses any line: padded with blanks, bad, long, or without a newline. */
enum ips_line ips_take_any(struct ips_reader *reader, uint64_t *ret)
{
    const char *text = reader->next;
    size_t left = (size_t)(reader->end - text);
    const char *newline = memchr(text, '\n', left);
    size_t length = newline ? (size_t)(newline - text) : left;
    if (reader->skipping || length > LINE_MAX_LENGTH)
        return take_long(reader, newline);
    if (!newline && !reader->at_end)
        return IPS_MORE;
    if (!newline && !length)
        return IPS_END;

    reader->next += length + (newline != NULL);
    reader->line++;
    return ips_parse(text, length, ret, &reader->bad) ? IPS_GOOD : IPS_BAD;
}

void ips_complain(uint64_t line, const struct bad_ip *bad)
{
    enum { QUOTED_MAX = 80 };
    int length = bad->length < QUOTED_MAX ? (int)bad->length : QUOTED_MAX;
    const char *dots = bad->length > QUOTED_MAX ? "..." : "";
    if (line)
        message("line %" PRIu64 ": '%.*s%s': %s", line, length, bad->text, dots, bad->problem);
    else
        message("'%.*s%s': %s", length, bad->text, dots, bad->problem);
}

static void pause_taker(const struct ips_taker *taker, bool flush)
{
    if (taker->pause)
        taker->pause(taker->context);
    if (flush)
        output_flush(taker->out);
}

static bool has_ended(const struct ips_taker *taker)
{
    return output_failed(taker->out) || (taker->stopped && *taker->stopped);
}

/* Passes on what is not a number. */
static void feed_other(const struct ips_taker *taker, uint64_t line, const struct bad_ip *bad)
{
    struct bad_ip place;
    bool found;
    uint64_t ip;
    if (!taker->read_other || !taker->read_other(taker->other, bad->text, bad->length, &found, &ip, &place))
        taker->take_bad(taker->context, line, bad);
    else if (found)
        taker->take(taker->context, ip);
    else
        taker->take_bad(taker->context, line, &place);
}

static void feed_list(const char *const *ips, size_t count, const struct ips_taker *taker)
{
    for (size_t i = 0; i < count && !has_ended(taker); i++) {
        uint64_t ip;
        struct bad_ip bad;
        if (ips_parse(ips[i], strlen(ips[i]), &ip, &bad))
            taker->take(taker->context, ip);
        else
            feed_other(taker, 0, &bad);
    }
    pause_taker(taker, false);
}

/* A file has as many lines as the average length of those up to now suggests. */
static void expect_lines(const struct ips_reader *reader, const struct ips_taker *taker)
{
    uint64_t parsed = reader->taken - (uint64_t)(reader->end - reader->next);
    if (taker->progress && reader->size && parsed)
        progress_estimate(taker->progress, reader->line, parsed, reader->size);
}

static bool feed_stream(struct ips_reader *reader, const struct ips_taker *taker)
{
    while (!has_ended(taker)) {
        uint64_t ip;
        switch (ips_take(reader, &ip)) {
        case IPS_GOOD:
            taker->take(taker->context, ip);
            break;
        case IPS_BAD:
            if (reader->bad.text == reader->start) /* only the start of a long line */
                taker->take_bad(taker->context, reader->line, &reader->bad);
            else
                feed_other(taker, reader->line, &reader->bad);
            break;
        case IPS_MORE:
            pause_taker(taker, ips_would_block(reader));
            expect_lines(reader, taker);
            if (!ips_fill(reader)) {
                message("cannot read standard input: %s", strerror(errno));
                return false;
            }
            if (taker->more && !reader->size)
                taker->more(taker->context);
            break;
        case IPS_END:
            pause_taker(taker, false);
            return true;
        }
    }
    return true; /* output_close reports the error */
}

bool ips_feed(const char *const *ips, size_t count, const struct ips_taker *taker)
{
    struct ips_reader reader;
    if (count) {
        if (taker->progress)
            progress_expect(taker->progress, count);
        feed_list(ips, count, taker);
        return true;
    }
    ips_reader_init(&reader, STDIN_FILENO, "a list of addresses, one a line,");
    bool ok = feed_stream(&reader, taker);
    ips_reader_deinit(&reader);
    return ok;
}
