/*
 * cmd_filter.c: copies text and adds the method's name after each address of managed code. Nothing else in the text
 * changes, so it needs no knowledge of where the text came from. Memory use is constant; lines are written as they
 * come.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/base/answers.h"
#include "src/cli/base/commands.h"
#include "src/cli/base/console.h"
#include "src/cli/commands/folded.h"
#include "src/cli/base/ip_text.h"
#include "src/cli/base/line_reader.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/output.h"
#include "src/cli/base/put.h"
#include "util/base.h"

enum {
    BATCH = 512,          /* addresses that are looked up at once */
    DIGITS_MAX = 16,      /* of an address */
    DIGITS_MIN = 8,       /* of an address without 0x: fewer are some other number or a word */
    PREFIXED_MIN = 4,     /* with 0x: nothing is mapped below 0x1000 */
    ANNOTATION_ROOM = 64, /* all of an annotation but its texts */
};

/* An address in the text that is being copied. */
struct mention {
    const char *end; /* of its digits */
    uint64_t ip;
};

struct filter {
    struct cdacq_session *session;
    struct cdacq_target *stops; /* --stop: the process, which is stopped for each batch; or NULL */
    bool stop_failed;           /* no more addresses are looked up */
    struct output out;
    struct mention mentions[BATCH];
    uint64_t ips[BATCH];
    size_t count;
    const char *copied; /* the text up to here was written */
    char before;        /* the byte before the next word */
    bool in_long_word;  /* the text that follows goes on with a word that is too long to be an address */
    struct cdacq_method *methods;
    uint64_t errors, unconfirmed;
    struct answers_unread unread;
};

/* ---- Annotations ----------------------------------------------------------------------------------------------- */

/* " <Demo.Program.Fib(int)+0x2f Program.cs:14>" */
static void annotate(struct filter *filter, const struct cdacq_method *method)
{
    struct output *out = &filter->out;
    output_text_between(out, " <", method->name, answers_doubt_name(method) ? "?" : "");
    char *p = output_reserve(out, ANNOTATION_ROOM);
    p = PUT_LITERAL(p, "+");
    output_commit(out, put_hex(p, method->offset));
    if (method->file) {
        output_text_between(out, " ", path_basename(method->file), ":");
        output_printf(out, "%" PRIu32, method->line);
    }
    output_literal(out, ">");
}

static void copy_until(struct filter *filter, const char *end)
{
    size_t size = (size_t)(end - filter->copied);
    if (size)
        output_bytes(&filter->out, filter->copied, size);
    filter->copied = end;
}

static void answer_pending(struct filter *filter)
{
    if (!filter->count)
        return;
    if (filter->stops && !filter->stop_failed)
        filter->stop_failed = !target_stop(filter->stops);
    if (filter->stop_failed) {
        filter->errors += filter->count;
        filter->count = 0;
        return;
    }
    filter->methods->size = sizeof *filter->methods;
    cdacq_session_methods_at(filter->session, filter->ips, filter->count, filter->methods, NULL);
    target_let_go(filter->stops);
    for (size_t i = 0; i < filter->count; i++) {
        const struct cdacq_method *method = &filter->methods[i];
        if (method->answer == CDACQ_ANSWER_ERROR && !filter->errors++)
            message("0x%" PRIx64 ": %s", method->ip, method->error ? method->error : "no reason is known");
        answers_count_unread(&filter->unread, method);
        if (method->answer != CDACQ_ANSWER_MANAGED || !method->name)
            continue;
        copy_until(filter, filter->mentions[i].end);
        annotate(filter, method);
        filter->unconfirmed += !method->module_verified;
    }
    filter->count = 0;
}

/* ---- Addresses in text ----------------------------------------------------------------------------------------- */

static bool is_word(char c)
{
    return ip_digit[(uint8_t)c] < 16 || (c >= 'g' && c <= 'z') || (c >= 'G' && c <= 'Z') || c == '_';
}

/* Whether a word is an address: hex digits alone, or with 0x. Digits after a '+' are an offset. */
static bool is_address(const char *word, size_t length, char before, uint64_t *ret)
{
    bool has_prefix = length > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'X');
    size_t digits = length - (has_prefix ? 2 : 0);
    struct bad_ip bad;
    if (before == '+' || digits < (has_prefix ? PREFIXED_MIN : DIGITS_MIN) || digits > DIGITS_MAX)
        return false;
    return ip_parse(word, length, ret, &bad);
}

/* Copies text whose last word is complete. */
static void filter_text(struct filter *filter, const char *text, const char *end)
{
    filter->copied = text;
    while (filter->in_long_word && text < end && is_word(*text))
        text++;
    filter->in_long_word &= text == end;
    while (text < end && !output_failed(&filter->out)) {
        while (text < end && !is_word(*text))
            filter->before = *text++;
        const char *word = text;
        while (text < end && is_word(*text))
            text++;
        uint64_t ip;
        if (!is_address(word, (size_t)(text - word), filter->before, &ip))
            continue;
        filter->mentions[filter->count] = (struct mention){text, ip};
        filter->ips[filter->count++] = ip;
        if (filter->count == BATCH)
            answer_pending(filter);
    }
    answer_pending(filter);
    copy_until(filter, end);
}

static bool filter_stream(struct filter *filter, struct line_reader *reader)
{
    while (!output_failed(&filter->out)) {
        const char *end = reader->end;
        if (!reader->at_end)
            while (end > reader->next && is_word(end[-1]))
                end--;
        bool is_long = end == reader->next && reader->end - reader->next > DIGITS_MAX + 2;
        if (is_long)
            end = reader->end;
        filter_text(filter, reader->next, end);
        filter->in_long_word |= is_long;
        reader->next = end;
        if (reader->at_end)
            break;
        if (line_reader_would_block(reader))
            output_flush(&filter->out);
        if (!line_reader_fill(reader)) {
            message("cannot read standard input: %s", strerror(errno));
            return false;
        }
    }
    return true; /* output_close reports the error */
}

static int filter_all(const void *given, const struct opened_target *opened)
{
    const struct common_options *options = given;
    bool stops = stop_is_wanted(options, opened->name);
    if (options->folded && stops && !target_stop(opened->target))
        return EXIT_FAILED;
    if (options->folded)
        return folded_write(options->output, opened->session);
    struct line_reader reader;
    struct filter *filter = allocate(sizeof *filter);
    filter->session = opened->session;
    filter->stops = stops ? opened->target : NULL;
    if (!output_open(&filter->out, options->output)) {
        free(filter);
        return EXIT_FAILED;
    }
    filter->methods = reallocate(NULL, BATCH * sizeof *filter->methods);
    line_reader_init(&reader, STDIN_FILENO, "text with addresses");
    line_reader_show(&reader, filter->out.fd);
    bool ok = filter_stream(filter, &reader);
    line_reader_deinit(&reader);
    if (filter->errors > 1)
        message("%" PRIu64 " more address%s could not be answered", filter->errors - 1,
                filter->errors == 2 ? "" : "es");
    answers_tell_unread(&filter->unread);
    answers_tell_unconfirmed(filter->unconfirmed, "name");
    ok = output_close_if(&filter->out, ok);
    int status = !ok ? EXIT_FAILED : filter->errors ? EXIT_PARTLY : EXIT_ANSWERED;
    free(filter->methods);
    free(filter);
    return status;
}

static int run(const void *given)
{
    const struct common_options *options = given;
    const struct target_use use = {.run = filter_all, .flags = CDACQ_OPEN_ALL_RUNTIMES, .stops_itself = true};
    if (options->targets.count)
        return target_run(options, &use);
    if (options->folded)
        return folded_write(options->output, NULL);
    message("give a TARGET, or --folded; see 'cdacq help filter'");
    return EXIT_USAGE;
}

const struct command command_filter = {
    .name = "filter",
    .section = SECTION_ADDRESSES,
    RUNS(run, struct common_options),
    .operands = OPERANDS({"TARGET", OPERAND_STORED_TARGET, OPTIONAL, TO_WORDS(struct common_options, targets)}),
    .options = OPTIONS(output_rows, target_rows, names_rows, folded_rows),
    .summary = "copy text and name the methods at the addresses in it",
    .details =
        "Reads any text from standard input: a log, the output of gdb, eu-stack, perf script or bpftrace. After\n"
        "each hex address of managed code it adds the method, and nothing else changes:\n"
        "  #3  0x7f.. <Demo.Program.Fib(int)+0x2f Program.cs:14> in ?? ()\n"
        "--folded reads the output of perf script and writes one line for each different stack, with its count,\n"
        "as flame graphs need it; without TARGET, only perf's own names are used:\n"
        "  cdacq symfs PID DIR\n"
        "  perf script --symfs DIR --kallsyms /proc/kallsyms | cdacq filter --folded -o FILE\n"
        "  cdacq flame FILE -o flame.svg\n",
    .exit_partly = "the method at some address could not be found",
};
