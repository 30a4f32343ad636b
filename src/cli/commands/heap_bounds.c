#include "src/cli/commands/heap_bounds.h"

#include <inttypes.h>

#include "src/cli/base/console.h"
#include "util/base.h"
#include "util/text.h"

enum { SEGMENTS_SHOWN = 16 }; /* without --all */

static int add_segment(const struct cdacq_heap_segment *segment, void *context)
{
    struct heap_bounds *bounds = context;
    bounds->out_of_memory = !heap_segments_append(&bounds->segments, *segment);
    return bounds->out_of_memory;
}

static int count_handle(const struct cdacq_heap_root *root, void *context)
{
    struct heap_bounds *bounds = context;
    bool is_handle = root->kind == CDACQ_ROOT_HANDLE || root->kind == CDACQ_ROOT_DEPENDENT;
    if (is_handle && (unsigned)root->handle < CDACQ_HANDLE_COUNT) {
        bounds->handles[root->handle]++;
        bounds->handle_count++;
    }
    return 0;
}

bool heap_bounds_read(struct cdacq_session *session, struct heap_bounds *ret)
{
    const struct cdacq_heap_visitor visitor = {.size = sizeof visitor, .segment = add_segment, .context = ret};
    const struct cdacq_roots_visitor roots = {.size = sizeof roots, .root = count_handle, .context = ret};
    *ret = (struct heap_bounds){0};
    (void)cdacq_session_visit_heap(session, &visitor, NULL, NULL); /* the caller has told the problems */
    (void)cdacq_session_visit_roots(session, &roots, NULL);
    return !ret->out_of_memory;
}

void heap_bounds_deinit(struct heap_bounds *bounds)
{
    heap_segments_deinit(&bounds->segments);
}

void heap_bounds_write_text(const struct heap_bounds *bounds, struct output *out, bool all)
{
    size_t shown = all ? bounds->segments.count : MIN(bounds->segments.count, (size_t)SEGMENTS_SHOWN);
    char committed[32];
    const char *separator = "\nhandles: ";
    if (shown)
        output_styled(out, STYLE_HEADING, "\nobjects from       to                 generation  committed  heap\n");
    for (size_t i = 0; i < shown; i++) {
        const struct cdacq_heap_segment *segment = &bounds->segments.items[i];
        text_rounded_bytes(committed, sizeof committed, segment->committed - segment->begin);
        output_printf(out, "0x%016" PRIx64 " 0x%016" PRIx64 " %-10s %10s  %4" PRIu32 "\n", segment->begin, segment->end,
                      cdacq_generation_text(segment->generation), committed, segment->heap);
    }
    if (shown < bounds->segments.count)
        output_printf(out, "... %zu more (--all)\n", bounds->segments.count - shown);
    for (unsigned kind = 0; kind < CDACQ_HANDLE_COUNT; kind++) {
        if (!bounds->handles[kind])
            continue;
        output_printf(out, "%s%" PRIu64 " %s", separator, bounds->handles[kind],
                      cdacq_handle_kind_text((enum cdacq_handle_kind)kind));
        separator = ", ";
    }
    output_literal(out, bounds->handle_count ? "\n" : "\nhandles: not in this core\n");
}

void heap_bounds_write_members(const struct heap_bounds *bounds, struct json_writer *w)
{
    json_begin_array(w, "segments");
    for (size_t i = 0; i < bounds->segments.count; i++) {
        const struct cdacq_heap_segment *segment = &bounds->segments.items[i];
        json_begin_object(w, NULL);
        json_address(w, "begin", segment->begin);
        json_address(w, "end", segment->end);
        json_address(w, "committed", segment->committed);
        json_string(w, "generation", cdacq_generation_text(segment->generation));
        json_number(w, "heap", segment->heap);
        json_end_object(w);
    }
    json_end_array(w);
    json_begin_object(w, "handles");
    for (unsigned kind = 0; kind < CDACQ_HANDLE_COUNT; kind++)
        if (bounds->handles[kind])
            json_number(w, cdacq_handle_kind_text((enum cdacq_handle_kind)kind), bounds->handles[kind]);
    json_end_object(w);
}
