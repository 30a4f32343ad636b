#include "src/cli/commands/exceptions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/base/console.h"
#include "src/cli/base/heap_messages.h"
#include "src/cli/base/heap_presence.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/output.h"
#include "util/base.h"
#include "util/hash_table.h"
#include "util/vector.h"

enum {
    OBJECTS_MAX = 100000, /* that are compared; the others are counted */
    GROUPS_SHOWN = 16,    /* in text */
    GROUPS_MAX = 1000,    /* in JSON */
    FRAMES_COMPARED = 256,
    MESSAGE_UNITS = 4096, /* of a message that is compared */
    INNER_MAX = 32,       /* exceptions in each other */
};

/* A type of the heap, and whether it is that of exceptions. */
struct heap_type {
    uint64_t method_table, example;
    bool is_exception;
};

DEFINE_U64_TABLE(heap_types, struct heap_type, method_table);

struct found {
    uint64_t address;
    enum cdacq_generation generation;
};

DEFINE_VECTOR(found_list, struct found);

/* Exceptions of a type, with equal messages and stacks. */
struct group {
    uint64_t key, count;
    struct found newest; /* as far as generation and address tell */
};

DEFINE_U64_TABLE(groups, struct group, key);

/* An exception of a thread. */
struct of_thread {
    int tid;
    uint64_t object;
    const char *role; /* "current", "nested", "last" */
};

DEFINE_VECTOR(of_threads, struct of_thread);

struct work {
    const struct common_options *common;
    struct cdacq_session *session;
    struct output out;
    struct progress progress;
    struct of_threads threads;
    struct found_list objects;
    struct heap_types types;
    struct groups table;
    struct group *groups; /* those of `table`, sorted */
    struct heap_presence presence;
    uint64_t total, problems, unread, seed;
    int tid; /* of the thread whose exceptions are visited */
    bool has_heap, out_of_memory;
    unsigned flaws;
};

/* ---- Threads ---------------------------------------------------------------------------------------------------- */

static void add_of_thread(struct work *work, int tid, uint64_t object, const char *role)
{
    for (size_t i = work->threads.count; i-- > 0 && work->threads.items[i].tid == tid;)
        if (work->threads.items[i].object == object)
            return;
    if (object && !of_threads_append(&work->threads, (struct of_thread){tid, object, role}))
        out_of_memory();
}

struct thread_record {
    uint64_t thread, exception, last_thrown;
    int tid;
};

DEFINE_VECTOR(thread_records, struct thread_record);

static int add_thread(const struct cdacq_thread *thread, void *context)
{
    struct thread_records *records = context;
    const struct thread_record record = {thread->thread, thread->exception, thread->last_thrown, thread->tid};
    if (thread->thread && !thread_records_append(records, record))
        out_of_memory();
    return 0;
}

static int add_nested(const struct cdacq_nested_exception *nested, void *context)
{
    struct work *work = context;
    add_of_thread(work, work->tid, nested->object, "nested");
    return 0;
}

static void find_of_threads(struct work *work)
{
    struct thread_records records = {0};
    struct cdacq_error error;
    if (cdacq_session_visit_threads(work->session, add_thread, &records, &error) < 0) {
        message("exceptions of threads may be missing: %s", error.message);
        work->problems++;
    }
    for (size_t i = 0; i < records.count; i++) {
        const struct thread_record *record = &records.items[i];
        work->tid = record->tid;
        add_of_thread(work, record->tid, record->exception, "current");
        enum cdacq_status status =
            cdacq_session_visit_nested_exceptions(work->session, record->thread, add_nested, work, &error);
        if (status < 0 && status != CDACQ_ERR_CONTRACT) {
            message("exceptions of thread %d may be missing: %s", record->tid, error.message);
            work->problems++;
        }
        add_of_thread(work, record->tid, record->last_thrown, "last");
    }
    thread_records_deinit(&records);
}

/* ---- The heap --------------------------------------------------------------------------------------------------- */

static int visit_segment(const struct cdacq_heap_segment *segment, void *context)
{
    struct work *work = context;
    heap_presence_add_segment(&work->presence, segment);
    return 0;
}

static int note_type(const struct cdacq_heap_object *object, void *context)
{
    struct work *work = context;
    const struct heap_type type = {.method_table = object->method_table, .example = object->address};
    heap_presence_add_object(&work->presence, object);
    work->out_of_memory = !object->is_free && !heap_types_insert(&work->types, type, NULL);
    return work->out_of_memory;
}

/* The fields of base types come first. */
static int match_owner(const struct cdacq_field *field, void *context)
{
    *(bool *)context = field->owner && strcmp(field->owner, "System.Exception") == 0;
    return 1;
}

static int add_object(const struct cdacq_heap_object *object, void *context)
{
    struct work *work = context;
    const struct heap_type *type = object->is_free ? NULL : heap_types_find(&work->types, object->method_table);
    if (!type || !type->is_exception)
        return 0;
    work->total++;
    if (work->objects.count < OBJECTS_MAX &&
        !found_list_append(&work->objects, (struct found){object->address, object->generation}))
        work->out_of_memory = true;
    return work->out_of_memory;
}

static enum cdacq_status visit_heap(struct work *work, int (*object)(const struct cdacq_heap_object *, void *),
                                    struct cdacq_heap_info *info, struct cdacq_error *err)
{
    const struct cdacq_heap_visitor visitor = {
        .size = sizeof visitor, .segment = visit_segment, .object = object, .context = work};
    return cdacq_session_visit_heap(work->session, &visitor, info, err);
}

/* The exceptions of threads are shown without a heap, too. */
static void find_in_heap(struct work *work)
{
    struct cdacq_heap_info info = {.size = sizeof info};
    struct cdacq_error error;
    enum cdacq_status status = visit_heap(work, note_type, &info, &error);
    if (status == CDACQ_OK && heap_is_missing(&work->presence, &info)) {
        message("no heap in this core: only the exceptions of threads are shown");
        return;
    }
    for (struct heap_type *type = NULL; status == CDACQ_OK && (type = heap_types_next(&work->types, type));)
        (void)cdacq_session_visit_fields(work->session, type->example, match_owner, &type->is_exception, NULL);
    if (status == CDACQ_OK)
        status = visit_heap(work, add_object, &info, &error);
    heap_tell_failure(status, "the heap", &error);
    heap_tell_under_way(status == CDACQ_OK && info.is_under_way);
    if (work->out_of_memory)
        out_of_memory();
    if (status == CDACQ_OK && info.problem_count)
        message("%" PRIu64 " part%s of the heap cannot be read: exceptions may be missing ('cdacq heap' says which)",
                info.problem_count, plural(info.problem_count));
    work->has_heap = status == CDACQ_OK;
    work->problems += info.problem_count + info.is_under_way + (status < 0 && status != CDACQ_ERR_MEMORY);
}

/* ---- Groups ----------------------------------------------------------------------------------------------------- */

struct key {
    uint64_t hash;
    unsigned frames;
};

static int hash_frame(const struct cdacq_exception_frame *frame, void *context)
{
    struct key *key = context;
    key->hash = hash_u64(frame->ip, key->hash);
    return ++key->frames == FRAMES_COMPARED;
}

static int hash_piece(const char *bytes, size_t length, void *context)
{
    struct key *key = context;
    key->hash = hash_bytes(key->hash, bytes, length);
    return 0;
}

/* Equal exceptions have equal keys. False: the object cannot be read. */
static bool key_of(const struct work *work, uint64_t object, uint64_t *ret)
{
    struct cdacq_object described = {.size = sizeof described};
    struct cdacq_value message = {.size = sizeof message};
    struct key key = {.hash = work->seed};
    if (cdacq_session_get_object(work->session, object, &described, NULL) < 0)
        return false;
    key.hash = hash_u64(described.method_table, key.hash);
    if (cdacq_session_get_field(work->session, object, "_message", &message, NULL) == CDACQ_OK && message.bits)
        (void)cdacq_session_write_string(work->session, message.bits, MESSAGE_UNITS, hash_piece, &key, NULL);
    key.hash = hash_u64(0, key.hash);
    (void)cdacq_session_visit_exception_frames(work->session, object, hash_frame, &key, NULL);
    *ret = key.hash;
    return true;
}

static bool is_newer(const struct found *found, const struct found *than)
{
    if (found->generation != than->generation)
        return found->generation < than->generation;
    return found->address > than->address;
}

static void add_to_group(struct work *work, struct found found)
{
    uint64_t key;
    if (!key_of(work, found.address, &key)) {
        work->unread++;
        return;
    }
    struct group *group = groups_insert(&work->table, (struct group){.key = key, .newest = found}, NULL);
    if (!group)
        out_of_memory();
    group->count++;
    if (is_newer(&found, &group->newest))
        group->newest = found;
}

static int by_count(const void *a, const void *b)
{
    const struct group *left = a, *right = b;
    if (left->count != right->count)
        return left->count < right->count ? 1 : -1;
    return (left->newest.address > right->newest.address) - (left->newest.address < right->newest.address);
}

/* Those of threads are in the heap, too, unless it is missing. */
static void form_groups(struct work *work)
{
    work->seed = hash_table_seed();
    for (size_t i = 0; i < work->objects.count; i++)
        add_to_group(work, work->objects.items[i]);
    for (size_t i = 0; i < work->threads.count && !work->has_heap; i++) {
        bool is_again = false; /* the last exception of one thread may be that of another */
        for (size_t n = 0; n < i && !is_again; n++)
            is_again = work->threads.items[n].object == work->threads.items[i].object;
        if (!is_again)
            add_to_group(work, (struct found){.address = work->threads.items[i].object});
        work->total += !is_again;
    }
    work->groups = groups_sorted(&work->table, by_count);
    if (!work->groups)
        out_of_memory();
}

/* ---- Output ----------------------------------------------------------------------------------------------------- */

static struct cdacq_exception describe(struct work *work, uint64_t object)
{
    struct cdacq_exception exception = {.size = sizeof exception};
    if (cdacq_session_get_exception(work->session, object, &exception, NULL) < 0)
        exception = (struct cdacq_exception){.size = sizeof exception, .address = object};
    return exception;
}

static int write_piece(const char *bytes, size_t length, void *context)
{
    struct output *out = context;
    output_escaped(out, bytes, length, ESCAPE_TEXT);
    return output_failed(out);
}

static void write_group_text(struct work *work, const struct group *group)
{
    struct output *out = &work->out;
    struct cdacq_error error;
    unsigned flaws = 0;
    struct cdacq_exception exception = describe(work, group->newest.address);
    output_printf(out, "\n%" PRIu64 " x ", group->count);
    output_note(out, exception.type ? exception.type : "?");
    output_printf(out, "%s, the newest 0x%" PRIx64 "\n", exception.thrown ? "" : ", not thrown", group->newest.address);
    if (!exception.thrown) /* most are made in advance by the runtime */
        return;
    if (cdacq_session_write_exception(work->session, group->newest.address, write_piece, out, &flaws, &error) < 0) {
        output_styled(out, STYLE_ERROR, "? [error] ");
        output_note(out, error.message);
        work->unread++;
    }
    output_literal(out, "\n");
    work->flaws |= flaws;
}

static void write_text(struct work *work)
{
    struct output *out = &work->out;
    size_t shown = work->common->all ? work->table.count : MIN(work->table.count, (size_t)GROUPS_SHOWN);
    for (size_t i = 0; i < work->threads.count && !output_failed(out); i++) {
        const struct of_thread *of = &work->threads.items[i];
        struct cdacq_exception exception = describe(work, of->object);
        output_printf(out, "thread %d: ", of->tid);
        output_note(out, exception.type ? exception.type : "?");
        output_printf(out, " 0x%" PRIx64 ", %s\n", of->object,
                      strcmp(of->role, "last") == 0      ? "its last one, which may be handled"
                      : strcmp(of->role, "current") == 0 ? "thrown or handled now"
                                                         : "handled now, or its finally blocks run");
    }
    if (!work->threads.count)
        output_literal(out, "no thread has an exception\n");
    if (work->has_heap)
        output_printf(out, "\n%" PRIu64 " exception%s in the heap, %zu different\n", work->total, plural(work->total),
                      work->table.count);
    for (size_t i = 0; i < shown && !output_failed(out); i++)
        write_group_text(work, &work->groups[i]);
    if (shown < work->table.count)
        output_printf(out, "\n... %zu more (--all)\n", work->table.count - shown);
}

static int append_piece(const char *bytes, size_t length, void *context)
{
    output_bytes(context, bytes, length);
    return 0;
}

static void write_inner(struct work *work, struct json_writer *w, struct cdacq_exception exception)
{
    json_begin_array(w, "inner");
    for (unsigned i = 0; i < INNER_MAX && exception.inner; i++) {
        exception = describe(work, exception.inner);
        json_begin_object(w, NULL);
        json_address(w, "address", exception.address);
        json_note(w, "type", exception.type);
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_message(struct work *work, struct json_writer *w, uint64_t object)
{
    struct cdacq_value value = {.size = sizeof value};
    struct output text;
    if (cdacq_session_get_field(work->session, object, "_message", &value, NULL) != CDACQ_OK || !value.bits) {
        json_null(w, "message");
        return;
    }
    output_open_memory(&text);
    (void)cdacq_session_write_string(work->session, value.bits, MESSAGE_UNITS, append_piece, &text, NULL);
    json_lines(w, "message", text.data, text.length);
    output_abandon(&text);
}

static void write_group_json(struct work *work, const struct group *group)
{
    struct json_writer writer = json_begin_line(&work->out), *w = &writer;
    struct cdacq_exception exception = describe(work, group->newest.address);
    struct cdacq_error error;
    struct output text;
    unsigned flaws = 0;
    json_note(w, "type", exception.type);
    write_message(work, w, group->newest.address);
    json_number(w, "count", group->count);
    json_address(w, "newest", group->newest.address);
    json_bool(w, "thrown", exception.thrown);
    write_inner(work, w, exception);
    output_open_memory(&text);
    enum cdacq_status status =
        cdacq_session_write_exception(work->session, group->newest.address, append_piece, &text, &flaws, &error);
    json_lines(w, "text", text.data, text.length);
    output_abandon(&text);
    json_bool(w, "exact", status >= 0 && !flaws);
    json_note(w, "error", status < 0 ? error.message : NULL);
    json_end_line(w);
    work->unread += status < 0;
    work->flaws |= flaws;
}

static void write_json(struct work *work)
{
    struct json_writer writer, *w = &writer;
    size_t shown = MIN(work->table.count, (size_t)GROUPS_MAX);
    for (size_t i = 0; i < work->threads.count && !output_failed(&work->out); i++) {
        const struct of_thread *of = &work->threads.items[i];
        writer = json_begin_line(&work->out);
        json_number(w, "tid", (uint64_t)of->tid);
        json_string(w, "role", of->role);
        json_address(w, "exception", of->object);
        json_note(w, "type", describe(work, of->object).type);
        json_end_line(w);
    }
    for (size_t i = 0; i < shown && !output_failed(&work->out); i++)
        write_group_json(work, &work->groups[i]);
    writer = json_begin_line(&work->out);
    json_number(w, "exceptions", work->total);
    json_number(w, "compared", work->has_heap ? work->objects.count : work->total);
    json_number(w, "groups", work->table.count);
    json_bool(w, "heap", work->has_heap);
    json_number(w, "problems", work->problems + work->unread);
    json_end_line(w);
}

int exceptions_show(const void *options, const struct opened_target *opened)
{
    struct work *work = allocate(sizeof *work);
    *work = (struct work){.common = options, .session = opened->session};
    if (!output_open(&work->out, work->common->output)) {
        free(work);
        return EXIT_FAILED;
    }
    work->out.is_held = target_is_pid(opened->name); /* a process is stopped */
    find_of_threads(work);
    find_in_heap(work);
    form_groups(work);
    (work->common->json ? write_json : write_text)(work);
    target_let_go(opened->target);
    bool is_written = output_close(&work->out);
    if (work->total > work->objects.count && work->has_heap)
        message("%" PRIu64 " more exceptions of the heap were counted only", work->total - work->objects.count);
    if (work->flaws & CDACQ_EXCEPTION_MISSING)
        message("parts of an exception's text cannot be read");
    if (work->unread)
        message("%" PRIu64 " exception%s cannot be read", work->unread, plural(work->unread));
    bool is_whole = work->has_heap && !work->problems && !work->unread && !(work->flaws & CDACQ_EXCEPTION_MISSING);
    bool has_any = work->has_heap || work->table.count;
    of_threads_deinit(&work->threads);
    found_list_deinit(&work->objects);
    heap_types_deinit(&work->types);
    groups_deinit(&work->table);
    free(work->groups);
    free(work);
    return !is_written || !has_any ? EXIT_FAILED : is_whole ? EXIT_ANSWERED : EXIT_PARTLY;
}
