#include "src/perf/jitdump_problem.h"

#include <stdarg.h>
#include <stdio.h>

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
