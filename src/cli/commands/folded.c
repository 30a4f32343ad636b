/*
 * folded.c: counts the stacks of `perf script` (src/cli/commands/perf_script.h). Samples are looked up many at a time.
 * A stack is kept with its event before it, because samples of different events cannot be added up.
 */
#include "src/cli/commands/folded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/base/answers.h"
#include "src/cli/base/console.h"
#include "src/cli/base/ip_text.h"
#include "src/cli/base/line_reader.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/output.h"
#include "src/cli/commands/perf_script.h"
#include "util/arena.h"
#include "util/hash_table.h"
#include "util/vector.h"

enum {
    FRAMES_PENDING = 1024,        /* samples are looked up together, once they have so many frames */
    FRAMES_MAX = 16 * 1024,       /* of one sample */
    STACKS_BYTES_MAX = 256 << 20, /* then what there is is written; a stack may then have two lines */
    OFFSETS_MAX = 0x10000000,     /* no file is mapped so low; what perf shows there is an offset in it */
    EVENTS_MAX = 64,              /* the samples of further ones are counted together */
};

/* What was recorded, such as "cycles:u". */
struct event {
    char name[128]; /* "" if perf script was not asked for it */
    uint64_t samples;
    bool lacks_files; /* its frames are without the field dso */
};

/* One frame of a pending sample, or the thread, which comes before them. */
struct frame {
    uint64_t ip;
    const char *text; /* perf's symbol and file, or the thread's name; in the arena of pending text */
    uint32_t event;
    bool is_thread;
};

/* A different stack. */
struct stack {
    const char *text; /* EVENT;THREAD;FRAME;... */
    uint64_t count;
};

static const char *stack_text(const struct stack *stack)
{
    return stack->text;
}

DEFINE_VECTOR(frames, struct frame);
DEFINE_VECTOR(bytes_vector, char);
DEFINE_HASH_TABLE(stacks, struct stack, const char *, stack_text, hash_string, equal_strings);

struct fold {
    struct cdacq_session *session; /* NULL: perf's names only */
    struct output out;
    struct frames frames;
    struct arena pending; /* text of pending samples */
    struct arena kept;    /* text of `stacks` */
    struct stacks stacks;
    size_t kept_bytes;
    struct bytes_vector line; /* a stack that is being written */
    uint64_t *ips;
    struct cdacq_method *methods;
    struct event events[EVENTS_MAX];
    uint32_t event_count, events_seen; /* those that have samples */
    uint32_t event;                    /* of the sample that is being read */
    uint64_t samples, truncated, errors, unconfirmed, replaced;
    uint64_t frameless, records, left_out;
    uint64_t line_number, first_left_out;
    uint64_t header_line; /* of a tentative sample; 0 if it is empty */
    uint64_t offsets;     /* frames that have no name because `ip` is an offset in a file */
    bool names_offsets;   /* perf has names for some: it was given the folder that 'cdacq symfs' writes */
    struct answers_unread unread;
    bool in_sample, in_record;
    bool is_tentative;  /* a sample begins only if a frame follows; its thread has been added and not counted */
    bool has_chain;     /* frames follow the sample's first line */
    bool has_own_frame; /* the last of `frames` is from the sample's first line */
    bool failed;
};

static void no_memory(struct fold *fold)
{
    if (!fold->failed)
        message("out of memory");
    fold->failed = true;
}

/* ---- Writing --------------------------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    const struct stack *x = a, *y = b;
    return strcmp(x->text, y->text);
}

static void write_stacks(struct fold *fold)
{
    size_t count = 0;
    struct stack *sorted = reallocate(NULL, (fold->stacks.count + 1) * sizeof *sorted);
    for (const struct stack *stack = stacks_next(&fold->stacks, NULL); stack; stack = stacks_next(&fold->stacks, stack))
        sorted[count++] = *stack;
    qsort(sorted, count, sizeof *sorted, by_text);
    for (size_t i = 0; i < count; i++) {
        const char *text = sorted[i].text;
        if (fold->events_seen == 1)
            text = strchr(text, ';') + 1;
        output_literal(&fold->out, text);
        output_printf(&fold->out, " %" PRIu64 "\n", sorted[i].count);
    }
    free(sorted);
    stacks_deinit(&fold->stacks);
    arena_deinit(&fold->kept);
    fold->kept_bytes = 0;
}

/* ---- Folding --------------------------------------------------------------------------------------------------- */

/* Appends text; a ';' would end the frame and a control byte the line. */
static void append(struct fold *fold, const char *text, size_t length)
{
    if (!length) /* of a name that begins with a NUL */
        return;
    char *p = bytes_vector_append_items(&fold->line, length);
    if (!p) {
        no_memory(fold);
        return;
    }
    for (size_t i = 0; i < length; i++)
        p[i] = text[i] == ';' ? ':' : (unsigned char)text[i] < ' ' ? '?' : text[i];
}

static void append_byte(struct fold *fold, char byte)
{
    if (!bytes_vector_append(&fold->line, byte))
        no_memory(fold);
}

/*
 * Whether what perf shows is an offset in a file of managed code: that which .NET compiles into, or an assembly. Of
 * files that it cannot read, perf 6.1 shows offsets in call chains.
 */
static bool is_offset(uint64_t ip, struct perf_script_part file)
{
    static const char compiled[] = "/memfd:doublemapper", assembly[] = ".dll";
    size_t end = file.length - strlen(assembly);
    return ip < OFFSETS_MAX &&
           ((file.length > strlen(compiled) && !memcmp(file.text, compiled, strlen(compiled))) ||
            (file.length > strlen(assembly) && !memcmp(file.text + end, assembly, strlen(assembly))));
}

/* The symbol as a flame graph shows it: without the offset, or "[FILE]" if there is none. */
static void append_symbol(struct fold *fold, const struct perf_script_symbol *symbol)
{
    char shown[256] = "[unknown]";
    if (symbol->name.text) {
        append(fold, symbol->name.text, symbol->name.length);
        return;
    }
    if (symbol->file.text) {
        const char *end = symbol->file.text + symbol->file.length, *name = symbol->file.text;
        for (const char *p = name; p < end; p++)
            if (*p == '/')
                name = p + 1;
        snprintf(shown, sizeof shown, "[%.*s]", end - name < 200 ? (int)(end - name) : 200, name);
        if (!strcmp(shown, "[[unknown]]"))
            memmove(shown, shown + 1, strlen("[unknown]") + 1), shown[strlen("[unknown]")] = '\0';
    }
    append(fold, shown, strlen(shown));
}

static void read_symbol(const struct fold *fold, size_t i, struct perf_script_symbol *ret)
{
    const struct frame *frame = &fold->frames.items[i];
    perf_script_symbol((struct perf_script_part){frame->text, strlen(frame->text)},
                       !fold->events[frame->event].lacks_files, ret);
}

/*
 * Whether pending frame `i` is the start of the code that the frame inside it runs, and that code took the place of
 * running code (on-stack replacement). .NET 11 has this address where the return address belongs.
 */
static bool is_replaced(const struct fold *fold, size_t i)
{
    static const char tier[] = "[OptimizedTier1OSR]", compiled[] = "/memfd:doublemapper";
    const struct cdacq_method *method = &fold->methods[i - 1];
    struct perf_script_symbol inner, outer;
    if (fold->frames.items[i - 1].is_thread)
        return false;
    if (fold->session && method->answer == CDACQ_ANSWER_MANAGED && method->tier && !strcmp(method->tier, "Tier1OSR") &&
        method->code_start == fold->frames.items[i].ip)
        return true;
    read_symbol(fold, i, &outer);
    if (!outer.is_start || !outer.name.text)
        return false;
    read_symbol(fold, i - 1, &inner);
    size_t length = outer.name.length;
    if (length != inner.name.length || memcmp(outer.name.text, inner.name.text, length) != 0)
        return false;
    /* Names of a perf map have the tier, those of 'cdacq symfs' have none. */
    return (length > strlen(tier) && !memcmp(outer.name.text + length - strlen(tier), tier, strlen(tier))) ||
           (outer.file.length > strlen(compiled) && !memcmp(outer.file.text, compiled, strlen(compiled)));
}

static void append_frame(struct fold *fold, size_t i)
{
    const struct cdacq_method *method = &fold->methods[i];
    const struct frame *frame = &fold->frames.items[i];
    struct perf_script_symbol symbol;
    read_symbol(fold, i, &symbol);
    bool is_named = fold->session && method->answer == CDACQ_ANSWER_MANAGED && method->name;
    if (fold->session)
        answers_count_unread(&fold->unread, method);
    fold->errors += fold->session && method->answer == CDACQ_ANSWER_ERROR;
    fold->unconfirmed += is_named && !method->module_verified;
    if (symbol.file.text && is_offset(frame->ip, symbol.file)) {
        fold->offsets += !is_named && !symbol.name.text;
        fold->names_offsets |= symbol.name.text != NULL;
    }
    append_byte(fold, ';');
    if (is_named)
        append(fold, method->name, strlen(method->name));
    else
        append_symbol(fold, &symbol);
    if (is_named && method->async_thunk) /* the method's own code has the same name */
        append(fold, " [async thunk]", strlen(" [async thunk]"));
}

static void keep_line(struct fold *fold)
{
    if (!bytes_vector_append(&fold->line, '\0')) {
        no_memory(fold);
        return;
    }
    struct stack *stack = stacks_find(&fold->stacks, fold->line.items);
    if (!stack) {
        const char *text = arena_string(&fold->kept, fold->line.items, fold->line.count - 1);
        stack = text ? stacks_insert(&fold->stacks, (struct stack){text, 0}, NULL) : NULL;
        fold->kept_bytes += fold->line.count + sizeof *stack;
    }
    if (stack)
        stack->count++;
    else
        no_memory(fold);
}

/*
 * Whether the address of pending frame `i` is where code was interrupted: that of the innermost frame, and of the one
 * that the kernel was entered from, whose instruction faulted or is the next one. Any other is where a call returns to.
 */
static bool is_interrupted(const struct frame *frames, size_t i)
{
    const uint64_t kernel_half = UINT64_C(1) << 63;
    if (!i)
        return false;
    const struct frame *inner = &frames[i - 1];
    return inner->is_thread || (inner->ip & kernel_half && !(frames[i].ip & kernel_half));
}

/* Looks up all pending frames. */
static void fold_pending(struct fold *fold)
{
    struct frames *frames = &fold->frames;
    if (fold->session && frames->count) {
        for (size_t i = 0; i < frames->count; i++) {
            uint64_t ip = frames->items[i].ip;
            fold->ips[i] = ip - (ip && !is_interrupted(frames->items, i));
        }
        fold->methods->size = sizeof *fold->methods;
        cdacq_session_methods_at(fold->session, fold->ips, frames->count, fold->methods, NULL);
    }
    for (size_t first = 0, end; first < frames->count && !fold->failed; first = end) {
        fold->line.count = 0;
        const struct frame *thread = &frames->items[first];
        const char *event = fold->events[thread->event].name;
        append(fold, *event ? event : "[no event]", strlen(*event ? event : "[no event]"));
        append_byte(fold, ';');
        append(fold, thread->text, strlen(thread->text));
        for (end = first + 1; end < frames->count && !frames->items[end].is_thread; end++)
            ;
        for (size_t i = end - 1; i > first; i--) {
            if (is_replaced(fold, i))
                fold->replaced++;
            else
                append_frame(fold, i);
        }
        fold->frameless += end - first == 1;
        keep_line(fold);
    }
    frames->count = 0;
    arena_deinit(&fold->pending);
    if (fold->kept_bytes > STACKS_BYTES_MAX)
        write_stacks(fold);
}

/* ---- Reading --------------------------------------------------------------------------------------------------- */

static void add(struct fold *fold, struct frame frame, struct perf_script_part text)
{
    frame.text = arena_string(&fold->pending, text.text ? text.text : "", text.length);
    frame.event = fold->event;
    if (!frame.text || !frames_append(&fold->frames, frame))
        no_memory(fold);
}

static void leave_out(struct fold *fold, uint64_t line)
{
    if (!fold->left_out++)
        fold->first_left_out = line;
}

static uint32_t find_event(struct fold *fold, struct perf_script_part name)
{
    struct event *event = fold->events;
    size_t length = name.length < sizeof event->name ? name.length : sizeof event->name - 1;
    for (uint32_t i = fold->event_count; i-- > 0;)
        if (!strncmp(fold->events[i].name, name.text ? name.text : "", length) && !fold->events[i].name[length])
            return i;
    if (fold->event_count == EVENTS_MAX)
        return EVENTS_MAX - 1;
    event += fold->event_count;
    if (fold->event_count == EVENTS_MAX - 1)
        snprintf(event->name, sizeof event->name, "[other events]");
    else if (length)
        memcpy(event->name, name.text, length);
    return fold->event_count++;
}

/* The sample before this line is complete. */
static void end_sample(struct fold *fold)
{
    if (fold->is_tentative && fold->frames.count) {
        fold->frames.count--; /* its thread */
        if (fold->header_line)
            leave_out(fold, fold->header_line);
    }
    fold->is_tentative = fold->in_sample = fold->in_record = fold->has_own_frame = fold->has_chain = false;
}

static void count_sample(struct fold *fold)
{
    fold->samples++;
    fold->events_seen += !fold->events[fold->event].samples++;
}

static void take_frame(struct fold *fold, const struct perf_script_frame *frame)
{
    struct perf_script_symbol symbol;
    if (fold->frames.count >= FRAMES_MAX) {
        fold->truncated++;
        return;
    }
    perf_script_symbol(frame->rest, true, &symbol);
    fold->events[fold->event].lacks_files |= !symbol.file.text && !symbol.is_inlined && frame->rest.length;
    add(fold, (struct frame){.ip = frame->ip}, frame->rest);
}

/* A frame of a call chain. What looked like a frame in the sample's first line was then another field. */
static void take_chain_frame(struct fold *fold, const struct perf_script_frame *frame)
{
    if (fold->is_tentative)
        count_sample(fold);
    fold->frames.count -= fold->has_own_frame;
    fold->is_tentative = fold->has_own_frame = false;
    fold->has_chain = true;
    take_frame(fold, frame);
}

/* Adds the thread of a sample that may begin here. */
static void begin_sample(struct fold *fold, struct perf_script_part thread, struct perf_script_part event)
{
    if (fold->frames.count >= FRAMES_PENDING)
        fold_pending(fold);
    fold->event = find_event(fold, event);
    add(fold, (struct frame){.is_thread = true}, thread);
    fold->in_sample = true;
}

/* Without any field but those of frames, the first line of a sample is empty. */
static void take_empty_line(struct fold *fold)
{
    bool may_begin = !fold->in_sample;
    end_sample(fold);
    if (!may_begin)
        return;
    static const char unknown[] = "[unknown]";
    begin_sample(fold, (struct perf_script_part){unknown, strlen(unknown)}, (struct perf_script_part){0});
    fold->is_tentative = true;
    fold->header_line = 0;
}

/* Begins a sample if the line can do so. */
static bool take_header(struct fold *fold, const char *text, const char *end, enum perf_script_evidence least)
{
    struct perf_script_header header;
    struct perf_script_frame frame;
    perf_script_header(text, end, &header);
    if (header.evidence < least)
        return false;
    end_sample(fold);
    if (header.is_record) {
        fold->records++;
        fold->in_record = true;
        return true;
    }
    begin_sample(fold, header.thread, header.event);
    fold->is_tentative = header.evidence == PERF_SCRIPT_TENTATIVE;
    fold->header_line = fold->line_number;
    if (fold->is_tentative)
        return true;
    count_sample(fold);
    if (perf_script_only_frame(&header, end, &frame)) {
        take_frame(fold, &frame);
        fold->has_own_frame = true;
    }
    return true;
}

static void take_line(struct fold *fold, const char *text, const char *end)
{
    struct perf_script_frame frame;
    bool has_tab = text < end && *text == '\t', is_indented = text < end && ip_is_blank(*text);
    fold->line_number++;
    while (end > text && ip_is_blank(end[-1]))
        end--;
    if (text == end) {
        take_empty_line(fold);
        return;
    }
    while (ip_is_blank(*text))
        text++;
    /* A thread's name may begin like a comment. */
    enum perf_script_evidence least = is_indented    ? PERF_SCRIPT_HEADER
                                      : *text == '#' ? PERF_SCRIPT_ID_HEADER
                                                     : PERF_SCRIPT_TENTATIVE;
    bool is_frame =
        is_indented && fold->in_sample && perf_script_frame(text, end, &frame) && (has_tab || frame.rest.length);
    if (is_frame && (has_tab || fold->has_chain))
        take_chain_frame(fold, &frame);
    else if (has_tab && (fold->in_sample || fold->in_record)) {
        if (fold->in_sample)
            leave_out(fold, fold->line_number);
    } else if (is_indented && fold->has_chain)
        return; /* a field that comes after the call chain, or a frame's line */
    else if (!has_tab && take_header(fold, text, end, least))
        return;
    else if (is_frame)
        take_chain_frame(fold, &frame);
    else if (is_indented || *text != '#') {
        end_sample(fold);
        leave_out(fold, fold->line_number);
    }
}

static bool read_lines(struct fold *fold, struct line_reader *reader)
{
    while (!output_failed(&fold->out) && !fold->failed) {
        struct text_line line;
        while (line_reader_take(reader, &line)) /* the start of a line has what is shown of it */
            take_line(fold, line.text, line.end);
        if (reader->at_end)
            break;
        if (!line_reader_fill(reader)) {
            message("cannot read standard input: %s", strerror(errno));
            return false;
        }
    }
    end_sample(fold);
    fold_pending(fold);
    return true;
}

/* Says what the stacks do not show. */
static void tell_skipped(const struct fold *fold)
{
    if (fold->records)
        message("%" PRIu64 " line%s PERF_RECORD left out: %s", fold->records, fold->records == 1 ? " of" : "s of",
                fold->records == 1 ? "it is no sample" : "they are no samples");
    if (fold->left_out && fold->samples)
        message("%" PRIu64 " line%s left out: neither a sample nor a frame; the first is line %" PRIu64, fold->left_out,
                plural(fold->left_out), fold->first_left_out);
    if (fold->frameless)
        message("%" PRIu64 " sample%s no frame: only the thread is counted", fold->frameless,
                fold->frameless == 1 ? " has" : "s have");
}

static void tell_events(const struct fold *fold)
{
    if (fold->events_seen < 2)
        return;
    message("samples of %" PRIu32 " events; each stack begins with its event:", fold->events_seen);
    for (uint32_t i = 0; i < fold->event_count; i++) {
        if (!fold->events[i].samples)
            continue;
        const char *name = fold->events[i].name;
        message("  %s: %" PRIu64 " sample%s", *name ? name : "[no event]", fold->events[i].samples,
                plural(fold->events[i].samples));
    }
}

int folded_write(const char *output, struct cdacq_session *session)
{
    struct line_reader reader;
    struct fold *fold = allocate(sizeof *fold);
    fold->session = session;
    if (!output_open(&fold->out, output)) {
        free(fold);
        return EXIT_FAILED;
    }
    fold->ips = reallocate(NULL, (FRAMES_MAX + 1) * sizeof *fold->ips);
    fold->methods = reallocate(NULL, (FRAMES_MAX + 1) * sizeof *fold->methods);
    line_reader_init(&reader, STDIN_FILENO, "the output of 'perf script'");
    line_reader_show(&reader, -1);
    bool ok = read_lines(fold, &reader);
    line_reader_deinit(&reader);
    ok &= !fold->failed;
    if (ok && !fold->samples)
        message("no sample of 'perf script' in standard input");
    tell_events(fold);
    tell_skipped(fold);
    if (fold->truncated)
        message("%" PRIu64 " frame%s of stacks with more than %d left out", fold->truncated, plural(fold->truncated),
                FRAMES_MAX);
    if (fold->errors)
        message("%" PRIu64 " frame%s could not be named", fold->errors, plural(fold->errors));
    if (fold->offsets && !fold->names_offsets)
        message("%" PRIu64 " frame%s in files, not %s: write a folder with 'cdacq symfs PID DIR', and use "
                "'perf script --symfs DIR'",
                fold->offsets, fold->offsets == 1 ? " is an offset" : "s are offsets",
                fold->offsets == 1 ? "an address" : "addresses");
    if (fold->replaced)
        message("%" PRIu64 " frame%s left out, and with %s the caller is missing: .NET 11 has the start of code that "
                "replaced running code (OSR) in place of a return address",
                fold->replaced, plural(fold->replaced), fold->replaced == 1 ? "it" : "each");
    answers_tell_unread(&fold->unread);
    answers_tell_unconfirmed(fold->unconfirmed, "frame");
    write_stacks(fold);
    ok = output_close_if(&fold->out, ok && fold->samples);
    int status = !ok ? EXIT_FAILED : fold->errors || fold->truncated || fold->left_out ? EXIT_PARTLY : EXIT_ANSWERED;
    frames_deinit(&fold->frames);
    bytes_vector_deinit(&fold->line);
    free(fold->ips);
    free(fold->methods);
    free(fold);
    return status;
}
