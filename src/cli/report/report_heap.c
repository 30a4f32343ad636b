/*
 * report_heap.c: for a process that died of an OutOfMemoryException, or is short of memory, why, and the types whose
 * objects take the most. A core without the heap has nothing of it.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "src/cli/base/heap_presence.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/report/report.h"
#include "util/base.h"
#include "util/hash_table.h"

enum {
    NEAR_PERCENT = 90,      /* of a limit: the GC collects harder from here on */
    SEARCH_BYTES_EACH = 64, /* what the search of holders takes for an object, at most but for many references */
};

struct survey {
    struct type_sums types;
    struct report_heap *heap;
    struct heap_presence presence;
};

static bool died_of_it(const struct report *report)
{
    struct report_chain chain = {.exception.inner = report->exception};
    bool found = report->end.kind == CDACQ_END_OUT_OF_MEMORY;
    while (!found && report_next_inner(report, &chain))
        found = chain.exception.type && !strcmp(chain.exception.type, "System.OutOfMemoryException");
    return found;
}

static int add_object(const struct cdacq_heap_object *object, void *context)
{
    struct survey *survey = context;
    heap_presence_add_object(&survey->presence, object);
    if (object->is_free) {
        survey->heap->free_bytes += object->byte_size;
        return 0;
    }
    survey->heap->objects++;
    survey->heap->bytes += object->byte_size;
    return !type_sums_add(&survey->types, object);
}

static int add_segment(const struct cdacq_heap_segment *segment, void *context)
{
    struct survey *survey = context;
    survey->heap->committed += segment->committed - segment->begin;
    heap_presence_add_segment(&survey->presence, segment);
    return 0;
}

/* Keeps a type if it is among the largest. */
static void consider(struct report_heap *heap, const struct type_sum *type)
{
    unsigned at = heap->type_count;
    while (at && heap->types[at - 1].sum.bytes < type->sum.bytes)
        at--;
    if (at == REPORT_HEAP_TYPES)
        return;
    heap->type_count = MIN(heap->type_count + 1, (unsigned)REPORT_HEAP_TYPES);
    for (unsigned i = heap->type_count - 1; i > at; i--)
        heap->types[i] = heap->types[i - 1];
    heap->types[at] = *type;
}

static void find_largest(const struct report *report, const struct type_sums *types, struct report_heap *heap)
{
    for (const struct type_sum *type = NULL; (type = type_sum_table_next(&types->table, type));)
        consider(heap, type);
    for (unsigned i = 0; i < heap->type_count; i++) /* else its name is not known */
        (void)cdacq_session_get_type_name(report->session, heap->types[i].method_table, &heap->types[i].name, NULL);
}

/* Whether the process is, or was, short of memory, and why. */
static bool is_short(const struct report *report, struct report_heap *heap)
{
    const struct cdacq_heap_visitor nothing = {.size = sizeof nothing};
    struct cdacq_heap_info info = {.size = sizeof info};
    struct cdacq_memory_limit memory = {.size = sizeof memory};
    if (cdacq_session_visit_heap(report->session, &nothing, &info, NULL) == CDACQ_OK) {
        heap->oom_reason = info.oom_reason;
        heap->oom_bytes = info.oom_bytes;
    }
    if (report->facts.kind == CDACQ_TARGET_PROCESS &&
        cdacq_get_memory_limit(report->process.pid, &memory, NULL) == CDACQ_OK) {
        heap->limit = memory.limit;
        heap->limit_used = memory.used;
    }
    bool is_near = heap->limit && (double)heap->limit_used * 100 >= (double)heap->limit * NEAR_PERCENT;
    return heap->oom_reason || is_near || (report->exception && died_of_it(report));
}

void report_find_heap(struct report *report)
{
    struct report_heap heap = {0};
    struct survey survey = {.heap = &heap};
    struct cdacq_heap_info info = {.size = sizeof info};
    const struct cdacq_heap_visitor visitor = {
        .size = sizeof visitor, .segment = add_segment, .object = add_object, .context = &survey};
    if (!is_short(report, &heap))
        return;
    if (cdacq_session_visit_heap(report->session, &visitor, &info, NULL) == CDACQ_OK && heap.objects &&
        !heap_is_missing(&survey.presence, &info)) {
        find_largest(report, &survey.types, &heap);
        heap.is_partial = info.problem_count || info.is_under_way;
        heap.has_no_room =
            heap.limit && heap.limit - MIN(heap.limit, heap.limit_used) < heap.objects * SEARCH_BYTES_EACH;
    } else {
        heap = (struct report_heap){.oom_reason = heap.oom_reason, .oom_bytes = heap.oom_bytes};
    }
    report->heap = heap;
    type_sums_deinit(&survey.types);
}

void report_write_heap_text(const struct report *report, struct output *out)
{
    const struct report_heap *heap = &report->heap;
    if (!heap->objects && !heap->oom_reason)
        return;
    output_literal(out, "\n");
    if (heap->oom_reason) {
        output_label(out, "memory");
        output_printf(out, "the GC could not allocate %" PRIu64 " bytes: %s\n", heap->oom_bytes,
                      cdacq_oom_reason_text(heap->oom_reason));
    }
    if (heap->limit) {
        output_label(out, "memory");
        output_printf(out, "%" PRIu64 " of the %" PRIu64 " bytes that the control group may use are used\n",
                      heap->limit_used, heap->limit);
    }
    if (!heap->objects)
        return;
    output_label(out, "heap");
    output_printf(out, "%" PRIu64 " bytes in %" PRIu64 " objects, %" PRIu64 " free, %" PRIu64 " committed%s\n",
                  heap->bytes, heap->objects, heap->free_bytes, heap->committed,
                  heap->is_partial ? "; a part cannot be read" : "");
    for (unsigned i = 0; i < heap->type_count; i++) {
        const struct type_sum *type = &heap->types[i];
        output_printf(out, "%14" PRIu64 " bytes in %" PRIu64 " of ", type->sum.bytes, type->sum.count);
        type_sum_write_name(out, type);
        output_literal(out, "\n");
    }
    if (heap->holders.count)
        output_literal(out, "  held by\n");
    heap_holders_write_text(&heap->holders, out);
    if (heap->has_no_room)
        output_literal(out, "  what holds it was not looked for: that takes memory, and little is left of the limit\n");
}

void report_write_heap_json(const struct report *report, struct json_writer *w)
{
    const struct report_heap *heap = &report->heap;
    if (!heap->objects && !heap->oom_reason) {
        json_null(w, "heap");
        return;
    }
    json_begin_object(w, "heap");
    json_number(w, "objects", heap->objects);
    json_number(w, "bytes", heap->bytes);
    json_number(w, "free_bytes", heap->free_bytes);
    json_number(w, "committed", heap->committed);
    json_bool(w, "partial", heap->is_partial);
    json_begin_array(w, "types");
    for (unsigned i = 0; i < heap->type_count; i++) {
        json_begin_object(w, NULL);
        type_sum_write_members(w, &heap->types[i]);
        json_end_object(w);
    }
    json_end_array(w);
    heap_holders_write_json(&heap->holders, w);
    json_string(w, "oom_reason", heap->oom_reason ? cdacq_oom_reason_text(heap->oom_reason) : NULL);
    json_known_number(w, "oom_bytes", heap->oom_reason, heap->oom_bytes);
    json_known_number(w, "limit", heap->limit, heap->limit);
    json_known_number(w, "limit_used", heap->limit, heap->limit_used);
    json_end_object(w);
}
