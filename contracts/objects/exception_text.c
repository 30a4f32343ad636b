#include "contracts/objects/exception_text.h"

#include "contracts/objects/exception_message.h"
#include "contracts/objects/exception_trace.h"
#include "contracts/objects/native_exception.h"

static unsigned write_part(const struct exception_output *output, uint64_t address,
                           void (*put)(struct exception_writer *w, const struct writing_exception *e))
{
    struct writing_exception exception;
    struct exception_writer w = {.find_kind = exception_kind_find,
                                 .find_named = exception_kind_named,
                                 .find_native_kinds = native_exception_find_kinds,
                                 .base = exception_kind_base,
                                 .output = output,
                                 .exceptions_left = EXCEPTION_COUNT_MAX,
                                 .elements_left = EXCEPTION_ELEMENTS_MAX,
                                 .frames_left = EXCEPTION_FRAMES_MAX,
                                 .names_left = EXCEPTION_NAMES_MAX};
    if (exception_enter(&w, address, NULL, &exception))
        put(&w, &exception);
    exception_free_trace(&w);
    return w.flaws;
}

static void put_type(struct exception_writer *w, const struct writing_exception *e)
{
    w->flaws = 0;
    exception_put_type(w, e->fields.method_table);
}

unsigned exception_text_write(const struct exception_output *output, uint64_t exception)
{
    return write_part(output, exception, exception_put_text);
}

unsigned exception_text_type(const struct exception_output *output, uint64_t exception)
{
    return write_part(output, exception, put_type);
}
