#include "src/perf/jitdump_debug.h"

#include "formats/debug_info.h"
#include "src/api/source_lines.h"
#include "util/binary_search.h"

enum { DATA_MAX = 16 * 1024 * 1024 /* bytes of a record; more is left out */, UNWINDING_ALIGN = 8 };

DEFINE_VECTOR_FUNCTIONS(frame_entries, struct dwarf_frame_entry);

void jitdump_debug_init(struct jitdump_debug *debug, struct cdacq_session *session)
{
    bool big = session->target->descriptor_info.big_endian;
    *debug = (struct jitdump_debug){.entries.big_endian = big, .unwinding.big_endian = big};
    method_frames_init(&debug->frames, session);
}

void jitdump_debug_deinit(struct jitdump_debug *debug)
{
    method_frames_deinit(&debug->frames);
    byte_writer_deinit(&debug->entries);
    byte_writer_deinit(&debug->unwinding);
    frame_entries_deinit(&debug->index);
}

/* Code that no line is known for belongs to the line before it: the format cannot say that there is none. */
static void form_entries(struct jitdump_debug *debug, const struct method_record *record, uint64_t begin, uint64_t size,
                         uint64_t offset)
{
    const struct il_point *points = record->il_points;
    uint32_t count = record->il_point_count;
    uint32_t i = lower_bound(k, count, points[k].native_offset <= offset);
    const struct source_point *last = NULL;
    for (i = i ? i - 1 : 0; i < count && points[i].native_offset < add_saturated(offset, size); i++) {
        const struct source_point *point = record_source_point(record, (int32_t)points[i].il_offset);
        uint64_t at = points[i].native_offset > offset ? points[i].native_offset - offset : 0;
        if (!point || (last && last->line == point->line && last->document == point->document) ||
            debug->entries.length > DATA_MAX)
            continue;
        put_u64(&debug->entries, begin + at);
        put_u32(&debug->entries, point->line);
        put_u32(&debug->entries, 0);
        put_string(&debug->entries, point->document->file, strlen(point->document->file));
        debug->entry_count++;
        last = point;
    }
}

static void add_function(const struct unwind_function *function, const struct frame_rows *rows, void *context)
{
    struct jitdump_debug *debug = context;
    size_t fde = dwarf_frame_add(&debug->writer, function->begin, function->end, rows->items, rows->count);
    if (!frame_entries_append(&debug->index, (struct dwarf_frame_entry){function->begin, fde}))
        debug->unwinding.broken = true;
}

/* Where perf puts it: .eh_frame follows the code, which begins at 0 here, and .eh_frame_hdr follows .eh_frame. */
static void form_unwinding(struct jitdump_debug *debug, const struct code_block *block, uint64_t begin, uint64_t size)
{
    struct byte_writer *to = &debug->unwinding;
    debug->index.count = 0;
    debug->writer = (struct dwarf_frame_writer){
        .to = to,
        .machine = method_frames_machine(&debug->frames),
        .word_size = debug->frames.session->target->descriptor_info.pointer_size,
        .is_eh_frame = true,
        .address = align_up(size, UNWINDING_ALIGN),
        .moved = -begin,
    };
    if (!debug->writer.machine)
        return;
    dwarf_frame_begin(&debug->writer);
    method_frames_visit(&debug->frames, block, add_function, debug);
    dwarf_frame_end(&debug->writer);
    size_t table = to->length;
    dwarf_frame_put_index(&debug->writer, to, debug->writer.address + table, debug->index.items, debug->index.count);
    debug->index_size = to->length - table;
    if (to->broken || !debug->index.count || to->length > DATA_MAX)
        to->length = 0;
}

void jitdump_debug_form(struct jitdump_debug *debug, const struct cdacq_method *method, uint64_t begin, uint64_t size)
{
    struct cdacq_session *session = debug->frames.session;
    const struct method_record *record = method_record_at(session, method->code_start, true);
    struct code_block block;
    debug->entries.length = debug->unwinding.length = 0;
    debug->entry_count = debug->index_size = 0;
    if (record && record->il_point_count && record->source_point_count)
        form_entries(debug, record, begin, size, begin == method->code_start ? 0 : method->code_size);
    if (debug->entries.broken)
        debug->entry_count = 0;
    if (method_block(session, begin, &block))
        form_unwinding(debug, &block, begin, size);
}
