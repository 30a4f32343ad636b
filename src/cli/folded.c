/*
 * folded.c: perf script prints one block for each sample: a line that names the thread and the event, then one line for
 * each frame, innermost first, "\tADDRESS SYMBOL+0xOFFSET (FILE)", then an empty line. A sample without a call chain is
 * one line, with the frame at its end, and begins with blanks, which align the thread's name.
 */
#include "src/cli/folded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/answers.h"
#include "src/cli/console.h"
#include "src/cli/ips.h"
#include "src/cli/memory.h"
#include "src/cli/output.h"
#include "util/arena.h"
#include "util/hash_table.h"
#include "util/vector.h"

enum {
    FRAMES_PENDING = 1024,        /* samples are looked up together, once they have so many frames */
    FRAMES_MAX = 16 * 1024,       /* of one sample */
    STACKS_BYTES_MAX = 256 << 20, /* then what there is is written; a stack may then have two lines */
    OFFSETS_MAX = 0x10000000,     /* no file is mapped so low; what perf shows there is an offset in it */
};

/* One frame of a pending sample, or the thread, which comes before them. */
struct frame {
    uint64_t ip;
    const char *symbol; /* in the arena of pending text */
    bool is_thread;
    bool is_offset; /* `ip` is one in a file, not an address */
};

/* A different stack. */
struct stack {
    const char *text;
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
    uint64_t samples, truncated, errors, unconfirmed;
    uint64_t offsets;   /* frames that have no name for that reason */
    bool names_offsets; /* perf has names for some: it was given the folder that 'cdacq symfs' writes */
    struct answers_unread unread;
    bool in_sample;
    bool has_chain; /* the sample's frames follow its first line */
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
        output_literal(&fold->out, sorted[i].text);
        output_printf(&fold->out, " %" PRIu64 "\n", sorted[i].count);
    }
    free(sorted);
    stacks_deinit(&fold->stacks);
    arena_deinit(&fold->kept);
    fold->kept_bytes = 0;
}

/* ---- Folding --------------------------------------------------------------------------------------------------- */

/* Appends text; a ';' would end the frame and a control byte the line. */
static void append(struct fold *fold, const char *text)
{
    size_t length = strlen(text);
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

static void append_frame(struct fold *fold, size_t i)
{
    const struct cdacq_method *method = &fold->methods[i];
    bool is_named = fold->session && method->answer == CDACQ_ANSWER_MANAGED && method->name;
    if (fold->session)
        answers_count_unread(&fold->unread, method);
    fold->errors += fold->session && method->answer == CDACQ_ANSWER_ERROR;
    fold->unconfirmed += is_named && !method->module_verified;
    fold->offsets += !is_named && fold->frames.items[i].is_offset;
    if (!bytes_vector_append(&fold->line, ';'))
        no_memory(fold);
    append(fold, is_named ? method->name : fold->frames.items[i].symbol);
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
        append(fold, frames->items[first].symbol);
        for (end = first + 1; end < frames->count && !frames->items[end].is_thread; end++)
            ;
        for (size_t i = end - 1; i > first; i--)
            append_frame(fold, i);
        keep_line(fold);
    }
    frames->count = 0;
    arena_deinit(&fold->pending);
    if (fold->kept_bytes > STACKS_BYTES_MAX)
        write_stacks(fold);
}

/* ---- Reading --------------------------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void add(struct fold *fold, struct frame frame, const char *symbol, size_t length)
{
    frame.symbol = arena_string(&fold->pending, symbol, length);
    if (!frame.symbol || !frames_append(&fold->frames, frame))
        no_memory(fold);
}

/* "(FILE)" at the end of a frame: returns its '(' */
static const char *file_of(const char *text, const char *end)
{
    unsigned depth = 0;
    if (end == text || end[-1] != ')')
        return NULL;
    while (end > text) {
        end--;
        depth += *end == ')';
        depth -= *end == '(';
        if (!depth)
            return end;
    }
    return NULL;
}

/*
 * Whether what perf shows is an offset in a file, "(FILE)", of managed code: that which .NET compiles into, or an
 * assembly. Of files that it cannot read, perf 6.1 shows offsets in call chains.
 */
static bool is_offset(uint64_t ip, const char *file, const char *end)
{
    static const char compiled[] = "(/memfd:doublemapper", assembly[] = ".dll)";
    size_t length = (size_t)(end - file);
    return ip < OFFSETS_MAX &&
           ((length > strlen(compiled) && !memcmp(file, compiled, strlen(compiled))) ||
            (length > strlen(assembly) && !memcmp(end - strlen(assembly), assembly, strlen(assembly))));
}

/* The symbol as a flame graph shows it: without the offset, or "[FILE]" if there is none. */
static void add_symbol(struct fold *fold, uint64_t ip, const char *text, const char *end)
{
    static const char unknown[] = "[unknown]";
    const char *file = file_of(text, end), *symbol_end = file ? file : end;
    struct frame frame = {.ip = ip};
    while (symbol_end > text && ips_is_blank(symbol_end[-1]))
        symbol_end--;
    size_t length = (size_t)(symbol_end - text);
    if ((!length || (length == strlen(unknown) && !memcmp(text, unknown, length))) && file) {
        const char *name = file + 1;
        for (const char *p = name; p < end - 1; p++)
            if (*p == '/')
                name = p + 1;
        char shown[256];
        int size = (int)(end - 1 - name);
        snprintf(shown, sizeof shown, "[%.*s]", size < 200 ? size : 200, name);
        frame.is_offset = is_offset(ip, file, end);
        add(fold, frame, shown, strlen(shown));
        return;
    }
    for (const char *p = symbol_end; p > text + 3; p--)
        if (p[-1] == '+' && p + 2 <= symbol_end && p[0] == '0' && p[1] == 'x') {
            length = (size_t)(p - 1 - text);
            break;
        }
    fold->names_offsets |= file && is_offset(ip, file, end);
    add(fold, frame, length ? text : unknown, length ? length : strlen(unknown));
}

/* "ADDRESS SYMBOL (FILE)" */
static bool take_frame(struct fold *fold, const char *text, const char *end)
{
    uint64_t ip;
    struct bad_ip bad;
    const char *word = text;
    while (word < end && !ips_is_blank(*word))
        word++;
    if (word == text || !ips_parse(text, (size_t)(word - text), &ip, &bad))
        return false;
    while (word < end && ips_is_blank(*word))
        word++;
    if (fold->frames.count < FRAMES_MAX)
        add_symbol(fold, ip, word, end);
    else
        fold->truncated++;
    return true;
}

static const char *next_word(const char *text, const char *end)
{
    while (text < end && !ips_is_blank(*text))
        text++;
    while (text < end && ips_is_blank(*text))
        text++;
    return text;
}

/* Whether a word is a time, as in "12.5:". */
static bool is_time(const char *word, const char *end)
{
    const char *p = word, *point;
    while (p < end && is_digit(*p))
        p++;
    point = p;
    while (p < end && (is_digit(*p) || p == point))
        p++;
    return p < end && point > word && *point == '.' && *p == ':';
}

/* Whether "[CPU]" and the time follow, or only the time. */
static bool is_before_time(const char *word, const char *end)
{
    if (word < end && *word == '[')
        word = next_word(word, end);
    return word < end && is_time(word, end);
}

/*
 * The word that follows the thread's name: "PID/TID" or "TID", before "[CPU]" or the time. The name can have numbers,
 * too, but no time follows these. Without a time, it is the first such word. NULL if there is none.
 */
static const char *find_id(const char *text, const char *end)
{
    const char *first = NULL;
    for (const char *word = next_word(text, end), *next; word < end; word = next) {
        const char *p = word;
        next = next_word(word, end);
        while (p < end && (is_digit(*p) || (*p == '/' && p > word)))
            p++;
        if (p == word || p == end || !ips_is_blank(*p) || next == end)
            continue;
        if (is_before_time(next, end))
            return word;
        if (!first && (*next == '[' || is_digit(*next)))
            first = word;
    }
    return first;
}

/* What follows the event, which is the first word after the time that ends with a colon. NULL if there is no event. */
static const char *skip_event(const char *word, const char *end)
{
    for (bool seen_time = false; word < end;) {
        const char *p = word;
        while (p < end && !ips_is_blank(*p))
            p++;
        bool ends_with_colon = p[-1] == ':';
        word = next_word(word, end);
        if (ends_with_colon && seen_time)
            return word;
        seen_time |= ends_with_colon;
    }
    return NULL;
}

/*
 * "COMM PID/TID [CPU] TIME: PERIOD EVENT:", COMM with blanks: begins a sample and returns what follows. Returns NULL if
 * it is no such line. The event may be missing unless it `must_have_event`.
 */
static const char *take_header(struct fold *fold, const char *text, const char *end, bool must_have_event)
{
    const char *id = find_id(text, end), *rest = id ? skip_event(next_word(id, end), end) : NULL;
    if (!id || (must_have_event && !rest))
        return NULL;
    while (id > text && ips_is_blank(id[-1]))
        id--;
    if (fold->frames.count >= FRAMES_PENDING)
        fold_pending(fold);
    add(fold, (struct frame){.is_thread = true}, text, (size_t)(id - text));
    fold->samples++;
    return rest ? rest : end;
}

static void take_line(struct fold *fold, const char *text, const char *end)
{
    while (end > text && ips_is_blank(end[-1]))
        end--;
    if (text == end) {
        fold->in_sample = false;
        return;
    }
    bool is_indented = ips_is_blank(*text);
    while (ips_is_blank(*text))
        text++;
    if (is_indented && fold->in_sample && fold->has_chain) {
        take_frame(fold, text, end);
        return;
    }
    /* A thread's name may begin like a comment. What looks like another line must be a complete header. */
    bool is_comment = !is_indented && *text == '#';
    const char *rest = take_header(fold, text, end, is_indented || is_comment);
    if (rest) {
        fold->in_sample = true;
        fold->has_chain = rest == end || !take_frame(fold, rest, end);
    } else if (is_indented && fold->in_sample)
        take_frame(fold, text, end);
    else if (!is_comment)
        fold->in_sample = false;
}

static bool read_lines(struct fold *fold, struct ips_reader *reader)
{
    while (!output_failed(&fold->out) && !fold->failed) {
        struct text_line line;
        while (ips_take_line(reader, &line)) /* the start of a line has what is shown of it */
            take_line(fold, line.text, line.end);
        if (reader->at_end)
            break;
        if (!ips_fill(reader)) {
            message("cannot read standard input: %s", strerror(errno));
            return false;
        }
    }
    fold_pending(fold);
    return true;
}

int folded_write(const struct invocation *invocation, struct cdacq_session *session)
{
    struct ips_reader reader;
    struct fold *fold = allocate(sizeof *fold);
    fold->session = session;
    if (!output_open(&fold->out, invocation->output)) {
        free(fold);
        return EXIT_FAILED;
    }
    fold->ips = reallocate(NULL, (FRAMES_MAX + 1) * sizeof *fold->ips);
    fold->methods = reallocate(NULL, (FRAMES_MAX + 1) * sizeof *fold->methods);
    ips_reader_init(&reader, STDIN_FILENO, "the output of 'perf script'");
    ips_reader_show(&reader, -1);
    bool ok = read_lines(fold, &reader);
    ips_reader_deinit(&reader);
    ok &= !fold->failed;
    if (ok && !fold->samples)
        message("no sample of 'perf script' in standard input");
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
    answers_tell_unread(&fold->unread);
    answers_tell_unconfirmed(fold->unconfirmed, "frame");
    write_stacks(fold);
    ok = output_close_if(&fold->out, ok && fold->samples);
    int status = !ok ? EXIT_FAILED : fold->errors || fold->truncated ? EXIT_PARTLY : EXIT_ANSWERED;
    frames_deinit(&fold->frames);
    bytes_vector_deinit(&fold->line);
    free(fold->ips);
    free(fold->methods);
    free(fold);
    return status;
}
