/* stress_log.c: the calls of cdacq/stress_log.h. Merges the messages of all threads by their time. */
#include <inttypes.h>
#include <stdio.h>

#include "cdacq/stress_log.h"
#include "contracts/stress_log/message_text.h"
#include "contracts/stress_log/stress_log.h"
#include "contracts/type_system/type_handle.h"
#include "src/lookup/answer.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"
#include "src/lookup/records.h"
#include "target/native/native_modules.h"
#include "util/clock.h"
#include "util/sized.h"

_Static_assert((int)CDACQ_STRESS_NO_ARGUMENT == (int)MESSAGE_NO_ARGUMENT &&
                   (int)CDACQ_STRESS_MISSING == (int)MESSAGE_MISSING && (int)CDACQ_STRESS_CUT == (int)MESSAGE_CUT &&
                   (int)CDACQ_STRESS_CHANGEABLE == (int)MESSAGE_CHANGEABLE,
               "the same bits");

enum {
    THREADS_MAX = 64 * 1024,          /* logs: a log is used again when its thread has ended */
    MESSAGES_MAX = 256 * 1024 * 1024, /* a log has at most 4 GiB, a message at least 16 bytes */
    TEXTS_MAX = 64 * 1024,            /* format strings, or names, that are remembered */
    NAME_MAX_SHOWN = 4096,            /* bytes */
};

/* ---- What is remembered of a visit ---- */

struct stress_format {
    uint64_t address;
    const char *bytes; /* as the target has it; NULL: it cannot be read */
    const char *shown; /* printable; or why it cannot be read */
    uint32_t length;
    bool is_cut, unverified;
};

DEFINE_U64_TABLE(stress_formats, struct stress_format, address);

struct name_key {
    uint64_t address;
    enum message_name kind;
};

struct stress_name {
    struct name_key key;
    const char *text; /* NULL: there is none */
};

static inline struct name_key stress_name_key(const struct stress_name *name)
{
    return name->key;
}

static inline uint64_t hash_name(struct name_key key, uint64_t seed)
{
    return hash_u64(key.address ^ (uint64_t)key.kind << 60, seed);
}

static inline bool equal_names(struct name_key a, struct name_key b)
{
    return a.address == b.address && a.kind == b.kind;
}

DEFINE_HASH_TABLE(stress_names, struct stress_name, struct name_key, stress_name_key, hash_name, equal_names);

/* The log of a thread, with its next message, or what cannot be read there. */
struct stress_source {
    struct stress_cursor cursor;
    struct stress_message message;
    char *problem; /* allocated; NULL: it is a message */
    uint64_t problem_address;
};

DEFINE_U64_SET(log_set);
DEFINE_VECTOR(stress_sources, struct stress_source);
DEFINE_VECTOR(source_order, size_t);

struct visit {
    struct cdacq_session *session;
    struct stress_log log;
    struct stress_sources sources;
    struct source_order heap; /* of the sources with messages, that with the newest one first */
    struct stress_formats formats;
    struct stress_names names;
    struct arena arena;
    uint64_t taken; /* bytes that were taken from the target's bound on memory */
    struct text text, name;
    uint64_t count; /* of elements that were visited */
    int (*visit)(const struct cdacq_stress_message *message, void *context);
    void *context;
    bool stopped;
    struct cdacq_error *err;
};

static struct reader *reader_of(const struct visit *v)
{
    return &v->session->resolver.reader;
}

static bool take_memory(struct visit *v, uint64_t bytes)
{
    bool is_taken = work_take_memory(&v->session->resolver.target->memory->work, bytes);
    v->taken += is_taken ? bytes : 0;
    return is_taken;
}

static const char *keep(struct visit *v, const char *text, size_t length)
{
    return take_memory(v, length) ? arena_string(&v->arena, text, length) : NULL;
}

static void visit_deinit(struct visit *v)
{
    for (size_t i = 0; i < v->sources.count; i++)
        free(v->sources.items[i].problem);
    stress_sources_deinit(&v->sources);
    source_order_deinit(&v->heap);
    stress_formats_deinit(&v->formats);
    stress_names_deinit(&v->names);
    work_return_memory(&v->session->resolver.target->memory->work, v->taken);
    arena_deinit(&v->arena);
    text_deinit(&v->text);
    text_deinit(&v->name);
}

/* ---- Names ---- */

static void put_type(struct visit *v, uint64_t address)
{
    uint64_t mask = reader_of(v)->layout->globals[G_ObjectToMethodTableUnmask]; /* of the garbage collector's marks */
    if (type_handle_name(&v->session->resolver.modules, address & ~mask, &v->name) != CDACQ_OK)
        text_clear(&v->name);
}

static void put_method(struct visit *v, uint64_t address)
{
    const struct method_namer namer = resolver_namer(&v->session->resolver, NULL);
    struct method_name name = {0};
    method_name_of_desc(&namer, address, &name);
    if (name.text.length && !name.text.broken)
        text_append(&v->name, name.text.data, name.text.length);
    text_deinit(&name.text);
}

static void put_symbol(struct visit *v, uint64_t address, bool exact)
{
    struct native_symbol symbol;
    struct native_modules *native = resolver_native(&v->session->resolver);
    if (!native || !native_modules_symbol(native, address, &symbol))
        return;
    bool has_name = symbol.name && (!exact || !symbol.offset);
    const char *shown = has_name ? symbol.name : path_basename(symbol.module);
    uint64_t offset = has_name ? symbol.offset : symbol.module_offset;
    text_escape(&v->name, shown, strnlen(shown, NAME_MAX_SHOWN));
    if (offset || !has_name)
        text_printf(&v->name, "+0x%" PRIx64, offset);
}

static void put_code(struct visit *v, uint64_t address)
{
    struct cdacq_method method = {.size = sizeof method};
    epoch_pin(&v->session->resolver.epoch); /* it is part of this epoch */
    answer_find(&v->session->resolver, address, &method);
    epoch_unpin(&v->session->resolver.epoch);
    const char *name = method.answer == CDACQ_ANSWER_MANAGED ? method.name : NULL;
    if (!name) {
        put_symbol(v, address, false);
        return;
    }
    text_puts(&v->name, name);
    if (method.offset)
        text_printf(&v->name, "+0x%" PRIx64, method.offset);
}

static const char *form_name(struct visit *v, enum message_name kind, uint64_t address)
{
    struct reader *reader = reader_of(v);
    text_clear(&v->name);
    struct read_log *log =
        reader_log(reader, resolver_is_running(&v->session->resolver) ? &v->session->resolver.epoch.log : reader->log);
    struct reader_task outer = reader_enter(reader, FUEL_NAME);
    if (kind == MESSAGE_TYPE)
        put_type(v, address);
    else if (kind == MESSAGE_METHOD)
        put_method(v, address);
    else if (kind == MESSAGE_VTABLE)
        put_symbol(v, address, true);
    else
        put_code(v, address);
    reader_leave(reader, &outer);
    reader_log(reader, log);
    return v->name.length && !v->name.broken ? keep(v, v->name.data, MIN(v->name.length, (size_t)NAME_MAX_SHOWN))
                                             : NULL;
}

static bool put_name(void *context, enum message_name kind, uint64_t address, struct text *ret)
{
    struct visit *v = context;
    const struct name_key key = {address, kind};
    const struct stress_name *known = stress_names_find(&v->names, key);
    struct stress_name name = {key, NULL};
    if (known) {
        name = *known;
    } else if (v->names.count < TEXTS_MAX) {
        name.text = form_name(v, kind, address);
        (void)stress_names_insert(&v->names, name, NULL);
    }
    if (name.text)
        text_puts(ret, name.text);
    return name.text != NULL;
}

/* Whether a string is where a mapped file is, which no process writes to. */
static bool is_constant(void *context, uint64_t address)
{
    struct visit *v = context;
    const struct mapping *mapping = target_mapping_at(v->session->resolver.target->memory, address);
    return mapping && mapping->path && mapping->access != MAPPING_WRITABLE;
}

/* ---- Format strings ---- */

static struct stress_format read_format(struct visit *v, uint64_t address)
{
    struct reader *reader = reader_of(v);
    struct stress_format format = {.address = address};
    struct cdacq_error error = {.status = CDACQ_OK};
    char bytes[MESSAGE_FORMAT_MAX + 1], shown[160 + sizeof error.message];
    size_t length = 0;
    struct reader_task outer = reader_enter(reader, FUEL_NAME);
    while (length < sizeof bytes && !reader_failed(reader)) {
        uint8_t byte = read_u8(reader, address + length);
        if (!byte)
            break;
        bytes[length++] = (char)byte;
    }
    reader_name_failure(reader, "the format string");
    (void)reader_status(reader, &error);
    format.unverified = reader_unverified(reader);
    reader_leave(reader, &outer);
    if (!address || error.status < 0) {
        snprintf(shown, sizeof shown, "the message has no text: %s",
                 address ? error.message : "no module of the log has its format string");
        format.shown = keep(v, shown, strlen(shown));
        return format;
    }
    format.is_cut = length > MESSAGE_FORMAT_MAX;
    format.length = (uint32_t)MIN(length, (size_t)MESSAGE_FORMAT_MAX);
    text_clear(&v->text);
    text_escape(&v->text, bytes, format.length);
    format.shown = v->text.broken ? NULL : keep(v, v->text.data ? v->text.data : "", v->text.length);
    format.bytes = format.shown ? keep(v, bytes, format.length) : NULL;
    return format;
}

static struct stress_format find_format(struct visit *v, uint64_t address)
{
    const struct stress_format *known = stress_formats_find(&v->formats, address);
    if (known)
        return *known;
    struct stress_format format = read_format(v, address);
    if (v->formats.count < TEXTS_MAX)
        (void)stress_formats_insert(&v->formats, format, NULL);
    return format;
}

/* ---- Messages in the order of time ---- */

/* Whether the element of `a` comes first: it is newer; of two at one time, that of the log that is listed first. */
static bool comes_first(const struct visit *v, size_t a, size_t b)
{
    uint64_t first = v->sources.items[a].cursor.time, second = v->sources.items[b].cursor.time;
    return first != second ? first > second : a < b;
}

/* Restores the order of the heap, whose element at `at` may come after the two below it. */
static void sift_down(struct visit *v, size_t at)
{
    size_t *heap = v->heap.items;
    for (;;) {
        size_t first = at, child = 2 * at + 1;
        for (size_t i = child; i < child + 2 && i < v->heap.count; i++)
            if (comes_first(v, heap[i], heap[first]))
                first = i;
        if (first == at)
            return;
        size_t moved = heap[at];
        heap[at] = heap[first];
        heap[first] = moved;
        at = first;
    }
}

/* Reads the next element of a source. False if there is none. */
static bool advance(struct visit *v, struct stress_source *source)
{
    struct cdacq_error flaw;
    struct read_log *log = reader_log(reader_of(v), NULL); /* what is written meanwhile does not matter */
    enum stress_step step = stress_cursor_next(reader_of(v), &v->log, &source->cursor, &source->message, &flaw);
    reader_log(reader_of(v), log);
    free(source->problem);
    source->problem = step == STRESS_FLAW ? strdup(flaw.message) : NULL;
    source->problem_address = flaw.address;
    return step == STRESS_MESSAGE || source->problem;
}

static uint64_t nanoseconds(const struct visit *v, uint64_t ticks)
{
    uint64_t frequency = v->log.tick_frequency, whole;
    if (__builtin_mul_overflow(ticks / frequency, NS_PER_SECOND, &whole))
        return UINT64_MAX;
    uint64_t time = whole + ticks % frequency * NS_PER_SECOND / frequency;
    return time < whole ? UINT64_MAX : time;
}

/* Shows an element to the visitor. False if the visit ends. */
static bool show(struct visit *v, const struct cdacq_stress_message *message)
{
    struct cdacq_session *session = v->session;
    if (resolver_gave_up(&session->resolver, v->err))
        return false;
    if (v->count++ == MESSAGES_MAX) {
        error_set(v->err, CDACQ_ERR_FUEL, v->log.address, "only the first %d messages are visited", MESSAGES_MAX);
        return false;
    }
    if (message->text)
        (void)work_take_text(&session->resolver.target->memory->work, v->text.length);
    epoch_pin(&session->resolver.epoch);
    v->stopped = v->visit(message, v->context) != 0;
    epoch_unpin(&session->resolver.epoch);
    if (!v->stopped)
        epoch_follow(&session->resolver.epoch);
    return !v->stopped;
}

static bool show_problem(struct visit *v, uint64_t tid, uint64_t time, uint64_t address, const char *problem)
{
    const struct cdacq_stress_message message = {
        .size = sizeof message, .address = address, .tid = tid, .time_ns = time, .problem = problem};
    return show(v, &message);
}

static bool read_arguments(struct visit *v, const struct stress_message *message, uint64_t *ret,
                           struct cdacq_error *err)
{
    struct reader *reader = reader_of(v);
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    for (unsigned i = 0; i < message->argument_count; i++)
        ret[i] = read_pointer(reader, message->arguments + i * reader->pointer_size);
    reader_name_failure(reader, "StressMsg.Args");
    enum cdacq_status status = reader_status(reader, err);
    reader_leave(reader, &outer);
    return status >= 0;
}

static bool show_message(struct visit *v, const struct stress_source *source)
{
    const struct message_source names = {.name = put_name, .is_constant = is_constant, .context = v};
    const struct stress_message *message = &source->message;
    uint64_t arguments[STRESS_ARGUMENTS_MAX];
    struct cdacq_error error;
    struct cdacq_stress_message shown = {.size = sizeof shown,
                                         .address = message->address,
                                         .tid = source->cursor.thread.id,
                                         .time_ns = nanoseconds(v, message->time),
                                         .facilities = message->facility};
    if (!read_arguments(v, message, arguments, &error)) {
        shown.problem = error.message;
        return show(v, &shown);
    }
    struct stress_format format = find_format(v, message->format);
    shown.argument_count = message->argument_count;
    shown.arguments = arguments;
    if (!format.bytes) {
        shown.problem = format.shown ? format.shown : "out of memory, or of what may be kept";
        return show(v, &shown);
    }
    text_clear(&v->text);
    struct reader_task outer = reader_enter(reader_of(v), FUEL_LOOKUP);
    shown.flaws = message_text_write(reader_of(v), &names, format.bytes, format.length, arguments,
                                     message->argument_count, &v->text);
    reader_leave(reader_of(v), &outer);
    shown.flaws |= (format.is_cut ? CDACQ_STRESS_CUT : 0) | (format.unverified ? CDACQ_STRESS_UNVERIFIED : 0);
    shown.format = format.shown;
    shown.text = v->text.data ? v->text.data : "";
    return show(v, &shown);
}

/* Adds the log of a thread. */
static bool add_source(struct visit *v, const struct stress_thread *thread)
{
    struct stress_source source = {.problem = NULL};
    stress_cursor_begin(thread, &source.cursor);
    if (take_memory(v, sizeof source) && stress_sources_append(&v->sources, source))
        return true;
    if (!resolver_gave_up(&v->session->resolver, v->err))
        error_set(v->err, CDACQ_ERR_NOMEM, thread->address, "out of memory for the logs of threads");
    return false;
}

/* Lists the logs of all threads. `known` is empty. False if the visit ends. */
static bool list_threads(struct visit *v, struct log_set *known)
{
    struct reader *reader = reader_of(v);
    for (uint64_t next = v->log.first; next;) {
        struct cdacq_error error;
        struct stress_thread thread;
        bool is_new = false;
        if (known->count == THREADS_MAX)
            return show_problem(v, 0, 0, next, "there are more logs of threads than are read");
        if (!log_set_insert(known, next, &is_new)) {
            error_set(v->err, CDACQ_ERR_NOMEM, next, "out of memory for the logs of threads");
            return false;
        }
        if (!is_new)
            return show_problem(v, 0, 0, next, "the list of logs of threads has a cycle");
        struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
        bool is_read = stress_thread_read(reader, next, &thread);
        (void)reader_status(reader, &error);
        reader_leave(reader, &outer);
        if (!is_read)
            return show_problem(v, 0, 0, next, error.message);
        if (!add_source(v, &thread))
            return false;
        next = thread.next;
    }
    return true;
}

static bool visit_all(struct visit *v)
{
    struct log_set known = {0};
    bool is_listed = list_threads(v, &known);
    log_set_deinit(&known);
    if (!is_listed)
        return false;
    if (!source_order_reserve(&v->heap, v->sources.count)) {
        error_set(v->err, CDACQ_ERR_NOMEM, 0, "out of memory for the logs of threads");
        return false;
    }
    for (size_t i = 0; i < v->sources.count; i++)
        if (advance(v, &v->sources.items[i]))
            v->heap.items[v->heap.count++] = i;
    for (size_t i = v->heap.count / 2; i-- > 0;)
        sift_down(v, i);
    while (v->heap.count) {
        struct stress_source *source = &v->sources.items[v->heap.items[0]];
        bool goes_on = source->problem ? show_problem(v, source->cursor.thread.id, nanoseconds(v, source->cursor.time),
                                                      source->problem_address, source->problem)
                                       : show_message(v, source);
        if (!goes_on)
            return false;
        if (!advance(v, source))
            v->heap.items[0] = v->heap.items[--v->heap.count];
        sift_down(v, 0);
    }
    return true;
}

/* ---- The calls ---- */

static enum cdacq_status report_unreadable(const struct cdacq_target *target, struct cdacq_error *err)
{
    const struct descriptor_item *item = descriptor_find(&target->descriptor, CDACQ_ITEM_CONTRACT, "", "StressLog");
    char known[64], missing[256];
    if (!item || !item->text)
        return error_set(err, CDACQ_ERR_CONTRACT, 0, "this runtime does not publish its stress log");
    contracts_known("StressLog", target->descriptor.schema, "", known, sizeof known);
    if (!contracts_supported("StressLog", target->descriptor.schema, item->text))
        return error_set(err, CDACQ_ERR_CONTRACT, 0,
                         "the runtime publishes StressLog %.40s (descriptor version %u); this build reads %s",
                         item->text, target->descriptor.schema, known[0] ? known : "none");
    layout_missing(&target->layout, LAYOUT_StressLog, missing, sizeof missing);
    return error_set(err, CDACQ_ERR_CONTRACT, 0, "the descriptor lacks what StressLog needs: %s", missing);
}

static enum cdacq_status begin(struct cdacq_session *session, struct stress_log *ret, struct cdacq_error *err)
{
    if (!session)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no session");
    if (!(session->resolver.target->layout.usable >> LAYOUT_StressLog & 1))
        return report_unreadable(session->resolver.target, err);
    resolver_begin(&session->resolver);
    reader_begin(&session->resolver.reader, FUEL_LOOKUP);
    return stress_log_read(&session->resolver.reader, ret) ? CDACQ_OK : reader_status(&session->resolver.reader, err);
}

/* From 100 ns since 1601. 0: it is not known, or out of range. */
static int64_t unix_time(uint64_t file_time)
{
    const int64_t begin = INT64_C(116444736000000000); /* of 1970 */
    int64_t time;
    return !file_time || file_time > INT64_MAX || __builtin_mul_overflow((int64_t)file_time - begin, 100, &time) ? 0
                                                                                                                 : time;
}

enum cdacq_status cdacq_session_get_stress_log(struct cdacq_session *session, struct cdacq_stress_log *ret,
                                               struct cdacq_error *err)
{
    struct stress_log log;
    enum cdacq_status status = sized_check(ret, "struct cdacq_stress_log", err);
    if (status == CDACQ_OK)
        status = begin(session, &log, err);
    if (status < 0)
        return status;
    const struct cdacq_stress_log off = {.size = sizeof off, .address = log.address};
    const struct cdacq_stress_log on = {.size = sizeof on,
                                        .address = log.address,
                                        .is_on = true,
                                        .facilities = log.facilities,
                                        .level = log.level,
                                        .max_size_per_thread = log.max_size_per_thread,
                                        .max_size_total = log.max_size_total,
                                        .chunk_count = log.chunk_count,
                                        .ticks_per_second = log.tick_frequency,
                                        .start_time_ns = unix_time(log.start_time)};
    sized_copy(ret, log.is_on ? &on : &off, sizeof on);
    return CDACQ_OK;
}

const char *cdacq_stress_facility_name(unsigned bit)
{
    return stress_facility_name(bit);
}

enum cdacq_status cdacq_session_visit_stress_log(struct cdacq_session *session,
                                                 int (*visit)(const struct cdacq_stress_message *message,
                                                              void *context),
                                                 void *context, struct cdacq_error *err)
{
    struct cdacq_error error = {.status = CDACQ_OK};
    struct visit v = {.session = session, .visit = visit, .context = context, .err = &error};
    enum cdacq_status status =
        visit ? begin(session, &v.log, err) : error_set(err, CDACQ_ERR_ARGUMENT, 0, "no function to call");
    if (status < 0 || !v.log.is_on)
        return status;
    reader_begin(&session->resolver.reader, FUEL_INDEX);
    bool is_complete = visit_all(&v);
    visit_deinit(&v);
    if (v.stopped)
        return CDACQ_STOPPED;
    if (!is_complete && error.status < 0) {
        if (err)
            *err = error;
        return error.status;
    }
    return epoch_check_process(&session->resolver.epoch, err);
}
