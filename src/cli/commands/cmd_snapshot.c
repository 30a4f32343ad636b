/*
 * cmd_snapshot.c: writes a small core that gives the same answers without any other file. The target records what is
 * read while this command asks every question that the snapshot must answer.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/base/answers.h"
#include "src/cli/commands/code_progress.h"
#include "src/cli/base/commands.h"
#include "src/cli/base/read_failures.h"
#include "src/cli/base/console.h"
#include "src/cli/base/ip_text.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/output.h"
#include "src/cli/base/runtimes.h"
#include "src/cli/commands/written_core.h"
#include "util/hash_table.h"
#include "util/vector.h"

struct snapshot_options {
    struct address_options of;
    bool stacks, heap, arguments;
};

enum { BATCH = 512 };

DEFINE_VECTOR(addresses, uint64_t);

DEFINE_U64_SET(address_set);

/* A type, and one of its objects. */
struct heap_type {
    uint64_t method_table, object;
};

DEFINE_U64_TABLE(heap_types, struct heap_type, method_table);

/* For the fields of an object, or of a struct in it. */
struct field_visit {
    struct cdacq_session *session;
    unsigned depth;
};

struct work {
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct code_progress listing;
    struct progress progress;
    struct addresses ips;
    struct address_set in_frames; /* those of `ips` that add_frame() has added */
    uint64_t unanswered;
    struct answers_unread unread;
    struct read_failures complaints; /* they are unanswered, too */
    size_t threads;                  /* with --stacks */
    size_t visited;                  /* of them, for one runtime */
    struct cdacq_wait_graph *graph;  /* likewise; NULL: locks cannot be read */
    struct heap_types types;         /* with --heap */
    uint64_t recent;                 /* the last MethodTable that was looked up in `types` */
};

static void complain(struct work *work, uint64_t address, const char *why)
{
    work->unanswered++;
    read_failures_add(&work->complaints, address, why);
}

static void add_ip(struct work *work, uint64_t ip)
{
    if (!addresses_append(&work->ips, ip))
        out_of_memory();
}

/* Adds the first, a middle and the last byte of a range: each is found in another way. */
static void add_range(struct work *work, uint64_t begin, uint64_t size)
{
    if (!begin)
        return;
    add_ip(work, begin);
    if (size > 2)
        add_ip(work, begin + size / 2);
    if (size > 1)
        add_ip(work, begin + size - 1);
}

static int add_method(const struct cdacq_method *method, void *context)
{
    struct work *work = context;
    code_progress_step(&work->listing, method);
    if (method->answer == CDACQ_ANSWER_ERROR) {
        complain(work, method->code_start, method->error);
        return 0;
    }
    add_range(work, method->code_start, method->code_size);
    add_range(work, method->cold_start, method->cold_size);
    return 0;
}

/* The methods of the session's runtime. */
static bool add_own_methods(struct work *work)
{
    struct cdacq_error error;
    code_progress_begin(&work->listing, work->session, CDACQ_VISIT_STUBS, -1);
    enum cdacq_status status = cdacq_session_visit_methods(work->session, CDACQ_VISIT_STUBS, add_method, work, &error);
    code_progress_end(&work->listing);
    if (status >= 0)
        return true;
    message("%s", error.message);
    work->unanswered++;
    return work->ips.count; /* what was found until then */
}

/* Has `add` work for each runtime in turn. False if it fails for all. */
static bool for_each_runtime(struct work *work, bool (*add)(struct work *work))
{
    struct cdacq_session *session = work->session, *one;
    bool any = false;
    for (unsigned next = 0; (one = runtimes_next(session, &next));) {
        work->session = one;
        any |= add(work);
    }
    work->session = session;
    return any;
}

static int add_frame(const struct cdacq_frame *frame, void *context)
{
    struct work *work = context;
    bool is_new; /* threads wait in the same functions */
    if (!address_set_insert(&work->in_frames, frame->pc - frame->is_call, &is_new))
        out_of_memory();
    if (is_new)
        add_ip(work, frame->pc - frame->is_call);
    cdacq_wait_graph_add_frame(work->graph, frame);
    return 0;
}

enum { NESTED_MAX = 64 }; /* exceptions that a thread handles; `report` shows no more */

struct nested_exceptions {
    uint64_t objects[NESTED_MAX];
    unsigned count;
};

static int add_nested(const struct cdacq_nested_exception *nested, void *context)
{
    struct nested_exceptions *list = context;
    list->objects[list->count++] = nested->object;
    return list->count == NESTED_MAX;
}

static int add_stack(const struct cdacq_thread *thread, void *context)
{
    struct work *work = context;
    struct nested_exceptions nested = {.count = 0};
    struct cdacq_error error;
    unsigned flaws;
    progress_step(&work->progress, work->visited++);
    if (thread->thread)
        (void)cdacq_session_visit_nested_exceptions(work->session, thread->thread, add_nested, &nested, &error);
    if (!nested.count) /* the runtime does not describe the list */
        nested.objects[nested.count++] = thread->exception;
    for (unsigned i = 0; i < nested.count; i++)
        if (nested.objects[i])
            (void)cdacq_session_write_exception(work->session, nested.objects[i], output_ignore_text, NULL, &flaws,
                                                &error);
    if (thread->last_thrown && thread->last_thrown != thread->exception)
        (void)cdacq_session_write_exception(work->session, thread->last_thrown, output_ignore_text, NULL, &flaws,
                                            &error);
    /* A walk that ends early ends in the same way on the snapshot. */
    cdacq_wait_graph_add_thread(work->graph, thread);
    (void)cdacq_session_visit_frames(work->session, thread, NULL, CDACQ_FRAMES_ASYNC, add_frame, work, &error);
    return 0;
}

/* Has the snapshot hold the registers and the stack of every thread, and what the runtime keeps of it. */
static bool add_stacks(struct work *work)
{
    struct cdacq_error error;
    unsigned flaws;
    work->visited = 0;
    (void)cdacq_wait_graph_create(work->session, &work->graph, NULL);
    progress_begin(&work->progress, "threads", -1);
    expect_threads(&work->progress, work->session);
    enum cdacq_status status = cdacq_session_visit_threads(work->session, add_stack, work, &error);
    progress_end(&work->progress);
    work->threads = MAX(work->threads, work->visited);
    (void)cdacq_wait_graph_complete(work->graph, NULL);
    cdacq_wait_graph_destroy(work->graph);
    work->graph = NULL;
    /* A list of the runtime is no better on the snapshot. Registers that the process does not give are lost. */
    if (status < 0 && (!work->threads || status == CDACQ_ERR_IO)) {
        /* The list of methods may have reached the same bound. */
        if (status != CDACQ_ERR_FUEL || !message_was_shown(error.message))
            message("%s", error.message);
        work->unanswered++;
    }
    if (status < 0 && !work->threads)
        return work->ips.count; /* what was found until then */
    (void)cdacq_session_write_last_words(work->session, output_ignore_text, NULL, &flaws, &error);
    return true;
}

/* ---- The heap ---- */

static int add_segment(const struct cdacq_heap_segment *segment, void *context)
{
    struct work *work = context;
    struct cdacq_error error;
    if (cdacq_target_record_memory(work->target, segment->begin, segment->end - segment->begin, &error) >= 0)
        return 0;
    complain(work, segment->begin, error.message);
    return 1;
}

/* Has the first object of each type described later: all of them have the same fields. */
static int add_type(const struct cdacq_heap_object *object, void *context)
{
    struct work *work = context;
    const struct heap_type type = {object->method_table, object->address};
    if (object->method_table == work->recent)
        return 0;
    work->recent = object->method_table;
    if (!heap_types_insert(&work->types, type, NULL))
        out_of_memory();
    return 0;
}

static int ignore_field(const struct cdacq_field *field, void *context);

/* Asks what `object` shows of a value. */
static void ask_value(struct cdacq_session *session, const struct cdacq_value *value, unsigned depth)
{
    enum { DEPTH_MAX = 4 }; /* structs in structs */
    struct field_visit visit = {session, depth + 1};
    struct cdacq_value inner = {.size = sizeof inner};
    struct cdacq_error error;
    bool has_value;
    (void)cdacq_session_write_value(session, value, output_ignore_text, NULL, &error);
    if (value->kind != CDACQ_VALUE_STRUCT || depth >= DEPTH_MAX)
        return;
    (void)cdacq_session_get_nullable(session, value, &has_value, &inner, &error);
    (void)cdacq_session_visit_struct_fields(session, value->method_table, value->address, ignore_field, &visit, &error);
}

static int ignore_field(const struct cdacq_field *field, void *context)
{
    const struct field_visit *visit = context;
    if (!field->problem)
        ask_value(visit->session, field->value, visit->depth);
    return 0;
}

static int ignore_item(const struct cdacq_item *item, void *context)
{
    const struct field_visit *visit = context;
    if (item->key)
        ask_value(visit->session, item->key, visit->depth);
    if (item->value)
        ask_value(visit->session, item->value, visit->depth);
    return 0;
}

static void ask_about_object(struct cdacq_session *session, uint64_t address)
{
    struct cdacq_object object = {.size = sizeof object};
    struct cdacq_contents contents = {.size = sizeof contents};
    struct cdacq_delegate delegate = {.size = sizeof delegate};
    struct cdacq_value boxed = {.size = sizeof boxed};
    struct field_visit visit = {session, 0};
    struct cdacq_error error;
    (void)cdacq_session_check_object(session, address, &error);
    (void)cdacq_session_get_object(session, address, &object, &error);
    (void)cdacq_session_visit_fields(session, address, ignore_field, &visit, &error);
    (void)cdacq_session_visit_items(session, address, 1, &contents, ignore_item, &visit, &error);
    (void)cdacq_session_get_delegate(session, address, &delegate, &error);
    if (cdacq_session_get_boxed(session, address, &boxed, &error) == CDACQ_OK)
        ask_value(session, &boxed, 0);
}

/* Has the snapshot hold all objects, and what describes their types. False if the heap cannot be read. */
static bool add_heap(struct work *work)
{
    struct cdacq_heap_info info = {.size = sizeof info};
    const struct cdacq_heap_visitor visitor = {
        .size = sizeof visitor, .segment = add_segment, .object = add_type, .context = work};
    struct cdacq_memory_use memory = {.size = sizeof memory};
    struct cdacq_error error;
    progress_begin(&work->progress, "objects", -1);
    enum cdacq_status status = cdacq_session_visit_heap(work->session, &visitor, &info, &error);
    if (status < 0)
        message("the heap cannot be read: %s", error.message);
    for (const struct heap_type *type = NULL; (type = heap_types_next(&work->types, type));) {
        const char *name;
        (void)cdacq_session_get_type_name(work->session, type->method_table, &name, &error);
        ask_about_object(work->session, type->object);
    }
    (void)cdacq_session_get_memory_use(work->session, &memory, &error);
    progress_end(&work->progress);
    heap_types_deinit(&work->types);
    work->unanswered += status < 0 || info.problem_count;
    return status >= 0;
}

static void add_list(struct work *work, const char *const *ips, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t ip;
        struct bad_ip bad;
        if (ip_parse(ips[i], strlen(ips[i]), &ip, &bad)) {
            add_ip(work, ip);
        } else {
            ip_complain(0, &bad);
            work->unanswered++;
        }
    }
}

static int ignore_clause(const struct cdacq_exception_clause *clause, void *context)
{
    (void)clause, (void)context;
    return 0;
}

static int ignore_variable(const struct cdacq_variable_place *variable, void *context)
{
    (void)variable, (void)context;
    return 0;
}

/* Asks every question about one IP. What fails here fails in the same way on the snapshot. */
static void ask_about(struct work *work, uint64_t ip)
{
    struct cdacq_method method = {.size = sizeof method};
    struct cdacq_block block;
    struct cdacq_error error;
    uint64_t address;
    uint32_t version;
    bool yes;
    enum cdacq_status status = cdacq_session_method_at(work->session, ip, &method, &error);
    if (status < 0)
        complain(work, ip, error.message);
    answers_count_unread(&work->unread, &method); /* what it lacks, the snapshot lacks, too */
    bool is_code = status >= 0 && method.answer != CDACQ_ANSWER_NONE;
    struct cdacq_session *owner = is_code ? cdacq_session_of_runtime(work->session, (unsigned)method.runtime) : NULL;
    struct cdacq_session *session = owner ? owner : work->session;
    (void)cdacq_session_non_virtual_entry_to_method_desc(session, ip, &address, &error);
    /* Always: this look-up uses no index, unlike the one above. */
    if (cdacq_session_code_block_at(session, ip, &block, &error) != CDACQ_OK)
        return;
    (void)cdacq_block_get_method_region_info(&block, session, &address, &address, &address, &error);
    (void)cdacq_block_is_filter_funclet(&block, session, &yes, &error); /* by way of the unwind info */
    (void)cdacq_block_get_debug_info(&block, session, &address, &yes, &error);
    (void)cdacq_block_get_gc_info(&block, session, &address, &version, &error);
    (void)cdacq_block_is_gc_safe(&block, session, &yes, &error);
    (void)cdacq_block_get_stack_parameter_size(&block, session, &version, &error);
    (void)cdacq_block_visit_exception_clauses(&block, session, ignore_clause, NULL, &error);
    (void)cdacq_session_visit_variable_places(session, ip, ignore_variable, NULL, &error);
}

/* Asks for single IPs and for batches, for which the library reads different pages. */
static void ask_all(struct work *work)
{
    struct cdacq_method *methods = allocate(BATCH * sizeof *methods);
    methods->size = sizeof *methods;
    char bound[160];
    progress_begin(&work->progress, "questions about addresses", -1);
    progress_expect(&work->progress, 2 * work->ips.count); /* one by one, and in batches */
    for (size_t i = 0; i < work->ips.count && !cdacq_target_bound_reached(work->target, bound, sizeof bound); i++) {
        ask_about(work, work->ips.items[i]);
        if (i % 64 == 0)
            progress_step(&work->progress, i);
    }
    for (size_t i = 0; i < work->ips.count; i += BATCH) {
        size_t count = MIN(work->ips.count - i, (size_t)BATCH);
        cdacq_session_methods_at(work->session, work->ips.items + i, count, methods, NULL);
        progress_step(&work->progress, work->ips.count + i);
    }
    progress_end(&work->progress);
    free(methods);
}

static int ignore_range(const struct cdacq_code_range_info *range, void *context)
{
    (void)range, (void)context;
    return 0;
}

static int ignore_module(const struct cdacq_mapped_file *module, void *context)
{
    (void)module, (void)context;
    return 0;
}

/* Reads what `info` shows. */
static bool ask_info(struct work *work)
{
    struct cdacq_target_info info = {.size = sizeof info};
    struct cdacq_error error;
    cdacq_target_get_info(cdacq_session_target(work->session), &info, NULL);
    (void)cdacq_session_visit_code_ranges(work->session, ignore_range, NULL, &error);
    (void)cdacq_target_visit_mapped_files(work->target, ignore_module, NULL, &error);
    return true;
}

static bool report(const struct common_options *options, const struct work *work, uint64_t size)
{
    struct output out;
    output_open(&out, NULL);
    if (options->json) {
        struct json_writer w = json_begin_line(&out);
        json_string(&w, "file", options->output);
        json_number(&w, "size", size);
        json_number(&w, "ips", work->ips.count);
        json_number(&w, "threads", work->threads);
        json_number(&w, "errors", work->unanswered + work->unread.count);
        json_end_line(&w);
    } else {
        output_text(&out, options->output);
        output_printf(&out, ": %" PRIu64 " bytes, %zu address%s", size, work->ips.count,
                      work->ips.count == 1 ? "" : "es");
        if (work->threads)
            output_printf(&out, ", %zu thread%s", work->threads, plural(work->threads));
        output_literal(&out, "\n");
    }
    return output_close(&out);
}

static int write_snapshot(const struct common_options *options, struct work *work)
{
    struct cdacq_error error;
    uint64_t size;
    sigset_t before;
    bool is_held = written_core_begin(options->output, &before);
    enum cdacq_status status = cdacq_target_write_snapshot(work->target, options->output, &size, &error);
    written_core_end(is_held, &before);
    if (status < 0) {
        message("%s", error.message);
        return EXIT_FAILED;
    }
    answers_tell_unread(&work->unread);
    if (!report(options, work, size))
        return EXIT_FAILED;
    return work->unanswered || work->unread.count ? EXIT_PARTLY : EXIT_ANSWERED;
}

static int take_snapshot(const void *given, const struct opened_target *opened)
{
    const struct snapshot_options *options = given;
    struct work work = {.target = opened->target, .session = opened->session};
    int status = EXIT_FAILED;
    if (!written_core_check(options->of.common.output))
        return EXIT_FAILED;
    if (options->arguments)
        (void)cdacq_target_record_arguments(work.target, NULL);
    if (options->of.ips.count)
        add_list(&work, options->of.ips.items, options->of.ips.count);
    bool listed = options->of.ips.count || for_each_runtime(&work, add_own_methods);
    bool has_heap = !options->heap || for_each_runtime(&work, add_heap);
    if (listed && has_heap && (!options->stacks || for_each_runtime(&work, add_stacks))) {
        (void)for_each_runtime(&work, ask_info);
        ask_all(&work);
        read_failures_end(&work.complaints, "address", "addresses");
        status = write_snapshot(&options->of.common, &work);
    }
    addresses_deinit(&work.ips);
    address_set_deinit(&work.in_frames);
    return status;
}

static int run(const void *given)
{
    const struct snapshot_options *options = given;
    if (!options->of.common.output) {
        message("snapshot: give -o FILE, which cannot be standard output");
        return EXIT_USAGE;
    }
    if (options->arguments && !options->stacks) {
        message("snapshot: --arguments needs --stacks");
        return EXIT_USAGE;
    }
    const unsigned stop = options->stacks || options->heap ? CDACQ_OPEN_STOP : 0;
    const struct target_use use = {.run = take_snapshot, .flags = CDACQ_OPEN_ALL_RUNTIMES | CDACQ_OPEN_RECORD | stop};
    return target_run(&options->of.common, &use);
}

const struct option_row snapshot_rows[] = {
    {"stacks", NULL, "include the registers and the stack of every thread", TO_FLAG(struct snapshot_options, stacks)},
    {"heap", NULL, "include the GC heap, all objects with their contents", TO_FLAG(struct snapshot_options, heap)},
    {"arguments", NULL, "with --stacks: include the command line, which can hold passwords",
     TO_FLAG(struct snapshot_options, arguments)},
    {0},
};

const struct command command_snapshot = {
    .name = "snapshot",
    .section = SECTION_CORES,
    RUNS(run, struct snapshot_options),
    .operands = OPERANDS({TARGET_OPERAND}, {.name = "-o FILE", .kind = OPERAND_OPTION}, {IP_OPERAND}),
    .options = OPTIONS(json_rows, output_rows, target_rows, snapshot_rows),
    .summary = "write a small core that answers for these IPs on any machine",
    .details = "Writes an ELF core with only the memory that is read to answer for these IPs (default: all methods\n"
               "and stubs), and the PDBs that lines came from. It needs no other file. With --stacks, it also has the\n"
               "registers and the stack of every thread, and the exceptions, which hold values that the program\n"
               "worked with; a process is stopped while it is read. With --heap, it has all objects, so that heap\n"
               "and object give the same answers from it. Arguments and environment are left out; --arguments\n"
               "includes the former. FILE cannot be standard output.\n",
};
