#include "util/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "util/text.h"

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

/* Copies escaped text, cut between two characters. A backslash that belongs to an earlier escaping is kept as it is. */
static void copy_escaped(char *buffer, size_t size, const char *string, bool keep_backslashes)
{
    size_t length = strlen(string), done = 0, n;
    char escaped[TEXT_ESCAPE_MAX];
    for (size_t i = 0; i < length;) {
        bool backslash = string[i] == '\\';
        i += text_escape_next(string + i, length - i, escaped, &n);
        if (backslash && keep_backslashes)
            n = 1;
        if (done + n >= size)
            break;
        memcpy(buffer + done, escaped, n);
        done += n;
    }
    buffer[done] = '\0';
}

const char *error_printable(char *buffer, size_t size, const char *string)
{
    copy_escaped(buffer, size, string, false);
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
    /* A path of the user or of the system may have gone into it as it is. */
    copy_escaped(err->message, sizeof err->message, line, true);
    err->status = status;
    err->address = address;
    return status;
}
