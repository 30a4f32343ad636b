#include "src/ending/native_ending.h"

#include <inttypes.h>
#include <stdio.h>

#include "cdacq/exception.h"
#include "cdacq/stack.h"
#include "contracts/native_aot/aot_name.h"
#include "contracts/objects/native_exception.h"
#include "contracts/objects/object.h"
#include "contracts/objects/string.h"
#include "contracts/stack_walk/machine.h"
#include "descriptors/json.h"
#include "src/lookup/opened_session.h"

enum {
    REPORT_MAX = 8192,               /* bytes of the runtime's buffer */
    REPORT_MESSAGE_MAX = 1024,       /* characters of a message in it */
    SEARCHED_MAX = 64 * 1024 * 1024, /* bytes of the program's variables */
    CHUNK = 64 * 1024,
    FRAMES_MAX = 100 * 1000,
    ARGUMENT_FRAMES = 2,        /* FailFast and its caller */
    ARGUMENT_BYTES = 64 * 1024, /* of the stack that are searched */
};

DEFINE_VECTOR_FUNCTIONS(native_frames, uint64_t);

static const char fail_fast[] = "System.RuntimeExceptionHelpers.FailFast(";

void native_ending_free(struct native_ending *ending)
{
    if (!ending)
        return;
    free(ending->message);
    native_frames_deinit(&ending->frames);
    free(ending);
}

/* ---- The report ---- */

/* Where `mark` is in an interval of memory, as far as that can be read; 0: nowhere. */
static uint64_t search(struct reader *reader, uint64_t begin, uint64_t end, const char *mark)
{
    size_t length = strlen(mark), overlap = length - 1;
    CLEANUP_FREE uint8_t *bytes = malloc(CHUNK);
    uint64_t step = CHUNK - overlap;
    for (uint64_t at = begin; bytes && at < end && reader_step(reader, "the runtime's report"); at += step) {
        size_t size = (size_t)MIN(end - at, (uint64_t)CHUNK);
        if (!reader_try_copy(reader, at, bytes, size))
            continue;
        reader_charge(reader, (uint32_t)(size / 64));
        const uint8_t *found = memmem(bytes, size, mark, length);
        if (found)
            return at + (uint64_t)(found - bytes);
    }
    return 0;
}

/* The address of the report among the variables of the program; 0: there is none. */
static uint64_t find_report(struct reader *reader, const struct image *image)
{
    char mark[96];
    uint64_t found = 0;
    snprintf(mark, sizeof mark, "{\"version\":\"1.0.0\",\"runtime_base\":\"0x%" PRIX64 "\",\"runtime_type\":\"4\"",
             image->base);
    for (size_t i = 0; i < image->segment_count && !found; i++) {
        const struct image_segment *segment = &image->segments[i];
        uint64_t begin = image->base + segment->vaddr;
        if (segment->writable)
            found = search(reader, begin, begin + MIN(segment->memory_size, (uint64_t)SEARCHED_MAX), mark);
    }
    return found;
}

/* Reads and parses the report. NULL: there is none, or it is damaged. */
static struct json *read_report(struct cdacq_session *session)
{
    struct reader *reader = &session->resolver.reader;
    const struct image *image = session->resolver.modules.aot->image;
    char text[REPORT_MAX];
    struct json *root = NULL;
    reader_begin(reader, FUEL_INDEX);
    uint64_t at = image ? find_report(reader, image) : 0;
    size_t size = 0;
    while (at && size < sizeof text && reader_try_copy(reader, at + size, text + size, 1) && text[size])
        size++;
    if (size && json_parse(text, size, "the runtime's report", &root, NULL) < 0)
        return NULL;
    return root;
}

static uint64_t number_of(const struct json *object, const char *key)
{
    const struct json *value = object ? json_get(object, key) : NULL;
    uint64_t number = 0;
    return value && json_integer(value, &number) ? number : 0;
}

static const char *text_of(const struct json *object, const char *key)
{
    const struct json *value = object ? json_get(object, key) : NULL;
    return value ? json_text(value) : NULL;
}

/* Whether an object is of the type with that name. */
static bool has_type(struct cdacq_session *session, uint64_t object, const char *type)
{
    struct reader *reader = &session->resolver.reader;
    struct text name = {0};
    reader_begin(reader, FUEL_LOOKUP);
    uint64_t method_table = object ? object_method_table(reader, object) : 0;
    bool equal = method_table &&
                 aot_name_type(session->resolver.modules.aot, reader, method_table, &name) == CDACQ_OK &&
                 text_equals(&name, type);
    text_deinit(&name);
    return equal;
}

static size_t characters_of(const char *utf8)
{
    size_t count = 0;
    for (; *utf8; utf8++)
        count += (*utf8 & 0xc0) != 0x80;
    return count;
}

/* The collector may have moved the exception since: the thread that died has its address now. */
static uint64_t find_exception(struct cdacq_session *session, const struct cdacq_thread *thread,
                               const struct json *exception)
{
    const char *type = text_of(exception, "type");
    uint64_t address = number_of(exception, "address");
    if (!type)
        return 0;
    if (has_type(session, address, type))
        return address;
    return has_type(session, thread->exception, type) ? thread->exception : 0;
}

static void take_report(struct cdacq_session *session, const struct cdacq_thread *thread, const struct json *report,
                        struct native_ending *ret)
{
    static const char assertion[] = "System.Diagnostics.DebugProvider+DebugAssertException";
    const struct json *exception = json_get(report, "exception");
    const char *message = text_of(report, "message"), *type = text_of(exception, "type");
    uint64_t reason = number_of(report, "reason");
    ret->reason = reason <= NATIVE_REASON_INTERNAL ? (enum native_reason)reason : NATIVE_REASON_UNKNOWN;
    ret->exception = exception ? find_exception(session, thread, exception) : 0;
    ret->is_assertion = type && strcmp(type, assertion) == 0;
    ret->message = message ? strdup(message) : NULL;
    ret->message_cut = message && characters_of(message) >= REPORT_MESSAGE_MAX;
}

/* ---- The stack ---- */

struct stack_visit {
    struct native_ending *ending;
    unsigned fp;         /* the number of the frame pointer */
    bool in_fail_fast;   /* it was reached */
    uint64_t begin, end; /* of the stack where its arguments are */
    bool skips;          /* what was called by the method in whose handler the last frame is */
    uint64_t method;     /* where that begins */
    bool has_fp;
    uint64_t fp_value; /* of the handler, and so of the method */
};

static bool has_fp(const struct stack_visit *visit, const struct cdacq_frame *frame)
{
    return frame->registers && frame->registers->known >> visit->fp & 1;
}

/*
 * The runtime's stack traces go on from a handler to the method that it belongs to, which they do not list again: the
 * methods between them have thrown the exception.
 */
static bool is_left_out(struct stack_visit *visit, const struct cdacq_frame *frame)
{
    bool skips = visit->skips,
         is_body = frame->kind == CDACQ_FRAME_MANAGED && frame->method->code_start == visit->method;
    if (skips && is_body &&
        (!visit->has_fp || !has_fp(visit, frame) || frame->registers->values[visit->fp] == visit->fp_value))
        visit->skips = false;
    if (!skips && frame->kind == CDACQ_FRAME_FUNCLET && frame->funclet != CDACQ_FUNCLET_FILTER) {
        visit->skips = true;
        visit->method = frame->method->code_start;
        visit->has_fp = has_fp(visit, frame);
        visit->fp_value = visit->has_fp ? frame->registers->values[visit->fp] : 0;
    }
    return skips;
}

static int visit_frame(const struct cdacq_frame *frame, void *context)
{
    struct stack_visit *visit = context;
    struct native_ending *ending = visit->ending;
    const struct cdacq_method *method = frame->method;
    visit->begin = visit->begin ? visit->begin : frame->sp;
    if (!method || method->kind != CDACQ_CODE_NATIVE_AOT)
        return 0;
    visit->in_fail_fast |= method->name && strncmp(method->name, fail_fast, sizeof fail_fast - 1) == 0;
    if (!visit->in_fail_fast || is_left_out(visit, frame))
        return 0;
    if (ending->frames.count < ARGUMENT_FRAMES)
        visit->end = frame->cfa;
    ending->frames_cut = ending->frames.count == FRAMES_MAX || !native_frames_append(&ending->frames, frame->pc);
    return ending->frames_cut;
}

/* ---- The arguments of FailFast ---- */

/* A text of the report, which has a mark in place of each half of a character outside of the basic plane. */
struct comparison {
    const char *text;
    bool prefix; /* the string may be longer */
    bool differs;
};

static bool compare_piece(void *context, const char *utf8, size_t length)
{
    static const char mark[] = "\xef\xbf\xbd\xef\xbf\xbd"; /* U+FFFD, twice */
    struct comparison *c = context;
    for (size_t i = 0; i < length && !c->differs && !(c->prefix && !*c->text);) {
        bool is_wide = ((unsigned char)utf8[i] & 0xf8) == 0xf0;
        size_t taken = is_wide ? 4 : 1, expected = is_wide ? sizeof mark - 1 : 1;
        c->differs = strncmp(c->text, is_wide ? mark : utf8 + i, expected) != 0;
        c->text += c->differs ? 0 : expected;
        i += taken;
    }
    return !c->differs;
}

/* Whether an object is a string of that text. */
static bool is_string(struct cdacq_session *session, uint64_t object, const char *text, bool prefix)
{
    struct reader *reader = &session->resolver.reader;
    struct comparison comparison = {.text = text, .prefix = prefix};
    if (!object || object % reader->pointer_size)
        return false;
    reader_begin(reader, FUEL_INDEX);
    if (!string_length(reader, object) || reader_failed(reader))
        return false;
    string_each(reader, object, UINT32_MAX, compare_piece, &comparison);
    return !comparison.differs && !*comparison.text && !reader_failed(reader);
}

/* The string of that text that the stack refers to where FailFast was called; 0: there is none. */
static uint64_t find_string(struct cdacq_session *session, const struct stack_visit *visit, const char *text,
                            bool prefix)
{
    struct reader *reader = &session->resolver.reader;
    uint64_t end = MIN(visit->end, visit->begin + ARGUMENT_BYTES);
    for (uint64_t at = visit->begin; at + reader->pointer_size <= end; at += reader->pointer_size) {
        reader_begin(reader, FUEL_LOOKUP);
        uint64_t word = read_pointer(reader, at);
        if (!reader_failed(reader) && is_string(session, word, text, prefix))
            return word;
    }
    return 0;
}

static void find_arguments(struct cdacq_session *session, const struct stack_visit *visit, struct native_ending *ret)
{
    static const char *const words[] = {"Assertion failed.", "Assertion Failed"}; /* of Debug, of Trace */
    if (ret->message && *ret->message)
        ret->message_object = find_string(session, visit, ret->message, ret->message_cut);
    for (size_t i = 0; ret->is_assertion && !ret->source && i < ARRAY_SIZE(words); i++)
        if (find_string(session, visit, words[i], false))
            ret->source = words[i];
}

struct native_ending *native_ending_find(struct cdacq_session *session, const struct cdacq_thread *thread)
{
    struct native_ending *ending = calloc(1, sizeof *ending);
    const struct walk_machine *machine = walk_machine_find(session->resolver.reader.layout->architecture);
    struct stack_visit visit = {.ending = ending, .fp = machine ? machine->fp : 0};
    if (!ending)
        return NULL;
    struct json *report = read_report(session);
    if (report)
        take_report(session, thread, report, ending);
    if (cdacq_session_visit_frames(session, thread, NULL, 0, visit_frame, &visit, NULL) < 0)
        ending->frames_cut = true;
    ending->frames_cut |= visit.skips;
    find_arguments(session, &visit, ending);
    if (!report && visit.in_fail_fast && thread->exception) {
        ending->reason = NATIVE_REASON_UNHANDLED;
        ending->exception = thread->exception;
        ending->is_inferred = true;
    }
    json_free(report);
    if (ending->reason != NATIVE_REASON_UNKNOWN)
        return ending;
    native_ending_free(ending);
    return NULL;
}

/* ---- The text ---- */

static void puts_text(const struct native_words *words, const char *text)
{
    words->put(words->context, text, strlen(text));
}

/* The methods of the stack, as Environment.FailFast lists them. Returns flaws. */
static unsigned put_stack(struct cdacq_session *session, const struct native_ending *ending,
                          const struct native_words *words)
{
    unsigned flaws = ending->frames.count && !ending->frames_cut ? 0 : CDACQ_EXCEPTION_CUT;
    for (size_t i = 0; i < ending->frames.count; i++) {
        struct text text = {0};
        reader_begin(&session->resolver.reader, FUEL_LOOKUP);
        if (native_frame_append(session->resolver.modules.aot, &session->resolver.reader, ending->frames.items[i],
                                &text, &flaws)) {
            words->put(words->context, text.data, text.length);
            puts_text(words, "\n");
        }
        text_deinit(&text);
    }
    return flaws;
}

static bool put_piece(void *context, const char *utf8, size_t length)
{
    const struct native_words *words = context;
    words->put(words->context, utf8, length);
    return true;
}

/* The message: that of the string, or what the report has of it. */
static unsigned put_message(struct cdacq_session *session, const struct native_ending *ending,
                            const struct native_words *words)
{
    static const char mark[] = "\xef\xbf\xbd";
    struct reader *reader = &session->resolver.reader;
    reader_begin(reader, FUEL_INDEX);
    if (ending->message_object && string_each(reader, ending->message_object, UINT32_MAX, put_piece, (void *)words))
        return 0;
    if (!ending->message_object)
        puts_text(words, ending->message);
    return ending->message_object || strstr(ending->message, mark) ? CDACQ_EXCEPTION_MISSING
           : ending->message_cut                                   ? CDACQ_EXCEPTION_CUT
                                                                   : 0;
}

unsigned native_ending_write(struct cdacq_session *session, const struct native_ending *ending,
                             const struct native_words *words)
{
    bool unhandled = ending->reason == NATIVE_REASON_UNHANDLED;
    unsigned flaws = ending->is_inferred ? CDACQ_EXCEPTION_INFERRED : 0;
    puts_text(words, unhandled ? "Unhandled exception. " : "Process terminated. ");
    if (ending->is_assertion && ending->source) {
        puts_text(words, ending->source);
        puts_text(words, "\n");
    }
    flaws |= !ending->is_assertion ? 0 : ending->source ? CDACQ_EXCEPTION_INFERRED : CDACQ_EXCEPTION_MISSING;
    if (!unhandled && ending->message) {
        flaws |= put_message(session, ending, words);
        puts_text(words, "\n");
    }
    if (ending->reason == NATIVE_REASON_FAIL_FAST && !ending->is_assertion)
        flaws |= put_stack(session, ending, words);
    if (ending->exception && !ending->is_assertion) {
        words->put_exception(words->context, ending->exception);
        puts_text(words, "\n");
    } else if (unhandled) {
        flaws |= CDACQ_EXCEPTION_MISSING;
    }
    return flaws;
}
