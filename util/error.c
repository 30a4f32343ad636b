#include "util/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "util/escape.h"

const char *cdacq_status_text(enum cdacq_status status)
{
    switch (status) {
#define STATUS_CASE(name, value, text) \
    case name:                         \
        return text;
        CDACQ_STATUSES(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown status";
}

enum cdacq_status error_check_path(const char *path, struct cdacq_error *err)
{
    return path && path[0] ? CDACQ_OK : error_set(err, CDACQ_ERR_ARGUMENT, 0, "no path, or an empty one");
}

enum cdacq_status error_check_flags(unsigned flags, unsigned known, struct cdacq_error *err)
{
    return flags & ~known ? error_set(err, CDACQ_ERR_ARGUMENT, 0, "unknown flags: 0x%x", flags & ~known) : CDACQ_OK;
}

/* Copies a string, escaped and cut between two characters. */
static void copy_escaped(char *buffer, size_t size, const char *string, enum escape_form form)
{
    size_t length = strlen(string), done = 0, taken;
    char escaped[ESCAPED_CHARACTER_SIZE];
    for (size_t i = 0; i < length; i += taken) {
        if (escape_keeps((uint8_t)string[i])) { /* most are */
            if (done + 1 >= size)
                break;
            buffer[done++] = string[i];
            taken = 1;
            continue;
        }
        size_t n = (size_t)(escape_character(escaped, string + i, length - i, form, &taken) - escaped);
        if (done + n >= size)
            break;
        memcpy(buffer + done, escaped, n);
        done += n;
    }
    buffer[done] = '\0';
}

const char *error_printable(char *buffer, size_t size, const char *string)
{
    copy_escaped(buffer, size, string, ESCAPE_DATA);
    return buffer;
}

enum cdacq_status error_set(struct cdacq_error *err, enum cdacq_status status, uint64_t address, const char *format,
                            ...)
{
    if (!err)
        return status;
    char line[CDACQ_ERROR_MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    /* The line may hold an unescaped path. */
    copy_escaped(err->message, sizeof err->message, line, ESCAPE_MESSAGE);
    err->status = status;
    err->address = address;
    return status;
}
