#include "src/cli/commands/heap_strings.h"

#include <inttypes.h>
#include <stdlib.h>

#include "src/cli/base/console.h"
#include "src/cli/base/heap_messages.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/output.h"
#include "util/base.h"
#include "util/hash_table.h"
#include "util/text.h"
#include "util/vector.h"

enum {
    STRINGS_SHOWN = 16,    /* without --all */
    STRINGS_MAX = 1 << 21, /* different ones that are kept at once: 100 MB */
    UNITS_SHOWN = 80,      /* of each, in UTF-16 */
    UNITS_MAX = 1000,      /* with --json */
    STEP = 1024 * 1024,    /* strings between two steps of the progress */
};

struct string_key {
    uint64_t hash[2];
};

/* Equal strings. */
struct string_sum {
    struct string_key key;
    uint64_t address; /* of the first */
    uint64_t count, bytes;
    uint32_t length;
};

static struct string_key sum_key(const struct string_sum *sum)
{
    return sum->key;
}

static uint64_t hash_key(struct string_key key, uint64_t seed)
{
    return hash_u64(key.hash[0], seed);
}

static bool equal_keys(struct string_key a, struct string_key b)
{
    return a.hash[0] == b.hash[0] && a.hash[1] == b.hash[1];
}

DEFINE_HASH_TABLE(string_sums, struct string_sum, struct string_key, sum_key, hash_key, equal_keys);
DEFINE_VECTOR(string_list, struct string_sum);

struct work {
    const struct common_options *options;
    struct cdacq_session *session;
    struct output out;
    struct progress progress;
    struct string_sums sums;
    struct string_list list; /* those with copies, the most expensive first */
    struct cdacq_heap_info info;
    uint64_t count, bytes, unread;
    uint64_t least; /* what was dropped to keep within the bound cost less than this; 0: nothing was */
    bool out_of_memory;
};

/* What all but one of equal strings take. */
static uint64_t cost_of(const struct string_sum *sum)
{
    return sum->count ? sum->bytes - sum->bytes / sum->count : 0;
}

/* Drops the cheapest, and those without copies first, until half of the room is free. */
static bool make_room(struct work *work)
{
    for (; work->sums.count > STRINGS_MAX / 2; work->least *= 2) {
        struct string_sums kept = {0};
        bool stored = true;
        work->least = MAX(work->least, UINT64_C(1));
        for (const struct string_sum *sum = NULL; stored && (sum = string_sums_next(&work->sums, sum));)
            stored = cost_of(sum) < work->least || string_sums_insert(&kept, *sum, NULL);
        string_sums_deinit(&work->sums);
        work->sums = kept;
        if (!stored)
            return false;
    }
    return true;
}

static int add_string(const struct cdacq_heap_string *string, void *context)
{
    struct work *work = context;
    struct string_sum one = {
        .key.hash = {string->hash[0], string->hash[1]}, .address = string->address, .length = string->length};
    if (++work->count % STEP == 0)
        progress_step(&work->progress, work->count);
    work->bytes += string->byte_size;
    struct string_sum *sum = string_sums_insert(&work->sums, one, NULL);
    if (sum) {
        sum->count++;
        sum->bytes += string->byte_size;
    }
    work->out_of_memory = !sum || (work->sums.count >= STRINGS_MAX && !make_room(work));
    return work->out_of_memory;
}

static int by_cost(const void *a, const void *b)
{
    const struct string_sum *left = a, *right = b;
    uint64_t left_cost = cost_of(left), right_cost = cost_of(right);
    if (left_cost != right_cost)
        return left_cost < right_cost ? 1 : -1;
    return (left->address > right->address) - (left->address < right->address);
}

static bool list_strings(struct work *work)
{
    for (const struct string_sum *sum = NULL; (sum = string_sums_next(&work->sums, sum));)
        if (sum->count > 1 && !string_list_append(&work->list, *sum))
            return false;
    if (work->list.count)
        qsort(work->list.items, work->list.count, sizeof *work->list.items, by_cost);
    return true;
}

static int put_text(const char *bytes, size_t length, void *context)
{
    text_append(context, bytes, length);
    return 0;
}

/* Reads the beginning of a string as UTF-8. False, with an empty text, if it cannot be read. */
static bool read_text(const struct work *work, const struct string_sum *sum, uint32_t max, struct text *ret)
{
    struct cdacq_error error;
    *ret = (struct text){0};
    bool is_read = cdacq_session_write_string(work->session, sum->address, max, put_text, ret, &error) >= 0;
    return is_read && !ret->broken;
}

static void write_text(struct work *work)
{
    struct output *out = &work->out;
    uint64_t copies = 0, shown = work->options->all ? work->list.count : MIN(work->list.count, (size_t)STRINGS_SHOWN);
    for (size_t i = 0; i < work->list.count; i++)
        copies += cost_of(&work->list.items[i]);
    output_printf(out,
                  "%" PRIu64 " string%s of %" PRIu64 " bytes; copies of equal ones take %" PRIu64 " bytes (%.1f %%)\n",
                  work->count, plural(work->count), work->bytes, copies,
                  work->bytes ? 100.0 * (double)copies / (double)work->bytes : 0.0);
    if (work->list.count)
        output_styled(out, STYLE_HEADING, "\n       count          bytes      in copies  text\n");
    for (size_t i = 0; i < shown && !output_failed(out); i++) {
        const struct string_sum *sum = &work->list.items[i];
        struct text text;
        output_printf(out, "%12" PRIu64 " %14" PRIu64 " %14" PRIu64 "  ", sum->count, sum->bytes, cost_of(sum));
        if (read_text(work, sum, UNITS_SHOWN, &text)) {
            output_literal(out, "\"");
            output_escaped(out, text.data ? text.data : "", text.length, ESCAPE_DATA);
            output_literal(out, sum->length > UNITS_SHOWN ? "\"...\n" : "\"\n");
        } else {
            output_printf(out, "? (the string at 0x%" PRIx64 ")\n", sum->address);
        }
        text_deinit(&text);
    }
    if (shown < work->list.count)
        output_printf(out, "... %" PRIu64 " more (--all)\n", (uint64_t)work->list.count - shown);
}

static void write_json(struct work *work)
{
    size_t shown = work->options->all ? work->list.count : MIN(work->list.count, (size_t)STRINGS_SHOWN);
    uint64_t copies = 0;
    struct json_writer writer, *w = &writer;
    for (size_t i = 0; i < work->list.count; i++) {
        const struct string_sum *sum = &work->list.items[i];
        struct text text;
        copies += cost_of(sum);
        if (i >= shown || output_failed(&work->out))
            continue;
        writer = json_begin_line(&work->out);
        if (read_text(work, sum, UNITS_MAX, &text))
            json_lines(w, "text", text.data ? text.data : "", text.length);
        else
            json_null(w, "text");
        text_deinit(&text);
        json_number(w, "length", sum->length);
        json_number(w, "count", sum->count);
        json_number(w, "bytes", sum->bytes);
        json_number(w, "in_copies", cost_of(sum));
        json_address(w, "address", sum->address);
        json_end_line(w);
    }
    writer = json_begin_line(&work->out);
    json_number(w, "strings", work->count);
    json_number(w, "bytes", work->bytes);
    json_number(w, "in_copies", copies);
    json_bool(w, "exact", !work->least && !work->info.problem_count);
    json_number(w, "unread", work->unread);
    json_number(w, "problems", work->info.problem_count);
    json_end_line(w);
}

static bool read_strings(struct work *work)
{
    struct cdacq_error error;
    progress_begin(&work->progress, "strings", work->out.fd);
    enum cdacq_status status =
        cdacq_session_visit_strings(work->session, add_string, work, &work->info, &work->unread, &error);
    progress_end(&work->progress);
    bool is_read = status == CDACQ_OK && !work->out_of_memory && list_strings(work);
    heap_tell_failure(status, "the heap", &error);
    if (status >= 0 && !is_read)
        message("out of memory");
    return is_read;
}

static void tell_problems(const struct work *work)
{
    heap_tell_under_way(work->info.is_under_way);
    if (work->info.problem_count)
        message("%" PRIu64 " part%s of the heap cannot be read: strings are missing ('cdacq heap' says which)",
                work->info.problem_count, plural(work->info.problem_count));
    if (work->unread)
        message("%" PRIu64 " string%s cannot be read", work->unread, plural(work->unread));
    if (work->least)
        message("there are more different strings than are kept: some counts are too small");
}

int heap_strings_show(const void *options, const struct opened_target *opened)
{
    struct work *work = allocate(sizeof *work);
    *work = (struct work){.options = options, .session = opened->session, .info.size = sizeof work->info};
    int code = EXIT_FAILED;
    if (!output_open_private(&work->out, work->options->output)) {
        free(work);
        return EXIT_FAILED;
    }
    work->out.is_held = target_is_pid(opened->name); /* a process is stopped */
    bool is_read = read_strings(work);
    if (is_read)
        (work->options->json ? write_json : write_text)(work); /* reads the texts */
    target_let_go(opened->target);
    work->out.is_held = false;
    if (is_read)
        tell_problems(work);
    bool is_inexact = work->info.problem_count || work->info.is_under_way || work->unread || work->least;
    if (output_close_if(&work->out, is_read) && is_read)
        code = is_inexact ? EXIT_PARTLY : EXIT_ANSWERED;
    string_sums_deinit(&work->sums);
    string_list_deinit(&work->list);
    free(work);
    return code;
}
