#include "contracts/objects/exception_trace.h"

#include <inttypes.h>
#include <stdio.h>

#include "contracts/objects/native_exception.h"
#include "contracts/type_system/method_desc.h"
#include "contracts/type_system/method_name.h"
#include "formats/names/names.h"
#include "util/hash_table.h"
#include "formats/names/state_machine.h"

/* A frame's method, as far as it is known. */
struct frame_method {
    struct text name;
    bool shown;
    bool async;
    bool unknown; /* it could not be named */
};

/*
 * The methods of recent frames: recursion has few methods in many frames. Naming one may cost a hostile target's whole
 * budget for a name, so that their number is bounded, too.
 */
enum {
    NAME_SLOTS = 256,
    RUNTIME_ASYNC_SINCE = 2, /* schema of the descriptor (.NET 11): traces know async methods without state machines */
};

struct frame_name {
    uint64_t method_desc;
    bool last; /* of its trace, where hidden methods are shown */
    bool filled;
    struct frame_method method;
};

struct frame_names {
    struct frame_name slots[NAME_SLOTS];
};

void exception_free_trace(struct exception_writer *w)
{
    for (unsigned i = 0; w->names && i < NAME_SLOTS; i++)
        text_deinit(&w->names->slots[i].method.name);
    free(w->names);
    w->names = NULL;
}

/* The method that is shown for a method, as StackTrace.ToString() finds it. */
static enum cdacq_status resolve_method(struct exception_writer *w, const struct metadata *metadata, uint32_t token,
                                        struct state_machine *ret)
{
    bool async = false;
    enum cdacq_status status = CDACQ_OK;
    if (w->output->cache->reader->layout->schema >= RUNTIME_ASYNC_SINCE)
        status = method_is_runtime_async(metadata, token, &async);
    if (status != CDACQ_OK || !async)
        return status == CDACQ_OK ? state_machine_resolve(metadata, token, ret) : status;
    *ret = (struct state_machine){.method = token, .async = true};
    return CDACQ_OK;
}

/* By the metadata. */
static enum cdacq_status name_definition(struct exception_writer *w, const struct method_desc *desc, bool last,
                                         struct frame_method *ret)
{
    const struct metadata *metadata;
    struct state_machine machine;
    struct metadata_method_def original;
    bool hidden = false;
    enum cdacq_status status = module_cache_metadata(w->output->cache, desc->module, desc->token, &metadata);
    if (status == CDACQ_OK && !last && method_is_hidden(metadata, desc->token, &hidden) == CDACQ_OK && hidden)
        return CDACQ_OK;
    ret->shown = true;
    if (status == CDACQ_OK)
        status = resolve_method(w, metadata, desc->token, &machine);
    if (status != CDACQ_OK)
        return status;
    const struct name_source source = {.metadata = metadata};
    ret->async = machine.async;
    status = name_method(&source, &name_spelling_stack_trace, machine.method, NULL, &ret->name);
    if (status != CDACQ_OK || !machine.iterator)
        return status;
    char buffer[METADATA_STRING_CAP];
    const char *name;
    size_t length;
    status = metadata_method_def(metadata, metadata_rid(desc->token), &original);
    if (status == CDACQ_OK)
        status = metadata_string(metadata, original.name, buffer, &name, &length);
    if (status == CDACQ_OK) {
        text_putc(&ret->name, '+');
        text_escape(&ret->name, name, length);
        text_puts(&ret->name, "()");
    }
    return status;
}

static enum cdacq_status name_dynamic_frame(struct exception_writer *w, uint64_t method_desc, struct frame_method *ret)
{
    const struct method_namer namer = {
        .cache = w->output->cache, .spelling = &name_spelling_stack_trace, .runtime_types = w->output->runtime_types};
    struct method_name name = {0};
    method_name_of_desc(&namer, method_desc, &name);
    ret->name = name.text;
    ret->shown = true;
    return name.error.status;
}

static void form_name(struct exception_writer *w, const struct exception_frame *frame, bool last,
                      struct frame_method *ret)
{
    struct reader *reader = w->output->cache->reader;
    struct reader_task outer = reader_enter(reader, FUEL_INDEX);
    struct method_desc desc;
    enum cdacq_status status = CDACQ_ERR_CONTRACT;
    if (!frame->method_desc) { /* as the runtime: a frame without a method is not shown */
        status = CDACQ_OK;
    } else if (w->output->runtime_types && method_desc_read(reader, frame->method_desc, &desc)) {
        if (method_desc_is_hidden(reader, &desc))
            status = CDACQ_OK;
        else if (desc.classification != METHOD_DYNAMIC)
            status = name_definition(w, &desc, last, ret);
        else
            status = name_dynamic_frame(w, frame->method_desc, ret);
    } else {
        ret->shown = true;
    }
    if (!exception_leave_part(w, &outer) || status < 0) {
        text_clear(&ret->name);
        ret->unknown = true;
    }
}

/* The method of a frame. NULL: out of memory, or too many had to be named. */
static const struct frame_method *name_frame(struct exception_writer *w, const struct exception_frame *frame, bool last)
{
    if (!w->names && !(w->names = calloc(1, sizeof *w->names)))
        return NULL;
    uint64_t key = frame->method_desc;
    struct frame_name *name = &w->names->slots[hash_u64(key, last) % NAME_SLOTS];
    if (name->filled && name->method_desc == key && name->last == last)
        return &name->method;
    if (!w->names_left)
        return NULL;
    w->names_left--;
    text_deinit(&name->method.name);
    *name = (struct frame_name){.method_desc = key, .last = last, .filled = true};
    form_name(w, frame, last, &name->method);
    return &name->method;
}

static void put_line(struct exception_writer *w, const struct exception_frame *frame)
{
    char number[32];
    const char *file;
    uint32_t line;
    if (!w->output->line || w->lines_failed)
        return;
    enum exception_line known = w->output->line(w->output->context, frame, &file, &line);
    w->lines_failed = known == EXCEPTION_LINE_FAILED;
    w->flaws |= known == EXCEPTION_LINE_OTHER ? EXCEPTION_TEXT_INFERRED : 0;
    if (known != EXCEPTION_LINE_KNOWN)
        return;
    snprintf(number, sizeof number, ":line %" PRIu32, line);
    exception_puts(w, " in ");
    exception_puts(w, file);
    exception_puts(w, number);
}

/* False: nothing was written. */
static bool put_frame(struct exception_writer *w, const struct exception_frame *frame, bool first, bool last)
{
    char address[32];
    const struct frame_method *method = name_frame(w, frame, last);
    w->flaws |= !method ? EXCEPTION_TEXT_CUT : method->unknown ? EXCEPTION_TEXT_MISSING : 0;
    if (method && !method->shown)
        return false;
    exception_puts(w, first ? "   at " : "\n   at ");
    if (method && method->name.length && !method->name.broken) {
        exception_put(w, method->name.data, method->name.length);
    } else {
        snprintf(address, sizeof address, "0x%" PRIx64, frame->ip);
        exception_puts(w, address);
        w->flaws |= EXCEPTION_TEXT_MISSING;
    }
    put_line(w, frame);
    if (frame->last_of_foreign && !(method && method->async))
        exception_puts(w, "\n--- End of stack trace from previous location ---");
    return true;
}

static void put_frames(struct exception_writer *w, const struct exception *e)
{
    struct reader *reader = w->output->cache->reader;
    bool first = true;
    w->lines_failed = false;
    for (uint32_t i = 0; i < e->frame_count && !w->stopped; i++) {
        struct exception_frame frame;
        struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
        bool known = exception_frame_at(reader, e, i, &frame);
        exception_leave_part(w, &outer);
        if (!known || !w->frames_left) {
            w->flaws |= known ? EXCEPTION_TEXT_CUT : EXCEPTION_TEXT_MISSING;
            return;
        }
        w->frames_left--;
        first &= !(w->output->cache->aot ? native_exception_put_frame(w, &frame, first)
                                         : put_frame(w, &frame, first, i + 1 == e->frame_count));
    }
}

void exception_put_trace(struct exception_writer *w, const struct exception *e, const char *before)
{
    if (!e->remote_stack_trace && !e->stack_trace_string && !e->thrown)
        return;
    exception_puts(w, before);
    exception_put_string(w, e->remote_stack_trace);
    if (e->stack_trace_string)
        exception_put_string(w, e->stack_trace_string);
    else
        put_frames(w, e);
}
