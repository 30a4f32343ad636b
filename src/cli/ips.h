/*
 * ips.h: reads instruction pointers from the command line or from a stream, one a line. A line that is not an IP is
 * reported, and the next line is read. The reader also serves for lines of other text.
 */
#ifndef CDACQ_CLI_IPS_H
#define CDACQ_CLI_IPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/cli/console.h"
#include "src/cli/output.h"

/* 0 to 15 for a hex digit, 16 or more for anything else */
extern const uint8_t ips_digit[256];

/* A carriage return counts as a blank: it ends the lines of some tools. */
static inline bool ips_is_blank(char c)
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
bool ips_parse(const char *text, size_t length, uint64_t *ret, struct bad_ip *bad);

enum ips_line {
    IPS_GOOD, /* an IP */
    IPS_BAD,  /* `bad` says why */
    IPS_MORE, /* no complete line is left; call ips_fill */
    IPS_END,
};

struct ips_reader {
    int fd;
    char *data;
    const char *next;  /* the bytes up to `end` are not yet parsed */
    char *end;         /* holds a NUL, which ends a scan for digits */
    bool at_end;       /* of the stream */
    bool skipping;     /* within a line that is too long */
    uint64_t line;     /* number of the last line, from 1 */
    struct bad_ip bad; /* valid until the next call */
    char start[64];    /* the start of a line that is too long */
    uint64_t taken;    /* bytes that were read so far */
    uint64_t size;     /* of a file; 0 for other streams */
    struct progress progress;
};

/* If `fd` is a terminal, a message says what is read from it. */
void ips_reader_init(struct ips_reader *reader, int fd, const char *what);
void ips_reader_deinit(struct ips_reader *reader);

/* Shows how much was read, where nothing else is counted; `results` as for progress_begin. */
void ips_reader_show(struct ips_reader *reader, int results);

/* Whether ips_fill would wait for the writer. */
bool ips_would_block(const struct ips_reader *reader);

/* A line of any text, valid until ips_fill. */
struct text_line {
    const char *text;
    const char *end; /* of the line, without its newline */
    bool is_cut;     /* only the start of a line of 256 KiB or more; the rest is skipped */
};

/* Takes the next line. False if none is complete: call ips_fill, unless the reader is at the end. */
bool ips_take_line(struct ips_reader *reader, struct text_line *ret);

/* Reads more; what was not taken must leave room for it. Returns false with errno on failure. */
bool ips_fill(struct ips_reader *reader);

/* Whether 15 digits, "1" first, may have been meant as a decimal number: 0x5af3107a4000 to 0x7fffffffffff. */
static inline bool ips_looks_decimal(uint64_t value)
{
    return value >= 0x100000000000000 && value <= 0x140737488355327;
}

enum ips_line ips_take_any(struct ips_reader *reader, uint64_t *ret);

/* Parses the next line. The usual form is read here in one pass. */
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
    if (__builtin_expect(*p != '\n' || digits - 1 >= 16 || reader->skipping || ips_looks_decimal(value), 0))
        return ips_take_any(reader, ret);
    reader->next = p + 1;
    reader->line++;
    *ret = value;
    return IPS_GOOD;
}

/* Reports a bad IP; `line` is 0 for the command line. */
void ips_complain(uint64_t line, const struct bad_ip *bad);

/* Receives IPs in order. */
struct ips_taker {
    void *context;
    void (*take)(void *context, uint64_t ip);
    void (*take_bad)(void *context, uint64_t line, const struct bad_ip *bad);
    void (*pause)(void *context); /* answers all IPs taken so far; may be NULL */
    struct output *out;           /* is flushed before a wait for input; no more IPs are read after it failed */
    void (*more)(void *context);  /* what follows was written to a pipe or terminal only now; may be NULL */
    struct progress *progress;    /* gets the total; may be NULL */
    const bool *stopped;          /* no more IPs are read once this is set; may be NULL */
    /* Reads what is not a number, such as places_find; *ret_found, then *ret or *bad. May be NULL. */
    bool (*read_other)(void *other, const char *text, size_t length, bool *ret_found, uint64_t *ret,
                       struct bad_ip *bad);
    void *other;
};

/* Passes on the IPs of the command line or, without any, those on standard input. Reports a read error. */
bool ips_feed(const char *const *ips, size_t count, const struct ips_taker *taker);

#endif
