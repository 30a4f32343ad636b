#include "src/cli/commands/heap_growth.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/base/console.h"
#include "src/cli/base/heap_messages.h"
#include "src/cli/base/heap_presence.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/output.h"
#include "src/cli/base/type_sums.h"
#include "src/cli/commands/heap_holders.h"
#include "src/cli/commands/name_pattern.h"
#include "util/base.h"
#include "util/hash_table.h"
#include "util/vector.h"

enum {
    TYPES_SHOWN = 24,   /* without --all */
    STEP = 1024 * 1024, /* objects between two steps of the progress */
};

/* A type of both heaps. */
struct growth {
    char *name;
    struct object_sum of[2];
};

static const char *growth_key(const struct growth *type)
{
    return type->name;
}

DEFINE_HASH_TABLE(growths, struct growth, const char *, growth_key, hash_string, equal_strings);
DEFINE_VECTOR(growth_list, struct growth);

struct work {
    struct common_options common; /* first: the options of target_run */
    const struct heap_growth_options *options;
    unsigned number; /* of the target that is being read */
    struct heap_presence presence;
    struct type_sums tables;
    struct growths types;
    struct growth_list list;     /* what has grown most first */
    struct heap_holders holders; /* of what has grown, in the second heap */
    struct progress progress;
    struct object_sum all[2];
    uint64_t visited, unnamed[2], problems[2];
    bool was_read[2], under_way[2], out_of_memory;
    bool unheld; /* what holds the growth cannot be read */
};

static int visit_segment(const struct cdacq_heap_segment *segment, void *context)
{
    struct work *work = context;
    heap_presence_add_segment(&work->presence, segment);
    return 0;
}

static int visit_object(const struct cdacq_heap_object *object, void *context)
{
    struct work *work = context;
    heap_presence_add_object(&work->presence, object);
    if (UNLIKELY(++work->visited % STEP == 0))
        progress_step(&work->progress, work->visited);
    if (work->options->generation >= 0 && (int)object->generation != work->options->generation)
        return 0;
    work->out_of_memory = !type_sums_add(&work->tables, object);
    return work->out_of_memory;
}

static bool add_type(struct work *work, const char *name, struct object_sum sum)
{
    bool added;
    struct growth type = {.name = strdup(name)};
    struct growth *kept = type.name ? growths_insert(&work->types, type, &added) : NULL;
    if (!kept || !added)
        free(type.name);
    if (!kept)
        return false;
    object_sum_add(&kept->of[work->number], sum);
    object_sum_add(&work->all[work->number], sum);
    return true;
}

/* Adds what was read to the types of the same names. Those without a name are left out. */
static bool add_types(struct work *work, struct cdacq_session *session)
{
    struct cdacq_error error;
    for (const struct type_sum *table = NULL; (table = type_sum_table_next(&work->tables.table, table));) {
        const char *name;
        if (cdacq_session_get_type_name(session, table->method_table, &name, &error) < 0)
            work->unnamed[work->number]++;
        else if (name_is_wanted(name, work->options->types) && !add_type(work, name, table->sum))
            return false;
    }
    return true;
}

/* By how much of its bytes a type has grown. */
static double share_of(const struct work *work, const char *name)
{
    const struct growth *type = name ? growths_find(&work->types, name) : NULL;
    if (!type || type->of[1].bytes <= type->of[0].bytes)
        return 0;
    return (double)(type->of[1].bytes - type->of[0].bytes) / (double)type->of[1].bytes;
}

/* Finds what holds what has grown. False, with a message, if that is not known. */
static bool find_holders(struct work *work, struct cdacq_session *session)
{
    struct heap_graph graph;
    bool any = false, is_read = heap_graph_read(&graph, session, -1);
    double *shares = allocate((graph.types.count + 1) * sizeof *shares);
    for (uint32_t i = 0; is_read && i < graph.types.count; i++) {
        shares[i] = share_of(work, heap_graph_type_name(&graph, i));
        any |= shares[i] > 0;
    }
    if (any)
        heap_holders_find(&graph, shares, work->options->generation, &work->holders);
    free(shares);
    heap_graph_deinit(&graph);
    return is_read;
}

static int read_heap(const void *given, const struct opened_target *opened)
{
    struct work *work = (struct work *)given; /* of heap_growth_run() */
    struct cdacq_heap_info info = {.size = sizeof info};
    const struct cdacq_heap_visitor visitor = {
        .size = sizeof visitor, .segment = visit_segment, .object = visit_object, .context = work};
    struct cdacq_error error;
    work->presence = (struct heap_presence){0};
    progress_begin(&work->progress, "objects", -1);
    enum cdacq_status status = cdacq_session_visit_heap(opened->session, &visitor, &info, &error);
    bool is_absent = status == CDACQ_OK && heap_is_missing(&work->presence, &info);
    bool is_read = status == CDACQ_OK && !is_absent && add_types(work, opened->session);
    progress_end(&work->progress);
    type_sums_deinit(&work->tables);
    work->unheld = is_read && work->number && work->was_read[0] && !find_holders(work, opened->session);
    target_let_go(opened->target);
    work->problems[work->number] = info.problem_count;
    work->under_way[work->number] = info.is_under_way;
    work->was_read[work->number] = is_read;
    heap_tell_failure(status, "the heap", &error);
    if (is_absent)
        message("no heap in this core: most of its objects are missing");
    else if (status >= 0 && !is_read)
        message("out of memory");
    heap_tell_under_way(is_read && info.is_under_way);
    if (is_read && info.problem_count)
        message("%" PRIu64 " part%s of the heap cannot be read: objects are missing ('cdacq heap' says which)",
                info.problem_count, plural(info.problem_count));
    if (work->unnamed[work->number])
        message("%" PRIu64 " type%s without a name left out", work->unnamed[work->number],
                plural(work->unnamed[work->number]));
    work->number++;
    return is_read ? EXIT_ANSWERED : EXIT_FAILED;
}

/* ---- Writing --------------------------------------------------------------------------------------------------- */

static int64_t difference(uint64_t before, uint64_t after)
{
    return (int64_t)(after - before);
}

static int compare_growth(int64_t left, int64_t right)
{
    return (left < right) - (left > right);
}

static int by_growth(const void *a, const void *b)
{
    const struct growth *left = a, *right = b;
    int order = compare_growth(difference(left->of[0].bytes, left->of[1].bytes),
                               difference(right->of[0].bytes, right->of[1].bytes));
    if (!order)
        order = compare_growth(difference(left->of[0].count, left->of[1].count),
                               difference(right->of[0].count, right->of[1].count));
    return order ? order : strcmp(left->name, right->name);
}

/* Lists the types that differ. */
static bool list_types(struct work *work)
{
    for (const struct growth *type = NULL; (type = growths_next(&work->types, type));) {
        bool differs = type->of[0].bytes != type->of[1].bytes || type->of[0].count != type->of[1].count;
        if (differs && !growth_list_append(&work->list, *type))
            return false;
    }
    if (work->list.count)
        qsort(work->list.items, work->list.count, sizeof *work->list.items, by_growth);
    return true;
}

static void write_text(const struct work *work, struct output *out)
{
    size_t shown = work->common.all ? work->list.count : MIN(work->list.count, (size_t)TYPES_SHOWN);
    output_printf(out, "objects: %" PRIu64 ", then %" PRIu64 " (%+" PRId64 ")\n", work->all[0].count,
                  work->all[1].count, difference(work->all[0].count, work->all[1].count));
    output_printf(out, "bytes: %" PRIu64 ", then %" PRIu64 " (%+" PRId64 ")\n", work->all[0].bytes, work->all[1].bytes,
                  difference(work->all[0].bytes, work->all[1].bytes));
    if (work->list.count)
        output_styled(out, STYLE_HEADING, "\n     objects          bytes  type, and how many it has now\n");
    for (size_t i = 0; i < shown && !output_failed(out); i++) {
        const struct growth *type = &work->list.items[i];
        output_printf(out, "%+12" PRId64 " %+14" PRId64 "  ", difference(type->of[0].count, type->of[1].count),
                      difference(type->of[0].bytes, type->of[1].bytes));
        output_note(out, type->name);
        output_printf(out, "  %" PRIu64 "\n", type->of[1].count);
    }
    if (shown < work->list.count)
        output_printf(out, "... %zu more (--all)\n", work->list.count - shown);
    if (work->holders.count)
        output_styled(out, STYLE_HEADING, "\nwhat has grown is held by (objects of its types, old and new)\n");
    heap_holders_write_text(&work->holders, out);
}

static void write_sums(struct json_writer *w, const struct object_sum of[2])
{
    json_number(w, "count_before", of[0].count);
    json_number(w, "count", of[1].count);
    json_number(w, "bytes_before", of[0].bytes);
    json_number(w, "bytes", of[1].bytes);
}

static void write_json(const struct work *work, struct output *out)
{
    size_t shown = work->common.all ? work->list.count : MIN(work->list.count, (size_t)TYPES_SHOWN);
    struct json_writer writer, *w = &writer;
    for (size_t i = 0; i < shown && !output_failed(out); i++) {
        writer = json_begin_line(out);
        json_note(w, "type", work->list.items[i].name);
        write_sums(w, work->list.items[i].of);
        json_end_line(w);
    }
    writer = json_begin_line(out);
    write_sums(w, work->all);
    json_number(w, "types", work->list.count);
    json_number(w, "problems", work->problems[0] + work->problems[1]);
    heap_holders_write_json(&work->holders, w);
    json_end_line(w);
}

static int show(struct work *work)
{
    struct output out;
    if (!list_types(work)) {
        message("out of memory");
        return EXIT_FAILED;
    }
    if (!output_open(&out, work->common.output))
        return EXIT_FAILED;
    (work->common.json ? write_json : write_text)(work, &out);
    if (!output_close(&out))
        return EXIT_FAILED;
    for (unsigned i = 0; i < 2; i++)
        if (work->problems[i] || work->unnamed[i] || work->under_way[i])
            return EXIT_PARTLY;
    return work->unheld ? EXIT_PARTLY : EXIT_ANSWERED;
}

int heap_growth_run(const struct heap_growth_options *options)
{
    struct work *work = allocate(sizeof *work);
    *work = (struct work){.common = *options->common, .options = options};
    int code = EXIT_FAILED;
    for (unsigned i = 0; i < 2; i++) { /* also the second if the first fails: all messages at once */
        work->common.targets = (struct word_list){options->common->targets.items + i, 1};
        work->number = i;
        message_set_subject(target_display_name(work->common.targets.items[0]));
        (void)target_run(&work->common, &(const struct target_use){.run = read_heap, .flags = CDACQ_OPEN_STOP});
    }
    message_set_subject(NULL);
    if (work->was_read[0] && work->was_read[1])
        code = show(work);
    for (struct growth *type = NULL; (type = growths_next(&work->types, type));)
        free(type->name);
    growths_deinit(&work->types);
    growth_list_deinit(&work->list);
    heap_holders_deinit(&work->holders);
    free(work);
    return code;
}
