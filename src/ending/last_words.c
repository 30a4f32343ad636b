/*
 * last_words.c: forms the text that the runtime wrote as it ended a process. The stack of the thread that died is part
 * of it.
 *
 * What a release folds follows from two pull requests of dotnet/runtime: 104508 (July 2024: "Repeated") and 122243
 * (December 2025: repetitions anywhere, but none of fewer than four methods; in .NET 11).
 */
#include <stdio.h>

#include "contracts/objects/exception_text.h"
#include "contracts/objects/string.h"
#include "src/ending/ending.h"
#include "src/lookup/opened_target.h"
#include "util/error.h"

_Static_assert((int)CDACQ_EXCEPTION_INFERRED == (int)EXCEPTION_TEXT_INFERRED, "the same bits");

enum {
    NAMES_MAX = 8192, /* methods in one text that have to be named */
    NAME_SLOTS = 256, /* recent names that are remembered */
    NEW_STYLE = 10,   /* since .NET 10, the first line ends before the message */
    NEW_WORDS = 9,    /* since .NET 9, a missing message has words, and "Repeat" is "Repeated" */
    NEW_FOLDS = 11,   /* since .NET 11, repetitions are found anywhere */
    NEW_MEMORY = 11,  /* since .NET 11, the text of an OutOfMemoryException is written if there is memory for it */
    SCHEMA_OF_11 = 2, /* of the descriptor of .NET 11 */
};

struct name_slot {
    uint64_t method_desc;
    struct text name;
};

struct writer {
    struct ending *ending;
    int (*write)(const char *bytes, size_t length, void *context);
    void *context;
    const struct metadata *core;
    uint64_t written;
    unsigned flaws, names_left;
    bool stopped, refused;
    struct name_slot names[NAME_SLOTS];
};

static bool put(struct writer *w, const char *bytes, size_t length)
{
    if (length > EXCEPTION_TEXT_MAX - w->written) {
        w->flaws |= CDACQ_EXCEPTION_CUT;
        w->stopped = true;
    }
    if (w->stopped || !length)
        return !w->stopped;
    w->written += length;
    w->refused = w->stopped = w->write(bytes, length, w->context) != 0;
    return !w->stopped;
}

static void puts_text(struct writer *w, const char *string)
{
    put(w, string, strlen(string));
}

/* A piece of a string of the target. */
static bool put_piece(void *context, const char *utf8, size_t length)
{
    struct writer *w = context;
    if (!work_take_raw_text(&w->ending->session->resolver.target->memory->work, utf8, length)) {
        w->flaws |= CDACQ_EXCEPTION_CUT;
        w->stopped = true;
    }
    return put(w, utf8, length);
}

static int pass_piece(const char *bytes, size_t length, void *context)
{
    return !put(context, bytes, length);
}

static void put_string(struct writer *w, uint64_t string)
{
    struct reader *reader = &w->ending->session->resolver.reader;
    reader_begin(reader, FUEL_INDEX);
    if (!string_each(reader, string, UINT32_MAX, put_piece, w) && !w->stopped)
        w->flaws |= CDACQ_EXCEPTION_MISSING;
}

static void note_unconfirmed(struct writer *w, bool rests_on_file)
{
    w->flaws |= rests_on_file ? (unsigned)CDACQ_EXCEPTION_UNVERIFIED : 0;
}

static void put_exception(struct writer *w, uint64_t exception)
{
    unsigned flaws = 0;
    if (cdacq_session_write_exception(w->ending->session, exception, pass_piece, w, &flaws, NULL) < 0)
        flaws |= CDACQ_EXCEPTION_MISSING;
    w->flaws |= flaws;
}

static void put_method(struct writer *w, uint64_t method_desc)
{
    struct name_slot *slot = &w->names[hash_u64(method_desc, 0) % NAME_SLOTS];
    char address[32];
    if (slot->method_desc != method_desc || !slot->name.data) {
        text_deinit(&slot->name);
        slot->method_desc = method_desc;
        if (w->names_left) {
            w->names_left--;
            note_unconfirmed(w, ending_form_name(w->ending->session, w->core, method_desc, &slot->name));
        }
    }
    puts_text(w, "   at ");
    if (slot->name.length) {
        put(w, slot->name.data, slot->name.length);
    } else {
        snprintf(address, sizeof address, "0x%llx", (unsigned long long)method_desc);
        puts_text(w, address);
        w->flaws |= w->names_left ? CDACQ_EXCEPTION_MISSING : CDACQ_EXCEPTION_CUT;
    }
    puts_text(w, "\n");
}

static void put_methods(struct writer *w, size_t begin, size_t end)
{
    for (size_t i = begin; i < end && !w->stopped; i++)
        put_method(w, w->ending->stack.methods.items[i]);
}

/* What the runtime folds of the stack. If the stack is cut, a repetition ends where it is cut. */
static struct call_stack_fold find_fold(struct writer *w, unsigned release)
{
    struct method_list *methods = &w->ending->stack.methods;
    bool is_cut = w->flaws & CDACQ_EXCEPTION_CUT && method_list_append(methods, 0);
    struct call_stack_fold fold = call_stack_find_fold(methods, release < NEW_FOLDS);
    methods->count -= is_cut;
    return fold;
}

static void put_stack(struct writer *w, unsigned release)
{
    static const char line[] = "--------------------------------\n";
    const struct method_list *methods = &w->ending->stack.methods;
    char count[64];
    w->flaws |= w->ending->stack.broken ? CDACQ_EXCEPTION_CUT : 0;
    struct call_stack_fold fold = find_fold(w, release);
    put_methods(w, 0, fold.start);
    if (fold.length) {
        snprintf(count, sizeof count, "%s %zu times:\n", release < NEW_WORDS ? "Repeat" : "Repeated", fold.count);
        puts_text(w, count);
        puts_text(w, line);
        put_methods(w, fold.start, fold.start + fold.length);
        puts_text(w, line);
    }
    put_methods(w, fold.start + fold.length * fold.count, methods->count);
}

static void put_unhandled(struct writer *w)
{
    puts_text(w, "Unhandled exception. ");
    put_exception(w, w->ending->end.exception);
    puts_text(w, "\n");
}

static void put_out_of_memory(struct writer *w, unsigned release)
{
    bool lacks_text = release < NEW_MEMORY || ending_lacks_text(w->ending);
    w->flaws |= w->ending->end.flaws;
    note_unconfirmed(w, w->ending->unverified);
    if (!lacks_text) {
        put_unhandled(w);
        return;
    }
    puts_text(w, "Out of memory.\n");
    w->flaws |= release < NEW_MEMORY ? 0 : CDACQ_EXCEPTION_INFERRED; /* a handler of the program may have thrown */
}

static void put_fail_fast(struct writer *w, unsigned release)
{
    static const char no_message[] =
        "Runtime operation halted by call to System.Environment.FailFast(). (0x80131623)"; /* COR_E_FAILFAST */
    const struct cdacq_end *end = &w->ending->end;
    puts_text(w, release < NEW_STYLE ? "Process terminated. " : "Process terminated.\n");
    if (end->source) {
        put_string(w, end->source);
        puts_text(w, "\n");
    }
    if (end->message)
        put_string(w, end->message);
    else if (release >= NEW_WORDS && !(end->flaws & CDACQ_EXCEPTION_MISSING)) /* .NET 8 takes null for "" */
        puts_text(w, no_message);
    puts_text(w, "\n");
    if (w->ending->has_source)
        return;
    put_stack(w, release);
    if (end->exception)
        put_exception(w, end->exception);
}

static void put_fatal(struct writer *w, unsigned release)
{
    static const char violation[] = "System.AccessViolationException: Attempted to read or write protected memory. "
                                    "This is often an indication that other memory is corrupt.\n";
    static const char internal[] = "Internal CLR error. (0x80131506)\n"; /* COR_E_EXECUTIONENGINE */
    puts_text(w, release < NEW_STYLE ? "Fatal error. " : "Fatal error.\n");
    puts_text(w, w->ending->end.exception || w->ending->interrupted ? violation : internal);
    put_stack(w, release);
}

/* The number of the release; if it is not known, the newest one whose descriptor has the same schema. */
static unsigned release_of(struct writer *w)
{
    struct cdacq_target_info facts = {.size = sizeof facts};
    cdacq_target_get_info(w->ending->session->resolver.target, &facts, NULL);
    const char *version = facts.runtime_version ? facts.runtime_version : facts.runtime_release;
    unsigned release = version ? (unsigned)strtoul(version, NULL, 10) : 0;
    w->flaws |= release ? 0 : CDACQ_EXCEPTION_INFERRED;
    if (!release)
        release = w->ending->session->resolver.reader.layout->schema >= SCHEMA_OF_11 ? NEW_FOLDS : NEW_STYLE;
    return release;
}

static void put_native(void *context, const char *bytes, size_t length)
{
    put(context, bytes, length);
}

static void put_native_exception(void *context, uint64_t exception)
{
    put_exception(context, exception);
}

/* The words of a NativeAOT program. */
static void put_native_words(struct writer *w)
{
    const struct native_words words = {.put = put_native, .put_exception = put_native_exception, .context = w};
    w->flaws |= w->ending->end.flaws;
    w->flaws |= native_ending_write(w->ending->session, w->ending->native, &words);
}

static void put_words(struct writer *w)
{
    const struct cdacq_end *end = &w->ending->end;
    bool is_silent = end->kind == CDACQ_END_NONE || end->kind == CDACQ_END_TERMINATED;
    unsigned release = is_silent ? 0 : release_of(w);
    w->flaws |= is_silent ? 0 : end->flaws;
    switch (end->kind) {
    case CDACQ_END_NONE:
    case CDACQ_END_TERMINATED:
        break;
    case CDACQ_END_UNHANDLED:
        put_unhandled(w);
        break;
    case CDACQ_END_OUT_OF_MEMORY:
        put_out_of_memory(w, release);
        break;
    case CDACQ_END_FAIL_FAST:
        put_fail_fast(w, release);
        break;
    case CDACQ_END_STACK_OVERFLOW:
        puts_text(w, "Stack overflow.\n");
        put_stack(w, release);
        break;
    case CDACQ_END_FATAL:
        put_fatal(w, release);
        break;
    }
}

enum cdacq_status cdacq_session_write_last_words(struct cdacq_session *session,
                                                 int (*write)(const char *bytes, size_t length, void *context),
                                                 void *context, unsigned *ret_flaws, struct cdacq_error *err)
{
    struct ending *ending;
    if (!write || !ret_flaws)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no function to call, or nowhere to put the flaws");
    enum cdacq_status status = ending_find(session, &ending, err);
    struct writer *w = status < 0 ? NULL : calloc(1, sizeof *w);
    if (w) {
        *w = (struct writer){.ending = ending, .write = write, .context = context, .names_left = NAMES_MAX};
        note_unconfirmed(w, ending->unverified);
        w->core = ending_core_library(session);
        if (ending->native)
            put_native_words(w);
        else
            put_words(w);
        *ret_flaws = w->flaws;
        status = w->refused ? CDACQ_STOPPED : CDACQ_OK;
        for (unsigned i = 0; i < NAME_SLOTS; i++)
            text_deinit(&w->names[i].name);
        free(w);
    } else if (status >= 0) {
        status = error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    }
    return status;
}
