#include "formats/jitdump_problems.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void jitdump_problem(struct jitdump_problems *problems, const char *format, ...)
{
    if (problems->count++)
        return;
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    error_set(problems->err, CDACQ_ERR_FORMAT, problems->offset, "%s", line);
}

enum cdacq_status jitdump_problems_end(const struct jitdump_problems *problems)
{
    if (problems->count > 1 && problems->err) {
        char *message = problems->err->message;
        size_t length = strlen(message);
        snprintf(message + length, sizeof problems->err->message - length, " (and %" PRIu64 " more problems)",
                 problems->count - 1);
    }
    return problems->count ? CDACQ_ERR_FORMAT : CDACQ_OK;
}

void jitdump_set_problem(struct cdacq_error *problem, struct cdacq_jitdump_record *record, const char *format, ...)
{
    char line[256];
    va_list args;
    if (record->error)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    error_set(problem, CDACQ_ERR_FORMAT, record->offset, "%s", line);
    record->error = problem->message;
}
