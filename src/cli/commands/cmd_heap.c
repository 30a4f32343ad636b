/*
 * cmd_heap.c: shows what the GC heap holds: how much each generation has committed, in objects and free, and the types
 * whose objects take the most. The process is stopped while its heap is read.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/base/commands.h"
#include "src/cli/base/console.h"
#include "src/cli/base/heap_messages.h"
#include "src/cli/base/heap_presence.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/output.h"
#include "src/cli/base/spill.h"
#include "src/cli/base/type_sums.h"
#include "src/cli/commands/heap_bounds.h"
#include "src/cli/commands/heap_export.h"
#include "src/cli/commands/heap_growth.h"
#include "src/cli/commands/heap_strings.h"
#include "src/cli/commands/heap_why.h"
#include "src/cli/commands/name_pattern.h"
#include "util/base.h"
#include "util/file_root.h"
#include "util/hash_table.h"
#include "util/vector.h"

enum {
    TYPES_SHOWN = 16, /* without --all */
    HEAPS_SHOWN = 8,
    PROBLEMS_SHOWN = 10,
    HEAP_MAX = 1024,    /* of server GC, as the library has it */
    STEP = 1024 * 1024, /* objects between two steps of the progress */
};

enum chosen_generation { ANY_GENERATION }; /* else an enum cdacq_generation, and 1 */

/* Bytes of the graph of a core's heap that are kept in memory. */
#define GRAPH_OF_A_CORE_LEAST (UINT64_C(256) << 20)
#define GRAPH_OF_A_CORE_MAX   (UINT64_C(2) << 30)

struct heap_options {
    struct common_options common;
    struct word_list types; /* patterns of names; none: all types */
    unsigned generation;    /* enum chosen_generation */
    struct word_list why;   /* addresses of objects, or patterns of types: what keeps them */
    bool retained;
    bool strings;
    bool exports;
    const char *export; /* a file; NULL: standard output */
};

DEFINE_VECTOR(type_list, struct type_sum);
DEFINE_VECTOR(problem_list, char *);

/* What is committed, and what of it has objects. */
struct room {
    struct object_sum objects, free;
    uint64_t committed, segments;
};

struct work {
    const struct heap_options *options;
    const struct opened_target *opened;
    struct output out;
    struct progress progress;
    struct cdacq_heap_info info;
    struct heap_presence presence;
    struct room generations[CDACQ_GENERATION_COUNT], heaps[HEAP_MAX], all;
    struct type_sums types; /* of the chosen generation */
    struct type_list list;  /* the largest first */
    struct problem_list problems;
    uint64_t visited, walked, bytes; /* for the progress: objects, their bytes, those of all segments */
    uint64_t unnamed;
    struct cdacq_memory_use memory;
    bool has_memory;           /* it is known */
    bool is_absent;            /* the core lacks the objects */
    struct heap_bounds bounds; /* then */
    bool out_of_memory;
};

/* The format of the file of --export follows from the end of its name. */
static bool ends_with(const char *name, const char *ending)
{
    size_t length = name ? strlen(name) : 0, size = strlen(ending);
    return length >= size && strcmp(name + length - size, ending) == 0;
}

static bool is_treemap(const struct heap_options *options)
{
    return options->exports && ends_with(options->export, ".svg");
}

/* ---- Reading --------------------------------------------------------------------------------------------------- */

static int visit_segment(const struct cdacq_heap_segment *segment, void *context)
{
    struct work *work = context;
    uint64_t committed = segment->committed - segment->begin;
    struct room *rooms[] = {&work->generations[segment->generation], &work->heaps[segment->heap % HEAP_MAX],
                            &work->all};
    for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
        rooms[i]->committed += committed;
        rooms[i]->segments++;
    }
    work->bytes += segment->end - segment->begin;
    heap_presence_add_segment(&work->presence, segment);
    return 0;
}

static int visit_object(const struct cdacq_heap_object *object, void *context)
{
    struct work *work = context;
    struct room *generation = &work->generations[object->generation];
    object_sum_add(object->is_free ? &generation->free : &generation->objects,
                   (struct object_sum){1, object->byte_size});
    heap_presence_add_object(&work->presence, object);
    work->walked += object->byte_size;
    if (UNLIKELY(++work->visited % STEP == 0))
        progress_estimate(&work->progress, work->visited, work->walked, work->bytes);
    if (work->options->generation != ANY_GENERATION && work->options->generation != object->generation + 1u)
        return 0;
    work->out_of_memory = !type_sums_add(&work->types, object);
    return work->out_of_memory;
}

static int visit_problem(const char *text, void *context)
{
    struct work *work = context;
    char *copy = strdup(text);
    if (!copy || !problem_list_append(&work->problems, copy)) {
        free(copy);
        work->out_of_memory = true;
    }
    return work->out_of_memory;
}

static int by_bytes(const void *a, const void *b)
{
    const struct type_sum *left = a, *right = b;
    if (left->is_free != right->is_free)
        return left->is_free - right->is_free;
    if (left->sum.bytes != right->sum.bytes)
        return left->sum.bytes < right->sum.bytes ? 1 : -1;
    return (left->method_table > right->method_table) - (left->method_table < right->method_table);
}

static void sum_up(struct work *work)
{
    for (size_t i = 0; i < CDACQ_GENERATION_COUNT; i++) {
        const struct room *room = &work->generations[i];
        object_sum_add(&work->all.objects, room->objects);
        object_sum_add(&work->all.free, room->free);
    }
}

/* Lists the types that are shown, and reads their names. */
static bool list_types(struct work *work)
{
    const struct word_list *patterns = &work->options->types;
    size_t kept = 0;
    if (!type_list_reserve(&work->list, work->types.table.count))
        return false;
    for (const struct type_sum *type = NULL; (type = type_sum_table_next(&work->types.table, type));)
        work->list.items[work->list.count++] = *type;
    if (work->list.count)
        qsort(work->list.items, work->list.count, sizeof *work->list.items, by_bytes);
    for (size_t i = 0; i < work->list.count; i++) {
        struct type_sum *type = &work->list.items[i];
        struct cdacq_error error;
        bool shown = work->options->common.all || patterns->count || type->is_free || kept < TYPES_SHOWN;
        if (shown && cdacq_session_get_type_name(work->opened->session, type->method_table, &type->name, &error) < 0)
            work->unnamed++;
        if (shown && name_is_wanted(type->name, patterns))
            work->list.items[kept++] = *type;
    }
    work->list.count = kept;
    return true;
}

/* ---- Text ------------------------------------------------------------------------------------------------------ */

enum { SIZE_ROOM = 32 };

static const char *form_size(uint64_t size, char room[static SIZE_ROOM])
{
    text_rounded_bytes(room, SIZE_ROOM, size);
    return room;
}

static void write_room(struct output *out, const char *name, const struct room *room)
{
    char objects[SIZE_ROOM], free[SIZE_ROOM], committed[SIZE_ROOM];
    output_printf(out, "%-10s %12" PRIu64 " %12s %12s %12s\n", name, room->objects.count,
                  form_size(room->objects.bytes, objects), form_size(room->free.bytes, free),
                  form_size(room->committed, committed));
}

static void write_heaps(struct work *work)
{
    uint32_t count = MIN(work->info.heap_count, (uint32_t)HEAP_MAX);
    uint32_t shown = work->options->common.all ? count : MIN(count, (uint32_t)HEAPS_SHOWN);
    char committed[SIZE_ROOM];
    if (!work->info.is_server)
        return;
    output_styled(&work->out, STYLE_HEADING, "\nserver heap    segments    committed\n");
    for (uint32_t i = 0; i < shown; i++)
        output_printf(&work->out, "%-11" PRIu32 " %11" PRIu64 " %12s\n", i, work->heaps[i].segments,
                      form_size(work->heaps[i].committed, committed));
    if (shown < count)
        output_printf(&work->out, "... %" PRIu32 " more (--all)\n", count - shown);
}

static void write_type(struct output *out, const struct type_sum *type)
{
    output_printf(out, "%12" PRIu64 " %14" PRIu64 "  ", type->sum.count, type->sum.bytes);
    type_sum_write_name(out, type);
    output_literal(out, "\n");
}

static void write_types(struct work *work)
{
    bool is_free = false;
    output_styled(&work->out, STYLE_HEADING, "\n     objects          bytes  type\n");
    for (size_t i = 0; i < work->list.count && !output_failed(&work->out); i++) {
        const struct type_sum *type = &work->list.items[i];
        is_free |= type->is_free;
        if (!type->is_free)
            write_type(&work->out, type);
    }
    size_t shown = work->list.count - is_free;
    size_t left_out = !work->options->types.count && work->types.table.count > work->list.count
                          ? work->types.table.count - work->list.count
                          : 0;
    if (left_out)
        output_printf(&work->out, "... %zu more type%s after these %zu (--all)\n", left_out, plural(left_out), shown);
    for (size_t i = 0; i < work->list.count; i++)
        if (work->list.items[i].is_free)
            write_type(&work->out, &work->list.items[i]);
}

/* Where the memory of the process is. */
static void write_memory(struct work *work)
{
    const struct cdacq_memory_use *memory = &work->memory;
    const struct {
        const char *name;
        uint64_t bytes;
    } rows[] = {{"GC heap", memory->gc},    {"JIT code", memory->code}, {"loader", memory->loader},
                {"stacks", memory->stacks}, {"files", memory->files},   {"malloc, other", memory->other}};
    char size[SIZE_ROOM];
    uint64_t total = 0;
    if (!work->has_memory)
        return;
    output_styled(&work->out, STYLE_HEADING,
                  memory->is_resident ? "memory             resident\n" : "memory          in the core\n");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (rows[i].bytes) /* a core may not name what the loader has */
            output_printf(&work->out, "%-14s %12s\n", rows[i].name, form_size(rows[i].bytes, size));
        total += rows[i].bytes;
    }
    output_printf(&work->out, "%-14s %12s", "all", form_size(total, size));
    if (memory->swapped)
        output_printf(&work->out, ", and %s in swap space", form_size(memory->swapped, size));
    output_literal(&work->out, "\n\n");
}

static void write_text(struct work *work)
{
    struct output *out = &work->out;
    write_memory(work);
    char committed[SIZE_ROOM], objects[SIZE_ROOM], free[SIZE_ROOM];
    uint64_t used = work->all.objects.bytes + work->all.free.bytes;
    if (work->is_absent)
        output_printf(out, "GC heap: %s committed in the segments that are known\n",
                      form_size(work->all.committed, committed));
    else
        output_printf(out, "GC heap: %s committed, %s in %" PRIu64 " objects, %s free between them (%.1f %%)\n",
                      form_size(work->all.committed, committed), form_size(work->all.objects.bytes, objects),
                      work->all.objects.count, form_size(work->all.free.bytes, free),
                      used ? 100.0 * (double)work->all.free.bytes / (double)used : 0.0);
    output_printf(out, "GC: %s, %s, %" PRIu32 " heap%s\n", work->info.is_server ? "server" : "workstation",
                  work->info.has_regions ? "regions" : "segments", work->info.heap_count,
                  plural(work->info.heap_count));
    if (work->info.oom_reason)
        output_printf(out, "the last allocation that failed: %" PRIu64 " bytes: %s\n", work->info.oom_bytes,
                      cdacq_oom_reason_text(work->info.oom_reason));
    if (work->is_absent) {
        heap_bounds_write_text(&work->bounds, out, work->options->common.all);
        return;
    }
    output_literal(out, "\n");
    output_styled(out, STYLE_HEADING, "generation      objects        bytes         free    committed\n");
    for (unsigned i = 0; i < CDACQ_GENERATION_COUNT; i++) {
        if (work->generations[i].segments)
            write_room(out, cdacq_generation_text((enum cdacq_generation)i), &work->generations[i]);
    }
    write_heaps(work);
    write_types(work);
}

static void write_treemap(struct work *work)
{
    struct treemap_type *types = allocate((work->list.count + 1) * sizeof *types);
    size_t count = 0;
    for (size_t i = 0; i < work->list.count; i++) {
        const struct type_sum *type = &work->list.items[i];
        if (!type->is_free)
            types[count++] = (struct treemap_type){type->name, type->sum.count, type->sum.bytes};
    }
    heap_export_treemap(&work->out, types, count);
    free(types);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static void write_room_members(struct json_writer *w, const struct room *room)
{
    json_number(w, "objects", room->objects.count + room->free.count);
    json_number(w, "bytes", room->objects.bytes + room->free.bytes);
    json_number(w, "free_objects", room->free.count);
    json_number(w, "free_bytes", room->free.bytes);
    json_number(w, "committed", room->committed);
}

static void write_memory_members(struct json_writer *w, const struct cdacq_memory_use *memory)
{
    json_begin_object(w, "memory");
    json_bool(w, "resident", memory->is_resident);
    json_number(w, "gc", memory->gc);
    json_number(w, "code", memory->code);
    json_number(w, "loader", memory->loader);
    json_number(w, "stacks", memory->stacks);
    json_number(w, "files", memory->files);
    json_number(w, "other", memory->other);
    json_number(w, "swapped", memory->swapped);
    json_end_object(w);
}

static void write_summary(struct work *work)
{
    struct json_writer writer = json_begin_line(&work->out), *w = &writer;
    write_room_members(w, &work->all);
    json_begin_array(w, "generations");
    for (unsigned i = 0; i < CDACQ_GENERATION_COUNT; i++) {
        json_begin_object(w, NULL);
        json_string(w, "generation", cdacq_generation_text((enum cdacq_generation)i));
        write_room_members(w, &work->generations[i]);
        json_end_object(w);
    }
    json_end_array(w);
    json_bool(w, "server", work->info.is_server);
    json_bool(w, "regions", work->info.has_regions);
    json_number(w, "heaps", work->info.heap_count);
    json_bool(w, "under_way", work->info.is_under_way);
    json_string(w, "oom_reason", work->info.oom_reason ? cdacq_oom_reason_text(work->info.oom_reason) : NULL);
    json_known_number(w, "oom_bytes", work->info.oom_reason, work->info.oom_bytes);
    if (work->has_memory)
        write_memory_members(w, &work->memory);
    if (work->is_absent)
        heap_bounds_write_members(&work->bounds, w);
    json_begin_array(w, "problems");
    for (size_t i = 0; i < work->problems.count; i++)
        json_note(w, NULL, work->problems.items[i]);
    json_end_array(w);
    json_end_line(w);
}

static void write_json(struct work *work)
{
    for (size_t i = 0; i < work->list.count && !output_failed(&work->out); i++) {
        const struct type_sum *type = &work->list.items[i];
        struct json_writer writer = json_begin_line(&work->out), *w = &writer;
        type_sum_write_members(w, type);
        json_end_line(w);
    }
    write_summary(work);
}

/* ---- The command ----------------------------------------------------------------------------------------------- */

static void tell_problems(const struct work *work)
{
    heap_tell_under_way(work->info.is_under_way);
    for (size_t i = 0; i < MIN(work->problems.count, (size_t)PROBLEMS_SHOWN); i++)
        message("%s", work->problems.items[i]);
    if (work->info.problem_count > PROBLEMS_SHOWN)
        message("%" PRIu64 " more problems%s", work->info.problem_count - PROBLEMS_SHOWN,
                work->options->common.json || work->options->exports ? "" : "; --json has them");
    if (work->unnamed)
        message("%" PRIu64 " type%s without a name", work->unnamed, plural(work->unnamed));
}

/* Reads the heap. False: a message says why it cannot be read. */
static bool read_heap(struct work *work)
{
    const struct cdacq_heap_visitor visitor = {.size = sizeof visitor,
                                               .segment = visit_segment,
                                               .object = visit_object,
                                               .problem = visit_problem,
                                               .context = work};
    struct cdacq_error error;
    progress_begin(&work->progress, "objects", work->out.fd);
    work->info.size = sizeof work->info;
    enum cdacq_status status = cdacq_session_visit_heap(work->opened->session, &visitor, &work->info, &error);
    work->memory.size = sizeof work->memory;
    work->has_memory = status >= 0 && cdacq_session_get_memory_use(work->opened->session, &work->memory, &error) >=
                                          0; /* else left out */
    work->is_absent = status == CDACQ_OK && heap_is_missing(&work->presence, &work->info);
    bool listed = status == CDACQ_OK && list_types(work) &&
                  (!work->is_absent || heap_bounds_read(work->opened->session, &work->bounds));
    target_let_go(work->opened->target);
    work->out.is_held = false;
    progress_end(&work->progress);
    sum_up(work);
    heap_tell_failure(status, "the heap", &error);
    if (status >= 0 && !listed)
        message("out of memory");
    return listed;
}

static void deinit(struct work *work)
{
    for (size_t i = 0; i < work->problems.count; i++)
        free(work->problems.items[i]);
    problem_list_deinit(&work->problems);
    type_sums_deinit(&work->types);
    type_list_deinit(&work->list);
    heap_bounds_deinit(&work->bounds);
}

/* Answers another question about the heap, if it is asked. */
static bool show_other(const struct heap_options *options, const struct opened_target *opened, int *ret)
{
    const struct heap_question question = {
        .opened = opened, .output = options->common.output, .json = options->common.json, .all = options->common.all};
    if (options->why.count)
        *ret = heap_why_show(&question, &options->why);
    else if (options->retained)
        *ret = heap_retained_show(&question);
    else if (options->exports && !is_treemap(options))
        *ret = (ends_with(options->export, ".gcdump") ? heap_export_gcdump : heap_export_snapshot)(&question);
    else
        return false;
    return true;
}

static int show_heap(const void *given, const struct opened_target *opened)
{
    int other;
    if (show_other(given, opened, &other))
        return other;
    struct work *work = allocate(sizeof *work);
    *work = (struct work){.options = given, .opened = opened};
    int code = EXIT_FAILED;
    if (!output_open(&work->out, work->options->common.output)) {
        free(work);
        return EXIT_FAILED;
    }
    work->out.is_held = target_is_pid(opened->name); /* a process is stopped */
    bool is_read = read_heap(work);
    bool is_absent = is_read && work->is_absent;
    if (is_read)
        (work->options->common.json ? write_json : is_treemap(work->options) ? write_treemap : write_text)(work);
    if (is_absent)
        message("no heap in this core: most of the objects in its %" PRIu64 " segments are missing",
                work->all.segments);
    if (is_read && !is_absent)
        tell_problems(work);
    if (output_close_if(&work->out, is_read) && is_read && !is_absent)
        code = work->info.problem_count || work->info.is_under_way || work->unnamed ? EXIT_PARTLY : EXIT_ANSWERED;
    deinit(work);
    free(work);
    return code;
}

/* The file of --export takes the place of --output. */
static int run_export(const struct heap_options *options)
{
    const struct common_options *common = &options->common;
    struct heap_options with_file = *options;
    if (options->types.count || options->generation != ANY_GENERATION || options->why.count || options->retained ||
        options->strings || common->all || common->json || common->output || common->targets.count > 1) {
        message("heap: --export writes the whole heap to its FILE: give no --type, --generation, --why, --retained, "
                "--strings, --all, --json, --output or OTHER");
        return EXIT_USAGE;
    }
    with_file.common.output = options->export;
    with_file.common.all = is_treemap(options);
    return target_run(&with_file.common, &(const struct target_use){.run = show_heap, .flags = CDACQ_OPEN_STOP});
}

/*
 * A graph may be larger than the core, whose segments can share bytes: what is kept in memory is bounded by its size.
 */
static void set_bound_by_size(const char *core)
{
    struct stat st;
    CLEANUP_CLOSE int fd = file_open_regular(core, &st);
    uint64_t size = fd >= 0 ? (uint64_t)st.st_blocks * 512 : UINT64_MAX;
    if (size < GRAPH_OF_A_CORE_MAX / 2)
        spill_set_bound(MAX(2 * size, GRAPH_OF_A_CORE_LEAST));
}

static int run(const void *given)
{
    const struct heap_options *options = given;
    uint64_t memory_max = options->common.open.memory_max;
    if (memory_max != CDACQ_BOUND_BY_SIZE)
        spill_set_bound(memory_max ? memory_max : UINT64_MAX);
    else
        set_bound_by_size(options->common.targets.items[0]);
    const struct heap_growth_options growth = {
        .common = &options->common, .types = &options->types, .generation = (int)options->generation - 1};
    if (options->exports)
        return run_export(options);
    if (options->strings &&
        (options->types.count || options->generation != ANY_GENERATION || options->common.targets.count > 1)) {
        message("heap: --strings is about all strings of one heap: give no --type, --generation or OTHER");
        return EXIT_USAGE;
    }
    if (options->common.targets.count > 1)
        return output_is_a_target(&options->common) ? EXIT_FAILED : heap_growth_run(&growth);
    return target_run(
        &options->common,
        &(const struct target_use){.run = options->strings ? heap_strings_show : show_heap, .flags = CDACQ_OPEN_STOP});
}

const struct option_row heap_rows[] = {
    {"type", "GLOB", "show only types of this name; '*' and '?' are wildcards; repeatable",
     TO_LIST(struct heap_options, types.items, types.count)},
    {"generation", "GENERATION", "count only objects there: 0, 1, 2, loh, poh, frozen",
     TO_CHOICE(struct heap_options, generation, "any 0 1 2 loh poh frozen")},
    {"why", "ADDR|TYPE",
     "show what keeps an object, those of a type, or an assembly load context of that name; repeatable",
     TO_LIST(struct heap_options, why.items, why.count)},
    {"retained", NULL, "show what would be freed with each static field, type, object and assembly load context",
     TO_FLAG(struct heap_options, retained)},
    {"strings", NULL, "show equal strings instead, and what their copies cost", TO_FLAG(struct heap_options, strings)},
    {"export", "FILE",
     "write the heap for other tools: FILE.heapsnapshot for Chrome and VS Code, FILE.gcdump for dotnet-gcdump, "
     "PerfView "
     "and Visual Studio, FILE.svg as an image of the types by namespace",
     TO_OUTPUT(struct heap_options, export), AND_GIVEN(struct heap_options, exports)},
    {0},
};

const struct command command_heap = {
    .name = "heap",
    .section = SECTION_PROCESS,
    RUNS(run, struct heap_options),
    .operands =
        OPERANDS({TARGET_OPERAND}, {"OTHER", OPERAND_TARGET, OPTIONAL, TO_WORDS(struct common_options, targets)}),
    .options = OPTIONS(json_rows, output_rows, target_rows, whole_rows, heap_rows),
    .summary = "show what the GC heap holds, by generation and type",
    .details = "A process is stopped while it is read. Shows where the memory of the process is; how much the GC has\n"
               "committed, how much of it is in objects and how much is free between them, for each generation;\n"
               "then the types whose objects take the most, and the free memory. Sizes of types are in bytes. JSON\n"
               "has one object for each type and, last, one for the whole heap. --why names what keeps objects:\n"
               "static fields, thread statics, locals of methods, handles, the finalizer queue. With OTHER, a core\n"
               "or a process of a later time, it shows by type how the heap has grown since TARGET.\n",
    .exit_partly = "a part of the heap cannot be read, or a type or reference has no name",
};
