/* heap.c: the calls of cdacq/heap.h. */
#include "cdacq/heap.h"

#include <inttypes.h>

#include "contracts/gc/references.h"
#include "descriptors/descriptor.h"
#include "src/api/heap.h"
#include "src/api/type_name.h"
#include "src/lookup/opened_target.h"
#include "util/sized.h"

struct visit {
    struct cdacq_heap_visitor visitor;
    struct gc_problems problems;
    struct gc_references references;
    uint64_t object; /* whose references are visited */
    bool stopped;
};

static bool tell_reference(void *context, uint64_t offset, uint64_t target)
{
    struct visit *visit = context;
    visit->stopped = visit->visitor.reference(visit->object, offset, target, visit->visitor.context) != 0;
    return !visit->stopped;
}

static bool tell_object(void *context, const struct gc_segment *segment, const struct cdacq_heap_object *object)
{
    struct visit *visit = context;
    (void)segment;
    if (visit->stopped) /* a problem has ended it */
        return false;
    if (visit->visitor.object)
        visit->stopped = visit->visitor.object(object, visit->visitor.context) != 0;
    if (visit->stopped || !visit->visitor.reference)
        return !visit->stopped;
    visit->object = object->address;
    return gc_references_visit(&visit->references, object, tell_reference, visit);
}

static void tell_segments(struct visit *visit, const struct gc_segments *segments)
{
    for (size_t i = 0; i < segments->count && visit->visitor.segment && !visit->stopped; i++) {
        const struct gc_segment *segment = &segments->items[i];
        const struct cdacq_heap_segment told = {
            .size = sizeof told,
            .address = segment->address,
            .begin = segment->begin,
            .end = segment->end,
            .committed = segment->committed,
            .reserved = segment->reserved,
            .generation = segment->generation,
            .heap = segment->heap,
        };
        visit->stopped = visit->visitor.segment(&told, visit->visitor.context) != 0;
    }
}

/* Visits what `gc` describes. The reader says whether that failed. */
static void visit_gc(struct reader *reader, const struct gc *gc, struct visit *visit)
{
    struct gc_segments segments = {0};
    struct gc_holes holes = {0};
    const struct gc_visitor visitor = {
        .object = tell_object, .context = visit, .free_method_table = gc_free_method_table(reader)};
    if (!gc_problem_of_reader(&visit->problems, reader, "free memory is counted as objects"))
        return;
    if (gc_segments_read(reader, gc, &visit->problems, &segments))
        tell_segments(visit, &segments);
    bool has_objects = visit->visitor.object || visit->visitor.reference;
    if (!reader_failed(reader) && !visit->stopped && has_objects &&
        gc_holes_read(reader, gc, &visit->problems, &holes) && !visit->stopped &&
        gc_references_init(&visit->references, reader))
        gc_walk(reader, &segments, &holes, &visit->problems, &visitor);
    if (visit->references.damaged && !visit->stopped && !reader_failed(reader))
        gc_problem(&visit->problems, "the references of %" PRIu64 " types cannot be read", visit->references.damaged);
    gc_references_deinit(&visit->references);
    gc_holes_deinit(&holes);
    gc_segments_deinit(&segments);
}

const char *cdacq_oom_reason_text(enum cdacq_oom_reason reason)
{
    static const char *const texts[CDACQ_OOM_COUNT] = {
        [CDACQ_OOM_NONE] = "none",
        [CDACQ_OOM_BUDGET] = "the allocation budget was exceeded",
        [CDACQ_OOM_CANT_COMMIT] = "memory could not be committed",
        [CDACQ_OOM_CANT_RESERVE] = "address space could not be reserved",
        [CDACQ_OOM_LOH] = "there was no memory for large objects",
        [CDACQ_OOM_LOW_MEM] = "memory was low during a collection",
        [CDACQ_OOM_UNPRODUCTIVE_FULL_GC] = "a full collection was of no use",
    };
    const char *text = (unsigned)reason < ARRAY_SIZE(texts) ? texts[reason] : NULL;
    return text ? text : "unknown";
}

static enum cdacq_status check_contract(const struct cdacq_target *target, struct cdacq_error *err)
{
    const struct descriptor_item *item = descriptor_find(&target->descriptor, CDACQ_ITEM_CONTRACT, "", "GC");
    const struct layout *layout = &target->layout;
    char version[32];
    bool has_vars = layout->global_present[G_GcDacVars] && layout->globals[G_GcDacVars];
    if (layout->usable >> LAYOUT_GC & 1 && !has_vars &&
        !layout->fields[F_HeapSegment_Allocated].present) /* as in a core that was cut off */
        return error_set(err, CDACQ_ERR_MEMORY, 0, "g_dacTable, by which the GC is found, is missing");
    if (layout->usable >> LAYOUT_GC & 1)
        return CDACQ_OK;
    if (item)
        return error_set(err, CDACQ_ERR_CONTRACT, 0, "the runtime publishes GC %s, which this build does not read",
                         error_printable(version, sizeof version, item->text));
    return error_set(err, CDACQ_ERR_CONTRACT, 0,
                     "the runtime publishes no GC contract that can be read, and this build has no supplement for it");
}

enum cdacq_status heap_check(const struct cdacq_session *session, const void *visitor, const char *visitor_name,
                             const void *info, const char *info_name, struct cdacq_error *err)
{
    if (!session || !visitor)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, session ? "no visitor" : "no session");
    enum cdacq_status status = info ? sized_check(info, info_name, err) : CDACQ_OK;
    return status < 0 ? status : sized_check(visitor, visitor_name, err);
}

enum cdacq_status heap_begin(struct cdacq_session *session, struct gc *ret, struct cdacq_error *err)
{
    struct reader *reader = &session->resolver.reader;
    enum cdacq_status status = check_contract(session->resolver.target, err);
    if (status < 0)
        return status;
    resolver_begin(&session->resolver);
    reader_begin(reader, FUEL_HEAP);
    if (!gc_read(reader, ret))
        return reader_status(reader, err);
    epoch_pin(&session->resolver.epoch);
    return CDACQ_OK;
}

enum cdacq_status heap_end(struct cdacq_session *session, struct gc *gc, bool stopped, struct cdacq_error *err)
{
    epoch_unpin(&session->resolver.epoch);
    gc_deinit(gc);
    return stopped ? CDACQ_STOPPED : reader_status(&session->resolver.reader, err);
}

enum cdacq_status cdacq_session_visit_heap(struct cdacq_session *session, const struct cdacq_heap_visitor *visitor,
                                           struct cdacq_heap_info *ret, struct cdacq_error *err)
{
    struct cdacq_heap_info info = {.size = sizeof info};
    struct gc gc;
    enum cdacq_status status =
        heap_check(session, visitor, "struct cdacq_heap_visitor", ret, "struct cdacq_heap_info", err);
    if (status == CDACQ_OK)
        status = heap_begin(session, &gc, err);
    if (status < 0)
        return status;
    struct visit visit = {.problems.stopped = &visit.stopped};
    memcpy(&visit.visitor, visitor, MIN(visitor->size, sizeof visit.visitor));
    visit.problems.tell = visit.visitor.problem;
    visit.problems.context = visit.visitor.context;
    info.is_server = gc.is_server;
    info.has_regions = gc.has_regions;
    info.is_under_way = gc.is_under_way;
    info.heap_count = (uint32_t)gc.heaps.count;
    struct gc_oom oom = {0};
    struct reader *reader = &session->resolver.reader;
    if (gc_oom_read(reader, &gc, &oom) && oom.reason < CDACQ_OOM_COUNT) {
        info.oom_reason = (enum cdacq_oom_reason)oom.reason;
        info.oom_bytes = oom.reason ? oom.size : 0;
    }
    reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY)); /* the heap can be read without it */
    visit_gc(reader, &gc, &visit);
    status = heap_end(session, &gc, visit.stopped, err);
    info.problem_count = visit.problems.count;
    info.missing_bytes = visit.problems.missing;
    if (ret && status >= 0)
        sized_copy(ret, &info, sizeof info);
    return status;
}

enum cdacq_status cdacq_session_get_type_name(struct cdacq_session *session, uint64_t method_table, const char **ret,
                                              struct cdacq_error *err)
{
    enum cdacq_status status;
    if (!session || !method_table || !ret)
        return error_set(err, CDACQ_ERR_ARGUMENT, method_table,
                         !session       ? "no session"
                         : method_table ? "no place for the name"
                                        : "no MethodTable");
    struct reader *reader = &session->resolver.reader;
    resolver_begin(&session->resolver);
    reader_begin(reader, FUEL_INDEX);
    uint64_t free_method_table = gc_free_method_table(reader);
    reader_recover(reader, FAILURE_BUT_FUEL);
    const char *name = method_table == free_method_table ? "Free" : type_name(session, method_table, &status);
    if (!name)
        return error_set(err, status, method_table, "the type of the MethodTable at 0x%" PRIx64 ": %s", method_table,
                         cdacq_status_text(status));
    *ret = name;
    return CDACQ_OK;
}
