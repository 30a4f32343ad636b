#include "src/error.h"

#include <stdarg.h>
#include <stdio.h>

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

const char *error_printable(char *buffer, size_t size, const char *string)
{
    size_t n = 0;
    for (; string[n] && n + 1 < size; n++)
        buffer[n] = (unsigned char)string[n] < 0x20 || string[n] == 0x7f ? '?' : string[n];
    buffer[n] = '\0';
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
    error_printable(err->message, sizeof err->message, line);
    err->status = status;
    err->address = address;
    return status;
}
