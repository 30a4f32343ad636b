#include "contracts/gc/problems.h"

#include <stdarg.h>
#include <stdio.h>

#include "util/error.h"

void gc_problem(struct gc_problems *problems, const char *format, ...)
{
    char text[CDACQ_ERROR_MESSAGE_SIZE + 128];
    va_list arguments;
    if (++problems->count > GC_PROBLEM_MAX || !problems->tell || *problems->stopped)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    *problems->stopped = problems->tell(text, problems->context) != 0;
}

bool gc_problem_of_reader(struct gc_problems *problems, struct reader *reader, const char *prefix)
{
    struct cdacq_error error;
    enum cdacq_status status = reader_status(reader, &error);
    if (status == CDACQ_ERR_FUEL || status == CDACQ_ERR_NOMEM || status == CDACQ_ERR_IO)
        return false;
    if (status < 0)
        gc_problem(problems, "%s: %s", prefix, error.message);
    reader_recover(reader, FAILURE_ANY);
    return true;
}
