/* roots.c: the calls of cdacq/heap.h for what keeps objects from outside of the heap. */
#include <inttypes.h>
#include <stdio.h>

#include "contracts/code_lookup/range_section_map.h"
#include "contracts/gc/finalizer_queue.h"
#include "contracts/gc/handle.h"
#include "contracts/gc/walk.h"
#include "contracts/objects/field.h"
#include "contracts/objects/statics.h"
#include "contracts/type_system/method_table_flags.h"
#include "contracts/type_system/type_handle.h"
#include "formats/metadata_members.h"
#include "src/api/heap.h"
#include "src/api/type_name.h"
#include "src/lookup/frame_slots.h"
#include "src/lookup/opened_target.h"
#include "util/sized.h"

enum { GC_FRAMES_MAX = 1 << 16, GC_FRAME_REFERENCES_MAX = 1 << 16 }; /* of a thread; of a GCFrame */

/* GCFrame.GCFlags */
enum { GC_CALL_INTERIOR = 1 };

struct visit {
    struct cdacq_session *session;
    struct cdacq_roots_visitor visitor;
    struct gc gc;
    struct gc_segments segments;
    struct gc_problems problems;
    struct known_types *types;
    struct thread_list threads;
    struct gc_slots slots;
    uint64_t method_table;             /* the last that was added to the types */
    const struct cdacq_thread *thread; /* that is visited */
    uint64_t inexact;                  /* frames whose references are not known */
    uint64_t guessed;                  /* frames that were found by guess */
    uint64_t unwalked;                 /* threads whose stack could not be walked to its end */
    struct cdacq_error walk_error;     /* of the last of these */
    bool stopped;
};

const char *cdacq_root_kind_text(enum cdacq_root_kind kind)
{
    static const char *const names[] = {"static",    "thread-static", "local",      "handle",
                                        "finalizer", "dependent",     "finalizable"};
    _Static_assert(ARRAY_SIZE(names) == CDACQ_ROOT_COUNT, "a name for each");
    return (unsigned)kind < ARRAY_SIZE(names) ? names[kind] : "unknown";
}

/* False: the visit ends. */
static bool tell(struct visit *visit, struct cdacq_heap_root root)
{
    root.size = sizeof root;
    if (visit->visitor.root && !visit->stopped)
        visit->stopped = visit->visitor.root(&root, visit->visitor.context) != 0;
    return !visit->stopped;
}

/* Begins the search of one kind of roots. */
static struct reader *begin(struct visit *visit)
{
    struct reader *reader = &visit->session->resolver.reader;
    reader_begin(reader, FUEL_HEAP);
    return reader;
}

/* ---- Static fields ---- */

static bool tell_static(void *context, const struct static_reference *reference)
{
    const struct thread_data *thread = reference->thread;
    struct visit *visit = context;
    struct reader *reader = &visit->session->resolver.reader;
    /* What the LoaderAllocator of a type keeps goes with it. */
    bool keeps = thread || !reference->type || !method_table_is_collectible(reader, reference->type);
    return tell(context, (struct cdacq_heap_root){.kind = thread ? CDACQ_ROOT_THREAD_STATIC : CDACQ_ROOT_STATIC,
                                                  .keeps = keeps,
                                                  .address = reference->address,
                                                  .object = reference->object,
                                                  .method_table = reference->type,
                                                  .token = reference->token,
                                                  .tid = thread ? (int)thread->os_id : 0});
}

static bool note_type(void *context, const struct gc_segment *segment, const struct cdacq_heap_object *object)
{
    struct visit *visit = context;
    (void)segment;
    if (object->method_table != visit->method_table) {
        visit->method_table = object->method_table;
        known_types_add(visit->types, object->method_table);
    }
    return !reader_failed(&visit->session->resolver.reader);
}

/* Finds types by the heap, and by images of compiled code, where the runtime does not describe its assemblies. */
static void find_types(struct visit *visit, struct reader *reader)
{
    struct gc_problems ignored = {0};
    const struct gc_visitor visitor = {.object = note_type, .context = visit};
    struct gc_holes holes = {0};
    struct range_section_list sections = {0};
    const uint64_t map = visit->session->resolver.target->manager.map;
    if (gc_holes_read(reader, &visit->gc, &ignored, &holes))
        gc_walk(reader, &visit->segments, &holes, &ignored, &visitor);
    gc_holes_deinit(&holes);
    if (!reader_failed(reader) && map && range_section_map_list(reader, map, &sections)) {
        for (size_t i = 0; i < sections.count; i++)
            known_types_add_module(visit->types, sections.items[i].r2r_module);
        free(sections.items);
    }
    reader_recover(reader, FAILURE_BUT_FUEL);
    if (!visit->stopped)
        gc_problem(&visit->problems,
                   "the static fields of types were searched only in assemblies that have objects or compiled code");
}

static void visit_statics(struct visit *visit)
{
    struct reader *reader = begin(visit);
    uint64_t left_out = 0;
    visit->types = known_types_create(&visit->session->resolver.modules);
    if (visit->types) {
        bool is_listed = known_types_add_domain(visit->types);
        reader_recover(reader, FAILURE_BUT_FUEL);
        if (!is_listed)
            find_types(visit, reader);
        if (!reader_failed(reader) && !visit->stopped)
            known_types_visit_statics(visit->types, &visit->threads, tell_static, visit, &left_out);
    }
    known_types_destroy(visit->types);
    visit->types = NULL;
    if (left_out && !visit->stopped && !reader_failed(reader))
        gc_problem(&visit->problems, "static fields of types were left out: of %" PRIu64, left_out);
    if (!has_field(reader, F_ThreadLocalData_NonCollectibleTlsArrayData) && !visit->stopped && !reader_failed(reader))
        gc_problem(&visit->problems, "thread-static fields were not searched: the runtime does not describe them");
}

/* ---- Stacks ---- */

/* `frame` NULL: the runtime's own code has the reference. */
static void tell_local(struct visit *visit, const struct cdacq_frame *frame, uint64_t address, uint64_t object,
                       bool is_interior)
{
    const struct cdacq_method *method = frame ? frame->method : NULL;
    if (gc_segments_have(&visit->segments, object)) /* else an interior pointer elsewhere, or not initialized */
        tell(visit, (struct cdacq_heap_root){.kind = CDACQ_ROOT_LOCAL,
                                             .keeps = true,
                                             .is_interior = is_interior,
                                             .address = address,
                                             .object = object,
                                             .tid = visit->thread->tid,
                                             .frame = frame ? frame->index : 0,
                                             .method = method ? method->name : NULL});
}

/* False: it is not known all that the frame holds. */
static bool visit_slots(struct visit *visit, const struct cdacq_frame *frame)
{
    struct reader *reader = &visit->session->resolver.reader;
    bool all = true;
    visit->slots.count = 0;
    if (!frame_slots_read(&visit->session->resolver, frame, &visit->slots))
        return false;
    for (size_t i = 0; i < visit->slots.count && !visit->stopped; i++) {
        const struct gc_slot *slot = &visit->slots.items[i];
        uint64_t address, object;
        bool is_known = frame_slot_value(reader, frame, slot, &address, &object);
        bool is_unread = reader_recover(reader, FAILURE_BUT_FUEL);
        all &= is_known || (frame->kind == CDACQ_FRAME_FUNCLET && !is_unread);
        if (is_known && object)
            tell_local(visit, frame, address, object, slot->is_interior);
    }
    return all && !reader_failed(reader);
}

static int visit_frame(const struct cdacq_frame *frame, void *context)
{
    struct visit *visit = context;
    if (frame->kind != CDACQ_FRAME_MANAGED && frame->kind != CDACQ_FRAME_FUNCLET)
        return 0;
    visit->guessed += frame->by == CDACQ_FRAME_BY_GUESS;
    visit->inexact += !visit_slots(visit, frame);
    return visit->stopped;
}

/* References that the runtime's own code holds while it runs for a thread. */
static void visit_gc_frames(struct visit *visit, const struct cdacq_thread *thread)
{
    struct reader *reader = begin(visit);
    uint64_t frame = read_optional(reader, thread->thread, F_Thread_GCFrame);
    for (unsigned i = 0; frame && i < GC_FRAMES_MAX && !visit->stopped && reader_step(reader, "GCFrames"); i++) {
        uint64_t references = read_optional(reader, frame, F_GCFrame_ObjRefs);
        uint64_t count = read_optional(reader, frame, F_GCFrame_NumObjRefs);
        bool is_interior = read_optional(reader, frame, F_GCFrame_GCFlags) & GC_CALL_INTERIOR;
        for (uint64_t n = 0; n < MIN(count, (uint64_t)GC_FRAME_REFERENCES_MAX) && !visit->stopped; n++) {
            uint64_t address = references + n * reader->pointer_size, object = read_pointer(reader, address);
            if (reader_failed(reader))
                break;
            tell_local(visit, NULL, address, object, is_interior);
        }
        frame = read_optional(reader, frame, F_GCFrame_Next);
        if (frame == (reader->pointer_size == 8 ? UINT64_MAX : UINT32_MAX))
            break;
    }
    visit->inexact += reader_recover(reader, FAILURE_ANY);
}

static int visit_thread(const struct cdacq_thread *thread, void *context)
{
    struct visit *visit = context;
    struct cdacq_error error;
    if (!thread->thread)
        return 0; /* it runs no managed code */
    visit->thread = thread;
    if (thread->exception)
        tell(visit, (struct cdacq_heap_root){
                        .kind = CDACQ_ROOT_LOCAL, .keeps = true, .object = thread->exception, .tid = thread->tid});
    if (!visit->stopped)
        visit_gc_frames(visit, thread);
    if (!visit->stopped &&
        cdacq_session_visit_frames(visit->session, thread, NULL, 0, visit_frame, visit, &error) < 0) {
        visit->unwalked++;
        visit->walk_error = error;
    }
    return visit->stopped;
}

static void visit_stacks(struct visit *visit)
{
    struct cdacq_error error;
    enum cdacq_status status = cdacq_session_visit_threads(visit->session, visit_thread, visit, &error);
    begin(visit);
    if (visit->stopped)
        return;
    if (status < 0)
        gc_problem(&visit->problems, "the stacks of threads were not searched, or not all: %s", error.message);
    if (visit->unwalked)
        gc_problem(&visit->problems, "%" PRIu64 " stacks were not searched to their end: %s", visit->unwalked,
                   visit->walk_error.message);
    if (visit->inexact)
        gc_problem(&visit->problems, "%" PRIu64 " frames were not searched: it is not known what they hold",
                   visit->inexact);
    if (visit->guessed)
        gc_problem(&visit->problems, "%" PRIu64 " frames were found by guess", visit->guessed);
}

/* ---- Finalizer queues and handles ---- */

static bool tell_finalizable(void *context, uint64_t slot, uint64_t object, bool is_ready)
{
    return tell(context, (struct cdacq_heap_root){.kind = is_ready ? CDACQ_ROOT_FINALIZER : CDACQ_ROOT_FINALIZABLE,
                                                  .keeps = is_ready,
                                                  .address = slot,
                                                  .object = object});
}

/* Whether handles of a kind keep their object. Of a refcounted one it is not known whether it does: it may. */
static bool is_strong(enum cdacq_handle_kind kind)
{
    return kind == CDACQ_HANDLE_STRONG || kind == CDACQ_HANDLE_PINNED || kind == CDACQ_HANDLE_REFCOUNTED ||
           kind == CDACQ_HANDLE_ASYNC_PINNED || kind == CDACQ_HANDLE_SIZED_REF || kind == CDACQ_HANDLE_VARIABLE;
}

static bool tell_handle(void *context, const struct gc_handle *handle)
{
    bool is_dependent = handle->kind == CDACQ_HANDLE_DEPENDENT;
    return tell(context, (struct cdacq_heap_root){.kind = is_dependent ? CDACQ_ROOT_DEPENDENT : CDACQ_ROOT_HANDLE,
                                                  .keeps = is_strong(handle->kind),
                                                  .is_interior = handle->kind == CDACQ_HANDLE_WEAK_INTERIOR_POINTER,
                                                  .address = handle->address,
                                                  .object = handle->object,
                                                  .dependent = handle->dependent,
                                                  .handle = handle->kind});
}

static void visit_all(struct visit *visit)
{
    struct reader *reader = begin(visit);
    thread_list_read(reader, &visit->threads);
    if (!gc_problem_of_reader(&visit->problems, reader, "the list of threads") || visit->stopped)
        return;
    visit_statics(visit);
    if (!gc_problem_of_reader(&visit->problems, reader, "static fields were not searched, or not all") ||
        visit->stopped)
        return;
    visit_stacks(visit);
    if (visit->stopped)
        return;
    begin(visit);
    if (gc_finalizable_visit(reader, &visit->gc, &visit->problems, tell_finalizable, visit) && !visit->stopped)
        gc_handles_visit(reader, &visit->gc, &visit->problems, tell_handle, visit);
}

enum cdacq_status cdacq_session_visit_roots(struct cdacq_session *session, const struct cdacq_roots_visitor *visitor,
                                            struct cdacq_error *err)
{
    enum cdacq_status status = heap_check(session, visitor, "struct cdacq_roots_visitor", NULL, NULL, err);
    if (status < 0)
        return status;
    struct visit visit = {.session = session, .problems.stopped = &visit.stopped};
    memcpy(&visit.visitor, visitor, MIN(visitor->size, sizeof visit.visitor));
    visit.problems.tell = visit.visitor.problem;
    visit.problems.context = visit.visitor.context;
    status = heap_begin(session, &visit.gc, err);
    if (status < 0)
        return status;
    struct gc_problems ignored = {0};
    if (gc_segments_read(&session->resolver.reader, &visit.gc, &ignored, &visit.segments))
        visit_all(&visit);
    status = heap_end(session, &visit.gc, visit.stopped, err);
    thread_list_deinit(&visit.threads);
    gc_slots_deinit(&visit.slots);
    gc_segments_deinit(&visit.segments);
    return status;
}

enum cdacq_status cdacq_session_get_static_name(struct cdacq_session *session, uint64_t type, uint32_t token,
                                                const char **ret, struct cdacq_error *err)
{
    if (!session || !type || !ret)
        return error_set(err, CDACQ_ERR_ARGUMENT, type,
                         !session ? "no session"
                         : type   ? "no place for the name"
                                  : "no type");
    struct reader *reader = &session->resolver.reader;
    struct text text = {0};
    resolver_begin(&session->resolver);
    reader_begin(reader, FUEL_INDEX);
    enum cdacq_status status = CDACQ_OK;
    const char *owner = type_name(session, type, &status), *name = NULL;
    const struct object_field field = {.owner = type, .token = token};
    if (owner) {
        text_printf(&text, "%s.", owner);
        if (object_field_name(&session->resolver.modules, &field, &text))
            name = resolver_intern(&session->resolver, text.data, text.length);
        status = name ? CDACQ_OK : CDACQ_ERR_MODULE;
    }
    text_deinit(&text);
    if (reader_failed(reader))
        return reader_status(reader, err);
    if (!name)
        return error_set(err, status, type, "the static field 0x%" PRIx32 " of the MethodTable at 0x%" PRIx64 ": %s",
                         token, type, cdacq_status_text(status));
    *ret = name;
    return CDACQ_OK;
}

enum cdacq_status cdacq_session_get_event_name(struct cdacq_session *session, uint64_t method_table, const char *field,
                                               const char **ret, struct cdacq_error *err)
{
    if (!session || !method_table || !field || !ret)
        return error_set(err, CDACQ_ERR_ARGUMENT, method_table,
                         !session        ? "no session"
                         : !method_table ? "no type"
                         : field         ? "no place for the name"
                                         : "no field");
    struct reader *reader = &session->resolver.reader;
    struct text text = {0};
    resolver_begin(&session->resolver);
    reader_begin(reader, FUEL_INDEX);
    enum cdacq_status status = CDACQ_OK;
    bool found = false;
    for (unsigned i = 0; method_table && i < HIERARCHY_MAX && status == CDACQ_OK && !found; i++) {
        const struct metadata *metadata;
        uint32_t token;
        status = type_handle_definition(&session->resolver.modules, method_table, &metadata, &token);
        if (status == CDACQ_OK)
            status = metadata_has_event(metadata, metadata_rid(token), field, strlen(field), &found);
        if (status == CDACQ_OK && !found)
            method_table = method_table_parent(reader, method_table);
        if (reader_failed(reader))
            return reader_status(reader, err);
    }
    const char *owner = found ? type_name(session, method_table, &status) : NULL, *name = NULL;
    if (owner) {
        text_printf(&text, "%s.%s", owner, field);
        name = resolver_intern(&session->resolver, text.data, text.length);
        status = name ? CDACQ_OK : CDACQ_ERR_NOMEM;
    }
    text_deinit(&text);
    if (status < 0)
        return error_set(err, status, method_table, "the events of the MethodTable at 0x%" PRIx64 ": %s", method_table,
                         cdacq_status_text(status));
    if (!found)
        return CDACQ_NOT_MANAGED;
    *ret = name;
    return CDACQ_OK;
}
