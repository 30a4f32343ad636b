#include "src/cli/commands/ip_input.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/base/line_reader.h"

enum { LINE_MAX_LENGTH = 4096 };

/* What a line of the stream is. */
enum ip_line {
    IP_GOOD, /* an IP */
    IP_BAD,  /* `bad` says why */
    IP_MORE, /* no complete line is left; call line_reader_fill */
    IP_END,
};

struct ip_stream {
    struct line_reader reader;
    uint64_t line;     /* number of the last line, from 1 */
    struct bad_ip bad; /* valid until the next call */
    char start[64];    /* the start of a line that is too long */
};

static enum ip_line take_long(struct ip_stream *stream, const char *newline)
{
    struct line_reader *reader = &stream->reader;
    if (!reader->skipping) {
        memcpy(stream->start, reader->next, sizeof stream->start);
        reader->skipping = true;
    }
    reader->next = newline ? newline + 1 : reader->end;
    if (!newline && !reader->at_end)
        return IP_MORE;
    reader->skipping = false;
    stream->line++;
    stream->bad =
        (struct bad_ip){stream->start, sizeof stream->start, "a line of more than 4096 bytes, not an address"};
    return IP_BAD;
}

/* Parses any line: padded with blanks, bad, long, or without a newline. */
static enum ip_line take_any(struct ip_stream *stream, uint64_t *ret)
{
    struct line_reader *reader = &stream->reader;
    const char *text = reader->next;
    size_t left = (size_t)(reader->end - text);
    const char *newline = memchr(text, '\n', left);
    size_t length = newline ? (size_t)(newline - text) : left;
    if (reader->skipping || length > LINE_MAX_LENGTH)
        return take_long(stream, newline);
    if (!newline && !reader->at_end)
        return IP_MORE;
    if (!newline && !length)
        return IP_END;

    reader->next += length + (newline != NULL);
    stream->line++;
    return ip_parse(text, length, ret, &stream->bad) ? IP_GOOD : IP_BAD;
}

/* Parses the next line. The usual form is read here in one pass. */
static enum ip_line take_line(struct ip_stream *stream, uint64_t *ret)
{
    struct line_reader *reader = &stream->reader;
    const char *p = reader->next;
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
        p += 2;
    const char *first = p;
    uint64_t value = 0;
    unsigned digit;
    while ((digit = ip_digit[(uint8_t)*p]) < 16) {
        value = value << 4 | digit;
        p++;
    }
    size_t digits = (size_t)(p - first);
    if (__builtin_expect(*p != '\n' || digits - 1 >= 16 || reader->skipping || ip_looks_decimal(value), 0))
        return take_any(stream, ret);
    reader->next = p + 1;
    stream->line++;
    *ret = value;
    return IP_GOOD;
}

static void pause_taker(const struct ip_taker *taker, bool flush)
{
    if (taker->pause)
        taker->pause(taker->context);
    if (flush)
        output_flush(taker->out);
}

static bool has_ended(const struct ip_taker *taker)
{
    return output_failed(taker->out) || (taker->stopped && *taker->stopped);
}

/* Passes on what is not a number. */
static void feed_other(const struct ip_taker *taker, uint64_t line, const struct bad_ip *bad)
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

static void feed_list(const char *const *ips, size_t count, const struct ip_taker *taker)
{
    for (size_t i = 0; i < count && !has_ended(taker); i++) {
        uint64_t ip;
        struct bad_ip bad;
        if (ip_parse(ips[i], strlen(ips[i]), &ip, &bad))
            taker->take(taker->context, ip);
        else
            feed_other(taker, 0, &bad);
    }
    pause_taker(taker, false);
}

/* A file has as many lines as the average length of those up to now suggests. */
static void expect_lines(const struct ip_stream *stream, const struct ip_taker *taker)
{
    const struct line_reader *reader = &stream->reader;
    uint64_t parsed = reader->taken - (uint64_t)(reader->end - reader->next);
    if (taker->progress && reader->size && parsed)
        progress_estimate(taker->progress, stream->line, parsed, reader->size);
}

static bool feed_stream(struct ip_stream *stream, const struct ip_taker *taker)
{
    struct line_reader *reader = &stream->reader;
    while (!has_ended(taker)) {
        uint64_t ip;
        switch (take_line(stream, &ip)) {
        case IP_GOOD:
            taker->take(taker->context, ip);
            break;
        case IP_BAD:
            if (stream->bad.text == stream->start) /* only the start of a long line */
                taker->take_bad(taker->context, stream->line, &stream->bad);
            else
                feed_other(taker, stream->line, &stream->bad);
            break;
        case IP_MORE:
            pause_taker(taker, line_reader_would_block(reader));
            expect_lines(stream, taker);
            if (!line_reader_fill(reader)) {
                message("cannot read standard input: %s", strerror(errno));
                return false;
            }
            if (taker->more && !reader->size)
                taker->more(taker->context);
            break;
        case IP_END:
            pause_taker(taker, false);
            return true;
        }
    }
    return true; /* output_close reports the error */
}

bool ip_feed(const char *const *ips, size_t count, const struct ip_taker *taker)
{
    struct ip_stream stream = {0};
    if (count) {
        if (taker->progress)
            progress_expect(taker->progress, count);
        feed_list(ips, count, taker);
        return true;
    }
    line_reader_init(&stream.reader, STDIN_FILENO, "a list of addresses, one a line,");
    bool ok = feed_stream(&stream, taker);
    line_reader_deinit(&stream.reader);
    return ok;
}
