/* exception.c: the calls of cdacq/exception.h. */
#include "cdacq/exception.h"
#include "cdacq/source.h"
#include "contracts/objects/exception_text.h"
#include "contracts/thread.h"
#include "contracts/type_system/method_desc.h"
#include "src/ending/ending.h"
#include "src/ending/foreign_lines.h"
#include "src/lookup/opened_target.h"
#include "target/mapped_file.h"
#include "util/sized.h"
#include "util/text.h"

_Static_assert((int)CDACQ_EXCEPTION_OVERRIDDEN == (int)EXCEPTION_TEXT_OVERRIDDEN &&
                   (int)CDACQ_EXCEPTION_CUT == (int)EXCEPTION_TEXT_CUT &&
                   (int)CDACQ_EXCEPTION_MISSING == (int)EXCEPTION_TEXT_MISSING &&
                   (int)CDACQ_EXCEPTION_INFERRED == (int)EXCEPTION_TEXT_INFERRED &&
                   (int)CDACQ_EXCEPTION_UNVERIFIED == (int)EXCEPTION_TEXT_UNCONFIRMED,
               "the same bits");

enum { NESTED_MAX = 4096 }; /* exceptions of a thread, each thrown in the handling of the next */

/* What the caller of cdacq_session_write_exception passes. */
struct caller {
    struct cdacq_session *session;
    int (*write)(const char *bytes, size_t length, void *context);
    void *context;
    bool stopped;    /* `write` wants no more */
    bool unverified; /* a line comes from a file that nothing confirms */
};

static enum cdacq_status read_exception(struct cdacq_session *session, uint64_t address, struct exception *ret,
                                        struct cdacq_error *err)
{
    if (!session || !address)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, session ? "no object" : "no session");
    resolver_begin(&session->resolver);
    reader_begin(&session->resolver.reader, FUEL_LOOKUP);
    return exception_read(&session->resolver.reader, address, ret) ? CDACQ_OK
                                                                   : reader_status(&session->resolver.reader, err);
}

static struct exception_output output_of(struct cdacq_session *session)
{
    return (struct exception_output){.cache = &session->resolver.modules,
                                     .runtime_types = session->resolver.target->runtime_types};
}

static bool append_text(void *context, const char *bytes, size_t length)
{
    struct text *text = context;
    text_escape(text, bytes, length);
    return !text->broken;
}

unsigned ending_exception_type(struct cdacq_session *session, uint64_t address, struct text *ret)
{
    struct exception_output output = output_of(session);
    output.write = append_text;
    output.context = ret;
    return exception_text_type(&output, address);
}

enum cdacq_status cdacq_session_get_exception(struct cdacq_session *session, uint64_t address,
                                              struct cdacq_exception *ret, struct cdacq_error *err)
{
    struct exception exception;
    struct text type = {0};
    enum cdacq_status status = sized_check(ret, "struct cdacq_exception", err);
    if (status == CDACQ_OK)
        status = read_exception(session, address, &exception, err);
    if (status < 0)
        return status;
    struct cdacq_exception answer = {.size = sizeof answer,
                                     .address = address,
                                     .inner = exception.inner,
                                     .hresult = exception.hresult,
                                     .frame_count = exception.frame_count,
                                     .thrown = exception.thrown};
    unsigned flaws = ending_exception_type(session, address, &type) & ~(unsigned)EXCEPTION_TEXT_UNCONFIRMED;
    if (!flaws && type.length)
        answer.type = resolver_intern(&session->resolver, type.data, type.length);
    text_deinit(&type);
    sized_copy(ret, &answer, sizeof answer);
    return CDACQ_OK;
}

enum cdacq_status cdacq_session_visit_exception_frames(struct cdacq_session *session, uint64_t address,
                                                       int (*visit)(const struct cdacq_exception_frame *frame,
                                                                    void *context),
                                                       void *context, struct cdacq_error *err)
{
    struct exception exception;
    if (!visit)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no function to call");
    enum cdacq_status status = read_exception(session, address, &exception, err);
    for (uint32_t i = 0; status == CDACQ_OK && i < exception.frame_count; i++) {
        struct exception_frame frame;
        if (i == EXCEPTION_FRAMES_MAX)
            return error_set(err, CDACQ_ERR_FUEL, address, "only the first %d of %u frames are visited",
                             EXCEPTION_FRAMES_MAX, exception.frame_count);
        epoch_follow(&session->resolver.epoch); /* `visit` may have used another session of the target */
        reader_begin(&session->resolver.reader, FUEL_LOOKUP);
        if (!exception_frame_at(&session->resolver.reader, &exception, i, &frame))
            return reader_status(&session->resolver.reader, err);
        const struct cdacq_exception_frame answer = {.size = sizeof answer,
                                                     .ip = frame.ip,
                                                     .method_desc = frame.method_desc,
                                                     .last_of_foreign = frame.last_of_foreign};
        if (visit(&answer, context))
            return CDACQ_STOPPED;
    }
    return status;
}

/* The record of the innermost exception of a thread. */
static enum cdacq_status find_innermost(struct cdacq_session *session, uint64_t thread, uint64_t *ret,
                                        struct cdacq_error *err)
{
    struct reader *reader = &session->resolver.reader;
    const uint32_t needed = 1u << LAYOUT_Thread | 1u << LAYOUT_Exception;
    struct thread_objects objects;
    if ((reader->layout->usable & needed) != needed || !exception_info_described(reader))
        return error_set(err, CDACQ_ERR_CONTRACT, 0, "the runtime does not describe exceptions that are handled");
    resolver_begin(&session->resolver);
    reader_begin(reader, FUEL_LOOKUP);
    if (!thread_read_objects(reader, thread, &objects))
        return reader_status(reader, err);
    *ret = objects.exception_info;
    return CDACQ_OK;
}

enum cdacq_status cdacq_session_visit_nested_exceptions(struct cdacq_session *session, uint64_t thread,
                                                        int (*visit)(const struct cdacq_nested_exception *nested,
                                                                     void *context),
                                                        void *context, struct cdacq_error *err)
{
    uint64_t info = 0, first = 0;
    if (!session || !thread || !visit)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no session, no Thread, or no function to call");
    enum cdacq_status status = find_innermost(session, thread, &info, err);
    for (unsigned i = 0; status == CDACQ_OK && info; i++) {
        struct exception_info record;
        if (i == NESTED_MAX)
            return error_set(err, CDACQ_ERR_FUEL, info, "only the first %d exceptions within each other are visited",
                             NESTED_MAX);
        if (info == first)
            return error_set(err, CDACQ_ERR_CORRUPT, info, "the exceptions that the thread handles form a cycle");
        if (!(i & (i - 1))) /* remembers the record at 0, 1, 2, 4 and so on: meeting it again shows a cycle */
            first = info;
        epoch_follow(&session->resolver.epoch); /* `visit` may have used another session of the target */
        reader_begin(&session->resolver.reader, FUEL_LOOKUP);
        if (!exception_info_read(&session->resolver.reader, info, &record))
            return reader_status(&session->resolver.reader, err);
        const struct cdacq_nested_exception answer = {.size = sizeof answer, .info = info, .object = record.object};
        if (visit(&answer, context))
            return CDACQ_STOPPED;
        info = record.previous;
    }
    return status;
}

static bool pass_on(void *context, const char *bytes, size_t length)
{
    struct caller *caller = context;
    caller->stopped = caller->write(bytes, length, caller->context) != 0;
    return !caller->stopped;
}

/*
 * The runtime takes every address for a return address, even that of an instruction that has faulted. If a line begins
 * with that instruction, the runtime's text has the line before it.
 */
static uint64_t address_of_line(struct cdacq_session *session, const struct exception_frame *frame)
{
    struct cdacq_method method = {.size = sizeof method};
    return frame->faulted && cdacq_session_method_at(session, frame->ip, &method, NULL) == CDACQ_OK && method.offset
               ? frame->ip - 1
               : frame->ip;
}

/*
 * Whether the code at the address is that of another method than the trace has. No runtime writes such a trace. Code
 * that generic instantiations share may be recorded for another one of them.
 */
static bool is_of_other_method(struct cdacq_session *session, const struct exception_frame *frame, uint64_t address)
{
    struct reader *reader = &session->resolver.reader;
    struct cdacq_method method = {.size = sizeof method};
    struct method_desc traced, owner;
    if (!session->resolver.target->runtime_types ||
        cdacq_session_method_at(session, address, &method, NULL) != CDACQ_OK || !method.method_desc ||
        method.method_desc == frame->method_desc)
        return false;
    reader_begin(reader, FUEL_LOOKUP);
    return method_desc_read(reader, frame->method_desc, &traced) &&
           method_desc_read(reader, method.method_desc, &owner) &&
           (traced.module != owner.module || traced.token != owner.token);
}

static enum exception_line find_line(void *context, const struct exception_frame *frame, const char **ret_file,
                                     uint32_t *ret_line)
{
    struct caller *caller = context;
    struct cdacq_source source = {.size = sizeof source};
    struct cdacq_error error;
    enum exception_line known;
    uint64_t address = address_of_line(caller->session, frame);
    if (is_of_other_method(caller->session, frame, address))
        return EXCEPTION_LINE_OTHER;
    if (session_foreign_line(caller->session, address, &known, ret_file, ret_line))
        return known;
    if (cdacq_session_source_at(caller->session, address, &source, &error) != CDACQ_OK || !source.file || !source.line)
        return EXCEPTION_LINE_NONE;
    caller->unverified |= !source.verified;
    *ret_file = source.file;
    *ret_line = source.line;
    return EXCEPTION_LINE_KNOWN;
}

/* Whether the process maps a satellite assembly of the core library. The framework itself comes without any. */
static bool is_translated(void *context)
{
    const struct caller *caller = context;
    struct target *target = caller->session->resolver.target->memory;
    if (target_list_mappings(target, NULL) < 0)
        return false;
    for (size_t i = 0; i < target->mapping_count; i++) {
        const struct mapping *mapping = &target->mappings[i];
        const char *path = mapping->file ? mapping->file->path : mapping->path;
        if (path && strcmp(path_basename(path), "System.Private.CoreLib.resources.dll") == 0)
            return true;
    }
    return false;
}

enum cdacq_status cdacq_session_write_exception(struct cdacq_session *session, uint64_t address,
                                                int (*write)(const char *bytes, size_t length, void *context),
                                                void *context, unsigned *ret_flaws, struct cdacq_error *err)
{
    struct exception exception;
    if (!write || !ret_flaws)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no function to call, or nowhere to put the flaws");
    enum cdacq_status status = read_exception(session, address, &exception, err);
    if (status < 0)
        return status;
    struct caller caller = {.session = session, .write = write, .context = context};
    struct exception_output output = output_of(session);
    output.write = pass_on;
    output.line = find_line;
    output.is_translated = is_translated;
    output.context = &caller;
    reader_begin(&session->resolver.reader, FUEL_INDEX);
    epoch_pin(&session->resolver.epoch); /* lines are look-ups of their own */
    unsigned flaws = exception_text_write(&output, address);
    *ret_flaws = flaws | (caller.unverified ? (unsigned)CDACQ_EXCEPTION_UNVERIFIED : 0);
    epoch_unpin(&session->resolver.epoch);
    return caller.stopped ? CDACQ_STOPPED : CDACQ_OK;
}
