/*
 * ips.h: instruction pointers from the command line and from a stream, one a line. The stream is read in large pieces
 * into one buffer; a line that is not an IP is reported and costs only itself, however long it is.
 */
#ifndef CDACQ_CLI_IPS_H
#define CDACQ_CLI_IPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0 to 15 for a hex digit, 16 or more for anything else */
extern const uint8_t ips_digit[256];

/* Text that should be an IP and is not. */
struct bad_ip {
    const char *text; /* trimmed, not escaped; of a long line its beginning */
    size_t length;
    const char *problem; /* static */
};

/*
 * Reads up to 16 hex digits after an optional 0x, blanks around them. On failure fills *bad, whose text is within
 * `text`.
 */
bool ips_parse(const char *text, size_t length, uint64_t *ret, struct bad_ip *bad);

enum ips_line {
    IPS_GOOD, /* an IP */
    IPS_BAD,  /* `bad` says why */
    IPS_MORE, /* no whole line is left: ips_fill */
    IPS_END,
};

struct ips_reader {
    int fd;
    char *data;
    const char *next;  /* from here to `end`: read and not yet taken */
    char *end;         /* a NUL is here, so that a scan for digits stops by itself */
    bool at_end;       /* of the stream */
    bool skipping;     /* within a line that is too long */
    uint64_t line;     /* number of the line that was taken last, from 1 */
    struct bad_ip bad; /* valid until the next call */
    char start[64];    /* the beginning of a line that is too long */
};

void ips_reader_init(struct ips_reader *reader, int fd);
void ips_reader_deinit(struct ips_reader *reader);

/* Whether ips_fill would wait for the writer: the time to hand out what has been answered so far. */
bool ips_would_block(const struct ips_reader *reader);

/* Reads more. False with errno where that fails. */
bool ips_fill(struct ips_reader *reader);

enum ips_line ips_take_any(struct ips_reader *reader, uint64_t *ret);

/* Takes the next line. The plain form is read here, in one pass that also finds the line's end. */
static inline enum ips_line ips_take(struct ips_reader *reader, uint64_t *ret)
{
    const char *p = reader->next;
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
        p += 2;
    const char *first = p;
    uint64_t value = 0;
    unsigned digit;
    while ((digit = ips_digit[(uint8_t)*p]) < 16) {
        value = value << 4 | digit;
        p++;
    }
    size_t digits = (size_t)(p - first);
    if (__builtin_expect(*p != '\n' || digits - 1 >= 16 || reader->skipping, 0))
        return ips_take_any(reader, ret);
    reader->next = p + 1;
    reader->line++;
    *ret = value;
    return IPS_GOOD;
}

/* Says what is wrong with one; `line` is 0 for one of the command line. */
void ips_complain(uint64_t line, const struct bad_ip *bad);

/* Where IPs go, one by one, in order. */
struct ips_taker {
    void *context;
    void (*take)(void *context, uint64_t ip);
    void (*take_bad)(void *context, uint64_t line, const struct bad_ip *bad);
    /* What has been taken should be answered; handed out too where `waits` says that the writer is waited for. */
    void (*pause)(void *context, bool waits);
    bool (*stopped)(void *context); /* nobody wants more */
};

/*
 * Hands out the IPs of the command line, or, where there are none, those on standard input. False, and it has been
 * said, where that cannot be read.
 */
bool ips_feed(const char *const *ips, size_t count, const struct ips_taker *taker);

#endif
