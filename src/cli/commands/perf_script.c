#include "src/cli/commands/perf_script.h"

#include <string.h>

enum {
    ADDRESS_COLUMNS = 16, /* perf writes "%16lx" */
    PERIOD_COLUMNS = 10,  /* "%10lu" */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *word_end(const char *p, const char *end)
{
    while (p < end && !is_blank(*p))
        p++;
    return p;
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && is_blank(*p))
        p++;
    return p;
}

static const char *next_word(const char *p, const char *end)
{
    return skip_blanks(word_end(p, end), end);
}

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

static bool begins_with(const char *p, const char *end, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(end - p) >= length && !memcmp(p, text, length);
}

/* ---- Fields of the header ---------------------------------------------------------------------------------------- */

/* A number; perf shows -1 for the process of a record that has none. */
static const char *skip_number(const char *p, const char *end)
{
    return skip_digits(p + (p + 1 < end && *p == '-' && is_digit(p[1])), end);
}

/* "PID/TID", "PID" or "TID" */
static bool is_id(const char *word, const char *end)
{
    const char *p = skip_number(word, end);
    if (p > word && p + 1 < end && *p == '/' && skip_number(p + 1, end) > p + 1)
        p = skip_number(p + 1, end);
    return p > word && (p == end || is_blank(*p));
}

/* "[001]" */
static bool is_cpu(const char *word, const char *end)
{
    if (word == end || *word != '[')
        return false;
    const char *p = skip_digits(word + 1, end);
    return p > word + 1 && p < end && *p == ']' && word_end(p, end) == p + 1;
}

/* Letters for the bits of perf_event_header.misc */
static bool is_misc(const char *word, const char *end)
{
    const char *p = word, *last = word_end(word, end);
    while (p < last && strchr("KUHGgMESp", *p) && *p)
        p++;
    return p > word && p == last && last - word <= 4;
}

/* "12.5:" */
static bool is_time(const char *word, const char *end)
{
    const char *point = skip_digits(word, end);
    if (point == word || point == end || *point != '.')
        return false;
    const char *p = skip_digits(point + 1, end);
    return p > point + 1 && p < end && *p == ':' && word_end(p, end) == p + 1;
}

/* A number in ten columns. Where a time comes before it, the width does not matter. */
static bool is_period(const char *word, const char *end, bool has_time)
{
    const char *p = skip_digits(word, end), *first = word;
    while (is_blank(first[-1])) /* a field always comes before it */
        first--;
    return p > word && p < end && is_blank(*p) && (has_time || p - first > PERIOD_COLUMNS);
}

static bool is_event(const char *word, const char *end)
{
    const char *last = word_end(word, end);
    return last - word > 1 && last[-1] == ':';
}

/* Reads the fields that begin with a word. */
static struct perf_script_header match(const char *text, const char *word, const char *end)
{
    struct perf_script_header header = {0};
    bool has_comm = word > text, has_id = is_id(word, end), has_time;
    const char *p = has_id ? next_word(word, end) : word, *thread_end = word;
    if (is_cpu(p, end))
        p = next_word(p, end);
    if (is_misc(p, end) && (has_id || is_time(next_word(p, end), end)))
        p = next_word(p, end);
    has_time = is_time(p, end);
    if (has_time)
        p = next_word(p, end);
    bool is_last = word_end(p, end) == end;
    if ((has_id || has_time) && begins_with(p, end, "PERF_RECORD_"))
        header.is_record = true;
    else if (has_id || has_time || (has_comm && is_last)) {
        const char *event = p > text && is_period(p, end, has_time) ? next_word(p, end) : p;
        if (is_event(event, end)) {
            header.event = (struct perf_script_part){event, (size_t)(word_end(event, end) - 1 - event)};
            p = word_end(event, end);
        } else if (event > p && event == end)
            p = end;
    }
    header.rest = p;
    if (has_comm)
        while (is_blank(thread_end[-1]))
            thread_end--;
    else if (has_id)
        thread_end = word_end(word, end);
    header.thread = (struct perf_script_part){text, (size_t)(thread_end - text)};
    if (has_time || (has_id && (header.event.text || header.is_record)))
        header.evidence = !has_id || !has_comm ? PERF_SCRIPT_HEADER
                          : has_time           ? PERF_SCRIPT_TIMED_HEADER
                                               : PERF_SCRIPT_ID_HEADER;
    else if (has_comm && p == end && (has_id || header.event.text))
        header.evidence = PERF_SCRIPT_TENTATIVE;
    return header;
}

/*
 * The thread's name can have blanks, numbers and colons. The id is the first number that the time follows, perhaps
 * after the CPU and misc; without a time, the first that the event follows.
 */
void perf_script_header(const char *text, const char *end, struct perf_script_header *ret)
{
    *ret = (struct perf_script_header){.rest = end};
    for (const char *word = text; word < end && ret->evidence < PERF_SCRIPT_TIMED_HEADER; word = next_word(word, end)) {
        struct perf_script_header header = match(text, word, end);
        if (header.evidence > ret->evidence)
            *ret = header;
    }
}

/* ---- Frames ------------------------------------------------------------------------------------------------------ */

/* A word of 1 to 16 hexadecimal digits: returns its end, or NULL. */
static const char *read_address(const char *word, const char *end, uint64_t *ret)
{
    const char *p = word;
    *ret = 0;
    for (; p < end && p - word <= ADDRESS_COLUMNS && digit_value(*p) < 16; p++)
        *ret = *ret << 4 | digit_value(*p);
    return p > word && p - word <= ADDRESS_COLUMNS && (p == end || is_blank(*p)) ? p : NULL;
}

bool perf_script_frame(const char *text, const char *end, struct perf_script_frame *ret)
{
    const char *p = read_address(text, end, &ret->ip);
    if (!p)
        return false;
    p = skip_blanks(p, end);
    ret->rest = (struct perf_script_part){p, (size_t)(end - p)};
    return true;
}

/* Whether an event has fields of its own, as "sched:sched_switch" has; "cycles:uH" has a modifier. */
static bool has_fields(struct perf_script_part event)
{
    const char *colon = event.text ? memchr(event.text, ':', event.length) : NULL;
    if (!colon || *event.text == ':')
        return false;
    for (const char *p = colon + 1; p < event.text + event.length; p++)
        if (!*p || !strchr("ukhIGHpPSDWeb", *p))
            return true;
    return false;
}

bool perf_script_only_frame(const struct perf_script_header *header, const char *end, struct perf_script_frame *ret)
{
    bool found = false, must_be_aligned = has_fields(header->event);
    const char *blanks = header->rest;
    for (const char *word = skip_blanks(blanks, end); word < end; word = skip_blanks(blanks, end)) {
        struct perf_script_frame frame;
        const char *last = word_end(word, end);
        bool is_aligned = last - blanks == ADDRESS_COLUMNS + 1 || (blanks == header->rest && last - blanks > 16);
        if ((is_aligned || (!found && !must_be_aligned && blanks == header->rest)) &&
            perf_script_frame(word, end, &frame)) {
            *ret = frame;
            found = true;
        }
        blanks = last;
    }
    return found;
}

/* "(FILE)" at the end, after a blank or alone: returns its '(' */
static const char *file_of(const char *text, const char *end)
{
    size_t depth = 0;
    if (end == text || end[-1] != ')')
        return NULL;
    for (const char *p = end; p > text;) {
        p--;
        depth += *p == ')';
        depth -= *p == '(';
        if (!depth)
            return p == text || is_blank(p[-1]) ? p : NULL;
    }
    return NULL;
}

/* Where "+0xOFFSET" begins, or the end. */
static const char *before_offset(const char *text, const char *end)
{
    const char *p = end;
    while (p > text && digit_value(p[-1]) < 16)
        p--;
    return p < end && p - text >= 3 && p[-1] == 'x' && p[-2] == '0' && p[-3] == '+' ? p - 3 : end;
}

void perf_script_symbol(struct perf_script_part rest, bool has_file, struct perf_script_symbol *ret)
{
    static const char unknown[] = "[unknown]", inlined[] = "(inlined)", start[] = "+0x0";
    const char *text = rest.text, *end = text + rest.length, *file = file_of(text, end), *name_end = end;
    *ret = (struct perf_script_symbol){0};
    ret->is_inlined = file && end - file == (ptrdiff_t)strlen(inlined) && begins_with(file, end, inlined);
    /* Paths and perf's own names of files, "[vdso]", look like files even beside frames that have none. */
    if (file && !has_file && !ret->is_inlined && file[1] != '/' && file[1] != '[')
        file = NULL;
    if (file) {
        name_end = file;
        if (!ret->is_inlined)
            ret->file = (struct perf_script_part){file + 1, (size_t)(before_offset(file + 1, end - 1) - file - 1)};
    }
    while (name_end > text && is_blank(name_end[-1]))
        name_end--;
    const char *offset = before_offset(text, name_end);
    ret->is_start = name_end - offset == (ptrdiff_t)strlen(start) && begins_with(offset, name_end, start);
    name_end = offset;
    size_t length = (size_t)(name_end - text);
    if (length && !(length == strlen(unknown) && !memcmp(text, unknown, length)))
        ret->name = (struct perf_script_part){text, length};
}
